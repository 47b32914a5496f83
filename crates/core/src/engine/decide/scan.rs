//! Commands that look at the keys of a database as a whole.
//!
//! SCAN goes by place, from the last one down. Removing a key moves the last key to its place, and new keys come last,
//! so a key only ever moves towards where SCAN has yet to go: one that is there all the time is seen at least once. The
//! cursor is one more than the next place to look at: 0 begins at the end and, as an answer, says that all is done.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::glob::{self, Case};
use crate::id::parse_u64;
use crate::limits::SCAN_PLACES_MAX;
use crate::resp::encode::Reply;

/// DBSIZE. As in Redis, keys whose time is over count until they are removed.
pub fn dbsize(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    cx.depends_on_all();
    reply.count(cx.state().db(cx.db).len() as u64);
    Ok(())
}

/// Places that RANDOMKEY tries before it takes the next key that lives.
const RANDOM_TRIES: u64 = 100;

/// RANDOMKEY. The place comes from the time and from how many commands there were: nothing here draws randomness.
pub fn randomkey(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    cx.depends_on_all();
    let (db, now_ms) = (cx.state().db(cx.db), cx.now_ms());
    let seed = cx.facts.now_us ^ cx.engine_ref().statistics.commands.rotate_left(32);
    let len = db.len();
    if len > 0 {
        let place = |attempt: u64| (mix(seed.wrapping_add(attempt)) % len as u64) as usize;
        let tries = (0..RANDOM_TRIES).map(place);
        let living = |place: usize| db.at(place).filter(|(_, slot)| slot.lives(now_ms)).map(|(key, _)| key);
        if let Some(key) = tries.chain(0..len).find_map(living) {
            reply.bulk(key);
            return Ok(());
        }
    }
    reply.null();
    Ok(())
}

/// Spreads the bits of a number over all of it.
fn mix(mut x: u64) -> u64 {
    for _ in 0..2 {
        x = (x ^ (x >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    x ^ (x >> 32)
}

/// KEYS pattern
pub fn keys(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    cx.depends_on_all();
    let (db, now_ms, pattern) = (cx.state().db(cx.db), cx.now_ms(), args.get(1));
    let all = pattern == b"*";
    let found: Vec<&[u8]> = db
        .iter()
        .filter(|(key, slot)| slot.lives(now_ms) && (all || glob::matches(pattern, key, Case::Sensitive)))
        .map(|(key, _)| key)
        .collect();
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}

/// SCAN cursor [MATCH pattern] [COUNT n] [TYPE name]
pub fn scan(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let cursor = parse_u64(args.get(1)).map_err(|_| Fault::INVALID_CURSOR)?;
    let (mut pattern, mut count, mut type_name) = (None, 10, None);
    for place in (2..args.len()).step_by(2) {
        let word = args.get(place);
        let Some(value) = args.try_get(place + 1) else { return Err(Fault::SYNTAX) };
        if is(word, "COUNT") {
            count = parse::int(value)?;
            if count < 1 {
                return Err(Fault::SYNTAX);
            }
        } else if is(word, "MATCH") {
            pattern = Some(value).filter(|&pattern| pattern != b"*");
        } else if is(word, "TYPE") {
            type_name = Some(value);
        } else {
            return Err(Fault::SYNTAX);
        }
    }
    cx.depends_on_all();
    let (db, now_ms) = (cx.state().db(cx.db), cx.now_ms());
    let end = match usize::try_from(cursor) {
        Ok(0) | Err(_) => db.len(),
        Ok(cursor) => cursor.min(db.len()),
    };
    let start = end.saturating_sub((count as usize).min(SCAN_PLACES_MAX));
    let found: Vec<&[u8]> = (start..end)
        .rev()
        .filter_map(|place| db.at(place))
        .filter(|(key, slot)| {
            slot.lives(now_ms)
                && pattern.is_none_or(|pattern| glob::matches(pattern, key, Case::Sensitive))
                && type_name.is_none_or(|name| is(name, slot.value.type_name()))
        })
        .map(|(key, _)| key)
        .collect();
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(start).as_bytes());
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}
