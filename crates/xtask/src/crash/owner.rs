//! The load that knows exactly what must be there: a connection with keys of its own, one command at a time, and a
//! model that follows each reply. After a crash the server holds the model, or the model after the one command that
//! was not answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::check::compare_keys;
use super::command::{ClaimOptions, Command};
use super::effect::{same_reply, shown};
use super::model::{Data, Id, Keys, Limit, References, Span, Stream, ZERO, id_text};
use super::random::Random;
use super::view::{now_ms, read_keys};
use crate::resp::{Address, Client, ClientError, Value};

/// How long a reply may take.
pub const REPLY_WAIT: Duration = Duration::from_secs(10);

/// What the server under test is able to do, and what it is known to lose.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// XDELEX, XACKDEL, DELREF and ACKED.
    pub references: bool,
    /// Counts of history reads, consumers that a read without entries made, and references of destroyed groups and of
    /// deleted entries are kept as they should be. Redis does not, so against it the load leaves them out.
    pub strict: bool,
}

/// One owner.
#[derive(Debug)]
pub struct Owner {
    name: String,
    /// A new one after each failure: what the failed one left is not looked at any more.
    generation: u64,
    random: Random,
    abilities: Abilities,
    keys: Keys,
    unanswered: Option<(Command, Span)>,
    trouble: Vec<String>,
    /// Look at everything after each command, to find the one after which something is wrong.
    each: bool,
    /// Commands answered.
    pub acknowledged: usize,
}

impl Owner {
    /// Number `number`, whose load belongs to `seed`; with `each` it looks at everything after each command.
    pub fn new(seed: u64, number: u64, abilities: Abilities, each: bool) -> Self {
        Owner {
            name: format!("owner{number}"),
            generation: 0,
            random: Random::part(seed, number),
            abilities,
            keys: Keys::new(),
            unanswered: None,
            trouble: Vec::new(),
            each,
            acknowledged: 0,
        }
    }

    /// Sends commands until the connection ends, which it may not before `killed` is set.
    pub fn drive(&mut self, address: &Address, killed: &AtomicBool) {
        let outcome = Client::connect(address, REPLY_WAIT).and_then(|mut client| {
            loop {
                self.step(&mut client)?;
                if !self.trouble.is_empty() {
                    return Ok(());
                }
            }
        });
        match outcome {
            Err(ClientError::Closed(_)) if killed.load(Ordering::SeqCst) => {}
            Err(error) => self.trouble.push(format!("{error}, before the server was killed")),
            Ok(()) => {}
        }
    }

