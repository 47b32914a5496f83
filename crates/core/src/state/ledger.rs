//! The work ledger of a group: what was said of the work of its entries, in order, and what follows from it: which work
//! ids are completed, which are in contradiction, which pending entries are being worked on and which are on hold.
//!
//! A row is *known* as long as it is among the newest `ledger_len` rows and not older than `ledger_age_ms`; what is known
//! no more is forgotten by record, a bit at a time, so it may still be here for a while. Everything that is asked takes the
//! time and the policy and passes it over.
//!
//! Invariants (`check`): rows are numbered without a gap and their IDs rise; the index has what it is for and nothing else; attempts, holds and failures are of entries that are pending; what works at a work id is found by it.
//!
//! An entry on hold is nobody's: in the pending list it stands as given back until [`HOLD_UNTIL_MS`], which no claim
//! reaches.

mod codec;
mod index;
mod row;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::id::StreamId;
use crate::state::pending::Pending;
use crate::state::policy::Policy;
use index::Index;
use rows::Rows;

pub use row::{OUTCOMES, Outcome, Row, WorkId};

/// Until when an entry on hold is out of reach: for ever, as far as times can be shown.
pub const HOLD_UNTIL_MS: u64 = i64::MAX as u64;

/// The reason of an entry on hold because two completions of its work contradict each other.
pub const CONFLICT: &[u8] = b"conflict";

/// Rows beyond the bound that may stay.
const SURPLUS: u64 = 256;

/// How long rows that are known no more may stay, as a part of their age, and at most (ms).
const LINGER_PART: u64 = 16;
const LINGER_MAX_MS: u64 = 60_000;

/// A delivery whose consumer said that it begins to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When (Unix ms).
    pub began_ms: u64,
    /// Number of the delivery.
    pub delivery: u64,
    /// Who.
    pub consumer: Arc<[u8]>,
    /// The work; `None`: the entry's own.
    pub work: Option<Arc<[u8]>>,
}

impl Attempt {
    /// The work of an attempt at an entry.
    pub fn work_id(&self, entry: StreamId) -> WorkId<'_> {
        self.work.as_deref().map_or(WorkId::Entry(entry), WorkId::parse)
    }

    /// Is the lease of the attempt over? It is if the entry was delivered again, or given back, since. `owner` is who has
    /// the entry.
    pub fn is_over(&self, pending: &Pending, owner: Option<&[u8]>, lease_ms: u64, now_ms: u64) -> bool {
        owner != Some(&*self.consumer)
            || pending.deliveries != self.delivery
            || (lease_ms != 0 && now_ms.saturating_sub(pending.delivered_ms) >= lease_ms)
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    rows: Rows,
    /// ID of the newest row there ever was.
    last_id: StreamId,
    /// Completions by their work, and what settles entries by these.
    index: Index,
    conflicts: Conflicts,
    /// Pending entries that are being worked on, or were when they were heard of last.
    attempts: BTreeMap<StreamId, Attempt>,
    /// The same by their work, where that is not the entry's own.
    works: BTreeMap<Arc<[u8]>, BTreeSet<StreamId>>,
    /// Pending entries on hold, with the reason.
    holds: BTreeMap<StreamId, Arc<[u8]>>,
    /// Pending entries at which attempts have failed for a reason, with the last that was given.
    failures: BTreeMap<StreamId, Arc<[u8]>>,
}

impl Ledger {
    /// Nothing was ever written to it.
    pub const NEW: Ledger = Ledger {
        rows: Rows::NEW,
        last_id: StreamId::MIN,
        index: Index::NEW,
        conflicts: BTreeMap::new(),
        attempts: BTreeMap::new(),
        works: BTreeMap::new(),
        holds: BTreeMap::new(),
        failures: BTreeMap::new(),
    };

    /// The ID of the next row.
    pub fn next_id(&self, now_ms: u64) -> StreamId {
        if now_ms > self.last_id.ms { StreamId::new(now_ms, 0) } else { self.last_id.next().unwrap_or(StreamId::MAX) }
    }

