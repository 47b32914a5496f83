//! The turn loop: wait for events, one recv per ready connection, execute, hand the log over, one send per connection
//! with something to say. One thread; nothing in it waits for the disk.
//!
//! A turn is: poll; what is due by time; what other threads finished; input; [`Node::end_turn`]; commit, snapshot,
//! output; garbage. Both interests of a connection are registered once, edge-triggered; `readable` and `writable` in
//! [`Connection`] remember what the edges said.
//!
//! It must never decide what a command means, nor look into replies.

mod clients;
mod files;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use impel_core::engine::blocked::ClientIndex;
use impel_core::engine::facts::{Facts, Request};
use impel_core::settings::Settings;
use mio::{Events, Poll, Token, Waker};

use crate::clock::Clock;
use crate::disk::{DataDir, Disk, RealDisk};
use crate::logger;
use crate::memory;
use crate::net::{self, Listener, Places};
use crate::node::{Node, Turn};
use crate::observe::{self, Observed};
use crate::saver::Saver;
use crate::signals::Signals;
use crate::startup;
use crate::syncer::Syncer;

use clients::Connection;

const WAKER: Token = Token(0);
const SIGNALS: Token = Token(1);
const LISTENERS: usize = 2;

/// Events taken from the system at once.
const EVENTS: usize = 1024;

/// The buffer that everything is read into.
const READ_BYTES: usize = 64 * 1024;

/// Longest stretch of a turn for freeing what was removed. Contract 8 of the design: a turn stays under 1 ms for it.
const GARBAGE_US: u64 = 300;

/// How often connections are looked over for being idle or over a soft limit.
const SWEEP_MS: u64 = 1000;

/// After this long accepting is tried again when there were no descriptors left.
const ACCEPT_RETRY_MS: u64 = 100;

/// A peer that speaks HTTP is logged at most this often: each is one line that a web page can cause.
const HTTP_NOTE_MS: u64 = 60_000;

/// A server.
pub struct Server {
    poll: Poll,
    waker: Arc<Waker>,
    signals: Signals,
    listeners: Vec<Listener>,
    /// By token, behind the listeners; the place is the client's index in the engine.
    connections: Vec<Option<Connection>>,
    node: Node,
    seed: u64,
    clock: Clock,
    observed: Rc<Observed>,
    disk: Arc<dyn Disk>,
    dir: Option<Arc<DataDir>>,
    syncer: Option<Syncer>,
    saver: Option<Saver>,
    buffer: Box<[u8]>,
    /// Connections that have more to read than was read.
    again: Vec<ClientIndex>,
    /// Scratch for `again` and for the flush list.
    scratch: Vec<ClientIndex>,
    accept_retry_ms: Option<u64>,
    next_sweep_ms: u64,
    /// Requests made while a request was being carried out, for the next turn.
    later: Vec<Request>,
    /// When a peer that speaks HTTP is logged again.
    next_http_note_ms: u64,
    exit: Option<bool>,
}

impl Server {
    /// Reads back what is on disk and opens the sockets.
    pub fn start(settings: Settings, config_file: &str) -> Result<Self, Box<dyn std::error::Error>> {
        Server::start_on(Arc::new(RealDisk), settings, config_file)
    }

    /// The same on a disk of the caller's: a test may give it one that fails.
    pub fn start_on(
        disk: Arc<dyn Disk>,
        settings: Settings,
        config_file: &str,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let mut signals = Signals::install()?;
        signals.register(poll.registry(), SIGNALS)?;
        // Before anything is read back: a server that cannot serve need not spend minutes on that.
        let mut listeners = net::listen(Places {
            bind: &settings.bind,
            port: settings.port,
            unix: &settings.unixsocket,
            unix_mode: settings.unixsocketperm,
            backlog: settings.tcp_backlog,
        })?;

        let dir = startup::take_dir(&disk, &settings)?;
        let seed = observe::random_u64();
        let mut node = Node::new(settings, seed);
        let opened = startup::load(dir, node.engine_mut())?;
        let clock = Clock::new(node.engine().state().last_ms);
        let now_ms = clock.last_us() / 1000;
        node.restored(opened.position, opened.newest(), opened.log.is_some(), now_ms);
        let syncer = opened.log.map(|log| Syncer::start(log, waker.clone())).transpose()?;
        let observed = Rc::new(Observed::new(node.settings(), config_file, clock.last_us(), clock.stopwatch()));
        observed.log_position.set(opened.position);
        observed.log_bytes.set(syncer.as_ref().map_or(0, Syncer::len_bytes));

        for (place, listener) in listeners.iter_mut().enumerate() {
            listener.register(poll.registry(), Token(LISTENERS + place))?;
            ::log::info!("Ready to accept connections on {listener}");
        }
        if node.settings().port != 0 {
            ::log::info!("connect with any client for Redis, for example: redis-cli -p {}", node.settings().port);
        }
        match (&opened.dir, &syncer) {
            (Some(dir), Some(_)) => ::log::info!("changes are kept in {}", dir.log().display()),
            (Some(dir), None) => ::log::info!("only snapshots are kept, in {}", dir.snapshots().display()),
            (None, _) => ::log::info!("nothing is kept: appendonly is no and save is empty"),
        }
        Ok(Server {
            poll,
            waker,
            signals,
            listeners,
            connections: Vec::new(),
            node,
            seed,
            clock,
            observed,
            disk,
            dir: opened.dir,
            syncer,
            saver: None,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            again: Vec::new(),
            scratch: Vec::new(),
            accept_retry_ms: None,
            next_sweep_ms: now_ms + SWEEP_MS,
            later: Vec::new(),
            next_http_note_ms: 0,
            exit: None,
        })
    }

