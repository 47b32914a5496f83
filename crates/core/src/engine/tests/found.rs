//! What random commands beside a model have found: each case once, as short as it came out.

use super::World;
use super::delays::ids_in;

fn pending(n: u64) -> World {
    let mut world = World::new();
    for id in 1..=n {
        world.say(&format!("xadd s {id}-0 k x"));
    }
    world.say("xgroup create s g 0 mkstream");
    world.say("xreadgroup group g a streams s >");
    world
}

#[test]
fn what_is_added_behind_every_position_is_not_retained() {
    let mut world = World::new();
    world.tell(&[
        ("xgroup create s g 100-0 mkstream", "+OK|"),
        ("xcfgset s retain acked", "+OK|"),
        ("xadd s 5-0 f v", "$3|5-0|"),
        ("xaddm s delay 1000 count 2 6-0 1 f v 101-0 1 f v", "*2|$3|6-0|$5|101-0|"),
        ("xrange s - +", "*1|*2|$5|101-0|*2|$1|f|$1|v|"),
    ]);
}

#[test]
fn the_greatest_id_is_no_shelter_from_bounds() {
    let mut world = World::new();
    world.tell(&[
        ("xgroup create s g 0 mkstream", "+OK|"),
        ("xcfgset s maxbytes 1", "+OK|"),
        ("xadd s 18446744073709551615-18446744073709551615 f v", "$41|18446744073709551615-18446744073709551615|"),
        ("xlen s", ":0|"),
    ]);
}

#[test]
fn a_size_means_the_same_for_one_stream_and_for_several() {
    let mut world = World::new();
    for line in ["xadd s 1-0 f v", "xadd s 2-0 f v", "xadd s 3-0 f v", "xgroup create t g 0 mkstream"] {
        world.say(line);
    }
    // The name takes 11 bytes with its pair, an entry 31.
    for (bytes, wanted) in [(42, 1), (43, 2), (73, 2), (74, 3)] {
        for (keys, ids) in [("s", ">"), ("t s", "> >")] {
            world.say("xgroup destroy s g");
            world.say("xgroup create s g 0");
            let reply = world.say(&format!("xreadgroup group g a maxsize {bytes} streams {keys} {ids}"));
            assert_eq!(ids_in(&reply).len(), wanted, "{bytes} {keys}");
        }
        assert_eq!(ids_in(&world.say(&format!("xread maxsize {bytes} streams s 0"))).len(), wanted);
    }
}

#[test]
fn who_loses_an_entry_to_another_reader_has_room() {
    for set in ["", "xgroup cfgset s g keyfield k"] {
        let mut world = World::new();
        for line in ["xadd s 1-0 k x", "xadd s 2-0 k y", "xgroup create s g 0 maxpending-consumer 1", set] {
            world.say(line);
        }
        let b = world.open("10.0.0.2:1");
        assert_eq!(ids_in(&world.send(b, "xreadgroup group g b streams s >")), [1]);
        assert_eq!(world.send(b, "xreadgroup group g b block 0 streams s >"), "");
        world.say("xgroup setid s g 0");
        assert_eq!(ids_in(&world.say("xreadgroup group g a streams s >")), [1]);
        assert_eq!(ids_in(&world.read(b)), [2]);
        world.survives();
    }
}

#[test]
fn a_waiting_claim_hears_of_what_is_given_past_a_held_entry() {
    let mut world = World::new();
    for line in ["xadd s delay 10000 1-0 f v", "xadd s 2-0 f v", "xgroup create s g 0"] {
        world.say(line);
    }
    assert_eq!(ids_in(&world.say("xreadgroup group g a streams s >")), [2]);
    world.say("xack s g 2-0");
    let b = world.open("10.0.0.2:1");
    assert_eq!(world.send(b, "xreadgroup group g b block 0 claim 400 streams s >"), "");
    world.say("xgroup setid s g 0");
    assert_eq!(ids_in(&world.say("xreadgroup group g a streams s >")), [2]);
    world.pass(400);
    assert_eq!(ids_in(&world.read(b)), [2]);
}

