//! The options of XREAD and XREADGROUP, and XREAD. XREADGROUP is in `group_read.rs`.
//!
//! Everything is checked for every stream before anything is delivered from one. A read that finds nothing and may block
//! leaves as a [`Wait`](crate::session::Wait); when woken, the whole command is carried out again.

use smallvec::SmallVec;

use super::budget::{Budget, put_head_before};
use crate::command::args::{Args, OwnedArgs};
use crate::command::parse::{self, is};
use crate::engine::fault::Fault;
use crate::engine::{Cx, Engine};
use crate::id::StreamId;
use crate::resp::encode::Reply;

/// From where XREAD reads a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    /// Entries after this one.
    After(StreamId),
    /// The last entry (`+`).
    Last,
}

/// Where a group begins that MKGROUP makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MakeGroup {
    /// Before all entries.
    First,
    /// After the last one (`$`).
    Last,
}

/// A read as the client wrote it.
pub(super) struct Options<'a> {
    /// GROUP and consumer.
    pub group: Option<(&'a [u8], &'a [u8])>,
    /// COUNT; `u64::MAX` = no bound.
    pub count: u64,
    /// MAXCOUNT; `u64::MAX` = no bound.
    max_count: u64,
    /// MAXSIZE; `usize::MAX` = no bound.
    max_size_bytes: usize,
    /// CLAIM.
    pub claim_idle_ms: Option<u64>,
    /// MKGROUP.
    pub make_group: Option<MakeGroup>,
    /// BLOCK, as Unix ms of its end; `Some(None)` = for ever.
    pub block: Option<Option<u64>>,
    pub no_ack: bool,
    /// Place of the first key.
    pub first: usize,
    /// Number of streams.
    pub streams: usize,
}

impl Options<'_> {
    /// What a reply that begins at `start` may hold.
    pub fn budget(&self, start: usize) -> Budget {
        Budget::new(self.max_count, self.max_size_bytes, start)
    }
}

/// Reads the options up to the streams.
pub(super) fn options<'a>(cx: &Cx<'_>, args: Args<'a>, for_group: bool) -> Result<Options<'a>, Fault> {
    let mut options = Options {
        group: None,
        count: u64::MAX,
        max_count: u64::MAX,
        max_size_bytes: usize::MAX,
        claim_idle_ms: None,
        make_group: None,
        block: None,
        no_ack: false,
        first: 0,
        streams: 0,
    };
    let positive = |text: &[u8]| parse::integer(text).and_then(|n| u64::try_from(n).ok()).filter(|&n| n > 0);
    let mut at = 1;
    while at < args.len() {
        let (word, more) = (args.get(at), args.len() - at - 1);
        if is(word, "COUNT") && more >= 1 {
            let count = parse::int(args.get(at + 1))?;
            options.count = u64::try_from(count).ok().filter(|&n| n > 0).unwrap_or(u64::MAX);
            at += 2;
        } else if is(word, "MAXCOUNT") && more >= 1 {
            options.max_count = positive(args.get(at + 1)).ok_or(Fault::MAXCOUNT)?;
            at += 2;
        } else if is(word, "MAXSIZE") && more >= 1 {
            let size_bytes = positive(args.get(at + 1)).ok_or(Fault::MAXSIZE)?;
            // The greatest number stands for no bound.
            options.max_size_bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX).min(usize::MAX - 1);
            at += 2;
        } else if for_group && is(word, "CLAIM") && more >= 1 {
            let idle_ms = parse::integer(args.get(at + 1)).ok_or(Fault::CLAIM_NOT_INTEGER)?;
            options.claim_idle_ms = Some(u64::try_from(idle_ms).map_err(|_| Fault::CLAIM_NEGATIVE)?);
            at += 2;
        } else if for_group && is(word, "MKGROUP") {
            // The position may be left out: no option is called `0` or `$`.
            let position = match args.try_get(at + 1) {
                Some(b"0") => Some(MakeGroup::First),
                Some(b"$") => Some(MakeGroup::Last),
                _ => None,
            };
            options.make_group = Some(position.unwrap_or(MakeGroup::First));
            at += 1 + usize::from(position.is_some());
        } else if is(word, "BLOCK") && more >= 1 {
            let ms = parse::integer(args.get(at + 1)).ok_or(Fault::TIMEOUT_NOT_INTEGER)?;
            let ms = u64::try_from(ms).map_err(|_| Fault::TIMEOUT_NEGATIVE)?;
            options.block = Some(match ms {
                0 => None,
                // The clock is read once a turn, at its start: one more, so as not to be early.
                ms => Some(
                    cx.now_ms().checked_add(ms).filter(|&end| end < i64::MAX as u64).ok_or(Fault::TIMEOUT_RANGE)? + 1,
                ),
            });
            at += 2;
        } else if is(word, "STREAMS") && more >= 1 {
            if more % 2 != 0 {
                return Err(if for_group { Fault::XREADGROUP_UNBALANCED } else { Fault::XREAD_UNBALANCED });
            }
            (options.first, options.streams) = (at + 1, more / 2);
            break;
        } else if is(word, "GROUP") && more >= 2 {
            if !for_group {
                return Err(Fault::XREAD_GROUP);
            }
            options.group = Some((args.get(at + 1), args.get(at + 2)));
            at += 3;
        } else if is(word, "NOACK") {
            if !for_group {
                return Err(Fault::XREAD_NOACK);
            }
            options.no_ack = true;
            at += 1;
        } else {
            return Err(Fault::SYNTAX);
        }
    }
    if options.streams == 0 {
        return Err(Fault::SYNTAX);
    }
    if for_group && options.group.is_none() {
        return Err(Fault::XREADGROUP_MISSING_GROUP);
    }
    if options.count != u64::MAX && options.max_count < options.count {
        return Err(Fault::MAXCOUNT_BELOW_COUNT);
    }
    Ok(options)
}

