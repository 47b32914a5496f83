//! Makes replies of two servers comparable: idle times and clock times become classes, generated IDs become a word,
//! opaque fields go. Everything else stays as it came.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::golden::expect::LATER_FIELDS;
use crate::resp::Value;

/// Times that differ by less are the same. The workload's idle times are next to nothing or several of these.
const CLASS_MS: i64 = 50_000;
/// Times beyond are all the same.
const CLASS_MAX: i64 = 1000;
/// IDs of this many ms or more were made by a clock.
const GENERATED_MS: u64 = 1_000_000_000_000;

/// The replies of one connection.
#[derive(Debug, Default)]
pub struct Normal {
    queue: Vec<Vec<Vec<u8>>>,
}

fn class(ms: i64) -> Value {
    Value::Int(if ms == -1 { -1 } else { (ms.max(0) / CLASS_MS).min(CLASS_MAX) })
}

/// The class of a point in time.
fn since(ms: i64) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64);
    if ms == -1 { Value::Int(-1) } else { class(now.saturating_sub(ms).max(0)) }
}

impl Normal {
    /// The reply to a command in comparable form.
    pub fn reply(&mut self, words: &[Vec<u8>], reply: Value) -> Value {
        let name = words[0].to_ascii_uppercase();
        if reply == Value::Simple(b"QUEUED".to_vec()) {
            self.queue.push(words.to_vec());
            return reply;
        }
        let reply = match (name.as_slice(), reply) {
            (b"EXEC" | b"DISCARD", Value::Array(replies)) => {
                let queue = std::mem::take(&mut self.queue);
                return Value::Array(
                    queue.iter().zip(replies).map(|(words, reply)| self.reply(words, reply)).collect(),
                );
            }
            (b"EXEC" | b"DISCARD", reply) => {
                self.queue.clear();
                reply
            }
            (b"XPENDING", Value::Array(lines)) if words.len() > 3 => {
                Value::Array(lines.into_iter().map(|line| timed(line, class)).collect())
            }
            (b"XINFO", reply) => info(reply),
            (b"PTTL", Value::Int(ms)) if ms > 0 => class(ms),
            (_, reply) => reply,
        };
        named(reply)
    }
}

/// With a word for generated IDs: two streams may have got the same or not, as it happened.
fn named(value: Value) -> Value {
    match value {
        Value::Bulk(bytes) if is_generated(&bytes) => Value::Bulk(b"generated".to_vec()),
        Value::Array(items) => Value::Array(items.into_iter().map(named).collect()),
        Value::Map(pairs) => Value::Map(pairs.into_iter().map(|(name, value)| (named(name), named(value))).collect()),
        other => other,
    }
}

fn is_generated(bytes: &[u8]) -> bool {
    let id = std::str::from_utf8(bytes).ok().and_then(|text| text.split_once('-'));
    let parts = id.and_then(|(ms, seq)| Some((ms.parse::<u64>().ok()?, seq.parse::<u64>().ok()?)));
    parts.is_some_and(|(ms, _)| (GENERATED_MS..4 * GENERATED_MS).contains(&ms))
}

/// A line of a pending list, whose last but one number is a time.
fn timed(line: Value, class: fn(i64) -> Value) -> Value {
    match line {
        Value::Array(mut items) if items.len() >= 3 => {
            let place = items.len() - 2;
            if let Value::Int(ms) = items[place] {
                items[place] = class(ms);
            }
            Value::Array(items)
        }
        other => other,
    }
}

/// A reply of XINFO, or a part of one.
fn info(value: Value) -> Value {
    match value {
        Value::Map(pairs) => Value::Map(pairs.into_iter().filter_map(|(name, value)| field(name, value)).collect()),
        // A flat list of names and values in RESP2 begins with a name.
        Value::Array(items) if matches!(items.first(), Some(Value::Bulk(_))) => {
            let mut items = items.into_iter();
            let mut fields = Vec::new();
            while let Some(name) = items.next() {
                let Some(value) = items.next() else {
                    fields.push(name);
                    break;
                };
                fields.extend(field(name, value).into_iter().flat_map(|(name, value)| [name, value]));
            }
            Value::Array(fields)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(info).collect()),
        other => other,
    }
}

/// A field in comparable form; `None` if Redis 8.2 does not have it.
fn field(name: Value, value: Value) -> Option<(Value, Value)> {
    let Value::Bulk(text) = &name else { return Some((name, value)) };
    if LATER_FIELDS.contains(&text.as_slice()) {
        return None;
    }
    let value = match (text.as_slice(), value) {
        (b"radix-tree-keys" | b"radix-tree-nodes", _) => Value::Int(0),
        (b"idle" | b"inactive", Value::Int(ms)) => class(ms),
        (b"seen-time" | b"active-time", Value::Int(ms)) => since(ms),
        (b"pending", Value::Array(lines)) => Value::Array(lines.into_iter().map(|line| timed(line, since)).collect()),
        (b"groups" | b"consumers", Value::Array(items)) => Value::Array(items.into_iter().map(info).collect()),
        (_, value) => value,
    };
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn times_become_classes_and_counts_stay() {
        let line = |ms| Value::Array(vec![Value::Array(vec![bulk("1-0"), bulk("c"), Value::Int(ms), Value::Int(3)])]);
        let of = |ms| Normal::default().reply(&words("XPENDING k g - + 9"), line(ms));
        assert_eq!(of(0), of(40));
        assert_ne!(of(0), of(200_010));
        let info = |idle| {
            Value::Array(vec![Value::Array(vec![bulk("pending"), Value::Int(7), bulk("idle"), Value::Int(idle)])])
        };
        let of = |ms| Normal::default().reply(&words("XINFO CONSUMERS k g"), info(ms));
        assert_eq!(of(3), of(5));
        assert_ne!(of(-1), of(5));
    }

    #[test]
    fn generated_ids_are_all_the_same() {
        let of = |id| Normal::default().reply(&words("XADD k * f v"), bulk(id));
        assert_eq!(of("1700000000000-0"), of("1700000000005-1"));
        assert_eq!(of("5-5"), bulk("5-5"));
    }
}
