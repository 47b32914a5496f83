//! The judgements: what the model or a log of acknowledged replies says, against what the server shows afterwards.
//!
//! Nothing here talks to a server, so that tests can show that each judgement is able to fail.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Data, Id, Keys, Stream, id_text};

/// What was compared, and what was not as it should be.
#[derive(Debug, Default, PartialEq)]
pub struct Findings {
    /// How many facts were compared.
    pub checks: usize,
    /// A sentence for each that is wrong.
    pub wrong: Vec<String>,
}

impl Findings {
    fn expect(&mut self, right: bool, sentence: impl FnOnce() -> String) {
        self.checks += 1;
        if !right {
            self.wrong.push(sentence());
        }
    }

    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: impl Fn() -> String, model: &T, server: &T) {
        self.expect(model == server, || format!("{}: model {model:?}, server {server:?}", what()));
    }
}

/// Compares an owner's keys with those of the server: everything equal, times within their spans.
pub fn compare_keys(model: &Keys, server: &Keys) -> Findings {
    let mut findings = Findings::default();
    for (name, item) in server {
        findings.expect(model.contains_key(name), || format!("{name}: model nothing, server {:?}", item.data));
    }
    for (name, wanted) in model {
        let Some(seen) = server.get(name) else {
            findings.expect(false, || format!("{name}: model {:?}, server nothing", wanted.data));
            continue;
        };
        let same_time = match (wanted.deadline, seen.deadline) {
            (None, None) => true,
            (Some(wanted), Some(seen)) => wanted.meets(seen),
            _ => false,
        };
        findings
            .expect(same_time, || format!("{name} deadline: model {:?}, server {:?}", wanted.deadline, seen.deadline));
        match (&wanted.data, &seen.data) {
            (Data::Stream(wanted), Data::Stream(seen)) => compare_streams(name, wanted, seen, &mut findings),
            (wanted, seen) => findings.equal(|| name.clone(), wanted, seen),
        }
    }
    findings
}

fn compare_streams(name: &str, wanted: &Stream, seen: &Stream, findings: &mut Findings) {
    findings.equal(|| format!("{name} last-generated-id"), &wanted.last, &seen.last);
    findings.equal(|| format!("{name} max-deleted-entry-id"), &wanted.max_deleted, &seen.max_deleted);
    findings.equal(|| format!("{name} entries-added"), &wanted.added, &seen.added);
    compare_maps(&format!("{name} entry"), &wanted.entries, &seen.entries, findings, |a, b| a == b);
    let names = |stream: &Stream| stream.groups.keys().cloned().collect::<Vec<String>>();
    findings.equal(|| format!("{name} groups"), &names(wanted), &names(seen));
    for (group_name, wanted) in &wanted.groups {
        let Some(seen) = seen.groups.get(group_name) else { continue };
        let name = format!("{name} {group_name}");
        findings.equal(|| format!("{name} last-delivered-id"), &wanted.position, &seen.position);
        findings.equal(|| format!("{name} entries-read"), &wanted.entries_read, &seen.entries_read);
        findings.equal(|| format!("{name} consumers"), &wanted.consumers, &seen.consumers);
        compare_maps(&format!("{name} pending"), &wanted.pending, &seen.pending, findings, |wanted, seen| {
            wanted.consumer == seen.consumer && wanted.count == seen.count && wanted.delivered.meets(seen.delivered)
        });
    }
}

fn compare_maps<V: std::fmt::Debug>(
    what: &str,
    wanted: &BTreeMap<Id, V>,
    seen: &BTreeMap<Id, V>,
    findings: &mut Findings,
    same: impl Fn(&V, &V) -> bool,
) {
    let ids: BTreeSet<Id> = wanted.keys().chain(seen.keys()).copied().collect();
    for id in ids {
        let (wanted, seen) = (wanted.get(&id), seen.get(&id));
        let right = matches!((wanted, seen), (Some(wanted), Some(seen)) if same(wanted, seen));
        findings.expect(right, || format!("{what} {}: model {wanted:?}, server {seen:?}", id_text(id)));
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
