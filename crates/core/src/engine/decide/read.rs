//! XREAD and XREADGROUP.
//!
//! Everything is checked for every stream before anything is delivered from one. A delivery of many new entries is one
//! record. A read that finds nothing and may block leaves as a [`Wait`](crate::session::Wait); when woken, the whole
//! command is carried out again.

use smallvec::SmallVec;

use crate::command::args::{Args, OwnedArgs};
use crate::command::parse::{self, is};
use crate::engine::fault::Fault;
use crate::engine::{Cx, Engine};
use crate::id::StreamId;
use crate::record::{Claimed, Claims, Record};
use crate::resp::encode::{Reply, bulk_id};
use crate::state::group::Group;
use crate::state::stream::Stream;

/// From where a stream is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    /// Entries after this one (XREAD).
    After(StreamId),
    /// The last entry (XREAD `+`).
    Last,
    /// What the group was never given (`>`).
    New,
    /// The consumer's pending entries after this one.
    History(StreamId),
}

/// A read as the client wrote it.
struct Options<'a> {
    /// GROUP and consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    /// COUNT; `u64::MAX` = no bound.
    count: u64,
    /// BLOCK, as Unix ms of its end; `Some(None)` = for ever.
    block: Option<Option<u64>>,
    no_ack: bool,
    /// Place of the first key.
    first: usize,
    /// Number of streams.
    streams: usize,
}

