//! XINFO and its subcommands.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::resp::encode::Reply;
use crate::settings::StreamLag;
use crate::state::group::{Consumer, Group};
use crate::state::pending::ConsumerRef;
use crate::state::stream::Stream;

fn stream_of<'c>(cx: &'c Cx<'_>, key: &[u8]) -> Result<&'c Stream, Fault> {
    cx.stream(key)?.ok_or(Fault::NO_SUCH_KEY)
}

fn optional_count(reply: &mut Reply<'_>, value: Option<i64>) {
    match value {
        Some(value) => reply.int(value),
        None => reply.null(),
    }
}

fn write_lag(cx: &Cx<'_>, stream: &Stream, group: &Group, reply: &mut Reply<'_>) {
    let lag = match cx.settings().stream_lag {
        StreamLag::Exact => Some(stream.lag_exact(group) as i64),
        StreamLag::Compat => stream.lag_compat(group),
    };
    optional_count(reply, lag);
}

/// Where a group is, in three fields.
fn write_position(cx: &Cx<'_>, stream: &Stream, group: &Group, reply: &mut Reply<'_>) {
    reply.bulk(b"last-delivered-id");
    reply.id(group.last_delivered);
    reply.bulk(b"entries-read");
    optional_count(reply, group.entries_read.map(|n| n as i64));
    reply.bulk(b"lag");
    write_lag(cx, stream, group, reply);
}

/// XINFO GROUPS key
pub fn groups(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let stream = stream_of(cx, args.get(2))?;
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"consumers");
        reply.count(group.consumer_count() as u64);
        reply.bulk(b"pending");
        reply.count(group.pel().len());
        write_position(cx, stream, group, reply);
    }
    Ok(())
}

/// XINFO GROUPSTATS key
pub fn group_stats(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let stream = stream_of(cx, args.get(2))?;
    let now_ms = cx.now_ms();
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        let pel = group.pel();
        let oldest_ms = group.oldest_owned_ms(now_ms);
        let undelivered = group.last_delivered.next().and_then(|from| stream.entries.range(from, StreamId::MAX).next());
        let age = |ms: u64| now_ms.saturating_sub(ms) as i64;
        reply.map(14);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"pending");
        reply.count(pel.len());
        reply.bulk(b"in-flight");
        reply.count(group.in_flight());
        reply.bulk(b"lag");
        write_lag(cx, stream, group, reply);
        reply.bulk(b"released");
        reply.count(group.released());
        reply.bulk(b"delayed");
        reply.count(group.deferred() + group.held().delayed());
        reply.bulk(b"held");
        reply.count(group.held().waiting());
        reply.bulk(b"oldest-pending-ms");
        optional_count(reply, oldest_ms.map(age));
        reply.bulk(b"oldest-undelivered-ms");
        let undelivered = group.held().first().or(undelivered.map(|entry| entry.id));
        optional_count(reply, undelivered.map(|id| age(id.ms)));
        reply.bulk(b"next-release-ms");
        let next_ms = [group.next_due_ms(), group.held().next_due_ms()].into_iter().flatten().min();
        optional_count(reply, next_ms.map(|ms| ms.saturating_sub(now_ms) as i64));
        reply.bulk(b"acked-total");
        reply.count(group.totals.acked);
        reply.bulk(b"redelivered-total");
        reply.count(group.totals.redelivered);
        reply.bulk(b"max-pending");
        reply.count(group.options().max_pending);
        reply.bulk(b"max-pending-per-consumer");
        reply.count(group.options().max_pending_per_consumer);
    }
    Ok(())
}

/// XINFO CONSUMERS key group
pub fn consumers(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(2), args.get(3));
    let group = stream_of(cx, key)?.group(name).ok_or_else(|| Fault::no_group_of_key(key, name))?;
    let now_ms = cx.now_ms();
    reply.array(group.consumer_count());
    for (_, consumer) in group.consumers() {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(&consumer.name);
        reply.bulk(b"pending");
        reply.count(consumer.pending);
        reply.bulk(b"idle");
        reply.count(now_ms.saturating_sub(consumer.seen_ms));
        reply.bulk(b"inactive");
        reply.int(consumer.active_ms.map_or(-1, |ms| now_ms.saturating_sub(ms) as i64));
    }
    Ok(())
}

