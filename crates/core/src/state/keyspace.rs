//! The databases: keys, values, expiry, and what the reply gate and WATCH need to know of each key.
//!
//! The root [`State`] is changed only by `engine::apply`. A key whose time is over is still here until a record removes
//! it, and every reader passes it over: look keys up with [`Database::get`], which takes the time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use crate::id::StreamId;
use crate::limits::DATABASES;
use crate::record::At;
use crate::state::codec::{Corrupt, Reader, put_bytes};
use crate::state::garbage::Garbage;
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
    keys: Keys,
    expiry: BTreeSet<(u64, Box<[u8]>)>,
    /// Keys whose values change by time, by a time (Unix ms) that is not after the first such change.
    timers: BTreeSet<(u64, Box<[u8]>)>,
    /// How large the values are.
    sizes: Sizes,
    /// What trimming with ACKED remembers of streams.
    pub settled: BTreeMap<Box<[u8]>, Settled>,
    /// Log position after the newest record that removed a key: what a reply about a missing key waits for.
    pub removed_position: u64,
    /// Log position after the newest SWAPDB: what a reply about any key here waits for.
    pub swapped_position: u64,
}

impl Database {
    fn new(seed: u64) -> Self {
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
    fn clear(&mut self) -> Cleared {
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
    keys: indexmap::map::IntoIter<Box<[u8]>, Slot>,
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

/// Where a group is: its database, its key and its name.
pub type GroupPlace = (usize, Box<[u8]>, Box<[u8]>);

/// Parts of streams, by database and key: from the first ID to the second, both included.
pub type Sweeps = BTreeMap<(usize, Box<[u8]>), (StreamId, StreamId)>;

/// Everything a server knows.
#[derive(Debug)]
pub struct State {
    databases: Vec<Database>,
    /// Source of [`Slot::version`].
    versions: u64,
    /// The greatest time that any record has carried: time does not go back behind it.
    pub last_ms: u64,
    /// Records applied since the start (not part of snapshots).
    pub changes: u64,
    /// What was removed and is to be freed bit by bit.
    pub garbage: Garbage,
    /// Has any stream ever had `Retention::acked` here? If not, acknowledging costs nothing more.
    pub retires: bool,
    /// Has any group ever kept the order of keys here? If not, nobody waits for a key to be free.
    pub orders: bool,
    /// Streams with `Retention::acked` whose entries are to be looked through for such as have become free, and from
    /// which ID on to which. Not part of snapshots: restoring such a stream notes it.
    pub sweeps: Sweeps,
    /// Groups that have work left for [`Group::reap`](crate::state::group::Group::reap): by database, key and name.
    reaps: BTreeSet<GroupPlace>,
    /// Groups that have keys left to free ([`Group::free_keys`](crate::state::group::Group::free_keys)).
    pub key_frees: BTreeSet<GroupPlace>,
    /// Number of the newest snapshot; 0 = none was yet. While it runs, a slot with a smaller `captured` is not in it.
    pub snapshot: u64,
    /// The snapshot that is being taken.
    capture: Option<Capture>,
    /// A value that the record being applied may change in size: its database, its place, where it counted before.
    measured: Option<(usize, usize, SizeClass)>,
    /// Missing keys that somebody watches.
    watched_missing: BTreeMap<(usize, Box<[u8]>), WatchedMissing>,
}

/// A missing key that somebody watches.
#[derive(Clone, Copy, Debug, Default)]
struct WatchedMissing {
    /// How many do.
    watchers: usize,
    /// Changes when the key was there meanwhile.
    version: u64,
}

/// A key as it was when the snapshot began.
#[derive(Debug)]
pub struct Captured {
    /// Its database.
    pub db: usize,
    /// The key.
    pub key: Box<[u8]>,
    /// Unix ms at which it is gone; 0 = never.
    pub expire_ms: u64,
    /// Its value; shares blocks and pending lists with the living one.
    pub value: Value,
}

/// A snapshot in the making. Keys are taken from the last place of the last database down, a few each turn; a key that
/// is about to change is taken before. Keys only ever move to lower places, so none is missed. A database that is emptied
/// before its turn is taken from where it lies.
struct Capture {
    /// The number that each database had when the snapshot began, by its present number.
    numbers: Vec<usize>,
    /// Present numbers of the databases that are not done; the last is being walked, and is at `place`.
    left: Vec<usize>,
    place: usize,
    /// What databases held that were emptied since, and the numbers they had.
    cleared: Vec<(usize, Cleared)>,
    taken: Vec<Captured>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("left", &self.left).field("place", &self.place).finish_non_exhaustive()
    }
}

impl State {
    /// Empty databases. `seed` makes the hash tables of this process unpredictable to clients; it never shows.
    pub fn new(seed: u64) -> Self {
        State {
            databases: (0..DATABASES).map(|_| Database::new(seed)).collect(),
            versions: 0,
            last_ms: 0,
            changes: 0,
            garbage: Garbage::default(),
            retires: false,
            orders: false,
            sweeps: BTreeMap::new(),
            reaps: BTreeSet::new(),
            key_frees: BTreeSet::new(),
            snapshot: 0,
            capture: None,
            measured: None,
            watched_missing: BTreeMap::new(),
        }
    }

    /// Empties everything, to be read back from disk. What WATCH has noted stays good: versions go on rising.
    pub fn forget(&mut self, seed: u64) {
        let fresh = State {
            versions: self.versions,
            snapshot: self.snapshot,
            watched_missing: std::mem::take(&mut self.watched_missing),
            ..State::new(seed)
        };
        *self = fresh;
    }

    /// Begins a snapshot of the state as it is now. One at a time.
    pub fn snapshot_begin(&mut self) {
        assert!(self.capture.is_none(), "one snapshot at a time");
        self.snapshot += 1;
        let all: Vec<usize> = (0..self.databases.len()).collect();
        let place = self.databases.last().map_or(0, Database::len);
        let (cleared, taken) = (Vec::new(), Vec::new());
        self.capture = Some(Capture { numbers: all.clone(), left: all, place, cleared, taken });
    }

    /// Is one being taken?
    #[inline]
    pub fn snapshot_running(&self) -> bool {
        self.capture.is_some()
    }

    /// Gives up the snapshot that is being taken.
    pub fn snapshot_abort(&mut self) {
        let cleared = self.capture.take().map_or(Vec::new(), |capture| capture.cleared);
        cleared.into_iter().for_each(|(_, cleared)| self.garbage.database(cleared));
    }

    /// Takes the key into the running snapshot, unless it is in it already.
    pub fn capture(&mut self, db: usize, key: &[u8]) {
        let Some(capture) = &mut self.capture else { return };
        if let Some(slot) = self.databases[db].get_mut(key)
            && slot.captured < self.snapshot
        {
            slot.captured = self.snapshot;
            let (db, expire_ms) = (capture.numbers[db], slot.expire_ms);
            capture.taken.push(Captured { db, key: key.into(), expire_ms, value: slot.value.clone() });
        }
    }

    /// Takes up to `n` more keys; answers whether there are more to take.
    fn capture_some(&mut self, n: usize) -> bool {
        let Some(capture) = &mut self.capture else { return false };
        for _ in 0..n {
            if let Some((number, cleared)) = capture.cleared.last_mut() {
                match cleared.keys.next() {
                    Some((key, slot)) if slot.captured < self.snapshot => {
                        let (db, expire_ms) = (*number, slot.expire_ms);
                        capture.taken.push(Captured { db, key, expire_ms, value: slot.value });
                    }
                    Some((_, slot)) => self.garbage.value(slot.value),
                    None => {
                        let done = capture.cleared.pop();
                        self.garbage.database(done.expect("it was there a moment ago").1);
                    }
                }
                continue;
            }
            let Some(&present) = capture.left.last() else { return false };
            let db = &mut self.databases[present];
            capture.place = capture.place.min(db.len());
            if capture.place == 0 {
                capture.left.pop();
                capture.place = capture.left.last().map_or(0, |&next| self.databases[next].len());
                continue;
            }
            capture.place -= 1;
            let Some((key, slot)) = db.at_mut(capture.place) else { continue };
            if slot.captured < self.snapshot {
                slot.captured = self.snapshot;
                let (key, value) = (key.into(), slot.value.clone());
                let db = capture.numbers[present];
                capture.taken.push(Captured { db, key, expire_ms: slot.expire_ms, value });
            }
        }
        true
    }

    /// Goes on with the running snapshot by about `n` keys. Answers what was taken since the last call and whether the
    /// snapshot is complete with it.
    pub fn snapshot_continue(&mut self, n: usize) -> (Vec<Captured>, bool) {
        let more = self.capture_some(n);
        let Some(capture) = &mut self.capture else { return (Vec::new(), true) };
        let taken = std::mem::take(&mut capture.taken);
        if !more {
            self.capture = None;
        }
        (taken, !more)
    }

    /// Puts a key of a snapshot back, at start. `position` is the snapshot's.
    pub fn restore(&mut self, captured: Captured, position: u64) {
        if let Value::Stream(stream) = &captured.value {
            self.orders |= stream.groups.values().any(|group| group.options().key_field.is_some());
        }
        let slot = Slot {
            value: captured.value,
            expire_ms: captured.expire_ms,
            position,
            version: self.next_version(),
            captured: self.snapshot,
            timer_ms: 0,
        };
        self.databases[captured.db].insert(&captured.key, slot);
        self.note_sweep(captured.db, &captured.key, StreamId::MIN, StreamId::MAX);
    }

    /// A database by number, below [`DATABASES`].
    #[inline]
    pub fn db(&self, number: usize) -> &Database {
        &self.databases[number]
    }

    /// A database by number, to be changed.
    #[inline]
    pub fn db_mut(&mut self, number: usize) -> &mut Database {
        &mut self.databases[number]
    }

    /// All databases.
    pub fn databases(&self) -> &[Database] {
        &self.databases
    }

    /// Notes that any entry between two IDs of a stream with `Retention::acked` may have become free.
    pub fn note_sweep(&mut self, db: usize, key: &[u8], from: StreamId, to: StreamId) {
        if let Some(Slot { value: Value::Stream(stream), .. }) = self.databases[db].get_any(key)
            && stream.retention.acked
        {
            self.retires = true;
            let noted = self.sweeps.entry((db, key.into())).or_insert((from, to));
            *noted = (noted.0.min(from), noted.1.max(to));
        }
    }

    /// Empties a database.
    pub fn clear(&mut self, db: usize) {
        self.note_removal_of_all(db);
        let cleared = self.databases[db].clear();
        match &mut self.capture {
            Some(capture) if capture.left.contains(&db) => {
                if capture.left.last() == Some(&db) {
                    capture.place = 0;
                }
                capture.cleared.push((capture.numbers[db], cleared));
            }
            _ => self.garbage.database(cleared),
        }
    }

    /// Exchanges the contents of two databases.
    pub fn swap(&mut self, a: usize, b: usize) {
        self.databases.swap(a, b);
        if let Some(capture) = &mut self.capture {
            capture.numbers.swap(a, b);
            for present in capture.left.iter_mut().filter(|present| **present == a || **present == b) {
                *present = a + b - *present;
            }
        }
        for ((mut db, key), part) in std::mem::take(&mut self.sweeps) {
            if db == a || db == b {
                db = a + b - db;
            }
            self.sweeps.insert((db, key), part);
        }
        for places in [&mut self.reaps, &mut self.key_frees] {
            let swapped = |db: usize| if db == a || db == b { a + b - db } else { db };
            *places = std::mem::take(places).into_iter().map(|(db, key, group)| (swapped(db), key, group)).collect();
        }
    }

    /// Notes that a group may have work left: for [`State::free_one`], or keys to free.
    pub fn note_reap(&mut self, at: At<'_>, name: &[u8]) {
        let Some(Value::Stream(stream)) = self.db(at.db).get_any(at.key).map(|slot| &slot.value) else { return };
        let Some(group) = stream.group(name) else { return };
        let (reaps, frees_keys) = (group.pel().is_passing(), group.frees_keys());
        let place = || (at.db, at.key.into(), name.into());
        if reaps {
            self.reaps.insert(place());
        }
        if frees_keys {
            self.key_frees.insert(place());
        }
    }

    /// Goes on with freeing the keys of a group, and looks at so many; answers whether anything may be given now that
    /// waited for them.
    pub fn free_keys_of(&mut self, db: usize, key: &[u8], name: &[u8], most: usize) -> bool {
        let group = self.stream_mut(db, key).and_then(|stream| stream.group_mut(name));
        let (more, ready) = match group {
            Some(group) => (group.free_keys(most), group.held().has_ready()),
            None => (false, false),
        };
        if !more {
            self.key_frees.remove(&(db, key.into(), name.into()));
        }
        ready
    }

    /// Has any group work left?
    pub fn reaps(&self) -> bool {
        !self.reaps.is_empty()
    }

    /// Has any group work left of either kind?
    pub fn has_group_work(&self) -> bool {
        self.reaps() || !self.key_frees.is_empty()
    }

    /// Is there something to free?
    pub fn has_garbage(&self) -> bool {
        self.reaps() || !self.garbage.is_empty()
    }

    /// Frees one piece of what was removed; answers whether there may be more. Nothing that can be asked changes by it.
    pub fn free_one(&mut self) -> bool {
        if let Some(place) = self.reaps.first().cloned() {
            let (db, key, name) = &place;
            let group = self.stream_mut(*db, key).and_then(|stream| stream.group_mut(name));
            if !group.is_some_and(|group| group.reap()) {
                self.reaps.remove(&place);
            }
        } else {
            self.garbage.free_one();
        }
        self.has_garbage()
    }

    /// A version that no slot had before.
    pub fn next_version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    /// The key whatever its time, to be changed by a record in ways that may change the size of its value: at its end
    /// [`State::remeasure`] notes the new size.
    #[inline]
    pub fn resized(&mut self, db: usize, key: &[u8]) -> Option<&mut Slot> {
        let (place, _, slot) = self.databases[db].keys.get_full_mut(key)?;
        self.measured = Some((db, place, SizeClass::of(&slot.value)));
        Some(slot)
    }

    /// A record has been applied: its value counts by its new size.
    #[inline]
    pub fn remeasure(&mut self) {
        let Some((db, place, before)) = self.measured.take() else { return };
        let db = &mut self.databases[db];
        let Some((_, slot)) = db.keys.get_index(place) else { return };
        let after = SizeClass::of(&slot.value);
        if before != after {
            db.sizes.remove(before);
            db.sizes.add(after);
        }
    }

    /// Version of a key for WATCH: it differs when the key was changed, or was there meanwhile.
    pub fn watch_version(&self, db: usize, key: &[u8], now_ms: u64) -> u64 {
        match self.db(db).get(key, now_ms) {
            Some(slot) => slot.version,
            None if self.watched_missing.is_empty() => 0,
            None => self.watched_missing.get(&(db, key.into())).map_or(0, |watched| watched.version),
        }
    }

    /// Somebody watches a key that is missing.
    pub fn watch_missing(&mut self, db: usize, key: &[u8]) {
        self.watched_missing.entry((db, key.into())).or_default().watchers += 1;
    }

    /// Somebody watches that key no more.
    pub fn unwatch_missing(&mut self, db: usize, key: &[u8]) {
        let place = (db, key.into());
        if let Some(watched) = self.watched_missing.get_mut(&place) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                self.watched_missing.remove(&place);
            }
        }
    }

