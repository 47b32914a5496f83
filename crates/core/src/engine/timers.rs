//! What happens by time alone: keys expire, what was given back with a delay is released, waits end, pauses end, what was
//! removed is freed. Expiry and release leave records like any command.

use std::ops::Bound::{Excluded, Unbounded};

use super::Engine;
use crate::engine::blocked::Signal;
use crate::engine::facts::Facts;
use crate::id::StreamId;
use crate::record::{At, Ids, Record};
use crate::state::group::KEYS_FREED_AT_ONCE;
use crate::state::keyspace::Value;
use crate::state::stream::LET_GO_MAX;

/// Most keys that one turn expires, so that a turn stays short; the rest follows in the next.
const EXPIRE_PER_TURN: usize = 200;

/// About how many things one turn does at streams because they are due.
const DUE_PER_TURN: usize = 1000;

impl Engine {
    /// Does what is due. Call once a turn, before input is read.
    pub fn tick(&mut self, facts: &Facts<'_>) {
        let now_ms = facts.now_ms;
        self.steps.set(0);
        let mut budget = EXPIRE_PER_TURN;
        for db in 0..self.state.databases().len() {
            while budget > 0 {
                let due = match self.state.db(db).next_expiry() {
                    Some((at_ms, key)) if at_ms <= now_ms => key.to_vec(),
                    _ => break,
                };
                self.expire_key(db, &due);
                budget -= 1;
            }
        }
        self.do_due(now_ms);
        self.sweep_some();
        self.tell_trims();
        self.free_keys();
        self.serve_postponed(facts);
        self.serve_ready(facts);
        self.serve_claims(facts);
        while let Some((deadline_ms, index)) = self.blocked.next_deadline()
            && deadline_ms <= now_ms
        {
            self.time_out(index);
        }
        if self.pause.is_some_and(|(until_ms, _)| until_ms <= now_ms) {
            self.unpause();
        }
        self.resume(facts);
    }

    /// Goes on with freeing the keys of one group. What waited for them may be given then.
    fn free_keys(&mut self) {
        // In turn: no group waits until all before it are done.
        loop {
            let all = &self.state.key_frees;
            let behind = self.keys_freed.take().and_then(|last| all.range((Excluded(last), Unbounded)).next());
            let Some(place) = behind.or(all.first()).cloned() else { return };
            let (db, key, group) = place.clone();
            self.keys_freed = Some(place);
            // The group may be gone, or somewhere else.
            let there = match self.state.db(db).get_any(&key).map(|slot| &slot.value) {
                Some(Value::Stream(stream)) => stream.group(&group).is_some_and(|group| group.frees_keys()),
                _ => false,
            };
            if self.state.free_keys(At { db, key: &key }, &group, KEYS_FREED_AT_ONCE) {
                self.blocked.signal(db, &key, Signal::Held);
            }
            if there {
                return;
            }
        }
    }

    /// Does what is due at streams by time alone: messages are forgotten, entries become too old, delayed ones become due,
    /// what was given back with a delay is released, rows of ledgers are forgotten, consumers without anything are removed.
    fn do_due(&mut self, now_ms: u64) {
        let mut budget = DUE_PER_TURN;
        for db in 0..self.state.databases().len() {
            while budget > 0
                && let Some((at_ms, key)) = self.state.db(db).next_timer()
                && at_ms <= now_ms
            {
                let key = key.to_vec();
                let at = At { db, key: &key };
                let trimmed = self.trim_beyond(at, now_ms);
                let forgotten = trimmed + self.forget_messages(at, now_ms) + self.end_delays(at, now_ms, budget);
                let forgotten = forgotten + self.forget_rows(at, now_ms, budget) + self.end_consumers(at, now_ms);
                let forgotten = forgotten + self.go_on_redriving(at, now_ms);
                // One that was called off counts as well: looking took its time.
                budget = budget.saturating_sub((forgotten + self.release_due(at, now_ms, budget)).max(1));
            }
        }
    }

    /// Trims what is too old, or beyond another bound since there was no time for it when that was noticed. Answers what that
    /// is worth of what one turn does.
    fn trim_beyond(&mut self, at: At<'_>, now_ms: u64) -> usize {
        let Some(Value::Stream(stream)) = self.state.db(at.db).get_any(at.key).map(|slot| &slot.value) else {
            return 0;
        };
        if stream.trims_at_ms().is_none_or(|trims_ms| trims_ms > now_ms) {
            return 0;
        }
        let Some(last) = stream.last_beyond(now_ms) else { return 0 };
        let part = stream.let_go_up_to(last, LET_GO_MAX);
        self.emit(&Record::Trim { at, before: part.next().unwrap_or(StreamId::MAX) });
        if part == StreamId::MAX {
            // Nothing stands behind the greatest ID, so its entry is removed by name.
            self.emit(&Record::TrimEntries { at, ids: Ids::Slice(&[part]) });
        }
        self.note_trim(at);
        if part < last { DUE_PER_TURN } else { 1 }
    }

    /// Forgets messages of one producer whose time is over; answers how many.
    fn forget_messages(&mut self, at: At<'_>, now_ms: u64) -> usize {
        let Some(Value::Stream(stream)) = self.state.db(at.db).get_any(at.key).map(|slot| &slot.value) else {
            return 0;
        };
        let Some(all) = &stream.idempotence else { return 0 };
        let (pid, until_ms) = match all.next_due() {
            Some((due_ms, pid)) if due_ms <= now_ms => (pid.clone(), now_ms - all.settings().duration_ms()),
            _ => return 0,
        };
        let before = all.len();
        self.emit_lazily(&Record::Forget { at, pid: &pid, until_ms });
        let Some(Value::Stream(stream)) = self.state.db(at.db).get_any(at.key).map(|slot| &slot.value) else {
            return 0;
        };
        (before - stream.idempotence.as_ref().map_or(0, |all| all.len())) as usize
    }

    /// When [`Engine::tick`] has something to do next, in Unix ms; `None` if nothing is planned.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let expiry = self.state.databases().iter().filter_map(|db| db.next_expiry().map(|(at_ms, _)| at_ms)).min();
        let wait = self.blocked.next_deadline().map(|(at_ms, _)| at_ms);
        let pause = self.pause.map(|(until_ms, _)| until_ms);
        let work = !self.state.sweeps.is_empty() || !self.state.key_frees.is_empty() || self.has_postponed();
        let work = work.then_some(0);
        let timer = self.state.databases().iter().filter_map(|db| db.next_timer().map(|(at_ms, _)| at_ms)).min();
        let look = self.blocked.next_look();
        [expiry, timer, work, wait, look, pause].into_iter().flatten().min()
    }
}
