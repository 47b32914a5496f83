//! The open block: the last one of a stream, which takes new entries until it is full and is then sealed.
//!
//! `taken` and `weight` count every entry that was ever put in, deleted or not, so that when a block is full depends on
//! what was added and not on what a restart dropped of it.

use std::sync::Arc;

use super::block::{Block, Removal, Table, View, count_below, set_below};
use super::packer::Packer;
use super::schema::Schema;
use crate::id::StreamId;

/// The last block.
#[derive(Clone, Default)]
pub(super) struct Open {
    pub packer: Packer,
    /// A bit for each slot: deleted. Shorter than the slots until a late one is deleted.
    pub deleted: Vec<u64>,
    pub live: usize,
    /// First and last live ID.
    pub first: StreamId,
    pub last: StreamId,
    /// Entries ever put into this block.
    pub taken: usize,
    /// What they cost together.
    pub weight: usize,
    /// Bytes of the live entries' names and values.
    pub payload: u64,
    /// The schemas of the block before, whether it is still there or not: what the next entries will have too.
    pub recent: Vec<Arc<Schema>>,
}

/// Buffers larger than this are not kept: neither by a stream that has become empty …
const KEPT_WHEN_EMPTY_BYTES: usize = 1024;
/// … nor after a block with an unusually large entry.
const KEPT_WHEN_SEALED_BYTES: usize = 16 * 1024;

impl Open {
    #[inline]
    pub fn view(&self) -> View<'_> {
        View {
            bytes: &self.packer.bytes,
            marks: &self.packer.marks,
            base_ms: self.packer.base_ms,
            table: &self.packer.table,
            deleted: &self.deleted,
            slots: self.packer.slots,
            live: self.live,
            first: self.first,
            last: self.last,
        }
    }

    /// Memory of the block with its lists of field names.
    pub fn memory_bytes(&self) -> usize {
        let names: usize = self.packer.table.iter().map(|schema| schema.reply_bytes()).sum();
        size_of::<Open>() + self.packer.bytes.capacity() + self.packer.marks.capacity() + names
    }

    /// Forgets everything but the schemas and a buffer of up to `kept_bytes`.
    fn clear(&mut self, kept_bytes: usize) {
        let bytes = &mut self.packer.bytes;
        if bytes.capacity() > kept_bytes {
            *bytes = Vec::new();
        } else if bytes.capacity() > bytes.len() + bytes.len() / 4 {
            // Growth has doubled it beyond need. The next block will be about as large as this one.
            bytes.shrink_to(bytes.len() + bytes.len() / 8);
        }
        if !self.packer.table.is_empty() {
            std::mem::swap(&mut self.packer.table, &mut self.recent);
        }
        self.packer.clear();
        self.deleted.clear();
        self.live = 0;
        self.taken = 0;
        self.weight = 0;
        self.payload = 0;
    }

    /// Makes a sealed block of the live entries, at least one, and begins anew. An open block that has lost entries is
    /// packed again, so that a sealed one never depends on what is gone.
    pub fn seal(&mut self, before: Option<&Table>) -> (Block, StreamId, u32) {
        let (first, live) = (self.first, self.live as u32);
        if self.live != self.taken {
            self.packer = Packer::of(self.view(), &[]);
        }
        let block = Block::seal(&mut self.packer, before);
        self.clear(KEPT_WHEN_SEALED_BYTES);
        (block, first, live)
    }

    /// Packs the live entries again if a deleted one stands in the way of this ID: the last ID of a stream can be set
    /// back behind entries that were trimmed, and then they come again.
    pub fn make_way(&mut self, id: StreamId) {
        if self.live > 0 && id <= self.packer.last {
            // With the table as it is, as a restart has it: what counts towards being full goes by it.
            self.packer = Packer::of(self.view(), &self.packer.table);
            self.deleted.clear();
        }
    }

    fn delete_bits(&mut self) -> &mut [u64] {
        let words = self.packer.slots.div_ceil(64);
        if self.deleted.len() < words {
            self.deleted.resize(words, 0);
        }
        &mut self.deleted
    }

    /// Removes a live entry.
    pub fn remove(&mut self, removal: Removal) {
        if self.live == 1 {
            return self.clear(KEPT_WHEN_EMPTY_BYTES);
        }
        (self.first, self.last) = (removal.first, removal.last);
        self.live -= 1;
        self.payload -= removal.payload;
        self.delete_bits()[removal.slot / 64] |= 1 << (removal.slot % 64);
    }

    /// Removes all entries with an ID below `bound`; returns how many.
    pub fn trim_before(&mut self, bound: StreamId) -> u64 {
        let before = self.live;
        if self.live == 0 || bound <= self.first {
            return 0;
        }
        if bound > self.last {
            self.clear(KEPT_WHEN_EMPTY_BYTES);
            return before as u64;
        }
        let payload = self.view().payload_before(bound);
        let view = self.view();
        let mut cursor = view.seek(bound);
        let slot = cursor.slot;
        let gone = slot - count_below(view.deleted, slot);
        self.first = cursor.next_live().expect("the last live entry is not below the bound").id;
        self.live -= gone;
        self.payload -= payload;
        set_below(self.delete_bits(), slot);
        gone as u64
    }
}
