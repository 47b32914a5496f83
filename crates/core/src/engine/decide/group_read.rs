//! XREADGROUP: what a group was never given (`>`), what it gave to others long ago (CLAIM), a consumer's own pending
//! entries (any other ID).
//!
//! Everything is checked for every stream before anything is delivered from one. A delivery of many new entries is one
//! record, and so is a claim of many.
//!
//! A read that passes over more entries than one turn has time for, and finds none to give, goes on in the next turn
//! (`engine::postpone`): it never answers that there is nothing before it has looked at everything.

use smallvec::SmallVec;

use super::budget::{Budget, PASSES_MAX, put_head_before};
use super::claim::once_more;
use super::group::CONSUMER_CREATED;
use super::held::{self, Passed};
use super::idempotence;
use super::read::{self, MakeGroup, Options};
use super::work::dead;
use crate::command::args::Args;
use crate::command::parse;
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::{Claimed, Claims, Ids, Record};
use crate::resp::encode::{Reply, bulk_id};
use crate::session::GroupReader;
use crate::state::group::Group;
use crate::state::ledger::{Outcome, Row, WorkId};
use crate::state::pending::{Pending, idle_bound};
use crate::state::stream::Stream;

/// From where a stream is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    /// What the group was never given (`>`), and with CLAIM what is idle.
    New,
    /// The consumer's pending entries after this one.
    History(StreamId),
}

/// Pending entries without an entry in the stream that one claim from one stream takes off the list at most. For what is
/// left it goes on in the next turn.
const DROPS_MAX: usize = 1000;

/// Pending entries that a claim asks the list for at first; then it doubles.
const CLAIM_STEP: usize = 128;

/// XREADGROUP GROUP group consumer [COUNT n] [MAXCOUNT n] [MAXSIZE bytes] [BLOCK ms] [CLAIM ms] [NOACK] [MKGROUP [0|$]]
/// STREAMS key … id …
pub fn xreadgroup(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let options = read::options(cx, args, true)?;
    let Some((name, consumer)) = options.group else { return Err(Fault::XREADGROUP_MISSING_GROUP) };
    let keys = args.slice(options.first, options.first + options.streams);
    let ids = args.from(options.first + options.streams);
    let mut froms: SmallVec<[From; 8]> = SmallVec::new();
    let mut missing = false;
    for (key, id) in keys.iter().zip(ids.iter()) {
        if cx.stream(key)?.and_then(|stream| stream.group(name)).is_none() {
            missing = true;
            if options.make_group.is_none() {
                return Err(Fault::no_group_to_read(key, name));
            }
        }
        froms.push(match id {
            b">" => From::New,
            b"$" => return Err(Fault::XREADGROUP_DOLLAR),
            b"+" => return Err(Fault::XREADGROUP_PLUS),
            // As in Redis, where `>` and the greatest ID are the same.
            id => match parse::id(id)? {
                StreamId::MAX => From::New,
                id => From::History(id),
            },
        });
    }
    if missing && let Some(position) = options.make_group {
        make_groups(cx, keys, name, position)?;
    }
    // One that waited was made when it asked; if it was deleted meanwhile, it is made anew when it is served.
    if !cx.again {
        for key in keys.iter() {
            make_consumer(cx, key, name, consumer);
        }
    }
    let start = reply.out.len();
    let mut answered = 0;
    // The head holds the number of streams that have something, which with several is known only at the end.
    if options.streams == 1 {
        reply.pairs(1);
    }
    // It does not count: MAXSIZE must not mean less where one stream is read.
    let mut budget = options.budget(reply.out.len());
    if cx.may_postpone() {
        budget.bound_passes(cx.steps(PASSES_MAX));
    }
    for (key, from) in keys.iter().zip(&froms) {
        if !budget.has_room(reply) {
            break;
        }
        answered += usize::from(match *from {
            From::History(after) => history(cx, key, name, consumer, after, &options, &mut budget, reply),
            From::New => deliver(cx, key, name, consumer, &options, &mut budget, reply),
        });
    }
    cx.take_steps(budget.passed());
    if answered == 0 {
        reply.out.truncate(start);
        if budget.is_passed() && options.block.is_none() {
            cx.postpone(args, keys.iter().map(Box::from).collect(), None);
            wait_as_group(cx, name, consumer, &options);
            return Ok(());
        }
        read::nothing(cx, args, &options, |_| None, reply);
        wait_as_group(cx, name, consumer, &options);
        if let Some(wait) = &mut cx.wait {
            wait.goes_on = budget.is_passed();
        }
    } else if options.streams > 1 {
        put_head_before(reply, start, |reply| reply.pairs(answered));
    }
    Ok(())
}

