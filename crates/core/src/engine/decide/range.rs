//! XRANGE, XREVRANGE, XLEN.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::resp::encode::Reply;

/// XLEN key
pub fn xlen(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.count(cx.stream(args.get(1))?.map_or(0, |stream| stream.entries.len()));
    Ok(())
}

/// XRANGE key start end [COUNT n]
pub fn xrange(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    range(cx, args, reply, false)
}

/// XREVRANGE key end start [COUNT n]
pub fn xrevrange(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    range(cx, args, reply, true)
}

fn range(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>, backwards: bool) -> Result<(), Fault> {
    let (start_at, end_at) = if backwards { (3, 2) } else { (2, 3) };
    let start = parse::range_start(args.get(start_at))?;
    let end = parse::range_end(args.get(end_at))?;
    let mut count = None;
    let mut at = 4;
    while at < args.len() {
        if !is(args.get(at), "COUNT") || at + 1 == args.len() {
            return Err(Fault::SYNTAX);
        }
        count = Some(parse::int(args.get(at + 1))?);
        at += 2;
    }
    let Some(stream) = cx.stream(args.get(1))? else {
        reply.array(0);
        return Ok(());
    };
    let limit = match count {
        Some(n) if n <= 0 => {
            reply.null_array();
            return Ok(());
        }
        Some(n) => n as u64,
        None => u64::MAX,
    };
    let entries = &stream.entries;
    // The head of the reply needs the number; blocks know it without a walk.
    let n = if start > end { 0 } else { entries.count_in(start, end).min(limit) as usize };
    reply.array(n);
    if n == 0 {
        return Ok(());
    }
    if backwards {
        entries.range_rev(start, end).take(n).for_each(|entry| entry.write(reply.out));
    } else {
        entries.range(start, end).take(n).for_each(|entry| entry.write(reply.out));
    }
    Ok(())
}
