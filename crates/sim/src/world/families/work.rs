//! XWORK in every form, between everything else that happens to the same streams: what comes of it no model tells, but the
//! second engine and every restart must agree with it.

use super::{key, line};
use crate::random::Random;

/// A command about work.
pub fn command(random: &mut Random) -> Vec<Vec<u8>> {
    let (key, group) = (key(random), *random.pick(&["g1", "g1", "g2"]));
    let consumer = *random.pick(&["c1", "c1", "c2", "c3"]);
    let id = id(random);
    let work = format!("w{}", random.below(6));
    let mut options = String::new();
    if random.chance(40) {
        options.push_str(&format!(" WORK {work}"));
    }
    if random.chance(20) {
        options.push_str(&format!(" DELIVERY {}", 1 + random.below(3)));
    }
    line(&match random.below(24) {
        0..4 => format!("XREADGROUP GROUP {group} {consumer} COUNT {} STREAMS {key} >", 1 + random.below(4)),
        4 => format!("XREADGROUP GROUP {group} {consumer} BLOCK 60 STREAMS {key} >"),
        5..8 => format!("XWORK BEGIN {key} {group} {consumer} {id}{options}"),
        8..12 => {
            let evidence = *random.pick(&["", " DIGEST x", " DIGEST y RECEIPT r"]);
            let emit = *random.pick(&["", " EMIT b * f 1", " EMIT u * f 1 g 2", " EMIT t 1-* f 1"]);
            format!("XWORK DONE {key} {group} {consumer} {id}{options}{evidence}{emit}")
        }
        12 | 13 => {
            let option = *random.pick(&["", " REASON why", " RETRYIN 30", " DEAD", " REASON why DEAD"]);
            format!("XWORK FAIL {key} {group} {consumer} {id}{option}")
        }
        14 => format!("XWORK HOLD {key} {group} REASON why IDS 2 {id} 0-1"),
        15 => format!("XWORK RELEASE {key} {group} IDS 1 {id}"),
        16 => format!("XWORK GET {key} {group} {work}"),
        17 => format!("XWORK LOG {key} {group} - + COUNT 3"),
        18 => format!("XWORK AUDIT {key} {group} SUMMARY"),
        19 => format!("XWORK REDRIVE {}", random.pick::<&str>(&["u", "u COUNT 1", "u PERSEC 5", "u PERSEC 0", "b"])),
        _ => format!("XWORK POLICY {key} {group} {}", random.pick::<&str>(POLICIES)),
    })
}

const POLICIES: &[&str] = &[
    "EVIDENCE record",
    "EVIDENCE require",
    "EVIDENCE off",
    "WORKFIELD f",
    "IDEMPOTENT yes",
    "LEASE 20",
    "LEASE 20 MAXDELIVERIES 2 DEADLETTER u",
    "LEASE 100 BACKOFF 5 60",
    "BACKOFF 0 0 LEASE 0",
    "MAXDELIVERIES 2",
    "DEADLETTER u MAXDELIVERIES 3",
    "CONSUMERTTL 30",
    "LEDGERAGE 100",
    "LEDGERLEN 3",
];

/// IDs as the commands of the other families make them: small, and few.
fn id(random: &mut Random) -> String {
    format!("{}-{}", random.below(12), random.below(3))
}
