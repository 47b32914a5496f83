//! Groups that keep the entries of a key in order: KEYFIELD.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use super::delays::{Journal, ids_in};
use crate::check;
use crate::test_support::Random;

/// A group `g` of stream `s` that orders by field `k`, and entries `1-0`… of these keys; `-` has none.
fn with_keys(keys: &[&str]) -> World {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream keyfield k");
    add(&mut world, 1, keys);
    world
}

fn add(world: &mut World, first: u64, keys: &[&str]) {
    for (id, key) in (first..).zip(keys) {
        let field = if *key == "-" { "f" } else { "k" };
        world.say(&format!("xadd s {id}-0 {field} {key}"));
    }
}

fn read(world: &mut World, options: &str) -> Vec<u64> {
    let ids = ids_in(&world.say(&format!("xreadgroup group g a {options} streams s >")));
    world.survives();
    ids
}

#[test]
fn one_entry_of_a_key_at_a_time() {
    let mut world = with_keys(&["x", "y", "x", "-", "x", "-", "y"]);
    assert_eq!(read(&mut world, ""), [1, 2, 4, 6]);
    assert_eq!(
        (world.stats("held"), world.stats("lag"), world.stats("pending")),
        (":3".into(), ":3".into(), ":4".into())
    );
    assert_eq!(world.stats("oldest-undelivered-ms"), format!(":{}", world.now_ms - 3));
    assert_eq!(read(&mut world, ""), []);
    // Given back it still holds its key, and comes again by CLAIM alone.
    assert_eq!(world.say("xnack s g fail ids 1 1-0"), ":1|");
    assert_eq!(read(&mut world, ""), []);
    assert_eq!(read(&mut world, "claim 100"), [1]);
    // Deleted while it is pending, too.
    assert_eq!(world.say("xdel s 1-0"), ":1|");
    assert_eq!(read(&mut world, ""), []);
    assert_eq!(world.say("xack s g 1-0 4-0"), ":2|");
    add(&mut world, 8, &["x", "z"]);
    // What has waited comes before what is new.
    assert_eq!(read(&mut world, ""), [3, 9]);
    assert_eq!(world.say("xackdel s g ids 1 3-0"), "*1|:1|");
    assert_eq!(read(&mut world, ""), [5]);
    assert_eq!(world.say("xgroup delconsumer s g a"), ":4|");
    assert_eq!(read(&mut world, "count 1"), [7]);
    assert_eq!(read(&mut world, ""), [8]);
    assert_eq!(world.say("xack s g range - +"), ":2|");
    assert_eq!((world.stats("held"), world.stats("lag")), (":0".into(), ":0".into()));
    // A position that is set back gives everything anew; what waited is come upon again.
    world.say("xgroup setid s g 0");
    assert_eq!(read(&mut world, ""), [2, 4, 5, 6, 9]);
    assert_eq!(world.stats("held"), ":2");
    world.say("xgroup setid s g 7-0");
    assert_eq!(world.stats("held"), ":1");
    assert_eq!(read(&mut world, ""), [9]);
    // What waits and is deleted does not stand in the way.
    assert_eq!(world.say("xdel s 7-0"), ":1|");
    assert_eq!((world.stats("held"), world.say("xack s g 5-0")), (":1".into(), ":1|".into()));
    assert_eq!(read(&mut world, ""), [8]);
}

#[test]
fn reading_without_acknowledgement_holds_nothing_up() {
    let mut world = with_keys(&["x", "x", "y", "x", "x", "y", "x"]);
    assert_eq!(read(&mut world, "count 1"), [1]);
    assert_eq!(read(&mut world, "noack count 2"), [3, 6]);
    assert_eq!(world.stats("held"), ":3");
    assert_eq!(read(&mut world, "noack"), []);
    assert_eq!(world.say("xack s g 1-0"), ":1|");
    assert_eq!(read(&mut world, "noack count 2"), [2, 4]);
    assert_eq!(read(&mut world, "noack"), [5, 7]);
    add(&mut world, 8, &["x", "x"]);
    assert_eq!(read(&mut world, "noack"), [8, 9]);
}

