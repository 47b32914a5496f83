//! The log: what the engine's commands changed, in the order in which they changed it, as bytes it does not look into.
//!
//! **Positions.** A position is a `u64`: how many payload bytes were ever appended before it. It is never reset and
//! counts no header. A snapshot at position P holds the effect of exactly the payload bytes before P.
//!
//! **The contract**, which `conformance.rs` puts to every provider:
//! - One `commit` is one frame: after a crash all of its payload is there or none of it.
//! - When a commit with `sync` (or `sync` itself) has returned `Ok`, everything appended so far survives a crash.
//! - What survives is a beginning of what was appended, without holes.
//! - An empty commit appends nothing; with `sync` it is a `sync`.
//! - A payload that is too large is refused before anything is written, and nothing is lost by it.
//! - Any other error of `commit` or `sync` poisons the log: every later call fails, whatever the disk does, until the
//!   log is opened again. After a failed sync nobody knows what is on the disk, so nothing may pretend to.
//!
//! One thread at a time uses a log; a call may take as long as the disk does. A provider must never look into a payload,
//! read a clock, or answer `Ok` for what it has not done.

pub mod copy;
pub mod file;
mod frame;
pub mod inspect;
mod memory;
pub mod recovery;
mod survey;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod recovery_tests;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

/// The format of segments that is written, and the only one that is read.
pub const FORMAT: u32 = frame::VERSION;

pub use file::{FileLog, Options, Stored, open, open_to_read};
pub use memory::MemoryLog;
pub use recovery::{OpenError, Recovery, Refusal, Row};

use crate::disk::DiskError;

/// A log provider. What every call promises stands in the module's documentation.
pub trait Log: Send {
    /// Appends one frame and, if `sync`, makes everything so far durable. `now_ms` is stored with the frame.
    fn commit(&mut self, payload: &[u8], now_ms: u64, sync: bool) -> Result<(), LogError>;
    /// Makes everything so far durable.
    fn sync(&mut self) -> Result<(), LogError>;
    /// The position after the last appended byte.
    fn end(&self) -> u64;
    /// Segments wholly before the position may go. Which ones do is the provider's choice, but never one that holds a
    /// byte at or after `before`. An error here poisons nothing: what could not be removed is tried again next time.
    fn trim(&mut self, before: u64) -> Result<(), LogError>;
    /// Bytes in use on the disk: headers and frames, without what is only reserved.
    fn len_bytes(&self) -> u64;
}

/// Why a call of a log failed.
#[derive(Debug)]
pub enum LogError {
    /// A file operation failed.
    Disk(DiskError),
    /// An earlier call failed; the log has to be opened again.
    Poisoned {
        /// What went wrong then.
        reason: String,
    },
    /// The payload is larger than a frame can be. Nothing was written and the log goes on.
    TooLarge {
        /// The payload's length.
        len_bytes: u64,
        /// The largest there is.
        max_bytes: u64,
    },
    /// Replay from a position that the log does not reach back to, or not yet reach.
    OutOfReach {
        /// The position asked for.
        from: u64,
        /// The first position in the log.
        first: u64,
        /// The position after its last byte.
        end: u64,
    },
    /// A frame that was whole when the log was opened is not any more.
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// The position of the frame that should be there.
        position: u64,
    },
    /// Whoever was given the frames could not use one.
    Apply {
        /// The position of that frame.
        position: u64,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Disk(error) => error.fmt(f),
            LogError::Poisoned { reason } => {
                write!(f, "the log stopped after an error and needs a restart of the server: {reason}")
            }
            LogError::TooLarge { len_bytes, max_bytes } => {
                write!(f, "{len_bytes} bytes in one commit, more than the {max_bytes} that a log frame can hold")
            }
            LogError::OutOfReach { from, first, end } => {
                write!(f, "the log holds positions {first} to {end}, so it cannot be read from {from} on")
            }
            LogError::Damaged { path, offset, position } => write!(
                f,
                "{} is damaged at byte {offset} (log position {position}): restart the server to have it examined",
                path.display()
            ),
            LogError::Apply { position, source } => {
                write!(f, "the log frame at position {position} cannot be applied: {source}")
            }
        }
    }
}

impl Error for LogError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LogError::Disk(error) => Some(&error.source),
            LogError::Apply { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

impl From<DiskError> for LogError {
    fn from(error: DiskError) -> Self {
        LogError::Disk(error)
    }
}
