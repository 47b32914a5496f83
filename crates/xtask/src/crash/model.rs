//! What an owner believes the server to hold: plain maps, advanced by one command at a time, in the most obvious way.
//!
//! Entries, groups, pending entries, counters, strings and deadlines are here, and nothing else; times are spans,
//! since only the server knows the exact ones. It must not share code, or cleverness, with the server under test.

use std::collections::{BTreeMap, BTreeSet};

/// An entry's id: milliseconds and sequence number.
pub type Id = (u64, u64);

/// The least id; never an entry's.
pub const ZERO: Id = (0, 0);

/// An id as it is written.
pub fn id_text(id: Id) -> String {
    format!("{}-{}", id.0, id.1)
}

/// Reads `ms-seq`.
pub fn parse_id(text: &str) -> Option<Id> {
    let (ms, seq) = text.split_once('-')?;
    Some((ms.parse().ok()?, seq.parse().ok()?))
}

/// A moment that is known to lie within two others, both included; Unix time in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Not before.
    pub from_ms: i64,
    /// Not after.
    pub to_ms: i64,
}

impl Span {
    /// An exactly known moment.
    pub fn exact(ms: i64) -> Self {
        Span { from_ms: ms, to_ms: ms }
    }

    /// The same span, so much later (earlier when negative).
    pub fn shifted(self, by_ms: i64) -> Self {
        Span { from_ms: self.from_ms + by_ms, to_ms: self.to_ms + by_ms }
    }

    /// Whether the two have a moment in common.
    pub fn meets(self, other: Span) -> bool {
        self.from_ms <= other.to_ms && other.from_ms <= self.to_ms
    }
}

/// One entry of a group's pending list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its owner.
    pub consumer: String,
    /// How often it was delivered.
    pub count: i64,
    /// When it was last.
    pub delivered: Span,
}

/// One consumer group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// last-delivered-id.
    pub position: Id,
    /// entries-read, where known.
    pub entries_read: Option<u64>,
    /// Delivered and not acknowledged.
    pub pending: BTreeMap<Id, Pending>,
    /// By name.
    pub consumers: BTreeSet<String>,
}

/// One stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Fields and values, flat, by id.
    pub entries: BTreeMap<Id, Vec<String>>,
    /// last-generated-id.
    pub last: Id,
    /// max-deleted-entry-id.
    pub max_deleted: Id,
    /// entries-added.
    pub added: u64,
    /// By name.
    pub groups: BTreeMap<String, Group>,
}

/// What becomes of references in pending lists when an entry goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// They stay, without their entry.
    Keep,
    /// They go with it.
    Delete,
    /// Trimming only: they go with it, and so do all below the point where the trimming ends, also those whose entry
    /// was deleted before. The same word to the server, which is more thorough than Redis here.
    DeleteBelow,
    /// The entry goes only when no group needs it any more.
    Acked,
}

/// Where trimming stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most so many entries remain.
    MaxLen(u64),
    /// Nothing below this id remains.
    MinId(Id),
}

impl Stream {
    /// Whether no group has it pending or still before it.
    pub fn is_free(&self, id: Id) -> bool {
        self.groups.values().all(|group| group.position >= id && !group.pending.contains_key(&id))
    }

    /// Takes an id out of every pending list.
    pub fn forget(&mut self, id: Id) {
        for group in self.groups.values_mut() {
            group.pending.remove(&id);
        }
    }

    /// Deletes one entry as XDEL does; whether there was one.
    pub fn delete(&mut self, id: Id) -> bool {
        let existed = self.entries.remove(&id).is_some();
        if existed {
            self.max_deleted = self.max_deleted.max(id);
        }
        existed
    }

    /// Trims from the front; how many entries went.
    pub fn trim(&mut self, limit: Limit, references: References) -> i64 {
        let (mut removed, mut end) = (0, None);
        for id in self.entries.keys().copied().collect::<Vec<Id>>() {
            let enough = match limit {
                Limit::MaxLen(length) => self.entries.len() as u64 <= length,
                Limit::MinId(least) => id >= least,
            };
            if enough {
                end = Some(id).filter(|_| removed > 0);
                break;
            }
            if references == References::Acked && !self.is_free(id) {
                continue;
            }
            self.entries.remove(&id);
            (removed, end) = (removed + 1, Some((id.0, id.1 + 1)));
            if references == References::Delete {
                self.forget(id);
            }
        }
        if let Limit::MinId(least) = limit {
            end = Some(least);
        }
        if let (References::DeleteBelow, Some(end)) = (references, end) {
            self.groups.values_mut().for_each(|group| group.pending.retain(|id, _| *id >= end));
        }
        removed
    }

