//! What a group has passed over: entries at or before its position that it has not given yet. Each is held for one of
//! two reasons: it is *delayed* until a time, or it is *waiting* behind its key (KEYFIELD), because an entry of the same
//! key is pending.
//!
//! With KEYFIELD each key that is in use has a lane: how many of its entries are pending, and which wait, in stream order.
//! The first that waits in a lane without pending entries is *ready*: it may be given. What waits without a key (the
//! option was turned off meanwhile) is ready, too.
//!
//! Invariants (`check`): an entry is held once and never pending at the same time; `ready` is what follows from the
//! lanes; a lane is there only as long as it has something.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_bytes, put_id, put_uint};
use crate::state::entries::Entry;
use crate::state::pending::Pel;
use crate::state::timed::Timed;

/// The key of an entry: the value of its first field of that name.
pub fn key_of<'e>(entry: &Entry<'e>, field: &[u8]) -> Option<&'e [u8]> {
    entry.fields().find(|(name, _)| *name == field).map(|(_, value)| value)
}

fn put_key(out: &mut Vec<u8>, id: StreamId, key: &[u8]) {
    put_id(out, id);
    put_bytes(out, key);
}

/// Entries of one key.
#[derive(Clone, Debug, Default)]
struct Lane {
    pending: u64,
    waiting: BTreeSet<StreamId>,
    /// What of it is in [`Held::ready`].
    ready: Option<StreamId>,
}

/// Held entries of a group, and who holds them back.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The delayed ones, with their due times (Unix ms).
    delayed: Timed,
    /// The waiting ones, with their keys.
    waiting: BTreeMap<StreamId, Option<Arc<[u8]>>>,
    /// Those of them that may be given.
    ready: BTreeSet<StreamId>,
    lanes: BTreeMap<Arc<[u8]>, Lane>,
    /// Keys of pending entries. An entry may be deleted while it is pending, hence not asked for again.
    pending_keys: BTreeMap<StreamId, Arc<[u8]>>,
}

/// What is held where nothing is.
pub static NOTHING: Held = Held {
    delayed: Timed::NONE,
    waiting: BTreeMap::new(),
    ready: BTreeSet::new(),
    lanes: BTreeMap::new(),
    pending_keys: BTreeMap::new(),
};

