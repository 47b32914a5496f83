//! XTRIM, and the trimming of XADD.
//!
//! What goes is decided here and recorded as what it is: everything below an ID, or a list of IDs. Exact trimming finds
//! its bound by rank; `~` removes whole blocks from the front. ACKED does not look twice at entries that it found pending
//! (`state::settled`), and what it looks at or removes may be more than one turn has time for: then the command goes on in
//! the next (`engine::postpone`), with XADD before anything is added.

use super::options::{References, Threshold, TrimParser, Trimming};
use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::{Ids, Record};
use crate::resp::encode::Reply;
use crate::state::group::Group;
use crate::state::stream::{LET_GO_MAX, Stream};

/// Entries that ACKED looks at in one turn. With `~` the next call goes on behind them, else the next turn.
const LOOKS_MAX: usize = 10_000;

/// With more groups than this fewer entries are looked at: each is asked for in every one of them.
const GROUPS_FOR_LOOKS: usize = 4;

/// Entries that exact trimming with ACKED removes in one turn.
const REMOVED_MAX: u64 = 1000;

/// How trimming goes about its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All of it now.
    Whole,
    /// As much as one turn has time for.
    Divided,
    /// The same, before so many entries are added; what one turn has time for is left until they are there.
    Before(u64),
}

impl Way {
    fn added(self) -> u64 {
        match self {
            Way::Before(added) => added,
            Way::Whole | Way::Divided => 0,
        }
    }
}

/// What trimming came to in this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Entries that went.
    removed: u64,
    /// Was that all?
    done: bool,
}

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
    let carried = cx.carried;
    let divided = cx.may_postpone();
    let part = if cx.stream(key)?.is_some() {
        remove(cx, key, &trimming, if divided { Way::Divided } else { Way::Whole })
    } else {
        Part::done(0)
    };
    let removed = carried + part.removed;
    // Told part by part: the command may end before it is done, with its client or with an error.
    if part.removed > 0 {
        cx.note_trim(key);
    }
    if !part.done {
        cx.postpone(args, removed);
        return Ok(());
    }
    reply.count(removed);
    Ok(())
}

impl Part {
    /// All of it.
    fn done(removed: u64) -> Part {
        Part { removed, done: true }
    }
}

/// Makes room for so many entries that are about to be added, as far as that takes more than one turn. `false`: the command
/// was postponed and is to return. Call before anything is emitted.
pub fn make_room(cx: &mut Cx<'_>, args: Args<'_>, key: &[u8], trimming: Option<&Trimming>, added: u64) -> bool {
    let Some(trimming) = trimming.filter(|trimming| !trimming.approximate) else { return true };
    let Ok(Some(stream)) = cx.stream(key) else { return true };
    let is_long = trimming.references == References::Acked
        || last_exactly(stream, trimming).is_some_and(|last| part_up_to(stream, trimming, last).is_some());
    if !is_long || !cx.may_postpone() {
        return true;
    }
    let part = remove(cx, key, trimming, Way::Before(added));
    if part.removed > 0 {
        cx.note_trim(key);
    }
    if !part.done {
        cx.postpone(args, 0);
    }
    part.done
}

/// Trims the stream under `key`, which is there, in one turn.
pub fn trim(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming) {
    if remove(cx, key, trimming, Way::Whole).removed > 0 {
        cx.note_trim(key);
    }
}

/// Removes what is to go, as far as the way allows.
fn remove(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming, way: Way) -> Part {
    let Ok(Some(stream)) = cx.stream(key) else { return Part::done(0) };
    // Without groups every entry is free, so ACKED is trimming like any other, its LIMIT included.
    let references = match trimming.references {
        References::Acked if stream.groups.is_empty() => References::Keep,
        references => references,
    };
    let trimming = &Trimming { references, ..*trimming };
    let last = if trimming.approximate { last_of_blocks(stream, trimming) } else { last_exactly(stream, trimming) };
    if trimming.references == References::Acked {
        return trim_free(cx, key, trimming, last, way);
    }
    let Some(last) = last else { return Part::done(0) };
    let (last, done) = match part_up_to(stream, trimming, last) {
        Some(part) if way != Way::Whole => (part, false),
        _ => (last, true),
    };
    if done && matches!(way, Way::Before(_)) {
        return Part::done(0);
    }
    let removed = stream.entries.count_in(StreamId::MIN, last);
    if trimming.references == References::Delete {
        // References up to there go, also those of entries that were deleted before.
        release_up_to(cx, key, last);
    }
    if removed > 0 {
        remove_front(cx, key, last);
    }
    Part { removed, done }
}

/// Up to which ID one turn trims, if it has no time for everything: entries that are delayed, or held by groups, take time
/// each.
fn part_up_to(stream: &Stream, trimming: &Trimming, last: StreamId) -> Option<StreamId> {
    let many = || stream.entries.count_in(StreamId::MIN, last) > LET_GO_MAX as u64;
    if trimming.approximate || !many() {
        return None;
    }
    Some(stream.let_go_up_to(last)).filter(|&part| part < last)
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
fn trim_free(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming, last: Option<StreamId>, way: Way) -> Part {
    let Ok(Some(stream)) = cx.stream(key) else { return Part::done(0) };
    let entries = &stream.entries;
    let (most, end) = match (trimming.threshold, last) {
        // Exactly so many go, wherever they stand.
        (Threshold::MaxLen(n), _) if !trimming.approximate => {
            ((entries.len() + way.added()).saturating_sub(n), StreamId::MAX)
        }
        (_, None) => return Part::done(0),
        (Threshold::MaxLen(n), Some(last)) => (entries.len().saturating_sub(n), last),
        (Threshold::MinId(_), Some(last)) => (u64::MAX, last),
    };
    let most = most.min(trimming.limit);
    if most == 0 {
        return Part::done(0);
    }
    let groups = stream.groups.len();
    let (looks, part) = match (trimming.approximate, way != Way::Whole) {
        (true, _) => (LOOKS_MAX, most),
        // However many groups there are, every turn gets on.
        (false, true) => ((LOOKS_MAX * GROUPS_FOR_LOOKS / groups.max(GROUPS_FOR_LOOKS)).max(1), most.min(REMOVED_MAX)),
        (false, false) => (usize::MAX, most),
    };
    let (free, all) = cx.find_free(key, end, part, looks);
    let removed = free.len() as u64;
    let done = trimming.approximate || removed == most || (all && removed < part);
    if done && matches!(way, Way::Before(_)) {
        // It goes when the new entries are there: how they lie in blocks must not depend on this.
        cx.put_back_free(key, &free);
        return Part::done(0);
    }
    let Ok(Some(stream)) = cx.stream(key) else { return Part::done(0) };
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
    Part { removed, done }
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
