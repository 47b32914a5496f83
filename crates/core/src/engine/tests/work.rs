//! XWORK: the ledger, and what policies do. One test for each outcome.

mod audit;
mod claims;
mod model;
mod policy;
mod redrive;
mod replay;
mod rows;

use super::*;

/// A group with three entries delivered to `a`.
fn begun() -> World {
    let mut world = World::new();
    world.say("XGROUP CREATE s g 0 MKSTREAM");
    for n in 1..=3 {
        world.say(&format!("XADD s {n}-0 job j{n} f v"));
    }
    world.say("XREADGROUP GROUP g a STREAMS s >");
    world
}

/// What COMPLETED or DONE shows of a completion in RESP2.
fn completion(id: &str, work: &str, entry: &str, consumer: &str, digest: &str) -> String {
    let bulk = |text: &str| if text.is_empty() { "$-1|".to_owned() } else { format!("${}|{text}|", text.len()) };
    let time = id.split('-').next().unwrap();
    format!(
        "*16|$2|id|{}$4|work|{}$5|entry|{}$8|consumer|{}$8|delivery|:1|$6|digest|{}$7|receipt|$-1|$4|time|:{time}|",
        bulk(id),
        bulk(work),
        bulk(entry),
        bulk(consumer),
        bulk(digest)
    )
}

/// The outcomes of the rows of `s g`, in order.
fn outcomes(world: &mut World) -> Vec<String> {
    let reply = world.say("XWORK LOG s g - +");
    reply.split("|$7|outcome|$").skip(1).map(|rest| rest.split('|').nth(1).unwrap().to_owned()).collect()
}

const FIRST: &str = "1700000000000-0";

#[test]
fn begin_proceeds_and_is_said_again_for_nothing() {
    let mut world = begun();
    world
        .talk(&[("XWORK BEGIN s g a 1-0", "*2|+PROCEED|:1|"), ("XWORK BEGIN s g a 1-0 DELIVERY 1", "*2|+PROCEED|:1|")]);
    assert_eq!(outcomes(&mut world), ["begun"]);
}

#[test]
fn begin_of_completed_work_says_so() {
    let mut world = begun();
    world.say("XWORK DONE s g a 1-0 WORK w DIGEST d");
    let first = completion(FIRST, "w", "1-0", "a", "d");
    for begin in ["XWORK BEGIN s g a 2-0 WORK w", "XWORK BEGIN s g b 2-0 WORK w", "XWORK BEGIN s g a 1-0"] {
        assert_eq!(world.say(begin), format!("*2|+DONE|{first}"), "{begin}");
    }
    assert_eq!(outcomes(&mut world), ["completed"]);
}

#[test]
fn begin_of_an_entry_that_another_has_is_stale() {
    let mut world = begun();
    world.talk(&[
        ("XCLAIM s g b 0 1-0 JUSTID", "*1|$3|1-0|"),
        ("XWORK BEGIN s g a 1-0", "*3|+STALE|$1|b|:1|"),
        ("XWORK BEGIN s g b 1-0 DELIVERY 2", "*3|+STALE|$1|b|:1|"),
        ("XNACK s g FAIL IDS 1 1-0", ":1|"),
        ("XWORK BEGIN s g b 1-0", "*3|+STALE|$-1|:1|"),
        ("XWORK BEGIN s g nobody 2-0", "*3|+STALE|$1|a|:1|"),
    ]);
    assert_eq!(outcomes(&mut world), ["stale"; 4]);
}

#[test]
fn begin_of_an_entry_on_hold_tells_why() {
    let mut world = begun();
    world.talk(&[("XWORK HOLD s g REASON audit IDS 1 1-0", ":1|"), ("XWORK BEGIN s g a 1-0", "*2|+HELD|$5|audit|")]);
}

