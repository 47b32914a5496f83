//! Reading the words of a command: numbers and IDs, in the plainest way.

use super::stream::Id;

/// The words of a command.
pub type Words = [Vec<u8>];

/// The text of an error.
pub fn error<T>(text: &str) -> Result<T, Vec<u8>> {
    Err(text.as_bytes().to_vec())
}

/// An error about names.
pub fn error_with<T>(parts: &[&[u8]]) -> Result<T, Vec<u8>> {
    Err(parts.concat())
}

/// The error of options that make no sense.
pub const SYNTAX: &str = "ERR syntax error";
const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";

/// Is it this word, in any case?
pub fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

/// A strict decimal number: exactly what printing it would give.
pub fn number(word: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(word).ok()?;
    let n: i64 = text.parse().ok()?;
    (n.to_string() == text).then_some(n)
}

/// A number, or the usual error.
pub fn integer(word: &[u8]) -> Result<i64, Vec<u8>> {
    number(word).map_or_else(|| error(NOT_AN_INTEGER), Ok)
}

fn part(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn parse_id(word: &[u8], missing_seq: u64) -> Result<Id, Vec<u8>> {
    let parsed = std::str::from_utf8(word).ok().and_then(|text| match text.split_once('-') {
        Some((ms, seq)) => Some((part(ms)?, part(seq)?)),
        None => Some((part(text)?, missing_seq)),
    });
    parsed.map_or_else(|| error(INVALID_ID), |(ms, seq)| Ok(Id(ms, seq)))
}

/// The invalid ID error.
pub fn invalid_id<T>() -> Result<T, Vec<u8>> {
    error(INVALID_ID)
}

/// An ID; `ms` is `ms-0`.
pub fn id(word: &[u8]) -> Result<Id, Vec<u8>> {
    parse_id(word, 0)
}

/// The ms of `ms-*`.
pub fn ms_of(word: &[u8]) -> Result<u64, Vec<u8>> {
    std::str::from_utf8(word).ok().and_then(part).map_or_else(invalid_id, Ok)
}

/// The start of a range.
pub fn start(word: &[u8]) -> Result<Id, Vec<u8>> {
    match word {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        [b'(', rest @ ..] => match id(rest)? {
            Id::MAX => error("ERR invalid start ID for the interval"),
            id => Ok(id.next()),
        },
        word => id(word),
    }
}

/// The end of a range; `ms` is all of that millisecond.
pub fn end(word: &[u8]) -> Result<Id, Vec<u8>> {
    match word {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        [b'(', rest @ ..] => match parse_id(rest, u64::MAX)? {
            Id::MIN => error("ERR invalid end ID for the interval"),
            id => Ok(id.previous()),
        },
        word => parse_id(word, u64::MAX),
    }
}
