//! The list against a plain ordered map, and what it promises about shape, memory order and damaged bytes.

use std::collections::BTreeMap;

use super::passing::fate_of;
use super::*;
use crate::state::codec::Reader;
use crate::test_support::Random;

type Model = BTreeMap<StreamId, Pending>;

/// What kind of values a run of the property test draws.
#[derive(Clone, Copy)]
struct Kind {
    seed: u64,
    /// IDs are drawn from this many milliseconds, or from everywhere.
    ms_span: Option<u64>,
    seqs: u64,
    consumers: u64,
    /// Times are drawn from this many milliseconds, or from everywhere.
    time_span: Option<u64>,
    start: u64,
    steps: u64,
}

impl Kind {
    fn id(&self, random: &mut Random) -> StreamId {
        match self.ms_span {
            Some(span) => StreamId::new(1_700_000_000_000 + random.below(span), random.below(self.seqs)),
            // Also the very ends, and neighbours at the carry.
            None => match random.below(8) {
                0 => StreamId::new(u64::MAX, u64::MAX - random.below(4)),
                1 => StreamId::new(random.below(3), random.below(3)),
                2 => StreamId::new(random.below(64), if random.one_in(2) { u64::MAX } else { 0 }),
                _ => StreamId::new(random.next(), random.next() >> random.below(64)),
            },
        }
    }

    fn time(&self, random: &mut Random) -> u64 {
        match self.time_span {
            _ if random.one_in(50) => 0,
            Some(span) => 1_700_000_000_000 + random.below(span),
            None => random.next() >> random.below(64),
        }
    }

    fn consumer(&self, random: &mut Random) -> ConsumerRef {
        if random.one_in(40) { ConsumerRef::NOBODY } else { ConsumerRef(random.below(self.consumers) as u32) }
    }

    fn pending(&self, random: &mut Random) -> Pending {
        let deliveries = match random.below(20) {
            0 => i64::MAX as u64,
            1 => random.below(70_000),
            n => n / 8,
        };
        Pending { id: self.id(random), consumer: self.consumer(random), delivered_ms: self.time(random), deliveries }
    }
}

fn key(model: &Model, random: &mut Random, kind: &Kind) -> StreamId {
    let drawn = kind.id(random);
    if random.one_in(4) {
        return drawn;
    }
    model.range(drawn..).next().or(model.iter().next_back()).map_or(drawn, |(id, _)| *id)
}

fn same_answers(pel: &Pel, model: &Model, random: &mut Random, kind: &Kind) {
    assert_eq!(pel.len(), model.len() as u64);
    assert_eq!(pel.is_empty(), model.is_empty());
    assert_eq!(pel.first(), model.keys().next().copied());
    assert_eq!(pel.last(), model.keys().next_back().copied());
    assert_eq!(pel.oldest_time(), model.values().map(|p| p.delivered_ms).min());
    for _ in 0..4 {
        let from = key(model, random, kind);
        let consumer = kind.consumer(random);
        let bound = kind.time(random);
        let some = 1 + random.below(400) as usize;
        assert_eq!(pel.get(from), model.get(&from).copied());
        assert_eq!(pel.contains(from), model.contains_key(&from));
        assert!(pel.range(from).take(some).eq(model.range(from..).map(|(_, p)| *p).take(some)));
        let of = model.range(from..).map(|(_, p)| *p).filter(|p| p.consumer == consumer);
        assert!(pel.range_of(consumer, from).take(some).eq(of.clone().take(some)));
        let idle = model.range(from..).map(|(_, p)| *p).filter(|p| p.delivered_ms <= bound);
        assert!(pel.idle_range(from, bound, None).take(some).eq(idle.take(some)));
        assert_eq!(pel.nth_from(from, some as u64), model.range(from..).nth(some).map(|(id, _)| *id));
        let to = key(model, random, kind);
        let between = if from <= to { model.range(from..=to).count() } else { 0 };
        assert_eq!(pel.count_in(from, to), between as u64);
        let idle_of = of.filter(|p| p.delivered_ms <= bound);
        assert!(pel.idle_range(from, bound, Some(consumer)).take(some).eq(idle_of.take(some)));
    }
    let bound = if random.one_in(3) { u64::MAX } else { kind.time(random) };
    let limit = random.below(300) as usize;
    let mut oldest: Vec<Pending> = model.values().filter(|p| p.delivered_ms <= bound).copied().collect();
    oldest.sort_by_key(|p| (p.delivered_ms, p.id));
    let owned = |p: &&Pending| p.consumer != ConsumerRef::NOBODY && p.delivered_ms != u64::MAX;
    let mut oldest_owned: Vec<Pending> = oldest.iter().filter(owned).copied().collect();
    oldest_owned.truncate(limit);
    assert_eq!(pel.oldest_owned(bound, limit), oldest_owned);
    oldest.truncate(limit);
    assert_eq!(pel.oldest_first(bound, limit), oldest);
    let mut released: Vec<Pending> = model.values().filter(|p| p.is_released()).copied().collect();
    released.sort_by_key(|p| (p.delivered_ms, p.id));
    released.truncate(limit);
    assert_eq!(pel.first_released(limit), released);
}

