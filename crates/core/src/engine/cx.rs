//! What a command works with: who asks, what it may look at, and the one door to change.
//!
//! Looking a key up here notes what the reply depends on; a command that looked elsewhere would be answered too early.

use std::cell::{Cell, RefCell};

use super::blocked::ClientIndex;
use super::facts::{Facts, Request};
use super::fault::Fault;
use super::{Carried, Engine};
use crate::command::table::{CommandSpec, Flags};
use crate::id::StreamId;
use crate::record::{At, Record};
use crate::session::{Client, Progress, Wait};
use crate::settings::Settings;
use crate::state::entries::NodeLimits;
use crate::state::keyspace::{Slot, State, Value};
use crate::state::settled::Found;
use crate::state::stream::Stream;

/// What a command works with.
pub struct Cx<'e> {
    pub(super) engine: &'e mut Engine,
    /// Who asks.
    pub client: ClientIndex,
    /// The database it has selected.
    pub db: usize,
    /// What comes from outside.
    pub facts: &'e Facts<'e>,
    /// The command.
    pub spec: &'static CommandSpec,
    /// A reader that waited is carried out again.
    pub again: bool,
    /// The command was postponed, and goes on.
    pub goes_on: bool,
    /// What a trim that was postponed gave itself along.
    pub carried: Option<Carried>,
    /// How far a command has come that was postponed and collects its reply.
    pub progress: Option<Box<Progress>>,
    /// May this call wait? Not inside a transaction.
    pub may_block: bool,
    /// Set by a read that has nothing to answer yet.
    pub wait: Option<Box<Wait>>,
    /// Newest log position that the reply depends on.
    pub(super) gate: Cell<u64>,
    /// Look-ups of a reading command that found their key, and that did not.
    pub(super) lookups: Cell<(u64, u64)>,
    /// Keys that were not found, where someone wants to hear of it.
    pub(super) missed: RefCell<Vec<(usize, Box<[u8]>)>>,
    pub(super) emitted: bool,
}

