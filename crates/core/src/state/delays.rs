//! Entries of a stream that groups do not get before a time. They are entries like any other; only the time stands here.
//!
//! Invariants: an ID has one time, and both indexes hold the same. What is due leaves, a bit at a time, so a time that is
//! over may still stand here for a moment: who asks compares it with now.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_id, put_uint};

/// Due times (Unix ms, never 0) by entry.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    by_id: BTreeMap<StreamId, u64>,
    by_due: BTreeSet<(u64, StreamId)>,
}

impl Delays {
    /// How many entries.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Memory that they take, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Delays>() + self.len() * 2 * size_of::<(u64, StreamId)>()
    }

    /// An entry is not given before `due_ms`.
    pub fn put(&mut self, id: StreamId, due_ms: u64) {
        if let Some(old_ms) = self.by_id.insert(id, due_ms) {
            self.by_due.remove(&(old_ms, id));
        }
        self.by_due.insert((due_ms, id));
    }

    /// Forgets an entry.
    pub fn remove(&mut self, id: StreamId) {
        if let Some(due_ms) = self.by_id.remove(&id) {
            self.by_due.remove(&(due_ms, id));
        }
    }

    /// Forgets the entries below an ID.
    pub fn remove_before(&mut self, bound: StreamId) {
        while let Some((&id, _)) = self.by_id.first_key_value().filter(|&(&id, _)| id < bound) {
            self.remove(id);
        }
    }

    /// Forgets what is due up to a time, and of what is due at just that time, the entries up to an ID.
    pub fn end(&mut self, last: (u64, StreamId)) {
        while let Some(&(due_ms, id)) = self.by_due.first().filter(|&&first| first <= last) {
            self.by_due.remove(&(due_ms, id));
            self.by_id.remove(&id);
        }
    }

    /// The greatest ID.
    pub fn last_id(&self) -> Option<StreamId> {
        self.by_id.last_key_value().map(|(&id, _)| id)
    }

    /// The smallest ID.
    pub fn first_id(&self) -> Option<StreamId> {
        self.by_id.first_key_value().map(|(&id, _)| id)
    }

    /// The ID that so many stand before.
    pub fn nth_id(&self, n: usize) -> Option<StreamId> {
        if n < self.len() { self.by_id.keys().nth(n).copied() } else { None }
    }

    /// Frees a part, at most `most`, of what nobody uses any more; answers whether there is more.
    pub fn free_some(&mut self, most: usize) -> bool {
        for _ in 0..most {
            self.by_id.pop_first();
            self.by_due.pop_first();
        }
        !(self.by_id.is_empty() && self.by_due.is_empty())
    }

    /// From an ID on, in order, with their times.
    pub fn range(&self, from: StreamId) -> impl Iterator<Item = (StreamId, u64)> {
        self.by_id.range(from..).map(|(&id, &due_ms)| (id, due_ms))
    }

    /// When the first one is due.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.by_due.first().map(|&(due_ms, _)| due_ms)
    }

    /// How many are due, at most `limit`, and the last of them.
    pub fn due(&self, now_ms: u64, limit: usize) -> Option<(usize, (u64, StreamId))> {
        let due = self.by_due.iter().take_while(|&&(due_ms, _)| due_ms <= now_ms).take(limit);
        due.enumerate().last().map(|(place, &last)| (place + 1, last))
    }

    /// Appends them; nothing if there are none.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        put_uint(out, self.len() as u64);
        for (&id, &due_ms) in &self.by_id {
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
        let indexed = self.by_id.iter().all(|(&id, &due_ms)| due_ms > 0 && self.by_due.contains(&(due_ms, id)));
        if indexed && self.by_due.len() == self.by_id.len() {
            Ok(())
        } else {
            Err("delayed entries and their times differ".to_owned())
        }
    }
}
