//! A stream as sorted maps, and the rules about counting and references, word for word as the specification has them.

use std::collections::BTreeMap;

use super::group::{Group, Held};
use super::retention::{Messages, Retention};
use super::value::Value;

/// An entry's ID: ms and sequence number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Id(pub u64, pub u64);

impl Id {
    /// The smallest.
    pub const MIN: Id = Id(0, 0);
    /// The greatest.
    pub const MAX: Id = Id(u64::MAX, u64::MAX);

    /// The next one; stays at the greatest.
    pub fn next(self) -> Id {
        match self {
            Id::MAX => Id::MAX,
            Id(ms, u64::MAX) => Id(ms + 1, 0),
            Id(ms, seq) => Id(ms, seq + 1),
        }
    }

    /// The one before; stays at the smallest.
    pub fn previous(self) -> Id {
        match self {
            Id::MIN => Id::MIN,
            Id(ms, 0) => Id(ms - 1, u64::MAX),
            Id(ms, seq) => Id(ms, seq - 1),
        }
    }

    /// As it is printed.
    pub fn text(self) -> String {
        format!("{}-{}", self.0, self.1)
    }

    /// As a bulk string.
    pub fn value(self) -> Value {
        Value::bulk(self.text())
    }
}

/// An entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Fields and values in turn.
    pub fields: Vec<Vec<u8>>,
    /// The node it lives in.
    pub node: u64,
    /// Unix ms before which groups do not get it; 0 = none.
    pub due: u64,
}

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Entries.
    pub entries: BTreeMap<Id, Entry>,
    /// Last generated ID.
    pub last: Id,
    /// Greatest deleted ID.
    pub max_deleted: Id,
    /// Entries ever added.
    pub added: i64,
    /// Groups.
    pub groups: BTreeMap<Vec<u8>, Group>,
    /// What XCFGSET has set about how long entries are kept.
    pub retention: Retention,
    /// Messages that are recognized when they come again.
    pub messages: Messages,
    /// How many entries each node ever took.
    nodes: BTreeMap<u64, usize>,
}

/// What becomes of the references of entries that go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// KEEPREF
    Keep,
    /// DELREF
    Delete,
    /// ACKED
    Acked,
}

/// MAXLEN or MINID.
#[derive(Clone, Copy, Debug)]
pub enum Threshold {
    /// MAXLEN
    Length(usize),
    /// MINID
    Id(Id),
}

/// All of a trimming.
#[derive(Clone, Copy, Debug)]
pub struct Trimming {
    /// How far.
    pub threshold: Threshold,
    /// LIMIT of `~`; `None` is exact trimming.
    pub limit: Option<usize>,
    /// References.
    pub mode: Mode,
}

impl Stream {
    /// Adds an entry.
    pub fn add(&mut self, id: Id, fields: Vec<Vec<u8>>, node_max: usize) {
        let newest = self.entries.last_key_value().map(|(_, entry)| entry.node);
        let open = newest.filter(|node| self.nodes[node] < node_max);
        let node = open.unwrap_or_else(|| self.nodes.last_key_value().map_or(0, |(node, _)| node + 1));
        *self.nodes.entry(node).or_insert(0) += 1;
        self.entries.insert(id, Entry { fields, node, due: 0 });
        self.last = id;
        self.added = self.added.saturating_add(1);
    }

    /// Deletes an entry; answers whether it was there.
    pub fn delete(&mut self, id: Id) -> bool {
        let there = self.remove(id);
        if there {
            self.max_deleted = self.max_deleted.max(id);
        }
        there
    }

    /// An entry goes, and no group waits for it any more; answers whether it was there.
    pub fn remove(&mut self, id: Id) -> bool {
        self.groups.values_mut().for_each(|group| {
            group.held.remove(&id);
        });
        self.entries.remove(&id).is_some()
    }

    /// RETAIN acked: what every group is done with goes. Answers whether anything went.
    pub fn retire(&mut self) -> bool {
        if !self.retention.acked || self.groups.is_empty() {
            return false;
        }
        let free: Vec<Id> = self.entries.keys().copied().filter(|id| self.is_free(*id)).collect();
        free.iter().for_each(|id| {
            self.remove(*id);
        });
        !free.is_empty()
    }

    /// An entry as replies show it.
    pub fn entry(&self, id: Id) -> Value {
        let fields = match self.entries.get(&id) {
            Some(entry) => Value::Array(entry.fields.iter().map(Value::bulk).collect()),
            None => Value::NullArray,
        };
        Value::Array(vec![id.value(), fields])
    }

    /// ID of the first entry, 0-0 when there is none.
    pub fn first(&self) -> Id {
        self.entries.keys().next().copied().unwrap_or(Id::MIN)
    }

    /// Nodes with entries.
    pub fn node_count(&self) -> usize {
        self.node_list().len()
    }

    /// The entries of each node, in order.
    fn node_list(&self) -> Vec<Vec<Id>> {
        let mut nodes: BTreeMap<u64, Vec<Id>> = BTreeMap::new();
        for (id, entry) in &self.entries {
            nodes.entry(entry.node).or_default().push(*id);
        }
        nodes.into_values().collect()
    }

    /// Is it in no pending list, held by no group, and behind every position?
    pub fn is_free(&self, id: Id) -> bool {
        let done = |group: &Group| !group.pel.contains_key(&id) && !group.held.contains_key(&id);
        self.groups.values().all(|group| done(group) && group.position >= id)
    }

    /// Takes these off every pending list; answers the groups that had any.
    pub fn release(&mut self, these: impl Fn(Id) -> bool) -> Vec<Vec<u8>> {
        let mut had = Vec::new();
        for (name, group) in &mut self.groups {
            let before = group.pel.len();
            group.pel.retain(|id, _| !these(*id));
            if group.pel.len() < before {
                had.push(name.clone());
            }
        }
        had
    }

