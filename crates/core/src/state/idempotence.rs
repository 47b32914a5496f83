//! Messages that a stream has already taken: for each producer the IDs of its last messages (iids) and the entries they
//! became, so that a message sent again is recognized.
//!
//! Invariants (see `check`): a producer has at least one iid and at most `maxsize`; its iids stand in the order in which
//! they were recorded, with times that never fall; `oldest` holds each producer once, by the time of its first iid. So
//! finding a message, recording one and forgetting the oldest are O(log n), and nothing is ever searched through.
//!
//! An iid whose time is over may still be here until a record removes it: [`Idempotence::known`] takes the time and
//! passes it over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_bytes, put_id, put_uint};

/// How long and how many iids are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdempotenceSettings {
    /// Seconds after which an iid is forgotten, 1 to 86400.
    pub duration_s: u32,
    /// Most iids of one producer, 1 to 10000; the oldest make room.
    pub maxsize: u32,
}

impl Default for IdempotenceSettings {
    /// What a stream has of which nothing else was ever recorded. Part of the format of records and snapshots: the
    /// settings that a server gives to new streams are recorded where they differ.
    fn default() -> Self {
        IdempotenceSettings { duration_s: 100, maxsize: 100 }
    }
}

impl IdempotenceSettings {
    /// Milliseconds for which an iid is known.
    pub fn duration_ms(&self) -> u64 {
        u64::from(self.duration_s) * 1000
    }
}

/// A message that was taken.
#[derive(Clone, Debug)]
struct Known {
    recorded_ms: u64,
    id: StreamId,
    iid: Arc<[u8]>,
}

/// The iids of one producer.
#[derive(Clone, Debug, Default)]
struct Producer {
    /// In the order of recording.
    order: VecDeque<Known>,
    /// How many were recorded and forgotten before the first of `order`.
    gone: u64,
    /// Place of each iid, counted from the first that was ever recorded.
    places: BTreeMap<Arc<[u8]>, u64>,
    /// Bytes of the iids.
    iid_bytes: usize,
}

impl Producer {
    fn get(&self, iid: &[u8]) -> Option<&Known> {
        let place = self.places.get(iid)?;
        self.order.get((place - self.gone) as usize)
    }

    fn push(&mut self, known: Known) {
        self.iid_bytes += known.iid.len();
        self.places.insert(known.iid.clone(), self.gone + self.order.len() as u64);
        self.order.push_back(known);
    }

    fn pop(&mut self) {
        if let Some(known) = self.order.pop_front() {
            self.iid_bytes -= known.iid.len();
            self.places.remove(&known.iid);
            self.gone += 1;
        }
    }

    fn first_ms(&self) -> Option<u64> {
        self.order.front().map(|known| known.recorded_ms)
    }

    fn memory_bytes(&self) -> usize {
        // An iid lies behind a count of its holders, and has a place in the queue and one in the index.
        let each = size_of::<Known>() + 2 * size_of::<(Arc<[u8]>, u64)>() + 2 * size_of::<usize>();
        size_of::<Producer>() + self.iid_bytes + self.order.len() * each
    }
}

/// What was forgotten as a whole, to be freed bit by bit.
#[derive(Debug, Default)]
pub struct Forgotten(BTreeMap<Arc<[u8]>, Arc<Producer>>);

impl Forgotten {
    /// Frees one producer; answers whether there are more.
    pub fn free_one(&mut self) -> bool {
        self.0.pop_first();
        !self.0.is_empty()
    }

    /// Nothing to free?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The messages that a stream remembers.
#[derive(Clone, Debug, Default)]
pub struct Idempotence {
    settings: IdempotenceSettings,
    /// Messages recorded over the life of the stream.
    pub added: u64,
    /// Duplicates recognized over the life of the stream.
    pub duplicates: u64,
    producers: BTreeMap<Arc<[u8]>, Arc<Producer>>,
    oldest: BTreeSet<(u64, Arc<[u8]>)>,
    /// Number of iids.
    len: u64,
}

impl Idempotence {
    /// How long and how many.
    pub fn settings(&self) -> IdempotenceSettings {
        self.settings
    }

