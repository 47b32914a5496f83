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
    assert_eq!(check::digest(again.state()), check::digest(world.engine.state()));
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
        assert_eq!(check::digest(again.state()), check::digest(world.engine.state()), "seed {seed}");
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
