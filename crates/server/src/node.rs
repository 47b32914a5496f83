//! The one owner of the engine: what happens to a partition goes in as a call (bytes came, a commit is done, a turn ends)
//! and what is to be done comes out of [`Node::end_turn`] as a [`Turn`]. The process performs it with sockets and disks,
//! the simulator with fake ones; both drive exactly this.
//!
//! Invariants: at most one commit is in flight; what the log was given is handed over once and in order; a reply whose
//! gate is not durable is never shown to the caller; after a failed commit no reply leaves at all. A snapshot is
//! finished only when the log is synced up to its position.
//!
//! No sockets, no files, no clock, no threads here, and nothing of what a command means.

mod commits;
mod saving;

use impel_core::command::table::CommandId;
use impel_core::engine::Engine;
use impel_core::engine::blocked::ClientIndex;
use impel_core::engine::facts::{Facts, Request, Saving as SavingFacts};
use impel_core::resp::encode::Reply;
use impel_core::session::Client;
use impel_core::settings::Settings;

pub use commits::Commit;
pub use saving::{Newest, SnapshotStep};

use commits::Commits;
use saving::Saving;

/// What the process is to do after a turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// Bytes for the log; [`Node::on_committed`] or [`Node::on_commit_failed`] answers.
    pub commit: Option<Commit>,
    /// For the writer of snapshots, in this order.
    pub snapshot: Vec<SnapshotStep>,
    /// What only the process can do, in this order.
    pub requests: Vec<Request>,
    /// When the next turn must begin even if nothing happens, in Unix ms.
    pub deadline_ms: Option<u64>,
    /// There is work that needs no event: the next turn should begin at once.
    pub again: bool,
}

/// A partition without its sockets and files.
pub struct Node {
    engine: Engine,
    commits: Commits,
    saving: Saving,
}