    /// Changes the settings, which forgets every iid; the totals stay.
    pub fn reset(&mut self, settings: IdempotenceSettings) -> Forgotten {
        self.settings = settings;
        self.oldest.clear();
        self.len = 0;
        Forgotten(std::mem::take(&mut self.producers))
    }

    /// Takes everything out, for freeing it.
    pub fn take(&mut self) -> Forgotten {
        self.reset(self.settings)
    }

    /// Producers with at least one iid.
    pub fn producer_count(&self) -> usize {
        self.producers.len()
    }

    /// Iids of all producers.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory in bytes, without the allocator's share. Looks at every producer.
    pub fn memory_bytes(&self) -> usize {
        let each = |(pid, producer): (&Arc<[u8]>, &Arc<Producer>)| {
            let names = pid.len() + 2 * size_of::<usize>() + 2 * size_of::<(u64, Arc<[u8]>)>();
            names + producer.memory_bytes()
        };
        size_of::<Idempotence>() + self.producers.iter().map(each).sum::<usize>()
    }

    /// The entry that this message became, unless it is unknown or its time is over.
    pub fn known(&self, pid: &[u8], iid: &[u8], now_ms: u64) -> Option<StreamId> {
        let known = self.producers.get(pid)?.get(iid)?;
        (known.recorded_ms.saturating_add(self.settings.duration_ms()) > now_ms).then_some(known.id)
    }

    /// The time that an iid recorded now gets: not before that of the producer's newest.
    pub fn recording_ms(&self, pid: &[u8], now_ms: u64) -> u64 {
        let newest = self.producers.get(pid).and_then(|producer| producer.order.back());
        newest.map_or(now_ms, |known| known.recorded_ms.max(now_ms))
    }

    /// Is the time of any iid of this producer over?
    pub fn is_due(&self, pid: &[u8], now_ms: u64) -> bool {
        let first = self.producers.get(pid).and_then(|producer| producer.first_ms());
        first.is_some_and(|first_ms| first_ms.saturating_add(self.settings.duration_ms()) <= now_ms)
    }

    /// When the next iid is to be forgotten, and whose it is.
    pub fn next_due(&self) -> Option<(u64, &Arc<[u8]>)> {
        let (first_ms, pid) = self.oldest.first()?;
        Some((first_ms.saturating_add(self.settings.duration_ms()), pid))
    }

    /// Records a message. One that is known stays what it is. Times do not fall.
    pub fn remember(&mut self, pid: &[u8], iid: &[u8], id: StreamId, recorded_ms: u64) {
        let recorded_ms = self.recording_ms(pid, recorded_ms);
        let known = Known { recorded_ms, id, iid: iid.into() };
        let Some((pid, producer)) = self.producers.get_key_value(pid) else {
            let pid: Arc<[u8]> = pid.into();
            let mut producer = Producer::default();
            producer.push(known);
            self.oldest.insert((recorded_ms, pid.clone()));
            self.producers.insert(pid, Arc::new(producer));
            self.len += 1;
            return;
        };
        if producer.places.contains_key(iid) {
            return;
        }
        let (pid, first_ms) = (pid.clone(), producer.first_ms());
        let Some(producer) = self.producers.get_mut(&pid).map(Arc::make_mut) else { return };
        producer.push(known);
        self.len += 1;
        while producer.order.len() > self.settings.maxsize as usize {
            producer.pop();
            self.len -= 1;
        }
        let now_first_ms = producer.first_ms();
        self.move_oldest(pid, first_ms, now_first_ms);
    }

