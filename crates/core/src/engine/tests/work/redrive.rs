//! XWORK REDRIVE: dead letters go back.

use super::super::*;
use super::{begun, outcomes};

/// Three letters of `s g` in `dlq`.
fn dead() -> World {
    let mut world = begun();
    world.say("XWORK POLICY s g DEADLETTER dlq");
    for n in 1..=3 {
        assert!(world.say(&format!("XWORK FAIL s g a {n}-0 DEAD")).starts_with("*2|+DEAD|"));
    }
    world
}

#[test]
fn the_entry_is_given_again_to_its_group_alone() {
    let mut world = dead();
    world.say("XGROUP CREATE s other $");
    world.say("XADD s 4-0 f v");
    world.talk(&[
        ("XWORK REDRIVE dlq COUNT 1", "*3|+REDRIVEN|:1|:0|"),
        ("XLEN dlq", ":2|"),
        // Before what is new, as if for the first time.
        (
            "XREADGROUP GROUP g b STREAMS s >",
            "*1|*2|$1|s|*2|*2|$3|1-0|*4|$3|job|$2|j1|$1|f|$1|v|*2|$3|4-0|*2|$1|f|$1|v|",
        ),
        ("XPENDING s g", "*4|:2|$3|1-0|$3|4-0|*1|*2|$1|b|$1|2|"),
        ("XREADGROUP GROUP other b STREAMS s >", "*1|*2|$1|s|*1|*2|$3|4-0|*2|$1|f|$1|v|"),
        ("XWORK BEGIN s g b 1-0", "*2|+PROCEED|:1|"),
        ("XWORK DONE s g b 1-0", "*2|+COMPLETED|$-1|"),
        ("XWORK REDRIVE dlq", "*3|+REDRIVEN|:2|:0|"),
        ("XLEN dlq", ":0|"),
        ("XWORK REDRIVE dlq", "*3|+REDRIVEN|:0|:0|"),
        ("XWORK REDRIVE nothing", "*3|+REDRIVEN|:0|:0|"),
    ]);
    assert_eq!(outcomes(&mut world)[6..], ["released", "begun", "completed", "released", "released"]);
    // It is dead no more.
    world.say("XREADGROUP GROUP g b STREAMS s >");
    world.say("XACK s g 2-0");
    assert!(world.say("XWORK AUDIT s g 2 2").contains("+UNKNOWN|$9|no-ledger|"));
}

