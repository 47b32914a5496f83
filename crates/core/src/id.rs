//! Entry IDs: two 64-bit numbers, compared first by milliseconds, then by sequence.
//!
//! Digits are the way to write one. A few malformed forms that Redis lets through (a leading `+` or blank inside a part,
//! bytes after a NUL) mean here what they mean there: the recorded replies hold them.

use std::fmt;

/// The ID of a stream entry. `0-0` is never an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct StreamId {
    /// Unix time in milliseconds, or whatever the producer chose.
    pub ms: u64,
    /// Sequence number within the millisecond.
    pub seq: u64,
}

/// The text is not an ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidId;

impl StreamId {
    /// `0-0`
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    /// The greatest ID there can be.
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    /// An ID from its parts.
    pub const fn new(ms: u64, seq: u64) -> Self {
        StreamId { ms, seq }
    }

    /// The next greater ID, or `None` after [`StreamId::MAX`].
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { ms: self.ms, seq }),
            None => self.ms.checked_add(1).map(|ms| StreamId { ms, seq: 0 }),
        }
    }

    /// The next smaller ID, or `None` before [`StreamId::MIN`].
    pub fn prev(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { ms: self.ms, seq }),
            None => self.ms.checked_sub(1).map(|ms| StreamId { ms, seq: u64::MAX }),
        }
    }

    /// Parses `ms-seq`, or `ms` alone, to which `default_seq` is added.
    #[inline]
    pub fn parse(text: &[u8], default_seq: u64) -> Result<Self, InvalidId> {
        let parts = |text: &[u8], part: fn(&[u8]) -> Result<u64, InvalidId>| match memchr::memchr(b'-', text) {
            None => Ok(StreamId { ms: part(text)?, seq: default_seq }),
            Some(at) => Ok(StreamId { ms: part(&text[..at])?, seq: part(&text[at + 1..])? }),
        };
        parts(text, parse_u64).or_else(|_| match text.len() {
            // Redis gives up on longer ones before it looks at them.
            0..128 => parts(memchr::memchr(0, text).map_or(text, |end| &text[..end]), parse_like_c),
            _ => Err(InvalidId),
        })
    }

    /// Appends the ID in its normal form, `ms-seq`.
    pub fn write(self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(digits.format(self.ms).as_bytes());
        out.push(b'-');
        out.extend_from_slice(digits.format(self.seq).as_bytes());
    }
}

/// One part of an ID: decimal digits (leading zeros are accepted), below 2^64.
pub fn parse_u64(text: &[u8]) -> Result<u64, InvalidId> {
    if text.is_empty() {
        return Err(InvalidId);
    }
    let mut value: u64 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(InvalidId);
        }
        value = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit))).ok_or(InvalidId)?;
    }
    Ok(value)
}

/// One part of an ID as C's `strtoull` reads it: blanks and a sign may stand before the digits, and a minus wraps around
/// (but for a plain negative number, which Redis refuses before it comes to that).
#[cold]
fn parse_like_c(text: &[u8]) -> Result<u64, InvalidId> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !blank(byte)).ok_or(InvalidId)?;
    match (&text[start..], start) {
        ([b'+', digits @ ..], _) => parse_u64(digits),
        ([b'-', b'1'..=b'9', ..], 0) => Err(InvalidId),
        ([b'-', digits @ ..], _) => parse_u64(digits).map(u64::wrapping_neg),
        (digits, _) => parse_u64(digits),
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_redis_documents_and_nothing_else() {
        assert_eq!(StreamId::parse(b"5-7", 0), Ok(StreamId::new(5, 7)));
        assert_eq!(StreamId::parse(b"5", 9), Ok(StreamId::new(5, 9)));
        assert_eq!(StreamId::parse(b"007-01", 0), Ok(StreamId::new(7, 1)));
        assert_eq!(StreamId::parse(b"18446744073709551615-18446744073709551615", 0), Ok(StreamId::MAX));
        for bad in
            ["", "-", "+", "1-", "-1", "1-2-3", "1.5", "0x1", "18446744073709551616", "1--5", " ", "1 ", "+ 1", "\0"]
        {
            assert_eq!(StreamId::parse(bad.as_bytes(), 0), Err(InvalidId), "{bad:?}");
        }
        for (odd, id) in
            [("+1", (1, 0)), (" 1-+2", (1, 2)), ("1\0x", (1, 0)), ("2--0", (2, 0)), ("2- -5", (2, u64::MAX - 4))]
        {
            assert_eq!(StreamId::parse(odd.as_bytes(), 0), Ok(StreamId::new(id.0, id.1)), "{odd:?}");
        }
        assert_eq!(StreamId::parse(&[b'0'; 128], 0), Ok(StreamId::MIN), "digits alone may be many");
    }

    #[test]
    fn steps_cross_the_millisecond() {
        assert_eq!(StreamId::new(1, u64::MAX).next(), Some(StreamId::new(2, 0)));
        assert_eq!(StreamId::new(2, 0).prev(), Some(StreamId::new(1, u64::MAX)));
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(StreamId::MIN.prev(), None);
    }
}
