//! Clients that wait: for what a blocking read wants, or for CLIENT PAUSE to end. Who waits for which key is in
//! `blocked`, and what ends a wait in `wake`.

use super::Engine;
use super::blocked::{ClientIndex, Place, Signal};
use crate::command::args::OwnedArgs;
use crate::command::table::CommandId;
use crate::engine::facts::Facts;
use crate::resp::encode::Reply;
use crate::session::Wait;

/// What CLIENT PAUSE holds back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Every command.
    All,
    /// Commands that may change something.
    Write,
}

impl Engine {
    pub(super) fn start_waiting(&mut self, index: ClientIndex, mut wait: Box<Wait>, facts: &Facts<'_>) {
        wait.ticket = self.blocked.next_ticket();
        self.statistics.blocked_total += u64::from(!wait.only_goes_on());
        self.line_up(index, wait, facts);
    }

    /// Puts a client with a ticket in the queues of its keys.
    pub(super) fn line_up(&mut self, index: ClientIndex, wait: Box<Wait>, facts: &Facts<'_>) {
        self.blocked.add(index, &wait);
        if wait.goes_on {
            self.postponed.add(index, &wait);
        }
        if let Some(reader) = wait.group.as_ref().filter(|_| !wait.only_goes_on()) {
            for key in &wait.keys {
                let place = Place { db: wait.db, key: key.clone(), group: reader.group.clone() };
                let needs_room = !reader.no_ack || reader.claims_at(key).is_some();
                if needs_room && !self.has_room(&place, reader, facts.now_ms) {
                    self.blocked.set_full(&place, wait.ticket, index, reader);
                }
                self.note_outlook(&place, false, facts);
            }
        }
        if let Some(client) = self.client_mut(index) {
            client.wait = Some(wait);
        }
    }

    /// Takes a client out of all queues; answers what it waited for.
    pub(super) fn stop_waiting(&mut self, index: ClientIndex) -> Option<Box<Wait>> {
        let wait = self.client_mut(index)?.wait.take()?;
        self.blocked.remove(index, &wait);
        if wait.goes_on {
            self.postponed.remove(wait.ticket);
            // Those behind it were left alone as long as it was looking.
            wait.keys.iter().for_each(|key| self.blocked.signal(wait.db, key, Signal::Held));
        }
        Some(wait)
    }

    /// Ends a client's wait with a reply written by `answer`. `false` if it did not wait.
    pub fn end_wait(&mut self, index: ClientIndex, answer: impl FnOnce(&mut Reply<'_>)) -> bool {
        if self.stop_waiting(index).is_none() {
            return false;
        }
        let Some(protocol) = self.client(index).map(|client| client.protocol) else { return false };
        let mut out = self.take_output(index);
        let start = out.len();
        answer(&mut Reply { out: &mut out, protocol });
        self.finish_command(index, out, start, 0);
        self.resume.push_back(index);
        true
    }

    /// How many clients wait. Commands that only go on in the next turn do not.
    pub fn blocked_count(&self) -> usize {
        self.blocked.len()
    }

    /// Keys that someone waits for.
    pub fn blocking_key_count(&self) -> usize {
        self.blocked.key_count()
    }

    /// Holds commands back until `until_ms`.
    pub(crate) fn pause_until(&mut self, until_ms: u64, what: Pause) {
        // A pause never becomes shorter or narrower by another one.
        self.pause = Some(match self.pause {
            Some((until, Pause::All)) => (until.max(until_ms), Pause::All),
            Some((until, Pause::Write)) => (until.max(until_ms), what),
            None => (until_ms, what),
        });
    }

    /// Ends a pause.
    pub(crate) fn unpause(&mut self) {
        self.pause = None;
        for index in std::mem::take(&mut self.paused) {
            if let Some(client) = self.client_mut(index) {
                client.held_back = false;
            }
            self.resume.push_back(index);
        }
    }

    /// Makes what a waiting read needs from its arguments.
    pub(crate) fn wait_for(
        command: CommandId,
        args: OwnedArgs,
        db: usize,
        keys: Vec<Box<[u8]>>,
        deadline_ms: Option<u64>,
    ) -> Box<Wait> {
        let (group, carried, progress) = (None, None, None);
        let (is_asked_for, goes_on, ticket) = (true, false, 0);
        Box::new(Wait { args, command, db, keys, deadline_ms, group, is_asked_for, goes_on, carried, progress, ticket })
    }
}
