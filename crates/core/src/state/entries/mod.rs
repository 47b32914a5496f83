//! The entries of one stream, in ID order, with exact ranks.
//!
//! ```text
//! Entries: spans [ Span | Span | … ]   open [ Block that takes new entries ]
//!                   |
//!                   up to 256 sealed blocks: packed bytes, immutable, and a bit for each deleted entry
//! ```
//!
//! - A block takes entries until it holds [`NodeLimits::max_entries`] or would exceed [`NodeLimits::max_bytes`]; it is
//!   what Redis calls a node, and approximate trimming removes whole ones. Deleted entries go on counting as long as
//!   the block is open. A block whose entries are all deleted goes away.
//! - Every part knows its live count and its first live ID, so finding an entry, its rank or the n-th entry costs a
//!   search among spans, one among the blocks of a span, and the decoding of at most 8 slots.
//! - Spans and the open block are behind `Arc`: a clone is a frozen copy that costs a reference per span. While it lives,
//!   a change copies the span it touches (not its data); without one, nothing is copied.
//! - What [`Entries::encode`] writes depends on the blocks' layout and live entries alone, never on how they came about.
//!
//! This module never decides *what* is trimmed, and knows neither groups nor counters of the stream.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::id::StreamId;
use crate::limits::{BLOCK_BYTES_MAX, BLOCK_SLOTS_MAX};

mod block;
mod encoding;
mod entry;
mod open;
mod packer;
mod range;
mod schema;
mod span;
#[cfg(test)]
mod tests;

pub use entry::{Entry, Fields};
pub use range::{Range, RangeRev};
pub use span::Span;

use block::View;
use open::Open;
use packer::Size;
use span::Removed;

/// When a block is full: `stream-node-max-entries` and `stream-node-max-bytes`. 0 is no bound, but for those of
/// `limits.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeLimits {
    /// Entries, deleted ones included.
    pub max_entries: usize,
    /// Bytes of the entries. A larger entry has a block for itself.
    pub max_bytes: usize,
}

impl NodeLimits {
    fn bounds(self) -> (usize, usize) {
        let or = |bound: usize, most: usize| if bound == 0 { most } else { bound.min(most) };
        (or(self.max_entries, BLOCK_SLOTS_MAX), or(self.max_bytes, BLOCK_BYTES_MAX))
    }
}

/// One block as approximate trimming sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeInfo {
    /// ID of its first live entry.
    pub first_live: StreamId,
    /// ID of its last live entry.
    pub last_live: StreamId,
    /// Its live entries, at least 1.
    pub live: usize,
}

/// A span, and what is looked at to find the right one.
#[derive(Clone)]
struct SpanSlot {
    /// ID of its first live entry.
    first: StreamId,
    /// Its live entries.
    live: u64,
    /// Bytes of their names and values.
    payload: u64,
    span: Arc<Span>,
}

/// A block: of the span with that number; the number one past the spans is the open block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    span: usize,
    block: usize,
}

impl std::fmt::Debug for Entries {
    /// Not the entries themselves: there may be millions.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").field("len", &self.len).finish_non_exhaustive()
    }
}

/// How many elements at the front are so. Exact trimming asks this for each entry added, and the answer is 0 or 1.
fn count_front<T>(queue: &VecDeque<T>, is_so: impl Fn(&T) -> bool) -> usize {
    match queue.get(1) {
        Some(second) if is_so(second) => queue.partition_point(is_so),
        _ => usize::from(queue.front().is_some_and(is_so)),
    }
}

/// The entries of one stream.
#[derive(Clone, Default)]
pub struct Entries {
    spans: VecDeque<SpanSlot>,
    open: Arc<Open>,
    /// Live entries.
    len: u64,
    /// Sealed blocks.
    sealed: usize,
    /// Bytes of the names and values of the live entries.
    payload: u64,
}

impl Entries {
    /// Number of live entries.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// No live entry?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the field names and values of all live entries, as they were given: a name counts with every entry, though
    /// it may be stored once. IDs and what storing takes do not count.
    #[inline]
    pub fn payload_bytes(&self) -> u64 {
        self.payload
    }

    /// Memory that the entries take, in bytes, as far as it can be told without the allocator's share. Looks at every
    /// block.
    pub fn memory_bytes(&self) -> usize {
        let spans = self.spans.iter().map(|slot| size_of::<SpanSlot>() + slot.span.memory_bytes());
        spans.sum::<usize>() + self.open.memory_bytes()
    }

