//! The bytes of a record: one tag byte, then fields as in `state::codec`. `docs/formats.md` draws them.
//!
//! Tags are never used again for another meaning; a gap is a retired one. What is read back is checked: bytes that are not
//! a record are an error, never a panic, and so is a record that says what no state could make true.

use super::lists::{IdReader, put_claims, put_id_after, put_ids, read_claims, read_ids};
use super::{At, Fields, Record, tag};
use crate::id::StreamId;
use crate::limits::{DATABASES, ENTRY_MAX_BYTES};
use crate::state::codec::{Corrupt, Reader, put_bytes, put_id, put_int, put_uint};
use crate::state::group::GroupOptions;
use crate::state::idempotence::IdempotenceSettings;
use crate::state::ledger::Row;
use crate::state::pending::RELEASE_MAX;
use crate::state::policy::Policy;
use crate::state::redrive::Redrive;
use crate::state::retention::Retention;

fn put_at(out: &mut Vec<u8>, tag: u8, at: At<'_>) {
    out.push(tag);
    put_uint(out, at.db as u64);
    put_bytes(out, at.key);
}

fn put_optional(out: &mut Vec<u8>, value: Option<u64>) {
    put_int(out, value.map_or(-1, |n| n as i64));
}

fn read_db(reader: &mut Reader<'_>) -> Result<usize, Corrupt> {
    let db = reader.uint("database")?;
    if db < DATABASES as u64 { Ok(db as usize) } else { Err(Corrupt { what: "database number" }) }
}

fn read_at<'a>(reader: &mut Reader<'a>) -> Result<At<'a>, Corrupt> {
    Ok(At { db: read_db(reader)?, key: reader.bytes("key")? })
}

/// A setting of 32 bits that is never 0.
fn read_small(reader: &mut Reader<'_>) -> Result<u32, Corrupt> {
    let value = u32::try_from(reader.uint("setting")?).ok().filter(|&value| value > 0);
    value.ok_or(Corrupt { what: "setting" })
}

/// A time in ms: such as replies and commands can say.
fn read_time(reader: &mut Reader<'_>) -> Result<u64, Corrupt> {
    const WHAT: &str = "time";
    Some(reader.uint(WHAT)?).filter(|&ms| ms <= i64::MAX as u64).ok_or(Corrupt { what: WHAT })
}

/// A time that is not 0.
fn read_due(reader: &mut Reader<'_>) -> Result<u64, Corrupt> {
    Some(read_time(reader)?).filter(|&due_ms| due_ms > 0).ok_or(Corrupt { what: "due time" })
}

/// A count that replies can show.
fn read_count(reader: &mut Reader<'_>) -> Result<u64, Corrupt> {
    const WHAT: &str = "count";
    Some(reader.uint(WHAT)?).filter(|&count| count <= i64::MAX as u64).ok_or(Corrupt { what: WHAT })
}

/// The first number of an order of release in which there are so many.
fn check_order(first: u64, count: u64) -> Result<u64, Corrupt> {
    let last = first.checked_add(count);
    last.filter(|&last| last <= RELEASE_MAX).map(|_| first).ok_or(Corrupt { what: "order of release" })
}

