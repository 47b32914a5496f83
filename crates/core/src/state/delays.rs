//! Entries of a stream that groups do not get before a time. They are entries like any other; only the time stands here.
//!
//! Invariants: an ID has one time. What is due leaves, a bit at a time, so a time that is over may still stand here for a
//! moment: who asks compares it with now.

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_id, put_uint};
use crate::state::pending::Pel;
use crate::state::timed::Timed;

/// Due times (Unix ms, never 0) by entry.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    all: Timed,
}

impl Delays {
    /// How many entries.
    pub fn len(&self) -> u64 {
        self.all.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Memory that they take, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Delays>() + self.all.memory_bytes()
    }

    /// An entry is not given before `due_ms`.
    pub fn put(&mut self, id: StreamId, due_ms: u64) {
        self.all.put(id, due_ms);
    }

    /// Forgets an entry.
    pub fn remove(&mut self, id: StreamId) {
        self.all.remove(id);
    }

    /// Forgets the entries below an ID. They come back to be freed.
    pub fn remove_before(&mut self, bound: StreamId) -> Pel {
        bound.prev().map_or_else(Pel::default, |last| self.all.remove_range(StreamId::MIN, last))
    }

    /// Forgets what is due up to a time, and of what is due at just that time, the entries up to an ID.
    pub fn end(&mut self, last: (u64, StreamId)) {
        let over: Vec<StreamId> = self.all.due(last.0).take_while(|&due| due <= last).map(|(_, id)| id).collect();
        over.into_iter().for_each(|id| self.remove(id));
    }

    /// The greatest ID.
    pub fn last_id(&self) -> Option<StreamId> {
        self.all.last()
    }

    /// The smallest ID.
    pub fn first_id(&self) -> Option<StreamId> {
        self.all.first()
    }

    /// All of them, to be freed.
    pub fn take(&mut self) -> Pel {
        self.all.take()
    }

    /// From an ID on, in order, with their times.
    pub fn range(&self, from: StreamId) -> impl Iterator<Item = (StreamId, u64)> {
        self.all.range(from)
    }

    /// When the first one is due.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.all.first_ms()
    }

    /// How many are due, at most `limit`, and the last of them.
    pub fn due(&self, now_ms: u64, limit: usize) -> Option<(usize, (u64, StreamId))> {
        self.all.due(now_ms).take(limit).enumerate().last().map(|(place, last)| (place + 1, last))
    }

    /// Appends them; nothing if there are none.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        put_uint(out, self.len());
        for (id, due_ms) in self.range(StreamId::MIN) {
            put_id(out, id);
            put_uint(out, due_ms);
        }
    }

    /// Reads what [`Delays::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Delays, Corrupt> {
        const WHAT: &str = "delayed entries of a stream";
        let mut delays = Delays::default();
        for _ in 0..reader.count(WHAT)? {
            let (id, due_ms) = (reader.id(WHAT)?, reader.uint(WHAT)?);
            if due_ms == 0 || delays.last_id().is_some_and(|last| last >= id) {
                return Err(Corrupt { what: WHAT });
            }
            delays.put(id, due_ms);
        }
        Ok(delays)
    }

    /// Every invariant.
    pub fn check(&self) -> Result<(), String> {
        self.all.check()?;
        match self.range(StreamId::MIN).find(|&(_, due_ms)| due_ms == 0) {
            Some((id, _)) => Err(format!("{id} is delayed until no time")),
            None => Ok(()),
        }
    }
}
