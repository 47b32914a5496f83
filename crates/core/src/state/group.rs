//! A consumer group: its position in the stream, its pending entries and its consumers.
//!
//! Invariants (see `check`): every pending entry belongs to a living consumer, and each consumer's `pending` is the
//! number of entries it has in the list. Names are kept in byte order, because that is the order in which they show.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, end_sections, put_bytes, put_id, put_int, put_uint};
use crate::state::pending::{ConsumerRef, Pel, Pending};

/// One consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name; any bytes.
    pub name: Arc<[u8]>,
    /// Unix ms of its last attempt to get entries.
    pub seen_ms: u64,
    /// Unix ms when it last got entries; `None` if never.
    pub active_ms: Option<u64>,
    /// Entries it has pending.
    pub pending: u64,
}

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The position: what is at or before it is not handed out by `>`.
    pub last_delivered: StreamId,
    /// How many entries were ever added up to the position, when known.
    pub entries_read: Option<u64>,
    /// Entries handed out and not acknowledged.
    pel: Pel,
    /// Consumers by name.
    by_name: BTreeMap<Arc<[u8]>, ConsumerRef>,
    /// Consumers by reference; freed places are used again.
    consumers: Vec<Option<Consumer>>,
    /// The freed places.
    free: Vec<ConsumerRef>,
}

impl Group {
    /// A group at a position.
    pub fn new(last_delivered: StreamId, entries_read: Option<u64>) -> Self {
        Group { last_delivered, entries_read, ..Group::default() }
    }

    /// The pending entries, for reading.
    pub fn pel(&self) -> &Pel {
        &self.pel
    }

