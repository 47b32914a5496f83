//! A consumer group: its position in the stream, its pending entries and its consumers.
//!
//! Invariants (see `check`): every pending entry belongs to a living consumer or to nobody, and each consumer's `pending`
//! is the number of entries it has in the list. What nobody has was given back: *released*, and numbered in the order of
//! release, or *deferred* until a time, and listed by it. What was passed over and not given yet is `held` (see there); it
//! is not pending. Names are kept in byte order, because that is the order in which they show. A consumer that is removed
//! may leave work for [`Group::reap`]; no answer depends on it.

mod check;
mod codec;
mod options;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::id::StreamId;
use crate::state::entries::Entries;
use crate::state::held::{Held, NOTHING, key_of};
use crate::state::pending::{ConsumerRef, Pel, Pending, RELEASE_MAX};
use crate::state::timed::Timed;

pub use options::{GroupOptions, Totals};
pub use work::Work;

/// What a consumer that goes has pending is taken out at once up to so many entries.
const REAPED_AT_ONCE: u64 = 32;

/// With more consumers than this that are gone and have entries in the list, the next one does a slice for them.
const PASSING_MAX: usize = 16;

/// Keys of entries that are pending no more that are freed at once.
pub const KEYS_FREED_AT_ONCE: usize = 100;

