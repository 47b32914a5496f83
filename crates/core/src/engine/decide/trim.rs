//! XTRIM, and the trimming of XADD.
//!
//! What goes is decided here and recorded as what it is: everything below an ID, or a list of IDs. Exact trimming finds
//! its bound by rank; `~` removes whole blocks from the front. ACKED does not look twice at entries that it found pending
//! (`state::settled`), and what it looks at or removes may be more than one turn has time for: then the command goes on in
//! the next (`engine::postpone`), with XADD before anything is added.

use super::options::{References, Threshold, TrimParser, Trimming};
use crate::command::args::Args;
use crate::engine::fault::Fault;
use crate::engine::{Carried, Cx};
use crate::id::StreamId;
use crate::record::{Ids, Record};
use crate::resp::encode::Reply;
use crate::state::group::Group;
use crate::state::settled::Found;
use crate::state::stream::{LET_GO_MAX, Stream};

/// Entries that ACKED looks at in one turn. With `~` the next call goes on behind them, else the next turn.
const LOOKS_MAX: usize = 10_000;

/// With more groups than this fewer entries are looked at: each is asked for in every one of them.
const GROUPS_FOR_LOOKS: usize = 4;

/// Entries that exact trimming with ACKED removes in one turn.
const REMOVED_MAX: usize = 1000;

/// Entries that ACKED looks at in the time of one step.
const LOOKS_PER_STEP: usize = 20;

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

/// What trimming is to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    /// Nothing behind this ID.
    end: StreamId,
    /// No more than so many entries; bounds ACKED alone.
    most: u64,
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
    let way = if cx.may_postpone() { Way::Divided } else { Way::Whole };
    let (carried, born) = (cx.carried, cx.born(key));
    let target = match (cx.stream(key)?, carried) {
        (None, _) => None,
        // Settled when it began: what is added meanwhile is not its business, nor what else may be under the key now.
        (Some(_), Some(Carried { end, most, .. })) => {
            carried.filter(|carried| carried.born == born).map(|_| Target { end, most })
        }
        (Some(stream), None) => target(stream, &trimming, way),
    };
    let part = target.map_or(Part::done(0), |target| remove(cx, key, &trimming, target, way));
    let removed = carried.map_or(0, |carried| carried.removed) + part.removed;
    // Told part by part: the command may end before it is done, with its client or with an error.
    if part.removed > 0 {
        cx.note_trim(key);
    }
    if let Some(Target { end, most }) = target.filter(|_| !part.done) {
        let most = most - part.removed.min(most);
        cx.postpone(args, Vec::new(), Some(Carried { removed, born, end, most }));
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
    if !cx.may_postpone() {
        return true;
    }
    let way = Way::Before(added);
    let Some(target) = target(stream, trimming, way) else { return true };
    let part = remove(cx, key, trimming, target, way);
    if part.removed > 0 {
        cx.note_trim(key);
    }
    if !part.done {
        cx.postpone(args, Vec::new(), None);
    }
    part.done
}

/// Trims the stream under `key`, which is there, in one turn. With `~` blocks stay for the next call that one turn has no
/// time for.
pub fn trim(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming) {
    let Ok(Some(stream)) = cx.stream(key) else { return };
    let Some(mut target) = target(stream, trimming, Way::Whole) else { return };
    if trimming.approximate && cx.may_postpone() && trimming.references != References::Acked {
        target.end = blocks_up_to(stream, target.end, cx.steps(LET_GO_MAX));
    }
    if remove(cx, key, trimming, target, Way::Whole).removed > 0 {
        cx.note_trim(key);
    }
}

/// The end of the last whole block before which so many steps come, but at least of the first one; not beyond `last`.
fn blocks_up_to(stream: &Stream, last: StreamId, steps: usize) -> StreamId {
    let Some(part) = part_up_to(stream, last, steps) else { return last };
    let entries = &stream.entries;
    let first_block = || Some(entries.node_at(entries.first_id()?)?.last_live);
    end_of_blocks(stream, entries.count_in(StreamId::MIN, part)).or_else(first_block).map_or(last, |end| end.min(last))
}

/// The end of the last whole block among the first so many entries.
fn end_of_blocks(stream: &Stream, most: u64) -> Option<StreamId> {
    let entries = &stream.entries;
    match entries.nth(most) {
        Some(kept) => last_before(stream, entries.node_at(kept)?.first_live),
        None => entries.last_id(),
    }
}

/// The entry before an ID.
fn last_before(stream: &Stream, id: StreamId) -> Option<StreamId> {
    Some(stream.entries.range_rev(StreamId::MIN, id.prev()?).next()?.id)
}

