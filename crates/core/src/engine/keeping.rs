//! What the process does with the state besides carrying out commands: putting back at the start what was stored, taking
//! snapshots of it, freeing what was removed.

use super::Engine;
use super::apply::Context;
use crate::record::Record;
use crate::state::keyspace::{Captured, Slot, State, Value};

impl Engine {
    /// What is known, to look at. Changes are records.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Empties everything, to be read back from disk as at a start. `seed` is that of [`Engine::new`].
    pub fn forget(&mut self, seed: u64) {
        self.state.forget(seed);
    }

    /// Puts a key of a snapshot back, at the start. `position` is the snapshot's.
    pub fn restore(&mut self, captured: Captured, position: u64) {
        self.state.restore(captured, position);
    }

    /// Applies a record of the log, at the start. `position` is that behind it.
    pub fn replay(&mut self, record: &Record<'_>, position: u64) {
        let context = Context { position, node_limits: self.node_limits() };
        self.state.apply(record, &context);
        // An entry may have made its stream longer than it is to be, and the server have ended before the turn in which that
        // was to be put right: nothing in the log says so.
        if let Record::Add { at, .. } = record
            && let Some(Slot { value: Value::Stream(stream), .. }) = self.state.db(at.db).get_any(at.key)
            && stream.trims_at_ms().is_some()
        {
            self.state.note_due(*at);
        }
    }

    /// A time (Unix ms) that stands in what was stored: time does not go back behind it.
    pub fn note_time(&mut self, now_ms: u64) {
        self.state.note_time(now_ms);
    }

    /// Begins a snapshot of the state as it is now. One at a time.
    pub fn snapshot_begin(&mut self) {
        self.state.snapshot_begin();
    }

    /// Goes on with the running snapshot by about `n` keys. Answers what was taken since the last call and whether the
    /// snapshot is complete with it.
    pub fn snapshot_continue(&mut self, n: usize) -> (Vec<Captured>, bool) {
        self.state.snapshot_continue(n)
    }

    /// Gives up the snapshot that is being taken.
    pub fn snapshot_abort(&mut self) {
        self.state.snapshot_abort();
    }

    /// Frees one piece of what was removed; answers whether there may be more. Nothing that can be asked changes by it.
    pub fn free_one(&mut self) -> bool {
        self.state.free_one()
    }
}
