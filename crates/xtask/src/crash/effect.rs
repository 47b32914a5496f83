//! What a command of an owner does to the model.
//!
//! [`Command::run`] answers the reply that a right server gives, with the types of RESP2; of error replies only the
//! code counts.

use super::command::Command;
use super::model::{Data, Group, Id, Item, Keys, Pending, References, Span, Stream, ZERO, id_text};
use crate::resp::{Nil, Value};

impl Command {
    /// Carries it out on the model; `when` is the span in which the server did.
    pub fn run(&self, keys: &mut Keys, when: Span) -> Value {
        match self {
            Command::Add { .. }
            | Command::Trim { .. }
            | Command::Delete { .. }
            | Command::DeleteWith { .. }
            | Command::SetId { .. } => self.run_on_entries(keys),
            Command::Transaction(commands) => {
                Value::Array(commands.iter().map(|command| command.run(keys, when)).collect())
            }
            Command::GroupCreate { .. } | Command::GroupSetId { .. } | Command::GroupDestroy { .. } => {
                self.run_on_groups(keys)
            }
            Command::Read { .. }
            | Command::History { .. }
            | Command::Ack { .. }
            | Command::AckDelete { .. }
            | Command::Claim { .. }
            | Command::AutoClaim { .. }
            | Command::ConsumerCreate { .. }
            | Command::ConsumerDelete { .. } => self.run_in_group(keys, when),
            _ => self.run_on_keys(keys, when),
        }
    }

    fn run_on_entries(&self, keys: &mut Keys) -> Value {
        match self {
            Command::Add { key, id, fields, trim } => {
                if *id == ZERO || find(keys, key).is_some_and(|stream| *id <= stream.last) {
                    return error("ERR");
                }
                let stream = find_or_make(keys, key);
                stream.entries.insert(*id, fields.clone());
                (stream.last, stream.added) = (*id, stream.added + 1);
                if let Some((limit, references)) = trim {
                    stream.trim(*limit, *references);
                }
                bulk(&id_text(*id))
            }
            Command::Trim { key, limit, references } => {
                Value::Int(find(keys, key).map_or(0, |stream| stream.trim(*limit, *references)))
            }
            Command::Delete { key, ids } => {
                let deleted = find(keys, key).map_or(0, |stream| ids.iter().filter(|id| stream.delete(**id)).count());
                Value::Int(deleted as i64)
            }
            Command::DeleteWith { key, references, ids } => {
                let Some(stream) = find(keys, key) else {
                    return Value::Array(ids.iter().map(|_| Value::Int(-1)).collect());
                };
                let mut results = Vec::new();
                for id in ids {
                    if *references == References::Acked && !stream.is_free(*id) {
                        results.push(Value::Int(2));
                        continue;
                    }
                    if *references == References::Delete {
                        stream.forget(*id);
                    }
                    results.push(Value::Int(if stream.delete(*id) { 1 } else { -1 }));
                }
                Value::Array(results)
            }
            Command::SetId { key, last, added, max_deleted } => {
                let Some(stream) = find(keys, key) else { return error("ERR") };
                let below_top = stream.entries.keys().next_back().is_some_and(|top| last < top);
                let fewer = added.is_some_and(|n| !stream.entries.is_empty() && n < stream.entries.len() as u64);
                if max_deleted.is_some_and(|id| *last < id) || *last < stream.max_deleted || below_top || fewer {
                    return error("ERR");
                }
                stream.last = *last;
                stream.added = added.unwrap_or(stream.added);
                stream.max_deleted = max_deleted.filter(|id| *id > (0, 0)).unwrap_or(stream.max_deleted);
                ok()
            }
            _ => unreachable!("another family"),
        }
    }

    fn run_on_groups(&self, keys: &mut Keys) -> Value {
        match self {
            Command::GroupCreate { key, group, position, entries_read } => {
                if find(keys, key).is_some_and(|stream| stream.groups.contains_key(group)) {
                    return error("BUSYGROUP");
                }
                let stream = find_or_make(keys, key);
                let position = position.unwrap_or(stream.last);
                let entries_read = entries_read.map(|n| n.min(stream.added));
                stream.groups.insert(group.clone(), Group { position, entries_read, ..Group::default() });
                ok()
            }
            Command::GroupSetId { key, group, position, entries_read } => {
                let Some(stream) = find(keys, key) else { return error("ERR") };
                let (last, added) = (stream.last, stream.added);
                let Some(group) = stream.groups.get_mut(group) else { return error("NOGROUP") };
                group.position = position.unwrap_or(last);
                group.entries_read = entries_read.map(|n| n.min(added));
                ok()
            }
            Command::GroupDestroy { key, group } => {
                let Some(stream) = find(keys, key) else { return error("ERR") };
                Value::Int(i64::from(stream.groups.remove(group).is_some()))
            }
            _ => unreachable!("another family"),
        }
    }

