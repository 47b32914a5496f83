//! Commands in, replies and records out.
//!
//! The way of a command: [`Engine::feed`] finds it in the input, `judge` decides whether it may run (known? arity,
//! authentication, memory, MULTI), and `execute` hands it to its function under `decide/`, which checks everything, writes
//! the reply and *emits* records. Emitting is the one door to change: the record is appended to the log and applied to the
//! state in the same step, so what is logged and what happened cannot differ. A function that answers an error has emitted
//! nothing.
//!
//! Nothing here reads a clock or a socket: time, memory use and the like come as [`Facts`]; what only the process can
//! do (save, shut down, sleep) leaves as a [`Request`].

pub mod acl;
pub mod apply;
pub mod blocked;
mod clients;
mod cx;
pub mod decide;
pub mod events;
mod execute;
pub mod facts;
pub mod fault;
mod feed;
pub mod fit;
mod judge;
mod keeping;
pub mod log;
pub mod observe;
mod postpone;
pub mod pubsub;
mod retire;
pub mod script;
mod store;
mod timers;
mod timing;
mod txn;
mod waiting;
mod wake;

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::pipeline::Spares;
use crate::record::Record;
use crate::session::{Client, Progress};
use crate::settings::Settings;
use crate::state::entries::NodeLimits;
use crate::state::keyspace::GroupPlace;

pub use cx::Cx;
pub use postpone::Carried;
pub use waiting::Pause;

use acl::Acl;
use apply::Context;
use blocked::{Blocked, ClientIndex};
use facts::Request;
use log::PendingLog;
use observe::{SlowLog, Statistics};
use postpone::Postponed;
use pubsub::{OwnPushes, PubSub};
use script::{ScriptUsage, Scripts};
use store::Store;
use timing::Timing;

/// State, connections and everything between a command and its effects.
pub struct Engine {
    state: Store,
    /// The settings, shared with the process.
    pub settings: Settings,
    /// Connections by index; freed places are used again.
    clients: Vec<Option<Box<Client>>>,
    free_clients: Vec<ClientIndex>,
    by_id: BTreeMap<u64, ClientIndex>,
    next_client_id: u64,
    blocked: Blocked,
    /// Records that the log has not been given yet.
    pub log: PendingLog,
    /// Log position up to which everything is durable.
    pub durable: u64,
    /// Log position up to which everything survives a crash: behind `durable` under `appendfsync everysec` and `no`.
    pub synced: u64,
    /// Clients whose output waits for a position, the smallest first: a reply about an older record may be asked for
    /// after one about a newer record.
    held: BinaryHeap<Reverse<(u64, ClientIndex, u64)>>,
    /// Output buffers that no client uses now.
    spares: Spares,
    /// Clients that have output to send.
    flush: Vec<ClientIndex>,
    /// Clients with input left that can go on.
    resume: VecDeque<ClientIndex>,
    /// Clients that have had their share of this turn and go on in the next.
    later: Vec<ClientIndex>,
    /// Clients whose commands go on in the next turn.
    postponed: Postponed,
    /// The command that is carried out next goes on from an earlier turn, with what it carries over.
    going_on: Option<Option<Carried>>,
    progress: Option<Box<Progress>>,
    /// Steps that were done in this turn: see `postpone`.
    steps: Cell<usize>,
    /// The group whose keys were freed last, and the stream that was swept last.
    keys_freed: Option<GroupPlace>,
    swept: Option<(usize, Box<[u8]>)>,
    /// Microseconds of measured commands since one connection began to be served.
    spent_us: u64,
    /// Until when (Unix ms) and for whom commands are held back.
    pause: Option<(u64, Pause)>,
    paused: Vec<ClientIndex>,
    /// Counters for INFO.
    pub statistics: Statistics,
    /// SLOWLOG.
    pub slow_log: SlowLog,
    requests: Vec<Request>,
    /// Channels and who is subscribed to them.
    pub pubsub: PubSub,
    own_pushes: OwnPushes,
    /// Streams of which entries went by trimming, until that is told.
    trimmed: Vec<(usize, Box<[u8]>)>,
    /// A command of a script runs that may take memory where it is short.
    memory_granted: bool,
    timing: Timing,
    /// Who may do what.
    pub acl: Acl,
    /// Scripts and their interpreter; away while one runs.
    scripts: Option<Box<Scripts>>,
    /// What scripts took when they were last taken out.
    script_usage: ScriptUsage,
}

