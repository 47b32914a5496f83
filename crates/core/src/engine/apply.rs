//! The only code that changes `State`: live, at restart, and wherever else records are followed.
//!
//! Applying makes no choice and asks no clock; everything is in the record. A record about something that is not there
//! (possible only when a log is applied to a state that is already ahead of it) changes nothing. A record that no command
//! would have emitted, as a log may hold that was tampered with, leaves a state whose invariants hold; what it says may be
//! nonsense.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::id::StreamId;
use crate::record::{At, Fields, Record};
use crate::state::entries::NodeLimits;
use crate::state::group::Group;
use crate::state::keyspace::{Slot, State, Value};
use crate::state::pending::{Pel, Pending};
use crate::state::settled;
use crate::state::stream::{Stream, one_more};

/// What applying needs to know beyond the record.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Log position after the record.
    pub position: u64,
    /// Bounds of a block of entries. They shape the layout alone, never what a client is answered.
    pub node_limits: NodeLimits,
}

/// Changes the state as the record says.
pub fn apply(state: &mut State, record: &Record<'_>, context: &Context) {
    apply_one(state, record, context);
    settled::note(state, record);
    // What may have freed any number of entries of a stream that keeps only what is not acknowledged.
    match record {
        Record::RetentionSettings { at, .. } => state.note_sweep(at.db, at.key, StreamId::MIN, StreamId::MAX),
        Record::GroupCreate { at, .. }
        | Record::GroupPosition { at, .. }
        | Record::GroupDestroy { at, .. }
        | Record::ConsumerDelete { at, .. }
            if state.retires =>
        {
            state.note_sweep(at.db, at.key, StreamId::MIN, StreamId::MAX);
        }
        Record::AcknowledgeRange { at, from, to, .. } | Record::DropRange { at, from, to, .. } if state.retires => {
            state.note_sweep(at.db, at.key, *from, *to);
        }
        _ => {}
    }
}

fn apply_one(state: &mut State, record: &Record<'_>, context: &Context) {
    state.changes += 1;
    change(state, record, context);
    state.remeasure();
}

