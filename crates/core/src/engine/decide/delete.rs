//! XACK, XDEL, XDELEX, XACKDEL.

use super::options::{self, IdList, References};
use super::work::evidence::{self, Lacking};
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::{Ids, Record};
use crate::resp::encode::Reply;

/// XACK key group id … · XACK key group RANGE from to
pub fn xack(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(1), args.get(2));
    let stream = cx.stream(key)?;
    let Some((stream, group)) = stream.and_then(|stream| Some((stream, stream.group(name)?))) else {
        reply.int(0);
        return Ok(());
    };
    let mut lacking = Lacking::new();
    if is(args.get(3), "RANGE") {
        let (Some(from), Some(to), 6) = (args.try_get(4), args.try_get(5), args.len()) else {
            return Err(Fault::XACK_RANGE);
        };
        let (from, to) = (parse::range_start(from)?, parse::range_end(to)?);
        let count = group.pel().count_in(from, to);
        if evidence::is_asked(group) {
            let ids = group.pel().range(from).take_while(|pending| pending.id <= to).map(|pending| pending.id);
            lacking = evidence::find_lacking((stream, group), ids, cx.now_ms())?;
        }
        reply.count(count);
        if count > 0 {
            evidence::note_lacking(cx, key, name, &lacking);
            let at = cx.at(key);
            cx.emit(&Record::AcknowledgeRange { at, group: name, from, to });
        }
        return Ok(());
    }
    let mut ids = options::ids(args.from(3))?;
    ids.retain(|id| group.pel().contains(*id));
    remove_repeats(&mut ids);
    if evidence::is_asked(group) {
        lacking = evidence::find_lacking((stream, group), ids.iter().copied(), cx.now_ms())?;
    }
    if !ids.is_empty() {
        if !lacking.is_empty() {
            evidence::note_lacking(cx, key, name, &lacking);
        }
        let at = cx.at(key);
        cx.emit(&Record::Acknowledge { at, group: name, ids: Ids::Slice(&ids) });
    }
    reply.count(ids.len() as u64);
    Ok(())
}

/// A repeated ID counts once. Lists come in order as a rule, which a look at the neighbours tells.
fn remove_repeats(ids: &mut IdList) {
    if ids.windows(2).all(|pair| pair[0] < pair[1]) {
        return;
    }
    let mut seen = std::collections::BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
}

/// XDEL key id …
pub fn xdel(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let Some(stream) = cx.stream(key)? else {
        reply.int(0);
        return Ok(());
    };
    let mut ids = options::ids(args.from(2))?;
    ids.retain(|id| stream.entries.contains(*id));
    remove_repeats(&mut ids);
    if !ids.is_empty() {
        let at = cx.at(key);
        cx.emit(&Record::DeleteEntries { at, ids: Ids::Slice(&ids) });
        cx.notify(EventClass::Stream, "xdel", key);
    }
    reply.count(ids.len() as u64);
    Ok(())
}

const NOT_FOUND: i64 = -1;
const DELETED: i64 = 1;
const REFERENCED: i64 = 2;

/// XDELEX key [KEEPREF|DELREF|ACKED] IDS n id …
pub fn xdelex(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    cx.stream(key)?;
    let (references, block) = options::ids_block(args, 2)?;
    let words = args.slice(block.start, block.end);
    if cx.stream(key)?.is_none() {
        all_missing(words, reply);
        return Ok(());
    }
    let ids = options::ids(words)?;
    reply.array(ids.len());
    let mut deleted = false;
    for &id in &ids {
        let Some(stream) = cx.stream(key)? else { unreachable!("nothing here removes the stream") };
        if references == References::Acked && !stream.is_free(id) {
            reply.int(REFERENCED);
            continue;
        }
        // Deleted first: RETAIN acked would trim what is released.
        let exists = delete(cx, key, id);
        deleted |= exists;
        if references == References::Delete {
            release(cx, key, id);
        }
        reply.int(if exists { DELETED } else { NOT_FOUND });
    }
    if deleted {
        cx.notify(EventClass::Stream, "xdel", key);
    }
    Ok(())
}

/// XACKDEL key group [KEEPREF|DELREF|ACKED] IDS n id …
pub fn xackdel(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(1), args.get(2));
    cx.stream(key)?;
    let (references, block) = options::ids_block(args, 3)?;
    let words = args.slice(block.start, block.end);
    if cx.stream(key)?.and_then(|stream| stream.group(name)).is_none() {
        all_missing(words, reply);
        return Ok(());
    }
    let ids = options::ids(words)?;
    let mut lacking = Lacking::new();
    if let Some((stream, group)) = cx.stream(key)?.and_then(|stream| Some((stream, stream.group(name)?)))
        && evidence::is_asked(group)
    {
        let mut pending = ids.clone();
        pending.retain(|id| group.pel().contains(*id));
        remove_repeats(&mut pending);
        lacking = evidence::find_lacking((stream, group), pending.into_iter(), cx.now_ms())?;
    }
    evidence::note_lacking(cx, key, name, &lacking);
    reply.array(ids.len());
    let mut deleted = false;
    for &id in &ids {
        let Some(stream) = cx.stream(key)? else { unreachable!("nothing here removes the stream") };
        if !stream.group(name).is_some_and(|group| group.pel().contains(id)) {
            reply.int(NOT_FOUND);
            continue;
        }
        let kept = references == References::Acked && !stream.is_free_without(name, id);
        if !kept {
            // What dangled counts as deleted, but nothing was. Deleted first: RETAIN acked would trim what is acknowledged.
            deleted |= delete(cx, key, id);
        }
        let at = cx.at(key);
        cx.emit(&Record::Acknowledge { at, group: name, ids: Ids::Slice(&[id]) });
        if references == References::Delete {
            release(cx, key, id);
        }
        reply.int(if kept { REFERENCED } else { DELETED });
    }
    if deleted {
        cx.notify(EventClass::Stream, "xdel", key);
    }
    Ok(())
}

fn all_missing(words: Args<'_>, reply: &mut Reply<'_>) {
    reply.array(words.len());
    for _ in words.iter() {
        reply.int(NOT_FOUND);
    }
}

/// Deletes an entry; answers whether it was there.
fn delete(cx: &mut Cx<'_>, key: &[u8], id: StreamId) -> bool {
    let exists = matches!(cx.stream(key), Ok(Some(stream)) if stream.entries.contains(id));
    if exists {
        let at = cx.at(key);
        cx.emit(&Record::DeleteEntries { at, ids: Ids::Slice(&[id]) });
    }
    exists
}

/// Takes an entry off every group's pending list.
fn release(cx: &mut Cx<'_>, key: &[u8], id: StreamId) {
    let Ok(Some(stream)) = cx.stream(key) else { return };
    let holders: Vec<Box<[u8]>> =
        stream.groups.iter().filter(|(_, group)| group.pel().contains(id)).map(|(name, _)| name.clone()).collect();
    for group in holders {
        let at = cx.at(key);
        cx.emit(&Record::Drop { at, group: &group, ids: Ids::Slice(&[id]) });
    }
}
