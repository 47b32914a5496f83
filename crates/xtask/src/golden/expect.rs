//! What a golden case expects of a reply: the JSON forms, compiled once at load so that a mistake in a case file is
//! found before any server is asked.
//!
//! The forms are the ones listed in `tests/golden/README.md`. An expectation looks at type and value; it must never
//! accept a reply of another type because the text happens to agree.

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value as Json;

use crate::resp::{Nil, Value};

/// Replies kept by `save`, by name.
pub type Saved = HashMap<String, String>;

/// Which protocol a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2.
    Two,
    /// RESP3.
    Three,
}

impl Protocol {
    /// From its number.
    pub fn from_number(number: u64) -> Option<Self> {
        match number {
            2 => Some(Protocol::Two),
            3 => Some(Protocol::Three),
            _ => None,
        }
    }

    /// 2 or 3.
    pub fn number(self) -> u8 {
        match self {
            Protocol::Two => 2,
            Protocol::Three => 3,
        }
    }
}

/// Fields of XINFO replies that came after the recorded version; the `fields` form passes over them.
pub const LATER_FIELDS: [&[u8]; 7] = [
    b"idmp-duration",
    b"idmp-maxsize",
    b"pids-tracked",
    b"iids-tracked",
    b"iids-added",
    b"iids-duplicates",
    b"nacked-count",
];

/// One expected reply.
#[derive(Debug)]
pub enum Expectation {
    /// Anything at all.
    Any,
    /// This integer.
    Int(i64),
    /// This bulk string.
    Bulk(Vec<u8>),
    /// An array of exactly these.
    Array(Vec<Expectation>),
    /// This simple string.
    Simple(Vec<u8>),
    /// This error, whole.
    Error(Vec<u8>),
    /// An error in which this is found.
    ErrorPattern(Regex),
    /// A bulk string that fits this wholly (the pattern is anchored when compiled).
    BulkPattern(Regex),
    /// A bulk string that is an entry id.
    Id,
    /// An integer not below this.
    IntAtLeast(i64),
    /// An integer in this range, ends included.
    IntBetween(i64, i64),
    /// A null; in RESP2 of this spelling.
    Null(Nil),
    /// In RESP2 a flat array of the pairs, in RESP3 a map, in this order.
    Map(Vec<(Expectation, Expectation)>),
    /// Like `Map`, but fields that came later are passed over.
    Fields(Vec<(Expectation, Expectation)>),
    /// In RESP2 an array of two-element arrays, in RESP3 a map.
    Pairs(Vec<(Expectation, Expectation)>),
    /// In RESP2 an array, in RESP3 a push.
    Push(Vec<Expectation>),
    /// A map (flat in RESP2) in which these fields occur.
    Has(Vec<(Expectation, Expectation)>),
    /// A map (flat in RESP2) without these fields.
    Lacks(Vec<Vec<u8>>),
    /// Every one of these at once.
    All(Vec<Expectation>),
    /// An array, set or push of exactly these in any order.
    Unordered(Vec<Expectation>),
    /// An array, set or push with at least these.
    Contains(Vec<Expectation>),
    /// In RESP2 an array, in RESP3 a set, in any order.
    Set(Vec<Expectation>),
    /// An array of this many.
    Length(usize),
    /// Any of these.
    OneOf(Vec<Expectation>),
    /// What an earlier step saved.
    Reference(String),
    /// This RESP3 double, as written.
    Double(Vec<u8>),
    /// This RESP3 big number, as written.
    Big(Vec<u8>),
    /// This RESP3 verbatim string, format included.
    Verbatim(Vec<u8>),
    /// This RESP3 boolean.
    Bool(bool),
}

/// Bytes from their hexadecimal spelling.
///
/// # Errors
/// When it is not hexadecimal.
pub fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("{text:?} is not hexadecimal");
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return Err(bad());
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).map_err(|_| bad())).collect()
}

/// The bytes of `["a", 5000]`.
///
/// # Errors
/// When it has another shape.
pub fn repeated(json: &Json) -> Result<Vec<u8>, String> {
    match json.as_array().map(Vec::as_slice) {
        Some([Json::String(unit), Json::Number(count)]) => {
            let count = count.as_u64().ok_or("a repeat count must be a whole number")?;
            Ok(unit.as_bytes().repeat(usize::try_from(count).map_err(|e| e.to_string())?))
        }
        _ => Err(format!("a repeat must be [text, count], not {json}")),
    }
}

impl Expectation {
    /// Compiles the JSON form.
    ///
    /// # Errors
    /// A sentence naming what is wrong with it.
    pub fn parse(json: &Json) -> Result<Self, String> {
        match json {
            Json::Number(n) => n.as_i64().map(Expectation::Int).ok_or_else(|| format!("{n} is no 64-bit integer")),
            Json::String(s) => Ok(Expectation::Bulk(s.as_bytes().to_vec())),
            Json::Array(_) => Ok(Expectation::Array(list(json)?)),
            Json::Object(object) => {
                let mut entries = object.iter();
                match (entries.next(), entries.next()) {
                    (Some((form, value)), None) => Self::parse_form(form, value),
                    _ => Err(format!("an expectation has exactly one key: {json}")),
                }
            }
            Json::Null | Json::Bool(_) => Err(format!("{json} is not an expectation")),
        }
    }

