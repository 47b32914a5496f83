//! XCLAIM, XAUTOCLAIM, XPENDING.

use super::Model;
use super::stream::{Group, Id, Pending, Stream};
use super::value::{Answer, Value};
use super::words::{self, SYNTAX, Words, error, error_with, integer, is};

fn group_of<'m>(model: &'m Model, name: &[u8], group: &[u8]) -> Result<(&'m Stream, &'m Group), Vec<u8>> {
    let found = model.stream(name)?.and_then(|stream| Some((stream, stream.groups.get(group)?)));
    match found {
        Some(found) => Ok(found),
        None => error_with(&[b"NOGROUP No such key '", name, b"' or consumer group '", group, b"'"]),
    }
}

/// How long ago; a time in the future is now.
fn idle(now: u64, since: u64) -> u64 {
    now.saturating_sub(since)
}

/// The count after one more delivery; it stays a number that replies can show.
fn once_more(count: u64) -> u64 {
    (count + 1).min(i64::MAX as u64)
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
    let stream = model.stream_mut(name);
    let mut group = stream.groups.get(group_name).cloned().expect("asked before");
    group.position = group.position.max(last_id);
    let mut claimed = Vec::new();
    for id in ids {
        if !stream.entries.contains_key(&id) {
            group.pel.remove(&id);
            continue;
        }
        let known = group.pel.get(&id);
        if known.is_none_or(|pending| idle(now, pending.time) < min_idle) && !(known.is_none() && force) {
            continue;
        }
        let before = known.map_or(1, |pending| pending.count);
        let count = retries.unwrap_or(if ids_only { before } else { once_more(before) });
        group.pel.insert(id, Pending { owner: consumer.clone(), time, count });
        claimed.push(if ids_only { id.value() } else { stream.entry(id) });
    }
    group.seen(consumer, now, !claimed.is_empty());
    stream.groups.insert(group_name.clone(), group);
    Ok(Value::Array(claimed))
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
    let mut group = stream.groups.get(group_name).cloned().expect("asked before");
    let (mut claimed, mut gone, mut cursor) = (Vec::new(), Vec::new(), Id::MIN);
    let candidates: Vec<Id> = group.pel.keys().copied().filter(|id| *id >= start).collect();
    for (looked, id) in candidates.into_iter().enumerate() {
        if looked == 10 * count || claimed.len() + gone.len() == count {
            cursor = id;
            break;
        }
        if !stream.entries.contains_key(&id) {
            group.pel.remove(&id);
            gone.push(id.value());
            continue;
        }
        let pending = group.pel.get_mut(&id).expect("it was listed");
        if idle(now, pending.time) >= min_idle {
            let count = if ids_only { pending.count } else { once_more(pending.count) };
            *pending = Pending { owner: consumer.clone(), time: now, count };
            claimed.push(if ids_only { id.value() } else { stream.entry(id) });
        }
    }
    group.seen(consumer, now, !claimed.is_empty());
    stream.groups.insert(group_name.clone(), group);
    Ok(Value::Array(vec![cursor.value(), Value::Array(claimed), Value::Array(gone)]))
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
            && idle(now, pending.time) >= min_idle
            && rest.get(3).is_none_or(|name| pending.owner == *name)
    };
    let line = |(id, pending): (&Id, &Pending)| {
        let idle = Value::Int(idle(now, pending.time) as i64);
        Value::Array(vec![id.value(), Value::bulk(&pending.owner), idle, Value::Int(pending.count as i64)])
    };
    Ok(Value::Array(group.pel.iter().filter(fits).take(count).map(line).collect()))
}
