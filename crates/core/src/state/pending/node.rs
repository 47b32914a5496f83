//! A node: up to `CHUNKS_PER_NODE` chunks in ID order, what is known of each without looking into it, and how many
//! entries each consumer has here.
//!
//! Of every chunk and node the reference to it holds the first ID, the number of entries and the smallest delivery
//! time, exactly. They are kept by the functions of this file, which are the only ones that change a chunk in a tree.
//! Everything is behind `Arc`: changing what a frozen copy shares first copies that node and that chunk, no more.

use std::sync::Arc;

use super::chunk::{Chunk, Shared};
use super::passing::{Passing, see};
use super::{ConsumerRef, Pending};
use crate::id::StreamId;
use crate::limits::{CHUNKS_PER_NODE, PENDING_PER_CHUNK};

/// Neighbours that together hold no more than this become one, so that acknowledging here and there does not leave
/// a tree of crumbs; the quarter that stays free keeps the next insertion from splitting it again.
const JOINED_CHUNK_MAX: usize = PENDING_PER_CHUNK * 3 / 4;
const JOINED_NODE_MAX: usize = CHUNKS_PER_NODE * 3 / 4;

/// A chunk in its node.
#[derive(Clone)]
pub(super) struct ChunkRef {
    pub first: StreamId,
    /// Smallest delivery time.
    pub min_time: u64,
    pub chunk: Arc<Chunk>,
    /// One bit for each remainder of a consumer's number that occurs; bits may be left over from entries that went.
    pub owners: u32,
    pub len: u16,
}

/// Compares as the ID does, without a branch between its halves.
#[inline]
pub(super) fn sort_key(id: StreamId) -> u128 {
    u128::from(id.ms) << 64 | u128::from(id.seq)
}

fn owner_bit(consumer: ConsumerRef) -> u32 {
    1 << (consumer.0 % 32)
}

impl ChunkRef {
    pub fn of(chunk: Chunk) -> ChunkRef {
        let owners = match chunk.only_consumer() {
            Some(consumer) => owner_bit(consumer),
            None => chunk.consumers().fold(0, |bits, consumer| bits | owner_bit(consumer)),
        };
        ChunkRef {
            first: chunk.id(0),
            min_time: chunk.min_time(),
            len: chunk.len() as u16,
            owners,
            chunk: Arc::new(chunk),
        }
    }

    /// May `consumer` have an entry here? `false` is certain.
    #[inline]
    pub fn may_have(&self, consumer: ConsumerRef) -> bool {
        self.owners & owner_bit(consumer) != 0
    }

    fn joins(&self, right: &ChunkRef) -> bool {
        usize::from(self.len) + usize::from(right.len) <= JOINED_CHUNK_MAX
    }
}

/// See the module. Never empty while it is in a tree.
#[derive(Clone, Default)]
pub(super) struct Node {
    pub chunks: Vec<ChunkRef>,
    /// By consumer; no zeros.
    owners: Vec<(ConsumerRef, u32)>,
}

impl Node {
    /// How many entries `consumer` has here.
    #[inline]
    pub fn count_of(&self, consumer: ConsumerRef) -> u32 {
        match self.owners.binary_search_by_key(&consumer, |owner| owner.0) {
            Ok(at) => self.owners[at].1,
            Err(_) => 0,
        }
    }

    /// Every consumer with entries here, and how many.
    pub fn owners(&self) -> impl Iterator<Item = (ConsumerRef, u32)> {
        self.owners.iter().copied()
    }

    /// The chunk that `id` is in if it is in any: the last that does not begin after it.
    #[inline]
    pub fn chunk_of(&self, id: StreamId) -> usize {
        let id = sort_key(id);
        self.chunks.partition_point(|chunk| sort_key(chunk.first) <= id).saturating_sub(1)
    }

    fn add_owner(&mut self, consumer: ConsumerRef, count: u32) {
        match self.owners.binary_search_by_key(&consumer, |owner| owner.0) {
            Ok(at) => self.owners[at].1 += count,
            Err(at) => self.owners.insert(at, (consumer, count)),
        }
    }

    fn drop_owner(&mut self, consumer: ConsumerRef) {
        if let Ok(at) = self.owners.binary_search_by_key(&consumer, |owner| owner.0) {
            self.owners[at].1 -= 1;
            if self.owners[at].1 == 0 {
                self.owners.remove(at);
                if self.owners.len() * 4 < self.owners.capacity() {
                    self.owners.shrink_to(self.owners.len() * 2);
                }
            }
        }
    }

