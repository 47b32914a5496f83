//! Commands that take more than one turn: what they answer in the end, who waits for them and who does not.

use super::World;
use super::delays::{Journal, ids_in};
use crate::command::args::Args;
use crate::engine::blocked::ClientIndex;
use crate::id::StreamId;
use crate::record::{At, Fields, Record};
use crate::state::keyspace::Value;

/// A stream `s` with `delayed` entries that group `g` does not get yet, and one behind them that it may have.
fn with_delayed(delayed: u64) -> World {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    (1..=delayed).for_each(|id| drop(world.say(&format!("xadd s delay 100000 {id}-0 f v"))));
    world.say(&format!("xadd s {}-0 f v", delayed + 1));
    world
}

/// A stream `s` with so many entries, all of them given to `a` of group `g`.
fn with_pending(entries: u64) -> World {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    (1..=entries).for_each(|id| drop(world.say(&format!("xadd s {id}-0 f v"))));
    world.say("xreadgroup group g a streams s >");
    world
}

/// What a client gets, and in how many turns after the one in which it asked.
fn turns_until(world: &mut World, client: ClientIndex) -> (u32, String) {
    for turn in 1..100 {
        assert_eq!(world.engine.next_deadline_ms(), Some(0), "there is something to do in turn {turn}");
        world.pass(0);
        let reply = world.read(client);
        if !reply.is_empty() {
            return (turn, reply);
        }
    }
    panic!("it is never answered");
}

#[test]
fn a_read_past_many_delayed_entries_goes_on_by_turns() {
    let mut world = with_delayed(1800);
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    // What it sends meanwhile waits, others do not.
    assert_eq!(world.say("xreadgroup group g a count 1 streams s >\r\necho next"), "");
    assert_eq!(world.send(other, "ping"), "+PONG|");
    assert_eq!(world.send(other, &format!("client unblock {}", world.engine.client(me).unwrap().id)), ":0|");
    let (turns, reply) = turns_until(&mut world, me);
    assert_eq!((turns, ids_in(&reply)), (3, vec![1801]));
    assert!(reply.ends_with("|$4|next|"));
    world.survives();
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 100_000));
    assert_eq!(world.say("xreadgroup group g a streams s >"), "*-1|");
    assert_eq!(world.engine.blocked_count(), 0);
}

#[test]
fn that_there_is_nothing_is_said_when_all_was_looked_at() {
    let mut world = with_delayed(1800);
    world.say("xdel s 1801-0");
    let me = world.me;
    assert_eq!(world.say("xreadgroup group g a streams s >"), "");
    assert_eq!(turns_until(&mut world, me), (3, "*-1|".into()));
    // In a transaction all is looked at at once.
    let mut world = with_delayed(1800);
    world.talk(&[("multi", "+OK|"), ("xreadgroup group g a count 1 streams s >", "+QUEUED|")]);
    assert_eq!(ids_in(&world.say("exec")), [1801]);
    let mut world = with_delayed(1800);
    let script = "eval \"return{redis.call('xreadgroup','group','g','a','streams','s','>')}\" 1 s";
    assert_eq!(ids_in(&world.say(script)), [1801]);
}

#[test]
fn what_was_found_is_answered_though_there_may_be_more() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream");
    world.say("xadd s 1-0 f v");
    (2..=700).for_each(|id| drop(world.say(&format!("xadd s delay 100000 {id}-0 f v"))));
    world.say("xadd s 701-0 f v");
    assert_eq!(ids_in(&world.say("xreadgroup group g a count 10 streams s >")), [1]);
    assert_eq!(ids_in(&world.say("xreadgroup group g a count 10 streams s >")), [701]);
}

