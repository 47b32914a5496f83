//! An entry that a command adds to another stream than its own: EMIT of XWORK DONE, and dead letters. Checked first, so
//! that what it goes with can be emitted when it is certain that it can be added.

use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::decide::xadd::Wanted;
use crate::engine::decide::{idempotence, retention};
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::limits::ENTRY_MAX_BYTES;
use crate::record::{Fields, Record};

/// An entry that can be added.
pub(super) struct Emission<'a> {
    key: &'a [u8],
    pub id: StreamId,
    is_new: bool,
    is_bounded: bool,
    fields: Args<'a>,
}

/// Key, ID and fields as they stand behind EMIT. What is wrong whatever the stream holds is told here.
pub(super) fn read<'a>(words: Args<'a>) -> Result<(&'a [u8], Wanted, Args<'a>), Fault> {
    if words.len() < 4 || !words.len().is_multiple_of(2) {
        return Err(Fault::owned("ERR EMIT takes a key, an ID, and fields each with a value"));
    }
    let wanted = Wanted::parse(words.get(1))?;
    if matches!(wanted, Wanted::Exact(StreamId::MIN)) {
        return Err(Fault::XADD_ZERO);
    }
    let fields = words.from(2);
    if fields.total_bytes() > ENTRY_MAX_BYTES {
        return Err(Fault::XADD_TOO_LARGE);
    }
    Ok((words.get(0), wanted, fields))
}

/// Checks that the entry can be added now.
pub(super) fn prepare<'a>(cx: &Cx<'_>, key: &'a [u8], wanted: Wanted, fields: Args<'a>) -> Result<Emission<'a>, Fault> {
    let stream = cx.stream(key)?;
    let id = wanted.after(stream.map_or(StreamId::MIN, |stream| stream.last_id), cx.now_ms())?;
    if fields.total_bytes() > ENTRY_MAX_BYTES {
        return Err(Fault::XADD_TOO_LARGE);
    }
    if let Some(stream) = stream {
        retention::admit(stream, 1, fields.total_bytes() as u64)?;
    }
    let is_bounded = stream.is_some_and(|stream| stream.retention.trims());
    Ok(Emission { key, id, is_new: stream.is_none(), is_bounded, fields })
}

/// Adds it.
pub(super) fn add(cx: &mut Cx<'_>, emission: &Emission<'_>) {
    let Emission { key, id, is_new, is_bounded, fields } = *emission;
    let at = cx.at(key);
    cx.emit(&Record::Add { at, id, fields: Fields::Args(fields) });
    cx.notify_new(is_new, key);
    cx.notify(EventClass::Stream, "xadd", key);
    if is_new {
        idempotence::settle_new_stream(cx, key);
    }
    if is_bounded {
        retention::enforce(cx, key);
    }
}
