//! Entries that groups do not get before a time.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use crate::check;
use crate::engine::Engine;
use crate::record::Record;
use crate::settings::Settings;
use crate::state::codec::Reader;
use crate::test_support::Random;

/// A reply with these entries, in the words of [`World::say`].
fn entries(ids: &[&str]) -> String {
    let all: String = ids.iter().map(|id| format!("*2|${}|{id}|*2|$1|f|$1|v|", id.len())).collect();
    format!("*1|*2|$1|s|*{}|{all}", ids.len())
}

/// The IDs in a reply: all of them end in `-0` in these tests.
pub(super) fn ids_in(reply: &str) -> Vec<u64> {
    reply.split('|').filter_map(|word| word.strip_suffix("-0")?.parse().ok()).collect()
}

/// The log of a world that is restarted now and then.
#[derive(Default)]
pub(super) struct Journal(Vec<u8>);

impl Journal {
    /// A new process reads what the old one has written, and finds the same. It goes on with that.
    pub(super) fn restart(&mut self, world: &mut World) {
        let mut bytes = Vec::new();
        world.engine.log.take(&mut bytes);
        self.0.extend(bytes);
        let mut engine = Engine::new(Settings::default(), 99);
        let mut reader = Reader::new(&self.0);
        while !reader.is_empty() {
            let record = Record::decode(&mut reader).unwrap();
            engine.replay(&record, 0);
        }
        check::check(engine.state()).unwrap();
        assert_eq!(check::exact_digest(engine.state()), check::exact_digest(world.engine.state()));
        engine.log.enable(self.0.len() as u64);
        world.me = engine.open("10.0.0.1:1000".into(), "10.0.0.9:6379".into(), world.now_ms);
        world.engine = engine;
    }
}

#[test]
fn delayed_entries_are_in_the_stream_and_come_when_they_are_due() {
    let mut world = World::new();
    let read = "xreadgroup group g a streams s >";
    world.tell(&[
        ("xgroup create s g 0 mkstream", "+OK|"),
        ("xadd s delay 200 1-0 f v", "$3|1-0|"),
        ("xadd s notbefore 1700000000100 2-0 f v", "$3|2-0|"),
        ("xadd s delay 0 3-0 f v", "$3|3-0|"),
        ("xadd s notbefore 1700000000000 4-0 f v", "$3|4-0|"),
        ("xlen s", ":4|"),
        ("xread streams s 0", &entries(&["1-0", "2-0", "3-0", "4-0"])),
        (read, &entries(&["3-0", "4-0"])),
        (read, "*-1|"),
        ("xpending s g - + 9", "*2|*4|$3|3-0|$1|a|:0|:1|*4|$3|4-0|$1|a|:0|:1|"),
        ("xack s g 1-0 2-0 3-0", ":1|"),
    ]);
    assert!(world.say("xinfo groups s").ends_with("|$17|last-delivered-id|$3|4-0|$12|entries-read|:4|$3|lag|:2|"));
    for (field, value) in [("delayed", ":2"), ("held", ":0"), ("lag", ":2"), ("next-release-ms", ":100")] {
        assert_eq!(world.stats(field), value, "{field}");
    }
    assert_eq!(world.stats("oldest-undelivered-ms"), format!(":{}", world.now_ms - 1));
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 100));
    world.pass(99);
    world.tell(&[(read, "*-1|"), ("xadd s 5-0 f v", "$3|5-0|")]);
    world.pass(101);
    assert_eq!(world.engine.next_deadline_ms(), None);
    // By due time, and before what is new. A group made now finds nothing to wait for.
    world.tell(&[
        ("xgroup create s late 0", "+OK|"),
        ("xreadgroup group g a count 1 streams s >", &entries(&["2-0"])),
        (read, &entries(&["1-0", "5-0"])),
        ("xreadgroup group late a streams s >", &entries(&["1-0", "2-0", "3-0", "4-0", "5-0"])),
    ]);
    assert!(world.say("xinfo groups s").contains("|entries-read|:5|$3|lag|:0|"));
}

