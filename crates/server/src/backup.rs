//! Copies a data directory to another folder while a server works in it, and what is new since the last time the next
//! time. What comes of it is a data directory: a server can start on it, `impel check` examines it, `impel restore` makes
//! of it the state of any moment that it reaches back to.
//!
//! It is consistent because files of the log are only appended to and snapshots only appear whole: a beginning of the log
//! that reaches at least to where it was durable when copying began, and snapshots that this log reaches. It must never
//! write to the folder that it copies, ask anything of the server, or leave in the other folder what it has not verified.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{DataDir, DataDirError, Disk, DiskError};
use crate::log::copy::{self, CopyError, Segments};
use crate::log::{self, OpenError, Recovery};
use crate::snapshots::{self, Keep, SnapshotError, SnapshotReader};

/// The server may remove files between the moment they are listed and the moment they are opened, when it has taken a
/// snapshot: then everything is looked at again, at most so often.
const LOOKS: u32 = 20;

/// Snapshots kept in the copy beside the newest one, whatever is asked for.
const OLDER_KEPT: usize = 1;
/// See [`Keep::apart_ms`].
const HISTORY_PARTS: u64 = 4;

/// Why a backup failed. What the folder held before can still be used.
#[derive(Debug)]
pub enum BackupError {
    /// A file operation failed.
    Disk(DiskError),
    /// The folder to copy to could not be taken.
    Target(DataDirError),
    /// There is nothing to copy.
    Nothing {
        /// The folder to copy from.
        path: PathBuf,
    },
    /// What is to be copied is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first byte that cannot be used.
        offset: u64,
    },
    /// What was copied there before comes from another server, or from a time that this one has lost.
    AnotherLog {
        /// A file there that does not agree with the one of the same name here.
        path: PathBuf,
    },
    /// Files went faster than they could be opened.
    Restless,
    /// The copy is not what a server could start on.
    Unusable(OpenError),
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Disk(error) => error.fmt(f),
            BackupError::Target(error) => error.fmt(f),
            BackupError::Nothing { path } => write!(f, "there is neither a log nor a snapshot in {}", path.display()),
            BackupError::Damaged { path, offset } => write!(
                f,
                "{} is damaged at byte {offset}, and nothing from there on was copied: `impel check` says what is whole",
                path.display()
            ),
            BackupError::AnotherLog { path } => write!(
                f,
                "{} is damaged, or not from the server that is copied now: nothing was written over it; copy to another folder",
                path.display()
            ),
            BackupError::Restless => write!(f, "files came and went while they were being opened: try again"),
            BackupError::Unusable(error) => write!(f, "the copy cannot be used: {error}"),
        }
    }
}

impl Error for BackupError {}

impl From<DiskError> for BackupError {
    fn from(error: DiskError) -> Self {
        BackupError::Disk(error)
    }
}

impl From<CopyError> for BackupError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Disk(error) => BackupError::Disk(error),
            CopyError::Damaged { path, offset } => BackupError::Damaged { path, offset },
            CopyError::AnotherLog { path } => BackupError::AnotherLog { path },
        }
    }
}

/// What a backup did.
#[derive(Debug)]
pub struct Report {
    /// Segments of the log that were new or have grown.
    pub segments: u64,
    /// Snapshots that were new.
    pub snapshots: u64,
    /// Bytes written.
    pub len_bytes: u64,
    /// The log between these positions was gone before it was copied: nothing in between can be restored.
    pub gap: Option<(u64, u64)>,
    /// What a start would find in the copy.
    pub recovery: Recovery,
    /// Damaged snapshots that were passed over, a sentence each.
    pub notes: Vec<String>,
}

/// Copies what `to` does not have of `from`. With `keep_ms`, what is not needed in `to` to restore any moment of so many
/// milliseconds is removed afterwards; otherwise it is only ever added to.
pub fn run(disk: &Arc<dyn Disk>, from: &Path, to: &Path, keep_ms: Option<u64>) -> Result<Report, BackupError> {
    let (source, _) = DataDir::look(disk.clone(), from)?;
    let (mut readers, segments, mut notes) = open_all(&source)?;
    if readers.is_empty() && segments.is_empty() {
        return Err(BackupError::Nothing { path: from.to_owned() });
    }
    let target = DataDir::open(disk.clone(), to).map_err(BackupError::Target)?;
    crate::disk::remove_unfinished(target.disk(), target.log())?;
    snapshots::remove_unfinished(&target)?;

    // The log first: a snapshot must not be there before the log that reaches it.
    let newest = readers.last().map_or(0, SnapshotReader::position);
    let copied = segments.copy_to(&target, newest)?;
    let mut report_bytes = copied.len_bytes;
    let mut new_snapshots = 0;
    for reader in &mut readers {
        match copy_snapshot(reader, &target) {
            Ok(0) => {}
            Ok(len_bytes) => (new_snapshots, report_bytes) = (new_snapshots + 1, report_bytes + len_bytes),
            Err(SnapshotError::Disk(error)) => return Err(error.into()),
            Err(error) => notes.push(format!("not copied: {error}")),
        }
    }
    let (_, recovery) = log::open_to_read(&target).map_err(BackupError::Unusable)?;
    if let (Some(keep_ms), Some(newest)) = (keep_ms, &recovery.snapshot) {
        let keep = Keep {
            older: OLDER_KEPT,
            since_ms: Some(newest.now_ms.saturating_sub(keep_ms)),
            apart_ms: keep_ms / HISTORY_PARTS,
        };
        copy::trim(&target, snapshots::prune(&target, &keep)?)?;
    }
    Ok(Report {
        segments: copied.segments,
        snapshots: new_snapshots,
        len_bytes: report_bytes,
        gap: copied.gap,
        recovery,
        notes,
    })
}

/// Opens everything that is there at one moment: snapshots before the log, so that the log reaches each of them.
fn open_all(source: &DataDir) -> Result<(Vec<SnapshotReader>, Segments, Vec<String>), BackupError> {
    for _ in 0..LOOKS {
        let (mut readers, mut notes, mut has_moved) = (Vec::new(), Vec::new(), false);
        for position in snapshots::list(source)? {
            match snapshots::read(source, position) {
                Ok(reader) => readers.push(reader),
                Err(SnapshotError::Disk(error)) if error.source.kind() == io::ErrorKind::NotFound => has_moved = true,
                Err(SnapshotError::Disk(error)) => return Err(error.into()),
                Err(error) => notes.push(format!("not copied: {error}")),
            }
        }
        if !has_moved && let Some(segments) = Segments::open(source)? {
            return Ok((readers, segments, notes));
        }
    }
    Err(BackupError::Restless)
}

/// Copies a snapshot, verifying each chunk of it; answers how many bytes were written, 0 if it was there.
fn copy_snapshot(reader: &mut SnapshotReader, to: &Arc<DataDir>) -> Result<u64, SnapshotError> {
    if let Ok(there) = snapshots::read(to, reader.position())
        && (there.len_bytes(), there.now_ms()) == (reader.len_bytes(), reader.now_ms())
    {
        return Ok(0);
    }
    let mut writer = snapshots::create(to, reader.position(), reader.now_ms(), reader.with_log())?;
    while let Some(chunk) = reader.next_chunk()? {
        writer.write_chunk(chunk)?;
    }
    Ok(writer.finish()?.len_bytes)
}
