//! XLEN, XRANGE, XREVRANGE, XREAD, XREADGROUP.

use super::Model;
use super::stream::{Id, Pending};
use super::value::{Answer, Value};
use super::words::{self, SYNTAX, Words, error, error_with, integer, is};

pub fn xlen(model: &mut Model, words: &Words) -> Answer {
    Ok(Value::count(model.stream(&words[1])?.map_or(0, |stream| stream.entries.len())))
}

pub fn xrange(model: &mut Model, words: &Words) -> Answer {
    range(model, words, false)
}

pub fn xrevrange(model: &mut Model, words: &Words) -> Answer {
    range(model, words, true)
}

fn range(model: &mut Model, words: &Words, reverse: bool) -> Answer {
    let (first, second) = if reverse { (&words[3], &words[2]) } else { (&words[2], &words[3]) };
    let (start, end) = (words::start(first)?, words::end(second)?);
    let (mut count, mut at) = (None, 4);
    while at < words.len() {
        if !is(&words[at], "COUNT") || at + 1 == words.len() {
            return error(SYNTAX);
        }
        count = Some(integer(&words[at + 1])?);
        at += 2;
    }
    let Some(stream) = model.stream(&words[1])? else { return Ok(Value::Array(Vec::new())) };
    if count.is_some_and(|count| count <= 0) {
        return Ok(Value::NullArray);
    }
    let mut ids: Vec<Id> = stream.entries.keys().copied().filter(|id| start <= *id && *id <= end).collect();
    if reverse {
        ids.reverse();
    }
    ids.truncate(count.map_or(usize::MAX, |count| count as usize));
    Ok(Value::Array(ids.into_iter().map(|id| stream.entry(id)).collect()))
}

/// A read as it is written.
struct Read<'w> {
    group: Option<(&'w [u8], &'w [u8])>,
    count: usize,
    block: Option<u64>,
    no_ack: bool,
    keys: &'w Words,
    ids: &'w Words,
}

fn parse<'w>(now: u64, words: &'w Words) -> Result<Read<'w>, Vec<u8>> {
    let for_group = is(&words[0], "XREADGROUP");
    let mut read = Read { group: None, count: usize::MAX, block: None, no_ack: false, keys: &[], ids: &[] };
    let mut at = 1;
    while at < words.len() {
        let follow = words.len() - at - 1;
        if is(&words[at], "COUNT") && follow >= 1 {
            let n = integer(&words[at + 1])?;
            read.count = if n > 0 { n as usize } else { usize::MAX };
            at += 2;
        } else if is(&words[at], "BLOCK") && follow >= 1 {
            let Some(ms) = words::number(&words[at + 1]) else {
                return error("ERR timeout is not an integer or out of range");
            };
            if ms < 0 {
                return error("ERR timeout is negative");
            }
            if ms > i64::MAX - 1 - now as i64 {
                return error("ERR timeout is out of range");
            }
            read.block = Some(ms as u64);
            at += 2;
        } else if is(&words[at], "STREAMS") && follow >= 1 {
            let rest = &words[at + 1..];
            if !rest.len().is_multiple_of(2) {
                return error(if for_group {
                    "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
                } else {
                    "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified."
                });
            }
            (read.keys, read.ids) = rest.split_at(rest.len() / 2);
            break;
        } else if is(&words[at], "GROUP") && follow >= 2 {
            if !for_group {
                return error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
            }
            read.group = Some((&words[at + 1], &words[at + 2]));
            at += 3;
        } else if is(&words[at], "NOACK") {
            if !for_group {
                return error("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");
            }
            read.no_ack = true;
            at += 1;
        } else {
            return error(SYNTAX);
        }
    }
    if read.keys.is_empty() {
        return error(SYNTAX);
    }
    if for_group && read.group.is_none() {
        return error("ERR Missing GROUP option for XREADGROUP");
    }
    Ok(read)
}

/// May this command wait? Only asked of commands that answered that there is nothing.
pub fn blocks(words: &Words) -> bool {
    (is(&words[0], "XREAD") || is(&words[0], "XREADGROUP")) && parse(0, words).is_ok_and(|read| read.block.is_some())
}

/// The keys of a read that was good.
pub fn keys_of(words: &Words) -> Vec<Vec<u8>> {
    parse(0, words).map(|read| read.keys.to_vec()).unwrap_or_default()
}

/// How long a read that was good wants to wait, in ms.
pub fn timeout_of(words: &Words) -> u64 {
    parse(0, words).ok().and_then(|read| read.block).unwrap_or(0)
}

