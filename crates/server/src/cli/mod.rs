//! Commands of the binary beside serving, one file each: `impel NAME ...`. A new one is a row in [`COMMANDS`].
//!
//! Whatever does not begin with such a name is a command line for a server, as redis-server takes it; a configuration file
//! that has the name of a command is given as `./NAME`.

pub mod add;
pub mod audit;
pub mod backup;
pub mod check;
pub mod lab;
mod options;
pub mod restore;
pub mod tail;
pub mod work;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// Exit code for a command line that cannot be understood, as in sysexits.h.
pub const USAGE: u8 = 64;

/// Exit code of a command that did not do what was wanted.
pub const FAILED: u8 = 2;

/// A command.
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// What it does, for `impel --help`.
    pub about: &'static str,
    /// Does it, with the words behind the name.
    pub run: fn(&[Vec<u8>]) -> ExitCode,
}

/// All of them.
pub const COMMANDS: &[Command] = &[
    Command { name: "add", about: "add an entry to a stream of a server", run: add::run },
    Command { name: "audit", about: "what became of the entries that a group was given", run: audit::run },
    Command {
        name: "backup",
        about: "copy a data directory while a server works in it, or what is new in it",
        run: backup::run,
    },
    Command {
        name: "check",
        about: "examine a data directory, or make a new one of what is whole in it",
        run: check::run,
    },
    Command {
        name: "lab",
        about: "is a claimed entry's work done? eight cases on a server, with the evidence",
        run: lab::run,
    },
    Command {
        name: "restore",
        about: "make of a data directory or a backup the state at a moment of the past",
        run: restore::run,
    },
    Command { name: "tail", about: "show the entries of a stream as they come", run: tail::run },
    Command { name: "work", about: "run a command for each entry of a stream", run: work::run },
];

/// Does what the first word says, if it is the name of a command.
pub fn run(words: &[Vec<u8>]) -> Option<ExitCode> {
    let (first, rest) = words.split_first()?;
    let command = COMMANDS.iter().find(|command| command.name.as_bytes() == first)?;
    Some((command.run)(rest))
}

/// Their lines in `impel --help`.
pub fn help() -> String {
    COMMANDS.iter().map(|command| format!("       impel {} --help    {}\n", command.name, command.about)).collect()
}

/// Prints to standard output. Whoever reads it may have seen enough.
pub(crate) fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// The arguments of the command `name`, or the exit code for who asks for help (`None`) or has got them wrong.
fn understood<T>(name: &str, help: &str, parsed: Result<Option<T>, String>) -> Result<T, ExitCode> {
    match parsed {
        Ok(Some(arguments)) => Ok(arguments),
        Ok(None) => {
            print(help);
            Err(ExitCode::SUCCESS)
        }
        Err(what) => Err(usage(name, &what)),
    }
}

/// Says what is wrong with the command line of the command `name`.
fn usage(name: &str, what: &str) -> ExitCode {
    eprintln!("impel {name}: {what} (impel {name} --help)");
    ExitCode::from(USAGE)
}

fn path(word: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(word.to_vec()))
}

/// Is this a data directory?
fn expect_data(dir: &Path) -> Result<(), String> {
    match dir.join("log").is_dir() || dir.join("snapshots").is_dir() {
        true => Ok(()),
        false => Err(format!("{} is no data directory: there is neither log nor snapshots in it", dir.display())),
    }
}

/// A new directory outside of the old one, or an empty one.
fn check_target(dir: &Path, target: &Path) -> Result<(), String> {
    let shown = target.display();
    match fs::read_dir(target) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(format!("{shown} is not empty"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{shown}: {error}")),
    }
    check_outside(dir, target)
}

/// A directory that is not within the other one.
fn check_outside(dir: &Path, target: &Path) -> Result<(), String> {
    let shown = target.display();
    let dir = dir.canonicalize().map_err(|error| format!("{}: {error}", dir.display()))?;
    let absolute = std::path::absolute(target).map_err(|error| format!("{shown}: {error}"))?;
    // Of what is not there yet, the nearest directory that is. Where `..` leads from something that is not there nobody knows.
    let there = absolute.ancestors().find_map(|parent| Some((parent, parent.canonicalize().ok()?)));
    let (existing, there) = there.unzip();
    let rest = existing.and_then(|existing| absolute.strip_prefix(existing).ok());
    if rest.is_some_and(|rest| rest.components().any(|part| part == Component::ParentDir)) {
        return Err(format!("{shown} goes back by .. from a directory that is not there"));
    }
    match there.is_some_and(|there| there.starts_with(&dir)) {
        true => Err(format!("{shown} is inside {}", dir.display())),
        false => Ok(()),
    }
}