impl Held {
    /// Is nothing held?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.delayed.is_empty() && self.waiting.is_empty()
    }

    /// How many entries are held.
    pub fn len(&self) -> u64 {
        self.delayed.len() + self.waiting.len() as u64
    }

    /// How many of them were held because of a delay and have not been looked at since.
    pub fn delayed(&self) -> u64 {
        self.delayed.len()
    }

    /// How many wait behind their keys.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Memory that it takes, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        let id_bytes = size_of::<(u64, StreamId)>();
        let keyed = self.pending_keys.len() + 2 * self.waiting.len();
        let lanes = self.lanes.keys().map(|key| key.len() + size_of::<(Arc<[u8]>, Lane)>());
        size_of::<Held>() + self.delayed.memory_bytes() + keyed * id_bytes + lanes.sum::<usize>()
    }

    /// Is this one held?
    #[inline]
    pub fn contains(&self, id: StreamId) -> bool {
        !self.is_empty() && (self.delayed.contains(id) || self.waiting.contains_key(&id))
    }

    /// The held entry with the smallest ID.
    #[inline]
    pub fn first(&self) -> Option<StreamId> {
        let waiting = self.waiting.first_key_value().map(|(&id, _)| id);
        [self.delayed.first(), waiting].into_iter().flatten().min()
    }

    /// The held entry with the greatest ID.
    pub fn last(&self) -> Option<StreamId> {
        self.delayed.last().max(self.waiting.last_key_value().map(|(&id, _)| id))
    }

    /// The waiting one that so many waiting ones stand before.
    pub fn nth_waiting(&self, n: usize) -> Option<StreamId> {
        if n < self.waiting.len() { self.waiting.keys().nth(n).copied() } else { None }
    }

    /// All of them in order, with their due times; 0 = waiting.
    fn all(&self) -> impl Iterator<Item = (StreamId, u64)> {
        let mut delayed = self.delayed.range(StreamId::MIN).peekable();
        let mut waiting = self.waiting.keys().map(|&id| (id, 0)).peekable();
        std::iter::from_fn(move || match (delayed.peek(), waiting.peek()) {
            (Some(&(delayed_id, _)), Some(&(id, _))) if id < delayed_id => waiting.next(),
            (None, _) => waiting.next(),
            _ => delayed.next(),
        })
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = StreamId> {
        self.all().map(|(id, _)| id)
    }

    /// When the first delayed one is due, or was.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.delayed.first_ms()
    }

    /// The delayed ones whose time has come, earliest first.
    pub fn due(&self, now_ms: u64) -> impl Iterator<Item = StreamId> {
        self.delayed.due(now_ms).map(|(_, id)| id)
    }

    /// The waiting ones that may be given, in stream order.
    pub fn ready(&self) -> impl Iterator<Item = StreamId> {
        self.ready.iter().copied()
    }

    /// What waits next behind the key of an entry that waits; `None` without a key.
    pub fn next_behind(&self, id: StreamId) -> Option<StreamId> {
        let lane = self.lanes.get(self.waiting.get(&id)?.as_ref()?)?;
        lane.waiting.range((Bound::Excluded(id), Bound::Unbounded)).next().copied()
    }

    /// Is there one that may be given as far as keys go?
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Must a further entry of this key wait?
    pub fn is_busy(&self, key: &[u8]) -> bool {
        self.lanes.contains_key(key)
    }

    /// Is it known which key this pending entry holds?
    pub fn knows_pending(&self, id: StreamId) -> bool {
        self.pending_keys.contains_key(&id)
    }

    fn key(&self, key: &[u8]) -> Arc<[u8]> {
        self.lanes.get_key_value(key).map_or_else(|| key.into(), |(known, _)| known.clone())
    }

    /// Brings what follows from a lane up to date.
    fn settle(&mut self, key: &[u8]) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        let ready = if lane.pending == 0 { lane.waiting.first().copied() } else { None };
        let before = std::mem::replace(&mut lane.ready, ready);
        let empty = lane.pending == 0 && lane.waiting.is_empty();
        if before != ready {
            before.map(|id| self.ready.remove(&id));
            ready.map(|id| self.ready.insert(id));
        }
        if empty {
            self.lanes.remove(key);
        }
    }

    /// Holds an entry until a time.
    pub fn delay(&mut self, id: StreamId, due_ms: u64) {
        self.remove(id);
        self.delayed.put(id, due_ms);
    }

    /// Lets an entry wait behind its key. Without one it is ready.
    pub fn wait(&mut self, id: StreamId, key: Option<&[u8]>) {
        self.remove(id);
        let Some(key) = key else {
            self.waiting.insert(id, None);
            self.ready.insert(id);
            return;
        };
        let key = self.key(key);
        self.lanes.entry(key.clone()).or_default().waiting.insert(id);
        self.settle(&key);
        self.waiting.insert(id, Some(key));
    }

    /// An entry is held no more; answers whether it was.
    pub fn remove(&mut self, id: StreamId) -> bool {
        match self.waiting.remove(&id) {
            None => return self.delayed.remove(id),
            Some(Some(key)) => {
                if let Some(lane) = self.lanes.get_mut(&key) {
                    lane.waiting.remove(&id);
                }
                self.settle(&key);
            }
            Some(None) => {
                self.ready.remove(&id);
            }
        }
        true
    }

    /// The entries between two IDs, both included, are held no more. Costs each that was waiting; the delayed ones come back
    /// to be freed.
    pub fn remove_range(&mut self, from: StreamId, to: StreamId) -> Pel {
        while let Some((&id, _)) = self.waiting.range(from..=to).next() {
            self.remove(id);
        }
        self.delayed.remove_range(from, to)
    }

    /// A pending entry holds its key.
    pub fn pending_put(&mut self, id: StreamId, key: &[u8]) {
        let key = self.key(key);
        if self.pending_keys.insert(id, key.clone()).is_none() {
            self.lanes.entry(key.clone()).or_default().pending += 1;
            self.settle(&key);
        }
    }

    /// An entry is pending no more.
    pub fn pending_gone(&mut self, id: StreamId) {
        let Some(key) = self.pending_keys.remove(&id) else { return };
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.pending -= 1;
        }
        self.settle(&key);
    }

    /// Looks at so many entries with keys between two IDs, both included; those that `is_gone` are pending no more. Answers
    /// where to go on, if there are more.
    pub fn pending_gone_in(
        &mut self,
        from: StreamId,
        to: StreamId,
        most: usize,
        is_gone: impl Fn(StreamId) -> bool,
    ) -> Option<StreamId> {
        let looked: Vec<StreamId> = self.pending_keys.range(from..=to).map(|(&id, _)| id).take(most).collect();
        looked.iter().copied().filter(|&id| is_gone(id)).for_each(|id| self.pending_gone(id));
        let next = looked.last().filter(|_| looked.len() == most)?.next().filter(|&next| next <= to)?;
        self.pending_keys.range(next..=to).next().map(|(&id, _)| id)
    }

    /// Forgets all keys. What waits is ready.
    pub fn forget_keys(&mut self) {
        self.lanes.clear();
        self.pending_keys.clear();
        self.waiting.values_mut().for_each(|key| *key = None);
        self.ready.extend(self.waiting.keys());
    }

    /// How many entries it knows: those held, and those pending with keys.
    pub fn known(&self) -> u64 {
        self.len() + self.pending_keys.len() as u64
    }

    /// Frees a part, of each kind at most `most`, of what nobody uses any more, but for what is delayed; answers whether there
    /// is more.
    pub fn free_some(&mut self, most: usize) -> bool {
        for _ in 0..most {
            self.waiting.pop_first();
            self.ready.pop_first();
            self.pending_keys.pop_first();
            if let Some(mut lane) = self.lanes.first_entry() {
                lane.get_mut().waiting.pop_first();
                if lane.get().waiting.is_empty() {
                    lane.remove();
                }
            }
        }
        !(self.waiting.is_empty() && self.pending_keys.is_empty() && self.lanes.is_empty())
    }

    /// The delayed ones, to be freed.
    pub fn take_delayed(&mut self) -> Pel {
        self.delayed.take()
    }

    /// Appends what is held; nothing if nothing is.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        put_uint(out, self.len());
        for (id, due_ms) in self.all() {
            put_id(out, id);
            put_uint(out, due_ms);
        }
    }

    /// Appends the keys; nothing if there are none. Lanes follow from them.
    /// Keys of entries that are not pending any more are left out.
    pub fn encode_keys(&self, out: &mut Vec<u8>, is_pending: impl Fn(StreamId) -> bool) {
        let pending = || self.pending_keys.iter().filter(|&(&id, _)| is_pending(id));
        let count = pending().count();
        let waiting = || self.waiting.iter().filter_map(|(&id, key)| Some((id, key.as_ref()?)));
        let waiting_count = waiting().count();
        if count == 0 && waiting_count == 0 {
            return;
        }
        put_uint(out, count as u64);
        pending().for_each(|(&id, key)| put_key(out, id, key));
        put_uint(out, waiting_count as u64);
        waiting().for_each(|(id, key)| put_key(out, id, key));
    }

    /// Reads what [`Held::encode`] wrote.
    pub fn decode(&mut self, mut reader: Reader<'_>) -> Result<(), Corrupt> {
        const WHAT: &str = "held entries of a consumer group";
        for _ in 0..reader.count(WHAT)? {
            let (id, due_ms) = (reader.id(WHAT)?, reader.uint(WHAT)?);
            if self.last().is_some_and(|last| last >= id) {
                return Err(Corrupt { what: WHAT });
            }
            match due_ms {
                0 => self.wait(id, None),
                due_ms => self.delay(id, due_ms),
            }
        }
        if reader.is_empty() { Ok(()) } else { Err(Corrupt { what: WHAT }) }
    }

    /// Reads what [`Held::encode_keys`] wrote, behind what is held.
    pub fn decode_keys(
        &mut self,
        mut reader: Reader<'_>,
        is_pending: impl Fn(StreamId) -> bool,
    ) -> Result<(), Corrupt> {
        const WHAT: &str = "keys of a consumer group";
        for _ in 0..reader.count(WHAT)? {
            let (id, key) = (reader.id(WHAT)?, reader.bytes(WHAT)?);
            if self.knows_pending(id) || !is_pending(id) {
                return Err(Corrupt { what: WHAT });
            }
            self.pending_put(id, key);
        }
        for _ in 0..reader.count(WHAT)? {
            let (id, key) = (reader.id(WHAT)?, reader.bytes(WHAT)?);
            if !self.waiting.contains_key(&id) {
                return Err(Corrupt { what: WHAT });
            }
            self.wait(id, Some(key));
        }
        if reader.is_empty() { Ok(()) } else { Err(Corrupt { what: WHAT }) }
    }

    /// Every invariant. `is_pending` tells of an entry whether it is, `is_stale` whether its key may be held although it is
    /// not.
    pub fn check(
        &self,
        is_pending: impl Fn(StreamId) -> bool,
        is_stale: impl Fn(StreamId) -> bool,
    ) -> Result<(), String> {
        self.delayed.check()?;
        let (mut ready, mut keyed, mut waiting, mut pending) = (BTreeSet::new(), 0, 0, 0);
        if let Some(id) = self.iter().find(|&id| is_pending(id)) {
            return Err(format!("{id} is held and pending"));
        }
        for (&id, key) in &self.waiting {
            keyed += usize::from(key.is_some());
            match key {
                _ if self.delayed.contains(id) => return Err(format!("{id} is delayed and waiting")),
                None => {
                    ready.insert(id);
                }
                Some(key) if self.lanes.get(key).is_some_and(|lane| lane.waiting.contains(&id)) => {}
                Some(_) => return Err(format!("{id} waits in no lane")),
            }
        }
        for (key, lane) in &self.lanes {
            waiting += lane.waiting.len();
            pending += lane.pending;
            let first = if lane.pending == 0 { lane.waiting.first().copied() } else { None };
            ready.extend(first);
            if first != lane.ready || (lane.pending == 0 && lane.waiting.is_empty()) {
                return Err(format!("the lane of {} is not settled", key.escape_ascii()));
            }
        }
        if let Some(id) = self.pending_keys.keys().find(|&&id| !is_pending(id) && !is_stale(id)) {
            return Err(format!("{id} holds a key and is not pending"));
        }
        if (waiting, pending as usize, ready) != (keyed, self.pending_keys.len(), self.ready.clone()) {
            return Err("what is held back differs from what the lanes say".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three hundred delayed, as many pending with a key of their own, as many waiting behind them, as many behind one key.
    fn full() -> Held {
        let mut held = Held::default();
        for n in 1..=300u64 {
            held.delay(StreamId::new(n, 0), 1000 + n % 7);
            held.pending_put(StreamId::new(n, 1), format!("key {n}").as_bytes());
            held.wait(StreamId::new(n, 2), Some(format!("key {n}").as_bytes()));
            held.wait(StreamId::new(n, 3), Some(b"one key"));
        }
        held
    }

    #[test]
    fn what_nobody_uses_is_freed_in_pieces_and_all_of_it() {
        let mut held = full();
        held.check(|id| id.seq == 1, |_| false).unwrap();
        assert_eq!((held.len(), held.known()), (900, 1200));
        assert_eq!(held.take_delayed().len(), 300);
        let mut pieces = 1;
        let mut known = held.known();
        while held.free_some(50) {
            assert!(known - held.known() <= 2 * 50, "a piece is no more than was asked for of each kind");
            known = held.known();
            pieces += 1;
        }
        // The longest of its parts, all that waits, decides.
        assert_eq!(pieces, 600 / 50);
        assert!(held.is_empty() && held.lanes.is_empty() && held.ready.is_empty() && held.pending_keys.is_empty());
        assert!(!held.free_some(50), "nothing is left of it");
    }

    #[test]
    fn keys_of_what_is_pending_no_more_are_freed_a_few_at_a_time() {
        let mut held = full();
        let (mut from, mut looks) = (StreamId::MIN, 0);
        let to = StreamId::new(200, 1);
        while let Some(next) = held.pending_gone_in(from, to, 30, |id| id.ms % 2 == 0) {
            assert!(next > from);
            (from, looks) = (next, looks + 1);
        }
        assert_eq!(looks, 200 / 30);
        held.check(|id| id.seq == 1 && (id.ms % 2 == 1 || id.ms > 200), |_| false).unwrap();
        assert_eq!(held.ready().filter(|id| id.seq == 2).count(), 100);
    }
}