#[test]
fn what_waited_behind_several_keys_comes_in_stream_order() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream keyfield k");
    for (id, key) in (1..).zip(["x", "y", "x", "x", "y"]) {
        world.say(&format!("xadd s {id}-0 k {key}"));
    }
    assert_eq!(ids_in(&world.say("xreadgroup group g a streams s >")), [1, 2]);
    world.say("xack s g range - +");
    assert_eq!(ids_in(&world.say("xreadgroup group g a count 2 noack streams s >")), [3, 4]);
    assert_eq!(ids_in(&world.say("xreadgroup group g a noack streams s >")), [5]);
    world.survives();
}

#[test]
fn released_entries_come_before_those_that_only_look_old() {
    let mut world = pending(3);
    world.say("xclaim s g a 0 1-0 time 1 justid");
    world.say("xnack s g fail ids 2 3-0 2-0");
    world.say("xgroup cfgset s g maxpending 2");
    // There is room for one more in flight; what another has needs none.
    let reply = world.say("xreadgroup group g b claim 5 streams s >");
    assert_eq!(ids_in(&reply), [3, 1], "{reply}");
    world.survives();
}

#[test]
fn a_reader_content_with_less_is_not_passed_over() {
    let mut world = pending(1);
    let (b, c) = (world.open("10.0.0.2:1"), world.open("10.0.0.3:1"));
    assert_eq!(world.send(b, "xreadgroup group g b block 0 claim 1000 streams s >"), "");
    assert_eq!(world.send(c, "xreadgroup group g c block 0 claim 10 streams s >"), "");
    world.say("xclaim s g a 0 1-0 idle 500 justid");
    assert_eq!((ids_in(&world.read(b)), ids_in(&world.read(c))), (vec![], vec![1]));
}

#[test]
fn the_end_of_a_delay_is_no_delivery() {
    let mut world = pending(1);
    world.say("xnack s g fail ids 1 1-0 delay 10");
    // Over, and not noticed yet.
    world.now_ms += 20;
    assert_eq!(world.stats("oldest-pending-ms"), "$-1");
    assert_eq!(world.stats("delayed"), ":1");
    world.pass(0);
    assert_eq!((world.stats("oldest-pending-ms"), world.stats("released")), ("$-1".into(), ":1".into()));
}

#[test]
fn a_claim_that_drops_lost_entries_has_their_room() {
    let mut world = pending(2);
    world.say("xgroup cfgset s g maxpending 2");
    let b = world.open("10.0.0.2:1");
    assert_eq!(world.send(b, "xreadgroup group g b block 0 claim 5 streams s >"), "");
    world.say("multi");
    world.say("xdel s 1-0 2-0");
    world.say("xadd s 3-0 k x");
    world.say("xadd s 4-0 k x");
    world.say("exec");
    assert_eq!(world.read(b), "");
    world.pass(5);
    assert_eq!(ids_in(&world.read(b)), [3, 4]);
    world.survives();
}

#[test]
fn claiming_what_one_has_takes_no_room() {
    let mut world = pending(2);
    world.say("xadd s 3-0 k x");
    world.say("xadd s 4-0 k x");
    world.say("xgroup cfgset s g maxpending-consumer 3");
    let reply = world.say("xreadgroup group g a claim 0 streams s >");
    assert_eq!(ids_in(&reply), [1, 2, 3], "what it has makes no difference, so one more fits");
    world.survives();
}

#[test]
fn who_acknowledges_nothing_does_not_wait_for_room() {
    let mut world = pending(1);
    world.say("xgroup cfgset s g maxpending 1");
    let b = world.open("10.0.0.2:1");
    assert_eq!(world.send(b, "xreadgroup group g b noack block 0 streams s >"), "");
    world.say("xgroup setid s g 0");
    world.say("xgroup cfgset s g maxpending 2");
    assert_eq!(world.read(b), "", "SETID wakes nobody, and no bound was in its way");
}

/// Both readers are past the end of their wait when the server looks: who could be served before that is.
#[test]
fn the_end_of_a_delay_reaches_readers_with_claim() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    world.say("xadd s delay 10 1-0 f v");
    world.say("xclaim s g a 0 1-0 force lastid 1-0");
    let (b, c) = (world.open("10.0.0.2:1"), world.open("10.0.0.3:1"));
    assert_eq!(world.send(b, "xreadgroup group g b block 50 streams s >"), "");
    assert_eq!(world.send(c, "xreadgroup group g c claim 10 block 5 streams s >"), "");
    world.pass(20);
    assert_eq!((ids_in(&world.read(b)), ids_in(&world.read(c))), (vec![], vec![1]));
}
