//! XWORK BEGIN: may the work be done?

use super::{Name, Options, Subject, Takes, check_work, completion_of, has_entry, row_of, status};
use super::{write_completion, write_held, write_stale};
use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::resp::encode::Reply;
use crate::state::decision::Reason;
use crate::state::ledger::{Attempt, Outcome, Row};

const TAKES: Takes = Takes { name: "BEGIN", work: true, evidence: false, failure: false };

/// XWORK BEGIN key group consumer id [WORK wid] [DELIVERY n]
pub fn begin(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (subject, both) = Subject::read(cx, args)?;
    let options = Options::read(args, TAKES)?;
    let now_ms = cx.now_ms();
    let (_, group) = both;
    let (work, pending) = (group.work_or_none(), group.pel().get(subject.id));
    let (ledger, policy) = (&work.ledger, &work.policy);
    let (wid, completion) = completion_of(both, subject.id, options.work, now_ms);
    check_work(wid)?;
    if let Some(first) = completion {
        status(reply, 2, "DONE");
        write_completion(&first, reply);
        return Ok(());
    }
    let Some(pending) = pending else {
        status(reply, 1, "NOTPENDING");
        return Ok(());
    };
    if let Some(reason) = ledger.hold(subject.id) {
        write_held(reason, reply);
        return Ok(());
    }
    let name = Name::of(wid);
    let row = |outcome| row_of(outcome, &subject, name.id(), options.delivery.unwrap_or(pending.deliveries));
    if !has_entry(group, &pending, &subject, options.delivery) {
        write_stale(group, &pending, reply);
        cx.note_work(subject.key, subject.group, row(Outcome::Stale));
        return Ok(());
    }
    let is_over = |attempt: &Attempt, id| {
        group.pel().get(id).is_none_or(|pending| {
            attempt.is_over(&pending, group.owner_name(pending.consumer), policy.lease_ms, now_ms)
        })
    };
    // An attempt of this very delivery is said again: that it goes on is no question of leases.
    let attempt = ledger.attempt(subject.id);
    let again =
        attempt.is_some_and(|attempt| attempt.delivery == pending.deliveries && *attempt.consumer == *subject.consumer);
    if attempt.is_some() && !again && !policy.idempotent {
        let reason = Reason::OutcomeUnknown.code().as_bytes();
        write_held(reason, reply);
        cx.hold_work(subject.key, subject.group, &pending, Row { reason, ..row(Outcome::Held) });
        return Ok(());
    }
    let busy = ledger.others_at(wid, subject.id).find(|(id, attempt)| !is_over(attempt, *id));
    if let Some((id, attempt)) = busy {
        status(reply, 3, "BUSY");
        reply.bulk(&attempt.consumer);
        reply.id(id);
        return Ok(());
    }
    status(reply, 2, "PROCEED");
    reply.count(pending.deliveries);
    if !(again && attempt.is_some_and(|attempt| attempt.work_id(subject.id) == wid)) {
        cx.note_work(subject.key, subject.group, row(Outcome::Begun));
    }
    Ok(())
}
