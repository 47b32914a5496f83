//! The lists that records carry: fields of an entry, IDs, the entries of a claim. Each is either what a command has at
//! hand or bytes of the log that stay where they are; both are walked in the same way, so nothing is copied between.
//!
//! Whoever makes the encoded form has read all of it once: walking it again meets no fault.

use crate::command::args::Args;
use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_int, put_uint};

/// Fields and values of an entry: of a command, or of a record that is read back.
#[derive(Clone, Debug)]
pub enum Fields<'a> {
    /// Names and values in turn.
    Args(Args<'a>),
    /// So many pairs, each a name and a value behind their lengths.
    Encoded(usize, Reader<'a>),
}

impl<'a> Fields<'a> {
    /// Pairs.
    pub fn iter(&self) -> FieldsIter<'a> {
        match self {
            Fields::Args(args) => FieldsIter::Args(*args, 0),
            Fields::Encoded(n, reader) => FieldsIter::Encoded(*n, *reader),
        }
    }
}

/// Walks over [`Fields`].
#[derive(Clone, Debug)]
pub enum FieldsIter<'a> {
    /// See [`Fields::Args`], and where we are.
    Args(Args<'a>, usize),
    /// See [`Fields::Encoded`].
    Encoded(usize, Reader<'a>),
}

impl<'a> Iterator for FieldsIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            FieldsIter::Args(args, at) => {
                if *at >= args.len() {
                    return None;
                }
                let pair = (args.get(*at), args.get(*at + 1));
                *at += 2;
                Some(pair)
            }
            FieldsIter::Encoded(0, _) => None,
            FieldsIter::Encoded(n, reader) => {
                *n -= 1;
                // Read once already when the record was decoded.
                Some((reader.bytes("field").ok()?, reader.bytes("value").ok()?))
            }
        }
    }
}

/// Entry IDs: of a command, or of a record that is read back.
#[derive(Clone, Copy, Debug)]
pub enum Ids<'a> {
    /// As they are.
    Slice(&'a [StreamId]),
    /// So many, each as the difference from the one before.
    Encoded(usize, Reader<'a>),
}

impl<'a> Ids<'a> {
    /// The IDs in order.
    pub fn iter(&self) -> impl Iterator<Item = StreamId> + use<'a> {
        let (slice, mut encoded) = match *self {
            Ids::Slice(ids) => (ids, None),
            Ids::Encoded(n, reader) => (&[][..], Some((n, IdReader { reader, last: StreamId::MIN }))),
        };
        let decoded = std::iter::from_fn(move || {
            let (n, reader) = encoded.as_mut()?;
            *n = n.checked_sub(1)?;
            reader.next().ok()
        });
        slice.iter().copied().chain(decoded)
    }
}

/// An ID as the difference from the one before it: two bytes for the usual neighbour.
pub(super) fn put_id_after(out: &mut Vec<u8>, id: StreamId, last: StreamId) {
    let step = id.ms.wrapping_sub(last.ms) as i64;
    put_int(out, step);
    if step == 0 {
        put_int(out, id.seq.wrapping_sub(last.seq) as i64);
    } else {
        put_uint(out, id.seq);
    }
}

/// Reads IDs that are each written as the difference from the one before.
pub(super) struct IdReader<'a> {
    pub reader: Reader<'a>,
    /// What the next ID is the difference from.
    pub last: StreamId,
}

impl IdReader<'_> {
    pub fn next(&mut self) -> Result<StreamId, Corrupt> {
        let step = self.reader.int("entry ID")?;
        let ms = self.last.ms.wrapping_add(step as u64);
        let seq = if step == 0 {
            self.last.seq.wrapping_add(self.reader.int("entry ID")? as u64)
        } else {
            self.reader.uint("entry ID")?
        };
        self.last = StreamId { ms, seq };
        Ok(self.last)
    }
}

/// One pending entry of a claim: who it is, and the delivery number it has from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claimed {
    /// The entry.
    pub id: StreamId,
    /// Its delivery count.
    pub deliveries: u64,
}

/// The entries of a claim: of a command, or of a record that is read back.
#[derive(Clone, Copy, Debug)]
pub enum Claims<'a> {
    /// As they are.
    Slice(&'a [Claimed]),
    /// So many; IDs as in [`Ids::Encoded`], each with its count.
    Encoded(usize, Reader<'a>),
}

impl<'a> Claims<'a> {
    /// How many.
    pub(super) fn len(&self) -> usize {
        match self {
            Claims::Slice(claims) => claims.len(),
            Claims::Encoded(n, _) => *n,
        }
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = Claimed> + use<'a> {
        let (slice, mut encoded) = match *self {
            Claims::Slice(claims) => (claims, None),
            Claims::Encoded(n, reader) => (&[][..], Some((n, IdReader { reader, last: StreamId::MIN }))),
        };
        let decoded = std::iter::from_fn(move || {
            let (n, reader) = encoded.as_mut()?;
            *n = n.checked_sub(1)?;
            Some(Claimed { id: reader.next().ok()?, deliveries: reader.reader.uint("deliveries").ok()? })
        });
        slice.iter().copied().chain(decoded)
    }
}

/// Appends how many IDs there are, and each as the difference from the one before.
pub(super) fn put_ids(out: &mut Vec<u8>, ids: Ids<'_>) {
    match ids {
        Ids::Slice(ids) => {
            put_uint(out, ids.len() as u64);
            let mut last = StreamId::MIN;
            for &id in ids {
                put_id_after(out, id, last);
                last = id;
            }
        }
        Ids::Encoded(n, _) => {
            put_uint(out, n as u64);
            let mut last = StreamId::MIN;
            for id in ids.iter() {
                put_id_after(out, id, last);
                last = id;
            }
        }
    }
}

/// As [`put_ids`], each with its delivery count behind it.
pub(super) fn put_claims(out: &mut Vec<u8>, claims: Claims<'_>) {
    put_uint(out, claims.len() as u64);
    let mut last = StreamId::MIN;
    for claim in claims.iter() {
        put_id_after(out, claim.id, last);
        put_uint(out, claim.deliveries);
        last = claim.id;
    }
}

/// Leaves the IDs where they are, having read each of them once.
pub(super) fn read_ids<'a>(reader: &mut Reader<'a>) -> Result<Ids<'a>, Corrupt> {
    let n = reader.count("entry IDs")?;
    let mut ids = IdReader { reader: *reader, last: StreamId::MIN };
    let start = ids.reader;
    for _ in 0..n {
        ids.next()?;
    }
    *reader = ids.reader;
    Ok(Ids::Encoded(n, start))
}

/// As [`read_ids`].
pub(super) fn read_claims<'a>(reader: &mut Reader<'a>) -> Result<Claims<'a>, Corrupt> {
    let n = reader.count("claimed entries")?;
    let mut ids = IdReader { reader: *reader, last: StreamId::MIN };
    let start = ids.reader;
    for _ in 0..n {
        ids.next()?;
        ids.reader.uint("deliveries")?;
    }
    *reader = ids.reader;
    Ok(Claims::Encoded(n, start))
}