#[test]
fn blocked_readers_look_on_by_turns_and_leave_the_rest_to_those_behind_them() {
    let mut world = with_delayed(1800);
    world.say("xadd s 1802-0 f v");
    let (first, second) = (world.open("10.0.0.2:1"), world.open("10.0.0.3:1"));
    assert_eq!(world.send(first, "xreadgroup group g a count 1 block 1 streams s >"), "");
    assert_eq!(world.send(second, "xreadgroup group g b count 1 block 0 streams s >"), "");
    // Its time is over before it has looked at everything: it is answered all the same.
    world.now_ms += 5;
    let (_, reply) = turns_until(&mut world, first);
    assert_eq!(ids_in(&reply), [1801]);
    assert_eq!(ids_in(&world.read(second)), [1802]);
    // One that really finds nothing has waited as long as it said.
    let mut world = with_delayed(700);
    world.say("xdel s 701-0");
    assert_eq!(world.say("xreadgroup group g a block 10 streams s >"), "");
    world.pass(5);
    assert_eq!((world.say(""), world.engine.blocked_count()), (String::new(), 1));
    world.pass(10);
    let me = world.me;
    assert_eq!(world.read(me), "*-1|");
}

#[test]
fn a_reader_that_looks_on_is_not_woken_meanwhile_and_may_go_away() {
    let mut world = with_delayed(1800);
    world.say("xdel s 1801-0");
    let (first, second) = (world.open("10.0.0.2:1"), world.open("10.0.0.3:1"));
    assert_eq!(world.send(first, "xreadgroup group g a block 0 streams s >"), "");
    assert_eq!(world.send(second, "xreadgroup group g b block 0 streams s >"), "");
    // An entry comes while both look on: the first gets it, in its time.
    world.say("xadd s 2000-0 f v");
    assert_eq!((world.read(first), world.read(second)), (String::new(), String::new()));
    let (_, reply) = turns_until(&mut world, first);
    assert_eq!(ids_in(&reply), [2000]);
    world.say("xadd s 2001-0 f v");
    assert_eq!(ids_in(&world.read(second)), [2001]);
    let mut world = with_delayed(1800);
    let first = world.open("10.0.0.2:1");
    assert_eq!(world.send(first, "xreadgroup group g a block 0 streams s >"), "");
    world.engine.close(first);
    world.pass(0);
    assert_eq!(ids_in(&world.say("xreadgroup group g b count 1 block 5 streams s >\r\n")), []);
    let me = world.me;
    assert_eq!(ids_in(&turns_until(&mut world, me).1), [1801]);
}

#[test]
fn those_behind_a_reader_that_looks_on_get_what_it_leaves_when_it_goes_away() {
    for leaves in ["close", "unblock"] {
        let mut world = World::new();
        world.say("xgroup create s g 0 mkstream");
        let (first, second) = (world.open("10.0.0.2:1"), world.open("10.0.0.3:1"));
        for reader in [first, second] {
            assert_eq!(world.send(reader, "xreadgroup group g a count 1 block 0 streams s >"), "");
        }
        world.say("multi");
        (1..=1200).for_each(|id| drop(world.say(&format!("xadd s delay 100000 {id}-0 f v"))));
        world.say("xadd s 1201-0 f v");
        world.say("exec");
        // The first has not looked at everything, and the second is not asked before it has.
        assert_eq!(world.engine.statistics.reads_repeated, 1);
        match leaves {
            "close" => world.engine.close(first),
            _ => drop(world.say(&format!("client unblock {}", world.engine.client(first).unwrap().id))),
        }
        let mut turns = 0;
        let reply = loop {
            assert!(turns < 10, "{leaves}: the second waits in vain");
            world.pass(0);
            turns += 1;
            let reply = world.read(second);
            if !reply.is_empty() {
                break reply;
            }
        };
        assert_eq!(ids_in(&reply), [1201], "{leaves}");
        assert_eq!(world.engine.blocked_count(), 0, "{leaves}");
        world.survives();
    }
}

#[test]
fn who_may_not_go_on_leaves_nothing_to_the_next_command() {
    let mut world = with_pending(6000);
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    let acknowledged: Vec<String> = (1..=3000).map(|id| format!("{id}-0")).collect();
    world.say(&format!("xack s g {}", acknowledged.join(" ")));
    world.send(other, "acl setuser u on nopass ~* &* +@all");
    assert_eq!(world.say("auth u x"), "+OK|");
    assert_eq!(world.say("xtrim s maxlen = 10 acked"), "");
    assert_eq!(world.send(other, "xlen s"), ":5000|");
    world.send(other, "acl setuser u -xtrim");
    assert!(turns_until(&mut world, me).1.starts_with("-NOPERM"));
    assert_eq!(world.send(other, "xtrim s maxlen = 10000"), ":0|");
    world.survives();
}