    fn count_owners(&mut self) {
        let mut numbers: Vec<ConsumerRef> = Vec::new();
        let mut owners: Vec<(ConsumerRef, u32)> = Vec::new();
        for chunk in &self.chunks {
            match chunk.chunk.only_consumer() {
                Some(consumer) => owners.push((consumer, u32::from(chunk.len))),
                None => {
                    numbers.clear();
                    numbers.extend(chunk.chunk.consumers());
                    numbers.sort_unstable();
                    owners.extend(numbers.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)));
                }
            }
        }
        self.owners = merged(owners);
    }

    fn min_time(&self) -> u64 {
        self.chunks.iter().fold(u64::MAX, |least, chunk| least.min(chunk.min_time))
    }

    /// Joins the chunk at `at` with a neighbour if both are small.
    fn join_around(&mut self, at: usize) -> bool {
        let left = if at + 1 < self.chunks.len() && self.chunks[at].joins(&self.chunks[at + 1]) {
            at
        } else if at > 0 && self.chunks[at - 1].joins(&self.chunks[at]) {
            at - 1
        } else {
            return false;
        };
        let joined = self.chunks[left].chunk.joined(&self.chunks[left + 1].chunk);
        self.chunks[left] = ChunkRef::of(joined);
        self.chunks.remove(left + 1);
        true
    }

    fn give_memory_back(&mut self) {
        if self.chunks.len() * 2 <= self.chunks.capacity() {
            self.chunks.shrink_to(self.chunks.len() * 5 / 4);
        }
    }
}

/// Sorted, the counts of equal consumers added up.
fn merged(mut owners: Vec<(ConsumerRef, u32)>) -> Vec<(ConsumerRef, u32)> {
    owners.sort_unstable();
    owners.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    owners.shrink_to_fit();
    owners
}

/// A node in the root.
#[derive(Clone)]
pub(super) struct NodeRef {
    pub first: StreamId,
    /// Smallest delivery time.
    pub min_time: u64,
    pub node: Arc<Node>,
    pub len: u32,
}

/// What removing an entry did to its node.
pub(super) enum Shape {
    /// The same chunks as before.
    Same,
    /// A chunk less.
    Smaller,
    /// Nothing is left: the node has to go.
    Empty,
}

impl NodeRef {
    pub fn memory_bytes(&self) -> usize {
        let Node { chunks, owners } = &*self.node;
        let chunks: usize = chunks.iter().map(|of| size_of::<ChunkRef>() + of.chunk.memory_bytes()).sum();
        size_of::<NodeRef>() + size_of::<Node>() + size_of_val(owners.as_slice()) + chunks
    }

    /// A node of one chunk.
    pub fn of(chunk: Chunk) -> NodeRef {
        NodeRef::of_chunks(vec![ChunkRef::of(chunk)])
    }

    /// A node of these chunks: in ID order, at least one, at most `CHUNKS_PER_NODE`.
    pub fn of_chunks(chunks: Vec<ChunkRef>) -> NodeRef {
        let mut node = Node { chunks, owners: Vec::new() };
        node.count_owners();
        NodeRef {
            first: node.chunks[0].first,
            min_time: node.min_time(),
            len: node.chunks.iter().map(|chunk| u32::from(chunk.len)).sum(),
            node: Arc::new(node),
        }
    }

    /// The greatest ID.
    #[inline]
    pub fn last(&self) -> Option<StreamId> {
        let chunk = self.node.chunks.last()?;
        Some(chunk.chunk.id(chunk.chunk.len() - 1))
    }

    /// Appends as many of `ids`, the rest of one delivery, as the last chunk has room for, or else begins a chunk.
    /// Returns how many; 0 when the node is full.
    pub fn push_run(&mut self, ids: &[StreamId], shared: Shared) -> usize {
        let node = Arc::make_mut(&mut self.node);
        let chunks = node.chunks.len();
        let taken = match node.chunks.last_mut() {
            Some(last) if usize::from(last.len) < PENDING_PER_CHUNK => {
                let taken = ids.len().min(PENDING_PER_CHUNK - usize::from(last.len));
                Arc::make_mut(&mut last.chunk).push_run(&ids[..taken], shared);
                last.len += taken as u16;
                last.min_time = last.min_time.min(shared.delivered_ms);
                last.owners |= owner_bit(shared.consumer);
                taken
            }
            _ if chunks == CHUNKS_PER_NODE => return 0,
            _ => {
                let taken = ids.len().min(PENDING_PER_CHUNK);
                node.chunks.push(ChunkRef::of(Chunk::from_run(&ids[..taken], shared)));
                taken
            }
        };
        node.add_owner(shared.consumer, taken as u32);
        self.len += taken as u32;
        self.min_time = self.min_time.min(shared.delivered_ms);
        taken
    }

    /// Would putting `id` in need one chunk more than a node may have?
    pub fn is_full_at(&self, id: StreamId) -> bool {
        let chunks = &self.node.chunks;
        chunks.len() == CHUNKS_PER_NODE && usize::from(chunks[self.node.chunk_of(id)].len) == PENDING_PER_CHUNK
    }

