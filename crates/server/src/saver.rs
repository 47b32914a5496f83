//! The thread that writes one snapshot: takes keys from the loop, encodes and writes them, and says when it is done.
//!
//! It publishes only after it was told to finish, and then removes snapshots that are not needed any more. When its
//! channel closes before that, it leaves nothing behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};

use impel_core::state::keyspace::Captured;
use mio::Waker;
use rustix::process::setpriority_process;
use rustix::thread::gettid;

use crate::disk::{DataDir, DiskError};
use crate::image::Encoder;
use crate::snapshots::{self, Keep, SnapshotError, SnapshotInfo, SnapshotWriter};

/// Niceness of the thread: a tenth of the loop's share where both want the same processor, so it still gets on.
const SNAPSHOT_NICENESS: i32 = 10;
/// Snapshots kept beside the newest one.
const OLDER_KEPT: usize = 1;
/// Snapshots that are kept only to restore the past are at least this part of that time apart: more of them would make a
/// restoration quicker and take the space of a state each.
const HISTORY_PARTS: u64 = 4;

/// For the writer of a snapshot.
#[derive(Debug)]
pub enum Piece {
    /// Keys of it.
    Keys(Vec<Captured>),
    /// It has all keys, and the log is synced up to its position.
    Finish,
}

/// What the head of a snapshot says.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// The log position it stands for.
    pub position: u64,
    /// The newest time in the state.
    pub now_ms: u64,
    /// There is a log, which will have reached the position when the snapshot is finished.
    pub with_log: bool,
    /// Snapshots and log are kept that restore any moment of so many ms.
    pub history_ms: u64,
}

/// A snapshot that is on disk.
#[derive(Debug)]
pub struct Saved {
    /// It.
    pub info: SnapshotInfo,
    /// The log is needed from here on.
    pub log_from: u64,
}

/// The loop's end of a snapshot writer.
pub struct Saver {
    pieces: Sender<Piece>,
    ended: Receiver<Result<Saved, SnapshotError>>,
    written: Arc<AtomicU64>,
    folder: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Saver {
    /// Begins a snapshot. Once it is on disk, older ones go that nothing needs.
    pub fn start(dir: Arc<DataDir>, begun: Begun, waker: Arc<Waker>) -> std::io::Result<Self> {
        let (pieces, inbox) = mpsc::channel();
        let (outbox, ended) = mpsc::channel();
        let written = Arc::new(AtomicU64::new(0));
        let counter = written.clone();
        let folder = dir.snapshots().to_owned();
        let thread = thread::Builder::new().name("impel-snapshot".into()).spawn(move || {
            stand_back();
            if let Some(result) = write(&dir, begun, &inbox, &counter, &waker) {
                let _ = outbox.send(result);
                let _ = waker.wake();
            }
        })?;
        Ok(Saver { pieces, ended, written, folder, thread: Some(thread) })
    }

    /// Hands keys over.
    pub fn keys(&self, keys: Vec<Captured>) {
        // A writer that has failed takes no more; its error is on its way.
        let _ = self.pieces.send(Piece::Keys(keys));
    }

    /// All keys were handed over, and the log is synced up to the snapshot's position.
    pub fn finish(&self) {
        let _ = self.pieces.send(Piece::Finish);
    }

    /// Keys that have been written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How it ended, once it has.
    pub fn try_ended(&self) -> Option<Result<Saved, SnapshotError>> {
        match self.ended.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            // It panicked: there is no snapshot, and the next attempt must not wait for this one.
            Err(TryRecvError::Disconnected) => {
                let source = std::io::Error::other("its writer broke off");
                Some(Err(DiskError { action: "write a snapshot in", path: self.folder.clone(), source }.into()))
            }
        }
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        let (closed, _) = mpsc::channel();
        self.pieces = closed;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            ::log::error!("the snapshot thread panicked");
        }
    }
}

/// Lets the loop have a processor first: where there are few, it would wait whole slices of time while a snapshot is written.
fn stand_back() {
    // Linux takes the id of a thread here and means that thread alone. Where it refuses, the snapshot is no less right.
    if let Err(error) = setpriority_process(Some(gettid()), SNAPSHOT_NICENESS) {
        ::log::debug!("the snapshot thread keeps its priority: {error}");
    }
}

/// Writes until it is finished or fails. `None`: given up by the loop.
fn write(
    dir: &Arc<DataDir>,
    begun: Begun,
    inbox: &Receiver<Piece>,
    written: &AtomicU64,
    waker: &Waker,
) -> Option<Result<Saved, SnapshotError>> {
    let mut job = match SnapshotJob::begin(dir, begun) {
        Ok(job) => job,
        Err(error) => return Some(Err(error)),
    };
    for piece in inbox {
        let ended = job.take(piece);
        written.store(job.written(), Ordering::Relaxed);
        if ended.is_some() {
            return ended;
        }
        let _ = waker.wake();
    }
    None
}

/// A snapshot being written, step by step: by the thread, or by what stands in for it in tests. Dropped before it has ended,
/// it leaves nothing behind.
pub struct SnapshotJob {
    dir: Arc<DataDir>,
    begun: Begun,
    /// Taken away by its end.
    writer: Option<SnapshotWriter>,
    encoder: Encoder,
    written: u64,
}

impl SnapshotJob {
    /// Begins one.
    pub fn begin(dir: &Arc<DataDir>, begun: Begun) -> Result<Self, SnapshotError> {
        let writer = snapshots::create(dir, begun.position, begun.now_ms, begun.with_log)?;
        Ok(SnapshotJob { dir: dir.clone(), begun, writer: Some(writer), encoder: Encoder::default(), written: 0 })
    }

    /// Keys that it is done with.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes a piece. Answers how the snapshot ended, if it did; nothing may be given to it after that.
    pub fn take(&mut self, piece: Piece) -> Option<Result<Saved, SnapshotError>> {
        let mut writer = self.writer.take().expect("a snapshot that has ended takes nothing more");
        let result = match piece {
            Piece::Keys(keys) => {
                self.written += keys.len() as u64;
                let encoder = &mut self.encoder;
                // Each is let go as soon as it is written: what it shares with the state need not be copied any more.
                keys.into_iter().try_for_each(|key| encoder.key(&key, |chunk| writer.write_chunk(chunk)))
            }
            Piece::Finish => return Some(self.finish(writer)),
        };
        match result {
            Ok(()) => {
                self.writer = Some(writer);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn finish(&mut self, mut writer: SnapshotWriter) -> Result<Saved, SnapshotError> {
        self.encoder.flush(|chunk| writer.write_chunk(chunk))?;
        let info = writer.finish()?;
        let Begun { now_ms, history_ms, .. } = self.begun;
        let keep = Keep {
            older: OLDER_KEPT,
            since_ms: (history_ms > 0).then(|| now_ms.saturating_sub(history_ms)),
            apart_ms: history_ms / HISTORY_PARTS,
        };
        let log_from = match snapshots::prune(&self.dir, &keep) {
            Ok(log_from) => log_from,
            Err(error) => {
                ::log::warn!("old snapshots could not be removed, they and the log stay: {error}");
                0
            }
        };
        Ok(Saved { info, log_from })
    }
}
