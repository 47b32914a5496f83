//! What became of the entries that a group was given, from both books: the group's own (the stream and the pending list) and
//! that of the work (the server's ledger, or the completions of the system where the effects landed).
//!
//! A pure function of the question, the replies and the completions: [`run`] asks a [`Source`], which is a server or the replies
//! that were kept of one, so that a bundle of evidence is checked by the very code that made it. Memory is bounded whatever
//! the number of entries: they are read in pages, and what does not come in order is sorted in files.
//!
//! Nothing here changes anything on the server.

pub mod bundle;
pub mod completions;
mod cross;
mod lines;
mod page;
pub mod postgres;
mod sorter;
pub mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use impel_core::state::decision::{Begun, Books, DECISIONS, Decision, REASONS, Reason};
use impel_core::state::policy::Evidence;
use serde_json::{Value, json};

use crate::client::entry::value;
use completions::Completion;
use cross::Cross;
use page::{Group, Pager};
use sorter::Sorter;
pub use source::Source;

/// Rows of the ledger asked for at once.
const LOG_PAGE: usize = 1000;

/// Why there is no answer.
#[derive(Debug)]
pub struct Trouble(pub String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble(error.to_string())
    }
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Trouble(text)
    }
}

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The stream.
    pub stream: String,
    /// The group.
    pub group: String,
    /// The field that has the work id, where the server does not know better.
    pub work_field: Option<String>,
    /// Where the server keeps no ledger: a delivery that is older, in milliseconds, is not being worked on any more.
    pub lease_ms: u64,
    /// Where the server keeps no ledger: may an attempt of unknown outcome be made again?
    pub idempotent: bool,
    /// Entries asked for at once, from 2.
    pub page: usize,
    /// Is the whole ledger wanted as well?
    pub with_log: bool,
}

impl Question {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "stream": self.stream, "group": self.group, "work_field": self.work_field, "lease_ms": self.lease_ms,
            "idempotent": self.idempotent, "page": self.page, "with_log": self.with_log,
        })
    }

    /// Reads what [`Question::json`] wrote.
    pub fn read(json: &Value) -> Option<Question> {
        Some(Question {
            stream: json["stream"].as_str()?.into(),
            group: json["group"].as_str()?.into(),
            work_field: json["work_field"].as_str().map(str::to_owned),
            lease_ms: json["lease_ms"].as_u64()?,
            idempotent: json["idempotent"].as_bool()?,
            page: usize::try_from(json["page"].as_u64()?).ok().filter(|&page| page >= 2)?,
            with_log: json["with_log"].as_bool()?,
        })
    }
}

/// An entry that the group was given, as both of the server's books have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// Its ID: milliseconds and number.
    pub id: (u64, u64),
    /// The work id.
    pub work: Vec<u8>,
    /// Is it in the stream?
    pub payload: bool,
    /// How it is pending, if it is.
    pub pending: Option<Pending>,
    /// What XWORK AUDIT says.
    pub server: Option<Told>,
}

/// What XWORK AUDIT says of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The decision.
    pub decision: String,
    /// The reason.
    pub reason: String,
    /// The work id, as the server has it.
    pub work: Vec<u8>,
}

/// How an entry is pending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Whose it is; nobody's when it was given back.
    pub owner: Option<Vec<u8>>,
    /// For how long, in milliseconds; −1 if nobody's.
    pub idle_ms: i64,
    /// How often it was delivered.
    pub deliveries: i64,
}

fn id_text((ms, number): (u64, u64)) -> String {
    format!("{ms}-{number}")
}

/// Reads an ID.
fn id_of(text: &str) -> Option<(u64, u64)> {
    let (ms, number) = text.split_once('-')?;
    Some((ms.parse().ok()?, number.parse().ok()?))
}

fn owner_json(pending: Option<&Pending>) -> Value {
    pending.and_then(|pending| pending.owner.as_deref()).map_or(Value::Null, value)
}

