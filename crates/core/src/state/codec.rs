//! Bytes of records and snapshots: LEB128 variable-length integers and length-prefixed byte strings. Reading checks
//! every length against what is left before anything is taken; it never panics and never allocates for a length.

use crate::id::StreamId;

/// The bytes are not what they should be. `what` names the part that could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt {
    /// The part that could not be read, for the operator.
    pub what: &'static str,
}

impl std::fmt::Display for Corrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "damaged or unknown data: {}", self.what)
    }
}

impl std::error::Error for Corrupt {}

/// Appends an unsigned integer, 7 bits a byte, least significant first.
#[inline]
pub fn put_uint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer in zigzag form: small magnitudes stay short.
#[inline]
pub fn put_int(out: &mut Vec<u8>, value: i64) {
    put_uint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a byte string behind its length.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends an entry ID.
#[inline]
pub fn put_id(out: &mut Vec<u8>, id: StreamId) {
    put_uint(out, id.ms);
    put_uint(out, id.seq);
}

/// Appends an optional part: a tag (never 0), its length, its bytes; nothing at all if `write` writes nothing. A list of
/// sections ends with [`end_sections`]. So what comes later to a format is absent where it is not used.
pub fn put_section(out: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    debug_assert_ne!(tag, 0);
    let mut bytes = Vec::new();
    write(&mut bytes);
    if !bytes.is_empty() {
        out.push(tag);
        put_bytes(out, &bytes);
    }
}

/// Ends a list of sections.
pub fn end_sections(out: &mut Vec<u8>) {
    out.push(0);
}

/// Reads from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// What has not been read yet.
    pub rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader over all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Nothing left?
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self, what: &'static str) -> Result<u8, Corrupt> {
        let (&first, rest) = self.rest.split_first().ok_or(Corrupt { what })?;
        self.rest = rest;
        Ok(first)
    }

    /// An unsigned integer.
    #[inline]
    pub fn uint(&mut self, what: &'static str) -> Result<u64, Corrupt> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Corrupt { what });
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Corrupt { what })
    }

    /// A signed integer.
    #[inline]
    pub fn int(&mut self, what: &'static str) -> Result<i64, Corrupt> {
        let raw = self.uint(what)?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// A count of things of which each takes at least one byte: never more than what is left.
    #[inline]
    pub fn count(&mut self, what: &'static str) -> Result<usize, Corrupt> {
        let n = self.uint(what)?;
        if n > self.rest.len() as u64 {
            return Err(Corrupt { what });
        }
        Ok(n as usize)
    }

    /// `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(Corrupt { what })?;
        self.rest = rest;
        Ok(taken)
    }

    /// A byte string behind its length.
    #[inline]
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Corrupt> {
        let n = self.count(what)?;
        self.take(n, what)
    }

    /// The next section: its tag and its bytes; `None` at the end of the list. A tag that the caller does not know was
    /// written by a later version and must be refused.
    pub fn section(&mut self, what: &'static str) -> Result<Option<(u8, Reader<'a>)>, Corrupt> {
        match self.byte(what)? {
            0 => Ok(None),
            tag => Ok(Some((tag, Reader::new(self.bytes(what)?)))),
        }
    }

    /// An entry ID.
    #[inline]
    pub fn id(&mut self, what: &'static str) -> Result<StreamId, Corrupt> {
        Ok(StreamId { ms: self.uint(what)?, seq: self.uint(what)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_uint(&mut out, value);
            put_int(&mut out, value as i64);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.uint("n"), Ok(value));
            assert_eq!(reader.int("n"), Ok(value as i64));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        assert!(Reader::new(&[5, 1, 2]).bytes("b").is_err());
        assert!(Reader::new(&[0xff; 11]).uint("n").is_err());
        assert!(Reader::new(&[0x80]).uint("n").is_err());
    }
}
