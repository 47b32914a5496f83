//! The thread that owns the log: takes one job at a time, answers each through a channel and wakes the loop. The loop
//! goes on while the disk works.
//!
//! It never retries: an error goes to the loop as it is, and the log itself refuses everything after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use mio::Waker;

use crate::log::{Log, LogError};
use crate::node::Commit;

/// For the log thread.
#[derive(Debug)]
pub enum Job {
    /// To be appended, and synced if it says so.
    Commit(Commit),
    /// Segments that hold nothing at or after this position may go.
    Trim(u64),
}

/// Does one job; a commit is answered. What the thread does, and what stands in for it in tests: nothing else may use the
/// log meanwhile.
pub fn perform(log: &mut dyn Log, job: Job) -> Option<Done> {
    match job {
        Job::Commit(Commit { bytes, end, sync, now_ms }) => {
            let result = log.commit(&bytes, now_ms, sync);
            debug_assert!(result.is_err() || log.end() == end, "the log and the engine count alike");
            let synced = sync && result.is_ok();
            Some(Done { bytes, end, synced, result })
        }
        Job::Trim(before) => {
            match log.trim(before) {
                Ok(()) => ::log::debug!("log trimmed before position {before}"),
                Err(error) => ::log::warn!("the log could not be trimmed, its old segments stay for now: {error}"),
            }
            None
        }
    }
}

/// What became of a commit.
#[derive(Debug)]
pub struct Done {
    /// The buffer, to be used again.
    pub bytes: Vec<u8>,
    /// The position after it.
    pub end: u64,
    /// Everything up to there survives a crash.
    pub synced: bool,
    /// Whether it worked.
    pub result: Result<(), LogError>,
}

/// The loop's end of the log thread.
pub struct Syncer {
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    len_bytes: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread.
    pub fn start(mut log: Box<dyn Log>, waker: Arc<Waker>) -> std::io::Result<Self> {
        let (jobs, inbox) = mpsc::channel();
        let (outbox, done) = mpsc::channel();
        let len_bytes = Arc::new(AtomicU64::new(log.len_bytes()));
        let told_bytes = len_bytes.clone();
        let thread = thread::Builder::new().name("impel-log".into()).spawn(move || {
            for job in inbox {
                let done = perform(&mut *log, job);
                told_bytes.store(log.len_bytes(), Ordering::Relaxed);
                if let Some(done) = done {
                    if outbox.send(done).is_err() {
                        return;
                    }
                    // The loop looks at the channel as well when it is woken by something else.
                    let _ = waker.wake();
                }
            }
        })?;
        Ok(Syncer { jobs: Some(jobs), done, len_bytes, thread: Some(thread) })
    }

    fn send(&self, job: Job) {
        let jobs = self.jobs.as_ref().expect("jobs are taken until the thread is stopped");
        jobs.send(job).expect("the log thread lives as long as its channel");
    }

    /// Hands a commit over.
    pub fn commit(&self, commit: Commit) {
        self.send(Job::Commit(commit));
    }

    /// Lets segments go that hold nothing at or after `before`.
    pub fn trim(&self, before: u64) {
        self.send(Job::Trim(before));
    }

    /// Bytes that the log takes on the disk, without what is only reserved.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Relaxed)
    }

    /// A commit that is done, if there is one.
    pub fn try_done(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }

    /// Ends the thread when it has done all its jobs; the log is closed then.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            ::log::error!("the log thread panicked");
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.end();
    }
}