impl Engine {
    /// An engine with empty databases. `seed` makes its hash tables unpredictable to clients.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Engine {
            state: Store::new(seed),
            slow_log: SlowLog::default(),
            acl: Acl::new(&settings),
            settings,
            clients: Vec::new(),
            free_clients: Vec::new(),
            by_id: BTreeMap::new(),
            next_client_id: 1,
            blocked: Blocked::default(),
            log: PendingLog::default(),
            durable: 0,
            synced: 0,
            held: BinaryHeap::new(),
            spares: Spares::default(),
            flush: Vec::new(),
            resume: VecDeque::new(),
            later: Vec::new(),
            postponed: Postponed::default(),
            going_on: None,
            progress: None,
            steps: Cell::new(0),
            keys_freed: None,
            swept: None,
            spent_us: 0,
            pause: None,
            paused: Vec::new(),
            statistics: Statistics::default(),
            requests: Vec::new(),
            pubsub: PubSub::default(),
            own_pushes: OwnPushes::default(),
            trimmed: Vec::new(),
            memory_granted: false,
            timing: Timing::default(),
            scripts: None,
            script_usage: ScriptUsage::default(),
        }
    }

    /// The scripts that are kept, unless one runs or there never was one.
    pub fn scripts(&self) -> Option<&Scripts> {
        self.scripts.as_deref()
    }

    /// What scripts take; while one runs, what they took when it began.
    pub fn script_usage(&self) -> ScriptUsage {
        self.scripts.as_deref().map_or(self.script_usage, Scripts::usage)
    }

    fn take_scripts(&mut self) -> Box<Scripts> {
        self.script_usage = self.script_usage();
        self.scripts.take().unwrap_or_default()
    }

    fn forget_scripts(&mut self) {
        self.scripts = None;
        self.script_usage = ScriptUsage::default();
    }

    fn put_scripts(&mut self, scripts: Box<Scripts>) {
        self.scripts = Some(scripts);
    }

    fn node_limits(&self) -> NodeLimits {
        NodeLimits {
            max_entries: self.settings.stream_node_max_entries as usize,
            max_bytes: self.settings.stream_node_max_bytes as usize,
        }
    }

    fn emit(&mut self, record: &Record<'_>) -> u64 {
        let position = self.log.append(record);
        let context = Context { position, node_limits: self.node_limits() };
        self.state.apply(record, &context);
        if !self.blocked.is_empty() {
            self.signal(record);
        }
        self.retire(record);
        position
    }

    fn emit_lazily(&mut self, record: &Record<'_>) {
        let position = self.log.append_lazily(record);
        let context = Context { position, node_limits: self.node_limits() };
        self.state.apply(record, &context);
    }

    // ------------------------------------------------------------------------------------------------ connections

    /// A connection was opened. Answers its index, which stays until [`Engine::close`].
    pub fn open(&mut self, addr: String, local_addr: String, now_ms: u64) -> ClientIndex {
        let id = self.next_client_id;
        self.next_client_id += 1;
        let user = self.acl.default_user().clone();
        let client = Box::new(Client::new(id, addr, local_addr, now_ms, user));
        let index = self.free_clients.pop().unwrap_or_else(|| {
            self.clients.push(None);
            self.clients.len() - 1
        });
        self.clients[index] = Some(client);
        self.by_id.insert(id, index);
        self.forget_user(index);
        self.statistics.connections_received += 1;
        index
    }

    /// A connection is gone. What it waited for, watched, had queued or was subscribed to goes with it.
    pub fn close(&mut self, index: ClientIndex) {
        self.stop_waiting(index);
        self.unsubscribe_all(index);
        self.forget_watches(index);
        if let Some(client) = self.clients[index].take() {
            self.by_id.remove(&client.id);
            self.free_clients.push(index);
        }
    }

    /// A connection by index.
    #[inline]
    pub fn client(&self, index: ClientIndex) -> Option<&Client> {
        self.clients.get(index)?.as_deref()
    }

    /// A connection by index, to be changed.
    #[inline]
    pub fn client_mut(&mut self, index: ClientIndex) -> Option<&mut Client> {
        self.clients.get_mut(index)?.as_deref_mut()
    }

    /// All connections in order of their IDs.
    pub fn clients(&self) -> impl Iterator<Item = (ClientIndex, &Client)> {
        self.by_id.values().filter_map(|&index| Some((index, self.client(index)?)))
    }

    /// Number of connections.
    pub fn client_count(&self) -> usize {
        self.by_id.len()
    }

    /// Clients that have output to send, each once.
    pub fn take_flush(&mut self, into: &mut Vec<ClientIndex>) {
        into.clear();
        std::mem::swap(&mut self.flush, into);
        for &index in into.iter() {
            if let Some(client) = self.client_mut(index) {
                client.flush_listed = false;
            }
        }
    }

    /// Puts a client on the list of those with output to send.
    pub fn list_for_flush(&mut self, index: ClientIndex) {
        if let Some(client) = self.clients.get_mut(index).and_then(Option::as_deref_mut)
            && !client.flush_listed
        {
            client.flush_listed = true;
            self.flush.push(index);
        }
    }

    /// What the process is asked to do.
    pub fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    /// The log is durable up to `position`: replies that waited for it may leave.
    pub fn on_durable(&mut self, position: u64) {
        self.durable = self.durable.max(position);
        while let Some(&Reverse((waits_for, index, id))) = self.held.peek()
            && waits_for <= self.durable
        {
            self.held.pop();
            if self.client(index).is_some_and(|client| client.id == id) {
                self.list_for_flush(index);
            }
        }
    }

    /// Does a reply wait for the log?
    pub fn holds_replies(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes a client's output buffer, for a reply; [`Engine::finish_reply`] gives it back.
    #[inline]
    fn take_output(&mut self, index: ClientIndex) -> Vec<u8> {
        let client = self.clients.get_mut(index).and_then(Option::as_deref_mut);
        client.map_or_else(Vec::new, |client| client.output.take(&mut self.spares))
    }

    /// Gives a client its output buffer back with nothing appended.
    fn restore_output(&mut self, index: ClientIndex, bytes: Vec<u8>) {
        match self.clients.get_mut(index).and_then(Option::as_deref_mut) {
            Some(client) if !bytes.is_empty() => client.output.restore(bytes),
            _ => self.spares.keep(bytes),
        }
    }

    /// A client has been sent `n` bytes of its output.
    pub fn on_sent(&mut self, index: ClientIndex, n: usize) {
        self.statistics.sent_bytes += n as u64;
        if let Some(client) = self.clients.get_mut(index).and_then(Option::as_deref_mut) {
            client.sent_bytes += n as u64;
            client.output.advance(n, &mut self.spares);
        }
        self.go_on_if_room(index);
    }

    /// Gives a client its output buffer back with a reply in it.
    fn finish_reply(&mut self, index: ClientIndex, bytes: Vec<u8>, gate: u64) {
        let durable = self.durable;
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_deref_mut) else { return };
        if bytes.is_empty() {
            // Who waits for something holds no buffer.
            self.spares.keep(bytes);
            return self.list_for_flush(index);
        }
        let id = client.id;
        if client.output.put(bytes, gate, durable) {
            self.held.push(Reverse((gate, index, id)));
        }
        self.list_for_flush(index);
    }

    /// The index of a client by its ID.
    pub fn find_client(&self, id: u64) -> Option<ClientIndex> {
        self.by_id.get(&id).copied()
    }
}

#[cfg(test)]
mod tests;
