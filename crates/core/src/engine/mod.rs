//! Commands in, replies and records out.
//!
//! The way of a command: [`Engine::feed`] finds it in the input, `execute` judges it (known? arity, authentication,
//! memory, MULTI) and hands it to its function under `decide/`, which checks everything, writes the reply and *emits*
//! records. Emitting is the one door to change: the record is appended to the log and applied to the state in the same
//! step, so what is logged and what happened cannot differ. A function that answers an error has emitted nothing.
//!
//! Nothing here reads a clock or a socket: time, memory use and the like come as [`Facts`]; what only the process can
//! do (save, shut down, sleep) leaves as a [`Request`].

pub mod acl;
pub mod apply;
pub mod blocked;
mod clients;
pub mod decide;
pub mod events;
pub mod facts;
pub mod fault;
mod feed;
pub mod log;
pub mod observe;
pub mod pubsub;
mod retire;
pub mod script;
mod timers;
mod txn;
mod wake;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::command::args::{Args, OwnedArgs};
use crate::command::table::{self, CommandId, CommandSpec, Flags};
use crate::command::views;
use crate::record::{At, Record};
use crate::resp::encode::{Protocol, Reply};
use crate::session::{Client, ReplyMode, Wait};
use crate::settings::Settings;
use crate::state::entries::NodeLimits;
use crate::state::keyspace::{Slot, State, Value};
use crate::state::stream::Stream;

use acl::Acl;
use apply::{Context, apply};
use blocked::{Blocked, ClientIndex};
use events::EventClass;
use facts::{Facts, Request};
use fault::Fault;
use log::PendingLog;
use observe::{SlowLog, Statistics};
use pubsub::{OwnPushes, PubSub};
use script::Scripts;

/// What CLIENT PAUSE holds back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Every command.
    All,
    /// Commands that may change something.
    Write,
}

/// State, connections and everything between a command and its effects.
pub struct Engine {
    state: State,
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
    /// Clients that have output to send.
    flush: Vec<ClientIndex>,
    /// Clients with input left that can go on.
    resume: VecDeque<ClientIndex>,
    /// Clients that have had their share of this turn and go on in the next.
    later: Vec<ClientIndex>,
    /// Microseconds of timed commands since one connection began to be served.
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
    /// Who may do what.
    pub acl: Acl,
    /// Scripts and their interpreter; away while one runs.
    scripts: Option<Box<Scripts>>,
}

/// What a command works with.
pub struct Cx<'e> {
    engine: &'e mut Engine,
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
    /// May this call wait? Not inside a transaction.
    pub may_block: bool,
    /// Set by a read that has nothing to answer yet.
    pub wait: Option<Box<Wait>>,
    /// Newest log position that the reply depends on.
    gate: Cell<u64>,
    /// Look-ups of a reading command that found their key, and that did not.
    lookups: Cell<(u64, u64)>,
    /// Keys that were not found, where someone wants to hear of it.
    missed: RefCell<Vec<(usize, Box<[u8]>)>>,
    emitted: bool,
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

    /// The engine, for commands about the server itself.
    pub fn engine(&mut self) -> &mut Engine {
        self.engine
    }

    /// The engine, to look at.
    pub fn engine_ref(&self) -> &Engine {
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

    /// Asks the process for something.
    pub fn request(&mut self, request: Request) {
        self.engine.requests.push(request);
    }

    /// Limits of a block of entries, from the settings.
    pub fn node_limits(&self) -> NodeLimits {
        self.engine.node_limits()
    }
}

impl Engine {
    /// An engine with empty databases. `seed` makes its hash tables unpredictable to clients.
    pub fn new(settings: Settings, seed: u64) -> Self {
        Engine {
            state: State::new(seed),
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
            flush: Vec::new(),
            resume: VecDeque::new(),
            later: Vec::new(),
            spent_us: 0,
            pause: None,
            paused: Vec::new(),
            statistics: Statistics::default(),
            requests: Vec::new(),
            pubsub: PubSub::default(),
            own_pushes: OwnPushes::default(),
            scripts: None,
        }
    }

