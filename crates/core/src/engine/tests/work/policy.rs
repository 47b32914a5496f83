//! XWORK POLICY, EVIDENCE, and what the ledger keeps.

use super::super::*;
use super::{begun, outcomes};

#[test]
fn a_policy_is_shown_as_it_was_set() {
    let mut world = begun();
    let text = |e: &str, w: &str, i: &str, n: [u64; 7], d: &str| {
        format!(
            "*20|$8|evidence|{e}$9|workfield|{w}$10|idempotent|{i}$5|lease|:{}|$13|maxdeliveries|:{}|$10|deadletter|{d}\
             $7|backoff|*2|:{}|:{}|$11|consumerttl|:{}|$9|ledgerage|:{}|$9|ledgerlen|:{}|",
            n[0], n[1], n[2], n[3], n[4], n[5], n[6]
        )
    };
    let default = text("$3|off|", "$-1|", "$2|no|", [0, 0, 0, 0, 0, 604_800_000, 1_000_000], "$-1|");
    assert_eq!(world.say("XWORK POLICY s g"), default);
    let set = "EVIDENCE record WORKFIELD job IDEMPOTENT yes LEASE 1 MAXDELIVERIES 2 DEADLETTER d BACKOFF 3 4 \
               CONSUMERTTL 5 LEDGERAGE 6 LEDGERLEN 7";
    world.talk(&[(&format!("XWORK POLICY s g {set}"), "+OK|"), ("XWORK POLICY s g lease 1", "+OK|")]);
    let shown = text("$6|record|", "$3|job|", "$3|yes|", [1, 2, 3, 4, 5, 6, 7], "$1|d|");
    assert_eq!(world.say("XWORK POLICY s g"), shown);
    world.talk(&[("XWORK POLICY s g WORKFIELD '' DEADLETTER ''", "+OK|")]);
    assert_eq!(world.say("XWORK POLICY s g"), shown.replace("$3|job|", "$-1|").replace("$1|d|", "$-1|"));
}

#[test]
fn a_work_id_comes_from_the_field() {
    let mut world = begun();
    world.talk(&[
        ("XWORK POLICY s g WORKFIELD job", "+OK|"),
        ("XWORK DONE s g a 1-0", "*2|+COMPLETED|$-1|"),
        ("XADD s 4-0 job j1", "$3|4-0|"),
        ("XADD s 5-0 other x", "$3|5-0|"),
    ]);
    world.say("XREADGROUP GROUP g a STREAMS s >");
    assert!(world.say("XWORK BEGIN s g a 4-0").starts_with("*2|+DONE|*16|$2|id|$15|1700000000000-0|$4|work|$2|j1|"));
    world.talk(&[("XWORK DONE s g a 5-0", "*2|+COMPLETED|$-1|")]);
    assert!(world.say("XWORK GET s g 5-0").starts_with("*16|"));
    assert!(world.say("XWORK GET s g j1").starts_with("*16|"));
    assert_eq!(world.say("XWORK GET s g 1-0"), "$-1|");
}

#[test]
fn evidence_is_recorded() {
    let mut world = begun();
    world.talk(&[
        ("XWORK POLICY s g EVIDENCE record", "+OK|"),
        ("XWORK DONE s g a 1-0", "*2|+COMPLETED|$-1|"),
        ("XACK s g 2-0 2-0 9-0", ":1|"),
        ("XACK s g RANGE - +", ":1|"),
    ]);
    assert_eq!(outcomes(&mut world), ["completed", "acked", "acked"]);
}

#[test]
fn evidence_is_required() {
    let mut world = begun();
    let refused = "-NOEVIDENCE 1 of 1 entries have no completion, the first is 2-0: acknowledge by XWORK DONE|";
    world.talk(&[
        ("XWORK POLICY s g EVIDENCE require", "+OK|"),
        ("XWORK DONE s g a 1-0 WORK w", "*2|+COMPLETED|$-1|"),
        ("XACK s g 2-0", refused),
        ("XACKDEL s g IDS 2 2-0 2-0", refused),
        ("XACK s g RANGE 2 2", refused),
        (
            "XACK s g 2-0 3-0",
            "-NOEVIDENCE 2 of 2 entries have no completion, the first is 2-0: acknowledge by XWORK DONE|",
        ),
        ("XACK s g 1-0 9-0", ":0|"),
        ("XPENDING s g", "*4|:2|$3|2-0|$3|3-0|*1|*2|$1|a|$1|2|"),
        // Begun for work that is done, it may be acknowledged.
        ("XWORK POLICY s g WORKFIELD job", "+OK|"),
        ("XADD s 4-0 job w", "$3|4-0|"),
    ]);
    world.say("XREADGROUP GROUP g a STREAMS s >");
    world.talk(&[("XACK s g 4-0", ":1|"), ("XNACK s g FAIL IDS 1 2-0", ":1|")]);
}

