//! Those who work on the streams: producers, consumers that now and then go away with what they hold, and claimers. Each goes on
//! through restarts of the server, and tells the ledger what it was answered.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::ledger::{How, Ledger};
use crate::crash::{Random, items};
use crate::resp::{Address, Client, ClientError, Value, encode_command};

/// A reply takes no longer, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);
/// With more entries than this waiting for a group its producer waits.
const BACKLOG_MAX: u64 = 20_000;
/// Claims take what has been idle for so long.
const IDLE_MS: &str = "1500";
/// Newest entries that a stream keeps that lets go of others whatever becomes of them.
pub const KEPT: u64 = 30_000;
/// Names that consumers of one place take in turn: who dies comes back under another name.
const NAMES: u64 = 5;

/// How a stream is kept short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeping {
    /// `XCFGSET … RETAIN acked`; additions are idempotent, and sent again when they were not answered.
    Retain,
    /// `XADD … ACKED MAXLEN ~`.
    Acked,
    /// `XADD … MAXLEN ~`, which lets go of the oldest whether or not they were acknowledged.
    Newest,
}

/// A stream.
pub struct Stream {
    /// Its key.
    pub key: String,
    /// How it is kept short.
    pub keeping: Keeping,
    /// What must have become of its entries.
    pub ledger: Ledger,
}

/// What all workers share.
pub struct Shared {
    /// The server.
    pub address: Address,
    /// The streams.
    pub streams: Vec<Stream>,
    /// Entries a second that each producer adds at most.
    pub rate: u64,
    /// The seed of everything.
    pub seed: u64,
    /// How often the server was taken away; connections that break otherwise are a fault.
    pub taken: AtomicU64,
    /// Nothing more is to be added.
    pub adding_is_over: AtomicBool,
    /// Everything is to end.
    pub is_over: AtomicBool,
    /// Microseconds of the calls since it was last looked at.
    pub latencies_us: Mutex<Vec<u32>>,
    /// Consumers that went away with what they held.
    pub deaths: AtomicU64,
}