#[test]
fn a_read_past_many_entries_of_a_busy_key_goes_on_by_turns() {
    let mut world = World::new();
    world.say("xgroup create s g 0 mkstream keyfield k");
    (1..=1200).for_each(|id| drop(world.say(&format!("xadd s {id}-0 k busy"))));
    world.say("xadd s 1201-0 k free");
    assert_eq!(ids_in(&world.say("xreadgroup group g a count 1 streams s >")), [1]);
    assert_eq!(world.say("xreadgroup group g a count 1 streams s >"), "");
    let me = world.me;
    let (turns, reply) = turns_until(&mut world, me);
    assert_eq!((turns, ids_in(&reply)), (2, vec![1201]));
    // Delayed entries of one key that become due together are as many.
    (1300..=2500).for_each(|id| drop(world.say(&format!("xadd s delay 10 {id}-0 k busy"))));
    world.say("xadd s 2501-0 k other");
    while ids_in(&world.say("xreadgroup group g a streams s >")).is_empty() {
        world.pass(0);
    }
    world.pass(10);
    world.pass(0);
    world.say("xadd s 2502-0 k another");
    assert_eq!(world.say("xreadgroup group g a streams s >"), "");
    assert_eq!(ids_in(&turns_until(&mut world, me).1), [2502]);
    world.survives();
}

#[test]
fn exact_trimming_of_what_is_acknowledged_goes_on_by_turns() {
    let mut world = with_pending(25_000);
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    world.say("xack s g 24999-0");
    // It looks at ten thousand a turn.
    assert_eq!(world.say("xtrim s maxlen = 10 acked\r\nxlen s"), "");
    assert_eq!(world.send(other, "xack s g 5-0 24998-0"), ":2|");
    let (turns, reply) = turns_until(&mut world, me);
    assert_eq!((turns, reply.as_str()), (2, ":3|:24997|"));
    assert_eq!(world.say("xtrim s maxlen = 10 acked"), ":0|");
    // In a transaction it is done at once.
    let mut world = with_pending(25_000);
    world.say("xack s g 24999-0");
    world.talk(&[("multi", "+OK|"), ("xtrim s maxlen = 10 acked", "+QUEUED|"), ("exec", "*1|:1|")]);
}

#[test]
fn what_goes_by_exact_trimming_goes_by_turns() {
    let mut world = with_pending(6000);
    world.say("config set notify-keyspace-events Kt");
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    world.send(other, "psubscribe __key*__:s");
    // Every second entry is free.
    let ids: Vec<String> = (1..=3000).map(|id| format!("{}-0", id * 2)).collect();
    world.say(&format!("xack s g {}", ids.join(" ")));
    assert_eq!(world.say("xtrim s maxlen = 3500 acked"), "");
    assert_eq!(turns_until(&mut world, me), (2, ":2500|".into()));
    assert_eq!(world.say("xlen s"), ":3500|");
    assert_eq!(world.read(other).matches("xtrim").count(), 3, "one for each turn");
    // As many as are free, and no more, however many are asked for.
    world.pass(0);
    assert_eq!(world.say("xtrim s minid = 6000-0 acked"), ":499|");
    world.survives();
}

#[test]
fn an_entry_is_added_when_there_is_room_for_it() {
    for add in ["xadd s maxlen = 1000 acked 9000-0 f v", "xaddm s maxlen = 1000 acked count 1 9000-0 1 f v"] {
        let mut world = with_pending(4000);
        world.say("config set notify-keyspace-events Kt");
        let (me, other) = (world.me, world.open("10.0.0.2:1"));
        world.send(other, "psubscribe __key*__:s");
        world.say("xack s g range 1 3500");
        assert_eq!(world.say(add), "", "{add}");
        let (turns, reply) = turns_until(&mut world, me);
        assert_eq!(turns, 3, "{add}");
        assert!(reply.ends_with("$6|9000-0|"), "{reply}");
        assert_eq!(world.say("xlen s"), ":1000|");
        assert_eq!(ids_in(&world.say("xrange s - + count 1")), [3002]);
        assert_eq!(world.read(other).matches("xtrim").count(), 4, "one for each turn: {add}");
        world.survives();
    }
}

