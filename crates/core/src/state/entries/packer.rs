//! Writing the bytes of a block: entries are packed one behind the other, in ID order. What the bytes mean is drawn in
//! `block`; they are a function of the entries alone.

use std::sync::Arc;

use super::block::{FORM_BOTH, FORM_MARK, FORM_SAME_MS, FORM_SEQ_ZERO, SMALL_FOLLOWS, View, put_mark};
use super::entry::Entry;
use super::schema::Schema;
use crate::id::StreamId;
use crate::limits::{SCHEMAS_PER_BLOCK, SLOTS_PER_MARK};
use crate::state::codec::put_uint;

/// Bytes that a varint takes.
#[inline]
fn uint_bytes(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Packs entries into the bytes of a block.
#[derive(Clone, Default)]
pub(super) struct Packer {
    pub bytes: Vec<u8>,
    pub marks: Vec<u8>,
    pub table: Vec<Arc<Schema>>,
    pub slots: usize,
    /// Milliseconds of the first slot.
    pub base_ms: u64,
    /// ID of the last slot.
    pub last: StreamId,
}

impl Packer {
    /// Number of the schema in the table that has exactly these names; 0 if none has.
    #[inline]
    pub fn number_of<'a>(&self, names: impl Iterator<Item = &'a [u8]> + Clone) -> usize {
        self.table.iter().position(|schema| schema.matches(names.clone())).map_or(0, |at| at + 1)
    }

    /// Appends an entry, whose ID is greater than the last one's. `number` is what [`Packer::number_of`] answered for
    /// its names; `known` are schemas of a neighbour, to be shared instead of made anew.
    #[inline]
    pub fn push<'a>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        mut number: usize,
        known: &[Arc<Schema>],
    ) {
        if number == 0 && self.table.len() < SCHEMAS_PER_BLOCK {
            let names = fields.clone().map(|(name, _)| name);
            let schema = known.iter().find(|schema| schema.matches(names.clone())).cloned();
            self.table.push(schema.unwrap_or_else(|| Arc::new(Schema::new(names))));
            number = self.table.len();
        }
        self.put_id(id, number as u8);
        let bytes = &mut self.bytes;
        if number == 0 {
            put_uint(bytes, fields.clone().count() as u64);
            for (name, value) in fields {
                put_string(bytes, name);
                put_string(bytes, value);
            }
        } else {
            for (_, value) in fields {
                put_string(bytes, value);
            }
        }
        self.slots += 1;
        self.last = id;
    }

    /// The head of a slot and its ID.
    #[inline]
    fn put_id(&mut self, id: StreamId, number: u8) {
        let bytes = &mut self.bytes;
        let head = |form: u8, small: u64| number | form << 3 | (small as u8) << 5;
        if self.slots.is_multiple_of(SLOTS_PER_MARK) {
            if self.slots > 0 {
                put_mark(&mut self.marks, bytes.len(), id.ms, self.base_ms);
            } else {
                self.base_ms = id.ms;
            }
            bytes.push(head(FORM_MARK, 0));
            put_uint(bytes, id.ms);
            put_uint(bytes, id.seq);
        } else if id.ms == self.last.ms {
            let delta = id.seq - self.last.seq;
            if delta <= SMALL_FOLLOWS {
                bytes.push(head(FORM_SAME_MS, delta - 1));
            } else {
                bytes.push(head(FORM_SAME_MS, SMALL_FOLLOWS));
                put_uint(bytes, delta);
            }
        } else {
            let delta = id.ms - self.last.ms;
            if id.seq != 0 {
                bytes.push(head(FORM_BOTH, 0));
                put_uint(bytes, delta);
                put_uint(bytes, id.seq);
            } else if delta <= SMALL_FOLLOWS {
                bytes.push(head(FORM_SEQ_ZERO, delta - 1));
            } else {
                bytes.push(head(FORM_SEQ_ZERO, SMALL_FOLLOWS));
                put_uint(bytes, delta);
            }
        }
    }

    /// Appends an entry of another block.
    pub fn copy(&mut self, entry: Entry<'_>, known: &[Arc<Schema>]) {
        let number = self.number_of(entry.fields().map(|(name, _)| name));
        self.push(entry.id, entry.fields(), number, known);
    }

    /// The live entries of a block, packed anew. `table` is what the schema table begins with.
    pub fn of(view: View<'_>, table: &[Arc<Schema>]) -> Packer {
        let mut packer = Packer { table: table.to_vec(), ..Packer::default() };
        for entry in view.cursor(0) {
            packer.copy(entry, view.table);
        }
        packer
    }

    /// Forgets the entries, not the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.marks.clear();
        self.table.clear();
        self.slots = 0;
        self.last = StreamId::MIN;
    }
}

#[inline]
fn put_string(bytes: &mut Vec<u8>, string: &[u8]) {
    put_uint(bytes, string.len() as u64);
    bytes.extend_from_slice(string);
}

/// How large an entry is.
pub(super) struct Size {
    /// Bytes of its names and values.
    pub payload: u64,
    names: usize,
    values: usize,
}

impl Size {
    /// Of an entry of these fields.
    #[inline]
    pub fn of<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let string = |string: &[u8]| uint_bytes(string.len()) + string.len();
        let mut size = Size { payload: 0, names: 0, values: 0 };
        for (name, value) in fields {
            size.payload += (name.len() + value.len()) as u64;
            size.names += string(name);
            size.values += string(value);
        }
        size
    }

    /// What it counts against `stream-node-max-bytes`: its values, its names unless the block has them already, and two
    /// bytes for head and ID. (Not the exact bytes, which depend on the place; but the same for the same entry.)
    #[inline]
    pub fn cost(&self, with_names: bool) -> usize {
        2 + self.values + if with_names { self.names } else { 0 }
    }
}
