//! The one owner of the state. Whoever looks sees the [`State`] itself; changing it is what the functions here do, and
//! nothing else can, as the field is private to this file.
//!
//! [`Store::apply`] is the change that commands make, by a record. The others never change what a reply or a record can
//! say, except those that put back at the start what was stored: [`Store::restore`], [`Store::forget`] and
//! [`Store::note_time`]. A new function here must say which of the two it is.

use std::ops::Deref;

use super::apply::{Context, apply};
use crate::id::StreamId;
use crate::record::{At, Record};
use crate::state::keyspace::{Captured, State};
use crate::state::settled::Found;

/// See the module.
pub(super) struct Store {
    state: State,
}

impl Deref for Store {
    type Target = State;

    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl Store {
    /// Empty databases.
    pub fn new(seed: u64) -> Store {
        Store { state: State::new(seed) }
    }

    /// Changes the state as the record says.
    #[inline]
    pub fn apply(&mut self, record: &Record<'_>, context: &Context) {
        apply(&mut self.state, record, context);
    }

    // ---------------------------------------------------------------------------------------------- putting back

    /// Puts a key of a snapshot back, at the start.
    pub fn restore(&mut self, captured: Captured, position: u64) {
        self.state.restore(captured, position);
    }

    /// Empties everything, to be read back from disk.
    pub fn forget(&mut self, seed: u64) {
        self.state.forget(seed);
    }

    /// A time that stands in a stored commit or snapshot: time does not go back behind it.
    pub fn note_time(&mut self, now_ms: u64) {
        self.state.last_ms = self.state.last_ms.max(now_ms);
    }

    // ----------------------------------------------------------------------------------------------- housekeeping

    /// Begins a snapshot.
    pub fn snapshot_begin(&mut self) {
        self.state.snapshot_begin();
    }

    /// Goes on with the snapshot by about `n` keys; answers what was taken and whether it is complete with it.
    pub fn snapshot_continue(&mut self, n: usize) -> (Vec<Captured>, bool) {
        self.state.snapshot_continue(n)
    }

    /// Gives up the snapshot that is being taken.
    pub fn snapshot_abort(&mut self) {
        self.state.snapshot_abort();
    }

    /// Frees one piece of what was removed; answers whether there may be more.
    pub fn free_one(&mut self) -> bool {
        self.state.free_one()
    }

    /// Somebody watches a key that is missing.
    pub fn watch_missing(&mut self, db: usize, key: &[u8]) {
        self.state.watch_missing(db, key);
    }

    /// Somebody watches that key no more.
    pub fn unwatch_missing(&mut self, db: usize, key: &[u8]) {
        self.state.unwatch_missing(db, key);
    }

    /// What is left to look through of a stream for entries that have become free: from one ID to another, or nothing.
    pub fn set_sweep(&mut self, db: usize, key: &[u8], part: Option<(StreamId, StreamId)>) {
        match part {
            Some(part) => self.state.sweeps.insert((db, key.into()), part),
            None => self.state.sweeps.remove(&(db, key.into())),
        };
    }

    /// Plans anew when something happens to the value of a key by time.
    pub fn refresh_timer(&mut self, at: At<'_>) {
        self.state.db_mut(at.db).refresh_timer(at.key);
    }

    /// The oldest free entries of a stream up to `end`, see [`State::find_free`]; remembers how far it has looked.
    pub fn find_free(&mut self, at: At<'_>, end: StreamId, most: u64, looks: usize) -> Found {
        self.state.find_free(at.db, at.key, end, most, looks)
    }

    /// What [`Store::find_free`] found is not removed now: it is found again.
    pub fn put_back_free(&mut self, at: At<'_>, free: &[StreamId]) {
        self.state.put_back_free(at.db, at.key, free);
    }

    /// Something is left to do at a key in the next turns: its timer is set by what its value says.
    pub fn note_due(&mut self, at: At<'_>) {
        self.state.db_mut(at.db).note_due(at.key);
    }

    /// When the consumers of a group are looked through the next time for such as have had nothing for long.
    pub fn note_consumers_look(&mut self, at: At<'_>, group: &[u8], ms: u64) {
        self.state.note_consumers_look(at.db, at.key, group, ms);
    }

    /// Frees some keys of a group that nothing pending holds any more, see [`State::free_keys_of`]. Records and snapshots know
    /// them as free already; until this is done nobody is answered as if there were nothing behind them.
    pub fn free_keys(&mut self, at: At<'_>, group: &[u8], most: usize) -> bool {
        self.state.free_keys_of(at.db, at.key, group, most)
    }
}
