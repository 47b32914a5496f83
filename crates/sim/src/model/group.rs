//! A consumer group: who has what, what was given back, what was passed over.

use std::collections::BTreeMap;

use super::stream::{Id, Stream};

/// Who has a pending entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Holder {
    /// A consumer.
    Consumer(Vec<u8>),
    /// Nobody, since it was given back as number so many.
    Nobody(u64),
    /// Nobody, and nobody can have it before this time (Unix ms).
    Deferred(u64),
}

/// A pending entry.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Who has it.
    pub holder: Holder,
    /// Unix ms of its last delivery; 0 if nobody has it.
    pub time: u64,
    /// How often it was delivered.
    pub count: u64,
    /// The key that it holds, in a group that orders by a field.
    pub key: Option<Vec<u8>>,
}

impl Pending {
    /// Has this consumer it?
    pub fn is_of(&self, name: &[u8]) -> bool {
        matches!(&self.holder, Holder::Consumer(of) if of == name)
    }

    /// Who has it, as replies show it.
    pub fn owner(&self) -> &[u8] {
        match &self.holder {
            Holder::Consumer(name) => name,
            _ => b"",
        }
    }

    /// How long it was not delivered, in ms; −1 if nobody has it. A time in the future is now.
    pub fn idle(&self, now: u64) -> i64 {
        match self.holder {
            Holder::Consumer(_) => now.saturating_sub(self.time) as i64,
            _ => -1,
        }
    }

    /// May it be taken by someone who takes what has been idle for so long?
    pub fn may_go(&self, now: u64, min_idle: u64) -> bool {
        match self.holder {
            Holder::Consumer(_) => now.saturating_sub(self.time) >= min_idle,
            Holder::Nobody(_) => true,
            Holder::Deferred(_) => false,
        }
    }
}

/// Why an entry that was passed over has not been given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Not before this time (Unix ms).
    Until(u64),
    /// Not before those of its key.
    Behind,
}

/// A consumer.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// Unix ms of its last attempt.
    pub seen: u64,
    /// Unix ms when it last got entries.
    pub active: Option<u64>,
}

/// A consumer group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Last delivered ID.
    pub position: Id,
    /// Entries read, if known.
    pub read: Option<i64>,
    /// Pending entries.
    pub pel: BTreeMap<Id, Pending>,
    /// Passed over and not given yet.
    pub held: BTreeMap<Id, Held>,
    /// Consumers.
    pub consumers: BTreeMap<Vec<u8>, Consumer>,
    /// MAXPENDING; 0 = none.
    pub max_pending: usize,
    /// MAXPENDING-CONSUMER; 0 = none.
    pub max_pending_consumer: usize,
    /// KEYFIELD.
    pub key_field: Option<Vec<u8>>,
    /// Entries acknowledged.
    pub acked: i64,
    /// Deliveries of what had been delivered before.
    pub redelivered: i64,
    /// How many entries were given back.
    pub releases: u64,
    /// The position was set by hand, which wakes nobody: there may be entries of which those who wait do not know.
    pub moved: bool,
    /// Where the last XAUTOCLAIM began that found nothing in reach.
    pub scan_start: Option<Id>,
}

impl Group {
    /// Notes an attempt of a consumer, which is made if it is new.
    pub fn seen(&mut self, name: &[u8], now: u64, active: bool) {
        let consumer = self.consumers.entry(name.to_vec()).or_insert(Consumer { seen: now, active: None });
        consumer.seen = now;
        if active {
            consumer.active = Some(now);
        }
    }

    /// How many entries a consumer has pending.
    pub fn pending_of(&self, name: &[u8]) -> usize {
        self.pel.values().filter(|pending| pending.is_of(name)).count()
    }

    /// How many entries consumers have pending.
    pub fn in_flight(&self) -> usize {
        self.pel.values().filter(|pending| matches!(pending.holder, Holder::Consumer(_))).count()
    }

    /// How many entries were given back and can be taken.
    pub fn released(&self) -> usize {
        self.pel.values().filter(|pending| matches!(pending.holder, Holder::Nobody(_))).count()
    }

    /// How many entries were given back and cannot be taken yet.
    pub fn deferred(&self) -> usize {
        self.pel.len() - self.in_flight() - self.released()
    }

