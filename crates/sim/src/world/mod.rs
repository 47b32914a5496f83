//! A whole life of a server in virtual time: the node that the process drives, over the real log, snapshots and recovery, on a
//! disk in memory that crashes, fails and fills; threads that take their time; connections that stall, break and come again.
//! One seed is one life; the same seed is the same life to the last byte.
//!
//! What is looked at, always: every reply comes once, in order, and not before what it tells of is durable ([`oracle`]); in every
//! second life each reply is that of the naive model, byte for byte ([`follow`]); every invariant of the state; after each restart
//! nothing acknowledged is lost and nothing happened twice; nobody waits who could be served; no loop spins; at the end, with
//! a disk that is well again, everyone who is owed a reply gets it.
//!
//! No sockets, no threads, no clock of the machine here, and no chance but that of the seed.

mod connections;
mod families;
pub mod follow;
mod host;
mod keys;
mod life;
pub mod oracle;
mod peers;
pub mod play;
mod reply;
pub mod report;
mod restart;
mod server;
pub mod setup;
mod source;
pub mod step;
pub mod tempo;
mod threads;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use impel::clock::Pace;
use impel::disk::fake::FakeDisk;

use crate::random::Random;
use crate::shrink::shrink;
use crate::workload::START_MS;

use follow::Follower;
use host::Process;
use oracle::Oracle;
use peers::Peer;
use report::Report;
use server::Server;
use setup::Setup;
use source::Source;
use step::{Event, Step, Trouble};

/// What went wrong, if something did.
pub type Result = std::result::Result<(), String>;

/// Lines of a story that are told.
const STORY_LINES: usize = 60;

/// The world of a life.
pub struct World {
    setup: Setup,
    /// Decides what chance decides in the step that is being played.
    random: Random,
    disk: FakeDisk,
    /// Virtual time in µs, on a clock that only rises.
    now_us: u64,
    /// What the wall clock is ahead of that.
    wall_offset_us: i64,
    /// When the process was started.
    started_us: u64,
    /// The server's own idea of time.
    pace: Pace,
    /// What it said at the beginning of this turn.
    clock_us: u64,
    process: Process,
    used_memory: u64,
    /// `None` while it is down.
    server: Option<Server>,
    /// When it is started again.
    start_us: u64,
    peers: Vec<Peer>,
    /// What each peer had no answer to when its connection was lost.
    unanswered: Vec<Option<Vec<Vec<u8>>>>,
    oracle: Oracle,
    follower: Option<Follower>,
    /// The fault that a disk operation, counted over all, or a read will meet.
    armed: Option<(u64, Trouble)>,
    /// What was found to be wrong where nobody could be told.
    found: Option<String>,
    /// How the life before the next start has ended.
    end: oracle::End,
    report: Report,
    /// The last things that happened, if they are to be told.
    story: Option<VecDeque<String>>,
}

/// Steps of a life, as a rule.
pub const STEPS: usize = 1500;

