//! The databases: keys, values, expiry, and what the reply gate and WATCH need to know of each key.
//!
//! The root [`State`] is changed only by `engine::apply`. A key whose time is over is still here until a record removes
//! it, and every reader passes it over: look keys up with [`Database::get`], which takes the time.

mod capture;
mod check;
mod database;

use std::collections::{BTreeMap, BTreeSet};

use crate::id::StreamId;
use crate::limits::DATABASES;
use crate::record::At;
use crate::state::garbage::Garbage;
use crate::state::sizes::SizeClass;
use crate::state::stream::Stream;

pub use capture::Captured;
pub use database::{Cleared, Database, Slot, Value};

use capture::Capture;

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

    /// Notes what work a group has left, if any: for [`State::free_one`], or keys to free.
    pub fn note_group_work(&mut self, at: At<'_>, name: &[u8]) {
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

    /// When the consumers of a group are looked through the next time (Unix ms).
    pub fn note_consumers_look(&mut self, db: usize, key: &[u8], name: &[u8], ms: u64) {
        self.capture(db, key);
        if let Some(group) = self.stream_mut(db, key).and_then(|stream| stream.group_mut(name)) {
            group.work_mut().consumers_look_ms = ms;
        }
    }

    /// Has any group work left, of either kind?
    pub fn has_group_work(&self) -> bool {
        !self.reaps.is_empty() || !self.key_frees.is_empty()
    }

    /// Is there something to free?
    pub fn has_garbage(&self) -> bool {
        !self.reaps.is_empty() || !self.garbage.is_empty()
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
}
