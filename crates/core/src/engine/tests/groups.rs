//! Groups beyond what the golden cases show: giving back with and without delay, readers that wait for old entries or
//! for room, bounds, totals. After each conversation the stream survives being written down and read back.

use super::World;
use crate::check;
use crate::snapshot;
use crate::state::codec::Reader;
use crate::state::keyspace::{Captured, State};

impl World {
    /// What a snapshot of everything gives back is the same, and whole.
    pub(super) fn survives(&self) {
        let mut back = State::new(3);
        for (number, db) in self.engine.state().databases().iter().enumerate() {
            for (key, slot) in db.iter() {
                let (expire_ms, value) = (slot.expire_ms, slot.value.clone());
                let mut bytes = Vec::new();
                snapshot::encode(&Captured { db: number, key: key.into(), expire_ms, value }, &mut bytes);
                let captured = snapshot::decode(&mut Reader::new(&bytes)).unwrap();
                back.restore(captured, 1);
            }
        }
        check::check(&back).unwrap();
        check::check(self.engine.state()).unwrap();
        assert_eq!(check::exact_digest(&back), check::exact_digest(self.engine.state()));
    }

    pub(super) fn tell(&mut self, lines: &[(&str, &str)]) {
        self.talk(lines);
        self.survives();
    }

    /// A stream `s` with `n` entries, all given to consumer `a` of group `g`.
    fn with_pending(n: u64) -> World {
        let mut world = World::new();
        for id in 1..=n {
            world.say(&format!("xadd s {id}-0 f v"));
        }
        world.say("xgroup create s g 0");
        world.say("xreadgroup group g a streams s >");
        world
    }

    pub(super) fn stats(&mut self, field: &str) -> String {
        let all = self.say("xinfo groupstats s");
        let at = all.find(&format!("|{field}|")).expect("the field is there") + field.len() + 2;
        all[at..].split('|').next().unwrap().to_owned()
    }
}

#[test]
fn delayed_entries_are_out_of_reach_until_their_time() {
    let mut world = World::with_pending(3);
    world.tell(&[
        ("xnack s g fail ids 1 2-0 delay -1", "-ERR DELAY must be a number of milliseconds, 0 or more|"),
        ("xnack s g fail ids 1 2-0 delay", "-ERR Unrecognized XNACK option 'delay'|"),
        ("xnack s g fail ids 2 2-0 3-0 delay 1000", ":2|"),
        ("xpending s g 2-0 2-0 9", "*1|*4|$3|2-0|$0||:-1|:1|"),
        ("xpending s g idle 0 - + 9 a", "*1|*4|$3|1-0|$1|a|:0|:1|"),
        ("xclaim s g b 0 2-0 justid", "*0|"),
        ("xautoclaim s g b 0 2-0 justid", "*3|$3|0-0|*0|*0|"),
        ("xreadgroup group g b claim 1 streams s >", "*-1|"),
    ]);
    assert_eq!(world.stats("delayed"), ":2");
    assert_eq!(world.stats("released"), ":0");
    assert_eq!(world.stats("next-release-ms"), ":1000");
    world.pass(999);
    assert_eq!(world.stats("delayed"), ":2");
    world.say("xnack s g fail ids 1 1-0");
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 1));
    world.pass(1);
    assert_eq!(world.stats("delayed"), ":0");
    assert_eq!(world.engine.next_deadline_ms(), None);
    // They join the released ones at the end.
    world.tell(&[(
        "xreadgroup group g b claim 100000 streams s >",
        "*1|*2|$1|s|*3|*4|$3|1-0|*2|$1|f|$1|v|:-1|:1|*4|$3|2-0|*2|$1|f|$1|v|:-1|:1|*4|$3|3-0|*2|$1|f|$1|v|:-1|:1|",
    )]);
    assert_eq!(world.stats("redelivered-total"), ":3");
}

