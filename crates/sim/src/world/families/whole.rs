//! What moves whole keys and databases, and blocks over several of them.

use super::{key, line};
use crate::random::Random;

/// A command about keys.
pub fn command(random: &mut Random) -> Vec<Vec<u8>> {
    let (from, to) = (key(random), key(random));
    line(&match random.below(16) {
        0 => "FLUSHALL".to_owned(),
        1 => "FLUSHDB ASYNC".to_owned(),
        2 => "SWAPDB 0 1".to_owned(),
        3 => format!("RENAME {from} {to}"),
        4 => format!("COPY {from} {to} REPLACE"),
        5 => format!("COPY {from} {to} DB 1 REPLACE"),
        6 => format!("MOVE {from} 1"),
        7 => format!("UNLINK {from}"),
        8 => format!("XREAD BLOCK 20 STREAMS {from} {to} $ $"),
        9 => format!("XREAD COUNT 3 BLOCK 0 STREAMS {from} {to} $ 0"),
        10 => "SCAN 0 COUNT 3".to_owned(),
        11 => "DBSIZE".to_owned(),
        12 => format!("XGROUP CREATE {from} g1 0 MKSTREAM"),
        13 => format!("XREADGROUP GROUP g1 c2 BLOCK 30 STREAMS {from} >"),
        14 => format!("WATCH {from} {to}"),
        _ => "MULTI".to_owned(),
    })
}
