//! Strings and their expiry.

use super::{key, line};
use crate::random::Random;

/// A command about a string.
pub fn command(random: &mut Random) -> Vec<Vec<u8>> {
    let key = key(random);
    let ms = *random.pick(&[1, 5, 30, 200, 3000]);
    let n = random.below(100);
    line(&match random.below(12) {
        0 => format!("SET {key} {n} PX {ms}"),
        1 => format!("SET {key} {n} XX KEEPTTL"),
        2 => format!("SETRANGE {key} {} {n}", random.below(40)),
        3 => format!("INCRBY {key} {n}"),
        4 => format!("GETDEL {key}"),
        5 => format!("GETEX {key} PX {ms}"),
        6 => format!("MSET {key} {n} u {n}"),
        7 => format!("PEXPIRE {key} {ms}"),
        8 => format!("APPEND {key} {n}"),
        9 => format!("GET {key}"),
        10 => format!("SETNX {key} {n}"),
        _ => format!("SET u {}", "x".repeat(random.below(3000) as usize + 1)),
    })
}
