//! Waking readers that wait. A record may end a wait at its key; after the command (or the whole transaction) that
//! emitted it, and before the next command of anybody, those who wait there are carried out again, first come first.
//! A key that holds a stream wakes everyone; a key that was lost or holds something else wakes only readers of groups,
//! who then get their error.

use super::Engine;
use crate::command::table;
use crate::engine::blocked::ClientIndex;
use crate::engine::facts::Facts;
use crate::record::Record;
use crate::session::Wait;
use crate::state::keyspace::Value;

impl Engine {
    /// Notes the keys at which a record may end a wait.
    pub(super) fn signal(&mut self, record: &Record<'_>) {
        match record {
            Record::Add { at, .. }
            | Record::SetString { at, .. }
            | Record::Delete { at }
            | Record::GroupDestroy { at, .. } => self.blocked.signal(at.db, at.key),
            Record::Rename { at, to } => {
                self.blocked.signal(at.db, at.key);
                self.blocked.signal(at.db, to);
            }
            Record::Copy { to, .. } => self.blocked.signal(to.db, to.key),
            Record::Move { at, db } => {
                self.blocked.signal(at.db, at.key);
                self.blocked.signal(*db, at.key);
            }
            Record::Flush { db: Some(db) } => self.blocked.signal_all(*db),
            Record::Flush { db: None } => (0..self.state.databases().len()).for_each(|db| self.blocked.signal_all(db)),
            Record::SwapDb { a, b } => {
                self.blocked.signal_all(*a);
                self.blocked.signal_all(*b);
            }
            _ => {}
        }
    }

    /// Carries out again whoever may have something to read now.
    pub(super) fn serve_ready(&mut self, facts: &Facts<'_>) {
        while self.blocked.has_ready() {
            // A reader that was carried out in vain has looked at all its keys, and has a newer ticket.
            let newest_ticket = self.blocked.newest_ticket();
            for (db, key) in self.blocked.take_ready() {
                let stream = self
                    .state
                    .db(db)
                    .get(&key, facts.now_ms)
                    .is_some_and(|slot| matches!(slot.value, Value::Stream(_)));
                for (ticket, index) in self.blocked.queue(db, &key) {
                    let Some(wait) = self.client(index).and_then(|client| client.wait.as_deref()) else { continue };
                    if wait.ticket != ticket || ticket > newest_ticket || !(stream || wait.group) {
                        continue;
                    }
                    self.serve(index, facts);
                }
            }
        }
    }

    /// Carries out a waiting read again. If it still has nothing, it waits on at the back of its queues.
    fn serve(&mut self, index: ClientIndex, facts: &Facts<'_>) {
        let Some(wait) = self.stop_waiting(index) else { return };
        let Some(client) = self.client_mut(index) else { return };
        let mut out = client.output.take();
        let start = out.len();
        let Wait { args, deadline_ms, .. } = *wait;
        let spec = table::resolve(args.args()).expect("a read that waits was a good command before");
        let (gate, waits) = self.run(index, spec, args.args(), facts, &mut out, true, true);
        if waits {
            if let Some(client) = self.client_mut(index) {
                client.output.restore(out);
            }
            self.keep_deadline(index, deadline_ms);
            return;
        }
        self.finish_command(index, out, start, gate);
        self.resume.push(index);
    }

    /// A read that waits on keeps the deadline it had.
    fn keep_deadline(&mut self, index: ClientIndex, deadline_ms: Option<u64>) {
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_deref_mut) else { return };
        let Some(wait) = client.wait.as_deref_mut() else { return };
        self.blocked.change_deadline(index, wait.deadline_ms, deadline_ms);
        wait.deadline_ms = deadline_ms;
    }
}
