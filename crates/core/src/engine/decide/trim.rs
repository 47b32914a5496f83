//! XTRIM, and the trimming of XADD.
//!
//! What goes is decided here and recorded as what it is: everything below an ID, or a list of IDs. Exact trimming finds
//! its bound by rank; `~` removes whole blocks from the front. ACKED does not look twice at entries that it found pending
//! (`state::settled`).

use super::options::{References, Threshold, TrimParser, Trimming};
use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::{Ids, Record};
use crate::resp::encode::Reply;
use crate::state::group::Group;
use crate::state::stream::Stream;

/// Entries that `~` with ACKED looks at in one call; the next call goes on behind them.
const LOOKS_MAX: usize = 10_000;

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
    if trim.lacks_strategy() {
        return Err(Fault::XTRIM_WITHOUT_STRATEGY);
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
        cx.note_trim(key);
    }
    removed
}

fn remove(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming) -> u64 {
    let Ok(Some(stream)) = cx.stream(key) else { return 0 };
    // Without groups every entry is free, so ACKED is trimming like any other, its LIMIT included.
    let references = match trimming.references {
        References::Acked if stream.groups.is_empty() => References::Keep,
        references => references,
    };
    let trimming = &Trimming { references, ..*trimming };
    let last = if trimming.approximate { last_of_blocks(stream, trimming) } else { last_exactly(stream, trimming) };
    if trimming.references == References::Acked {
        return trim_free(cx, key, trimming, last);
    }
    let Some(last) = last else { return 0 };
    let removed = stream.entries.count_in(StreamId::MIN, last);
    if trimming.references == References::Delete {
        // References up to there go, also those of entries that were deleted before.
        release_up_to(cx, key, last);
    }
    if removed > 0 {
        remove_front(cx, key, last);
    }
    removed
}

/// Removes everything up to an ID, it included.
pub(super) fn remove_front(cx: &mut Cx<'_>, key: &[u8], last: StreamId) {
    let at = cx.at(key);
    cx.emit(&Record::Trim { at, before: last.next().unwrap_or(StreamId::MAX) });
    // Nothing stands behind the greatest ID, so its entry is removed by name.
    if last == StreamId::MAX && matches!(cx.stream(key), Ok(Some(stream)) if stream.entries.contains(last)) {
        cx.emit(&Record::TrimEntries { at, ids: Ids::Slice(&[last]) });
    }
}

/// Up to which ID exact trimming removes.
fn last_exactly(stream: &Stream, trimming: &Trimming) -> Option<StreamId> {
    match trimming.threshold {
        Threshold::MinId(id) => id.prev(),
        Threshold::MaxLen(n) => {
            let surplus = stream.entries.len().checked_sub(n).filter(|&surplus| surplus > 0)?;
            match stream.entries.nth(surplus) {
                Some(first_kept) => first_kept.prev(),
                None => stream.entries.last_id(),
            }
        }
    }
}

/// Up to which ID `~` removes: the end of the last whole block that may go. Found by rank: the blocks in front of the
/// first entry that stays.
fn last_of_blocks(stream: &Stream, trimming: &Trimming) -> Option<StreamId> {
    let entries = &stream.entries;
    // ACKED walks past what it must keep; its limit counts what it removes.
    let limit = if trimming.references == References::Acked { u64::MAX } else { trimming.limit };
    let before = |id: StreamId| Some(entries.range_rev(StreamId::MIN, id.prev()?).next()?.id);
    let whole = |most: u64| match entries.nth(most) {
        Some(kept) => before(entries.node_at(kept)?.first_live),
        None => entries.last_id(),
    };
    match trimming.threshold {
        Threshold::MaxLen(n) => whole(entries.len().saturating_sub(n).min(limit)),
        Threshold::MinId(id) => {
            let last = match entries.node_at(id) {
                Some(node) if node.last_live >= id => before(node.first_live),
                node => node.map(|node| node.last_live),
            }?;
            Some(last.min(whole(limit)?))
        }
    }
}

/// ACKED: removes the free entries, oldest first, until the threshold holds.
fn trim_free(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming, last: Option<StreamId>) -> u64 {
    let (Ok(Some(stream)), Some(last)) = (cx.stream(key), last) else { return 0 };
    let entries = &stream.entries;
    let (most, end) = match trimming.threshold {
        // Exactly so many go, wherever they stand.
        Threshold::MaxLen(n) if !trimming.approximate => (entries.len().saturating_sub(n), StreamId::MAX),
        Threshold::MaxLen(n) => (entries.len().saturating_sub(n), last),
        Threshold::MinId(_) => (u64::MAX, last),
    };
    let most = most.min(trimming.limit);
    if most == 0 {
        return 0;
    }
    let looks = if trimming.approximate { LOOKS_MAX } else { usize::MAX };
    let free = cx.find_free(key, end, most, looks);
    let Ok(Some(stream)) = cx.stream(key) else { return 0 };
    // What stands at the very front is a stretch: one ID says it.
    let front = stream.entries.range(StreamId::MIN, StreamId::MAX).zip(&free);
    let in_front = front.take_while(|(entry, id)| entry.id == **id).count();
    let at = cx.at(key);
    if in_front > 0 {
        remove_front(cx, key, free[in_front - 1]);
    }
    if in_front < free.len() {
        cx.emit(&Record::TrimEntries { at, ids: Ids::Slice(&free[in_front..]) });
    }
    free.len() as u64
}

/// DELREF: takes everything up to an ID off every group's pending list.
fn release_up_to(cx: &mut Cx<'_>, key: &[u8], last: StreamId) {
    let Ok(Some(stream)) = cx.stream(key) else { return };
    let begins = |group: &Group| group.pel().first().is_some_and(|first| first <= last);
    let holders: Vec<Box<[u8]>> =
        stream.groups.iter().filter(|(_, group)| begins(group)).map(|(name, _)| name.clone()).collect();
    for group in holders {
        let at = cx.at(key);
        cx.emit(&Record::DropRange { at, group: &group, from: StreamId::MIN, to: last });
    }
}
