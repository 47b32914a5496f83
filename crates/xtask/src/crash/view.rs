//! What the server shows of itself, read into the types of the model: exact times, and everything asked for twice
//! where two commands tell of the same thing, which must agree.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use super::model::{Data, Group, Id, Item, Keys, Pending, Span, Stream, parse_id};
use crate::resp::{Client, Nil, Value};

/// Unix time in ms.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    i64::try_from(since.as_millis()).expect("the clock is before the year 292 million")
}

/// Sends a command; an error reply is an error here.
///
/// # Errors
/// The command and what went wrong.
pub fn ask<A: AsRef<[u8]>>(client: &mut Client, words: &[A]) -> Result<Value, String> {
    let said =
        || words.iter().map(|word| String::from_utf8_lossy(word.as_ref()).into_owned()).collect::<Vec<_>>().join(" ");
    match client.call(words) {
        Ok(Value::Error(text)) => Err(format!("{}: {}", said(), String::from_utf8_lossy(&text))),
        Ok(value) => Ok(value),
        Err(error) => Err(format!("{}: {error}", said())),
    }
}

/// Reads these keys; those that do not exist are left out.
///
/// # Errors
/// When the server does not answer, answers something of another shape, or contradicts itself.
pub fn read_keys(client: &mut Client, names: &[String]) -> Result<Keys, String> {
    let mut keys = Keys::new();
    for name in names {
        let data = match ask(client, &["TYPE", name])?.text().as_str() {
            "none" => continue,
            "string" => Data::Text(ask(client, &["GET", name])?.text()),
            "stream" => Data::Stream(read_stream(client, name)?),
            other => return Err(format!("{name} is of type {other}")),
        };
        let before_ms = now_ms();
        let left_ms = int(&ask(client, &["PTTL", name])?)?;
        let deadline = Span { from_ms: before_ms + left_ms, to_ms: now_ms() + left_ms };
        keys.insert(name.clone(), Item { data, deadline: (left_ms >= 0).then_some(deadline) });
    }
    Ok(keys)
}

fn read_stream(client: &mut Client, key: &str) -> Result<Stream, String> {
    let entries = read_entries(client, key)?;
    let full = ask(client, &["XINFO", "STREAM", key, "FULL", "COUNT", "0"])?;
    let shown: Vec<(Id, Vec<String>)> = items(field(&full, "entries")?)?.iter().map(entry).collect::<Result<_, _>>()?;
    let length = int(field(&full, "length")?)?;
    let counted = int(&ask(client, &["XLEN", key])?)?;
    if shown != entries || length != entries.len() as i64 || counted != length {
        return Err(format!(
            "{key}: XRANGE has {} entries, XINFO FULL {}, its length is {length}, XLEN {counted}",
            entries.len(),
            shown.len()
        ));
    }
    let mut stream = Stream {
        entries: entries.into_iter().collect(),
        last: id(field(&full, "last-generated-id")?)?,
        max_deleted: id(field(&full, "max-deleted-entry-id")?)?,
        added: unsigned(field(&full, "entries-added")?)?,
        groups: BTreeMap::new(),
    };
    for shown in items(field(&full, "groups")?)? {
        stream.groups.insert(field(shown, "name")?.text(), read_group(client, key, shown)?);
    }
    let groups = ask(client, &["XINFO", "GROUPS", key])?;
    if items(&groups)?.len() != stream.groups.len() {
        return Err(format!("{key}: XINFO GROUPS and XINFO FULL show different groups"));
    }
    for shown in items(&groups)? {
        let name = field(shown, "name")?.text();
        let group = stream.groups.get(&name).ok_or_else(|| format!("{key}: only XINFO GROUPS has {name}"))?;
        let same = id(field(shown, "last-delivered-id")?)? == group.position
            && optional(field(shown, "entries-read")?)? == group.entries_read
            && int(field(shown, "pending")?)? == group.pending.len() as i64
            && int(field(shown, "consumers")?)? == group.consumers.len() as i64;
        if !same {
            return Err(format!("{key}: XINFO GROUPS tells of {name} otherwise than XINFO FULL: {}", shown.text()));
        }
    }
    Ok(stream)
}