#[test]
fn delays_move_with_their_key_and_end_with_it() {
    let mut world = World::with_pending(2);
    world.tell(&[
        ("xnack s g fail ids 2 1-0 2-0 delay 500", ":2|"),
        ("xclaim s g b 0 2-0 force justid", "*1|$3|2-0|"),
        ("copy s t", ":1|"),
        ("rename s u", "+OK|"),
        ("move u 5", ":1|"),
        ("set t x", "+OK|"),
    ]);
    world.pass(500);
    world.tell(&[
        ("select 5", "+OK|"),
        ("xautoclaim u g b 9999 - justid", "*3|$3|0-0|*1|$3|1-0|*0|"),
        ("xnack u g fail ids 1 1-0 delay 500", ":1|"),
        ("del u", ":1|"),
    ]);
    assert_eq!(world.engine.next_deadline_ms(), None);
    let mut world = World::with_pending(1);
    world.say("xnack s g fail ids 1 1-0 delay 500");
    // Called off: the time passes and nothing is left.
    world.say("xack s g 1-0");
    world.pass(500);
    assert_eq!(world.engine.next_deadline_ms(), None);
    world.survives();
}

#[test]
fn an_id_named_twice_is_given_back_twice() {
    let mut world = World::with_pending(2);
    world.tell(&[
        ("xclaim s g a 0 1-0 retrycount 5 justid", "*1|$3|1-0|"),
        ("xnack s g silent ids 3 2-0 1-0 1-0", ":3|"),
        ("xpending s g - + 9", "*2|*4|$3|1-0|$0||:-1|:3|*4|$3|2-0|$0||:-1|:0|"),
        ("xnack s g fatal ids 1 1-0", ":1|"),
        ("xclaim s g b 0 1-0 justid retrycount -1", "*1|$3|1-0|"),
        ("xclaim s g b 0 1-0", "*1|*2|$3|1-0|*2|$1|f|$1|v|"),
        ("xpending s g 1-0 1-0 9", "*1|*4|$3|1-0|$1|b|:0|:9223372036854775807|"),
    ]);
}

#[test]
fn a_waiting_claim_ends_when_an_entry_is_old_enough() {
    let mut world = World::with_pending(1);
    let (b, c) = (world.open("10.0.0.2:1"), world.open("10.0.0.3:1"));
    assert_eq!(world.send(b, "xreadgroup group g b block 0 claim 400 streams s >"), "");
    assert_eq!(world.send(c, "xreadgroup group g c block 0 claim 400 streams s >"), "");
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 400));
    world.pass(399);
    assert_eq!((world.read(b), world.read(c)), (String::new(), String::new()));
    world.pass(1);
    // The one that has waited longer; the other waits for what was delivered just now.
    assert_eq!(world.read(b), "*1|*2|$1|s|*1|*4|$3|1-0|*2|$1|f|$1|v|:400|:1|");
    assert_eq!(world.read(c), "");
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 400));
    world.pass(400);
    assert_eq!(world.read(c), "*1|*2|$1|s|*1|*4|$3|1-0|*2|$1|f|$1|v|:400|:2|");
    assert_eq!(world.engine.next_deadline_ms(), None);
    world.survives();
}

#[test]
fn a_waiting_claim_hears_of_what_becomes_pending() {
    let mut world = World::with_pending(0);
    world.say("xgroup create s g 0 mkstream");
    let b = world.open("10.0.0.2:1");
    assert_eq!(world.send(b, "xreadgroup group g b block 0 claim 400 streams s >"), "");
    assert_eq!(world.engine.next_deadline_ms(), None);
    // In one transaction, so that the entry goes to `a`.
    world.tell(&[
        ("multi", "+OK|"),
        ("xadd s 1-0 f v", "+QUEUED|"),
        ("xreadgroup group g a streams s >", "+QUEUED|"),
        ("exec", "*2|$3|1-0|*1|*2|$1|s|*1|*2|$3|1-0|*2|$1|f|$1|v|"),
    ]);
    assert_eq!(world.engine.next_deadline_ms(), Some(world.now_ms + 400));
    // Made older, and so claimable at once.
    world.say("xclaim s g a 0 1-0 idle 500 justid");
    assert_eq!(world.read(b), "*1|*2|$1|s|*1|*4|$3|1-0|*2|$1|f|$1|v|:500|:1|");
    // Acknowledged meanwhile: the time comes, and there is nothing.
    assert_eq!(world.send(b, "xreadgroup group g b block 0 claim 400 streams s >"), "");
    world.say("xack s g 1-0");
    world.pass(400);
    assert_eq!(world.read(b), "");
    assert_eq!(world.engine.next_deadline_ms(), None);
}

