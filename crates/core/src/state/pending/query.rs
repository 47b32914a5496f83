//! Questions to a pending entries list. They change nothing, and pass over each node and chunk that cannot answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::chunk::Chunk;
use super::node::{ChunkRef, NodeRef};
use super::passing::{Fate, Passing, chunk_time, fate_of, gone_in, is_gone, node_time, see, unowned_in};
use super::{ConsumerRef, Pel, Pending, RELEASE_MAX};
use crate::id::StreamId;

/// Entries in ID order. Made by [`Pel::range`] and its kin.
#[derive(Clone)]
pub struct Range<'a> {
    /// Nodes not yet entered.
    nodes: std::slice::Iter<'a, NodeRef>,
    /// Chunks of the present node not yet entered.
    chunks: std::slice::Iter<'a, ChunkRef>,
    /// The present chunk, and where to go on in it.
    chunk: Option<&'a Chunk>,
    index: usize,
    consumer: Option<ConsumerRef>,
    /// Only what was delivered at or before this time.
    bound_ms: u64,
    /// Consumers whose entries are not what they seem. Not needed to find those of a consumer that lives: then there are
    /// none here.
    passing: &'a [Passing],
}

impl Range<'_> {
    /// Can the node have something to offer?
    fn admits(&self, node: &NodeRef) -> bool {
        if !self.passing.is_empty() {
            return node.len > gone_in(self.passing, node);
        }
        node.min_time <= self.bound_ms && self.consumer.is_none_or(|consumer| node.node.count_of(consumer) > 0)
    }

    fn admits_chunk(&self, chunk: &ChunkRef) -> bool {
        if !self.passing.is_empty() {
            return !is_gone(self.passing, chunk);
        }
        chunk.min_time <= self.bound_ms && self.consumer.is_none_or(|consumer| chunk.may_have(consumer))
    }

    /// The next entry of a chunk, where entries are not what they seem.
    #[cold]
    fn next_seen(&mut self, chunk: &Chunk) -> Option<Pending> {
        while self.index < chunk.len() {
            let entry = see(self.passing, chunk.entry(self.index));
            self.index += 1;
            let wanted = |entry: &Pending| {
                entry.delivered_ms <= self.bound_ms && self.consumer.is_none_or(|consumer| entry.consumer == consumer)
            };
            if let Some(entry) = entry.filter(wanted) {
                return Some(entry);
            }
        }
        None
    }

    fn enter_node(&mut self) -> Option<()> {
        while let Some(node) = self.nodes.next() {
            if self.admits(node) {
                self.chunks = node.node.chunks.iter();
                return Some(());
            }
        }
        None
    }

    fn enter_chunk(&mut self) -> Option<()> {
        loop {
            while let Some(chunk) = self.chunks.next() {
                if self.admits_chunk(chunk) {
                    self.chunk = Some(&chunk.chunk);
                    self.index = 0;
                    return Some(());
                }
            }
            self.enter_node()?;
        }
    }
}

impl Iterator for Range<'_> {
    type Item = Pending;

    fn next(&mut self) -> Option<Pending> {
        loop {
            if let Some(chunk) = self.chunk {
                if !self.passing.is_empty() {
                    if let Some(entry) = self.next_seen(chunk) {
                        return Some(entry);
                    }
                } else if let Some(index) = chunk.next_match(self.index, self.bound_ms, self.consumer) {
                    self.index = index + 1;
                    return Some(chunk.entry(index));
                }
                self.chunk = None;
            }
            self.enter_chunk()?;
        }
    }
}

impl std::iter::FusedIterator for Range<'_> {}

