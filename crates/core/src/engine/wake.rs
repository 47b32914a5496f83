//! Waking readers that wait. A record may end a wait at its key; after the command (or the whole transaction) that
//! emitted it, and before the next command of anybody, those who wait there are carried out again, first come first.
//! A key that holds a stream wakes everyone; a key that was lost or holds something else wakes only readers of groups,
//! who then get their error. What becomes pending, claimable or possible under a bound wakes only readers whom it concerns;
//! entries that grow old enough for CLAIM wake by time.
//!
//! Hundreds of consumers may wait for one stream, and an entry is for one of them. When one reader of a group has found
//! nothing new, the others of that group would find nothing either, and are left alone, but for those with CLAIM and those
//! that wait for other keys as well.

use super::{Cx, Engine};
use crate::command::table;
use crate::engine::acl::log::Origin;
use crate::engine::blocked::{ClientIndex, Signal};
use crate::engine::facts::Facts;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::session::{ClaimWait, Wait};
use crate::state::keyspace::Value;

impl Cx<'_> {
    /// Something at the key may be claimed sooner than anyone who waits for it could foresee.
    pub(super) fn note_claimable(&mut self, key: &[u8]) {
        self.engine.blocked.signal(self.db, key, Signal::Claimable);
    }

    /// Someone may have fewer entries in flight at the key than before, in a way that no record tells.
    pub(super) fn note_room(&mut self, key: &[u8]) {
        self.engine.blocked.signal(self.db, key, Signal::Room);
    }
}

impl Engine {
    /// Notes the keys at which a record may end a wait.
    pub(super) fn signal(&mut self, record: &Record<'_>) {
        if self.state.orders {
            self.signal_ready(record);
        }
        match record {
            Record::Add { at, .. }
            | Record::SetString { at, .. }
            | Record::Delete { at }
            | Record::GroupDestroy { at, .. } => self.blocked.signal(at.db, at.key, Signal::Any),
            Record::Rename { at, to } => {
                self.blocked.signal(at.db, at.key, Signal::Any);
                self.blocked.signal(at.db, to, Signal::Any);
            }
            Record::Copy { to, .. } => self.blocked.signal(to.db, to.key, Signal::Any),
            Record::Move { at, db } => {
                self.blocked.signal(at.db, at.key, Signal::Any);
                self.blocked.signal(*db, at.key, Signal::Any);
            }
            Record::Flush { db: Some(db) } => self.blocked.signal_all(*db),
            Record::Flush { db: None } => (0..self.state.databases().len()).for_each(|db| self.blocked.signal_all(db)),
            Record::SwapDb { a, b } => {
                self.blocked.signal_all(*a);
                self.blocked.signal_all(*b);
            }
            Record::Deliver { at, no_ack: false, .. } | Record::Give { at, no_ack: false, .. } => {
                self.blocked.signal(at.db, at.key, Signal::Pending);
            }
            Record::Claim { at, .. } => {
                self.blocked.signal(at.db, at.key, Signal::Pending);
                self.blocked.signal(at.db, at.key, Signal::Room);
            }
            Record::GiveBack { at, .. } | Record::GiveBackAll { at, .. } => {
                self.blocked.signal(at.db, at.key, Signal::Claimable);
                self.blocked.signal(at.db, at.key, Signal::Room);
            }
            Record::Due { at, .. } => self.blocked.signal(at.db, at.key, Signal::Held),
            Record::Acknowledge { at, .. }
            | Record::AcknowledgeRange { at, .. }
            | Record::DropRange { at, .. }
            | Record::Drop { at, .. }
            | Record::ConsumerDelete { at, .. }
            | Record::GroupOptions { at, .. } => self.blocked.signal(at.db, at.key, Signal::Room),
            _ => {}
        }
    }

    /// Where a record may have freed a key of a group, readers of groups hear of it if something waits for it no more.
    fn signal_ready(&mut self, record: &Record<'_>) {
        let (at, group) = match record {
            Record::Acknowledge { at, group, .. }
            | Record::AcknowledgeRange { at, group, .. }
            | Record::DropRange { at, group, .. }
            | Record::Drop { at, group, .. }
            | Record::ConsumerDelete { at, group, .. }
            | Record::GroupOptions { at, group, .. } => (at, group),
            _ => return,
        };
        if let Some(Value::Stream(stream)) = self.state.db(at.db).get_any(at.key).map(|slot| &slot.value)
            && stream.group(group).is_some_and(|group| group.held().has_ready())
        {
            self.blocked.signal(at.db, at.key, Signal::Held);
        }
    }

