//! What must have become of every entry: which were acknowledged when they were added, which each group was given and how, and
//! which it has acknowledged. Entries are numbers of their stream, counted from 0.
//!
//! A fault is noted when it is seen; what can be said only at the end says [`Ledger::settle`]. Nothing here talks to a server.

use std::collections::VecDeque;
use std::sync::Mutex;

/// Groups of each stream.
pub const GROUPS: usize = 2;

/// Of so many acknowledged entries the order is known.
const RECENT_MAX: usize = 200_000;

/// Faults that are kept with their words; more are only counted.
const FAULTS_MAX: usize = 50;

/// How a group was given an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// As a new one.
    New,
    /// By a claim.
    Again,
}

/// Numbers, of which most below the greatest are there.
#[derive(Debug, Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    fn has(&self, number: u64) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds a number; whether it is a new one.
    fn add(&mut self, number: u64) -> bool {
        let place = (number / 64) as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        let (bit, before) = (1 << (number % 64), self.0[place]);
        self.0[place] |= bit;
        before & bit == 0
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[derive(Debug, Default)]
struct Group {
    /// Given as new.
    new: Numbers,
    given: Numbers,
    /// Acknowledged, with a reply.
    done: Numbers,
    /// Those of the last entries that were acknowledged, in order: so many had been before the first of them.
    recent: VecDeque<u64>,
    before_recent: u64,
    /// Acknowledged, without a reply: either way is fine.
    maybe: Numbers,
    again: u64,
}

#[derive(Debug, Default)]
struct Inner {
    sent: u64,
    added: Numbers,
    added_count: u64,
    groups: [Group; GROUPS],
    faults: Vec<String>,
    fault_count: usize,
}

/// One stream.
#[derive(Debug)]
pub struct Ledger {
    name: String,
    /// Of the newest so many entries none may go before a group has acknowledged it; `None`: of none.
    keeps: Option<u64>,
    inner: Mutex<Inner>,
}

/// What became of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Entries whose addition was acknowledged.
    pub added: u64,
    /// Numbers sent.
    pub sent: u64,
    /// Entries given to a group as new, all groups together.
    pub given: u64,
    /// Given by a claim, each time counted.
    pub again: u64,
    /// Acknowledged with a reply.
    pub done: u64,
    /// Trimmed before a group had acknowledged them, as the stream's bound says.
    pub trimmed: u64,
}

impl Ledger {
    /// Of a stream that keeps at least the newest `keeps` entries whatever becomes of them; `None`: all that a group has not
    /// acknowledged.
    pub fn new(name: String, keeps: Option<u64>) -> Self {
        Ledger { name, keeps, inner: Mutex::default() }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder panics")
    }

    /// The next `count` numbers are about to be sent; the first of them.
    pub fn send(&self, count: u64) -> u64 {
        let mut inner = self.inner();
        inner.sent += count;
        inner.sent - count
    }

    /// The addition of a number was acknowledged.
    pub fn added(&self, number: u64) {
        let mut inner = self.inner();
        if inner.added.add(number) {
            inner.added_count += 1;
        }
    }

    /// How many entries a group has acknowledged by now: for [`Ledger::given`], taken before the read is sent.
    pub fn done_by_now(&self, group: usize) -> u64 {
        let inner = self.inner();
        let group = &inner.groups[group];
        group.before_recent + group.recent.len() as u64
    }

    /// A group was given a number by a read that was sent when so many entries were `done`.
    pub fn given(&self, group: usize, number: u64, how: How, done: u64) {
        let mut inner = self.inner();
        let sent = inner.sent;
        let of = &mut inner.groups[group];
        let mut fault = None;
        if number >= sent {
            fault = Some("was never sent");
        }
        if how == How::New && !of.new.add(number) {
            fault = Some("was given as new twice");
        }
        // Acknowledged before the read was even sent.
        let recent = (done.saturating_sub(of.before_recent) as usize).min(of.recent.len());
        if of.done.has(number) && !of.recent.iter().skip(recent).any(|&late| late == number) {
            fault = Some("was given after it had been acknowledged");
        }
        of.given.add(number);
        of.again += u64::from(how == How::Again);
        if let Some(what) = fault {
            self.note(&mut inner, format!("group {group}: {number} {what}"));
        }
    }

    /// A group has acknowledged numbers, with a reply or without.
    pub fn acknowledged(&self, group: usize, numbers: &[u64], answered: bool) {
        let mut inner = self.inner();
        let of = &mut inner.groups[group];
        for &number in numbers {
            if !answered {
                of.maybe.add(number);
            } else if of.done.add(number) {
                of.recent.push_back(number);
                if of.recent.len() > RECENT_MAX {
                    of.recent.pop_front();
                    of.before_recent += 1;
                }
            }
        }
    }

    /// Something else that may not be.
    pub fn fault(&self, what: String) {
        self.note(&mut self.inner(), what);
    }