impl Given {
    /// As a line of the group's book.
    fn json(&self) -> Value {
        let pending = self.pending.as_ref().map(|pending| {
            json!({"owner": owner_json(Some(pending)), "idle_ms": pending.idle_ms, "deliveries": pending.deliveries})
        });
        let server = self
            .server
            .as_ref()
            .map(|told| json!({"decision": told.decision, "reason": told.reason, "work": value(&told.work)}));
        json!({
            "id": id_text(self.id), "work": value(&self.work), "payload": self.payload, "pending": pending, "server": server,
        })
    }
}

/// What the other system knows of a work id.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Landed {
    completed: bool,
    conflict: bool,
}

/// What both books come to for an entry: the reason, and its text, which for a hold is its own.
fn judge(given: &Given, landed: Landed, has_completions: bool, group: &Group, question: &Question) -> (Reason, String) {
    let evidence = match (has_completions, group.evidence) {
        // Whoever keeps completions elsewhere wants one for each entry.
        (true, _) | (false, true) => Evidence::Record,
        (false, false) => Evidence::Off,
    };
    let mut books = Books {
        pending: given.pending.is_some(),
        payload: given.payload,
        completed: landed.completed,
        conflict: landed.conflict,
        on_hold: false,
        dead: false,
        begun: Begun::No,
        evidence,
        idempotent: if given.server.is_some() { group.idempotent } else { question.idempotent },
    };
    let mut own = None;
    match &given.server {
        Some(Told { decision, reason, .. }) => match (&decision[..], &reason[..]) {
            ("ACCEPT" | "REPAIR", "complete" | "ack-missing") => books.completed = true,
            ("OPEN", "in-progress") => books.begun = Begun::WithinLease,
            ("RERUN", "retry-safe") => books.begun = Begun::LeaseOver,
            ("HOLD", "conflict") => books.conflict = true,
            ("HOLD", "dead-letter") if given.pending.is_none() => books.dead = true,
            ("HOLD", "payload-lost") if !given.payload => books.begun = Begun::LeaseOver,
            ("HOLD", "outcome-unknown") if given.payload && !group.idempotent => books.begun = Begun::LeaseOver,
            // Whoever put it on hold may have given any reason.
            ("HOLD", _) => (books.on_hold, own) = (true, Some(reason.clone())),
            _ => {}
        },
        // Nobody said that it began. Who was given it may have.
        None => {
            books.begun = match &given.pending {
                Some(pending) if pending.deliveries == 0 => Begun::No,
                Some(pending) if pending.owner.is_none() => Begun::LeaseOver,
                Some(pending) if u64::try_from(pending.idle_ms).is_ok_and(|ms| ms < question.lease_ms) => {
                    Begun::WithinLease
                }
                Some(_) => Begun::LeaseOver,
                None => Begun::No,
            };
        }
    }
    let reason = books.decide();
    let text = match own {
        Some(own) if reason == Reason::OnHold => own,
        _ => reason.code().to_owned(),
    };
    (reason, text)
}

/// The reply of XWORK AUDIT must be what the same transaction shows in the other replies.
fn check_books(given: &Given, reason: Reason, own: &str) -> Result<(), Trouble> {
    let Some(Told { decision, reason: said, .. }) = &given.server else { return Ok(()) };
    let is_told = reason.decision().name() == decision && own == said;
    if is_told {
        return Ok(());
    }
    Err(Trouble(format!(
        "entry {}: XWORK AUDIT says {decision} {said}, and by the stream and the pending list of the same moment it is {} {own}",
        id_text(given.id),
        reason.decision().name()
    )))
}

/// A decision.
#[derive(Debug)]
pub struct Decided {
    /// What is to be done.
    pub decision: Decision,
    /// The line of the decisions: id, work, decision, reason, owner, delivery, idle_ms.
    pub json: Value,
}

