//! Who is carried out again when something happens at a key: whoever can gain, and nobody else.

use super::World;
use crate::engine::blocked::ClientIndex;

impl World {
    /// Readers that wait for `s` in group `g`, each another consumer.
    fn waiting(&mut self, n: usize, options: &str) -> Vec<ClientIndex> {
        (0..n)
            .map(|place| {
                let client = self.open(&format!("10.0.1.{place}:1"));
                let line = format!("xreadgroup group g w{place} block 0 {options} streams s >");
                assert_eq!(self.send(client, &line), "", "{line}");
                client
            })
            .collect()
    }

    /// How many waiting reads a command carries out.
    fn reads_of(&mut self, line: &str) -> u64 {
        let before = self.engine.statistics.reads_repeated;
        let reply = self.say(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
        self.engine.statistics.reads_repeated - before
    }

    fn nothing_for(&mut self, clients: &[ClientIndex]) {
        for &client in clients {
            assert_eq!(self.read(client), "");
        }
    }
}

const NEW: &str = "*1|*2|$1|s|*1|*2|$3|2-1|*2|$1|f|$1|v|";

#[test]
fn a_claim_hears_of_what_was_held_and_given_to_another() {
    for added in ["xadd s delay 100 1-1 f v", "xadd s notbefore 1700000000100 1-1 f v"] {
        let mut world = World::new();
        world.say("xgroup create s g 0 mkstream");
        let readers = world.waiting(3, "claim 300");
        world.say(added);
        world.pass(100);
        let given = "*1|*2|$1|s|*1|*4|$3|1-1|*2|$1|f|$1|v|:0|:0|";
        assert_eq!(world.read(readers[0]), given, "{added}");
        readers[..2].iter().for_each(|&client| world.engine.close(client));
        assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 300));
        world.pass(299);
        world.nothing_for(&readers[2..]);
        world.pass(1);
        assert_eq!(world.read(readers[2]), given.replace(":0|:0|", ":300|:1|"), "{added}");
        assert_eq!(world.engine.next_deadline_ms(), None);
    }
}

#[test]
fn each_claim_goes_by_its_own_time() {
    let mut world = World::new();
    world.say("xadd s 1-1 f v");
    world.say("xgroup create s g 0");
    world.say("xreadgroup group g x streams s >");
    let slow = world.waiting(2, "claim 100000000")[0];
    let quick = world.open("10.0.2.1:1");
    world.send(quick, "xreadgroup group g r block 0 claim 60000 streams s >");
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 60_000));
    assert_eq!(world.reads_of("xclaim s g x 0 1-1 idle 59999"), 0);
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 1));
    assert_eq!(world.reads_of("xclaim s g x 0 1-1 idle 70000"), 1);
    assert_eq!(world.read(quick), "*1|*2|$1|s|*1|*4|$3|1-1|*2|$1|f|$1|v|:70000|:3|");
    world.nothing_for(&[slow]);
    assert_eq!(world.reads_of("xclaim s g x 0 1-1 idle 100000000"), 1);
    assert!(world.read(slow).contains(":100000000|"));
}

#[test]
fn a_wait_that_ends_first_ends_so_in_one_turn_as_well() {
    for (block, claimed) in [(50, false), (70, true)] {
        let mut world = World::new();
        world.say("xadd s 1-1 f v");
        world.say("xgroup create s g 0");
        world.say("xreadgroup group g x streams s >");
        let reader = world.open("10.0.2.1:1");
        world.send(reader, &format!("xreadgroup group g r block {block} claim 60 streams s >"));
        // The turn is late: both times have come.
        world.pass(100);
        assert_eq!(world.read(reader).contains("1-1"), claimed, "{block}");
        assert_eq!(world.engine.blocked_count(), 0);
    }
}

#[test]
fn a_full_group_wakes_nobody_until_there_is_room() {
    for options in ["", "claim 100000"] {
        let mut world = World::new();
        world.say("xgroup create s g 0 mkstream maxpending 1");
        world.say("xadd s 1-1 f v");
        world.say("xreadgroup group g x streams s >");
        let readers = world.waiting(20, options);
        assert_eq!(world.reads_of("xadd s 2-1 f v"), 0, "{options}");
        assert_eq!(world.reads_of("xadd s 3-1 f v"), 0, "{options}");
        assert_eq!(world.reads_of("xclaim s g y 0 1-1 justid"), 0, "{options}");
        assert_eq!(world.reads_of("xgroup cfgset s g maxpending 1"), 0, "{options}");
        // One that needs no room.
        let free = world.open("10.0.2.1:1");
        assert!(world.send(free, "xreadgroup group g free noack count 1 block 0 streams s >").contains("2-1"));
        assert_eq!(world.reads_of("xack s g 1-1"), 1, "{options}");
        assert!(world.read(readers[0]).contains("3-1"));
        assert_eq!(world.send(free, "xreadgroup group g free noack block 0 streams s >"), "");
        assert_eq!(world.reads_of("xadd s 4-1 f v"), 1, "{options}");
        assert!(world.read(free).contains("4-1"));
        assert_eq!(world.reads_of("xadd s 5-1 f v"), 0, "{options}");
        assert_eq!(world.reads_of("xadd s 6-1 f v"), 0, "{options}");
        assert_eq!(world.reads_of("xadd s 7-1 f v"), 0, "{options}");
        assert_eq!(world.reads_of("xgroup cfgset s g maxpending 0"), 1, "{options}");
        assert!(world.read(readers[1]).contains("7-1"));
        world.nothing_for(&readers[2..]);
        world.survives();
    }
}