#[test]
fn numbers_that_are_none() {
    let mut world = World::new();
    let (delay, not_before, twice) = (
        "-ERR DELAY must be a number of milliseconds, 0 or more|",
        "-ERR NOTBEFORE must be a Unix time in milliseconds, 0 or more|",
        "-ERR syntax error, DELAY or NOTBEFORE can be given once|",
    );
    world.tell(&[
        ("xadd s delay x * f v", delay),
        ("xadd s delay -1 * f v", delay),
        ("xadd s delay 9223372036854775807 * f v", delay),
        ("xadd s notbefore -5 * f v", not_before),
        ("xadd s notbefore 1.5 * f v", not_before),
        ("xadd s delay 1 notbefore 5 * f v", twice),
        ("xadd s delay 1 delay 1 * f v", twice),
        ("xaddm s delay x count 1 * 1 f v", delay),
        ("exists s", ":0|"),
        ("xaddm s delay 5 count 2 1-0 1 f v 2-0 1 f v", "*2|$3|1-0|$3|2-0|"),
        ("xgroup create s g 0", "+OK|"),
        ("xreadgroup group g a streams s >", "*-1|"),
    ]);
    assert_eq!(world.stats("delayed"), ":2");
}

#[test]
fn options_of_the_read_hold_for_what_was_held() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream maxpending 3");
    for id in 1..=4 {
        world.say(&format!("xadd s delay {} {id}-0 f v", 50 - id));
    }
    world.say("xadd s 5-0 f v");
    world.tell(&[("xreadgroup group g a count 1 streams s >", &entries(&["5-0"]))]);
    world.pass(50);
    world.tell(&[
        ("xreadgroup group g a maxcount 1 streams s >", &entries(&["4-0"])),
        ("xreadgroup group g a claim 100 streams s >", "*1|*2|$1|s|*1|*4|$3|3-0|*2|$1|f|$1|v|:0|:0|"),
        ("xreadgroup group g a streams s >", "*-1|"),
        ("xreadgroup group g a noack maxsize 1 streams s >", &entries(&["2-0"])),
        ("xadd s 6-0 f v", "$3|6-0|"),
        (
            "xreadgroup group g a noack claim 100 streams s >",
            "*1|*2|$1|s|*2|*4|$3|1-0|*2|$1|f|$1|v|:0|:0|*4|$3|6-0|*2|$1|f|$1|v|:0|:0|",
        ),
        ("xpending s g", "*4|:3|$3|3-0|$3|5-0|*1|*2|$1|a|$1|3|"),
    ]);
}

#[test]
fn what_becomes_of_held_entries() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    for id in 1..=6 {
        world.say(&format!("xadd s delay 1000 {id}-0 f v"));
    }
    let read = "xreadgroup group g a streams s >";
    world.tell(&[
        (read, "*-1|"),
        // Deleted and trimmed: nothing waits any more.
        ("xdel s 5-0", ":1|"),
        ("xtrim s minid 2-0", ":1|"),
    ]);
    assert_eq!((world.stats("delayed"), world.stats("lag")), (":4".to_owned(), ":4".to_owned()));
    world.tell(&[
        // Nobody is done with them.
        ("xtrim s maxlen 0 acked", ":0|"),
        ("xdelex s acked ids 1 2-0", "*1|:2|"),
        // Claimed by force, an entry is given.
        ("xclaim s g b 0 2-0 force justid", "*1|$3|2-0|"),
        // Forward, what was passed over still comes; back, it is come upon again.
        ("xgroup setid s g $", "+OK|"),
        ("xadd s 7-0 f v", "$3|7-0|"),
        ("xgroup setid s g 3-0", "+OK|"),
    ]);
    assert_eq!((world.stats("delayed"), world.stats("lag")), (":1".to_owned(), ":4".to_owned()));
    world.tell(&[
        (read, &entries(&["7-0"])),
        ("copy s t", ":1|"),
        ("rename t u", "+OK|"),
        ("xgroup destroy s g", ":1|"),
    ]);
    world.pass(1000);
    world.tell(&[
        ("xgroup create s g 7-0", "+OK|"),
        (read, "*-1|"),
        ("xreadgroup group g a streams u >", &entries(&["3-0", "4-0", "6-0"]).replace("|s|", "|u|")),
        ("flushall", "+OK|"),
    ]);
}

