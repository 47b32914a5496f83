//! When keys expire: EXPIRE and its kin, TTL and its kin, PERSIST, and times as other commands read them.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::command::table::CommandId;
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::record::Record;
use crate::resp::encode::Reply;

/// How a time is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    seconds: bool,
    /// A point in time, not a span from now on.
    absolute: bool,
}

impl Unit {
    /// Seconds from now on.
    pub const SECONDS: Unit = Unit { seconds: true, absolute: false };
    /// Milliseconds from now on.
    pub const MILLISECONDS: Unit = Unit { seconds: false, absolute: false };
    const UNIX_SECONDS: Unit = Unit { seconds: true, absolute: true };
    const UNIX_MILLISECONDS: Unit = Unit { seconds: false, absolute: true };

    /// EX, PX, EXAT or PXAT.
    pub fn option(word: &[u8]) -> Option<Unit> {
        let units = [
            ("EX", Unit::SECONDS),
            ("PX", Unit::MILLISECONDS),
            ("EXAT", Unit::UNIX_SECONDS),
            ("PXAT", Unit::UNIX_MILLISECONDS),
        ];
        units.into_iter().find(|(name, _)| is(word, name)).map(|(_, unit)| unit)
    }

    /// A value as Unix ms; `None` when it does not fit.
    fn to_unix_ms(self, value: i64, now_ms: u64) -> Option<i64> {
        let ms = if self.seconds { value.checked_mul(1000)? } else { value };
        if self.absolute { Some(ms) } else { ms.checked_add(now_ms as i64) }
    }
}

fn invalid(command: &str) -> Fault {
    Fault::owned(format!("ERR invalid expire time in '{command}' command"))
}

/// A time that must be greater than 0, as SET and GETEX take it, as Unix ms.
pub fn positive(text: &[u8], unit: Unit, now_ms: u64, command: &str) -> Result<u64, Fault> {
    let value = parse::int(text)?;
    match unit.to_unix_ms(value, now_ms) {
        Some(at_ms) if value > 0 => Ok(at_ms as u64),
        _ => Err(invalid(command)),
    }
}

/// Lets an existing key expire at a time; a time that is over deletes it now.
pub fn set(cx: &mut Cx<'_>, key: &[u8], expire_ms: u64) {
    let at = cx.at(key);
    if expire_ms <= cx.now_ms() {
        cx.emit(&Record::Delete { at });
        cx.notify(EventClass::Generic, "del", key);
    } else {
        cx.emit(&Record::Expire { at, expire_ms });
        cx.notify(EventClass::Generic, "expire", key);
    }
}

/// Options of EXPIRE.
#[derive(Debug, Default)]
struct Condition {
    none_yet: bool,
    some_already: bool,
    later: bool,
    earlier: bool,
}

impl Condition {
    fn parse(words: Args<'_>) -> Result<Condition, Fault> {
        let mut condition = Condition::default();
        for word in words.iter() {
            if is(word, "NX") {
                condition.none_yet = true;
            } else if is(word, "XX") {
                condition.some_already = true;
            } else if is(word, "GT") {
                condition.later = true;
            } else if is(word, "LT") {
                condition.earlier = true;
            } else {
                return Err(Fault::concat(&[b"ERR Unsupported option ", word]));
            }
        }
        if condition.none_yet && (condition.some_already || condition.later || condition.earlier) {
            return Err(Fault::EXPIRE_NX_WITH_OTHERS);
        }
        if condition.later && condition.earlier {
            return Err(Fault::EXPIRE_GT_AND_LT);
        }
        Ok(condition)
    }

    /// `old_ms`: when the key expires now. A key that never does counts as infinitely late.
    fn holds(&self, old_ms: Option<i64>, new_ms: i64) -> bool {
        !((self.none_yet && old_ms.is_some())
            || (self.some_already && old_ms.is_none())
            || (self.later && old_ms.is_none_or(|old_ms| new_ms <= old_ms))
            || (self.earlier && old_ms.is_some_and(|old_ms| new_ms >= old_ms)))
    }
}

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT key time [NX|XX] [GT|LT]
pub fn expire(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let unit = match cx.spec.id {
        CommandId::Expire => Unit::SECONDS,
        CommandId::PExpire => Unit::MILLISECONDS,
        CommandId::ExpireAt => Unit::UNIX_SECONDS,
        _ => Unit::UNIX_MILLISECONDS,
    };
    let key = args.get(1);
    let condition = Condition::parse(args.from(3))?;
    let value = parse::int(args.get(2))?;
    let at_ms = unit.to_unix_ms(value, cx.now_ms()).ok_or_else(|| invalid(cx.spec.name))?;
    let done = match cx.slot(key) {
        Some(slot) => condition.holds((slot.expire_ms != 0).then_some(slot.expire_ms as i64), at_ms),
        None => false,
    };
    if done {
        set(cx, key, u64::try_from(at_ms).unwrap_or(0));
    }
    reply.int(done.into());
    Ok(())
}

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME key
pub fn ttl(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    const NO_KEY: i64 = -2;
    const NO_EXPIRY: i64 = -1;
    let (seconds, absolute) = match cx.spec.id {
        CommandId::Ttl => (true, false),
        CommandId::PTtl => (false, false),
        CommandId::ExpireTime => (true, true),
        _ => (false, true),
    };
    reply.int(match cx.slot(args.get(1)) {
        None => NO_KEY,
        Some(slot) if slot.expire_ms == 0 => NO_EXPIRY,
        Some(slot) => {
            let ms = if absolute { slot.expire_ms } else { slot.expire_ms.saturating_sub(cx.now_ms()) };
            // Rounded, as Redis does.
            (if seconds { (ms + 500) / 1000 } else { ms }) as i64
        }
    });
    Ok(())
}

/// PERSIST key
pub fn persist(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(1);
    let expires = cx.slot(key).is_some_and(|slot| slot.expire_ms != 0);
    if expires {
        let at = cx.at(key);
        cx.emit(&Record::Expire { at, expire_ms: 0 });
        cx.notify(EventClass::Generic, "persist", key);
    }
    reply.int(expires.into());
    Ok(())
}
