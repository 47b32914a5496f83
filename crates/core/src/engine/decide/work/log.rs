//! XWORK LOG: the rows of a ledger. A filter may pass over very many: then it goes on in the next turn.

use super::{number, optional, unknown_option};
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::decide::claim::stream_and_group;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::limits::WORK_LOOKS_PER_TURN;
use crate::resp::encode::Reply;
use crate::state::ledger::{OUTCOMES, Outcome, Row, WorkId};

/// What is asked for.
#[derive(Default)]
struct Filter<'a> {
    work: Option<WorkId<'a>>,
    entry: Option<StreamId>,
    outcome: Option<Outcome>,
}

impl Filter<'_> {
    fn admits(&self, row: &Row<'_>) -> bool {
        self.work.is_none_or(|work| work == row.work)
            && self.entry.is_none_or(|entry| entry == row.entry)
            && self.outcome.is_none_or(|outcome| outcome == row.outcome)
    }
}

/// XWORK LOG key group start end [COUNT n] [WORK wid] [ENTRY id] [OUTCOME o]
pub fn log(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(2), args.get(3));
    stream_and_group(cx, key, name)?;
    let (start, end) = (parse::range_start(args.get(4))?, parse::range_end(args.get(5))?);
    let (mut count, mut filter) = (usize::MAX, Filter::default());
    for at in (6..args.len()).step_by(2) {
        let (word, Some(value)) = (args.get(at), args.try_get(at + 1)) else {
            return Err(unknown_option(args.get(at), "LOG"));
        };
        if is(word, "COUNT") {
            count = number("COUNT", value, 1, i64::MAX as u64)? as usize;
        } else if is(word, "WORK") {
            filter.work = Some(WorkId::parse(value));
        } else if is(word, "ENTRY") {
            filter.entry = Some(parse::id(value)?);
        } else if is(word, "OUTCOME") {
            let names = OUTCOMES.map(Outcome::name).join(", ");
            let outcome = OUTCOMES.into_iter().find(|outcome| is(value, &outcome.name().to_ascii_uppercase()));
            filter.outcome = Some(outcome.ok_or_else(|| Fault::owned(format!("ERR OUTCOME must be one of {names}")))?);
        } else {
            return Err(unknown_option(word, "LOG"));
        }
    }
    let mut progress = cx.progress.take().unwrap_or_default();
    let from = progress.next.max(start);
    let looks_max = if cx.may_postpone() { WORK_LOOKS_PER_TURN } else { usize::MAX };
    let (_, group) = stream_and_group(cx, key, name)?;
    let work = group.work_or_none();
    let mut found = Reply { out: &mut progress.reply, protocol: reply.protocol };
    let mut more = None;
    for (looked, (_, row)) in work.ledger.range(from, &work.policy, cx.now_ms()).enumerate() {
        if row.id > end || progress.found == count {
            break;
        }
        if looked == looks_max {
            more = Some(row.id);
            break;
        }
        if filter.admits(&row) {
            progress.found += 1;
            write_row(&row, &mut found);
        }
    }
    if let Some(next) = more {
        progress.next = next;
        cx.postpone_with(args, progress);
        return Ok(());
    }
    reply.array(progress.found);
    reply.out.extend_from_slice(&progress.reply);
    Ok(())
}

/// A row: its ID, and a map of what it says.
fn write_row(row: &Row<'_>, reply: &mut Reply<'_>) {
    reply.array(2);
    reply.id(row.id);
    reply.map(8);
    reply.written(b"$7\r\noutcome\r\n");
    reply.bulk(row.outcome.name().as_bytes());
    reply.written(b"$5\r\nentry\r\n");
    reply.id(row.entry);
    reply.written(b"$4\r\nwork\r\n");
    reply.bulk(&row.work.text());
    reply.written(b"$8\r\nconsumer\r\n");
    optional(reply, row.consumer);
    reply.written(b"$8\r\ndelivery\r\n");
    reply.count(row.delivery);
    reply.written(b"$6\r\ndigest\r\n");
    optional(reply, row.digest);
    reply.written(b"$7\r\nreceipt\r\n");
    optional(reply, row.receipt);
    reply.written(b"$6\r\nreason\r\n");
    optional(reply, row.reason);
}
