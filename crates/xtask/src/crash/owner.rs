//! The load that knows exactly what must be there: a connection with keys of its own, one command at a time, and a
//! model that follows each reply. After a crash the server holds the model, or the model after the one command that
//! was not answered.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use impel_sim::model::Model;

use super::check::{Findings, compare_facts};
use super::command::{Command, list};
use super::facts::{Fact, Facts, read_facts};
use super::id::Span;
use super::maker::Maker;
use super::random::Random;
use super::twin::{Twin, allows, run_on, shown, stream};
use super::view::{ask, now_ms, trouble};
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
    /// What came with Redis 8.4 to 8.8: CLAIM, IDMP, XCFGSET, XNACK.
    pub newer: bool,
    /// What only we have: XCFGGET, and all that is told with it.
    pub ours: bool,
}

impl Abilities {
    /// Asks a server what it knows.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn of(client: &mut Client, strict: bool) -> Result<Self, ClientError> {
        let mut knows =
            |words: &[&str], of_known: &str| client.call(words).map(|reply| reply.text().starts_with(of_known));
        let newer = knows(&["XNACK", "no-such-stream", "no-such-group", "FAIL", "IDS", "1", "1-1"], "NOGROUP")?;
        let ours = newer && knows(&["XCFGGET", "no-such-stream"], "ERR no such key")?;
        let reply = client.call(&["XDELEX", "no-such-stream", "IDS", "1", "1-1"])?;
        Ok(Abilities { references: matches!(reply, Value::Array(_)), strict, newer, ours })
    }
}

