//! Commands about keys whatever they hold, and about whole databases.

use super::strings;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::command::table::CommandId;
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::limits::DATABASES;
use crate::record::{At, Record};
use crate::resp::encode::Reply;

/// A 32-bit integer argument.
pub fn small_int(text: &[u8]) -> Result<i32, Fault> {
    let range = || format!("ERR value is out of range, value must between {} and {}", i32::MIN, i32::MAX);
    i32::try_from(parse::int(text)?).map_err(|_| Fault::owned(range()))
}

/// Number of databases that clients can reach.
pub fn database_count(cx: &Cx<'_>) -> usize {
    (cx.settings().databases as usize).min(DATABASES)
}

/// The number of a database.
pub fn database(cx: &Cx<'_>, text: &[u8]) -> Result<usize, Fault> {
    in_range(cx, small_int(text)?)
}

fn in_range(cx: &Cx<'_>, number: i32) -> Result<usize, Fault> {
    usize::try_from(number).ok().filter(|&number| number < database_count(cx)).ok_or(Fault::DB_RANGE)
}

/// DEL, UNLINK key …
pub fn del(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let mut deleted = 0;
    for key in args.from(1).iter() {
        if cx.slot(key).is_some() {
            let at = cx.at(key);
            cx.emit(&Record::Delete { at });
            cx.notify(EventClass::Generic, "del", key);
            deleted += 1;
        }
    }
    reply.int(deleted);
    Ok(())
}

/// EXISTS, TOUCH key …; a key that is named twice counts twice.
pub fn exists(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let found = args.from(1).iter().filter(|key| cx.slot(key).is_some()).count();
    reply.count(found as u64);
    Ok(())
}

/// TYPE key
pub fn type_of(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.simple(cx.slot(args.get(1)).map_or("none", |slot| slot.value.type_name()));
    Ok(())
}

/// RENAME key newkey
pub fn rename(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, to) = (args.get(1), args.get(2));
    if cx.slot(key).is_none() {
        return Err(Fault::NO_SUCH_KEY);
    }
    if key != to {
        give_name(cx, key, to);
    }
    reply.ok();
    Ok(())
}

/// RENAMENX key newkey
pub fn renamenx(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, to) = (args.get(1), args.get(2));
    if cx.slot(key).is_none() {
        return Err(Fault::NO_SUCH_KEY);
    }
    // A key's own name is taken.
    let free = cx.slot(to).is_none();
    if free {
        give_name(cx, key, to);
    }
    reply.int(free.into());
    Ok(())
}

fn give_name(cx: &mut Cx<'_>, key: &[u8], to: &[u8]) {
    let at = cx.at(key);
    cx.emit(&Record::Rename { at, to });
    // What had the name before is gone, so that this one is new, as it is in Redis.
    cx.notify_new(true, to);
    cx.notify(EventClass::Generic, "rename_from", key);
    cx.notify(EventClass::Generic, "rename_to", to);
}

/// COPY source destination [DB n] [REPLACE]
pub fn copy(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, to_key) = (args.get(1), args.get(2));
    let (mut to_db, mut replace) = (cx.db, false);
    let mut place = 3;
    while place < args.len() {
        if is(args.get(place), "REPLACE") {
            replace = true;
        } else if is(args.get(place), "DB") && place + 1 < args.len() {
            place += 1;
            to_db = database(cx, args.get(place))?;
        } else {
            return Err(Fault::SYNTAX);
        }
        place += 1;
    }
    if to_db == cx.db && key == to_key {
        return Err(Fault::SAME_OBJECT);
    }
    let found = cx.slot(key).is_some();
    if !found {
        cx.notify(EventClass::Miss, "keymiss", key);
    }
    let done = found && (cx.slot_in(to_db, to_key).is_none() || replace);
    if done {
        let at = cx.at(key);
        cx.emit(&Record::Copy { at, to: At { db: to_db, key: to_key } });
        cx.notify_in(to_db, EventClass::New, "new", to_key);
        cx.notify_in(to_db, EventClass::Generic, "copy_to", to_key);
    }
    reply.int(done.into());
    Ok(())
}

/// MOVE key db
pub fn move_to(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let db = database(cx, args.get(2))?;
    if db == cx.db {
        return Err(Fault::SAME_OBJECT);
    }
    let done = cx.slot(key).is_some() && cx.slot_in(db, key).is_none();
    if done {
        let at = cx.at(key);
        cx.emit(&Record::Move { at, db });
        cx.notify_in(db, EventClass::New, "new", key);
        cx.notify(EventClass::Generic, "move_from", key);
        cx.notify_in(db, EventClass::Generic, "move_to", key);
    }
    reply.int(done.into());
    Ok(())
}

/// FLUSHDB, FLUSHALL [SYNC|ASYNC]. What was removed is always freed bit by bit.
pub fn flush(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let good = match args.len() {
        1 => true,
        2 => is(args.get(1), "SYNC") || is(args.get(1), "ASYNC"),
        _ => false,
    };
    if !good {
        return Err(Fault::SYNTAX);
    }
    let (db, empty) = if cx.spec.id == CommandId::FlushDb {
        (Some(cx.db), cx.state().db(cx.db).is_empty())
    } else {
        (None, cx.state().key_count() == 0)
    };
    if empty {
        cx.depends_on_all();
    } else {
        cx.emit(&Record::Flush { db });
    }
    reply.ok();
    Ok(())
}

/// SWAPDB a b
pub fn swapdb(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let a = small_int(args.get(1)).map_err(|_| Fault::DB_INVALID_FIRST)?;
    let b = small_int(args.get(2)).map_err(|_| Fault::DB_INVALID_SECOND)?;
    let (a, b) = (in_range(cx, a)?, in_range(cx, b)?);
    if a != b {
        cx.emit(&Record::SwapDb { a, b });
    }
    reply.ok();
    Ok(())
}

/// OBJECT ENCODING, REFCOUNT, IDLETIME, FREQ key. When a key was last used is not kept: every use is now.
pub fn object(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let Some(slot) = cx.slot(args.get(2)) else {
        reply.null();
        return Ok(());
    };
    match cx.spec.id {
        CommandId::ObjectEncoding => reply.bulk(strings::encoding(&slot.value).as_bytes()),
        CommandId::ObjectRefCount => reply.int(1),
        CommandId::ObjectIdleTime => reply.int(0),
        _ => return Err(Fault::NO_LFU),
    }
    Ok(())
}
