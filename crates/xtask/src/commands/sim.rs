//! `cargo xtask sim`: whole lives of a server in virtual time.

use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use impel_sim::world::play::{Plan, play};
use impel_sim::world::tempo::Tempo;
use impel_sim::world::{STEPS, play_seed};

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::parts::cargo;
use crate::target_folder;

const SYNTAX: Syntax = Syntax {
    help: "\
Live whole lives of a server in virtual time: the node, the log, the snapshots and the recovery that
the process runs, on a disk in memory that crashes, fails and fills, with connections that stall and
break. Every reply is checked, and everything after each restart. One seed is one life; it also says how
fast that goes: half of all lives are brisk, in the others there are seconds, minutes or hours between steps.
What was simulated is told for each tempo, since an hour of calm is not an hour of storm.

usage: cargo xtask sim [options]

A life that goes wrong is told with its seed, a short list of steps and what happened last. The last
line is \"N passed, N failed\", one per life.

  --seeds A..B      these lives (from the time on)
  --minutes N       for so long (1, unless --seeds is given)
  --replay SEED     this life alone
  --tempo NAME      of them only those that are brisk, calm, slow or still
  --steps N         steps of a life (1500)
  --threads N       so many lives at a time (1)
  --count           only count the lives that go wrong, without their stories
  --here            play with this very build; else one is made that is quicker
",
    options: &["--seeds", "--minutes", "--tempo", "--replay", "--steps", "--threads"],
    flags: &["--count", "--here"],
    words: 0,
};

/// Runs the command.
///
/// # Errors
/// When the arguments make no sense, or the quicker build cannot be made.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    let steps = arguments.number("--steps", STEPS, 1)?;
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let given = arguments.one("--seeds").map(range).transpose()?;
    let named = |name: &str| {
        Tempo::named(name).ok_or_else(|| Stop::Usage(format!("--tempo is brisk, calm, slow or still, not {name}")))
    };
    let tempo = arguments.one("--tempo").map(named).transpose()?;
    let minutes: f64 = arguments.number("--minutes", 1.0, 0.001)?;
    let plan = Plan {
        seeds: given.clone().unwrap_or(time..u64::MAX),
        tempo,
        time: (given.is_none() || arguments.one("--minutes").is_some())
            .then(|| Duration::from_secs_f64(minutes * 60.0)),
        steps,
        threads: arguments.number("--threads", 1, 1)?,
        count_only: arguments.has("--count"),
    };
    let seed = arguments.one("--replay").map(|_| arguments.number("--replay", 0, 0)).transpose()?;
    if !arguments.has("--here") {
        return elsewhere(words);
    }
    // What panics is told with its life.
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|wanted| wanted == "0") {
        std::panic::set_hook(Box::new(|_| {}));
    }
    if let Some(seed) = seed {
        return Ok(replay(seed, steps));
    }
    println!("lives from seed {} on, {steps} steps each", plan.seeds.start);
    let begun = Instant::now();
    let outcome = play(&plan, &mut std::io::stdout());
    for (seed, story) in &outcome.failures {
        println!("FAIL {}\n", if plan.count_only { format!("seed {seed}: {story}") } else { story.clone() });
    }
    let took = begun.elapsed();
    println!("{}--- all together\n{}", outcome.reports, outcome.report);
    println!("node-hours by tempo: {}", outcome.reports.hours());
    let minutes = took.as_secs_f64() / 60.0 * plan.threads as f64;
    println!(
        "{:.1} s, {:.3} node-hours for each minute of a thread",
        took.as_secs_f64(),
        outcome.report.hours() / minutes
    );
    println!("{} passed, {} failed", outcome.report.seeds, outcome.failures.len());
    Ok(outcome.failures.is_empty())
}

fn replay(seed: u64, steps: usize) -> bool {
    match play_seed(seed, steps, true) {
        Ok(report) => {
            println!("{report}\n1 passed, 0 failed");
            true
        }
        Err(story) => {
            println!("FAIL {story}\n0 passed, 1 failed");
            false
        }
    }
}

/// The same with a build that is optimized as the servers of tests are.
fn elsewhere(words: &[String]) -> Answer {
    let mut build = cargo();
    build.args(["build", "--quiet", "--profile", "test-server", "-p", "impel-xtask"]);
    let built = build.status().map_err(|e| Stop::Usage(format!("cargo does not run: {e}")))?;
    if !built.success() {
        return Err(Stop::Usage("the quicker build cannot be made".into()));
    }
    let mut again = Command::new(target_folder().join("test-server/impel-xtask"));
    let status = again.arg("sim").args(words).arg("--here").status();
    Ok(status.map_err(|e| Stop::Usage(format!("the quicker build does not run: {e}")))?.success())
}

/// `A..B`, without B.
fn range(text: &str) -> Result<std::ops::Range<u64>, Stop> {
    let ends = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    match ends {
        Some((from, to)) if from < to => Ok(from..to),
        _ => Err(Stop::Usage(format!("--seeds is A..B with A smaller than B, not {text}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_two_ends() {
        assert_eq!(range("3..9"), Ok(3..9));
        for text in ["3", "3..", "9..3", "3..3", "a..b"] {
            assert!(range(text).is_err(), "{text}");
        }
    }
}