impl Node {
    /// A node with an empty state. `seed` makes the engine's hash tables unpredictable; it never shows.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Node { engine: Engine::new(settings, seed), commits: Commits::default(), saving: Saving::default() }
    }

    /// The engine, for reading its state back at start.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.engine.settings
    }

    /// The state has been read back: it stands for `position`, and all of that is durable; `newest` is the snapshot that
    /// was read. With `log` what changes from now on is handed over.
    pub fn restored(&mut self, position: u64, newest: Newest, log: bool, now_ms: u64) {
        (self.engine.durable, self.engine.synced) = (position, position);
        if log {
            self.engine.log.enable(position);
        }
        self.commits.restored(position);
        self.saving.restored(position, newest, self.engine.state().changes, now_ms);
    }

    /// A connection was opened.
    pub fn on_open(&mut self, addr: String, local_addr: String, now_ms: u64) -> ClientIndex {
        self.engine.open(addr, local_addr, now_ms)
    }

    /// Bytes came.
    pub fn on_bytes(&mut self, index: ClientIndex, bytes: &[u8], facts: &Facts<'_>) {
        self.engine.statistics.received_bytes += bytes.len() as u64;
        self.engine.feed(index, bytes, facts);
    }

    /// A connection is gone.
    pub fn on_closed(&mut self, index: ClientIndex) {
        self.engine.close(index);
    }

    /// The peer will send no more: what it is owed is still sent, unless it waits for something to happen. `false` if it has
    /// just stopped waiting and is to go on with what it sent meanwhile: then it is too early, and the next turn says it again.
    #[must_use]
    pub fn on_end_of_input(&mut self, index: ClientIndex) -> bool {
        if self.engine.resumes(index) {
            return false;
        }
        let Some(client) = self.engine.client_mut(index) else { return true };
        if client.wait.is_some() || client.output.is_empty() {
            client.killed = true;
        } else {
            client.closing = true;
        }
        self.engine.list_for_flush(index);
        true
    }

    /// A turn begins: does what is due by time.
    pub fn on_tick(&mut self, facts: &Facts<'_>) {
        self.engine.tick(facts);
        if !self.is_pressed() {
            self.engine.go_on_later(facts);
        }
    }

    /// A turn ends.
    pub fn end_turn(&mut self, facts: &Facts<'_>) -> Turn {
        let mut turn = Turn::default();
        self.engine.resume(facts);
        for request in self.engine.take_requests() {
            match request {
                Request::Save { client } => self.saving.ask(Some(client)),
                Request::SaveInBackground => self.saving.ask(None),
                Request::WaitDurable { client, position, deadline_ms } => {
                    self.commits.wait_for(client, position, deadline_ms);
                }
                other => turn.requests.push(other),
            }
        }
        self.answer_waits(facts.now_ms);
        self.save(facts.now_ms, &mut turn);
        turn.commit = self.commits.next(&mut self.engine, facts.now_ms);
        turn.again |= self.commits.is_held();
        turn.deadline_ms =
            [self.engine.next_deadline_ms(), self.commits.deadline_ms(), self.saving.deadline_ms(&self.engine)]
                .into_iter()
                .flatten()
                .min();
        turn
    }

    /// The commit in flight is done: everything up to `end` is in the log and, if `synced`, survives a crash.
    pub fn on_committed(&mut self, end: u64, synced: bool, bytes: Vec<u8>) {
        self.commits.done(end, synced, bytes);
        if synced {
            self.engine.synced = self.engine.synced.max(end);
        }
        self.engine.on_durable(end);
    }

    /// The commit in flight failed. Nobody knows what is on the disk: no reply leaves any more.
    pub fn on_commit_failed(&mut self) {
        self.commits.poison();
    }

    /// The process is about to end: everything there is goes to the log and is synced, also what nobody waits for, and what is
    /// done meanwhile by those who go on in the turns that this takes.
    pub fn sync_everything(&mut self) {
        self.commits.settle();
    }

    /// Is everything in the log and synced, and no commit in flight? Always, if there is no log.
    pub fn is_settled(&self) -> bool {
        !self.engine.log.is_enabled() || self.commits.is_settled(self.engine.log.position())
    }

    /// So much waits for the log that no more should be read before it has caught up.
    pub fn is_pressed(&self) -> bool {
        self.commits.is_pressed(&self.engine)
    }

    /// Clients with something to send or to be closed, each once.
    pub fn take_flush(&mut self, into: &mut Vec<ClientIndex>) {
        self.engine.take_flush(into);
    }

    /// A client can take more: looks at it in the next flush.
    pub fn list_for_flush(&mut self, index: ClientIndex) {
        self.engine.list_for_flush(index);
    }

    /// What may be sent to a client now.
    pub fn output(&mut self, index: ClientIndex) -> &[u8] {
        if self.commits.is_poisoned() {
            return &[];
        }
        let durable = self.engine.durable;
        self.engine.client_mut(index).map_or(&[], |client| client.output.ready(durable))
    }

    /// `n` bytes of [`Node::output`] were sent.
    pub fn sent(&mut self, index: ClientIndex, n: usize) {
        self.engine.on_sent(index, n);
    }

    /// Is there a client whose commands can go on without anything having happened? The next turn should begin at once.
    pub fn can_go_on(&self) -> bool {
        (self.engine.can_resume() || self.engine.has_later()) && !self.is_pressed()
    }

    /// A client.
    pub fn client(&self, index: ClientIndex) -> Option<&Client> {
        self.engine.client(index)
    }

    /// A client, for what only the process knows of it.
    pub fn client_mut(&mut self, index: ClientIndex) -> Option<&mut Client> {
        self.engine.client_mut(index)
    }

    /// Ends the wait of the client with that ID, if it still waits for the end of that command: it may have been
    /// unblocked, and wait for something else by now.
    pub fn answer(&mut self, client: u64, command: CommandId, answer: impl FnOnce(&mut Reply<'_>)) {
        if let Some(index) = self.engine.find_client(client)
            && self
                .engine
                .client(index)
                .and_then(|client| client.wait.as_ref())
                .is_some_and(|wait| wait.command == command)
        {
            self.engine.end_wait(index, answer);
        }
    }

    /// Frees one piece of what was removed; answers whether there may be more.
    pub fn free_one(&mut self) -> bool {
        self.engine.free_one()
    }

    /// Is there something to free?
    pub fn has_garbage(&self) -> bool {
        self.engine.state().has_garbage()
    }

    /// Where saving stands, for INFO and LASTSAVE.
    pub fn saving(&self) -> SavingFacts {
        self.saving.facts(self.engine.state().changes)
    }

    /// Position up to which the log is synced.
    pub fn synced_position(&self) -> u64 {
        self.commits.synced()
    }

    fn answer_waits(&mut self, now_ms: u64) {
        for (client, synced) in self.commits.ended_waits(now_ms) {
            self.answer(client, CommandId::WaitAof, |reply| {
                reply.array(2);
                reply.int(i64::from(synced));
                // No replicas.
                reply.int(0);
            });
        }
    }
}

#[cfg(test)]
mod tests;
