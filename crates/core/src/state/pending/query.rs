//! Questions to a pending entries list. They change nothing, and pass over each node and chunk that cannot answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::chunk::Chunk;
use super::node::{ChunkRef, NodeRef};
use super::{ConsumerRef, Pel, Pending};
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
}

impl Range<'_> {
    fn enter_node(&mut self) -> Option<()> {
        for node in self.nodes.by_ref() {
            if node.min_time <= self.bound_ms && self.consumer.is_none_or(|consumer| node.node.count_of(consumer) > 0) {
                self.chunks = node.node.chunks.iter();
                return Some(());
            }
        }
        None
    }

    fn enter_chunk(&mut self) -> Option<()> {
        loop {
            for chunk in self.chunks.by_ref() {
                if chunk.min_time <= self.bound_ms && self.consumer.is_none_or(|consumer| chunk.may_have(consumer)) {
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
                if let Some(index) = chunk.next_match(self.index, self.bound_ms, self.consumer) {
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
        let mut range =
            Range { nodes: self.nodes[at..].iter(), chunks: [].iter(), chunk: None, index: 0, consumer, bound_ms };
        // Only the first chunk can begin before `from`. A node that has nothing to offer is not entered at all.
        if let Some(node) = self.nodes.get(at).filter(|node| node.first < from) {
            range.nodes.next();
            if node.min_time <= bound_ms && consumer.is_none_or(|consumer| node.node.count_of(consumer) > 0) {
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

    /// The `limit` oldest of the entries that were delivered at or before a time (Unix milliseconds), by delivery time
    /// and then by ID. Opens only the nodes and chunks that can hold one of them.
    pub fn oldest_first(&self, delivered_at_or_before_ms: u64, limit: usize) -> Vec<Pending> {
        let bound_ms = delivered_at_or_before_ms;
        // The key of a part is not above that of anything in it: its smallest time, its first ID. The part that was
        // opened last tells apart what has equal keys; an entry comes after the parts that begin with it.
        let mut open: BinaryHeap<Reverse<(u64, StreamId, Part)>> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.min_time <= bound_ms)
            .map(|(at, node)| Reverse((node.min_time, node.first, Part::Node(at))))
            .collect();
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(Reverse((_, _, part))) = open.pop()
        {
            match part {
                Part::Node(at) => {
                    for (chunk, target) in self.nodes[at].node.chunks.iter().enumerate() {
                        if target.min_time <= bound_ms {
                            open.push(Reverse((target.min_time, target.first, Part::Chunk(at, chunk))));
                        }
                    }
                }
                Part::Chunk(at, chunk_at) => {
                    let chunk = &self.nodes[at].node.chunks[chunk_at].chunk;
                    let mut from = 0;
                    while let Some(index) = chunk.next_match(from, bound_ms, None) {
                        let key = (chunk.time(index), chunk.id(index));
                        open.push(Reverse((key.0, key.1, Part::Entry(at, chunk_at, index))));
                        from = index + 1;
                    }
                }
                Part::Entry(at, chunk, index) => found.push(self.nodes[at].node.chunks[chunk].chunk.entry(index)),
            }
        }
        found
    }
}

/// A part of the list, by its place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Node(usize),
    Chunk(usize, usize),
    Entry(usize, usize, usize),
}