impl Pel {
    /// All entries from `from` on, itself included, in ID order.
    pub fn range(&self, from: StreamId) -> Range<'_> {
        self.matching(from, u64::MAX, None)
    }

    /// The entries of one consumer from `from` on, in ID order.
    pub fn range_of(&self, consumer: ConsumerRef, from: StreamId) -> Range<'_> {
        self.matching(from, u64::MAX, Some(consumer))
    }

    /// The entries from `from` on that were delivered at or before a time (Unix milliseconds), in ID order; of one
    /// consumer, if one is given.
    pub fn idle_range(
        &self,
        from: StreamId,
        delivered_at_or_before_ms: u64,
        consumer: Option<ConsumerRef>,
    ) -> Range<'_> {
        self.matching(from, delivered_at_or_before_ms, consumer)
    }

    fn matching(&self, from: StreamId, bound_ms: u64, consumer: Option<ConsumerRef>) -> Range<'_> {
        let at = self.node_of(from);
        let lives = |of: ConsumerRef| of != ConsumerRef::NOBODY && fate_of(&self.passing, of).is_none();
        let passing: &[Passing] = if consumer.is_some_and(lives) { &[] } else { &self.passing };
        let (nodes, chunks) = (self.nodes[at..].iter(), [].iter());
        let mut range = Range { nodes, chunks, chunk: None, index: 0, consumer, bound_ms, passing };
        // Only the first chunk can begin before `from`. A node that has nothing to offer is not entered at all.
        if let Some(node) = self.nodes.get(at).filter(|node| node.first < from) {
            range.nodes.next();
            if range.admits(node) {
                let chunk = node.node.chunk_of(from);
                range.chunks = node.node.chunks[chunk..].iter();
                if range.enter_chunk().is_some()
                    && let Some(entered) = range.chunk
                    && entered.id(0) < from
                {
                    range.index = entered.find(from).unwrap_or_else(|index| index);
                }
            }
        }
        range
    }

    /// How many entries stand before the first that is not below `id`.
    fn rank(&self, id: StreamId) -> u64 {
        let at = self.node_of(id);
        let Some(node) = self.nodes.get(at) else { return 0 };
        let chunk_at = node.node.chunk_of(id);
        let chunk = &node.node.chunks[chunk_at];
        let nodes: u64 = self.nodes[..at].iter().map(|node| u64::from(node.len)).sum();
        let chunks: u64 = node.node.chunks[..chunk_at].iter().map(|chunk| u64::from(chunk.len)).sum();
        let index = chunk.chunk.find(id).unwrap_or_else(|index| index);
        let before = nodes + chunks + index as u64;
        if self.is_passing() { before - self.gone_before(at, chunk_at, index) } else { before }
    }

    /// How many entries before a place are gone.
    #[cold]
    fn gone_before(&self, node_at: usize, chunk_at: usize, index: usize) -> u64 {
        let passing = &self.passing;
        let nodes: u64 = self.nodes[..node_at].iter().map(|node| u64::from(gone_in(passing, node))).sum();
        let node = &self.nodes[node_at];
        if gone_in(passing, node) == 0 {
            return nodes;
        }
        let gone = |consumer: &ConsumerRef| fate_of(passing, *consumer) == Some(Fate::Gone);
        let in_chunk = |chunk: &ChunkRef| match chunk.chunk.only_consumer() {
            Some(consumer) if gone(&consumer) => usize::from(chunk.len),
            Some(_) => 0,
            None => chunk.chunk.consumers().filter(gone).count(),
        };
        let chunks: usize = node.node.chunks[..chunk_at].iter().map(in_chunk).sum();
        let entries = node.node.chunks[chunk_at].chunk.consumers().take(index).filter(gone).count();
        nodes + (chunks + entries) as u64
    }

    /// How many entries stand between two IDs, both included.
    pub fn count_in(&self, from: StreamId, to: StreamId) -> u64 {
        let end = to.next().map_or(self.len(), |end| self.rank(end));
        end.saturating_sub(self.rank(from))
    }

    /// The ID that stands `n` places after the first that is not below `from`. Looks at the lengths of nodes and chunks.
    pub fn nth_from(&self, from: StreamId, n: u64) -> Option<StreamId> {
        if self.is_passing() {
            return self.range(from).nth(usize::try_from(n).ok()?).map(|entry| entry.id);
        }
        let at = self.node_of(from);
        let mut skip = n;
        for (place, node) in self.nodes[at..].iter().enumerate() {
            let chunks = &node.node.chunks;
            // In the first node the entries below `from` do not count.
            let first_chunk = if place == 0 { node.node.chunk_of(from) } else { 0 };
            if place > 0 && skip >= u64::from(node.len) {
                skip -= u64::from(node.len);
                continue;
            }
            for (chunk_place, chunk) in chunks[first_chunk..].iter().enumerate() {
                let below = match chunk_place + place {
                    0 => chunk.chunk.find(from).unwrap_or_else(|index| index),
                    _ => 0,
                };
                let there = (usize::from(chunk.len) - below) as u64;
                if skip < there {
                    return Some(chunk.chunk.id(below + skip as usize));
                }
                skip -= there;
            }
        }
        None
    }

    /// The `limit` oldest of the entries that were delivered at or before a time (Unix milliseconds), by delivery time
    /// and then by ID. Opens only the nodes and chunks that can hold one of them, and looks through each once for what
    /// it takes from it.
    pub fn oldest_first(&self, delivered_at_or_before_ms: u64, limit: usize) -> Vec<Pending> {
        self.oldest(delivered_at_or_before_ms, limit, Kind::Any)
    }

    /// As [`Pel::oldest_first`], of the entries that a consumer has. Passes over nodes and chunks in which nobody has any;
    /// has to look into those that hold both kinds.
    pub fn oldest_owned(&self, delivered_at_or_before_ms: u64, limit: usize) -> Vec<Pending> {
        self.oldest(delivered_at_or_before_ms.min(NEVER_MS - 1), limit, Kind::Owned)
    }

    /// The `limit` entries that were given back first, of those that anyone may take. Otherwise like [`Pel::oldest_owned`].
    pub fn first_released(&self, limit: usize) -> Vec<Pending> {
        self.oldest(RELEASE_MAX, limit, Kind::Unowned)
    }

    fn oldest(&self, bound_ms: u64, limit: usize, kind: Kind) -> Vec<Pending> {
        // The key of a part is not above that of anything in it: its smallest time, its first ID. So whatever comes up
        // as an entry is the next one. Of the parts of an open part only the next is queued: the others are not before it.
        let passing = self.passing.as_slice();
        let mut open: BinaryHeap<Reverse<(u64, StreamId, Part)>> = BinaryHeap::new();
        let offer = |open: &mut BinaryHeap<_>, time: u64, id: StreamId, part: Part| {
            if time <= bound_ms {
                open.push(Reverse((time, id, part)));
            }
        };
        for (node_at, node) in self.nodes.iter().enumerate() {
            let (gone, unowned) = (gone_in(passing, node), unowned_in(passing, node));
            let may_have = match kind {
                Kind::Any => gone < node.len,
                Kind::Owned => gone + unowned < node.len,
                Kind::Unowned => unowned > 0,
            };
            if may_have {
                offer(&mut open, node_time(passing, node), node.first, Part::Node(node_at));
            }
        }
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(Reverse((time, _, part))) = open.pop()
        {
            let (node_at, chunk_before, entry_before) = match part {
                Part::Node(node_at) => (node_at, Some(None), None),
                Part::Chunk(node_at, chunk_at) => (node_at, Some(Some((time, chunk_at))), Some((chunk_at, None))),
                Part::Entry(node_at, chunk_at, index) => {
                    found.extend(see(passing, self.nodes[node_at].node.chunks[chunk_at].chunk.entry(index)));
                    (node_at, None, Some((chunk_at, Some((time, index)))))
                }
            };
            let chunks = &self.nodes[node_at].node.chunks;
            if let Some(before) = chunk_before
                && let Some((time, chunk_at)) =
                    next_by_time(chunks.iter().map(|chunk| chunk_time(passing, chunk)).enumerate(), before)
            {
                offer(&mut open, time, chunks[chunk_at].first, Part::Chunk(node_at, chunk_at));
            }
            let Some((chunk_at, before)) = entry_before else { continue };
            let chunk = &chunks[chunk_at].chunk;
            let next = match chunk.only_consumer() {
                _ if !passing.is_empty() => next_by_time(seen_times(passing, chunk, kind), before),
                _ if kind == Kind::Any => next_by_time(chunk.times().enumerate(), before),
                Some(of) if !kind.admits(of) => None,
                Some(_) => next_by_time(chunk.times().enumerate(), before),
                None => {
                    let admitted = chunk.times().zip(chunk.consumers()).enumerate();
                    let admitted = admitted.filter(|(_, (_, of))| kind.admits(*of));
                    next_by_time(admitted.map(|(index, (time, _))| (index, time)), before)
                }
            };
            if let Some((time, index)) = next {
                offer(&mut open, time, chunk.id(index), Part::Entry(node_at, chunk_at, index));
            }
        }
        found
    }
}