#[test]
fn one_that_cannot_be_added_any_more_is_refused() {
    let mut world = with_pending(4000);
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    world.say("xack s g range 1 3500");
    assert_eq!(world.say("xadd s maxlen = 1000 acked 9000-0 f v"), "");
    assert_eq!(world.send(other, "xadd s 9000-0 f v"), "$6|9000-0|");
    assert!(turns_until(&mut world, me).1.starts_with("-ERR The ID specified in XADD is equal or smaller"));
    let mut world = with_pending(4000);
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    world.say("xack s g range 1 3500");
    assert_eq!(world.say("xtrim s maxlen = 1000 acked"), "");
    assert_eq!(world.send(other, "set s string"), "+OK|");
    assert!(turns_until(&mut world, me).1.starts_with("-WRONGTYPE"));
}

/// A group `g` that orders by `k`: `keys` entries of as many keys are pending for `a`, and behind each waits another.
fn with_keys(keys: u64) -> World {
    let mut world = World::new();
    world.engine.log.enable(0);
    world.say("xgroup create s g 0 mkstream keyfield k");
    (1..=keys).for_each(|id| drop(world.say(&format!("xadd s {id}-0 k {id}"))));
    world.say("xreadgroup group g a streams s >");
    (1..=keys).for_each(|id| drop(world.say(&format!("xadd s {}-0 k {id}", 10_000 + id))));
    let (me, mut reply) = (world.me, world.say("xreadgroup group g a streams s >"));
    while reply.is_empty() {
        world.pass(0);
        reply = world.read(me);
    }
    assert_eq!(reply, "*-1|");
    world
}

#[test]
fn keys_are_freed_by_turns_and_nobody_is_told_that_there_is_nothing_meanwhile() {
    for command in ["xgroup delconsumer s g a", "xack s g range - +"] {
        let (mut world, mut journal) = (with_keys(1000), Journal::default());
        let me = world.me;
        assert_eq!(world.say(command), ":1000|");
        assert_eq!(world.engine.next_deadline_ms(), Some(0));
        world.survives();
        journal.restart(&mut world);
        // What is free already comes at once.
        let mut given = ids_in(&world.say("xreadgroup group g b count 250 streams s >"));
        assert_eq!(given, (10_001..=10_100).collect::<Vec<_>>(), "{command}");
        while given.len() < 1000 {
            let mut reply = world.say("xreadgroup group g b count 250 streams s >");
            while reply.is_empty() {
                world.survives();
                world.pass(0);
                reply = world.read(me);
            }
            given.extend(ids_in(&reply));
        }
        assert_eq!(given, (10_001..=11_000).collect::<Vec<_>>(), "{command}");
        (0..12).for_each(|_| world.pass(0));
        assert_eq!(world.engine.next_deadline_ms(), None);
        world.survives();
        journal.restart(&mut world);
    }
}

#[test]
fn a_waiting_reader_gets_what_a_key_that_is_freed_later_held_up() {
    let mut world = with_keys(1000);
    let reader = world.open("10.0.0.2:1");
    assert_eq!(world.say("xgroup delconsumer s g a"), ":1000|");
    assert_eq!(ids_in(&world.say("xreadgroup group g b streams s >")).len(), 100);
    assert_eq!(world.send(reader, "xreadgroup group g c block 0 streams s >"), "");
    world.pass(0);
    assert_eq!(ids_in(&world.read(reader)), (10_101..=10_200).collect::<Vec<_>>());
    // Whatever happens to the stream, the rest is freed: where it is now.
    world.talk(&[("rename s t", "+OK|"), ("swapdb 0 3", "+OK|"), ("select 3", "+OK|")]);
    world.pass(0);
    assert_eq!(ids_in(&world.say("xreadgroup group g b streams t >")).len(), 100);
    world.talk(&[("multi", "+OK|"), ("xreadgroup group g b streams t >", "+QUEUED|")]);
    assert_eq!(ids_in(&world.say("exec")).len(), 700);
    (0..12).for_each(|_| world.pass(0));
    assert_eq!(world.engine.next_deadline_ms(), None);
    world.survives();
}

