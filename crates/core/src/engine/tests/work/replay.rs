//! Random work: after each step every invariant holds, and the log and a snapshot make the same state again.

use super::super::*;
use crate::engine::apply::{Context, apply};
use crate::record::Record;
use crate::snapshot;
use crate::state::codec::Reader;
use crate::state::keyspace::State;
use crate::test_support::Random;

fn command(random: &mut Random) -> String {
    let key = ["s", "t"][random.below(2) as usize];
    let consumer = ["a", "b", "c"][random.below(3) as usize];
    let id = format!("{}-0", 1 + random.below(30));
    let work = format!("w{}", random.below(6));
    let or = |random: &mut Random, text: &str| if random.one_in(2) { format!(" {text}") } else { String::new() };
    match random.below(24) {
        0 | 1 => format!("XADD {key} {}-0 job {work} n {}", 1 + random.below(40), random.below(100)),
        2..=4 => format!("XREADGROUP GROUP g {consumer} COUNT {} STREAMS {key} >", 1 + random.below(4)),
        5 => format!("XREADGROUP GROUP g {consumer} COUNT 3 CLAIM {} STREAMS {key} >", random.below(200)),
        6 => format!("XCLAIM {key} g {consumer} {} {id}{}", random.below(100), or(random, "JUSTID")),
        7 => format!("XAUTOCLAIM {key} g {consumer} {} 0 COUNT 3", random.below(200)),
        8..=10 => format!("XWORK BEGIN {key} g {consumer} {id}{}", or(random, &format!("WORK {work}"))),
        11..=13 => {
            let digest = format!("DIGEST d{}", random.below(2));
            let digest = or(random, &digest);
            let emit = or(random, "EMIT out * k v");
            format!("XWORK DONE {key} g {consumer} {id}{}{digest}{emit}", or(random, &format!("WORK {work}")))
        }
        14 => {
            let reason = or(random, "REASON why");
            format!("XWORK FAIL {key} g {consumer} {id}{reason}{}", or(random, "RETRYIN 50"))
        }
        15 => format!("XWORK FAIL {key} g {consumer} {id} DEAD"),
        16 => format!("XWORK HOLD {key} g IDS 1 {id}"),
        17 => format!("XWORK RELEASE {key} g IDS 1 {id}"),
        18 => format!("XACK {key} g {id}"),
        19 => {
            let options = [
                "EVIDENCE off",
                "EVIDENCE record",
                "EVIDENCE require",
                "LEASE 100",
                "LEASE 0",
                "MAXDELIVERIES 2",
                "MAXDELIVERIES 0",
                "DEADLETTER dlq",
                "DEADLETTER ''",
                "BACKOFF 30 100",
                "BACKOFF 0 0",
                "CONSUMERTTL 300",
                "CONSUMERTTL 0",
                "LEDGERLEN 20",
                "LEDGERLEN 100000",
                "LEDGERAGE 400",
                "IDEMPOTENT yes",
                "IDEMPOTENT no",
                "WORKFIELD job",
                "WORKFIELD ''",
            ];
            format!("XWORK POLICY {key} g {}", options[random.below(options.len() as u64) as usize])
        }
        20 => format!("XGROUP DELCONSUMER {key} g {consumer}{}", or(random, "RELEASE")),
        21 => format!("XGROUP SETID {key} g {}", random.below(20)),
        22 => format!("XDEL {key} {id}"),
        _ => match random.below(6) {
            0 => format!("XACK {key} g RANGE {id} +"),
            1 => "COPY s t REPLACE".into(),
            2 => format!("XNACK {key} g FAIL IDS 1 {id}{}", or(random, "DELAY 20")),
            3 => format!("XWORK AUDIT {key} g"),
            4 => ["XWORK LOG s g - +", "XWORK REDRIVE dlq", "XWORK REDRIVE dlq PERSEC 20"][random.below(3) as usize]
                .into(),
            _ => format!("XACKDEL {key} g IDS 1 {id}"),
        },
    }
}

fn digest(state: &State) -> String {
    check::digest(state).hex()
}

#[test]
fn the_log_and_a_snapshot_make_the_same_state() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut world = World::new();
        world.engine.log.enable(0);
        for key in ["s", "t"] {
            world.say(&format!("XGROUP CREATE {key} g 0 MKSTREAM"));
        }
        let mut replayed = State::new(1);
        for step in 0..700 {
            let line = command(&mut random);
            world.say(&line);
            if random.one_in(3) {
                world.pass(random.below(90));
            }
            check::check(world.engine.state()).unwrap_or_else(|why| panic!("seed {seed} step {step} {line}: {why}"));
            let mut taken = Vec::new();
            world.engine.log.take(&mut taken);
            let mut reader = Reader::new(&taken);
            while !reader.is_empty() {
                let record = Record::decode(&mut reader).unwrap();
                let context = Context { position: 0, node_limits: world.engine.node_limits() };
                apply(&mut replayed, &record, &context);
                // Again, it changes nothing.
                if matches!(record, Record::WorkRow { .. } | Record::WorkForget { .. } | Record::WorkPolicy { .. }) {
                    apply(&mut replayed, &record, &context);
                }
            }
            if step % 10 == 0 {
                assert_eq!(digest(&replayed), digest(world.engine.state()), "seed {seed} step {step} {line}");
            }
        }
        replayed.check().unwrap();
        // A snapshot of it holds the same.
        let mut restored = State::new(2);
        replayed.snapshot_begin();
        let (keys, done) = replayed.snapshot_continue(1000);
        assert!(done && keys.len() >= 2);
        for key in &keys {
            let mut bytes = Vec::new();
            snapshot::encode(key, &mut bytes);
            restored.restore(snapshot::decode(&mut Reader::new(&bytes)).unwrap(), 0);
        }
        restored.check().unwrap();
        assert_eq!(digest(&restored), digest(&replayed), "seed {seed}");
    }
}
