//! Bounds that an operator sets for a stream, and batches.

use std::collections::BTreeSet;

use super::idempotence::restarted;
use super::*;
use crate::id::StreamId;
use crate::state::keyspace::Value;
use crate::state::stream::Stream;

fn stream<'e>(engine: &'e Engine, key: &[u8]) -> &'e Stream {
    match &engine.state().db(0).get_any(key).unwrap().value {
        Value::Stream(stream) => stream,
        Value::String(_) => panic!("not a stream"),
    }
}

fn ids(engine: &Engine, key: &[u8]) -> BTreeSet<StreamId> {
    stream(engine, key).entries.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id).collect()
}

#[test]
fn settings_are_shown_and_refused() {
    let mut world = World::new();
    world.talk(&[
        ("XADD s 1-0 f v", "$3|1-0|"),
        ("XCFGSET s MAXLEN -1", "-ERR MAXLEN must be 0 or more|"),
        ("XCFGSET s MAXBYTES x", "-ERR value is not an integer or out of range|"),
        ("XCFGSET s RETAIN some", "-ERR syntax error|"),
        ("XCFGSET s MAXLEN", "-ERR syntax error|"),
        ("XCFGSET s FORCE", "-ERR syntax error, FORCE goes with MAXLEN, MAXBYTES, MAXAGE or RETAIN|"),
        ("XCFGSET none MAXLEN 5", "-ERR no such key|"),
        ("XCFGGET none", "-ERR no such key|"),
        ("XCFGSET s MAXLEN 5 MAXBYTES 60 MAXAGE 0 RETAIN acked DISCARD new FORCE IDMP-MAXSIZE 9", "+OK|"),
        (
            "XCFGGET s",
            "*18|$13|idmp-duration|:100|$12|idmp-maxsize|:9|$6|maxlen|:5|$8|maxbytes|:60|$6|maxage|:0|$5|bytes|:2|\
             $6|retain|$5|acked|$7|discard|$3|new|$5|force|$3|yes|",
        ),
        ("XCFGSET s MAXLEN 6", "+OK|"),
    ]);
    assert!(world.say("XCFGGET s").ends_with("$5|force|$2|no|"), "FORCE holds for the call that says it");
}

#[test]
fn length_bytes_and_age_at_each_add() {
    let mut world = World::new();
    world.engine.log.enable(0);
    world.talk(&[
        ("XADD s 1-0 f v", "$3|1-0|"),
        ("XCFGSET s MAXLEN 2", "+OK|"),
        ("XADD s 2-0 f v", "$3|2-0|"),
        ("XADD s 3-0 f v", "$3|3-0|"),
        ("XLEN s", ":2|"),
        ("XCFGSET s MAXLEN 0 MAXBYTES 7", "+OK|"),
        ("XADD s 4-0 f long", "$3|4-0|"),
        ("XRANGE s - +", "*2|*2|$3|3-0|*2|$1|f|$1|v|*2|$3|4-0|*2|$1|f|$4|long|"),
        ("XADD s 5-0 f longest", "$3|5-0|"),
        ("XLEN s", ":0|"),
        ("XADD s 6-0 f v", "$3|6-0|"),
        ("XCFGSET s MAXBYTES 0 MAXAGE 1000", "+OK|"),
        ("XLEN s", ":0|"),
        ("XADD s * f v", "$15|1700000000000-0|"),
    ]);
    world.pass(400);
    world.talk(&[("XADD s * f v", "$15|1700000000400-0|")]);
    assert_eq!(world.engine.next_deadline_ms(), Some(START_MS + 1000));
    world.pass(599);
    world.talk(&[("XLEN s", ":2|")]);
    world.pass(1);
    world.talk(&[("XLEN s", ":1|")]);
    assert_eq!(world.engine.next_deadline_ms(), Some(START_MS + 1400));
    let again = restarted(&mut world);
    assert_eq!(check::exact_digest(again.state()), check::exact_digest(world.engine.state()));
    // Never late; possibly early, for what has gone since it was noted.
    assert!(again.next_deadline_ms().is_some_and(|due_ms| due_ms <= START_MS + 1400));
}

