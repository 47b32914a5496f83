//! The part that works on streams for some seconds, with restarts.

use std::time::Duration;

use super::{Context, Outcome, Tally};
use crate::soak::{Options, play};

/// Enough for some restarts; longer is for `cargo xtask soak`.
const DURATION: Duration = Duration::from_secs(8);
const RATE: u64 = 3000;
/// The load is always the same; when the kills strike differs from run to run.
const SEED: u64 = 1;

pub fn soak(context: &Context) -> Outcome {
    let binary = context.server()?.to_path_buf();
    let options = Options { binary, duration: DURATION, rate: RATE, seed: SEED, folder: None };
    let mut output = Vec::new();
    let report = play(&options, &mut output)?;
    let said = String::from_utf8_lossy(&output);
    // Entries are many; the part counts as one check, and each fault as one.
    let passed = usize::from(report.faults.is_empty());
    Ok(Tally { passed, failed: report.faults.len(), report: format!("{said}{}", report.faults.join("\n")) })
}
