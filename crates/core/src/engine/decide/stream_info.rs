//! XINFO and its subcommands.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::resp::encode::Reply;
use crate::settings::StreamLag;
use crate::state::group::{Consumer, Group};
use crate::state::ledger::HOLD_UNTIL_MS;
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

/// How far the groups of a stream are behind. Most of them stand where others stand: that is counted once.
struct Lags<'s> {
    stream: &'s Stream,
    way: StreamLag,
    counted: Option<(StreamId, u64)>,
}

impl<'s> Lags<'s> {
    fn new(cx: &Cx<'_>, stream: &'s Stream) -> Lags<'s> {
        Lags { stream, way: cx.settings().stream_lag, counted: None }
    }

    fn write(&mut self, group: &Group, reply: &mut Reply<'_>) {
        let lag = match (self.way, self.counted) {
            (StreamLag::Compat, _) => self.stream.lag_compat(group),
            (StreamLag::Exact, Some((position, lag))) if position == group.last_delivered => {
                Some((lag + group.held().len()) as i64)
            }
            (StreamLag::Exact, _) => {
                // Most groups have read everything: that need not be looked up.
                let at_end = self.stream.entries.last_id().is_none_or(|last| last <= group.last_delivered);
                let lag = if at_end { 0 } else { self.stream.entries.count_after(group.last_delivered) };
                self.counted = Some((group.last_delivered, lag));
                Some((lag + group.held().len()) as i64)
            }
        };
        optional_count(reply, lag);
    }
}

/// Bytes of the reply about a group, or a consumer, with a short name: room is made once for all of them.
const PART_BYTES: usize = 192;

fn make_room(parts: usize, reply: &mut Reply<'_>) {
    reply.out.reserve(parts * PART_BYTES);
}

/// Where a group is, in three fields.
fn write_position(lags: &mut Lags<'_>, group: &Group, reply: &mut Reply<'_>) {
    reply.written(b"$17\r\nlast-delivered-id\r\n");
    reply.id(group.last_delivered);
    reply.written(b"$12\r\nentries-read\r\n");
    optional_count(reply, group.entries_read.map(|n| n as i64));
    reply.written(b"$3\r\nlag\r\n");
    lags.write(group, reply);
}

/// XINFO GROUPS key
pub fn groups(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let stream = stream_of(cx, args.get(2))?;
    let mut lags = Lags::new(cx, stream);
    make_room(stream.groups.len(), reply);
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        reply.map(6);
        reply.written(b"$4\r\nname\r\n");
        reply.bulk(name);
        reply.written(b"$9\r\nconsumers\r\n");
        reply.count(group.consumer_count() as u64);
        reply.written(b"$7\r\npending\r\n");
        reply.count(group.pel().len());
        write_position(&mut lags, group, reply);
    }
    Ok(())
}