#[test]
fn entries_given_again_while_keys_are_being_freed_hold_theirs() {
    let mut world = with_keys(1000);
    assert_eq!(world.say("xack s g range - +"), ":1000|");
    // Set back, the group gives the same entries anew.
    world.say("xgroup setid s g 0");
    let me = world.me;
    let (mut reply, mut given) = (world.say("xreadgroup group g b streams s >"), Vec::new());
    while reply != "*-1|" {
        given.extend(ids_in(&reply));
        world.pass(0);
        reply = world.read(me);
        if reply.is_empty() && world.engine.client(me).unwrap().wait.is_none() {
            reply = world.say("xreadgroup group g b streams s >");
        }
    }
    given.sort_unstable();
    assert_eq!(given, (1..=1000).collect::<Vec<_>>(), "one of each key, and the first");
    world.survives();
    assert_eq!(world.say("xpending s g").split('|').nth(1), Some(":1000"));
}

#[test]
fn a_claim_that_only_met_entries_that_are_gone_looks_on() {
    let mut world = with_pending(2500);
    let ids: Vec<String> = (1..=2400).map(|id| format!("{id}-0")).collect();
    world.say(&format!("xdel s {}", ids.join(" ")));
    world.now_ms += 10;
    let me = world.me;
    assert_eq!(world.say("xreadgroup group g b count 1 claim 5 streams s >"), "");
    assert_eq!(ids_in(&turns_until(&mut world, me).1), [2401]);
    assert_eq!(world.say("xpending s g").split('|').nth(1), Some(":100"));
}

#[test]
fn every_turn_of_a_trim_gets_on_however_many_groups_hold_something() {
    let mut world = World::new();
    world.say("xadd s delay 100000 1-0 f v");
    (2..=1202).for_each(|id| drop(world.say(&format!("xadd s {id}-0 f v"))));
    for group in 0..1000 {
        world.say(&format!("xgroup create s g{group} 0"));
        world.say(&format!("xreadgroup group g{group} a count 1 streams s >"));
    }
    assert_eq!(world.say("xtrim s maxlen = 5"), ":1197|");
    world.survives();
}

#[test]
fn every_turn_of_a_trim_gets_on_however_many_groups_there_are() {
    let mut world = World::new();
    (1..=30).for_each(|id| drop(world.say(&format!("xadd s {id}-0 f v"))));
    for group in 0..40_001 {
        world.say(&format!("xgroup create s g{group} $"));
    }
    let me = world.me;
    assert_eq!(world.say("xtrim s maxlen = 5 acked"), "");
    assert_eq!(turns_until(&mut world, me).1, ":25|");
}

#[test]
fn bounds_of_a_stream_let_go_of_waiting_entries_by_turns() {
    for (bound, left) in [("maxlen 10", 10), ("maxbytes 20", 4)] {
        let mut world = with_waiting(3000);
        assert_eq!(world.say(&format!("xcfgset s {bound}")), "+OK|");
        assert_eq!(world.say("xlen s"), ":2499|", "as many as one turn lets go of");
        let mut turns = 0;
        while world.engine.next_deadline_ms() == Some(1) {
            world.pass(0);
            turns += 1;
        }
        assert_eq!((world.say("xlen s"), turns), (format!(":{left}|"), 5));
        world.survives();
    }
}

/// How many entries the group `g` of a stream holds.
fn held(world: &World, key: &str) -> u64 {
    match &world.engine.state().db(0).get_any(key.as_bytes()).expect("the stream is there").value {
        Value::Stream(stream) => stream.group(b"g").expect("the group is there").held().len(),
        Value::String(_) => panic!("{key} is a string"),
    }
}

/// Streams `s0`… with a group `g` and so many delayed entries, and one behind them.
fn streams_with_delayed(streams: usize, delayed: u64) -> World {
    let mut world = World::new();
    for stream in 0..streams {
        world.say(&format!("xgroup create s{stream} g 0 mkstream"));
        (1..=delayed).for_each(|id| drop(world.say(&format!("xadd s{stream} delay 100000 {id}-0 f v"))));
        world.say(&format!("xadd s{stream} {}-0 f v", delayed + 1));
    }
    world
}

