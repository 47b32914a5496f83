//! A span: up to `limits::BLOCKS_PER_SPAN` sealed blocks in a row, the unit that is shared with a frozen copy, detached
//! by trimming and freed. What searches look at (first IDs, live counts) lies side by side, apart from the blocks.
//!
//! Every block of a span has a live entry; a span in use has a block.

use std::collections::VecDeque;

use super::block::{Block, Removal, View, count_below, set_below};
use super::{NodeLimits, count_front};
use crate::id::StreamId;
use crate::limits::BLOCKS_PER_SPAN;

/// What became of a block that an entry was removed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Removed {
    /// It is gone with its last entry.
    Block,
    /// It has lost its first entry: being eaten up from the front, it will be gone soon.
    First,
    /// It has lost another one.
    Inner,
}

/// How much is left of a block: what is there, never what was there before, so that it is the same after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sparse {
    /// Live entries.
    pub live: u32,
    /// Bytes of their names and values.
    pub payload: u64,
}

impl Sparse {
    /// May the two be one block? Up to half of what a block may hold, so that nothing is packed again and again.
    pub fn fits(self, other: Sparse, limits: NodeLimits) -> bool {
        let (max_entries, max_bytes) = limits.bounds();
        (self.live + other.live) as usize <= max_entries / 2 && self.payload + other.payload <= max_bytes as u64 / 2
    }
}

/// Some sealed blocks in a row. Outside of the collection it is good for one thing: to be dropped.
#[derive(Clone, Default)]
pub struct Span {
    /// ID of the first live entry of each block.
    firsts: VecDeque<StreamId>,
    /// Live entries of each block.
    lives: VecDeque<u32>,
    /// Bytes of the names and values of the live entries of each block.
    payloads: VecDeque<u64>,
    blocks: VecDeque<Block>,
}

impl Span {
    /// Number of blocks.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let each = size_of::<StreamId>() + size_of::<u32>() + size_of::<u64>();
        size_of::<Span>() + self.blocks.iter().map(|block| each + block.memory_bytes()).sum::<usize>()
    }

    pub(super) fn is_full(&self) -> bool {
        self.blocks.len() >= BLOCKS_PER_SPAN
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn first(&self) -> StreamId {
        self.firsts[0]
    }

    pub(super) fn last(&self) -> StreamId {
        self.last_block().last
    }

    pub(super) fn last_block(&self) -> &Block {
        self.blocks.back().expect("a span in use has a block")
    }

    pub(super) fn block(&self, index: usize) -> &Block {
        &self.blocks[index]
    }

    #[inline]
    pub(super) fn view(&self, index: usize) -> View<'_> {
        self.blocks[index].view(self.firsts[index], self.lives[index])
    }

    /// The last block that begins at or before this ID; there must be one.
    #[inline]
    pub(super) fn locate(&self, id: StreamId) -> usize {
        self.firsts.partition_point(|&first| first <= id) - 1
    }

    /// Live entries in the blocks before this one.
    pub(super) fn live_before(&self, index: usize) -> u64 {
        self.lives.range(..index).map(|&live| u64::from(live)).sum()
    }

    /// The block with the `n`-th live entry, and which of that block's it is. `n` is below the live count.
    pub(super) fn block_of_nth(&self, mut n: u64) -> (usize, usize) {
        for (index, &live) in self.lives.iter().enumerate() {
            if n < u64::from(live) {
                return (index, n as usize);
            }
            n -= u64::from(live);
        }
        unreachable!("the caller counted the live entries of this span");
    }

    /// Bytes of the names and values of the live entries in the blocks before this one.
    pub(super) fn payload_before(&self, index: usize) -> u64 {
        self.payloads.range(..index).sum()
    }

    /// The block with the entry behind which `excess` bytes lie before the block's own, and what is left of `excess` there.
    pub(super) fn block_of_byte(&self, mut excess: u64) -> (usize, u64) {
        for (index, &payload) in self.payloads.iter().enumerate() {
            if excess <= payload {
                return (index, excess);
            }
            excess -= payload;
        }
        unreachable!("the caller counted the bytes of this span");
    }

    pub(super) fn push(&mut self, block: Block, first: StreamId, live: u32, payload: u64) {
        self.payloads.push_back(payload);
        self.firsts.push_back(first);
        self.lives.push_back(live);
        self.blocks.push_back(block);
    }

    /// Removes a live entry.
    pub(super) fn remove(&mut self, index: usize, removal: Removal) -> Removed {
        if self.lives[index] == 1 {
            self.take_out(index);
            return Removed::Block;
        }
        self.lives[index] -= 1;
        self.payloads[index] -= removal.payload;
        let was_first = self.firsts[index] != removal.first;
        self.firsts[index] = removal.first;
        let block = &mut self.blocks[index];
        block.last = removal.last;
        block.deleted_mut()[removal.slot / 64] |= 1 << (removal.slot % 64);
        if was_first {
            return Removed::First;
        }
        block.shrink(removal.first, self.lives[index]);
        Removed::Inner
    }

    /// A block as [`Sparse`].
    pub(super) fn sparse(&self, index: usize) -> Sparse {
        Sparse { live: self.lives[index], payload: self.payloads[index] }
    }

    /// Puts in the place of a block what it and the one after it are together.
    pub(super) fn replace(&mut self, index: usize, joined: Block, with: Sparse) {
        self.lives[index] += with.live;
        self.payloads[index] += with.payload;
        self.blocks[index] = joined;
    }

    /// Takes a block out.
    pub(super) fn take_out(&mut self, index: usize) {
        self.firsts.remove(index);
        self.lives.remove(index);
        self.payloads.remove(index);
        self.blocks.remove(index);
    }

    /// Takes away all entries with an ID below `bound`: whole blocks in a span of their own, and of the block that
    /// stays in part, only their bits. Returns that span, how many entries went in all, and how many bytes of names and
    /// values.
    pub(super) fn trim_before(&mut self, bound: StreamId) -> (Span, u64, u64) {
        let begun = count_front(&self.firsts, |&first| first < bound);
        let whole = if begun > 0 && self.blocks[begun - 1].last < bound { begun } else { begun.saturating_sub(1) };
        let (mut removed, mut payload) = (0, 0);
        let mut gone = Span::default();
        if whole > 0 {
            removed = self.live_before(whole);
            payload = self.payload_before(whole);
            self.payloads.drain(..whole);
            self.firsts.drain(..whole);
            self.lives.drain(..whole);
            gone.blocks = self.blocks.drain(..whole).collect();
        }
        if whole < begun {
            let view = self.view(0);
            let mut cursor = view.seek(bound);
            let slot = cursor.slot;
            let rest = view.live - (slot - count_below(view.deleted, slot));
            let first = cursor.next_live().expect("the last live entry is not below the bound").id;
            removed += (view.live - rest) as u64;
            let gone_here = view.payload_before(bound);
            payload += gone_here;
            self.payloads[0] -= gone_here;
            self.firsts[0] = first;
            self.lives[0] = rest as u32;
            set_below(self.blocks[0].deleted_mut(), slot);
        }
        (gone, removed, payload)
    }
}
