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
mod verify;
pub mod work;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use crate::disk::DiskError;

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

/// Does what the first word says, if it is the name of a command, or says that it is none.
pub fn run(words: &[Vec<u8>]) -> Option<ExitCode> {
    let (first, rest) = words.split_first()?;
    if let Some(command) = COMMANDS.iter().find(|command| command.name.as_bytes() == first) {
        return Some((command.run)(rest));
    }
    let what = unknown(first)?;
    eprintln!("impel: {what} (impel --help)");
    Some(ExitCode::from(USAGE))
}

/// What to say of a first word that is no command, no option and no configuration file either.
fn unknown(word: &[u8]) -> Option<String> {
    if word.is_empty() {
        return Some("an empty word where a command or a configuration file is wanted".into());
    }
    // Who writes a path or a name with an extension means a file, and is told why it cannot be read.
    let is_word = word.iter().all(|byte| byte.is_ascii_alphabetic());
    if !is_word || path(word).symlink_metadata().is_ok() {
        return None;
    }
    let word = String::from_utf8_lossy(word);
    let near = COMMANDS.iter().map(|command| (distance(&word.to_ascii_lowercase(), command.name), command.name)).min();
    let hint = match near {
        Some((distance, name)) if distance <= 2 && distance < name.len() => format!("; is {name} meant?"),
        _ => String::new(),
    };
    Some(format!("there is no command {word}, and no configuration file of that name{hint}"))
}

/// How many letters have to be changed, added, left out or swapped with the next to make the one of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut best = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
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
    let shown = dir.display();
    for part in ["log", "snapshots"] {
        match fs::metadata(dir.join(part)) {
            Ok(found) if found.is_dir() => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(DiskError::at("open", &dir.join(part))(error).to_string()),
        }
    }
    match fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("{shown} is no data directory: there is nothing of that name"))
        }
        Err(error) => Err(DiskError::at("open", dir)(error).to_string()),
        Ok(_) => Err(format!("{shown} is no data directory: there is neither log nor snapshots in it")),
    }
}

/// The directories that a command line names, in this order.
fn directories<const N: usize>(words: Vec<&[u8]>, names: [&str; N]) -> Result<[PathBuf; N], String> {
    let words = <[&[u8]; N]>::try_from(words)
        .map_err(|words| format!("{} wanted, not {}: {}", plural(N), words.len(), names.join(" ")))?;
    for (word, name) in words.iter().zip(names) {
        if word.is_empty() {
            return Err(format!("an empty path was given for {name}"));
        }
    }
    Ok(words.map(path))
}

fn plural(directories: usize) -> &'static str {
    if directories == 1 { "one directory is" } else { "two directories are" }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_command_is_told_its_nearest() {
        let told = |word: &str| unknown(word.as_bytes());
        let of = |word, hint| Some(format!("there is no command {word}, and no configuration file of that name{hint}"));
        for (word, name) in
            [("chekc", "check"), ("Check", "check"), ("bakup", "backup"), ("restor", "restore"), ("ad", "add")]
        {
            assert_eq!(told(word), of(word, format!("; is {name} meant?")));
        }
        assert_eq!(told("frobnicate"), of("frobnicate", String::new()));
        assert!(told("").unwrap().starts_with("an empty word"));
        for file in ["redis.conf", "./chekc", "/etc/impel", "-", "--port"] {
            assert_eq!(told(file), None, "{file} is read as a file or an option");
        }
    }

    #[test]
    fn distances() {
        for (one, other, expected) in
            [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("check", "chekc", 1), ("tail", "work", 4)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_data_directory_is_told_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(
            expect_data(path).unwrap_err().ends_with("is no data directory: there is neither log nor snapshots in it")
        );
        let missing = path.join("missing");
        assert!(expect_data(&missing).unwrap_err().ends_with("is no data directory: there is nothing of that name"));
        fs::create_dir(path.join("log")).unwrap();
        assert_eq!(expect_data(path), Ok(()));
        let empty = directories(vec![b"a", b""], ["DIR", "NEWDIR"]);
        assert_eq!(empty, Err("an empty path was given for NEWDIR".into()));
        assert_eq!(directories(vec![b"a"], ["DIR", "TO"]), Err("two directories are wanted, not 1: DIR TO".into()));
    }
}
