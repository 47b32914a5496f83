//! `cargo xtask test`: everything that must hold, in one command; what runs before a merge runs exactly this.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::parts::{Context, PARTS, Part, Tally};

const SYNTAX: Syntax = Syntax {
    help: "\
Install what the tests need, run every part in order and count.

usage: cargo xtask test [options]

The last line is \"N passed, N failed\", over all parts; the exit code is 0 only if none failed.
A part that cannot run here counts as failed and says what is missing. Outputs are kept in
target/test-logs, what is installed in target/test-env.

  --only NAME       only this part (repeatable)
  --binary PATH     test this server instead of building our own
  --list            list the parts and stop
",
    options: &["--only", "--binary"],
    flags: &["--list"],
    words: 0,
};

/// Runs the command.
///
/// # Errors
/// When the arguments make no sense.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    let only = arguments.all("--only");
    if let Some(unknown) = only.iter().find(|name| !PARTS.iter().any(|part| part.name == name.as_str())) {
        return Err(Stop::Usage(format!("there is no part {unknown}; --list shows them")));
    }
    let chosen: Vec<&Part> =
        PARTS.iter().filter(|part| only.is_empty() || only.iter().any(|name| name == part.name)).collect();
    if arguments.has("--list") {
        chosen.iter().for_each(|part| println!("{:<12} {}", part.name, part.about));
        return Ok(true);
    }
    let context = Context::new(arguments.one("--binary").map(PathBuf::from));
    let mut rows = Vec::new();
    for (index, part) in chosen.iter().enumerate() {
        print!("[{:>2}/{}] {:<12} ", index + 1, chosen.len(), part.name);
        flush();
        let started = Instant::now();
        // A panic in a part is a failure of that part, and the rest still runs.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (part.run)(&context)))
            .unwrap_or_else(|_| Err("it panicked".into()));
        let tally = outcome.unwrap_or_else(|report| Tally { passed: 0, failed: 1, report });
        let took = started.elapsed();
        println!("{:>5} passed, {} failed  ({:.1} s)", tally.passed, tally.failed, took.as_secs_f64());
        if tally.failed > 0 {
            println!("{}\n", indented(&tally.report));
        }
        flush();
        rows.push((part.name, tally, took));
    }
    Ok(summary(&rows))
}

/// Prints the table and the last line; whether nothing failed.
fn summary(rows: &[(&str, Tally, Duration)]) -> bool {
    println!("\n{:<12} {:>7} {:>7} {:>8}", "part", "passed", "failed", "seconds");
    for (name, tally, took) in rows {
        let mark = if tally.failed > 0 { "  <-- FAILED" } else { "" };
        println!("{name:<12} {:>7} {:>7} {:>8.1}{mark}", tally.passed, tally.failed, took.as_secs_f64());
    }
    let passed: usize = rows.iter().map(|(_, tally, _)| tally.passed).sum();
    let failed: usize = rows.iter().map(|(_, tally, _)| tally.failed).sum();
    let seconds: f64 = rows.iter().map(|(_, _, took)| took.as_secs_f64()).sum();
    println!("{:<12} {passed:>7} {failed:>7} {seconds:>8.1}\n", "all");
    println!("{passed} passed, {failed} failed");
    failed == 0
}

fn indented(report: &str) -> String {
    report.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// A closed pipe is no reason to stop testing.
fn flush() {
    let _reader_gone = io::stdout().flush();
}
