//! Random work beside a naive model of it: two maps and a list, every rule spelled out, every lookup a walk. Replies,
//! audits and logs are compared word for word.

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use crate::test_support::Random;

/// How an entry is pending.
#[derive(Clone, Default)]
struct Pend {
    owner: Option<String>,
    at_ms: u64,
    n: u64,
    /// Released, as number …
    order: Option<u64>,
    /// … or given back until then.
    due_ms: Option<u64>,
    hold: Option<String>,
    attempt: Option<Attempt>,
}

#[derive(Clone)]
struct Attempt {
    consumer: String,
    n: u64,
    work: String,
}

struct Row {
    id: String,
    outcome: &'static str,
    entry: u64,
    work: String,
    consumer: String,
    n: u64,
    digest: String,
    reason: String,
    at_ms: u64,
}

#[derive(Default)]
struct Model {
    now_ms: u64,
    /// Entries by the first half of their IDs, with their jobs.
    entries: BTreeMap<u64, String>,
    position: u64,
    pending: BTreeMap<u64, Pend>,
    rows: Vec<Row>,
    conflicts: BTreeSet<String>,
    released: u64,
    letters: u64,
    last_row: (u64, u64),
    evidence: &'static str,
    field: bool,
    idempotent: bool,
    lease_ms: u64,
    most: u64,
    dead_letter: bool,
}

fn bulk(text: &str) -> String {
    format!("${}|{text}|", text.len())
}

fn optional(text: &str) -> String {
    if text.is_empty() { "$-1|".into() } else { bulk(text) }
}

fn own(entry: u64) -> String {
    format!("{entry}-0")
}

impl Model {
    #[allow(clippy::too_many_arguments)]
    fn note(
        &mut self,
        outcome: &'static str,
        entry: u64,
        work: &str,
        consumer: &str,
        n: u64,
        digest: &str,
        reason: &str,
    ) {
        self.last_row =
            if self.now_ms > self.last_row.0 { (self.now_ms, 0) } else { (self.last_row.0, self.last_row.1 + 1) };
        self.rows.push(Row {
            id: format!("{}-{}", self.last_row.0, self.last_row.1),
            outcome,
            entry,
            work: work.into(),
            consumer: consumer.into(),
            n,
            digest: digest.into(),
            reason: reason.into(),
            at_ms: self.last_row.0,
        });
        if outcome == "conflict" {
            self.conflicts.insert(work.into());
        }
        if outcome == "released" {
            self.conflicts.remove(work);
        }
    }

    fn completion(&self, work: &str) -> Option<String> {
        let row = self.rows.iter().find(|row| row.outcome == "completed" && row.work == work)?;
        Some(format!(
            "*16|$2|id|{}$4|work|{}$5|entry|{}$8|consumer|{}$8|delivery|:{}|$6|digest|{}$7|receipt|$-1|$4|time|:{}|",
            bulk(&row.id),
            bulk(&row.work),
            bulk(&own(row.entry)),
            bulk(&row.consumer),
            row.n,
            optional(&row.digest),
            row.at_ms
        ))
    }

    fn settlement(&self, entry: u64) -> Option<&Row> {
        let settles = ["completed", "duplicate", "conflict", "dead", "released"];
        self.rows.iter().rev().find(|row| row.entry == entry && settles.contains(&row.outcome))
    }

    fn work_of(&self, entry: u64, given: Option<&str>) -> String {
        if let Some(given) = given {
            return given.into();
        }
        if let Some(attempt) = self.pending.get(&entry).and_then(|pend| pend.attempt.as_ref()) {
            return attempt.work.clone();
        }
        if let Some(row) = self.settlement(entry) {
            return row.work.clone();
        }
        match self.entries.get(&entry) {
            Some(job) if self.field => job.clone(),
            _ => own(entry),
        }
    }