#[test]
fn a_ledger_keeps_as_much_as_it_is_told() {
    let mut world = begun();
    world.talk(&[
        ("XWORK POLICY s g LEDGERLEN 2 LEDGERAGE 1000", "+OK|"),
        ("XWORK DONE s g a 1-0", "*2|+COMPLETED|$-1|"),
        ("XWORK BEGIN s g a 2-0", "*2|+PROCEED|:1|"),
        ("XWORK BEGIN s g a 3-0", "*2|+PROCEED|:1|"),
        ("XWORK GET s g 1-0", "$-1|"),
    ]);
    assert_eq!(outcomes(&mut world), ["begun", "begun"]);
    world.now_ms += 1001;
    assert_eq!(outcomes(&mut world), [""; 0]);
    world.pass(1000);
    // What was begun is still known.
    world.talk(&[
        ("XCLAIM s g b 0 2-0 JUSTID", "*1|$3|2-0|"),
        ("XWORK BEGIN s g b 2-0", "*2|+HELD|$15|outcome-unknown|"),
    ]);
    assert_eq!(outcomes(&mut world), ["held"]);
}

#[test]
fn many_rows_beyond_the_bound_go_bit_by_bit() {
    let mut world = begun();
    world.say("XWORK POLICY s g LEDGERLEN 10");
    for _ in 0..600 {
        world.say("XWORK BEGIN s g x 1-0");
    }
    let rows = |world: &World| {
        let slot = world.engine.state().db(0).get_any(b"s").unwrap();
        let crate::state::keyspace::Value::Stream(stream) = &slot.value else { panic!() };
        stream.group(b"g").unwrap().work().unwrap().ledger.len()
    };
    assert_eq!((rows(&world), outcomes(&mut world).len()), (600, 10));
    world.pass(1);
    assert_eq!(rows(&world), 10);
    check::check(world.engine.state()).unwrap();
}

#[test]
fn consumers_that_have_nothing_go() {
    let mut world = begun();
    let names = |world: &mut World| {
        let reply = world.say("XINFO CONSUMERS s g");
        reply.split("$4|name|").skip(1).map(|rest| rest.split('|').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    for name in ["b", "c", "w"] {
        world.say(&format!("XGROUP CREATECONSUMER s g {name}"));
    }
    world.say("XWORK POLICY s g CONSUMERTTL 1000");
    world.pass(500);
    world.say("XREADGROUP GROUP g c STREAMS s >");
    let waiter = world.open("10.0.0.4:1");
    world.send(waiter, "XREADGROUP GROUP g w BLOCK 0 STREAMS s >");
    world.pass(501);
    assert_eq!(names(&mut world), ["a", "c", "w"]);
    world.pass(500);
    assert_eq!(names(&mut world), ["a", "w"]);
    // It has something no more.
    world.say("XACK s g RANGE - +");
    world.pass(125);
    assert_eq!(names(&mut world), ["w"]);
    world.engine.close(waiter);
    world.pass(1001);
    assert_eq!(names(&mut world), [""; 0]);
}

#[test]
fn what_the_key_of_dead_letters_has_become_matters_only_where_it_is_named() {
    let mut world = begun();
    world.say("XWORK POLICY s g DEADLETTER dlq");
    world.say("SET dlq x");
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
    world.talk(&[
        ("XWORK POLICY s g LEASE 5", "+OK|"),
        ("XWORK POLICY s g DEADLETTER dlq", wrong),
        ("RENAME s dlq", "+OK|"),
        ("XWORK POLICY dlq g MAXDELIVERIES 1", "+OK|"),
        ("XWORK POLICY dlq g DEADLETTER dlq", "-ERR DEADLETTER must be another key than the stream|"),
        // No letter among what is handed out.
        ("XWORK FAIL dlq g a 1-0 DEAD", "*2|+HELD|$6|failed|"),
    ]);
    world.pass(5);
    world.talk(&[("XREADGROUP GROUP g a STREAMS dlq >", "*-1|"), ("XLEN dlq", ":3|")]);
    assert_eq!(world.say("XWORK AUDIT dlq g").matches("+HOLD|$14|max-deliveries|").count(), 2);
}

#[test]
fn a_field_too_long_for_a_work_id_is_refused_and_never_copied_into_the_ledger() {
    let mut world = begun();
    world.say("XWORK POLICY s g WORKFIELD job DEADLETTER dlq EVIDENCE record");
    for n in 4..=5 {
        world.say(&format!("XADD s {n}-0 job {}", "x".repeat(5000)));
    }
    world.say("XREADGROUP GROUP g a STREAMS s >");
    let refused = "-ERR the work id in the entry must be 1 to 4096 bytes long|";
    world.talk(&[
        ("XWORK BEGIN s g a 4-0", refused),
        ("XWORK DONE s g a 4-0", refused),
        ("XWORK FAIL s g stranger 4-0", "*3|+STALE|$1|a|:1|"),
        ("XWORK FAIL s g a 4-0", "*2|+FAILED|:0|"),
        ("XWORK HOLD s g IDS 1 4-0", ":1|"),
        ("XWORK RELEASE s g IDS 1 4-0", ":1|"),
        ("XCLAIM s g a 0 4-0 JUSTID", "*1|$3|4-0|"),
        ("XACK s g 5-0", ":1|"),
    ]);
    assert!(world.say("XWORK FAIL s g a 4-0 DEAD").starts_with("*2|+DEAD|"));
    assert_eq!(outcomes(&mut world), ["stale", "failed", "held", "released", "acked", "failed", "dead"]);
    assert!(!world.say("XWORK LOG s g - +").contains("xxxx"));
    // Nor is a wrong word given back in full.
    assert!(world.say(&format!("XWORK BEGIN s g a 4-0 {} 1", "x".repeat(5000))).len() < 200);
    assert_eq!(world.say("XWORK LOG s g - + WORK 4-0").matches("outcome").count(), 6);
}