#[test]
fn a_waiting_reader_gets_it_at_once() {
    let mut world = dead();
    let waiter = world.open("10.0.0.4:1");
    world.send(waiter, "XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
    world.say("XWORK REDRIVE dlq COUNT 1");
    assert!(world.read(waiter).contains("|1-0|"));
}

#[test]
fn what_is_gone_is_added_anew_for_its_group_alone() {
    let mut world = dead();
    world.say("XGROUP CREATE s other 0");
    world.say("XDEL s 1-0 2-0");
    // The other group has not come to the end.
    world.talk(&[("XWORK REDRIVE dlq COUNT 2", "*3|+REDRIVEN|:1|:2|"), ("XLEN dlq", ":2|")]);
    world.say("XREADGROUP GROUP other x STREAMS s >");
    world.talk(&[
        ("XWORK REDRIVE dlq COUNT 1", "*3|+REDRIVEN|:1|:0|"),
        ("XREADGROUP GROUP other x STREAMS s >", "*-1|"),
        (
            "XREADGROUP GROUP g b STREAMS s >",
            "*1|*2|$1|s|*2|*2|$3|3-0|*4|$3|job|$2|j3|$1|f|$1|v|*2|$15|1700000000000-0|*4|$3|job|$2|j1|$1|f|$1|v|",
        ),
        (
            "XINFO GROUPS s",
            "*2|*12|$4|name|$1|g|$9|consumers|:2|$7|pending|:2|$17|last-delivered-id|$15|1700000000000-0|\
          $12|entries-read|:4|$3|lag|:0|*12|$4|name|$5|other|$9|consumers|:1|$7|pending|:1|$17|last-delivered-id|\
          $15|1700000000000-0|$12|entries-read|:4|$3|lag|:0|",
        ),
    ]);
}

#[test]
fn letters_that_belong_nowhere_stay() {
    let mut world = dead();
    let forged = |stream: &str, group: &str| {
        format!("XADD dlq * f v _stream {stream} _group {group} _id 1-0 _deliveries 1 _consumer c _reason r")
    };
    world.say("DEL dlq");
    world.say("XGROUP CREATE victim g 0 MKSTREAM");
    world.say(&forged("victim", "g"));
    world.say(&forged("s", "no"));
    world.say(&forged("no", "g"));
    world.say("XADD dlq * no letter");
    world.say("XADD dlq * _stream s _group g _id x _deliveries 1 _consumer c _reason r");
    world.talk(&[("XWORK REDRIVE dlq", "*3|+REDRIVEN|:0|:5|"), ("XLEN victim", ":0|"), ("XLEN dlq", ":5|")]);
    world.say("SET str x");
    world.talk(&[
        ("XWORK REDRIVE str", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
        ("XWORK REDRIVE dlq COUNT 0", "-ERR COUNT must be a number from 1 to 9223372036854775807|"),
        ("XWORK REDRIVE dlq COUNT", "-ERR unknown or incomplete option 'COUNT' of XWORK REDRIVE|"),
    ]);
}

#[test]
fn it_goes_so_many_in_a_second() {
    let mut world = dead();
    world.talk(&[("XWORK REDRIVE dlq PERSEC 10", "*2|+STARTED|:3|"), ("XLEN dlq", ":3|")]);
    world.pass(0);
    world.talk(&[("XLEN dlq", ":2|")]);
    world.pass(99);
    world.talk(&[("XLEN dlq", ":2|")]);
    assert_eq!(world.engine.next_deadline_ms(), Some(START_MS + 100));
    world.pass(1);
    world.talk(&[("XLEN dlq", ":1|"), ("XWORK REDRIVE dlq PERSEC 0", "*2|+STOPPED|:1|")]);
    world.pass(1000);
    world.talk(&[("XLEN dlq", ":1|"), ("XWORK REDRIVE dlq PERSEC 10 COUNT 1", "*2|+STARTED|:1|")]);
    world.say("XADD dlq * more than was there");
    world.pass(5000);
    world.pass(5000);
    world.talk(&[("XLEN dlq", ":1|")]);
    assert_eq!(world.engine.next_deadline_ms().filter(|ms| *ms < START_MS + 100_000), None);
}

#[test]
fn very_many_go_by_turns() {
    let mut world = World::new();
    world.say("XGROUP CREATE s g 0 MKSTREAM");
    world.say("XWORK POLICY s g DEADLETTER dlq");
    for n in 1..=1200 {
        world.say(&format!("XADD s {n}-0 f v"));
    }
    world.say("XREADGROUP GROUP g a STREAMS s >");
    for n in 1..=1200 {
        world.say(&format!("XWORK FAIL s g a {n}-0 DEAD"));
    }
    assert_eq!(world.say("XWORK REDRIVE dlq"), "");
    world.pass(0);
    assert_eq!(world.read(world.me), "");
    world.pass(0);
    assert_eq!(world.read(world.me), "*3|+REDRIVEN|:1200|:0|");
}

#[test]
fn the_letter_of_what_is_pending_goes_and_changes_nothing_else() {
    let mut world = dead();
    // On hold, being worked on, and merely someone's.
    world.say("XCLAIM s g b 0 1-0 2-0 3-0 FORCE");
    world.say("XWORK HOLD s g REASON look IDS 1 1-0");
    world.say("XWORK BEGIN s g b 2-0");
    let (audit, log) = (world.say("XWORK AUDIT s g"), world.say("XWORK LOG s g - +"));
    world.talk(&[("XWORK REDRIVE dlq", "*3|+REDRIVEN|:3|:0|"), ("XLEN dlq", ":0|")]);
    assert_eq!(world.say("XWORK AUDIT s g"), audit);
    assert_eq!(world.say("XWORK LOG s g - +"), log);
    world.talk(&[("XWORK RELEASE s g IDS 1 1-0", ":1|"), ("XCLAIM s g c 0 1-0 JUSTID", "*1|$3|1-0|")]);
}