    fn step(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let command = self.next_command();
        let parts = command.parts();
        let (last, before) = parts.split_last().expect("a command has words");
        for words in before {
            let reply = client.call(words)?;
            if reply.is_error() {
                self.trouble.push(format!("{}: {}", words.join(" "), reply.text()));
                return Ok(());
            }
        }
        let from_ms = now_ms();
        self.unanswered = Some((command, Span { from_ms, to_ms: i64::MAX }));
        let answer = client.call(last);
        let to_ms = now_ms();
        let (command, _) = self.unanswered.take().expect("just set");
        let when = Span { from_ms, to_ms };
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => {
                self.unanswered = Some((command, when));
                return Err(error);
            }
        };
        self.acknowledged += 1;
        let wanted = command.run(&mut self.keys, when);
        if !same_reply(&wanted, &reply) {
            self.trouble.push(format!("{command}\n  model {}\n  server {}", shown(&wanted), shown(&reply)));
        } else if self.each {
            // A kill in the middle of the look is no finding; the check after the restart is the one that counts.
            let Ok(server) = read_keys(client, &self.key_names()) else {
                return Err(ClientError::Closed("the look at the keys was cut short".into()));
            };
            let wrong = compare_keys(&self.keys, &server).wrong;
            if !wrong.is_empty() {
                self.trouble.push(format!("right after {command}\n  {}", wrong.join("\n  ")));
            }
        }
        Ok(())
    }

    /// Looks at everything the owner has. Answers the number of facts compared.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn check(&mut self, client: &mut Client) -> Result<usize, String> {
        let outcome = self.judge(client);
        if outcome.is_err() {
            (self.generation, self.keys) = (self.generation + 1, Keys::new());
        }
        self.unanswered = None;
        outcome.map_err(|what| format!("{} {}: {what}", self.name, self.generation))
    }

    fn judge(&mut self, client: &mut Client) -> Result<usize, String> {
        if !self.trouble.is_empty() {
            return Err(std::mem::take(&mut self.trouble).join("\n"));
        }
        let server = read_keys(client, &self.key_names())?;
        let before = compare_keys(&self.keys, &server);
        let mut wrong = before.wrong.join("\n  ");
        let mut checks = before.checks;
        if !before.wrong.is_empty() {
            let Some((command, when)) = self.unanswered.take() else {
                return Err(format!("(nothing was unanswered)\n  {wrong}"));
            };
            let mut after = self.keys.clone();
            command.run(&mut after, when);
            let findings = compare_keys(&after, &server);
            if !findings.wrong.is_empty() {
                wrong.push_str(&format!(
                    "\nand as if the unanswered command was carried out ({command}):\n  {}",
                    findings.wrong.join("\n  ")
                ));
                return Err(wrong);
            }
            (self.keys, checks) = (after, findings.checks);
        }
        self.adopt(server);
        Ok(checks)
    }

    /// From now on the times are what the server said: they must stay so through the next crash.
    fn adopt(&mut self, server: Keys) {
        for (name, mut item) in server {
            let known = self.keys.get(&name).and_then(|known| known.deadline);
            if let (Some(known), Some(seen)) = (known, &mut item.deadline) {
                seen.from_ms = seen.from_ms.max(known.from_ms);
                seen.to_ms = seen.to_ms.min(known.to_ms);
            }
            self.keys.insert(name, item);
        }
    }

    fn key(&self, short: &str) -> String {
        format!("{}:{}:{short}", self.name, self.generation)
    }

    fn key_names(&self) -> Vec<String> {
        STREAM_KEYS.iter().chain(TEXT_KEYS).map(|short| self.key(short)).collect()
    }

    fn next_command(&mut self) -> Command {
        if !self.random.chance(8) {
            let mut scratch = None;
            return self.single(&mut scratch);
        }
        let (count, mut scratch) = (self.random.between(2, 6), Some(self.keys.clone()));
        Command::Transaction((0..count).map(|_| self.single(&mut scratch)).collect())
    }

    /// One command that makes sense after what is in `scratch`, or else in the model; it is run on the scratch.
    fn single(&mut self, scratch: &mut Option<Keys>) -> Command {
        let of_text = self.random.chance(22).then(|| self.text_command());
        let short = if self.random.chance(88) { STREAM_KEYS[0] } else { STREAM_KEYS[1] };
        let key = self.key(short);
        let keys = scratch.as_ref().unwrap_or(&self.keys);
        let none = Stream::default();
        let stream = match keys.get(&key).map(|item| &item.data) {
            Some(Data::Stream(stream)) => stream,
            _ => &none,
        };
        let mut command = of_text
            .unwrap_or_else(|| Maker { random: &mut self.random, abilities: self.abilities, key, stream }.make());
        if !self.abilities.strict {
            command = without_silent_consumer(command, keys);
        }
        if let Some(keys) = scratch {
            command.run(keys, Span::exact(0));
        }
        command
    }

    fn text_command(&mut self) -> Command {
        // Streams take part in the generic commands too, though less often.
        let kind: &[&str] = if self.random.chance(80) { TEXT_KEYS } else { STREAM_KEYS };
        let key = self.random.pick(TEXT_KEYS);
        let key = self.key(key);
        let (from, to) = (self.random.pick(kind), self.random.pick(kind));
        let (from, to) = (self.key(from), self.key(to));
        let seconds = self.random.between(100_000, 100_000_000) as i64;
        match self.random.below(100) {
            0..30 => {
                let number = self.random.below(1000);
                let value = if self.random.chance(50) { number.to_string() } else { format!("text-{number}") };
                Command::Set { key, value }
            }
            30..50 => Command::Increment { key },
            50..65 => Command::Append { key, value: self.random.below(1000).to_string() },
            65..70 if kind == TEXT_KEYS => Command::Remove { keys: vec![from, to] },
            65..78 => Command::Expire { key: from, seconds },
            78..82 => Command::Persist { key: from },
            82..90 => Command::Rename { from, to },
            // Onto itself is an error of its own.
            _ if from == to => Command::Increment { key },
            _ => Command::Copy { from, to, replace: self.random.chance(70) },
        }
    }
}

