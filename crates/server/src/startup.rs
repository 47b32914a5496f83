//! Reading back what a data directory holds: the newest snapshot, then the log behind it. Used at start and by
//! DEBUG RELOAD.
//!
//! Refuses to go on with anything that is not certain; what to do then is said by the error. A server that keeps nothing
//! (`appendonly no`, nothing saved there before) does not touch the directory at all.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use impel_core::engine::Engine;
use impel_core::record::Record;
use impel_core::settings::Settings;
use impel_core::state::codec::{Corrupt, Reader};

use crate::clock::Stopwatch;
use crate::disk::{DataDir, DataDirError, Disk};
use crate::image::Decoder;
use crate::log::{Log, LogError, OpenError, Options, Recovery};
use crate::node::Newest;
use crate::snapshots::{self, SnapshotError};

/// Why what is on disk could not be read back.
#[derive(Debug)]
pub enum StartupError {
    /// The directory could not be taken.
    DataDir(DataDirError),
    /// The log could not be opened.
    Open(OpenError),
    /// The snapshot could not be read.
    Snapshot(SnapshotError),
    /// The snapshot is whole and holds something that this version does not know.
    Content(Corrupt),
    /// The log could not be read.
    Log(LogError),
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartupError::DataDir(error) => error.fmt(f),
            StartupError::Open(error) => error.fmt(f),
            StartupError::Snapshot(error) => error.fmt(f),
            StartupError::Content(error) => {
                write!(f, "the snapshot cannot be used, start the version that wrote it: {error}")
            }
            StartupError::Log(error) => error.fmt(f),
        }
    }
}

impl Error for StartupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StartupError::DataDir(error) => Some(error),
            StartupError::Open(error) => Some(error),
            StartupError::Snapshot(error) => Some(error),
            StartupError::Content(error) => Some(error),
            StartupError::Log(error) => Some(error),
        }
    }
}

macro_rules! from {
    ($($error:ty => $variant:ident),*) => {
        $(impl From<$error> for StartupError {
            fn from(error: $error) -> Self {
                StartupError::$variant(error)
            }
        })*
    };
}
from!(DataDirError => DataDir, OpenError => Open, SnapshotError => Snapshot, Corrupt => Content, LogError => Log);

/// A directory that was read back.
pub struct Opened {
    /// It; `None` if nothing is kept and nothing was there.
    pub dir: Option<Arc<DataDir>>,
    /// The log to go on with, if the settings want one.
    pub log: Option<Box<dyn Log>>,
    /// The position that the state stands for.
    pub position: u64,
    /// What was found there, and what came of it.
    pub recovery: Option<Recovery>,
}

impl Opened {
    /// The snapshot that was read; zeros if there was none.
    pub fn newest(&self) -> Newest {
        let snapshot = self.recovery.as_ref().and_then(|recovery| recovery.snapshot.as_ref());
        snapshot.map(|info| Newest { position: info.position, len_bytes: info.len_bytes }).unwrap_or_default()
    }
}

/// Takes the directory of the settings, if anything is or may be kept there.
pub fn take_dir(disk: &Arc<dyn Disk>, settings: &Settings) -> Result<Option<Arc<DataDir>>, StartupError> {
    let path = Path::new(&settings.dir);
    // What may not be looked at is for the opening to complain of, and never taken for nothing.
    let may_hold = |part: &str| match path.join(part).metadata() {
        Ok(found) => found.is_dir(),
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    };
    let wanted = settings.appendonly || !settings.save.is_empty() || may_hold("log") || may_hold("snapshots");
    if !wanted {
        return Ok(None);
    }
    Ok(Some(DataDir::open(disk.clone(), path)?))
}

/// Reads into `engine`, whose state must be empty, what `dir` holds.
pub fn load(dir: Option<Arc<DataDir>>, engine: &mut Engine) -> Result<Opened, StartupError> {
    let Some(dir) = dir else { return Ok(Opened { dir: None, log: None, position: 0, recovery: None }) };
    let stopwatch = Stopwatch::start();
    let (log, stored, recovery) = if engine.settings.appendonly {
        let options = Options { segment_bytes: engine.settings.log_segment_bytes, ..Options::default() };
        let (log, recovery) = crate::log::open(&dir, options)?;
        let stored = log.stored();
        (Some(Box::new(log) as Box<dyn Log>), stored, recovery)
    } else {
        let (stored, recovery) = crate::log::open_to_read(&dir)?;
        (None, stored, recovery)
    };
    for note in &recovery.notes {
        ::log::warn!("{note}");
    }
    if let Some(info) = &recovery.snapshot {
        restore(&dir, info.position, engine)?;
        ::log::info!(
            "read {} keys from the snapshot at position {} ({} bytes) in {} ms",
            engine.state().key_count(),
            info.position,
            info.len_bytes,
            stopwatch.elapsed_us() / 1000
        );
    }
    let (mut frames, mut records) = (0u64, 0u64);
    stored.replay(recovery.replay_from, |position, now_ms, payload| {
        records += replay(position, now_ms, payload, engine)?;
        frames += 1;
        Ok(())
    })?;
    let position = recovery.end;
    if recovery.snapshot.is_some() || frames > 0 {
        ::log::info!(
            "the log ends at position {position}: {records} records in {frames} commits carried out again, {} keys, {} ms in all",
            engine.state().key_count(),
            stopwatch.elapsed_us() / 1000
        );
    }
    Ok(Opened { dir: Some(dir), log, position, recovery: Some(recovery) })
}

/// Reads the keys of a snapshot into `engine`.
pub fn restore(dir: &DataDir, position: u64, engine: &mut Engine) -> Result<(), StartupError> {
    let mut reader = snapshots::read(dir, position)?;
    engine.note_time(reader.now_ms());
    let mut decoder = Decoder::default();
    while let Some(chunk) = reader.next_chunk()? {
        decoder.chunk(chunk, |key| engine.restore(key, position))?;
    }
    Ok(decoder.finish()?)
}

/// Applies the records of a frame, or of the rest of one, that begins at a log position; answers how many there were.
pub fn replay(position: u64, now_ms: u64, payload: &[u8], engine: &mut Engine) -> Result<u64, Corrupt> {
    let end = position + payload.len() as u64;
    let mut reader = Reader::new(payload);
    let mut records = 0;
    while !reader.is_empty() {
        let record = Record::decode(&mut reader)?;
        engine.replay(&record, end - reader.rest.len() as u64);
        records += 1;
    }
    engine.note_time(now_ms);
    while engine.free_one() {}
    Ok(records)
}