    fn is_over(&self, entry: u64) -> bool {
        let pend = &self.pending[&entry];
        let attempt = pend.attempt.as_ref().unwrap();
        pend.owner.as_ref() != Some(&attempt.consumer)
            || pend.n != attempt.n
            || (self.lease_ms != 0 && self.now_ms - pend.at_ms >= self.lease_ms)
    }

    fn hold(&mut self, entry: u64, work: &str, consumer: &str, n: u64, reason: &str) {
        self.note("held", entry, work, consumer, n, "", reason);
        let pend = self.pending.get_mut(&entry).unwrap();
        (pend.owner, pend.order, pend.due_ms, pend.hold) = (None, None, None, Some(reason.into()));
    }

    fn release(&mut self, entry: u64) {
        self.released += 1;
        let order = Some(self.released);
        let pend = self.pending.get_mut(&entry).unwrap();
        (pend.owner, pend.order, pend.due_ms, pend.hold) = (None, order, None, None);
    }

    fn stale(&mut self, entry: u64, work: &str, consumer: &str, digest: &str) -> Option<String> {
        let pend = &self.pending[&entry];
        if pend.owner.as_deref() == Some(consumer) {
            return None;
        }
        let reply = format!("*3|+STALE|{}:{}|", optional(pend.owner.as_deref().unwrap_or("")), pend.n);
        self.note("stale", entry, work, consumer, self.pending[&entry].n, digest, "");
        Some(reply)
    }

    fn begin(&mut self, consumer: &str, entry: u64, given: Option<&str>) -> String {
        let work = self.work_of(entry, given);
        if let Some(first) = self.completion(&work) {
            return format!("*2|+DONE|{first}");
        }
        let Some(pend) = self.pending.get(&entry).cloned() else { return "*1|+NOTPENDING|".into() };
        if let Some(reason) = &pend.hold {
            return format!("*2|+HELD|{}", bulk(reason));
        }
        if let Some(reply) = self.stale(entry, &work, consumer, "") {
            return reply;
        }
        let again = pend.attempt.as_ref().is_some_and(|attempt| attempt.consumer == consumer && attempt.n == pend.n);
        if pend.attempt.is_some() && !again && !self.idempotent {
            self.hold(entry, &work, consumer, pend.n, "outcome-unknown");
            return "*2|+HELD|$15|outcome-unknown|".into();
        }
        let at_work = |(id, pend): (&u64, &Pend)| {
            let attempt = pend.attempt.as_ref()?;
            (*id != entry && attempt.work == work && !self.is_over(*id)).then(|| (attempt.work == own(*id), *id))
        };
        // Those that name it come before the entry whose own it is.
        if let Some((_, id)) = self.pending.iter().filter_map(at_work).min() {
            let consumer = &self.pending[&id].attempt.as_ref().unwrap().consumer;
            return format!("*3|+BUSY|{}{}", bulk(consumer), bulk(&own(id)));
        }
        if !(again && pend.attempt.is_some_and(|attempt| attempt.work == work)) {
            self.note("begun", entry, &work, consumer, pend.n, "", "");
            let attempt = Attempt { consumer: consumer.into(), n: pend.n, work };
            self.pending.get_mut(&entry).unwrap().attempt = Some(attempt);
        }
        format!("*2|+PROCEED|:{}|", pend.n)
    }