#[test]
fn a_full_stream_can_push_back() {
    let mut world = World::new();
    let full = "-ERR The stream is full: MAXLEN 2 is reached and it discards new entries|";
    world.talk(&[
        ("XGROUP CREATE s g 0 MKSTREAM", "+OK|"),
        ("XCFGSET s MAXLEN 2 DISCARD new RETAIN acked", "+OK|"),
        ("XADD s 1-0 f v", "$3|1-0|"),
        ("XADDM s COUNT 2 2-0 1 f v 3-0 1 f v", full),
        ("XADD s 2-0 f v", "$3|2-0|"),
        ("XADD s 3-0 f v", full),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS s >", "*1|*2|$1|s|*1|*2|$3|1-0|*2|$1|f|$1|v|"),
        ("XADD s 3-0 f v", full),
        ("XACK s g 1-0", ":1|"),
        ("XADD s 3-0 f v", "$3|3-0|"),
        ("XLEN s", ":2|"),
        ("XCFGSET s MAXLEN 0 MAXBYTES 5", "+OK|"),
        ("XADD s 4-0 f v", "-ERR The stream is full: MAXBYTES 5 is reached and it discards new entries|"),
    ]);
}

#[test]
fn bounds_spare_what_is_not_acknowledged_unless_forced() {
    let mut world = World::new();
    world.talk(&[
        ("XGROUP CREATE s g 0 MKSTREAM", "+OK|"),
        ("XCFGSET s RETAIN acked MAXLEN 1 MAXAGE 5", "+OK|"),
        ("XADD s 1-0 f v", "$3|1-0|"),
        ("XADD s 2-0 f v", "$3|2-0|"),
        ("XLEN s", ":2|"),
        ("XCFGSET s MAXLEN 1 FORCE", "+OK|"),
        ("XLEN s", ":0|"),
        ("XCFGSET s MAXAGE 0 RETAIN all", "+OK|"),
        ("XADD s 3-0 f v", "$3|3-0|"),
        ("XADD s 4-0 f v", "$3|4-0|"),
        ("XLEN s", ":1|"),
    ]);
}

#[test]
fn batches_are_all_or_nothing() {
    let mut world = World::new();
    let reader = world.open("10.0.0.2:1");
    world.talk(&[
        ("XADDM s NOMKSTREAM COUNT 1 * 1 f v", "$-1|"),
        ("XADDM s COUNT 2 * 1 f v * 2 a b c d", "*2|$15|1700000000000-0|$15|1700000000000-1|"),
    ]);
    assert_eq!(world.send(reader, "XREAD BLOCK 0 STREAMS s $"), "");
    let not_greater = "-ERR The ID specified in XADD is equal or smaller than the target stream top item|";
    let arity = "-ERR wrong number of arguments for 'xaddm' command|";
    world.talk(&[
        ("XADDM s COUNT 2 1700000000005-* 1 f v 1700000000004-0 1 f v", not_greater),
        ("XADDM s COUNT 2 1700000000005-* 1 f v 0-0 1 f v", "-ERR The ID specified in XADD must be greater than 0-0|"),
        ("XADDM s COUNT 0 * 1 f v", "-ERR COUNT must be > 0|"),
        ("XADDM s COUNT 1 * 0 f v", "-ERR The number of fields must be > 0|"),
        ("XADDM s COUNT 2 * 1 f v * 1 f", arity),
        ("XADDM s COUNT 1 * 1 f v * 1 f v", arity),
        ("XADDM s COUNT 1 * 4611686018427387904 f v", arity),
        (
            "XADDM s LIMIT 5 COUNT 1 * 1 f v",
            "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy|",
        ),
        ("XADDM s WHAT COUNT 1 * 1 f v", "-ERR syntax error|"),
        ("XLEN s", ":2|"),
        (
            "XADDM s MAXLEN 2 COUNT 3 1700000000005-* 1 f 1 1700000000005-* 1 f 2 * 1 f 3",
            "*3|$15|1700000000005-0|$15|1700000000005-1|$15|1700000000005-2|",
        ),
        ("XLEN s", ":2|"),
    ]);
    assert_eq!(
        world.read(reader),
        "*1|*2|$1|s|*2|*2|$15|1700000000005-1|*2|$1|f|$1|2|*2|$15|1700000000005-2|*2|$1|f|$1|3|",
        "once, with all that is there"
    );
}

