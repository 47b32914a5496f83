//! The bytes of one block: how entries are packed, and how they are found and read again.
//!
//! A block is a row of slots, one an entry, in ID order. A slot is
//!
//! ```text
//! head: 1 byte          ID, as the head's form says      with schema 0 only          for each field
//! small|form|schema     (varints)                        field count, and a name     value length, value
//!   3     2     3                                        before each value (also
//!                                                        length, bytes)
//!
//! form 0  same ms as the slot before, seq + small + 1          (small 7: + varint)
//! form 1  ms + small + 1 (small 7: + varint), seq 0
//! form 2  ms + varint, seq varint
//! form 3  ms varint, seq varint: the first slot and every 8th after it: the marks
//! ```
//!
//! Schema 1 to 4 is one of the block's own table, in the order of first use; schema 0 is for entries whose names came
//! when the table was full. So the bytes are a function of the entries alone: the same entries packed anew give the
//! same bytes, which is what makes snapshots canonical.
//!
//! Where each group of 8 begins is kept apart, with a key: what the ID says in 32 bits. A search looks through the keys,
//! decodes at most the slots of one group, and touches other entries only where keys are equal.
//!
//! Bytes are written by [`Packer`](super::packer::Packer) or checked by `encoding`; reading trusts them, and a fault in them is a bug (panic).

use std::sync::Arc;

use super::entry::Entry;
use super::packer::Packer;
use super::schema::Schema;
use crate::id::StreamId;
use crate::limits::SLOTS_PER_MARK;

pub(super) const FORM_SAME_MS: u8 = 0;
pub(super) const FORM_SEQ_ZERO: u8 = 1;
pub(super) const FORM_BOTH: u8 = 2;
pub(super) const FORM_MARK: u8 = 3;

/// The greatest value of a head's small number: what the number is follows as a varint.
pub(super) const SMALL_FOLLOWS: u64 = 7;

/// Bytes of one mark among a block's marks: offset and key, 4 bytes each, little-endian.
const MARK_BYTES: usize = 8;

/// What a mark says of its slot's ID: milliseconds since the block's first slot, or `u32::MAX` if that is too much.
/// Keys lie side by side, so that a search touches the entries themselves only where keys are equal.
#[inline]
fn key(ms: u64, base_ms: u64) -> u32 {
    u32::try_from(ms - base_ms).unwrap_or(u32::MAX)
}

/// Appends the mark of a slot.
pub(super) fn put_mark(marks: &mut Vec<u8>, offset: usize, ms: u64, base_ms: u64) {
    let offset = u32::try_from(offset).expect("a block's bytes are bounded by the largest entry");
    marks.extend_from_slice(&offset.to_le_bytes());
    marks.extend_from_slice(&key(ms, base_ms).to_le_bytes());
}

/// The first number from `low` on, below `high`, for which `is_before` is false, or `high`.
#[inline(always)]
fn partition(mut low: usize, mut high: usize, is_before: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = (low + high) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Reads a varint that is known to be well-formed.
#[inline(always)]
pub(super) fn read_uint(bytes: &[u8], at: &mut usize) -> u64 {
    let first = bytes[*at];
    *at += 1;
    if first < 0x80 {
        return u64::from(first);
    }
    let mut value = u64::from(first & 0x7f);
    let mut shift = 7;
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
        shift += 7;
    }
}

/// A schema table, shared by all blocks in a row that have the same.
pub(super) type Table = Arc<[Arc<Schema>]>;

/// Is bit `slot` set? Words that are not there are zero.
#[inline]
pub(super) fn is_set(words: &[u64], slot: usize) -> bool {
    words.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
}

/// Number of set bits below `slot`.
pub(super) fn count_below(words: &[u64], slot: usize) -> usize {
    let whole = (slot / 64).min(words.len());
    let mut count: u32 = words[..whole].iter().map(|word| word.count_ones()).sum();
    if let Some(word) = words.get(slot / 64) {
        count += (word & !(u64::MAX << (slot % 64))).count_ones();
    }
    count as usize
}

