//! What a group's readers can reach: delays, bounds and the order of claims where they meet; and MKGROUP where memory or
//! rights are short.

use super::World;

#[test]
fn what_is_given_back_with_a_delay_is_passed_over_by_new_reads() {
    let mut world = World::new();
    world.tell(&[
        ("xadd s 1-1 f v", "$3|1-1|"),
        ("xgroup create s g 0", "+OK|"),
        ("xreadgroup group g a streams s >", "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|"),
        ("xnack s g fail ids 1 1-1 delay 100", ":1|"),
        ("xgroup setid s g 0", "+OK|"),
        ("xreadgroup group g b streams s >", "*-1|"),
        ("xgroup setid s g 0", "+OK|"),
        ("xreadgroup group g b noack streams s >", "*-1|"),
        ("xpending s g - + 9", "*1|*4|$3|1-1|$0||:-1|:1|"),
    ]);
    world.pass(100);
    // Then it is as any that was released.
    world.tell(&[("xreadgroup group g b claim 9 streams s >", "*1|*2|$1|s|*1|*4|$3|1-1|*2|$1|f|$1|v|:-1|:1|")]);
    // Ahead of the position.
    world.tell(&[
        ("xadd s 2-1 f v", "$3|2-1|"),
        ("xadd s 3-1 f v", "$3|3-1|"),
        ("xnack s g fail ids 1 2-1 force delay 100", ":1|"),
        ("xreadgroup group g b streams s >", "*1|*2|$1|s|*1|*2|$3|3-1|*2|$1|f|$1|v|"),
        ("xpending s g 2-1 2-1 9", "*1|*4|$3|2-1|$0||:-1|:0|"),
    ]);
}

#[test]
fn what_is_given_back_with_a_delay_keeps_its_key() {
    let mut world = World::new();
    world.tell(&[
        ("xgroup create s g 0 mkstream keyfield f", "+OK|"),
        ("xadd s 1-1 f v", "$3|1-1|"),
        ("xadd s 2-1 f v", "$3|2-1|"),
        ("xadd s 3-1 f w", "$3|3-1|"),
        ("xnack s g fail ids 1 2-1 force delay 100", ":1|"),
        ("xreadgroup group g a streams s >", "*1|*2|$1|s|*1|*2|$3|3-1|*2|$1|f|$1|w|"),
        ("xack s g 2-1", ":1|"),
        ("xreadgroup group g a streams s >", "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|"),
    ]);
}

#[test]
fn what_was_released_is_claimed_before_what_looks_older() {
    let mut world = World::new();
    for id in 1..=4 {
        world.say(&format!("xadd s {id}-1 f v"));
    }
    world.tell(&[
        ("xgroup create s g 0", "+OK|"),
        ("xreadgroup group g x noack count 1 streams s >", "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|"),
        ("xclaim s g x 0 1-1 2-1 3-1 4-1 force justid", "*4|$3|1-1|$3|2-1|$3|3-1|$3|4-1|"),
        ("xnack s g fail ids 2 3-1 2-1", ":2|"),
        ("xclaim s g a 0 1-1 time 0 justid", "*1|$3|1-1|"),
        ("xreadgroup group g b count 1 claim 0 streams s >", "*1|*2|$1|s|*1|*4|$3|3-1|*2|$1|f|$1|v|:-1|:1|"),
        ("xgroup delconsumer s g x release", ":1|"),
        ("xreadgroup group g b count 1 claim 0 streams s >", "*1|*2|$1|s|*1|*4|$3|2-1|*2|$1|f|$1|v|:-1|:1|"),
        ("xreadgroup group g b count 1 claim 0 streams s >", "*1|*2|$1|s|*1|*4|$3|4-1|*2|$1|f|$1|v|:-1|:0|"),
        ("xreadgroup group g b count 1 claim 1 streams s >", "*1|*2|$1|s|*1|*4|$3|1-1|*2|$1|f|$1|v|:1700000000000|:1|"),
    ]);
}

#[test]
fn claiming_ones_own_entries_takes_no_room() {
    let mut world = World::new();
    world.tell(&[
        ("xgroup create s g 0 mkstream maxpending-consumer 2", "+OK|"),
        ("xadd s 1-1 f v", "$3|1-1|"),
        ("xreadgroup group g r streams s >", "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|"),
        ("xadd s 2-1 f v", "$3|2-1|"),
        ("xadd s 3-1 f v", "$3|3-1|"),
        (
            "xreadgroup group g r claim 0 streams s >",
            "*1|*2|$1|s|*2|*4|$3|1-1|*2|$1|f|$1|v|:0|:1|*4|$3|2-1|*2|$1|f|$1|v|:0|:0|",
        ),
        ("xreadgroup group g r claim 0 streams s >", "*-1|"),
    ]);
}