    /// Inserts or replaces an entry. Not called when [`NodeRef::is_full_at`] its ID.
    pub fn put(&mut self, entry: &Pending) -> Option<Pending> {
        let node = Arc::make_mut(&mut self.node);
        let mut at = node.chunk_of(entry.id);
        let old_min = node.chunks[at].min_time;
        let found = node.chunks[at].chunk.find(entry.id);
        let replaced = match found {
            Ok(index) => {
                let target = &mut node.chunks[at];
                let chunk = Arc::make_mut(&mut target.chunk);
                let old = chunk.entry(index);
                chunk.replace(index, entry);
                if entry.delivered_ms < target.min_time {
                    target.min_time = entry.delivered_ms;
                } else if old.delivered_ms == target.min_time && entry.delivered_ms > old.delivered_ms {
                    target.min_time = chunk.min_time();
                }
                target.owners |= owner_bit(entry.consumer);
                Some(old)
            }
            Err(mut index) => {
                if usize::from(node.chunks[at].len) == PENDING_PER_CHUNK {
                    let half = PENDING_PER_CHUNK / 2;
                    let mut left = Chunk::clone(&node.chunks[at].chunk);
                    let right = left.split_off(half);
                    node.chunks[at] = ChunkRef::of(left);
                    node.chunks.insert(at + 1, ChunkRef::of(right));
                    if index > half {
                        (at, index) = (at + 1, index - half);
                    }
                }
                let target = &mut node.chunks[at];
                Arc::make_mut(&mut target.chunk).insert(index, entry);
                target.len += 1;
                target.first = target.first.min(entry.id);
                target.min_time = target.min_time.min(entry.delivered_ms);
                target.owners |= owner_bit(entry.consumer);
                None
            }
        };
        match replaced {
            Some(old) if old.consumer == entry.consumer => {}
            Some(old) => {
                node.drop_owner(old.consumer);
                node.add_owner(entry.consumer, 1);
            }
            None => node.add_owner(entry.consumer, 1),
        }
        if entry.delivered_ms < self.min_time {
            self.min_time = entry.delivered_ms;
        } else if old_min == self.min_time && node.chunks[at].min_time > old_min {
            self.min_time = node.min_time();
        }
        self.first = node.chunks[0].first;
        self.len += u32::from(replaced.is_none());
        replaced
    }

    /// Takes out the entry at `index` of the chunk at `at`.
    pub fn remove(&mut self, at: usize, index: usize) -> (Pending, Shape) {
        let node = Arc::make_mut(&mut self.node);
        let target = &mut node.chunks[at];
        let old_min = target.min_time;
        let chunk = Arc::make_mut(&mut target.chunk);
        let old = chunk.remove(index);
        target.len -= 1;
        self.len -= 1;
        let mut shape = Shape::Same;
        let new_min = if target.len == 0 {
            node.chunks.remove(at);
            shape = Shape::Smaller;
            u64::MAX
        } else {
            if index == 0 {
                target.first = chunk.id(0);
            }
            if old.delivered_ms == target.min_time {
                target.min_time = chunk.min_time();
            }
            let new_min = target.min_time;
            if node.join_around(at) {
                shape = Shape::Smaller;
            }
            new_min
        };
        node.drop_owner(old.consumer);
        let Some(first) = node.chunks.first() else {
            return (old, Shape::Empty);
        };
        self.first = first.first;
        if old_min == self.min_time && new_min > old_min {
            self.min_time = node.min_time();
        }
        if matches!(shape, Shape::Smaller) {
            node.give_memory_back();
        }
        (old, shape)
    }

    /// Parts the node into what lies outside of two IDs and what lies between them, both included.
    pub fn cut(self, from: StreamId, to: StreamId) -> (Option<NodeRef>, Option<NodeRef>) {
        if self.first >= from && self.last() <= Some(to) {
            return (None, Some(self));
        }
        let (mut kept, mut taken) = (Vec::new(), Vec::new());
        for target in &self.node.chunks {
            let last = target.chunk.id(usize::from(target.len) - 1);
            if last < from || target.first > to {
                kept.push(target.clone());
            } else if target.first >= from && last <= to {
                taken.push(target.clone());
            } else {
                let (inside, outside): (Vec<Pending>, Vec<Pending>) =
                    target.chunk.entries().partition(|entry| entry.id >= from && entry.id <= to);
                for (entries, chunks) in [(inside, &mut taken), (outside, &mut kept)] {
                    if !entries.is_empty() {
                        chunks.push(ChunkRef::of(Chunk::from_entries(&entries)));
                    }
                }
            }
        }
        let node = |chunks: Vec<ChunkRef>| (!chunks.is_empty()).then(|| NodeRef::of_chunks(chunks));
        (node(kept), node(taken))
    }