    /// Trims; answers how many entries went, and the groups that lost pending ones.
    pub fn trim(&mut self, trimming: &Trimming) -> (usize, Vec<Vec<u8>>) {
        let Trimming { threshold, limit, mode } = *trimming;
        // ACKED without groups is nothing special.
        let mode = if mode == Mode::Acked && self.groups.is_empty() { Mode::Keep } else { mode };
        let done = |stream: &Stream, id: Id| match threshold {
            Threshold::Length(n) => stream.entries.len() <= n,
            Threshold::Id(bound) => id >= bound,
        };
        let all: Vec<Id> = match limit {
            None => self.entries.keys().copied().collect(),
            Some(limit) => self.whole_nodes(threshold, (mode != Mode::Acked).then_some(limit)),
        };
        let (mut removed, mut up_to) = (0, None);
        for id in all {
            if done(self, id) || limit.is_some_and(|limit| mode == Mode::Acked && removed == limit) {
                up_to = up_to.map(|_| id.previous());
                break;
            }
            if mode == Mode::Acked && !self.is_free(id) {
                continue;
            }
            self.remove(id);
            removed += 1;
            up_to = Some(id);
        }
        // DELREF: whatever is pending below the cut goes, also what was deleted before.
        let cut = match (threshold, limit) {
            (Threshold::Id(id), None) => (id > Id::MIN).then(|| id.previous()),
            _ => up_to,
        };
        let losers = match cut {
            Some(cut) if mode == Mode::Delete => self.release(|id| id <= cut),
            _ => Vec::new(),
        };
        (removed, losers)
    }

    /// The entries of the nodes that `~` may drop.
    fn whole_nodes(&self, threshold: Threshold, limit: Option<usize>) -> Vec<Id> {
        let mut going: Vec<Id> = Vec::new();
        for node in self.node_list() {
            let more = going.len() + node.len();
            let allowed = match threshold {
                Threshold::Length(n) => self.entries.len() - more >= n,
                Threshold::Id(bound) => node.iter().all(|id| *id < bound),
            };
            if !allowed || limit.is_some_and(|limit| more > limit) {
                break;
            }
            going.extend(node);
        }
        going
    }

    fn tombstone(&self, id: Id) -> bool {
        !self.entries.is_empty()
            && self.max_deleted >= self.first()
            && self.max_deleted >= id
            && self.max_deleted > Id::MIN
    }

    fn rank(&self, id: Id) -> Option<i64> {
        let length = self.entries.len() as i64;
        if self.added == 0 {
            return Some(0);
        }
        if length == 0 {
            return (id <= self.last).then_some(self.added);
        }
        if id > Id::MIN && id < self.max_deleted {
            return None;
        }
        if id == self.last {
            return Some(self.added);
        }
        if id > self.last || self.max_deleted >= self.first() {
            return None;
        }
        if id < self.first() {
            Some(self.added.wrapping_sub(length))
        } else if id == self.first() {
            Some(self.added.wrapping_sub(length).wrapping_add(1))
        } else {
            None
        }
    }

    /// How far a group is behind, as Redis's counters tell, and what it holds.
    pub fn lag_compat(&self, group: &Group) -> Option<i64> {
        self.lag_counted(group).map(|lag| lag.wrapping_add(group.held.len() as i64))
    }

    fn lag_counted(&self, group: &Group) -> Option<i64> {
        if self.added == 0 || self.entries.is_empty() {
            return Some(0);
        }
        if group.position < self.first() && self.max_deleted < self.first() {
            return Some(self.entries.len() as i64);
        }
        if let Some(read) = group.read
            && !self.tombstone(group.position)
        {
            return Some(self.added.wrapping_sub(read));
        }
        self.rank(group.position).map(|rank| self.added.wrapping_sub(rank))
    }

    /// How far a group is behind: the entries after its position, and those that it holds.
    pub fn lag_exact(&self, group: &Group) -> i64 {
        (self.entries.keys().filter(|id| **id > group.position).count() + group.held.len()) as i64
    }

    /// Entries read after one more is delivered.
    pub fn read_after(&self, position: Id, read: Option<i64>, id: Id) -> Option<i64> {
        match read {
            Some(read) if position >= self.first() && !self.tombstone(position) => Some(read.saturating_add(1)),
            _ => self.rank(id),
        }
    }

    /// The key of an entry by which a group orders: the value of its first field of that name.
    pub fn key_of(&self, group: &Group, id: Id) -> Option<Vec<u8>> {
        let (field, entry) = (group.key_field.as_ref()?, self.entries.get(&id)?);
        entry.fields.chunks(2).find(|pair| pair[0] == *field).map(|pair| pair[1].clone())
    }

    /// Must a further entry of this key wait? While one is pending, and while others wait before it.
    pub fn is_busy(&self, group: &Group, key: &[u8]) -> bool {
        let pending = group.pel.values().any(|pending| pending.key.as_deref() == Some(key));
        let waits = |(id, held): (&Id, &Held)| *held == Held::Behind && self.key_of(group, *id).as_deref() == Some(key);
        pending || group.held.iter().any(waits)
    }

    /// The first held entry behind a key that waits for nothing any more.
    pub fn ready(&self, group: &Group) -> Option<Id> {
        let mut behind = group.held.iter().filter(|(_, held)| **held == Held::Behind).map(|(id, _)| *id);
        behind.find(|id| match self.key_of(group, *id) {
            Some(key) => group.pel.values().all(|pending| pending.key.as_ref() != Some(&key)),
            None => true,
        })
    }
}
