//! One numbered database: its keys, and the indexes by time and size that follow from them.
//!
//! Invariants (see `check`): every key with an expiry stands in the index of expiries by it, every key whose value changes
//! by time in the index of timers, and every value counts in the histogram of sizes once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use crate::state::codec::{Corrupt, Reader, put_bytes};
use crate::state::settled::Settled;
use crate::state::sizes::{SizeClass, Sizes};
use crate::state::stream::Stream;

/// What a key holds.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string. Shared with a snapshot that is being written, else owned alone.
    String(Arc<Vec<u8>>),
    /// A stream.
    Stream(Box<Stream>),
}

impl Value {
    /// The name TYPE answers.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::Stream(_) => "stream",
        }
    }

    /// Memory that the value takes, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Value::String(bytes) => size_of::<Vec<u8>>() + bytes.capacity(),
            Value::Stream(stream) => stream.memory_bytes(),
        }
    }

    /// When something happens to the value by time alone (Unix ms).
    pub fn next_due_ms(&self) -> Option<u64> {
        match self {
            Value::String(_) => None,
            Value::Stream(stream) => stream.next_due_ms(),
        }
    }

    const STRING: u8 = 1;
    const STREAM: u8 = 2;

    /// Appends the value in its canonical form, behind a byte for its type.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::String(bytes) => {
                out.push(Self::STRING);
                put_bytes(out, bytes);
            }
            Value::Stream(stream) => {
                out.push(Self::STREAM);
                stream.encode(out);
            }
        }
    }

    /// Reads what [`Value::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Value, Corrupt> {
        match reader.byte("value type")? {
            Self::STRING => Ok(Value::String(Arc::new(reader.bytes("string value")?.to_vec()))),
            Self::STREAM => Ok(Value::Stream(Box::new(Stream::decode(reader)?))),
            _ => Err(Corrupt { what: "unknown value type" }),
        }
    }
}

/// A key's value and what is known about the key.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The value.
    pub value: Value,
    /// Unix ms at which the key is gone; 0 = never.
    pub expire_ms: u64,
    /// Log position after the newest record that replies about this key depend on.
    pub position: u64,
    /// Rises with every change that WATCH counts as one; never the same for two lives of a key.
    pub version: u64,
    /// The version with which this value came under this key: another value, or the same one elsewhere, has another.
    pub born: u64,
    /// The snapshot (by number) that already has this key.
    pub captured: u64,
    /// Under which time the key stands in the index of timers; 0 = in none. Kept by [`Database`].
    pub timer_ms: u64,
}

impl Slot {
    /// Is its time not over?
    #[inline]
    pub fn lives(&self, now_ms: u64) -> bool {
        self.expire_ms == 0 || self.expire_ms > now_ms
    }
}

type Keys = IndexMap<Box<[u8]>, Slot, FixedState>;

/// One of the numbered databases.
#[derive(Debug)]
pub struct Database {
    pub(super) keys: Keys,
    pub(super) expiry: BTreeSet<(u64, Box<[u8]>)>,
    /// Keys whose values change by time, by a time (Unix ms) that is not after the first such change.
    pub(super) timers: BTreeSet<(u64, Box<[u8]>)>,
    /// How large the values are.
    pub(super) sizes: Sizes,
    /// What trimming with ACKED remembers of streams.
    pub settled: BTreeMap<Box<[u8]>, Settled>,
    /// Log position after the newest record that removed a key: what a reply about a missing key waits for.
    pub removed_position: u64,
    /// Log position after the newest SWAPDB: what a reply about any key here waits for.
    pub swapped_position: u64,
}

impl Database {
    pub(super) fn new(seed: u64) -> Self {
        Database {
            keys: IndexMap::with_hasher(FixedState::with_seed(seed)),
            expiry: BTreeSet::new(),
            timers: BTreeSet::new(),
            sizes: Sizes::default(),
            settled: BTreeMap::new(),
            removed_position: 0,
            swapped_position: 0,
        }
    }

    /// Number of keys, also of those whose time is over and that no record has removed yet.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// No keys at all?
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Number of keys with an expiry.
    pub fn expiring(&self) -> usize {
        self.expiry.len()
    }

    /// The key, unless its time is over.
    #[inline]
    pub fn get(&self, key: &[u8], now_ms: u64) -> Option<&Slot> {
        self.keys.get(key).filter(|slot| slot.lives(now_ms))
    }

    /// The key whatever its time, for records.
    pub fn get_any(&self, key: &[u8]) -> Option<&Slot> {
        self.keys.get(key)
    }

    /// The key whatever its time, to be changed. The expiry is changed by [`Database::set_expiry`] alone.
    #[inline]
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut Slot> {
        self.keys.get_mut(key)
    }

    /// Key and slot by place, `0..len`.
    pub fn at(&self, place: usize) -> Option<(&[u8], &Slot)> {
        self.keys.get_index(place).map(|(key, slot)| (key.as_ref(), slot))
    }

    /// Key and slot by place, to be changed.
    pub fn at_mut(&mut self, place: usize) -> Option<(&[u8], &mut Slot)> {
        self.keys.get_index_mut(place).map(|(key, slot)| (key.as_ref(), slot))
    }