#[test]
fn the_field_can_be_set_later_changed_and_taken_away() {
    let mut world = with_keys(&[]);
    world.say("xgroup cfgset s g keyfield ''");
    world.say("xadd s 1-0 k x j p");
    world.say("xadd s 2-0 k x j p");
    assert_eq!(read(&mut world, ""), [1, 2]);
    world.say("xadd s 3-0 k x j q");
    world.say("xadd s 4-0 k y j p");
    world.say("xadd s 5-0 k y j r");
    world.say("xgroup cfgset s g keyfield k maxpending 10");
    assert_eq!(read(&mut world, ""), [4]);
    assert_eq!((world.stats("held"), world.stats("max-pending")), (":2".into(), ":10".into()));
    assert_eq!(world.say("xack s g 1-0"), ":1|");
    assert_eq!(read(&mut world, ""), []);
    // By the other field only `p` is in flight; two are free.
    world.say("xgroup cfgset s g keyfield j");
    assert_eq!(read(&mut world, "count 1"), [3]);
    world.say("xadd s 6-0 k z j q");
    world.say("xadd s 7-0 k z j p");
    assert_eq!(read(&mut world, ""), [5]);
    assert_eq!(world.stats("held"), ":2");
    let reader = world.open("10.0.0.2:1");
    assert_eq!(world.send(reader, "xreadgroup group g b block 0 streams s >"), "");
    world.say("xgroup cfgset s g keyfield ''");
    assert_eq!(ids_in(&world.read(reader)), [6, 7]);
    world.survives();
    assert!(world.say("xgroup create s h 0 keyfield").starts_with("-ERR unknown subcommand"));
}

#[test]
fn a_reader_wakes_when_a_key_is_free() {
    for free in [
        "xack s g 1-0",
        "xack s g range - +",
        "xackdel s g ids 1 1-0",
        "xdelex s delref ids 1 1-0",
        "xtrim s minid 2-0 delref",
        "xgroup delconsumer s g a",
    ] {
        let mut world = with_keys(&["x", "x", "x"]);
        let (first, second) = (world.open("10.0.0.2:1"), world.open("10.0.0.3:1"));
        assert_eq!(read(&mut world, ""), [1]);
        assert_eq!(world.send(first, "xreadgroup group g b block 0 streams s >"), "");
        assert_eq!(world.send(second, "xreadgroup group g c block 0 streams s >"), "");
        world.say(free);
        assert_eq!((ids_in(&world.read(first)), world.read(second)), (vec![2], String::new()), "{free}");
        world.say("xack s g 2-0");
        assert_eq!(ids_in(&world.read(second)), [3], "{free}");
        world.survives();
    }
    // One that is gone is dropped by the first who comes for it, which frees the key as well.
    let mut world = with_keys(&["x", "x"]);
    assert_eq!(read(&mut world, ""), [1]);
    world.say("xdel s 1-0");
    assert_eq!(read(&mut world, "claim 0"), [2]);
}

#[test]
fn a_delay_comes_first_then_the_key() {
    let mut world = with_keys(&[]);
    world.say("xadd s delay 10 1-0 k x");
    world.say("xadd s delay 20 2-0 k x");
    add(&mut world, 3, &["x", "x"]);
    // What is delayed holds nobody up.
    assert_eq!(read(&mut world, ""), [3]);
    assert_eq!((world.stats("delayed"), world.stats("held")), (":2".into(), ":1".into()));
    world.pass(20);
    assert_eq!(read(&mut world, ""), []);
    assert_eq!((world.stats("delayed"), world.stats("held")), (":0".into(), ":3".into()));
    for (done, next) in [(3, 1), (1, 2), (2, 4)] {
        assert_eq!(world.say(&format!("xack s g {done}-0")), ":1|");
        assert_eq!(read(&mut world, ""), [next]);
    }
}