/// MKGROUP: makes what is missing. Like XGROUP CREATE, this is refused when memory is short, and the other way round
/// allowed in scripts that may go on then.
fn make_groups(cx: &mut Cx<'_>, keys: Args<'_>, name: &[u8], position: MakeGroup) -> Result<(), Fault> {
    if cx.is_memory_short() {
        return Err(Fault::OUT_OF_MEMORY);
    }
    for key in keys.iter() {
        let at = cx.at(key);
        let stream = cx.stream(key)?;
        if stream.is_some_and(|stream| stream.group(name).is_some()) {
            continue;
        }
        let position = match (stream, position) {
            (Some(stream), MakeGroup::Last) => stream.last_id,
            _ => StreamId::MIN,
        };
        let is_new = stream.is_none();
        if is_new {
            cx.emit(&Record::StreamCreate { at });
            idempotence::settle_new_stream(cx, key);
        }
        cx.emit(&Record::GroupCreate { at, group: name, position, entries_read: None });
        cx.notify_new(is_new, key);
        cx.notify(EventClass::Stream, "xgroup-create", key);
    }
    Ok(())
}

/// Makes the consumer, if it is new.
pub(super) fn make_consumer(cx: &mut Cx<'_>, key: &[u8], name: &[u8], consumer: &[u8]) {
    if group(cx, key, name).is_some_and(|(_, group)| group.find(consumer).is_none()) {
        let (at, now_ms) = (cx.at(key), cx.now_ms());
        cx.emit(&Record::ConsumerCreate { at, group: name, consumer, now_ms });
        cx.notify(EventClass::Stream, CONSUMER_CREATED, key);
    }
}

/// The stream and the group, which were there when the command was checked.
pub(super) fn group<'c>(cx: &'c Cx<'_>, key: &[u8], name: &[u8]) -> Option<(&'c Stream, &'c Group)> {
    let stream = cx.stream(key).ok()??;
    Some((stream, stream.group(name)?))
}

/// How many more entries may be in flight.
#[derive(Clone, Copy)]
struct Room {
    /// By the group's bound.
    group: u64,
    /// By the bound of each consumer.
    consumer: u64,
}

impl Room {
    fn of(group: &Group, consumer: &[u8]) -> Room {
        let left = |limit: u64, used: u64| if limit == 0 { u64::MAX } else { limit.saturating_sub(used) };
        let own = group.find(consumer).map_or(0, |of| group.consumer(of).pending);
        Room {
            group: left(group.options().max_pending, group.in_flight()),
            consumer: left(group.options().max_pending_per_consumer, own),
        }
    }

    fn new_entries(self) -> u64 {
        self.group.min(self.consumer)
    }
}

/// What a claim comes to.
#[derive(Default)]
struct Taken {
    claims: Vec<Claimed>,
    /// Pending, and gone from the stream.
    dropped: Vec<StreamId>,
    /// Delivered as often as the group's policy allows.
    spent: Vec<Pending>,
    /// Not to be handed out before a time (Unix ms), by the group's policy.
    early: Vec<(Pending, u64)>,
    /// Of the claims, those whose lease was over.
    expired: Vec<Pending>,
}

impl Taken {
    /// How many it has met that are not for now, and of which the next one is not in the way any more.
    fn passed(&self) -> usize {
        self.dropped.len() + self.spent.len() + self.early.len()
    }
}