    fn move_oldest(&mut self, pid: Arc<[u8]>, from_ms: Option<u64>, to_ms: Option<u64>) {
        if from_ms == to_ms {
            return;
        }
        if let Some(from_ms) = from_ms {
            self.oldest.remove(&(from_ms, pid.clone()));
        }
        if let Some(to_ms) = to_ms {
            self.oldest.insert((to_ms, pid));
        }
    }

    /// Forgets the iids of a producer that were recorded up to a time; answers how many.
    pub fn forget(&mut self, pid: &[u8], until_ms: u64) -> u64 {
        let Some((pid, producer)) = self.producers.get_key_value(pid) else { return 0 };
        let (pid, first_ms) = (pid.clone(), producer.first_ms());
        if first_ms.is_some_and(|first_ms| first_ms > until_ms) {
            return 0;
        }
        let Some(producer) = self.producers.get_mut(&pid).map(Arc::make_mut) else { return 0 };
        let before = producer.order.len();
        while producer.first_ms().is_some_and(|first_ms| first_ms <= until_ms) {
            producer.pop();
        }
        let (left, now_first_ms) = (producer.order.len(), producer.first_ms());
        if left == 0 {
            self.producers.remove(&pid);
        }
        self.move_oldest(pid, first_ms, now_first_ms);
        self.len -= (before - left) as u64;
        (before - left) as u64
    }