    /// How many entries were ever added up to `id`, where the counters tell.
    fn rank(&self, id: Id) -> Option<u64> {
        let Some(&first) = self.entries.keys().next() else {
            return (self.added == 0 || id <= self.last).then_some(self.added);
        };
        if self.added == 0 {
            return Some(0);
        }
        if id > ZERO && id < self.max_deleted {
            return None;
        }
        if id == self.last {
            return Some(self.added);
        }
        if id > self.last || self.max_deleted >= first {
            return None;
        }
        let before_all = self.added.checked_sub(self.entries.len() as u64);
        match id.cmp(&first) {
            std::cmp::Ordering::Less => before_all,
            std::cmp::Ordering::Equal => before_all.map(|count| count + 1),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// entries-read after one more entry was delivered to a group that stood at `position`.
    pub fn read_one_more(&self, position: Id, entries_read: Option<u64>, id: Id) -> Option<u64> {
        let first = self.entries.keys().next().copied().unwrap_or(ZERO);
        let tombstone = self.max_deleted > ZERO && self.max_deleted >= first && self.max_deleted >= position;
        match entries_read {
            Some(count) if position >= first && !tombstone => Some(count + 1),
            _ => self.rank(id),
        }
    }
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// A string.
    Text(String),
    /// A stream.
    Stream(Stream),
}

/// A key's value and its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub data: Data,
    /// When it expires, if ever.
    pub deadline: Option<Span>,
}

/// Everything an owner has, by key.
pub type Keys = BTreeMap<String, Item>;

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(count: u64) -> Stream {
        let entries = (1..=count).map(|n| ((n, 0), vec!["f".to_owned(), n.to_string()])).collect();
        Stream { entries, last: (count, 0), added: count, ..Stream::default() }
    }

    #[test]
    fn trimming_walks_past_what_a_group_needs() {
        let mut it = stream(5);
        let pending = Pending { consumer: "c".into(), count: 1, delivered: Span::exact(1) };
        let group = Group { position: (4, 0), pending: [((1, 0), pending)].into(), ..Group::default() };
        it.groups.insert("g".into(), group);
        assert_eq!(it.trim(Limit::MaxLen(1), References::Acked), 3);
        assert_eq!(it.entries.keys().copied().collect::<Vec<_>>(), [(1, 0), (5, 0)]);
        assert_eq!(it.trim(Limit::MaxLen(1), References::Delete), 1);
        assert_eq!(it.groups["g"].pending.len(), 0);
        assert_eq!(it.max_deleted, ZERO, "trimming is no deletion");
    }

    #[test]
    fn trimming_may_take_the_references_of_entries_deleted_before() {
        let pending = |n| ((n, 0), Pending { consumer: "c".into(), count: 1, delivered: Span::exact(1) });
        let mut it = stream(5);
        let group = Group { position: (5, 0), pending: [1, 2, 3, 4].map(pending).into(), ..Group::default() };
        it.groups.insert("g".into(), group);
        it.delete((1, 0));
        it.delete((3, 0));
        let left = |it: &Stream| it.groups["g"].pending.keys().map(|id| id.0).collect::<Vec<u64>>();
        let mut other = it.clone();
        assert_eq!(it.trim(Limit::MaxLen(2), References::Delete), 1);
        assert_eq!(left(&it), [1, 3, 4]);
        assert_eq!(other.trim(Limit::MaxLen(2), References::DeleteBelow), 1);
        assert_eq!(left(&other), [4], "all before the first that stays");
        assert_eq!(it.trim(Limit::MinId((2, 0)), References::DeleteBelow), 0);
        assert_eq!(left(&it), [3, 4], "also when no entry goes");
    }

    #[test]
    fn the_counter_of_a_group_is_lost_by_a_deletion_ahead() {
        let mut it = stream(5);
        assert_eq!(it.read_one_more(ZERO, None, (1, 0)), Some(1));
        assert_eq!(it.read_one_more((1, 0), Some(1), (2, 0)), Some(2));
        it.delete((3, 0));
        assert_eq!(it.read_one_more((1, 0), Some(1), (2, 0)), None);
        assert_eq!(it.read_one_more((4, 0), None, (5, 0)), Some(5), "the last one is always known");
    }
}