    fn parse_form(form: &str, value: &Json) -> Result<Self, String> {
        let bad = || format!("bad value of {form}: {value}");
        let text = || value.as_str().ok_or_else(bad);
        let bytes = || text().map(|s| s.as_bytes().to_vec());
        let number = |json: &Json| json.as_i64().ok_or_else(bad);
        let pattern = |source: &str| Regex::new(source).map_err(|e| e.to_string());
        Ok(match form {
            "any" => Expectation::Any,
            "hex" => Expectation::Bulk(unhex(text()?)?),
            "repeat" => Expectation::Bulk(repeated(value)?),
            "s" => Expectation::Simple(bytes()?),
            "e" => Expectation::Error(bytes()?),
            "e_re" => Expectation::ErrorPattern(pattern(text()?)?),
            "re" => Expectation::BulkPattern(pattern(&format!("^(?:{})\\z", text()?))?),
            "id" => Expectation::Id,
            "int_ge" => Expectation::IntAtLeast(number(value)?),
            "int_between" => match value.as_array().map(Vec::as_slice) {
                Some([low, high]) => Expectation::IntBetween(number(low)?, number(high)?),
                _ => return Err(bad()),
            },
            "nil" => Expectation::Null(match text()? {
                "bulk" => Nil::Bulk,
                "array" => Nil::Array,
                "null" => Nil::Null,
                _ => return Err(bad()),
            }),
            "map" => Expectation::Map(pairs(value)?),
            "fields" => Expectation::Fields(pairs(value)?),
            "pairs" => Expectation::Pairs(pairs(value)?),
            "has" => Expectation::Has(pairs(value)?),
            "push" => Expectation::Push(list(value)?),
            "set" => Expectation::Set(list(value)?),
            "all" => Expectation::All(list(value)?),
            "one_of" => Expectation::OneOf(list(value)?),
            "unordered" => Expectation::Unordered(list(value)?),
            "contains" => Expectation::Contains(list(value)?),
            "lacks" => Expectation::Lacks(
                value
                    .as_array()
                    .ok_or_else(bad)?
                    .iter()
                    .map(|name| name.as_str().map(|s| s.as_bytes().to_vec()).ok_or_else(bad))
                    .collect::<Result<_, _>>()?,
            ),
            "len" => Expectation::Length(usize::try_from(number(value)?).map_err(|_| bad())?),
            "ref" => Expectation::Reference(text()?.to_owned()),
            "double" => Expectation::Double(bytes()?),
            "big" => Expectation::Big(bytes()?),
            "verbatim" => Expectation::Verbatim(bytes()?),
            "bool" => Expectation::Bool(value.as_bool().ok_or_else(bad)?),
            _ => return Err(format!("unknown expectation {form}")),
        })
    }

