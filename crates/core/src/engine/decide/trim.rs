//! XTRIM, and the trimming of XADD.
//!
//! What goes is decided here and recorded as what it is: everything below an ID, or a list of IDs. Exact trimming finds
//! its bound by rank; `~` removes whole blocks from the front.

use super::options::{References, Threshold, TrimParser, Trimming};
use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::{Ids, Record};
use crate::resp::encode::Reply;
use crate::state::stream::Stream;

/// XTRIM key MAXLEN|MINID [=|~] t [LIMIT n] [KEEPREF|DELREF|ACKED]
pub fn xtrim(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (mut at, mut trim) = (2, TrimParser::default());
    while at < args.len() {
        if let Some(references) = References::parse(args.get(at)) {
            if trim.references.is_some() {
                return Err(Fault::SYNTAX);
            }
            trim.references = Some(references);
            at += 1;
            continue;
        }
        match trim.take(args, at)? {
            0 => return Err(Fault::SYNTAX),
            words => at += words,
        }
    }
    let trimming = trim.finish(cx.settings().stream_node_max_entries)?.ok_or(Fault::SYNTAX)?;
    let key = args.get(1);
    let removed = if cx.stream(key)?.is_some() { self::trim(cx, key, &trimming) } else { 0 };
    reply.count(removed);
    Ok(())
}

/// Trims the stream under `key`, which is there; answers how many entries went.
pub fn trim(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming) -> u64 {
    let removed = remove(cx, key, trimming);
    if removed > 0 {
        cx.notify(EventClass::Stream, "xtrim", key);
    }
    removed
}

fn remove(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming) -> u64 {
    let Ok(Some(stream)) = cx.stream(key) else { return 0 };
    let bound = if trimming.approximate { block_bound(stream, trimming) } else { exact_bound(stream, trimming) };
    if trimming.references == References::Acked && !stream.groups.is_empty() {
        return trim_free(cx, key, trimming, bound);
    }
    let removed = bound.map_or(0, |bound| below(stream, bound));
    let at = cx.at(key);
    if trimming.references == References::Delete {
        // References below the bound go, also those of entries that were deleted before.
        release_below(cx, key, bound.unwrap_or(StreamId::MIN));
    }
    if let Some(before) = bound.filter(|_| removed > 0) {
        cx.emit(&Record::Trim { at, before });
    }
    removed
}

/// Entries below an ID.
fn below(stream: &Stream, bound: StreamId) -> u64 {
    bound.prev().map_or(0, |last| stream.entries.count_in(StreamId::MIN, last))
}

/// What exact trimming removes ends before this ID.
fn exact_bound(stream: &Stream, trimming: &Trimming) -> Option<StreamId> {
    match trimming.threshold {
        Threshold::MinId(id) => Some(id),
        Threshold::MaxLen(n) => {
            let surplus = stream.entries.len().checked_sub(n).filter(|&surplus| surplus > 0)?;
            Some(match stream.entries.nth(surplus) {
                Some(first_kept) => first_kept,
                None => after(stream.entries.last_id()?),
            })
        }
    }
}

/// What `~` removes ends before this ID: after the last whole block that may go.
fn block_bound(stream: &Stream, trimming: &Trimming) -> Option<StreamId> {
    let (mut left, mut budget, mut bound) = (stream.entries.len(), trimming.limit, None);
    for node in stream.entries.nodes() {
        let live = node.live as u64;
        let may_go = match trimming.threshold {
            Threshold::MaxLen(n) => left - live >= n,
            Threshold::MinId(id) => node.last_live < id,
        };
        // ACKED walks past what it must keep; its limit counts what it removes.
        if !may_go || (live > budget && trimming.references != References::Acked) {
            break;
        }
        left -= live;
        if trimming.references != References::Acked {
            budget -= live;
        }
        bound = Some(after(node.last_live));
    }
    bound
}

fn after(id: StreamId) -> StreamId {
    id.next().unwrap_or(StreamId::MAX)
}

/// ACKED: removes the free entries, oldest first, until the threshold holds.
fn trim_free(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming, block_bound: Option<StreamId>) -> u64 {
    let Ok(Some(stream)) = cx.stream(key) else { return 0 };
    let entries = &stream.entries;
    let (most, end) = match trimming.threshold {
        Threshold::MaxLen(n) => (entries.len().saturating_sub(n), StreamId::MAX),
        Threshold::MinId(id) => match id.prev() {
            Some(last) => (u64::MAX, last),
            None => return 0,
        },
    };
    let end = match (trimming.approximate, block_bound) {
        (false, _) => end,
        (true, Some(bound)) => bound.prev().unwrap_or(StreamId::MIN),
        (true, None) => return 0,
    };
    // Nothing beyond the position of the slowest group is free.
    let slowest = stream.groups.values().map(|group| group.last_delivered).min().unwrap_or(StreamId::MAX);
    let end = end.min(slowest);
    if end == StreamId::MIN {
        return 0;
    }
    let mut free = Vec::new();
    let mut kept = false;
    for entry in entries.range(StreamId::MIN, end) {
        if free.len() as u64 == most.min(trimming.limit) {
            break;
        }
        if stream.groups.values().any(|group| group.pel().contains(entry.id)) {
            kept = true;
        } else {
            free.push((entry.id, kept));
        }
    }
    let at = cx.at(key);
    // Without a hole among them the entries are a stretch from the front: one ID says it.
    let in_front = free.iter().take_while(|(_, kept)| !kept).count();
    if in_front > 0 {
        cx.emit(&Record::Trim { at, before: after(free[in_front - 1].0) });
    }
    let holes: Vec<StreamId> = free[in_front..].iter().map(|&(id, _)| id).collect();
    if !holes.is_empty() {
        cx.emit(&Record::TrimEntries { at, ids: Ids::Slice(&holes) });
    }
    free.len() as u64
}

/// DELREF: takes everything below the bound off every group's pending list.
fn release_below(cx: &mut Cx<'_>, key: &[u8], bound: StreamId) {
    let Ok(Some(stream)) = cx.stream(key) else { return };
    let pending: Vec<(Box<[u8]>, Vec<StreamId>)> = stream
        .groups
        .iter()
        .filter_map(|(name, group)| {
            let ids: Vec<_> = group.pel().range(StreamId::MIN).map(|p| p.id).take_while(|&id| id < bound).collect();
            (!ids.is_empty()).then(|| (name.clone(), ids))
        })
        .collect();
    for (group, ids) in pending {
        let at = cx.at(key);
        cx.emit(&Record::Acknowledge { at, group: &group, ids: Ids::Slice(&ids) });
    }
}
