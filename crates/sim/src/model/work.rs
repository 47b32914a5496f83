//! Work beside a naive model of it: maps and a list, every rule of XWORK spelled out, every lookup a walk.
//!
//! One stream, one group. It answers the commands that [`Book::next`] makes, and no others.

mod shown;
mod workload;

use std::collections::BTreeMap;

/// How an entry is pending.
#[derive(Clone, Debug, Default)]
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

#[derive(Clone, Debug)]
struct Attempt {
    consumer: String,
    n: u64,
    work: String,
}

#[derive(Clone, Debug)]
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

/// A stream `s` with one group `g`, its ledger, what was emitted to `out` and the length of the dead-letter stream `dlq`.
#[derive(Clone, Debug)]
pub struct Book {
    /// Unix ms.
    pub now_ms: u64,
    /// The group was made.
    there: bool,
    /// First half of the greatest ID that was ever added.
    last: u64,
    /// Entries by the first half of their IDs, with their jobs.
    entries: BTreeMap<u64, String>,
    position: u64,
    /// What DONE has added to `out`: ID and work.
    out: Vec<((u64, u64), String)>,
    pending: BTreeMap<u64, Pend>,
    rows: Vec<Row>,
    /// Works in conflict, with the place of the row that says so.
    conflicts: BTreeMap<String, usize>,
    released: u64,
    letters: u64,
    /// `LEDGERAGE` and `LEDGERLEN`.
    age_ms: u64,
    len: usize,
    last_row: (u64, u64),
    evidence: String,
    field: bool,
    idempotent: bool,
    lease_ms: u64,
    most: u64,
    dead_letter: bool,
}

impl Book {
    /// A server that begins with nothing.
    pub fn new(now_ms: u64) -> Book {
        Book {
            now_ms,
            there: false,
            last: 0,
            entries: BTreeMap::new(),
            position: 0,
            out: Vec::new(),
            pending: BTreeMap::new(),
            rows: Vec::new(),
            conflicts: BTreeMap::new(),
            released: 0,
            letters: 0,
            age_ms: 604_800_000,
            len: 1_000_000,
            last_row: (0, 0),
            evidence: "off".into(),
            field: false,
            idempotent: false,
            lease_ms: 0,
            most: 0,
            dead_letter: false,
        }
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn optional(text: &str) -> String {
    if text.is_empty() { "$-1\r\n".into() } else { bulk(text) }
}

fn own(entry: u64) -> String {
    format!("{entry}-0")
}

impl Book {
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
            self.conflicts.insert(work.into(), self.rows.len() - 1);
        }
        if outcome == "released" {
            self.conflicts.remove(work);
        }
    }

    /// The rows that are known still, oldest first.
    fn known(&self) -> &[Row] {
        let old = |row: &Row| self.now_ms.saturating_sub(row.at_ms) > self.age_ms;
        let by_age = self.rows.iter().take_while(|row| old(row)).count();
        &self.rows[by_age.max(self.rows.len().saturating_sub(self.len))..]
    }

    fn completed(&self, work: &str) -> Option<&Row> {
        self.known().iter().find(|row| row.outcome == "completed" && row.work == work)
    }

    fn is_in_conflict(&self, work: &str) -> bool {
        let first_known = self.rows.len() - self.known().len();
        self.conflicts.get(work).is_some_and(|place| *place >= first_known)
    }

