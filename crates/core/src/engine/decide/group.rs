//! XGROUP and its subcommands.

use std::sync::Arc;

use super::idempotence;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::state::group::{Group, GroupOptions};
use crate::state::stream::Stream;

/// The event of a consumer that comes to be, whatever command makes it.
pub(super) const CONSUMER_CREATED: &str = "xgroup-createconsumer";

/// Options of CREATE, SETID and CFGSET.
struct Options {
    make_stream: bool,
    /// What is set for the group.
    set: GroupOptions,
    /// Was any of that named?
    sets: bool,
    /// `Some(-1)` = said to be unknown.
    entries_read: Option<i64>,
}

fn options(args: Args<'_>, create: bool) -> Result<Options, Fault> {
    let mut options = Options { make_stream: false, set: GroupOptions::default(), sets: false, entries_read: None };
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
        } else if create && take_option(args, at, &mut options.set)? {
            options.sets = true;
            at += 2;
        } else {
            return Err(Fault::subcommand_syntax(args.get(1), "XGROUP"));
        }
    }
    Ok(options)
}

/// If an option of the group and its value stand at `at`, takes them.
fn take_option(args: Args<'_>, at: usize, set: &mut GroupOptions) -> Result<bool, Fault> {
    let (word, Some(value)) = (args.get(at), args.try_get(at + 1)) else { return Ok(false) };
    if is(word, "KEYFIELD") {
        set.key_field = Some(value).filter(|field| !field.is_empty()).map(Arc::from);
        return Ok(true);
    }
    let place = if is(word, "MAXPENDING") {
        &mut set.max_pending
    } else if is(word, "MAXPENDING-CONSUMER") {
        &mut set.max_pending_per_consumer
    } else {
        return Ok(false);
    };
    *place = u64::try_from(parse::int(value)?).map_err(|_| Fault::XGROUP_MAXPENDING)?;
    Ok(true)
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

fn stream<'c>(cx: &'c Cx<'_>, key: &[u8]) -> Result<&'c Stream, Fault> {
    cx.stream(key)?.ok_or(Fault::XGROUP_NO_KEY)
}

fn group<'c>(cx: &'c Cx<'_>, key: &[u8], name: &[u8]) -> Result<&'c Group, Fault> {
    stream(cx, key)?.group(name).ok_or_else(|| Fault::no_group_of_key(key, name))
}

/// XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD n] [MAXPENDING n] [MAXPENDING-CONSUMER n]
/// [KEYFIELD field]
pub fn create(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let options = options(args, true)?;
    let (key, name) = (args.get(2), args.get(3));
    let stream = cx.stream(key)?;
    if stream.is_none() && !options.make_stream {
        return Err(Fault::XGROUP_NO_KEY);
    }
    // Options that Redis does not have are not counted by its rule.
    check_length(args, if options.sets { 14 } else { 8 })?;
    let position = match args.get(4) {
        b"$" => stream.map_or(StreamId::MIN, |stream| stream.last_id),
        id => parse::id(id)?,
    };
    if stream.is_some_and(|stream| stream.group(name).is_some()) {
        return Err(Fault::BUSY_GROUP);
    }
    let (at, entries_read) = (cx.at(key), entries_read(options.entries_read, stream));
    let is_new = stream.is_none();
    if is_new {
        cx.emit(&Record::StreamCreate { at });
        idempotence::settle_new_stream(cx, key);
    }
    cx.emit(&Record::GroupCreate { at, group: name, position, entries_read });
    if options.set != GroupOptions::default() {
        cx.emit(&Record::GroupOptions { at, group: name, options: options.set });
    }
    cx.notify_new(is_new, key);
    cx.notify(EventClass::Stream, "xgroup-create", key);
    reply.ok();
    Ok(())
}

/// XGROUP SETID key group id|$ [ENTRIESREAD n]
pub fn setid(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let options = options(args, false)?;
    let (key, name) = (args.get(2), args.get(3));
    let before = group(cx, key, name)?.last_delivered;
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
    if position < before {
        cx.note_set_back(key, name);
    }
    cx.notify(EventClass::Stream, "xgroup-setid", key);
    reply.ok();
    Ok(())
}

/// XGROUP CFGSET key group [MAXPENDING n] [MAXPENDING-CONSUMER n] [KEYFIELD field]
pub fn cfgset(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(2), args.get(3));
    let mut given = GroupOptions::default();
    for at in (4..args.len()).step_by(2) {
        if !take_option(args, at, &mut given)? {
            return Err(Fault::subcommand_syntax(args.get(1), "XGROUP"));
        }
    }
    let before = group(cx, key, name)?.options();
    // What is not named stays.
    let mut options = before.clone();
    for at in (4..args.len()).step_by(2) {
        take_option(args, at, &mut options)?;
    }
    if options != *before {
        let at = cx.at(key);
        cx.emit(&Record::GroupOptions { at, group: name, options });
    }
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
        cx.notify(EventClass::Stream, "xgroup-destroy", key);
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
        cx.notify(EventClass::Stream, CONSUMER_CREATED, key);
    }
    reply.int(i64::from(new));
    Ok(())
}

/// XGROUP DELCONSUMER key group consumer [IFEMPTY|RELEASE]
pub fn delete_consumer(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name, consumer) = (args.get(2), args.get(3), args.get(4));
    let (mut if_empty, mut release) = (false, false);
    match args.try_get(5) {
        None => {}
        Some(word) if args.len() == 6 && is(word, "IFEMPTY") => if_empty = true,
        Some(word) if args.len() == 6 && is(word, "RELEASE") => release = true,
        Some(_) => return Err(Fault::arity(cx.spec.name)),
    }
    let group = group(cx, key, name)?;
    let had = group.find(consumer).map(|of| group.consumer(of).pending);
    if if_empty && had.is_some_and(|n| n > 0) {
        return Err(Fault::XGROUP_NOT_EMPTY);
    }
    if had.is_some() {
        let (at, first_order) = (cx.at(key), group.next_release());
        if release && had != Some(0) {
            cx.emit(&Record::GiveBackAll { at, group: name, consumer, first_order });
        }
        cx.emit(&Record::ConsumerDelete { at, group: name, consumer });
        cx.notify(EventClass::Stream, "xgroup-delconsumer", key);
    }
    reply.count(had.unwrap_or(0));
    Ok(())
}