    /// ID of the first live entry.
    pub fn first_id(&self) -> Option<StreamId> {
        match self.spans.front() {
            Some(slot) => Some(slot.first),
            None => (self.open.live > 0).then_some(self.open.first),
        }
    }

    /// ID of the last live entry.
    pub fn last_id(&self) -> Option<StreamId> {
        if self.open.live > 0 {
            return Some(self.open.last);
        }
        self.spans.back().map(|slot| slot.span.last())
    }

    /// Appends an entry. Its ID must be greater than that of every entry ever pushed; its names and values together are
    /// at most `limits::ENTRY_MAX_BYTES`.
    #[inline]
    pub fn push<'a>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        limits: NodeLimits,
    ) {
        debug_assert!(self.last_id().is_none_or(|last| id > last), "IDs only grow");
        let (max_entries, max_bytes) = limits.bounds();
        let mut open = Arc::make_mut(&mut self.open);
        open.make_way(id);
        let mut number = open.packer.number_of(fields.clone().map(|(name, _)| name));
        let size = Size::of(fields.clone());
        let mut cost = size.cost(number == 0);
        if open.taken > 0 && (open.taken >= max_entries || open.weight + cost > max_bytes) {
            self.seal();
            open = Arc::make_mut(&mut self.open);
            if number != 0 {
                number = 0;
                cost = size.cost(true);
            }
        }
        if open.taken == 0 {
            open.first = id;
        }
        open.packer.push(id, fields, number, &open.recent);
        open.last = id;
        open.live += 1;
        open.taken += 1;
        open.weight += cost;
        open.payload += size.payload;
        self.len += 1;
        self.payload += size.payload;
    }

    /// Moves the open block, which has a live entry, behind the sealed ones.
    fn seal(&mut self) {
        let open = Arc::make_mut(&mut self.open);
        let before = self.spans.back().map(|slot| slot.span.last_block().table());
        let payload = open.payload;
        let (block, first, live) = open.seal(before);
        self.push_sealed(block, first, live, payload);
    }

    fn push_sealed(&mut self, block: block::Block, first: StreamId, live: u32, payload: u64) {
        if self.spans.back().is_none_or(|slot| slot.span.is_full()) {
            self.spans.push_back(SpanSlot { first, live: 0, payload: 0, span: Arc::new(Span::default()) });
        }
        let slot = self.spans.back_mut().expect("a span was there or was made");
        Arc::make_mut(&mut slot.span).push(block, first, live, payload);
        slot.live += u64::from(live);
        slot.payload += payload;
        self.sealed += 1;
    }

    /// The last block that begins at or before this ID.
    #[inline]
    fn locate(&self, id: StreamId) -> Option<Place> {
        if self.open.live > 0 && self.open.first <= id {
            return Some(Place { span: self.spans.len(), block: 0 });
        }
        let span = self.spans.partition_point(|slot| slot.first <= id).checked_sub(1)?;
        Some(Place { span, block: self.spans[span].span.locate(id) })
    }

    #[inline]
    fn view(&self, place: Place) -> View<'_> {
        match self.spans.get(place.span) {
            Some(slot) => slot.span.view(place.block),
            None => self.open.view(),
        }
    }

    /// The block after this one.
    fn next_place(&self, place: Place) -> Option<Place> {
        if place.span == self.spans.len() {
            return None;
        }
        if place.block + 1 < self.spans[place.span].span.block_count() {
            return Some(Place { block: place.block + 1, ..place });
        }
        let next = Place { span: place.span + 1, block: 0 };
        (next.span < self.spans.len() || self.open.live > 0).then_some(next)
    }

    /// The block before this one.
    fn previous_place(&self, place: Place) -> Option<Place> {
        if place.block > 0 {
            return Some(Place { block: place.block - 1, ..place });
        }
        let span = place.span.checked_sub(1)?;
        Some(Place { span, block: self.spans[span].span.block_count() - 1 })
    }

    /// The first block with live entries.
    fn first_place(&self) -> Option<Place> {
        (self.len > 0).then_some(Place { span: 0, block: 0 })
    }

    /// Is there a live entry with this ID?
    pub fn contains(&self, id: StreamId) -> bool {
        self.get(id).is_some()
    }

    /// The live entry with this ID.
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        let place = self.locate(id)?;
        self.view(place).find(id).map(|(entry, _)| entry)
    }

    /// The live entries from `start` to `end`, both included.
    pub fn range(&self, start: StreamId, end: StreamId) -> Range<'_> {
        Range::new(self, start, end)
    }

    /// The same from the last to the first.
    pub fn range_rev(&self, start: StreamId, end: StreamId) -> RangeRev<'_> {
        RangeRev::new(self, start, end)
    }

    /// Live entries in the spans before this one; walks from the nearer end.
    fn live_before_span(&self, span: usize) -> u64 {
        if span <= self.spans.len() / 2 {
            self.spans.range(..span).map(|slot| slot.live).sum()
        } else {
            let behind: u64 = self.spans.range(span..).map(|slot| slot.live).sum();
            self.len - behind - self.open.live as u64
        }
    }

    /// Number of live entries with an ID below `id`.
    fn rank(&self, id: StreamId) -> u64 {
        let Some(place) = self.locate(id) else { return 0 };
        let in_block = self.view(place).rank(id) as u64;
        let in_span = self.spans.get(place.span).map_or(0, |slot| slot.span.live_before(place.block));
        self.live_before_span(place.span) + in_span + in_block
    }

    /// Number of live entries with an ID above `id`: the exact lag of a group that stands there.
    pub fn count_after(&self, id: StreamId) -> u64 {
        match id.next() {
            Some(next) => self.len - self.rank(next),
            None => 0,
        }
    }

    /// Number of live entries from `start` to `end`, both included.
    pub fn count_in(&self, start: StreamId, end: StreamId) -> u64 {
        if start > end {
            return 0;
        }
        self.len - self.count_after(end) - self.rank(start)
    }

    /// ID of the `n`-th live entry, counted from 0: what stays first when `n` are trimmed.
    pub fn nth(&self, mut n: u64) -> Option<StreamId> {
        if n >= self.len {
            return None;
        }
        let mut place = Place { span: self.spans.len(), block: 0 };
        let sealed_live = self.len - self.open.live as u64;
        if n >= sealed_live {
            n -= sealed_live;
        } else {
            for (span, slot) in self.spans.iter().enumerate() {
                if n < slot.live {
                    let (block, rest) = slot.span.block_of_nth(n);
                    place = Place { span, block };
                    n = rest as u64;
                    break;
                }
                n -= slot.live;
            }
        }
        let view = self.view(place);
        Some(view.at(view.nth_live_slot(n as usize)).id)
    }

    /// The last of the oldest entries that have together at least so many bytes of names and values. `None` if all entries
    /// together have fewer.
    pub fn last_of_bytes(&self, mut excess: u64) -> Option<StreamId> {
        if excess > self.payload {
            return None;
        }
        let mut start = self.first_id()?;
        for slot in &self.spans {
            if excess <= slot.payload {
                let (block, rest) = slot.span.block_of_byte(excess);
                (start, excess) = (slot.span.view(block).first, rest);
                break;
            }
            excess -= slot.payload;
            start = slot.span.last().next()?;
        }
        let mut entries = self.range(start, StreamId::MAX);
        let mut last = start;
        while excess > 0 {
            let entry = entries.next()?;
            excess = excess.saturating_sub(entry.payload_bytes());
            last = entry.id;
        }
        Some(last)
    }

    /// Removes the entry with this ID. Returns whether there was one.
    pub fn remove(&mut self, id: StreamId, limits: NodeLimits) -> bool {
        let Some(place) = self.locate(id) else { return false };
        let Some(removal) = self.view(place).removal(id) else { return false };
        self.len -= 1;
        self.payload -= removal.payload;
        if place.span == self.spans.len() {
            Arc::make_mut(&mut self.open).remove(removal);
            return true;
        }
        let slot = &mut self.spans[place.span];
        let span = Arc::make_mut(&mut slot.span);
        slot.live -= 1;
        slot.payload -= removal.payload;
        let removed = span.remove(place.block, removal);
        self.sealed -= usize::from(removed == Removed::Block);
        if span.is_empty() {
            self.spans.remove(place.span);
        } else {
            slot.first = span.first();
        }
        if removed == Removed::Inner {
            self.merge(place, limits);
        }
        true
    }

    /// Joins a sparse sealed block with a neighbour that is sparse as well: streams of which little survives would else keep
    /// a block for a handful of entries. Goes by what is there alone, also where a span ends, which a restart places elsewhere.
    fn merge(&mut self, place: Place, limits: NodeLimits) {
        let sparse = |place: Place| self.spans[place.span].span.sparse(place.block);
        let fits = |first: Place, second: Place| sparse(first).fits(sparse(second), limits);
        let sealed = |place: &Place| place.span < self.spans.len();
        let after = self.next_place(place).filter(sealed).filter(|&after| fits(place, after));
        let before = || self.previous_place(place).filter(|&before| fits(before, place));
        let pair = after.map(|after| (place, after)).or_else(|| before().map(|before| (before, place)));
        let Some((first, second)) = pair else { return };
        let with = sparse(second);
        let table = self.spans[first.span].span.block(first.block).table();
        let joined = block::Block::joined(self.view(first), self.view(second), table);
        let slot = &mut self.spans[second.span];
        let span = Arc::make_mut(&mut slot.span);
        span.take_out(second.block);
        slot.live -= u64::from(with.live);
        slot.payload -= with.payload;
        if span.is_empty() {
            self.spans.remove(second.span);
        } else {
            slot.first = span.first();
        }
        let slot = &mut self.spans[first.span];
        Arc::make_mut(&mut slot.span).replace(first.block, joined, with);
        slot.live += u64::from(with.live);
        slot.payload += with.payload;
        self.sealed -= 1;
    }

    /// Removes all entries with an ID below `bound`. Returns how many there were, and the spans that went whole: freeing
    /// a million entries takes long, so the caller drops them one by one when there is time.
    pub fn trim_before(&mut self, bound: StreamId) -> (u64, Vec<Arc<Span>>) {
        let mut removed = 0;
        let mut detached = Vec::new();
        // All spans but the last that begins before the bound end before it too.
        let begun = count_front(&self.spans, |slot| slot.first < bound);
        let whole = match begun.checked_sub(1) {
            Some(last) if self.spans[last].span.last() >= bound => last,
            _ => begun,
        };
        for slot in self.spans.drain(..whole) {
            removed += slot.live;
            self.payload -= slot.payload;
            self.sealed -= slot.span.block_count();
            detached.push(slot.span);
        }
        if whole < begun {
            let slot = &mut self.spans[0];
            let span = Arc::make_mut(&mut slot.span);
            let (gone, count, payload) = span.trim_before(bound);
            slot.live -= count;
            slot.payload -= payload;
            self.payload -= payload;
            slot.first = span.first();
            removed += count;
            if !gone.is_empty() {
                self.sealed -= gone.block_count();
                detached.push(Arc::new(gone));
            }
        }
        if self.open.live > 0 && self.open.first < bound {
            let open = Arc::make_mut(&mut self.open);
            let before = open.payload;
            removed += open.trim_before(bound);
            self.payload -= before - open.payload;
        }
        self.len -= removed;
        (removed, detached)
    }

    /// The blocks that hold live entries, from the front: what approximate trimming goes by.
    pub fn nodes(&self) -> impl Iterator<Item = NodeInfo> + '_ {
        std::iter::successors(self.first_place(), |&place| self.next_place(place)).map(|place| {
            let view = self.view(place);
            NodeInfo { first_live: view.first, last_live: view.last, live: view.live }
        })
    }

    /// The last block that begins at or before this ID.
    pub fn node_at(&self, id: StreamId) -> Option<NodeInfo> {
        let view = self.view(self.locate(id)?);
        Some(NodeInfo { first_live: view.first, last_live: view.last, live: view.live })
    }

    /// Number of blocks that hold live entries.
    pub fn node_count(&self) -> usize {
        self.sealed + usize::from(self.open.live > 0)
    }

    /// Takes away the first span, to free a large stream piece by piece. `None` when only the open block is left, which
    /// is as good as free.
    pub fn pop_span(&mut self) -> Option<Arc<Span>> {
        let slot = self.spans.pop_front()?;
        self.len -= slot.live;
        self.payload -= slot.payload;
        self.sealed -= slot.span.block_count();
        Some(slot.span)
    }
}