#[test]
fn a_claim_drops_what_the_stream_has_lost() {
    let mut world = World::with_pending(3);
    world.tell(&[
        ("xdel s 1-0", ":1|"),
        ("xreadgroup group g b count 1 claim 0 streams s >", "*1|*2|$1|s|*1|*4|$3|2-0|*2|$1|f|$1|v|:0|:1|"),
        ("xpending s g - + 1", "*1|*4|$3|2-0|$1|b|:0|:2|"),
        ("xtrim s maxlen 0", ":2|"),
        ("xreadgroup group g b claim 0 streams s >", "*-1|"),
        ("xpending s g", "*4|:0|$-1|$-1|*-1|"),
    ]);
    assert_eq!(world.stats("acked-total"), ":0");
}

#[test]
fn groups_are_made_by_reading() {
    let mut world = World::new();
    world.tell(&[
        ("xadd s 1-0 f v", "$3|1-0|"),
        (
            "xreadgroup group g a mkgroup count 5 streams s t > bad",
            "-ERR Invalid stream ID specified as stream command argument|",
        ),
        ("exists t", ":0|"),
        ("xreadgroup group g a mkgroup count 5 streams s t > >", "*1|*2|$1|s|*1|*2|$3|1-0|*2|$1|f|$1|v|"),
        ("exists t", ":1|"),
        ("xreadgroup group h a mkgroup $ noack streams s >", "*-1|"),
        ("xreadgroup group i a mkgroup 0 streams s >", "*1|*2|$1|s|*1|*2|$3|1-0|*2|$1|f|$1|v|"),
        ("xreadgroup group i a mkgroup 7 streams s >", "-ERR syntax error|"),
        ("xread mkgroup streams s 0", "-ERR syntax error|"),
    ]);
    // A reader that waits makes them again.
    let b = world.open("10.0.0.2:1");
    assert_eq!(world.send(b, "xreadgroup group g b block 0 mkgroup streams t >"), "");
    world.tell(&[("del t", ":1|"), ("exists t", ":1|"), ("xadd t 5-0 f v", "$3|5-0|")]);
    assert_eq!(world.read(b), "*1|*2|$1|t|*1|*2|$3|5-0|*2|$1|f|$1|v|");
    world.say("config set maxmemory 1");
    world.tell(&[(
        "xreadgroup group x a mkgroup streams s >",
        "-OOM command not allowed when used memory > 'maxmemory'.|",
    )]);
}

#[test]
fn options_may_be_named_with_what_holds_anyway() {
    let mut world = World::new();
    let wrong = "-ERR unknown subcommand or wrong number of arguments for 'create'. Try XGROUP HELP.|";
    world.tell(&[
        ("xgroup create s g 0 mkstream", "+OK|"),
        ("xgroup create s a 0 maxpending 0 maxpending-consumer 0", "+OK|"),
        ("xgroup create s b 0 keyfield \"\" maxpending 0", "+OK|"),
        ("xgroup create s c 0 mkstream entriesread 0 maxpending 0 maxpending-consumer 0 keyfield \"\"", "+OK|"),
        ("xgroup create s d 0 mkstream entriesread 0 entriesread 0", wrong),
        ("xgroup cfgset s a maxpending 0 maxpending-consumer 0 keyfield \"\"", "+OK|"),
    ]);
}

