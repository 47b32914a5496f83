//! One developer command a file. Each takes its words and answers whether all went well.

pub mod bench;
pub mod compat;
pub mod crash;
pub mod field;
pub mod fuzz;
pub mod golden;
pub mod sim;
pub mod soak;
pub mod test;

use crate::arguments::Stop;

/// What a command answers: true when nothing failed.
pub type Answer = Result<bool, Stop>;

/// A command of `cargo xtask`.
#[derive(Debug)]
pub struct Command {
    /// The word that calls it.
    pub name: &'static str,
    /// One line for the overview.
    pub about: &'static str,
    /// Runs it with the words after its name.
    pub run: fn(&[String]) -> Answer,
}

/// Every command, in the order of the overview.
pub const COMMANDS: &[Command] = &[
    Command { name: "test", about: "run every test there is and count", run: test::run },
    Command { name: "golden", about: "play the golden cases against a server", run: golden::run },
    Command { name: "field", about: "play the field cases against a server", run: field::run },
    Command { name: "compat", about: "random commands to our server and to Redis, replies compared", run: compat::run },
    Command { name: "bench", about: "measure our server beside Redis and Valkey", run: bench::run },
    Command { name: "crash", about: "kill a server under load and check what it kept", run: crash::run },
    Command { name: "sim", about: "whole lives of a server in virtual time, on a disk that crashes", run: sim::run },
    Command { name: "fuzz", about: "feed the server what nobody would send", run: fuzz::run },
    Command { name: "soak", about: "minutes of work with restarts: nothing lost, nothing growing", run: soak::run },
];
