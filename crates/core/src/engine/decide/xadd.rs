//! XADD and XSETID.

use super::idempotence::{self, Identity};
use super::options::{References, TrimParser};
use super::{delay, retention, trim};
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::id::{StreamId, parse_u64};
use crate::limits::ENTRY_MAX_BYTES;
use crate::record::{Fields, Record};
use crate::resp::encode::Reply;

/// The ID as the producer wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// `*`
    Auto,
    /// `ms-*`
    AutoSequence(u64),
    /// `ms-seq`
    Exact(StreamId),
}

impl Wanted {
    /// Reads the ID of an entry to be added.
    #[inline]
    pub fn parse(text: &[u8]) -> Result<Wanted, Fault> {
        match text {
            b"*" => Ok(Wanted::Auto),
            text => match text.strip_suffix(b"-*") {
                Some(ms) => Ok(Wanted::AutoSequence(parse_u64(ms).map_err(|_| Fault::INVALID_ID)?)),
                None => Ok(Wanted::Exact(parse::id(text)?)),
            },
        }
    }

    /// The ID that this becomes behind `last`.
    #[inline]
    pub fn after(self, last: StreamId, now_ms: u64) -> Result<StreamId, Fault> {
        if last == StreamId::MAX {
            return Err(Fault::XADD_EXHAUSTED);
        }
        let id = match self {
            Wanted::Exact(id) => Some(id).filter(|&id| id > last),
            Wanted::Auto if now_ms > last.ms => Some(StreamId::new(now_ms, 0)),
            Wanted::Auto => last.next(),
            Wanted::AutoSequence(ms) => match ms.cmp(&last.ms) {
                std::cmp::Ordering::Greater => Some(StreamId::new(ms, 0)),
                std::cmp::Ordering::Equal => last.seq.checked_add(1).map(|seq| StreamId::new(ms, seq)),
                std::cmp::Ordering::Less => None,
            },
        };
        id.ok_or(Fault::XADD_NOT_GREATER)
    }
}

/// What stands before the ID.
#[derive(Default)]
struct Options<'a> {
    no_make: bool,
    trim: TrimParser,
    identity: Option<Identity<'a>>,
    /// Groups do not get the entry before (Unix ms).
    due_ms: Option<u64>,
}

/// Reads the options; answers also where the ID stands.
fn options(args: Args<'_>, now_ms: u64) -> Result<(Options<'_>, usize), Fault> {
    let (mut at, mut options) = (2, Options::default());
    loop {
        let Some(word) = args.try_get(at) else { return Ok((options, at)) };
        // Most commands have no options: an ID begins with a digit or is `*`.
        if !word.first().is_some_and(u8::is_ascii_alphabetic) {
            return Ok((options, at));
        }
        if is(word, "NOMKSTREAM") {
            options.no_make = true;
            at += 1;
        } else if options.trim.references.is_none()
            && let Some(references) = References::parse(word)
        {
            options.trim.references = Some(references);
            at += 1;
        } else {
            at += match options.trim.take(args, at)? {
                0 => match Identity::take(&mut options.identity, args, at)? {
                    0 => match delay::take(&mut options.due_ms, args, at, now_ms)? {
                        0 => return Ok((options, at)),
                        words => words,
                    },
                    words => words,
                },
                words => words,
            };
        }
    }
}

/// XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [IDMP pid iid|IDMPAUTO pid] [DELAY ms|NOTBEFORE unix-ms]
/// [MAXLEN|MINID [=|~] t [LIMIT n]] <*|id> field value …
pub fn xadd(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let now_ms = cx.now_ms();
    let (options, at) = options(args, now_ms)?;
    // An ID that is none is told before trimming options that do not fit together, and those before what is missing.
    let wanted = args.try_get(at).map(Wanted::parse).transpose()?;
    let trimming = options.trim.finish(cx.settings().stream_node_max_entries)?;
    let wanted = wanted.ok_or_else(|| Fault::arity("xadd"))?;
    if options.identity.is_some() && wanted != Wanted::Auto {
        return Err(Fault::IDMP_NOT_AUTO);
    }
    let fields = args.from(at + 1);
    if fields.is_empty() || !fields.len().is_multiple_of(2) {
        return Err(Fault::arity("xadd"));
    }
    if matches!(wanted, Wanted::Exact(StreamId::MIN)) {
        return Err(Fault::XADD_ZERO);
    }
    let key = args.get(1);
    let stream = cx.stream(key)?;
    if stream.is_none() && options.no_make {
        reply.null();
        return Ok(());
    }
    let message = options.identity.map(|identity| identity.message(fields));
    if let (Some(message), Some(stream)) = (&message, stream)
        && let Some(id) = message.known(stream, now_ms)
    {
        idempotence::note_duplicate(cx, key);
        reply.id(id);
        return Ok(());
    }
    let (is_new, last) = (stream.is_none(), stream.map_or(StreamId::MIN, |stream| stream.last_id));
    let id = wanted.after(last, now_ms)?;
    if fields.total_bytes() > ENTRY_MAX_BYTES {
        return Err(Fault::XADD_TOO_LARGE);
    }
    let limited = match stream {
        Some(stream) => {
            retention::admit(stream, 1, fields.total_bytes() as u64)?;
            stream.retention.trims()
        }
        None => false,
    };
    if !trim::make_room(cx, args, key, trimming.as_ref(), 1) {
        return Ok(());
    }
    let record = Record::Add { at: cx.at(key), id, fields: Fields::Args(fields) };
    cx.emit(&record);
    delay::settle(cx, key, id, options.due_ms);
    cx.notify_new(is_new, key);
    cx.notify(EventClass::Stream, "xadd", key);
    if is_new {
        idempotence::settle_new_stream(cx, key);
    }
    if let Some(message) = message {
        message.remember(cx, key, id, true);
    }
    if let Some(trimming) = trimming {
        trim::trim(cx, key, &trimming);
    }
    if limited {
        retention::enforce(cx, key);
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
    cx.notify(EventClass::Stream, "xsetid", key);
    reply.ok();
    Ok(())
}