#[test]
fn a_stream_that_keeps_what_is_not_acknowledged_keeps_what_is_delayed() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    world.say("xcfgset s retain acked");
    world.say("xadd s delay 10 1-0 f v");
    world.say("xadd s 2-0 f v");
    world.say("xadd s delay 10 3-0 f v");
    world.tell(&[
        ("xreadgroup group g a streams s >", &entries(&["2-0"])),
        ("xack s g 2-0", ":1|"),
        ("xrange s - +", "*2|*2|$3|1-0|*2|$1|f|$1|v|*2|$3|3-0|*2|$1|f|$1|v|"),
        ("xgroup setid s g $", "+OK|"),
        ("xlen s", ":2|"),
    ]);
    world.pass(10);
    world.tell(&[
        ("xreadgroup group g a count 1 streams s >", &entries(&["1-0"])),
        ("xlen s", ":2|"),
        ("xreadgroup group g a noack streams s >", &entries(&["3-0"])),
        ("xlen s", ":1|"),
        ("xack s g 1-0", ":1|"),
        ("xlen s", ":0|"),
    ]);
}

#[test]
fn readers_wake_when_an_entry_is_due() {
    let mut world = World::new();
    let (first, second, plain) = (world.open("10.0.0.2:1"), world.open("10.0.0.3:1"), world.open("10.0.0.4:1"));
    world.say("xgroup create s g 0 mkstream");
    assert_eq!(world.send(first, "xreadgroup group g a count 1 block 0 streams s >"), "");
    assert_eq!(world.send(second, "xreadgroup group g b count 1 block 0 streams s >"), "");
    assert_eq!(world.send(plain, "xread block 0 streams s 3-0"), "");
    world.say("xadd s delay 2000 1-0 f v");
    world.say("xadd s delay 1000 2-0 f v");
    world.say("xadd s delay 1000 3-0 f v");
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 1000));
    world.pass(999);
    assert_eq!((world.read(first), world.read(second)), (String::new(), String::new()));
    world.pass(1);
    assert_eq!((world.read(first), world.read(second)), (entries(&["2-0"]), entries(&["3-0"])));
    assert_eq!(world.send(second, "xreadgroup group g b block 1500 streams s >"), "");
    world.pass(1000);
    assert_eq!((world.read(second), world.read(plain)), (entries(&["1-0"]), String::new()));
    assert_eq!(world.engine.next_deadline_ms(), None);
    assert_eq!(world.engine.blocked_count(), 1);
    world.survives();
}

#[test]
fn many_that_are_due_at_once_take_several_turns_and_keep_their_order() {
    let mut world = World::new();
    let reader = world.open("10.0.0.2:1");
    world.say("xgroup create s g 0 mkstream");
    for id in 1..=2500 {
        world.say(&format!("xadd s delay {} {id}-0 f v", 5000 - id));
    }
    assert_eq!(world.send(reader, "xreadgroup group g a block 0 streams s >"), "");
    // It passes over them in several turns, too.
    (0..5).for_each(|_| world.pass(0));
    world.pass(5000);
    assert_eq!(ids_in(&world.read(reader)), (1..=2500).rev().collect::<Vec<_>>());
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms - 5000 + 5000 - 1500));
    world.pass(0);
    world.pass(0);
    assert_eq!(world.engine.next_deadline_ms(), None);
    world.survives();
}

/// What a group should do, in the simplest words.
#[derive(Default)]
struct Model {
    position: u64,
    held: BTreeSet<u64>,
    pending: BTreeSet<u64>,
}

/// Entries and the times before which groups do not get them.
type Times = BTreeMap<u64, u64>;

