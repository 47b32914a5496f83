//! One entry as it lies in its block, and how it gets from there into a reply: copied once, nothing allocated.

use super::block::read_uint;
use super::schema::{SHORT_BYTES, Schema, append};
use crate::id::StreamId;
use crate::resp::encode::{bulk, pair_with_id};

/// A live entry, borrowed from its block.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// Its ID.
    pub id: StreamId,
    /// The field names, or `None` if they stand in `body`.
    pub(super) schema: Option<&'a Schema>,
    /// With a schema: the values. Without: the number of fields, then names and values in turn. Each behind its length.
    /// What follows in the block stands behind it.
    pub(super) body: &'a [u8],
    /// Length of the entry's own part of `body`.
    pub(super) body_bytes: usize,
}

impl<'a> Entry<'a> {
    /// Number of field-value pairs.
    pub fn field_count(&self) -> usize {
        match self.schema {
            Some(schema) => schema.field_count(),
            None => read_uint(self.body, &mut 0) as usize,
        }
    }

    /// The pairs in the order in which they were given.
    pub fn fields(&self) -> Fields<'a> {
        let mut at = 0;
        let count = match self.schema {
            Some(schema) => schema.field_count(),
            None => read_uint(self.body, &mut at) as usize,
        };
        Fields { schema: self.schema, body: self.body, at, index: 0, count }
    }

    /// Bytes of its names and values.
    #[inline]
    pub fn payload_bytes(&self) -> u64 {
        let Some(schema) = self.schema else {
            return self.fields().map(|(name, value)| (name.len() + value.len()) as u64).sum();
        };
        let (mut at, mut sum) = (0, schema.name_bytes());
        for _ in 0..schema.field_count() {
            let len = read_uint(self.body, &mut at) as usize;
            sum += len;
            at += len;
        }
        sum as u64
    }

    /// Appends the entry as a reply: an array of its ID and the array of its fields and values.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.reply_bytes_max());
        pair_with_id(out, self.id);
        self.write_pairs(out);
    }

    /// Appends only the array of fields and values, for callers that put more than an ID before it.
    pub fn write_fields(&self, out: &mut Vec<u8>) {
        out.reserve(self.reply_bytes_max());
        self.write_pairs(out);
    }

    /// A bound of what [`Entry::write`] appends, unless names stand in the body, where it is a guess.
    fn reply_bytes_max(&self) -> usize {
        let names = self.schema.map_or(64, |schema| schema.reply_bytes() + 12 * schema.field_count());
        64 + SHORT_BYTES + names + self.body_bytes
    }

    #[inline]
    fn write_pairs(&self, out: &mut Vec<u8>) {
        let body = self.body;
        let Some(schema) = self.schema else { return self.write_pairs_with_names(out) };
        let count = schema.field_count();
        if count == 0 {
            out.extend_from_slice(b"*0\r\n");
            return;
        }
        let mut at = 0;
        for index in 0..count {
            let len = read_uint(body, &mut at) as usize;
            schema.append_piece(out, index);
            write_len(out, len);
            append(out, body, at..at + len);
            at += len;
        }
        out.extend_from_slice(b"\r\n");
    }

    #[cold]
    fn write_pairs_with_names(&self, out: &mut Vec<u8>) {
        let fields = self.fields();
        out.push(b'*');
        out.extend_from_slice(itoa::Buffer::new().format(2 * fields.count).as_bytes());
        out.extend_from_slice(b"\r\n");
        for (name, value) in fields {
            bulk(out, name);
            bulk(out, value);
        }
    }
}

/// A length and CR LF. Most are short: those are appended as arrays of a known size, without a call.
#[inline]
fn write_len(out: &mut Vec<u8>, len: usize) {
    let digit = |n: usize| b'0' + (n % 10) as u8;
    if len < 10 {
        out.extend_from_slice(&[digit(len), b'\r', b'\n']);
    } else if len < 100 {
        out.extend_from_slice(&[digit(len / 10), digit(len), b'\r', b'\n']);
    } else if len < 1000 {
        out.extend_from_slice(&[digit(len / 100), digit(len / 10), digit(len), b'\r', b'\n']);
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Iterator over the pairs of an [`Entry`].
#[derive(Clone)]
pub struct Fields<'a> {
    schema: Option<&'a Schema>,
    body: &'a [u8],
    at: usize,
    index: usize,
    count: usize,
}

impl<'a> Fields<'a> {
    #[inline]
    fn string(&mut self) -> &'a [u8] {
        let len = read_uint(self.body, &mut self.at) as usize;
        let string = &self.body[self.at..self.at + len];
        self.at += len;
        string
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index == self.count {
            return None;
        }
        let name = match self.schema {
            Some(schema) => schema.name(self.index),
            None => self.string(),
        };
        self.index += 1;
        Some((name, self.string()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count - self.index, Some(self.count - self.index))
    }
}

impl ExactSizeIterator for Fields<'_> {}
