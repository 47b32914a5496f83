//! The part that kills the server under load.

use super::{Context, Outcome, Tally};
use crate::crash::{Options, play};

/// Enough to meet each kind of kill; more rounds are for `cargo xtask crash`.
const ROUNDS: usize = 10;
/// The load is always the same; when the kills strike differs from run to run.
const SEED: u64 = 1;

pub fn crash(context: &Context) -> Outcome {
    let options = Options {
        binary: context.server()?.to_path_buf(),
        fsync: "always".to_owned(),
        arguments: Vec::new(),
        rounds: ROUNDS,
        seed: SEED,
        lenient: false,
        each: false,
        keep: None,
    };
    let mut output = Vec::new();
    let report = play(&options, &mut output)?;
    let output = String::from_utf8_lossy(&output).into_owned();
    Ok(Tally { passed: report.passed, failed: report.failed, report: output })
}
