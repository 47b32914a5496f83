//! Commands of several connections in virtual time. After each step every invariant holds; each command has exactly one reply,
//! in a form that is one; all records make the same state again; and a snapshot holds the state, also one that is taken slowly
//! while it changes.
//!
//! Scripts are left out: nothing here measures the time that ends one.

use arbitrary::Unstructured;
use impel_core::check::{self, Digest};
use impel_core::engine::Engine;
use impel_core::engine::blocked::ClientIndex;
use impel_core::engine::facts::Request;
use impel_core::record::Record;
use impel_core::session::ReplyMode;
use impel_core::snapshot;
use impel_core::state::codec::Reader;

use super::{grammar, look, replies};
use crate::compare::encode;
use crate::workload::START_MS;

/// Steps of one input.
const STEPS_MAX: usize = 300;
const PEERS: usize = 4;
/// Turns after which a command that goes on by turns must have come to its end.
const TURNS_MAX: usize = 1000;

/// A connection as its client sees it.
struct Peer {
    index: ClientIndex,
    /// Commands sent.
    sent: usize,
    /// Replies received.
    got: usize,
    /// It has asked for something that is answered otherwise: messages, or nothing.
    uncounted: bool,
}

/// A snapshot on its way.
struct Slow {
    digest: Digest,
    taken: Vec<u8>,
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) records: Vec<u8>,
    now_ms: u64,
    peers: Vec<Peer>,
    slow: Option<Slow>,
}

/// Plays what the bytes say.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let mut world = World::new();
    for _ in 0..STEPS_MAX {
        if input.is_empty() || world.step(&mut input).is_err() {
            break;
        }
    }
    world.end();
}

/// Answered otherwise than by one reply each: those that answer for each channel, and those that see to it that there is none.
fn is_uncounted(words: &[Vec<u8>]) -> bool {
    const NAMES: [&str; 7] =
        ["SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR"];
    let is = |at: usize, name: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    NAMES.iter().any(|name| is(0, name)) || is(0, "CLIENT") && is(1, "REPLY")
}

/// Would run a script, or end the process, which is no reply.
fn is_left_out(words: &[Vec<u8>]) -> bool {
    let name = words[0].to_ascii_uppercase();
    name.starts_with(b"EVAL") || name == b"SHUTDOWN"
}

impl World {
    pub(super) fn new() -> World {
        let mut engine = look::new_engine();
        engine.log.enable(0);
        let mut world = World { engine, records: Vec::new(), now_ms: START_MS, peers: Vec::new(), slow: None };
        world.connect();
        world
    }

    fn connect(&mut self) {
        self.peers = (0..PEERS).map(|number| self.open(number)).collect();
    }

    fn open(&mut self, number: usize) -> Peer {
        let index = self.engine.open(format!("10.0.0.1:{number}"), "10.0.0.9:6379".into(), self.now_ms);
        Peer { index, sent: 0, got: 0, uncounted: false }
    }

    fn step(&mut self, input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
        match input.arbitrary::<u8>()? {
            0..200 => {
                let number = input.choose_index(PEERS)?;
                let words = grammar::command(input, self.now_ms)?;
                self.send(number, &[words]);
            }
            200..215 => {
                let number = input.choose_index(PEERS)?;
                let mut batch = Vec::new();
                for _ in 0..input.int_in_range(2..=6)? {
                    batch.push(grammar::command(input, self.now_ms)?);
                }
                self.send(number, &batch);
            }
            215..235 => {
                self.now_ms += u64::from(*input.choose(&[1u16, 1, 2, 3, 5, 10, 20, 60, 150, 1500])?);
            }
            235..240 => {
                let number = input.choose_index(PEERS)?;
                self.engine.close(self.peers[number].index);
                self.peers[number] = self.open(number);
            }
            240..245 => {
                if self.slow.is_none() {
                    self.slow = Some(Slow { digest: check::digest(self.engine.state()), taken: Vec::new() });
                    self.engine.snapshot_begin();
                }
            }
            245..250 => self.restart(),
            _ => self.replay(),
        }
        self.settle();
        Ok(())
    }

    /// Sends commands at once.
    pub(super) fn send(&mut self, number: usize, batch: &[Vec<Vec<u8>>]) {
        let peer = &mut self.peers[number];
        let mut bytes = Vec::new();
        for words in batch.iter().filter(|words| !is_left_out(words)) {
            peer.sent += 1;
            peer.uncounted |= is_uncounted(words);
            bytes.extend(encode(words));
        }
        let index = peer.index;
        look::turn(&mut self.engine, self.now_ms, |engine, facts| engine.feed(index, &bytes, facts));
    }