#[test]
fn room_made_by_a_claim_is_used_by_it() {
    for claim in ["claim 0", "claim 300"] {
        let mut world = World::new();
        world.tell(&[
            ("xgroup create s g 0 mkstream maxpending 1", "+OK|"),
            ("xadd s 1-1 f v", "$3|1-1|"),
            ("xreadgroup group g x streams s >", "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|"),
            ("xdel s 1-1", ":1|"),
            ("xadd s 2-1 f v", "$3|2-1|"),
        ]);
        let r = world.open("10.0.0.2:1");
        let mut got = world.send(r, &format!("xreadgroup group g r block 0 {claim} streams s >"));
        if got.is_empty() {
            world.pass(300);
            got = world.read(r);
        }
        assert_eq!(got, "*1|*2|$1|s|*1|*4|$3|2-1|*2|$1|f|$1|v|:0|:0|", "{claim}");
        world.survives();
    }
    // What was released comes into reach by it, too.
    let mut world = World::new();
    world.tell(&[
        ("xgroup create s g 0 mkstream maxpending 1", "+OK|"),
        ("xadd s 1-1 f v", "$3|1-1|"),
        ("xadd s 2-1 f v", "$3|2-1|"),
        ("xreadgroup group g x streams s >", "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|"),
        ("xnack s g fail ids 1 2-1 force", ":1|"),
        ("xdel s 1-1", ":1|"),
        ("xreadgroup group g r claim 0 streams s >", "*1|*2|$1|s|*1|*4|$3|2-1|*2|$1|f|$1|v|:-1|:0|"),
    ]);
}

#[test]
fn behind_what_fills_a_group_a_claim_looks_at_nothing_released_however_much_it_asks_for() {
    for count in ["", "count 2", "count 3"] {
        let mut world = World::new();
        world.say("xgroup create s g 0 mkstream");
        for id in ["1-1", "2-1", "3-1", "4-1"] {
            world.say(&format!("xadd s {id} f v"));
        }
        world.say("xreadgroup group g x streams s >");
        world.say("xnack s g fail ids 4 1-1 2-1 3-1 4-1");
        world.say("xdel s 1-1 3-1 4-1");
        world.say("xgroup cfgset s g maxpending 1");
        let got = world.say(&format!("xreadgroup group g r {count} claim 0 streams s >"));
        assert_eq!(got, "*1|*2|$1|s|*1|*4|$3|2-1|*2|$1|f|$1|v|:-1|:1|", "{count}");
        assert_eq!(world.say("xpending s g"), "*4|:3|$3|2-1|$3|4-1|*1|*2|$1|r|$1|1|", "{count}");
    }
}

#[test]
fn making_groups_in_scripts_goes_by_their_rules() {
    let mut world = World::with(&[("maxmemory", "1mb")]);
    let refused = "-OOM command not allowed when used memory > 'maxmemory'.|";
    let make = "redis.call('xreadgroup','group','g','a','mkgroup','streams',KEYS[1],'>')";
    assert_eq!(world.say("xreadgroup group g a mkgroup streams s >"), refused);
    let say = |world: &mut World, script: &str| {
        let parts = ["eval", script, "1", "s"].map(|part| format!("${}\r\n{part}\r\n", part.len()));
        let bytes = format!("*4\r\n{}", parts.concat());
        let me = world.me;
        world.turn(|engine, facts| engine.feed(me, bytes.as_bytes(), facts));
        world.read(me)
    };
    assert!(say(&mut world, make).starts_with("-OOM "));
    assert_eq!(world.say("exists s"), ":0|");
    // Once it has written it must not be stopped.
    assert_eq!(say(&mut world, &format!("redis.call('del', 'x'); {make}")), "$-1|");
    assert_eq!(world.say("del s"), ":1|");
    assert_eq!(say(&mut world, &format!("#!lua flags=allow-oom\n{make}")), "$-1|");
    assert_eq!(world.say("del s"), ":1|");
    assert_eq!(world.say("xreadgroup group g a mkgroup streams s >"), refused);
}

#[test]
fn making_groups_needs_the_right_to_write() {
    let mut world = World::new();
    world.say("acl setuser u on nopass +@all %R~*");
    world.say("xgroup create s g 0 mkstream");
    let u = world.open("10.0.0.2:1");
    assert_eq!(world.send(u, "auth u x"), "+OK|");
    assert_eq!(world.send(u, "xreadgroup group g a streams s >"), "*-1|");
    assert_eq!(world.send(u, "xreadgroup group mkgroup a streams s >"), NO_GROUP);
    for made in ["mkgroup", "mkgroup 0 noack", "noack mkgroup $"] {
        let reply = world.send(u, &format!("xreadgroup group g a {made} streams t >"));
        assert!(reply.starts_with("-NOPERM "), "{made}: {reply}");
    }
    assert_eq!(world.say("exists t"), ":0|");
    world.say("acl setuser u %RW~*");
    assert_eq!(world.send(u, "xreadgroup group g a mkgroup streams t >"), "*-1|");
}

const NO_GROUP: &str = "-NOGROUP No such key 's' or consumer group 'mkgroup' in XREADGROUP with GROUP option|";
