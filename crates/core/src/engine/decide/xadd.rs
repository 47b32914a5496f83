//! XADD and XSETID.

use super::options::{References, TrimParser};
use super::trim;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::id::{StreamId, parse_u64};
use crate::limits::ENTRY_MAX_BYTES;
use crate::record::{Fields, Record};
use crate::resp::encode::Reply;

/// The ID as the producer wrote it.
enum Wanted {
    /// `*`
    Auto,
    /// `ms-*`
    AutoSequence(u64),
    /// `ms-seq`
    Exact(StreamId),
}

fn wanted(text: &[u8]) -> Result<Wanted, Fault> {
    if text == b"*" {
        return Ok(Wanted::Auto);
    }
    Ok(match text.strip_suffix(b"-*") {
        Some(ms) => Wanted::AutoSequence(parse_u64(ms).map_err(|_| Fault::INVALID_ID)?),
        None => Wanted::Exact(parse::id(text)?),
    })
}

/// XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [MAXLEN|MINID [=|~] t [LIMIT n]] <*|id> field value …
pub fn xadd(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (mut at, mut no_make, mut trim) = (2, false, TrimParser::default());
    loop {
        let Some(word) = args.try_get(at) else { break };
        // Most commands have no options: an ID begins with a digit or is `*`.
        if !word.first().is_some_and(u8::is_ascii_alphabetic) {
            break;
        }
        if is(word, "NOMKSTREAM") {
            no_make = true;
            at += 1;
        } else if trim.references.is_none()
            && let Some(references) = References::parse(word)
        {
            trim.references = Some(references);
            at += 1;
        } else {
            match trim.take(args, at)? {
                0 => break,
                words => at += words,
            }
        }
    }
    // An ID that is none is told before trimming options that do not fit together, and those before what is missing.
    let wanted = args.try_get(at).map(wanted).transpose()?;
    let trimming = trim.finish(cx.settings().stream_node_max_entries)?;
    let wanted = wanted.ok_or_else(|| Fault::arity("xadd"))?;
    let fields = args.from(at + 1);
    if fields.is_empty() || !fields.len().is_multiple_of(2) {
        return Err(Fault::arity("xadd"));
    }
    if matches!(wanted, Wanted::Exact(StreamId::MIN)) {
        return Err(Fault::XADD_ZERO);
    }
    let key = args.get(1);
    let last = match cx.stream(key)? {
        Some(stream) => stream.last_id,
        None if no_make => {
            reply.null();
            return Ok(());
        }
        None => StreamId::MIN,
    };
    if last == StreamId::MAX {
        return Err(Fault::XADD_EXHAUSTED);
    }
    let id = match wanted {
        Wanted::Exact(id) => Some(id).filter(|&id| id > last),
        Wanted::Auto => {
            if cx.now_ms() > last.ms {
                Some(StreamId::new(cx.now_ms(), 0))
            } else {
                last.next()
            }
        }
        Wanted::AutoSequence(ms) => match ms.cmp(&last.ms) {
            std::cmp::Ordering::Greater => Some(StreamId::new(ms, 0)),
            std::cmp::Ordering::Equal => last.seq.checked_add(1).map(|seq| StreamId::new(ms, seq)),
            std::cmp::Ordering::Less => None,
        },
    };
    let id = id.ok_or(Fault::XADD_NOT_GREATER)?;
    if fields.total_bytes() > ENTRY_MAX_BYTES {
        return Err(Fault::XADD_TOO_LARGE);
    }
    let record = Record::Add { at: cx.at(key), id, fields: Fields::Args(fields) };
    cx.emit(&record);
    if let Some(trimming) = trimming {
        trim::trim(cx, key, &trimming);
    }
    reply.id(id);
    Ok(())
}

/// XSETID key last-id [ENTRIESADDED n] [MAXDELETEDID id]
pub fn xsetid(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let last_id = parse::id(args.get(2))?;
    let (mut entries_added, mut max_deleted) = (None, None);
    let mut at = 3;
    while at < args.len() {
        let (word, more) = (args.get(at), at + 1 < args.len());
        if more && is(word, "ENTRIESADDED") {
            let n = parse::int(args.get(at + 1))?;
            entries_added = Some(u64::try_from(n).map_err(|_| Fault::XSETID_ADDED_NEGATIVE)?);
        } else if more && is(word, "MAXDELETEDID") {
            let id = parse::id(args.get(at + 1))?;
            if last_id < id {
                return Err(Fault::XSETID_BELOW_GIVEN_DELETED);
            }
            max_deleted = Some(id);
        } else {
            return Err(Fault::SYNTAX);
        }
        at += 2;
    }
    let key = args.get(1);
    let Some(stream) = cx.stream(key)? else { return Err(Fault::NO_SUCH_KEY) };
    if last_id < stream.max_deleted {
        return Err(Fault::XSETID_BELOW_DELETED);
    }
    if stream.entries.last_id().is_some_and(|top| last_id < top) {
        return Err(Fault::XSETID_BELOW_TOP);
    }
    if entries_added.is_some_and(|n| n < stream.entries.len()) {
        return Err(Fault::XSETID_ADDED_BELOW_LENGTH);
    }
    let record = Record::SetStream {
        at: cx.at(key),
        last_id,
        max_deleted: max_deleted.filter(|&id| id != StreamId::MIN).unwrap_or(stream.max_deleted),
        entries_added: entries_added.unwrap_or(stream.entries_added),
    };
    cx.emit(&record);
    reply.ok();
    Ok(())
}
