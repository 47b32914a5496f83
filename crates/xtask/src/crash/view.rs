//! Asking a server, and taking its replies apart.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::id::{Id, parse_id};
use crate::resp::{Client, ClientError, Value};

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

/// What a load came to: an end of the connection is right once the server was killed; everything else is told.
pub fn trouble(outcome: Result<Option<String>, ClientError>, killed: &AtomicBool) -> Option<String> {
    match outcome {
        Err(ClientError::Closed(_)) if killed.load(Ordering::SeqCst) => None,
        Err(error) => Some(format!("{error}, before the server was killed")),
        Ok(trouble) => trouble,
    }
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