impl Model {
    fn read(&mut self, times: &Times, now_ms: u64, count: usize, no_ack: bool) -> Vec<u64> {
        let mut due: Vec<(u64, u64)> = self.held.iter().map(|id| (times[id], *id)).filter(|d| d.0 <= now_ms).collect();
        due.sort_unstable();
        let mut given: Vec<u64> = due.into_iter().map(|(_, id)| id).take(count).collect();
        given.iter().for_each(|id| assert!(self.held.remove(id)));
        for (&id, &due_ms) in times.range(self.position + 1..) {
            if given.len() == count {
                break;
            }
            self.position = id;
            if due_ms <= now_ms || self.pending.contains(&id) {
                given.push(id);
            } else {
                self.held.insert(id);
            }
        }
        if !no_ack {
            self.pending.extend(&given);
        }
        given
    }
}

#[test]
fn nothing_is_skipped_or_given_twice() {
    for seed in 0..30 {
        let (mut world, mut random, mut journal) = (World::new(), Random(seed), Journal::default());
        world.engine.log.enable(0);
        let groups = ["g", "h"];
        let mut models = [Model::default(), Model::default()];
        groups.iter().for_each(|group| assert_eq!(world.say(&format!("xgroup create s {group} 0 mkstream")), "+OK|"));
        let (mut times, mut last) = (Times::new(), 0);
        for _ in 0..600 {
            let which = random.below(2) as usize;
            let (group, model) = (groups[which], &mut models[which]);
            let some = |random: &mut Random, of: &BTreeSet<u64>| {
                of.iter().nth(random.below(of.len().max(1) as u64) as usize).copied()
            };
            match random.below(20) {
                0..6 => {
                    last += 1 + random.below(3);
                    let delay_ms = if random.below(3) == 0 { 0 } else { random.below(60) };
                    world.say(&format!("xadd s delay {delay_ms} {last}-0 f v"));
                    times.insert(last, world.now_ms + delay_ms);
                }
                6..11 => {
                    let (count, no_ack) = (1 + random.below(6) as usize, random.below(5) == 0);
                    let flag = if no_ack { "noack" } else { "" };
                    let consumer = random.below(3);
                    let reply =
                        world.say(&format!("xreadgroup group {group} {consumer} count {count} {flag} streams s >"));
                    assert_eq!(ids_in(&reply), model.read(&times, world.now_ms, count, no_ack), "seed {seed}");
                }
                11..14 => world.pass(random.below(25)),
                14..16 => {
                    if let Some(id) = some(&mut random, &model.pending) {
                        assert_eq!(world.say(&format!("xack s {group} {id}-0")), ":1|");
                        model.pending.remove(&id);
                    }
                }
                16 => {
                    let all: BTreeSet<u64> = times.keys().copied().collect();
                    if let Some(id) = some(&mut random, &all) {
                        assert_eq!(world.say(&format!("xdel s {id}-0")), ":1|");
                        times.remove(&id);
                        models.iter_mut().for_each(|model| model.held.retain(|&held| held != id));
                    }
                }
                17 => {
                    let id = last.saturating_sub(random.below(8));
                    world.say(&format!("xgroup setid s {group} {id}-0"));
                    model.position = id;
                    model.held.retain(|&held| held <= id);
                }
                18 => {
                    let before = last.saturating_sub(20 + random.below(20));
                    world.say(&format!("xtrim s minid {before}-0"));
                    times.retain(|&id, _| id >= before);
                    models.iter_mut().for_each(|model| model.held.retain(|&id| id >= before));
                }
                _ => {
                    world.survives();
                    journal.restart(&mut world);
                }
            }
            let lag = times.range(models[0].position + 1..).count() + models[0].held.len();
            if random.below(10) == 0 {
                assert_eq!(world.stats("lag"), format!(":{lag}"));
                check::check(world.engine.state()).unwrap();
            }
        }
        world.pass(100);
        for (group, model) in groups.iter().zip(&mut models) {
            let reply = world.say(&format!("xreadgroup group {group} z streams s >"));
            assert_eq!(ids_in(&reply), model.read(&times, world.now_ms, usize::MAX, false));
            assert!(model.held.is_empty() && times.range(model.position + 1..).next().is_none());
        }
        assert_eq!(world.engine.next_deadline_ms(), None, "seed {seed}");
    }
}
