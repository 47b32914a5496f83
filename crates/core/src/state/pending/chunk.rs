//! A chunk: up to `PENDING_PER_CHUNK` pending entries in ID order, as five packed columns in one buffer.
//!
//! ```text
//! data:  | ms × capacity | seq × capacity | delivered × capacity | consumer × capacity | deliveries × capacity | padding |
//! ```
//!
//! Each column takes `capacity * width` bytes, of which the first `len * width` are in use. Column by column, because a
//! search then touches one short run of bytes and the smallest delivery time is found several values at a time; in one
//! buffer, because five would cost more in allocations than they hold.
//!
//! A chunk never looks beyond itself: where it stands in the tree and what the tree knows of it is `node.rs`.

use super::column::{Frame, PADDING_BYTES, Values, View, extremes};
use super::{ConsumerRef, Pending};
use crate::id::StreamId;
use crate::limits::PENDING_PER_CHUNK;

const MS: usize = 0;
const SEQ: usize = 1;
const DELIVERED: usize = 2;
const CONSUMER: usize = 3;
const DELIVERIES: usize = 4;
const COLUMNS: usize = 5;

/// Capacities are multiples of this, but for the greatest.
const CAPACITY_STEP: usize = 8;

// `len` and `capacity` are bytes.
const _: () = assert!(PENDING_PER_CHUNK <= u8::MAX as usize);

/// What one entry has in each column.
type Row = [u64; COLUMNS];

#[inline]
fn row(p: &Pending) -> Row {
    [p.id.ms, p.id.seq, p.delivered_ms, u64::from(p.consumer.0), p.deliveries]
}

/// See the module. Never empty while it is in a tree.
#[derive(Clone)]
pub(super) struct Chunk {
    bases: [u64; COLUMNS],
    data: Box<[u8]>,
    widths: [u8; COLUMNS],
    len: u8,
    capacity: u8,
}

/// What all entries of one delivery have in common.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    pub consumer: ConsumerRef,
    pub delivered_ms: u64,
    pub deliveries: u64,
}

impl Chunk {
    /// A chunk of exactly these entries, in exactly as much memory as they need. They ascend; there is at least one.
    pub fn from_entries(entries: &[Pending]) -> Chunk {
        let mut columns = [[0; PENDING_PER_CHUNK]; COLUMNS];
        for (index, entry) in entries.iter().enumerate() {
            for (column, value) in columns.iter_mut().zip(row(entry)) {
                column[index] = value;
            }
        }
        Chunk::from_columns(entries.len(), &columns)
    }

    fn from_columns(len: usize, columns: &[Values; COLUMNS]) -> Chunk {
        debug_assert!(len > 0 && len <= PENDING_PER_CHUNK);
        let frames = columns.each_ref().map(|values| {
            let (low, high) = extremes(&values[..len]);
            Frame::tight(low, high)
        });
        let mut chunk = Chunk::blank(len, frames);
        chunk.len = len as u8;
        for (column, values) in columns.iter().enumerate() {
            let offset = chunk.offset(column);
            frames[column].write_all(&mut chunk.data[offset..], &values[..len]);
        }
        chunk
    }

    /// A chunk of one delivery: `ids` ascend, there is at least one and at most `PENDING_PER_CHUNK`.
    pub fn from_run(ids: &[StreamId], shared: Shared) -> Chunk {
        let mut chunk = Chunk::blank(0, [Frame::default(); COLUMNS]);
        chunk.push_run(ids, shared);
        chunk
    }

    fn blank(capacity: usize, frames: [Frame; COLUMNS]) -> Chunk {
        let stride: usize = frames.iter().map(|frame| usize::from(frame.width)).sum();
        Chunk {
            bases: frames.map(|frame| frame.base),
            data: vec![0; capacity * stride + PADDING_BYTES].into_boxed_slice(),
            widths: frames.map(|frame| frame.width),
            len: 0,
            capacity: capacity as u8,
        }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    fn frame(&self, column: usize) -> Frame {
        Frame { base: self.bases[column], width: self.widths[column] }
    }

    fn frames(&self) -> [Frame; COLUMNS] {
        std::array::from_fn(|column| self.frame(column))
    }

    /// Where `column` begins in `data`.
    #[inline]
    fn offset(&self, column: usize) -> usize {
        let widths: usize = self.widths[..column].iter().map(|width| usize::from(*width)).sum();
        widths * usize::from(self.capacity)
    }

    #[inline]
    fn view(&self, column: usize) -> View<'_> {
        let (frame, offset) = (self.frame(column), self.offset(column));
        View { frame, bytes: &self.data[offset..], len: self.len() }
    }