fn whole(pel: &Pel, model: &Model) {
    pel.check().unwrap();
    assert!(pel.range(StreamId::MIN).eq(model.values().copied()));
    let mut bytes = Vec::new();
    pel.encode(&mut bytes);
    let mut reader = Reader::new(&bytes);
    let back = Pel::decode(&mut reader).unwrap();
    assert!(reader.is_empty());
    back.check().unwrap();
    assert!(back == *pel);
    let mut again = Vec::new();
    back.encode(&mut again);
    assert_eq!(again, bytes, "other shape, other bytes");
}

fn runs_like_the_model(kind: Kind) {
    let random = &mut Random(kind.seed);
    let (mut pel, mut model) = (Pel::default(), Model::new());
    // Of a consumer that is gone nothing new comes before its number is free again.
    let drawn = |pel: &mut Pel, random: &mut Random| {
        let p = kind.pending(random);
        while fate_of(&pel.passing, p.consumer).is_some() {
            pel.reap();
        }
        p
    };
    for _ in 0..kind.start {
        let p = kind.pending(random);
        assert_eq!(pel.put(p), model.insert(p.id, p));
    }
    whole(&pel, &model);
    let mut frozen = (pel.clone(), model.clone());
    for step in 0..kind.steps {
        // Phases of growth and of decline, so that parts are split and joined.
        let growing = (step / (kind.steps / 6).max(1)).is_multiple_of(2);
        match random.below(100) {
            0..25 => {
                let p = drawn(&mut pel, random);
                assert_eq!(pel.put(p), model.insert(p.id, p));
            }
            25..50 => {
                // Claim what is there.
                let p = Pending { id: key(&model, random, &kind), ..drawn(&mut pel, random) };
                assert_eq!(pel.put(p), model.insert(p.id, p));
            }
            50..54 if growing => {
                let (consumer, time) = (drawn(&mut pel, random).consumer, kind.time(random));
                let mut ids: Vec<StreamId> = Vec::new();
                let mut next =
                    if random.one_in(3) { Some(kind.id(random)) } else { pel.last().and_then(StreamId::next) };
                for _ in 0..random.below(300) {
                    let Some(id) = next else { break };
                    ids.push(id);
                    next = id.next().and_then(|id| {
                        if random.one_in(3) { id.ms.checked_add(1).map(|ms| StreamId::new(ms, 0)) } else { Some(id) }
                    });
                }
                let mut replaced = Vec::new();
                pel.put_all(&ids, consumer, time, 1, |old| replaced.push(old));
                let expected: Vec<Pending> = ids
                    .iter()
                    .filter_map(|&id| model.insert(id, Pending { id, consumer, delivered_ms: time, deliveries: 1 }))
                    .collect();
                assert_eq!(replaced, expected);
            }
            50..54 => {
                let from = key(&model, random, &kind);
                let ids: Vec<StreamId> = pel.range(from).take(random.below(400) as usize).map(|p| p.id).collect();
                for id in ids {
                    assert_eq!(pel.remove(id), model.remove(&id));
                }
            }
            54 if random.one_in(kind.steps / 100 + 1) => {
                let consumer = drawn(&mut pel, random).consumer;
                if consumer != ConsumerRef::NOBODY {
                    let before = model.len();
                    model.retain(|_, p| p.consumer != consumer);
                    pel.remove_consumer(consumer, (before - model.len()) as u64);
                    same_answers(&pel, &model, random, &kind);
                    whole(&pel, &model);
                }
            }
            55 if growing && random.one_in(kind.steps / 100 + 1) => {
                let (consumer, order) = (drawn(&mut pel, random).consumer, random.below(RELEASE_MAX));
                if consumer != ConsumerRef::NOBODY {
                    for p in model.values_mut().filter(|p| p.consumer == consumer) {
                        let deliveries = p.deliveries.saturating_sub(1);
                        *p = Pending { consumer: ConsumerRef::NOBODY, delivered_ms: order, deliveries, ..*p };
                    }
                    pel.release_consumer(consumer, order);
                    same_answers(&pel, &model, random, &kind);
                    whole(&pel, &model);
                }
            }
            56 => {
                pel.reap();
                pel.check().unwrap();
            }
            55 if !growing => {
                let from = key(&model, random, &kind);
                let last = model.range(from..).nth(random.below(600) as usize).map(|(id, _)| *id);
                let to = last.filter(|_| !random.one_in(5)).unwrap_or_else(|| key(&model, random, &kind));
                let gone: Model =
                    model.range(from..).take_while(|(id, _)| **id <= to).map(|(id, p)| (*id, *p)).collect();
                model.retain(|id, _| !gone.contains_key(id));
                let mut counts = BTreeMap::new();
                let removed = pel.remove_range(from, to, |of, count| *counts.entry(of).or_insert(0) += count);
                whole(&removed, &gone);
                let mut expected = BTreeMap::new();
                gone.values().for_each(|p| *expected.entry(p.consumer).or_insert(0) += 1);
                assert_eq!(counts, expected);
                pel.check().unwrap();
            }
            _ => {
                let id = key(&model, random, &kind);
                assert_eq!(pel.remove(id), model.remove(&id));
            }
        }
        if step % (kind.steps / 40).max(1) == 0 {
            same_answers(&pel, &model, random, &kind);
            pel.check().unwrap();
        }
        if step % (kind.steps / 5).max(1) == 0 {
            whole(&pel, &model);
            whole(&frozen.0, &frozen.1);
            frozen = (pel.clone(), model.clone());
        }
    }
    // Down to nothing.
    let mut ids: Vec<StreamId> = model.keys().copied().collect();
    while !ids.is_empty() {
        let id = ids.swap_remove(random.below(ids.len() as u64) as usize);
        assert_eq!(pel.remove(id), model.remove(&id));
        if ids.len().is_multiple_of(1000) {
            pel.check().unwrap();
        }
    }
    whole(&pel, &model);
    assert!(pel.nodes.is_empty());
    whole(&frozen.0, &frozen.1);
}

