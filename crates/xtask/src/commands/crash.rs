//! `cargo xtask crash`: kills the server under load and checks what it kept.

use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::crash::{Options, play};
use crate::parts::Context;
use crate::target_folder;

const SYNTAX: Syntax = Syntax {
    help: "\
Start the server, kill it under a mixed load, restart it on the same data, and check every
acknowledged reply; again and again. In between `impel check` and `impel backup` look at what
the kill has left.

usage: cargo xtask crash [options]

The last line is \"N passed, N failed\", counting rounds.

  --rounds N        how many kills under load (10)
  --seed S          the seed of the load (the time)
  --fsync POLICY    always, everysec or no (always): a killed process loses nothing under any of them
  --binary PATH     test this server instead of building our own
  --argument WORD   one more word for the server's command line (repeatable)
  --lenient         leave out what Redis is known not to keep: counts of history reads, consumers made
                    by reads without entries, XDELEX DELREF that deletes no entry, ENTRIESREAD; and ACKED
  --each            look at everything after each command of an owner: finds the one that goes wrong
  --keep            keep the data of failed rounds, as they were at the kill, in target/crash
",
    options: &["--rounds", "--seed", "--fsync", "--binary", "--argument"],
    flags: &["--lenient", "--each", "--keep"],
    words: 0,
};

/// Runs the command.
///
/// # Errors
/// When the arguments make no sense or the server does not start.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    let fsync = arguments.one("--fsync").unwrap_or("always");
    if !["always", "everysec", "no"].contains(&fsync) {
        return Err(Stop::Usage(format!("--fsync is always, everysec or no, not {fsync}")));
    }
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let context = Context::new(arguments.one("--binary").map(PathBuf::from));
    let options = Options {
        binary: context.server()?.to_path_buf(),
        fsync: fsync.to_owned(),
        arguments: arguments.all("--argument").to_vec(),
        rounds: arguments.number("--rounds", 10, 1)?,
        seed: arguments.number("--seed", time, 0)?,
        lenient: arguments.has("--lenient"),
        each: arguments.has("--each"),
        keep: arguments.has("--keep").then(|| target_folder().join("crash")),
    };
    println!("seed {}, appendfsync {fsync}, {}", options.seed, options.binary.display());
    let report = play(&options, &mut io::stdout())?;
    println!(
        "{} rounds, {} kills, {} terminations, {} snapshots asked for, {} commands acknowledged, {} checks",
        options.rounds, report.kills, report.terminations, report.snapshots, report.acknowledged, report.checks
    );
    println!("{} passed, {} failed", report.passed, report.failed);
    Ok(report.failed == 0)
}
