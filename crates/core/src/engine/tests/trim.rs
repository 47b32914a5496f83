//! Trimming: what goes and what stays.

use super::World;

/// Streams `s` with entries 1-0 … 6-0 in nodes of four.
fn six_entries() -> World {
    let mut world = World::with(&[("stream-node-max-entries", "4")]);
    (1..=6).for_each(|ms| assert!(world.say(&format!("XADD s {ms}-0 f v")).starts_with('$')));
    world
}

#[test]
fn limit_holds_for_acked_without_groups() {
    let mut world = six_entries();
    world.talk(&[
        ("XTRIM s MAXLEN ~ 0 LIMIT 5 ACKED", ":4|"),
        ("XTRIM s MAXLEN ~ 0 LIMIT 1 ACKED", ":0|"),
        ("XTRIM s MAXLEN ~ 0 LIMIT 2 ACKED", ":2|"),
    ]);
}

#[test]
fn the_greatest_id_goes_as_well() {
    const TOP: &str = "18446744073709551615";
    for (mode, approximate) in [("KEEPREF", "="), ("DELREF", "="), ("ACKED", "="), ("KEEPREF", "~"), ("ACKED", "~")] {
        let mut world = six_entries();
        world.say(&format!("XADD s {TOP}-{TOP} f v"));
        world.say("XGROUP CREATE s g $");
        assert_eq!(world.say(&format!("XTRIM s MINID {approximate} {TOP}-{TOP} {mode}")).chars().next(), Some(':'));
        assert_ne!(world.say("XLEN s"), ":0|", "{mode} {approximate}: MINID keeps it");
        world.say(&format!("XTRIM s MAXLEN {approximate} 0 {mode}"));
        world.talk(&[("XLEN s", ":0|")]);
    }
}

#[test]
fn ids_of_trimmed_entries_may_come_again() {
    let mut world = World::new();
    world.talk(&[
        ("XADD s 1-1 f v", "$3|1-1|"),
        ("XADD s 5-5 f v", "$3|5-5|"),
        ("XGROUP CREATE s g 5-5", "+OK|"),
        ("XCLAIM s g c 0 1-1 FORCE JUSTID", "*1|$3|1-1|"),
        ("XTRIM s MAXLEN 1 ACKED", ":1|"),
        ("XSETID s 2-0", "+OK|"),
        ("XADD s 5-3 g w", "$3|5-3|"),
        ("XADD s 5-4 f w", "$3|5-4|"),
        ("XADD s 5-5 f w", "$3|5-5|"),
        ("XDEL s 5-3", ":1|"),
        ("XRANGE s - +", "*3|*2|$3|1-1|*2|$1|f|$1|v|*2|$3|5-4|*2|$1|f|$1|w|*2|$3|5-5|*2|$1|f|$1|w|"),
    ]);
}

#[test]
fn entries_up_to_the_greatest_id_are_counted_as_they_go() {
    let mut world = World::new();
    let greatest = "18446744073709551615-18446744073709551615";
    for (trim, removed) in [("maxlen 0", 2), ("maxlen ~ 0", 2), ("maxlen 0 delref", 2), ("maxlen 1", 1), ("minid 2", 1)]
    {
        world.say("del s");
        world.say("xadd s 1-1 a b");
        world.say(&format!("xadd s {greatest} a b"));
        world.talk(&[("xgroup create s g 0", "+OK|")]);
        world.say("xreadgroup group g c streams s >");
        if !trim.contains("delref") {
            world.say(&format!("xack s g 1-1 {greatest}"));
        }
        let acked = format!("xtrim s {trim} acked");
        let line = if trim.contains("delref") { format!("xtrim s {trim}") } else { acked };
        assert_eq!(world.say(&line), format!(":{removed}|"), "{line}");
        assert_eq!(world.say("xlen s"), format!(":{}|", 2 - removed), "{line}");
    }
    world.say("del s");
    world.say(&format!("xadd s {greatest} a b"));
    world.talk(&[("xtrim s maxlen 0", ":1|"), ("xlen s", ":0|"), ("xtrim s maxlen 0", ":0|")]);
}

/// The IDs of a stream: all of them end in `-0` here.
fn left(world: &mut World) -> Vec<u64> {
    super::delays::ids_in(&world.say("XRANGE s - +"))
}

#[test]
fn acked_spares_what_was_given_back() {
    for approximate in ["=", "~"] {
        let mut world = World::with(&[("stream-node-max-entries", "1")]);
        world.talk(&[("XGROUP CREATE s g 0 MKSTREAM", "+OK|")]);
        (1..=6).for_each(|ms| drop(world.say(&format!("XADD s {ms}-0 f v"))));
        world.say("XREADGROUP GROUP g a STREAMS s >");
        let trim = format!("XTRIM s MAXLEN {approximate} 0 ACKED");
        // Released and deferred entries are pending, though nobody has them.
        world.talk(&[
            ("XNACK s g FAIL IDS 2 1-0 2-0", ":2|"),
            ("XNACK s g FAIL DELAY 1000 IDS 1 4-0", ":1|"),
            ("XACK s g 3-0 5-0 6-0", ":3|"),
            (&trim, ":3|"),
        ]);
        assert_eq!(left(&mut world), [1, 2, 4]);
        world.pass(1000);
        world.talk(&[(&trim, ":0|"), ("XACK s g 4-0", ":1|"), (&trim, ":1|")]);
        assert_eq!(left(&mut world), [1, 2]);
        // A consumer that goes takes nothing with it that nobody has.
        world.talk(&[
            ("XGROUP DELCONSUMER s g a", ":0|"),
            (&trim, ":0|"),
            ("XACK s g RANGE - +", ":2|"),
            (&trim, ":2|"),
        ]);
        assert_eq!(left(&mut world), []);
        world.survives();
    }
}