/// Writes the pending entries that are idle enough: first those that were released, in that order, then the longest idle
/// first. At most `want`, and no more from others than there is room for: what the consumer has already takes none.
#[allow(clippy::too_many_arguments)]
fn take_idle(
    stream: &Stream,
    (group, consumer): (&Group, &[u8]),
    (now_ms, min_idle_ms): (u64, u64),
    (want, mut room, passed_max): (u64, Room, usize),
    options: &Options<'_>,
    budget: &mut Budget,
    reply: &mut Reply<'_>,
) -> Taken {
    let mut taken = Taken::default();
    let policy = group.work().map(|work| &work.policy);
    let pel = group.pel();
    let own = group.find(consumer);
    let bound_ms = idle_bound(now_ms, min_idle_ms);
    let first_limit = CLAIM_STEP.min(usize::try_from(want).unwrap_or(usize::MAX));
    let mut released = group.released() > 0;
    let (mut limit, mut seen) = (first_limit, 0);
    while (taken.claims.len() as u64) < want {
        let found = match released {
            // Where the bound on the group lets nothing in, only what others have already can be taken over.
            true if room.group == 0 => Vec::new(),
            true => pel.first_released(limit),
            false if group.released() > 0 => pel.oldest_owned(bound_ms, limit),
            false => pel.oldest_first(bound_ms, limit),
        };
        for pending in &found[seen..] {
            if taken.claims.len() as u64 == want
                || taken.passed() == passed_max
                || room.consumer == 0
                || !budget.has_room(reply)
            {
                return taken;
            }
            if !pending.is_idle(now_ms, min_idle_ms) {
                continue;
            }
            // What else was released is not looked at, whether the stream still has it or not.
            if released && room.group == 0 {
                break;
            }
            let Some(entry) = stream.entries.get(pending.id) else {
                taken.dropped.push(pending.id);
                continue;
            };
            if let Some(policy) = policy {
                if policy.is_spent(pending.deliveries) {
                    taken.spent.push(*pending);
                    continue;
                }
                // Of a released one it is not known when it was delivered; who gave it back knew of the backoff.
                let ready_ms = pending.delivered_ms.saturating_add(policy.backoff_ms(pending.deliveries));
                if !released && ready_ms > now_ms {
                    taken.early.push((*pending, ready_ms));
                    continue;
                }
                let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
                if !released && policy.lease_ms != 0 && idle_ms >= policy.lease_ms {
                    taken.expired.push(*pending);
                }
            }
            if released {
                room.group -= 1;
            }
            if Some(pending.consumer) != own {
                room.consumer -= 1;
            }
            if options.claim_idle_ms.is_some() {
                reply.array(4);
                reply.id(pending.id);
                entry.write_fields(reply.out);
                // When a released entry was delivered is not known any more: -1, as XPENDING shows it.
                reply.int(if released { -1 } else { now_ms.saturating_sub(pending.delivered_ms) as i64 });
                reply.count(pending.deliveries);
            } else {
                // By the group's lease: the reader knows nothing of it.
                entry.write(reply.out);
            }
            taken.claims.push(Claimed { id: pending.id, deliveries: once_more(pending.deliveries) });
            budget.take(1);
        }
        if room.consumer == 0 {
            break;
        }
        if released && (found.len() < limit || room.group == 0) {
            (released, limit, seen) = (false, first_limit, 0);
            continue;
        }
        if found.len() < limit {
            break;
        }
        // The same question again, for more: what is known comes first again.
        seen = found.len();
        limit = limit.saturating_mul(2);
    }
    taken
}

