//! The load that keeps the second book: entries whose work is begun, completed with an entry emitted, given back or sent to the
//! dead-letter stream, under a policy with a short lease. After a crash each acknowledged completion is there with its one
//! emitted entry, nothing is completed that is still pending, and no entry has got lost between the books.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use super::check::Findings;
use super::command::list;
use super::id::{Id, id_text};
use super::owner::REPLY_WAIT;
use super::random::Random;
use super::view::{ask, field, id, items, read_entries, read_pending, trouble};
use crate::resp::{Address, Client, ClientError, Value};

const GROUP: &str = "g";
const CONSUMERS: &[&str] = &["anna", "bert"];
/// Streams that have become longer are deleted, and new ones begun: each check reads all of them.
const MAX_LENGTH: usize = 3000;

/// What a policy may say beside what it always says.
const POLICIES: &[&[&str]] = &[
    &["LEASE", "0", "MAXDELIVERIES", "0", "BACKOFF", "0", "0"],
    &["LEASE", "5", "MAXDELIVERIES", "3", "BACKOFF", "0", "0"],
    &["LEASE", "20", "MAXDELIVERIES", "4", "BACKOFF", "1", "4"],
    &["LEASE", "5", "MAXDELIVERIES", "0", "IDEMPOTENT", "yes"],
    &["IDEMPOTENT", "no", "EVIDENCE", "record"],
    &["EVIDENCE", "off"],
];

/// A completion: of which entry, with which digest, and the entry that came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The entry that was worked at.
    pub entry: Id,
    /// The application's.
    pub digest: String,
    /// The entry emitted.
    pub emitted: Id,
}

/// What was sent and not answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// Nothing that matters.
    #[default]
    Nothing,
    /// XWORK DONE of this work, for this entry.
    Completing(String, Id),
    /// XWORK FAIL … DEAD of this entry.
    Burying(Id),
    /// XWORK POLICY, which leaves this.
    Ruling(BTreeMap<String, String>),
}

/// What is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkLog {
    /// Entries of which the group got one in a reply that came.
    pub given: BTreeSet<Id>,
    /// By work id.
    pub done: BTreeMap<String, Done>,
    /// Entries acknowledged by a completion, theirs or an earlier one of the same work.
    pub settled: BTreeSet<Id>,
    /// Letters by the entry that they are of.
    pub dead: BTreeMap<Id, Id>,
    /// The policy.
    pub policy: BTreeMap<String, String>,
    /// What may have happened, too.
    pub asking: Asking,
}

/// What the server shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkView {
    /// Entries that are pending.
    pub pending: BTreeSet<Id>,
    /// The entries of the stream that EMIT goes to: ID, work, entry.
    pub emitted: Vec<(Id, String, Id)>,
    /// Completions in the ledger: work, entry, digest.
    pub completed: Vec<(String, Id, String)>,
    /// The dead-letter stream: ID, and the entry it is of.
    pub letters: Vec<(Id, Id)>,
    /// The policy.
    pub policy: BTreeMap<String, String>,
}

/// The judgement.
pub fn check_work(log: &WorkLog, view: &WorkView) -> Findings {
    let mut findings = Findings::default();
    let emitted: BTreeMap<&str, (Id, Id)> = view.emitted.iter().map(|(id, work, of)| (&work[..], (*id, *of))).collect();
    let completed: BTreeMap<&str, (Id, &str)> =
        view.completed.iter().map(|(work, of, digest)| (&work[..], (*of, &digest[..]))).collect();
    findings.expect(emitted.len() == view.emitted.len(), || "an entry was emitted twice for a work id".into());
    findings.expect(completed.len() == view.completed.len(), || "a work id is completed twice".into());
    for (work, done) in &log.done {
        let there = completed.get(&work[..]);
        findings.expect(there == Some(&(done.entry, &done.digest)), || {
            format!("{work}: acknowledged {done:?}, the ledger says {there:?}")
        });
        let there = emitted.get(&work[..]);
        findings.expect(there == Some(&(done.emitted, done.entry)), || {
            format!("{work}: acknowledged {done:?}, emitted {there:?}")
        });
    }
    for (work, (entry, _)) in &completed {
        findings.expect(emitted.get(work).is_some_and(|(_, of)| of == entry), || {
            format!("{work} is completed by {}, emitted {:?}", id_text(*entry), emitted.get(work))
        });
        let asked = log.asking == Asking::Completing((*work).to_owned(), *entry);
        findings.expect(log.done.contains_key(*work) || asked, || format!("{work} is completed, which nobody said"));
        findings.expect(!view.pending.contains(entry), || {
            format!("{work} is completed by {}, which is pending", id_text(*entry))
        });
    }
    for work in emitted.keys() {
        findings.expect(completed.contains_key(work), || format!("{work}: an entry emitted without a completion"));
    }
    for entry in &log.settled {
        findings.expect(!view.pending.contains(entry), || format!("{} was acknowledged, and pends", id_text(*entry)));
    }
    check_letters(log, view, &mut findings);
    let letters: BTreeSet<Id> = view.letters.iter().map(|(_, of)| *of).collect();
    for entry in &log.given {
        let asked = matches!(&log.asking, Asking::Completing(_, of) if of == entry);
        let is_known = view.pending.contains(entry) || log.settled.contains(entry) || letters.contains(entry) || asked;
        findings.expect(is_known, || format!("{} is neither pending nor done nor dead", id_text(*entry)));
    }
    let ruled = matches!(&log.asking, Asking::Ruling(policy) if *policy == view.policy);
    findings.expect(view.policy == log.policy || ruled, || {
        format!("the policy was {:?}, now it is {:?}", log.policy, view.policy)
    });
    findings
}

