//! Entries that wait for a time, each for its own. They are kept as a pending list is, a tree of packed chunks in ID order
//! (`state::pending`): a part of any length is taken out at the price of its nodes, a clone shares what neither changes,
//! and the earliest are found without looking at the others.
//!
//! What is taken out comes back as a list, to be freed bit by bit.

use crate::id::StreamId;
use crate::state::pending::{ConsumerRef, Pel, Pending};

/// Entries that are asked for at once for [`Timed::due`] at first.
const DUE_STEP: usize = 16;

/// Times (Unix ms) by entry.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    /// The time stands where a pending list has that of the delivery.
    all: Option<Pel>,
}

fn pending(id: StreamId, ms: u64) -> Pending {
    Pending { id, consumer: ConsumerRef(0), delivered_ms: ms, deliveries: 0 }
}

impl Timed {
    /// None at all.
    pub const NONE: Timed = Timed { all: None };

    /// How many entries.
    #[inline]
    pub fn len(&self) -> u64 {
        self.all.as_ref().map_or(0, Pel::len)
    }

    /// None at all?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory that they take, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        self.all.as_ref().map_or(0, Pel::memory_bytes)
    }

    /// The time of an entry.
    pub fn get(&self, id: StreamId) -> Option<u64> {
        Some(self.all.as_ref()?.get(id)?.delivered_ms)
    }

    /// Does it wait?
    #[inline]
    pub fn contains(&self, id: StreamId) -> bool {
        self.all.as_ref().is_some_and(|all| all.contains(id))
    }

    /// The smallest ID.
    #[inline]
    pub fn first(&self) -> Option<StreamId> {
        self.all.as_ref()?.first()
    }

    /// The greatest ID.
    pub fn last(&self) -> Option<StreamId> {
        self.all.as_ref()?.last()
    }

    /// An entry waits for this time and no other.
    pub fn put(&mut self, id: StreamId, ms: u64) {
        self.all.get_or_insert_default().put(pending(id, ms));
    }

    /// An entry does not wait any more; answers whether it did.
    pub fn remove(&mut self, id: StreamId) -> bool {
        self.all.as_mut().is_some_and(|all| all.remove(id).is_some())
    }

    /// The entries between two IDs, both included, do not wait any more. They come back to be freed.
    pub fn remove_range(&mut self, from: StreamId, to: StreamId) -> Pel {
        self.all.as_mut().map_or_else(Pel::default, |all| all.remove_range(from, to, |_, _| {}))
    }

    /// All of them, to be freed.
    pub fn take(&mut self) -> Pel {
        self.all.take().unwrap_or_default()
    }

    /// From an ID on, in order, with their times.
    pub fn range(&self, from: StreamId) -> impl Iterator<Item = (StreamId, u64)> {
        let range = self.all.as_ref().map(|all| all.range(from));
        range.into_iter().flatten().map(|entry| (entry.id, entry.delivered_ms))
    }

    /// The earliest time.
    pub fn first_ms(&self) -> Option<u64> {
        self.all.as_ref()?.oldest_time()
    }

    /// Those whose time has come: the earliest first, and of equal times the smallest ID.
    pub fn due(&self, now_ms: u64) -> impl Iterator<Item = (u64, StreamId)> {
        let ask = move |limit| self.all.as_ref().map_or_else(Vec::new, |all| all.oldest_first(now_ms, limit));
        let (mut limit, mut at) = (DUE_STEP, 0);
        let mut known = ask(limit);
        std::iter::from_fn(move || {
            if at == limit {
                // The same question again, for more: what is known comes first again.
                limit = limit.saturating_mul(4);
                known = ask(limit);
            }
            let next = known.get(at)?;
            at += 1;
            Some((next.delivered_ms, next.id))
        })
    }

    /// Every invariant of the list.
    pub fn check(&self) -> Result<(), String> {
        self.all.as_ref().map_or(Ok(()), Pel::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_come_first_however_many_there_are() {
        let mut timed = Timed::default();
        let mut times: Vec<(u64, StreamId)> =
            (1..=500u64).map(|n| (1 + n * 7919 % 83, StreamId::new(n, n % 3))).collect();
        times.iter().for_each(|&(ms, id)| timed.put(id, ms));
        times.sort_unstable();
        assert_eq!(timed.due(83).collect::<Vec<_>>(), times);
        let until_40: Vec<_> = times.iter().copied().filter(|&(ms, _)| ms <= 40).collect();
        assert_eq!(timed.due(40).collect::<Vec<_>>(), until_40);
        assert_eq!((timed.due(0).count(), timed.first_ms()), (0, Some(1)));
        timed.check().unwrap();
    }

    #[test]
    fn a_part_is_taken_out_and_a_clone_keeps_it() {
        let mut timed = Timed::default();
        (1..=1000).for_each(|n| timed.put(StreamId::new(n, 0), 5));
        timed.put(StreamId::new(7, 0), 9);
        let before = timed.clone();
        assert_eq!(timed.remove_range(StreamId::new(101, 0), StreamId::MAX).len(), 900);
        assert_eq!((timed.len(), before.len(), timed.last()), (100, 1000, Some(StreamId::new(100, 0))));
        assert_eq!((timed.get(StreamId::new(7, 0)), timed.get(StreamId::new(101, 0))), (Some(9), None));
        assert!(timed.remove(StreamId::new(1, 0)) && !timed.remove(StreamId::new(1, 0)));
        assert_eq!(timed.range(StreamId::MIN).map(|(id, _)| id.ms).collect::<Vec<_>>(), (2..=100).collect::<Vec<_>>());
        assert_eq!((timed.take().len(), timed.len(), timed.first_ms()), (99, 0, None));
    }
}