/// Plays the life of a seed. With `tell` what goes wrong is made a short story.
///
/// # Errors
/// What went wrong: how to play it again, a short list of steps that goes wrong as well, what happened last.
pub fn play_seed(seed: u64, steps: usize, tell: bool) -> std::result::Result<Report, String> {
    let setup = Setup::of(seed);
    let failure = match attempt(seed, &setup, &mut Source::new(seed, &setup, steps), None, None) {
        Ok(report) => return Ok(report),
        Err(failure) => failure,
    };
    if !tell {
        return Err(failure);
    }
    // Its steps are noted when it is lived again: nobody asks for those of the others.
    let mut events = Vec::new();
    let _ = attempt(seed, &setup, &mut Source::new(seed, &setup, steps), Some(&mut events), None);
    let kind = kind_of(&failure);
    let fails = |candidate: &[Event]| {
        let mut source = Source::of(candidate.to_vec());
        attempt(seed, &setup, &mut source, None, None).is_err_and(|why| kind_of(&why) == kind)
    };
    // The model of work knows whole commands alone.
    let words: fn(&mut Event) -> Option<&mut Vec<Vec<u8>>> = if setup.work { |_| None } else { words_of };
    let short = if fails(&events) { shrink(&events, words, fails) } else { events };
    let mut story = VecDeque::new();
    let again = attempt(seed, &setup, &mut Source::of(short.clone()), None, Some(&mut story));
    let script: Vec<String> = short.iter().map(Event::to_string).collect();
    let story: Vec<String> = story.into_iter().collect();
    Err(format!(
        "seed {seed} fails; play it again with: cargo xtask sim --replay {seed}\n{setup:?}\n{} steps:\n{}\nthe last of it:\n{}\n{}\n\
         (at first: {failure})",
        script.len(),
        script.join("\n"),
        story.join("\n"),
        again.err().unwrap_or_else(|| "played again it does not fail".into())
    ))
}

/// The words of a step that are left out one by one in making a story short.
fn words_of(event: &mut Event) -> Option<&mut Vec<Vec<u8>>> {
    match &mut event.step {
        Step::Command { words, .. } => Some(words),
        _ => None,
    }
}

/// What two failures have in common that are the same one: the words, not the numbers, and for which command it was.
fn kind_of(failure: &str) -> String {
    let line = failure.lines().next().unwrap_or_default();
    let command = failure.lines().find_map(|line| line.strip_prefix("for ")?.split(' ').next());
    let words = line.split(' ').filter(|word| word.chars().all(|letter| letter.is_ascii_lowercase()));
    words.chain(command).collect()
}

/// Plays steps in a new world; a panic is a failure like any other.
fn attempt(
    seed: u64,
    setup: &Setup,
    source: &mut Source,
    events: Option<&mut Vec<Event>>,
    story: Option<&mut VecDeque<String>>,
) -> std::result::Result<Report, String> {
    let mut world = World::new(seed, setup, story.is_some());
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.live(source, events)));
    if let (Some(story), Some(told)) = (story, world.story.take()) {
        *story = told;
    }
    match outcome {
        Ok(Ok(())) => Ok(world.report),
        Ok(Err(why)) => Err(why),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
            // What has panicked may not be dropped in peace.
            std::mem::forget(world);
            Err(format!("panic: {text}"))
        }
    }
}

impl World {
    fn new(seed: u64, setup: &Setup, tells: bool) -> World {
        let settings = setup.settings();
        let wall_us = START_MS * 1000;
        let world = World {
            setup: *setup,
            random: Random::new(seed),
            disk: FakeDisk::new(),
            now_us: 0,
            wall_offset_us: wall_us as i64,
            started_us: 0,
            pace: Pace::new(wall_us, 0),
            clock_us: wall_us,
            process: Process::default(),
            used_memory: 0,
            server: None,
            start_us: 0,
            peers: (0..setup::PEERS).map(|_| Peer::default()).collect(),
            unanswered: vec![None; setup::PEERS],
            oracle: Oracle::new(&settings),
            follower: setup.followed.then(|| Follower::new(START_MS, setup)),
            armed: None,
            found: None,
            end: oracle::End::Orderly,
            report: Report { seeds: 1, ..Report::default() },
            story: tells.then(VecDeque::new),
        };
        world.process.step.set(if setup.slow_commands && !setup.followed { seed | 1 } else { 0 });
        world
    }

    /// Is the server down?
    fn down(&self) -> bool {
        self.server.is_none()
    }

    /// Something happened, by a number.
    fn trace(&mut self, what: u64) {
        self.report.trace = (self.report.trace ^ what ^ self.now_us).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
    }

    /// Something happened, for people.
    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            if story.len() == STORY_LINES {
                story.pop_front();
            }
            story.push_back(format!("{:>12} {}", self.now_us, what()));
        }
    }
}
