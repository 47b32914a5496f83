//! The part that lives some lives of a server in virtual time.

use std::fmt::Write;

use impel_sim::world::play::{Plan, play};

use super::{Context, Outcome, Tally};

/// Always the same lives; others are for `cargo xtask sim`.
const SEEDS: u64 = 60;
/// Steps of each.
const STEPS: usize = 600;

pub fn sim(_: &Context) -> Outcome {
    let plan = Plan { seeds: 0..SEEDS, tempo: None, time: None, steps: STEPS, threads: 2, count_only: false };
    let outcome = play(&plan, &mut std::io::sink());
    let mut report = String::new();
    for (_, story) in &outcome.failures {
        let _ = writeln!(report, "FAIL {story}\n");
    }
    let failed = outcome.failures.len();
    Ok(Tally { passed: outcome.report.seeds as usize, failed, report })
}