/// How trimming treats references. Without groups every entry is free, so ACKED is trimming like any other, its LIMIT
/// included.
fn references(stream: &Stream, trimming: &Trimming) -> References {
    match trimming.references {
        References::Acked if stream.groups.is_empty() => References::Keep,
        references => references,
    }
}

/// What is to go; `None`: nothing.
fn target(stream: &Stream, trimming: &Trimming, way: Way) -> Option<Target> {
    let entries = &stream.entries;
    let trimming = &Trimming { references: references(stream, trimming), ..*trimming };
    let last = if trimming.approximate { last_of_blocks(stream, trimming) } else { last_exactly(stream, trimming) };
    if trimming.references != References::Acked {
        return last.map(|end| Target { end, most: u64::MAX });
    }
    let (most, end) = match (trimming.threshold, last) {
        // Exactly so many go, wherever they stand.
        (Threshold::MaxLen(n), _) if !trimming.approximate => {
            ((entries.len() + way.added()).saturating_sub(n), entries.last_id()?)
        }
        (_, None) => return None,
        (Threshold::MaxLen(n), Some(last)) => (entries.len().saturating_sub(n), last),
        (Threshold::MinId(_), Some(last)) => (u64::MAX, last),
    };
    let most = most.min(trimming.limit);
    (most > 0).then_some(Target { end, most })
}

/// Removes what is to go, as far as the way allows.
fn remove(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming, target: Target, way: Way) -> Part {
    let Ok(Some(stream)) = cx.stream(key) else { return Part::done(0) };
    // One that goes on does not begin to trim otherwise because there are groups no more, or are now.
    if trimming.references == References::Acked && (cx.carried.is_some() || !stream.groups.is_empty()) {
        return trim_free(cx, key, trimming, target, way);
    }
    let steps = if way == Way::Whole { usize::MAX } else { cx.steps(LET_GO_MAX) };
    let part = if way == Way::Whole { None } else { part_up_to(stream, target.end, steps) };
    let (last, done) = match part {
        Some(part) => (part, false),
        None => (target.end, true),
    };
    if done && matches!(way, Way::Before(_)) {
        return Part::done(0);
    }
    let removed = stream.entries.count_in(StreamId::MIN, last);
    // One at a time is what costs nothing more, and needs no look at the groups.
    let waited_for =
        if removed > 1 && stream.has_waiting() { steps.min(usize::try_from(removed).unwrap_or(usize::MAX)) } else { 0 };
    cx.take_steps(waited_for);
    if trimming.references == References::Delete {
        // References up to there go, also those of entries that were deleted before.
        release_up_to(cx, key, last);
    }
    if removed > 0 {
        remove_front(cx, key, last);
    }
    Part { removed, done }
}

/// Up to which ID so many steps trim, if that is not everything: entries that wait in groups behind their keys take
/// time each.
fn part_up_to(stream: &Stream, last: StreamId, steps: usize) -> Option<StreamId> {
    Some(stream.let_go_up_to(last, steps)).filter(|&part| part < last)
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
    match trimming.threshold {
        Threshold::MaxLen(n) => end_of_blocks(stream, entries.len().saturating_sub(n).min(limit)),
        Threshold::MinId(id) => {
            let last = match entries.node_at(id) {
                Some(node) if node.last_live >= id => last_before(stream, node.first_live),
                node => node.map(|node| node.last_live),
            }?;
            Some(last.min(end_of_blocks(stream, limit)?))
        }
    }
}

/// ACKED: removes the free entries, oldest first, until the threshold holds.
fn trim_free(cx: &mut Cx<'_>, key: &[u8], trimming: &Trimming, target: Target, way: Way) -> Part {
    let Ok(Some(stream)) = cx.stream(key) else { return Part::done(0) };
    let Target { end, most } = target;
    let groups = stream.groups.len();
    let (looks, part) = match (trimming.approximate, way != Way::Whole) {
        (true, _) => (LOOKS_MAX, most),
        (false, true) => {
            let steps = cx.steps(REMOVED_MAX);
            let looks = LOOKS_MAX.min(steps * LOOKS_PER_STEP);
            // However many groups there are, every turn gets on.
            ((looks * GROUPS_FOR_LOOKS / groups.max(GROUPS_FOR_LOOKS)).max(1), most.min(steps as u64))
        }
        (false, false) => (usize::MAX, most),
    };
    let Found { free, is_all, looks } = cx.find_free(key, end, part, looks);
    cx.take_steps(free.len() + looks * groups.max(GROUPS_FOR_LOOKS) / GROUPS_FOR_LOOKS / LOOKS_PER_STEP);
    let removed = free.len() as u64;
    let done = trimming.approximate || removed == most || (is_all && removed < part);
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
