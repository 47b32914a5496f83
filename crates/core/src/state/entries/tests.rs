//! The entries against a sorted map, their clones, their encoding and damage to it; replies byte for byte. Deterministic:
//! every random run has its own seed. Times are the business of the example `entries_cost`.

use std::collections::BTreeMap;

use super::*;
use crate::resp::encode::{bulk, bulk_id};
use crate::state::codec::Reader;
use crate::test_support::Random;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;
type Model = BTreeMap<StreamId, Pairs>;

const REDIS: NodeLimits = NodeLimits { max_entries: 100, max_bytes: 4096 };

fn refs(pairs: &Pairs) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    pairs.iter().map(|(name, value)| (&name[..], &value[..]))
}

fn pairs(text: &[(&str, &str)]) -> Pairs {
    text.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn id(ms: u64) -> StreamId {
    StreamId::new(ms, 0)
}

fn filled(ids: impl Iterator<Item = u64>, limits: NodeLimits) -> Entries {
    let mut entries = Entries::default();
    for ms in ids {
        entries.push(id(ms), refs(&pairs(&[("field", "a value")])), limits);
    }
    entries
}

fn ids<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Vec<StreamId> {
    entries.map(|entry| entry.id).collect()
}

fn encoded(entries: &Entries) -> Vec<u8> {
    let mut out = Vec::new();
    entries.encode(&mut out);
    out
}

fn decoded(bytes: &[u8]) -> Entries {
    let mut reader = Reader::new(bytes);
    let entries = Entries::decode(&mut reader).expect("what encode wrote");
    assert!(reader.is_empty());
    entries
}

fn layout(entries: &Entries) -> Vec<usize> {
    entries.nodes().map(|node| node.live).collect()
}

/// The reply for an entry, made the slow and obvious way.
fn reply(id: StreamId, pairs: &Pairs) -> Vec<u8> {
    let mut out = b"*2\r\n".to_vec();
    bulk_id(&mut out, id);
    out.extend(format!("*{}\r\n", 2 * pairs.len()).bytes());
    for (name, value) in pairs {
        bulk(&mut out, name);
        bulk(&mut out, value);
    }
    out
}

#[test]
fn an_entry_comes_back_and_is_written_as_redis_does() {
    let mut entries = Entries::default();
    let given = pairs(&[("name", "ann"), ("", ""), ("name", "again")]);
    entries.push(StreamId::new(1526919030474, 55), refs(&given), REDIS);
    let entry = entries.get(StreamId::new(1526919030474, 55)).unwrap();
    assert_eq!(entry.field_count(), 3);
    assert!(entry.fields().eq(refs(&given)));
    let mut out = b"before".to_vec();
    entry.write(&mut out);
    let fields = "*6\r\n$4\r\nname\r\n$3\r\nann\r\n$0\r\n\r\n$0\r\n\r\n$4\r\nname\r\n$5\r\nagain\r\n";
    assert_eq!(out, format!("before*2\r\n$16\r\n1526919030474-55\r\n{fields}").into_bytes());
    out.clear();
    entry.write_fields(&mut out);
    assert_eq!(out, fields.as_bytes());
}

#[test]
fn lengths_of_every_size_are_written_right() {
    for len in [0, 1, 9, 10, 99, 100, 999, 1000, 1001, 9999, 10_000, 123_456] {
        let mut entries = Entries::default();
        let given = vec![(vec![b'n'; len % 1003], vec![b'v'; len])];
        entries.push(StreamId::MAX, refs(&given), REDIS);
        let mut out = Vec::new();
        entries.get(StreamId::MAX).unwrap().write(&mut out);
        assert!(out == reply(StreamId::MAX, &given), "length {len}");
    }
}

#[test]
fn nodes_take_100_entries_or_4096_bytes() {
    assert_eq!(layout(&filled(1..251, REDIS)), [100, 100, 50]);
    assert_eq!(layout(&filled(1..251, NodeLimits { max_entries: 10, max_bytes: 0 })), [10; 25]);
    let mut entries = Entries::default();
    for ms in 1..=6 {
        let value = "v".repeat(if ms == 3 { 9000 } else { 1200 });
        entries.push(id(ms), refs(&pairs(&[("field", &value)])), REDIS);
    }
    assert_eq!(layout(&entries), [2, 1, 3]);
    let mut entries = Entries::default();
    for ms in 1..=300 {
        entries.push(
            id(ms),
            refs(&vec![(b"f".to_vec(), vec![b'v'; 1000])]),
            NodeLimits { max_entries: 0, max_bytes: 0 },
        );
    }
    assert_eq!(layout(&entries), [261, 39]);
    let no_bounds = layout(&filled(1..25_000, NodeLimits { max_entries: 0, max_bytes: 0 }));
    assert_eq!(no_bounds, [10_000, 10_000, 4_999]);
}

#[test]
fn deleted_entries_count_until_the_node_is_full_and_an_empty_one_begins_anew() {
    let mut entries = filled(1..61, REDIS);
    for ms in 1..60 {
        assert!(entries.remove(id(ms), REDIS));
        assert!(!entries.remove(id(ms), REDIS));
    }
    for ms in 61..151 {
        entries.push(id(ms), refs(&pairs(&[("field", "v")])), REDIS);
    }
    assert_eq!(layout(&entries), [41, 50]);
    assert_eq!(entries.first_id(), Some(id(60)));
    for ms in 101..151 {
        assert!(entries.remove(id(ms), REDIS));
    }
    assert_eq!((entries.node_count(), entries.last_id()), (1, Some(id(100))));
    for ms in 151..252 {
        entries.push(id(ms), refs(&pairs(&[("field", "v")])), REDIS);
    }
    assert_eq!(layout(&entries), [41, 100, 1]);
    entries.check().unwrap();
}

#[test]
fn names_that_come_too_late_for_the_table_are_kept_all_the_same() {
    let mut entries = Entries::default();
    for ms in 0..500 {
        let name = format!("field {}", ms % 7);
        entries.push(id(ms), refs(&pairs(&[(&name, "v"), ("all", "w")])), REDIS);
    }
    entries.check().unwrap();
    for entry in entries.range(StreamId::MIN, StreamId::MAX) {
        let name = format!("field {}", entry.id.ms % 7);
        assert!(entry.fields().eq(refs(&pairs(&[(&name, "v"), ("all", "w")]))));
    }
    assert_eq!(encoded(&decoded(&encoded(&entries))), encoded(&entries));
}

/// IDs that share their milliseconds, and IDs so far apart that the keys beside the marks cannot tell them apart.
#[test]
fn entries_with_equal_keys_are_found() {
    for step in [StreamId::new(0, 2), StreamId::new(0, 1 << 50), StreamId::new(1 << 33, 0), StreamId::new(1 << 50, 7)] {
        let nth = |n: u64| StreamId::new(5 + n * step.ms, 1 + n * step.seq);
        let mut entries = Entries::default();
        for n in 0..1000 {
            entries.push(nth(n), refs(&pairs(&[("field", "value")])), REDIS);
        }
        entries.check().unwrap();
        for n in 0..1000 {
            assert!(entries.contains(nth(n)) && !entries.contains(StreamId::new(nth(n).ms, nth(n).seq - 1)));
            assert_eq!(entries.count_after(nth(n)), 999 - n);
            assert_eq!(entries.nth(n), Some(nth(n)));
        }
        for n in 0..1000 {
            assert!(entries.remove(nth(n * 7 % 1000), REDIS));
        }
        assert!(entries.is_empty() && entries.node_count() == 0);
    }
}

/// Looking for the last entry of a range must not walk to the front of the stream.
#[test]
fn walking_back_ends_where_the_range_begins() {
    let entries = filled(1..10_001, REDIS);
    let mut range = entries.range_rev(id(9001), id(9005));
    assert_eq!(ids(range.by_ref()).len(), 5);
    assert!(range.is_at_start());
}

#[test]
fn trimming_a_large_stream_hands_the_spans_out() {
    let mut entries = filled(1..200_001, REDIS);
    assert_eq!(entries.node_count(), 2000);
    let bound = entries.nth(190_050).unwrap();
    assert_eq!(bound, id(190_051));
    let (removed, mut detached) = entries.trim_before(bound);
    assert_eq!((removed, entries.len(), entries.node_count()), (190_050, 9_950, 100));
    entries.check().unwrap();
    let blocks: usize = detached.iter().map(|span| span.block_count()).sum();
    assert_eq!((detached.len(), blocks), (8, 1900));
    assert!(detached.drain(..).all(|span| Arc::into_inner(span).is_some()), "nothing else holds them");
    let mut rest = 0;
    while let Some(span) = entries.pop_span() {
        rest += span.block_count();
    }
    // The hundredth of them is the open block.
    assert_eq!((rest, entries.len()), (99, 100));
    entries.check().unwrap();
}

#[test]
fn what_is_gone_leaves_no_trace_in_sealed_blocks() {
    let given = |ms: u64| pairs(&[(["a", "b", "c", "d", "e", "f"][ms as usize % 6], "v")]);
    let mut whole = Entries::default();
    for ms in 1..301 {
        whole.push(id(ms), refs(&given(ms)), NodeLimits { max_entries: 60, max_bytes: 0 });
    }
    // The same blocks, made of the surviving entries alone.
    let survives = |ms: u64| ms % 6 > 1;
    let mut sparse = Entries::default();
    for ms in (1..301).filter(|&ms| survives(ms)) {
        sparse.push(id(ms), refs(&given(ms)), NodeLimits { max_entries: 40, max_bytes: 0 });
    }
    for ms in (1..301).filter(|&ms| !survives(ms)) {
        assert!(whole.remove(id(ms), REDIS));
    }
    assert_eq!(layout(&whole), layout(&sparse));
    let cut = |entries: &Entries| {
        let mut entries = entries.clone();
        // A fresh open block, so that only sealed ones are compared.
        for ms in 241..301 {
            entries.remove(id(ms), REDIS);
        }
        encoded(&entries)
    };
    assert_eq!(cut(&whole), cut(&sparse));
}

impl Random {
    fn bytes(&mut self, max: u64) -> Vec<u8> {
        (0..self.below(max + 1)).map(|_| self.next() as u8).collect()
    }

    fn pairs(&mut self) -> Pairs {
        let len = match self.below(60) {
            0 => 700,
            1 => 150,
            _ => 20,
        };
        match self.below(8) {
            0 => (0..=self.below(4)).map(|_| (self.bytes(3), self.bytes(len))).collect(),
            1 => vec![(Vec::new(), Vec::new())],
            2 => vec![(b"x".to_vec(), self.bytes(len)), (b"x".to_vec(), self.bytes(len))],
            3 | 4 => [&b"name"[..], b"payload", b"ts"].iter().map(|name| (name.to_vec(), self.bytes(len))).collect(),
            _ => vec![(b"field".to_vec(), self.bytes(len))],
        }
    }

    /// An ID after `last`, near or far.
    fn id_after(&mut self, last: StreamId) -> StreamId {
        let StreamId { ms, seq } = last;
        match self.below(12) {
            0..4 if seq < u64::MAX => StreamId::new(ms, seq + 1),
            4 if seq < u64::MAX => StreamId::new(ms, seq + 1 + self.below((u64::MAX - seq).min(20))),
            5 if seq < u64::MAX => StreamId::new(ms, seq + 1 + self.below(u64::MAX - seq)),
            6 if self.below(10) == 0 => StreamId::new(ms, u64::MAX).max(StreamId::new(ms + 1, 0)),
            7 => StreamId::new(ms + 1 + self.below(20), self.below(3)),
            8 => StreamId::new(ms + 1 + self.below(1 << 40), self.next()),
            _ => StreamId::new(ms + 1 + self.below(9), 0),
        }
    }

    /// An ID in the model, beside one, or at an end.
    fn id_near(&mut self, model: &Model) -> StreamId {
        let near = match model.len() {
            0 => StreamId::new(self.below(100), 0),
            len => *model.keys().nth(self.below(len as u64) as usize).unwrap(),
        };
        match self.below(12) {
            0 => near.next().unwrap_or(near),
            1 => near.prev().unwrap_or(near),
            2 => StreamId::new(near.ms, 0),
            3 if self.below(4) == 0 => StreamId::MIN,
            4 if self.below(4) == 0 => StreamId::MAX,
            _ => near,
        }
    }
}

fn compare(entries: &Entries, model: &Model, random: &mut Random) {
    entries.check().unwrap();
    assert_eq!(entries.len(), model.len() as u64);
    assert_eq!(entries.is_empty(), model.is_empty());
    assert_eq!(entries.first_id(), model.keys().next().copied());
    assert_eq!(entries.last_id(), model.keys().next_back().copied());
    let nodes: Vec<_> = entries.nodes().collect();
    assert_eq!(nodes.len(), entries.node_count());
    assert_eq!(nodes.iter().map(|node| node.live).sum::<usize>(), model.len());
    for node in &nodes {
        assert_eq!(model.range(node.first_live..=node.last_live).count(), node.live);
        assert!(model.contains_key(&node.first_live) && model.contains_key(&node.last_live));
    }
    for _ in 0..12 {
        let (a, b) = (random.id_near(model), random.id_near(model));
        assert_eq!(entries.contains(a), model.contains_key(&a));
        match (entries.get(a), model.get(&a)) {
            (None, None) => {}
            (Some(entry), Some(pairs)) => {
                assert_eq!(entry.field_count(), pairs.len());
                assert!(entry.id == a && entry.fields().eq(refs(pairs)));
                let mut out = Vec::new();
                entry.write(&mut out);
                assert_eq!(out, reply(a, pairs));
            }
            (found, _) => panic!("{a} found: {}", found.is_some()),
        }
        let above = model.range((std::ops::Bound::Excluded(a), std::ops::Bound::Unbounded)).count();
        assert_eq!(entries.count_after(a), above as u64);
        let expected: Vec<_> = if a > b { vec![] } else { model.range(a..=b).map(|(id, _)| *id).collect() };
        assert_eq!(entries.count_in(a, b), expected.len() as u64);
        assert_eq!(ids(entries.range(a, b)), expected);
        assert!(ids(entries.range_rev(a, b)).iter().eq(expected.iter().rev()));
        let (mut range, mut range_rev) = (entries.range(a, b), entries.range_rev(a, b));
        assert_eq!(range.by_ref().count() + range_rev.by_ref().count(), 2 * expected.len());
        assert!(range.next().is_none() && range_rev.next().is_none(), "the end is the end");
        let n = random.below(model.len() as u64 + 2);
        assert_eq!(entries.nth(n), model.keys().nth(n as usize).copied());
    }
    let all = entries.range(StreamId::MIN, StreamId::MAX);
    assert!(all.zip(model).all(|(entry, (id, pairs))| entry.id == *id && entry.fields().eq(refs(pairs))));
}

/// One random change to both.
fn change(entries: &mut Entries, model: &mut Model, last: &mut StreamId, random: &mut Random, limits: NodeLimits) {
    match random.below(40) {
        0 => {
            let bound = random.id_near(model);
            // Mostly trim little, or there would never be much.
            let bound = if random.below(5) == 0 { bound } else { entries.nth(random.below(30)).unwrap_or(bound) };
            let expected = model.range(..bound).count() as u64;
            assert_eq!(entries.trim_before(bound).0, expected);
            *model = model.split_off(&bound);
        }
        1 => {
            // A run of deletions, as when a group acknowledges and deletes in order.
            let start = random.id_near(model);
            for id in model.range(start..).map(|(id, _)| *id).take(random.below(60) as usize).collect::<Vec<_>>() {
                assert!(entries.remove(id, REDIS));
                model.remove(&id);
            }
        }
        2..12 => {
            let id = random.id_near(model);
            assert_eq!(entries.remove(id, REDIS), model.remove(&id).is_some());
        }
        _ => {
            *last = random.id_after(*last);
            let pairs = random.pairs();
            entries.push(*last, refs(&pairs), limits);
            model.insert(*last, pairs);
        }
    }
}

fn limits_of(seed: u64) -> NodeLimits {
    [
        REDIS,
        NodeLimits { max_entries: 5, max_bytes: 0 },
        NodeLimits { max_entries: 0, max_bytes: 300 },
        NodeLimits { max_entries: 1, max_bytes: 1 },
        NodeLimits { max_entries: 0, max_bytes: 0 },
        NodeLimits { max_entries: 40, max_bytes: 1000 },
    ][seed as usize % 6]
}

#[test]
fn agrees_with_a_sorted_map() {
    for seed in 0..24 {
        let mut random = Random(seed);
        let (mut entries, mut model, mut last) = (Entries::default(), Model::new(), StreamId::MIN);
        let limits = limits_of(seed);
        for step in 0..3000 {
            change(&mut entries, &mut model, &mut last, &mut random, limits);
            if step % 50 == 0 {
                compare(&entries, &model, &mut random);
            }
        }
        compare(&entries, &model, &mut random);
    }
}

#[test]
fn a_clone_is_frozen() {
    for seed in 100..112 {
        let mut random = Random(seed);
        let (mut entries, mut model, mut last) = (Entries::default(), Model::new(), StreamId::MIN);
        let limits = limits_of(seed);
        for _ in 0..20 {
            for _ in 0..random.below(300) {
                change(&mut entries, &mut model, &mut last, &mut random, limits);
            }
            let (frozen, frozen_model, bytes) = (entries.clone(), model.clone(), encoded(&entries));
            for _ in 0..random.below(200) {
                change(&mut entries, &mut model, &mut last, &mut random, limits);
            }
            compare(&frozen, &frozen_model, &mut random);
            assert!(encoded(&frozen) == bytes);
            compare(&entries, &model, &mut random);
        }
    }
}

/// What a server restarted from its snapshot goes on to do is, byte for byte, what one that ran on does.
#[test]
fn a_decoded_copy_has_the_same_future() {
    for seed in 200..218 {
        let mut random = Random(seed);
        let (mut entries, mut model, mut last) = (Entries::default(), Model::new(), StreamId::MIN);
        let limits = limits_of(seed);
        for round in 0..12 {
            for _ in 0..random.below(400) {
                change(&mut entries, &mut model, &mut last, &mut random, limits);
            }
            let bytes = encoded(&entries);
            let mut copy = decoded(&bytes);
            assert!(encoded(&copy) == bytes, "seed {seed}, round {round}");
            compare(&copy, &model, &mut random);
            let (mut copy_model, mut copy_last, mut copy_random) = (model.clone(), last, Random(round));
            random = Random(round);
            for _ in 0..300 {
                change(&mut entries, &mut model, &mut last, &mut random, limits);
                change(&mut copy, &mut copy_model, &mut copy_last, &mut copy_random, limits);
            }
            assert_eq!(layout(&copy), layout(&entries));
            assert!(encoded(&copy) == encoded(&entries), "seed {seed}, round {round}");
            random = Random(seed * 1000 + round);
        }
    }
}

#[test]
fn damaged_bytes_are_refused_or_harmless() {
    for seed in 300..306 {
        let mut random = Random(seed);
        let (mut entries, mut model, mut last) = (Entries::default(), Model::new(), StreamId::MIN);
        let limits = limits_of(seed);
        for _ in 0..200 {
            change(&mut entries, &mut model, &mut last, &mut random, limits);
        }
        let bytes = encoded(&entries);
        for len in 0..bytes.len() {
            assert!(Entries::decode(&mut Reader::new(&bytes[..len])).is_err(), "seed {seed}: {len} bytes were enough");
        }
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                damaged[at] =
                    if random.below(2) == 0 { damaged[at] ^ 1 << random.below(8) } else { random.next() as u8 };
            }
            let Ok(mut read) = Entries::decode(&mut Reader::new(&damaged)) else { continue };
            let found = ids(read.range(StreamId::MIN, StreamId::MAX));
            assert!(found.is_sorted_by(|a, b| a < b) && found.len() as u64 == read.len());
            assert!(ids(read.range_rev(StreamId::MIN, StreamId::MAX)).iter().eq(found.iter().rev()));
            let again = encoded(&read);
            assert!(encoded(&decoded(&again)) == again);
            for id in found.iter().step_by(3) {
                assert!(read.remove(*id, REDIS));
            }
        }
    }
}

