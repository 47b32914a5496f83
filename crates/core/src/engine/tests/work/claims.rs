//! What policies do where entries are handed out: leases, bounds on deliveries, backoff, holds.

use super::super::*;
use super::{begun, outcomes};

/// A plain read of the group for a consumer.
fn read(world: &mut World, consumer: &str) -> Vec<String> {
    let reply = world.say(&format!("XREADGROUP GROUP g {consumer} COUNT 10 STREAMS s >"));
    ids(&reply)
}

/// The IDs of `n-0` in a reply, in order.
fn ids(reply: &str) -> Vec<String> {
    reply.split('|').filter(|word| word.ends_with("-0") && word.len() == 3).map(str::to_owned).collect()
}

#[test]
fn a_plain_read_takes_over_what_was_abandoned() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 1000");
    world.say("XADD s 4-0 job j4");
    world.now_ms += 400;
    world.say("XCLAIM s g a 0 1-0 JUSTID");
    world.now_ms += 600;
    assert_eq!(
        world.say("XREADGROUP GROUP g b COUNT 2 STREAMS s >"),
        "*1|*2|$1|s|*2|*2|$3|2-0|*4|$3|job|$2|j2|$1|f|$1|v|*2|$3|3-0|*4|$3|job|$2|j3|$1|f|$1|v|"
    );
    assert_eq!(read(&mut world, "b"), ["4-0"]);
    world.now_ms += 400;
    assert_eq!(read(&mut world, "b"), ["1-0"]);
    world.talk(&[("XPENDING s g 1 3 9", "*3|*4|$3|1-0|$1|b|:0|:2|*4|$3|2-0|$1|b|:400|:2|*4|$3|3-0|$1|b|:400|:2|")]);
    assert_eq!(outcomes(&mut world), ["expired"; 3]);
    // What is read without acknowledgement takes over nothing.
    world.now_ms += 5000;
    assert_eq!(world.say("XREADGROUP GROUP g b NOACK STREAMS s >"), "*-1|");
}

#[test]
fn what_was_given_back_comes_first() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 1000");
    world.say("XWORK FAIL s g a 3-0");
    world.say("XADD s 4-0 job j4");
    assert_eq!(read(&mut world, "b"), ["3-0", "4-0"]);
    world.now_ms += 1000;
    world.say("XWORK HOLD s g IDS 1 1-0");
    assert_eq!(read(&mut world, "c"), ["2-0", "3-0", "4-0"]);
}

#[test]
fn claims_show_what_they_take_by_the_lease() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 1000");
    world.now_ms += 1000;
    let reply = world.say("XREADGROUP GROUP g b COUNT 1 CLAIM 5000 STREAMS s >");
    assert_eq!(reply, "*1|*2|$1|s|*1|*4|$3|1-0|*4|$3|job|$2|j1|$1|f|$1|v|:1000|:1|");
}

#[test]
fn a_waiting_reader_wakes_when_a_lease_ends() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 1000");
    let waiter = world.open("10.0.0.4:1");
    world.send(waiter, "XREADGROUP GROUP g b COUNT 1 BLOCK 0 STREAMS s other >  >");
    let waiter = world.open("10.0.0.4:2");
    world.send(waiter, "XREADGROUP GROUP g b COUNT 2 BLOCK 0 STREAMS s >");
    world.pass(999);
    assert_eq!(world.read(waiter), "");
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 1));
    world.pass(1);
    assert_eq!(ids(&world.read(waiter)), ["1-0", "2-0"]);
    // The next of them ends a second later.
    let last = world.send(waiter, "XREADGROUP GROUP g b COUNT 9 BLOCK 0 STREAMS s >");
    assert_eq!(ids(&last), ["3-0"]);
    world.send(waiter, "XREADGROUP GROUP g c COUNT 9 BLOCK 0 STREAMS s >");
    world.pass(999);
    assert_eq!(world.read(waiter), "");
    world.pass(1);
    assert_eq!(ids(&world.read(waiter)), ["1-0", "2-0", "3-0"]);
}