/// Whatever is done to the groups: what every group is done with is gone, and nothing else is.
#[test]
fn retain_acked_keeps_exactly_what_is_not_done() {
    for seed in 1..=12u64 {
        let mut world = World::new();
        world.engine.log.enable(0);
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut pick = move |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        world.say("XADD s 1-0 f v");
        let (mut top, mut kept) = (1, BTreeSet::from([StreamId::new(1, 0)]));
        let set_at = pick(40);
        for step in 0..400 {
            let (group, consumer, id) = (pick(3), pick(3), 1 + pick(top));
            match pick(20) {
                0..=6 => {
                    top += 1;
                    world.say(&format!("XADD s {top}-0 f v"));
                    kept.insert(StreamId::new(top, 0));
                }
                7 => drop(world.say(&format!("XGROUP CREATE s g{group} {}", if pick(2) == 0 { 0 } else { id }))),
                8 if pick(3) == 0 => drop(world.say(&format!("XGROUP DESTROY s g{group}"))),
                9 if pick(3) == 0 => drop(world.say(&format!("XGROUP SETID s g{group} {id}"))),
                10 if pick(3) == 0 => drop(world.say(&format!("XGROUP DELCONSUMER s g{group} c{consumer}"))),
                11 => drop(
                    world
                        .say(&format!("XREADGROUP GROUP g{group} c{consumer} COUNT {} NOACK STREAMS s >", 1 + pick(5))),
                ),
                12 => drop(world.say(&format!("XCLAIM s g{group} c{consumer} 0 {id} FORCE"))),
                13 => {
                    world.say(&format!("XDEL s {id}"));
                    kept.remove(&StreamId::new(id, 0));
                }
                14 => {
                    // Only what was pending there is deleted.
                    if world.say(&format!("XACKDEL s g{group} IDS 1 {id}")).ends_with(":1|") {
                        kept.remove(&StreamId::new(id, 0));
                    }
                }
                15 if pick(2) == 0 => drop(world.say(&format!("XACK s g{group} RANGE {id} {}", 1 + pick(top)))),
                16 if pick(2) == 0 => drop(world.say(&format!("XNACK s g{group} FAIL IDS 1 {id}"))),
                15..=16 => {
                    drop(world.say(&format!("XREADGROUP GROUP g{group} c{consumer} COUNT {} STREAMS s >", 1 + pick(6))))
                }
                _ => drop(world.say(&format!("XACK s g{group} {id} {} {}", 1 + pick(top), 1 + pick(top)))),
            }
            if set_at == step {
                assert_eq!(world.say("XCFGSET s RETAIN acked"), "+OK|");
            }
            if step < set_at {
                continue;
            }
            let groups = stream(&world.engine, b"s");
            if !groups.groups.is_empty() {
                kept.retain(|&id| !groups.is_free(id));
            }
            assert_eq!(ids(&world.engine, b"s"), kept, "seed {seed}, step {step}");
        }
        check::check(world.engine.state()).unwrap();
        let again = restarted(&mut world);
        assert_eq!(check::exact_digest(again.state()), check::exact_digest(world.engine.state()), "seed {seed}");
    }
}

