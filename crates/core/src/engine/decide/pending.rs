//! XPENDING.

use super::claim::stream_and_group;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::resp::encode::Reply;
use crate::state::pending::{ConsumerRef, Pending, idle_bound};

/// As many words as the longest form has.
const WORDS_MAX: usize = 9;

/// XPENDING key group [[IDLE ms] start end count [consumer]]
pub fn xpending(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if args.len() == 3 {
        return summary(cx, args, reply);
    }
    // Redis passes over words after the consumer, but not over any number of them.
    if args.len() > WORDS_MAX {
        return Err(Fault::SYNTAX);
    }
    let with_idle = args.len() >= 6 && is(args.get(3), "IDLE");
    let min_idle_ms = if with_idle { Some(parse::int(args.get(4))?.max(0) as u64) } else { None };
    let first = if with_idle { 5 } else { 3 };
    if args.len() < first + 3 || (with_idle && args.len() > first + 4) {
        return Err(Fault::SYNTAX);
    }
    let count = parse::int(args.get(first + 2))?.max(0) as usize;
    let start = parse::range_start(args.get(first))?;
    let end = parse::range_end(args.get(first + 1))?;
    let consumer = args.try_get(first + 3);

    let (_, group) = stream_and_group(cx, args.get(1), args.get(2))?;
    let of = match consumer.map(|name| group.find(name)) {
        Some(None) => {
            reply.array(0);
            return Ok(());
        }
        Some(of) => of,
        None => None,
    };
    let now_ms = cx.now_ms();
    let pel = group.pel();
    let found = match (min_idle_ms, of) {
        (Some(idle_ms), of) => pel.idle_range(start, idle_bound(now_ms, idle_ms), of),
        (None, Some(of)) => pel.range_of(of, start),
        (None, None) => pel.range(start),
    };
    // Counted first, since the head of the reply needs the number; the second walk finds everything at hand.
    let idle_enough = |pending: &Pending| min_idle_ms.is_none_or(|idle_ms| pending.is_idle(now_ms, idle_ms));
    let found = found.take_while(|pending| pending.id <= end).filter(idle_enough).take(count);
    reply.array(found.clone().count());
    for pending in found {
        reply.array(4);
        reply.id(pending.id);
        match pending.consumer {
            ConsumerRef::NOBODY => {
                reply.bulk(b"");
                reply.int(-1);
            }
            of => {
                reply.bulk(&group.consumer(of).name);
                reply.count(now_ms.saturating_sub(pending.delivered_ms));
            }
        }
        reply.count(pending.deliveries);
    }
    Ok(())
}

fn summary(cx: &Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (_, group) = stream_and_group(cx, args.get(1), args.get(2))?;
    let pel = group.pel();
    reply.array(4);
    reply.count(pel.len());
    let (Some(first), Some(last)) = (pel.first(), pel.last()) else {
        reply.null();
        reply.null();
        reply.null_array();
        return Ok(());
    };
    reply.id(first);
    reply.id(last);
    let holders = || group.consumers().filter(|(_, consumer)| consumer.pending > 0);
    reply.array(holders().count());
    for (_, consumer) in holders() {
        reply.array(2);
        reply.bulk(&consumer.name);
        reply.bulk_int(consumer.pending as i64);
    }
    Ok(())
}
