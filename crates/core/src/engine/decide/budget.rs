//! How much a read may still answer: COUNT for each stream, MAXCOUNT and MAXSIZE over all of them.

use crate::resp::encode::Reply;

/// MAXCOUNT and MAXSIZE of one read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Entries left.
    entries: u64,
    /// Bytes of the reply at which no further entry is taken; `usize::MAX` = no bound.
    size_bytes: usize,
    /// Where the reply begins.
    start: usize,
    /// Entries taken.
    taken: u64,
    /// Entries that may still be passed over.
    passes: usize,
    /// Entries that were.
    passed: usize,
}

/// Entries that a group's read passes over in one turn at most: each is held, and a record says so.
pub(super) const PASSES_MAX: usize = 500;

impl Budget {
    /// The whole of it, for a reply that begins at `start`.
    pub fn new(max_count: u64, max_size_bytes: usize, start: usize) -> Budget {
        Budget { entries: max_count, size_bytes: max_size_bytes, start, taken: 0, passes: usize::MAX, passed: 0 }
    }

    /// From now on only so many entries are passed over.
    pub fn bound_passes(&mut self, passes: usize) {
        self.passes = passes;
    }

    /// How many were.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// An entry was passed over.
    pub fn pass(&mut self) {
        self.passes -= 1;
        self.passed += 1;
    }

    /// There is more to look at than one turn has time for, for another reason.
    pub fn stop_passing(&mut self) {
        self.passes = 0;
    }

    /// Were as many passed over as may be? Then there may be more to give, behind what was looked at.
    pub fn is_passed(&self) -> bool {
        self.passes == 0
    }

    /// Most entries that may follow, as far as their number goes.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Is the size of the reply bounded? Then the number of entries is known only when they have been written.
    pub fn bounds_size(&self) -> bool {
        self.size_bytes != usize::MAX
    }

    /// May one more entry be taken? The first always may. Asked before each entry, so the last one may be too large.
    pub fn has_room(&self, reply: &Reply<'_>) -> bool {
        self.entries > 0 && (self.taken == 0 || reply.out.len() - self.start < self.size_bytes)
    }

    /// Entries were taken.
    pub fn take(&mut self, entries: u64) {
        self.entries -= entries;
        self.taken += entries;
    }
}

/// Puts the head of a list before what was written since `at`.
pub(super) fn put_head_before(reply: &mut Reply<'_>, at: usize, head: impl FnOnce(&mut Reply<'_>)) {
    let end = reply.out.len();
    head(reply);
    let head_len = reply.out.len() - end;
    reply.out[at..].rotate_right(head_len);
}
