//! `cargo xtask compat`: random sequences of commands to our server and to Redis 8.2.3, every reply compared.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::compat::known::KNOWN;
use crate::compat::{self, Outcome};
use crate::parts::Context;
use crate::server::Server;

const SYNTAX: Syntax = Syntax {
    help: "\
Play random sequences of commands to our server and to Redis 8.2.3 and compare every reply.

usage: cargo xtask compat [options]

Each difference is told with a short script. Those that are meant are counted under their reason.
The last line is \"N passed, N failed\", one per sequence.

  --seconds N       how long (60)
  --seed S          the first sequence (1)
  --binary PATH     this server instead of building our own
  --redis PATH      this server to compare with instead of Redis 8.2.3
",
    options: &["--seconds", "--seed", "--binary", "--redis"],
    flags: &[],
    words: 0,
};

/// How our server is started: it keeps nothing and tells lag as Redis does.
pub const OURS: &[&str] = &["--save", "", "--appendonly", "no", "--stream-lag", "compat"];
/// How the other one is started.
pub const THEIRS: &[&str] = &["--save", "", "--appendonly", "no"];

/// Runs the command.
///
/// # Errors
/// When the arguments make no sense, or a server cannot be had.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    let seconds: f64 = arguments.number("--seconds", 60.0, 0.001)?;
    let seed: u64 = arguments.number("--seed", 1, 0)?;
    let context = Context::new(arguments.one("--binary").map(PathBuf::from));
    let ours = context.start_server(OURS).map_err(Stop::Usage)?;
    let redis = match arguments.one("--redis") {
        Some(path) => PathBuf::from(path),
        None => context.redis().map_err(Stop::Usage)?,
    };
    let theirs = Server::start(&redis, THEIRS).map_err(Stop::Usage)?;
    let time = Duration::from_secs_f64(seconds);
    let outcome = compat::play(&ours, &theirs, seed, time, &mut io::stdout()).map_err(Stop::Usage)?;
    print!("{}", table(&outcome));
    println!("{} passed, {} failed", passed(&outcome), outcome.different);
    Ok(outcome.different == 0)
}

/// Sequences without a difference that nobody meant.
pub fn passed(outcome: &Outcome) -> usize {
    outcome.equal + outcome.known.iter().sum::<usize>()
}

/// How often what was meant to differ did.
fn table(outcome: &Outcome) -> String {
    let mut text = format!("{} commands; {} sequences equal throughout\n", outcome.commands, outcome.equal);
    for (known, count) in KNOWN.iter().zip(&outcome.known) {
        text.push_str(&format!("{count:>6}  {}: {}\n", known.documented, known.reason));
    }
    text
}
