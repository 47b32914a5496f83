//! A naive model of a streams server: sorted maps, every rule spelled out, no index, no cleverness. It is told the time
//! and answers every stream command, and what of keys, strings and transactions touches streams.
//!
//! It exists to be compared with, so it may be slow but never wrong; it must share no code with the engine.

mod adding;
mod claims;
mod giving;
pub mod group;
mod groups;
mod info;
mod keys;
mod reading;
mod removing;
pub mod retention;
pub mod stream;
pub mod value;
mod waiting;
pub mod words;
pub mod work;

use std::collections::BTreeMap;

use group::Group;
use stream::{Id, Stream};
use value::{Answer, Value};
use waiting::Event;
use words::{Words, error, error_with, is};

/// What a key holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// A string.
    Text(Vec<u8>),
    /// A stream.
    Stream(Stream),
}

/// A key.
#[derive(Clone, Debug)]
pub struct Key {
    /// What it holds.
    pub content: Content,
    /// Unix ms at which it is gone.
    pub expires: Option<u64>,
}

/// How lag is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lag {
    /// Counted.
    Exact,
    /// As Redis does.
    Compat,
}

/// A connection.
#[derive(Clone, Debug, Default)]
struct Client {
    /// Commands queued since MULTI.
    queue: Option<Vec<Vec<Vec<u8>>>>,
    /// One of them was refused.
    refused: bool,
    /// Watched keys, with how often each had been touched.
    watches: Vec<(Vec<u8>, u64)>,
    /// The read it waits in.
    wait: Option<waiting::Wait>,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Model {
    /// Unix ms.
    pub now: u64,
    /// All keys.
    pub keys: BTreeMap<Vec<u8>, Key>,
    /// `stream-node-max-entries`, not 0.
    pub node_max: usize,
    /// `stream-lag`.
    pub lag: Lag,
    /// How often each key was touched in the sense of WATCH.
    touched: BTreeMap<Vec<u8>, u64>,
    clients: BTreeMap<usize, Client>,
    /// What happened that may end a wait, in order.
    signals: Vec<(Vec<u8>, Event)>,
    tickets: u64,
    /// Which clients speak RESP3; the others do not.
    pub resp3: Vec<bool>,
    /// Places of clients in the server's table, by which waits end that end at the same time; 0 for those not told of.
    pub places: BTreeMap<usize, usize>,
    /// The client whose command is carried out.
    speaker: usize,
    /// A reader that waited is being carried out again.
    again: bool,
    /// In a life of work: that, and nothing else.
    pub book: Option<work::Book>,
}

/// A command: its words after its name, and what they come to.
type Run = fn(&mut Model, &Words) -> Answer;

/// Name, arity as COMMAND has it, and the function.
const COMMANDS: &[(&str, i64, Run)] = &[
    ("XADD", -5, adding::xadd),
    ("XADDM", -8, adding::xaddm),
    ("XTRIM", -4, adding::xtrim),
    ("XSETID", -3, adding::xsetid),
    ("XDEL", -3, removing::xdel),
    ("XDELEX", -5, removing::xdelex),
    ("XACK", -4, removing::xack),
    ("XACKDEL", -6, removing::xackdel),
    ("XLEN", 2, reading::xlen),
    ("XRANGE", -4, reading::xrange),
    ("XREVRANGE", -4, reading::xrevrange),
    ("XREAD", -4, reading::xread),
    ("XREADGROUP", -7, giving::xreadgroup),
    ("XCLAIM", -6, claims::xclaim),
    ("XAUTOCLAIM", -6, claims::xautoclaim),
    ("XNACK", -7, claims::xnack),
    ("XPENDING", -3, claims::xpending),
    ("XCFGSET", -2, retention::xcfgset),
    ("XCFGGET", 2, retention::xcfgget),
    ("XIDMPRECORD", 5, retention::xidmprecord),
    ("DEL", -2, keys::del),
    ("EXISTS", -2, keys::exists),
    ("TYPE", 2, keys::type_of),
    ("RENAME", 3, keys::rename),
    ("RENAMENX", 3, keys::renamenx),
    ("COPY", -3, keys::copy),
    ("PEXPIRE", -3, keys::pexpire),
    ("EXPIRE", -3, keys::expire),
    ("PERSIST", 2, keys::persist),
    ("PTTL", 2, keys::pttl),
    ("SET", -3, keys::set),
    ("GET", 2, keys::get),
    ("INCR", 2, keys::incr),
    ("APPEND", 3, keys::append),
    ("FLUSHALL", -1, keys::flushall),
];

/// Subcommands alike.
const SUBCOMMANDS: &[(&str, &str, i64, Run)] = &[
    ("XGROUP", "CREATE", -5, groups::create),
    ("XGROUP", "SETID", -5, groups::setid),
    ("XGROUP", "CFGSET", -6, groups::cfgset),
    ("XGROUP", "DESTROY", 4, groups::destroy),
    ("XGROUP", "CREATECONSUMER", 5, groups::create_consumer),
    ("XGROUP", "DELCONSUMER", 5, groups::delete_consumer),
    ("XINFO", "STREAM", -3, info::info_stream),
    ("XINFO", "GROUPS", 3, info::info_groups),
    ("XINFO", "CONSUMERS", 4, info::info_consumers),
    ("XINFO", "GROUPSTATS", 3, info::info_group_stats),
];

/// Commands about transactions, with their arity.
const TRANSACTIONS: &[(&str, i64)] = &[("MULTI", 1), ("EXEC", 1), ("DISCARD", 1), ("WATCH", -2), ("UNWATCH", 1)];

fn fits(arity: i64, words: usize) -> bool {
    if arity < 0 { words as i64 >= -arity } else { words as i64 == arity }
}

/// The function of a command, or why there is none.
fn find(words: &Words) -> Result<Run, Vec<u8>> {
    let wrong = |name: String| error(&format!("ERR wrong number of arguments for '{name}' command"));
    let (run, arity, name) = if is(&words[0], "XGROUP") || is(&words[0], "XINFO") {
        let container = String::from_utf8_lossy(&words[0]).to_ascii_uppercase();
        if words.len() < 2 {
            return wrong(container.to_ascii_lowercase());
        }
        let row = SUBCOMMANDS.iter().find(|(of, name, ..)| *of == container && is(&words[1], name));
        let Some((of, name, arity, run)) = row else {
            return error_with(&[b"ERR unknown subcommand '", &words[1], b"'. Try ", container.as_bytes(), b" HELP."]);
        };
        (*run, *arity, format!("{}|{}", of.to_ascii_lowercase(), name.to_ascii_lowercase()))
    } else {
        let row = COMMANDS.iter().find(|(name, ..)| is(&words[0], name));
        let (name, arity, run) = row.expect("the workload uses only commands of the model");
        (*run, *arity, name.to_ascii_lowercase())
    };
    // IFEMPTY or RELEASE may follow, which COMMAND does not tell.
    let longer = name == "xgroup|delconsumer" && words.len() == 6;
    if fits(arity, words.len()) || longer { Ok(run) } else { wrong(name) }
}

impl Model {
    /// An empty server.
    pub fn new(now: u64, node_max: usize, lag: Lag) -> Self {
        Model {
            now,
            keys: BTreeMap::new(),
            node_max,
            lag,
            touched: BTreeMap::new(),
            clients: BTreeMap::new(),
            signals: Vec::new(),
            tickets: 0,
            resp3: Vec::new(),
            places: BTreeMap::new(),
            speaker: 0,
            again: false,
            book: None,
        }
    }

