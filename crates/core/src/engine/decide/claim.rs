//! XCLAIM and XAUTOCLAIM: pending entries change hands.

use super::group::CONSUMER_CREATED;
use super::options::IdList;
use super::work::dead;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::record::{Claimed, Claims, Ids, Record};
use crate::resp::encode::Reply;
use crate::state::group::Group;
use crate::state::pending::{Pending, idle_bound};
use crate::state::stream::Stream;

pub(super) fn stream_and_group<'c>(cx: &'c Cx<'_>, key: &[u8], name: &[u8]) -> Result<(&'c Stream, &'c Group), Fault> {
    let stream = cx.stream(key)?.ok_or_else(|| Fault::no_group(key, name))?;
    let group = stream.group(name).ok_or_else(|| Fault::no_group(key, name))?;
    Ok((stream, group))
}

/// What a claim comes to: entries taken over, and pending ones that were dropped because their entry is gone.
#[derive(Default)]
struct Outcome {
    claims: Vec<Claimed>,
    dropped: Vec<StreamId>,
    /// Delivered as often as the group's policy allows.
    spent: Vec<Pending>,
}

impl Outcome {
    fn len(&self) -> u64 {
        (self.claims.len() + self.dropped.len() + self.spent.len()) as u64
    }
}

/// What the group's policy says of a delivery of an entry that may change hands.
enum Verdict {
    Deliver,
    /// Not yet.
    Early,
    /// Never again.
    Spent,
}

/// JUSTID is no delivery: with it workers keep what they have.
fn judge(group: &Group, pending: &Pending, ids_only: bool, now_ms: u64) -> Verdict {
    let Some(policy) = group.work().map(|work| &work.policy).filter(|_| !ids_only) else { return Verdict::Deliver };
    let owned = !(pending.is_released() || pending.is_deferred());
    if policy.is_spent(pending.deliveries) {
        Verdict::Spent
    } else if owned && pending.delivered_ms.saturating_add(policy.backoff_ms(pending.deliveries)) > now_ms {
        Verdict::Early
    } else {
        Verdict::Deliver
    }
}

/// The delivery count after one more delivery. It stays a number that clients can read.
pub(super) fn once_more(deliveries: u64) -> u64 {
    deliveries.saturating_add(1).min(i64::MAX as u64)
}

/// Emits what a claim came to, in the order in which the pieces may be seen.
fn settle(
    cx: &mut Cx<'_>,
    key: &[u8],
    name: &[u8],
    consumer: &[u8],
    delivered_ms: u64,
    outcome: &Outcome,
) -> Result<(), Fault> {
    let (at, now_ms) = (cx.at(key), cx.now_ms());
    if stream_and_group(cx, key, name)?.1.find(consumer).is_none() {
        cx.emit(&Record::ConsumerCreate { at, group: name, consumer, now_ms });
        cx.notify(EventClass::Stream, CONSUMER_CREATED, key);
    }
    if !outcome.dropped.is_empty() {
        cx.emit(&Record::Drop { at, group: name, ids: Ids::Slice(&outcome.dropped) });
    }
    dead::letter_all(cx, key, name, &outcome.spent);
    let active = !outcome.claims.is_empty();
    if active {
        cx.emit(&Record::Claim { at, group: name, consumer, delivered_ms, claims: Claims::Slice(&outcome.claims) });
    }
    let seen = Record::ConsumerSeen { at, group: name, consumer, now_ms, active };
    if active {
        cx.emit(&seen)
    } else {
        cx.emit_lazily(&seen)
    }
    Ok(())
}

/// Writes claimed entries, or their IDs.
fn write_claims(stream: &Stream, claims: &[Claimed], ids_only: bool, reply: &mut Reply<'_>) {
    reply.array(claims.len());
    for claim in claims {
        match stream.entries.get(claim.id).filter(|_| !ids_only) {
            Some(entry) => entry.write(reply.out),
            None => reply.id(claim.id),
        }
    }
}

