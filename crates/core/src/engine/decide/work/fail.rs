//! XWORK FAIL: an attempt has failed.

use super::dead::{self, Sent};
use super::{Name, Options, Subject, Takes, has_entry, row_of, status, work_of, write_held, write_stale};
use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::resp::encode::Reply;
use crate::state::ledger::{Outcome, Row};

const TAKES: Takes = Takes { name: "FAIL", work: false, evidence: false, failure: true };

/// The reason of what was sent to the dead-letter stream without one.
const FAILED: &[u8] = b"failed";

/// XWORK FAIL key group consumer id [REASON text] [DELIVERY n] [RETRYIN ms | DEAD]
pub fn fail(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (subject, both) = Subject::read(cx, args)?;
    let options = Options::read(args, TAKES)?;
    let now_ms = cx.now_ms();
    let (_, group) = both;
    let Some(pending) = group.pel().get(subject.id) else {
        status(reply, 1, "NOTPENDING");
        return Ok(());
    };
    if let Some(reason) = group.work_hold(subject.id) {
        write_held(reason, reply);
        return Ok(());
    }
    let name = Name::of(work_of(both, subject.id, None, now_ms));
    let delivery = options.delivery.unwrap_or(pending.deliveries);
    let row = |outcome| Row { reason: options.reason, ..row_of(outcome, &subject, name.id(), delivery) };
    if !has_entry(group, &pending, &subject, options.delivery) {
        write_stale(group, &pending, reply);
        cx.note_work(subject.key, subject.group, row(Outcome::Stale));
        return Ok(());
    }
    let backoff_ms = group.work_or_none().policy.backoff_ms(pending.deliveries);
    let (key, group) = (subject.key, subject.group);
    if options.dead {
        let reason = if options.reason.is_empty() { FAILED } else { options.reason };
        cx.note_work(key, group, row(Outcome::Failed));
        match dead::letter(cx, key, group, &pending, reason) {
            Sent::Away(id) => {
                status(reply, 2, "DEAD");
                reply.id(id);
            }
            Sent::OnHold => write_held(reason, reply),
        }
        return Ok(());
    }
    let wait_ms = options.retry_in_ms.unwrap_or(backoff_ms);
    status(reply, 2, "FAILED");
    reply.count(wait_ms);
    cx.note_work(key, group, row(Outcome::Failed));
    let due_ms = if wait_ms == 0 { 0 } else { now_ms.saturating_add(wait_ms) };
    cx.give_back_work(key, group, &pending, due_ms);
    Ok(())
}
