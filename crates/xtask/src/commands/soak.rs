//! `cargo xtask soak`: minutes or hours of ordinary work, with restarts.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Answer;
use crate::arguments::{Arguments, Syntax};
use crate::parts::Context;
use crate::soak::{Options, play};
use crate::target_folder;

const SYNTAX: Syntax = Syntax {
    help: "\
Work on three streams for a long time, kill the server now and then, and account for every entry at the end.

usage: cargo xtask soak [options]

Producers add numbered entries; two groups of each stream read, acknowledge, give back, die with what they
hold and claim; streams are trimmed by RETAIN acked, by MAXLEN ~ with ACKED and by MAXLEN ~ alone;
snapshots are taken; the server (appendfsync always) is killed or asked to end at random. At the end every
acknowledged XADD was given to each group and acknowledged by it, or trimmed as its bound says, and nothing
was given twice but by a claim. Memory and data directory may be above their first quarter (after a warm-up
of 15 %) by a quarter of it and 24 MiB. Numbers and a drawing go to target/soak.

  --minutes N       how long the load lasts (1)
  --rate N          entries a second, all streams together (3000)
  --seed S          the seed of the load (the time)
  --binary PATH     test this server instead of building our own
",
    options: &["--minutes", "--rate", "--seed", "--binary"],
    flags: &[],
    words: 0,
};

/// Runs the command.
///
/// # Errors
/// When the arguments make no sense, or the server does not start or come back.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let context = Context::new(arguments.one("--binary").map(PathBuf::from));
    let options = Options {
        binary: context.server()?.to_path_buf(),
        duration: Duration::from_secs_f64(60.0 * arguments.number("--minutes", 1.0, 0.01)?),
        rate: arguments.number("--rate", 3000, 1)?,
        seed: arguments.number("--seed", time, 0)?,
        folder: Some(target_folder().join("soak")),
    };
    println!("seed {}, {} s, {}", options.seed, options.duration.as_secs(), options.binary.display());
    let report = play(&options, &mut io::stdout())?;
    report.faults.iter().for_each(|fault| println!("FAIL {fault}"));
    println!("{} passed, {} failed", report.passed, report.faults.len());
    Ok(report.faults.is_empty())
}