const STREAM_KEYS: &[&str] = &["s", "t"];
const TEXT_KEYS: &[&str] = &["a", "b", "c", "d"];
const GROUPS: &[&str] = &["g1", "g2"];
const CONSUMERS: &[&str] = &["anna", "bert", "cleo", "dora"];
/// Beyond this many entries, or pending ones, the load makes room.
const PLENTY: usize = 150;

/// In place of a command that makes a consumer and delivers nothing, one that says so.
fn without_silent_consumer(command: Command, keys: &Keys) -> Command {
    let (Command::Read { key, group, consumer, .. }
    | Command::History { key, group, consumer, .. }
    | Command::Claim { key, group, consumer, .. }
    | Command::AutoClaim { key, group, consumer, .. }) = &command
    else {
        return command;
    };
    let known = match keys.get(key).map(|item| &item.data) {
        Some(Data::Stream(stream)) => stream.groups.get(group).is_some_and(|g| g.consumers.contains(consumer)),
        _ => false,
    };
    if known {
        return command;
    }
    Command::ConsumerCreate { key: key.clone(), group: group.clone(), consumer: consumer.clone() }
}

/// Makes one command for one stream.
struct Maker<'a> {
    random: &'a mut Random,
    abilities: Abilities,
    key: String,
    stream: &'a Stream,
}

