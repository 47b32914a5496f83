//! The log of a server without persistence: it counts positions and keeps nothing, so everything is "durable" at once.
//!
//! It starts where what was loaded ends, never at 0 again, so that its positions stay comparable with those of
//! snapshots and of a file log that lie in the same directory.

use super::{Log, LogError};

/// A log that keeps nothing.
#[derive(Clone, Debug)]
pub struct MemoryLog {
    end: u64,
}

impl MemoryLog {
    /// A log whose next byte has this position.
    pub fn starting_at(position: u64) -> Self {
        MemoryLog { end: position }
    }
}

impl Log for MemoryLog {
    fn commit(&mut self, payload: &[u8], _now_ms: u64, _sync: bool) -> Result<(), LogError> {
        self.end += payload.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn trim(&mut self, _before: u64) -> Result<(), LogError> {
        Ok(())
    }

    fn len_bytes(&self) -> u64 {
        0
    }
}