#[test]
fn room_is_nothing_to_who_needs_none() {
    let mut world = World::new();
    for line in [
        "xadd s 1-1 f v",
        "xgroup create s g 0 maxpending 1 maxpending-consumer 1",
        "xreadgroup group g w0 streams s >",
    ] {
        world.say(line);
    }
    let readers = world.waiting(2, "noack");
    let claiming = world.open("10.0.2.1:1");
    assert_eq!(world.send(claiming, "xreadgroup group g w0 noack block 0 claim 50 streams s >"), "");
    // SETID wakes nobody, and no bound was in their way.
    world.say("xgroup setid s g 0");
    assert_eq!(world.reads_of("xgroup cfgset s g maxpending 2"), 0);
    world.nothing_for(&readers);
    world.say("xgroup setid s g 1-1");
    world.pass(50);
    world.nothing_for(&[claiming]);
    assert_eq!(world.engine.next_deadline_ms(), None);
    assert_eq!(world.reads_of("xgroup cfgset s g maxpending-consumer 2"), 1);
    assert!(world.read(claiming).contains("1-1"));
}

#[test]
fn after_a_position_was_set_back_room_is_told_to_those_who_were_not_asked_whether_they_had_any() {
    for (bounds, gains) in [("", 0), ("maxpending-consumer 1", 1), ("maxpending 1", 1)] {
        let mut world = World::new();
        world.say(&format!("xgroup create s g 0 mkstream {bounds}"));
        let first = world.waiting(1, "noack");
        let reader = world.open("10.0.2.1:1");
        assert_eq!(world.send(reader, "xreadgroup group g w1 block 0 streams s >"), "");
        world.say("xadd s 1-1 f v");
        assert!(world.read(first[0]).contains("1-1"));
        // It has no more room, and nobody has asked it: there is nothing for it.
        world.say("xclaim s g w1 0 1-1 force justid");
        assert_eq!(world.reads_of("xgroup setid s g 0"), 0, "{bounds}");
        assert_eq!(world.reads_of("xack s g 1-1"), gains, "{bounds}");
        assert_eq!(world.read(reader).contains("1-1"), gains > 0, "{bounds}");
    }
}

#[test]
fn after_a_position_was_set_back_a_reader_of_several_streams_looks_at_all_when_anything_happens_at_one() {
    // What happens at `b`, where there is nothing for it.
    for event in ["xadd b 3-1 f v", "xack b g 1-1", "xclaim b g w0 0 1-1 idle 5", "xnack b g silent ids 1 1-1"] {
        let mut world = World::new();
        for line in [
            "xadd a 1-1 f v",
            "xadd b 1-1 f v",
            "xgroup create a g $",
            "xgroup create b g 0",
            "xreadgroup group g w0 streams b >",
            "xgroup setid b g 5-0",
        ] {
            world.say(line);
        }
        let reader = world.open("10.0.2.1:1");
        assert_eq!(world.send(reader, "xreadgroup group g w1 block 0 streams a b > >"), "");
        assert_eq!(world.reads_of("xgroup setid a g 0"), 0, "SETID wakes nobody");
        assert_eq!(world.reads_of(event), 1, "{event}");
        assert_eq!(world.read(reader), "*1|*2|$1|a|*1|*2|$3|1-1|*2|$1|f|$1|v|", "{event}");
    }
}