impl Maker<'_> {
    fn make(mut self) -> Command {
        let group = self.random.pick(GROUPS).to_owned();
        let consumer = self.random.pick(CONSUMERS).to_owned();
        let key = self.key.clone();
        let known = self.stream.groups.get(&group);
        if known.is_none() && self.random.chance(40) {
            let position = if self.random.chance(40) { None } else { Some(self.position()) };
            return Command::GroupCreate { key, group, position, entries_read: self.entries_read() };
        }
        if self.stream.entries.len() > PLENTY && self.random.chance(30) {
            return Command::Trim { key, limit: Limit::MaxLen(PLENTY as u64 / 2), references: self.trim_references() };
        }
        if known.is_some_and(|known| known.pending.len() > PLENTY) && self.random.chance(30) {
            let ids = known.into_iter().flat_map(|known| known.pending.keys().copied().take(PLENTY / 2)).collect();
            return Command::Ack { key, group, ids };
        }
        match self.random.below(1000) {
            0..240 => self.add(),
            240..260 => {
                let limit = if self.random.chance(50) {
                    Limit::MaxLen(self.random.below(PLENTY as u64))
                } else {
                    Limit::MinId(self.some_id())
                };
                Command::Trim { key, limit, references: self.trim_references() }
            }
            260..300 => Command::Delete { key, ids: self.some_ids() },
            300..330 if self.abilities.references => {
                let (references, ids) = (self.references(), self.unique_ids());
                // Redis tells its log nothing of references dropped where no entry is deleted.
                if !self.abilities.strict && !ids.iter().any(|id| self.stream.entries.contains_key(id)) {
                    return Command::Delete { key, ids };
                }
                Command::DeleteWith { key, references, ids }
            }
            330..370 if self.abilities.references => {
                let (references, ids) = (self.references(), self.unique_ids());
                Command::AckDelete { key, group, references, ids }
            }
            370..560 => {
                let (count, no_ack) = (self.random.between(1, 8) as usize, self.random.chance(12));
                Command::Read { key, group, consumer, count, no_ack }
            }
            560..640 if self.abilities.strict => {
                let after = if self.random.chance(60) { ZERO } else { self.some_id() };
                Command::History { key, group, consumer, count: self.random.between(1, 6) as usize, after }
            }
            640..760 => Command::Ack { key, group, ids: self.some_ids() },
            760..840 => {
                let options = self.claim_options();
                Command::Claim { key, group, consumer, idle: self.random.chance(80), ids: self.some_ids(), options }
            }
            840..890 => Command::AutoClaim {
                key,
                group,
                consumer,
                idle: self.random.chance(80),
                start: if self.random.chance(50) { ZERO } else { self.some_id() },
                count: self.random.between(1, 6) as usize,
                just_id: self.random.chance(30),
            },
            890..915 => {
                let position = if self.random.chance(20) { None } else { Some(self.position()) };
                Command::GroupSetId { key, group, position, entries_read: self.entries_read() }
            }
            915..940 => Command::ConsumerCreate { key, group, consumer },
            940..960 => Command::ConsumerDelete { key, group, consumer },
            960..970 => Command::GroupDestroy { key, group },
            970..985 => {
                let last = (self.stream.last.0 + self.random.below(3), self.stream.last.1 + self.random.below(3));
                let added = self.random.chance(50).then(|| self.stream.added + self.random.below(5));
                let max_deleted = self.random.chance(30).then(|| self.some_id());
                Command::SetId { key, last, added, max_deleted }
            }
            _ => self.add(),
        }
    }

    fn add(&mut self) -> Command {
        let (ms, seq) = self.stream.last;
        // Now and then one that is refused.
        let id = match self.random.below(20) {
            0 => (ms, seq),
            1..8 => (ms.max(1), seq + 1),
            _ => (ms + self.random.between(1, 5), self.random.below(3)),
        };
        let mut fields = vec!["f".to_owned(), id_text(id)];
        for _ in 0..self.random.below(3) {
            fields.push(format!("field{}", self.random.below(5)));
            fields.push("v".repeat(self.random.below(40) as usize));
        }
        let trim = self.random.chance(25).then(|| {
            let low = if self.random.chance(5) { 0 } else { 20 };
            (Limit::MaxLen(self.random.between(low, PLENTY as u64)), self.trim_references())
        });
        Command::Add { key: self.key.clone(), id, fields, trim }
    }

    fn references(&mut self) -> References {
        match self.random.below(4) {
            0 if self.abilities.references => References::Delete,
            1 if self.abilities.references && self.abilities.strict => References::Acked,
            _ => References::Keep,
        }
    }

    fn trim_references(&mut self) -> References {
        match self.references() {
            References::Delete if self.abilities.strict => References::DeleteBelow,
            other => other,
        }
    }

    fn entries_read(&mut self) -> Option<u64> {
        // A count too high grows beyond entries-added, and what Redis replays is capped.
        let given = self.random.chance(40) && self.abilities.strict;
        given.then(|| self.random.below(self.stream.added + 3))
    }

    /// An id of the stream, of a pending list, or near them.
    fn some_id(&mut self) -> Id {
        let pending = self.stream.groups.values().flat_map(|group| group.pending.keys());
        let known: Vec<Id> = self.stream.entries.keys().chain(pending).copied().collect();
        match self.random.below(12) {
            0 => (self.stream.last.0 + self.random.below(2), self.stream.last.1),
            1 => (self.random.below(self.stream.last.0 + 1), 0),
            _ if known.is_empty() => (1, 0),
            _ => self.random.pick(&known),
        }
    }

    fn some_ids(&mut self) -> Vec<Id> {
        (0..self.random.between(1, 5)).map(|_| self.some_id()).collect()
    }

    fn unique_ids(&mut self) -> Vec<Id> {
        let mut ids = self.some_ids();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn position(&mut self) -> Id {
        if self.random.chance(30) { ZERO } else { self.some_id() }
    }

    fn claim_options(&mut self) -> ClaimOptions {
        let mut options = ClaimOptions {
            force: self.random.chance(25),
            just_id: self.random.chance(30),
            retry_count: self.random.chance(20).then(|| self.random.below(20) as i64),
            ..ClaimOptions::default()
        };
        match self.random.below(10) {
            0 | 1 => options.idle_ms = Some(self.random.below(1_000_000) as i64),
            2 => options.time_ms = Some(now_ms() - 1000 - self.random.below(1_000_000) as i64),
            _ => {}
        }
        if self.random.chance(8) {
            options.last_id = Some(self.some_id());
        }
        options
    }
}

/// Whether the server knows the commands of Redis 8.2.
///
/// # Errors
/// When it does not answer.
pub fn knows_references(client: &mut Client) -> Result<bool, ClientError> {
    Ok(matches!(client.call(&["XDELEX", "no-such-stream", "IDS", "1", "1-1"])?, Value::Array(_)))
}