    fn done(&mut self, consumer: &str, entry: u64, given: Option<&str>, digest: &str) -> String {
        let work = self.work_of(entry, given);
        let n = self.pending.get(&entry).map_or(0, |pend| pend.n);
        if let Some(pend) = self.pending.get(&entry) {
            if let Some(reason) = &pend.hold {
                return format!("*2|+HELD|{}", bulk(reason));
            }
            if let Some(reply) = self.stale(entry, &work, consumer, digest) {
                return reply;
            }
        }
        if let Some(first) = self.completion(&work) {
            let before = self.rows.iter().find(|row| row.outcome == "completed" && row.work == work).unwrap();
            let before = before.digest.clone();
            if !before.is_empty() && !digest.is_empty() && before != digest {
                self.note("conflict", entry, &work, consumer, n, digest, "");
                if let Some(pend) = self.pending.get_mut(&entry) {
                    (pend.owner, pend.order, pend.due_ms) = (None, None, None);
                    (pend.hold, pend.attempt) = (Some("conflict".into()), None);
                }
                return format!("*2|+CONFLICT|{first}");
            }
            self.note("duplicate", entry, &work, consumer, n, digest, "");
            self.pending.remove(&entry);
            return format!("*2|+DUPLICATE|{first}");
        }
        if !self.pending.contains_key(&entry) {
            return "*1|+NOTPENDING|".into();
        }
        self.note("completed", entry, &work, consumer, n, digest, "");
        self.pending.remove(&entry);
        "*2|+COMPLETED|$-1|".into()
    }

    /// An entry that was delivered too often.
    fn send_away(&mut self, entry: u64) {
        let (pend, work) = (self.pending[&entry].clone(), self.work_of(entry, None));
        let owner = pend.owner.unwrap_or_default();
        if self.dead_letter && self.entries.contains_key(&entry) {
            self.note("dead", entry, &work, &owner, pend.n, "", "max-deliveries");
            self.letters += 1;
            self.pending.remove(&entry);
        } else {
            self.hold(entry, &work, &owner, pend.n, "max-deliveries");
        }
    }

    fn fail(&mut self, consumer: &str, entry: u64, retry_ms: u64) -> String {
        let Some(pend) = self.pending.get(&entry) else { return "*1|+NOTPENDING|".into() };
        if let Some(reason) = &pend.hold {
            return format!("*2|+HELD|{}", bulk(reason));
        }
        let (work, n) = (self.work_of(entry, None), pend.n);
        if let Some(reply) = self.stale(entry, &work, consumer, "") {
            return reply;
        }
        self.note("failed", entry, &work, consumer, n, "", "");
        self.release(entry);
        let now_ms = self.now_ms;
        let pend = self.pending.get_mut(&entry).unwrap();
        pend.attempt = None;
        if retry_ms > 0 {
            self.released -= 1;
            (pend.order, pend.due_ms) = (None, Some(now_ms + retry_ms));
        }
        format!("*2|+FAILED|:{retry_ms}|")
    }

    fn show(&self, entry: u64) -> String {
        let job = &self.entries[&entry];
        format!("*2|{}*2|$3|job|{}", bulk(&own(entry)), bulk(job))
    }

    fn read(&mut self, consumer: &str, count: usize) -> String {
        let mut shown = Vec::new();
        if self.lease_ms != 0 {
            let mut old: Vec<(bool, u64, u64)> = Vec::new();
            for (&id, pend) in &self.pending {
                if let Some(order) = pend.order {
                    old.push((false, order, id));
                } else if pend.owner.is_some() && self.now_ms - pend.at_ms >= self.lease_ms {
                    old.push((true, pend.at_ms, id));
                }
            }
            old.sort_unstable();
            let (mut claimed, mut spent) = (Vec::new(), Vec::new());
            for (owned, _, id) in old {
                if claimed.len() == count {
                    break;
                }
                if !self.entries.contains_key(&id) {
                    self.pending.remove(&id);
                } else if self.most != 0 && self.pending[&id].n >= self.most {
                    spent.push(id);
                } else {
                    claimed.push((owned, id));
                }
            }
            spent.into_iter().for_each(|id| self.send_away(id));
            for &(owned, id) in &claimed {
                let pend = self.pending[&id].clone();
                if owned {
                    let work = pend.attempt.as_ref().map_or(own(id), |attempt| attempt.work.clone());
                    self.note("expired", id, &work, &pend.owner.unwrap(), pend.n, "", "");
                }
            }
            for (_, id) in claimed {
                shown.push(self.show(id));
                self.deliver(consumer, id);
            }
        }
        let new: Vec<u64> = self.entries.range(self.position + 1..).map(|(&id, _)| id).collect();
        for id in new.into_iter().take(count - shown.len()) {
            shown.push(self.show(id));
            self.pending.entry(id).or_default();
            self.deliver(consumer, id);
            self.position = id;
        }
        if shown.is_empty() { "*-1|".into() } else { format!("*1|*2|$1|s|*{}|{}", shown.len(), shown.concat()) }
    }