/// Each conversation leaves nothing in `s`, at once.
#[test]
fn what_is_behind_every_position_goes_whatever_put_it_there() {
    let cases: &[&[&str]] = &[
        &["xgroup create s g 100 mkstream", "xcfgset s retain acked", "xadd s 5-1 f v"],
        &["xgroup create s g 100 mkstream", "xcfgset s retain acked", "xaddm s count 2 5-1 1 f v 6-1 1 f v"],
        &["xgroup create s g 100 mkstream", "xcfgset s retain acked", "xadd s delay 1000 5-1 f v"],
        &["xgroup create s g 100 mkstream", "xcfgset s retain acked", "xadd s idmp p i * f v", "xgroup setid s g +"],
        &["xgroup create s g 0 mkstream", "xcfgset s retain acked", "xgroup setid s g +", "xadd s 5-1 f v"],
        &[
            "xgroup create s g 0 mkstream",
            "xcfgset s retain acked",
            "xadd s 5-1 f v",
            "xreadgroup group g a streams s >",
            "xclaim s g a 0 5-1 lastid 9-0",
            "xack s g 5-1",
            "xadd s 6-1 f v",
        ],
        &[
            "xgroup create s g 0 mkstream",
            "xcfgset s retain acked",
            "xadd s 5-1 f v",
            "xreadgroup group g a noack streams s >",
            "xsetid s 0-0",
            "xadd s 4-1 f v",
        ],
        &["xadd s 5-1 f v", "xcfgset s retain acked", "xreadgroup group g a mkgroup $ streams s >"],
        &["xadd t 5-1 f v", "xgroup create t g $", "copy t s", "xcfgset s retain acked"],
        &[
            "xgroup create t g 100 mkstream",
            "xcfgset t retain acked",
            "rename t s",
            "xadd s 5-1 f v",
            "copy s t",
            "xadd t 6-1 f v",
            "rename t s",
        ],
        &[
            "xgroup create s g 0 mkstream keyfield f",
            "xcfgset s retain acked",
            "xaddm s count 2 5-1 1 f v 6-1 1 f v",
            "xreadgroup group g a streams s >",
            "xgroup cfgset s g keyfield \"\"",
            "xack s g 5-1",
            "xreadgroup group g a noack streams s >",
        ],
    ];
    for case in cases {
        let mut world = World::new();
        for line in *case {
            let reply = world.say(line);
            assert!(!reply.starts_with('-'), "{line}: {reply}");
        }
        assert_eq!(world.say("xlen s"), ":0|", "{case:?}");
        check::check(world.engine.state()).unwrap();
    }
}

/// Whatever the commands, no entry stays that every group is done with.
#[test]
fn random_commands_leave_nothing_that_is_done_with() {
    for seed in 1..=30 {
        let mut world = World::new();
        let mut random = crate::test_support::Random(seed);
        for key in ["s", "t"] {
            world.say(&format!("xgroup create {key} g0 0 mkstream"));
            world.say(&format!("xcfgset {key} retain acked"));
        }
        for step in 0..400 {
            let key = if random.one_in(4) { "t" } else { "s" };
            let (group, id, to, ms) =
                (random.below(2), 1 + random.below(30), 1 + random.below(30), random.below(3) * 500);
            let line = match random.below(28) {
                0..=3 => format!("xadd {key} {id}-* f {to}"),
                4 => format!("xaddm {key} delay {ms} count 2 {id}-* 1 f {to} {id}-* 1 f {ms}"),
                5 => format!("xadd {key} notbefore {} {id}-* f v", START_MS + ms),
                6..=7 => format!("xsetid {key} {id}"),
                8 => format!("xgroup create {key} g{group} {id} keyfield f"),
                9 if random.one_in(3) => format!("xgroup destroy {key} g{group}"),
                10 => format!("xgroup setid {key} g{group} {}", ["+", "-", "$", "7"][random.below(4) as usize]),
                11 => format!("xgroup delconsumer {key} g{group} c {}", ["release", "ifempty"][group as usize]),
                12 => format!("xgroup delconsumer {key} g{group} c"),
                13 => format!("xgroup cfgset {key} g{group} keyfield {}", ["f", "\"\""][random.below(2) as usize]),
                14 => format!("xclaim {key} g{group} c 0 {id}-0 lastid {to}"),
                15 => format!("xclaim {key} g{group} c 0 {id}-0 {to}-0 force"),
                16 => format!("xnack {key} g{group} fail ids 2 {id}-0 {to}-0 force delay {ms}"),
                17 => format!("xreadgroup group g{group} c mkgroup $ streams {key} >"),
                18 => format!("xreadgroup group g{group} c claim 0 noack count {id} streams {key} >"),
                19 => format!("xackdel {key} g{group} {} ids 1 {id}-0", ["delref", "acked"][random.below(2) as usize]),
                20 => format!("xdelex {key} delref ids 1 {id}-0"),
                21 => format!("xtrim {key} delref minid {}", id / 2),
                22 => format!("xack {key} g{group} range {id} {to}"),
                23 if random.one_in(4) => "copy s t replace".into(),
                24 if random.one_in(4) => "rename t s".into(),
                25 => {
                    world.pass(ms / 2);
                    continue;
                }
                _ => format!("xreadgroup group g{group} c count {} streams {key} >", 1 + id / 4),
            };
            world.say(&line);
            for key in [&b"s"[..], b"t"] {
                let Some(slot) = world.engine.state().db(0).get_any(key) else { continue };
                let Value::Stream(stream) = &slot.value else { continue };
                let free = stream.entries.range(StreamId::MIN, StreamId::MAX).find(|entry| stream.is_free(entry.id));
                if stream.retention.acked && !stream.groups.is_empty() {
                    assert!(free.is_none(), "seed {seed}, step {step}, {line}: {:?}", free.map(|entry| entry.id));
                }
            }
        }
        check::check(world.engine.state()).unwrap();
    }
}