    /// Keeps the first half of the chunks and returns the others as a node of their own.
    pub fn split_off(&mut self) -> NodeRef {
        let chunks = &self.node.chunks;
        let right = NodeRef::of_chunks(chunks[chunks.len() / 2..].to_vec());
        *self = NodeRef::of_chunks(chunks[..chunks.len() / 2].to_vec());
        right
    }

    /// Are both so small that they should be one?
    pub fn joins(&self, right: &NodeRef) -> bool {
        self.node.chunks.len() + right.node.chunks.len() <= JOINED_NODE_MAX
    }

    /// Takes over all that `right` has.
    pub fn join(&mut self, right: NodeRef) {
        let node = Arc::make_mut(&mut self.node);
        let border = node.chunks.len();
        node.chunks.extend_from_slice(&right.node.chunks);
        node.owners.extend_from_slice(&right.node.owners);
        node.owners = merged(std::mem::take(&mut node.owners));
        node.join_around(border);
        self.len += right.len;
        self.min_time = self.min_time.min(right.min_time);
    }

    /// Makes up to `most` chunks what the fates of consumers that are gone make of them; returns how many entries went. The
    /// node may then be empty.
    pub fn settle(&mut self, passing: &[Passing], mut most: usize) -> u32 {
        let node = Arc::make_mut(&mut self.node);
        let mut kept: Vec<ChunkRef> = Vec::with_capacity(node.chunks.len());
        let mut entries: Vec<Pending> = Vec::with_capacity(PENDING_PER_CHUNK);
        let (mut removed, mut renamed) = (0, 0);
        // How many entries of each consumer, by its place in `passing`, are not its any more.
        let mut taken = vec![0; passing.len()];
        for mut target in std::mem::take(&mut node.chunks) {
            let has = |of: &Passing| target.may_have(of.consumer) && target.chunk.has_consumer(of.consumer);
            if most == 0 || !passing.iter().any(has) {
                kept.push(target);
                continue;
            }
            most -= 1;
            entries.clear();
            for entry in target.chunk.entries() {
                let seen = see(passing, entry);
                if let Ok(at) = passing.binary_search_by_key(&entry.consumer, |passing| passing.consumer) {
                    taken[at] += 1;
                    renamed += u32::from(seen.is_some());
                    removed += u32::from(seen.is_none());
                }
                entries.extend(seen);
            }
            if entries.is_empty() {
                continue;
            }
            target = ChunkRef::of(Chunk::from_entries(&entries));
            match kept.last_mut() {
                Some(last) if last.joins(&target) => *last = ChunkRef::of(last.chunk.joined(&target.chunk)),
                _ => kept.push(target),
            }
        }
        node.chunks = kept;
        node.owners.retain_mut(|(consumer, count)| {
            if let Ok(at) = passing.binary_search_by_key(consumer, |passing| passing.consumer) {
                *count -= taken[at];
            }
            *count > 0
        });
        if renamed > 0 {
            node.add_owner(ConsumerRef::NOBODY, renamed);
        }
        self.len -= removed;
        if let Some(first) = node.chunks.first() {
            self.first = first.first;
            node.give_memory_back();
            self.min_time = node.min_time();
        }
        removed
    }

    /// Everything that must hold of a node, what the references say of it included.
    pub fn check(&self) -> Result<(), String> {
        let node = &*self.node;
        if node.chunks.is_empty() || node.chunks.len() > CHUNKS_PER_NODE {
            return Err(format!("a node of {} chunks", node.chunks.len()));
        }
        for target in &node.chunks {
            target.chunk.check()?;
            let actual = ChunkRef::of(Chunk::clone(&target.chunk));
            if (actual.first, actual.min_time, actual.len) != (target.first, target.min_time, target.len) {
                return Err(format!("the chunk that begins with {} is not what its node says", actual.first));
            }
            if actual.owners & !target.owners != 0 {
                return Err(format!("an owner in the chunk that begins with {} is not noted", actual.first));
            }
        }
        for pair in node.chunks.windows(2) {
            let last = pair[0].chunk.id(pair[0].chunk.len() - 1);
            if last >= pair[1].first {
                return Err(format!("the chunk that begins with {} stands after {last}", pair[1].first));
            }
        }
        let actual = NodeRef::of_chunks(node.chunks.clone());
        if (actual.first, actual.min_time, actual.len) != (self.first, self.min_time, self.len) {
            return Err(format!("the node that begins with {} is not what the root says", actual.first));
        }
        if actual.node.owners != node.owners {
            return Err(format!("wrong totals of consumers in the node that begins with {}", actual.first));
        }
        Ok(())
    }
}