/// Consumers and waiting entries of a removed group that are freed at once.
const FREED_AT_ONCE: usize = 200;

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
    /// What was set for it.
    options: GroupOptions,
    /// What was counted.
    pub totals: Totals,
    /// Entries given back that anyone may take.
    released: u64,
    /// The greatest number in the order of release so far, or since a restart the greatest in use.
    last_release: u64,
    /// Entries given back with a delay, and when they are released (Unix ms).
    deferred: Timed,
    /// Entries passed over and not given yet; `None` as long as there was none. Shared with a snapshot that is being written,
    /// else owned alone.
    held: Option<Arc<Held>>,
    /// Policy and ledger; `None` as long as nobody has spoken of work.
    work: Option<Box<Work>>,
    /// Between these IDs, both included, keys may be held by entries that are pending no more: see [`Group::free_keys`].
    /// Not part of snapshots, which hold what will have become of it.
    stale_keys: Option<(StreamId, StreamId)>,
    /// Where the last XAUTOCLAIM began that gave up before it found anything: see `decide::claim`. Not part of
    /// snapshots.
    pub scan_start: Option<StreamId>,
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

    /// What was set for it.
    pub fn options(&self) -> &GroupOptions {
        &self.options
    }

    /// Sets the options. A change of the key field looks at all that is pending or waits.
    pub fn set_options(&mut self, options: GroupOptions, entries: &Entries) {
        let field_changed = options.key_field != self.options.key_field;
        self.options = options;
        if !field_changed {
            return;
        }
        let held = Arc::make_mut(self.held.get_or_insert_default());
        held.forget_keys();
        self.stale_keys = None;
        let Some(field) = &self.options.key_field else { return };
        let key = |id: StreamId| entries.get(id).and_then(|entry| key_of(&entry, field));
        for pending in self.pel.range(StreamId::MIN) {
            if let Some(key) = key(pending.id) {
                held.pending_put(pending.id, key);
            }
        }
        // Without keys all that waits is ready.
        let waiting: Vec<StreamId> = held.ready().collect();
        waiting.into_iter().for_each(|id| held.wait(id, key(id)));
    }

    /// Entries that were passed over and not given yet, for reading.
    #[inline]
    pub fn held(&self) -> &Held {
        self.held.as_deref().unwrap_or(&NOTHING)
    }

    /// Holds an entry: until `due_ms`, or with 0 behind its key.
    pub fn hold(&mut self, id: StreamId, due_ms: u64, entries: &Entries) {
        if self.pel.contains(id) {
            return;
        }
        let held = Arc::make_mut(self.held.get_or_insert_default());
        match (due_ms, entries.get(id)) {
            (_, None) => {}
            (0, Some(entry)) => {
                let field = self.options.key_field.as_deref();
                held.wait(id, field.and_then(|field| key_of(&entry, field)));
            }
            (due_ms, Some(_)) => held.delay(id, due_ms),
        }
    }

    /// An entry is not held any more.
    #[inline]
    pub fn let_go(&mut self, id: StreamId) {
        if self.held().contains(id) {
            Arc::make_mut(self.held.get_or_insert_default()).remove(id);
        }
    }

    /// Entries below an ID are not held any more. What is left of them is to be freed.
    pub fn let_go_before(&mut self, bound: StreamId) -> Option<Pel> {
        let last = bound.prev().filter(|_| self.held().first().is_some_and(|first| first < bound))?;
        Some(Arc::make_mut(self.held.get_or_insert_default()).remove_range(StreamId::MIN, last))
    }

    /// Moves the position. What is held after it will be come upon again; what is left of it is to be freed.
    pub fn set_position(&mut self, position: StreamId, entries_read: Option<u64>) -> Option<Pel> {
        self.last_delivered = position;
        self.entries_read = entries_read;
        let from = position.next().filter(|_| self.held().last().is_some_and(|last| last > position))?;
        Some(Arc::make_mut(self.held.get_or_insert_default()).remove_range(from, StreamId::MAX))
    }

    /// Pending entries hold their keys from now on, if the group keeps the order of keys.
    pub fn hold_keys(&mut self, ids: impl Iterator<Item = StreamId>, entries: &Entries) {
        let Some(field) = &self.options.key_field else { return };
        for id in ids {
            if !self.held().knows_pending(id)
                && self.pel.contains(id)
                && let Some(key) = entries.get(id).and_then(|entry| key_of(&entry, field))
            {
                Arc::make_mut(self.held.get_or_insert_default()).pending_put(id, key);
            }
        }
    }

    /// Is the group done with the entry: at or past it, not pending, not held?
    #[inline]
    pub fn is_done(&self, id: StreamId) -> bool {
        self.last_delivered >= id && !self.pel.contains(id) && !self.held().contains(id)
    }

    /// Number of entries given back that anyone may take.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// Number of entries given back with a delay that is not over.
    pub fn deferred(&self) -> u64 {
        self.deferred.len()
    }

    /// Number of pending entries that a consumer has.
    pub fn in_flight(&self) -> u64 {
        self.pel.len() - self.released - self.deferred.len()
    }

    /// When the entry that a consumer has had for longest was delivered (Unix ms). A look into parts of the list only where
    /// something that nobody has stands before all that consumers have.
    pub fn oldest_owned_ms(&self, now_ms: u64) -> Option<u64> {
        let in_front = self.released > 0 || self.next_due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        if in_front {
            return self.pel.oldest_owned(now_ms, 1).first().map(|pending| pending.delivered_ms);
        }
        // Those that wait for their time stand in the future.
        self.pel.oldest_time().filter(|&ms| ms <= now_ms)
    }

    /// The next number in the order of release.
    pub fn next_release(&self) -> u64 {
        self.last_release + 1
    }

    /// When the next deferred entry is to be released (Unix ms).
    pub fn next_due_ms(&self) -> Option<u64> {
        self.deferred.first_ms()
    }

    /// When something happens to the group by time alone (Unix ms).
    pub fn next_timer_ms(&self) -> Option<u64> {
        let work = self.work.as_deref().and_then(Work::next_due_ms);
        self.next_due_ms().into_iter().chain(work).min()
    }

    /// The deferred entries whose time has come, earliest first, at most `limit`.
    pub fn due(&self, now_ms: u64, limit: usize) -> impl Iterator<Item = StreamId> {
        self.deferred.due(now_ms).map(|(_, id)| id).take(limit)
    }

    /// Memory that the group takes, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        let names = |consumer: &Consumer| 2 * size_of::<Arc<[u8]>>() + consumer.name.len();
        let consumers = self
            .consumers
            .iter()
            .map(|slot| size_of::<Option<Consumer>>() + size_of::<ConsumerRef>() + slot.as_ref().map_or(0, names));
        let deferred = self.deferred.memory_bytes();
        let held = self.held.as_deref().map_or(0, Held::memory_bytes);
        let work = self.work.as_deref().map_or(0, |work| size_of::<Work>() + work.ledger.memory_bytes());
        size_of::<Group>() + consumers.sum::<usize>() + deferred + self.pel.memory_bytes() + held + work
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
        let of = self.free_place();
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
        self.consumers[of.0 as usize] = None;
        if had == 0 {
            self.free.push(of);
        } else {
            self.pel.remove_consumer(of, had);
            self.free_keys_in(StreamId::MIN, StreamId::MAX);
            self.end_work(StreamId::MIN, StreamId::MAX);
            self.reap_soon(had);
        }
        Some(had)
    }

    /// Entries between two IDs may be pending no more: nobody works on them.
    fn end_work(&mut self, from: StreamId, to: StreamId) {
        if let Some(work) = &mut self.work {
            work.ledger.entries_gone(from, to, |id| self.pel.contains(id));
        }
    }

    /// Entries between two IDs may be pending no more: their keys are to be freed, the first of them now.
    fn free_keys_in(&mut self, from: StreamId, to: StreamId) {
        if self.options.key_field.is_none() {
            return;
        }
        let (least, most) = self.stale_keys.unwrap_or((from, to));
        self.stale_keys = Some((least.min(from), most.max(to)));
        self.free_keys(KEYS_FREED_AT_ONCE);
    }

    /// Are there keys of entries that are pending no more, for [`Group::free_keys`]? Until they are free, what waits
    /// behind them waits on.
    #[inline]
    pub fn frees_keys(&self) -> bool {
        self.stale_keys.is_some()
    }

    /// Looks at so many of the keys that may be held by entries that are pending no more, and frees them; answers whether
    /// there are more.
    pub fn free_keys(&mut self, most: usize) -> bool {
        if let Some((from, to)) = self.stale_keys {
            let pel = &self.pel;
            let next = Arc::make_mut(self.held.get_or_insert_default())
                .pending_gone_in(from, to, most, |id| !pel.contains(id));
            self.stale_keys = next.map(|next| (next, to));
        }
        self.frees_keys()
    }

    /// Consumers that are gone left something to do: a little is done at once, more waits for [`Group::reap`].
    fn reap_soon(&mut self, entries: u64) {
        let alone = self.pel.passing_count() == 1;
        if alone && entries <= REAPED_AT_ONCE {
            while self.reap() {}
        } else if self.pel.passing_count() > PASSING_MAX {
            self.reap();
        }
    }

    /// Does a slice of the work that consumers that are gone have left; answers whether there is more. Nothing that can be
    /// asked about the group changes by it.
    pub fn reap(&mut self) -> bool {
        let free = self.pel.reap();
        self.free.extend(free);
        self.pel.is_passing()
    }

    /// An entry is on the list: its holder counts it.
    fn note_put(&mut self, entry: &Pending) {
        if entry.consumer != ConsumerRef::NOBODY {
            self.consumer_mut(entry.consumer).pending += 1;
        } else if entry.is_deferred() {
            self.deferred.put(entry.id, entry.delivered_ms);
        } else {
            self.released += 1;
            self.last_release = self.last_release.max(entry.delivered_ms);
        }
    }

    /// An entry is off the list, or no more what it was.
    fn note_gone(&mut self, entry: &Pending) {
        if entry.consumer != ConsumerRef::NOBODY {
            self.consumer_mut(entry.consumer).pending -= 1;
        } else if entry.is_deferred() {
            self.deferred.remove(entry.id);
        } else {
            self.released -= 1;
        }
    }

    /// Makes an entry pending, or changes who holds it.
    pub fn put_pending(&mut self, pending: Pending) {
        self.let_go(pending.id);
        let old = self.pel.put(pending);
        if let Some(old) = old {
            // One that is delivered for the second time, or a later one; the first after XNACK SILENT is none.
            self.totals.redelivered += u64::from(old.deliveries > 0 && pending.deliveries > old.deliveries)
                * u64::from(pending.consumer != ConsumerRef::NOBODY);
            if old.consumer == pending.consumer && pending.consumer != ConsumerRef::NOBODY {
                return;
            }
            self.note_gone(&old);
        }
        self.note_put(&pending);
    }

    /// Makes entries (ascending) pending for a consumer, delivered now for the first time.
    pub fn deliver(&mut self, ids: &[StreamId], of: ConsumerRef, now_ms: u64) {
        let mut moved: SmallVec<[Pending; 8]> = SmallVec::new();
        self.pel.put_all(ids, of, now_ms, 1, |old| moved.push(old));
        self.consumer_mut(of).pending += ids.len() as u64;
        // Set back to before them, the group gives entries again that someone already had.
        for old in moved {
            self.totals.redelivered += u64::from(old.deliveries > 0);
            self.note_gone(&old);
        }
    }

    /// Gives an entry back: released as number `order` in the order of release, or with `due_ms` once that time has come.
    pub fn give_back(&mut self, id: StreamId, deliveries: u64, order: u64, due_ms: u64) {
        let delivered_ms = if due_ms == 0 { order } else { due_ms.max(RELEASE_MAX + 1) };
        self.put_pending(Pending { id, consumer: ConsumerRef::NOBODY, delivered_ms, deliveries });
    }

    /// Takes an entry off the list; answers whether it was on it.
    pub fn remove_pending(&mut self, id: StreamId) -> bool {
        let Some(old) = self.pel.remove(id) else { return false };
        if self.options.key_field.is_some() {
            Arc::make_mut(self.held.get_or_insert_default()).pending_gone(id);
        }
        if let Some(work) = &mut self.work {
            work.ledger.entry_gone(id);
        }
        self.note_gone(&old);
        true
    }

    /// Takes everything between two IDs, both included, off the list. Answers the part that was taken off, and those of it
    /// that were deferred, for freeing them bit by bit.
    pub fn remove_range(&mut self, from: StreamId, to: StreamId) -> [Pel; 2] {
        let consumers = &mut self.consumers;
        let mut unowned = 0;
        let removed = self.pel.remove_range(from, to, |of, count| {
            if of == ConsumerRef::NOBODY {
                unowned += u64::from(count);
            } else if let Some(consumer) = consumers.get_mut(of.0 as usize).and_then(Option::as_mut) {
                consumer.pending -= u64::from(count);
            }
        });
        let deferred = self.deferred.remove_range(from, to);
        self.released -= unowned - deferred.len();
        self.free_keys_in(from, to);
        self.end_work(from, to);
        [removed, deferred]
    }

    /// Gives back all that a consumer has, in ID order, as if each had not been delivered the last time. They share one
    /// number in the order of release, in which the ID decides between equals.
    pub fn give_back_all(&mut self, name: &[u8], order: u64) {
        let Some(of) = self.find(name) else { return };
        let had = self.consumer(of).pending;
        if had == 0 {
            return;
        }
        self.released += had;
        self.last_release = self.last_release.max(order);
        // Its number stays with the entries until each of them says that nobody has it; it gets a new one.
        let consumer = self.consumers[of.0 as usize].take().map(|consumer| Consumer { pending: 0, ..consumer });
        let new = self.free_place();
        if let Some(consumer) = &consumer {
            self.by_name.insert(consumer.name.clone(), new);
        }
        self.consumers[new.0 as usize] = consumer;
        self.pel.release_consumer(of, order);
        self.reap_soon(had);
    }

    fn free_place(&mut self) -> ConsumerRef {
        self.free.pop().unwrap_or_else(|| {
            self.consumers.push(None);
            ConsumerRef(self.consumers.len() as u32 - 1)
        })
    }

    /// Takes out the pending list, and those of what was deferred and delayed, for freeing them bit by bit.
    pub fn take_lists(&mut self) -> [Pel; 3] {
        // A snapshot that still shares what is held frees it itself.
        let held = self.held.as_mut().and_then(Arc::get_mut);
        [std::mem::take(&mut self.pel), self.deferred.take(), held.map(Held::take_delayed).unwrap_or_default()]
    }

    /// Frees a part of a group that was removed; answers whether there is more.
    pub fn free_some(&mut self) -> bool {
        for _ in 0..FREED_AT_ONCE {
            self.consumers.pop();
            self.by_name.pop_first();
        }
        // A snapshot that still shares what is held frees it itself.
        let holds = self.held.as_mut().and_then(Arc::get_mut).is_some_and(|held| held.free_some(FREED_AT_ONCE));
        let works = self.work.as_mut().is_some_and(|work| work.ledger.free_some(FREED_AT_ONCE));
        holds || works || !self.consumers.is_empty()
    }
}