    /// Carries out a command of a client. Answers the replies in the order in which they leave, with whose they are:
    /// those of readers that were woken come after its own.
    pub fn command(&mut self, client: usize, words: &Words) -> Vec<(usize, Value)> {
        if let Some(book) = &mut self.book {
            book.now_ms = self.now;
            return vec![(client, Value::Raw(book.command(words)))];
        }
        let mut replies = Vec::new();
        self.speaker = client;
        match self.judge(client, words) {
            Some(reply) => replies.push((client, reply)),
            None => self.start_waiting(client, words),
        }
        self.serve(&mut replies);
        replies
    }

    /// Lets time pass: keys go. If the server notices, which it does by itself where someone waits, what is due is done,
    /// and waits end.
    pub fn pass(&mut self, ms: u64, notices: bool) -> Vec<(usize, Value)> {
        self.now += ms;
        if let Some(book) = &mut self.book {
            book.pass(self.now);
        }
        let mut due: Vec<(u64, Vec<u8>)> = self
            .keys
            .iter()
            .filter_map(|(name, key)| Some((key.expires.filter(|end| *end <= self.now)?, name.clone())))
            .collect();
        due.sort();
        due.into_iter().for_each(|(_, name)| self.remove(&name));
        let mut replies = Vec::new();
        if notices || self.clients.values().any(|client| client.wait.is_some()) {
            self.do_due();
            self.serve(&mut replies);
            self.serve_claims(&mut replies);
            self.time_out(&mut replies);
        }
        self.signals.clear();
        replies
    }