    /// Room for more in flight: in the group, and with a consumer.
    pub fn room(&self, consumer: &[u8]) -> (usize, usize) {
        let left = |bound: usize, used: usize| if bound == 0 { usize::MAX } else { bound.saturating_sub(used) };
        (left(self.max_pending, self.in_flight()), left(self.max_pending_consumer, self.pending_of(consumer)))
    }

    /// What someone who takes what has been idle for so long gets, in this order: what was given back, in the order of
    /// giving back, then what has been idle longest.
    pub fn claimable(&self, now: u64, min_idle: u64) -> Vec<Id> {
        let mut ids: Vec<(bool, u64, Id)> = self
            .pel
            .iter()
            .filter(|(_, pending)| pending.may_go(now, min_idle))
            .map(|(id, pending)| match pending.holder {
                Holder::Nobody(order) => (false, order, *id),
                _ => (true, pending.time, *id),
            })
            .collect();
        ids.sort_unstable();
        ids.into_iter().map(|(.., id)| id).collect()
    }

    /// The next number in the order of giving back.
    pub fn next_release(&mut self) -> u64 {
        self.releases += 1;
        self.releases
    }

    /// When the next deferred entry can be taken.
    pub fn next_deferred(&self) -> Option<u64> {
        let due = |pending: &Pending| if let Holder::Deferred(due) = pending.holder { Some(due) } else { None };
        self.pel.values().filter_map(due).min()
    }

    /// When the next delayed entry that was passed over can be given.
    pub fn next_held(&self) -> Option<u64> {
        let due = |held: &Held| if let Held::Until(due) = held { Some(*due) } else { None };
        self.held.values().filter_map(due).min()
    }
}

/// The count after one more delivery; it stays a number that replies can show.
pub fn once_more(count: u64) -> u64 {
    (count + 1).min(i64::MAX as u64)
}

impl Stream {
    /// Makes an entry pending in a group, or changes who has it.
    fn put(&mut self, name: &[u8], id: Id, mut pending: Pending) -> Option<Pending> {
        let mut group = self.groups.remove(name).expect("looked at before");
        group.held.remove(&id);
        let old = group.pel.remove(&id);
        // The key that an entry holds is that with which it became pending.
        pending.key = old.as_ref().and_then(|old| old.key.clone()).or_else(|| self.key_of(&group, id));
        group.pel.insert(id, pending);
        self.groups.insert(name.to_vec(), group);
        old
    }

    fn group_named(&mut self, name: &[u8]) -> &mut Group {
        self.groups.get_mut(name).expect("looked at before")
    }

    /// `>` gives an entry to a consumer.
    pub fn deliver(&mut self, name: &[u8], id: Id, consumer: &[u8], now: u64) {
        let holder = Holder::Consumer(consumer.to_vec());
        let old = self.put(name, id, Pending { holder, time: now, count: 1, key: None });
        if old.is_some_and(|old| old.count > 0) {
            self.group_named(name).redelivered += 1;
        }
    }

    /// A consumer takes an entry over, which has been delivered so often then.
    pub fn claim(&mut self, name: &[u8], id: Id, consumer: &[u8], time: u64, count: u64) {
        let holder = Holder::Consumer(consumer.to_vec());
        let old = self.put(name, id, Pending { holder, time, count, key: None });
        if old.is_some_and(|old| old.count > 0 && count > old.count) {
            self.group_named(name).redelivered += 1;
        }
    }

    /// An entry is given back, at once or when `due` has come.
    pub fn give_back(&mut self, name: &[u8], id: Id, count: u64, due: Option<u64>) {
        let holder = match due {
            Some(due) => Holder::Deferred(due),
            None => Holder::Nobody(self.group_named(name).next_release()),
        };
        self.put(name, id, Pending { holder, time: 0, count, key: None });
    }

    /// What was given back with a delay that is over can be taken, in the order of the times. Answers whether there was any.
    pub fn end_deferrals(&mut self, now: u64) -> bool {
        let mut any = false;
        for name in self.groups.keys().cloned().collect::<Vec<_>>() {
            let mut over: Vec<(u64, Id)> = Vec::new();
            for (id, pending) in &self.groups[&name].pel {
                match pending.holder {
                    Holder::Deferred(due) if due <= now => over.push((due, *id)),
                    _ => {}
                }
            }
            over.sort_unstable();
            any |= !over.is_empty();
            for (_, id) in over {
                let count = self.groups[&name].pel[&id].count;
                self.give_back(&name, id, count, None);
            }
        }
        any
    }
}