impl Shared {
    fn over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn note(&self, begun: Instant) {
        let us = u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX);
        self.latencies_us.lock().expect("no holder panics").push(us);
    }

    /// A connection, once there is a server; `None` when all is over.
    fn connect(&self) -> Option<Client> {
        while !self.over() {
            if let Ok(client) = Client::connect(&self.address, PATIENCE) {
                return Some(client);
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Works on connection after connection. One that breaks though nobody took the server away is a fault.
    fn go_on(&self, stream: &Stream, mut work: impl FnMut(&mut Client) -> Result<(), ClientError>) {
        while let Some(mut client) = self.connect() {
            let taken = self.taken.load(Ordering::SeqCst);
            let ended = work(&mut client);
            match ended {
                Ok(()) => return,
                // The server may be seen to be gone a moment before it is said to be.
                Err(ClientError::Closed(_)) => {
                    let deadline = Instant::now() + Duration::from_secs(2);
                    while self.taken.load(Ordering::SeqCst) == taken && Instant::now() < deadline {
                        thread::sleep(Duration::from_millis(10));
                    }
                    if self.taken.load(Ordering::SeqCst) == taken && !self.over() {
                        stream.ledger.fault("a connection was closed, and nobody had taken the server away".into());
                    }
                }
                Err(error) => stream.ledger.fault(error.to_string()),
            }
        }
    }
}

/// Adds numbered entries to a stream.
pub fn produce(shared: &Shared, number: usize) {
    let stream = &shared.streams[number];
    let mut random = Random::part(shared.seed, number as u64);
    let padding = "p".repeat(100);
    let kept = KEPT.to_string();
    // Those that were sent and not answered, to be sent again where that is harmless.
    let mut open: Vec<u64> = Vec::new();
    let mut due = Instant::now();
    shared.go_on(stream, |client| {
        loop {
            if shared.over() || (shared.adding_is_over.load(Ordering::SeqCst) && open.is_empty()) {
                return Ok(());
            }
            if open.is_empty() {
                thread::sleep(due.saturating_duration_since(Instant::now()).min(Duration::from_millis(200)));
                if Instant::now() < due || stream.ledger.backlog() > BACKLOG_MAX {
                    continue;
                }
                let count = random.between(1, 32);
                due = due.max(Instant::now() - Duration::from_millis(500))
                    + Duration::from_secs_f64(count as f64 / shared.rate as f64);
                let first = stream.ledger.send(count);
                open.extend(first..first + count);
            }
            let mut bytes = Vec::new();
            for number in &open {
                let text = number.to_string();
                let options: &[&str] = match stream.keeping {
                    Keeping::Retain => &["IDMP", "producer", &text],
                    Keeping::Acked => &["ACKED", "MAXLEN", "~", "1000"],
                    Keeping::Newest => &["MAXLEN", "~", &kept],
                };
                let command: &[&str] = &["*", "n", &text, "padding", &padding];
                let key = stream.key.as_str();
                bytes.extend(encode_command(&[&["XADD", key], options, command].concat()));
            }
            let sent = std::mem::take(&mut open);
            if stream.keeping == Keeping::Retain {
                open.clone_from(&sent);
            }
            let begun = Instant::now();
            client.send_raw(&bytes)?;
            for number in sent {
                match client.receive()? {
                    Value::Bulk(_) => stream.ledger.added(number),
                    other => stream.ledger.fault(format!("XADD of {number}: {}", other.text())),
                }
            }
            open.clear();
            shared.note(begun);
        }
    });
}

/// The entries of a reply of one stream: ID, number, and how often it had been given before, where that is told.
fn entries(stream: &Stream, reply: &Value) -> Vec<(String, u64, Option<i64>)> {
    let mut found = Vec::new();
    for entry in items(reply).unwrap_or(&[]) {
        let parts = items(entry).unwrap_or(&[]);
        let [id, fields, more @ ..] = parts else { continue };
        let number = match items(fields) {
            Ok([_, number, ..]) => number.text().parse().ok(),
            _ => None,
        };
        let Some(number) = number else {
            stream.ledger.fault(format!("an entry without a number: {}", entry.text()));
            continue;
        };
        let before = match more {
            [_, Value::Int(before)] => Some(*before),
            _ => None,
        };
        found.push((id.text(), number, before));
    }
    found
}

/// Acknowledges entries.
fn acknowledge(
    shared: &Shared,
    stream: &Stream,
    group: usize,
    client: &mut Client,
    given: &[(String, u64, Option<i64>)],
) -> Result<(), ClientError> {
    if given.is_empty() {
        return Ok(());
    }
    let numbers: Vec<u64> = given.iter().map(|(_, number, _)| *number).collect();
    let name = group_name(group);
    let mut words = vec!["XACK", stream.key.as_str(), &name];
    words.extend(given.iter().map(|(id, ..)| id.as_str()));
    let begun = Instant::now();
    let answer = client.call(&words);
    match answer {
        Ok(Value::Int(_)) => stream.ledger.acknowledged(group, &numbers, true),
        Ok(other) => stream.ledger.fault(format!("XACK: {}", other.text())),
        Err(error) => {
            stream.ledger.acknowledged(group, &numbers, false);
            return Err(error);
        }
    }
    shared.note(begun);
    Ok(())
}

/// The name of a group.
pub fn group_name(group: usize) -> String {
    format!("group-{group}")
}

/// Takes new entries and acknowledges them; now and then goes away instead, or gives some back.
pub fn consume(shared: &Shared, number: usize, group: usize, place: u64) {
    let stream = &shared.streams[number];
    let mut random = Random::part(shared.seed, 100 + number as u64 * 100 + group as u64 * 10 + place);
    let group_text = group_name(group);
    let mut lives = 0;
    shared.go_on(stream, |client| {
        lives += 1;
        let mut name = format!("consumer-{place}-{}", lives % NAMES);
        loop {
            if shared.over() {
                return Ok(());
            }
            let count = random.between(1, 60).to_string();
            let mut words = vec!["XREADGROUP", "GROUP", &group_text, &name, "COUNT", &count, "BLOCK", "100"];
            if group == 1 {
                words.extend(["CLAIM", IDLE_MS]);
            }
            words.extend(["STREAMS", &stream.key, ">"]);
            let done = stream.ledger.done_by_now(group);
            let given = match client.call(&words)? {
                Value::Nil(_) => continue,
                Value::Array(streams) => match streams.first().map(items) {
                    Some(Ok([_, list])) => entries(stream, list),
                    _ => Vec::new(),
                },
                other => {
                    stream.ledger.fault(format!("XREADGROUP: {}", other.text()));
                    thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            for (_, number, before) in &given {
                let how = if before.is_some_and(|before| before > 0) { How::Again } else { How::New };
                stream.ledger.given(group, *number, how, done);
            }
            match random.below(200) {
                0 => {
                    // Dies with all of it.
                    shared.deaths.fetch_add(1, Ordering::Relaxed);
                    lives += 1;
                    name = format!("consumer-{place}-{}", lives % NAMES);
                    let Some(other) = shared.connect() else { return Ok(()) };
                    *client = other;
                }
                1 | 2 => {
                    let count = given.len().to_string();
                    let mut words = vec!["XNACK", stream.key.as_str(), &group_text, "FAIL", "IDS", &count];
                    words.extend(given.iter().map(|(id, ..)| id.as_str()));
                    if let other @ Value::Error(_) = client.call(&words)? {
                        stream.ledger.fault(format!("XNACK: {}", other.text()));
                    }
                }
                _ => acknowledge(shared, stream, group, client, &given)?,
            }
        }
    });
}

/// Takes over what others have left, and acknowledges it.
pub fn claim(shared: &Shared, number: usize, group: usize) {
    let stream = &shared.streams[number];
    let group_text = group_name(group);
    shared.go_on(stream, |client| {
        let mut start = "0-0".to_owned();
        loop {
            if shared.over() {
                return Ok(());
            }
            let done = stream.ledger.done_by_now(group);
            let words = ["XAUTOCLAIM", &stream.key, &group_text, "claimer", IDLE_MS, &start, "COUNT", "100"];
            let reply = client.call(&words)?;
            let Ok([next, list, _gone]) = items(&reply) else {
                stream.ledger.fault(format!("XAUTOCLAIM: {}", reply.text()));
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            start = next.text();
            let given = entries(stream, list);
            given.iter().for_each(|(_, number, _)| stream.ledger.given(group, *number, How::Again, done));
            acknowledge(shared, stream, group, client, &given)?;
            if start == "0-0" {
                thread::sleep(Duration::from_millis(150));
            }
        }
    });
}