    /// Does what is due at streams by time alone.
    fn do_due(&mut self) {
        let now = self.now;
        let mut due: Vec<(u64, Vec<u8>)> = Vec::new();
        for (name, key) in &self.keys {
            if let Content::Stream(stream) = &key.content
                && let Some(time) = stream.next_due().filter(|time| *time <= now)
            {
                due.push((time, name.clone()));
            }
        }
        due.sort();
        for (_, name) in due {
            let stream = self.stream_mut(&name);
            stream.messages.forget(now);
            let trimmed = stream.enforce(now);
            let mut delays_over = false;
            for entry in stream.entries.values_mut().filter(|entry| (1..=now).contains(&entry.due)) {
                entry.due = 0;
                delays_over = true;
            }
            let released = stream.end_deferrals(now);
            if trimmed {
                self.touch(&name);
            }
            if delays_over {
                self.signal_event(&name, Event::Held);
            }
            if released {
                self.signal_event(&name, Event::Claimable);
                self.signal_event(&name, Event::Room);
            }
        }
    }

    /// Forgets all connections, as a restart does.
    pub fn disconnect_all(&mut self) {
        self.forget_connections();
        // Nor does a snapshot hold where scans began.
        for key in self.keys.values_mut() {
            if let Content::Stream(stream) = &mut key.content {
                stream.groups.values_mut().for_each(|group| group.scan_start = None);
            }
        }
    }

    /// Forgets all connections, and nothing else.
    pub fn forget_connections(&mut self) {
        self.clients.clear();
    }

    /// Forgets a connection.
    pub fn disconnect(&mut self, client: usize) {
        self.clients.remove(&client);
    }

    /// Takes over where scans began from what a server came back with: a snapshot does not hold it, the log does.
    pub fn take_scan_starts(&mut self, known: impl Fn(&[u8], &[u8]) -> Option<Id>) {
        for (name, key) in &mut self.keys {
            if let Content::Stream(stream) = &mut key.content {
                for (group_name, group) in &mut stream.groups {
                    group.scan_start = known(name, group_name).filter(|_| group.scan_start.is_some());
                }
            }
        }
    }

    /// Does the client that is served speak RESP3?
    fn resp3(&self) -> bool {
        self.resp3.get(self.speaker).copied().unwrap_or(false)
    }

    /// Does the client wait?
    pub fn waits(&self, client: usize) -> bool {
        self.clients.get(&client).is_some_and(|client| client.wait.is_some())
    }

    fn client(&mut self, client: usize) -> &mut Client {
        self.clients.entry(client).or_default()
    }

    /// The reply; `None` if the client has to wait for it.
    fn judge(&mut self, client: usize, words: &Words) -> Option<Value> {
        if let Some((name, _)) =
            TRANSACTIONS.iter().find(|(name, arity)| is(&words[0], name) && !fits(*arity, words.len()))
        {
            self.client(client).refused = true;
            let name = name.to_ascii_lowercase();
            return Some(Value::Error(format!("ERR wrong number of arguments for '{name}' command").into_bytes()));
        }
        let answer = if is(&words[0], "MULTI") {
            self.multi(client)
        } else if is(&words[0], "EXEC") {
            self.exec(client)
        } else if is(&words[0], "DISCARD") {
            self.discard(client)
        } else if is(&words[0], "WATCH") {
            self.watch(client, words)
        } else if self.client(client).queue.is_some() {
            self.queue(client, words)
        } else if is(&words[0], "UNWATCH") {
            self.client(client).watches.clear();
            Ok(Value::Status("OK"))
        } else {
            match find(words).and_then(|run| run(self, words)) {
                Ok(Value::NullArray) if reading::blocks(words) => return None,
                answer => answer,
            }
        };
        Some(answer.unwrap_or_else(Value::Error))
    }

