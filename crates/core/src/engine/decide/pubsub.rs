//! SUBSCRIBE and its kin, PUBLISH, PUBSUB.
//!
//! Subscribing is answered by one push for each name, in the place of a reply. In RESP2 a subscriber may then send
//! little else (the engine sees to that); in RESP3 anything.

use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::engine::pubsub::TopicKind;
use crate::glob::{self, Case};
use crate::resp::encode::Reply;
use crate::session::ReplyMode;

/// Subscriptions as the push about one counts them: shard channels by themselves, channels and patterns together.
fn count(cx: &Cx<'_>, kind: TopicKind) -> u64 {
    let subscriptions = cx.engine_ref().client(cx.client).and_then(|client| client.subscriptions.as_deref());
    let Some(of) = subscriptions else { return 0 };
    (match kind {
        TopicKind::Shard => of.len(TopicKind::Shard),
        TopicKind::Channel | TopicKind::Pattern => of.len(TopicKind::Channel) + of.len(TopicKind::Pattern),
    }) as u64
}

/// Writes the push about one subscription.
fn confirm(cx: &Cx<'_>, kind: TopicKind, name: Option<&[u8]>, reply: &mut Reply<'_>) {
    reply.push(3);
    reply.bulk(cx.spec.name.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.count(count(cx, kind));
}

/// CLIENT REPLY is about replies; these pushes come also where it holds replies back.
fn keep_confirmations(cx: &mut Cx<'_>, start: usize, reply: &mut Reply<'_>) {
    if matches!(cx.client().reply_mode, ReplyMode::Off | ReplyMode::Skip) {
        let index = cx.client;
        cx.engine().push(index, &reply.out[start..], 0);
        reply.out.truncate(start);
    }
}

/// SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE name …
pub fn subscribe(cx: &mut Cx<'_>, args: Args<'_>, kind: TopicKind, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let start = reply.out.len();
    for name in args.from(1).iter() {
        let index = cx.client;
        cx.engine().subscribe(index, kind, name);
        confirm(cx, kind, Some(name), reply);
    }
    keep_confirmations(cx, start, reply);
    Ok(())
}

/// UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE [name …]; without names, from all.
pub fn unsubscribe(cx: &mut Cx<'_>, args: Args<'_>, kind: TopicKind, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let start = reply.out.len();
    let index = cx.client;
    for name in args.from(1).iter() {
        cx.engine().unsubscribe(index, kind, name);
        confirm(cx, kind, Some(name), reply);
    }
    if args.len() == 1 {
        let all: Vec<_> =
            cx.client().subscriptions.iter().flat_map(|subscriptions| subscriptions.names(kind)).cloned().collect();
        for name in &all {
            cx.engine().unsubscribe(index, kind, name);
            confirm(cx, kind, Some(name), reply);
        }
        if all.is_empty() {
            confirm(cx, kind, None, reply);
        }
    }
    keep_confirmations(cx, start, reply);
    Ok(())
}

/// PUBLISH channel message, SPUBLISH shardchannel message.
///
/// A message touches no key. It only does not overtake what its client has done before: it waits for the log as far
/// as that client's earlier replies do, and inside a transaction for what the transaction has changed so far.
pub fn publish(cx: &mut Cx<'_>, args: Args<'_>, kind: TopicKind, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let earlier = cx.client().output.last_gate();
    let transaction = if cx.in_transaction() { cx.engine_ref().log.position() } else { 0 };
    let (channel, message, gate) = (args.get(1), args.get(2), earlier.max(transaction));
    let receivers = match kind {
        TopicKind::Shard => cx.engine().publish_to_shard(channel, message, gate),
        TopicKind::Channel | TopicKind::Pattern => cx.engine().publish(channel, message, gate),
    };
    reply.count(receivers);
    Ok(())
}

/// PUBSUB CHANNELS [pattern], PUBSUB SHARDCHANNELS [pattern]
pub fn channels(cx: &mut Cx<'_>, args: Args<'_>, kind: TopicKind, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if args.len() > 3 {
        return Err(Fault::subcommand_syntax(args.get(1), "PUBSUB"));
    }
    let pattern = args.try_get(2);
    let fits = |name: &&[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name, Case::Sensitive));
    let names: Vec<&[u8]> = cx.engine_ref().pubsub.names(kind).filter(fits).collect();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
    Ok(())
}

/// PUBSUB NUMSUB [channel …], PUBSUB SHARDNUMSUB [shardchannel …]
pub fn numsub(cx: &mut Cx<'_>, args: Args<'_>, kind: TopicKind, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let names = args.from(2);
    reply.array(2 * names.len());
    for name in names.iter() {
        reply.bulk(name);
        reply.count(cx.engine_ref().pubsub.subscribers_of(kind, name) as u64);
    }
    Ok(())
}

/// PUBSUB NUMPAT
pub fn numpat(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.count(cx.engine_ref().pubsub.topic_count(TopicKind::Pattern) as u64);
    Ok(())
}
