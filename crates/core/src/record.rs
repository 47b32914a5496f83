//! Records: what the log holds. A record is an *effect* with absolute values (the ID that `*` became, the time, who now
//! holds what), never a command; applying it asks no clock and makes no choice.
//!
//! Layout: one tag byte, then fields as in `state::codec`. Tags are never used again for another meaning; a gap is a
//! retired one. `docs/formats.md` draws them.

use crate::command::args::Args;
use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_bytes, put_id, put_int, put_uint};
use crate::state::group::GroupOptions;
use crate::state::idempotence::IdempotenceSettings;
use crate::state::retention::Retention;

/// A key in a numbered database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At<'a> {
    /// The database.
    pub db: usize,
    /// The key.
    pub key: &'a [u8],
}

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
fn put_id_after(out: &mut Vec<u8>, id: StreamId, last: StreamId) {
    let step = id.ms.wrapping_sub(last.ms) as i64;
    put_int(out, step);
    if step == 0 {
        put_int(out, id.seq.wrapping_sub(last.seq) as i64);
    } else {
        put_uint(out, id.seq);
    }
}

struct IdReader<'a> {
    reader: Reader<'a>,
    last: StreamId,
}

impl IdReader<'_> {
    fn next(&mut self) -> Result<StreamId, Corrupt> {
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

/// One effect.
#[derive(Clone, Debug)]
pub enum Record<'a> {
    /// The key holds this string and goes at `expire_ms` (0 = never).
    SetString { at: At<'a>, expire_ms: u64, value: &'a [u8] },
    /// Bytes of a string from `offset` on are these; the string grows with zeros as needed.
    WriteString { at: At<'a>, offset: u64, bytes: &'a [u8] },
    /// The key is gone.
    Delete { at: At<'a> },
    /// The key goes at `expire_ms` (0 = never).
    Expire { at: At<'a>, expire_ms: u64 },
    /// What `at` held is now under `to` (of the same database), which loses what it held.
    Rename { at: At<'a>, to: &'a [u8] },
    /// `to` holds a copy of `at`.
    Copy { at: At<'a>, to: At<'a> },
    /// The key is now in another database.
    Move { at: At<'a>, db: usize },
    /// A database is empty; `None`: all are.
    Flush { db: Option<usize> },
    /// Two databases have changed places.
    SwapDb { a: usize, b: usize },
    /// The key holds an empty stream.
    StreamCreate { at: At<'a> },
    /// An entry stands at the end of the stream, which is made if it is not there.
    Add { at: At<'a>, id: StreamId, fields: Fields<'a> },
    /// These entries are deleted (raises the greatest deleted ID).
    DeleteEntries { at: At<'a>, ids: Ids<'a> },
    /// All entries below the bound are trimmed away.
    Trim { at: At<'a>, before: StreamId },
    /// These entries are trimmed away (those between them stay).
    TrimEntries { at: At<'a>, ids: Ids<'a> },
    /// Counters of the stream.
    SetStream { at: At<'a>, last_id: StreamId, max_deleted: StreamId, entries_added: u64 },
    /// How long and how many messages the stream remembers from now on; those it has remembered are forgotten.
    IdempotenceSettings { at: At<'a>, settings: IdempotenceSettings },
    /// The message `iid` of the producer became the entry; so many were recorded over the stream's life.
    Remember { at: At<'a>, pid: &'a [u8], iid: &'a [u8], id: StreamId, recorded_ms: u64, added: u64 },
    /// The producer's messages recorded up to `until_ms` are forgotten.
    Forget { at: At<'a>, pid: &'a [u8], until_ms: u64 },
    /// So many duplicates were recognized over the stream's life.
    Duplicates { at: At<'a>, duplicates: u64 },
    /// How long the stream keeps its entries.
    RetentionSettings { at: At<'a>, retention: Retention },
    /// A group stands at a position.
    GroupCreate { at: At<'a>, group: &'a [u8], position: StreamId, entries_read: Option<u64> },
    /// The group's position.
    GroupPosition { at: At<'a>, group: &'a [u8], position: StreamId, entries_read: Option<u64> },
    /// The group is gone.
    GroupDestroy { at: At<'a>, group: &'a [u8] },
    /// The consumer is there, seen at `now_ms`.
    ConsumerCreate { at: At<'a>, group: &'a [u8], consumer: &'a [u8], now_ms: u64 },
    /// The consumer and its pending entries are gone.
    ConsumerDelete { at: At<'a>, group: &'a [u8], consumer: &'a [u8] },
    /// The consumer tried to get entries and, if `active`, got some.
    ConsumerSeen { at: At<'a>, group: &'a [u8], consumer: &'a [u8], now_ms: u64, active: bool },
    /// The entries after `after` up to `last` were handed out to the consumer, pending unless `no_ack`.
    Deliver {
        at: At<'a>,
        group: &'a [u8],
        consumer: &'a [u8],
        after: StreamId,
        last: StreamId,
        entries_read: Option<u64>,
        no_ack: bool,
        now_ms: u64,
    },
    /// These entries are pending for the consumer, delivered at `delivered_ms`.
    Claim { at: At<'a>, group: &'a [u8], consumer: &'a [u8], delivered_ms: u64, claims: Claims<'a> },
    /// These entries are pending no more.
    Acknowledge { at: At<'a>, group: &'a [u8], ids: Ids<'a> },
    /// These entries are pending and nobody's: released, in this order and numbered from `first_order` on (`due_ms` 0),
    /// or deferred until `due_ms`.
    GiveBack { at: At<'a>, group: &'a [u8], first_order: u64, due_ms: u64, claims: Claims<'a> },
    /// The options of a group.
    GroupOptions { at: At<'a>, group: &'a [u8], options: GroupOptions },
    /// What is pending between two IDs, both included, is pending no more.
    AcknowledgeRange { at: At<'a>, group: &'a [u8], from: StreamId, to: StreamId },
    /// All that the consumer had is released, numbered from `first_order` on, each with a delivery less.
    GiveBackAll { at: At<'a>, group: &'a [u8], consumer: &'a [u8], first_order: u64 },
    /// These entries are pending no more, and were not acknowledged: the stream has lost them.
    Drop { at: At<'a>, group: &'a [u8], ids: Ids<'a> },
    /// What is pending between two IDs, both included, is pending no more, and was not acknowledged.
    DropRange { at: At<'a>, group: &'a [u8], from: StreamId, to: StreamId },
    /// Groups do not get the entry before `due_ms`.
    Delay { at: At<'a>, id: StreamId, due_ms: u64 },
    /// The group has come to `position` and passed over these entries; each stands with the time until which it is held
    /// in the place of a delivery count, 0 = until its key is free.
    Hold { at: At<'a>, group: &'a [u8], position: StreamId, entries_read: Option<u64>, holds: Claims<'a> },
    /// These entries, held or not, were handed out to the consumer for the first time, pending unless `no_ack`.
    Give { at: At<'a>, group: &'a [u8], consumer: &'a [u8], no_ack: bool, now_ms: u64, ids: Ids<'a> },
    /// Delayed entries are due: in order of their times, those up to this time and, of that very time, up to this ID.
    Due { at: At<'a>, due_ms: u64, id: StreamId },
    /// Where the last XAUTOCLAIM began that gave up before it found anything; `None`: the last one did not.
    ScanStart { at: At<'a>, group: &'a [u8], start: Option<StreamId> },
}

mod tag {
    pub const SET_STRING: u8 = 1;
    pub const WRITE_STRING: u8 = 2;
    pub const DELETE: u8 = 3;
    pub const EXPIRE: u8 = 4;
    pub const RENAME: u8 = 5;
    pub const COPY: u8 = 6;
    pub const MOVE: u8 = 7;
    pub const FLUSH: u8 = 8;
    pub const SWAP_DB: u8 = 9;
    pub const STREAM_CREATE: u8 = 16;
    pub const ADD: u8 = 17;
    pub const DELETE_ENTRIES: u8 = 18;
    pub const TRIM: u8 = 19;
    pub const TRIM_ENTRIES: u8 = 20;
    pub const SET_STREAM: u8 = 21;
    pub const IDEMPOTENCE_SETTINGS: u8 = 22;
    pub const REMEMBER: u8 = 23;
    pub const FORGET: u8 = 24;
    pub const DUPLICATES: u8 = 25;
    pub const RETENTION_SETTINGS: u8 = 26;
    pub const GROUP_CREATE: u8 = 32;
    pub const GROUP_POSITION: u8 = 33;
    pub const GROUP_DESTROY: u8 = 34;
    pub const CONSUMER_CREATE: u8 = 35;
    pub const CONSUMER_DELETE: u8 = 36;
    pub const CONSUMER_SEEN: u8 = 37;
    pub const DELIVER: u8 = 38;
    pub const CLAIM: u8 = 39;
    pub const ACKNOWLEDGE: u8 = 40;
    pub const GIVE_BACK: u8 = 41;
    pub const GROUP_OPTIONS: u8 = 42;
    pub const ACKNOWLEDGE_RANGE: u8 = 43;
    pub const GIVE_BACK_ALL: u8 = 44;
    pub const DROP: u8 = 45;
    pub const SCAN_START: u8 = 46;
    pub const DROP_RANGE: u8 = 47;
    pub const DELAY: u8 = 50;
    pub const HOLD: u8 = 51;
    pub const GIVE: u8 = 52;
    pub const DUE: u8 = 53;
}

fn put_at(out: &mut Vec<u8>, tag: u8, at: At<'_>) {
    out.push(tag);
    put_uint(out, at.db as u64);
    put_bytes(out, at.key);
}

fn put_ids(out: &mut Vec<u8>, ids: Ids<'_>) {
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

fn put_claims(out: &mut Vec<u8>, claims: Claims<'_>) {
    let n = match claims {
        Claims::Slice(claims) => claims.len(),
        Claims::Encoded(n, _) => n,
    };
    put_uint(out, n as u64);
    let mut last = StreamId::MIN;
    for claim in claims.iter() {
        put_id_after(out, claim.id, last);
        put_uint(out, claim.deliveries);
        last = claim.id;
    }
}

fn put_optional(out: &mut Vec<u8>, value: Option<u64>) {
    put_int(out, value.map_or(-1, |n| n as i64));
}

fn read_db(reader: &mut Reader<'_>) -> Result<usize, Corrupt> {
    let db = reader.uint("database")?;
    if db < crate::limits::DATABASES as u64 { Ok(db as usize) } else { Err(Corrupt { what: "database number" }) }
}

fn read_at<'a>(reader: &mut Reader<'a>) -> Result<At<'a>, Corrupt> {
    Ok(At { db: read_db(reader)?, key: reader.bytes("key")? })
}

/// Leaves the IDs where they are, having read each of them once.
fn read_ids<'a>(reader: &mut Reader<'a>) -> Result<Ids<'a>, Corrupt> {
    let n = reader.count("entry IDs")?;
    let mut ids = IdReader { reader: *reader, last: StreamId::MIN };
    let start = ids.reader;
    for _ in 0..n {
        ids.next()?;
    }
    *reader = ids.reader;
    Ok(Ids::Encoded(n, start))
}

/// A setting of 32 bits that is never 0.
fn read_small(reader: &mut Reader<'_>) -> Result<u32, Corrupt> {
    let value = u32::try_from(reader.uint("setting")?).ok().filter(|&value| value > 0);
    value.ok_or(Corrupt { what: "setting" })
}

/// As [`read_ids`].
fn read_claims<'a>(reader: &mut Reader<'a>) -> Result<Claims<'a>, Corrupt> {
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

fn read_optional(reader: &mut Reader<'_>) -> Result<Option<u64>, Corrupt> {
    Ok(u64::try_from(reader.int("optional count")?).ok())
}

impl<'a> Record<'a> {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::SetString { at, expire_ms, value } => {
                put_at(out, tag::SET_STRING, *at);
                put_uint(out, *expire_ms);
                put_bytes(out, value);
            }
            Record::WriteString { at, offset, bytes } => {
                put_at(out, tag::WRITE_STRING, *at);
                put_uint(out, *offset);
                put_bytes(out, bytes);
            }
            Record::Delete { at } => put_at(out, tag::DELETE, *at),
            Record::Expire { at, expire_ms } => {
                put_at(out, tag::EXPIRE, *at);
                put_uint(out, *expire_ms);
            }
            Record::Rename { at, to } => {
                put_at(out, tag::RENAME, *at);
                put_bytes(out, to);
            }
            Record::Copy { at, to } => {
                put_at(out, tag::COPY, *at);
                put_uint(out, to.db as u64);
                put_bytes(out, to.key);
            }
            Record::Move { at, db } => {
                put_at(out, tag::MOVE, *at);
                put_uint(out, *db as u64);
            }
            Record::Flush { db } => {
                out.push(tag::FLUSH);
                put_optional(out, db.map(|db| db as u64));
            }
            Record::SwapDb { a, b } => {
                out.push(tag::SWAP_DB);
                put_uint(out, *a as u64);
                put_uint(out, *b as u64);
            }
            Record::StreamCreate { at } => put_at(out, tag::STREAM_CREATE, *at),
            Record::Add { at, id, fields } => {
                put_at(out, tag::ADD, *at);
                put_id(out, *id);
                let pairs = fields.iter();
                let n = match fields {
                    Fields::Args(args) => args.len() / 2,
                    Fields::Encoded(n, _) => *n,
                };
                put_uint(out, n as u64);
                for (name, value) in pairs {
                    put_bytes(out, name);
                    put_bytes(out, value);
                }
            }
            Record::DeleteEntries { at, ids } => {
                put_at(out, tag::DELETE_ENTRIES, *at);
                put_ids(out, *ids);
            }
            Record::Trim { at, before } => {
                put_at(out, tag::TRIM, *at);
                put_id(out, *before);
            }
            Record::TrimEntries { at, ids } => {
                put_at(out, tag::TRIM_ENTRIES, *at);
                put_ids(out, *ids);
            }
            Record::SetStream { at, last_id, max_deleted, entries_added } => {
                put_at(out, tag::SET_STREAM, *at);
                put_id(out, *last_id);
                put_id(out, *max_deleted);
                put_uint(out, *entries_added);
            }
            Record::IdempotenceSettings { at, settings } => {
                put_at(out, tag::IDEMPOTENCE_SETTINGS, *at);
                put_uint(out, u64::from(settings.duration_s));
                put_uint(out, u64::from(settings.maxsize));
            }
            Record::Remember { at, pid, iid, id, recorded_ms, added } => {
                put_at(out, tag::REMEMBER, *at);
                put_bytes(out, pid);
                put_bytes(out, iid);
                put_id(out, *id);
                put_uint(out, *recorded_ms);
                put_uint(out, *added);
            }
            Record::Forget { at, pid, until_ms } => {
                put_at(out, tag::FORGET, *at);
                put_bytes(out, pid);
                put_uint(out, *until_ms);
            }
            Record::Duplicates { at, duplicates } => {
                put_at(out, tag::DUPLICATES, *at);
                put_uint(out, *duplicates);
            }
            Record::RetentionSettings { at, retention } => {
                put_at(out, tag::RETENTION_SETTINGS, *at);
                let mut settings = Vec::new();
                retention.encode(&mut settings);
                put_bytes(out, &settings);
            }
            Record::GroupCreate { at, group, position, entries_read } => {
                put_at(out, tag::GROUP_CREATE, *at);
                put_bytes(out, group);
                put_id(out, *position);
                put_optional(out, *entries_read);
            }
            Record::GroupPosition { at, group, position, entries_read } => {
                put_at(out, tag::GROUP_POSITION, *at);
                put_bytes(out, group);
                put_id(out, *position);
                put_optional(out, *entries_read);
            }
            Record::GroupDestroy { at, group } => {
                put_at(out, tag::GROUP_DESTROY, *at);
                put_bytes(out, group);
            }
            Record::ConsumerCreate { at, group, consumer, now_ms } => {
                put_at(out, tag::CONSUMER_CREATE, *at);
                put_bytes(out, group);
                put_bytes(out, consumer);
                put_uint(out, *now_ms);
            }
            Record::ConsumerDelete { at, group, consumer } => {
                put_at(out, tag::CONSUMER_DELETE, *at);
                put_bytes(out, group);
                put_bytes(out, consumer);
            }
            Record::ConsumerSeen { at, group, consumer, now_ms, active } => {
                put_at(out, tag::CONSUMER_SEEN, *at);
                put_bytes(out, group);
                put_bytes(out, consumer);
                put_uint(out, *now_ms);
                out.push(u8::from(*active));
            }
            Record::Deliver { at, group, consumer, after, last, entries_read, no_ack, now_ms } => {
                put_at(out, tag::DELIVER, *at);
                put_bytes(out, group);
                put_bytes(out, consumer);
                put_id(out, *after);
                put_id_after(out, *last, *after);
                put_optional(out, *entries_read);
                out.push(u8::from(*no_ack));
                put_uint(out, *now_ms);
            }
            Record::Claim { at, group, consumer, delivered_ms, claims } => {
                put_at(out, tag::CLAIM, *at);
                put_bytes(out, group);
                put_bytes(out, consumer);
                put_uint(out, *delivered_ms);
                put_claims(out, *claims);
            }
            Record::Acknowledge { at, group, ids } => {
                put_at(out, tag::ACKNOWLEDGE, *at);
                put_bytes(out, group);
                put_ids(out, *ids);
            }
            Record::GiveBack { at, group, first_order, due_ms, claims } => {
                put_at(out, tag::GIVE_BACK, *at);
                put_bytes(out, group);
                put_uint(out, *first_order);
                put_uint(out, *due_ms);
                put_claims(out, *claims);
            }
            Record::GroupOptions { at, group, options } => {
                put_at(out, tag::GROUP_OPTIONS, *at);
                put_bytes(out, group);
                let mut bytes = Vec::new();
                options.encode(&mut bytes);
                put_bytes(out, &bytes);
            }
            Record::AcknowledgeRange { at, group, from, to } | Record::DropRange { at, group, from, to } => {
                let dropped = matches!(self, Record::DropRange { .. });
                put_at(out, if dropped { tag::DROP_RANGE } else { tag::ACKNOWLEDGE_RANGE }, *at);
                put_bytes(out, group);
                put_id(out, *from);
                put_id_after(out, *to, *from);
            }
            Record::GiveBackAll { at, group, consumer, first_order } => {
                put_at(out, tag::GIVE_BACK_ALL, *at);
                put_bytes(out, group);
                put_bytes(out, consumer);
                put_uint(out, *first_order);
            }
            Record::Drop { at, group, ids } => {
                put_at(out, tag::DROP, *at);
                put_bytes(out, group);
                put_ids(out, *ids);
            }
            Record::Delay { at, id, due_ms } => {
                put_at(out, tag::DELAY, *at);
                put_id(out, *id);
                put_uint(out, *due_ms);
            }
            Record::Hold { at, group, position, entries_read, holds } => {
                put_at(out, tag::HOLD, *at);
                put_bytes(out, group);
                put_id(out, *position);
                put_optional(out, *entries_read);
                put_claims(out, *holds);
            }
            Record::Give { at, group, consumer, no_ack, now_ms, ids } => {
                put_at(out, tag::GIVE, *at);
                put_bytes(out, group);
                put_bytes(out, consumer);
                out.push(u8::from(*no_ack));
                put_uint(out, *now_ms);
                put_ids(out, *ids);
            }
            Record::Due { at, due_ms, id } => {
                put_at(out, tag::DUE, *at);
                put_uint(out, *due_ms);
                put_id(out, *id);
            }
            Record::ScanStart { at, group, start } => {
                put_at(out, tag::SCAN_START, *at);
                put_bytes(out, group);
                out.push(u8::from(start.is_some()));
                put_id(out, start.unwrap_or(StreamId::MIN));
            }
        }
    }

    /// Reads the next record.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Record<'a>, Corrupt> {
        let what = "record";
        Ok(match reader.byte(what)? {
            tag::SET_STRING => {
                Record::SetString { at: read_at(reader)?, expire_ms: reader.uint(what)?, value: reader.bytes(what)? }
            }
            tag::WRITE_STRING => {
                Record::WriteString { at: read_at(reader)?, offset: reader.uint(what)?, bytes: reader.bytes(what)? }
            }
            tag::DELETE => Record::Delete { at: read_at(reader)? },
            tag::EXPIRE => Record::Expire { at: read_at(reader)?, expire_ms: reader.uint(what)? },
            tag::RENAME => Record::Rename { at: read_at(reader)?, to: reader.bytes(what)? },
            tag::COPY => Record::Copy { at: read_at(reader)?, to: read_at(reader)? },
            tag::MOVE => Record::Move { at: read_at(reader)?, db: read_db(reader)? },
            tag::FLUSH => match read_optional(reader)? {
                None => Record::Flush { db: None },
                Some(db) if db < crate::limits::DATABASES as u64 => Record::Flush { db: Some(db as usize) },
                Some(_) => return Err(Corrupt { what: "database number" }),
            },
            tag::SWAP_DB => Record::SwapDb { a: read_db(reader)?, b: read_db(reader)? },
            tag::STREAM_CREATE => Record::StreamCreate { at: read_at(reader)? },
            tag::ADD => {
                let (at, id) = (read_at(reader)?, reader.id(what)?);
                let n = reader.count(what)?;
                let start = *reader;
                for _ in 0..n {
                    reader.bytes("field")?;
                    reader.bytes("value")?;
                }
                Record::Add { at, id, fields: Fields::Encoded(n, start) }
            }
            tag::DELETE_ENTRIES => Record::DeleteEntries { at: read_at(reader)?, ids: read_ids(reader)? },
            tag::TRIM => Record::Trim { at: read_at(reader)?, before: reader.id(what)? },
            tag::TRIM_ENTRIES => Record::TrimEntries { at: read_at(reader)?, ids: read_ids(reader)? },
            tag::SET_STREAM => Record::SetStream {
                at: read_at(reader)?,
                last_id: reader.id(what)?,
                max_deleted: reader.id(what)?,
                entries_added: reader.uint(what)?,
            },
            tag::IDEMPOTENCE_SETTINGS => Record::IdempotenceSettings {
                at: read_at(reader)?,
                settings: IdempotenceSettings { duration_s: read_small(reader)?, maxsize: read_small(reader)? },
            },
            tag::REMEMBER => Record::Remember {
                at: read_at(reader)?,
                pid: reader.bytes(what)?,
                iid: reader.bytes(what)?,
                id: reader.id(what)?,
                recorded_ms: reader.uint(what)?,
                added: reader.uint(what)?,
            },
            tag::FORGET => {
                Record::Forget { at: read_at(reader)?, pid: reader.bytes(what)?, until_ms: reader.uint(what)? }
            }
            tag::DUPLICATES => Record::Duplicates { at: read_at(reader)?, duplicates: reader.uint(what)? },
            tag::RETENTION_SETTINGS => {
                let (at, mut settings) = (read_at(reader)?, Reader::new(reader.bytes(what)?));
                let none = settings.is_empty();
                let retention = if none { Retention::default() } else { Retention::decode(&mut settings)? };
                if !settings.is_empty() {
                    return Err(Corrupt { what: "retention of a stream" });
                }
                Record::RetentionSettings { at, retention }
            }
            tag::GROUP_CREATE => Record::GroupCreate {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                position: reader.id(what)?,
                entries_read: read_optional(reader)?,
            },
            tag::GROUP_POSITION => Record::GroupPosition {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                position: reader.id(what)?,
                entries_read: read_optional(reader)?,
            },
            tag::GROUP_DESTROY => Record::GroupDestroy { at: read_at(reader)?, group: reader.bytes(what)? },
            tag::CONSUMER_CREATE => Record::ConsumerCreate {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                consumer: reader.bytes(what)?,
                now_ms: reader.uint(what)?,
            },
            tag::CONSUMER_DELETE => Record::ConsumerDelete {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                consumer: reader.bytes(what)?,
            },
            tag::CONSUMER_SEEN => Record::ConsumerSeen {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                consumer: reader.bytes(what)?,
                now_ms: reader.uint(what)?,
                active: reader.byte(what)? != 0,
            },
            tag::DELIVER => {
                let (at, group, consumer) = (read_at(reader)?, reader.bytes(what)?, reader.bytes(what)?);
                let after = reader.id(what)?;
                let mut ids = IdReader { reader: *reader, last: after };
                let last = ids.next()?;
                *reader = ids.reader;
                Record::Deliver {
                    at,
                    group,
                    consumer,
                    after,
                    last,
                    entries_read: read_optional(reader)?,
                    no_ack: reader.byte(what)? != 0,
                    now_ms: reader.uint(what)?,
                }
            }
            tag::CLAIM => {
                let (at, group, consumer) = (read_at(reader)?, reader.bytes(what)?, reader.bytes(what)?);
                let delivered_ms = reader.uint(what)?;
                Record::Claim { at, group, consumer, delivered_ms, claims: read_claims(reader)? }
            }
            tag::ACKNOWLEDGE => {
                Record::Acknowledge { at: read_at(reader)?, group: reader.bytes(what)?, ids: read_ids(reader)? }
            }
            tag::GIVE_BACK => Record::GiveBack {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                first_order: reader.uint(what)?,
                due_ms: reader.uint(what)?,
                claims: read_claims(reader)?,
            },
            tag::GROUP_OPTIONS => {
                let (at, group) = (read_at(reader)?, reader.bytes(what)?);
                let options = GroupOptions::decode(Reader::new(reader.bytes(what)?))?;
                Record::GroupOptions { at, group, options }
            }
            tag @ (tag::ACKNOWLEDGE_RANGE | tag::DROP_RANGE) => {
                let (at, group, from) = (read_at(reader)?, reader.bytes(what)?, reader.id(what)?);
                let mut ids = IdReader { reader: *reader, last: from };
                let to = ids.next()?;
                *reader = ids.reader;
                match tag {
                    tag::DROP_RANGE => Record::DropRange { at, group, from, to },
                    _ => Record::AcknowledgeRange { at, group, from, to },
                }
            }
            tag::GIVE_BACK_ALL => Record::GiveBackAll {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                consumer: reader.bytes(what)?,
                first_order: reader.uint(what)?,
            },
            tag::DROP => Record::Drop { at: read_at(reader)?, group: reader.bytes(what)?, ids: read_ids(reader)? },
            tag::DELAY => Record::Delay { at: read_at(reader)?, id: reader.id(what)?, due_ms: reader.uint(what)? },
            tag::HOLD => Record::Hold {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                position: reader.id(what)?,
                entries_read: read_optional(reader)?,
                holds: read_claims(reader)?,
            },
            tag::GIVE => Record::Give {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                consumer: reader.bytes(what)?,
                no_ack: reader.byte(what)? != 0,
                now_ms: reader.uint(what)?,
                ids: read_ids(reader)?,
            },
            tag::DUE => Record::Due { at: read_at(reader)?, due_ms: reader.uint(what)?, id: reader.id(what)? },
            tag::SCAN_START => {
                let (at, group) = (read_at(reader)?, reader.bytes(what)?);
                let given = reader.byte(what)? != 0;
                let start = reader.id(what)?;
                Record::ScanStart { at, group, start: given.then_some(start) }
            }
            _ => return Err(Corrupt { what: "unknown record tag" }),
        })
    }

    /// The key that the record is about, if it is about one.
    pub fn at(&self) -> Option<At<'a>> {
        match self {
            Record::Flush { .. } | Record::SwapDb { .. } => None,
            Record::SetString { at, .. }
            | Record::WriteString { at, .. }
            | Record::Delete { at }
            | Record::Expire { at, .. }
            | Record::Rename { at, .. }
            | Record::Copy { at, .. }
            | Record::Move { at, .. }
            | Record::StreamCreate { at }
            | Record::Add { at, .. }
            | Record::DeleteEntries { at, .. }
            | Record::Trim { at, .. }
            | Record::TrimEntries { at, .. }
            | Record::SetStream { at, .. }
            | Record::IdempotenceSettings { at, .. }
            | Record::Remember { at, .. }
            | Record::Forget { at, .. }
            | Record::Duplicates { at, .. }
            | Record::RetentionSettings { at, .. }
            | Record::GroupCreate { at, .. }
            | Record::GroupPosition { at, .. }
            | Record::GroupDestroy { at, .. }
            | Record::ConsumerCreate { at, .. }
            | Record::ConsumerDelete { at, .. }
            | Record::ConsumerSeen { at, .. }
            | Record::Deliver { at, .. }
            | Record::Claim { at, .. }
            | Record::Acknowledge { at, .. }
            | Record::GiveBack { at, .. }
            | Record::GroupOptions { at, .. }
            | Record::AcknowledgeRange { at, .. }
            | Record::GiveBackAll { at, .. }
            | Record::Drop { at, .. }
            | Record::DropRange { at, .. }
            | Record::Delay { at, .. }
            | Record::Hold { at, .. }
            | Record::Give { at, .. }
            | Record::Due { at, .. }
            | Record::ScanStart { at, .. } => Some(*at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encoded, decoded and encoded again, every kind of record is the same bytes; cut anywhere, it is refused.
    #[test]
    fn records_come_back_whole_or_not_at_all() {
        let at = At { db: 3, key: b"key" };
        let (a, b) = (StreamId::new(5, 7), StreamId::new(1000, 0));
        let ids = [a, b, a, StreamId::MAX, StreamId::MIN];
        let claims = [Claimed { id: b, deliveries: 2 }, Claimed { id: a, deliveries: i64::MAX as u64 }];
        let mut fields = crate::command::args::OwnedArgs::default();
        for part in [&b"f"[..], b"", b"", b"value"] {
            fields.push(part);
        }
        let (group, consumer) = (&b"g"[..], &b"c"[..]);
        let records = [
            Record::SetString { at, expire_ms: 9, value: b"v" },
            Record::WriteString { at, offset: 3, bytes: b"xy" },
            Record::Delete { at },
            Record::Expire { at, expire_ms: 0 },
            Record::Rename { at, to: b"other" },
            Record::Copy { at, to: At { db: 1, key: b"" } },
            Record::Move { at, db: 15 },
            Record::Flush { db: None },
            Record::Flush { db: Some(2) },
            Record::SwapDb { a: 0, b: 1 },
            Record::StreamCreate { at },
            Record::Add { at, id: b, fields: Fields::Args(fields.args()) },
            Record::DeleteEntries { at, ids: Ids::Slice(&ids) },
            Record::Trim { at, before: a },
            Record::TrimEntries { at, ids: Ids::Slice(&ids[..1]) },
            Record::SetStream { at, last_id: b, max_deleted: a, entries_added: 5 },
            Record::IdempotenceSettings { at, settings: IdempotenceSettings { duration_s: 300, maxsize: 1 } },
            Record::Remember { at, pid: b"p", iid: b"\0", id: b, recorded_ms: 300, added: 3 },
            Record::Forget { at, pid: b"p", until_ms: 9 },
            Record::Duplicates { at, duplicates: 2 },
            Record::RetentionSettings { at, retention: Retention::default() },
            Record::RetentionSettings {
                at,
                retention: Retention { max_len: 300, max_age_ms: 1, acked: true, force: true, ..Retention::default() },
            },
            Record::GroupCreate { at, group, position: a, entries_read: None },
            Record::GroupPosition { at, group, position: a, entries_read: Some(4) },
            Record::GroupDestroy { at, group },
            Record::ConsumerCreate { at, group, consumer, now_ms: 1 },
            Record::ConsumerDelete { at, group, consumer },
            Record::ConsumerSeen { at, group, consumer, now_ms: 1, active: true },
            Record::Deliver {
                at,
                group,
                consumer,
                after: a,
                last: b,
                entries_read: Some(1),
                no_ack: false,
                now_ms: 77,
            },
            Record::Claim { at, group, consumer, delivered_ms: 8, claims: Claims::Slice(&claims) },
            Record::Acknowledge { at, group, ids: Ids::Slice(&ids) },
            Record::GiveBack { at, group, first_order: 3, due_ms: 0, claims: Claims::Slice(&claims) },
            Record::GroupOptions { at, group, options: GroupOptions::default() },
            Record::GroupOptions { at, group, options: GroupOptions { max_pending: 100, ..GroupOptions::default() } },
            Record::GroupOptions {
                at,
                group,
                options: GroupOptions { key_field: Some(b"f"[..].into()), ..GroupOptions::default() },
            },
            Record::Delay { at, id: a, due_ms: 300 },
            Record::Hold { at, group, position: b, entries_read: None, holds: Claims::Slice(&claims) },
            Record::Give { at, group, consumer, no_ack: true, now_ms: 9, ids: Ids::Slice(&ids) },
            Record::Due { at, due_ms: 300, id: a },
            Record::AcknowledgeRange { at, group, from: a, to: b },
            Record::GiveBackAll { at, group, consumer, first_order: 1000 },
            Record::Drop { at, group, ids: Ids::Slice(&ids) },
            Record::DropRange { at, group, from: a, to: b },
            Record::ScanStart { at, group, start: None },
            Record::ScanStart { at, group, start: Some(b) },
        ];
        for record in &records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let mut reader = Reader::new(&bytes);
            let back = Record::decode(&mut reader).unwrap();
            assert!(reader.is_empty(), "{record:?}");
            let mut again = Vec::new();
            back.encode(&mut again);
            assert_eq!(bytes, again, "{record:?}");
            for cut in 0..bytes.len() {
                assert!(Record::decode(&mut Reader::new(&bytes[..cut])).is_err(), "{record:?} cut at {cut}");
            }
        }
        let back: Vec<_> = Ids::Slice(&ids).iter().collect();
        assert_eq!(back, ids);
    }
}