    fn deliver(&mut self, consumer: &str, entry: u64) {
        let now_ms = self.now_ms;
        let pend = self.pending.get_mut(&entry).unwrap();
        (pend.owner, pend.at_ms, pend.order, pend.due_ms) = (Some(consumer.into()), now_ms, None, None);
        pend.n += 1;
    }

    fn claim(&mut self, consumer: &str, entry: u64, justid: bool) -> String {
        let Some(pend) = self.pending.get(&entry).filter(|pend| pend.hold.is_none()) else { return "*0|".into() };
        if !self.entries.contains_key(&entry) {
            self.pending.remove(&entry);
            return "*0|".into();
        }
        if pend.due_ms.is_some() {
            return "*0|".into();
        }
        if !justid && self.most != 0 && pend.n >= self.most {
            self.send_away(entry);
            return "*0|".into();
        }
        self.deliver(consumer, entry);
        if justid {
            self.pending.get_mut(&entry).unwrap().n -= 1;
            return format!("*1|{}", bulk(&own(entry)));
        }
        format!("*1|{}", self.show(entry))
    }

    fn ack(&mut self, ids: &[u64]) -> String {
        let ids: Vec<u64> = ids.iter().copied().filter(|id| self.pending.contains_key(id)).collect();
        let lacks = |id: &&u64| self.completion(&self.work_of(**id, None)).is_none();
        let lacking: Vec<u64> = ids.iter().filter(lacks).copied().collect();
        if self.evidence == "require"
            && let Some(first) = lacking.first()
        {
            return format!(
                "-NOEVIDENCE {} of {} entries have no completion, the first is {first}-0: acknowledge by XWORK DONE|",
                lacking.len(),
                ids.len()
            );
        }
        if self.evidence == "record" {
            for id in lacking {
                let (work, pend) = (self.work_of(id, None), self.pending[&id].clone());
                self.note("acked", id, &work, &pend.owner.unwrap_or_default(), pend.n, "", "");
            }
        }
        ids.iter().for_each(|id| drop(self.pending.remove(id)));
        format!(":{}|", ids.len())
    }

    fn audit(&self) -> String {
        let mut rows = Vec::new();
        let given: BTreeSet<u64> =
            self.entries.range(..=self.position).map(|(&id, _)| id).chain(self.pending.keys().copied()).collect();
        for id in given {
            let (pend, work) = (self.pending.get(&id), self.work_of(id, None));
            let completed = self.completion(&work).is_some();
            let payload = self.entries.contains_key(&id);
            let (decision, reason) = match pend {
                Some(Pend { hold: Some(reason), .. }) => ("HOLD", reason.as_str()),
                _ if self.conflicts.contains(&work) => ("HOLD", "conflict"),
                None if completed => ("ACCEPT", "complete"),
                None if self.settlement(id).is_some_and(|row| row.outcome == "dead") => ("HOLD", "dead-letter"),
                None if self.evidence == "off" => ("UNKNOWN", "no-ledger"),
                None => ("REPAIR", "acked-without-evidence"),
                Some(_) if completed => ("REPAIR", "ack-missing"),
                Some(pend) if pend.attempt.is_some() && !self.is_over(id) => ("OPEN", "in-progress"),
                Some(_) if !payload => ("HOLD", "payload-lost"),
                Some(pend) if pend.attempt.is_none() => ("RERUN", "not-started"),
                Some(_) if self.idempotent => ("RERUN", "retry-safe"),
                Some(_) => ("HOLD", "outcome-unknown"),
            };
            let owner = pend.and_then(|pend| pend.owner.clone()).unwrap_or_default();
            let idle = pend.filter(|pend| pend.owner.is_some()).map_or(-1, |p| (self.now_ms - p.at_ms) as i64);
            rows.push(format!(
                "*7|{}{}+{decision}|{}{}:{}|:{idle}|",
                bulk(&own(id)),
                bulk(&work),
                bulk(reason),
                optional(&owner),
                pend.map_or(0, |pend| pend.n),
            ));
        }
        format!("*{}|{}", rows.len(), rows.concat())
    }

