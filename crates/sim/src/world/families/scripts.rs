//! Lua scripts: several commands at one moment, some of which fail in the middle.

use super::{key, words};
use crate::random::Random;

const SCRIPTS: &[&str] = &[
    "return redis.call('XADD', KEYS[1], '*', 'f', ARGV[1])",
    "redis.call('XADD', KEYS[1], '*', 'f', '1'); redis.call('XADD', KEYS[1], '*', 'f', '2'); return redis.call('XLEN', KEYS[1])",
    "redis.call('SET', KEYS[1], ARGV[1]); return redis.call('XADD', KEYS[1], '*', 'f', '1')",
    "local r = redis.pcall('XREADGROUP', 'GROUP', 'g1', 'c1', 'COUNT', '2', 'STREAMS', KEYS[1], '>'); if r and r.err then return r end; \
     if r then redis.call('XACK', KEYS[1], 'g1', r[1][2][1][1]) end; return 1",
    "redis.call('INCR', 'n'); redis.call('DEL', KEYS[1]); return {1, 2, 'x'}",
    "return redis.pcall('XTRIM', KEYS[1], 'MAXLEN', '2')",
    "return redis.call('XINFO', 'STREAM', KEYS[1])",
];

/// A script with one key.
pub fn command(random: &mut Random) -> Vec<Vec<u8>> {
    let script = *random.pick(SCRIPTS);
    words(&["EVAL", script, "1", key(random), &random.below(50).to_string()])
}
