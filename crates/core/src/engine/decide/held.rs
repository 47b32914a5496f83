//! What `>` does with entries that groups do not get when they come to them: the delayed ones, and with KEYFIELD those
//! that wait behind their key. Passing over such an entry holds it; what is held comes before new entries, as soon as it
//! may: first what is due, by due time, then what is ready, in stream order.

use std::collections::BTreeSet;

use super::budget::Budget;
use super::read::Options;
use crate::engine::Cx;
use crate::id::StreamId;
use crate::record::{Claimed, Claims, Ids, Record};
use crate::resp::encode::Reply;
use crate::state::entries::Entry;
use crate::state::group::Group;
use crate::state::held::key_of;
use crate::state::stream::Stream;

/// Writes an entry that is given for the first time. With CLAIM that shows.
pub(super) fn write_new(entry: &Entry<'_>, options: &Options<'_>, reply: &mut Reply<'_>) {
    if options.claim_idle_ms.is_some() {
        reply.array(4);
        reply.id(entry.id);
        entry.write_fields(reply.out);
        reply.int(0);
        reply.int(0);
    } else {
        entry.write(reply.out);
    }
}

/// Keys of which this read has taken an entry that stays pending: further ones have to wait.
#[derive(Default)]
struct TakenKeys<'e>(BTreeSet<&'e [u8]>);

impl<'e> TakenKeys<'e> {
    /// May an entry of this key be given? Then it counts as taken, unless nothing stays pending.
    fn take(&mut self, group: &Group, key: Option<&'e [u8]>, no_ack: bool) -> bool {
        let Some(key) = key else { return true };
        if group.held().is_busy(key) {
            return false;
        }
        no_ack || self.0.insert(key)
    }
}

/// The key by which a group orders an entry.
fn order_key<'e>(group: &Group, entry: &Entry<'e>) -> Option<&'e [u8]> {
    key_of(entry, group.options().key_field.as_deref()?)
}

/// Due entries that are given, and those that have to wait behind their keys now.
fn take_due(
    (stream, group): (&Stream, &Group),
    now_ms: u64,
    want: u64,
    options: &Options<'_>,
    budget: &mut Budget,
    reply: &mut Reply<'_>,
) -> (Vec<StreamId>, Vec<Claimed>) {
    let (mut given, mut moved, mut keys) = (Vec::new(), Vec::new(), TakenKeys::default());
    for id in group.held().due(now_ms) {
        if given.len() as u64 == want || !budget.has_room(reply) || budget.is_passed() {
            break;
        }
        let Some(entry) = stream.entries.get(id) else { continue };
        if keys.take(group, order_key(group, &entry), options.no_ack) {
            write_new(&entry, options, reply);
            budget.take(1);
            given.push(id);
        } else {
            moved.push(Claimed { id, deliveries: 0 });
            budget.pass();
        }
    }
    (given, moved)
}

/// Waiting entries whose turn has come, in stream order.
fn take_ready(
    (stream, group): (&Stream, &Group),
    want: u64,
    options: &Options<'_>,
    budget: &mut Budget,
    reply: &mut Reply<'_>,
) -> Vec<StreamId> {
    let held = group.held();
    let (mut given, mut ready) = (Vec::new(), held.ready().peekable());
    // Without acknowledgement the next entry of a key is ready as soon as the one before it is given.
    let mut followers: BTreeSet<StreamId> = BTreeSet::new();
    while (given.len() as u64) < want && budget.has_room(reply) {
        let follower = followers.first().copied();
        let next = match ready.next_if(|id| follower.is_none_or(|follower| *id < follower)) {
            Some(id) => Some(id),
            None => followers.pop_first(),
        };
        let Some(id) = next else { break };
        if options.no_ack {
            followers.extend(held.next_behind(id));
        }
        let Some(entry) = stream.entries.get(id) else { continue };
        write_new(&entry, options, reply);
        budget.take(1);
        given.push(id);
    }
    given
}

