//! The commands of an owner: how each is written, and what it does to the model.
//!
//! [`Command::run`] answers the reply that a right server gives, with the types of RESP2; of error replies only the
//! code counts. Every command carries explicit ids, so that its effect is the same whenever it is carried out.

use super::model::{Data, Group, Id, Item, Keys, Limit, Pending, References, Span, Stream, ZERO, id_text};
use crate::resp::{Nil, Value};

/// One command. `key` is always a whole key; stream and string keys never mix.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// XADD
    Add { key: String, id: Id, fields: Vec<String>, trim: Option<(Limit, References)> },
    /// XTRIM
    Trim { key: String, limit: Limit, references: References },
    /// XDEL
    Delete { key: String, ids: Vec<Id> },
    /// XDELEX
    DeleteWith { key: String, references: References, ids: Vec<Id> },
    /// XACKDEL
    AckDelete { key: String, group: String, references: References, ids: Vec<Id> },
    /// XSETID
    SetId { key: String, last: Id, added: Option<u64>, max_deleted: Option<Id> },
    /// XREADGROUP with `>`
    Read { key: String, group: String, consumer: String, count: usize, no_ack: bool },
    /// XREADGROUP with an id
    History { key: String, group: String, consumer: String, count: usize, after: Id },
    /// XACK
    Ack { key: String, group: String, ids: Vec<Id> },
    /// XCLAIM
    Claim { key: String, group: String, consumer: String, idle: bool, ids: Vec<Id>, options: ClaimOptions },
    /// XAUTOCLAIM
    AutoClaim { key: String, group: String, consumer: String, idle: bool, start: Id, count: usize, just_id: bool },
    /// XGROUP CREATE … MKSTREAM
    GroupCreate { key: String, group: String, position: Option<Id>, entries_read: Option<u64> },
    /// XGROUP SETID
    GroupSetId { key: String, group: String, position: Option<Id>, entries_read: Option<u64> },
    /// XGROUP DESTROY
    GroupDestroy { key: String, group: String },
    /// XGROUP CREATECONSUMER
    ConsumerCreate { key: String, group: String, consumer: String },
    /// XGROUP DELCONSUMER
    ConsumerDelete { key: String, group: String, consumer: String },
    /// SET
    Set { key: String, value: String },
    /// INCR
    Increment { key: String },
    /// APPEND
    Append { key: String, value: String },
    /// DEL
    Remove { keys: Vec<String> },
    /// EXPIRE
    Expire { key: String, seconds: i64 },
    /// PERSIST
    Persist { key: String },
    /// RENAME
    Rename { from: String, to: String },
    /// COPY
    Copy { from: String, to: String, replace: bool },
    /// MULTI, these, EXEC
    Transaction(Vec<Command>),
}

/// What else XCLAIM is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimOptions {
    /// IDLE, in ms.
    pub idle_ms: Option<i64>,
    /// TIME, Unix time in ms, of the past.
    pub time_ms: Option<i64>,
    /// RETRYCOUNT
    pub retry_count: Option<i64>,
    /// FORCE
    pub force: bool,
    /// JUSTID
    pub just_id: bool,
    /// LASTID
    pub last_id: Option<Id>,
}

/// A min-idle-time that nothing reaches: more than any idle time the load gives.
const NEVER_IDLE_MS: &str = "1000000000000";

