//! XINFO.

use super::group::{Consumer, Group, Held};
use super::groups::{misused, no_group};
use super::stream::{Id, Stream};
use super::value::{Answer, Value, named};
use super::words::{Words, error, integer, is};
use super::{Lag, Model};

fn existing<'m>(model: &'m Model, words: &Words) -> Result<&'m Stream, Vec<u8>> {
    model.stream(&words[2])?.map_or_else(|| error("ERR no such key"), Ok)
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
    ];
    fields.extend(stream.messages.info());
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
        let mut line = vec![id.value(), Value::bulk(pending.owner())];
        line.extend(times(pending.time, pending.count));
        Value::Array(line)
    });
    let consumers = group.consumers.iter().map(|(name, consumer)| {
        let own = group.pel.iter().filter(|(_, pending)| pending.is_of(name)).take(count);
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
        named("nacked-count", Value::count(group.released() + group.deferred())),
        named("pending", Value::Array(pending.collect())),
        named("consumers", Value::Array(consumers.collect())),
    ])
}

pub fn info_group_stats(model: &mut Model, words: &Words) -> Answer {
    let (stream, now) = (existing(model, words)?, model.now);
    let since = |time: u64| now.saturating_sub(time) as i64;
    let line = |(name, group): (&Vec<u8>, &Group)| {
        let owned = group.pel.values().filter(|pending| pending.idle(now) >= 0);
        let delayed = group.held.values().filter(|held| matches!(held, Held::Until(_))).count();
        let new = stream.entries.keys().find(|id| **id > group.position);
        let undelivered = group.held.keys().next().or(new);
        let release = [group.next_deferred(), group.next_held()].into_iter().flatten().min();
        Value::Map(vec![
            named("name", Value::bulk(name)),
            named("pending", Value::count(group.pel.len())),
            named("in-flight", Value::count(group.in_flight())),
            named("lag", model.lag_of(stream, group)),
            named("released", Value::count(group.released())),
            named("delayed", Value::count(group.deferred() + delayed)),
            named("held", Value::count(group.held.len() - delayed)),
            named("oldest-pending-ms", maybe(owned.map(|pending| pending.time).min().map(since))),
            named("oldest-undelivered-ms", maybe(undelivered.map(|id| since(id.0)))),
            named("next-release-ms", maybe(release.map(|due| due.saturating_sub(now) as i64))),
            named("acked-total", Value::Int(group.acked)),
            named("redelivered-total", Value::Int(group.redelivered)),
            named("max-pending", Value::count(group.max_pending)),
            named("max-pending-per-consumer", Value::count(group.max_pending_consumer)),
            named("key-field", group.key_field.as_ref().map_or(Value::Null, Value::bulk)),
        ])
    };
    Ok(Value::Array(stream.groups.iter().map(line).collect()))
}