fn decided(line: &Value, reason: Reason, own: &str) -> Decided {
    let pending = &line["pending"];
    let decision = reason.decision();
    let json = json!({
        "id": line["id"], "work": line["work"], "decision": decision.name(), "reason": own,
        "code": reason.code(), "owner": pending["owner"],
        "delivery": pending["deliveries"].as_i64().unwrap_or(0), "idle_ms": pending["idle_ms"].as_i64().unwrap_or(-1),
    });
    Decided { decision, json }
}

/// What the whole comes to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Entries.
    pub entries: u64,
    /// How many of each decision, by its name.
    pub decisions: BTreeMap<&'static str, u64>,
    /// How many of each reason, by its code.
    pub reasons: BTreeMap<String, u64>,
    /// Up to where the group had been given entries.
    pub end: String,
    /// When the server said so, in Unix seconds.
    pub time: String,
    /// Has the server a ledger?
    pub has_ledger: bool,
    /// Completions of the other system, and how many of its work ids no entry has.
    pub completions: u64,
    /// Work ids that are completed and that no entry has.
    pub without_entry: u64,
    /// Work ids with several completions that do not contradict each other.
    pub repeated: u64,
}

impl Totals {
    fn count(&mut self, decided: &Decided) {
        self.entries += 1;
        *self.decisions.entry(decided.decision.name()).or_default() += 1;
        let code = decided.json["code"].as_str().unwrap_or_default();
        *self.reasons.entry(code.to_owned()).or_default() += 1;
    }

    /// Is every entry accepted?
    pub fn is_accepted(&self) -> bool {
        self.decisions.iter().all(|(name, &count)| *name == Decision::Accept.name() || count == 0)
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let decisions: BTreeMap<&str, u64> =
            DECISIONS.iter().map(|one| (one.name(), self.decisions.get(one.name()).copied().unwrap_or(0))).collect();
        json!({
            "entries": self.entries, "decisions": decisions, "reasons": self.reasons, "end": self.end, "time": self.time,
            "server_has_ledger": self.has_ledger, "completions": self.completions,
            "completions_without_entry": self.without_entry, "work_ids_completed_repeatedly": self.repeated,
            "accepted": self.is_accepted(),
        })
    }
}

/// Where the books are written as they are read. Each line is an object of JSON.
pub trait Sink {
    /// An entry of the group.
    fn given(&mut self, line: &Value) -> Result<(), Trouble>;
    /// A row of the server's ledger.
    fn row(&mut self, line: &Value) -> Result<(), Trouble>;
    /// A completion of the other system.
    fn completion(&mut self, line: &Value) -> Result<(), Trouble>;
    /// A decision, in the order of the IDs.
    fn decided(&mut self, decided: &Decided) -> Result<(), Trouble>;
}

/// Asks the source, joins the books and tells the sink; `completions` are those of the other system, in any order.
pub fn run(
    source: &mut dyn Source,
    question: &Question,
    completions: Option<&mut dyn Iterator<Item = Result<Completion, Trouble>>>,
    sink: &mut dyn Sink,
    temporary: &Path,
) -> Result<Totals, Trouble> {
    let mut pager = Pager::begin(source, question)?;
    let group = pager.group().clone();
    let mut totals = Totals {
        end: id_text(group.last),
        time: group.time.clone(),
        has_ledger: group.has_ledger,
        ..Totals::default()
    };
    let mut joining = match completions {
        Some(completions) => Some(Joining::begin(completions, sink, temporary, &mut totals)?),
        None => None,
    };
    let keeping = if question.with_log { pager.keeping()? } else { None };
    let mut cross = keeping.map(|keeping| Cross::new(keeping, temporary));
    while let Some(entries) = pager.next()? {
        for given in entries {
            let (reason, own) = judge(&given, Landed::default(), false, &group, question);
            check_books(&given, reason, &own)?;
            if let Some(cross) = &mut cross {
                cross.entry(&given)?;
            }
            let line = given.json();
            sink.given(&line)?;
            match &mut joining {
                Some(joining) => joining.add(&given, &group, question, &line)?,
                None => {
                    let decided = decided(&line, reason, &own);
                    totals.count(&decided);
                    sink.decided(&decided)?;
                }
            }
        }
    }
    if let Some(mut cross) = cross {
        write_log(pager.source(), question, &mut cross, sink)?;
        let time = source::ask(pager.source(), &["TIME"])?;
        let seconds = time.items().first().and_then(|first| first.text().parse::<u64>().ok());
        // Times are whole seconds: it was no later than the end of that one.
        let end_ms = seconds.and_then(|seconds| (seconds + 1).checked_mul(1000));
        cross.finish(end_ms.ok_or_else(|| Trouble("a strange reply of TIME".into()))?)?;
    }
    if let Some(joining) = joining {
        joining.end(sink, &mut totals)?;
    }
    Ok(totals)
}