    fn log(&self) -> String {
        let row = |row: &Row| {
            format!(
                "*2|{}*16|$7|outcome|{}$5|entry|{}$4|work|{}$8|consumer|{}$8|delivery|:{}|$6|digest|{}$7|receipt|$-1|\
                 $6|reason|{}",
                bulk(&row.id),
                bulk(row.outcome),
                bulk(&own(row.entry)),
                bulk(&row.work),
                optional(&row.consumer),
                row.n,
                optional(&row.digest),
                optional(&row.reason)
            )
        };
        format!("*{}|{}", self.rows.len(), self.rows.iter().map(row).collect::<String>())
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        let mut due: Vec<(u64, u64)> = self.pending.iter().filter_map(|(&id, pend)| Some((pend.due_ms?, id))).collect();
        due.sort_unstable();
        due.retain(|&(due_ms, _)| due_ms <= self.now_ms);
        for (_, id) in due {
            self.release(id);
        }
    }
}

/// One step: the command, and what the model says to it.
fn step(random: &mut Random, model: &mut Model) -> (String, String) {
    let consumer = ["a", "b", "c"][random.below(3) as usize];
    // Mostly of what there is.
    let last = model.entries.keys().next_back().copied().unwrap_or(1);
    let entry = last.saturating_sub(random.below(14)).max(1);
    let job = format!("w{}", random.below(40));
    let given = match random.below(6) {
        0 => Some(job.clone()),
        1 => Some(own(last.saturating_sub(random.below(5)).max(1))),
        _ => None,
    };
    let words = given.as_ref().map_or(String::new(), |work| format!(" WORK {work}"));
    match random.below(26) {
        0..=3 => {
            model.entries.insert(last + 1, job.clone());
            (format!("XADD s {}-0 job {job}", last + 1), bulk(&own(last + 1)))
        }
        4..=7 => {
            let count = 1 + random.below(4) as usize;
            (format!("XREADGROUP GROUP g {consumer} COUNT {count} STREAMS s >"), model.read(consumer, count))
        }
        8..=11 => {
            (format!("XWORK BEGIN s g {consumer} {entry}-0{words}"), model.begin(consumer, entry, given.as_deref()))
        }
        12..=15 => {
            let digest = ["", "x", "y"][random.below(3) as usize];
            let option = if digest.is_empty() { String::new() } else { format!(" DIGEST {digest}") };
            let line = format!("XWORK DONE s g {consumer} {entry}-0{words}{option}");
            (line, model.done(consumer, entry, given.as_deref(), digest))
        }
        16 => {
            let ms = [0, 60][random.below(2) as usize];
            let option = if ms == 0 { String::new() } else { format!(" RETRYIN {ms}") };
            (format!("XWORK FAIL s g {consumer} {entry}-0{option}"), model.fail(consumer, entry, ms))
        }
        17 | 18 => {
            let justid = random.one_in(2);
            let option = if justid { " JUSTID" } else { "" };
            (format!("XCLAIM s g {consumer} 0 {entry}-0{option}"), model.claim(consumer, entry, justid))
        }
        19 => (format!("XACK s g {entry}-0 {}-0", entry + 1), model.ack(&[entry, entry + 1])),
        20 => {
            let held = model.pending.get(&entry).is_some_and(|pend| pend.hold.as_deref() != Some("held"));
            if held {
                let (work, pend) = (model.work_of(entry, None), model.pending[&entry].clone());
                model.hold(entry, &work, &pend.owner.unwrap_or_default(), pend.n, "held");
            }
            (format!("XWORK HOLD s g IDS 1 {entry}-0"), format!(":{}|", u8::from(held)))
        }
        21 => {
            let (work, pend) = (model.work_of(entry, None), model.pending.get(&entry).cloned());
            let pend = pend.filter(|pend| pend.hold.is_some());
            let changes = pend.is_some() || model.conflicts.contains(&work);
            if changes {
                model.note("released", entry, &work, "", pend.as_ref().map_or(0, |pend| pend.n), "", "");
                if let Some(pend) = model.pending.get_mut(&entry) {
                    pend.attempt = None;
                }
                if pend.is_some() {
                    model.release(entry);
                }
            }
            (format!("XWORK RELEASE s g IDS 1 {entry}-0"), format!(":{}|", u8::from(changes)))
        }
        22 => {
            let there = model.entries.len() > 1 && entry != last && model.entries.remove(&entry).is_some();
            (if there { format!("XDEL s {entry}-0") } else { "XLEN none".into() }, format!(":{}|", u8::from(there)))
        }
        23 => ("XWORK AUDIT s g".into(), model.audit()),
        24 => (format!("XWORK GET s g {job}"), model.completion(&job).unwrap_or("$-1|".into())),
        _ => {
            let option = match random.below(10) {
                0..=2 => {
                    model.evidence = ["off", "record", "require"][random.below(3) as usize];
                    format!("EVIDENCE {}", model.evidence)
                }
                3 => {
                    model.field = !model.field;
                    format!("WORKFIELD {}", if model.field { "job" } else { "''" })
                }
                4 => {
                    model.idempotent = !model.idempotent;
                    format!("IDEMPOTENT {}", if model.idempotent { "yes" } else { "no" })
                }
                5..=7 => {
                    model.lease_ms = [0, 40, 150][random.below(3) as usize];
                    format!("LEASE {}", model.lease_ms)
                }
                8 => {
                    model.most = [0, 2, 3][random.below(3) as usize];
                    format!("MAXDELIVERIES {}", model.most)
                }
                _ => {
                    model.dead_letter = !model.dead_letter;
                    format!("DEADLETTER {}", if model.dead_letter { "dlq" } else { "''" })
                }
            };
            (format!("XWORK POLICY s g {option}"), "+OK|".into())
        }
    }
}

