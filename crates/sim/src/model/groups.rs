//! XGROUP and XINFO.

use super::stream::{Consumer, Group, Id, Stream};
use super::value::{Answer, Value};
use super::words::{self, Words, error, error_with, integer, is};
use super::{Lag, Model};

fn misused<T>(words: &Words) -> Result<T, Vec<u8>> {
    error_with(&[
        b"ERR unknown subcommand or wrong number of arguments for '",
        &words[1],
        b"'. Try ",
        &words[0].to_ascii_uppercase(),
        b" HELP.",
    ])
}

fn no_group<T>(words: &Words) -> Result<T, Vec<u8>> {
    error_with(&[b"NOGROUP No such consumer group '", &words[3], b"' for key name '", &words[2], b"'"])
}

fn stream_of<'m>(model: &'m Model, words: &Words) -> Result<&'m Stream, Vec<u8>> {
    let missing = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
                   MKSTREAM option to create an empty stream automatically.";
    model.stream(&words[2])?.map_or_else(|| error(missing), Ok)
}

/// Is MKSTREAM there, and what is ENTRIESREAD?
fn options(words: &Words, create: bool) -> Result<(bool, Option<i64>), Vec<u8>> {
    let (mut make, mut read, mut at) = (false, None, 5);
    while at < words.len() {
        if create && is(&words[at], "MKSTREAM") {
            make = true;
            at += 1;
        } else if is(&words[at], "ENTRIESREAD") && at + 1 < words.len() {
            let n = integer(&words[at + 1])?;
            if n < -1 {
                return error("ERR value for ENTRIESREAD must be positive or -1");
            }
            read = Some(n);
            at += 2;
        } else {
            return misused(words);
        }
    }
    Ok((make, read.filter(|n| *n >= 0)))
}

pub fn create(model: &mut Model, words: &Words) -> Answer {
    let (make, read) = options(words, true)?;
    if model.stream(&words[2])?.is_none() && !make {
        stream_of(model, words)?;
    }
    if words.len() > 8 {
        return misused(words);
    }
    let stream = model.stream(&words[2])?;
    let position = match words[4].as_slice() {
        b"$" => stream.map_or(Id::MIN, |stream| stream.last),
        id => words::id(id)?,
    };
    if stream.is_some_and(|stream| stream.groups.contains_key(&words[3])) {
        return error("BUSYGROUP Consumer Group name already exists");
    }
    let stream = model.make_stream(&words[2]);
    let read = read.map(|n| n.min(stream.added));
    stream.groups.insert(words[3].clone(), Group { position, read, ..Group::default() });
    Ok(Value::Status("OK"))
}

pub fn setid(model: &mut Model, words: &Words) -> Answer {
    let (_, read) = options(words, false)?;
    let stream = stream_of(model, words)?;
    if !stream.groups.contains_key(&words[3]) {
        return no_group(words);
    }
    if words.len() > 7 {
        return misused(words);
    }
    let position = match words[4].as_slice() {
        b"$" => stream.last,
        b"-" => Id::MIN,
        b"+" => Id::MAX,
        id => words::id(id)?,
    };
    let read = read.map(|n| n.min(stream.added));
    let group = model.group_mut(&words[2], &words[3]);
    (group.position, group.read) = (position, read);
    Ok(Value::Status("OK"))
}

pub fn destroy(model: &mut Model, words: &Words) -> Answer {
    stream_of(model, words)?;
    let there = model.stream_mut(&words[2]).groups.remove(&words[3]).is_some();
    if there {
        model.signal(&words[2]);
    }
    Ok(Value::Int(there.into()))
}

pub fn create_consumer(model: &mut Model, words: &Words) -> Answer {
    let now = model.now;
    if !stream_of(model, words)?.groups.contains_key(&words[3]) {
        return no_group(words);
    }
    let group = model.group_mut(&words[2], &words[3]);
    if group.consumers.contains_key(&words[4]) {
        return Ok(Value::Int(0));
    }
    group.consumers.insert(words[4].clone(), Consumer { seen: now, active: None });
    Ok(Value::Int(1))
}

pub fn delete_consumer(model: &mut Model, words: &Words) -> Answer {
    // A sixth word would be IFEMPTY or RELEASE, which nobody here says.
    if words.len() == 6 {
        return error("ERR wrong number of arguments for 'xgroup|delconsumer' command");
    }
    if !stream_of(model, words)?.groups.contains_key(&words[3]) {
        return no_group(words);
    }
    let group = model.group_mut(&words[2], &words[3]);
    let had = group.pending_of(&words[4]);
    group.consumers.remove(&words[4]);
    group.pel.retain(|_, pending| pending.owner != words[4]);
    Ok(Value::count(had))
}

fn existing<'m>(model: &'m Model, words: &Words) -> Result<&'m Stream, Vec<u8>> {
    model.stream(&words[2])?.map_or_else(|| error("ERR no such key"), Ok)
}

fn named(name: &str, value: Value) -> (Value, Value) {
    (Value::bulk(name), value)
}

fn maybe(n: Option<i64>) -> Value {
    n.map_or(Value::Null, Value::Int)
}