/// The rows of the ledger.
fn write_log(
    source: &mut dyn Source,
    question: &Question,
    cross: &mut Cross,
    sink: &mut dyn Sink,
) -> Result<(), Trouble> {
    let (mut start, count) = ("-".to_owned(), LOG_PAGE.to_string());
    loop {
        let words = ["XWORK", "LOG", &question.stream, &question.group, &start, "+", "COUNT", &count];
        let reply = source::ask(source, &words)?;
        for row in reply.items() {
            let [id, fields] = row.items() else { return Err(Trouble("a strange reply of XWORK LOG".into())) };
            let mut line = serde_json::Map::new();
            line.insert("row".into(), Value::from(id.text()));
            for pair in fields.items().chunks_exact(2) {
                let of = match &pair[1] {
                    crate::client::Reply::Int(n) => Value::from(*n),
                    other => other.bytes().map_or(Value::Null, value),
                };
                line.insert(pair[0].text(), of);
            }
            let of = |name: &str| fields.get(name);
            let text = |name: &str| of(name).map(crate::client::Reply::text).unwrap_or_default();
            let work = of("work").and_then(crate::client::Reply::bytes).unwrap_or_default();
            cross.row(&id.text(), &text("outcome"), &text("entry"), work)?;
            sink.row(&Value::Object(line))?;
            start = format!("({}", id.text());
        }
        if reply.items().len() < LOG_PAGE {
            return Ok(());
        }
    }
}

/// Entries and completions on their way to each other: both sorted by work id.
struct Joining<'a> {
    temporary: &'a Path,
    completions: Sorter,
    entries: Sorter,
}

/// What an entry would come to, by what is known of its work: nothing, that it is completed, that it is in conflict.
const LANDED: [Landed; 3] = [
    Landed { completed: false, conflict: false },
    Landed { completed: true, conflict: false },
    Landed { completed: true, conflict: true },
];

