//! What the fuzzer feeds bytes to: one function for each door by which bytes come into the server. `fuzz/` calls them with
//! libFuzzer's inputs, `crates/sim/tests/corpus.rs` with those that are kept.
//!
//! A target panics when something does not hold that should, whatever the bytes are. It must be deterministic, and take memory
//! and time in proportion to its input: what a bound elsewhere in the server keeps small is kept small here as well.

mod commands;
mod config;
mod grammar;
mod look;
mod records;
mod replies;
mod resp;
mod seeds;
mod segments;
mod snapshots;

/// A door.
pub struct Target {
    /// As `cargo xtask fuzz` names it, and the folder under `fuzz/corpus/`.
    pub name: &'static str,
    /// What it looks at.
    pub about: &'static str,
    /// How much of the fuzzer's time it deserves.
    pub weight: u32,
    /// Longest input worth trying, in bytes.
    pub len_max: usize,
    /// Takes an input.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "resp",
        about: "requests in arbitrary pieces: the same commands as in one piece, no cap passed",
        weight: 1,
        len_max: 4096,
        run: resp::run,
        seeds: seeds::resp,
    },
    Target {
        name: "commands",
        about: "commands of several connections in virtual time: invariants, one reply each, log and snapshots",
        weight: 4,
        len_max: 4096,
        run: commands::run,
        seeds: seeds::commands,
    },
    Target {
        name: "records",
        about: "bytes as records of the log: a clean error, or a state that holds",
        weight: 2,
        len_max: 4096,
        run: records::run,
        seeds: seeds::records,
    },
    Target {
        name: "snapshots",
        about: "bytes as chunks of a snapshot: a clean error, or a state that holds",
        weight: 2,
        len_max: 4096,
        run: snapshots::run,
        seeds: seeds::snapshots,
    },
    Target {
        name: "segments",
        about: "whatever may lie in a data directory: always a row of the recovery table",
        weight: 2,
        len_max: 2048,
        run: segments::run,
        seeds: seeds::segments,
    },
    Target {
        name: "config",
        about: "command line, configuration files, CONFIG SET, users: what is shown can be set again",
        weight: 1,
        len_max: 2048,
        run: config::run,
        seeds: seeds::config,
    },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