impl<'e> Cx<'e> {
    /// Now, in Unix ms.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.facts.now_ms
    }

    /// What is known. Reading goes through here; changing goes through [`Cx::emit`].
    #[inline]
    pub fn state(&self) -> &State {
        &self.engine.state
    }

    /// The engine, for commands about connections, users and the server itself. It gives no way to the state but records.
    pub(in crate::engine) fn engine(&mut self) -> &mut Engine {
        self.engine
    }

    /// The engine, to look at.
    pub(in crate::engine) fn engine_ref(&self) -> &Engine {
        self.engine
    }

    /// The connection that asks.
    pub fn client(&mut self) -> &mut Client {
        self.engine.client_mut(self.client).expect("the client of a command is there")
    }

    /// The settings.
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.engine.settings
    }

    /// A key of the selected database, as the address of a record.
    #[inline]
    pub fn at<'k>(&self, key: &'k [u8]) -> At<'k> {
        At { db: self.db, key }
    }

    /// Notes that the reply depends on the log up to `position`.
    #[inline]
    pub fn depends_on(&self, position: u64) {
        if position > self.gate.get() {
            self.gate.set(position);
        }
    }

    /// Notes that the reply depends on everything so far.
    pub fn depends_on_all(&self) {
        self.depends_on(self.engine.log.position());
    }

    /// A key of any database; the reply then depends on its newest record.
    #[inline]
    pub fn slot_in(&self, db: usize, key: &[u8]) -> Option<&Slot> {
        let database = self.engine.state.db(db);
        let kept = database.get_any(key);
        let found = kept.filter(|slot| slot.lives(self.facts.now_ms));
        if self.spec.flags.has(Flags::READONLY) {
            let (hits, misses) = self.lookups.get();
            let hit = u64::from(found.is_some());
            self.lookups.set((hits + hit, misses + 1 - hit));
        }
        match found {
            Some(slot) => {
                self.depends_on(slot.position.max(database.swapped_position));
                Some(slot)
            }
            None => {
                self.depends_on(database.removed_position);
                // Its time is over: a crash must not take back the record that set the time.
                if let Some(over) = kept {
                    self.depends_on(over.position);
                }
                if !self.engine.settings.notify_keyspace_events.is_empty() {
                    self.note_miss(db, key);
                }
                None
            }
        }
    }

    /// A key of the selected database; the reply then depends on its newest record.
    #[inline]
    pub fn slot(&self, key: &[u8]) -> Option<&Slot> {
        self.slot_in(self.db, key)
    }

    /// Which value there is under a key, see [`Slot::born`]; 0 if there is none.
    pub fn born(&self, key: &[u8]) -> u64 {
        self.engine.state.db(self.db).get_any(key).map_or(0, |slot| slot.born)
    }

    /// Is the command part of a transaction?
    pub fn in_transaction(&self) -> bool {
        !self.may_block
    }

    /// The stream under a key; `None` if there is no such key.
    #[inline]
    pub fn stream(&self, key: &[u8]) -> Result<Option<&Stream>, Fault> {
        match self.slot(key).map(|slot| &slot.value) {
            Some(Value::Stream(stream)) => Ok(Some(stream)),
            Some(Value::String(_)) => Err(Fault::WRONG_TYPE),
            None => Ok(None),
        }
    }

    /// The string under a key; `None` if there is no such key.
    pub fn string(&self, key: &[u8]) -> Result<Option<&[u8]>, Fault> {
        match self.slot(key).map(|slot| &slot.value) {
            Some(Value::String(bytes)) => Ok(Some(bytes)),
            Some(Value::Stream(_)) => Err(Fault::WRONG_TYPE),
            None => Ok(None),
        }
    }

    /// Is memory short for what this command would make? For commands that take memory only with some options; those that
    /// always may are judged before they run. Not for a script that may go on all the same.
    pub fn is_memory_short(&self) -> bool {
        !self.engine.memory_granted && self.engine.is_memory_short(self.facts)
    }

    /// Appends a record to the log and applies it.
    #[inline]
    pub fn emit(&mut self, record: &Record<'_>) {
        self.emitted = true;
        let position = self.engine.emit(record);
        self.depends_on(position);
    }

    /// Like [`Cx::emit`] for what no reply depends on (when a consumer was last seen): it is logged with whatever
    /// comes next, and nobody waits for it.
    pub fn emit_lazily(&mut self, record: &Record<'_>) {
        self.engine.emit_lazily(record);
    }

    /// The oldest free entries of the stream under a key up to `end`, at most `most`; the caller removes them by record. Looks
    /// at no more than `looks` entries of which nothing is known from before.
    pub fn find_free(&mut self, key: &[u8], end: StreamId, most: u64, looks: usize) -> Found {
        self.engine.state.find_free(At { db: self.db, key }, end, most, looks)
    }

    /// What [`Cx::find_free`] found is not removed now.
    pub fn put_back_free(&mut self, key: &[u8], free: &[StreamId]) {
        self.engine.state.put_back_free(At { db: self.db, key }, free);
    }

    /// Something is left to do at a key that turns to come will do.
    pub fn note_due(&mut self, key: &[u8]) {
        self.engine.state.note_due(At { db: self.db, key });
    }

    /// Frees all keys of a group that nothing pending holds any more, for a command that cannot wait until they are.
    pub fn free_keys(&mut self, key: &[u8], group: &[u8]) {
        self.engine.state.free_keys(At { db: self.db, key }, group, usize::MAX);
    }

    /// Asks the process for something.
    pub fn request(&mut self, request: Request) {
        self.engine.requests.push(request);
    }

    /// Limits of a block of entries, from the settings.
    pub fn node_limits(&self) -> NodeLimits {
        self.engine.node_limits()
    }
}
