//! XWORK AUDIT and LOG from outside: each row of the decision table as it comes about by commands.

use super::super::*;
use super::begun;

/// The rows of an audit, each as `id decision reason`.
fn audit(world: &mut World, words: &str) -> Vec<String> {
    let reply = world.say(&format!("XWORK AUDIT s g {words}"));
    let mut rows = Vec::new();
    for row in reply.split("*7|").skip(1) {
        let words: Vec<&str> = row.split('|').collect();
        // id, work id, decision, reason
        rows.push(format!("{} {} {}", words[1], &words[4][1..], words[6]));
    }
    rows
}

#[test]
fn nothing_was_said() {
    let mut world = begun();
    world.say("XADD s 4-0 job j4");
    world.say("XACK s g 2-0");
    assert_eq!(audit(&mut world, ""), ["1-0 RERUN not-started", "2-0 UNKNOWN no-ledger", "3-0 RERUN not-started"]);
    world.say("XWORK POLICY s g EVIDENCE record");
    assert_eq!(audit(&mut world, "2 2"), ["2-0 REPAIR acked-without-evidence"]);
}

#[test]
fn what_was_completed() {
    let mut world = begun();
    world.say("XWORK DONE s g a 1-0 WORK w");
    // The same work under another entry, which is still pending.
    world.say("XWORK POLICY s g WORKFIELD job");
    world.say("XWORK DONE s g a 2-0 WORK j3");
    world.say("XDEL s 1-0");
    assert_eq!(audit(&mut world, ""), ["2-0 ACCEPT complete", "3-0 REPAIR ack-missing"]);
    world.say("XACK s g 3-0");
    assert_eq!(audit(&mut world, ""), ["2-0 ACCEPT complete", "3-0 ACCEPT complete"]);
}

#[test]
fn what_was_begun() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEASE 1000");
    world.say("XWORK BEGIN s g a 1-0");
    assert_eq!(audit(&mut world, "1 1"), ["1-0 OPEN in-progress"]);
    world.now_ms += 1000;
    assert_eq!(audit(&mut world, "1 1"), ["1-0 HOLD outcome-unknown"]);
    world.say("XWORK POLICY s g IDEMPOTENT yes");
    assert_eq!(audit(&mut world, "1 1"), ["1-0 RERUN retry-safe"]);
    // In other hands the attempt is over, whatever the time.
    world.say("XWORK POLICY s g LEASE 0 IDEMPOTENT no");
    assert_eq!(audit(&mut world, "1 1"), ["1-0 OPEN in-progress"]);
    world.say("XCLAIM s g b 0 1-0");
    assert_eq!(audit(&mut world, "1 1"), ["1-0 HOLD outcome-unknown"]);
}

#[test]
fn what_was_lost() {
    let mut world = begun();
    world.say("XWORK BEGIN s g a 2-0");
    world.say("XDEL s 1-0 2-0");
    assert_eq!(audit(&mut world, "- 2"), ["1-0 HOLD payload-lost", "2-0 OPEN in-progress"]);
}

#[test]
fn what_is_in_conflict_or_on_hold() {
    let mut world = begun();
    world.say("XWORK DONE s g a 1-0 WORK w DIGEST d");
    world.say("XWORK DONE s g a 2-0 WORK w DIGEST e");
    world.say("XWORK HOLD s g REASON person IDS 1 3-0");
    assert_eq!(audit(&mut world, ""), ["1-0 HOLD conflict", "2-0 HOLD conflict", "3-0 HOLD person"]);
    world.say("XWORK RELEASE s g IDS 2 2-0 3-0");
    assert_eq!(audit(&mut world, "- 2"), ["1-0 ACCEPT complete", "2-0 REPAIR ack-missing"]);
}

#[test]
fn what_is_dead() {
    let mut world = begun();
    world.say("XWORK POLICY s g DEADLETTER dlq EVIDENCE require");
    world.say("XWORK FAIL s g a 1-0 DEAD");
    assert_eq!(audit(&mut world, "- 1"), ["1-0 HOLD dead-letter"]);
}

#[test]
fn rows_and_summary_as_they_are_written() {
    let mut world = begun();
    world.say("XWORK DONE s g a 1-0 WORK w");
    world.now_ms += 70;
    world.talk(&[
        (
            "XWORK AUDIT s g - + COUNT 2",
            "*2|*7|$3|1-0|$1|w|+ACCEPT|$8|complete|$-1|:0|:-1|*7|$3|2-0|$3|2-0|+RERUN|$11|not-started|$1|a|:1|:70|",
        ),
        (
            "XWORK AUDIT s g SUMMARY",
            "*16|$7|entries|:3|$6|ACCEPT|:1|$6|REPAIR|:0|$5|RERUN|:2|$4|OPEN|:0|$4|HOLD|:0|$7|UNKNOWN|:0|$7|reasons|\
             *4|$8|complete|:1|$11|not-started|:2|",
        ),
    ]);
    world.say("HELLO 3");
    assert!(world.say("XWORK AUDIT s g COUNT 1 SUMMARY").starts_with("%8|$7|entries|:1|$6|ACCEPT|:1|"));
}

/// Many entries take several turns, in which others are served.
#[test]
fn a_long_audit_and_a_long_log_go_on_by_turns() {
    let mut world = World::new();
    world.say("XGROUP CREATE s g 0 MKSTREAM");
    for n in 1..=4500 {
        world.say(&format!("XADD s {n}-0 f v"));
    }
    world.say("XREADGROUP GROUP g a STREAMS s >");
    for n in 1..=4500 {
        world.say(&format!("XWORK BEGIN s g a {n}-0"));
    }
    world.say("XWORK DONE s g a 4400-0");
    for (line, reply) in [
        ("XWORK AUDIT s g SUMMARY", "*16|$7|entries|:4500|$6|ACCEPT|:1|"),
        ("XWORK LOG s g - + OUTCOME completed", "*1|*2|$18|1700000000000-4500|"),
        ("XWORK AUDIT s g - +", "*4500|*7|$3|1-0|"),
    ] {
        assert_eq!(world.say(line), "", "{line}");
        let other = world.open("10.0.0.3:1");
        assert_eq!(world.send(other, "PING"), "+PONG|");
        let mut turns = 0;
        let mut found = String::new();
        while found.is_empty() {
            world.pass(0);
            found = world.read(world.me);
            turns += 1;
        }
        assert!(found.starts_with(reply), "{line}: {}", &found[..80]);
        assert_eq!(turns, 2, "{line}");
    }
}

#[test]
fn a_log_is_filtered() {
    let mut world = begun();
    for line in ["BEGIN s g a 1-0 WORK w", "BEGIN s g a 2-0", "DONE s g a 1-0", "FAIL s g a 2-0 REASON r"] {
        world.say(&format!("XWORK {line}"));
    }
    let count = |world: &mut World, words: &str| world.say(&format!("XWORK LOG s g {words}"))[..3].to_owned();
    assert_eq!(count(&mut world, "- +"), "*4|");
    assert_eq!(count(&mut world, "- + WORK w"), "*2|");
    assert_eq!(count(&mut world, "- + ENTRY 2-0"), "*2|");
    assert_eq!(count(&mut world, "- + ENTRY 2-0 OUTCOME FAILED"), "*1|");
    assert_eq!(count(&mut world, "(1700000000000-0 1700000000000-2"), "*2|");
    assert_eq!(count(&mut world, "- + COUNT 3"), "*3|");
}
