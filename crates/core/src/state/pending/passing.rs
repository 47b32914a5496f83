//! Consumers that are gone and still have entries in the tree. To take out, or to give back, hundreds of thousands of
//! entries takes long, so both are said first and done later: the list notes what became of the consumer, every answer
//! goes by that from then on, and [`Pel::reap`] works it into the tree in slices.
//!
//! A number that is passing away is in no new entry: its group gives it to nobody before [`Pel::reap`] hands it back.

use super::node::{ChunkRef, NodeRef};
use super::{ConsumerRef, Pel, Pending};
use crate::id::StreamId;

/// Chunks that one slice packs anew.
const CHUNKS_PER_SLICE: usize = 16;

/// What became of the entries of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// They are pending no more.
    Gone,
    /// They were given back, as if each had not been delivered the last time, in ID order: all have this place in the
    /// order of release, in which the ID decides between equals.
    Released(u64),
}

/// A consumer that is gone, and what became of its entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub consumer: ConsumerRef,
    pub fate: Fate,
}

/// What became of the entries of `consumer`; `None`: it lives. `passing` is sorted.
#[inline]
pub(super) fn fate_of(passing: &[Passing], consumer: ConsumerRef) -> Option<Fate> {
    let at = passing.binary_search_by_key(&consumer, |passing| passing.consumer).ok()?;
    Some(passing[at].fate)
}

/// An entry of the tree as it is to be seen; `None` if it is gone.
#[inline]
pub(super) fn see(passing: &[Passing], entry: Pending) -> Option<Pending> {
    match fate_of(passing, entry.consumer) {
        None => Some(entry),
        Some(Fate::Gone) => None,
        Some(Fate::Released(order)) => Some(Pending {
            consumer: ConsumerRef::NOBODY,
            delivered_ms: order,
            deliveries: entry.deliveries.saturating_sub(1),
            ..entry
        }),
    }
}

/// How many entries of a node are gone.
pub(super) fn gone_in(passing: &[Passing], node: &NodeRef) -> u32 {
    let gone = passing.iter().filter(|passing| passing.fate == Fate::Gone);
    gone.map(|passing| node.node.count_of(passing.consumer)).sum()
}

/// How many entries of a node nobody has.
pub(super) fn unowned_in(passing: &[Passing], node: &NodeRef) -> u32 {
    let released = passing.iter().filter(|passing| passing.fate != Fate::Gone);
    let passing: u32 = released.map(|passing| node.node.count_of(passing.consumer)).sum();
    node.node.count_of(ConsumerRef::NOBODY) + passing
}

/// A time that is not above that of any entry of a node that is to be seen.
pub(super) fn node_time(passing: &[Passing], node: &NodeRef) -> u64 {
    let of = |passing: &Passing| match passing.fate {
        Fate::Released(order) if node.node.count_of(passing.consumer) > 0 => Some(order),
        _ => None,
    };
    passing.iter().filter_map(of).fold(node.min_time, u64::min)
}

/// The same of a chunk.
pub(super) fn chunk_time(passing: &[Passing], chunk: &ChunkRef) -> u64 {
    let of = |passing: &Passing| match passing.fate {
        Fate::Released(order) if chunk.may_have(passing.consumer) => Some(order),
        _ => None,
    };
    passing.iter().filter_map(of).fold(chunk.min_time, u64::min)
}

/// Is everything in a chunk gone, as far as can be told at a glance?
pub(super) fn is_gone(passing: &[Passing], chunk: &ChunkRef) -> bool {
    chunk.chunk.only_consumer().is_some_and(|consumer| fate_of(passing, consumer) == Some(Fate::Gone))
}

impl Pel {
    /// Are there entries of consumers that are gone, for [`Pel::reap`]?
    #[inline]
    pub fn is_passing(&self) -> bool {
        !self.passing.is_empty()
    }

    /// How many consumers are gone and still have entries in the tree.
    pub fn passing_count(&self) -> usize {
        self.passing.len()
    }

    /// Takes out the entries of `consumer`, which has `count` of them. From now on they are in no answer; what is left to
    /// do does [`Pel::reap`], which also says when the number is free again.
    pub fn remove_consumer(&mut self, consumer: ConsumerRef, count: u64) {
        self.pass(consumer, Fate::Gone);
        self.gone += count;
    }

    /// Gives back the entries of `consumer`, as number `order` in the order of release and among themselves in ID order.
    /// Otherwise like [`Pel::remove_consumer`].
    pub fn release_consumer(&mut self, consumer: ConsumerRef, order: u64) {
        self.pass(consumer, Fate::Released(order));
    }

    fn pass(&mut self, consumer: ConsumerRef, fate: Fate) {
        debug_assert_ne!(consumer, ConsumerRef::NOBODY);
        let at = self.passing.partition_point(|passing| passing.consumer < consumer);
        self.passing.insert(at, Passing { consumer, fate });
        self.reaped = StreamId::MIN;
    }

    /// Does a slice of what is left to do. Answers the numbers that are in no entry any more, which are all when it has
    /// come to the end, and none before.
    pub fn reap(&mut self) -> Vec<ConsumerRef> {
        let mut at = self.node_of(self.reaped);
        while at < self.nodes.len() {
            let node = &mut self.nodes[at];
            if self.passing.iter().all(|passing| node.node.count_of(passing.consumer) == 0) {
                at += 1;
                continue;
            }
            let removed = node.settle(&self.passing, CHUNKS_PER_SLICE);
            self.len -= u64::from(removed);
            self.gone -= u64::from(removed);
            if node.len == 0 {
                self.nodes.remove(at);
                self.give_memory_back();
            } else {
                self.join_around(at);
            }
            // Joining may have moved it one to the left.
            self.reaped = self.nodes.get(at.saturating_sub(1)).map_or(StreamId::MIN, |node| node.first);
            return Vec::new();
        }
        std::mem::take(&mut self.passing).into_iter().map(|passing| passing.consumer).collect()
    }
}
