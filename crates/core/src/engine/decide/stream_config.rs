//! XCFGSET and XCFGGET: the settings of one stream.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::record::Record;
use crate::resp::encode::Reply;

/// An integer option with a range, as XCFGSET words its errors.
fn ranged(text: &[u8], name: &str, max: i64, unit: &str) -> Result<u32, Fault> {
    let value = parse::int(text)?;
    if !(1..=max).contains(&value) {
        return Err(Fault::owned(format!("ERR {name} must be between 1 and {max} {unit}")));
    }
    Ok(value as u32)
}

/// XCFGSET key [IDMP-DURATION s] [IDMP-MAXSIZE n]
pub fn xcfgset(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if args.len() == 2 {
        return Err(Fault::XCFGSET_NOTHING);
    }
    let (mut duration_s, mut maxsize) = (None, None);
    let mut at = 2;
    while at < args.len() {
        let (word, value) = (args.get(at), args.try_get(at + 1));
        match value {
            Some(value) if is(word, "IDMP-DURATION") => {
                duration_s = Some(ranged(value, "IDMP-DURATION", 86_400, "seconds")?);
            }
            Some(value) if is(word, "IDMP-MAXSIZE") => {
                maxsize = Some(ranged(value, "IDMP-MAXSIZE", 10_000, "entries")?);
            }
            _ => return Err(Fault::SYNTAX),
        }
        at += 2;
    }
    let key = args.get(1);
    let stream = cx.stream(key)?.ok_or(Fault::NO_SUCH_KEY)?;
    let (record_at, old) = (cx.at(key), stream.idempotence_settings());
    let mut settings = old;
    settings.duration_s = duration_s.unwrap_or(old.duration_s);
    settings.maxsize = maxsize.unwrap_or(old.maxsize);
    if settings != old {
        cx.emit(&Record::IdempotenceSettings { at: record_at, settings });
    }
    reply.ok();
    Ok(())
}