    /// All keys in their order of place.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Slot)> {
        self.keys.iter().map(|(key, slot)| (key.as_ref(), slot))
    }

    /// How large the values are, as INFO shows it.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Puts a slot under a key; answers what was there.
    pub fn insert(&mut self, key: &[u8], mut slot: Slot) -> Option<Slot> {
        self.settled.remove(key);
        self.sizes.add(SizeClass::of(&slot.value));
        slot.timer_ms = slot.value.next_due_ms().unwrap_or(0);
        let timer_ms = slot.timer_ms;
        if timer_ms != 0 {
            self.timers.insert((timer_ms, key.into()));
        }
        if slot.expire_ms != 0 {
            self.expiry.insert((slot.expire_ms, key.into()));
        }
        let (expire_ms, old) = match self.keys.get_mut(key) {
            Some(old) => {
                let expire_ms = slot.expire_ms;
                (expire_ms, Some(std::mem::replace(old, slot)))
            }
            None => {
                self.keys.insert(key.into(), slot);
                return None;
            }
        };
        if let Some(old) = &old {
            self.sizes.remove(SizeClass::of(&old.value));
            if old.expire_ms != 0 && old.expire_ms != expire_ms {
                self.expiry.remove(&(old.expire_ms, key.into()));
            }
        }
        if let Some(old) = &old
            && old.timer_ms != 0
            && old.timer_ms != timer_ms
        {
            self.timers.remove(&(old.timer_ms, key.into()));
        }
        old
    }

    /// Takes a key away. The last key moves to its place: SCAN goes from the last place down and so misses none.
    pub fn remove(&mut self, key: &[u8]) -> Option<Slot> {
        let slot = self.keys.swap_remove(key)?;
        self.settled.remove(key);
        self.sizes.remove(SizeClass::of(&slot.value));
        if slot.expire_ms != 0 {
            self.expiry.remove(&(slot.expire_ms, key.into()));
        }
        if slot.timer_ms != 0 {
            self.timers.remove(&(slot.timer_ms, key.into()));
        }
        Some(slot)
    }

    /// Something will happen to the value of a key at `due_ms`.
    pub fn note_timer(&mut self, key: &[u8], due_ms: u64) {
        if let Some(slot) = self.keys.get_mut(key)
            && (slot.timer_ms == 0 || due_ms < slot.timer_ms)
        {
            let old = std::mem::replace(&mut slot.timer_ms, due_ms);
            if old != 0 {
                self.timers.remove(&(old, key.into()));
            }
            self.timers.insert((due_ms, key.into()));
        }
    }

    /// Asks the value of a key again when something happens to it. What was planned may have been called off: nothing
    /// notices that before its time.
    pub fn refresh_timer(&mut self, key: &[u8]) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        let due_ms = slot.value.next_due_ms().unwrap_or(0);
        let old = std::mem::replace(&mut slot.timer_ms, due_ms);
        if old != 0 {
            self.timers.remove(&(old, key.into()));
        }
        if due_ms != 0 {
            self.timers.insert((due_ms, key.into()));
        }
    }

    /// The key to whose value something may happen first, and when (Unix ms).
    pub fn next_timer(&self) -> Option<(u64, &[u8])> {
        self.timers.first().map(|(ms, key)| (*ms, key.as_ref()))
    }

    /// Sets when a key is gone (0 = never).
    pub fn set_expiry(&mut self, key: &[u8], expire_ms: u64) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        let old = std::mem::replace(&mut slot.expire_ms, expire_ms);
        if old != 0 {
            self.expiry.remove(&(old, key.into()));
        }
        if expire_ms != 0 {
            self.expiry.insert((expire_ms, key.into()));
        }
    }

    /// The key whose time is or will be over first.
    pub fn next_expiry(&self) -> Option<(u64, &[u8])> {
        self.expiry.first().map(|(ms, key)| (*ms, key.as_ref()))
    }

    /// Notes that something may happen to the value of a key earlier than before.
    pub fn note_due(&mut self, key: &[u8]) {
        if let Some(due_ms) = self.keys.get(key).and_then(|slot| slot.value.next_due_ms()) {
            self.note_timer(key, due_ms);
        }
    }

    /// Notes that this database has changed places with another.
    pub fn swapped(&mut self, position: u64) {
        self.removed_position = position;
        self.swapped_position = position;
    }

    /// Takes everything out. Costs nothing: freeing it does.
    pub(super) fn clear(&mut self) -> Cleared {
        self.settled.clear();
        self.sizes = Sizes::default();
        let hasher = self.keys.hasher().clone();
        Cleared {
            keys: std::mem::replace(&mut self.keys, IndexMap::with_hasher(hasher)).into_iter(),
            times: std::mem::take(&mut self.expiry).into_iter(),
            timers: std::mem::take(&mut self.timers).into_iter(),
        }
    }
}

/// All that was in a database.
pub struct Cleared {
    pub(super) keys: indexmap::map::IntoIter<Box<[u8]>, Slot>,
    times: std::collections::btree_set::IntoIter<(u64, Box<[u8]>)>,
    timers: std::collections::btree_set::IntoIter<(u64, Box<[u8]>)>,
}

impl Cleared {
    /// Takes up to `most` values out, and frees what else there is of as many keys.
    pub fn take_values(&mut self, most: usize) -> impl Iterator<Item = Value> {
        self.times.by_ref().take(most).for_each(drop);
        self.timers.by_ref().take(most).for_each(drop);
        self.keys.by_ref().take(most).map(|(_, slot)| slot.value)
    }

    /// Nothing left?
    pub fn is_empty(&self) -> bool {
        self.keys.len() + self.times.len() + self.timers.len() == 0
    }
}