#[test]
fn sparse_neighbours_are_joined() {
    // Of 20 full blocks every 20th entry survives: 5 a block, which would fill 20 blocks for ever.
    let mut entries = filled(1..2001, REDIS);
    assert_eq!(entries.node_count(), 20);
    let before = entries.memory_bytes();
    for ms in (1..2001).filter(|ms| ms % 20 != 0) {
        assert!(entries.remove(id(ms), REDIS));
    }
    entries.check().unwrap();
    assert_eq!(entries.len(), 100);
    let left: Vec<StreamId> = entries.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id).collect();
    assert_eq!(left, (1..=100).map(|n| id(n * 20)).collect::<Vec<_>>());
    assert!(layout(&entries).iter().all(|&live| live <= 50), "{:?}", layout(&entries));
    assert!(entries.node_count() <= 8, "{:?}", layout(&entries));
    assert!(entries.memory_bytes() < before / 5, "{} of {before}", entries.memory_bytes());

    // Blocks that may hold but few entries are not joined beyond that.
    let small = NodeLimits { max_entries: 8, max_bytes: 0 };
    let mut entries = filled(1..801, small);
    for ms in (1..801).filter(|ms| ms % 8 != 4) {
        entries.remove(id(ms), small);
    }
    assert!(layout(&entries).iter().all(|&live| live <= 4), "{:?}", layout(&entries));
}

