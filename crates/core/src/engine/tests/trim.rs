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
