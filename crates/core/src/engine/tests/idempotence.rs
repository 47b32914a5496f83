//! Messages that come again: what the golden cases cannot see.

use super::*;
use crate::record::Record;
use crate::state::codec::Reader;

/// A number that XINFO STREAM shows.
pub(super) fn shown(world: &mut World, key: &str, name: &str) -> u64 {
    let reply = world.say(&format!("XINFO STREAM {key}"));
    let at = reply.find(&format!("|{name}|:")).unwrap_or_else(|| panic!("{name} in {reply}"));
    let rest = &reply[at + name.len() + 3..];
    rest[..rest.find('|').unwrap()].parse().unwrap()
}

/// What a restart makes of the log so far: a new engine with its records applied.
pub(super) fn restarted(world: &mut World) -> Engine {
    let mut bytes = Vec::new();
    world.engine.log.take(&mut bytes);
    let mut engine = Engine::new(Settings::default(), 99);
    let mut reader = Reader::new(&bytes);
    while !reader.is_empty() {
        let record = Record::decode(&mut reader).unwrap();
        engine.replay(&record, 0);
    }
    check::check(engine.state()).unwrap();
    engine
}

#[test]
fn messages_are_forgotten_by_time_alone_and_survive_a_restart() {
    let mut world = World::with(&[("stream-idmp-duration", "10"), ("stream-idmp-maxsize", "3")]);
    world.engine.log.enable(0);
    let first = world.say("XADD s IDMP p a * f v");
    world.pass(4000);
    assert_eq!(world.say("XADD s IDMP p a * f v"), first);
    world.say("XADD s IDMP q b * f v");
    world.say("XGROUP CREATE t g $ MKSTREAM");
    assert_eq!(shown(&mut world, "t", "idmp-duration"), 10);
    assert_eq!(world.engine.next_deadline_ms(), Some(START_MS + 10_000));
    // Neither a moment too early …
    world.pass(5999);
    assert_eq!(shown(&mut world, "s", "iids-tracked"), 2);
    // … nor found once the time is over, although nothing has run since.
    world.now_ms += 1;
    assert_ne!(world.say("XADD s IDMP p a * f v"), first);
    assert_eq!(shown(&mut world, "s", "iids-tracked"), 2);
    world.pass(4000);
    assert_eq!(shown(&mut world, "s", "pids-tracked"), 1);
    world.pass(6000);
    assert_eq!(shown(&mut world, "s", "pids-tracked"), 0);
    assert_eq!(world.engine.next_deadline_ms(), None);
    assert_eq!((shown(&mut world, "s", "iids-added"), shown(&mut world, "s", "iids-duplicates")), (3, 1));
    world.say("XADD s IDMP p c * f v");
    check::check(world.engine.state()).unwrap();
    let again = restarted(&mut world);
    assert_eq!(check::exact_digest(again.state()), check::exact_digest(world.engine.state()));
    // Never late; possibly early, for what has gone since it was noted.
    assert!(again.next_deadline_ms() <= world.engine.next_deadline_ms());
}

#[test]
fn deadlines_move_with_the_key() {
    let mut world = World::new();
    world.say("XADD s IDMP p a * f v");
    world.talk(&[("RENAME s t", "+OK|"), ("COPY t u", ":1|"), ("MOVE t 3", ":1|")]);
    assert_eq!(world.engine.next_deadline_ms(), Some(START_MS + 100_000));
    world.talk(&[("DEL u", ":1|"), ("SWAPDB 3 5", "+OK|"), ("SELECT 5", "+OK|"), ("XLEN t", ":1|")]);
    world.pass(100_000);
    assert_eq!(shown(&mut world, "t", "iids-tracked"), 0);
    world.say("XADD t IDMP p a * f v");
    world.talk(&[("FLUSHALL", "+OK|")]);
    assert_eq!(world.engine.next_deadline_ms(), None);
}

#[test]
fn what_a_snapshot_holds_is_not_touched() {
    let mut world = World::new();
    world.say("XADD s IDMP p a * f v");
    let copy = match &world.engine.state().db(0).get_any(b"s").unwrap().value {
        crate::state::keyspace::Value::Stream(stream) => stream.clone(),
        _ => unreachable!(),
    };
    world.say("XADD s IDMP p b * f v");
    world.talk(&[("XCFGSET s IDMP-MAXSIZE 7", "+OK|")]);
    assert_eq!(copy.idempotence.as_ref().unwrap().len(), 1);
    let mut bytes = Vec::new();
    copy.encode(&mut bytes);
    let back = crate::state::stream::Stream::decode(&mut Reader::new(&bytes)).unwrap();
    assert!(back.idempotence.unwrap().known(b"p", b"a", START_MS).is_some());
}
