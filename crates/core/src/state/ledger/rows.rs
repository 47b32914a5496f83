//! The rows of a ledger in order, packed in chunks. What is full is never changed again, so a snapshot shares it.
//!
//! Rows are numbered from 0 over the life of the group; a number finds its row in O(log n). Inside a chunk a row is
//!
//! ```text
//! outcome and flags | ms after the chunk's | seq | entry's ms before that of the row (int) | entry's seq
//!                   | delivery | consumer's place in the chunk's list | texts
//! ```
//!
//! Invariants: numbers follow each other without a gap, IDs rise, no chunk is empty.

use std::collections::VecDeque;
use std::sync::Arc;

use super::row::{Outcome, Row};
use crate::id::StreamId;
use crate::limits::{LEDGER_CHUNK_BYTES, LEDGER_CHUNK_ROWS};
use crate::state::codec::{Reader, put_int, put_uint};

/// Rows that stand together.
#[derive(Clone, Debug)]
struct Chunk {
    /// Number of its first row.
    first: u64,
    /// Time of its first row.
    base_ms: u64,
    /// Where each row begins.
    starts: Vec<u32>,
    bytes: Vec<u8>,
    consumers: Vec<Arc<[u8]>>,
}

impl Chunk {
    fn new(first: u64, base_ms: u64) -> Chunk {
        Chunk {
            first,
            base_ms,
            starts: Vec::with_capacity(LEDGER_CHUNK_ROWS / 8),
            bytes: Vec::with_capacity(LEDGER_CHUNK_ROWS * 2),
            consumers: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.starts.len() >= LEDGER_CHUNK_ROWS || self.bytes.len() >= LEDGER_CHUNK_BYTES
    }

    fn push(&mut self, row: &Row<'_>) {
        let consumer = match self.consumers.iter().position(|known| **known == *row.consumer) {
            Some(place) => place,
            None => {
                self.consumers.push(row.consumer.into());
                self.consumers.len() - 1
            }
        };
        self.starts.push(self.bytes.len() as u32);
        let (head, out) = (row.head(), &mut self.bytes);
        out.push(head);
        put_uint(out, row.id.ms - self.base_ms);
        put_uint(out, row.id.seq);
        put_int(out, row.id.ms.wrapping_sub(row.entry.ms) as i64);
        put_uint(out, row.entry.seq);
        put_uint(out, row.delivery);
        put_uint(out, consumer as u64);
        row.put_texts(head, out);
    }

    fn row(&self, place: usize) -> Row<'_> {
        self.read(place).expect("a row is read as it was written")
    }

    fn read(&self, place: usize) -> Option<Row<'_>> {
        const WHAT: &str = "row of a ledger";
        let mut reader = Reader::new(&self.bytes[self.starts[place] as usize..]);
        let head = reader.byte(WHAT).ok()?;
        let ms = self.base_ms + reader.uint(WHAT).ok()?;
        let id = StreamId { ms, seq: reader.uint(WHAT).ok()? };
        let entry_ms = ms.wrapping_sub(reader.int(WHAT).ok()? as u64);
        let entry = StreamId { ms: entry_ms, seq: reader.uint(WHAT).ok()? };
        let mut row = Row::new(id, Outcome::of(head & 15)?, entry);
        row.delivery = reader.uint(WHAT).ok()?;
        row.consumer = self.consumers.get(reader.uint(WHAT).ok()? as usize)?;
        row.read_texts(head, &mut reader).ok()?;
        Some(row)
    }

    fn memory_bytes(&self) -> usize {
        let consumers = self.consumers.iter().map(|name| size_of::<Arc<[u8]>>() + 2 * size_of::<usize>() + name.len());
        size_of::<Chunk>()
            + self.bytes.capacity()
            + self.starts.capacity() * size_of::<u32>()
            + consumers.sum::<usize>()
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    chunks: VecDeque<Arc<Chunk>>,
    /// Number of the first row that is kept.
    first: u64,
    /// Number of the next row.
    next: u64,
}

impl Rows {
    /// No rows, and there never were any.
    pub const NEW: Rows = Rows { chunks: VecDeque::new(), first: 0, next: 0 };

    /// No rows, the next of which has this number.
    pub fn from(first: u64) -> Rows {
        Rows { chunks: VecDeque::new(), first, next: first }
    }