/// XCLAIM key group consumer min-idle-time id … [IDLE ms] [TIME unix-ms] [RETRYCOUNT n] [FORCE] [JUSTID] [LASTID id]
pub fn xclaim(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name, consumer) = (args.get(1), args.get(2), args.get(3));
    stream_and_group(cx, key, name)?;
    let invalid = |what: &str| Fault::owned(format!("ERR Invalid {what} argument for XCLAIM"));
    let min_idle_ms = parse::integer(args.get(4)).ok_or_else(|| invalid("min-idle-time"))?.max(0) as u64;
    let mut ids = IdList::new();
    let mut at = 5;
    while at < args.len()
        && let Ok(id) = parse::id(args.get(at))
    {
        ids.push(id);
        at += 1;
    }
    let now_ms = cx.now_ms();
    let (mut delivered_ms, mut retry_count, mut last_id) = (now_ms, None, StreamId::MIN);
    let (mut force, mut ids_only) = (false, false);
    while at < args.len() {
        let (word, value) = (args.get(at), args.try_get(at + 1));
        // A time before the epoch or in the future becomes now.
        let clamp = |ms: i64| u64::try_from(ms).ok().filter(|&ms| ms <= now_ms).unwrap_or(now_ms);
        match value {
            _ if is(word, "FORCE") => force = true,
            _ if is(word, "JUSTID") => ids_only = true,
            Some(value) => {
                at += 1;
                if is(word, "IDLE") {
                    let idle_ms = parse::integer(value).ok_or_else(|| invalid("IDLE option"))?;
                    delivered_ms = clamp((now_ms as i64).wrapping_sub(idle_ms));
                } else if is(word, "TIME") {
                    delivered_ms = clamp(parse::integer(value).ok_or_else(|| invalid("TIME option"))?);
                } else if is(word, "RETRYCOUNT") {
                    let n = parse::integer(value).ok_or_else(|| invalid("RETRYCOUNT option"))?;
                    retry_count = u64::try_from(n).ok();
                } else if is(word, "LASTID") {
                    last_id = parse::id(value)?;
                } else {
                    return Err(unrecognized(word));
                }
            }
            None => return Err(unrecognized(word)),
        }
        at += 1;
    }

    let (stream, group) = stream_and_group(cx, key, name)?;
    let mut outcome = Outcome::default();
    let ordered = ids.windows(2).all(|pair| pair[0] < pair[1]);
    for &id in &ids {
        // An ID that is named again finds what its first mention has made of it.
        let again = if ordered { None } else { outcome.claims.iter().rev().find(|claim| claim.id == id) };
        if group.work_hold(id).is_some() || outcome.spent.iter().any(|pending| pending.id == id) {
            continue;
        }
        if let Some(pending) = group.pel().get(id).filter(|_| again.is_none() && stream.entries.contains(id))
            && ((pending.is_deferred() && force) || pending.is_idle(now_ms, min_idle_ms))
        {
            match judge(group, &pending, ids_only, now_ms) {
                Verdict::Deliver => {}
                Verdict::Early => continue,
                Verdict::Spent => {
                    outcome.spent.push(pending);
                    continue;
                }
            }
        }
        let pending = match again {
            Some(claim) => Some((now_ms.saturating_sub(delivered_ms) >= min_idle_ms, claim.deliveries)),
            None if !ordered && outcome.dropped.contains(&id) => None,
            None => group.pel().get(id).map(|pending| {
                let deferred = pending.is_deferred() && force;
                (deferred || pending.is_idle(now_ms, min_idle_ms), pending.deliveries)
            }),
        };
        if !stream.entries.contains(id) {
            if pending.is_some() {
                outcome.dropped.push(id);
            }
            continue;
        }
        let deliveries = match pending {
            Some((false, _)) => continue,
            Some((true, deliveries)) => deliveries,
            None if force => 1,
            None => continue,
        };
        let counted = if ids_only { deliveries } else { once_more(deliveries) };
        outcome.claims.push(Claimed { id, deliveries: retry_count.unwrap_or(counted) });
    }
    write_claims(stream, &outcome.claims, ids_only, reply);
    let (position, entries_read) = (group.last_delivered, group.entries_read);
    settle(cx, key, name, consumer, delivered_ms, &outcome)?;
    if delivered_ms < now_ms {
        // What looks delivered long ago may be old enough for someone at once.
        cx.note_claimable(key);
    }
    if last_id > position {
        let at = cx.at(key);
        cx.emit(&Record::GroupPosition { at, group: name, position: last_id, entries_read });
    }
    Ok(())
}

fn unrecognized(word: &[u8]) -> Fault {
    Fault::concat(&[b"ERR Unrecognized XCLAIM option '", word, b"'"])
}

/// Greatest COUNT of XAUTOCLAIM: what Redis allows, so that ten times it cannot overflow.
const COUNT_MAX: i64 = i64::MAX / 16;

/// Pending entries that XAUTOCLAIM looks at for each one it may take.
const LOOKS_PER_CLAIM: u64 = 10;

/// XAUTOCLAIM key group consumer min-idle-time start [COUNT n] [JUSTID]
pub fn xautoclaim(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name, consumer) = (args.get(1), args.get(2), args.get(3));
    let min_idle_ms = parse::integer(args.get(4))
        .ok_or_else(|| Fault::owned("ERR Invalid min-idle-time argument for XAUTOCLAIM"))?
        .max(0) as u64;
    let start = parse::range_start(args.get(5))?;
    let (mut count, mut ids_only) = (100, false);
    let mut at = 6;
    while at < args.len() {
        let word = args.get(at);
        if is(word, "COUNT") && at + 1 < args.len() {
            let n = parse::integer(args.get(at + 1)).filter(|n| (1..=COUNT_MAX).contains(n));
            count = n.ok_or(Fault::AUTOCLAIM_COUNT)? as u64;
            at += 2;
        } else if is(word, "JUSTID") {
            ids_only = true;
            at += 1;
        } else {
            return Err(Fault::SYNTAX);
        }
    }
    let now_ms = cx.now_ms();
    let (stream, group) = stream_and_group(cx, key, name)?;
    let scan = Scan { start, count, now_ms, min_idle_ms, ids_only };
    let (outcome, cursor, scan_start) = scan.carry_out(stream, group);
    let remembered = group.scan_start;
    reply.array(3);
    reply.id(cursor);
    write_claims(stream, &outcome.claims, ids_only, reply);
    reply.array(outcome.dropped.len());
    outcome.dropped.iter().for_each(|&id| reply.id(id));
    settle(cx, key, name, consumer, now_ms, &outcome)?;
    if scan_start != remembered {
        let at = cx.at(key);
        cx.emit_lazily(&Record::ScanStart { at, group: name, start: scan_start });
    }
    Ok(())
}

