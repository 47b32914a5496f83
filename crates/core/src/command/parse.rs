//! Reading arguments: integers, IDs, ranges. Strict where Redis is strict; the texts of the errors are Redis's.

use crate::engine::fault::Fault;
use crate::id::StreamId;

/// A strict decimal 64-bit integer: no `+`, no leading zeros, no `-0`, no blanks.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // 19 digits always fit in 64 bits.
        value = value * 10 + u64::from(digit);
    }
    if negative { (value <= 1 << 63).then(|| (value as i64).wrapping_neg()) } else { i64::try_from(value).ok() }
}

/// An integer argument, or `ERR value is not an integer or out of range`.
#[inline]
pub fn int(text: &[u8]) -> Result<i64, Fault> {
    integer(text).ok_or(Fault::NOT_AN_INTEGER)
}

/// An entry ID; `ms` alone means `ms-0`.
#[inline]
pub fn id(text: &[u8]) -> Result<StreamId, Fault> {
    StreamId::parse(text, 0).map_err(|_| Fault::INVALID_ID)
}

/// The start of a range: `-`, `+`, an ID, or `(id` which leaves that ID out. `ms` alone means `ms-0`.
pub fn range_start(text: &[u8]) -> Result<StreamId, Fault> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        [b'(', rest @ ..] => id(rest)?.next().ok_or(Fault::INVALID_START),
        _ => id(text),
    }
}

/// The end of a range: as [`range_start`], but `ms` alone means the last of that millisecond.
pub fn range_end(text: &[u8]) -> Result<StreamId, Fault> {
    let last = |text| StreamId::parse(text, u64::MAX).map_err(|_| Fault::INVALID_ID);
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        [b'(', rest @ ..] => last(rest)?.prev().ok_or(Fault::INVALID_END),
        _ => last(text),
    }
}

/// Equal but for ASCII case? `word` is given in upper case.
#[inline]
pub fn is(text: &[u8], word: &str) -> bool {
    text.eq_ignore_ascii_case(word.as_bytes())
}

/// A finite or infinite number as INCRBYFLOAT reads it; no NaN, no blanks.
pub fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.is_empty() || text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_strict() {
        for (text, value) in
            [("0", 0), ("7", 7), ("-7", -7), ("9223372036854775807", i64::MAX), ("-9223372036854775808", i64::MIN)]
        {
            assert_eq!(integer(text.as_bytes()), Some(value));
        }
        for text in [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "0x1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(range_start(b"(5"), Ok(StreamId::new(5, 1)));
        assert_eq!(range_end(b"(5"), Ok(StreamId::new(5, u64::MAX - 1)));
        assert_eq!(range_end(b"5"), Ok(StreamId::new(5, u64::MAX)));
        assert_eq!(range_start(b"(18446744073709551615-18446744073709551615"), Err(Fault::INVALID_START));
        assert_eq!(range_end(b"(0-0"), Err(Fault::INVALID_END));
        for bad in ["(", "((1", "(-", "(+", "$", "*"] {
            assert_eq!(range_start(bad.as_bytes()), Err(Fault::INVALID_ID));
            assert_eq!(range_end(bad.as_bytes()), Err(Fault::INVALID_ID));
        }
    }
}
