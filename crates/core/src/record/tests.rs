//! Records on their way to bytes and back.

use std::collections::BTreeSet;

use super::*;
use crate::command::args::OwnedArgs;
use crate::state::codec::Reader;
use crate::state::ledger::{Outcome, WorkId};

/// Encoded, decoded and encoded again, every kind of record is the same bytes; cut anywhere, it is refused.
#[test]
fn records_come_back_whole_or_not_at_all() {
    let at = At { db: 3, key: b"key" };
    let (a, b) = (StreamId::new(5, 7), StreamId::new(1000, 0));
    let ids = [a, b, a, StreamId::MAX, StreamId::MIN];
    let claims = [Claimed { id: b, deliveries: 2 }, Claimed { id: a, deliveries: i64::MAX as u64 }];
    let mut fields = OwnedArgs::default();
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
        Record::Deliver { at, group, consumer, after: a, last: b, entries_read: Some(1), no_ack: false, now_ms: 77 },
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
        Record::WorkPolicy { at, group, policy: Policy::default() },
        Record::WorkPolicy { at, group, policy: Policy { lease_ms: 300, ..Policy::default() } },
        Record::WorkRow { at, group, row: Row::new(b, Outcome::Begun, a), acknowledges: false },
        Record::WorkRow {
            at,
            group,
            row: Row {
                work: WorkId::Named(b"w"),
                consumer,
                digest: b"d",
                reason: b"why",
                ..Row::new(b, Outcome::Expired, a)
            },
            acknowledges: true,
        },
        Record::WorkForget { at, group, before: 300 },
        Record::Redrive { at, redrive: None },
        Record::Redrive { at, redrive: Some(Redrive { per_s: 300, left: 1, next: a, last: b, since_ms: 9, gone: 2 }) },
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
    let tags: BTreeSet<u8> = records
        .iter()
        .map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            bytes[0]
        })
        .collect();
    assert!(tags.iter().eq(TAGS.iter().map(|(tag, _)| tag)), "every kind of record is in this test");
    let back: Vec<_> = Ids::Slice(&ids).iter().collect();
    assert_eq!(back, ids);
}

/// A tag that is in one of the three places and not in the others would be one that old logs are read with and nobody knows.
#[test]
fn the_tags_are_those_of_the_format_document() {
    let numbers =
        include_str!("tag.rs").lines().filter_map(|line| line.strip_prefix("pub const ")?.split_once(": u8 = "));
    let numbers: Vec<&str> = numbers.map(|(_, number)| number.trim_end_matches(';')).collect();
    let part = include_str!("../../../../docs/formats.md").split("\n## Records\n").nth(1).unwrap();
    let rows = part.lines().take_while(|line| !line.starts_with("## ")).filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?.parse::<u8>().ok()?, cells.next()?))
    });
    assert_eq!(rows.collect::<Vec<_>>(), TAGS);
    assert_eq!(numbers, TAGS.iter().map(|(tag, _)| tag.to_string()).collect::<Vec<_>>());
}

/// What has the form of a record and could be true of no state.
#[test]
fn records_that_say_what_cannot_be_are_refused() {
    let at = At { db: 3, key: b"key" };
    let (a, b) = (StreamId::new(5, 7), StreamId::new(1000, 0));
    let claims = [Claimed { id: a, deliveries: 1 }, Claimed { id: b, deliveries: 1 }];
    let (group, consumer) = (&b"g"[..], &b"c"[..]);
    let order = crate::state::pending::RELEASE_MAX;
    let late = i64::MAX as u64 + 1;
    for record in [
        Record::WriteString { at, offset: u64::MAX, bytes: b"xy" },
        Record::WriteString { at, offset: late, bytes: b"xy" },
        Record::Expire { at, expire_ms: late },
        Record::Remember { at, pid: b"p", iid: b"i", id: b, recorded_ms: 300, added: late },
        Record::Duplicates { at, duplicates: late },
        Record::ConsumerSeen { at, group, consumer, now_ms: late, active: true },
        Record::Deliver { at, group, consumer, after: b, last: a, entries_read: None, no_ack: false, now_ms: 7 },
        Record::Claim { at, group, consumer, delivered_ms: late, claims: Claims::Slice(&claims) },
        Record::GiveBack { at, group, first_order: order - 1, due_ms: 0, claims: Claims::Slice(&claims) },
        Record::GiveBack { at, group, first_order: u64::MAX, due_ms: 0, claims: Claims::Slice(&claims) },
        Record::GiveBackAll { at, group, consumer, first_order: order + 1 },
        Record::GroupOptions {
            at,
            group,
            options: GroupOptions { key_field: Some(b""[..].into()), ..GroupOptions::default() },
        },
        Record::AcknowledgeRange { at, group, from: b, to: a },
        Record::DropRange { at, group, from: b, to: a },
        Record::Delay { at, id: a, due_ms: 0 },
        Record::Delay { at, id: a, due_ms: late },
    ] {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert!(Record::decode(&mut Reader::new(&bytes)).is_err(), "{record:?}");
    }
}