fn read_group(client: &mut Client, key: &str, shown: &Value) -> Result<Group, String> {
    let name = field(shown, "name")?.text();
    let mut group = Group {
        position: id(field(shown, "last-delivered-id")?)?,
        entries_read: optional(field(shown, "entries-read")?)?,
        ..Group::default()
    };
    for row in items(field(shown, "pending")?)? {
        let [entry, owner, delivered, count] = items(row)? else { return Err(odd(row)) };
        let pending = Pending { consumer: owner.text(), count: int(count)?, delivered: Span::exact(int(delivered)?) };
        group.pending.insert(id(entry)?, pending);
    }
    let mut of_consumers = BTreeMap::new();
    for consumer in items(field(shown, "consumers")?)? {
        let owner = field(consumer, "name")?.text();
        for row in items(field(consumer, "pending")?)? {
            let [entry, delivered, count] = items(row)? else { return Err(odd(row)) };
            let delivered = Span::exact(int(delivered)?);
            of_consumers.insert(id(entry)?, Pending { consumer: owner.clone(), count: int(count)?, delivered });
        }
        group.consumers.insert(owner);
    }
    if of_consumers != group.pending {
        return Err(format!("{key} {name}: the consumers' pending lists are not the group's: {}", shown.text()));
    }
    let listed = read_pending(client, key, &name)?;
    let in_full = group.pending.iter().map(|(id, pending)| (*id, (pending.consumer.clone(), pending.count)));
    if listed != in_full.collect() {
        return Err(format!("{key} {name}: XPENDING and XINFO FULL differ: {listed:?} and {:?}", group.pending));
    }
    Ok(group)
}

/// The pending list by XPENDING: owner and delivery count by id.
///
/// # Errors
/// When the server does not answer, or something of another shape.
pub fn read_pending(client: &mut Client, key: &str, group: &str) -> Result<BTreeMap<Id, (String, i64)>, String> {
    let rows = ask(client, &["XPENDING", key, group, "-", "+", "10000000"])?;
    let mut pending = BTreeMap::new();
    for row in items(&rows)? {
        let [entry, owner, _idle_ms, count] = items(row)? else { return Err(odd(row)) };
        if pending.insert(id(entry)?, (owner.text(), int(count)?)).is_some() {
            return Err(format!("{key} {group}: {} is pending twice", entry.text()));
        }
    }
    Ok(pending)
}

/// A group's position by XINFO GROUPS.
///
/// # Errors
/// When the group is not there.
pub fn read_position(client: &mut Client, key: &str, group: &str) -> Result<Id, String> {
    let groups = ask(client, &["XINFO", "GROUPS", key])?;
    for shown in items(&groups)? {
        if field(shown, "name")?.text() == group {
            return id(field(shown, "last-delivered-id")?);
        }
    }
    Err(format!("{key}: there is no group {group}"))
}

/// All entries in the order of XRANGE, as they came: one that is there twice is twice in it.
///
/// # Errors
/// When the server does not answer, or something of another shape.
pub fn read_entries(client: &mut Client, key: &str) -> Result<Vec<(Id, Vec<String>)>, String> {
    let entries = ask(client, &["XRANGE", key, "-", "+"])?;
    items(&entries)?.iter().map(entry).collect()
}

/// `[id, [field, value, …]]`.
///
/// # Errors
/// When it is none.
pub fn entry(value: &Value) -> Result<(Id, Vec<String>), String> {
    let [entry, fields] = items(value)? else { return Err(odd(value)) };
    Ok((id(entry)?, items(fields)?.iter().map(Value::text).collect()))
}

/// The items of an array.
///
/// # Errors
/// When it is none.
pub fn items(value: &Value) -> Result<&[Value], String> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(odd(other)),
    }
}

/// The value after a name in a flat array of names and values.
///
/// # Errors
/// When the name is not there.
pub fn field<'a>(value: &'a Value, name: &str) -> Result<&'a Value, String> {
    let pairs = items(value)?.chunks_exact(2);
    let found = pairs.into_iter().find(|pair| matches!(&pair[0], Value::Bulk(b) if b == name.as_bytes()));
    found.map(|pair| &pair[1]).ok_or_else(|| format!("no {name} in {}", value.text()))
}

/// An integer reply.
///
/// # Errors
/// When it is none.
pub fn int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(odd(other)),
    }
}

fn unsigned(value: &Value) -> Result<u64, String> {
    u64::try_from(int(value)?).map_err(|_| odd(value))
}

fn optional(value: &Value) -> Result<Option<u64>, String> {
    if *value == Value::Nil(Nil::Bulk) { Ok(None) } else { unsigned(value).map(Some) }
}

/// An id reply.
///
/// # Errors
/// When it is none.
pub fn id(value: &Value) -> Result<Id, String> {
    parse_id(&value.text()).ok_or_else(|| odd(value))
}

fn odd(value: &Value) -> String {
    let text: String = value.text().chars().take(300).collect();
    format!("a reply of another shape than expected: {text}")
}