    fn multi(&mut self, client: usize) -> Answer {
        let client = self.client(client);
        if client.queue.is_some() {
            return error("ERR MULTI calls can not be nested");
        }
        (client.queue, client.refused) = (Some(Vec::new()), false);
        Ok(Value::Status("OK"))
    }

    fn queue(&mut self, client: usize, words: &Words) -> Answer {
        let known = if is(&words[0], "UNWATCH") { Ok(()) } else { find(words).map(|_| ()) };
        let client = self.client(client);
        client.refused |= known.is_err();
        known?;
        client.queue.as_mut().expect("asked before").push(words.to_vec());
        Ok(Value::Status("QUEUED"))
    }

    fn exec(&mut self, client: usize) -> Answer {
        let state = self.client(client);
        let (Some(queue), refused) = (state.queue.take(), std::mem::take(&mut state.refused)) else {
            return error("ERR EXEC without MULTI");
        };
        let watches = std::mem::take(&mut state.watches);
        if refused {
            return error("EXECABORT Transaction discarded because of previous errors.");
        }
        if watches.iter().any(|(name, watched)| self.watched(name) != *watched) {
            return Ok(Value::NullArray);
        }
        let run = |words: &Vec<Vec<u8>>| {
            if is(&words[0], "UNWATCH") {
                return Value::Status("OK");
            }
            find(words).and_then(|run| run(self, words)).unwrap_or_else(Value::Error)
        };
        Ok(Value::Array(queue.iter().map(run).collect()))
    }

    fn discard(&mut self, client: usize) -> Answer {
        let client = self.client(client);
        if client.queue.take().is_none() {
            return error("ERR DISCARD without MULTI");
        }
        client.watches.clear();
        Ok(Value::Status("OK"))
    }

    fn watch(&mut self, client: usize, words: &Words) -> Answer {
        if self.client(client).queue.is_some() {
            return error("ERR WATCH inside MULTI is not allowed");
        }
        for name in &words[1..] {
            let watched = self.watched(name);
            if !self.client(client).watches.iter().any(|(other, _)| other == name) {
                self.client(client).watches.push((name.clone(), watched));
            }
        }
        Ok(Value::Status("OK"))
    }

    fn watched(&self, name: &[u8]) -> u64 {
        self.touched.get(name).copied().unwrap_or(0)
    }

    /// Notes a change in the sense of WATCH.
    fn touch(&mut self, name: &[u8]) {
        *self.touched.entry(name.to_vec()).or_insert(0) += 1;
    }

    /// Notes that readers of the key may have something now.
    fn signal(&mut self, name: &[u8]) {
        self.signal_event(name, Event::Any);
    }

    /// Notes what happened at a key.
    fn signal_event(&mut self, name: &[u8], event: Event) {
        // Who hears of room only after the position was set back does not hear of what was made before.
        if event == Event::Room && !self.awaits_room(name) {
            return;
        }
        if !self.signals.iter().any(|signal| signal.0 == name && signal.1 == event) {
            self.signals.push((name.to_vec(), event));
        }
    }

    /// Takes a key away.
    fn remove(&mut self, name: &[u8]) {
        if self.keys.remove(name).is_some() {
            self.touch(name);
            self.signal(name);
        }
    }

    /// The stream under a key.
    pub fn stream(&self, name: &[u8]) -> Result<Option<&Stream>, Vec<u8>> {
        match self.keys.get(name).map(|key| &key.content) {
            Some(Content::Stream(stream)) => Ok(Some(stream)),
            Some(Content::Text(_)) => error("WRONGTYPE Operation against a key holding the wrong kind of value"),
            None => Ok(None),
        }
    }

    /// The stream under a key, which was looked at before.
    fn stream_mut(&mut self, name: &[u8]) -> &mut Stream {
        match self.keys.get_mut(name).map(|key| &mut key.content) {
            Some(Content::Stream(stream)) => stream,
            other => panic!("no stream but {other:?}"),
        }
    }

    /// A group, which was looked at before.
    fn group_mut(&mut self, name: &[u8], group: &[u8]) -> &mut Group {
        self.stream_mut(name).groups.get_mut(group).expect("looked at before")
    }

    /// The stream under a key, made if there is none.
    fn make_stream(&mut self, name: &[u8]) -> &mut Stream {
        if !self.keys.contains_key(name) {
            self.touch(name);
            self.keys.insert(name.to_vec(), Key { content: Content::Stream(Stream::default()), expires: None });
        }
        self.stream_mut(name)
    }
}