    fn note(&self, inner: &mut Inner, what: String) {
        inner.fault_count += 1;
        if inner.faults.len() < FAULTS_MAX {
            inner.faults.push(format!("{}: {what}", self.name));
        }
    }

    /// Entries that some group has yet to acknowledge.
    pub fn backlog(&self) -> u64 {
        let inner = self.inner();
        let least = inner.groups.iter().map(|group| group.before_recent + group.recent.len() as u64).min();
        inner.added_count.saturating_sub(least.unwrap_or(0))
    }

    /// Numbers so far: added, given (all groups), acknowledged (all groups).
    pub fn counts(&self) -> (u64, u64, u64) {
        let inner = self.inner();
        let done = inner.groups.iter().map(|group| group.before_recent + group.recent.len() as u64).sum();
        let given = inner.groups.iter().map(|group| group.new.count() + group.again).sum();
        (inner.added_count, given, done)
    }

    /// At the end, when every group is through: every acknowledged addition was given to each group and acknowledged by it, or
    /// was trimmed as the stream's bound says. Answers the totals and all faults.
    pub fn settle(&self) -> (Totals, Vec<String>, usize) {
        let mut inner = self.inner();
        let mut totals = Totals { added: inner.added_count, sent: inner.sent, ..Totals::default() };
        let mut missing = Vec::new();
        for (name, group) in inner.groups.iter().enumerate() {
            totals.given += group.new.count();
            totals.again += group.again;
            totals.done += group.done.count();
            for number in (0..inner.sent).filter(|&number| inner.added.has(number)) {
                let is_done = group.given.has(number) && (group.done.has(number) || group.maybe.has(number));
                let may_be_trimmed = self.keeps.is_some_and(|keeps| number + keeps < inner.sent);
                match (is_done, may_be_trimmed) {
                    (true, _) => {}
                    (false, true) => totals.trimmed += 1,
                    (false, false) if group.given.has(number) => {
                        missing.push(format!("group {name}: {number} was given and never acknowledged"));
                    }
                    (false, false) => missing.push(format!("group {name}: {number} was added and never given")),
                }
            }
        }
        missing.into_iter().for_each(|what| self.note(&mut inner, what));
        (totals, inner.faults.clone(), inner.fault_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(keeps: Option<u64>) -> Ledger {
        let ledger = Ledger::new("s".into(), keeps);
        assert_eq!(ledger.send(3), 0);
        (0..3).for_each(|number| ledger.added(number));
        ledger
    }

    fn faults(ledger: &Ledger) -> String {
        ledger.settle().1.join("\n")
    }

    #[test]
    fn what_went_its_way_is_no_fault() {
        let ledger = ledger(None);
        for group in 0..GROUPS {
            (0..3).for_each(|number| ledger.given(group, number, How::New, 0));
            ledger.given(group, 1, How::Again, 0);
            ledger.acknowledged(group, &[0, 1], true);
            ledger.acknowledged(group, &[2], false);
            // Its acknowledgement was lost with the server.
            ledger.given(group, 2, How::Again, ledger.done_by_now(group));
            ledger.acknowledged(group, &[2], true);
        }
        assert_eq!(ledger.backlog(), 0);
        let (totals, faults, _) = ledger.settle();
        assert_eq!(faults, [""; 0]);
        assert_eq!(totals, Totals { added: 3, sent: 3, given: 6, again: 4, done: 6, trimmed: 0 });
    }

    #[test]
    fn every_fault_is_found() {
        let ledger = ledger(None);
        ledger.given(0, 0, How::New, 0);
        ledger.given(0, 0, How::New, 0);
        ledger.given(0, 7, How::Again, 0);
        ledger.acknowledged(0, &[0], true);
        let text = faults(&ledger);
        for expected in [
            "group 0: 0 was given as new twice",
            "group 0: 7 was never sent",
            "group 0: 1 was added and never given",
            "group 1: 0 was added and never given",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("group 0: 0 was added"), "{text}");
        ledger.given(1, 2, How::New, 0);
        assert!(faults(&ledger).contains("group 1: 2 was given and never acknowledged"));
    }

    #[test]
    fn a_late_claim_is_told_from_one_after_the_acknowledgement() {
        let ledger = ledger(None);
        ledger.given(0, 0, How::New, 0);
        // Sent before the acknowledgement, answered after it.
        let before = ledger.done_by_now(0);
        ledger.acknowledged(0, &[0], true);
        ledger.given(0, 0, How::Again, before);
        assert!(!faults(&ledger).contains("had been acknowledged"));
        ledger.given(0, 0, How::Again, ledger.done_by_now(0));
        assert!(faults(&ledger).contains("0 was given after it had been acknowledged"));
    }

    #[test]
    fn only_what_the_bound_lets_go_may_be_missing() {
        let ledger = ledger(Some(2));
        let (totals, faults, _) = ledger.settle();
        assert_eq!(totals.trimmed, 2, "number 0 of both groups");
        assert_eq!(faults.len(), 4, "{faults:?}");
    }
}