    /// The ID at `index`.
    #[inline]
    pub fn id(&self, index: usize) -> StreamId {
        StreamId { ms: self.view(MS).get(index), seq: self.view(SEQ).get(index) }
    }

    /// All delivery times, in the order of the entries.
    #[inline]
    pub fn times(&self) -> impl Iterator<Item = u64> + '_ {
        let view = self.view(DELIVERED);
        (0..self.len()).map(move |index| view.get(index))
    }

    /// The entry at `index`.
    #[inline]
    pub fn entry(&self, index: usize) -> Pending {
        Pending {
            id: self.id(index),
            consumer: ConsumerRef(self.view(CONSUMER).get(index) as u32),
            delivered_ms: self.view(DELIVERED).get(index),
            deliveries: self.view(DELIVERIES).get(index),
        }
    }

    /// All entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = Pending> + '_ {
        (0..self.len()).map(|index| self.entry(index))
    }

    /// All owners, in the order of the entries.
    pub fn consumers(&self) -> impl Iterator<Item = ConsumerRef> + '_ {
        let view = self.view(CONSUMER);
        (0..self.len()).map(move |index| ConsumerRef(view.get(index) as u32))
    }

    /// The one owner of all entries, if the columns say so.
    pub fn only_consumer(&self) -> Option<ConsumerRef> {
        (self.widths[CONSUMER] == 0).then_some(ConsumerRef(self.bases[CONSUMER] as u32))
    }

    /// The index of `id`, or where it would stand.
    #[inline]
    pub fn find(&self, id: StreamId) -> Result<usize, usize> {
        let ms = self.view(MS);
        let from = ms.lower_bound(0, ms.len, id.ms);
        if from == ms.len || ms.get(from) != id.ms {
            return Err(from);
        }
        let seq = self.view(SEQ);
        if seq.get(from) >= id.seq {
            return if seq.get(from) == id.seq { Ok(from) } else { Err(from) };
        }
        let to = match id.ms.checked_add(1) {
            Some(above) => ms.lower_bound(from, ms.len, above),
            None => ms.len,
        };
        let index = seq.lower_bound(from, to, id.seq);
        if index < to && seq.get(index) == id.seq { Ok(index) } else { Err(index) }
    }

    /// The smallest delivery time.
    #[inline]
    pub fn min_time(&self) -> u64 {
        self.view(DELIVERED).min()
    }

    /// Has `consumer` an entry here?
    pub fn has_consumer(&self, consumer: ConsumerRef) -> bool {
        self.view(CONSUMER).contains(u64::from(consumer.0))
    }

    /// The first index from `from` on whose entry was delivered at or before `bound_ms` and is of `consumer`, if given.
    pub fn next_match(&self, from: usize, bound_ms: u64, consumer: Option<ConsumerRef>) -> Option<usize> {
        let times = self.view(DELIVERED);
        match consumer {
            None if bound_ms == u64::MAX => (from < self.len()).then_some(from),
            None => (from..self.len()).find(|index| times.get(*index) <= bound_ms),
            Some(consumer) => {
                let (owners, wanted) = (self.view(CONSUMER), u64::from(consumer.0));
                (from..self.len()).find(|index| owners.get(*index) == wanted && times.get(*index) <= bound_ms)
            }
        }
    }

    /// Puts an entry in at `index`, where [`Chunk::find`] says it belongs. There must be room for one more.
    pub fn insert(&mut self, index: usize, entry: &Pending) {
        let row = row(entry);
        self.fit(&row, &row, None, 1);
        let len = self.len();
        for (column, value) in row.into_iter().enumerate() {
            let (frame, offset) = (self.frame(column), self.offset(column));
            let width = usize::from(frame.width);
            if width > 0 {
                let bytes = &mut self.data[offset..];
                if index < len {
                    bytes.copy_within(index * width..len * width, (index + 1) * width);
                }
                frame.write(bytes, index, value);
            }
        }
        self.len += 1;
    }

    /// Replaces the entry at `index` by one of the same ID.
    pub fn replace(&mut self, index: usize, entry: &Pending) {
        let row = row(entry);
        self.fit(&row, &row, Some(index), 0);
        for (column, value) in row.into_iter().enumerate().skip(DELIVERED) {
            let offset = self.offset(column);
            self.frame(column).write(&mut self.data[offset..], index, value);
        }
    }

    /// Appends the IDs of one delivery: ascending, above all that are here, and no more than there is room for.
    pub fn push_run(&mut self, ids: &[StreamId], shared: Shared) {
        let (first, last) = match ids {
            [] => return,
            [id] => {
                let Shared { consumer, delivered_ms, deliveries } = shared;
                self.insert(self.len(), &Pending { id: *id, consumer, delivered_ms, deliveries });
                return self.seal();
            }
            [first, .., last] => (first, last),
        };
        let (seq_low, seq_high) = ids.iter().fold((u64::MAX, 0), |(low, high), id| (id.seq.min(low), id.seq.max(high)));
        let consumer = u64::from(shared.consumer.0);
        let low = [first.ms, seq_low, shared.delivered_ms, consumer, shared.deliveries];
        let high = [last.ms, seq_high, shared.delivered_ms, consumer, shared.deliveries];
        self.fit(&low, &high, None, ids.len());
        // Whole columns: far quicker than row by row.
        let mut values = [0; PENDING_PER_CHUNK];
        let values = &mut values[..ids.len()];
        for (column, value) in low.into_iter().enumerate() {
            let (frame, offset) = (self.frame(column), self.offset(column));
            if frame.width == 0 {
                continue;
            }
            match column {
                MS => values.iter_mut().zip(ids).for_each(|(value, id)| *value = id.ms),
                SEQ => values.iter_mut().zip(ids).for_each(|(value, id)| *value = id.seq),
                _ => values.fill(value),
            }
            let end = offset + self.len() * usize::from(frame.width);
            frame.write_all(&mut self.data[end..], values);
        }
        self.len += ids.len() as u8;
        self.seal();
    }

    /// A chunk that appending has filled is not appended to again: now is the time to pack it well.
    fn seal(&mut self) {
        if self.len() == PENDING_PER_CHUNK {
            self.tighten(PENDING_PER_CHUNK);
        }
    }

    /// Takes the entry at `index` out.
    pub fn remove(&mut self, index: usize) -> Pending {
        let entry = self.entry(index);
        let len = self.len();
        for column in 0..COLUMNS {
            let (width, offset) = (usize::from(self.widths[column]), self.offset(column));
            if width > 0 && index + 1 < len {
                self.data.copy_within(offset + (index + 1) * width..offset + len * width, offset + index * width);
            }
        }
        self.len -= 1;
        // Half empty: give memory back, with a little room left so that the next append does not ask for it again.
        let capacity = usize::from(self.capacity);
        if self.len > 0 && capacity > CAPACITY_STEP && self.len() * 2 <= capacity {
            self.tighten((self.len() * 5 / 4).next_multiple_of(CAPACITY_STEP).min(capacity));
        }
        entry
    }

    /// Keeps the entries before `at` and returns the others as a chunk of their own. Both get at least one.
    pub fn split_off(&mut self, at: usize) -> Chunk {
        let entries: Vec<Pending> = self.entries().collect();
        *self = Chunk::from_entries(&entries[..at]);
        Chunk::from_entries(&entries[at..])
    }

    /// The entries of both, `self` before `right`, in one chunk. There must be room.
    pub fn joined(&self, right: &Chunk) -> Chunk {
        let len = self.len() + right.len();
        let mut columns = [[0; PENDING_PER_CHUNK]; COLUMNS];
        let mut buffer = [0; PENDING_PER_CHUNK];
        for (column, values) in columns.iter_mut().enumerate() {
            self.view(column).read_all(values);
            right.view(column).read_all(&mut buffer);
            values[self.len()..len].copy_from_slice(&buffer[..right.len()]);
        }
        Chunk::from_columns(len, &columns)
    }

    /// Makes the columns able to hold values between `low` and `high`, and the buffer `more` further entries. The entry at
    /// `replaced` is about to be overwritten: its present values do not count and may be lost.
    fn fit(&mut self, low: &Row, high: &Row, replaced: Option<usize>, more: usize) {
        let mut frames = self.frames();
        let mut changed = false;
        for column in 0..COLUMNS {
            let (low, high) = (low[column], high[column]);
            if self.len == 0 {
                frames[column] = Frame::tight(low, high);
                changed = true;
            } else if !frames[column].holds(low, high) {
                frames[column] = self.wider_frame(column, low, high, replaced);
                changed = true;
            }
        }
        let (needed, mut capacity) = (self.len() + more, usize::from(self.capacity));
        if needed > capacity {
            // One at a time: half as much again. A whole delivery: what it needs.
            let grown = needed.max(self.len() * 3 / 2);
            capacity = grown.next_multiple_of(CAPACITY_STEP).min(PENDING_PER_CHUNK);
            changed = true;
        }
        debug_assert!(needed <= capacity);
        if changed {
            self.pack(capacity, frames);
        }
    }

    #[cold]
    fn wider_frame(&self, column: usize, low: u64, high: u64, replaced: Option<usize>) -> Frame {
        let mut values: Values = [0; PENDING_PER_CHUNK];
        self.view(column).read_all(&mut values);
        if let Some(index) = replaced {
            values[index] = low;
        }
        let (least, greatest) = extremes(&values[..self.len()]);
        self.frame(column).successor(least.min(low), greatest.max(high))
    }

    /// Packs each column as tightly as its values allow, in a buffer for `capacity` entries.
    fn tighten(&mut self, capacity: usize) {
        let mut values: Values = [0; PENDING_PER_CHUNK];
        let mut frames = self.frames();
        let mut changed = capacity != usize::from(self.capacity);
        for (column, frame) in frames.iter_mut().enumerate().filter(|(_, frame)| frame.width > 0) {
            self.view(column).read_all(&mut values);
            let (low, high) = extremes(&values[..self.len()]);
            let tight = Frame::tight(low, high);
            if tight.width < frame.width {
                *frame = tight;
                changed = true;
            }
        }
        if changed {
            self.pack(capacity, frames);
        }
    }

    /// Moves everything to a new buffer.
    fn pack(&mut self, capacity: usize, frames: [Frame; COLUMNS]) {
        let mut packed = Chunk::blank(capacity, frames);
        let mut values: Values = [0; PENDING_PER_CHUNK];
        for (column, frame) in frames.into_iter().enumerate() {
            let (view, offset) = (self.view(column), packed.offset(column));
            if view.frame == frame {
                packed.data[offset..][..view.packed().len()].copy_from_slice(view.packed());
            } else {
                view.read_all(&mut values);
                frame.write_all(&mut packed.data[offset..], &values[..self.len()]);
            }
        }
        packed.len = self.len;
        *self = packed;
    }

    /// All memory of a chunk that stands behind an `Arc`.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Chunk>() + 2 * size_of::<usize>() + self.data.len()
    }

    /// Everything that must hold of a chunk alone.
    pub fn check(&self) -> Result<(), String> {
        if self.len == 0 || self.len > self.capacity || usize::from(self.capacity) > PENDING_PER_CHUNK {
            return Err(format!("a chunk of {} entries with room for {}", self.len, self.capacity));
        }
        if let Some(frame) = self.frames().into_iter().find(|frame| !frame.is_valid()) {
            return Err(format!("a column of width {}", frame.width));
        }
        let needed = self.offset(COLUMNS) + PADDING_BYTES;
        if self.data.len() != needed {
            return Err(format!("a chunk of {} bytes instead of {needed}", self.data.len()));
        }
        for column in 0..COLUMNS {
            let view = self.view(column);
            let limit = if column == CONSUMER { u64::from(u32::MAX) } else { u64::MAX };
            if let Some(value) = (0..view.len).map(|index| view.get(index)).find(|v| *v < view.frame.base || *v > limit)
            {
                return Err(format!("value {value} in column {column} of base {}", view.frame.base));
            }
        }
        for index in 1..self.len() {
            if self.id(index - 1) >= self.id(index) {
                return Err(format!("{} stands before {}", self.id(index - 1), self.id(index)));
            }
        }
        Ok(())
    }
}
