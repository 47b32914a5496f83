//! Many lives, on several threads, added up.

use std::io::Write;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::play_seed;
use super::report::{Report, Reports};
use super::tempo::Tempo;

/// After so many stories there is enough to do.
const STORIES_MAX: usize = 5;

/// How often it is told how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(20);

/// What to play.
#[derive(Clone, Debug)]
pub struct Plan {
    /// These seeds.
    pub seeds: Range<u64>,
    /// Of them only those of this tempo, if told.
    pub tempo: Option<Tempo>,
    /// For no longer than this, if told.
    pub time: Option<Duration>,
    /// Steps of a life.
    pub steps: usize,
    /// How many lives at a time.
    pub threads: usize,
    /// Do not stop after a few stories, nor make them short: only count who fails.
    pub count_only: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All lives that came to a good end, added up.
    pub report: Report,
    /// The same by their tempo.
    pub reports: Reports,
    /// Seeds that failed, with their stories.
    pub failures: Vec<(u64, String)>,
}

/// What has come of it until now, and who hears of it.
struct Tally<'a> {
    outcome: Outcome,
    told: Instant,
    out: &'a mut (dyn Write + Send),
}

impl Tally<'_> {
    /// Adds a life, and tells of it if it failed or it is time to.
    fn add(&mut self, seed: u64, life: Result<Report, String>) {
        // Who reads no more need not be told.
        match life {
            Ok(report) => {
                self.outcome.report.add(&report);
                self.outcome.reports.add(Tempo::of(seed), &report);
            }
            Err(story) => {
                let _ = writeln!(self.out, "… seed {seed} failed");
                self.outcome.failures.push((seed, story));
            }
        }
        if self.told.elapsed() < TOLD_EVERY {
            return;
        }
        self.told = Instant::now();
        let Outcome { report, reports, failures } = &self.outcome;
        let (lives, failed) = (report.seeds + failures.len() as u64, failures.len());
        let _ = writeln!(self.out, "… {lives} lives, node-hours: {}; {failed} failed", reports.hours());
    }
}

/// Plays lives; tells in `out` how far it is.
pub fn play(plan: &Plan, out: &mut (dyn Write + Send)) -> Outcome {
    let next = AtomicU64::new(plan.seeds.start);
    let begun = Instant::now();
    let tally = Mutex::new(Tally { outcome: Outcome::default(), told: begun, out });
    std::thread::scope(|scope| {
        for _ in 0..plan.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let failed = tally.lock().map_or(0, |tally| tally.outcome.failures.len());
                    let over = plan.time.is_some_and(|time| begun.elapsed() >= time);
                    if seed >= plan.seeds.end || over || failed >= STORIES_MAX && !plan.count_only {
                        return;
                    }
                    if plan.tempo.is_some_and(|tempo| tempo != Tempo::of(seed)) {
                        continue;
                    }
                    let life = play_seed(seed, plan.steps, !plan.count_only);
                    let Ok(mut tally) = tally.lock() else { return };
                    tally.add(seed, life);
                }
            });
        }
    });
    let mut outcome = tally.into_inner().map(|tally| tally.outcome).unwrap_or_default();
    outcome.failures.sort_by_key(|(seed, _)| *seed);
    outcome
}