    /// Number of rows that are here.
    pub fn len(&self) -> u64 {
        self.rows.next() - self.rows.first()
    }

    /// No rows at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Was nothing ever written?
    pub fn is_new(&self) -> bool {
        self.rows.next() == 0
    }

    /// Number of the first row that is known.
    pub fn first_known(&self, policy: &Policy, now_ms: u64) -> u64 {
        let by_len = self.rows.next().saturating_sub(policy.ledger_len);
        let oldest_ms = now_ms.saturating_sub(policy.ledger_age_ms);
        if self.rows.get(self.rows.first()).is_none_or(|row| row.id.ms >= oldest_ms) {
            return by_len.max(self.rows.first());
        }
        by_len.max(self.rows.number_at(StreamId::new(oldest_ms, 0)))
    }

    fn is_known(&self, number: u64, row: &Row<'_>, policy: &Policy, now_ms: u64) -> bool {
        self.rows.next() - number <= policy.ledger_len && now_ms.saturating_sub(row.id.ms) <= policy.ledger_age_ms
    }

    /// Rows that are known, from an ID on, with their numbers.
    pub fn range(&self, from: StreamId, policy: &Policy, now_ms: u64) -> impl Iterator<Item = (u64, Row<'_>)> {
        let number = self.rows.number_at(from).max(self.first_known(policy, now_ms));
        self.rows.range(number)
    }

    /// The known rows that may be found by a hash, with their numbers.
    fn find(&self, hash: u64, policy: &Policy, now_ms: u64) -> impl Iterator<Item = (u64, Row<'_>)> {
        let first = self.rows.first();
        let full = move |low: u32| first + u64::from(low.wrapping_sub(first as u32));
        let rows = self.index.find(hash).into_iter().map(full);
        let rows = rows.filter_map(|number| Some((number, self.rows.get(number)?)));
        rows.filter(move |(number, row)| self.is_known(*number, row, policy, now_ms))
    }

    /// The completion of a work id.
    pub fn completion(&self, work: WorkId<'_>, policy: &Policy, now_ms: u64) -> Option<Row<'_>> {
        if self.index.len() == 0 {
            return None;
        }
        let mut found = self.find(work.hash(), policy, now_ms).map(|(_, row)| row);
        found.find(|row| row.outcome == Outcome::Completed && row.work == work)
    }

    /// The newest row that tells what became of an entry: completed, a duplicate, in conflict, dead, or released again.
    pub fn settlement(&self, entry: StreamId, policy: &Policy, now_ms: u64) -> Option<Row<'_>> {
        if self.index.len() == 0 {
            return None;
        }
        let found = self.find(WorkId::Entry(entry).hash(), policy, now_ms);
        let settles = found.filter(|(_, row)| row.entry == entry && row.outcome.settles());
        settles.max_by_key(|(number, _)| *number).map(|(_, row)| row)
    }

