//! Records on their way to the log: bytes that the process takes, writes and makes durable as one frame.
//!
//! A *position* counts the bytes of all records ever appended. With the log off nothing is encoded and every position
//! is 0, so that no reply waits.

use crate::record::Record;

/// Records that have not been taken yet.
#[derive(Debug, Default)]
pub struct PendingLog {
    bytes: Vec<u8>,
    start: u64,
    /// End of the last record that somebody waits for, in `bytes`.
    wanted: usize,
    enabled: bool,
}

impl PendingLog {
    /// Turns logging on, from a position on.
    pub fn enable(&mut self, position: u64) {
        self.enabled = true;
        self.start = position;
    }

    /// Is the log on?
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Position after the last record.
    #[inline]
    pub fn position(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Appends a record; answers the position after it.
    #[inline]
    pub(super) fn append(&mut self, record: &Record<'_>) -> u64 {
        if self.enabled {
            record.encode(&mut self.bytes);
            self.wanted = self.bytes.len();
        }
        self.position()
    }

    /// Appends a record that nobody waits for.
    pub(super) fn append_lazily(&mut self, record: &Record<'_>) -> u64 {
        if self.enabled {
            record.encode(&mut self.bytes);
        }
        self.position()
    }

    /// Bytes that have not been taken.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Nothing to take?
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Is there a record that somebody waits for?
    pub fn is_wanted(&self) -> bool {
        self.wanted > 0
    }

    /// Takes what there is into an empty buffer (whose memory is used again); answers the position after it.
    pub fn take(&mut self, into: &mut Vec<u8>) -> u64 {
        into.clear();
        std::mem::swap(&mut self.bytes, into);
        self.start += into.len() as u64;
        self.wanted = 0;
        self.start
    }
}