#[test]
fn begin_after_an_attempt_of_unknown_outcome_holds_the_entry() {
    let mut world = begun();
    world.talk(&[
        ("XWORK BEGIN s g a 1-0", "*2|+PROCEED|:1|"),
        ("XCLAIM s g b 0 1-0", "*1|*2|$3|1-0|*4|$3|job|$2|j1|$1|f|$1|v|"),
        ("XWORK BEGIN s g b 1-0", "*2|+HELD|$15|outcome-unknown|"),
        ("XWORK BEGIN s g b 1-0", "*2|+HELD|$15|outcome-unknown|"),
        ("XCLAIM s g b 0 1-0", "*0|"),
        // Someone has looked at it: it may be done.
        ("XWORK RELEASE s g IDS 1 1-0", ":1|"),
        ("XCLAIM s g b 0 1-0 JUSTID", "*1|$3|1-0|"),
        ("XWORK BEGIN s g b 1-0", "*2|+PROCEED|:2|"),
    ]);
    assert_eq!(outcomes(&mut world), ["begun", "held", "released", "begun"]);
}

#[test]
fn begin_again_where_work_is_idempotent() {
    let mut world = begun();
    world.talk(&[
        ("XWORK POLICY s g IDEMPOTENT yes", "+OK|"),
        ("XWORK BEGIN s g a 1-0", "*2|+PROCEED|:1|"),
        ("XCLAIM s g b 0 1-0 JUSTID", "*1|$3|1-0|"),
        ("XWORK BEGIN s g b 1-0", "*2|+PROCEED|:1|"),
    ]);
}

#[test]
fn begin_of_work_that_is_done_under_another_entry_is_busy() {
    let mut world = begun();
    world.talk(&[
        ("XWORK POLICY s g LEASE 1000", "+OK|"),
        ("XWORK BEGIN s g a 1-0 WORK w", "*2|+PROCEED|:1|"),
        ("XWORK BEGIN s g a 2-0 WORK w", "*3|+BUSY|$1|a|$3|1-0|"),
        // Named after the other entry.
        ("XWORK BEGIN s g a 3-0", "*2|+PROCEED|:1|"),
        ("XWORK BEGIN s g a 2-0 WORK 3-0", "*3|+BUSY|$1|a|$3|3-0|"),
    ]);
    world.now_ms += 1000;
    world.talk(&[("XWORK BEGIN s g a 2-0 WORK w", "*2|+PROCEED|:1|")]);
}

#[test]
fn begin_of_what_is_not_pending() {
    let mut world = begun();
    world.talk(&[
        ("XACK s g 1-0", ":1|"),
        ("XWORK BEGIN s g a 1-0", "*1|+NOTPENDING|"),
        ("XWORK BEGIN s g a 9-9", "*1|+NOTPENDING|"),
    ]);
    assert_eq!(outcomes(&mut world), [""; 0]);
}

#[test]
fn done_completes_and_acknowledges() {
    let mut world = begun();
    world.talk(&[
        ("XWORK DONE s g a 1-0 DIGEST d RECEIPT r", "*2|+COMPLETED|$-1|"),
        ("XPENDING s g", "*4|:2|$3|2-0|$3|3-0|*1|*2|$1|a|$1|2|"),
    ]);
    let shown = completion(FIRST, "1-0", "1-0", "a", "d").replace("receipt|$-1|", "receipt|$1|r|");
    assert_eq!(world.say("XWORK GET s g 1-0"), shown);
    world.say("HELLO 3");
    assert_eq!(world.say("XWORK GET s g 1-0"), shown.replace("*16|", "%8|"));
    assert_eq!(world.say("XWORK GET s g 2-0"), "_|");
}

#[test]
fn done_emits_once_for_a_work_id() {
    let mut world = begun();
    world.talk(&[
        ("XWORK DONE s g a 1-0 WORK w EMIT out 7-* k v", "*2|+COMPLETED|$3|7-0|"),
        ("XRANGE out - +", "*1|*2|$3|7-0|*2|$1|k|$1|v|"),
    ]);
    let first = completion(FIRST, "w", "1-0", "a", "");
    assert_eq!(world.say("XWORK DONE s g a 2-0 WORK w EMIT out * k v"), format!("*2|+DUPLICATE|{first}"));
    assert_eq!(world.say("XWORK DONE s g a 1-0 WORK w EMIT out * k v"), format!("*2|+DUPLICATE|{first}"));
    world.talk(&[("XLEN out", ":1|"), ("XPENDING s g", "*4|:1|$3|3-0|$3|3-0|*1|*2|$1|a|$1|1|")]);
    assert_eq!(outcomes(&mut world), ["completed", "duplicate", "duplicate"]);
}