    /// The newest row that tells what became of an entry (see [`Ledger::settlement`]), and the completion of the entry's
    /// own work, in one look.
    pub fn heard_of(&self, entry: StreamId, policy: &Policy, now_ms: u64) -> (Option<Row<'_>>, Option<Row<'_>>) {
        if self.index.len() == 0 {
            return (None, None);
        }
        let own = WorkId::Entry(entry);
        let (mut settlement, mut completion): (Option<(u64, Row<'_>)>, _) = (None, None);
        for (number, row) in self.find(own.hash(), policy, now_ms) {
            if row.outcome == Outcome::Completed && row.work == own {
                completion = Some(row);
            }
            let is_newer = settlement.as_ref().is_none_or(|(newest, _)| number > *newest);
            if row.entry == entry && row.outcome.settles() && is_newer {
                settlement = Some((number, row));
            }
        }
        (settlement.map(|(_, row)| row), completion)
    }

    /// Do completions of a work id contradict each other?
    pub fn is_in_conflict(&self, work: WorkId<'_>, policy: &Policy, now_ms: u64) -> bool {
        if self.conflicts.is_empty() {
            return false;
        }
        let number = self.conflicts.get(&*work.text()).copied();
        number
            .is_some_and(|number| self.rows.get(number).is_some_and(|row| self.is_known(number, &row, policy, now_ms)))
    }

    /// The attempt at an entry.
    pub fn attempt(&self, entry: StreamId) -> Option<&Attempt> {
        self.attempts.get(&entry)
    }

    /// Other entries of the same work that someone has begun to work on.
    pub fn others_at(&self, work: WorkId<'_>, entry: StreamId) -> impl Iterator<Item = (StreamId, &Attempt)> {
        let text = work.text();
        let named = self.works.get(&*text).into_iter().flatten().copied();
        let own = match work {
            WorkId::Entry(id) => Some(id),
            WorkId::Named(_) => None,
        };
        let all = named.chain(own).filter(move |&id| id != entry);
        all.filter_map(|id| Some((id, self.attempts.get(&id)?)))
            .filter(move |(id, attempt)| Some(*id) != own || attempt.work.is_none())
    }

    /// Why an entry is on hold, if it is.
    #[inline]
    pub fn hold(&self, entry: StreamId) -> Option<&[u8]> {
        if self.holds.is_empty() { None } else { self.holds.get(&entry).map(|reason| &**reason) }
    }

    /// The last reason that was given for a failed attempt at an entry, since it was pending or was released.
    pub fn failure(&self, entry: StreamId) -> Option<&[u8]> {
        self.failures.get(&entry).map(|reason| &**reason)
    }

    /// How many entries are on hold.
    pub fn holds(&self) -> u64 {
        self.holds.len() as u64
    }

    /// How many attempts there are at pending entries.
    pub fn attempts(&self) -> u64 {
        self.attempts.len() as u64
    }

    /// Appends a row, unless it is here already, and does what follows from it. `is_pending` tells whether its entry is.
    pub fn append(&mut self, row: &Row<'_>, is_pending: impl Fn() -> bool) {
        if row.id <= self.last_id {
            return;
        }
        self.last_id = row.id;
        let number = self.rows.push(row);
        self.insert_in_index(number, row);
        note_conflict(&mut self.conflicts, number, row);
        match row.outcome {
            Outcome::Begun if is_pending() => {
                let work = match row.work {
                    WorkId::Entry(id) if id == row.entry => None,
                    work => Some(Arc::<[u8]>::from(&*work.text())),
                };
                self.put_attempt(
                    row.entry,
                    Attempt { began_ms: row.id.ms, delivery: row.delivery, consumer: row.consumer.into(), work },
                );
            }
            Outcome::Conflict if is_pending() => {
                self.end_attempt(row.entry);
                self.holds.insert(row.entry, CONFLICT.into());
            }
            Outcome::Held if is_pending() => {
                self.holds.insert(row.entry, row.reason.into());
            }
            Outcome::Released => {
                self.holds.remove(&row.entry);
                self.failures.remove(&row.entry);
                self.end_attempt(row.entry);
            }
            Outcome::Completed => self.end_attempt(row.entry),
            Outcome::Failed => {
                self.end_attempt(row.entry);
                if !row.reason.is_empty() && is_pending() {
                    self.failures.insert(row.entry, row.reason.into());
                }
            }
            _ => {}
        }
    }

    /// Has a row found by its work and its entry. What a row tells of an entry takes the place of what an older one told,
    /// unless that completes a work: something that is said for ever of one entry must not make it slow to find.
    fn insert_in_index(&mut self, number: u64, row: &Row<'_>) {
        if row.outcome.supersedes() {
            let Ledger { rows, index, .. } = self;
            let (hash, first) = (WorkId::Entry(row.entry).hash(), rows.first());
            for low in index.find(hash) {
                let old = first + u64::from(low.wrapping_sub(first as u32));
                if rows.get(old).is_some_and(|it| it.entry == row.entry && it.outcome.supersedes()) {
                    index.remove(hash, old);
                }
            }
        }
        row.hashes().for_each(|hash| self.index.insert(hash, number));
    }

    fn put_attempt(&mut self, entry: StreamId, attempt: Attempt) {
        self.end_attempt(entry);
        if let Some(work) = &attempt.work {
            self.works.entry(work.clone()).or_default().insert(entry);
        }
        self.attempts.insert(entry, attempt);
    }

    fn end_attempt(&mut self, entry: StreamId) {
        if self.attempts.is_empty() {
            return;
        }
        if let Some(work) = self.attempts.remove(&entry).and_then(|attempt| attempt.work)
            && let Some(entries) = self.works.get_mut(&work)
        {
            entries.remove(&entry);
            if entries.is_empty() {
                self.works.remove(&work);
            }
        }
    }

    /// An entry is pending no more.
    #[inline]
    pub fn entry_gone(&mut self, entry: StreamId) {
        self.end_attempt(entry);
        if !self.holds.is_empty() {
            self.holds.remove(&entry);
        }
        if !self.failures.is_empty() {
            self.failures.remove(&entry);
        }
    }

    /// Entries between two IDs, both included, may be pending no more. Looks at all of them that are begun, on hold or have
    /// failed.
    pub fn entries_gone(&mut self, from: StreamId, to: StreamId, is_pending: impl Fn(StreamId) -> bool) {
        let begun = self.attempts.range(from..=to).map(|(&id, _)| id);
        let held = self.holds.range(from..=to).map(|(&id, _)| id);
        let failed = self.failures.range(from..=to).map(|(&id, _)| id);
        let gone: Vec<StreamId> = begun.chain(held).chain(failed).filter(|&id| !is_pending(id)).collect();
        gone.into_iter().for_each(|id| self.entry_gone(id));
    }

    /// When rows are to be forgotten because of their age (Unix ms).
    pub fn next_due_ms(&self, policy: &Policy) -> Option<u64> {
        let first = self.rows.get(self.rows.first())?;
        let linger_ms = (policy.ledger_age_ms / LINGER_PART).min(LINGER_MAX_MS);
        let over_len = self.len() > policy.ledger_len.saturating_add(SURPLUS);
        let age_ms = if over_len { 0 } else { policy.ledger_age_ms.saturating_add(linger_ms + 1) };
        Some(first.id.ms.saturating_add(age_ms))
    }

    /// May [`Ledger::next_due_ms`] be earlier than before the last row was appended?
    pub fn is_due_anew(&self, policy: &Policy) -> bool {
        self.len() == 1 || self.len() == policy.ledger_len.saturating_add(SURPLUS + 1)
    }

    /// Up to which number rows are to be forgotten, at most so many.
    pub fn to_forget(&self, policy: &Policy, now_ms: u64, most: u64) -> Option<u64> {
        let first = self.rows.first();
        Some(self.first_known(policy, now_ms).min(first + most)).filter(|&before| before > first)
    }

    /// Forgets the rows before a number.
    pub fn forget(&mut self, before: u64) {
        let Ledger { rows, index, conflicts, .. } = self;
        for (number, row) in rows.range(rows.first()).take_while(|(number, _)| *number < before) {
            row.hashes().for_each(|hash| index.remove(hash, number));
            if row.outcome == Outcome::Conflict {
                let text = row.work.text();
                if conflicts.get(&*text) == Some(&number) {
                    conflicts.remove(&*text);
                }
            }
        }
        rows.forget(before);
    }

    /// Memory that it takes, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        let attempts = self
            .attempts
            .values()
            .map(|attempt| size_of::<(StreamId, Attempt)>() + attempt.work.as_ref().map_or(0, |work| 3 * work.len()));
        let holds = self
            .holds
            .values()
            .chain(self.failures.values())
            .map(|reason| size_of::<(StreamId, Arc<[u8]>)>() + reason.len());
        let conflicts = self.conflicts.keys().map(|work| size_of::<(Box<[u8]>, u64)>() + work.len());
        self.rows.memory_bytes()
            + self.index.memory_bytes()
            + attempts.sum::<usize>()
            + holds.sum::<usize>()
            + conflicts.sum::<usize>()
    }

    /// Frees a part, of each kind at most `most`, of what nobody uses any more; answers whether there is more.
    pub fn free_some(&mut self, most: usize) -> bool {
        for _ in 0..most {
            self.attempts.pop_first();
            self.works.pop_first();
            self.holds.pop_first();
            self.failures.pop_first();
            self.conflicts.pop_first();
        }
        let rows = self.rows.free_some(most);
        let index = self.index.free_some(most);
        let maps = self.attempts.len() + self.holds.len() + self.failures.len() + self.conflicts.len();
        rows || index || maps > 0
    }

    /// Every invariant. `pending` tells of an entry that is pending how it stands in the list.
    pub fn check(&self, pending: impl Fn(StreamId) -> Option<Pending>) -> Result<(), String> {
        self.rows.check()?;
        let (mut places, mut conflicts, mut newest) = (0, Conflicts::new(), BTreeMap::new());
        let all = || self.rows.range(self.rows.first());
        newest.extend(all().filter(|(_, row)| row.outcome.supersedes()).map(|(number, row)| (row.entry, number)));
        for (number, row) in all() {
            if row.id > self.last_id {
                return Err(format!("row {} is beyond the last ID of the ledger", row.id));
            }
            note_conflict(&mut conflicts, number, &row);
            if row.outcome.supersedes() && newest.get(&row.entry) != Some(&number) {
                continue;
            }
            places += row.hashes().count();
            if row.hashes().any(|hash| !self.index.find(hash).contains(&(number as u32))) {
                return Err(format!("row {} is not found by its work or its entry", row.id));
            }
        }
        if places != self.index.len() {
            return Err(format!("{places} places in the index, noted as {}", self.index.len()));
        }
        if conflicts != self.conflicts {
            return Err(format!(
                "{} works in conflict by the rows, noted are {}",
                conflicts.len(),
                self.conflicts.len()
            ));
        }
        self.check_pending(pending)?;
        let named: usize = self.attempts.values().filter(|attempt| attempt.work.is_some()).count();
        let found: usize = self.works.values().map(BTreeSet::len).sum();
        let by_work = self.attempts.iter().all(|(id, attempt)| {
            attempt.work.as_ref().is_none_or(|work| self.works.get(work).is_some_and(|of| of.contains(id)))
        });
        let is_lean = self.works.values().all(|entries| !entries.is_empty());
        if named == found && by_work && is_lean {
            Ok(())
        } else {
            Err("attempts are not found by their work".to_owned())
        }
    }

    /// Is what is begun and on hold so in the pending list as well?
    pub(in crate::state) fn check_pending(&self, pending: impl Fn(StreamId) -> Option<Pending>) -> Result<(), String> {
        if let Some(id) = self.attempts.keys().find(|id| pending(**id).is_none()) {
            return Err(format!("{id} is begun and not pending"));
        }
        if let Some(id) = self.failures.keys().find(|id| pending(**id).is_none()) {
            return Err(format!("{id} has failed and is not pending"));
        }
        let on_hold = |id: StreamId| pending(id).is_some_and(|it| it.is_deferred() && it.delivered_ms == HOLD_UNTIL_MS);
        if let Some(id) = self.holds.keys().find(|id| !on_hold(**id)) {
            return Err(format!("{id} is on hold and within reach"));
        }
        Ok(())
    }
}

/// Work ids in contradiction, with the number of the row that says so.
type Conflicts = BTreeMap<Box<[u8]>, u64>;

/// What a row says of contradictions.
fn note_conflict(conflicts: &mut Conflicts, number: u64, row: &Row<'_>) {
    match row.outcome {
        Outcome::Conflict => {
            conflicts.insert(row.work.text().into(), number);
        }
        Outcome::Released => {
            conflicts.remove(&*row.work.text());
        }
        _ => {}
    }
}