const USUAL: Kind =
    Kind { seed: 1, ms_span: Some(3000), seqs: 4, consumers: 5, time_span: Some(200), start: 3000, steps: 4000 };

#[test]
fn small_lists_are_like_the_model() {
    for seed in 0..30 {
        runs_like_the_model(Kind { seed, ms_span: Some(100), start: seed * 5, steps: 400, ..USUAL });
    }
}

#[test]
fn usual_lists_are_like_the_model() {
    for seed in 100..104 {
        runs_like_the_model(Kind { seed, ..USUAL });
    }
}

#[test]
fn many_consumers_are_like_the_model() {
    runs_like_the_model(Kind { seed: 7, consumers: 3000, ms_span: Some(100_000), ..USUAL });
}

#[test]
fn the_widest_values_are_like_the_model() {
    for seed in 200..204 {
        runs_like_the_model(Kind { seed, ms_span: None, time_span: None, consumers: 1 << 32, ..USUAL });
    }
}

#[test]
fn lists_of_many_nodes_are_like_the_model() {
    runs_like_the_model(Kind { seed: 9, ms_span: Some(1 << 40), start: 60_000, steps: 6000, ..USUAL });
}

fn filled(count: u64, per_ms: u64) -> Pel {
    let mut pel = Pel::default();
    let ids: Vec<StreamId> = (0..count).map(|n| StreamId::new(1000 + n / per_ms, n % per_ms)).collect();
    for (batch, ids) in ids.chunks(100).enumerate() {
        let batch = batch as u64;
        pel.put_all(ids, ConsumerRef(batch as u32 % 7), 5000 + batch, 1, |_| panic!("nothing was pending"));
    }
    pel.check().unwrap();
    pel
}