    fn run_in_group(&self, keys: &mut Keys, when: Span) -> Value {
        match self {
            Command::Read { key, group, consumer, count, no_ack } => {
                let Some((stream, name)) = find_group(keys, key, group) else { return error("NOGROUP") };
                let whole = stream.clone();
                let group = stream.groups.get_mut(name).expect("just found");
                group.consumers.insert(consumer.clone());
                let mut given = Vec::new();
                for (id, fields) in whole.entries.range(next(group.position)..).take(*count) {
                    group.entries_read = whole.read_one_more(group.position, group.entries_read, *id);
                    group.position = *id;
                    if !no_ack {
                        let pending = Pending { consumer: consumer.clone(), count: 1, delivered: when };
                        group.pending.insert(*id, pending);
                    }
                    given.push(entry(*id, fields));
                }
                if given.is_empty() { Value::Nil(Nil::Array) } else { of_stream(key, given) }
            }
            Command::History { key, group, consumer, count, after } => {
                let Some((stream, name)) = find_group(keys, key, group) else { return error("NOGROUP") };
                let group = stream.groups.get_mut(name).expect("just found");
                group.consumers.insert(consumer.clone());
                let mut given = Vec::new();
                let own = group.pending.range_mut(next(*after)..).filter(|(_, pending)| pending.consumer == *consumer);
                for (id, pending) in own.take(*count) {
                    match stream.entries.get(id) {
                        Some(fields) => {
                            (pending.count, pending.delivered) = (pending.count + 1, when);
                            given.push(entry(*id, fields));
                        }
                        None => given.push(Value::Array(vec![bulk(&id_text(*id)), Value::Nil(Nil::Array)])),
                    }
                }
                of_stream(key, given)
            }
            Command::Ack { key, group, ids } => {
                let Some((stream, name)) = find_group(keys, key, group) else { return Value::Int(0) };
                let group = stream.groups.get_mut(name).expect("just found");
                Value::Int(ids.iter().filter(|id| group.pending.remove(id).is_some()).count() as i64)
            }
            Command::AckDelete { key, group, references, ids } => {
                let Some((stream, name)) = find_group(keys, key, group) else {
                    return Value::Array(ids.iter().map(|_| Value::Int(-1)).collect());
                };
                let mut results = Vec::new();
                for id in ids {
                    if stream.groups.get_mut(name).expect("just found").pending.remove(id).is_none() {
                        results.push(Value::Int(-1));
                        continue;
                    }
                    if *references == References::Delete {
                        stream.forget(*id);
                    }
                    let stays = *references == References::Acked && !stream.is_free(*id);
                    if !stays {
                        stream.delete(*id);
                    }
                    results.push(Value::Int(if stays { 2 } else { 1 }));
                }
                Value::Array(results)
            }
            Command::Claim { key, group, consumer, idle, ids, options } => {
                let Some((stream, name)) = find_group(keys, key, group) else { return error("NOGROUP") };
                let group = stream.groups.get_mut(name).expect("just found");
                if let Some(last) = options.last_id {
                    group.position = group.position.max(last);
                }
                group.consumers.insert(consumer.clone());
                let delivered = match (options.idle_ms, options.time_ms) {
                    (Some(ms), _) => when.shifted(-ms),
                    (None, Some(ms)) => Span::exact(ms),
                    (None, None) => when,
                };
                let mut given = Vec::new();
                for id in ids {
                    let Some(fields) = stream.entries.get(id) else {
                        group.pending.remove(id);
                        continue;
                    };
                    let (known, plus) = (group.pending.get(id), i64::from(!options.just_id));
                    let count = match known {
                        Some(pending) if *idle => pending.count + plus,
                        None if options.force => 1 + plus,
                        _ => continue,
                    };
                    let count = options.retry_count.unwrap_or(count);
                    group.pending.insert(*id, Pending { consumer: consumer.clone(), count, delivered });
                    given.push(if options.just_id { bulk(&id_text(*id)) } else { entry(*id, fields) });
                }
                Value::Array(given)
            }
            Command::AutoClaim { key, group, consumer, idle, start, count, just_id } => {
                let Some((stream, name)) = find_group(keys, key, group) else { return error("NOGROUP") };
                let group = stream.groups.get_mut(name).expect("just found");
                group.consumers.insert(consumer.clone());
                let (mut given, mut gone, mut left, mut looked) = (Vec::new(), Vec::new(), *count, 0);
                let mut cursor = (0, 0);
                for id in group.pending.range(*start..).map(|(id, _)| *id).collect::<Vec<Id>>() {
                    if left == 0 || looked == 10 * count {
                        cursor = id;
                        break;
                    }
                    looked += 1;
                    let Some(fields) = stream.entries.get(&id) else {
                        group.pending.remove(&id);
                        gone.push(bulk(&id_text(id)));
                        left -= 1;
                        continue;
                    };
                    if !idle {
                        continue;
                    }
                    let pending = group.pending.get_mut(&id).expect("just listed");
                    pending.count += i64::from(!just_id);
                    (pending.consumer, pending.delivered) = (consumer.clone(), when);
                    given.push(if *just_id { bulk(&id_text(id)) } else { entry(id, fields) });
                    left -= 1;
                }
                Value::Array(vec![bulk(&id_text(cursor)), Value::Array(given), Value::Array(gone)])
            }
            Command::ConsumerCreate { key, group, consumer } => {
                let Some(stream) = find(keys, key) else { return error("ERR") };
                let Some(group) = stream.groups.get_mut(group) else { return error("NOGROUP") };
                Value::Int(i64::from(group.consumers.insert(consumer.clone())))
            }
            Command::ConsumerDelete { key, group, consumer } => {
                let Some(stream) = find(keys, key) else { return error("ERR") };
                let Some(group) = stream.groups.get_mut(group) else { return error("NOGROUP") };
                let before = group.pending.len();
                group.consumers.remove(consumer);
                group.pending.retain(|_, pending| pending.consumer != *consumer);
                Value::Int((before - group.pending.len()) as i64)
            }
            _ => unreachable!("another family"),
        }
    }

