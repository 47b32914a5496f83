//! What a state that came out of bytes must bear: its invariants hold, it goes through a snapshot unchanged, and every kind of
//! command can be carried out on it.

use impel_core::check;
use impel_core::engine::Engine;
use impel_core::engine::facts::Facts;
use impel_core::settings::Settings;
use impel_core::snapshot;
use impel_core::state::codec::Reader;

use super::replies;
use crate::compare::{Process, encode};
use crate::workload::NODE_MAX;

/// Keys of which a state is looked at.
const KEYS_MAX: usize = 4;

/// An engine with an empty state and a log of what it does.
pub fn new_engine() -> Engine {
    let mut settings = Settings::default();
    // Small nodes, so that few entries have many; small strings, so that no input takes long.
    for (name, value) in [("stream-node-max-entries", NODE_MAX.to_string().as_str()), ("proto-max-bulk-len", "1mb")] {
        settings.apply(name.as_bytes(), &[value]).expect("settings there are");
    }
    Engine::new(settings, 7)
}

/// Gives the engine a turn.
pub fn turn<T>(engine: &mut Engine, now_ms: u64, what: impl FnOnce(&mut Engine, &Facts<'_>) -> T) -> T {
    let now_us = now_ms.saturating_mul(1000);
    let facts = Facts { now_ms, now_us, used_memory: 0, elapsed_us: &|| 0, host: &Process };
    what(engine, &facts)
}

/// Invariants, and the way through a snapshot.
pub fn check_state(engine: &mut Engine) {
    check::check(engine.state()).unwrap_or_else(|why| panic!("{why}"));
    check_snapshot(engine);
}

/// As [`check_state`], of a state that was read from bytes that may not be ours. One invariant is not asked of it: that a block
/// of entries is packed in the one way in which we pack. Finding out would mean packing everything anew at each start, and
/// nothing depends on it.
pub fn check_foreign(engine: &mut Engine) {
    match check::check(engine.state()) {
        Err(why) if why.ends_with("packing its entries anew gives other bytes") => {}
        Err(why) => panic!("{why}"),
        Ok(()) => check_snapshot(engine),
    }
}

fn check_snapshot(engine: &mut Engine) {
    let digest = check::digest(engine.state());
    let mut again = through_snapshot(engine);
    check::check(again.state()).unwrap_or_else(|why| panic!("after a snapshot: {why}"));
    assert!(check::digest(again.state()) == digest, "a snapshot does not hold the state");
    while again.free_one() {}
}

/// A new engine with what a snapshot of `engine` holds.
pub fn through_snapshot(engine: &mut Engine) -> Engine {
    engine.snapshot_abort();
    engine.snapshot_begin();
    let mut taken = Vec::new();
    loop {
        let (keys, done) = engine.snapshot_continue(3);
        keys.iter().for_each(|key| snapshot::encode(key, &mut taken));
        if done {
            break;
        }
    }
    let mut again = new_engine();
    let mut reader = Reader::new(&taken);
    while !reader.is_empty() {
        let key = snapshot::decode(&mut reader).unwrap_or_else(|error| panic!("a snapshot of our own: {error}"));
        again.restore(key, 0);
    }
    again
}

/// Carries out a little of everything on the state that there is, and checks it then.
pub fn work_on(engine: &mut Engine, now_ms: u64, check: fn(&mut Engine)) {
    let mut keys: Vec<(usize, Vec<u8>)> = Vec::new();
    for (number, db) in engine.state().databases().iter().enumerate() {
        keys.extend(db.iter().map(|(key, _)| (number, key.to_vec())).take(KEYS_MAX - keys.len().min(KEYS_MAX)));
    }
    let me = engine.open("10.0.0.1:1".into(), "10.0.0.9:6379".into(), now_ms);
    for (db, key) in keys {
        let groups = engine.state().db(db).get_any(&key).map_or(Vec::new(), |slot| match &slot.value {
            impel_core::state::keyspace::Value::Stream(stream) => {
                stream.groups.keys().take(2).map(|name| name.to_vec()).collect()
            }
            impel_core::state::keyspace::Value::String(_) => Vec::new(),
        });
        say(engine, me, now_ms, &[b"SELECT", db.to_string().as_bytes()]);
        for line in
            ["TYPE K", "XINFO STREAM K FULL", "XRANGE K - + COUNT 50", "XADD K * f v", "PTTL K", "DEBUG OBJECT K"]
        {
            say_line(engine, me, now_ms, line, &key, b"");
        }
        for group in &groups {
            for line in [
                "XINFO GROUPS K",
                "XINFO CONSUMERS K G",
                "XPENDING K G",
                "XPENDING K G - + 20",
                "XREADGROUP GROUP G c COUNT 5 CLAIM 0 STREAMS K >",
                "XAUTOCLAIM K G d 0 0 COUNT 5",
                "XACK K G RANGE 0-0 5-0",
                "XNACK K G FAIL IDS 1 1-1",
                "XGROUP DELCONSUMER K G c RELEASE",
            ] {
                say_line(engine, me, now_ms, line, &key, group);
            }
        }
        for line in ["XTRIM K MAXLEN ~ 3 ACKED", "XDEL K 1-1", "COPY K other-key", "XSETID K 18446744073709551615-0"] {
            say_line(engine, me, now_ms, line, &key, b"");
        }
    }
    turn(engine, now_ms.saturating_add(10), Engine::tick);
    check(engine);
}

fn say_line(engine: &mut Engine, me: usize, now_ms: u64, line: &str, key: &[u8], group: &[u8]) {
    let words: Vec<&[u8]> = line
        .split(' ')
        .map(|word| match word {
            "K" => key,
            "G" => group,
            word => word.as_bytes(),
        })
        .collect();
    say(engine, me, now_ms, &words);
}

fn say(engine: &mut Engine, me: usize, now_ms: u64, words: &[&[u8]]) {
    let bytes = encode(&words.iter().map(|word| word.to_vec()).collect::<Vec<_>>());
    turn(engine, now_ms, |engine, facts| engine.feed(me, &bytes, facts));
    for _ in 0..20 {
        let Some(client) = engine.client_mut(me) else { panic!("the client is gone") };
        let reply = client.output.ready(u64::MAX).to_vec();
        if !reply.is_empty() {
            engine.on_sent(me, reply.len());
            assert_eq!(replies::count(&reply), Ok(1), "{}", bytes.escape_ascii());
            return;
        }
        turn(engine, now_ms, Engine::tick);
    }
    panic!("no reply to {}", bytes.escape_ascii());
}