/// What is to be deleted is deleted, also where acknowledging alone would have trimmed it.
#[test]
fn deleting_counts_as_that_under_retain_acked() {
    for command in ["xackdel s g ids 1 5-1", "xackdel s g acked ids 1 5-1", "xdelex s delref ids 1 5-1"] {
        let mut world = World::new();
        world.talk(&[
            ("xgroup create s g 0 mkstream", "+OK|"),
            ("xcfgset s retain acked", "+OK|"),
            ("xadd s 5-1 f v", "$3|5-1|"),
            ("xreadgroup group g a streams s >", "*1|*2|$1|s|*1|*2|$3|5-1|*2|$1|f|$1|v|"),
            (command, "*1|:1|"),
            ("xlen s", ":0|"),
            ("xpending s g", "*4|:0|$-1|$-1|*-1|"),
        ]);
        let info = world.say("xinfo stream s");
        assert!(info.contains("|max-deleted-entry-id|$3|5-1|"), "{command}: {info}");
    }
}

#[test]
fn a_long_sweep_goes_on_by_turns_and_after_a_restart() {
    let mut world = World::new();
    world.engine.log.enable(0);
    for n in 1..=3000 {
        world.say(&format!("XADD s {n}-0 f v"));
    }
    world.talk(&[("XGROUP CREATE s a 0", "+OK|"), ("XGROUP CREATE s b 0", "+OK|")]);
    world.say("XREADGROUP GROUP a c COUNT 1 STREAMS s >");
    world.say("XREADGROUP GROUP a c NOACK STREAMS s >");
    world.say("XREADGROUP GROUP b c STREAMS s >");
    world.talk(&[("XCFGSET s RETAIN acked", "+OK|"), ("XLEN s", ":3000|")]);
    world.pass(10);
    // All but the first are pending in b alone.
    world.talk(&[("XGROUP DESTROY s b", ":1|"), ("XLEN s", ":2501|")]);
    assert_eq!(world.engine.next_deadline_ms(), Some(0));
    let mut again = restarted(&mut world);
    std::mem::swap(&mut world.engine, &mut again);
    world.me = world.open("10.0.0.3:1");
    for _ in 0..8 {
        world.pass(1);
    }
    world.talk(&[("XLEN s", ":1|"), ("XACK s a 1-0", ":1|"), ("XLEN s", ":0|")]);
    assert_eq!(world.engine.next_deadline_ms(), None);
}
