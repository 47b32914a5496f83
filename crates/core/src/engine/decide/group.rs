//! XGROUP and its subcommands.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::state::group::Group;
use crate::state::stream::Stream;

/// Options of CREATE and SETID.
struct Options {
    make_stream: bool,
    /// `Some(-1)` = said to be unknown.
    entries_read: Option<i64>,
}

fn options(args: Args<'_>, create: bool) -> Result<Options, Fault> {
    let mut options = Options { make_stream: false, entries_read: None };
    let mut at = 5;
    while at < args.len() {
        let word = args.get(at);
        if create && is(word, "MKSTREAM") {
            options.make_stream = true;
            at += 1;
        } else if is(word, "ENTRIESREAD") && at + 1 < args.len() {
            let n = parse::int(args.get(at + 1))?;
            if n < -1 {
                return Err(Fault::XGROUP_ENTRIES_READ);
            }
            options.entries_read = Some(n);
            at += 2;
        } else {
            return Err(Fault::subcommand_syntax(args.get(1), "XGROUP"));
        }
    }
    Ok(options)
}

/// Refuses more words than the longest form has: options may repeat within that.
fn check_length(args: Args<'_>, words_max: usize) -> Result<(), Fault> {
    if args.len() > words_max { Err(Fault::subcommand_syntax(args.get(1), "XGROUP")) } else { Ok(()) }
}

/// ENTRIESREAD as it is kept: never more than were ever added.
fn entries_read(given: Option<i64>, stream: Option<&Stream>) -> Option<u64> {
    let n = u64::try_from(given?).ok()?;
    Some(n.min(stream.map_or(0, |stream| stream.entries_added)))
}

pub(super) fn no_such_group(group: &[u8], key: &[u8]) -> Fault {
    Fault::concat(&[b"NOGROUP No such consumer group '", group, b"' for key name '", key, b"'"])
}

fn stream<'c>(cx: &'c Cx<'_>, key: &[u8]) -> Result<&'c Stream, Fault> {
    cx.stream(key)?.ok_or(Fault::XGROUP_NO_KEY)
}

fn group<'c>(cx: &'c Cx<'_>, key: &[u8], name: &[u8]) -> Result<&'c Group, Fault> {
    stream(cx, key)?.group(name).ok_or_else(|| no_such_group(name, key))
}

/// XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD n]
pub fn create(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let options = options(args, true)?;
    let (key, name) = (args.get(2), args.get(3));
    let stream = cx.stream(key)?;
    if stream.is_none() && !options.make_stream {
        return Err(Fault::XGROUP_NO_KEY);
    }
    check_length(args, 8)?;
    let position = match args.get(4) {
        b"$" => stream.map_or(StreamId::MIN, |stream| stream.last_id),
        id => parse::id(id)?,
    };
    if stream.is_some_and(|stream| stream.group(name).is_some()) {
        return Err(Fault::BUSY_GROUP);
    }
    let (at, entries_read) = (cx.at(key), entries_read(options.entries_read, stream));
    if stream.is_none() {
        cx.emit(&Record::StreamCreate { at });
    }
    cx.emit(&Record::GroupCreate { at, group: name, position, entries_read });
    reply.ok();
    Ok(())
}

/// XGROUP SETID key group id|$ [ENTRIESREAD n]
pub fn setid(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let options = options(args, false)?;
    let (key, name) = (args.get(2), args.get(3));
    group(cx, key, name)?;
    check_length(args, 7)?;
    let stream = stream(cx, key)?;
    let position = match args.get(4) {
        b"$" => stream.last_id,
        b"-" => StreamId::MIN,
        b"+" => StreamId::MAX,
        id => parse::id(id)?,
    };
    let (at, entries_read) = (cx.at(key), entries_read(options.entries_read, Some(stream)));
    cx.emit(&Record::GroupPosition { at, group: name, position, entries_read });
    reply.ok();
    Ok(())
}

/// XGROUP DESTROY key group
pub fn destroy(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(2), args.get(3));
    let there = stream(cx, key)?.group(name).is_some();
    if there {
        let at = cx.at(key);
        cx.emit(&Record::GroupDestroy { at, group: name });
    }
    reply.int(i64::from(there));
    Ok(())
}

/// XGROUP CREATECONSUMER key group consumer
pub fn create_consumer(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name, consumer) = (args.get(2), args.get(3), args.get(4));
    let new = group(cx, key, name)?.find(consumer).is_none();
    if new {
        let (at, now_ms) = (cx.at(key), cx.now_ms());
        cx.emit(&Record::ConsumerCreate { at, group: name, consumer, now_ms });
    }
    reply.int(i64::from(new));
    Ok(())
}

/// XGROUP DELCONSUMER key group consumer
pub fn delete_consumer(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name, consumer) = (args.get(2), args.get(3), args.get(4));
    let group = group(cx, key, name)?;
    let had = group.find(consumer).map(|of| group.consumer(of).pending);
    if had.is_some() {
        let at = cx.at(key);
        cx.emit(&Record::ConsumerDelete { at, group: name, consumer });
    }
    reply.count(had.unwrap_or(0));
    Ok(())
}