/// Gives a consumer what the group holds and may give, at most `want`; answers how many entries that were.
#[allow(clippy::too_many_arguments)]
pub(super) fn give_held(
    cx: &mut Cx<'_>,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    want: u64,
    options: &Options<'_>,
    budget: &mut Budget,
    reply: &mut Reply<'_>,
) -> u64 {
    let (at, now_ms, no_ack) = (cx.at(key), cx.now_ms(), options.no_ack);
    let Some((stream, group)) = super::group_read::group(cx, key, name) else { return 0 };
    let (position, entries_read) = (group.last_delivered, group.entries_read);
    let (due, moved) = take_due((stream, group), now_ms, want, options, budget, reply);
    if !moved.is_empty() {
        cx.emit(&Record::Hold { at, group: name, position, entries_read, holds: Claims::Slice(&moved) });
    }
    let mut given = due.len() as u64;
    if given > 0 {
        super::group_read::make_consumer(cx, key, name, consumer);
        cx.emit(&Record::Give { at, group: name, consumer, no_ack, now_ms, ids: Ids::Slice(&due) });
    }
    let Some(both) = super::group_read::group(cx, key, name) else { return given };
    let ready = take_ready(both, want - given, options, budget, reply);
    if !ready.is_empty() {
        given += ready.len() as u64;
        super::group_read::make_consumer(cx, key, name, consumer);
        cx.emit(&Record::Give { at, group: name, consumer, no_ack, now_ms, ids: Ids::Slice(&ready) });
    }
    given
}

/// May every entry after the group's position be given as it comes?
pub(super) fn is_plain(stream: &Stream, group: &Group) -> bool {
    let after = group.last_delivered;
    let delayed = stream.delays().and_then(|all| all.last_id()).is_some_and(|last| last > after);
    let deferred = group.deferred() > 0 && group.pel().last().is_some_and(|last| last > after);
    !delayed && !deferred && group.options().key_field.is_none()
}

/// What a walk over new entries comes to.
pub(super) struct Passed {
    /// Given.
    pub given: Vec<StreamId>,
    /// Passed over.
    pub holds: Vec<Claimed>,
    /// The last entry of either kind.
    pub position: StreamId,
    /// The count of entries read that goes with it.
    pub entries_read: Option<u64>,
}

/// Walks over new entries until `want` were written or the turn has no time for more, and tells which are to be held.
pub(super) fn walk(
    (stream, group): (&Stream, &Group),
    now_ms: u64,
    want: u64,
    options: &Options<'_>,
    budget: &mut Budget,
    reply: &mut Reply<'_>,
) -> Passed {
    let (position, entries_read) = (group.last_delivered, group.entries_read);
    let mut passed = Passed { given: Vec::new(), holds: Vec::new(), position, entries_read };
    let Some(from) = position.next() else { return passed };
    let mut delays = stream.delays().map(|all| all.range(from).peekable());
    let (first, mut keys) = (stream.first_id(), TakenKeys::default());
    for entry in stream.entries.range(from, StreamId::MAX) {
        if passed.given.len() as u64 >= want || !budget.has_room(reply) || budget.is_passed() {
            break;
        }
        let delay = delays.as_mut().and_then(|delays| delays.next_if(|&(id, _)| id == entry.id));
        let due_ms = delay.map(|(_, due_ms)| due_ms).filter(|&due_ms| due_ms > now_ms);
        // What is pending already (the position was set back) only changes hands, unless it was given back with a delay:
        // then it stays pending, out of reach, and holding it comes to passing over it.
        let may_come = match group.pel().get(entry.id) {
            Some(pending) if pending.is_deferred() => false,
            Some(_) => {
                keys.take(group, order_key(group, &entry), options.no_ack);
                true
            }
            None => due_ms.is_none() && keys.take(group, order_key(group, &entry), options.no_ack),
        };
        if may_come {
            write_new(&entry, options, reply);
            budget.take(1);
            passed.given.push(entry.id);
        } else {
            passed.holds.push(Claimed { id: entry.id, deliveries: due_ms.unwrap_or(0) });
            budget.pass();
        }
        passed.entries_read = stream.entries_read_after(passed.position, passed.entries_read, entry.id, first);
        passed.position = entry.id;
    }
    passed
}