/// One XAUTOCLAIM over the pending entries of a group.
///
/// Redis looks at ten times COUNT entries, in ID order, and answers where it stopped; a caller that goes on from there
/// sees everything. One that begins anew each time would never get beyond entries that are not idle, so a call that begins
/// where the one before it began, and was told to go on elsewhere, is not bound by looks: it passes over entries that are
/// not idle, which costs next to nothing, as far as the first COUNT that are.
struct Scan {
    start: StreamId,
    count: u64,
    now_ms: u64,
    min_idle_ms: u64,
    ids_only: bool,
}

impl Scan {
    /// Answers what was taken, the cursor, and what to remember for the next call.
    fn carry_out(&self, stream: &Stream, group: &Group) -> (Outcome, StreamId, Option<StreamId>) {
        let pel = group.pel();
        let again = group.scan_start == Some(self.start);
        // Entries that the stream has lost are dropped whether idle or not. Below its first entry it has lost them all;
        // up to its last hole it may have lost some, and each must be looked at; beyond, none.
        let all_lost_below = stream.entries.first_id();
        let some_lost_below = all_lost_below.and_then(|first| Some(first.max(stream.max_hole.next()?)));
        let mut outcome = Outcome::default();
        let end = pel.nth_from(self.start, self.count * LOOKS_PER_CLAIM);
        let mut last = self.walk((stream, group), self.start, end, some_lost_below, &mut outcome);
        // Behind what Redis would have looked at, entries that are young are passed over by the chunk, lost or not.
        let beyond = end.filter(|_| again && outcome.len() < self.count);
        if let Some(from) = beyond {
            last = self.walk((stream, group), from, None, all_lost_below, &mut outcome).or(last);
        }
        let next = match last.filter(|_| outcome.len() == self.count) {
            Some(last) => last.next().and_then(|from| pel.range(from).next()).map(|pending| pending.id),
            None => end.filter(|_| beyond.is_none()),
        };
        let told_to_go_on = next.is_some() && (again || outcome.len() == 0);
        (outcome, next.unwrap_or(StreamId::MIN), told_to_go_on.then_some(self.start))
    }

    /// Takes what may be taken of `from..end`, up to COUNT in all: looks at each entry below `look_below` (at all of
    /// them: `None`), and at those that are idle from there on. Answers the last that was taken.
    fn walk(
        &self,
        both: (&Stream, &Group),
        from: StreamId,
        end: Option<StreamId>,
        look_below: Option<StreamId>,
        outcome: &mut Outcome,
    ) -> Option<StreamId> {
        let pel = both.1.pel();
        let in_reach = |pending: &Pending| end.is_none_or(|end| pending.id < end);
        let in_look = |pending: &Pending| look_below.is_none_or(|bound| pending.id < bound);
        let mut last = None;
        let mut take = |pending: Pending| {
            if outcome.len() < self.count && self.take(both, &pending, outcome) {
                last = Some(pending.id);
            }
            outcome.len() < self.count
        };
        let room = pel.range(from).take_while(|pending| in_reach(pending) && in_look(pending)).all(&mut take);
        if let Some(bound) = look_below.filter(|_| room) {
            let bound_ms = idle_bound(self.now_ms, self.min_idle_ms);
            pel.idle_range(from.max(bound), bound_ms, None).take_while(in_reach).all(take);
        }
        last
    }

    /// Takes an entry if it may be taken; answers whether it was.
    fn take(&self, (stream, group): (&Stream, &Group), pending: &Pending, outcome: &mut Outcome) -> bool {
        if !stream.entries.contains(pending.id) {
            outcome.dropped.push(pending.id);
        } else if pending.is_idle(self.now_ms, self.min_idle_ms) {
            match judge(group, pending, self.ids_only, self.now_ms) {
                Verdict::Deliver => {}
                Verdict::Early => return false,
                Verdict::Spent => {
                    outcome.spent.push(*pending);
                    return true;
                }
            }
            let deliveries = if self.ids_only { pending.deliveries } else { once_more(pending.deliveries) };
            outcome.claims.push(Claimed { id: pending.id, deliveries });
        } else {
            return false;
        }
        true
    }
}