#[test]
fn commands_that_begin_in_one_turn_share_it() {
    let mut world = streams_with_delayed(12, 1000);
    let clients: Vec<ClientIndex> = (0..12).map(|n| world.open(&format!("10.0.1.{n}:1"))).collect();
    for (stream, &client) in clients.iter().enumerate() {
        assert_eq!(world.send(client, &format!("xreadgroup group g a count 1 streams s{stream} >")), "");
    }
    let looked: u64 = (0..12).map(|stream| held(&world, &format!("s{stream}"))).sum();
    assert!(looked < 700, "{looked} entries were passed over in one turn");
    // Who has little to do is answered all the same.
    world.say("xgroup create t g 0 mkstream");
    world.say("xadd t delay 100000 1-0 f v\r\nxadd t 2-0 f v");
    assert_eq!(ids_in(&world.say("xreadgroup group g a streams t >")), [2]);
    for &client in &clients {
        assert_eq!(ids_in(&turns_until_any(&mut world, client)), [1001]);
    }
    // The same, where each has its answer before it has had its share.
    let mut world = streams_with_delayed(12, 450);
    for (stream, client) in (0..12).map(|n| (n, world.open(&format!("10.0.1.{n}:1")))).collect::<Vec<_>>() {
        world.send(client, &format!("xreadgroup group g a count 1 streams s{stream} >"));
    }
    let looked: u64 = (0..12).map(|stream| held(&world, &format!("s{stream}"))).sum();
    assert!(looked < 1200, "{looked} entries were passed over in one turn");
    world.survives();
}

/// What a client gets, now or in one of the next turns.
fn turns_until_any(world: &mut World, client: ClientIndex) -> String {
    let reply = world.read(client);
    if reply.is_empty() { turns_until(world, client).1 } else { reply }
}

#[test]
fn readers_that_are_woken_in_one_turn_share_it() {
    let mut world = World::new();
    for group in 0..8 {
        world.say(&format!("xgroup create s g{group} 0 mkstream"));
        let client = world.open(&format!("10.0.1.{group}:1"));
        assert_eq!(world.send(client, &format!("xreadgroup group g{group} a block 0 streams s >")), "");
    }
    world.say("multi");
    (1..=400).for_each(|id| drop(world.say(&format!("xadd s delay 100000 {id}-0 f v"))));
    world.say("xadd s 401-0 f v");
    world.say("exec");
    let Value::Stream(stream) = &world.engine.state().db(0).get_any(b"s").unwrap().value else { panic!("a string") };
    let looked: u64 = stream.groups.values().map(|group| group.held().len()).sum();
    assert!(looked < 1200, "{looked} entries were passed over in one turn");
    (0..4).for_each(|_| world.pass(0));
    assert_eq!(world.engine.blocked_count(), 0);
}

#[test]
fn equally_named_groups_of_different_streams_do_not_wait_for_each_other() {
    let mut world = streams_with_delayed(2, 1800);
    let clients = [world.open("10.0.0.2:1"), world.open("10.0.0.3:1")];
    for (stream, client) in clients.into_iter().enumerate() {
        assert_eq!(world.send(client, &format!("xreadgroup group g a count 1 streams s{stream} >")), "");
    }
    let before = (held(&world, "s0"), held(&world, "s1"));
    world.pass(0);
    assert_eq!((held(&world, "s0"), held(&world, "s1")), (before.0 + 500, before.1 + 500));
}

#[test]
fn all_that_goes_on_is_served_in_turn() {
    let mut world = World::new();
    for key in ["a", "b", "c"] {
        world.say(&format!("xgroup create {key} g 0 mkstream"));
        (1..=6000).for_each(|id| drop(world.say(&format!("xadd {key} {id}-0 f v"))));
        world.say(&format!("xreadgroup group g a streams {key} >"));
        world.say(&format!("xack {key} g range 1 5000"));
    }
    for key in ["a", "b", "c"] {
        let client = world.open("10.0.0.2:1");
        assert_eq!(world.send(client, &format!("xtrim {key} maxlen = 1000 acked")), "");
    }
    // There is time for one of them.
    world.look_us = 500;
    let lengths = |world: &mut World| ["a", "b", "c"].map(|key| world.say(&format!("xlen {key}")));
    let begun = lengths(&mut world);
    (0..3).for_each(|_| world.pass(0));
    for (before, after) in begun.into_iter().zip(lengths(&mut world)) {
        let number = |reply: &str| reply[1..reply.len() - 1].parse::<u64>().unwrap();
        assert_eq!(number(&before) - number(&after), 1000);
    }
}