fn chunk_count(pel: &Pel) -> usize {
    pel.nodes.iter().map(|node| node.node.chunks.len()).sum()
}

#[test]
fn appending_fills_every_chunk() {
    for count in [1, 127, 128, 129, 16_384, 16_385, 50_000] {
        let pel = filled(count, 5);
        assert_eq!(pel.len(), count);
        assert_eq!(chunk_count(&pel), (count as usize).div_ceil(128));
        assert_eq!(pel.nodes.len(), (count as usize).div_ceil(16_384));
        let mut single = Pel::default();
        for p in pel.range(StreamId::MIN) {
            assert_eq!(single.put(p), None);
        }
        assert_eq!(chunk_count(&single), chunk_count(&pel));
        assert!(single == pel);
    }
}

/// Memory, but for the root and what the allocator adds.
fn bytes_an_entry(pel: &Pel) -> f64 {
    let bytes: usize = pel
        .nodes
        .iter()
        .flat_map(|node| &node.node.chunks)
        .map(|chunk| size_of_val(chunk) + chunk.chunk.memory_bytes())
        .sum();
    bytes as f64 / pel.len() as f64
}

#[test]
fn an_entry_takes_a_few_bytes() {
    let mut pel = filled(100_000, 5);
    assert!(bytes_an_entry(&pel) < 6.0, "{}", bytes_an_entry(&pel));
    // Claimed here and there, much later, by many.
    let random = &mut Random(5);
    let ids: Vec<StreamId> = pel.range(StreamId::MIN).map(|p| p.id).collect();
    for id in &ids {
        let (consumer, delivered_ms) = (ConsumerRef(random.below(1000) as u32), 90_000_000 + random.below(3_600_000));
        pel.put(Pending { id: *id, consumer, delivered_ms, deliveries: 2 + random.below(3) });
    }
    assert!(bytes_an_entry(&pel) < 13.0, "{}", bytes_an_entry(&pel));
    // And two thirds acknowledged.
    for id in ids.iter().filter(|_| !random.one_in(3)) {
        pel.remove(*id);
    }
    assert!(bytes_an_entry(&pel) < 18.0, "{}", bytes_an_entry(&pel));
    pel.check().unwrap();
}

#[test]
fn acknowledging_here_and_there_leaves_no_crumbs() {
    let mut pel = filled(100_000, 5);
    let mut ids: Vec<StreamId> = pel.range(StreamId::MIN).map(|p| p.id).collect();
    let random = &mut Random(3);
    while ids.len() > 1000 {
        let id = ids.swap_remove(random.below(ids.len() as u64) as usize);
        assert!(pel.remove(id).is_some());
    }
    pel.check().unwrap();
    // Of two neighbours at least one holds half of what makes them join.
    assert!(chunk_count(&pel) <= 2 * 1000 / 48 + 1, "{} chunks", chunk_count(&pel));
    assert_eq!(pel.nodes.len(), 1);
}