/// How what is left lies in blocks is told by what is there: one that was written and read back goes on as the one that was not,
/// also where it has other spans, and where the schemas in its open block are those of entries that are gone.
#[test]
fn what_was_read_back_goes_on_like_what_was_not() {
    for (seed, limits) in [
        (1, REDIS),
        (2, NodeLimits { max_entries: 8, max_bytes: 0 }),
        (3, NodeLimits { max_entries: 4, max_bytes: 0 }),
        (4, NodeLimits { max_entries: 0, max_bytes: 300 }),
    ] {
        let mut random = Random(seed);
        let mut entries = filled(1..4001, limits);
        // The front goes, so that the spans begin elsewhere.
        let _gone = entries.trim_before(id(300));
        let mut left: Vec<u64> = (300..4001).collect();
        let mut again = None;
        while left.len() > 20 {
            let ms = left.swap_remove(random.below(left.len() as u64) as usize);
            assert!(entries.remove(id(ms), limits));
            let read = again.get_or_insert_with(|| decoded(&encoded(&entries)));
            if read.len() > entries.len() {
                assert!(read.remove(id(ms), limits));
            }
            assert_eq!(read.node_count(), entries.node_count(), "seed {seed}, {} left", left.len());
            if left.len().is_multiple_of(64) {
                assert!(encoded(read) == encoded(&entries), "seed {seed}, {} left", left.len());
                read.check().unwrap();
                entries.check().unwrap();
            }
            if random.below(500) == 0 {
                again = None;
            }
        }
    }
    // An ID comes again behind a deleted last entry of other names.
    let mut entries = Entries::default();
    entries.push(id(1), refs(&pairs(&[("f", "v")])), REDIS);
    entries.push(id(5), refs(&pairs(&[("another name", "v")])), REDIS);
    assert!(entries.remove(id(5), REDIS));
    let mut read = decoded(&encoded(&entries));
    for entries in [&mut entries, &mut read] {
        entries.push(id(3), refs(&pairs(&[("another name", "v")])), REDIS);
    }
    assert!(encoded(&read) == encoded(&entries));
}

/// As `docs/formats.md` draws them.
#[test]
fn bytes_of_a_small_stream() {
    let mut entries = Entries::default();
    for id in [StreamId::new(5, 1), StreamId::new(5, 2), StreamId::new(5, 20), StreamId::new(8, 0), StreamId::new(9, 3)]
    {
        entries.push(id, refs(&pairs(&[("f", "v")])), REDIS);
    }
    let bytes = [
        &[0, 5, 6 + 4 * 4][..],          // nothing sealed; taken, weight
        &[1 + 1, 1, 1, b'f'],            // the table: one schema of one name
        &[5, 20],                        // slots, their bytes
        &[3 << 3 | 1, 5, 1, 1, b'v'],    // a whole ID
        &[1, 1, b'v'],                   // the next seq
        &[7 << 5 | 1, 18, 1, b'v'],      // 18 behind it
        &[2 << 5 | 1 << 3 | 1, 1, b'v'], // 3 ms behind it, seq 0
        &[2 << 3 | 1, 1, 3, 1, b'v'],    // 1 ms behind it, seq 3
    ];
    assert_eq!(encoded(&entries), bytes.concat());
}
