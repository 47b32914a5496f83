//! Snapshots of the living state: what a running one has taken and has still to take.
//!
//! A snapshot holds every key as it was when it began. A key that is about to change is taken before; the others a few
//! each turn. What is taken shares blocks and pending lists with the living value, so taking is cheap.

use super::State;
use super::database::{Cleared, Database, Slot, Value};
use crate::id::StreamId;

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
pub(super) struct Capture {
    /// The number that each database had when the snapshot began, by its present number.
    pub(super) numbers: Vec<usize>,
    /// Present numbers of the databases that are not done; the last is being walked, and is at `place`.
    pub(super) left: Vec<usize>,
    pub(super) place: usize,
    /// What databases held that were emptied since, and the numbers they had.
    pub(super) cleared: Vec<(usize, Cleared)>,
    taken: Vec<Captured>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("left", &self.left).field("place", &self.place).finish_non_exhaustive()
    }
}

impl State {
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
        let version = self.next_version();
        let slot = Slot {
            value: captured.value,
            expire_ms: captured.expire_ms,
            position,
            version,
            born: version,
            captured: self.snapshot,
            timer_ms: 0,
        };
        self.databases[captured.db].insert(&captured.key, slot);
        self.note_sweep(captured.db, &captured.key, StreamId::MIN, StreamId::MAX);
    }
}
