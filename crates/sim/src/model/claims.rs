//! XCLAIM, XAUTOCLAIM, XNACK, XPENDING.

use super::Model;
use super::group::{Group, Holder, Pending, once_more};
use super::stream::{Id, Stream};
use super::value::{Answer, Value};
use super::waiting::Event;
use super::words::{self, SYNTAX, Words, error, error_with, integer, is};

fn group_of<'m>(model: &'m Model, name: &[u8], group: &[u8]) -> Result<(&'m Stream, &'m Group), Vec<u8>> {
    let found = model.stream(name)?.and_then(|stream| Some((stream, stream.groups.get(group)?)));
    match found {
        Some(found) => Ok(found),
        None => error_with(&[b"NOGROUP No such key '", name, b"' or consumer group '", group, b"'"]),
    }
}

pub fn xclaim(model: &mut Model, words: &Words) -> Answer {
    let (name, group_name, consumer, now) = (&words[1], &words[2], &words[3], model.now);
    group_of(model, name, group_name)?;
    let invalid = |what: &str| error(&format!("ERR Invalid {what} argument for XCLAIM"));
    let Some(min_idle) = words::number(&words[4]) else { return invalid("min-idle-time") };
    let min_idle = min_idle.max(0) as u64;
    let ids: Vec<Id> = words[5..].iter().map_while(|word| words::id(word).ok()).collect();
    let (mut time, mut retries, mut last_id, mut force, mut ids_only) = (now, None, Id::MIN, false, false);
    let mut at = 5 + ids.len();
    let past = |ms: i64| if ms < 0 || ms as u64 > now { now } else { ms as u64 };
    while at < words.len() {
        let word = &words[at];
        let value = words.get(at + 1);
        if is(word, "FORCE") {
            force = true;
            at += 1;
            continue;
        }
        if is(word, "JUSTID") {
            ids_only = true;
            at += 1;
            continue;
        }
        match value {
            Some(value) if is(word, "IDLE") => match words::number(value) {
                Some(ms) => time = past((now as i64).wrapping_sub(ms)),
                None => return invalid("IDLE option"),
            },
            Some(value) if is(word, "TIME") => match words::number(value) {
                Some(ms) => time = past(ms),
                None => return invalid("TIME option"),
            },
            Some(value) if is(word, "RETRYCOUNT") => match words::number(value) {
                Some(n) => retries = (n >= 0).then_some(n as u64),
                None => return invalid("RETRYCOUNT option"),
            },
            Some(value) if is(word, "LASTID") => last_id = words::id(value)?,
            _ => return error_with(&[b"ERR Unrecognized XCLAIM option '", word, b"'"]),
        }
        at += 2;
    }
    let (mut claimed, mut lost) = (Vec::new(), false);
    for id in ids {
        let stream = model.stream_mut(name);
        let group = stream.groups.get_mut(group_name).expect("asked before");
        if !stream.entries.contains_key(&id) {
            lost |= group.pel.remove(&id).is_some();
            continue;
        }
        let before = match group.pel.get(&id) {
            Some(pending) if pending.may_go(now, min_idle) => pending.count,
            // One that is deferred is taken by force; one that is not pending is made so.
            Some(Pending { holder: Holder::Deferred(_), count, .. }) if force => *count,
            None if force => 1,
            _ => continue,
        };
        let count = retries.unwrap_or(if ids_only { before } else { once_more(before) });
        stream.claim(group_name, id, consumer, time, count);
        claimed.push(if ids_only { id.value() } else { stream.entry(id) });
    }
    model.settle_claim(name, group_name, consumer, !claimed.is_empty(), lost);
    if time < now {
        model.signal_event(name, Event::Claimable);
    }
    let group = model.group_mut(name, group_name);
    if last_id > group.position {
        group.position = last_id;
        if model.stream_mut(name).retire() {
            model.touch(name);
        }
    }
    Ok(Value::Array(claimed))
}

