//! Commands of the binary beside serving, one file each: `impel NAME ...`. A new one is a row in [`COMMANDS`].
//!
//! Whatever does not begin with such a name is a command line for a server, as redis-server takes it; a configuration file
//! that has the name of a command is given as `./NAME`.

pub mod check;

use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code for a command line that cannot be understood, as in sysexits.h.
pub const USAGE: u8 = 64;

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
pub const COMMANDS: &[Command] = &[Command {
    name: "check",
    about: "examine a data directory, or make a new one of what is whole in it",
    run: check::run,
}];

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
