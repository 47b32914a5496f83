//! What happens by time alone: keys expire, what was given back with a delay is released, waits end, pauses end, what was
//! removed is freed. Expiry and release leave records like any command.

use super::Engine;
use crate::engine::facts::Facts;
use crate::record::At;

/// Most keys that one turn expires, so that a turn stays short; the rest follows in the next.
const EXPIRE_PER_TURN: usize = 200;

/// Most entries given back with a delay that one turn releases.
const RELEASE_PER_TURN: usize = 1000;

impl Engine {
    /// Does what is due. Call once a turn, before input is read.
    pub fn tick(&mut self, facts: &Facts<'_>) {
        let now_ms = facts.now_ms;
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
        let mut budget = RELEASE_PER_TURN;
        for db in 0..self.state.databases().len() {
            while budget > 0
                && let Some((at_ms, key)) = self.state.db(db).next_timer()
                && at_ms <= now_ms
            {
                let key = key.to_vec();
                // One that was called off counts as well: looking took its time.
                budget = budget.saturating_sub(self.release_due(At { db, key: &key }, now_ms, budget).max(1));
            }
        }
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

    /// When [`Engine::tick`] has something to do next, in Unix ms; `None` if nothing is planned.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let expiry = self.state.databases().iter().filter_map(|db| db.next_expiry().map(|(at_ms, _)| at_ms)).min();
        let wait = self.blocked.next_deadline().map(|(at_ms, _)| at_ms);
        let pause = self.pause.map(|(until_ms, _)| until_ms);
        let timer = self.state.databases().iter().filter_map(|db| db.next_timer().map(|(at_ms, _)| at_ms)).min();
        let claim = self.blocked.next_claim();
        [expiry, timer, wait, claim, pause].into_iter().flatten().min()
    }
}