impl Model {
    /// What XCLAIM and XAUTOCLAIM have in common at their end.
    fn settle_claim(&mut self, name: &[u8], group: &[u8], consumer: &[u8], any: bool, lost: bool) {
        let now = self.now;
        if lost {
            self.freed(name, group);
        }
        self.group_mut(name, group).seen(consumer, now, any);
        if any {
            self.signal_event(name, Event::Pending);
            self.signal_event(name, Event::Room);
        }
    }
}

pub fn xautoclaim(model: &mut Model, words: &Words) -> Answer {
    let (name, group_name, consumer, now) = (&words[1], &words[2], &words[3], model.now);
    let Some(min_idle) = words::number(&words[4]) else {
        return error("ERR Invalid min-idle-time argument for XAUTOCLAIM");
    };
    let min_idle = min_idle.max(0) as u64;
    let start = words::start(&words[5])?;
    let (mut count, mut ids_only, mut at) = (100, false, 6);
    while at < words.len() {
        if is(&words[at], "COUNT") && at + 1 < words.len() {
            let allowed = |n: &i64| (1..=i64::MAX / 16).contains(n);
            let Some(n) = words::number(&words[at + 1]).filter(allowed) else {
                return error("ERR COUNT must be > 0");
            };
            count = n as usize;
            at += 2;
        } else if is(&words[at], "JUSTID") {
            ids_only = true;
            at += 1;
        } else {
            return error(SYNTAX);
        }
    }
    group_of(model, name, group_name)?;
    let stream = model.stream_mut(name);
    let group = &stream.groups[group_name];
    // One that begins where the last one began, which found nothing in reach, is not bound by what it looks at.
    let again = group.scan_start == Some(start);
    let (mut claimed, mut gone, mut cursor) = (Vec::new(), Vec::new(), Id::MIN);
    let candidates: Vec<Id> = group.pel.keys().copied().filter(|id| *id >= start).collect();
    for (looked, id) in candidates.into_iter().enumerate() {
        if (looked == 10 * count && !again) || claimed.len() + gone.len() == count {
            cursor = id;
            break;
        }
        if !stream.entries.contains_key(&id) {
            stream.groups.get_mut(group_name).expect("asked before").pel.remove(&id);
            gone.push(id.value());
            continue;
        }
        let pending = &stream.groups[group_name].pel[&id];
        if pending.may_go(now, min_idle) {
            let count = if ids_only { pending.count } else { once_more(pending.count) };
            stream.claim(group_name, id, consumer, now, count);
            claimed.push(if ids_only { id.value() } else { stream.entry(id) });
        }
    }
    let nothing = claimed.len() + gone.len() == 0;
    let told_to_go_on = cursor > Id::MIN && (again || nothing);
    stream.groups.get_mut(group_name).expect("asked before").scan_start = told_to_go_on.then_some(start);
    model.settle_claim(name, group_name, consumer, !claimed.is_empty(), !gone.is_empty());
    Ok(Value::Array(vec![cursor.value(), Value::Array(claimed), Value::Array(gone)]))
}

