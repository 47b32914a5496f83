//! XWORK DONE: the work is done. The completion is written down, the entry acknowledged, and what follows from the work
//! is added to another stream, all in one step and once for each work id.

use super::{Name, Options, Subject, Takes, check_work, completion_of, emit, has_entry, row_of, status};
use super::{write_completion, write_held, write_stale};
use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::record::Record;
use crate::resp::encode::Reply;
use crate::state::ledger::{HOLD_UNTIL_MS, Outcome, Row};

const TAKES: Takes = Takes { name: "DONE", work: true, evidence: true, failure: false };

/// XWORK DONE key group consumer id [WORK wid] [DIGEST d] [RECEIPT r] [DELIVERY n] [EMIT key2 id field value …]
pub fn done(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (subject, both) = Subject::read(cx, args)?;
    let options = Options::read(args, TAKES)?;
    let emission = options.emit.map(emit::read).transpose()?;
    let now_ms = cx.now_ms();
    let (_, group) = both;
    let (work, pending) = (group.work_or_none(), group.pel().get(subject.id));
    let (wid, completion) = completion_of(both, subject.id, options.work, now_ms);
    check_work(wid)?;
    let name = Name::of(wid);
    let delivery = options.delivery.or(pending.map(|pending| pending.deliveries)).unwrap_or(0);
    let next_id = work.ledger.next_id(now_ms);
    let row = |outcome| Row {
        id: next_id,
        digest: options.digest,
        receipt: options.receipt,
        ..row_of(outcome, &subject, name.id(), delivery)
    };
    if let Some(pending) = &pending {
        if let Some(reason) = work.ledger.hold(subject.id) {
            write_held(reason, reply);
            return Ok(());
        }
        if !has_entry(group, pending, &subject, options.delivery) {
            write_stale(group, pending, reply);
            note(cx, &subject, row(Outcome::Stale), false);
            return Ok(());
        }
    }
    if let Some(first) = completion {
        // Where one of the two says nothing there is nothing to contradict.
        let both_say = !first.digest.is_empty() && !options.digest.is_empty();
        let contradicts = both_say && first.digest != options.digest;
        let acknowledges = pending.is_some() && !contradicts;
        status(reply, 2, if contradicts { "CONFLICT" } else { "DUPLICATE" });
        write_completion(&first, reply);
        note(cx, &subject, row(if contradicts { Outcome::Conflict } else { Outcome::Duplicate }), acknowledges);
        if let Some(pending) = pending.filter(|_| contradicts) {
            cx.give_back_work(subject.key, subject.group, &pending, HOLD_UNTIL_MS);
        }
        return Ok(());
    }
    if pending.is_none() {
        status(reply, 1, "NOTPENDING");
        return Ok(());
    }
    let emission = match emission {
        Some(_) if cx.is_memory_short() => return Err(Fault::OUT_OF_MEMORY),
        Some((key, wanted, fields)) => Some(emit::prepare(cx, key, wanted, fields)?),
        None => None,
    };
    status(reply, 2, "COMPLETED");
    match &emission {
        Some(emission) => reply.id(emission.id),
        None => reply.null(),
    }
    note(cx, &subject, row(Outcome::Completed), true);
    if let Some(emission) = &emission {
        emit::add(cx, emission);
    }
    Ok(())
}

/// Writes a row, whose ID is the next one, and acknowledges its entry with it.
fn note(cx: &mut Cx<'_>, subject: &Subject<'_>, row: Row<'_>, acknowledges: bool) {
    let at = cx.at(subject.key);
    cx.emit(&Record::WorkRow { at, group: subject.group, row, acknowledges });
}
