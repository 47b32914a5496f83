//! XWORK AUDIT: what is to be done about each entry that the group has been given. Many entries take several turns; each
//! is judged at the moment at which it is looked at.

use super::{completion_of, number, unknown_option};
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::decide::claim::stream_and_group;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::limits::WORK_LOOKS_PER_TURN;
use crate::resp::encode::Reply;
use crate::session::Progress;
use crate::state::decision::{Begun, Books, DECISIONS, REASONS, Reason};
use crate::state::group::Group;
use crate::state::ledger::{Outcome, WorkId};
use crate::state::pending::Pending;
use crate::state::stream::Stream;

/// XWORK AUDIT key group [start end] [COUNT n] [SUMMARY]
pub fn audit(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(2), args.get(3));
    stream_and_group(cx, key, name)?;
    let (mut start, mut end, mut at) = (StreamId::MIN, StreamId::MAX, 4);
    let (mut count, mut summary) = (usize::MAX, false);
    if let (Some(first), Some(last)) = (args.try_get(4), args.try_get(5))
        && !is(first, "COUNT")
        && !is(first, "SUMMARY")
    {
        (start, end, at) = (parse::range_start(first)?, parse::range_end(last)?, 6);
    }
    while at < args.len() {
        match (args.get(at), args.try_get(at + 1)) {
            (word, _) if is(word, "SUMMARY") => {
                summary = true;
                at += 1;
            }
            (word, Some(value)) if is(word, "COUNT") => {
                count = number("COUNT", value, 1, i64::MAX as u64)? as usize;
                at += 2;
            }
            (word, _) => return Err(unknown_option(word, "AUDIT")),
        }
    }
    let mut progress = cx.progress.take().unwrap_or_default();
    let now_ms = cx.now_ms();
    let looks_max = if cx.may_postpone() { WORK_LOOKS_PER_TURN } else { usize::MAX };
    let both = stream_and_group(cx, key, name)?;
    let mut more = None;
    for (looked, (id, payload, pending)) in given(both, progress.next.max(start), end).enumerate() {
        if progress.found == count {
            break;
        }
        if looked == looks_max {
            more = Some(id);
            break;
        }
        progress.found += 1;
        let (reason, work) = judge(both, id, payload, pending.as_ref(), now_ms);
        progress.counts[reason as usize] += 1;
        if !summary {
            let mut row = Reply { out: &mut progress.reply, protocol: reply.protocol };
            write_row(both.1, id, work, reason, pending.as_ref(), now_ms, &mut row);
        }
    }
    if let Some(next) = more {
        progress.next = next;
        cx.postpone_with(args, progress);
    } else if summary {
        write_summary(&progress, reply);
    } else {
        reply.array(progress.found);
        reply.out.extend_from_slice(&progress.reply);
    }
    Ok(())
}

/// The entries between two IDs that the group was given and that are pending or in the stream, in order: each with whether
/// the stream has it, and how it is pending.
fn given<'a>(
    (stream, group): (&'a Stream, &'a Group),
    start: StreamId,
    end: StreamId,
) -> impl Iterator<Item = (StreamId, bool, Option<Pending>)> {
    let last = end.min(group.last_delivered);
    let passed = stream.entries.range(start, last).map(|entry| entry.id).filter(|&id| !group.held().contains(id));
    let mut passed = passed.peekable();
    let mut pending = group.pel().range(start).take_while(move |pending| pending.id <= end).peekable();
    std::iter::from_fn(move || match (passed.peek().copied(), pending.peek().copied()) {
        (Some(id), Some(at)) if id == at.id => {
            passed.next();
            pending.next();
            Some((id, true, Some(at)))
        }
        (Some(id), at) if at.is_none_or(|at| id < at.id) => {
            passed.next();
            Some((id, true, None))
        }
        (_, Some(at)) => {
            pending.next();
            Some((at.id, stream.entries.contains(at.id), Some(at)))
        }
        (_, None) => None,
    })
}

/// Reads both books.
fn judge<'a>(
    both @ (_, group): (&'a Stream, &'a Group),
    id: StreamId,
    payload: bool,
    pending: Option<&Pending>,
    now_ms: u64,
) -> (Reason, WorkId<'a>) {
    let work = group.work_or_none();
    let (ledger, policy) = (&work.ledger, &work.policy);
    let (wid, completion) = completion_of(both, id, None, now_ms);
    let begun = match (pending, ledger.attempt(id)) {
        (Some(pending), Some(attempt)) => {
            let owner = group.owner_name(pending.consumer);
            if attempt.is_over(pending, owner, policy.lease_ms, now_ms) { Begun::LeaseOver } else { Begun::WithinLease }
        }
        _ => Begun::No,
    };
    let dead = || ledger.settlement(id, policy, now_ms).is_some_and(|row| row.outcome == Outcome::Dead);
    let books = Books {
        pending: pending.is_some(),
        payload,
        completed: completion.is_some(),
        conflict: ledger.is_in_conflict(wid, policy, now_ms),
        on_hold: ledger.hold(id).is_some(),
        dead: pending.is_none() && dead(),
        begun,
        evidence: policy.evidence,
        idempotent: policy.idempotent,
    };
    (books.decide(), wid)
}

/// id, work id, decision, reason, owner, delivery number, idle ms
fn write_row(
    group: &Group,
    id: StreamId,
    work: WorkId<'_>,
    reason: Reason,
    pending: Option<&Pending>,
    now_ms: u64,
    reply: &mut Reply<'_>,
) {
    reply.array(7);
    reply.id(id);
    reply.bulk(&work.text());
    reply.simple(reason.decision().name());
    let own = group.work_hold(id).filter(|_| reason == Reason::OnHold);
    reply.bulk(own.unwrap_or(reason.code().as_bytes()));
    match pending.and_then(|pending| group.owner_name(pending.consumer)) {
        Some(owner) => reply.bulk(owner),
        None => reply.null(),
    }
    reply.count(pending.map_or(0, |pending| pending.deliveries));
    let owned = pending.filter(|pending| group.owner_name(pending.consumer).is_some());
    reply.int(owned.map_or(-1, |pending| now_ms.saturating_sub(pending.delivered_ms) as i64));
}

/// The counts: of all entries, of each decision, and of each reason that there is.
fn write_summary(progress: &Progress, reply: &mut Reply<'_>) {
    reply.map(2 + DECISIONS.len());
    reply.bulk(b"entries");
    reply.count(progress.found as u64);
    for decision in DECISIONS {
        reply.bulk(decision.name().as_bytes());
        let of = REASONS.iter().filter(|reason| reason.decision() == decision);
        reply.count(of.map(|reason| progress.counts[*reason as usize]).sum());
    }
    reply.bulk(b"reasons");
    let there = || REASONS.iter().filter(|reason| progress.counts[**reason as usize] > 0);
    reply.map(there().count());
    for reason in there() {
        reply.bulk(reason.code().as_bytes());
        reply.count(progress.counts[*reason as usize]);
    }
}
