//! The log thread and the snapshot thread as what they are between two looks of the loop: jobs that take some virtual time,
//! one after the other. What a job does is the server's own code.

use std::collections::VecDeque;
use std::sync::Arc;

use impel::disk::DataDir;
use impel::log::Log;
use impel::saver::{Begun, Piece, Saved, SnapshotJob};
use impel::snapshots::SnapshotError;
use impel::syncer::{Done, Job, perform};

use crate::random::Random;

/// Now and then a disk takes so many times longer.
const HICCUP: u64 = 40;

/// How long a job takes.
fn duration_us(random: &mut Random, usual_us: u64) -> u64 {
    let us = 1 + random.below(usual_us);
    if random.chance(2) { us * HICCUP } else { us }
}

/// A job under way. When in its time the disk sees it, chance decides.
struct Running {
    ends_us: u64,
    job: Option<Job>,
    done: Option<Done>,
}

/// The log thread.
pub struct LogThread {
    log: Box<dyn Log>,
    jobs: VecDeque<Job>,
    running: Option<Running>,
    usual_us: u64,
}

impl LogThread {
    /// A thread that owns a log; a job takes it up to `usual_us` as a rule.
    pub fn new(log: Box<dyn Log>, usual_us: u64) -> Self {
        LogThread { log, jobs: VecDeque::new(), running: None, usual_us }
    }

    /// Hands a job over.
    pub fn push(&mut self, job: Job, now_us: u64, random: &mut Random) {
        self.jobs.push_back(job);
        self.begin(now_us, random);
    }

    fn begin(&mut self, now_us: u64, random: &mut Random) {
        if self.running.is_some() {
            return;
        }
        let Some(job) = self.jobs.pop_front() else { return };
        let ends_us = now_us + duration_us(random, self.usual_us);
        let mut running = Running { ends_us, job: Some(job), done: None };
        if random.chance(50) {
            running.done = running.job.take().and_then(|job| perform(&mut *self.log, job));
        }
        self.running = Some(running);
    }

    /// When the loop hears of it next.
    pub fn next_us(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.ends_us)
    }

    /// What is done by now, one at a time.
    pub fn take_done(&mut self, now_us: u64, random: &mut Random) -> Option<Done> {
        loop {
            let mut running = self.running.take_if(|running| running.ends_us <= now_us)?;
            let done = running.job.take().and_then(|job| perform(&mut *self.log, job)).or(running.done);
            self.begin(now_us, random);
            if done.is_some() {
                return done;
            }
        }
    }

    /// Does all that is left, as a thread that is told to stop does.
    pub fn stop(mut self) {
        if let Some(job) = self.running.take().and_then(|running| running.job) {
            perform(&mut *self.log, job);
        }
        for job in std::mem::take(&mut self.jobs) {
            perform(&mut *self.log, job);
        }
    }
}

/// The snapshot thread.
pub struct SnapshotThread {
    /// `None`: it could not even begin, or it has ended.
    job: Option<SnapshotJob>,
    ended: Option<Result<Saved, SnapshotError>>,
    pieces: VecDeque<Piece>,
    next_us: Option<u64>,
    written: u64,
    usual_us: u64,
}

impl SnapshotThread {
    /// Begins a snapshot; a piece takes up to `usual_us` as a rule.
    pub fn new(dir: &Arc<DataDir>, begun: Begun, usual_us: u64, now_us: u64) -> Self {
        let (job, ended) = match SnapshotJob::begin(dir, begun) {
            Ok(job) => (Some(job), None),
            Err(error) => (None, Some(Err(error))),
        };
        let next_us = ended.is_some().then_some(now_us);
        SnapshotThread { job, ended, pieces: VecDeque::new(), next_us, written: 0, usual_us }
    }

    /// Hands a piece over.
    pub fn push(&mut self, piece: Piece, now_us: u64, random: &mut Random) {
        if self.job.is_some() {
            self.pieces.push_back(piece);
            self.next_us.get_or_insert(now_us + duration_us(random, self.usual_us));
        }
    }

    /// When the loop hears of it next.
    pub fn next_us(&self) -> Option<u64> {
        self.next_us
    }

    /// Works until now; answers how many keys are written and how it ended, if it did.
    pub fn advance(&mut self, now_us: u64, random: &mut Random) -> (u64, Option<Result<Saved, SnapshotError>>) {
        while self.next_us.is_some_and(|next_us| next_us <= now_us) && self.ended.is_none() {
            let (Some(job), Some(piece)) = (&mut self.job, self.pieces.pop_front()) else { break };
            self.ended = job.take(piece);
            self.written = job.written();
            let more = !self.pieces.is_empty();
            self.next_us = more.then(|| now_us + duration_us(random, self.usual_us));
        }
        if self.ended.is_some() {
            (self.job, self.next_us) = (None, None);
        }
        (self.written, self.ended.take())
    }
}