#[test]
fn done_that_cannot_emit_changes_nothing() {
    let mut world = begun();
    world.say("SET str x");
    world.say("XADD out 5-0 k v");
    for (emit, error) in [
        ("str * k v", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
        ("out 5-0 k v", "-ERR The ID specified in XADD is equal or smaller than the target stream top item|"),
        ("out 0-0 k v", "-ERR The ID specified in XADD must be greater than 0-0|"),
        ("out * k", "-ERR EMIT takes a key, an ID, and fields each with a value|"),
        ("out x k v", "-ERR Invalid stream ID specified as stream command argument|"),
    ] {
        assert_eq!(world.say(&format!("XWORK DONE s g a 1-0 EMIT {emit}")), error);
    }
    assert_eq!(outcomes(&mut world), [""; 0]);
    world.talk(&[("XLEN out", ":1|"), ("XWORK DONE s g a 1-0", "*2|+COMPLETED|$-1|")]);
}

#[test]
fn done_again_with_the_same_or_no_digest_is_a_duplicate() {
    let mut world = begun();
    world.say("XWORK DONE s g a 1-0 WORK w DIGEST d");
    let first = completion(FIRST, "w", "1-0", "a", "d");
    for done in ["XWORK DONE s g a 2-0 WORK w DIGEST d", "XWORK DONE s g a 3-0 WORK w"] {
        assert_eq!(world.say(done), format!("*2|+DUPLICATE|{first}"));
    }
    // The entry is acknowledged, and its reply may have been lost.
    assert_eq!(world.say("XWORK DONE s g a 2-0 DIGEST d"), format!("*2|+DUPLICATE|{first}"));
    world.talk(&[("XPENDING s g", "*4|:0|$-1|$-1|*-1|")]);
}

#[test]
fn done_with_another_digest_is_a_conflict() {
    let mut world = begun();
    world.say("XWORK DONE s g a 1-0 WORK w DIGEST d");
    let first = completion(FIRST, "w", "1-0", "a", "d");
    assert_eq!(world.say("XWORK DONE s g a 2-0 WORK w DIGEST other EMIT out * k v"), format!("*2|+CONFLICT|{first}"));
    world.talk(&[
        ("EXISTS out", ":0|"),
        ("XPENDING s g - + 9", "*2|*4|$3|2-0|$0||:-1|:1|*4|$3|3-0|$1|a|:0|:1|"),
        ("XWORK DONE s g a 2-0 WORK w DIGEST d", "*2|+HELD|$8|conflict|"),
        ("XWORK RELEASE s g IDS 1 2-0", ":1|"),
        ("XCLAIM s g a 0 2-0 JUSTID", "*1|$3|2-0|"),
    ]);
    assert_eq!(world.say("XWORK DONE s g a 2-0 WORK w DIGEST d"), format!("*2|+DUPLICATE|{first}"));
    assert_eq!(outcomes(&mut world), ["completed", "conflict", "released", "duplicate"]);
    // Of what is pending no more there is nothing to hold; the contradiction is written down.
    assert_eq!(world.say("XWORK DONE s g b 1-0 DIGEST x"), format!("*2|+CONFLICT|{first}"));
}

#[test]
fn done_is_fenced() {
    let mut world = begun();
    world.talk(&[
        ("XCLAIM s g b 0 1-0", "*1|*2|$3|1-0|*4|$3|job|$2|j1|$1|f|$1|v|"),
        ("XWORK DONE s g a 1-0 DIGEST d", "*3|+STALE|$1|b|:2|"),
        ("XWORK DONE s g b 1-0 DELIVERY 1", "*3|+STALE|$1|b|:2|"),
        ("XWORK DONE s g b 1-0 DELIVERY 2", "*2|+COMPLETED|$-1|"),
        ("XWORK DONE s g b 9-0", "*1|+NOTPENDING|"),
    ]);
    assert_eq!(outcomes(&mut world), ["stale", "stale", "completed"]);
    world.talk(&[(
        "XWORK LOG s g - + COUNT 1",
        "*1|*2|$15|1700000000000-0|*16|$7|outcome|$5|stale|$5|entry|$3|1-0|$4|work|$3|1-0|$8|consumer|$1|a|$8|delivery|:2|\
         $6|digest|$1|d|$7|receipt|$-1|$6|reason|$-1|",
    )]);
}

#[test]
fn fail_gives_back_at_once_or_later() {
    let mut world = begun();
    world.talk(&[
        ("XWORK BEGIN s g a 1-0", "*2|+PROCEED|:1|"),
        ("XWORK FAIL s g a 1-0 REASON disk", "*2|+FAILED|:0|"),
        ("XWORK FAIL s g a 2-0 RETRYIN 500", "*2|+FAILED|:500|"),
        ("XPENDING s g - + 9", "*3|*4|$3|1-0|$0||:-1|:1|*4|$3|2-0|$0||:-1|:1|*4|$3|3-0|$1|a|:0|:1|"),
        ("XAUTOCLAIM s g b 0 0 JUSTID", "*3|$3|0-0|*2|$3|1-0|$3|3-0|*0|"),
        // It failed, so it may be begun again.
        ("XWORK BEGIN s g b 1-0", "*2|+PROCEED|:1|"),
        ("XWORK FAIL s g a 1-0", "*3|+STALE|$1|b|:1|"),
        ("XWORK FAIL s g a 9-0", "*1|+NOTPENDING|"),
        ("XWORK HOLD s g IDS 1 1-0", ":1|"),
        ("XWORK FAIL s g b 1-0", "*2|+HELD|$4|held|"),
    ]);
    world.pass(500);
    world.talk(&[("XAUTOCLAIM s g b 0 0 JUSTID", "*3|$3|0-0|*2|$3|2-0|$3|3-0|*0|")]);
}

#[test]
fn fail_dead_sends_the_entry_away() {
    let mut world = begun();
    world.talk(&[
        ("XWORK FAIL s g a 1-0 DEAD REASON bad", "*2|+HELD|$3|bad|"),
        ("XWORK POLICY s g DEADLETTER dlq", "+OK|"),
        ("XWORK FAIL s g a 2-0 DEAD", "*2|+DEAD|$15|1700000000000-0|"),
        (
            "XRANGE dlq - +",
            "*1|*2|$15|1700000000000-0|*16|$3|job|$2|j2|$1|f|$1|v|$7|_stream|$1|s|$6|_group|$1|g|$3|_id|$3|2-0|\
             $11|_deliveries|$1|1|$9|_consumer|$1|a|$7|_reason|$6|failed|",
        ),
        ("XPENDING s g - + 9", "*2|*4|$3|1-0|$0||:-1|:1|*4|$3|3-0|$1|a|:0|:1|"),
    ]);
    assert_eq!(outcomes(&mut world), ["failed", "held", "failed", "dead"]);
}

#[test]
fn holding_and_releasing_count_what_changes() {
    let mut world = begun();
    world.talk(&[
        ("XWORK HOLD s g IDS 3 1-0 2-0 9-0", ":2|"),
        ("XWORK HOLD s g IDS 1 1-0", ":0|"),
        ("XWORK HOLD s g REASON other IDS 1 1-0", ":1|"),
        ("XWORK RELEASE s g IDS 3 1-0 1-0 3-0", ":1|"),
        ("XACK s g 2-0", ":1|"),
        ("XWORK RELEASE s g IDS 1 2-0", ":0|"),
    ]);
}

#[test]
fn wrong_words_name_the_argument_and_change_nothing() {
    let mut world = begun();
    let digest = world.say("DEBUG DIGEST");
    for (line, error) in [
        ("XWORK BEGIN s g a x", "-ERR Invalid stream ID specified as stream command argument|"),
        ("XWORK BEGIN no g a 1-0", "-NOGROUP No such key 'no' or consumer group 'g'|"),
        ("XWORK BEGIN s no a 1-0", "-NOGROUP No such key 's' or consumer group 'no'|"),
        ("XWORK BEGIN s g a 1-0 DIGEST d", "-ERR unknown or incomplete option 'DIGEST' of XWORK BEGIN|"),
        ("XWORK BEGIN s g a 1-0 WORK", "-ERR unknown or incomplete option 'WORK' of XWORK BEGIN|"),
        ("XWORK BEGIN s g a 1-0 WORK ''", "-ERR WORK must be 1 to 4096 bytes long|"),
        ("XWORK DONE s g a 1-0 DELIVERY 0", "-ERR DELIVERY must be a number from 1 to 9223372036854775807|"),
        ("XWORK FAIL s g a 1-0 RETRYIN -1", "-ERR RETRYIN must be a number from 0 to 9007199254740991|"),
        ("XWORK FAIL s g a 1-0 RETRYIN 1 DEAD", "-ERR RETRYIN and DEAD exclude each other|"),
        ("XWORK HOLD s g IDS 2 1-0", "-ERR The `numids` parameter must match the number of arguments|"),
        ("XWORK HOLD s g REASON x y", "-ERR unknown or incomplete option 'y' of XWORK HOLD|"),
        (
            "XWORK LOG s g - + OUTCOME odd",
            "-ERR OUTCOME must be one of begun, completed, duplicate, conflict, stale, \
         failed, held, released, acked, dead, expired|",
        ),
        ("XWORK LOG s g - + COUNT 0", "-ERR COUNT must be a number from 1 to 9223372036854775807|"),
        ("XWORK AUDIT s g - + ALL", "-ERR unknown or incomplete option 'ALL' of XWORK AUDIT|"),
        ("XWORK POLICY s g LEASE 1 LEASE", "-ERR unknown or incomplete option 'LEASE' of XWORK POLICY|"),
        ("XWORK POLICY s g EVIDENCE maybe", "-ERR EVIDENCE must be off, record or require|"),
        ("XWORK POLICY s g IDEMPOTENT 1", "-ERR IDEMPOTENT must be yes or no|"),
        ("XWORK POLICY s g LEDGERLEN 0", "-ERR LEDGERLEN must be a number from 1 to 1073741824|"),
        ("XWORK POLICY s g BACKOFF 10 9", "-ERR BACKOFF max must be a number from 10 to 9007199254740991|"),
        ("XWORK POLICY s g DEADLETTER s", "-ERR DEADLETTER must be another key than the stream|"),
    ] {
        assert_eq!(world.say(line), error, "{line}");
    }
    assert_eq!(world.say("DEBUG DIGEST"), digest);
}

#[test]
fn work_goes_on_in_transactions_and_scripts() {
    let mut world = begun();
    world.say("MULTI");
    world.say("XWORK BEGIN s g a 1-0");
    world.say("XWORK DONE s g a 1-0 EMIT out 1-0 k v");
    world.say("XWORK GET s g 2-0");
    assert_eq!(world.say("EXEC"), "*3|*2|+PROCEED|:1|*2|+COMPLETED|$3|1-0|$-1|");
    let script = "return redis.call('XWORK','DONE','s','g','a','2-0')[1]['ok']";
    assert_eq!(world.say(&format!("EVAL \"{script}\" 1 s")), "$9|COMPLETED|");
    let script = "return redis.call('XWORK','AUDIT','s','g','SUMMARY')[2]";
    assert_eq!(world.say(&format!("EVAL \"{script}\" 1 s")), ":3|");
}

#[test]
fn keys_of_work_commands() {
    let mut world = World::new();
    let keys = |world: &mut World, line: &str| world.say(&format!("COMMAND GETKEYS {line}"));
    assert_eq!(keys(&mut world, "XWORK BEGIN s g a 1-0"), "*1|$1|s|");
    assert_eq!(keys(&mut world, "XWORK DONE s g a 1-0 WORK EMIT EMIT out * f v"), "*2|$1|s|$3|out|");
    assert_eq!(keys(&mut world, "XWORK DONE s g a 1-0"), "*1|$1|s|");
    assert_eq!(keys(&mut world, "XWORK POLICY s g BACKOFF 1 2 DEADLETTER d"), "*2|$1|s|$1|d|");
    assert_eq!(keys(&mut world, "XWORK POLICY s g WORKFIELD DEADLETTER LEASE 1"), "*1|$1|s|");
    // Who may not write the second key may not name it.
    world.say("XGROUP CREATE s g 0 MKSTREAM");
    world.say("ACL SETUSER u on nopass ~s +@all");
    let user = world.open("10.0.0.2:1");
    world.send(user, "AUTH u x");
    for line in ["XWORK DONE s g a 1-0 EMIT out * f v", "XWORK POLICY s g DEADLETTER out"] {
        assert!(world.send(user, line).starts_with("-NOPERM"), "{line}");
    }
    assert_eq!(world.send(user, "XWORK POLICY s g DEADLETTER ''"), "+OK|");
}