impl<'a> Joining<'a> {
    fn begin(
        completions: &mut dyn Iterator<Item = Result<Completion, Trouble>>,
        sink: &mut dyn Sink,
        temporary: &'a Path,
        totals: &mut Totals,
    ) -> Result<Joining<'a>, Trouble> {
        let mut sorter = Sorter::new(temporary);
        for completion in completions {
            let completion = completion?;
            sink.completion(&completion.json())?;
            totals.completions += 1;
            sorter.push(completion.work_id.as_bytes(), completion.digest.as_deref().unwrap_or("").as_bytes())?;
        }
        Ok(Joining { temporary, completions: sorter, entries: Sorter::new(temporary) })
    }

    fn add(&mut self, given: &Given, group: &Group, question: &Question, line: &Value) -> Result<(), Trouble> {
        // All that it may come to is known here; which of them it is comes out when the works meet. Each takes a number, for the text
        // of a reason mostly follows from it.
        let mut texts = Vec::new();
        let verdicts = LANDED.map(|landed| {
            let (reason, own) = judge(given, landed, true, group, question);
            if own != reason.code() {
                texts = vec![own];
            }
            reason as u8
        });
        let pending = &line["pending"];
        let short = json!([given.id.0, given.id.1, verdicts, pending, texts]).to_string();
        Ok(self.entries.push(&given.work, short.as_bytes())?)
    }

    fn end(self, sink: &mut dyn Sink, totals: &mut Totals) -> Result<(), Trouble> {
        let mut by_id = Sorter::new(self.temporary);
        let mut completions = self.completions.sorted()?;
        let mut completion = completions.next().transpose()?;
        let mut work: Option<(Vec<u8>, usize)> = None;
        for entry in self.entries.sorted()? {
            let (key, bytes) = entry?;
            if work.as_ref().is_none_or(|(known, _)| *known != key) {
                let mut landed = 0;
                while let Some((of, _)) = &completion
                    && *of <= key
                {
                    let is_ours = *of == key;
                    let found = take_work(&mut completions, &mut completion)?;
                    totals.repeated += u64::from(found.count > 1 && !found.conflict);
                    totals.without_entry += u64::from(!is_ours);
                    if is_ours {
                        landed = 1 + usize::from(found.conflict);
                    }
                }
                work = Some((key, landed));
            }
            let landed = work.as_ref().map_or(0, |(_, landed)| *landed);
            let line: Value =
                serde_json::from_slice(&bytes).map_err(|error| Trouble(format!("a temporary file: {error}")))?;
            let id = |at: usize| line[at].as_u64().unwrap_or(0).to_be_bytes();
            let reason = line[2][landed].as_u64().and_then(|number| REASONS.get(usize::try_from(number).ok()?));
            let reason = *reason.ok_or_else(|| Trouble("a temporary file has changed".into()))?;
            // Only an entry on hold has a text of its own, and it has one.
            let own = line[4][0].as_str().filter(|_| reason == Reason::OnHold).unwrap_or(reason.code());
            let work = work.as_ref().map_or(Value::Null, |(work, _)| value(work));
            let id_text = id_text((line[0].as_u64().unwrap_or(0), line[1].as_u64().unwrap_or(0)));
            let whole = json!({"id": id_text, "work": work, "pending": line[3]});
            by_id.push(&[id(0), id(1)].concat(), decided(&whole, reason, own).json.to_string().as_bytes())?;
        }
        while completion.is_some() {
            let found = take_work(&mut completions, &mut completion)?;
            totals.repeated += u64::from(found.count > 1 && !found.conflict);
            totals.without_entry += 1;
        }
        for line in by_id.sorted()? {
            let (_, bytes) = line?;
            let json: Value =
                serde_json::from_slice(&bytes).map_err(|error| Trouble(format!("a temporary file: {error}")))?;
            let name = json["decision"].as_str().unwrap_or_default();
            let decision = DECISIONS.into_iter().find(|one| one.name() == name);
            let decision = decision.ok_or_else(|| Trouble("a temporary file has changed".into()))?;
            let decided = Decided { decision, json };
            totals.count(&decided);
            sink.decided(&decided)?;
        }
        Ok(())
    }
}

/// All completions of one work id.
struct Work {
    count: u64,
    conflict: bool,
}

/// Takes the completions of the next work id, of which the first is in `next`.
fn take_work(
    completions: &mut dyn Iterator<Item = io::Result<(Vec<u8>, Vec<u8>)>>,
    next: &mut Option<(Vec<u8>, Vec<u8>)>,
) -> Result<Work, Trouble> {
    let mut found = Work { count: 0, conflict: false };
    let Some((work, first)) = next.take() else { return Ok(found) };
    let (mut digest, mut current) = (Vec::new(), Some(first));
    loop {
        if let Some(other) = current.take() {
            found.count += 1;
            // One without a digest contradicts nothing.
            found.conflict |= !other.is_empty() && !digest.is_empty() && other != digest;
            if digest.is_empty() {
                digest = other;
            }
        }
        match completions.next().transpose()? {
            Some((of, other)) if of == work => current = Some(other),
            other => {
                *next = other;
                return Ok(found);
            }
        }
    }
}

/// Writes a line of a book.
pub fn write_line(out: &mut dyn Write, line: &Value) -> Result<(), Trouble> {
    Ok(out.write_all(line.to_string().as_bytes()).and_then(|()| out.write_all(b"\n"))?)
}