#[test]
fn bounds_on_what_is_in_flight() {
    let mut world = World::with_pending(0);
    world.say("xgroup create s g 0 mkstream maxpending 3 maxpending-consumer 2");
    for id in 1..=6 {
        world.say(&format!("xadd s {id}-0 f v"));
    }
    world.tell(&[
        ("xreadgroup group g a streams s >", "*1|*2|$1|s|*2|*2|$3|1-0|*2|$1|f|$1|v|*2|$3|2-0|*2|$1|f|$1|v|"),
        ("xreadgroup group g a streams s >", "*-1|"),
        ("xreadgroup group g b streams s >", "*1|*2|$1|s|*1|*2|$3|3-0|*2|$1|f|$1|v|"),
        ("xreadgroup group g b streams s >", "*-1|"),
    ]);
    // Waits for room; the entries themselves do not wake it.
    let b = world.open("10.0.0.2:1");
    assert_eq!(world.send(b, "xreadgroup group g b block 0 streams s >"), "");
    world.say("xadd s 7-0 f v");
    assert_eq!(world.read(b), "");
    world.say("xack s g 1-0");
    assert_eq!(world.read(b), "*1|*2|$1|s|*1|*2|$3|4-0|*2|$1|f|$1|v|");
    // Released entries are not in flight; taking one up again needs room, taking over does not.
    assert_eq!(world.send(b, "xreadgroup group g c block 0 claim 50 streams s >"), "");
    world.say("xnack s g fail ids 1 2-0");
    assert_eq!(world.read(b), "*1|*2|$1|s|*1|*4|$3|2-0|*2|$1|f|$1|v|:-1|:1|");
    world.say("xnack s g fail ids 1 2-0");
    world.say("xreadgroup group g c streams s >");
    assert_eq!(world.stats("in-flight"), ":3");
    world.pass(60);
    world.tell(&[
        ("xreadgroup group g c claim 50 streams s >", "*1|*2|$1|s|*1|*4|$3|3-0|*2|$1|f|$1|v|:60|:1|"),
        ("xpending s g 2-0 2-0 9", "*1|*4|$3|2-0|$0||:-1|:2|"),
        // At its own bound a consumer gets nothing at all.
        ("xreadgroup group g c claim 50 streams s >", "*-1|"),
        ("xgroup cfgset s g maxpending-consumer", "-ERR wrong number of arguments for 'xgroup|cfgset' command|"),
        ("xgroup cfgset s g maxpending -1", "-ERR value for MAXPENDING must be 0 or more|"),
    ]);
    assert_eq!(world.send(b, "xreadgroup group g c block 0 claim 500 streams s >"), "");
    assert_eq!(world.engine.next_deadline_ms(), None, "there is no room, so no time will help");
    world.say("xgroup cfgset s g maxpending 0 maxpending-consumer 3");
    assert_eq!(world.read(b), "*1|*2|$1|s|*1|*4|$3|2-0|*2|$1|f|$1|v|:-1|:2|");
    assert_eq!((world.stats("max-pending"), world.stats("max-pending-per-consumer")), (":0".into(), ":3".into()));
    world.survives();
}

#[test]
fn consumers_leave_with_care() {
    let mut world = World::with_pending(3);
    world.tell(&[
        ("xgroup delconsumer s g a ifempty", "-ERR the consumer has pending entries|"),
        ("xgroup delconsumer s g a foo", "-ERR wrong number of arguments for 'xgroup|delconsumer' command|"),
        ("xgroup createconsumer s g 0", ":1|"),
        ("xgroup delconsumer s g a release", ":3|"),
        ("xpending s g", "*4|:3|$3|1-0|$3|3-0|*0|"),
        ("xpending s g 3-0 3-0 9", "*1|*4|$3|3-0|$0||:-1|:0|"),
        ("xgroup delconsumer s g 0 ifempty", ":0|"),
        ("xgroup delconsumer s g a release", ":0|"),
    ]);
}