    /// Memory that the group takes, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        let names = |consumer: &Consumer| 2 * size_of::<Arc<[u8]>>() + consumer.name.len();
        let consumers = self
            .consumers
            .iter()
            .map(|slot| size_of::<Option<Consumer>>() + size_of::<ConsumerRef>() + slot.as_ref().map_or(0, names));
        size_of::<Group>() + consumers.sum::<usize>() + self.pel.memory_bytes()
    }

    /// Number of consumers.
    pub fn consumer_count(&self) -> usize {
        self.by_name.len()
    }

    /// The reference of a consumer.
    pub fn find(&self, name: &[u8]) -> Option<ConsumerRef> {
        self.by_name.get(name).copied()
    }

    /// A consumer by reference. Panics if there is none: references come from this group.
    pub fn consumer(&self, of: ConsumerRef) -> &Consumer {
        self.consumers[of.0 as usize].as_ref().expect("a pending entry names a living consumer")
    }

    fn consumer_mut(&mut self, of: ConsumerRef) -> &mut Consumer {
        self.consumers[of.0 as usize].as_mut().expect("a pending entry names a living consumer")
    }

    /// All consumers in byte order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = (ConsumerRef, &Consumer)> {
        self.by_name.values().map(|&of| (of, self.consumer(of)))
    }

    /// The consumer of that name, made if it is new (seen now, never active).
    pub fn ensure_consumer(&mut self, name: &[u8], now_ms: u64) -> ConsumerRef {
        if let Some(&of) = self.by_name.get(name) {
            return of;
        }
        let name: Arc<[u8]> = name.into();
        let consumer = Consumer { name: name.clone(), seen_ms: now_ms, active_ms: None, pending: 0 };
        let of = self.free.pop().unwrap_or_else(|| {
            self.consumers.push(None);
            ConsumerRef(self.consumers.len() as u32 - 1)
        });
        self.consumers[of.0 as usize] = Some(consumer);
        self.by_name.insert(name, of);
        of
    }

    /// Notes an attempt of a consumer, and whether it got anything.
    pub fn touch(&mut self, of: ConsumerRef, now_ms: u64, active: bool) {
        let consumer = self.consumer_mut(of);
        consumer.seen_ms = now_ms;
        if active {
            consumer.active_ms = Some(now_ms);
        }
    }

    /// Removes a consumer and what it had pending; answers how many entries that were.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<u64> {
        let of = self.by_name.remove(name)?;
        let had = self.consumer(of).pending;
        if had > 0 {
            let removed = self.pel.remove_consumer(of);
            assert_eq!(removed, had, "a consumer's count is the number of its pending entries");
        }
        self.consumers[of.0 as usize] = None;
        self.free.push(of);
        Some(had)
    }

    /// Makes an entry pending, or changes who holds it.
    pub fn put_pending(&mut self, pending: Pending) {
        match self.pel.put(pending) {
            Some(old) if old.consumer == pending.consumer => {}
            old => {
                self.consumer_mut(pending.consumer).pending += 1;
                if let Some(old) = old {
                    self.consumer_mut(old.consumer).pending -= 1;
                }
            }
        }
    }

    /// Makes entries (ascending) pending for a consumer, delivered now for the first time.
    pub fn deliver(&mut self, ids: &[StreamId], of: ConsumerRef, now_ms: u64) {
        let mut moved: SmallVec<[ConsumerRef; 8]> = SmallVec::new();
        self.pel.put_all(ids, of, now_ms, 1, |old| moved.push(old.consumer));
        self.consumer_mut(of).pending += ids.len() as u64;
        // Set back to before them, the group gives entries again that someone already had.
        for old in moved {
            self.consumer_mut(old).pending -= 1;
        }
    }

    /// Takes an entry off the list; answers whether it was on it.
    pub fn remove_pending(&mut self, id: StreamId) -> bool {
        let Some(old) = self.pel.remove(id) else { return false };
        self.consumer_mut(old.consumer).pending -= 1;
        true
    }

    /// Takes the pending list out, for freeing it bit by bit.
    pub fn take_pel(&mut self) -> Pel {
        std::mem::take(&mut self.pel)
    }

    /// Appends the group in its canonical form: equal groups, equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_id(out, self.last_delivered);
        put_int(out, self.entries_read.map_or(-1, |n| n as i64));
        // References are an accident of history; in the canonical form a consumer's number is its place by name.
        put_uint(out, self.by_name.len() as u64);
        let mut renumbered = Group { last_delivered: self.last_delivered, ..Group::default() };
        let mut in_order = true;
        for (place, (of, consumer)) in self.consumers().enumerate() {
            put_bytes(out, &consumer.name);
            put_uint(out, consumer.seen_ms);
            put_int(out, consumer.active_ms.map_or(-1, |ms| ms as i64));
            in_order &= of.0 as usize == place;
        }
        if in_order {
            self.pel.encode(out);
            end_sections(out);
            return;
        }
        let mut places = vec![ConsumerRef(u32::MAX); self.consumers.len()];
        for (place, (of, _)) in self.consumers().enumerate() {
            places[of.0 as usize] = ConsumerRef(place as u32);
        }
        for pending in self.pel.range(StreamId::MIN) {
            renumbered.pel.put(Pending { consumer: places[pending.consumer.0 as usize], ..pending });
        }
        renumbered.pel.encode(out);
        end_sections(out);
    }

    /// Reads what [`Group::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Group, Corrupt> {
        let what = "consumer group";
        let last_delivered = reader.id(what)?;
        let entries_read = u64::try_from(reader.int(what)?).ok();
        let mut group = Group::new(last_delivered, entries_read);
        for _ in 0..reader.count(what)? {
            let name = reader.bytes(what)?;
            let seen_ms = reader.uint(what)?;
            let active_ms = u64::try_from(reader.int(what)?).ok();
            if group.find(name).is_some() {
                return Err(Corrupt { what: "consumer named twice" });
            }
            let of = group.ensure_consumer(name, seen_ms);
            group.consumer_mut(of).active_ms = active_ms;
        }
        group.pel = Pel::decode(reader)?;
        for pending in group.pel.range(StreamId::MIN) {
            let consumer = group.consumers.get_mut(pending.consumer.0 as usize).and_then(Option::as_mut);
            consumer.ok_or(Corrupt { what: "pending entry of an unknown consumer" })?.pending += 1;
        }
        if reader.section(what)?.is_some() {
            return Err(Corrupt { what: "unknown part of a consumer group" });
        }
        Ok(group)
    }

    /// Every invariant.
    pub fn check(&self) -> Result<(), String> {
        self.pel.check()?;
        let mut counts = vec![0u64; self.consumers.len()];
        for pending in self.pel.range(StreamId::MIN) {
            let slot = counts.get_mut(pending.consumer.0 as usize);
            *slot.ok_or_else(|| format!("{} is pending for an unknown consumer", pending.id))? += 1;
        }
        for (at, count) in counts.into_iter().enumerate() {
            match &self.consumers[at] {
                Some(consumer) if consumer.pending != count => {
                    return Err(format!("consumer {at} counts {} pending, has {count}", consumer.pending));
                }
                Some(consumer) if self.by_name.get(&consumer.name).map(|of| of.0 as usize) != Some(at) => {
                    return Err(format!("consumer {at} is not found by its name"));
                }
                None if count > 0 => return Err(format!("removed consumer {at} has {count} pending")),
                _ => {}
            }
        }
        if self.by_name.len() != self.consumers.iter().flatten().count() {
            return Err("names and consumers differ in number".to_owned());
        }
        let is_free = |of: &ConsumerRef| self.consumers.get(of.0 as usize).is_some_and(Option::is_none);
        if self.by_name.len() + self.free.len() != self.consumers.len() || !self.free.iter().all(is_free) {
            return Err("the freed places are not the empty ones".to_owned());
        }
        Ok(())
    }
}
