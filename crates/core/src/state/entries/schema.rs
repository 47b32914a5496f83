//! The field names of an entry, stored once for all entries that have the same ones in the same order, and already in
//! the form in which a reply needs them. Immutable and shared from block to block.
//!
//! A reply's part for one entry is then, for each field, one piece, the digits of the value's length, CR LF, the value:
//!
//! ```text
//!  piece 0               digits    value   piece 1                    value
//!  *4\r\n$4\r\nname\r\n$ 3  \r\n   ann     \r\n$3\r\nage\r\n$ 2 \r\n  42     \r\n
//! ```

use std::ops::Range;

/// A list of field names. Duplicates are kept: Redis allows a field to occur twice.
pub struct Schema {
    /// All pieces, one after the other, and [`SHORT_BYTES`] more for [`append`].
    pieces: Box<[u8]>,
    /// Where each piece ends, and how long the name in it is.
    names: Box<[Name]>,
    /// Bytes of all names.
    name_bytes: usize,
}

struct Name {
    end: u32,
    len: u32,
}

/// What follows the name in a piece: the name's CR LF and the first byte of the value's head.
const AFTER_NAME: usize = b"\r\n$".len();

impl Schema {
    /// The schema of these names. Their bytes together are at most `limits::ENTRY_MAX_BYTES`, their number at most
    /// `limits::ARGUMENTS_MAX`, so offsets fit 32 bits.
    pub fn new<'a>(names: impl Iterator<Item = &'a [u8]> + Clone) -> Schema {
        let count = names.clone().count();
        let mut digits = itoa::Buffer::new();
        let mut pieces = Vec::new();
        let mut ends = Vec::with_capacity(count);
        let mut name_bytes = 0;
        for name in names {
            if ends.is_empty() {
                pieces.push(b'*');
                pieces.extend_from_slice(digits.format(2 * count).as_bytes());
            }
            pieces.extend_from_slice(b"\r\n$");
            pieces.extend_from_slice(digits.format(name.len()).as_bytes());
            pieces.extend_from_slice(b"\r\n");
            pieces.extend_from_slice(name);
            name_bytes += name.len();
            pieces.extend_from_slice(b"\r\n$");
            let end = u32::try_from(pieces.len()).expect("field names are bounded by the largest entry");
            ends.push(Name { end, len: name.len() as u32 });
        }
        pieces.extend_from_slice(&[0; SHORT_BYTES]);
        Schema { pieces: pieces.into(), names: ends.into(), name_bytes }
    }

    /// Number of fields.
    #[inline]
    pub fn field_count(&self) -> usize {
        self.names.len()
    }

    /// Bytes of all names.
    #[inline]
    pub fn name_bytes(&self) -> usize {
        self.name_bytes
    }

    /// The bytes of all pieces: what the names add to a reply.
    #[inline]
    pub fn reply_bytes(&self) -> usize {
        self.pieces.len()
    }

    /// Where the `index`-th piece stands: what comes before the digits of that value's length.
    #[inline]
    fn piece(&self, index: usize) -> Range<usize> {
        let start = if index == 0 { 0 } else { self.names[index - 1].end as usize };
        start..self.names[index].end as usize
    }

    /// Appends the `index`-th piece.
    #[inline]
    pub fn append_piece(&self, out: &mut Vec<u8>, index: usize) {
        append(out, &self.pieces, self.piece(index));
    }

    /// The `index`-th name.
    #[inline]
    pub fn name(&self, index: usize) -> &[u8] {
        let name = &self.names[index];
        let end = name.end as usize - AFTER_NAME;
        &self.pieces[end - name.len as usize..end]
    }

    /// All names in order.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.names.len()).map(|index| self.name(index))
    }

    /// Exactly these names?
    #[inline]
    pub fn matches<'a>(&self, mut names: impl Iterator<Item = &'a [u8]>) -> bool {
        for index in 0..self.names.len() {
            if names.next().is_none_or(|name| name != self.name(index)) {
                return false;
            }
        }
        names.next().is_none()
    }
}

/// What [`append`] copies at once.
pub(super) const SHORT_BYTES: usize = 32;

/// Appends a part of `bytes`. A short part is copied as 32 bytes and cut, if there are as many: a copy of a fixed size is
/// two moves where one of any size is a call, and replies are made of little else.
#[inline(always)]
pub(super) fn append(out: &mut Vec<u8>, bytes: &[u8], part: Range<usize>) {
    let len = part.end - part.start;
    if len <= SHORT_BYTES
        && let Some(wide) = bytes.get(part.start..part.start + SHORT_BYTES)
    {
        let wide: &[u8; SHORT_BYTES] = wide.try_into().expect("as long as was asked for");
        let end = out.len() + len;
        out.extend_from_slice(wide);
        out.truncate(end);
    } else {
        out.extend_from_slice(&bytes[part]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_what_a_reply_needs() {
        let schema = Schema::new([&b"name"[..], b"", b"age"].into_iter());
        let mut out = Vec::new();
        for (index, piece) in
            [&b"*6\r\n$4\r\nname\r\n$"[..], b"\r\n$0\r\n\r\n$", b"\r\n$3\r\nage\r\n$"].iter().enumerate()
        {
            out.clear();
            schema.append_piece(&mut out, index);
            assert_eq!(&out, piece);
        }
        assert_eq!(schema.names().collect::<Vec<_>>(), [&b"name"[..], b"", b"age"]);
        assert!(schema.matches([&b"name"[..], b"", b"age"].into_iter()));
        for other in [vec![], vec![&b"name"[..]], vec![b"name", b"", b"age", b""], vec![b"name", b"x", b"age"]] {
            assert!(!schema.matches(other.iter().copied()), "{other:?}");
        }
    }
}