#[test]
fn a_full_consumer_is_left_alone_until_it_has_room() {
    for options in ["", "claim 5000"] {
        let mut world = World::new();
        world.say("xgroup create s g 0 mkstream maxpending-consumer 1");
        world.say("xadd s 1-1 f v");
        world.say("xreadgroup group g w0 streams s >");
        let readers = world.waiting(2, options);
        assert_eq!(world.reads_of("xadd s 2-1 f v"), 1, "{options}");
        assert!(world.read(readers[1]).contains("2-1"));
        assert_eq!(world.reads_of("xadd s 3-1 f v"), 0, "{options}");
        world.pass(6000);
        world.nothing_for(&readers);
        assert_eq!(world.engine.next_deadline_ms(), None, "{options}: time alone does not help it");
        assert_eq!(world.reads_of("xack s g 2-1"), 0, "{options}");
        assert_eq!(world.reads_of("xack s g 1-1"), 1, "{options}");
        assert!(world.read(readers[0]).contains("3-1"));
    }
    // It has room again, and nothing to read: now time helps.
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream maxpending-consumer 1");
    for (id, consumer) in ["w0", "x"].into_iter().enumerate() {
        world.say(&format!("xadd s {id}-1 f v"));
        world.say(&format!("xreadgroup group g {consumer} streams s >"));
    }
    let readers = world.waiting(1, "claim 5000");
    world.pass(5000);
    world.nothing_for(&readers);
    assert_eq!(world.reads_of("xclaim s g x 0 1-1 justid"), 0);
    assert_eq!(world.reads_of("xack s g 0-1"), 0);
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 5000));
    world.pass(5000);
    assert!(world.read(readers[0]).contains("1-1"));
}

#[test]
fn what_serves_nobody_carries_out_next_to_nobody() {
    for options in ["", "claim 100000", "noack", "claim 0"] {
        let mut world = World::new();
        world.say("xgroup create s g 0 mkstream");
        let readers = world.waiting(20, options);
        assert_eq!(world.reads_of("xadd s maxlen 0 1-0 f v"), 0, "{options}");
        // One passes over it, for all.
        assert_eq!(world.reads_of("xadd s delay 1000 1-1 f v"), 1, "{options}");
        world.nothing_for(&readers);
        let noack = options == "noack";
        let added = world.reads_of("xadd s 2-1 f v");
        assert!(world.read(readers[0]).contains("2-1"));
        if options == "claim 0" {
            // Pending, it can be claimed at once, by each after the other.
            assert_eq!(added, 20);
            continue;
        }
        assert_eq!(added, 1, "{options}");
        world.nothing_for(&readers[1..]);
        assert_eq!(world.reads_of("xack s g 2-1"), 0, "{options}");
        assert_eq!(world.reads_of("multi") + world.reads_of("xadd s 3-1 f v") + world.reads_of("xdel s 3-1"), 0);
        // EXEC itself.
        assert_eq!(world.reads_of("exec"), 0, "{options}");
        world.pass(1000);
        assert!(world.read(readers[1]).contains("1-1"), "{options}");
        world.nothing_for(&readers[2..]);
        let look = (!noack && !options.is_empty()).then_some(world.now_ms + 100_000);
        assert_eq!(world.engine.next_deadline_ms(), look, "{options}");
    }
}

#[test]
fn readers_without_a_group_hear_of_what_stays_in_the_stream() {
    let mut world = World::new();
    let reader = world.open("10.0.2.1:1");
    world.send(reader, "xread block 0 streams s $");
    assert_eq!(world.reads_of("xadd s maxlen 0 1-1 f v"), 0);
    assert_eq!(world.reads_of("xadd s delay 1000 2-1 f v"), 1);
    assert_eq!(world.read(reader), NEW);
}

#[test]
fn readers_of_several_keys_are_carried_out_again_whatever_is_left_of_what_was_added() {
    let mut world = World::new();
    world.say("xadd t 1-0 f v");
    let (one, two) = (world.open("10.0.2.1:1"), world.open("10.0.2.2:1"));
    world.send(one, "xread block 0 streams s $");
    world.send(two, "xread block 0 streams s t $ $");
    // That nobody is told that a stream is something else now is as in Redis.
    world.say("set t v");
    world.nothing_for(&[one, two]);
    world.say("xadd s maxlen 0 1-0 f v");
    assert_eq!(world.read(two), "-WRONGTYPE Operation against a key holding the wrong kind of value|");
    world.nothing_for(&[one]);
}

#[test]
fn more_lost_entries_than_one_claim_drops_are_dropped_turn_by_turn() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    for id in 1..=2500 {
        world.say(&format!("xadd s {id}-1 f v"));
    }
    world.say("xreadgroup group g x streams s >");
    world.say("xtrim s maxlen 1");
    world.pass(10);
    let readers = world.waiting(1, "claim 10");
    assert_eq!(world.engine.next_deadline_ms(), Some(0));
    world.pass(0);
    world.nothing_for(&readers);
    world.pass(0);
    assert!(world.read(readers[0]).contains("2500-1"));
    assert_eq!(world.engine.next_deadline_ms(), None);
}

