//! XCFGSET and XCFGGET: the settings of one stream.

use super::retention::enforce;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::state::idempotence::IdempotenceSettings;
use crate::state::retention::Retention;

/// An integer option with a range, as XCFGSET words its errors.
fn ranged(text: &[u8], name: &str, max: i64, unit: &str) -> Result<u32, Fault> {
    let value = parse::int(text)?;
    if !(1..=max).contains(&value) {
        return Err(Fault::owned(format!("ERR {name} must be between 1 and {max} {unit}")));
    }
    Ok(value as u32)
}

/// A bound; 0 = none.
fn bound(text: &[u8], name: &str) -> Result<u64, Fault> {
    u64::try_from(parse::int(text)?).map_err(|_| Fault::owned(format!("ERR {name} must be 0 or more")))
}

/// What XCFGSET asks for, as it differs from `old`.
struct Change {
    idempotence: IdempotenceSettings,
    retention: Retention,
}

fn change(args: Args<'_>, mut to: Change) -> Result<Change, Fault> {
    let (mut force, mut bounds) = (false, false);
    let mut at = 2;
    while at < args.len() {
        let (word, value) = (args.get(at), args.try_get(at + 1));
        if is(word, "FORCE") {
            force = true;
            at += 1;
            continue;
        }
        let Some(value) = value else { return Err(Fault::SYNTAX) };
        if is(word, "IDMP-DURATION") {
            to.idempotence.duration_s = ranged(value, "IDMP-DURATION", 86_400, "seconds")?;
        } else if is(word, "IDMP-MAXSIZE") {
            to.idempotence.maxsize = ranged(value, "IDMP-MAXSIZE", 10_000, "entries")?;
        } else if is(word, "DISCARD") {
            to.retention.discard_new = choice(value, "OLD", "NEW")?;
        } else {
            bounds = true;
            if is(word, "MAXLEN") {
                to.retention.max_len = bound(value, "MAXLEN")?;
            } else if is(word, "MAXBYTES") {
                to.retention.max_bytes = bound(value, "MAXBYTES")?;
            } else if is(word, "MAXAGE") {
                to.retention.max_age_ms = bound(value, "MAXAGE")?;
            } else if is(word, "RETAIN") {
                to.retention.acked = choice(value, "ALL", "ACKED")?;
            } else {
                return Err(Fault::SYNTAX);
            }
        }
        at += 2;
    }
    if bounds {
        to.retention.force = force;
    } else if force {
        return Err(Fault::XCFGSET_FORCE_ALONE);
    }
    Ok(to)
}

/// Is it the second of two words?
fn choice(word: &[u8], no: &str, yes: &str) -> Result<bool, Fault> {
    if is(word, yes) {
        Ok(true)
    } else if is(word, no) {
        Ok(false)
    } else {
        Err(Fault::SYNTAX)
    }
}

/// XCFGSET key [IDMP-DURATION s] [IDMP-MAXSIZE n] [MAXLEN n] [MAXBYTES n] [MAXAGE ms] [RETAIN all|acked]
/// [DISCARD old|new] [FORCE]
pub fn xcfgset(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if args.len() == 2 {
        return Err(Fault::XCFGSET_NOTHING);
    }
    let unchanged = Change { idempotence: IdempotenceSettings::default(), retention: Retention::default() };
    // What is wrong in itself is told before the key is looked at.
    change(args, unchanged)?;
    let key = args.get(1);
    let stream = cx.stream(key)?.ok_or(Fault::NO_SUCH_KEY)?;
    let (at, idempotence, retention) = (cx.at(key), stream.idempotence_settings(), stream.retention);
    let to = change(args, Change { idempotence, retention })?;
    if to.idempotence != idempotence {
        cx.emit(&Record::IdempotenceSettings { at, settings: to.idempotence });
    }
    if to.retention != retention {
        cx.emit(&Record::RetentionSettings { at, retention: to.retention });
        enforce(cx, key);
    }
    reply.ok();
    Ok(())
}

/// XCFGGET key
pub fn xcfgget(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let stream = cx.stream(args.get(1))?.ok_or(Fault::NO_SUCH_KEY)?;
    let (idempotence, retention) = (stream.idempotence_settings(), &stream.retention);
    let numbers = [
        ("idmp-duration", u64::from(idempotence.duration_s)),
        ("idmp-maxsize", u64::from(idempotence.maxsize)),
        ("maxlen", retention.max_len),
        ("maxbytes", retention.max_bytes),
        ("maxage", retention.max_age_ms),
        ("bytes", stream.entries.payload_bytes()),
    ];
    let words = [
        ("retain", if retention.acked { "acked" } else { "all" }),
        ("discard", if retention.discard_new { "new" } else { "old" }),
        ("force", if retention.force { "yes" } else { "no" }),
    ];
    reply.map(numbers.len() + words.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.count(number);
    }
    for (name, word) in words {
        reply.bulk(name.as_bytes());
        reply.bulk(word.as_bytes());
    }
    Ok(())
}