impl Model {
    fn lag_of(&self, stream: &Stream, group: &Group) -> Value {
        match self.lag {
            Lag::Exact => Value::Int(stream.lag_exact(group)),
            Lag::Compat => maybe(stream.lag_compat(group)),
        }
    }
}

pub fn info_groups(model: &mut Model, words: &Words) -> Answer {
    let stream = existing(model, words)?;
    let line = |(name, group): (&Vec<u8>, &Group)| {
        Value::Map(vec![
            named("name", Value::bulk(name)),
            named("consumers", Value::count(group.consumers.len())),
            named("pending", Value::count(group.pel.len())),
            named("last-delivered-id", group.position.value()),
            named("entries-read", maybe(group.read)),
            named("lag", model.lag_of(stream, group)),
        ])
    };
    Ok(Value::Array(stream.groups.iter().map(line).collect()))
}

pub fn info_consumers(model: &mut Model, words: &Words) -> Answer {
    let Some(group) = existing(model, words)?.groups.get(&words[3]) else { return no_group(words) };
    let since = |time: u64| Value::Int(model.now.saturating_sub(time) as i64);
    let line = |(name, consumer): (&Vec<u8>, &Consumer)| {
        Value::Map(vec![
            named("name", Value::bulk(name)),
            named("pending", Value::count(group.pending_of(name))),
            named("idle", since(consumer.seen)),
            named("inactive", consumer.active.map_or(Value::Int(-1), since)),
        ])
    };
    Ok(Value::Array(group.consumers.iter().map(line).collect()))
}

pub fn info_stream(model: &mut Model, words: &Words) -> Answer {
    let stream = existing(model, words)?;
    let full = words.get(3).is_some_and(|word| is(word, "FULL"));
    let count = match words.len() {
        3 => 0,
        4 if full => 10,
        6 if full && is(&words[4], "COUNT") => match integer(&words[5])? {
            0 => usize::MAX,
            n if n < 0 => 10,
            n => n as usize,
        },
        _ => return misused(words),
    };
    let nodes = stream.node_count();
    let mut fields = vec![
        named("length", Value::count(stream.entries.len())),
        named("radix-tree-keys", Value::count(nodes)),
        named("radix-tree-nodes", Value::count(nodes + 1)),
        named("last-generated-id", stream.last.value()),
        named("max-deleted-entry-id", stream.max_deleted.value()),
        named("entries-added", Value::Int(stream.added)),
        named("recorded-first-entry-id", stream.first().value()),
        // Nobody here sends anything twice.
        named("idmp-duration", Value::count(100)),
        named("idmp-maxsize", Value::count(100)),
        named("pids-tracked", Value::count(0)),
        named("iids-tracked", Value::count(0)),
        named("iids-added", Value::count(0)),
        named("iids-duplicates", Value::count(0)),
    ];
    let ids: Vec<Id> = stream.entries.keys().copied().collect();
    if full {
        let entries = ids.iter().take(count).map(|id| stream.entry(*id)).collect();
        fields.push(named("entries", Value::Array(entries)));
        let groups = stream.groups.iter().map(|(name, group)| full_group(model, stream, name, group, count));
        fields.push(named("groups", Value::Array(groups.collect())));
    } else {
        fields.push(named("groups", Value::count(stream.groups.len())));
        let shown = |id: Option<&Id>| id.map_or(Value::Null, |id| stream.entry(*id));
        fields.push(named("first-entry", shown(ids.first())));
        fields.push(named("last-entry", shown(ids.last())));
    }
    Ok(Value::Map(fields))
}

fn full_group(model: &Model, stream: &Stream, name: &[u8], group: &Group, count: usize) -> Value {
    let times = |time: u64, deliveries: u64| [Value::Int(time as i64), Value::Int(deliveries as i64)];
    let pending = group.pel.iter().take(count).map(|(id, pending)| {
        let mut line = vec![id.value(), Value::bulk(&pending.owner)];
        line.extend(times(pending.time, pending.count));
        Value::Array(line)
    });
    let consumers = group.consumers.iter().map(|(name, consumer)| {
        let own = group.pel.iter().filter(|(_, pending)| pending.owner == *name).take(count);
        let own = own.map(|(id, pending)| {
            let mut line = vec![id.value()];
            line.extend(times(pending.time, pending.count));
            Value::Array(line)
        });
        Value::Map(vec![
            named("name", Value::bulk(name)),
            named("seen-time", Value::Int(consumer.seen as i64)),
            named("active-time", Value::Int(consumer.active.map_or(-1, |time| time as i64))),
            named("pel-count", Value::count(group.pending_of(name))),
            named("pending", Value::Array(own.collect())),
        ])
    });
    Value::Map(vec![
        named("name", Value::bulk(name)),
        named("last-delivered-id", group.position.value()),
        named("entries-read", maybe(group.read)),
        named("lag", model.lag_of(stream, group)),
        named("pel-count", Value::count(group.pel.len())),
        // Nobody here gives anything back.
        named("nacked-count", Value::count(0)),
        named("pending", Value::Array(pending.collect())),
        named("consumers", Value::Array(consumers.collect())),
    ])
}