fn change(state: &mut State, record: &Record<'_>, context: &Context) {
    match record {
        Record::SetString { at, expire_ms, value } => {
            put(state, *at, *expire_ms, Value::String(Arc::new(value.to_vec())), context);
        }
        Record::WriteString { at, offset, bytes } => write_string(state, *at, *offset as usize, bytes, context),
        Record::Delete { at } => {
            if let Some(slot) = take(state, *at, context) {
                state.garbage.value(slot.value);
            }
        }
        Record::Expire { at, expire_ms } => {
            capture(state, *at);
            let version = state.next_version();
            let db = state.db_mut(at.db);
            db.set_expiry(at.key, *expire_ms);
            if let Some(slot) = db.get_mut(at.key) {
                slot.position = context.position;
                slot.version = version;
            }
        }
        Record::Rename { at, to } => {
            if let Some(slot) = take(state, *at, context) {
                put(state, At { db: at.db, key: to }, slot.expire_ms, slot.value, context);
            }
        }
        Record::Copy { at, to } => {
            if let Some(slot) = state.db(at.db).get_any(at.key) {
                // Blocks and pending lists are shared until one of the two changes.
                let (value, expire_ms) = (slot.value.clone(), slot.expire_ms);
                put(state, *to, expire_ms, value, context);
            }
        }
        Record::Move { at, db } => {
            if let Some(slot) = take(state, *at, context) {
                put(state, At { db: *db, key: at.key }, slot.expire_ms, slot.value, context);
            }
        }
        Record::Flush { db } => {
            let all = 0..state.databases().len();
            for number in db.map_or(all, |db| db..db + 1) {
                state.db_mut(number).removed_position = context.position;
                state.clear(number);
            }
        }
        Record::SwapDb { a, b } => {
            state.swap(*a, *b);
            for number in [*a, *b] {
                // A reply about a key there, present or missing, depends on the swap; keys are many, so the
                // database as a whole carries it.
                state.db_mut(number).swapped(context.position);
            }
        }
        Record::StreamCreate { at } => put(state, *at, 0, Value::Stream(Box::default()), context),
        Record::Add { at, id, fields } => {
            if state.db(at.db).get_any(at.key).is_none() {
                put(state, *at, 0, Value::Stream(Box::default()), context);
            }
            let Some(stream) = stream(state, *at, context, Touch::Watch) else { return };
            if *id > stream.last_id {
                // Each of the two is walked several times: better in code of its own than asking which it is at each step.
                match fields {
                    Fields::Args(args) => stream.entries.push(*id, args.pairs(), context.node_limits),
                    Fields::Encoded(..) => stream.entries.push(*id, fields.iter(), context.node_limits),
                }
                stream.last_id = *id;
                stream.entries_added = one_more(stream.entries_added);
                if stream.retention.ages() {
                    state.db_mut(at.db).note_due(at.key);
                }
            }
        }
        Record::DeleteEntries { at, ids } => {
            let Some(stream) = stream(state, *at, context, Touch::Watch) else { return };
            for id in ids.iter() {
                if stream.entries.remove(id, context.node_limits) {
                    stream.max_deleted = stream.max_deleted.max(id);
                    stream.max_hole = stream.max_hole.max(id);
                    stream.let_go(id);
                }
            }
        }
        Record::Trim { at, before } => {
            let Some(stream) = stream(state, *at, context, Touch::Watch) else { return };
            let (_, spans) = stream.entries.trim_before(*before);
            let mut lists = SmallVec::<[Pel; 2]>::new();
            stream.let_go_before(*before, |list| lists.push(list));
            state.garbage.trimmed(spans);
            lists.into_iter().for_each(|list| state.garbage.pel(list));
        }
        Record::TrimEntries { at, ids } => {
            let Some(stream) = stream(state, *at, context, Touch::Watch) else { return };
            for id in ids.iter() {
                stream.entries.remove(id, context.node_limits);
                stream.max_hole = stream.max_hole.max(id);
                stream.let_go(id);
            }
        }
        Record::SetStream { at, last_id, max_deleted, entries_added } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            if *last_id < stream.last_id {
                // IDs that are given again may have been those of entries lost from the front.
                stream.max_hole = stream.max_hole.max(stream.last_id);
            }
            // No command sets it below an entry that is there.
            stream.last_id = stream.entries.last_id().map_or(*last_id, |last| last.max(*last_id));
            stream.max_deleted = *max_deleted;
            stream.max_hole = stream.max_hole.max(*max_deleted);
            stream.entries_added = *entries_added;
        }
        Record::IdempotenceSettings { at, settings } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            let forgotten = stream.idempotence_mut().reset(*settings);
            state.garbage.forgotten(forgotten);
        }
        Record::Remember { at, pid, iid, id, recorded_ms, added } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            let idempotence = stream.idempotence_mut();
            idempotence.remember(pid, iid, *id, *recorded_ms);
            idempotence.added = *added;
            state.db_mut(at.db).note_due(at.key);
        }
        Record::Forget { at, pid, until_ms } => {
            // No reply waits for this one: what is forgotten did not match any more.
            capture(state, *at);
            let Some(stream) = state.stream_mut(at.db, at.key) else { return };
            stream.idempotence_mut().forget(pid, *until_ms);
        }
        Record::Duplicates { at, duplicates } => {
            // Nor for this one: it is a count.
            capture(state, *at);
            let Some(stream) = state.stream_mut(at.db, at.key) else { return };
            stream.idempotence_mut().duplicates = *duplicates;
        }
        Record::RetentionSettings { at, retention } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            stream.retention = *retention;
            state.db_mut(at.db).note_due(at.key);
        }
        Record::GroupCreate { at, group, position, entries_read } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            stream.groups.insert((*group).into(), Arc::new(Group::new(*position, *entries_read)));
        }
        Record::GroupPosition { at, group, position, entries_read } => {
            let Some(group) = group_mut(state, *at, group, context) else { return };
            let let_go = group.set_position(*position, *entries_read);
            let_go.into_iter().for_each(|list| state.garbage.pel(list));
        }
        Record::GroupDestroy { at, group } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            let removed = stream.groups.remove(*group);
            if let Some(group) = removed.and_then(Arc::into_inner) {
                state.garbage.group(group);
            }
        }
        Record::ConsumerCreate { at, group, consumer, now_ms } => {
            let Some(group) = group_mut(state, *at, group, context) else { return };
            group.ensure_consumer(consumer, *now_ms);
        }
        Record::ConsumerDelete { at, group, consumer } => {
            let Some(changed) = group_mut(state, *at, group, context) else { return };
            changed.remove_consumer(consumer);
            state.note_group_work(*at, group);
        }
        Record::ConsumerSeen { at, group, consumer, now_ms, active } => {
            capture(state, *at);
            // No reply waits for this one: the position of the key stays.
            let Some(group) = state.stream_mut(at.db, at.key).and_then(|stream| stream.group_mut(group)) else {
                return;
            };
            let of = group.ensure_consumer(consumer, *now_ms);
            group.touch(of, *now_ms, *active);
        }
        Record::Deliver { at, group, consumer, after, last, entries_read, no_ack, now_ms } => {
            let Some(Stream { entries, groups, .. }) = stream(state, *at, context, Touch::No) else { return };
            let Some(group) = groups.get_mut(*group).map(Arc::make_mut) else { return };
            if group.last_delivered != *after {
                return;
            }
            let of = group.ensure_consumer(consumer, *now_ms);
            group.touch(of, *now_ms, !*no_ack);
            if !*no_ack {
                let from = after.next().unwrap_or(StreamId::MAX);
                let ids: SmallVec<[StreamId; 128]> = entries.range(from, *last).map(|entry| entry.id).collect();
                group.deliver(&ids, of, *now_ms);
                group.hold_keys(ids.iter().copied(), entries);
            }
            group.last_delivered = *last;
            group.entries_read = *entries_read;
        }
        Record::Claim { at, group, consumer, delivered_ms, claims } => {
            let Some(Stream { entries, groups, .. }) = stream(state, *at, context, Touch::No) else { return };
            let Some(group) = groups.get_mut(*group).map(Arc::make_mut) else { return };
            let of = group.ensure_consumer(consumer, *delivered_ms);
            for claim in claims.iter() {
                group.put_pending(Pending {
                    id: claim.id,
                    consumer: of,
                    delivered_ms: *delivered_ms,
                    deliveries: claim.deliveries,
                });
            }
            group.hold_keys(claims.iter().map(|claim| claim.id), entries);
        }
        Record::Acknowledge { at, group, ids } => {
            let Some(group) = group_mut(state, *at, group, context) else { return };
            for id in ids.iter() {
                group.totals.acked += u64::from(group.remove_pending(id));
            }
        }
        Record::GiveBack { at, group, first_order, due_ms, claims } => {
            let Some(Stream { entries, groups, .. }) = stream(state, *at, context, Touch::No) else { return };
            let Some(group) = groups.get_mut(*group).map(Arc::make_mut) else { return };
            for (claim, order) in claims.iter().zip(*first_order..) {
                group.give_back(claim.id, claim.deliveries, order, *due_ms);
            }
            group.hold_keys(claims.iter().map(|claim| claim.id), entries);
            if let Some(due_ms) = group.next_due_ms() {
                state.db_mut(at.db).note_timer(at.key, due_ms);
            }
        }
        Record::GroupOptions { at, group, options } => {
            state.orders |= options.key_field.is_some();
            let Some(Stream { entries, groups, .. }) = stream(state, *at, context, Touch::No) else { return };
            let Some(group) = groups.get_mut(*group).map(Arc::make_mut) else { return };
            group.set_options(options.clone(), entries);
        }
        Record::AcknowledgeRange { at, group, from, to } => {
            let Some(changed) = group_mut(state, *at, group, context) else { return };
            let removed = changed.remove_range(*from, *to);
            changed.totals.acked += removed[0].len();
            removed.into_iter().for_each(|list| state.garbage.pel(list));
            state.note_group_work(*at, group);
        }
        Record::GiveBackAll { at, group, consumer, first_order } => {
            let Some(changed) = group_mut(state, *at, group, context) else { return };
            changed.give_back_all(consumer, *first_order);
            state.note_group_work(*at, group);
        }
        Record::Drop { at, group, ids } => {
            let Some(group) = group_mut(state, *at, group, context) else { return };
            for id in ids.iter() {
                group.remove_pending(id);
            }
        }
        Record::Delay { at, id, due_ms } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            stream.delay(*id, *due_ms);
            state.db_mut(at.db).note_due(at.key);
        }
        Record::Hold { at, group, position, entries_read, holds } => {
            let Some(Stream { entries, groups, .. }) = stream(state, *at, context, Touch::No) else { return };
            let Some(group) = groups.get_mut(*group).map(Arc::make_mut) else { return };
            let let_go = group.set_position(*position, *entries_read);
            for hold in holds.iter().filter(|hold| hold.id <= *position) {
                group.hold(hold.id, hold.deliveries, entries);
            }
            let_go.into_iter().for_each(|list| state.garbage.pel(list));
        }
        Record::Give { at, group, consumer, no_ack, now_ms, ids } => {
            let Some(Stream { entries, groups, .. }) = stream(state, *at, context, Touch::No) else { return };
            let Some(group) = groups.get_mut(*group).map(Arc::make_mut) else { return };
            let of = group.ensure_consumer(consumer, *now_ms);
            group.touch(of, *now_ms, !*no_ack);
            let mut given: SmallVec<[StreamId; 128]> = ids.iter().collect();
            given.iter().for_each(|&id| group.let_go(id));
            if !*no_ack {
                // In order of their times they came; the list is by ID.
                given.sort_unstable();
                given.dedup();
                group.deliver(&given, of, *now_ms);
                group.hold_keys(given.iter().copied(), entries);
            }
        }
        Record::Due { at, due_ms, id } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            stream.end_delays((*due_ms, *id));
        }
        Record::DropRange { at, group, from, to } => {
            let Some(changed) = group_mut(state, *at, group, context) else { return };
            let removed = changed.remove_range(*from, *to);
            removed.into_iter().for_each(|list| state.garbage.pel(list));
            state.note_group_work(*at, group);
        }
        Record::WorkPolicy { at, group, policy } => {
            let Some(group) = group_mut(state, *at, group, context) else { return };
            let work = group.work_mut();
            work.policy = policy.clone();
            work.consumers_look_ms = 0;
            state.db_mut(at.db).note_due(at.key);
        }
        Record::WorkRow { at, group, row, acknowledges } => {
            let Some(group) = group_mut(state, *at, group, context) else { return };
            group.append_row(row);
            if *acknowledges {
                group.totals.acked += u64::from(group.remove_pending(row.entry));
            }
            if group.work().is_some_and(|work| work.ledger.is_due_anew(&work.policy)) {
                state.db_mut(at.db).note_due(at.key);
            }
        }
        Record::Redrive { at, redrive } => {
            let Some(stream) = stream(state, *at, context, Touch::No) else { return };
            stream.redrive = *redrive;
            state.db_mut(at.db).note_due(at.key);
        }
        Record::WorkForget { at, group, before } => {
            // No reply waits for this one: what is forgotten was known no more.
            capture(state, *at);
            if let Some(group) = state.stream_mut(at.db, at.key).and_then(|stream| stream.group_mut(group)) {
                group.work_mut().ledger.forget(*before);
            }
        }
        Record::ScanStart { at, group, start } => {
            capture(state, *at);
            // A hint for the next scan: no reply waits for it.
            if let Some(group) = state.stream_mut(at.db, at.key).and_then(|stream| stream.group_mut(group)) {
                group.scan_start = *start;
            }
        }
    }
}