    /// Appends everything in its canonical form; nothing if nothing differs from a new stream's.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if self.settings == IdempotenceSettings::default() && self.added == 0 && self.duplicates == 0 && self.len == 0 {
            return;
        }
        put_uint(out, u64::from(self.settings.duration_s));
        put_uint(out, u64::from(self.settings.maxsize));
        put_uint(out, self.added);
        put_uint(out, self.duplicates);
        put_uint(out, self.producers.len() as u64);
        for (pid, producer) in &self.producers {
            put_bytes(out, pid);
            put_uint(out, producer.order.len() as u64);
            let mut last_ms = 0;
            for known in &producer.order {
                put_uint(out, known.recorded_ms - last_ms);
                put_id(out, known.id);
                put_bytes(out, &known.iid);
                last_ms = known.recorded_ms;
            }
        }
    }

    /// Reads what [`Idempotence::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Idempotence, Corrupt> {
        const WHAT: &str = "remembered messages";
        let corrupt = Corrupt { what: WHAT };
        let small = |value: u64| u32::try_from(value).ok().filter(|&value| value > 0).ok_or(corrupt);
        let settings =
            IdempotenceSettings { duration_s: small(reader.uint(WHAT)?)?, maxsize: small(reader.uint(WHAT)?)? };
        let count = |value: u64| Some(value).filter(|&value| value <= i64::MAX as u64).ok_or(corrupt);
        let mut all = Idempotence {
            settings,
            added: count(reader.uint(WHAT)?)?,
            duplicates: count(reader.uint(WHAT)?)?,
            ..Idempotence::default()
        };
        for _ in 0..reader.count(WHAT)? {
            let pid = reader.bytes(WHAT)?;
            let count = reader.count(WHAT)?;
            if count == 0 || count > settings.maxsize as usize || all.producers.contains_key(pid) {
                return Err(corrupt);
            }
            let (len, mut recorded_ms) = (all.len, 0u64);
            for _ in 0..count {
                recorded_ms = recorded_ms.checked_add(reader.uint(WHAT)?).ok_or(corrupt)?;
                let id = reader.id(WHAT)?;
                all.remember(pid, reader.bytes(WHAT)?, id, recorded_ms);
            }
            if all.len - len != count as u64 {
                return Err(corrupt);
            }
        }
        Ok(all)
    }

    /// Every invariant.
    pub fn check(&self) -> Result<(), String> {
        let mut len = 0;
        for (pid, producer) in &self.producers {
            let fault = |what: &str| Err(format!("producer {}: {what}", pid.escape_ascii()));
            let count = producer.order.len();
            if count == 0 || count > self.settings.maxsize as usize || count != producer.places.len() {
                return fault(&format!("{count} messages, {} places", producer.places.len()));
            }
            if !producer.order.iter().is_sorted_by_key(|known| known.recorded_ms) {
                return fault("times fall");
            }
            for (at, known) in producer.order.iter().enumerate() {
                if producer.places.get(&known.iid) != Some(&(producer.gone + at as u64)) {
                    return fault(&format!("message {} is not found", known.iid.escape_ascii()));
                }
            }
            if producer.iid_bytes != producer.order.iter().map(|known| known.iid.len()).sum::<usize>() {
                return fault("bytes of its messages");
            }
            if !producer.first_ms().is_some_and(|ms| self.oldest.contains(&(ms, pid.clone()))) {
                return fault("not in the index by time");
            }
            len += count as u64;
        }
        if self.oldest.len() != self.producers.len() || len != self.len {
            return Err(format!("{len} messages, counted {}; {} in the index", self.len, self.oldest.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(duration_s: u32, maxsize: u32) -> Idempotence {
        let mut all = Idempotence::default();
        all.reset(IdempotenceSettings { duration_s, maxsize });
        all
    }

    fn id(ms: u64) -> StreamId {
        StreamId::new(ms, 0)
    }

    #[test]
    fn an_iid_is_known_for_its_time_and_not_longer() {
        let mut all = with(2, 10);
        all.remember(b"p", b"i", id(1), 5000);
        assert_eq!(all.known(b"p", b"i", 6999), Some(id(1)));
        assert_eq!(all.known(b"p", b"i", 7000), None, "before anything has removed it");
        assert_eq!(all.known(b"q", b"i", 5000), None);
        assert_eq!(all.next_due().unwrap().0, 7000);
        assert!(all.is_due(b"p", 7000) && !all.is_due(b"p", 6999));
        assert_eq!(all.forget(b"p", 4999), 0);
        assert_eq!(all.forget(b"p", 5000), 1);
        assert!(all.is_empty() && all.producer_count() == 0 && all.next_due().is_none());
        all.check().unwrap();
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut all = with(100, 3);
        for n in 0..10u8 {
            all.remember(b"p", &[n], id(u64::from(n) + 1), 100 + u64::from(n));
            all.check().unwrap();
        }
        assert_eq!((all.len(), all.producer_count()), (3, 1));
        assert_eq!(all.known(b"p", &[6], 200), None);
        assert_eq!(all.known(b"p", &[7], 200), Some(id(8)));
        assert_eq!(all.next_due().unwrap().0, 107 + 100_000);
        // The first ID of a message stays.
        all.remember(b"p", &[7], id(99), 300);
        assert_eq!(all.known(b"p", &[7], 300), Some(id(8)));
        assert_eq!(all.recording_ms(b"p", 5), 109, "times do not fall");
    }

    #[test]
    fn bytes_and_back() {
        let mut all = with(60, 4);
        let mut none = Vec::new();
        Idempotence::default().encode(&mut none);
        assert!(none.is_empty(), "what is not used writes nothing");
        for n in 0..12u8 {
            all.remember(&[n % 3], &[n, n], id(u64::from(n)), 1000 + u64::from(n));
        }
        all.forget(&[1], 1001);
        (all.added, all.duplicates) = (12, 7);
        let mut bytes = Vec::new();
        all.encode(&mut bytes);
        let mut reader = Reader::new(&bytes);
        let back = Idempotence::decode(&mut reader).unwrap();
        assert!(reader.is_empty());
        back.check().unwrap();
        let mut again = Vec::new();
        back.encode(&mut again);
        assert_eq!(bytes, again);
        assert_eq!(back.known(&[2], &[5, 5], 1005), Some(id(5)));
        for cut in 0..bytes.len() {
            assert!(Idempotence::decode(&mut Reader::new(&bytes[..cut])).is_err(), "cut at {cut}");
        }
    }
}