/// Sets every bit below `slot`; the words must be there.
pub(super) fn set_below(words: &mut [u64], slot: usize) {
    words[..slot / 64].fill(u64::MAX);
    if !slot.is_multiple_of(64) {
        words[slot / 64] |= !(u64::MAX << (slot % 64));
    }
}

/// A block, sealed or open, for reading.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub bytes: &'a [u8],
    /// Where slots 8, 16, … begin, and the keys of their IDs.
    pub marks: &'a [u8],
    /// Milliseconds of the first slot, which keys count from.
    pub base_ms: u64,
    pub table: &'a [Arc<Schema>],
    /// A bit for each slot: deleted. May be shorter than the slots.
    pub deleted: &'a [u64],
    pub slots: usize,
    pub live: usize,
    /// ID of the first live entry …
    pub first: StreamId,
    /// … and of the last.
    pub last: StreamId,
}

impl<'a> View<'a> {
    #[inline]
    fn mark_word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.marks[at..at + 4].try_into().expect("4 bytes"))
    }

    /// Where a group begins.
    #[inline]
    fn mark(&self, group: usize) -> usize {
        if group == 0 { 0 } else { self.mark_word((group - 1) * MARK_BYTES) as usize }
    }

    /// The key of a group other than the first.
    #[inline]
    fn mark_key(&self, group: usize) -> u32 {
        self.mark_word((group - 1) * MARK_BYTES + 4)
    }

    /// The ID of the first slot of a group.
    #[inline]
    fn mark_id(&self, group: usize) -> StreamId {
        let mut at = self.mark(group) + 1;
        let ms = read_uint(self.bytes, &mut at);
        StreamId { ms, seq: read_uint(self.bytes, &mut at) }
    }

    /// Number of groups: a mark's slot and those up to the next mark.
    pub fn groups(&self) -> usize {
        self.slots.div_ceil(SLOTS_PER_MARK)
    }

    /// A cursor before the first slot of a group.
    #[inline]
    pub fn cursor(&self, group: usize) -> Cursor<'a> {
        Cursor { at: self.mark(group), slot: group * SLOTS_PER_MARK, id: StreamId::MIN, view: *self }
    }

    /// The group that holds the last slot whose ID is at most `id`; 0 if there is none.
    #[inline]
    pub fn group_of(&self, id: StreamId) -> usize {
        if id.ms < self.base_ms {
            return 0;
        }
        let key = key(id.ms, self.base_ms);
        let groups = self.groups();
        let below = partition(1, groups, |group| self.mark_key(group) < key);
        if below >= groups || self.mark_key(below) > key {
            return below - 1;
        }
        let equal = partition(below + 1, groups, |group| self.mark_key(group) == key);
        partition(below, equal, |group| self.mark_id(group) <= id) - 1
    }

    /// A cursor before the first slot (live or not) whose ID is at least `id`.
    #[inline]
    pub fn seek(&self, id: StreamId) -> Cursor<'a> {
        let mut cursor = self.cursor(self.group_of(id));
        if id <= self.first && self.deleted.is_empty() {
            return cursor;
        }
        loop {
            let (at, slot, before) = (cursor.at, cursor.slot, cursor.id);
            match cursor.step() {
                Some(entry) if entry.id < id => {}
                _ => {
                    (cursor.at, cursor.slot, cursor.id) = (at, slot, before);
                    return cursor;
                }
            }
        }
    }

    /// The live entry with this ID, and the cursor behind it.
    pub fn find(&self, id: StreamId) -> Option<(Entry<'a>, Cursor<'a>)> {
        if id < self.first || id > self.last {
            return None;
        }
        let mut cursor = self.seek(id);
        let entry = cursor.step().filter(|entry| entry.id == id)?;
        (!is_set(self.deleted, cursor.slot - 1)).then_some((entry, cursor))
    }

    /// Number of live entries with an ID below `id`.
    pub fn rank(&self, id: StreamId) -> usize {
        if id <= self.first {
            0
        } else if id > self.last {
            self.live
        } else {
            let slot = self.seek(id).slot;
            slot - count_below(self.deleted, slot)
        }
    }

    /// The entry in this slot.
    pub fn at(&self, slot: usize) -> Entry<'a> {
        let mut cursor = self.cursor(slot / SLOTS_PER_MARK);
        loop {
            let entry = cursor.step().expect("a slot of this block");
            if cursor.slot > slot {
                return entry;
            }
        }
    }

    /// The slot of the `n`-th live entry, counted from 0; `n` is below `live`.
    pub fn nth_live_slot(&self, mut n: usize) -> usize {
        let mut base = 0;
        for &word in self.deleted {
            let mut live = !word;
            let here = live.count_ones() as usize;
            if n < here {
                for _ in 0..n {
                    live &= live - 1;
                }
                return base + live.trailing_zeros() as usize;
            }
            n -= here;
            base += 64;
        }
        base + n
    }

    /// Bytes of the names and values of the live entries with an ID below `bound`.
    pub fn payload_before(&self, bound: StreamId) -> u64 {
        let (mut cursor, mut sum) = (self.cursor(self.group_of(self.first)), 0);
        while let Some(entry) = cursor.next_live()
            && entry.id < bound
        {
            sum += entry.payload_bytes();
        }
        sum
    }

    /// What removing the live entry with this ID does; `None` if there is none.
    pub fn removal(&self, id: StreamId) -> Option<Removal> {
        let (entry, mut cursor) = self.find(id)?;
        let slot = cursor.slot - 1;
        let payload = entry.payload_bytes();
        let mut removal = Removal { slot, first: self.first, last: self.last, payload };
        if self.live == 1 {
            return Some(removal);
        }
        if id == self.first {
            removal.first = cursor.next_live().expect("more than one is live").id;
        } else if id == self.last {
            let live_before = slot - count_below(self.deleted, slot);
            removal.last = self.at(self.nth_live_slot(live_before - 1)).id;
        }
        Some(removal)
    }
}

