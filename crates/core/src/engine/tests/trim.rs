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