#[test]
fn a_reader_that_waits_hears_of_a_new_lease() {
    let mut world = begun();
    let waiter = world.open("10.0.0.4:1");
    world.send(waiter, "XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
    world.pass(1500);
    world.say("XWORK POLICY s g LEASE 2000");
    assert_eq!(world.read(waiter), "");
    world.pass(500);
    assert_eq!(ids(&world.read(waiter)), ["1-0", "2-0", "3-0"]);
    world.send(waiter, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    world.pass(1500);
    world.say("XWORK POLICY s g LEASE 1000");
    assert_eq!(ids(&world.read(waiter)), ["1-0", "2-0", "3-0"], "its lease is over already");
    world.send(waiter, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
    world.say("XWORK POLICY s g LEASE 0");
    world.pass(9000);
    assert_eq!(world.read(waiter), "");
}

#[test]
fn each_key_has_its_own_lease() {
    let mut world = begun();
    world.say("XGROUP CREATE t g 0 MKSTREAM");
    world.say("XADD t 7-0 f v");
    world.say("XREADGROUP GROUP g a STREAMS t >");
    world.say("XWORK POLICY s g LEASE 5000");
    world.say("XWORK POLICY t g LEASE 1000");
    let waiter = world.open("10.0.0.4:1");
    world.send(waiter, "XREADGROUP GROUP g b BLOCK 0 STREAMS s t > >");
    let repeated = world.engine.statistics.reads_repeated;
    world.pass(1000);
    assert_eq!(ids(&world.read(waiter)), ["7-0"]);
    world.send(waiter, "XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
    world.pass(3999);
    assert_eq!(world.read(waiter), "");
    world.pass(1);
    assert_eq!(ids(&world.read(waiter)), ["1-0", "2-0", "3-0"]);
    assert_eq!(world.engine.statistics.reads_repeated, repeated + 2, "nobody was woken in vain");
}

#[test]
fn what_was_delivered_often_enough_goes_away() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 1000 MAXDELIVERIES 2 DEADLETTER dlq");
    world.now_ms += 1000;
    assert_eq!(read(&mut world, "b"), ["1-0", "2-0", "3-0"]);
    // By each way of handing out.
    world.now_ms += 1000;
    world.talk(&[
        ("XCLAIM s g c 0 1-0 JUSTID", "*1|$3|1-0|"),
        ("XCLAIM s g c 0 1-0", "*0|"),
        ("XAUTOCLAIM s g c 0 0 COUNT 1", "*3|$3|3-0|*0|*0|"),
        ("XREADGROUP GROUP g c STREAMS s >", "*-1|"),
        ("XPENDING s g", "*4|:0|$-1|$-1|*-1|"),
        ("XLEN dlq", ":3|"),
    ]);
    let letters = world.say("XRANGE dlq - +");
    assert_eq!(letters.matches("$11|_deliveries|$1|2|$9|_consumer|$1|").count(), 3);
    assert_eq!(letters.matches("$7|_reason|$14|max-deliveries|").count(), 3);
    assert_eq!(outcomes(&mut world)[3..], ["dead", "dead", "dead"]);
}

#[test]
fn a_letter_tells_the_last_reason_that_was_given() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 1000 MAXDELIVERIES 3 DEADLETTER dlq");
    world.say("XWORK FAIL s g a 1-0 REASON 'first try'");
    world.say("XWORK FAIL s g a 2-0 REASON disk");
    assert_eq!(read(&mut world, "a"), ["1-0", "2-0"]);
    world.say("XWORK FAIL s g a 1-0 REASON 'card expired'");
    // A FAIL without one takes nothing back, nor does an end in silence.
    world.say("XWORK FAIL s g a 2-0");
    assert_eq!(read(&mut world, "a"), ["1-0", "2-0"]);
    world.say("XACK s g 3-0");
    let letters = |world: &mut World| {
        let reply = world.say("XRANGE dlq - +");
        reply.split("|_reason|$").skip(1).map(|rest| rest.split('|').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    world.now_ms += 1000;
    assert_eq!(world.say("XREADGROUP GROUP g b STREAMS s >"), "*-1|");
    assert_eq!(letters(&mut world), ["max-deliveries: card expired", "max-deliveries: disk"]);
    let log = world.say("XWORK LOG s g - + OUTCOME dead");
    assert!(log.contains("|$6|reason|$28|max-deliveries: card expired|"), "{log}");
    // Another life has reasons of its own, and a long one is cut where texts end.
    world.say("XWORK REDRIVE dlq");
    for _ in 0..3 {
        world.now_ms += 1000;
        assert_eq!(read(&mut world, "b").len(), 2);
    }
    world.say(&format!("XWORK FAIL s g b 2-0 REASON {}", "x".repeat(4096)));
    world.now_ms += 1000;
    world.say("XREADGROUP GROUP g b STREAMS s >");
    // What was given back comes first.
    let found = letters(&mut world);
    assert_eq!((found[0].len(), &found[0][..18], &*found[1]), (4096, "max-deliveries: xx", "max-deliveries"));
}

#[test]
fn without_a_dead_letter_stream_it_goes_on_hold() {
    let mut world = begun();
    world.say("XWORK POLICY s g MAXDELIVERIES 1");
    world.say("SET d string");
    world.talk(&[
        ("XREADGROUP GROUP g b COUNT 1 CLAIM 0 STREAMS s >", "*-1|"),
        ("XWORK BEGIN s g a 1-0", "*2|+HELD|$14|max-deliveries|"),
        ("XPENDING s g - + 9", "*3|*4|$3|1-0|$0||:-1|:1|*4|$3|2-0|$0||:-1|:1|*4|$3|3-0|$0||:-1|:1|"),
        ("XWORK POLICY s g DEADLETTER d", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
    ]);
    // It takes no more by the time that it is needed.
    world.say("DEL d");
    world.say("XWORK POLICY s g DEADLETTER d");
    world.say("XWORK RELEASE s g IDS 1 2-0");
    world.say("SET d string");
    world.talk(&[("XCLAIM s g b 0 2-0", "*0|"), ("XWORK BEGIN s g a 2-0", "*2|+HELD|$14|max-deliveries|")]);
}

#[test]
fn backoff_keeps_an_entry_back() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 100 BACKOFF 1000 1500");
    world.now_ms += 500;
    // Found by a claim it waits for its time, as nobody's.
    assert_eq!(world.say("XREADGROUP GROUP g b STREAMS s >"), "*-1|");
    world.talk(&[
        ("XPENDING s g 1 1 9", "*1|*4|$3|1-0|$0||:-1|:1|"),
        ("XAUTOCLAIM s g b 0 0", "*3|$3|0-0|*0|*0|"),
        ("XCLAIM s g b 0 1-0", "*0|"),
        ("XWORK FAIL s g a 2-0", "*3|+STALE|$-1|:1|"),
    ]);
    world.pass(499);
    assert_eq!(world.say("XREADGROUP GROUP g b STREAMS s >"), "*-1|");
    world.pass(1);
    assert_eq!(read(&mut world, "b"), ["1-0", "2-0", "3-0"]);
    // Twice as long after the second delivery, as far as the bound goes.
    world.talk(&[
        ("XWORK FAIL s g b 1-0", "*2|+FAILED|:1500|"),
        ("XWORK FAIL s g b 2-0 RETRYIN 0", "*2|+FAILED|:0|"),
        ("XNACK s g FAIL IDS 1 3-0", ":1|"),
    ]);
    assert_eq!(read(&mut world, "c"), ["2-0"]);
    world.pass(1500);
    assert_eq!(read(&mut world, "b"), ["1-0", "3-0", "2-0"]);
}

#[test]
fn a_waiting_reader_wakes_when_a_backoff_ends() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 100 BACKOFF 1000 1000");
    let waiter = world.open("10.0.0.4:1");
    world.send(waiter, "XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
    world.pass(100);
    world.pass(899);
    assert_eq!(world.read(waiter), "");
    world.pass(1);
    assert_eq!(ids(&world.read(waiter)), ["1-0", "2-0", "3-0"]);
}

#[test]
fn no_claim_takes_what_is_on_hold() {
    let mut world = begun();
    world.say("XWORK HOLD s g IDS 3 1-0 2-0 3-0");
    world.now_ms += 10_000;
    world.talk(&[
        ("XCLAIM s g b 0 1-0 FORCE", "*0|"),
        ("XAUTOCLAIM s g b 0 0", "*3|$3|0-0|*0|*0|"),
        ("XREADGROUP GROUP g b CLAIM 0 STREAMS s >", "*-1|"),
        ("XREADGROUP GROUP g a STREAMS s 0", "*1|*2|$1|s|*0|"),
        ("XNACK s g FAIL IDS 1 1-0", ":0|"),
        ("XGROUP DELCONSUMER s g a", ":0|"),
        ("XPENDING s g", "*4|:3|$3|1-0|$3|3-0|*0|"),
        ("XGROUP SETID s g 0", "+OK|"),
        ("XREADGROUP GROUP g b STREAMS s >", "*-1|"),
        ("XWORK RELEASE s g IDS 1 2-0", ":1|"),
        ("XACK s g 1-0", ":1|"),
    ]);
    assert_eq!(ids(&world.say("XREADGROUP GROUP g b CLAIM 0 STREAMS s >"))[..], ["2-0"]);
    let stats = world.say("XINFO GROUPSTATS s");
    assert!(stats.contains("$7|delayed|:0|") && stats.contains("$15|next-release-ms|$-1|"), "{stats}");
}

/// Very many that are not for now do not keep a read from what is.
#[test]
fn a_read_passes_over_many_that_are_spent() {
    let mut world = World::new();
    world.say("XGROUP CREATE s g 0 MKSTREAM");
    for n in 1..=2500 {
        world.say(&format!("XADD s {n}-0 f v"));
    }
    world.say("XREADGROUP GROUP g a STREAMS s >");
    world.say("XWORK POLICY s g LEASE 10 MAXDELIVERIES 1 DEADLETTER dlq");
    world.say("XADD s 9999-0 f v");
    world.now_ms += 10;
    assert!(world.say("XREADGROUP GROUP g b COUNT 1 STREAMS s >").contains("9999-0"));
    let mut turns = 0;
    assert_eq!(world.say("XREADGROUP GROUP g b COUNT 1 STREAMS s >"), "");
    let mut reply = String::new();
    while reply.is_empty() {
        world.pass(0);
        reply = world.read(world.me);
        turns += 1;
    }
    assert_eq!(reply, "*-1|");
    assert!(turns < 5, "{turns} turns");
    world.talk(&[("XLEN dlq", ":2500|")]);
}