/// Later than any time that is asked for.
const NEVER_MS: u64 = u64::MAX;

/// Of which entries the oldest are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Any,
    /// Someone has them.
    Owned,
    /// Nobody has them.
    Unowned,
}

impl Kind {
    fn admits(self, of: ConsumerRef) -> bool {
        match self {
            Kind::Any => true,
            Kind::Owned => of != ConsumerRef::NOBODY,
            Kind::Unowned => of == ConsumerRef::NOBODY,
        }
    }
}

/// Places and times of the entries of that kind of a chunk, where entries are not what they seem.
fn seen_times(passing: &[Passing], chunk: &Chunk, kind: Kind) -> impl Iterator<Item = (usize, u64)> {
    let seen = chunk.entries().map(|entry| see(passing, entry)).enumerate();
    let wanted = move |entry: &Pending| kind.admits(entry.consumer);
    seen.filter_map(move |(index, entry)| Some((index, entry.filter(wanted)?.delivered_ms)))
}

/// What follows `before` in the order of times and then of places: the time and the place.
fn next_by_time(times: impl Iterator<Item = (usize, u64)>, before: Option<(u64, usize)>) -> Option<(u64, usize)> {
    let mut best: Option<(u64, usize)> = None;
    for (at, time) in times {
        if before.is_none_or(|before| (time, at) > before) && best.is_none_or(|best| time < best.0) {
            best = Some((time, at));
            // The same time further on: nothing can come between.
            if before.is_some_and(|before| before.0 == time) {
                break;
            }
        }
    }
    best
}

/// A part of the list, by its place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Node(usize),
    Chunk(usize, usize),
    Entry(usize, usize, usize),
}