#[test]
fn several_groups_and_keys_are_served_in_the_order_of_asking() {
    let mut world = World::new();
    for (key, group) in [("s", "g"), ("s", "h"), ("t", "g")] {
        world.say(&format!("xgroup create {key} {group} 0 mkstream"));
    }
    let [a, b, c, d] = [1, 2, 3, 4].map(|n| world.open(&format!("10.0.2.{n}:1")));
    world.send(a, "xreadgroup group g a block 0 streams s t > >\r\nxadd log 1-1 by a");
    world.send(b, "xreadgroup group h b block 0 streams s >\r\nxadd log 2-1 by b");
    world.send(c, "xreadgroup group g c block 0 claim 50 streams t >\r\nxadd log 3-1 by c");
    world.send(d, "xread block 0 streams s $\r\nxadd log 4-1 by d");
    world.talk(&[
        ("multi", "+OK|"),
        ("xadd s 2-1 f v", "+QUEUED|"),
        ("xadd t 2-1 f v", "+QUEUED|"),
        ("exec", "*2|$3|2-1|$3|2-1|"),
        ("xrange log - +", "*3|*2|$3|1-1|*2|$2|by|$1|a|*2|$3|2-1|*2|$2|by|$1|b|*2|$3|4-1|*2|$2|by|$1|d|"),
    ]);
    assert_eq!(
        world.read(a),
        format!(
            "{}$3|1-1|",
            NEW.replace("*1|*2|$1|s|", "*2|*2|$1|s|").to_owned() + &NEW[3..].replace("$1|s|", "$1|t|")
        )
    );
    world.pass(50);
    assert!(world.read(c).contains("2-1"));
}

#[test]
fn room_is_told_whatever_else_happens_with_it() {
    // Another group, or the same one, has a reader with CLAIM, who hears of what made room as well.
    for claiming in ["h", "g"] {
        for makes_room in [
            "xnack s g silent ids 1 1-0",
            "xnack s g silent ids 1 1-0 delay 100000",
            "xgroup delconsumer s g d release",
            "xgroup delconsumer s g d",
            "xack s g 1-0",
            "multi\r\nxclaim s g d 0 1-0\r\nxack s g 1-0\r\nexec",
            "multi\r\nxnack s g silent ids 1 1-0\r\nxack s g 1-0\r\nexec",
        ] {
            let mut world = World::new();
            world.say("xgroup create s g 0 mkstream maxpending 1");
            world.say("xgroup create s h $");
            world.say("xadd s 1-0 f v");
            world.say("xadd s 2-0 f v");
            world.say("xreadgroup group g d count 1 streams s >");
            let (a, b) = (world.open("10.0.2.1:1"), world.open("10.0.2.2:1"));
            world.send(a, "xreadgroup group g a block 0 streams s >");
            world.send(b, &format!("xreadgroup group {claiming} b block 0 claim 3600000 streams s >"));
            world.say(makes_room);
            assert!(world.read(a).contains("2-0"), "{makes_room}, a reader of {claiming} claims");
        }
    }
}

/// What an acknowledgement frees goes to whoever has waited longest, also if that one lacked room until then.
#[test]
fn room_and_a_free_key_at_once_serve_the_first_in_line() {
    let mut world = World::new();
    world.talk(&[
        ("xadd s 1-1 f k", "$3|1-1|"),
        ("xgroup create s g 0 maxpending-consumer 1 keyfield f", "+OK|"),
        ("xreadgroup group g a streams s >", "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|k|"),
        ("xadd s 2-1 f k", "$3|2-1|"),
    ]);
    let (first, second) = (world.open("10.0.0.1:1001"), world.open("10.0.0.1:1002"));
    assert_eq!(world.send(first, "xreadgroup group g a block 0 streams s >"), "");
    assert_eq!(world.send(second, "xreadgroup group g b block 0 streams s >"), "");
    world.talk(&[("xack s g 1-1", ":1|")]);
    assert_eq!((world.read(second), world.read(first).is_empty()), (String::new(), false));
}

/// Room that a claim makes goes to the first in line, not to whoever stands behind the one that claims.
#[test]
fn room_that_a_reader_makes_for_others_goes_to_the_first_of_them() {
    let mut world = World::new();
    for line in [
        "xadd s 1-0 f v",
        "xadd s 2-0 f v",
        "xadd s 3-0 f v",
        "xgroup create s g 0 maxpending-consumer 1",
        "xreadgroup group g full streams s >",
        "xreadgroup group g claims streams s >",
        "xclaim s g full 0 1-0 idle 100",
    ] {
        assert!(!world.say(line).starts_with('-'), "{line}");
    }
    let [first, claims, last] = ["10.0.2.1:1", "10.0.2.2:1", "10.0.2.3:1"].map(|addr| world.open(addr));
    world.send(first, "xreadgroup group g full block 0 streams s >");
    world.send(claims, "xreadgroup group g claims claim 50 block 0 streams s >");
    world.send(last, "xreadgroup group g full block 0 streams s >");
    world.say("xack s g 2-0");
    assert!(world.read(claims).contains("1-0") && world.read(first).contains("3-0"));
    world.nothing_for(&[last]);
}