pub fn xnack(model: &mut Model, words: &Words) -> Answer {
    let (name, group_name, now) = (&words[1], &words[2], model.now);
    group_of(model, name, group_name)?;
    let mode = ["SILENT", "FAIL", "FATAL"].into_iter().find(|mode| is(&words[3], mode));
    let Some(mode) = mode else { return error("ERR mode must be SILENT, FAIL, or FATAL") };
    let (mut ids, mut retries, mut force, mut due, mut at) = (None, None, false, None, 4);
    while at < words.len() {
        let word = &words[at];
        let number = words.get(at + 1).map(|value| words::number(value).filter(|n| *n >= 0));
        if is(word, "FORCE") {
            force = true;
            at += 1;
        } else if is(word, "IDS")
            && let Some(n) = number
        {
            let Some(n) = n.filter(|n| *n > 0) else { return error("ERR numids must be a positive integer") };
            let rest = &words[at + 2..];
            if n > rest.len() as i64 {
                return error("ERR number of IDs doesn't match numids");
            }
            ids = Some(&rest[..n as usize]);
            at += 2 + n as usize;
        } else if is(word, "RETRYCOUNT")
            && let Some(n) = number
        {
            let Some(n) = n else { return error("ERR Invalid RETRYCOUNT value, must be >= 0") };
            retries = Some(n as u64);
            at += 2;
        } else if is(word, "DELAY")
            && let Some(ms) = number
        {
            let fits = |ms: &i64| now + (*ms as u64) < i64::MAX as u64;
            let Some(ms) = ms.filter(fits) else {
                return error("ERR DELAY must be a number of milliseconds, 0 or more");
            };
            due = (ms > 0).then_some(now + ms as u64);
            at += 2;
        } else {
            return error_with(&[b"ERR Unrecognized XNACK option '", word, b"'"]);
        }
    }
    let Some(ids) = ids else { return error(SYNTAX) };
    let ids: Vec<Id> = ids.iter().map(|word| words::id(word)).collect::<Result<_, _>>()?;
    let stream = model.stream_mut(name);
    let mut given_back = 0;
    for id in ids {
        let before = stream.groups[group_name].pel.get(&id).map(|pending| pending.count);
        if before.is_none() && !(force && stream.entries.contains_key(&id)) {
            continue;
        }
        let before = before.unwrap_or(0);
        let count = retries.unwrap_or(match mode {
            "SILENT" => before.saturating_sub(1),
            "FAIL" => before,
            _ => i64::MAX as u64,
        });
        stream.give_back(group_name, id, count, due);
        given_back += 1;
    }
    if given_back > 0 {
        model.signal_event(name, Event::Claimable);
        model.signal_event(name, Event::Room);
    }
    Ok(Value::count(given_back))
}

pub fn xpending(model: &mut Model, words: &Words) -> Answer {
    let now = model.now;
    if words.len() == 3 {
        let (_, group) = group_of(model, &words[1], &words[2])?;
        let (Some(first), Some(last)) = (group.pel.keys().next(), group.pel.keys().next_back()) else {
            return Ok(Value::Array(vec![Value::Int(0), Value::Null, Value::Null, Value::NullArray]));
        };
        let holders = group.consumers.keys().map(|name| (name, group.pending_of(name))).filter(|(_, n)| *n > 0);
        let holders = holders.map(|(name, n)| Value::Array(vec![Value::bulk(name), Value::bulk(n.to_string())]));
        let holders = Value::Array(holders.collect());
        return Ok(Value::Array(vec![Value::count(group.pel.len()), first.value(), last.value(), holders]));
    }
    // No form is longer than that with everything.
    if words.len() > 9 {
        return error(SYNTAX);
    }
    // Only where there are words enough is IDLE the option.
    let with_idle = is(&words[3], "IDLE") && words.len() >= 6;
    let rest = if with_idle { &words[5..] } else { &words[3..] };
    let min_idle = if with_idle { integer(&words[4])?.max(0) as u64 } else { 0 };
    if rest.len() < 3 || (with_idle && rest.len() > 4) {
        return error(SYNTAX);
    }
    let count = integer(&rest[2])?.max(0) as usize;
    let (start, end) = (words::start(&rest[0])?, words::end(&rest[1])?);
    let (_, group) = group_of(model, &words[1], &words[2])?;
    let fits = |(id, pending): &(&Id, &Pending)| {
        start <= **id
            && **id <= end
            && (!with_idle || pending.may_go(now, min_idle))
            && rest.get(3).is_none_or(|name| pending.is_of(name))
    };
    let line = |(id, pending): (&Id, &Pending)| {
        let idle = Value::Int(pending.idle(now));
        Value::Array(vec![id.value(), Value::bulk(pending.owner()), idle, Value::Int(pending.count as i64)])
    };
    Ok(Value::Array(group.pel.iter().filter(fits).take(count).map(line).collect()))
}