#[test]
fn a_frozen_copy_costs_only_what_changes() {
    let mut pel = filled(50_000, 5);
    let frozen = pel.clone();
    pel.remove(StreamId::new(1000, 0));
    let shared = |at: usize| std::sync::Arc::ptr_eq(&pel.nodes[at].node, &frozen.nodes[at].node);
    assert_eq!([shared(0), shared(1), shared(2), shared(3)], [false, true, true, true]);
    let (new, old) = (&pel.nodes[0].node.chunks, &frozen.nodes[0].node.chunks);
    let copied = new.iter().zip(old).filter(|(a, b)| !std::sync::Arc::ptr_eq(&a.chunk, &b.chunk)).count();
    assert_eq!(copied, 1);
    // What is not there changes, and so copies, nothing.
    assert_eq!(pel.remove(StreamId::new(u64::MAX, 0)), None);
    assert!(std::sync::Arc::ptr_eq(&pel.nodes[3].node, &frozen.nodes[3].node));
    assert!(frozen.contains(StreamId::new(1000, 0)));
}

#[test]
fn a_list_comes_apart_in_slices() {
    let mut pel = filled(50_000, 5);
    let (mut slices, mut freed) = (0, 0);
    while let Some(part) = pel.pop_node() {
        assert!(!part.is_empty());
        slices += 1;
        freed += part.len();
        pel.check().unwrap();
        assert_eq!(pel.len(), 50_000 - freed);
    }
    assert_eq!((slices, freed, pel.is_empty()), (4, 50_000, true));
}

#[test]
fn what_a_consumer_had_goes_in_slices() {
    let mut pel = filled(50_000, 5);
    let others: Vec<Pending> = pel.range(StreamId::MIN).filter(|p| p.consumer != ConsumerRef(3)).collect();
    let all = pel.clone();
    pel.remove_consumer(ConsumerRef(3), 50_000 - others.len() as u64);
    let mut slices = 0;
    loop {
        assert_eq!(pel.len(), others.len() as u64);
        assert_eq!(pel.count_in(StreamId::MIN, StreamId::MAX), pel.len());
        let free = pel.reap();
        pel.check().unwrap();
        if !free.is_empty() {
            assert_eq!(free, [ConsumerRef(3)]);
            break;
        }
        slices += 1;
    }
    assert!(slices > 5, "{slices} slices");
    assert!(!pel.is_passing() && pel.len == others.len() as u64);
    assert!(pel.range(StreamId::MIN).eq(others));
    assert_eq!(all.len(), 50_000, "the copy is as it was");
}

#[test]
fn a_small_window_that_moves_on_stays_small() {
    // One is read, one is acknowledged, for ever.
    let mut pel = Pel::default();
    for n in 0..5000u64 {
        pel.put(Pending {
            id: StreamId::new(n * 13, n % 3),
            consumer: ConsumerRef(0),
            delivered_ms: n * 13,
            deliveries: 1,
        });
        if n >= 10 {
            assert!(pel.remove(StreamId::new((n - 10) * 13, (n - 10) % 3)).is_some());
            assert_eq!(pel.oldest_time(), Some((n - 9) * 13));
            pel.check().unwrap();
        }
    }
    assert_eq!((pel.len(), chunk_count(&pel)), (10, 1));
}

#[test]
fn equal_contents_are_equal_bytes() {
    let straight = filled(40_000, 3);
    let mut crooked = Pel::default();
    let mut entries: Vec<Pending> = straight.range(StreamId::MIN).collect();
    let random = &mut Random(11);
    while !entries.is_empty() {
        let p = entries.swap_remove(random.below(entries.len() as u64) as usize);
        crooked.put(Pending { deliveries: 77, delivered_ms: 1, ..p });
        crooked.put(p);
    }
    crooked.check().unwrap();
    assert_ne!(chunk_count(&straight), chunk_count(&crooked), "the same shape proves nothing");
    let (mut a, mut b) = (Vec::new(), Vec::new());
    straight.encode(&mut a);
    crooked.encode(&mut b);
    assert_eq!(a, b);
    assert!(a.len() < 40_000 * 21 / 10, "{} bytes", a.len());
}

