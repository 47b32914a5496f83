//! The pending entries list of a consumer group: what was delivered, to whom, when, how often, and not yet acknowledged.
//!
//! A tree of fixed height, in ID order: the root lists nodes, a node lists chunks, a chunk holds up to
//! `PENDING_PER_CHUNK` entries as packed columns. Root and nodes know of each part its first ID, length and smallest
//! delivery time, a node also how many entries each consumer has in it, so that a question about idle entries or about
//! one consumer passes over whatever cannot answer it.
//!
//! ```text
//! root   [ first, len, min_time, -> node ] ...
//! node   [ first, len, min_time, owner bits, -> chunk ] ... (up to 128)   [ consumer, count ] ...
//! chunk  ms | seq | delivered | consumer | deliveries                     (up to 128 entries)
//! ```
//!
//! A clone is a frozen copy for the price of the root; what it shares is copied piece by piece when it changes.
//! Nothing here walks the whole list, except [`Pel::encode`], [`Pel::check`] and comparing.
//!
//! What a consumer had that is gone stays in the tree for a while, and is seen nowhere: `passing.rs`.
//!
//! Invariants: IDs ascend strictly; no chunk and no node is empty; every total equals what it sums up
//! ([`Pel::check`] says all of them). It must never depend on how the list came about: equal contents answer alike and
//! encode alike.

mod chunk;
mod column;
mod encode;
mod node;
mod passing;
mod query;
#[cfg(test)]
mod tests;

use crate::id::StreamId;
use chunk::{Chunk, Shared};
use node::{NodeRef, Shape, sort_key};
use passing::{Fate, Passing, fate_of, gone_in, see};

pub use query::Range;

/// A consumer, as its group numbers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConsumerRef(pub u32);

impl ConsumerRef {
    /// The owner of an entry that was given back: no consumer.
    pub const NOBODY: ConsumerRef = ConsumerRef(u32::MAX);
}

/// Delivery times up to this one (2004 as a Unix time) are no times in an entry that nobody owns: they are its place in
/// the order of release. So whatever asks for the oldest entries meets released ones first, in that order.
pub const RELEASE_MAX: u64 = 1 << 40;

/// An entry that was delivered and not yet acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The entry of the stream, which may be gone.
    pub id: StreamId,
    /// Who has it.
    pub consumer: ConsumerRef,
    /// Unix time in milliseconds of its last delivery. If nobody has the entry: its place in the order of release (up to
    /// [`RELEASE_MAX`]), or the time at which it is released.
    pub delivered_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
}

impl Pending {
    /// Was it given back, and may anyone take it?
    #[inline]
    pub fn is_released(&self) -> bool {
        self.consumer == ConsumerRef::NOBODY && self.delivered_ms <= RELEASE_MAX
    }

    /// Was it given back with a delay that is not over?
    #[inline]
    pub fn is_deferred(&self) -> bool {
        self.consumer == ConsumerRef::NOBODY && self.delivered_ms > RELEASE_MAX
    }

    /// May it change hands, for someone who takes what has been idle for so long? Released entries always, deferred ones
    /// never.
    #[inline]
    pub fn is_idle(&self, now_ms: u64, min_idle_ms: u64) -> bool {
        if self.consumer == ConsumerRef::NOBODY {
            return self.delivered_ms <= RELEASE_MAX;
        }
        now_ms.saturating_sub(self.delivered_ms) >= min_idle_ms
    }
}

/// The bound for [`Pel::oldest_first`] and its kin that finds everything [`Pending::is_idle`]; it may find more.
pub fn idle_bound(now_ms: u64, min_idle_ms: u64) -> u64 {
    now_ms.saturating_sub(min_idle_ms).max(RELEASE_MAX)
}

/// The pending entries list of one group. See the module.
#[derive(Clone, Default)]
pub struct Pel {
    nodes: Vec<NodeRef>,
    /// Entries in the tree.
    len: u64,
    /// Consumers that are gone and have entries in the tree, sorted.
    passing: Vec<Passing>,
    /// How many of the entries in the tree are gone with them.
    gone: u64,
    /// Before the node that holds this ID nothing is left to do for them.
    reaped: StreamId,
}

/// A part of a list that was taken out of it, to be dropped when there is time.
pub struct Detached(NodeRef);

impl Detached {
    /// How many entries it holds.
    pub fn len(&self) -> u64 {
        u64::from(self.0.len)
    }

    /// Never true: there are no empty parts.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }
}