    /// Carries out again whoever may have something to read now.
    pub(super) fn serve_ready(&mut self, facts: &Facts<'_>) {
        while self.blocked.has_ready() {
            // A reader that was carried out in vain has looked at all its keys, and has a newer ticket.
            let newest_ticket = self.blocked.newest_ticket();
            for (db, key, what) in self.blocked.take_ready() {
                let stream = self
                    .state
                    .db(db)
                    .get(&key, facts.now_ms)
                    .is_some_and(|slot| matches!(slot.value, Value::Stream(_)));
                // Groups of which one reader has found nothing: the next one would not, either.
                let mut exhausted: Vec<Box<[u8]>> = Vec::new();
                // Where everyone waits for this key alone, going to the back one after the other changes no order.
                let single = self.blocked.is_single(db, &key);
                for (ticket, index) in self.blocked.queue(db, &key) {
                    let Some(wait) = self.client(index).and_then(|client| client.wait.as_deref()) else { continue };
                    let concerned = match what {
                        Signal::Any => stream || wait.group.is_some(),
                        Signal::Pending => wait.claims == Some(ClaimWait::Pending),
                        Signal::Claimable => {
                            wait.claims.is_some() && !exhausted.iter().any(|group| Some(group) == wait.group.as_ref())
                        }
                        Signal::Room => wait.crowded,
                        Signal::Held => {
                            wait.group.is_some() && !exhausted.iter().any(|group| Some(group) == wait.group.as_ref())
                        }
                    };
                    if wait.ticket != ticket || ticket > newest_ticket || !concerned {
                        continue;
                    }
                    let is_exhausted = || exhausted.iter().any(|group| Some(group) == wait.group.as_ref());
                    if what == Signal::Any
                        && stream
                        && wait.claims.is_none()
                        && wait.keys.len() == 1
                        && !exhausted.is_empty()
                        && is_exhausted()
                    {
                        if !single {
                            self.go_to_back(index);
                        }
                        continue;
                    }
                    self.serve(index, facts, what != Signal::Any || single);
                    if (matches!(what, Signal::Claimable | Signal::Held) || (what == Signal::Any && stream))
                        && let Some(wait) = self.client(index).and_then(|client| client.wait.as_deref())
                        && !wait.crowded
                    {
                        exhausted.extend(wait.group.clone());
                    }
                }
            }
        }
    }

    /// Carries out again the readers with CLAIM for which a pending entry is old enough now, in the order in which they
    /// have waited.
    pub(super) fn serve_claims(&mut self, facts: &Facts<'_>) {
        let mut due: Vec<(u64, ClientIndex)> = Vec::new();
        for index in self.blocked.due_claims(facts.now_ms) {
            if let Some(wait) = self.client(index).and_then(|client| client.wait.as_deref()) {
                due.push((wait.ticket, index));
            }
        }
        due.sort_unstable();
        for (ticket, index) in due {
            let waits = self.client(index).and_then(|client| client.wait.as_deref());
            if waits.is_some_and(|wait| wait.ticket == ticket) {
                self.serve(index, facts, true);
                self.serve_ready(facts);
            }
        }
    }

    /// Carries out a waiting read again. If it still has nothing, it waits on: where it stood, or at the back of its
    /// queues.
    fn serve(&mut self, index: ClientIndex, facts: &Facts<'_>, keeps_place: bool) {
        let Some(wait) = self.stop_waiting(index) else { return };
        let mut out = self.take_output(index);
        let start = out.len();
        self.own_pushes.running = Some(index);
        let Wait { args, deadline_ms, ticket, .. } = *wait;
        let spec = table::resolve(args.args()).expect("a read that waits was a good command before");
        let denial = self.find_denial(index, spec, args.args(), Origin::TopLevel, facts);
        if let (Some(denial), Some(client)) = (denial, self.client(index)) {
            let (fault, protocol) = (denial.fault(&client.user, spec), client.protocol);
            Reply { out: &mut out, protocol }.error(&fault.0);
            self.statistics.note_error(&fault.0);
            self.statistics.of(spec).rejected += 1;
            self.finish_command(index, out, start, 0);
            self.resume.push_back(index);
            return;
        }
        let (gate, waits) = self.run(index, spec, args.args(), facts, &mut out, true, true);
        if waits {
            let mut pushes = Vec::new();
            let pushes_gate = self.take_own_pushes(index, &mut pushes);
            self.restore_output(index, out);
            if !pushes.is_empty() {
                self.push(index, &pushes, pushes_gate);
            }
            self.wait_on(index, deadline_ms, keeps_place.then_some(ticket));
            return;
        }
        self.finish_command(index, out, start, gate);
        self.resume.push_back(index);
    }

    /// A reader that waits for one key goes to the back of its queue.
    fn go_to_back(&mut self, index: ClientIndex) {
        let Some(mut wait) = self.stop_waiting(index) else { return };
        wait.ticket = self.blocked.next_ticket();
        self.blocked.add(index, &wait);
        if let Some(client) = self.client_mut(index) {
            client.wait = Some(wait);
        }
    }

    /// A read that waits on keeps the deadline it had, and its place if it has a ticket for it.
    fn wait_on(&mut self, index: ClientIndex, deadline_ms: Option<u64>, ticket: Option<u64>) {
        let Some(mut wait) = self.stop_waiting(index) else { return };
        wait.deadline_ms = deadline_ms;
        wait.ticket = ticket.unwrap_or(wait.ticket);
        self.blocked.add(index, &wait);
        if let Some(client) = self.client_mut(index) {
            client.wait = Some(wait);
        }
    }
}
