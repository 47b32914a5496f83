//! The judgements: what the model or a log of acknowledged replies says, against what the server shows afterwards.
//!
//! Nothing here talks to a server, so that tests can show that each judgement is able to fail.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{Fact, Facts};
use super::id::{Id, Span, id_text};

/// What was compared, and what was not as it should be.
#[derive(Debug, Default, PartialEq)]
pub struct Findings {
    /// How many facts were compared.
    pub checks: usize,
    /// A sentence for each that is wrong.
    pub wrong: Vec<String>,
}

impl Findings {
    pub(super) fn expect(&mut self, right: bool, sentence: impl FnOnce() -> String) {
        self.checks += 1;
        if !right {
            self.wrong.push(sentence());
        }
    }
}

/// Compares what both models of an owner tell with what the server tells: texts equal, moments between theirs.
pub fn compare_facts(early: &Facts, late: &Facts, server: &Facts) -> Findings {
    let mut findings = Findings::default();
    for what in early.keys().chain(late.keys()).chain(server.keys()).collect::<BTreeSet<_>>() {
        let facts = (early.get(what), late.get(what), server.get(what));
        let right = match facts {
            (Some(Fact::Text(early)), Some(Fact::Text(late)), Some(Fact::Text(seen))) => early == seen && late == seen,
            (Some(Fact::Moment(early)), Some(Fact::Moment(late)), Some(Fact::Moment(seen))) => {
                early.with(*late).meets(*seen)
            }
            _ => false,
        };
        findings.expect(right, || match facts {
            (early, late, seen) if early == late => format!("{what}: model {}, server {}", told(early), told(seen)),
            (early, late, seen) => format!("{what}: model {} and {}, server {}", told(early), told(late), told(seen)),
        });
    }
    findings
}

fn told(fact: Option<&Fact>) -> String {
    match fact {
        None => "nothing".to_owned(),
        Some(Fact::Text(text)) => format!("{text:?}"),
        Some(Fact::Moment(Span { from_ms, to_ms })) => format!("{from_ms} to {to_ms}"),
    }
}

/// A stream that one connection fills with running numbers: what was acknowledged is there, in order; what is there
/// beyond it is a prefix of what was sent and not answered. `sent` is the first number that was not sent.
pub fn check_pipeline(acknowledged: &[(Id, u64)], sent: u64, seen: &[(Id, u64)]) -> Findings {
    let mut findings = Findings::default();
    for (index, wanted) in acknowledged.iter().enumerate() {
        findings.expect(seen.get(index) == Some(wanted), || {
            format!("place {index}: acknowledged {wanted:?}, server {:?}", seen.get(index))
        });
    }
    let beyond = seen.get(acknowledged.len()..).unwrap_or_default();
    for (number, (id, value)) in (acknowledged.len() as u64..).zip(beyond) {
        findings.expect(*value == number && number < sent, || {
            format!("{} holds {value}, where {number} of {sent} sent had to come", id_text(*id))
        });
    }
    for pair in seen.windows(2) {
        findings.expect(pair[0].0 < pair[1].0, || format!("{:?} stands before {:?}", pair[0], pair[1]));
    }
    findings
}

/// A producer's number and its own running number.
pub type Mark = (u64, u64);

/// How far an acknowledgement of an entry has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ack {
    /// None was sent.
    None,
    /// XACK was sent and not answered.
    Sent,
    /// XACK was answered.
    Done,
}

/// One delivery that a consumer received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// To whom.
    pub consumer: String,
    /// What came of it.
    pub ack: Ack,
}

/// What is known of one group of the shared stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupLog {
    /// Every delivery in a received reply.
    pub delivered: BTreeMap<Id, Delivery>,
    /// Consumers whose last read was not answered.
    pub reading: BTreeSet<String>,
}

/// What is known of the shared stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLog {
    /// Acknowledged entries.
    pub added: BTreeMap<Id, Mark>,
    /// Sent and not answered; at most one of each producer.
    pub adding: BTreeSet<Mark>,
    /// By name.
    pub groups: BTreeMap<String, GroupLog>,
}

/// What the server shows of one group of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupView {
    /// last-delivered-id
    pub position: Id,
    /// Owner and count by id.
    pub pending: BTreeMap<Id, (String, i64)>,
}

/// What the server shows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedView {
    /// In the order of XRANGE.
    pub entries: Vec<(Id, Mark)>,
    /// By name.
    pub groups: BTreeMap<String, GroupView>,
}

/// The shared stream: acknowledged entries are there exactly once; each is delivered to one consumer at most, pending
/// for it until it was acknowledged, and never passed over.
pub fn check_shared(log: &SharedLog, view: &SharedView) -> Findings {
    let mut findings = Findings::default();
    let entries: BTreeMap<Id, Mark> = view.entries.iter().copied().collect();
    let marks: BTreeSet<Mark> = entries.values().copied().collect();
    findings.expect(entries.len() == view.entries.len(), || "an id is there twice".into());
    findings.expect(marks.len() == entries.len(), || "an entry is there twice, under two ids".into());
    for (id, mark) in &log.added {
        findings.expect(entries.get(id) == Some(mark), || {
            format!("acknowledged {} {mark:?}, server {:?}", id_text(*id), entries.get(id))
        });
    }
    for (id, mark) in entries.iter().filter(|(id, _)| !log.added.contains_key(id)) {
        findings.expect(log.adding.contains(mark), || format!("{} {mark:?} was never sent", id_text(*id)));
    }
    for (name, group) in &log.groups {
        let Some(seen) = view.groups.get(name) else {
            findings.expect(false, || format!("group {name} is lost"));
            continue;
        };
        check_group(name, group, seen, &entries, &mut findings);
    }
    findings
}

fn check_group(name: &str, log: &GroupLog, seen: &GroupView, entries: &BTreeMap<Id, Mark>, findings: &mut Findings) {
    for (id, delivery) in &log.delivered {
        let id_name = || format!("{name} {}", id_text(*id));
        findings.expect(*id <= seen.position, || {
            format!("{}: delivered to {}, and the group stands before it", id_name(), delivery.consumer)
        });
        let pending = seen.pending.get(id);
        let rightly = pending.is_some_and(|(owner, count)| *owner == delivery.consumer && *count == 1);
        let right = match delivery.ack {
            Ack::None => rightly,
            Ack::Sent => rightly || pending.is_none(),
            Ack::Done => pending.is_none(),
        };
        findings.expect(right, || format!("{}: {delivery:?}, server pending {pending:?}", id_name()));
    }
    for (id, (owner, count)) in seen.pending.iter().filter(|(id, _)| !log.delivered.contains_key(id)) {
        findings.expect(log.reading.contains(owner) && *count == 1 && *id <= seen.position, || {
            format!("{name} {}: pending for {owner} ({count}), who did not read it", id_text(*id))
        });
    }
    for id in entries.keys().filter(|id| **id <= seen.position) {
        findings.expect(log.delivered.contains_key(id) || seen.pending.contains_key(id), || {
            format!("{name} {}: the group stands behind it, and nobody ever got it", id_text(*id))
        });
    }
}
