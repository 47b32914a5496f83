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
    /// All lives that came to a good end, added up in the order of their seeds.
    pub report: Report,
    /// The same by their tempo.
    pub reports: Reports,
    /// Seeds that failed, with their stories.
    pub failures: Vec<(u64, String)>,
}

/// Plays lives; tells in `out` how far it is.
pub fn play(plan: &Plan, out: &mut (dyn Write + Send)) -> Outcome {
    let next = AtomicU64::new(plan.seeds.start);
    let begun = Instant::now();
    let lives: Mutex<Vec<(u64, Result<Report, String>)>> = Mutex::default();
    let told = Mutex::new((begun, out));
    std::thread::scope(|scope| {
        for _ in 0..plan.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let failed = lives.lock().map_or(0, |lives| lives.iter().filter(|(_, life)| life.is_err()).count());
                    let over = plan.time.is_some_and(|time| begun.elapsed() >= time);
                    if seed >= plan.seeds.end || over || failed >= STORIES_MAX && !plan.count_only {
                        return;
                    }
                    if plan.tempo.is_some_and(|tempo| tempo != Tempo::of(seed)) {
                        continue;
                    }
                    let life = play_seed(seed, plan.steps, !plan.count_only);
                    let Ok(mut lives) = lives.lock() else { return };
                    lives.push((seed, life));
                    tell(&told, &lives);
                }
            });
        }
    });
    let mut lives = lives.into_inner().unwrap_or_default();
    lives.sort_by_key(|(seed, _)| *seed);
    let mut outcome = Outcome::default();
    for (seed, life) in lives {
        match life {
            Ok(report) => {
                outcome.report.add(&report);
                outcome.reports.add(Tempo::of(seed), &report);
            }
            Err(story) => outcome.failures.push((seed, story)),
        }
    }
    outcome
}

fn tell(told: &Mutex<(Instant, &mut (dyn Write + Send))>, lives: &[(u64, Result<Report, String>)]) {
    let Ok(mut told) = told.lock() else { return };
    if told.0.elapsed() < TOLD_EVERY {
        return;
    }
    told.0 = Instant::now();
    let mut reports = Reports::default();
    let good = lives.iter().filter_map(|(seed, life)| Some((*seed, life.as_ref().ok()?)));
    good.for_each(|(seed, report)| reports.add(Tempo::of(seed), report));
    let failed = lives.iter().filter(|(_, life)| life.is_err()).count();
    // Who reads no more need not be told.
    let _ = writeln!(told.1, "… {} lives, node-hours: {}; {failed} failed", lives.len(), reports.hours());
}