#[test]
fn what_goes_on_stands_still_during_a_pause() {
    for how in ["write", "all"] {
        let mut world = with_pending(6000);
        let (me, other) = (world.me, world.open("10.0.0.2:1"));
        world.say("xack s g range 1 5000");
        assert_eq!(world.say("xtrim s maxlen = 1000 acked"), "");
        assert_eq!(world.send(other, &format!("client pause 1000 {how}")), "+OK|");
        let records = world.engine.state().changes;
        (0..5).for_each(|_| world.pass(1));
        assert_eq!((world.engine.state().changes, world.read(me)), (records, String::new()), "{how}");
        assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 995), "nothing is done until then");
        assert_eq!(world.send(other, "client unpause"), "+OK|");
        assert_eq!(turns_until(&mut world, me).1, ":5000|");
        // A pause that ends by time.
        assert_eq!(world.say("xack s g range - +"), ":1000|");
        (1..=3000).for_each(|id| drop(world.say(&format!("xadd s {}-0 f v", 10_000 + id))));
        world.say("xgroup setid s g $");
        assert_eq!(world.say("xtrim s maxlen = 10 acked"), "");
        assert_eq!(world.send(other, &format!("client pause 10 {how}")), "+OK|");
        world.pass(9);
        assert_eq!(world.read(me), "");
        world.pass(1);
        assert_eq!(turns_until(&mut world, me).1, ":3990|");
    }
}

#[test]
fn a_trim_that_goes_on_leaves_another_stream_under_its_key_alone() {
    let mut world = with_pending(6000);
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    world.say("xack s g range 1 5000\r\ncopy s u");
    assert_eq!(world.say("xtrim s maxlen = 1000 acked"), "");
    world.send(other, "multi\r\nrename s t\r\nrename u s\r\nexec");
    assert_eq!(turns_until(&mut world, me).1, ":1000|");
    assert_eq!(world.say("xlen s\r\nxlen t"), ":6000|:5000|");
    // Renamed and back, it was away meanwhile: that ends it, too.
    assert_eq!(world.say("xtrim s maxlen = 1000 acked"), "");
    world.send(other, "multi\r\nrename s v\r\nrename v s\r\nexec");
    assert_eq!(turns_until(&mut world, me).1, ":1000|");
}

#[test]
fn what_a_trim_removes_is_settled_when_it_begins() {
    let mut world = with_pending(6000);
    let (me, other) = (world.me, world.open("10.0.0.2:1"));
    world.say("xack s g range 1 5000");
    assert_eq!(world.say("xtrim s maxlen = 4000 acked"), "");
    (1..=1500).for_each(|id| drop(world.send(other, &format!("xadd s {}-0 f v", 10_000 + id))));
    assert_eq!(turns_until(&mut world, me).1, ":2000|");
    assert_eq!(world.say("xlen s"), ":5500|");
    // Nor do groups that go meanwhile make it remove more.
    assert_eq!(world.say("xtrim s maxlen = 3000 acked"), "");
    world.send(other, "xgroup destroy s g");
    assert_eq!(turns_until(&mut world, me).1, ":2500|");
    assert_eq!(world.say("xlen s"), ":3000|");
    world.survives();
}

/// A stream `s` with so many entries of one key: two groups have been given the first, and hold the others behind it.
fn with_waiting(entries: u64) -> World {
    let mut world = World::new();
    (1..=entries).for_each(|id| drop(world.say(&format!("xadd s {id}-0 k busy"))));
    for group in ["g", "h"] {
        world.say(&format!("xgroup create s {group} 0 keyfield k"));
        world.say(&format!("multi\r\nxreadgroup group {group} a streams s >\r\nexec"));
    }
    world.pass(0);
    world
}