    fn run_on_keys(&self, keys: &mut Keys, when: Span) -> Value {
        match self {
            Command::Set { key, value } => {
                keys.insert(key.clone(), Item { data: Data::Text(value.clone()), deadline: None });
                ok()
            }
            Command::Increment { key } => {
                let text = text(keys, key, "0");
                match text.parse::<i64>().ok().filter(|n| n.to_string() == *text).and_then(|n| n.checked_add(1)) {
                    Some(sum) => {
                        *text = sum.to_string();
                        Value::Int(sum)
                    }
                    None => error("ERR"),
                }
            }
            Command::Append { key, value } => {
                let text = text(keys, key, "");
                text.push_str(value);
                Value::Int(text.len() as i64)
            }
            Command::Remove { keys: names } => {
                Value::Int(names.iter().filter(|name| keys.remove(*name).is_some()).count() as i64)
            }
            Command::Expire { key, seconds } => {
                let item = keys.get_mut(key);
                Value::Int(i64::from(item.is_some_and(|item| {
                    item.deadline = Some(when.shifted(seconds * 1000));
                    true
                })))
            }
            Command::Persist { key } => {
                Value::Int(i64::from(keys.get_mut(key).is_some_and(|item| item.deadline.take().is_some())))
            }
            Command::Rename { from, to } => match keys.remove(from) {
                Some(item) => {
                    keys.insert(to.clone(), item);
                    ok()
                }
                None => error("ERR"),
            },
            Command::Copy { from, to, replace } => match keys.get(from).cloned() {
                Some(item) if *replace || !keys.contains_key(to) => {
                    keys.insert(to.clone(), item);
                    Value::Int(1)
                }
                _ => Value::Int(0),
            },
            _ => unreachable!("another family"),
        }
    }
}

/// A reply on one line, for people.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::Nil(_) => "nil".to_owned(),
        scalar => scalar.text(),
    }
}

/// Whether a reply is the wanted one. Of errors only the code counts, also inside a transaction.
pub fn same_reply(wanted: &Value, got: &Value) -> bool {
    match (wanted, got) {
        (Value::Error(code), Value::Error(text)) => text.split(|byte| *byte == b' ').next() == Some(code),
        (Value::Array(wanted), Value::Array(got)) => {
            wanted.len() == got.len() && wanted.iter().zip(got).all(|(wanted, got)| same_reply(wanted, got))
        }
        _ => wanted == got,
    }
}

fn find<'a>(keys: &'a mut Keys, key: &str) -> Option<&'a mut Stream> {
    match keys.get_mut(key).map(|item| &mut item.data) {
        Some(Data::Stream(stream)) => Some(stream),
        _ => None,
    }
}

/// The stream, if it has the group; the name is handed back so that both can be used.
fn find_group<'a, 'b>(keys: &'a mut Keys, key: &str, group: &'b str) -> Option<(&'a mut Stream, &'b str)> {
    find(keys, key).filter(|stream| stream.groups.contains_key(group)).map(|stream| (stream, group))
}

fn find_or_make<'a>(keys: &'a mut Keys, key: &str) -> &'a mut Stream {
    let empty = || Item { data: Data::Stream(Stream::default()), deadline: None };
    match &mut keys.entry(key.to_owned()).or_insert_with(empty).data {
        Data::Stream(stream) => stream,
        Data::Text(_) => unreachable!("stream and string keys never mix"),
    }
}

fn text<'a>(keys: &'a mut Keys, key: &str, first: &str) -> &'a mut String {
    let new = || Item { data: Data::Text(first.to_owned()), deadline: None };
    match &mut keys.entry(key.to_owned()).or_insert_with(new).data {
        Data::Text(text) => text,
        Data::Stream(_) => unreachable!("stream and string keys never mix"),
    }
}

/// The least id above this one.
fn next(id: Id) -> Id {
    if id.1 == u64::MAX { (id.0 + 1, 0) } else { (id.0, id.1 + 1) }
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn error(code: &str) -> Value {
    Value::Error(code.into())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

fn entry(id: Id, fields: &[String]) -> Value {
    Value::Array(vec![bulk(&id_text(id)), Value::Array(fields.iter().map(|field| bulk(field)).collect())])
}

fn of_stream(key: &str, entries: Vec<Value>) -> Value {
    Value::Array(vec![Value::Array(vec![bulk(key), Value::Array(entries)])])
}