    /// Does anybody watch a key that is missing?
    pub fn is_missing_watched(&self) -> bool {
        !self.watched_missing.is_empty()
    }

    /// A key was removed: who watched it when it was missing must see that it was there.
    #[inline]
    pub fn note_removal(&mut self, db: usize, key: &[u8]) {
        if self.watched_missing.is_empty() {
            return;
        }
        let version = self.next_version();
        if let Some(watched) = self.watched_missing.get_mut(&(db, key.into())) {
            watched.version = version;
        }
    }

    /// All keys of a database are about to be removed.
    fn note_removal_of_all(&mut self, db: usize) {
        let version = self.next_version();
        for ((number, key), watched) in &mut self.watched_missing {
            if *number == db && self.databases[db].get_any(key).is_some() {
                watched.version = version;
            }
        }
    }

    /// The stream under a key, whatever its time, to be changed (not in size); `None` if there is none.
    pub fn stream_mut(&mut self, db: usize, key: &[u8]) -> Option<&mut Stream> {
        match &mut self.databases[db].get_mut(key)?.value {
            Value::Stream(stream) => Some(stream),
            Value::String(_) => None,
        }
    }

    /// Number of keys in all databases.
    pub fn key_count(&self) -> usize {
        self.databases.iter().map(Database::len).sum()
    }