#[test]
fn approximate_trimming_lets_go_of_waiting_entries_by_turns() {
    let mut world = with_waiting(3050);
    let me = world.me;
    assert_eq!(world.say("xtrim s maxlen ~ 10 limit 0"), "");
    let (turns, reply) = turns_until(&mut world, me);
    assert_eq!((turns, reply.as_str()), (5, ":3000|"));
    world.survives();
    // An addition trims as many blocks as a turn has time for, and the next one goes on.
    let mut world = with_waiting(3050);
    let mut lengths = Vec::new();
    for id in 4001..=4008 {
        world.pass(0);
        assert_eq!(world.say(&format!("xadd s maxlen ~ 10 {id}-0 k other")), "$6|".to_owned() + &format!("{id}-0|"));
        lengths.push(world.say("xlen s"));
    }
    assert_eq!(lengths, [":2551|", ":2052|", ":1553|", ":1054|", ":555|", ":56|", ":57|", ":58|"]);
    world.survives();
}

#[test]
fn what_a_position_set_back_lets_go_of_is_freed_bit_by_bit() {
    let mut world = with_delayed(3000);
    world.talk(&[("multi", "+OK|"), ("xreadgroup group g a streams s >", "+QUEUED|")]);
    world.say("exec");
    assert_eq!(held(&world, "s"), 3000);
    assert!(!world.engine.state().has_garbage());
    assert_eq!(world.say("xgroup setid s g 1000"), "+OK|");
    assert_eq!(held(&world, "s"), 1000);
    assert!(world.engine.state().has_garbage());
    world.survives();
    assert_eq!(world.stats("lag"), ":3001");
}

#[test]
fn groups_free_their_keys_and_streams_are_swept_in_turn() {
    let mut world = World::new();
    for key in ["a", "b"] {
        world.say(&format!("xgroup create {key} g 0 mkstream keyfield k"));
        (1..=1000).for_each(|id| drop(world.say(&format!("xadd {key} {id}-0 k {id}"))));
        (1..=1000).for_each(|id| drop(world.say(&format!("xadd {key} {}-0 k {id}", 1000 + id))));
        world.say(&format!("multi\r\nxreadgroup group g a streams {key} >\r\nexec"));
        assert_eq!(world.say(&format!("xack {key} g range - +")), ":1000|");
    }
    (0..4).for_each(|_| world.pass(0));
    let ready = |world: &World, key: &str| match &world.engine.state().db(0).get_any(key.as_bytes()).unwrap().value {
        Value::Stream(stream) => stream.group(b"g").unwrap().held().ready().count(),
        Value::String(_) => 0,
    };
    assert_eq!((ready(&world, "a"), ready(&world, "b")), (300, 300));
    let mut world = World::new();
    for key in ["a", "b"] {
        world.say(&format!("xgroup create {key} g 0 mkstream"));
        (1..=3000).for_each(|id| drop(world.say(&format!("xadd {key} {id}-0 f v"))));
        world.say(&format!("xreadgroup group g a streams {key} >"));
        // The first entry stays, so that what follows it goes one by one.
        world.say(&format!("xack {key} g range 2 +"));
        world.say(&format!("xcfgset {key} retain acked"));
    }
    let before = (world.say("xlen a"), world.say("xlen b"));
    assert_eq!(before, (":2501|".into(), ":2501|".into()));
    (0..2).for_each(|_| world.pass(0));
    assert_eq!((world.say("xlen a"), world.say("xlen b")), (":2001|".into(), ":2001|".into()));
}

#[test]
fn a_stream_that_is_still_too_long_when_the_server_ends_is_put_right_after_the_restart() {
    let mut world = World::new();
    world.talk(&[("xadd s 1-0 f v", "$3|1-0|"), ("xcfgset s maxlen 1", "+OK|")]);
    world.pass(1);
    // The log ends behind an entry, before what was to make room for it.
    let (at, bytes) = (At { db: 0, key: b"s" }, b"fv");
    let fields = Fields::Args(Args::new(bytes, &[(0, 1), (1, 2)]));
    world.engine.replay(&Record::Add { at, id: StreamId::new(2, 0), fields }, 1);
    world.survives();
    world.pass(1);
    world.talk(&[("xrange s - +", "*1|*2|$3|2-0|*2|$1|f|$1|v|")]);
}