impl Command {
    /// The words on the wire. Those of a transaction are its commands, see [`Command::parts`].
    pub fn words(&self) -> Vec<String> {
        match self {
            Command::Add { key, id, fields, trim } => {
                let mut words = list(&["XADD", key]);
                if let Some((limit, references)) = trim {
                    words.extend(references_word(*references));
                    words.extend(limit_words(*limit));
                }
                words.push(id_text(*id));
                words.extend_from_slice(fields);
                words
            }
            Command::Trim { key, limit, references } => {
                let mut words = list(&["XTRIM", key]);
                words.extend(limit_words(*limit));
                words.extend(references_word(*references));
                words
            }
            Command::Delete { key, ids } => with_ids(list(&["XDEL", key]), ids),
            Command::DeleteWith { key, references, ids } => {
                let mut words = list(&["XDELEX", key]);
                words.extend(references_word(*references));
                words.extend(["IDS".to_owned(), ids.len().to_string()]);
                with_ids(words, ids)
            }
            Command::AckDelete { key, group, references, ids } => {
                let mut words = list(&["XACKDEL", key, group]);
                words.extend(references_word(*references));
                words.extend(["IDS".to_owned(), ids.len().to_string()]);
                with_ids(words, ids)
            }
            Command::SetId { key, last, added, max_deleted } => {
                let mut words = list(&["XSETID", key, &id_text(*last)]);
                words.extend(added.iter().flat_map(|n| list(&["ENTRIESADDED", &n.to_string()])));
                words.extend(max_deleted.iter().flat_map(|id| list(&["MAXDELETEDID", &id_text(*id)])));
                words
            }
            Command::Read { key, group, consumer, count, no_ack } => {
                let mut words = list(&["XREADGROUP", "GROUP", group, consumer, "COUNT", &count.to_string()]);
                words.extend(no_ack.then(|| "NOACK".to_owned()));
                words.extend(list(&["STREAMS", key, ">"]));
                words
            }
            Command::History { key, group, consumer, count, after } => {
                let (count, after) = (count.to_string(), id_text(*after));
                list(&["XREADGROUP", "GROUP", group, consumer, "COUNT", &count, "STREAMS", key, &after])
            }
            Command::Ack { key, group, ids } => with_ids(list(&["XACK", key, group]), ids),
            Command::Claim { key, group, consumer, idle, ids, options } => {
                let least = if *idle { "0" } else { NEVER_IDLE_MS };
                let mut words = with_ids(list(&["XCLAIM", key, group, consumer, least]), ids);
                words.extend(options.idle_ms.iter().flat_map(|n| list(&["IDLE", &n.to_string()])));
                words.extend(options.time_ms.iter().flat_map(|n| list(&["TIME", &n.to_string()])));
                words.extend(options.retry_count.iter().flat_map(|n| list(&["RETRYCOUNT", &n.to_string()])));
                words.extend(options.force.then(|| "FORCE".to_owned()));
                words.extend(options.just_id.then(|| "JUSTID".to_owned()));
                words.extend(options.last_id.iter().flat_map(|id| list(&["LASTID", &id_text(*id)])));
                words
            }
            Command::AutoClaim { key, group, consumer, idle, start, count, just_id } => {
                let least = if *idle { "0" } else { NEVER_IDLE_MS };
                let (start, count) = (id_text(*start), count.to_string());
                let mut words = list(&["XAUTOCLAIM", key, group, consumer, least, &start, "COUNT", &count]);
                words.extend(just_id.then(|| "JUSTID".to_owned()));
                words
            }
            Command::GroupCreate { key, group, position, entries_read } => {
                let mut words = list(&["XGROUP", "CREATE", key, group, &position_word(*position), "MKSTREAM"]);
                words.extend(entries_read.iter().flat_map(|n| list(&["ENTRIESREAD", &n.to_string()])));
                words
            }
            Command::GroupSetId { key, group, position, entries_read } => {
                let mut words = list(&["XGROUP", "SETID", key, group, &position_word(*position)]);
                words.extend(entries_read.iter().flat_map(|n| list(&["ENTRIESREAD", &n.to_string()])));
                words
            }
            Command::GroupDestroy { key, group } => list(&["XGROUP", "DESTROY", key, group]),
            Command::ConsumerCreate { key, group, consumer } => {
                list(&["XGROUP", "CREATECONSUMER", key, group, consumer])
            }
            Command::ConsumerDelete { key, group, consumer } => list(&["XGROUP", "DELCONSUMER", key, group, consumer]),
            Command::Set { key, value } => list(&["SET", key, value]),
            Command::Increment { key } => list(&["INCR", key]),
            Command::Append { key, value } => list(&["APPEND", key, value]),
            Command::Remove { keys } => [list(&["DEL"]), keys.clone()].concat(),
            Command::Expire { key, seconds } => list(&["EXPIRE", key, &seconds.to_string()]),
            Command::Persist { key } => list(&["PERSIST", key]),
            Command::Rename { from, to } => list(&["RENAME", from, to]),
            Command::Copy { from, to, replace } => {
                let mut words = list(&["COPY", from, to]);
                words.extend(replace.then(|| "REPLACE".to_owned()));
                words
            }
            Command::Transaction(_) => list(&["EXEC"]),
        }
    }

    /// What is sent one by one: a transaction is more than one command.
    pub fn parts(&self) -> Vec<Vec<String>> {
        match self {
            Command::Transaction(commands) => {
                let queued = commands.iter().map(Command::words);
                std::iter::once(list(&["MULTI"])).chain(queued).chain([list(&["EXEC"])]).collect()
            }
            single => vec![single.words()],
        }
    }

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

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.parts().iter().map(|words| words.join(" ")).collect();
        f.write_str(&parts.join("; "))
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

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn with_ids(mut words: Vec<String>, ids: &[Id]) -> Vec<String> {
    words.extend(ids.iter().map(|id| id_text(*id)));
    words
}

/// KEEPREF is the default, and not known to every server.
fn references_word(references: References) -> Option<String> {
    match references {
        References::Keep => None,
        References::Delete | References::DeleteBelow => Some("DELREF".to_owned()),
        References::Acked => Some("ACKED".to_owned()),
    }
}

fn limit_words(limit: Limit) -> [String; 2] {
    match limit {
        Limit::MaxLen(length) => ["MAXLEN".to_owned(), length.to_string()],
        Limit::MinId(id) => ["MINID".to_owned(), id_text(id)],
    }
}

fn position_word(position: Option<Id>) -> String {
    position.map_or_else(|| "$".to_owned(), id_text)
}
