//! Every row of the tables of outcomes and of decisions, by its name: as it comes about, and what is answered, in RESP2 and RESP3,
//! alone, in a transaction and in a script; and who may ask at all.

use std::collections::BTreeSet;

use super::super::*;
use super::{FIRST, begun, completion};
use crate::state::decision::{REASONS, Reason};

/// A row: its name, what was said before (with `+ms` for time that passes), the question, and the answer in RESP2.
type Row<'a> = (&'a str, &'a [&'a str], &'a str, String);

/// What was said; the work id; decision and reason; the owner; delivery number and idle ms.
type Judged<'a> = (&'a [&'a str], &'a str, &'a str, &'a str, &'a str, i64, i64);

/// How a question is put.
#[derive(Clone, Copy, Debug)]
enum Way {
    Alone,
    Transaction,
    Script,
}

/// The words of the answer in RESP3, where maps are maps. A script sees arrays, but nulls are those of its client.
fn in_resp3(reply: &str, way: Way) -> String {
    let reply = reply.replace("$-1|", "_|");
    match way {
        Way::Script => reply,
        _ => reply.replace("*16|$2|id|", "%8|$2|id|"),
    }
}

fn answered((name, before, question, wanted): &Row<'_>) {
    for way in [Way::Alone, Way::Transaction, Way::Script] {
        for resp in [2, 3] {
            let mut world = begun();
            for line in *before {
                match line.strip_prefix('+') {
                    Some(ms) => world.now_ms += ms.parse::<u64>().unwrap(),
                    None => drop(world.say(line)),
                }
            }
            world.say(&format!("HELLO {resp}"));
            let found = match way {
                Way::Alone => world.say(question),
                Way::Transaction => {
                    world.say("MULTI");
                    assert_eq!(world.say(question), "+QUEUED|");
                    world.say("EXEC").strip_prefix("*1|").expect("one reply").to_owned()
                }
                Way::Script => world.say(&format!("EVAL \"return redis.call(unpack(ARGV))\" 2 s out {question}")),
            };
            let wanted = if resp == 3 { in_resp3(wanted, way) } else { wanted.clone() };
            assert_eq!(found, wanted, "{name}: {question}, {way:?} in RESP{resp}");
            check::check(world.engine.state()).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
}

const HOLD: &str = "XWORK HOLD s g REASON audit IDS 1 1-0";
const DONE: &str = "XWORK DONE s g a 1-0 WORK w DIGEST d";

fn row<'a>(name: &'a str, before: &'a [&'a str], question: &'a str, answer: &str) -> Row<'a> {
    let done = completion(FIRST, "w", "1-0", "a", "d");
    (name, before, question, answer.replace("{done}", &done))
}

#[test]
fn every_outcome_of_begin() {
    let begin = "XWORK BEGIN s g a 1-0";
    for one in [
        row("PROCEED", &[], begin, "*2|+PROCEED|:1|"),
        row("PROCEED again", &[begin], begin, "*2|+PROCEED|:1|"),
        row("DONE", &[DONE], begin, "*2|+DONE|{done}"),
        row("DONE of another entry", &[DONE], "XWORK BEGIN s g a 2-0 WORK w", "*2|+DONE|{done}"),
        row("STALE, owner", &["XCLAIM s g b 0 1-0"], begin, "*3|+STALE|$1|b|:2|"),
        row("STALE, nobody", &["XNACK s g FAIL IDS 1 1-0"], begin, "*3|+STALE|$-1|:1|"),
        row("STALE, delivery", &[], "XWORK BEGIN s g a 1-0 DELIVERY 2", "*3|+STALE|$1|a|:1|"),
        row("HELD, reason", &[HOLD], begin, "*2|+HELD|$5|audit|"),
        row(
            "HELD, outcome-unknown",
            &[begin, "XCLAIM s g b 0 1-0"],
            "XWORK BEGIN s g b 1-0",
            "*2|+HELD|$15|outcome-unknown|",
        ),
        row("BUSY", &["XWORK BEGIN s g a 2-0 WORK w"], "XWORK BEGIN s g a 1-0 WORK w", "*3|+BUSY|$1|a|$3|2-0|"),
        row("NOTPENDING", &["XACK s g 1-0"], begin, "*1|+NOTPENDING|"),
    ] {
        answered(&one);
    }
}

#[test]
fn every_outcome_of_done() {
    for one in [
        row("COMPLETED", &[], DONE, "*2|+COMPLETED|$-1|"),
        row("COMPLETED, EMIT", &[], "XWORK DONE s g a 1-0 EMIT out 7-0 k v", "*2|+COMPLETED|$3|7-0|"),
        row("DUPLICATE", &[DONE], "XWORK DONE s g a 2-0 WORK w EMIT out 7-0 k v", "*2|+DUPLICATE|{done}"),
        row("DUPLICATE, not pending", &[DONE], DONE, "*2|+DUPLICATE|{done}"),
        row("CONFLICT", &[DONE], "XWORK DONE s g a 2-0 WORK w DIGEST e", "*2|+CONFLICT|{done}"),
        row("CONFLICT, not pending", &[DONE], "XWORK DONE s g a 1-0 DIGEST e", "*2|+CONFLICT|{done}"),
        row("STALE, owner", &["XCLAIM s g b 0 1-0"], DONE, "*3|+STALE|$1|b|:2|"),
        row("STALE, nobody", &["XNACK s g FAIL IDS 1 1-0"], DONE, "*3|+STALE|$-1|:1|"),
        row("STALE, delivery", &[], "XWORK DONE s g a 1-0 DELIVERY 2", "*3|+STALE|$1|a|:1|"),
        row("HELD", &[HOLD], DONE, "*2|+HELD|$5|audit|"),
        row("NOTPENDING", &["XACK s g 1-0"], DONE, "*1|+NOTPENDING|"),
    ] {
        answered(&one);
    }
}

#[test]
fn every_outcome_of_the_others() {
    let dead = "XWORK FAIL s g a 1-0 DEAD";
    for one in [
        row("FAILED", &[], "XWORK FAIL s g a 1-0", "*2|+FAILED|:0|"),
        row("FAILED, RETRYIN", &[], "XWORK FAIL s g a 1-0 RETRYIN 5", "*2|+FAILED|:5|"),
        row("FAILED, BACKOFF", &["XWORK POLICY s g BACKOFF 7 9"], "XWORK FAIL s g a 1-0", "*2|+FAILED|:7|"),
        row("DEAD", &["XWORK POLICY s g DEADLETTER out"], dead, "*2|+DEAD|$15|1700000000000-0|"),
        row("HELD, DEAD without a stream", &[], dead, "*2|+HELD|$6|failed|"),
        row("HELD before", &[HOLD], dead, "*2|+HELD|$5|audit|"),
        row("STALE", &["XCLAIM s g b 0 1-0"], "XWORK FAIL s g a 1-0", "*3|+STALE|$1|b|:2|"),
        row("NOTPENDING", &["XACK s g 1-0"], "XWORK FAIL s g a 1-0", "*1|+NOTPENDING|"),
        row("held", &[], HOLD, ":1|"),
        row("held already", &[HOLD], HOLD, ":0|"),
        row("released", &[HOLD], "XWORK RELEASE s g IDS 2 1-0 2-0", ":1|"),
        row("a completion", &[DONE], "XWORK GET s g w", "{done}"),
        row("none", &[], "XWORK GET s g w", "$-1|"),
        row("a policy", &[], "XWORK POLICY s g LEASE 5", "+OK|"),
        row("redriven", &["XWORK POLICY s g DEADLETTER out", dead], "XWORK REDRIVE out", "*3|+REDRIVEN|:1|:0|"),
    ] {
        answered(&one);
    }
}

#[test]
fn every_decision() {
    let begin = "XWORK BEGIN s g a 1-0";
    let claim = "XCLAIM s g b 0 1-0";
    let (lease, evidence) = ("XWORK POLICY s g LEASE 1000", "XWORK POLICY s g EVIDENCE record");
    let ack = "XACK s g 1-0";
    let idempotent = "XWORK POLICY s g LEASE 1000 IDEMPOTENT yes";
    let rows: [Judged<'_>; 18] = [
        (&[DONE], "w", "ACCEPT", "complete", "", 0, -1),
        (&[ack], "1-0", "UNKNOWN", "no-ledger", "", 0, -1),
        (&[evidence, ack], "1-0", "REPAIR", "acked-without-evidence", "", 0, -1),
        (&["XWORK POLICY s g EVIDENCE require", DONE], "w", "ACCEPT", "complete", "", 0, -1),
        (&["XWORK POLICY s g WORKFIELD job", "XWORK DONE s g a 2-0 WORK j1"], "j1", "REPAIR", "ack-missing", "a", 1, 0),
        (&[], "1-0", "RERUN", "not-started", "a", 1, 0),
        (&[lease, begin, "+999"], "1-0", "OPEN", "in-progress", "a", 1, 999),
        (&[begin, "+99999"], "1-0", "OPEN", "in-progress", "a", 1, 99_999),
        (&[idempotent, begin, "+1000"], "1-0", "RERUN", "retry-safe", "a", 1, 1000),
        (&[lease, begin, "+1000"], "1-0", "HOLD", "outcome-unknown", "a", 1, 1000),
        (&[begin, claim], "1-0", "HOLD", "outcome-unknown", "b", 2, 0),
        (&["XDEL s 1-0"], "1-0", "HOLD", "payload-lost", "a", 1, 0),
        (&[begin, claim, "XTRIM s MINID 2"], "1-0", "HOLD", "payload-lost", "b", 2, 0),
        (&[DONE, "XWORK DONE s g a 1-0 DIGEST e"], "w", "HOLD", "conflict", "", 0, -1),
        (
            &["XWORK DONE s g a 2-0 WORK w DIGEST d", "XWORK DONE s g a 1-0 WORK w DIGEST e"],
            "w",
            "HOLD",
            "conflict",
            "",
            1,
            -1,
        ),
        (&[HOLD], "1-0", "HOLD", "audit", "", 1, -1),
        (&["XWORK POLICY s g DEADLETTER out", "XWORK FAIL s g a 1-0 DEAD"], "1-0", "HOLD", "dead-letter", "", 0, -1),
        (&[begin, "XWORK FAIL s g a 1-0"], "1-0", "RERUN", "not-started", "", 1, -1),
    ];
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for (before, work, decision, reason, owner, delivery, idle_ms) in rows {
        let bulk = |text: &str| format!("${}|{text}|", text.len());
        let owner = if owner.is_empty() { "$-1|".to_owned() } else { bulk(owner) };
        let (work, shown) = (bulk(work), bulk(reason));
        let answer = format!("*1|*7|$3|1-0|{work}+{decision}|{shown}{owner}:{delivery}|:{idle_ms}|");
        answered(&row(reason, before, "XWORK AUDIT s g 1 1", &answer));
        let known = REASONS.into_iter().find(|known| known.code() == reason);
        assert_eq!(known.unwrap_or(Reason::OnHold).decision().name(), decision);
        named.insert(known.unwrap_or(Reason::OnHold).code());
    }
    assert_eq!(named.len(), REASONS.len(), "a row for each reason: {named:?}");
}

/// All commands, as someone asks them.
const ALL: [&str; 10] = [
    "XWORK AUDIT s g SUMMARY",
    "XWORK BEGIN s g a 1-0",
    "XWORK DONE s g a 1-0",
    "XWORK FAIL s g a 2-0",
    "XWORK GET s g w",
    "XWORK HOLD s g IDS 1 3-0",
    "XWORK LOG s g - +",
    "XWORK POLICY s g",
    "XWORK REDRIVE out",
    "XWORK RELEASE s g IDS 1 3-0",
];

#[test]
fn who_may_use_streams_may_use_the_ledger() {
    let mut world = begun();
    world.say("XADD out 1-0 f v");
    world.say("ACL SETUSER streams on nopass ~* +@stream");
    world.say("ACL SETUSER others on nopass ~* +@all -@stream");
    world.say("ACL SETUSER reader on nopass ~* +@read");
    world.say("ACL SETUSER one on nopass ~* +xwork|begin");
    let mut user = |name: &str| {
        let user = world.open("10.0.0.2:1");
        assert_eq!(world.send(user, &format!("AUTH {name} x")), "+OK|");
        ALL.map(|line| !world.send(user, line).starts_with('-'))
    };
    assert_eq!(user("streams"), [true; 10]);
    assert_eq!(user("others"), [false; 10]);
    assert_eq!(user("reader").map(u8::from), [1, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
    assert_eq!(user("one").map(u8::from), [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn each_command_is_told_of() {
    let mut world = World::new();
    for line in ALL {
        let name = format!("xwork|{}", line.split(' ').nth(1).unwrap().to_lowercase());
        let docs = world.say(&format!("COMMAND DOCS {name}"));
        assert!(docs.starts_with(&format!("*2|${}|{name}|", name.len())), "{docs}");
        for part in
            ["|$7|summary|$", "|$5|since|$5|0.1.0|", "|$5|group|$6|stream|", "|$10|complexity|$", "|$9|arguments|*"]
        {
            assert!(docs.contains(part), "{name} has no {part}: {docs}");
        }
        let info = world.say(&format!("COMMAND INFO {name}"));
        assert!(info.contains("|+@stream|"), "{name}: {info}");
    }
}