    /// Turns until nothing goes on by itself, then a look at everything.
    pub(super) fn settle(&mut self) {
        for turn in 0.. {
            look::turn(&mut self.engine, self.now_ms, |engine, facts| {
                engine.tick(facts);
                engine.go_on_later(facts);
                engine.resume(facts);
            });
            self.receive();
            let goes_on = |peer: &Peer| {
                let client = self.engine.client(peer.index);
                client
                    .is_some_and(|client| client.later_listed || client.wait.as_ref().is_some_and(|wait| wait.goes_on))
            };
            if !self.peers.iter().any(goes_on) && !self.engine.can_resume() {
                break;
            }
            assert!(turn < TURNS_MAX, "a command does not come to its end");
        }
        self.engine.take_flush(&mut Vec::new());
        check::check(self.engine.state()).unwrap_or_else(|why| panic!("{why}"));
        self.engine.free_one();
        self.take_records();
        self.go_on_with_snapshot();
    }

    /// Takes what was answered, and counts.
    fn receive(&mut self) {
        for request in self.engine.take_requests() {
            // The process would answer these; here nobody does.
            let client = match request {
                Request::Save { client } | Request::Reload { client } | Request::WaitDurable { client, .. } => client,
                _ => continue,
            };
            let index = self.engine.find_client(client);
            for number in 0..PEERS {
                if Some(self.peers[number].index) == index {
                    self.engine.close(self.peers[number].index);
                    self.peers[number] = self.open(number);
                }
            }
        }
        for number in 0..PEERS {
            let peer = &mut self.peers[number];
            let client = self.engine.client_mut(peer.index).expect("it stays open");
            let bytes = client.output.ready(u64::MAX).to_vec();
            self.engine.on_sent(peer.index, bytes.len());
            let client = self.engine.client(peer.index).expect("it stays open");
            peer.got += replies::count(&bytes).unwrap_or_else(|what| panic!("{what}"));
            peer.uncounted |= !matches!(client.reply_mode, ReplyMode::On) || client.subscriptions.is_some();
            let ends = client.killed || client.closing;
            let waits = ends || client.wait.is_some() || client.held_back || client.stuffed || client.later_listed;
            if !peer.uncounted {
                assert!(peer.got <= peer.sent, "{} replies to {} commands", peer.got, peer.sent);
                assert!(waits || peer.got == peer.sent, "{} replies to {} commands", peer.got, peer.sent);
            }
            if ends {
                self.engine.close(peer.index);
                self.peers[number] = self.open(number);
            }
        }
    }

    fn take_records(&mut self) {
        let mut bytes = Vec::new();
        self.engine.log.take(&mut bytes);
        self.records.extend(bytes);
    }

    fn go_on_with_snapshot(&mut self) {
        let Some(slow) = &mut self.slow else { return };
        let (keys, done) = self.engine.snapshot_continue(1);
        keys.iter().for_each(|key| snapshot::encode(key, &mut slow.taken));
        if !done {
            return;
        }
        let Slow { digest, taken } = self.slow.take().expect("just looked at");
        let mut engine = look::new_engine();
        let mut reader = Reader::new(&taken);
        while !reader.is_empty() {
            let key = snapshot::decode(&mut reader).unwrap_or_else(|error| panic!("a snapshot of our own: {error}"));
            engine.restore(key, 0);
        }
        check::check(engine.state()).unwrap_or_else(|why| panic!("after a slow snapshot: {why}"));
        assert!(check::digest(engine.state()) == digest, "a slow snapshot does not hold the state at its begin");
    }

    /// A new server with what a snapshot holds. The log goes on behind what it has.
    fn restart(&mut self) {
        self.slow = None;
        self.take_records();
        let digest = check::digest(self.engine.state());
        self.engine = look::through_snapshot(&mut self.engine);
        assert!(check::digest(self.engine.state()) == digest, "a snapshot does not hold the state");
        self.engine.log.enable(self.records.len() as u64);
        self.connect();
    }

    /// All records from the beginning.
    fn replay(&mut self) {
        self.take_records();
        let mut engine = look::new_engine();
        let mut reader = Reader::new(&self.records);
        while !reader.is_empty() {
            let record = Record::decode(&mut reader).unwrap_or_else(|error| panic!("a record of our own: {error}"));
            engine.replay(&record, (self.records.len() - reader.rest.len()) as u64);
        }
        check::check(engine.state()).unwrap_or_else(|why| panic!("after a replay: {why}"));
        let same = check::digest(engine.state()) == check::digest(self.engine.state());
        assert!(same, "replaying all records does not make the same state");
    }

    fn end(mut self) {
        self.replay();
        self.restart();
        while self.engine.free_one() {}
        look::check_state(&mut self.engine);
    }
}
