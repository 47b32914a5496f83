//! Commands about strings.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::command::table::CommandId;
use crate::engine::Cx;
use crate::engine::decide::expire::{self, Unit};
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::extended::Extended;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::state::keyspace::Value;

/// GET key
pub fn get(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    bulk_or_null(cx.string(args.get(1))?, reply);
    Ok(())
}

fn bulk_or_null(value: Option<&[u8]>, reply: &mut Reply<'_>) {
    match value {
        Some(bytes) => reply.bulk(bytes),
        None => reply.null(),
    }
}

/// Tells of a key that a command has looked for before it writes it.
fn note_miss(cx: &mut Cx<'_>, found: bool, key: &[u8]) {
    if !found {
        cx.notify(EventClass::Miss, "keymiss", key);
    }
}

/// Options of SET and GETEX, read from left to right.
#[derive(Debug, Default)]
struct Options<'a> {
    only_new: bool,
    only_old: bool,
    get: bool,
    keep_ttl: bool,
    persist: bool,
    expiry: Option<(Unit, &'a [u8])>,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>, from: usize, of_set: bool) -> Result<Options<'a>, Fault> {
        let mut options = Options::default();
        let mut at = from;
        while at < args.len() {
            let word = args.get(at);
            if of_set && is(word, "NX") && !options.only_old {
                options.only_new = true;
            } else if of_set && is(word, "XX") && !options.only_new {
                options.only_old = true;
            } else if of_set && is(word, "GET") {
                options.get = true;
            } else if of_set && is(word, "KEEPTTL") && options.expiry.is_none() {
                options.keep_ttl = true;
            } else if !of_set && is(word, "PERSIST") && options.expiry.is_none() {
                options.persist = true;
            } else if let Some(unit) = Unit::option(word)
                // The same option twice is taken; the last one holds.
                && options.expiry.is_none_or(|(before, _)| before == unit)
                && !options.keep_ttl
                && !options.persist
                && at + 1 < args.len()
            {
                at += 1;
                options.expiry = Some((unit, args.get(at)));
            } else {
                return Err(Fault::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// SET key value [NX|XX] [GET] [EX s|PX ms|EXAT s|PXAT ms|KEEPTTL]
pub fn set(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, value) = (args.get(1), args.get(2));
    if args.len() == 3 {
        put(cx, key, 0, value, "set");
        reply.ok();
        return Ok(());
    }
    let options = Options::parse(args, 3, true)?;
    let mut expire_ms = match options.expiry {
        Some((unit, text)) => expire::positive(text, unit, cx.now_ms(), "set")?,
        None => 0,
    };
    if options.get {
        bulk_or_null(cx.string(key)?, reply);
    }
    let slot = cx.slot(key);
    let found = slot.is_some();
    if options.keep_ttl {
        expire_ms = slot.map_or(0, |slot| slot.expire_ms);
    }
    if options.get {
        note_miss(cx, found, key);
    }
    if (options.only_new && found) || (options.only_old && !found) {
        if !options.get {
            reply.null();
        }
        return Ok(());
    }
    put(cx, key, expire_ms, value, "set");
    if options.expiry.is_some() {
        cx.notify(EventClass::Generic, "expire", key);
    }
    if !options.get {
        reply.ok();
    }
    Ok(())
}

/// SETEX key s value, PSETEX key ms value
pub fn setex(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let unit = if cx.spec.id == CommandId::SetEx { Unit::SECONDS } else { Unit::MILLISECONDS };
    let expire_ms = expire::positive(args.get(2), unit, cx.now_ms(), cx.spec.name)?;
    put(cx, args.get(1), expire_ms, args.get(3), "set");
    cx.notify(EventClass::Generic, "expire", args.get(1));
    reply.ok();
    Ok(())
}

/// SETNX key value
pub fn setnx(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let free = cx.slot(key).is_none();
    if free {
        put(cx, key, 0, args.get(2), "set");
    }
    reply.int(free.into());
    Ok(())
}

/// GETSET key value
pub fn getset(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let old = cx.string(key)?;
    let found = old.is_some();
    bulk_or_null(old, reply);
    note_miss(cx, found, key);
    put(cx, key, 0, args.get(2), "set");
    Ok(())
}

/// GETDEL key
pub fn getdel(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let value = cx.string(key)?;
    bulk_or_null(value, reply);
    if value.is_some() {
        let at = cx.at(key);
        cx.emit(&Record::Delete { at });
        cx.notify(EventClass::Generic, "del", key);
    }
    Ok(())
}

/// GETEX key [EX s|PX ms|EXAT s|PXAT ms|PERSIST]
pub fn getex(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let options = Options::parse(args, 2, false)?;
    let Some(value) = cx.string(key)? else {
        reply.null();
        return Ok(());
    };
    // Redis looks at the time only when there is a key.
    let expire_ms = match options.expiry {
        Some((unit, text)) => Some(expire::positive(text, unit, cx.now_ms(), "getex")?),
        None => None,
    };
    reply.bulk(value);
    let expires = cx.slot(key).is_some_and(|slot| slot.expire_ms != 0);
    match expire_ms {
        Some(expire_ms) => expire::set(cx, key, expire_ms),
        None if options.persist && expires => {
            let at = cx.at(key);
            cx.emit(&Record::Expire { at, expire_ms: 0 });
            cx.notify(EventClass::Generic, "persist", key);
        }
        None => {}
    }
    Ok(())
}

/// MGET key …
pub fn mget(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.array(args.len() - 1);
    for key in args.from(1).iter() {
        // Something else than a string is as good as nothing here.
        bulk_or_null(cx.string(key).unwrap_or(None), reply);
    }
    Ok(())
}

/// MSET key value …
pub fn mset(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    set_all(cx, args)?;
    reply.ok();
    Ok(())
}

/// MSETNX key value …
pub fn msetnx(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let free = args.len().is_multiple_of(2) || args.from(1).iter().step_by(2).all(|key| cx.slot(key).is_none());
    if free {
        set_all(cx, args)?;
    }
    reply.int(free.into());
    Ok(())
}

fn set_all(cx: &mut Cx<'_>, args: Args<'_>) -> Result<(), Fault> {
    if args.len().is_multiple_of(2) {
        return Err(Fault::arity(cx.spec.name));
    }
    for place in (1..args.len()).step_by(2) {
        put(cx, args.get(place), 0, args.get(place + 1), "set");
    }
    Ok(())
}

fn check_length(cx: &Cx<'_>, len_bytes: usize) -> Result<(), Fault> {
    let fits = len_bytes as u64 <= cx.settings().bulk_max_bytes;
    if fits { Ok(()) } else { Err(Fault::STRING_TOO_LONG) }
}

/// APPEND key value
pub fn append(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, bytes) = (args.get(1), args.get(2));
    let old = cx.string(key)?;
    let (len, is_new) = (old.map_or(0, <[u8]>::len), old.is_none());
    check_length(cx, len + bytes.len())?;
    let at = cx.at(key);
    cx.emit(&Record::WriteString { at, offset: len as u64, bytes });
    cx.notify_new(is_new, key);
    cx.notify(EventClass::String, "append", key);
    reply.count((len + bytes.len()) as u64);
    Ok(())
}

/// STRLEN key
pub fn strlen(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.count(cx.string(args.get(1))?.map_or(0, <[u8]>::len) as u64);
    Ok(())
}

/// GETRANGE key start end
pub fn getrange(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (start, end) = (parse::int(args.get(2))?, parse::int(args.get(3))?);
    let value = cx.string(args.get(1))?.unwrap_or_default();
    reply.bulk(within(value, start, end));
    Ok(())
}

/// The bytes from `start` to `end`, both included; negative ones count from the end.
fn within(value: &[u8], start: i64, end: i64) -> &[u8] {
    let len = value.len() as i64;
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let from_front = |place: i64| if place < 0 { len.saturating_add(place).max(0) } else { place };
    let (start, end) = (from_front(start), from_front(end).min(len - 1));
    if start > end { &[] } else { &value[start as usize..=end as usize] }
}

/// SETRANGE key offset value
pub fn setrange(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, bytes) = (args.get(1), args.get(3));
    let offset = usize::try_from(parse::int(args.get(2))?).map_err(|_| Fault::OFFSET_RANGE)?;
    let old = cx.string(key)?;
    let (len, is_new) = (old.map_or(0, <[u8]>::len), old.is_none());
    if bytes.is_empty() {
        reply.count(len as u64);
        return Ok(());
    }
    let end = offset.saturating_add(bytes.len());
    check_length(cx, end)?;
    let at = cx.at(key);
    cx.emit(&Record::WriteString { at, offset: offset as u64, bytes });
    cx.notify_new(is_new, key);
    cx.notify(EventClass::String, "setrange", key);
    reply.count(len.max(end) as u64);
    Ok(())
}

/// INCR key (`by` = 1), DECR key (`by` = -1)
pub fn incr(cx: &mut Cx<'_>, args: Args<'_>, by: i64, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let old = match cx.string(key)? {
        Some(text) => parse::int(text)?,
        None => 0,
    };
    let new = old.checked_add(by).ok_or(Fault::OVERFLOW)?;
    replace(cx, key, itoa::Buffer::new().format(new).as_bytes(), "incrby");
    reply.int(new);
    Ok(())
}

/// INCRBY key n
pub fn incrby(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let by = parse::int(args.get(2))?;
    incr(cx, args, by, reply)
}

/// DECRBY key n
pub fn decrby(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let by = parse::int(args.get(2))?.checked_neg().ok_or(Fault::DECREMENT_OVERFLOW)?;
    incr(cx, args, by, reply)
}

/// INCRBYFLOAT key n
pub fn incrbyfloat(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let old = cx.string(key)?.unwrap_or(b"0");
    let old = Extended::parse(old).ok_or(Fault::NOT_A_FLOAT)?;
    let by = Extended::parse(args.get(2)).ok_or(Fault::NOT_A_FLOAT)?;
    let new = old.plus(by).ok_or(Fault::NAN_OR_INFINITY)?.text();
    replace(cx, key, new.as_bytes(), "incrbyfloat");
    reply.bulk(new.as_bytes());
    Ok(())
}

/// Gives a string another value; its expiry stays.
fn replace(cx: &mut Cx<'_>, key: &[u8], value: &[u8], event: &str) {
    let expire_ms = cx.slot(key).map_or(0, |slot| slot.expire_ms);
    put(cx, key, expire_ms, value, event);
}

/// Puts a string under a key, whatever is there.
fn put(cx: &mut Cx<'_>, key: &[u8], expire_ms: u64, value: &[u8], event: &str) {
    // Whether the key is new matters to those who hear of it alone.
    let is_new = cx.notifies() && cx.state().db(cx.db).get_any(key).is_none();
    let at = cx.at(key);
    cx.emit(&Record::SetString { at, expire_ms, value });
    cx.notify_new(is_new, key);
    cx.notify(EventClass::String, event, key);
}

/// The name that OBJECT ENCODING has for the way in which Redis would keep a value that was set as it is.
pub fn encoding(value: &Value) -> &'static str {
    /// Longest string that Redis keeps in one piece with its header.
    const EMBEDDED_MAX_BYTES: usize = 44;
    match value {
        Value::Stream(_) => "stream",
        Value::String(bytes) if parse::integer(bytes).is_some() => "int",
        Value::String(bytes) if bytes.len() <= EMBEDDED_MAX_BYTES => "embstr",
        Value::String(_) => "raw",
    }
}