/// The removal of one entry from a block.
#[derive(Clone, Copy)]
pub(super) struct Removal {
    pub slot: usize,
    /// ID of the first live entry afterwards, if any is left …
    pub first: StreamId,
    /// … and of the last.
    pub last: StreamId,
    /// Bytes of the entry's names and values.
    pub payload: u64,
}

/// A place between two slots of a block.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    view: View<'a>,
    at: usize,
    /// The slot that comes next.
    pub slot: usize,
    id: StreamId,
}

impl<'a> Cursor<'a> {
    /// A cursor with nothing behind it.
    pub fn at_end() -> Self {
        let view = View {
            bytes: &[],
            marks: &[],
            base_ms: 0,
            table: &[],
            deleted: &[],
            slots: 0,
            live: 0,
            first: StreamId::MIN,
            last: StreamId::MIN,
        };
        Cursor { view, at: 0, slot: 0, id: StreamId::MIN }
    }

    /// The next slot, deleted or not.
    #[inline(always)]
    pub fn step(&mut self) -> Option<Entry<'a>> {
        if self.slot == self.view.slots {
            return None;
        }
        let bytes = self.view.bytes;
        let mut at = self.at;
        let head = bytes[at];
        at += 1;
        let small = u64::from(head >> 5);
        let mut id = self.id;
        match head >> 3 & 3 {
            FORM_SAME_MS => id.seq += if small == SMALL_FOLLOWS { read_uint(bytes, &mut at) } else { small + 1 },
            FORM_SEQ_ZERO => {
                id.ms += if small == SMALL_FOLLOWS { read_uint(bytes, &mut at) } else { small + 1 };
                id.seq = 0;
            }
            FORM_BOTH => {
                id.ms += read_uint(bytes, &mut at);
                id.seq = read_uint(bytes, &mut at);
            }
            _ => {
                id.ms = read_uint(bytes, &mut at);
                id.seq = read_uint(bytes, &mut at);
            }
        }
        let start = at;
        let (schema, strings) = match head & 7 {
            0 => (None, 2 * read_uint(bytes, &mut at) as usize),
            number => {
                let schema: &Schema = &self.view.table[number as usize - 1];
                (Some(schema), schema.field_count())
            }
        };
        for _ in 0..strings {
            let len = read_uint(bytes, &mut at) as usize;
            at += len;
        }
        self.at = at;
        self.id = id;
        self.slot += 1;
        Some(Entry { id, schema, body: &bytes[start..], body_bytes: at - start })
    }

    /// The next live entry.
    #[inline(always)]
    pub fn next_live(&mut self) -> Option<Entry<'a>> {
        loop {
            let entry = self.step()?;
            if self.view.deleted.is_empty() || !is_set(self.view.deleted, self.slot - 1) {
                return Some(entry);
            }
        }
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.next_live()
    }
}