/// One owner.
#[derive(Debug)]
pub struct Owner {
    name: String,
    /// A new one after each failure: what the failed one left is not looked at any more.
    generation: u64,
    random: Random,
    abilities: Abilities,
    twin: Twin,
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
            twin: Twin::new(),
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
                    return Ok(None);
                }
            }
        });
        self.trouble.extend(trouble(outcome, killed));
    }

    fn step(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let command = self.next_command();
        let parts = command.parts.clone();
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
        let wanted = self.twin.run(&command, when, Some(&reply.text()));
        if !allows(&command, &wanted, &reply) {
            self.trouble.push(format!("{command}\n  model {}\n  server {}", shown(&wanted), shown(&reply)));
        } else if self.each {
            // A kill in the middle of the look is no finding; the check after the restart is the one that counts.
            let Ok(server) = self.server_facts(client) else {
                return Err(ClientError::Closed("the look at the keys was cut short".into()));
            };
            match self.compare(&server) {
                Ok(findings) if findings.wrong.is_empty() => {}
                Ok(findings) => {
                    self.trouble.push(format!("right after {command}\n  {}", findings.wrong.join("\n  ")));
                }
                Err(error) => self.trouble.push(error),
            }
        }
        Ok(())
    }

    fn server_facts(&self, client: &mut Client) -> Result<Facts, String> {
        let mut question = |words: &[&str]| {
            let from_ms = now_ms();
            let reply = ask(client, words)?;
            Ok((reply, Span { from_ms, to_ms: now_ms() }))
        };
        read_facts(&mut question, &self.key_names(), self.abilities)
    }

    fn compare(&mut self, server: &Facts) -> Result<Findings, String> {
        let names = self.key_names();
        let (early, late) = self.twin.facts(&names, self.abilities)?;
        Ok(compare_facts(&early, &late, server))
    }

    /// Looks at everything the owner has. Answers the number of facts compared.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn check(&mut self, client: &mut Client) -> Result<usize, String> {
        let outcome = self.judge(client);
        if outcome.is_err() {
            (self.generation, self.twin) = (self.generation + 1, Twin::new());
        }
        self.unanswered = None;
        outcome.map_err(|what| format!("{} {}: {what}", self.name, self.generation))
    }

    fn judge(&mut self, client: &mut Client) -> Result<usize, String> {
        if !self.trouble.is_empty() {
            return Err(std::mem::take(&mut self.trouble).join("\n"));
        }
        let server = self.server_facts(client)?;
        let before = self.compare(&server)?;
        let mut checks = before.checks;
        if before.wrong.is_empty() {
            self.settle(client)?;
        } else {
            let mut wrong = before.wrong.join("\n  ");
            let Some((command, when)) = self.unanswered.take() else {
                return Err(format!("(nothing was unanswered)\n  {wrong}"));
            };
            // An id that the server made is the stream's last now.
            let made = command.server_id.as_ref().and_then(|key| server.get(&format!("{key} last-generated-id")));
            let made = made.and_then(|fact| if let Fact::Text(id) = fact { Some(id.as_str()) } else { None });
            self.twin.run(&command, when, made);
            let after = self.compare(&server)?;
            if !after.wrong.is_empty() {
                wrong.push_str(&format!(
                    "\nand as if the unanswered command was carried out ({command}):\n  {}",
                    after.wrong.join("\n  ")
                ));
                return Err(wrong);
            }
            checks = after.checks;
        }
        self.twin.adopt(&server);
        Ok(checks)
    }

    /// Nothing shows that the unanswered command was carried out. What it may have changed without showing is done now:
    /// then it was, either way.
    fn settle(&mut self, client: &mut Client) -> Result<(), String> {
        let Some((command, _)) = self.unanswered.take() else { return Ok(()) };
        for command in command.hidden() {
            let from_ms = now_ms();
            let reply = client.call(&command.parts[0]).map_err(|e| format!("{command}: {e}"))?;
            let wanted = self.twin.run(&command, Span { from_ms, to_ms: now_ms() }, None);
            if !allows(&command, &wanted, &reply) {
                return Err(format!("again {command}\n  model {}\n  server {}", shown(&wanted), shown(&reply)));
            }
        }
        Ok(())
    }

    fn key(&self, short: &str) -> String {
        format!("{}:{}:{short}", self.name, self.generation)
    }

    fn key_names(&self) -> Vec<String> {
        STREAM_KEYS.iter().chain(TEXT_KEYS).map(|short| self.key(short)).collect()
    }

    fn next_command(&mut self) -> Command {
        if !self.random.chance(8) {
            return self.single(None);
        }
        let (count, mut scratch) = (self.random.between(2, 6), self.twin.scratch());
        Command::transaction((0..count).map(|_| self.single(Some(&mut scratch))).collect())
    }

    /// One command that makes sense after what is in `scratch`, or else in the model; it is run on the scratch.
    fn single(&mut self, mut scratch: Option<&mut Model>) -> Command {
        let command = if self.random.chance(22) {
            self.text_command()
        } else {
            let short = if self.random.chance(88) { STREAM_KEYS[0] } else { STREAM_KEYS[1] };
            let (key, exact) = (self.key(short), scratch.is_some());
            let model = scratch.as_deref().unwrap_or(self.twin.model());
            let stream = stream(model, &key);
            Maker { random: &mut self.random, abilities: self.abilities, key, stream, exact }.make()
        };
        if let Some(scratch) = &mut scratch {
            run_on(scratch, &command);
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
        Command::new(match self.random.below(100) {
            0..30 => {
                let number = self.random.below(1000);
                let value = if self.random.chance(50) { number.to_string() } else { format!("text-{number}") };
                list(&["SET", &key, &value])
            }
            30..50 => list(&["INCR", &key]),
            50..65 => list(&["APPEND", &key, &self.random.below(1000).to_string()]),
            65..70 if kind == TEXT_KEYS => list(&["DEL", &from, &to]),
            65..78 => list(&["EXPIRE", &from, &self.random.between(100_000, 100_000_000).to_string()]),
            78..82 => list(&["PERSIST", &from]),
            82..90 => list(&["RENAME", &from, &to]),
            // Onto itself is an error of its own.
            _ if from == to => list(&["INCR", &key]),
            _ if self.random.chance(70) => list(&["COPY", &from, &to, "REPLACE"]),
            _ => list(&["COPY", &from, &to]),
        })
    }
}

const STREAM_KEYS: &[&str] = &["s", "t"];
const TEXT_KEYS: &[&str] = &["a", "b", "c", "d"];