/// XINFO STREAM key [FULL [COUNT n]]
pub fn stream(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    const FULL_DEFAULT: usize = 10;
    let stream = stream_of(cx, args.get(2))?;
    let full = match args.len() {
        3 => None,
        4 | 6 if is(args.get(3), "FULL") => match args.try_get(4) {
            None => Some(FULL_DEFAULT),
            Some(word) if is(word, "COUNT") => Some(match parse::int(args.get(5))? {
                0 => usize::MAX,
                n => usize::try_from(n).unwrap_or(FULL_DEFAULT),
            }),
            Some(_) => return Err(Fault::subcommand_syntax(args.get(1), "XINFO")),
        },
        _ => return Err(Fault::subcommand_syntax(args.get(1), "XINFO")),
    };
    let entries = &stream.entries;
    reply.map(if full.is_some() { 15 } else { 16 });
    reply.bulk(b"length");
    reply.count(entries.len());
    let nodes = entries.node_count() as u64;
    reply.bulk(b"radix-tree-keys");
    reply.count(nodes);
    reply.bulk(b"radix-tree-nodes");
    reply.count(nodes + 1);
    reply.bulk(b"last-generated-id");
    reply.id(stream.last_id);
    reply.bulk(b"max-deleted-entry-id");
    reply.id(stream.max_deleted);
    reply.bulk(b"entries-added");
    reply.count(stream.entries_added);
    reply.bulk(b"recorded-first-entry-id");
    reply.id(stream.first_id());
    let (idempotence, settings) = (stream.idempotence.as_deref(), stream.idempotence_settings());
    for (name, value) in [
        ("idmp-duration", u64::from(settings.duration_s)),
        ("idmp-maxsize", u64::from(settings.maxsize)),
        ("pids-tracked", idempotence.map_or(0, |all| all.producer_count() as u64)),
        ("iids-tracked", idempotence.map_or(0, |all| all.len())),
        ("iids-added", idempotence.map_or(0, |all| all.added)),
        ("iids-duplicates", idempotence.map_or(0, |all| all.duplicates)),
    ] {
        reply.bulk(name.as_bytes());
        reply.count(value);
    }
    if let Some(count) = full {
        reply.bulk(b"entries");
        let shown = usize::try_from(entries.len()).unwrap_or(usize::MAX).min(count);
        reply.array(shown);
        entries.range(StreamId::MIN, StreamId::MAX).take(shown).for_each(|entry| entry.write(reply.out));
        reply.bulk(b"groups");
        reply.array(stream.groups.len());
        for (name, group) in &stream.groups {
            write_group(cx, stream, name, group, count, reply);
        }
        return Ok(());
    }
    reply.bulk(b"groups");
    reply.count(stream.groups.len() as u64);
    for (name, id) in [(&b"first-entry"[..], entries.first_id()), (b"last-entry", entries.last_id())] {
        reply.bulk(name);
        match id.and_then(|id| entries.get(id)) {
            Some(entry) => entry.write(reply.out),
            None => reply.null(),
        }
    }
    Ok(())
}

fn write_group(cx: &Cx<'_>, stream: &Stream, name: &[u8], group: &Group, count: usize, reply: &mut Reply<'_>) {
    let pel = group.pel();
    reply.map(8);
    reply.bulk(b"name");
    reply.bulk(name);
    write_position(cx, stream, group, reply);
    reply.bulk(b"pel-count");
    reply.count(pel.len());
    reply.bulk(b"nacked-count");
    reply.count(group.released() + group.deferred());
    reply.bulk(b"pending");
    reply.array(usize::try_from(pel.len()).unwrap_or(usize::MAX).min(count));
    for pending in pel.range(StreamId::MIN).take(count) {
        reply.array(4);
        reply.id(pending.id);
        match pending.consumer {
            ConsumerRef::NOBODY => {
                reply.bulk(b"");
                reply.int(0);
            }
            of => {
                reply.bulk(&group.consumer(of).name);
                reply.count(pending.delivered_ms);
            }
        }
        reply.count(pending.deliveries);
    }
    reply.bulk(b"consumers");
    reply.array(group.consumer_count());
    for (of, consumer) in group.consumers() {
        write_consumer(group, of, consumer, count, reply);
    }
}

fn write_consumer(group: &Group, of: ConsumerRef, consumer: &Consumer, count: usize, reply: &mut Reply<'_>) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(&consumer.name);
    reply.bulk(b"seen-time");
    reply.count(consumer.seen_ms);
    reply.bulk(b"active-time");
    reply.int(consumer.active_ms.map_or(-1, |ms| ms as i64));
    reply.bulk(b"pel-count");
    reply.count(consumer.pending);
    reply.bulk(b"pending");
    reply.array(usize::try_from(consumer.pending).unwrap_or(usize::MAX).min(count));
    for pending in group.pel().range_of(of, StreamId::MIN).take(count) {
        reply.array(3);
        reply.id(pending.id);
        reply.count(pending.delivered_ms);
        reply.count(pending.deliveries);
    }
}