/// XINFO GROUPSTATS key
pub fn group_stats(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let stream = stream_of(cx, args.get(2))?;
    let now_ms = cx.now_ms();
    let mut lags = Lags::new(cx, stream);
    make_room(2 * stream.groups.len(), reply);
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        let pel = group.pel();
        let oldest_ms = group.oldest_owned_ms(now_ms);
        let undelivered = group.last_delivered.next().and_then(|from| stream.entries.range(from, StreamId::MAX).next());
        let age = |ms: u64| now_ms.saturating_sub(ms) as i64;
        reply.map(15);
        reply.written(b"$4\r\nname\r\n");
        reply.bulk(name);
        reply.written(b"$7\r\npending\r\n");
        reply.count(pel.len());
        reply.written(b"$9\r\nin-flight\r\n");
        reply.count(group.in_flight());
        reply.written(b"$3\r\nlag\r\n");
        lags.write(group, reply);
        reply.written(b"$8\r\nreleased\r\n");
        reply.count(group.released());
        reply.written(b"$7\r\ndelayed\r\n");
        reply.count(group.deferred() - group.work_holds() + group.held().delayed());
        reply.written(b"$4\r\nheld\r\n");
        reply.count(group.held().waiting());
        reply.written(b"$17\r\noldest-pending-ms\r\n");
        optional_count(reply, oldest_ms.map(age));
        reply.written(b"$21\r\noldest-undelivered-ms\r\n");
        let undelivered = group.held().first().or(undelivered.map(|entry| entry.id));
        optional_count(reply, undelivered.map(|id| age(id.ms)));
        reply.written(b"$15\r\nnext-release-ms\r\n");
        // What is on hold waits for no time.
        let release_ms = group.next_due_ms().filter(|&ms| ms != HOLD_UNTIL_MS);
        let next_ms = [release_ms, group.held().next_due_ms()].into_iter().flatten().min();
        optional_count(reply, next_ms.map(|ms| ms.saturating_sub(now_ms) as i64));
        reply.written(b"$11\r\nacked-total\r\n");
        reply.count(group.totals.acked);
        reply.written(b"$17\r\nredelivered-total\r\n");
        reply.count(group.totals.redelivered);
        reply.written(b"$11\r\nmax-pending\r\n");
        reply.count(group.options().max_pending);
        reply.written(b"$24\r\nmax-pending-per-consumer\r\n");
        reply.count(group.options().max_pending_per_consumer);
        reply.written(b"$9\r\nkey-field\r\n");
        match &group.options().key_field {
            Some(field) => reply.bulk(field),
            None => reply.null(),
        }
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
        reply.written(b"$4\r\nname\r\n");
        reply.bulk(&consumer.name);
        reply.written(b"$7\r\npending\r\n");
        reply.count(consumer.pending);
        reply.written(b"$4\r\nidle\r\n");
        reply.count(now_ms.saturating_sub(consumer.seen_ms));
        reply.written(b"$8\r\ninactive\r\n");
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
    reply.written(b"$6\r\nlength\r\n");
    reply.count(entries.len());
    let nodes = entries.node_count() as u64;
    reply.written(b"$15\r\nradix-tree-keys\r\n");
    reply.count(nodes);
    reply.written(b"$16\r\nradix-tree-nodes\r\n");
    reply.count(nodes + 1);
    reply.written(b"$17\r\nlast-generated-id\r\n");
    reply.id(stream.last_id);
    reply.written(b"$20\r\nmax-deleted-entry-id\r\n");
    reply.id(stream.max_deleted);
    reply.written(b"$13\r\nentries-added\r\n");
    reply.count(stream.entries_added);
    reply.written(b"$23\r\nrecorded-first-entry-id\r\n");
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
        reply.written(b"$7\r\nentries\r\n");
        let shown = usize::try_from(entries.len()).unwrap_or(usize::MAX).min(count);
        reply.array(shown);
        entries.range(StreamId::MIN, StreamId::MAX).take(shown).for_each(|entry| entry.write(reply.out));
        reply.written(b"$6\r\ngroups\r\n");
        reply.array(stream.groups.len());
        let mut lags = Lags::new(cx, stream);
        make_room(2 * stream.groups.len(), reply);
        for (name, group) in &stream.groups {
            write_group(&mut lags, name, group, count, reply);
        }
        return Ok(());
    }
    reply.written(b"$6\r\ngroups\r\n");
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

fn write_group(lags: &mut Lags<'_>, name: &[u8], group: &Group, count: usize, reply: &mut Reply<'_>) {
    let pel = group.pel();
    reply.map(8);
    reply.written(b"$4\r\nname\r\n");
    reply.bulk(name);
    write_position(lags, group, reply);
    reply.written(b"$9\r\npel-count\r\n");
    reply.count(pel.len());
    reply.written(b"$12\r\nnacked-count\r\n");
    reply.count(group.released() + group.deferred());
    reply.written(b"$7\r\npending\r\n");
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
    reply.written(b"$9\r\nconsumers\r\n");
    reply.array(group.consumer_count());
    for (of, consumer) in group.consumers() {
        write_consumer(group, of, consumer, count, reply);
    }
}

fn write_consumer(group: &Group, of: ConsumerRef, consumer: &Consumer, count: usize, reply: &mut Reply<'_>) {
    reply.map(5);
    reply.written(b"$4\r\nname\r\n");
    reply.bulk(&consumer.name);
    reply.written(b"$9\r\nseen-time\r\n");
    reply.count(consumer.seen_ms);
    reply.written(b"$11\r\nactive-time\r\n");
    reply.int(consumer.active_ms.map_or(-1, |ms| ms as i64));
    reply.written(b"$9\r\npel-count\r\n");
    reply.count(consumer.pending);
    reply.written(b"$7\r\npending\r\n");
    reply.array(usize::try_from(consumer.pending).unwrap_or(usize::MAX).min(count));
    for pending in group.pel().range_of(of, StreamId::MIN).take(count) {
        reply.array(3);
        reply.id(pending.id);
        reply.count(pending.delivered_ms);
        reply.count(pending.deliveries);
    }
}
