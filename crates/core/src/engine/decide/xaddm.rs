//! XADDM: several entries at once, all or none. Ours, not Redis's.

use smallvec::SmallVec;

use super::options::{References, TrimParser};
use super::xadd::Wanted;
use super::{delay, idempotence, retention, trim};
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::limits::ENTRY_MAX_BYTES;
use crate::record::{Fields, Record};
use crate::resp::encode::Reply;

/// The entries of the command: each with its ID and where its fields begin and end.
type Parsed = SmallVec<[(Wanted, usize, usize); 16]>;

/// What stands behind COUNT: a number of entries, each `id nfields field value …`.
fn entries(args: Args<'_>, mut at: usize) -> Result<Parsed, Fault> {
    let number = |at: usize, no: Fault| {
        let text = args.try_get(at).ok_or_else(|| Fault::arity("xaddm"))?;
        usize::try_from(parse::int(text)?).ok().filter(|&n| n > 0).ok_or(no)
    };
    let count = number(at, Fault::XADDM_COUNT)?;
    at += 1;
    let mut parsed = Parsed::new();
    // No room is taken for what was only announced.
    for _ in 0..count {
        let wanted = Wanted::parse(args.try_get(at).ok_or_else(|| Fault::arity("xaddm"))?)?;
        let (start, fields) = (at + 2, number(at + 1, Fault::XADDM_FIELDS)?);
        let end = fields.checked_mul(2).and_then(|words| words.checked_add(start));
        let end = end.filter(|&end| end <= args.len()).ok_or_else(|| Fault::arity("xaddm"))?;
        if wanted == Wanted::Exact(StreamId::MIN) {
            return Err(Fault::XADD_ZERO);
        }
        parsed.push((wanted, start, end));
        at = end;
    }
    if at < args.len() { Err(Fault::arity("xaddm")) } else { Ok(parsed) }
}

/// XADDM key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [DELAY ms|NOTBEFORE unix-ms] [MAXLEN|MINID [=|~] t [LIMIT n]] COUNT n
/// id nfields field value … …
pub fn xaddm(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let now_ms = cx.now_ms();
    let (mut at, mut no_make, mut trim, mut due_ms) = (2, false, TrimParser::default(), None);
    loop {
        let Some(word) = args.try_get(at) else { return Err(Fault::arity("xaddm")) };
        if is(word, "COUNT") {
            break;
        } else if is(word, "NOMKSTREAM") {
            no_make = true;
            at += 1;
        } else if trim.references.is_none()
            && let Some(references) = References::parse(word)
        {
            trim.references = Some(references);
            at += 1;
        } else {
            at += match trim.take(args, at)? {
                0 => match delay::take(&mut due_ms, args, at, now_ms)? {
                    0 => return Err(Fault::SYNTAX),
                    words => words,
                },
                words => words,
            };
        }
    }
    let trimming = trim.finish(cx.settings().stream_node_max_entries)?;
    let parsed = entries(args, at + 1)?;
    let key = args.get(1);
    let stream = cx.stream(key)?;
    if stream.is_none() && no_make {
        reply.null();
        return Ok(());
    }
    let mut last = stream.map_or(StreamId::MIN, |stream| stream.last_id);
    let (mut ids, mut bytes) = (SmallVec::<[StreamId; 16]>::new(), 0u64);
    for &(wanted, start, end) in &parsed {
        last = wanted.after(last, now_ms)?;
        ids.push(last);
        let entry_bytes = args.slice(start, end).total_bytes();
        if entry_bytes > ENTRY_MAX_BYTES {
            return Err(Fault::XADD_TOO_LARGE);
        }
        bytes = bytes.saturating_add(entry_bytes as u64);
    }
    let is_new = stream.is_none();
    let limited = match stream {
        Some(stream) => {
            retention::admit(stream, parsed.len() as u64, bytes)?;
            stream.retention.trims()
        }
        None => false,
    };
    if !trim::make_room(cx, args, key, trimming.as_ref(), parsed.len() as u64) {
        return Ok(());
    }
    for (&(_, start, end), &id) in parsed.iter().zip(&ids) {
        let record = Record::Add { at: cx.at(key), id, fields: Fields::Args(args.slice(start, end)) };
        cx.emit(&record);
        delay::settle(cx, key, id, due_ms);
    }
    cx.notify_new(is_new, key);
    cx.notify(EventClass::Stream, "xadd", key);
    if is_new {
        idempotence::settle_new_stream(cx, key);
    }
    if let Some(trimming) = trimming {
        trim::trim(cx, key, &trimming);
    }
    if limited {
        retention::enforce(cx, key);
    }
    reply.array(ids.len());
    ids.iter().for_each(|&id| reply.id(id));
    Ok(())
}