#[test]
fn acked_spares_what_is_delayed_or_waits_behind_its_key() {
    for approximate in ["=", "~"] {
        let mut world = World::with(&[("stream-node-max-entries", "1")]);
        world.talk(&[("XGROUP CREATE s g 0 MKSTREAM KEYFIELD k", "+OK|")]);
        for add in ["1-0 k x", "2-0 k x", "DELAY 1000 3-0 k y", "4-0 k y", "5-0 k x", "6-0 k z"] {
            world.say(&format!("XADD s {add}"));
        }
        let trim = format!("XTRIM s MAXLEN {approximate} 0 ACKED");
        // 2 and 5 wait behind 1, 3 for its time; 4 and 6 are free when they are acknowledged.
        world.say("XREADGROUP GROUP g a STREAMS s >");
        world.talk(&[("XACK s g 4-0 6-0", ":2|"), (&trim, ":2|")]);
        assert_eq!(left(&mut world), [1, 2, 3, 5]);
        world.talk(&[("XACK s g 1-0", ":1|"), (&trim, ":1|"), (&trim, ":0|")]);
        assert_eq!(left(&mut world), [2, 3, 5]);
        // Held no more, nor pending: given without acknowledgement.
        assert!(world.say("XREADGROUP GROUP g a COUNT 1 NOACK STREAMS s >").contains("2-0"));
        world.talk(&[(&trim, ":1|")]);
        world.pass(1000);
        world.talk(&[(&trim, ":0|")]);
        assert!(world.say("XREADGROUP GROUP g a COUNT 1 STREAMS s >").contains("3-0"));
        world.talk(&[(&trim, ":0|"), ("XACKDEL s g IDS 1 3-0", "*1|:1|")]);
        assert_eq!(left(&mut world), [5]);
        // In a second group that has passed over nothing it is not free, either.
        world.talk(&[("XGROUP CREATE s h 0", "+OK|")]);
        world.say("XREADGROUP GROUP g a NOACK STREAMS s >");
        world.talk(&[(&trim, ":0|"), ("XGROUP SETID s h $", "+OK|"), (&trim, ":1|")]);
        world.survives();
    }
}

#[test]
fn what_waits_behind_keys_goes_by_turns() {
    for trim in ["xtrim s maxlen = 1", "xtrim s minid = 3001 delref", "xadd s maxlen = 1 3002-0 f v"] {
        let mut world = World::new();
        world.say("xgroup create s g 0 mkstream keyfield k");
        (1..=3000).for_each(|id| drop(world.say(&format!("xadd s {id}-0 k busy"))));
        world.say("xadd s 3001-0 f v");
        world.say("multi\r\nxreadgroup group g a streams s >\r\nexec");
        world.pass(0);
        assert_eq!(world.say(trim), "", "{trim}");
        let (me, mut turns) = (world.me, 0);
        let mut reply = String::new();
        while reply.is_empty() {
            world.survives();
            assert_eq!(world.engine.next_deadline_ms(), Some(0), "{trim}");
            world.pass(0);
            turns += 1;
            reply = world.read(me);
        }
        assert_eq!(turns, 2, "{trim}");
        assert_eq!(reply, if trim.starts_with("xadd") { "$6|3002-0|" } else { ":3000|" });
        assert_eq!(world.say("xlen s"), ":1|");
        world.survives();
    }
}

#[test]
fn what_is_delayed_goes_at_once_and_is_freed_bit_by_bit() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    (1..=3000).for_each(|id| drop(world.say(&format!("xadd s delay 100000 {id}-0 f v"))));
    world.say("multi\r\nxreadgroup group g a streams s >\r\nexec");
    world.pass(0);
    assert_eq!(world.say("xtrim s maxlen = 1"), ":2999|");
    let mut pieces = 1;
    while world.engine.free_one() {
        pieces += 1;
    }
    assert!(pieces >= 3, "the entries, the delays, and what the group held");
    assert_eq!((world.stats("delayed"), world.engine.next_deadline_ms()), (":1".into(), Some(world.now_ms + 100_000)));
    world.survives();
}

#[test]
fn how_entries_lie_in_blocks_does_not_depend_on_when_room_was_made() {
    for (groups, trim) in [(true, "ACKED MAXLEN 1"), (true, "ACKED MINID 2-0"), (false, "ACKED MINID 2-0")] {
        let mut world = World::with(&[("stream-node-max-entries", "2")]);
        world.say("XADD s 1-0 f v");
        if groups {
            world.say("XGROUP CREATE s g 5-0");
        }
        // The one before is trimmed when the new one is there, so both stand in one block, which is full then.
        world.talk(&[(&format!("XADD s {trim} 2-0 f v"), "$3|2-0|"), ("XLEN s", ":1|"), ("XADD s 3-0 f v", "$3|3-0|")]);
        let told = world.say("XINFO STREAM s");
        assert!(told.contains("radix-tree-keys|:2|"), "{trim}: {told}");
    }
}