impl Model {
    /// The command with `$` as the ID it stands for now.
    pub(super) fn resolve_dollars(&self, words: &Words) -> Vec<Vec<u8>> {
        let mut resolved = words.to_vec();
        if let Ok(read) = parse(0, words) {
            let first = words.len() - read.ids.len();
            for (place, (key, id)) in read.keys.iter().zip(read.ids).enumerate() {
                if id == b"$" {
                    let last = self.stream(key).ok().flatten().map_or(Id::MIN, |stream| stream.last);
                    resolved[first + place] = last.text().into_bytes();
                }
            }
        }
        resolved
    }
}

pub fn xread(model: &mut Model, words: &Words) -> Answer {
    let read = parse(model.now, words)?;
    let mut wanted = Vec::new();
    for (key, id) in read.keys.iter().zip(read.ids) {
        let stream = model.stream(key)?;
        wanted.push(match id.as_slice() {
            b"$" => Some(stream.map_or(Id::MIN, |stream| stream.last)),
            b"+" => None,
            b">" => {
                return error(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
                );
            }
            id => Some(words::id(id)?),
        });
    }
    let mut found = Vec::new();
    for (key, after) in read.keys.iter().zip(wanted) {
        let Some(stream) = model.stream(key)? else { continue };
        let all = stream.entries.keys().copied();
        let ids: Vec<Id> = match after {
            Some(after) => all.filter(|id| *id > after).take(read.count).collect(),
            None => all.last().into_iter().collect(),
        };
        if !ids.is_empty() {
            let entries = ids.into_iter().map(|id| stream.entry(id)).collect();
            found.push((Value::bulk(key), Value::Array(entries)));
        }
    }
    Ok(if found.is_empty() { Value::NullArray } else { Value::Streams(found) })
}

pub fn xreadgroup(model: &mut Model, words: &Words) -> Answer {
    let (now, again) = (model.now, model.again);
    let read = parse(now, words)?;
    let (group_name, consumer) = read.group.expect("asked by parse");
    // None is `>`.
    let mut wanted = Vec::new();
    for (key, id) in read.keys.iter().zip(read.ids) {
        if model.stream(key)?.is_none_or(|stream| !stream.groups.contains_key(group_name)) {
            return error_with(&[
                b"NOGROUP No such key '",
                key,
                b"' or consumer group '",
                group_name,
                b"' in XREADGROUP with GROUP option",
            ]);
        }
        let meaningless = |id: &str| {
            error(&format!(
                "ERR The {id} ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                 consumer by specifying a proper ID, or use the > ID to get new messages. The {id} ID would just \
                 return an empty result set."
            ))
        };
        wanted.push(match id.as_slice() {
            b">" => None,
            b"$" => return meaningless("$"),
            b"+" => return meaningless("+"),
            id => Some(words::id(id)?).filter(|id| *id < Id::MAX),
        });
    }
    let mut found = Vec::new();
    for (key, after) in read.keys.iter().zip(wanted) {
        let stream = model.stream_mut(key);
        let mut group = stream.groups.get(group_name).cloned().expect("asked before");
        let mut entries = Vec::new();
        match after {
            Some(after) => {
                group.seen(consumer, now, false);
                let own = group.pel.iter_mut().filter(|(id, of)| of.owner == consumer && **id > after);
                for (id, pending) in own.take(read.count) {
                    entries.push(stream.entry(*id));
                    if stream.entries.contains_key(id) {
                        pending.count = (pending.count + 1).min(i64::MAX as u64);
                        pending.time = now;
                    }
                }
                found.push((Value::bulk(key), Value::Array(entries)));
            }
            None => {
                let from = group.position;
                let new: Vec<Id> = stream.entries.keys().copied().filter(|id| *id > from).take(read.count).collect();
                // Seen when it asks and when it is served, not each time it is woken in vain.
                if !again || !new.is_empty() {
                    group.seen(consumer, now, !new.is_empty() && !read.no_ack);
                }
                for id in new {
                    entries.push(stream.entry(id));
                    group.read = stream.read_after(group.position, group.read, id);
                    group.position = id;
                    if !read.no_ack {
                        group.pel.insert(id, Pending { owner: consumer.to_vec(), time: now, count: 1 });
                    }
                }
                if !entries.is_empty() {
                    found.push((Value::bulk(key), Value::Array(entries)));
                }
            }
        }
        stream.groups.insert(group_name.to_vec(), group);
    }
    Ok(if found.is_empty() { Value::NullArray } else { Value::Streams(found) })
}