    /// Every invariant of everything.
    pub fn check(&self) -> Result<(), String> {
        for (number, db) in self.databases.iter().enumerate() {
            let (mut expiring, mut timed) = (0, 0);
            let mut sizes = Sizes::default();
            for (key, slot) in db.iter() {
                sizes.add(SizeClass::of(&slot.value));
                timed += usize::from(slot.timer_ms != 0);
                let due_ms = slot.value.next_due_ms().unwrap_or(u64::MAX);
                if (slot.timer_ms == 0 && due_ms != u64::MAX)
                    || slot.timer_ms > due_ms
                    || (slot.timer_ms != 0 && !db.timers.contains(&(slot.timer_ms, key.into())))
                {
                    return Err(format!("key {} of database {number} misses its time", key.escape_ascii()));
                }
                if slot.expire_ms != 0 {
                    expiring += 1;
                    if !db.expiry.contains(&(slot.expire_ms, key.into())) {
                        return Err(format!(
                            "key {} of database {number} is not in the expiry index",
                            key.escape_ascii()
                        ));
                    }
                }
                if let Value::Stream(stream) = &slot.value {
                    stream
                        .check()
                        .map_err(|why| format!("stream {} of database {number}: {why}", key.escape_ascii()))?;
                }
            }
            if timed != db.timers.len() {
                return Err(format!("database {number}: {timed} keys have timers, the index has {}", db.timers.len()));
            }
            if sizes != db.sizes {
                return Err(format!("database {number}: its values are not as large as the histograms say"));
            }
            if expiring != db.expiry.len() {
                return Err(format!("database {number}: {expiring} keys expire, the index has {}", db.expiry.len()));
            }
        }
        Ok(())
    }
}