#[derive(PartialEq)]
enum Touch {
    Watch,
    No,
}

/// A snapshot that is being taken gets the key as it is before the change.
#[inline]
fn capture(state: &mut State, at: At<'_>) {
    if state.snapshot_running() {
        state.capture(at.db, at.key);
    }
}

/// The stream under the key, to be changed.
#[inline]
fn stream<'s>(state: &'s mut State, at: At<'_>, context: &Context, touch: Touch) -> Option<&'s mut Stream> {
    capture(state, at);
    let version = if touch == Touch::Watch { state.next_version() } else { 0 };
    // What WATCH does not count has not changed the entries.
    let slot = if touch == Touch::Watch { state.resized(at.db, at.key) } else { state.db_mut(at.db).get_mut(at.key) }?;
    slot.position = context.position;
    if touch == Touch::Watch {
        slot.version = version;
    }
    match &mut slot.value {
        Value::Stream(stream) => Some(stream),
        Value::String(_) => None,
    }
}

#[inline]
fn group_mut<'s>(state: &'s mut State, at: At<'_>, group: &[u8], context: &Context) -> Option<&'s mut Group> {
    stream(state, at, context, Touch::No)?.group_mut(group)
}

fn put(state: &mut State, at: At<'_>, expire_ms: u64, value: Value, context: &Context) {
    capture(state, at);
    let working: Vec<Box<[u8]>> = match &value {
        Value::Stream(stream) if state.has_group_work() => {
            let works = |group: &Group| group.pel().is_passing() || group.frees_keys();
            stream.groups.iter().filter(|(_, group)| works(group)).map(|(name, _)| name.clone()).collect()
        }
        _ => Vec::new(),
    };
    let version = state.next_version();
    let slot = Slot {
        value,
        expire_ms,
        position: context.position,
        version,
        born: version,
        captured: state.snapshot,
        timer_ms: 0,
    };
    if let Some(old) = state.db_mut(at.db).insert(at.key, slot) {
        state.garbage.value(old.value);
    }
    working.iter().for_each(|group| state.note_group_work(at, group));
    if state.retires {
        state.note_sweep(at.db, at.key, StreamId::MIN, StreamId::MAX);
    }
}

fn take(state: &mut State, at: At<'_>, context: &Context) -> Option<Slot> {
    capture(state, at);
    state.note_removal(at.db, at.key);
    let db = state.db_mut(at.db);
    db.removed_position = context.position;
    db.remove(at.key)
}

fn write_string(state: &mut State, at: At<'_>, offset: usize, bytes: &[u8], context: &Context) {
    capture(state, at);
    if state.db(at.db).get_any(at.key).is_none() {
        put(state, at, 0, Value::String(Arc::default()), context);
    }
    let version = state.next_version();
    let Some(slot) = state.resized(at.db, at.key) else { return };
    slot.position = context.position;
    slot.version = version;
    if let Value::String(value) = &mut slot.value {
        let value = Arc::make_mut(value);
        let end = offset + bytes.len();
        if value.len() < end {
            value.resize(end, 0);
        }
        value[offset..end].copy_from_slice(bytes);
    }
}