/// XREAD [COUNT n] [MAXCOUNT n] [MAXSIZE bytes] [BLOCK ms] STREAMS key … id …
pub fn xread(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let options = options(cx, args, false)?;
    let keys = args.slice(options.first, options.first + options.streams);
    let ids = args.from(options.first + options.streams);
    let mut froms: SmallVec<[(From, bool); 8]> = SmallVec::new();
    let mut ready = 0;
    for (key, id) in keys.iter().zip(ids.iter()) {
        let stream = cx.stream(key)?;
        let from = match id {
            b"$" => From::After(stream.map_or(StreamId::MIN, |stream| stream.last_id)),
            b"+" => From::Last,
            b">" => return Err(Fault::XREAD_NEW),
            id => From::After(parse::id(id)?),
        };
        let has_entries = stream.and_then(|stream| stream.entries.last_id()).is_some_and(|last| match from {
            From::After(id) => last > id,
            _ => true,
        });
        froms.push((from, has_entries));
        ready += usize::from(has_entries);
    }
    if ready == 0 {
        let resolved = |place: usize| match froms[place].0 {
            From::After(id) => Some(id),
            _ => None,
        };
        nothing(cx, args, &options, resolved, reply);
        return Ok(());
    }
    let start = reply.out.len();
    let mut budget = options.budget(start);
    let mut answered = 0;
    for (key, (from, has_entries)) in keys.iter().zip(froms) {
        if !budget.has_room(reply) {
            break;
        }
        if !has_entries {
            continue;
        }
        let Some(stream) = cx.stream(key)? else { continue };
        let entries = &stream.entries;
        let (from, n) = match from {
            From::After(id) => (id.next(), entries.count_after(id).min(options.count)),
            From::Last => (entries.last_id(), entries.len().min(1)),
        };
        let n = n.min(budget.entries());
        let Some(from) = from.filter(|_| n > 0) else { continue };
        answered += 1;
        reply.pair();
        reply.bulk(key);
        if !budget.bounds_size() {
            reply.array(n as usize);
            entries.range(from, StreamId::MAX).take(n as usize).for_each(|entry| entry.write(reply.out));
            budget.take(n);
            continue;
        }
        let (body, mut written) = (reply.out.len(), 0);
        for entry in entries.range(from, StreamId::MAX).take(n as usize) {
            if !budget.has_room(reply) {
                break;
            }
            entry.write(reply.out);
            budget.take(1);
            written += 1;
        }
        put_head_before(reply, body, |reply| reply.array(written));
    }
    put_head_before(reply, start, |reply| reply.pairs(answered));
    Ok(())
}

/// Answers that there is nothing, or waits. `resolved` tells the ID that `$` stands for, by place.
pub(super) fn nothing(
    cx: &mut Cx<'_>,
    args: Args<'_>,
    options: &Options<'_>,
    resolved: impl Fn(usize) -> Option<StreamId>,
    reply: &mut Reply<'_>,
) {
    let Some(deadline_ms) = options.block.filter(|_| cx.may_block) else {
        reply.null_array();
        return;
    };
    let ids = options.first + options.streams;
    let mut owned = OwnedArgs::default();
    let mut text = Vec::new();
    for (place, argument) in args.iter().enumerate() {
        let id = if place >= ids && argument == b"$" { resolved(place - ids) } else { None };
        match id {
            Some(id) => {
                text.clear();
                id.write(&mut text);
                owned.push(&text);
            }
            None => owned.push(argument),
        }
    }
    let mut keys: Vec<Box<[u8]>> = args.slice(options.first, ids).iter().map(Box::from).collect();
    keys.sort_unstable();
    keys.dedup();
    cx.wait = Some(Engine::wait_for(cx.spec.id, owned, cx.db, keys, deadline_ms));
}