    /// What is known, to look at.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state, for restoring it at start, for taking snapshots and for freeing what was removed. Not for changes:
    /// those are records.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// The scripts that are kept, unless one runs or there never was one.
    pub fn scripts(&self) -> Option<&Scripts> {
        self.scripts.as_deref()
    }

    fn take_scripts(&mut self) -> Box<Scripts> {
        self.scripts.take().unwrap_or_default()
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
        apply(&mut self.state, record, &context);
        if !self.blocked.is_empty() {
            self.signal(record);
        }
        self.retire(record);
        position
    }

    fn emit_lazily(&mut self, record: &Record<'_>) {
        let position = self.log.append_lazily(record);
        let context = Context { position, node_limits: self.node_limits() };
        apply(&mut self.state, record, &context);
    }

    /// Applies a record of the log at start.
    pub fn replay(&mut self, record: &Record<'_>, position: u64) {
        let context = Context { position, node_limits: self.node_limits() };
        apply(&mut self.state, record, &context);
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

    /// Gives a client its output buffer back with a reply in it.
    fn finish_reply(&mut self, index: ClientIndex, bytes: Vec<u8>, gate: u64) {
        let durable = self.durable;
        let Some(client) = self.client_mut(index) else { return };
        let id = client.id;
        if client.output.put(bytes, gate, durable) {
            self.held.push(Reverse((gate, index, id)));
        }
        self.list_for_flush(index);
    }

    // --------------------------------------------------------------------------------------------------- commands

    /// Carries out one command of a client and everything that it wakes.
    fn execute(&mut self, index: ClientIndex, args: Args<'_>, facts: &Facts<'_>) {
        self.statistics.commands += 1;
        let Some(client) = self.client_mut(index) else { return };
        client.active_ms = facts.now_ms;
        client.commands += 1;
        let mut out = client.output.take();
        let start = out.len();
        self.own_pushes.running = Some(index);
        let gate = self.judge(index, args, facts, &mut out);
        self.finish_command(index, out, start, gate);
        self.serve_ready(facts);
    }

    /// Puts the reply of a command into the client's output, as CLIENT REPLY wants it, and behind it what was pushed to
    /// the client meanwhile.
    fn finish_command(&mut self, index: ClientIndex, mut out: Vec<u8>, start: usize, gate: u64) {
        let Some(client) = self.client_mut(index) else { return };
        // A command that waits is answered later: until then it is still the one that CLIENT REPLY SKIP meant.
        if client.reply_mode != ReplyMode::On && client.wait.is_none() {
            match client.reply_mode {
                ReplyMode::Off | ReplyMode::Skip => out.truncate(start),
                ReplyMode::On | ReplyMode::SkipNext => {}
            }
            client.reply_mode = match client.reply_mode {
                ReplyMode::SkipNext => ReplyMode::Skip,
                ReplyMode::Skip => ReplyMode::On,
                other => other,
            };
        }
        let pushes_gate = self.take_own_pushes(index, &mut out);
        self.finish_reply(index, out, gate.max(pushes_gate));
    }

    /// What is asked of any command before it runs. Answers the position that the reply depends on.
    fn judge(&mut self, index: ClientIndex, args: Args<'_>, facts: &Facts<'_>, out: &mut Vec<u8>) -> u64 {
        let client = self.clients[index].as_deref_mut().expect("a command comes from a client");
        let protocol = client.protocol;
        let spec = match table::resolve(args) {
            Ok(spec) => spec,
            Err(_) if speaks_http(args) => {
                // A browser was made to send commands in the body of a request: none of them may run.
                client.killed = true;
                let addr = client.addr.clone();
                self.requests.push(Request::NoteHttp { addr });
                self.list_for_flush(index);
                return 0;
            }
            Err(refusal) => {
                let spec = if let table::Refusal::Arity(spec) = refusal { Some(spec) } else { None };
                self.refuse(index, spec, &refusal.text(args), out);
                return 0;
            }
        };
        client.last_command = spec.name;
        if (client.restricted || !client.authenticated)
            && let Some(fault) = self.refuse_access(index, spec, args, facts)
        {
            self.refuse(index, Some(spec), &fault.0, out);
            return 0;
        }
        let client = self.clients[index].as_deref_mut().expect("it is still there");
        let refusal = if self.settings.maxmemory_bytes > 0
            && facts.used_memory > self.settings.maxmemory_bytes
            && (spec.flags.has(Flags::DENYOOM) || txn::needs_memory(client, spec.id))
        {
            Some(Fault::OUT_OF_MEMORY)
        } else if client.subscriptions.is_some() && protocol == Protocol::Resp2 && !pubsub::is_for_subscribers(spec.id)
        {
            Some(Fault::subscriber(spec))
        } else {
            None
        };
        if let Some(fault) = refusal {
            self.refuse(index, Some(spec), &fault.0, out);
            return 0;
        }
        if client.transaction.is_some() && !txn::runs_inside(spec.id) {
            match txn::queue(client, spec, args, self.settings.query_buffer_max_bytes as usize) {
                Ok(()) => Reply { out, protocol }.simple("QUEUED"),
                Err(fault) => self.refuse(index, Some(spec), &fault.0, out),
            }
            return 0;
        }
        self.run(index, spec, args, facts, out, true, false).0
    }

    /// Answers a command that is not run, nor queued, with an error. A transaction in the making is spoilt; an EXEC that
    /// is refused ends it.
    fn refuse(&mut self, index: ClientIndex, spec: Option<&'static CommandSpec>, text: &[u8], out: &mut Vec<u8>) {
        let Some(client) = self.clients[index].as_deref_mut() else { return };
        let protocol = client.protocol;
        let mut reason = Cow::Borrowed(text);
        if spec.is_some_and(|spec| spec.id == CommandId::Exec) {
            client.transaction = None;
            self.forget_watches(index);
            let text = text.strip_prefix(b"ERR ").unwrap_or(text);
            reason = [b"EXECABORT Transaction discarded because of: ", text].concat().into();
        } else if let Some(transaction) = &mut client.transaction {
            transaction.refused = true;
        }
        Reply { out, protocol }.error(&reason);
        self.statistics.note_error(&reason);
        // Containers share one number, under which nothing is counted.
        if let Some(spec) = spec.filter(|spec| spec.id != CommandId::Container) {
            self.statistics.of(spec).rejected += 1;
        }
    }

    /// Runs a command whose turn it is. Answers the position that the reply depends on, and whether the client waits.
    #[allow(clippy::too_many_arguments)]
    fn run(
        &mut self,
        index: ClientIndex,
        spec: &'static CommandSpec,
        args: Args<'_>,
        facts: &Facts<'_>,
        out: &mut Vec<u8>,
        may_block: bool,
        again: bool,
    ) -> (u64, bool) {
        let (db, protocol) = {
            let client = self.client(index).expect("a command comes from a client");
            (client.db, client.protocol)
        };
        if spec.flags.has(Flags::WRITE) {
            self.purge_expired(db, spec, args, facts.now_ms);
        }
        let start = out.len();
        let timed = !spec.flags.has(Flags::FAST);
        let begun_us = if timed { (facts.elapsed_us)() } else { 0 };
        let mut cx = Cx {
            engine: self,
            client: index,
            db,
            facts,
            spec,
            again,
            may_block,
            wait: None,
            gate: Cell::new(0),
            lookups: Cell::default(),
            missed: RefCell::default(),
            emitted: false,
        };
        let mut reply = Reply { out, protocol };
        let result = decide::dispatch(&mut cx, args, &mut reply);
        let (mut gate, emitted, wait) = (cx.gate.get(), cx.emitted, cx.wait.take());
        let missed = cx.missed.take();
        let (hits, misses) = cx.lookups.get();
        self.statistics.keyspace_hits += hits;
        self.statistics.keyspace_misses += misses;
        for (db, key) in missed {
            self.notify(EventClass::Miss, "keymiss", db, &key);
        }
        // A reply that depends on what memory alone keeps depends on nothing.
        if !self.log.is_enabled() {
            gate = 0;
        }
        if let Err(fault) = result {
            assert!(!emitted, "{} answers an error after it has changed something", spec.name);
            out.truncate(start);
            Reply { out, protocol }.error(&fault.0);
            self.statistics.note_error(&fault.0);
            self.statistics.of(spec).failed += 1;
        }
        if wait.is_none() {
            self.statistics.of(spec).calls += 1;
        }
        if timed {
            let took_us = (facts.elapsed_us)().saturating_sub(begun_us);
            self.statistics.of(spec).took_us += took_us;
            self.spent_us += took_us;
            self.note_duration(index, spec, args, facts, took_us);
        }
        match wait {
            Some(wait) => {
                debug_assert_eq!(out.len(), start, "a command that waits has answered nothing");
                self.start_waiting(index, wait, again);
                (gate, true)
            }
            None => (gate, false),
        }
    }

    /// Removes the command's keys whose time is over, by record, so that writing starts from what readers see.
    fn purge_expired(&mut self, db: usize, spec: &CommandSpec, args: Args<'_>, now_ms: u64) {
        if self.state.db(db).expiring() == 0 {
            return;
        }
        for at in views::keys_of(spec, args) {
            let key = args.get(at);
            let over =
                self.state.db(db).get_any(key).is_some_and(|slot| slot.expire_ms != 0 && slot.expire_ms <= now_ms);
            if over {
                self.expire_key(db, key);
            }
        }
    }

    fn expire_key(&mut self, db: usize, key: &[u8]) {
        self.statistics.expired_keys += 1;
        self.emit(&Record::Delete { at: At { db, key } });
        self.notify(EventClass::Expired, "expired", db, key);
    }

    fn note_duration(
        &mut self,
        index: ClientIndex,
        spec: &CommandSpec,
        args: Args<'_>,
        facts: &Facts<'_>,
        took_us: u64,
    ) {
        let threshold = self.settings.slowlog_log_slower_than_us;
        if threshold >= 0 && took_us >= threshold as u64 && !spec.flags.has(Flags::SKIP_SLOWLOG) {
            let client = self.clients[index].as_deref();
            let (addr, name) = client.map_or((String::new(), Vec::new()), |c| (c.addr.clone(), c.name.clone()));
            self.slow_log.note(args, facts.now_ms / 1000, took_us, addr, name, self.settings.slowlog_max_len as usize);
        }
    }

    // ----------------------------------------------------------------------------------------------------- waiting

    fn start_waiting(&mut self, index: ClientIndex, mut wait: Box<Wait>, again: bool) {
        wait.ticket = self.blocked.next_ticket();
        self.blocked.add(index, &wait);
        if !again {
            self.statistics.blocked_total += 1;
        }
        if let Some(client) = self.client_mut(index) {
            client.wait = Some(wait);
        }
    }

    /// Takes a client out of all queues; answers what it waited for.
    fn stop_waiting(&mut self, index: ClientIndex) -> Option<Box<Wait>> {
        let wait = self.client_mut(index)?.wait.take()?;
        self.blocked.remove(index, &wait);
        Some(wait)
    }

    /// Ends a client's wait with a reply written by `answer`. `false` if it did not wait.
    pub fn end_wait(&mut self, index: ClientIndex, answer: impl FnOnce(&mut Reply<'_>)) -> bool {
        if self.stop_waiting(index).is_none() {
            return false;
        }
        let Some(client) = self.client_mut(index) else { return false };
        let protocol = client.protocol;
        let mut out = client.output.take();
        let start = out.len();
        answer(&mut Reply { out: &mut out, protocol });
        self.finish_command(index, out, start, 0);
        self.resume.push_back(index);
        true
    }

    /// How many clients wait in a blocking read.
    pub fn blocked_count(&self) -> usize {
        self.blocked.len()
    }

    /// Keys that someone waits for.
    pub fn blocking_key_count(&self) -> usize {
        self.blocked.key_count()
    }

    /// The index of a client by its ID.
    pub fn find_client(&self, id: u64) -> Option<ClientIndex> {
        self.by_id.get(&id).copied()
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
        let (group, claims, claim_idle_ms) = (None, None, 0);
        let (crowded, ticket) = (false, 0);
        Box::new(Wait { args, command, db, keys, deadline_ms, group, claims, claim_idle_ms, crowded, ticket })
    }
}

/// Is this a line of an HTTP request?
fn speaks_http(args: Args<'_>) -> bool {
    let name = args.get(0);
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

#[cfg(test)]
mod tests;