/// Delivers what is idle (with CLAIM), what was held and may come now, and what the group was never given; answers whether
/// there was anything.
fn deliver(
    cx: &mut Cx<'_>,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    options: &Options<'_>,
    budget: &mut Budget,
    reply: &mut Reply<'_>,
) -> bool {
    if !cx.may_postpone() && group(cx, key, name).is_some_and(|(_, group)| group.frees_keys()) {
        cx.free_keys(key, name);
    }
    let Some((mut stream, mut group)) = group(cx, key, name) else { return false };
    let (at, now_ms, no_ack) = (cx.at(key), cx.now_ms(), options.no_ack);
    let lease_ms = Some(group.lease_ms()).filter(|&lease_ms| lease_ms != 0 && !no_ack);
    let claim_idle_ms = options.claim_idle_ms.into_iter().chain(lease_ms).min();
    // Nothing to claim, nothing held and nothing new: the usual answer where many streams are read.
    if claim_idle_ms.is_none()
        && group.held().is_empty()
        && stream.entries.last_id().is_none_or(|last| last <= group.last_delivered)
    {
        if !cx.again {
            cx.emit_lazily(&Record::ConsumerSeen { at, group: name, consumer, now_ms, active: false });
        }
        return false;
    }
    let start = reply.out.len();
    let mut room = Room::of(group, consumer);
    reply.pair();
    reply.bulk(key);
    let body = reply.out.len();

    let mut want = options.count.min(budget.entries());
    let mut claimed = 0;
    if let Some(min_idle_ms) = claim_idle_ms {
        let drops_max = if cx.may_postpone() { cx.steps(DROPS_MAX) } else { DROPS_MAX };
        let mut drops = 0;
        loop {
            let (times, bounds) = ((now_ms, min_idle_ms), (want, room, drops_max));
            let taken = take_idle(stream, (group, consumer), times, bounds, options, budget, reply);
            claimed = taken.claims.len() as u64;
            want -= claimed;
            if !taken.dropped.is_empty() {
                cx.emit(&Record::Drop { at, group: name, ids: Ids::Slice(&taken.dropped) });
            }
            dead::letter_all(cx, key, name, &taken.spent);
            dead::defer_all(cx, key, name, &taken.early);
            note_expired(cx, key, name, &taken.expired);
            if claimed > 0 {
                make_consumer(cx, key, name, consumer);
                let claims = Claims::Slice(&taken.claims);
                cx.emit(&Record::Claim { at, group: name, consumer, delivered_ms: now_ms, claims });
            }
            // What is dropped may free a key, and make room: for what is new, and for what was released.
            (stream, group) = match self::group(cx, key, name) {
                Some(both) => both,
                None => return claimed > 0,
            };
            room = Room::of(group, consumer);
            drops += taken.passed();
            if claimed > 0 || taken.passed() == 0 || drops >= drops_max {
                break;
            }
        }
        cx.take_steps(drops);
        if drops >= drops_max && cx.may_postpone() {
            budget.stop_passing();
        }
    }
    if !no_ack {
        want = want.min(room.new_entries());
    }
    let mut delivered = 0;
    if !group.held().is_empty() {
        delivered = held::give_held(cx, key, name, consumer, want, options, budget, reply);
        want -= delivered;
        (stream, group) = match self::group(cx, key, name) {
            Some(both) => both,
            None => return claimed + delivered > 0,
        };
    }

    let after = group.last_delivered;
    let n = match stream.entries.last_id() {
        Some(last) if last > after => stream.entries.count_after(after).min(want),
        _ => 0,
    };
    let plain = n == 0 || held::is_plain(stream, group);
    // What is pending beyond the position changes hands when it is given: its holder may have room then.
    let takes_away = n > 0 && group.pel().last().is_some_and(|last| last > after);
    let head_first = plain && delivered == 0 && claim_idle_ms.is_none() && !budget.bounds_size();
    if !plain {
        let passed = held::walk((stream, group), now_ms, n, options, budget, reply);
        delivered += passed.given.len() as u64;
        emit_passed(cx, key, name, consumer, &passed, no_ack);
    } else if n > 0 {
        if head_first {
            reply.array(n as usize);
        }
        let first = stream.first_id();
        let (mut last, mut entries_read) = (after, group.entries_read);
        let from = after.next().unwrap_or(StreamId::MAX);
        let before = delivered;
        for entry in stream.entries.range(from, StreamId::MAX).take(n as usize) {
            if !head_first && !budget.has_room(reply) {
                break;
            }
            held::write_new(&entry, options, reply);
            entries_read = stream.entries_read_after(last, entries_read, entry.id, first);
            last = entry.id;
            delivered += 1;
            if !head_first {
                budget.take(1);
            }
        }
        if head_first {
            budget.take(delivered);
        }
        if delivered > before {
            make_consumer(cx, key, name, consumer);
            cx.emit(&Record::Deliver { at, group: name, consumer, after, last, entries_read, no_ack, now_ms });
        }
    }

    if takes_away && !no_ack {
        cx.note_room(key);
    }

    if claimed + delivered == 0 {
        reply.out.truncate(start);
        // Something may be held by a key that is free by now.
        if cx.may_postpone()
            && self::group(cx, key, name).is_some_and(|(_, group)| group.frees_keys() && !group.held().is_empty())
        {
            budget.stop_passing();
        }
        // One that waits was seen when it asked, and will be when it is served: not each time it is woken in vain.
        if !cx.again {
            cx.emit_lazily(&Record::ConsumerSeen { at, group: name, consumer, now_ms, active: false });
        }
        return false;
    }
    if !head_first {
        put_head_before(reply, body, |reply| reply.array((claimed + delivered) as usize));
    }
    if claimed > 0 && (delivered == 0 || no_ack) {
        cx.emit(&Record::ConsumerSeen { at, group: name, consumer, now_ms, active: true });
    }
    true
}