    /// Serves until it is asked to end. Answers whether it ended as it should.
    pub fn run(mut self) -> bool {
        let mut events = Events::with_capacity(EVENTS);
        let mut wait = Some(Duration::ZERO);
        loop {
            match self.poll.poll(&mut events, wait) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    ::log::error!("waiting for events failed: {error}");
                    return false;
                }
            }
            wait = self.with_facts(|server, facts| server.turn(&events, facts));
            if let Some(well) = self.exit {
                return well;
            }
        }
    }

    /// Does something with what is outside as it is now: time, memory, what the process is at.
    fn with_facts<T>(&mut self, act: impl FnOnce(&mut Self, &Facts<'_>) -> T) -> T {
        let now_us = self.clock.read();
        let observed = self.observed.clone();
        observed.now_us.set(now_us);
        observed.saving.set(self.node.saving());
        let stopwatch = self.clock.stopwatch();
        let elapsed_us = || stopwatch.elapsed_us();
        let facts = Facts {
            now_ms: now_us / 1000,
            now_us,
            used_memory: memory::used_bytes(),
            elapsed_us: &elapsed_us,
            host: &*observed,
        };
        act(self, &facts)
    }

    /// One turn. Answers how long the next one may wait for events.
    fn turn(&mut self, events: &Events, facts: &Facts<'_>) -> Option<Duration> {
        self.take_done();
        if self.exit.is_some() {
            return None;
        }
        self.node.on_tick(facts);
        let again = std::mem::replace(&mut self.again, std::mem::take(&mut self.scratch));
        let first_client = LISTENERS + self.listeners.len();
        let mut signalled = false;
        let mut accept = self.accept_retry_ms.is_some_and(|at_ms| at_ms <= facts.now_ms);
        for event in events {
            match event.token() {
                WAKER => {}
                SIGNALS => signalled = true,
                Token(number) if number < first_client => accept = true,
                Token(number) => self.on_event(number - first_client, event, facts),
            }
        }
        for &index in &again {
            self.read_again(index, facts);
        }
        self.scratch = again;
        self.scratch.clear();
        if accept {
            self.accept(facts.now_ms);
        }

        let turn = self.node.end_turn(facts);
        let Turn { commit, snapshot, requests, mut deadline_ms, again } = turn;
        if let (Some(commit), Some(syncer)) = (commit, &self.syncer) {
            syncer.commit(commit);
        }
        for step in snapshot {
            self.snapshot_step(step, facts.now_ms);
        }
        let mut shutdown = signalled && self.signals.take();
        if shutdown {
            ::log::info!("a signal asks the server to end");
        }
        let mut save = None;
        let later = std::mem::take(&mut self.later);
        for request in later.into_iter().chain(requests) {
            match request {
                Request::NoteQueryBuffer { client, addr, input_bytes } => ::log::warn!(
                    "client {client} at {addr} closed: {input_bytes} bytes of commands that are not complete or wait, over \
                     client-query-buffer-limit"
                ),
                Request::NoteHttp { addr } => self.note_http(&addr, facts.now_ms),
                Request::Sleep { us } => std::thread::sleep(Duration::from_micros(us)),
                Request::Shutdown { save: wanted } => (shutdown, save) = (true, wanted),
                Request::Reload { client } => self.reload(client),
                Request::SettingChanged { name } => self.setting_changed(&name),
                Request::Save { .. } | Request::SaveInBackground | Request::WaitDurable { .. } => {
                    unreachable!("the node sees to saving and waiting")
                }
            }
        }
        self.flush_all(facts.now_ms);
        self.sweep(facts.now_ms);
        if shutdown {
            self.shut_down(save);
            if self.exit.is_some() {
                return None;
            }
        }
        let garbage = self.free_garbage();
        let pressed = self.node.is_pressed();
        if again || garbage || !self.later.is_empty() || self.node.can_go_on() || (!self.again.is_empty() && !pressed) {
            return Some(Duration::ZERO);
        }
        deadline_ms = [deadline_ms, self.accept_retry_ms, self.sweep_deadline_ms()].into_iter().flatten().min();
        deadline_ms.map(|at_ms| Duration::from_millis(at_ms.saturating_sub(facts.now_ms)))
    }

    /// Frees what was removed, for as long as a turn can spare. Answers whether there is more.
    fn free_garbage(&mut self) -> bool {
        if !self.node.has_garbage() {
            return false;
        }
        let stopwatch = crate::clock::Stopwatch::start();
        while self.node.free_one() {
            if stopwatch.elapsed_us() >= GARBAGE_US {
                return true;
            }
        }
        false
    }

    fn note_http(&mut self, addr: &str, now_ms: u64) {
        if now_ms >= self.next_http_note_ms {
            self.next_http_note_ms = now_ms + HTTP_NOTE_MS;
            ::log::warn!("{addr} sent POST or Host: and was closed: a web page may be trying to use this server");
        }
    }

    fn setting_changed(&mut self, name: &str) {
        let settings = self.node.settings();
        self.observed.show(settings);
        if name == "loglevel" {
            logger::set_level(settings.loglevel);
        }
        ::log::info!("setting {name} changed");
    }
}
