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
