//! Streams through the engine: what the recorded cases cannot see, such as how time passes and who waits for whom.

use super::World;

const NULL: &str = "*-1|";

#[test]
fn a_wait_ends_at_its_time_and_not_before() {
    let mut world = World::new();
    assert_eq!(world.say("xread block 100 streams s $"), "");
    world.pass(100);
    let me = world.me;
    assert_eq!(world.read(me), "", "the clock is read once a turn: not early");
    world.pass(1);
    assert_eq!(world.read(me), NULL);
}

#[test]
fn a_reader_woken_in_vain_keeps_its_time_and_goes_to_the_back() {
    let mut world = World::new();
    world.talk(&[("xgroup create a g $ mkstream", "+OK|"), ("xgroup create b g $ mkstream", "+OK|")]);
    let [first, second] = ["127.0.0.1:8", "127.0.0.1:9"].map(|addr| world.open(addr));
    world.send(first, "xreadgroup group g c1 count 1 block 50 streams a b > >");
    world.send(second, "xreadgroup group g c2 count 1 block 0 streams b >");
    // Added and deleted in one transaction: the first is woken at `a` in vain.
    world.say("multi");
    world.say("xadd a 1-0 f v");
    world.say("xdel a 1-0");
    world.say("exec");
    world.say("xadd b 1-0 f v");
    assert_eq!(world.read(first), "");
    assert_eq!(world.read(second), "*1|*2|$1|b|*1|*2|$3|1-0|*2|$1|f|$1|v|");
    world.pass(51);
    assert_eq!(world.read(first), NULL);
}

#[test]
fn commands_behind_a_wait_come_after_it() {
    let mut world = World::new();
    let other = world.open("127.0.0.1:9");
    assert_eq!(world.send(other, "xread block 0 streams s $\r\nping\r\nxlen s"), "");
    world.say("xadd s 1-0 f v");
    assert_eq!(world.read(other), "*1|*2|$1|s|*1|*2|$3|1-0|*2|$1|f|$1|v|+PONG|:1|");
}

#[test]
fn a_read_of_several_streams_delivers_all_or_nothing() {
    let mut world = World::new();
    world.talk(&[
        ("xgroup create good g 0 mkstream", "+OK|"),
        ("xadd good 1-0 f v", "$3|1-0|"),
        (
            "xreadgroup group g c streams good missing > >",
            "-NOGROUP No such key 'missing' or consumer group 'g' in XREADGROUP with GROUP option|",
        ),
        ("xreadgroup group g c streams good good > x", "-ERR Invalid stream ID specified as stream command argument|"),
        ("xpending good g", "*4|:0|$-1|$-1|*-1|"),
        ("xinfo consumers good g", "*0|"),
    ]);
}

#[test]
fn the_same_stream_twice_in_one_read_gives_nothing_twice() {
    let mut world = World::new();
    world.talk(&[
        ("xgroup create s g 0 mkstream", "+OK|"),
        ("xadd s 1-0 f v", "$3|1-0|"),
        ("xadd s 2-0 f v", "$3|2-0|"),
        (
            "xreadgroup group g c count 1 streams s s > >",
            "*2|*2|$1|s|*1|*2|$3|1-0|*2|$1|f|$1|v|*2|$1|s|*1|*2|$3|2-0|*2|$1|f|$1|v|",
        ),
        ("xpending s g", "*4|:2|$3|1-0|$3|2-0|*1|*2|$1|c|$1|2|"),
    ]);
}

#[test]
fn ids_go_on_when_the_clock_goes_back() {
    let mut world = World::new();
    let first = world.say("xadd s * f v");
    world.now_ms -= 1000;
    let second = world.say("xadd s * f v");
    assert!(second > first, "{first} {second}");
}

#[test]
fn lag_is_a_number_where_counters_cannot_tell() {
    let mut world = World::new();
    for id in 1..=5 {
        world.say(&format!("xadd s {id}-0 f v"));
    }
    world.talk(&[("xgroup create s g 3-0", "+OK|"), ("xdel s 4-0", ":1|")]);
    assert!(world.say("xinfo groups s").ends_with("$3|lag|:1|"));
    world.talk(&[("config set stream-lag compat", "+OK|")]);
    assert!(world.say("xinfo groups s").ends_with("$3|lag|$-1|"));
}

#[test]
fn an_entry_with_the_greatest_id_can_be_trimmed() {
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