    /// Number of the first row that is kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number of the next row.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Appends a row, whose ID is beyond that of all others; answers its number.
    pub fn push(&mut self, row: &Row<'_>) -> u64 {
        let number = self.next;
        let full = self.chunks.back().is_none_or(|chunk| chunk.is_full());
        if full {
            if let Some(last) = self.chunks.back_mut().map(Arc::make_mut) {
                last.bytes.shrink_to_fit();
                last.starts.shrink_to_fit();
                last.consumers.shrink_to_fit();
            }
            self.chunks.push_back(Arc::new(Chunk::new(number, row.id.ms)));
        }
        if let Some(last) = self.chunks.back_mut().map(Arc::make_mut) {
            last.push(row);
        }
        self.next += 1;
        number
    }

    /// The row of a number that is kept.
    pub fn get(&self, number: u64) -> Option<Row<'_>> {
        if number < self.first || number >= self.next {
            return None;
        }
        let at = self.chunks.partition_point(|chunk| chunk.first <= number).checked_sub(1)?;
        let chunk = &self.chunks[at];
        Some(chunk.row((number - chunk.first) as usize))
    }

    /// Number of the first kept row that is not before an ID.
    pub fn number_at(&self, id: StreamId) -> u64 {
        // A chunk that begins later than the ID has nothing before it.
        let begins = |chunk: &Arc<Chunk>| chunk.row(0).id < id;
        let Some(at) = self.chunks.partition_point(begins).checked_sub(1) else { return self.first };
        let chunk = &self.chunks[at];
        let (mut low, mut high) = (0, chunk.starts.len());
        while low < high {
            let middle = (low + high) / 2;
            if chunk.row(middle).id < id { low = middle + 1 } else { high = middle }
        }
        (chunk.first + low as u64).max(self.first)
    }

    /// Rows from a number on, with their numbers.
    pub fn range(&self, from: u64) -> impl Iterator<Item = (u64, Row<'_>)> {
        let from = from.max(self.first);
        let at = self.chunks.partition_point(|chunk| chunk.first <= from).saturating_sub(1);
        self.chunks.range(at.min(self.chunks.len())..).flat_map(move |chunk| {
            let start = from.saturating_sub(chunk.first) as usize;
            (start..chunk.starts.len()).map(move |place| (chunk.first + place as u64, chunk.row(place)))
        })
    }

    /// Forgets the rows before a number.
    pub fn forget(&mut self, before: u64) {
        self.first = before.clamp(self.first, self.next);
        while let Some(chunk) = self.chunks.front()
            && chunk.first + chunk.starts.len() as u64 <= self.first
        {
            self.chunks.pop_front();
        }
        if self.chunks.len() * 4 <= self.chunks.capacity() {
            self.chunks.shrink_to(self.chunks.len() * 2);
        }
    }

    /// Frees a part, at most `most` chunks, of what nobody uses any more; answers whether there is more.
    pub fn free_some(&mut self, most: usize) -> bool {
        for _ in 0..most {
            self.chunks.pop_front();
        }
        !self.chunks.is_empty()
    }

    /// Memory that they take, in bytes, without the allocator's share. Looks at every chunk.
    pub fn memory_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| chunk.memory_bytes() + 2 * size_of::<usize>());
        chunks.sum::<usize>() + self.chunks.capacity() * size_of::<Arc<Chunk>>()
    }

    /// Every invariant.
    pub fn check(&self) -> Result<(), String> {
        let (mut number, mut last) = (self.chunks.front().map_or(self.next, |chunk| chunk.first), None);
        if number > self.first {
            return Err(format!("rows begin with {number}, noted as {}", self.first));
        }
        for chunk in &self.chunks {
            if chunk.first != number || chunk.starts.is_empty() {
                return Err(format!("a chunk of the ledger does not follow the one before row {number}"));
            }
            for place in 0..chunk.starts.len() {
                let row = chunk.read(place).ok_or_else(|| format!("row {number} of the ledger cannot be read"))?;
                if last.is_some_and(|last| last >= row.id) {
                    return Err(format!("row {} of the ledger is out of order", row.id));
                }
                last = Some(row.id);
                number += 1;
            }
        }
        if number == self.next { Ok(()) } else { Err(format!("rows end with {number}, noted as {}", self.next)) }
    }
}