impl Pel {
    /// Number of entries.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len - self.gone
    }

    /// No entries?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory that the list takes, in bytes, without the allocator's share. Looks at every chunk.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.iter().map(NodeRef::memory_bytes).sum()
    }

    /// The smallest ID.
    pub fn first(&self) -> Option<StreamId> {
        if self.is_passing() {
            return self.range(StreamId::MIN).next().map(|entry| entry.id);
        }
        self.nodes.first().map(|node| node.first)
    }

    /// The greatest ID.
    pub fn last(&self) -> Option<StreamId> {
        if self.is_passing() {
            let nodes = self.nodes.iter().rev().filter(|node| node.len > gone_in(&self.passing, node));
            let mut chunks = nodes.flat_map(|node| node.node.chunks.iter().rev());
            return chunks.find_map(|chunk| {
                let seen = |index| see(&self.passing, chunk.chunk.entry(index)).map(|entry| entry.id);
                (0..chunk.chunk.len()).rev().find_map(seen)
            });
        }
        self.last_in_tree()
    }

    /// The greatest ID in the tree, be it of an entry that is gone.
    fn last_in_tree(&self) -> Option<StreamId> {
        self.nodes.last().and_then(NodeRef::last)
    }

    /// The smallest delivery time, in Unix milliseconds. Looks at the root alone.
    pub fn oldest_time(&self) -> Option<u64> {
        if self.is_passing() {
            return self.oldest_first(u64::MAX, 1).first().map(|entry| entry.delivered_ms);
        }
        self.nodes.iter().map(|node| node.min_time).min()
    }

    /// The entry of this ID.
    pub fn get(&self, id: StreamId) -> Option<Pending> {
        let (node, chunk, index) = self.locate(id)?;
        see(&self.passing, self.nodes[node].node.chunks[chunk].chunk.entry(index))
    }

    /// Is this ID pending?
    pub fn contains(&self, id: StreamId) -> bool {
        if self.is_passing() { self.get(id).is_some() } else { self.locate(id).is_some() }
    }

    /// Inserts the entry, or replaces the one of the same ID, which it returns.
    pub fn put(&mut self, entry: Pending) -> Option<Pending> {
        if self.last_in_tree().is_none_or(|last| last < entry.id) {
            let shared =
                Shared { consumer: entry.consumer, delivered_ms: entry.delivered_ms, deliveries: entry.deliveries };
            self.append(&[entry.id], shared);
            return None;
        }
        let mut at = self.node_of(entry.id);
        if self.nodes[at].is_full_at(entry.id) {
            let right = self.nodes[at].split_off();
            if right.first <= entry.id {
                at += 1;
                self.nodes.insert(at, right);
            } else {
                self.nodes.insert(at + 1, right);
            }
        }
        let replaced = self.nodes[at].put(&entry);
        self.len += u64::from(replaced.is_none());
        let seen = see(&self.passing, replaced?);
        self.gone -= u64::from(seen.is_none());
        seen
    }

    /// Puts in what one delivery delivered: `ids` in ascending order, all with the same owner, time and number of
    /// deliveries. Entries that were pending already are replaced; `replaced` hears of each. Far cheaper than one by one
    /// for the usual case that all IDs are above [`Pel::last`].
    pub fn put_all(
        &mut self,
        ids: &[StreamId],
        consumer: ConsumerRef,
        delivered_ms: u64,
        deliveries: u64,
        mut replaced: impl FnMut(Pending),
    ) {
        debug_assert!(ids.is_sorted_by(|a, b| a < b));
        let new = match self.last_in_tree() {
            Some(last) => ids.partition_point(|id| *id <= last),
            None => 0,
        };
        for id in &ids[..new] {
            if let Some(old) = self.put(Pending { id: *id, consumer, delivered_ms, deliveries }) {
                replaced(old);
            }
        }
        self.append(&ids[new..], Shared { consumer, delivered_ms, deliveries });
    }

    /// Takes out the entry of this ID.
    pub fn remove(&mut self, id: StreamId) -> Option<Pending> {
        let (at, chunk, index) = self.locate(id)?;
        if self.is_passing() {
            see(&self.passing, self.nodes[at].node.chunks[chunk].chunk.entry(index))?;
        }
        let (removed, shape) = self.nodes[at].remove(chunk, index);
        self.len -= 1;
        match shape {
            Shape::Same => {}
            Shape::Smaller => self.join_around(at),
            Shape::Empty => {
                self.nodes.remove(at);
                self.give_memory_back();
            }
        }
        see(&self.passing, removed)
    }

    /// Takes out everything between two IDs, both included. `gone` hears how many of each consumer that were; the entries
    /// come back as a list, whose nodes are those that lay wholly inside. Costs the nodes taken out, and the entries of
    /// the two at the edges.
    pub fn remove_range(&mut self, from: StreamId, to: StreamId, mut gone: impl FnMut(ConsumerRef, u32)) -> Pel {
        let mut removed = Pel { passing: self.passing.clone(), ..Pel::default() };
        if from > to {
            return removed;
        }
        let first = self.node_of(from);
        let end = self.nodes.partition_point(|node| node.first <= to);
        if first >= end {
            return removed;
        }
        let mut left = Vec::new();
        for node in self.nodes.drain(first..end) {
            let (kept, taken) = node.cut(from, to);
            left.extend(kept);
            removed.nodes.extend(taken);
        }
        removed.len = removed.nodes.iter().map(|node| u64::from(node.len)).sum();
        self.len -= removed.len;
        removed.gone = removed.nodes.iter().map(|node| u64::from(gone_in(&self.passing, node))).sum();
        self.gone -= removed.gone;
        self.nodes.splice(first..first, left);
        for node in &removed.nodes {
            for (consumer, count) in node.node.owners() {
                match fate_of(&self.passing, consumer) {
                    None => gone(consumer, count),
                    Some(Fate::Released(_)) => gone(ConsumerRef::NOBODY, count),
                    Some(Fate::Gone) => {}
                }
            }
        }
        if first < self.nodes.len() {
            self.join_around(first);
        }
        self.give_memory_back();
        removed
    }

    /// Takes a part out, from the end, so that a list of millions can be freed in slices: dropping the part is short
    /// work. `None` when the list is empty.
    pub fn pop_node(&mut self) -> Option<Detached> {
        let node = self.nodes.pop()?;
        self.len -= u64::from(node.len);
        self.gone -= u64::from(gone_in(&self.passing, &node));
        Some(Detached(node))
    }

    /// Every invariant. Walks everything: for tests and for checking files.
    pub fn check(&self) -> Result<(), String> {
        for node in &self.nodes {
            node.check()?;
        }
        for pair in self.nodes.windows(2) {
            if pair[0].last() >= Some(pair[1].first) {
                return Err(format!("the node that begins with {} is out of order", pair[1].first));
            }
        }
        let total: u64 = self.nodes.iter().map(|node| u64::from(node.len)).sum();
        if total != self.len {
            return Err(format!("{total} entries, noted as {}", self.len));
        }
        let gone: u64 = self.nodes.iter().map(|node| u64::from(gone_in(&self.passing, node))).sum();
        if gone != self.gone {
            return Err(format!("{gone} entries of consumers that are gone, noted as {}", self.gone));
        }
        if !self.passing.is_sorted_by(|a, b| a.consumer < b.consumer) {
            return Err("consumers that are gone are noted out of order".to_owned());
        }
        Ok(())
    }

    /// Appends IDs that ascend and are above all that are here.
    fn append(&mut self, mut ids: &[StreamId], shared: Shared) {
        self.len += ids.len() as u64;
        while !ids.is_empty() {
            let mut taken = self.nodes.last_mut().map_or(0, |node| node.push_run(ids, shared));
            if taken == 0 {
                taken = ids.len().min(crate::limits::PENDING_PER_CHUNK);
                self.nodes.push(NodeRef::of(Chunk::from_run(&ids[..taken], shared)));
            }
            ids = &ids[taken..];
        }
    }

    /// The node that `id` is in if it is in any: the last that does not begin after it.
    fn node_of(&self, id: StreamId) -> usize {
        let id = sort_key(id);
        self.nodes.partition_point(|node| sort_key(node.first) <= id).saturating_sub(1)
    }

    fn locate(&self, id: StreamId) -> Option<(usize, usize, usize)> {
        let at = self.node_of(id);
        let node = &self.nodes.get(at)?.node;
        let chunk = node.chunk_of(id);
        let index = node.chunks[chunk].chunk.find(id).ok()?;
        Some((at, chunk, index))
    }

    /// Joins the node at `at` with a neighbour if both are small.
    fn join_around(&mut self, at: usize) {
        let left = if at + 1 < self.nodes.len() && self.nodes[at].joins(&self.nodes[at + 1]) {
            at
        } else if at > 0 && self.nodes[at - 1].joins(&self.nodes[at]) {
            at - 1
        } else {
            return;
        };
        let right = self.nodes.remove(left + 1);
        self.nodes[left].join(right);
        self.give_memory_back();
    }

    fn give_memory_back(&mut self) {
        if self.nodes.len() * 4 <= self.nodes.capacity() {
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
    }
}

impl PartialEq for Pel {
    /// Equal contents, whatever the shape of the trees.
    fn eq(&self, other: &Pel) -> bool {
        self.len() == other.len() && self.range(StreamId::MIN).eq(other.range(StreamId::MIN))
    }
}

impl Eq for Pel {}

impl std::fmt::Debug for Pel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.range(StreamId::MIN)).finish()
    }
}