fn options<'a>(cx: &Cx<'_>, args: Args<'a>, for_group: bool) -> Result<Options<'a>, Fault> {
    let mut options = Options { group: None, count: u64::MAX, block: None, no_ack: false, first: 0, streams: 0 };
    let mut at = 1;
    while at < args.len() {
        let (word, more) = (args.get(at), args.len() - at - 1);
        if is(word, "COUNT") && more >= 1 {
            let count = parse::int(args.get(at + 1))?;
            options.count = u64::try_from(count).ok().filter(|&n| n > 0).unwrap_or(u64::MAX);
            at += 2;
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
    Ok(options)
}

/// XREAD [COUNT n] [BLOCK ms] STREAMS key … id …
pub fn xread(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let options = options(cx, args, false)?;
    let keys = args.slice(options.first, options.first + options.streams);
    let ids = args.from(options.first + options.streams);
    let mut froms: SmallVec<[From; 8]> = SmallVec::new();
    let mut ready = 0;
    for (key, id) in keys.iter().zip(ids.iter()) {
        let stream = cx.stream(key)?;
        let from = match id {
            b"$" => From::After(stream.map_or(StreamId::MIN, |stream| stream.last_id)),
            b"+" => From::Last,
            b">" => return Err(Fault::XREAD_NEW),
            id => From::After(parse::id(id)?),
        };
        froms.push(from);
        let has_entries = stream.and_then(|stream| stream.entries.last_id()).is_some_and(|last| match from {
            From::After(id) => last > id,
            _ => true,
        });
        ready += usize::from(has_entries);
    }
    if ready == 0 {
        let resolved = |place: usize| match froms[place] {
            From::After(id) => Some(id),
            _ => None,
        };
        nothing(cx, args, &options, resolved, reply);
        return Ok(());
    }
    reply.pairs(ready);
    for (key, from) in keys.iter().zip(froms) {
        let Some(stream) = cx.stream(key)? else { continue };
        let entries = &stream.entries;
        let (start, n) = match from {
            From::After(id) => (id.next(), entries.count_after(id).min(options.count)),
            _ => (entries.last_id(), entries.len().min(1)),
        };
        let Some(start) = start.filter(|_| n > 0) else { continue };
        reply.pair();
        reply.bulk(key);
        reply.array(n as usize);
        entries.range(start, StreamId::MAX).take(n as usize).for_each(|entry| entry.write(reply.out));
    }
    Ok(())
}

/// Answers that there is nothing, or waits. `resolved` tells the ID that `$` stands for, by place.
fn nothing(
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

fn no_group(key: &[u8], group: &[u8]) -> Fault {
    Fault::concat(&[
        b"NOGROUP No such key '",
        key,
        b"' or consumer group '",
        group,
        b"' in XREADGROUP with GROUP option",
    ])
}

/// XREADGROUP GROUP group consumer [COUNT n] [BLOCK ms] [NOACK] STREAMS key … id …
pub fn xreadgroup(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let options = options(cx, args, true)?;
    let Some((name, consumer)) = options.group else { return Err(Fault::XREADGROUP_MISSING_GROUP) };
    let keys = args.slice(options.first, options.first + options.streams);
    let ids = args.from(options.first + options.streams);
    let mut froms: SmallVec<[From; 8]> = SmallVec::new();
    for (key, id) in keys.iter().zip(ids.iter()) {
        if cx.stream(key)?.and_then(|stream| stream.group(name)).is_none() {
            return Err(no_group(key, name));
        }
        froms.push(match id {
            b">" => From::New,
            b"$" => return Err(Fault::XREADGROUP_DOLLAR),
            b"+" => return Err(Fault::XREADGROUP_PLUS),
            // As in Redis, where `>` and the greatest ID are the same.
            id => match parse::id(id)? {
                StreamId::MAX => From::New,
                id => From::History(id),
            },
        });
    }
    let now_ms = cx.now_ms();
    for key in keys.iter() {
        let at = cx.at(key);
        let known = cx.stream(key)?.and_then(|stream| stream.group(name)).is_some_and(|g| g.find(consumer).is_some());
        if !known {
            cx.emit(&Record::ConsumerCreate { at, group: name, consumer, now_ms });
        }
    }
    // The head holds the number of streams that have something, which with several is known only at the end.
    let start = reply.out.len();
    let mut answered = 0;
    if options.streams == 1 {
        reply.pairs(1);
    }
    for (key, from) in keys.iter().zip(&froms) {
        answered += usize::from(match *from {
            From::History(after) => history(cx, key, name, consumer, after, options.count, reply),
            _ => new_entries(cx, key, name, consumer, &options, reply),
        });
    }
    if answered == 0 {
        reply.out.truncate(start);
        nothing(cx, args, &options, |_| None, reply);
    } else if options.streams > 1 {
        let body_end = reply.out.len();
        reply.pairs(answered);
        let head_len = reply.out.len() - body_end;
        reply.out[start..].rotate_right(head_len);
    }
    Ok(())
}

/// The stream and the group, which were there when the command was checked.
fn group<'c>(cx: &'c Cx<'_>, key: &[u8], name: &[u8]) -> Option<(&'c Stream, &'c Group)> {
    let stream = cx.stream(key).ok()??;
    Some((stream, stream.group(name)?))
}

/// Delivers what the group was never given; answers whether there was anything.
fn new_entries(
    cx: &mut Cx<'_>,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    options: &Options<'_>,
    reply: &mut Reply<'_>,
) -> bool {
    let Some((stream, group)) = group(cx, key, name) else { return false };
    let (at, now_ms, after) = (cx.at(key), cx.now_ms(), group.last_delivered);
    let n = match stream.entries.last_id() {
        Some(last) if last > after => stream.entries.count_after(after).min(options.count),
        _ => 0,
    };
    if n == 0 {
        cx.emit_lazily(&Record::ConsumerSeen { at, group: name, consumer, now_ms, active: false });
        return false;
    }
    reply.pair();
    reply.bulk(key);
    reply.array(n as usize);
    let first = stream.first_id();
    let (mut last, mut entries_read) = (after, group.entries_read);
    let start = after.next().unwrap_or(StreamId::MAX);
    for entry in stream.entries.range(start, StreamId::MAX).take(n as usize) {
        entry.write(reply.out);
        entries_read = stream.entries_read_after(last, entries_read, entry.id, first);
        last = entry.id;
    }
    let no_ack = options.no_ack;
    cx.emit(&Record::Deliver { at, group: name, consumer, after, last, entries_read, no_ack, now_ms });
    true
}

/// Gives a consumer its own pending entries again.
fn history(
    cx: &mut Cx<'_>,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    after: StreamId,
    count: u64,
    reply: &mut Reply<'_>,
) -> bool {
    let Some((stream, group)) = group(cx, key, name) else { return false };
    let (at, now_ms) = (cx.at(key), cx.now_ms());
    let own: Vec<_> = match (group.find(consumer), after.next()) {
        (Some(of), Some(from)) => group.pel().range_of(of, from).take(count.min(usize::MAX as u64) as usize).collect(),
        _ => Vec::new(),
    };
    reply.pair();
    reply.bulk(key);
    reply.array(own.len());
    let mut claims = Vec::new();
    for pending in own {
        match stream.entries.get(pending.id) {
            Some(entry) => {
                entry.write(reply.out);
                claims.push(Claimed { id: pending.id, deliveries: pending.deliveries.saturating_add(1) });
            }
            None => {
                reply.array(2);
                bulk_id(reply.out, pending.id);
                reply.null_array();
            }
        }
    }
    if !claims.is_empty() {
        let claims = Claims::Slice(&claims);
        cx.emit(&Record::Claim { at, group: name, consumer, delivered_ms: now_ms, claims });
    }
    cx.emit_lazily(&Record::ConsumerSeen { at, group: name, consumer, now_ms, active: false });
    true
}