#[test]
fn never_two_of_a_key_in_flight_and_all_of_them_in_order() {
    for seed in 0..30 {
        let (mut world, mut random, mut journal) = (World::new(), Random(seed + 1000), Journal::default());
        world.engine.log.enable(0);
        world.say("xgroup create s g 0 mkstream keyfield k");
        // All that was added and not given or deleted; what is in flight, and whose.
        let (mut waiting, mut flying) =
            (BTreeMap::<u64, Option<u64>>::new(), BTreeMap::<u64, (Option<u64>, u64)>::new());
        let (mut last, mut given) = (0, BTreeSet::new());
        for _ in 0..800 {
            let some = |random: &mut Random, n: usize| random.below(n.max(1) as u64) as usize;
            match random.below(20) {
                0..7 => {
                    last += 1;
                    let key = Some(random.below(5)).filter(|&key| key > 0);
                    let fields = key.map_or("f v".to_owned(), |key| format!("f v k {key}"));
                    world.say(&format!("xadd s {last}-0 {fields}"));
                    waiting.insert(last, key);
                }
                7..12 => {
                    let (count, consumer, no_ack) = (1 + some(&mut random, 5), random.below(3), random.below(8) == 0);
                    let flag = if no_ack { "noack" } else { "" };
                    let ids =
                        ids_in(&world.say(&format!("xreadgroup group g {consumer} count {count} {flag} streams s >")));
                    let busy = |flying: &BTreeMap<u64, (Option<u64>, u64)>, key: Option<u64>| {
                        key.is_some() && flying.values().any(|&(other, _)| other == key)
                    };
                    for &id in &ids {
                        assert!(given.insert(id), "{id} came twice, seed {seed}");
                        let key = waiting.remove(&id).expect("it was added and not given");
                        assert!(!busy(&flying, key), "{id} while its key was in flight, seed {seed}");
                        let earlier = waiting.range(..id).any(|(_, &other)| key.is_some() && other == key);
                        assert!(!earlier, "{id} before an earlier one of its key, seed {seed}");
                        if !no_ack {
                            flying.insert(id, (key, consumer));
                        }
                    }
                    let more = waiting.values().any(|&key| !busy(&flying, key));
                    assert!(ids.len() == count || !more, "a read that stopped too early, seed {seed}");
                }
                12..16 => {
                    let place = some(&mut random, flying.len());
                    if let Some(&id) = flying.keys().nth(place) {
                        assert_eq!(world.say(&format!("xack s g {id}-0")), ":1|");
                        flying.remove(&id);
                    }
                }
                16 => {
                    // Deleted, pending or not: what is pending still holds its key.
                    let id = 1 + random.below(last.max(1));
                    world.say(&format!("xdel s {id}-0"));
                    waiting.remove(&id);
                }
                17 => match (random.below(2), flying.keys().nth(some(&mut random, flying.len()))) {
                    (0, Some(&id)) => {
                        let to = random.below(3);
                        let taken = world.say(&format!("xclaim s g {to} 0 {id}-0 justid")) != "*0|";
                        if taken {
                            flying.get_mut(&id).unwrap().1 = to;
                        } else {
                            // It was gone, and is dropped.
                            flying.remove(&id);
                        }
                    }
                    (_, Some(&id)) => {
                        assert_eq!(world.say(&format!("xnack s g silent ids 1 {id}-0")), ":1|");
                        flying.get_mut(&id).unwrap().1 = u64::MAX;
                    }
                    _ => {}
                },
                18 => {
                    let consumer = random.below(3);
                    world.say(&format!("xgroup delconsumer s g {consumer}"));
                    flying.retain(|_, &mut (_, of)| of != consumer);
                }
                _ => {
                    world.survives();
                    journal.restart(&mut world);
                }
            }
            if random.below(10) == 0 {
                check::check(world.engine.state()).unwrap();
                assert_eq!(world.stats("lag"), format!(":{}", waiting.len()), "seed {seed}");
                assert_eq!(world.stats("pending"), format!(":{}", flying.len()), "seed {seed}");
            }
        }
        while !waiting.is_empty() {
            world.say("xack s g range - +");
            let ids = ids_in(&world.say("xreadgroup group g z streams s >"));
            assert!(!ids.is_empty(), "{waiting:?} are lost, seed {seed}");
            ids.iter().for_each(|id| assert!(waiting.remove(id).is_some() && given.insert(*id)));
        }
    }
}