#[test]
fn the_engine_says_what_a_naive_model_says() {
    let mut outcomes = BTreeMap::new();
    for seed in 0..40 {
        let mut random = Random(seed + 1000);
        let mut model = Model { now_ms: START_MS, evidence: "off", ..Model::default() };
        let mut world = World::new();
        world.say("XGROUP CREATE s g 0 MKSTREAM");
        let mut lines = Vec::new();
        for at in 0..400 {
            let (line, reply) = step(&mut random, &mut model);
            lines.push(line);
            let story = || format!("seed {seed} step {at}\n{}", lines[lines.len().saturating_sub(25)..].join("\n"));
            assert_eq!(world.say(&lines[at]), reply, "{}", story());
            if random.one_in(4) {
                let ms = random.below(60);
                model.pass(ms);
                world.pass(ms);
            }
            if at % 20 == 0 {
                assert_eq!(world.say("XWORK AUDIT s g - +"), model.audit(), "{}", story());
                assert_eq!(world.say("XWORK LOG s g - +"), model.log(), "{}", story());
                assert_eq!(world.say("XLEN dlq"), format!(":{}|", model.letters));
                check::check(world.engine.state()).unwrap_or_else(|why| panic!("{why}: {}", story()));
            }
        }
        for row in &model.rows {
            *outcomes.entry(row.outcome).or_insert(0) += 1;
        }
    }
    assert!(outcomes.len() == 11 && outcomes.values().all(|&count| count > 20), "{outcomes:?}");
}