#[test]
fn the_layout_is_the_documented_one() {
    let mut pel = Pel::default();
    let mut bytes = Vec::new();
    pel.encode(&mut bytes);
    assert_eq!(bytes, [0]);
    pel.put_all(&[StreamId::new(5, 1), StreamId::new(5, 3), StreamId::new(9, 0)], ConsumerRef(2), 10, 1, |_| ());
    pel.put(Pending { id: StreamId::new(9, 1), consumer: ConsumerRef(2), delivered_ms: 8, deliveries: 3 });
    bytes.clear();
    pel.encode(&mut bytes);
    assert_eq!(bytes, [4, 3, 2, 20, 1, 5, 1, 0, 1, 4, 0, 1, 2, 3, 3, 0, 0]);
}

#[test]
fn damaged_bytes_are_refused_or_read_as_a_sound_list() {
    let mut pel = filled(300, 5);
    pel.put(Pending {
        id: StreamId::MAX,
        consumer: ConsumerRef::NOBODY,
        delivered_ms: u64::MAX,
        deliveries: i64::MAX as u64,
    });
    let mut bytes = Vec::new();
    pel.encode(&mut bytes);
    for cut in 0..bytes.len() {
        assert!(Pel::decode(&mut Reader::new(&bytes[..cut])).is_err(), "cut at {cut}");
    }
    let (mut refused, mut read) = (0, 0);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            match Pel::decode(&mut Reader::new(&damaged)) {
                Err(_) => refused += 1,
                Ok(other) => {
                    other.check().unwrap();
                    read += 1;
                }
            }
        }
    }
    assert!(refused > 100 && read > 100, "{refused} refused, {read} read");
}

#[test]
fn bytes_that_would_be_a_second_form_are_refused() {
    let refused = |bytes: &[u8]| Pel::decode(&mut Reader::new(bytes)).is_err();
    assert!(!refused(&[2, 2, 0, 0, 1, 5, 1, 1, 0]), "the sound one");
    assert!(refused(&[2, 1, 0, 0, 1, 5, 1, 1, 0, 0, 1, 1, 0]), "a run cut in two");
    assert!(refused(&[2, 3, 0, 0, 1, 5, 1, 1, 0, 1, 0]), "a run beyond the total");
    assert!(refused(&[1, 0, 0, 0, 1, 5, 1]), "an empty run");
    let mut over = vec![2, 2, 0, 0, 1];
    over.extend_from_slice(&[5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0]);
    assert!(refused(&over), "a sequence number beyond the last");
    // A great total with nothing behind it.
    assert!(refused(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]));
}

/// As `docs/formats.md` draws them.
#[test]
fn bytes_of_a_small_list() {
    let mut pel = Pel::default();
    let nobody = ConsumerRef::NOBODY;
    for (ms, seq, consumer, delivered_ms, deliveries) in [
        (5, 1, ConsumerRef(0), 300, 1),
        (5, 3, ConsumerRef(0), 300, 1),
        (8, 2, ConsumerRef(0), 300, 1),
        (9, 0, nobody, 1, 2),
    ] {
        pel.put(Pending { id: StreamId::new(ms, seq), consumer, delivered_ms, deliveries });
    }
    let bytes = [
        &[4][..],
        &[3, 0, 0xd8, 0x04, 1],             // three of consumer 0, time 300 (zigzag 600), once
        &[5, 1, 0, 1, 3, 2],                // 5-1; the same ms, seq + 1 + 1; 3 ms more, seq 2
        &[1, 0xff, 0xff, 0xff, 0xff, 0x0f], // one that is nobody's
        &[0xd5, 0x04, 2, 1, 0],             // time 299 less (zigzag 597), twice; 1 ms more, seq 0
    ];
    let mut out = Vec::new();
    pel.encode(&mut out);
    assert_eq!(out, bytes.concat());
}