fn check_letters(log: &WorkLog, view: &WorkView, findings: &mut Findings) {
    let letters: BTreeMap<Id, Id> = view.letters.iter().map(|(id, of)| (*of, *id)).collect();
    findings.expect(letters.len() == view.letters.len(), || "an entry is there as two dead letters".into());
    for (entry, letter) in &log.dead {
        findings.expect(letters.get(entry) == Some(letter), || {
            format!("{} was sent away as {}, there is {:?}", id_text(*entry), id_text(*letter), letters.get(entry))
        });
    }
    for entry in letters.keys() {
        findings.expect(!view.pending.contains(entry), || format!("{} is dead, and pends", id_text(*entry)));
    }
}

/// The load.
#[derive(Debug)]
pub struct Work {
    generation: u64,
    random: Random,
    log: WorkLog,
    /// Entries given and not settled, with their numbers.
    open: BTreeMap<Id, u64>,
    /// The number of the next entry.
    next: u64,
    trouble: Vec<String>,
    /// Commands answered.
    pub answers: usize,
}

impl Work {
    /// Whether a server has what it takes.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn is_known(client: &mut Client) -> Result<bool, ClientError> {
        Ok(client.call(&["XWORK", "GET", "no-such-stream", "g", "w"])?.text().starts_with("NOGROUP"))
    }

    /// The load that belongs to `seed`; [`Work::prepare`] makes its streams.
    pub fn new(seed: u64) -> Self {
        Work {
            generation: 0,
            random: Random::part(seed, 5000),
            log: WorkLog::default(),
            open: BTreeMap::new(),
            next: 0,
            trouble: Vec::new(),
            answers: 0,
        }
    }

    fn key(&self, of: &str) -> String {
        format!("work:{}:{of}", self.generation)
    }

    /// Makes the group and its policy.
    ///
    /// # Errors
    /// When the server does not.
    pub fn prepare(&mut self, client: &mut Client) -> Result<(), String> {
        (self.log, self.open, self.next) = (WorkLog::default(), BTreeMap::new(), 0);
        let (key, dead) = (self.key("in"), self.key("dead"));
        ask(client, &["XGROUP", "CREATE", &key, GROUP, "0", "MKSTREAM"])?;
        ask(client, &["XWORK", "POLICY", &key, GROUP, "DEADLETTER", &dead, "LEASE", "20"])?;
        self.log.policy = read_policy(client, &key)?;
        Ok(())
    }

    /// Works until the connection ends, which it may not before `killed` is set.
    pub fn drive(&mut self, address: &Address, killed: &AtomicBool) {
        let outcome = Client::connect(address, REPLY_WAIT).and_then(|mut client| {
            while self.trouble.is_empty() {
                self.step(&mut client)?;
            }
            Ok(None)
        });
        self.trouble.extend(trouble(outcome, killed));
    }

    fn call(&mut self, client: &mut Client, words: &[&str], asking: Asking) -> Result<Value, ClientError> {
        self.log.asking = asking;
        let reply = client.call(words)?;
        self.log.asking = Asking::Nothing;
        self.answers += 1;
        if reply.is_error() {
            self.trouble.push(format!("{}: {}", words.join(" "), reply.text()));
        }
        Ok(reply)
    }

    fn step(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let key = self.key("in");
        match self.random.below(100) {
            0..35 => {
                let number = self.next.to_string();
                self.next += 1;
                self.call(client, &["XADD", &key, "*", "n", &number], Asking::Nothing)?;
            }
            35..60 => self.read(client, &key)?,
            60..63 => {
                let rules = POLICIES[self.random.below(POLICIES.len() as u64) as usize];
                let mut policy = self.log.policy.clone();
                for pair in rules.windows(2) {
                    let name = pair[0].to_ascii_lowercase();
                    if policy.contains_key(&name) {
                        policy.insert(name, pair[1].to_owned());
                    }
                }
                if let Some(at) = rules.iter().position(|word| *word == "BACKOFF") {
                    policy.insert("backoff".into(), rules[at + 1..].join(" "));
                }
                let words = [&["XWORK", "POLICY", &key, GROUP], rules].concat();
                self.call(client, &words, Asking::Ruling(policy.clone()))?;
                self.log.policy = policy;
            }
            _ => {
                let count = self.open.len() as u64;
                let at = if count == 0 { 0 } else { self.random.below(count) };
                if let Some((&entry, &number)) = self.open.iter().nth(at as usize) {
                    self.work(client, &key, entry, number)?;
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, client: &mut Client, key: &str) -> Result<(), ClientError> {
        let (consumer, count) = (self.random.pick(CONSUMERS), self.random.between(1, 4).to_string());
        let words = ["XREADGROUP", "GROUP", GROUP, consumer, "COUNT", &count, "STREAMS", key, ">"];
        let reply = self.call(client, &words, Asking::Nothing)?;
        let given = |reply: &Value| -> Result<Vec<(Id, u64)>, String> {
            let Value::Array(streams) = reply else { return Ok(Vec::new()) };
            let [stream] = &streams[..] else { return Err("one stream was asked for".into()) };
            let entries = items(items(stream)?.last().ok_or("no entries")?)?;
            entries
                .iter()
                .map(super::view::entry)
                .map(|entry| entry.and_then(|(id, fields)| Ok((id, number(&fields)?))))
                .collect()
        };
        match given(&reply) {
            Ok(given) => {
                self.log.given.extend(given.iter().map(|(id, _)| *id));
                self.open.extend(given);
            }
            Err(what) => self.trouble.push(format!("{}: {what}", words.join(" "))),
        }
        Ok(())
    }

    /// Does something about an entry that was given. Two entries are of the same work.
    fn work(&mut self, client: &mut Client, key: &str, entry: Id, number: u64) -> Result<(), ClientError> {
        let (consumer, id_word, work) = (self.random.pick(CONSUMERS), id_text(entry), format!("w{}", number / 2));
        let begin = ["XWORK", "BEGIN", key, GROUP, consumer, &id_word, "WORK", &work];
        match self.random.below(100) {
            0..35 => {
                self.call(client, &begin, Asking::Nothing)?;
            }
            35..75 => {
                let (digest, out) = (format!("digest-{work}"), self.key("out"));
                let mut words = list(&["XWORK", "DONE", key, GROUP, consumer, &id_word, "WORK", &work]);
                words.extend(list(&["DIGEST", &digest, "EMIT", &out, "*", "w", &work, "of", &id_word]));
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let reply = self.call(client, &words, Asking::Completing(work.clone(), entry))?;
                self.note_done(&reply, work, Done { entry, digest, emitted: Id::default() });
            }
            75..85 => {
                let after = self.random.below(5).to_string();
                let words = ["XWORK", "FAIL", key, GROUP, consumer, &id_word, "REASON", "try again", "RETRYIN", &after];
                self.call(client, &words, Asking::Nothing)?;
            }
            85..88 => {
                let words = ["XWORK", "FAIL", key, GROUP, consumer, &id_word, "DEAD"];
                let reply = self.call(client, &words, Asking::Burying(entry))?;
                if let Ok([status, letter]) = items(&reply)
                    && status.text() == "DEAD"
                {
                    match id(letter) {
                        Ok(letter) => {
                            self.log.dead.insert(entry, letter);
                            self.open.remove(&entry);
                        }
                        Err(what) => self.trouble.push(format!("{}: {what}", words.join(" "))),
                    }
                }
            }
            88..92 => {
                self.call(client, &["XWORK", "HOLD", key, GROUP, "IDS", "1", &id_word], Asking::Nothing)?;
            }
            _ => {
                self.call(client, &["XWORK", "RELEASE", key, GROUP, "IDS", "1", &id_word], Asking::Nothing)?;
            }
        }
        Ok(())
    }

    fn note_done(&mut self, reply: &Value, work: String, done: Done) {
        let Ok([status, detail, ..]) = items(reply) else { return };
        match &status.text()[..] {
            "COMPLETED" => {
                self.log.settled.insert(done.entry);
                self.open.remove(&done.entry);
                match id(detail) {
                    Ok(emitted) => {
                        if let Some(before) = self.log.done.insert(work.clone(), Done { emitted, ..done }) {
                            self.trouble
                                .push(format!("{work} is completed for the second time, before that {before:?}"));
                        }
                    }
                    Err(what) => self.trouble.push(format!("{work}: {what}")),
                }
            }
            "DUPLICATE" if !self.log.done.contains_key(&work) => {
                self.trouble.push(format!("{work} is said to be completed, and is not"));
            }
            "DUPLICATE" => {
                self.log.settled.insert(done.entry);
                self.open.remove(&done.entry);
            }
            // The caller does not have it, or nobody does.
            "STALE" | "HELD" | "NOTPENDING" => {}
            other => self.trouble.push(format!("{work}: XWORK DONE answers {other}")),
        }
    }

    /// Looks at both books. Answers the number of facts compared.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn check(&mut self, client: &mut Client) -> Result<usize, String> {
        let outcome = self.judge(client);
        if outcome.is_err() || self.log.given.len() > MAX_LENGTH {
            let keys = ["in", "out", "dead"].map(|of| self.key(of));
            self.generation += 1;
            self.prepare(client)?;
            if outcome.is_ok() {
                ask(client, &["DEL", &keys[0], &keys[1], &keys[2]])?;
            }
        }
        outcome.map_err(|what| format!("work {}: {what}", self.generation))
    }

    fn judge(&mut self, client: &mut Client) -> Result<usize, String> {
        if !self.trouble.is_empty() {
            return Err(std::mem::take(&mut self.trouble).join("\n  "));
        }
        let view = self.view(client)?;
        let Findings { checks, wrong } = check_work(&self.log, &view);
        if !wrong.is_empty() {
            return Err(wrong[..wrong.len().min(20)].join("\n  "));
        }
        self.adopt(view);
        Ok(checks)
    }

    fn view(&self, client: &mut Client) -> Result<WorkView, String> {
        let (key, mut view) = (self.key("in"), WorkView::default());
        view.pending = read_pending(client, &key, GROUP)?.into_keys().collect();
        for (of, fields) in read_entries(client, &self.key("out"))? {
            let [_, work, _, entry] = &fields[..] else { return Err(format!("emitted was {fields:?}")) };
            view.emitted.push((of, work.clone(), parse(entry)?));
        }
        for row in items(&ask(client, &["XWORK", "LOG", &key, GROUP, "-", "+", "OUTCOME", "completed"])?)? {
            let [_, row] = items(row)? else { return Err("a row of the ledger has two parts".into()) };
            let text = |name| field(row, name).map(Value::text);
            view.completed.push((text("work")?, id(field(row, "entry")?)?, text("digest")?));
        }
        for (letter, fields) in read_entries(client, &self.key("dead"))? {
            let of = fields.chunks_exact(2).find(|pair| pair[0] == "_id").ok_or("a letter without _id")?;
            view.letters.push((letter, parse(&of[1])?));
        }
        view.policy = read_policy(client, &key)?;
        Ok(view)
    }

    /// What could have gone either way is now known.
    fn adopt(&mut self, view: WorkView) {
        let emitted: BTreeMap<&String, Id> = view.emitted.iter().map(|(id, work, _)| (work, *id)).collect();
        for (work, entry, digest) in &view.completed {
            let done = Done { entry: *entry, digest: digest.clone(), emitted: emitted[work] };
            self.log.done.insert(work.clone(), done);
            self.log.settled.insert(*entry);
        }
        // Of the same work as one that was completed before.
        if let Asking::Completing(_, entry) = std::mem::take(&mut self.log.asking)
            && !view.pending.contains(&entry)
        {
            self.log.settled.insert(entry);
        }
        self.log.dead.extend(view.letters.iter().map(|(letter, of)| (*of, *letter)));
        self.log.policy = view.policy;
        let (settled, dead) = (&self.log.settled, &self.log.dead);
        self.open.retain(|entry, _| !settled.contains(entry) && !dead.contains_key(entry));
    }
}

fn parse(text: &str) -> Result<Id, String> {
    super::id::parse_id(text).ok_or_else(|| format!("{text:?} is no ID"))
}

fn number(fields: &[String]) -> Result<u64, String> {
    match fields {
        [name, value] if name == "n" => value.parse().map_err(|_| format!("an entry holds {value:?}")),
        other => Err(format!("an entry holds {other:?}")),
    }
}

fn read_policy(client: &mut Client, key: &str) -> Result<BTreeMap<String, String>, String> {
    let policy = ask(client, &["XWORK", "POLICY", key, GROUP])?;
    let mut all = BTreeMap::new();
    for pair in items(&policy)?.chunks_exact(2) {
        let value = match &pair[1] {
            Value::Array(parts) => parts.iter().map(Value::text).collect::<Vec<_>>().join(" "),
            other => other.text(),
        };
        all.insert(pair[0].text(), value);
    }
    Ok(all)
}