/// Emits what a walk over new entries came to.
fn emit_passed(cx: &mut Cx<'_>, key: &[u8], name: &[u8], consumer: &[u8], passed: &Passed, no_ack: bool) {
    let (at, now_ms) = (cx.at(key), cx.now_ms());
    let Passed { given, holds, position, entries_read } = passed;
    let (position, entries_read) = (*position, *entries_read);
    if holds.is_empty() && given.is_empty() {
        return;
    }
    if holds.is_empty() {
        let Some(after) = group(cx, key, name).map(|(_, group)| group.last_delivered) else { return };
        let last = position;
        make_consumer(cx, key, name, consumer);
        return cx.emit(&Record::Deliver { at, group: name, consumer, after, last, entries_read, no_ack, now_ms });
    }
    cx.emit(&Record::Hold { at, group: name, position, entries_read, holds: Claims::Slice(holds) });
    if !given.is_empty() {
        make_consumer(cx, key, name, consumer);
        cx.emit(&Record::Give { at, group: name, consumer, no_ack, now_ms, ids: Ids::Slice(given) });
    }
}

/// Gives a consumer its own pending entries again.
#[allow(clippy::too_many_arguments)]
fn history(
    cx: &mut Cx<'_>,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    after: StreamId,
    options: &Options<'_>,
    budget: &mut Budget,
    reply: &mut Reply<'_>,
) -> bool {
    let Some((stream, group)) = group(cx, key, name) else { return false };
    let (at, now_ms) = (cx.at(key), cx.now_ms());
    reply.pair();
    reply.bulk(key);
    let body = reply.out.len();
    let want = usize::try_from(options.count.min(budget.entries())).unwrap_or(usize::MAX);
    let (mut claims, mut written) = (Vec::new(), 0);
    if let (Some(of), Some(from)) = (group.find(consumer), after.next()) {
        for pending in group.pel().range_of(of, from).take(want) {
            if !budget.has_room(reply) {
                break;
            }
            match stream.entries.get(pending.id) {
                Some(entry) => {
                    entry.write(reply.out);
                    claims.push(Claimed { id: pending.id, deliveries: once_more(pending.deliveries) });
                }
                None => {
                    reply.array(2);
                    bulk_id(reply.out, pending.id);
                    reply.null_array();
                }
            }
            budget.take(1);
            written += 1;
        }
    }
    put_head_before(reply, body, |reply| reply.array(written));
    if !claims.is_empty() {
        let claims = Claims::Slice(&claims);
        cx.emit(&Record::Claim { at, group: name, consumer, delivered_ms: now_ms, claims });
    }
    cx.emit_lazily(&Record::ConsumerSeen { at, group: name, consumer, now_ms, active: false });
    true
}

/// The ledger says of entries that their leases were over and they are handed out again.
fn note_expired(cx: &mut Cx<'_>, key: &[u8], name: &[u8], expired: &[Pending]) {
    for pending in expired {
        let Some((_, group)) = group(cx, key, name) else { return };
        let work = group.work_or_none();
        let id = work.ledger.next_id(cx.now_ms());
        let consumer: SmallVec<[u8; 64]> = group.owner_name(pending.consumer).unwrap_or_default().into();
        let attempt = work.ledger.attempt(pending.id).and_then(|attempt| attempt.work.clone());
        let row =
            Row { consumer: &consumer, delivery: pending.deliveries, ..Row::new(id, Outcome::Expired, pending.id) };
        let row = Row { work: attempt.as_deref().map_or(row.work, WorkId::parse), ..row };
        let at = cx.at(key);
        cx.emit(&Record::WorkRow { at, group: name, row, acknowledges: false });
    }
}

/// A read that waits tells for whom it reads.
fn wait_as_group(cx: &mut Cx<'_>, name: &[u8], consumer: &[u8], options: &Options<'_>) {
    let Some(mut wait) = cx.wait.take() else { return };
    let mut reader = GroupReader {
        group: name.into(),
        consumer: consumer.into(),
        claim_idle_ms: options.claim_idle_ms,
        no_ack: options.no_ack,
        leases: Vec::new(),
    };
    for key in &wait.keys {
        reader.set_lease(key, group(cx, key, name).map_or(0, |(_, group)| group.lease_ms()));
    }
    wait.group = Some(reader);
    cx.wait = Some(wait);
}