    /// Whether the reply fits, on a connection that speaks `protocol`.
    pub fn fits(&self, got: &Value, protocol: Protocol, saved: &Saved) -> bool {
        use Expectation as E;
        let old = protocol == Protocol::Two;
        match (self, got) {
            (E::Any, _) => true,
            (E::Int(want), Value::Int(n)) => n == want,
            (E::Bulk(want), Value::Bulk(b)) => b == want,
            (E::Array(want), Value::Array(items)) => same_list(want, items, protocol, saved),
            (E::Simple(want), Value::Simple(b)) => b == want,
            (E::Error(want), Value::Error(b)) => b == want,
            (E::ErrorPattern(pattern), Value::Error(b)) => pattern.is_match(&String::from_utf8_lossy(b)),
            (E::BulkPattern(pattern), Value::Bulk(b)) => pattern.is_match(&String::from_utf8_lossy(b)),
            (E::Id, Value::Bulk(b)) => is_entry_id(b),
            (E::IntAtLeast(low), Value::Int(n)) => n >= low,
            (E::IntBetween(low, high), Value::Int(n)) => (low..=high).contains(&n),
            (E::Null(want), Value::Nil(nil)) => *nil == if old { *want } else { Nil::Null },
            (E::Map(want), Value::Array(items)) if old => {
                items.len() == 2 * want.len() && same_pairs(want, &flat_pairs(items), protocol, saved)
            }
            (E::Pairs(want), Value::Array(rows)) if old => {
                want.len() == rows.len()
                    && want.iter().zip(rows).all(|((key, value), row)| {
                        matches!(row, Value::Array(row) if row.len() == 2
                            && key.fits(&row[0], protocol, saved) && value.fits(&row[1], protocol, saved))
                    })
            }
            (E::Map(want) | E::Pairs(want), Value::Map(_)) if !old => {
                same_pairs(want, &map_pairs(got, protocol).unwrap_or_default(), protocol, saved)
            }
            (E::Fields(want), _) => map_pairs(got, protocol).is_some_and(|all| {
                let known: Vec<_> = all.into_iter().filter(|(key, _)| !is_later_field(key)).collect();
                same_pairs(want, &known, protocol, saved)
            }),
            (E::Has(want), _) => map_pairs(got, protocol).is_some_and(|all| {
                want.iter().all(|(key, value)| {
                    all.iter().any(|(k, v)| key.fits(k, protocol, saved) && value.fits(v, protocol, saved))
                })
            }),
            // Looks only for names, so either shape will do in either protocol.
            (E::Lacks(names), Value::Array(items)) => !items.iter().step_by(2).any(|key| is_named(key, names)),
            (E::Lacks(names), Value::Map(all)) => !all.iter().any(|(key, _)| is_named(key, names)),
            (E::Push(want), Value::Array(items)) if old => same_list(want, items, protocol, saved),
            (E::Push(want), Value::Push(items)) if !old => same_list(want, items, protocol, saved),
            (E::All(want), _) => want.iter().all(|w| w.fits(got, protocol, saved)),
            (E::OneOf(want), _) => want.iter().any(|w| w.fits(got, protocol, saved)),
            (E::Unordered(want), Value::Array(items) | Value::Set(items) | Value::Push(items)) => {
                items.len() == want.len() && all_found(want, items, protocol, saved)
            }
            (E::Contains(want), Value::Array(items) | Value::Set(items) | Value::Push(items)) => {
                all_found(want, items, protocol, saved)
            }
            (E::Set(want), Value::Array(items)) if old => {
                items.len() == want.len() && all_found(want, items, protocol, saved)
            }
            (E::Set(want), Value::Set(items)) if !old => {
                items.len() == want.len() && all_found(want, items, protocol, saved)
            }
            (E::Length(count), Value::Array(items)) => items.len() == *count,
            (E::Reference(name), _) => saved.get(name).is_some_and(|text| *text == got.text()),
            (E::Double(want), Value::Double(b)) => b == want,
            (E::Big(want), Value::Big(b)) => b == want,
            (E::Verbatim(want), Value::Verbatim(b)) => b == want,
            (E::Bool(want), Value::Bool(b)) => b == want,
            _ => false,
        }
    }
}

fn list(json: &Json) -> Result<Vec<Expectation>, String> {
    json.as_array().ok_or_else(|| format!("{json} is not a list"))?.iter().map(Expectation::parse).collect()
}

fn pairs(json: &Json) -> Result<Vec<(Expectation, Expectation)>, String> {
    json.as_array()
        .ok_or_else(|| format!("{json} is not a list of pairs"))?
        .iter()
        .map(|pair| match pair.as_array().map(Vec::as_slice) {
            Some([key, value]) => Ok((Expectation::parse(key)?, Expectation::parse(value)?)),
            _ => Err(format!("{pair} is not a pair")),
        })
        .collect()
}

fn same_list(want: &[Expectation], got: &[Value], protocol: Protocol, saved: &Saved) -> bool {
    want.len() == got.len() && want.iter().zip(got).all(|(w, g)| w.fits(g, protocol, saved))
}

fn same_pairs(
    want: &[(Expectation, Expectation)],
    got: &[(&Value, &Value)],
    protocol: Protocol,
    saved: &Saved,
) -> bool {
    want.len() == got.len()
        && want
            .iter()
            .zip(got)
            .all(|((key, value), (k, v))| key.fits(k, protocol, saved) && value.fits(v, protocol, saved))
}

/// Each expectation takes the first element it fits that no earlier one took.
fn all_found(want: &[Expectation], got: &[Value], protocol: Protocol, saved: &Saved) -> bool {
    let mut rest: Vec<&Value> = got.iter().collect();
    want.iter().all(|w| match rest.iter().position(|g| w.fits(g, protocol, saved)) {
        Some(index) => {
            rest.remove(index);
            true
        }
        None => false,
    })
}

fn flat_pairs(items: &[Value]) -> Vec<(&Value, &Value)> {
    items.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect()
}

/// The pairs of a map as the protocol spells it; `None` for anything else.
fn map_pairs(got: &Value, protocol: Protocol) -> Option<Vec<(&Value, &Value)>> {
    match (got, protocol) {
        (Value::Array(items), Protocol::Two) if items.len().is_multiple_of(2) => Some(flat_pairs(items)),
        (Value::Map(all), Protocol::Three) => Some(all.iter().map(|(k, v)| (k, v)).collect()),
        _ => None,
    }
}

fn is_named(key: &Value, names: &[Vec<u8>]) -> bool {
    matches!(key, Value::Bulk(name) if names.contains(name))
}

fn is_later_field(key: &Value) -> bool {
    matches!(key, Value::Bulk(name) if LATER_FIELDS.contains(&name.as_slice()))
}

fn is_entry_id(bytes: &[u8]) -> bool {
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    match bytes.iter().position(|b| *b == b'-') {
        Some(dash) => digits(&bytes[..dash]) && digits(&bytes[dash + 1..]),
        None => false,
    }
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;
