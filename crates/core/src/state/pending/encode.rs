//! A pending entries list as bytes. Equal contents give equal bytes, whatever the shape of the tree.
//!
//! ```text
//! list   count:uint  run ...
//! run    length:byte (1..=127)  consumer:uint  delivered:int (distance from the run before)  deliveries:uint  id ...
//! id     ms:uint (distance from the id before)  seq:uint (ms distance 0: distance from the one before, less 1)
//! ```
//!
//! A run is as long as consumer, time and deliveries stay the same, up to 127 entries; so its length is one byte, which
//! can be filled in afterwards. Before the first run the time is 0, before the first ID there is none, and it is whole.

use super::chunk::Chunk;
use super::node::{ChunkRef, NodeRef};
use super::{ConsumerRef, Pel, Pending};
use crate::id::StreamId;
use crate::limits::{CHUNKS_PER_NODE, PENDING_PER_CHUNK};
use crate::state::codec::{Corrupt, Reader, put_id, put_int, put_uint};

const RUN_MAX: u8 = 127;

impl Pel {
    /// Appends the list.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uint(out, self.len());
        let mut before: Option<Pending> = None;
        // Where the length of the present run stands.
        let mut length_at = 0;
        for entry in self.range(StreamId::MIN) {
            let goes_on = before.is_some_and(|before| belongs_together(&before, &entry)) && out[length_at] < RUN_MAX;
            if !goes_on {
                length_at = out.len();
                out.push(0);
                put_uint(out, u64::from(entry.consumer.0));
                let time_before = before.map_or(0, |before| before.delivered_ms);
                put_int(out, entry.delivered_ms.wrapping_sub(time_before) as i64);
                put_uint(out, entry.deliveries);
            }
            out[length_at] += 1;
            match before {
                None => put_id(out, entry.id),
                Some(before) if before.id.ms == entry.id.ms => {
                    put_uint(out, 0);
                    put_uint(out, entry.id.seq - before.id.seq - 1);
                }
                Some(before) => {
                    put_uint(out, entry.id.ms - before.id.ms);
                    put_uint(out, entry.id.seq);
                }
            }
            before = Some(entry);
        }
    }

    /// Reads a list back. Refuses IDs that do not ascend, runs that should be one, totals that are not met. Takes memory
    /// only for entries that it has read.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Pel, Corrupt> {
        let corrupt = Corrupt { what: "pending entries" };
        let total = reader.count(corrupt.what)? as u64;
        let mut pel = Pel { len: total, ..Pel::default() };
        let mut chunks: Vec<ChunkRef> = Vec::new();
        let mut buffer: Vec<Pending> = Vec::new();
        let mut before: Option<Pending> = None;
        let mut left = total;
        // The length of the run before; 127 lets the next one go on with the same values.
        let mut length_before = RUN_MAX;
        while left > 0 {
            let length = reader.byte(corrupt.what)?;
            if length == 0 || length > RUN_MAX || u64::from(length) > left {
                return Err(corrupt);
            }
            left -= u64::from(length);
            let consumer = u32::try_from(reader.uint(corrupt.what)?).map_err(|_| corrupt)?;
            let distance = reader.int(corrupt.what)?;
            let delivered_ms = before.map_or(0, |before| before.delivered_ms).wrapping_add(distance as u64);
            let deliveries = reader.uint(corrupt.what)?;
            let mut entry = Pending { id: StreamId::MIN, consumer: ConsumerRef(consumer), delivered_ms, deliveries };
            if length_before < RUN_MAX && before.is_some_and(|before| belongs_together(&before, &entry)) {
                return Err(corrupt);
            }
            length_before = length;
            for _ in 0..length {
                let read = reader.id(corrupt.what)?;
                entry.id = match before {
                    None => read,
                    Some(before) if read.ms == 0 => {
                        let seq = before.id.seq.checked_add(1).and_then(|seq| seq.checked_add(read.seq));
                        StreamId::new(before.id.ms, seq.ok_or(corrupt)?)
                    }
                    Some(before) => StreamId::new(before.id.ms.checked_add(read.ms).ok_or(corrupt)?, read.seq),
                };
                before = Some(entry);
                buffer.push(entry);
                if buffer.len() == PENDING_PER_CHUNK {
                    chunks.push(ChunkRef::of(Chunk::from_entries(&buffer)));
                    buffer.clear();
                }
                if chunks.len() == CHUNKS_PER_NODE {
                    pel.nodes.push(NodeRef::of_chunks(std::mem::take(&mut chunks)));
                }
            }
        }
        if !buffer.is_empty() {
            chunks.push(ChunkRef::of(Chunk::from_entries(&buffer)));
        }
        if !chunks.is_empty() {
            pel.nodes.push(NodeRef::of_chunks(chunks));
        }
        Ok(pel)
    }
}

fn belongs_together(a: &Pending, b: &Pending) -> bool {
    (a.consumer, a.delivered_ms, a.deliveries) == (b.consumer, b.delivered_ms, b.deliveries)
}