/// The end of a range of IDs, not before its begin.
fn read_end(reader: &mut Reader<'_>, from: StreamId) -> Result<StreamId, Corrupt> {
    let mut ids = IdReader { reader: *reader, last: from };
    let to = ids.next()?;
    *reader = ids.reader;
    if to < from { Err(Corrupt { what: "a range that ends before it begins" }) } else { Ok(to) }
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
            Record::WorkPolicy { at, group, policy } => {
                put_at(out, tag::WORK_POLICY, *at);
                put_bytes(out, group);
                let mut bytes = Vec::new();
                policy.encode(&mut bytes);
                put_bytes(out, &bytes);
            }
            Record::WorkRow { at, group, row, acknowledges } => {
                put_at(out, if *acknowledges { tag::WORK_DONE } else { tag::WORK_ROW }, *at);
                put_bytes(out, group);
                row.encode(out);
            }
            Record::WorkForget { at, group, before } => {
                put_at(out, tag::WORK_FORGET, *at);
                put_bytes(out, group);
                put_uint(out, *before);
            }
            Record::Redrive { at, redrive } => {
                put_at(out, tag::REDRIVE, *at);
                out.push(u8::from(redrive.is_some()));
                if let Some(redrive) = redrive {
                    redrive.encode(out);
                }
            }
        }
    }

    /// Reads the next record.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Record<'a>, Corrupt> {
        let what = "record";
        Ok(match reader.byte(what)? {
            tag::SET_STRING => {
                Record::SetString { at: read_at(reader)?, expire_ms: read_time(reader)?, value: reader.bytes(what)? }
            }
            tag::WRITE_STRING => {
                let (at, offset, bytes) = (read_at(reader)?, reader.uint(what)?, reader.bytes(what)?);
                let end = offset.checked_add(bytes.len() as u64);
                if end.is_none_or(|end| end > i64::MAX as u64) {
                    return Err(Corrupt { what: "end of a string" });
                }
                Record::WriteString { at, offset, bytes }
            }
            tag::DELETE => Record::Delete { at: read_at(reader)? },
            tag::EXPIRE => Record::Expire { at: read_at(reader)?, expire_ms: read_time(reader)? },
            tag::RENAME => Record::Rename { at: read_at(reader)?, to: reader.bytes(what)? },
            tag::COPY => Record::Copy { at: read_at(reader)?, to: read_at(reader)? },
            tag::MOVE => Record::Move { at: read_at(reader)?, db: read_db(reader)? },
            tag::FLUSH => match read_optional(reader)? {
                None => Record::Flush { db: None },
                Some(db) if db < DATABASES as u64 => Record::Flush { db: Some(db as usize) },
                Some(_) => return Err(Corrupt { what: "database number" }),
            },
            tag::SWAP_DB => Record::SwapDb { a: read_db(reader)?, b: read_db(reader)? },
            tag::STREAM_CREATE => Record::StreamCreate { at: read_at(reader)? },
            tag::ADD => {
                let (at, id) = (read_at(reader)?, reader.id(what)?);
                let n = reader.count(what)?;
                let start = *reader;
                let mut len_bytes = 0;
                for _ in 0..n {
                    len_bytes += reader.bytes("field")?.len() + reader.bytes("value")?.len();
                }
                if len_bytes > ENTRY_MAX_BYTES {
                    return Err(Corrupt { what: "size of an entry" });
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
                recorded_ms: read_time(reader)?,
                added: read_count(reader)?,
            },
            tag::FORGET => {
                Record::Forget { at: read_at(reader)?, pid: reader.bytes(what)?, until_ms: read_time(reader)? }
            }
            tag::DUPLICATES => Record::Duplicates { at: read_at(reader)?, duplicates: read_count(reader)? },
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
                now_ms: read_time(reader)?,
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
                now_ms: read_time(reader)?,
                active: reader.byte(what)? != 0,
            },
            tag::DELIVER => {
                let (at, group, consumer) = (read_at(reader)?, reader.bytes(what)?, reader.bytes(what)?);
                let after = reader.id(what)?;
                let last = read_end(reader, after)?;
                Record::Deliver {
                    at,
                    group,
                    consumer,
                    after,
                    last,
                    entries_read: read_optional(reader)?,
                    no_ack: reader.byte(what)? != 0,
                    now_ms: read_time(reader)?,
                }
            }
            tag::CLAIM => {
                let (at, group, consumer) = (read_at(reader)?, reader.bytes(what)?, reader.bytes(what)?);
                let delivered_ms = read_time(reader)?;
                Record::Claim { at, group, consumer, delivered_ms, claims: read_claims(reader)? }
            }
            tag::ACKNOWLEDGE => {
                Record::Acknowledge { at: read_at(reader)?, group: reader.bytes(what)?, ids: read_ids(reader)? }
            }
            tag::GIVE_BACK => {
                let (at, group) = (read_at(reader)?, reader.bytes(what)?);
                let (first_order, due_ms) = (reader.uint(what)?, read_time(reader)?);
                let claims = read_claims(reader)?;
                let first_order = check_order(first_order, claims.len() as u64)?;
                Record::GiveBack { at, group, first_order, due_ms, claims }
            }
            tag::GROUP_OPTIONS => {
                let (at, group) = (read_at(reader)?, reader.bytes(what)?);
                let options = GroupOptions::decode(Reader::new(reader.bytes(what)?))?;
                Record::GroupOptions { at, group, options }
            }
            tag @ (tag::ACKNOWLEDGE_RANGE | tag::DROP_RANGE) => {
                let (at, group, from) = (read_at(reader)?, reader.bytes(what)?, reader.id(what)?);
                let to = read_end(reader, from)?;
                match tag {
                    tag::DROP_RANGE => Record::DropRange { at, group, from, to },
                    _ => Record::AcknowledgeRange { at, group, from, to },
                }
            }
            tag::GIVE_BACK_ALL => Record::GiveBackAll {
                at: read_at(reader)?,
                group: reader.bytes(what)?,
                consumer: reader.bytes(what)?,
                first_order: check_order(reader.uint(what)?, 0)?,
            },
            tag::DROP => Record::Drop { at: read_at(reader)?, group: reader.bytes(what)?, ids: read_ids(reader)? },
            tag::DELAY => Record::Delay { at: read_at(reader)?, id: reader.id(what)?, due_ms: read_due(reader)? },
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
                now_ms: read_time(reader)?,
                ids: read_ids(reader)?,
            },
            tag::DUE => Record::Due { at: read_at(reader)?, due_ms: read_time(reader)?, id: reader.id(what)? },
            tag::SCAN_START => {
                let (at, group) = (read_at(reader)?, reader.bytes(what)?);
                let given = reader.byte(what)? != 0;
                let start = reader.id(what)?;
                Record::ScanStart { at, group, start: given.then_some(start) }
            }
            tag::WORK_POLICY => {
                let (at, group) = (read_at(reader)?, reader.bytes(what)?);
                Record::WorkPolicy { at, group, policy: Policy::decode(Reader::new(reader.bytes(what)?))? }
            }
            tag @ (tag::WORK_ROW | tag::WORK_DONE) => {
                let (at, group, row) = (read_at(reader)?, reader.bytes(what)?, Row::decode(reader)?);
                Record::WorkRow { at, group, row, acknowledges: tag == tag::WORK_DONE }
            }
            tag::WORK_FORGET => {
                Record::WorkForget { at: read_at(reader)?, group: reader.bytes(what)?, before: reader.uint(what)? }
            }
            tag::REDRIVE => {
                let at = read_at(reader)?;
                let given = reader.byte(what)? != 0;
                Record::Redrive { at, redrive: if given { Some(Redrive::decode(reader)?) } else { None } }
            }
            _ => return Err(Corrupt { what: "unknown record tag" }),
        })
    }
}