#[test]
fn a_range_is_acknowledged_at_once() {
    let mut world = World::with_pending(9);
    world.tell(&[
        ("xack s g range 3-0", "-ERR RANGE takes two IDs: the first and the last to acknowledge|"),
        ("xack s g range 3-0 x", "-ERR Invalid stream ID specified as stream command argument|"),
        ("xack s g range (3 5", ":2|"),
        ("xack s g range 5 4", ":0|"),
        ("xnack s g fail ids 1 7-0", ":1|"),
        ("xnack s g fail ids 1 8-0 delay 100", ":1|"),
        ("xack s g range 7 +", ":3|"),
        ("xack s nog range x y", ":0|"),
        ("xpending s g", "*4|:4|$3|1-0|$3|6-0|*1|*2|$1|a|$1|4|"),
        ("xack s g range - +", ":4|"),
    ]);
    assert_eq!(world.stats("acked-total"), ":9");
    world.pass(100);
    assert_eq!(world.engine.next_deadline_ms(), None);
}

#[test]
fn a_scan_that_begins_anew_reaches_old_entries() {
    let mut world = World::with_pending(30);
    world.say("xclaim s g a 0 25-0 idle 5000 justid");
    world.tell(&[
        ("xautoclaim s g b 1000 - count 1 justid", "*3|$4|11-0|*0|*0|"),
        ("xautoclaim s g b 1000 - count 1 justid", "*3|$4|26-0|*1|$4|25-0|*0|"),
        ("xautoclaim s g b 1000 - count 1 justid", "*3|$3|0-0|*0|*0|"),
        // One that goes on where it was told sees what Redis shows it.
        ("xautoclaim s g b 1000 - count 1 justid", "*3|$4|11-0|*0|*0|"),
        ("xautoclaim s g b 1000 11-0 count 1 justid", "*3|$4|21-0|*0|*0|"),
        ("xautoclaim s g b 1000 21-0 count 1 justid", "*3|$3|0-0|*0|*0|"),
    ]);
    // Entries that the stream has lost are found by both.
    world.say("xtrim s minid 3-0");
    world.say("xdel s 15-0");
    world.tell(&[
        ("xautoclaim s g b 1000 - count 2 justid", "*3|$3|3-0|*0|*2|$3|1-0|$3|2-0|"),
        ("xautoclaim s g b 1000 3-0 count 1 justid", "*3|$4|13-0|*0|*0|"),
        ("xautoclaim s g b 1000 13-0 count 1 justid", "*3|$4|16-0|*0|*1|$4|15-0|"),
    ]);
}

#[test]
fn totals_and_ages() {
    let mut world = World::with_pending(2);
    world.pass(50);
    world.say("xclaim s g b 0 1-0");
    world.say("xadd s 1700000000000-0 f v");
    world.pass(10);
    assert_eq!(world.stats("oldest-pending-ms"), ":60");
    assert_eq!(world.stats("oldest-undelivered-ms"), ":60");
    world.say("xnack s g fail ids 1 2-0");
    assert_eq!(world.stats("oldest-pending-ms"), ":10");
    world.say("xack s g 1-0 2-0 2-0");
    assert_eq!(world.stats("oldest-pending-ms"), "$-1");
    assert_eq!((world.stats("acked-total"), world.stats("redelivered-total")), (":2".into(), ":1".into()));
    world.survives();
}

#[test]
fn lost_entries_are_found_wherever_ids_went() {
    // XSETID lowers what is known to be deleted; a stream that lost everything takes smaller IDs again.
    for lose in [
        &["xdel s 3-0", "xsetid s 4-0 maxdeletedid 1-0"][..],
        &["xtrim s maxlen 0", "xsetid s 1-0", "xadd s 2-0 f new"],
    ] {
        let mut world = World::new();
        for id in 1..=4 {
            world.say(&format!("xadd s {id}-0 f v"));
        }
        world.say("xgroup create s g 0");
        world.say("xreadgroup group g c streams s >");
        for line in lose {
            assert!(!world.say(line).starts_with('-'), "{line}");
        }
        let reply = world.say("xautoclaim s g d 1000000 0");
        assert!(reply.contains("$3|3-0|"), "{lose:?}: {reply}");
        world.talk(&[]);
    }
}