/// A block that takes no more entries. Its bytes never change; deleting sets a bit and, when little is left alive,
/// packs that anew.
#[derive(Clone)]
pub(super) struct Block {
    /// ID of the last live entry. (That of the first is in the span, with the others', for searching.)
    pub last: StreamId,
    base_ms: u64,
    slots: u32,
    /// Where the entries in `data` end and the marks begin.
    entry_bytes: u32,
    data: Arc<[u8]>,
    table: Table,
    deleted: Option<Box<[u64]>>,
}

impl Block {
    /// Memory of the block without the lists of field names, which blocks share.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Block>() + self.data.len() + self.deleted.as_deref().map_or(0, size_of_val)
    }

    /// A block of what has been packed, at least one entry. `before` is the table of the block before it.
    pub fn seal(packer: &mut Packer, before: Option<&Table>) -> Block {
        let entry_bytes = packer.bytes.len();
        packer.bytes.extend_from_slice(&packer.marks);
        let data = Arc::from(&packer.bytes[..]);
        packer.bytes.truncate(entry_bytes);
        let same = |table: &&Table| {
            table.len() == packer.table.len() && table.iter().zip(&packer.table).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        let table = before.filter(same).cloned().unwrap_or_else(|| Arc::from(&packer.table[..]));
        Block {
            last: packer.last,
            base_ms: packer.base_ms,
            slots: packer.slots as u32,
            entry_bytes: u32::try_from(entry_bytes).expect("a block's bytes are bounded by the largest entry"),
            data,
            table,
            deleted: None,
        }
    }

    /// For reading; the caller knows what is kept elsewhere.
    #[inline]
    pub fn view(&self, first: StreamId, live: u32) -> View<'_> {
        let (bytes, marks) = self.data.split_at(self.entry_bytes as usize);
        View {
            bytes,
            marks,
            base_ms: self.base_ms,
            table: &self.table,
            deleted: self.deleted.as_deref().unwrap_or(&[]),
            slots: self.slots as usize,
            live: live as usize,
            first,
            last: self.last,
        }
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The deletion bits, made when first needed.
    pub fn deleted_mut(&mut self) -> &mut [u64] {
        let words = (self.slots as usize).div_ceil(64);
        self.deleted.get_or_insert_with(|| vec![0; words].into())
    }

    /// Packs the live entries anew if they are but a quarter of the slots: bounds what deleted entries hold on to.
    pub fn shrink(&mut self, first: StreamId, live: u32) {
        if live <= self.slots / 4 {
            let mut packer = Packer::of(self.view(first, live), &[]);
            *self = Block::seal(&mut packer, Some(&self.table));
        }
    }

    /// The live entries of two blocks in a row as one.
    pub fn joined(first: View<'_>, second: View<'_>, before: &Table) -> Block {
        let mut packer = Packer::of(first, &[]);
        for entry in second.cursor(0) {
            packer.copy(entry, second.table);
        }
        Block::seal(&mut packer, Some(before))
    }
}