    fn completion(&self, work: &str) -> Option<String> {
        let row = self.completed(work)?;
        Some(format!(
            "*16\r\n$2\r\nid\r\n{}$4\r\nwork\r\n{}$5\r\nentry\r\n{}$8\r\nconsumer\r\n{}$8\r\ndelivery\r\n:{}\r\n$6\r\ndigest\r\n{}$7\r\nreceipt\r\n$-1\r\n$4\r\ntime\r\n:{}\r\n",
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
        self.known().iter().rev().find(|row| row.entry == entry && settles.contains(&row.outcome))
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
        let attempt = pend.attempt.as_ref().expect("it is pending");
        pend.owner.as_ref() != Some(&attempt.consumer)
            || pend.n != attempt.n
            || (self.lease_ms != 0 && self.now_ms - pend.at_ms >= self.lease_ms)
    }

    fn hold(&mut self, entry: u64, work: &str, consumer: &str, n: u64, reason: &str) {
        self.note("held", entry, work, consumer, n, "", reason);
        let pend = self.pending.get_mut(&entry).expect("it is pending");
        (pend.owner, pend.order, pend.due_ms, pend.hold) = (None, None, None, Some(reason.into()));
    }

    fn release(&mut self, entry: u64) {
        self.released += 1;
        let order = Some(self.released);
        let pend = self.pending.get_mut(&entry).expect("it is pending");
        (pend.owner, pend.order, pend.due_ms, pend.hold) = (None, order, None, None);
    }

    fn stale(&mut self, entry: u64, work: &str, consumer: &str, delivery: Option<u64>, digest: &str) -> Option<String> {
        let pend = &self.pending[&entry];
        if pend.owner.as_deref() == Some(consumer) && delivery.is_none_or(|n| n == pend.n) {
            return None;
        }
        let reply = format!("*3\r\n+STALE\r\n{}:{}\r\n", optional(pend.owner.as_deref().unwrap_or("")), pend.n);
        self.note("stale", entry, work, consumer, delivery.unwrap_or(self.pending[&entry].n), digest, "");
        Some(reply)
    }

    fn begin(&mut self, consumer: &str, entry: u64, given: Option<&str>, delivery: Option<u64>) -> String {
        let work = self.work_of(entry, given);
        if let Some(first) = self.completion(&work) {
            return format!("*2\r\n+DONE\r\n{first}");
        }
        let Some(pend) = self.pending.get(&entry).cloned() else { return "*1\r\n+NOTPENDING\r\n".into() };
        if let Some(reason) = &pend.hold {
            return format!("*2\r\n+HELD\r\n{}", bulk(reason));
        }
        if let Some(reply) = self.stale(entry, &work, consumer, delivery, "") {
            return reply;
        }
        let again = pend.attempt.as_ref().is_some_and(|attempt| attempt.consumer == consumer && attempt.n == pend.n);
        if pend.attempt.is_some() && !again && !self.idempotent {
            self.hold(entry, &work, consumer, pend.n, "outcome-unknown");
            return "*2\r\n+HELD\r\n$15\r\noutcome-unknown\r\n".into();
        }
        let at_work = |(id, pend): (&u64, &Pend)| {
            let attempt = pend.attempt.as_ref()?;
            (*id != entry && attempt.work == work && !self.is_over(*id)).then(|| (attempt.work == own(*id), *id))
        };
        // Those that name it come before the entry whose own it is.
        if let Some((_, id)) = self.pending.iter().filter_map(at_work).min() {
            let consumer = &self.pending[&id].attempt.as_ref().expect("it is pending").consumer;
            return format!("*3\r\n+BUSY\r\n{}{}", bulk(consumer), bulk(&own(id)));
        }
        if !(again && pend.attempt.is_some_and(|attempt| attempt.work == work)) {
            self.note("begun", entry, &work, consumer, pend.n, "", "");
            let attempt = Attempt { consumer: consumer.into(), n: pend.n, work };
            self.pending.get_mut(&entry).expect("it is pending").attempt = Some(attempt);
        }
        format!("*2\r\n+PROCEED\r\n:{}\r\n", pend.n)
    }

    fn done(
        &mut self,
        consumer: &str,
        entry: u64,
        given: Option<&str>,
        delivery: Option<u64>,
        digest: &str,
        emits: Option<&str>,
    ) -> String {
        let work = self.work_of(entry, given);
        let n = delivery.or(self.pending.get(&entry).map(|pend| pend.n)).unwrap_or(0);
        if let Some(pend) = self.pending.get(&entry) {
            if let Some(reason) = &pend.hold {
                return format!("*2\r\n+HELD\r\n{}", bulk(reason));
            }
            if let Some(reply) = self.stale(entry, &work, consumer, delivery, digest) {
                return reply;
            }
        }
        if let Some(first) = self.completion(&work) {
            let before = self.completed(&work).map_or_else(String::new, |row| row.digest.clone());
            if !before.is_empty() && !digest.is_empty() && before != digest {
                self.note("conflict", entry, &work, consumer, n, digest, "");
                if let Some(pend) = self.pending.get_mut(&entry) {
                    (pend.owner, pend.order, pend.due_ms) = (None, None, None);
                    (pend.hold, pend.attempt) = (Some("conflict".into()), None);
                }
                return format!("*2\r\n+CONFLICT\r\n{first}");
            }
            self.note("duplicate", entry, &work, consumer, n, digest, "");
            self.pending.remove(&entry);
            return format!("*2\r\n+DUPLICATE\r\n{first}");
        }
        if !self.pending.contains_key(&entry) {
            return "*1\r\n+NOTPENDING\r\n".into();
        }
        self.note("completed", entry, &work, consumer, n, digest, "");
        self.pending.remove(&entry);
        let Some(emits) = emits else { return "*2\r\n+COMPLETED\r\n$-1\r\n".into() };
        let id = match self.out.last() {
            Some(&((ms, seq), _)) if ms >= self.now_ms => (ms, seq + 1),
            _ => (self.now_ms, 0),
        };
        self.out.push((id, emits.into()));
        format!("*2\r\n+COMPLETED\r\n{}", bulk(&format!("{}-{}", id.0, id.1)))
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

    fn fail(&mut self, consumer: &str, entry: u64, retry_ms: u64, delivery: Option<u64>) -> String {
        let Some(pend) = self.pending.get(&entry) else { return "*1\r\n+NOTPENDING\r\n".into() };
        if let Some(reason) = &pend.hold {
            return format!("*2\r\n+HELD\r\n{}", bulk(reason));
        }
        let (work, n) = (self.work_of(entry, None), delivery.unwrap_or(pend.n));
        if let Some(reply) = self.stale(entry, &work, consumer, delivery, "") {
            return reply;
        }
        self.note("failed", entry, &work, consumer, n, "", "");
        self.release(entry);
        let now_ms = self.now_ms;
        let pend = self.pending.get_mut(&entry).expect("it is pending");
        pend.attempt = None;
        if retry_ms > 0 {
            self.released -= 1;
            (pend.order, pend.due_ms) = (None, Some(now_ms + retry_ms));
        }
        format!("*2\r\n+FAILED\r\n:{retry_ms}\r\n")
    }

    fn show(&self, entry: u64) -> String {
        let job = &self.entries[&entry];
        format!("*2\r\n{}*2\r\n$3\r\njob\r\n{}", bulk(&own(entry)), bulk(job))
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
                    self.note("expired", id, &work, &pend.owner.expect("it is pending"), pend.n, "", "");
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
        if shown.is_empty() {
            "*-1\r\n".into()
        } else {
            format!("*1\r\n*2\r\n$1\r\ns\r\n*{}\r\n{}", shown.len(), shown.concat())
        }
    }

    fn deliver(&mut self, consumer: &str, entry: u64) {
        let now_ms = self.now_ms;
        let pend = self.pending.get_mut(&entry).expect("it is pending");
        (pend.owner, pend.at_ms, pend.order, pend.due_ms) = (Some(consumer.into()), now_ms, None, None);
        pend.n += 1;
    }

    fn claim(&mut self, consumer: &str, entry: u64, justid: bool) -> String {
        let Some(pend) = self.pending.get(&entry).filter(|pend| pend.hold.is_none()) else { return "*0\r\n".into() };
        if !self.entries.contains_key(&entry) {
            self.pending.remove(&entry);
            return "*0\r\n".into();
        }
        if pend.due_ms.is_some() {
            return "*0\r\n".into();
        }
        if !justid && self.most != 0 && pend.n >= self.most {
            self.send_away(entry);
            return "*0\r\n".into();
        }
        self.deliver(consumer, entry);
        if justid {
            self.pending.get_mut(&entry).expect("it is pending").n -= 1;
            return format!("*1\r\n{}", bulk(&own(entry)));
        }
        format!("*1\r\n{}", self.show(entry))
    }

    fn ack(&mut self, ids: &[u64]) -> String {
        let mut ids: Vec<u64> = ids.iter().copied().filter(|id| self.pending.contains_key(id)).collect();
        ids.dedup();
        let lacks = |id: &&u64| self.completion(&self.work_of(**id, None)).is_none();
        let lacking: Vec<u64> = ids.iter().filter(lacks).copied().collect();
        if self.evidence == "require"
            && let Some(first) = lacking.first()
        {
            return format!(
                "-NOEVIDENCE {} of {} entries have no completion, the first is {first}-0: acknowledge by XWORK DONE\r\n",
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
        format!(":{}\r\n", ids.len())
    }

    /// It is so late, and the server notices.
    pub fn pass(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let mut due: Vec<(u64, u64)> = self.pending.iter().filter_map(|(&id, pend)| Some((pend.due_ms?, id))).collect();
        due.sort_unstable();
        due.retain(|&(due_ms, _)| due_ms <= self.now_ms);
        for (_, id) in due {
            self.release(id);
        }
    }

    fn hold_by_hand(&mut self, entry: u64) -> String {
        let held = self.pending.get(&entry).is_some_and(|pend| pend.hold.as_deref() != Some("held"));
        if held {
            let (work, pend) = (self.work_of(entry, None), self.pending[&entry].clone());
            self.hold(entry, &work, &pend.owner.unwrap_or_default(), pend.n, "held");
        }
        format!(":{}\r\n", u8::from(held))
    }

    fn release_by_hand(&mut self, entry: u64) -> String {
        let (work, pend) = (self.work_of(entry, None), self.pending.get(&entry).cloned());
        let pend = pend.filter(|pend| pend.hold.is_some());
        let changes = pend.is_some() || self.is_in_conflict(&work);
        if changes {
            self.note("released", entry, &work, "", pend.as_ref().map_or(0, |pend| pend.n), "", "");
            if let Some(pend) = self.pending.get_mut(&entry) {
                pend.attempt = None;
            }
            if pend.is_some() {
                self.release(entry);
            }
        }
        format!(":{}\r\n", u8::from(changes))
    }

    fn set(&mut self, option: &str, value: &str) {
        let number = value.parse().unwrap_or(0);
        match option {
            "EVIDENCE" => self.evidence = value.into(),
            "WORKFIELD" => self.field = !value.is_empty(),
            "IDEMPOTENT" => self.idempotent = value == "yes",
            "LEASE" => self.lease_ms = number,
            "MAXDELIVERIES" => self.most = number,
            "DEADLETTER" => self.dead_letter = !value.is_empty(),
            "LEDGERAGE" => self.age_ms = number,
            "LEDGERLEN" => self.len = number as usize,
            "CONSUMERTTL" => {}
            _ => unreachable!("the workload has no {option}"),
        }
    }

    /// What the rows of the ledger say, known still or not.
    pub fn outcomes(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().map(|row| row.outcome)
    }

    /// Is there a group? Before there is one nothing but making it is answered.
    pub fn is_there(&self) -> bool {
        self.there
    }

    /// Carries out a command of [`Book::next`]; answers the bytes of the reply.
    pub fn command(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let words: Vec<&str> = words.iter().map(|word| std::str::from_utf8(word).unwrap_or("")).collect();
        let after = |name: &str| words.iter().position(|word| *word == name).map(|at| words[at + 1]);
        let entry = |at: usize| words[at].trim_end_matches("-0").parse::<u64>().unwrap_or(0);
        let number = |name: &str| after(name).and_then(|word| word.parse::<u64>().ok());
        let work = after("WORK").filter(|_| words[1] != "LOG");
        let reply = match (words[0], words[1]) {
            ("XGROUP", _) if self.there => "-BUSYGROUP Consumer Group name already exists\r\n".into(),
            ("XGROUP", _) => {
                self.there = true;
                "+OK\r\n".into()
            }
            ("XADD", _) if entry(2) <= self.last => {
                "-ERR The ID specified in XADD is equal or smaller than the target stream top item\r\n".into()
            }
            ("XADD", _) => {
                self.last = entry(2);
                self.entries.insert(self.last, words[4].into());
                bulk(words[2])
            }
            ("XREADGROUP", _) => self.read(words[3], number("COUNT").unwrap_or(0) as usize),
            ("XWORK", "BEGIN") => self.begin(words[4], entry(5), work, number("DELIVERY")),
            ("XWORK", "DONE") => {
                let digest = after("DIGEST").unwrap_or("");
                self.done(words[4], entry(5), work, number("DELIVERY"), digest, after("w"))
            }
            ("XWORK", "FAIL") => self.fail(words[4], entry(5), number("RETRYIN").unwrap_or(0), number("DELIVERY")),
            ("XWORK", "HOLD") => self.hold_by_hand(entry(6)),
            ("XWORK", "RELEASE") => self.release_by_hand(entry(6)),
            ("XWORK", "AUDIT") => self.audit(),
            ("XWORK", "LOG") => self.log(),
            ("XWORK", "GET") => self.completion(words[4]).unwrap_or("$-1\r\n".into()),
            ("XWORK", _) => {
                words[4..].chunks(2).for_each(|pair| self.set(pair[0], pair[1]));
                "+OK\r\n".into()
            }
            ("XCLAIM", _) => self.claim(words[3], entry(5), words.contains(&"JUSTID")),
            ("XACK", _) => self.ack(&[entry(3), entry(4)]),
            ("XDEL", _) => format!(":{}\r\n", u8::from(self.entries.remove(&entry(2)).is_some())),
            ("XPENDING", _) => self.pending_list(),
            ("XRANGE", _) => self.emitted(),
            ("XLEN", _) => format!(":{}\r\n", self.letters),
            (name, _) => unreachable!("the workload has no {name}"),
        };
        reply.into_bytes()
    }
}
