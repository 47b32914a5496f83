//! Channels and patterns, who is subscribed to them, and how a message gets into a subscriber's output.
//!
//! Invariants: both sides of a subscription are there or none is (the topic knows the client, the client the topic); a
//! topic without subscribers is not kept; order is the order of bytes and of client indexes, so that it never depends
//! on a hash. Publishing costs the subscribers of the channel and one match for each pattern; a message is encoded once
//! for each protocol. Nothing here is part of the state: subscriptions end with their connection.
//!
//! A message has a *gate* like a reply: it does not leave before the log is durable up to there. What is pushed to the
//! client whose command is being carried out goes behind the reply of that command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Engine;
use super::blocked::ClientIndex;
use crate::command::table::CommandId;
use crate::glob::{self, Case};
use crate::resp::encode::{Protocol, Reply};

/// What can be subscribed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TopicKind {
    /// A channel: SUBSCRIBE, PUBLISH.
    Channel,
    /// All channels that fit a pattern: PSUBSCRIBE.
    Pattern,
    /// A shard channel: SSUBSCRIBE, SPUBLISH. Without a cluster just another space of names.
    Shard,
}

const KINDS: [TopicKind; 3] = [TopicKind::Channel, TopicKind::Pattern, TopicKind::Shard];

type Topics = BTreeMap<Arc<[u8]>, BTreeSet<ClientIndex>>;

/// Who is subscribed to what.
#[derive(Debug, Default)]
pub struct PubSub {
    topics: [Topics; 3],
    subscribers: usize,
}

impl PubSub {
    /// Nobody is subscribed to anything?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.subscribers == 0
    }

    /// Clients with at least one subscription.
    pub fn subscriber_count(&self) -> usize {
        self.subscribers
    }

    /// Channels, patterns or shard channels with subscribers.
    pub fn topic_count(&self, kind: TopicKind) -> usize {
        self.topics[kind as usize].len()
    }

    /// How many clients are subscribed to exactly that.
    pub fn subscribers_of(&self, kind: TopicKind, name: &[u8]) -> usize {
        self.topics[kind as usize].get(name).map_or(0, BTreeSet::len)
    }

    /// Names that have subscribers, in byte order.
    pub fn names(&self, kind: TopicKind) -> impl Iterator<Item = &[u8]> {
        self.topics[kind as usize].keys().map(AsRef::as_ref)
    }
}

/// What one client is subscribed to. A client without any has none of these.
#[derive(Debug, Default)]
pub struct Subscriptions {
    topics: [BTreeSet<Arc<[u8]>>; 3],
}

impl Subscriptions {
    /// Number of a kind.
    pub fn len(&self, kind: TopicKind) -> usize {
        self.topics[kind as usize].len()
    }

    /// None of any kind?
    pub fn is_empty(&self) -> bool {
        self.topics.iter().all(BTreeSet::is_empty)
    }

    /// All of a kind, in byte order.
    pub fn names(&self, kind: TopicKind) -> impl Iterator<Item = &Arc<[u8]>> {
        self.topics[kind as usize].iter()
    }
}

/// A message that is encoded when the first subscriber of a protocol needs it.
struct Message<'a> {
    parts: &'a [&'a [u8]],
    encoded: [Vec<u8>; 2],
}

impl<'a> Message<'a> {
    fn new(parts: &'a [&'a [u8]]) -> Self {
        Message { parts, encoded: [Vec::new(), Vec::new()] }
    }

    fn bytes(&mut self, protocol: Protocol) -> &[u8] {
        let out = &mut self.encoded[usize::from(protocol == Protocol::Resp3)];
        if out.is_empty() {
            let mut reply = Reply { out, protocol };
            reply.push(self.parts.len());
            self.parts.iter().for_each(|part| reply.bulk(part));
        }
        out
    }
}

/// What is pushed to the client whose command is being carried out: it goes behind the reply.
#[derive(Debug, Default)]
pub(super) struct OwnPushes {
    /// Whose command it is.
    pub running: Option<ClientIndex>,
    /// Messages, encoded.
    pub bytes: Vec<u8>,
    /// Log position that they wait for.
    pub gate: u64,
}

/// What a subscriber may send in RESP2, where a reply could be taken for a message.
pub(super) fn is_for_subscribers(command: CommandId) -> bool {
    use CommandId as C;
    matches!(
        command,
        C::Subscribe
            | C::Unsubscribe
            | C::PSubscribe
            | C::PUnsubscribe
            | C::SSubscribe
            | C::SUnsubscribe
            | C::Ping
            | C::Quit
            | C::Reset
    )
}

impl Engine {
    /// Subscribes a client. `false` if it was.
    pub(crate) fn subscribe(&mut self, index: ClientIndex, kind: TopicKind, name: &[u8]) -> bool {
        let topics = &mut self.pubsub.topics[kind as usize];
        let name: Arc<[u8]> = topics.get_key_value(name).map_or_else(|| name.into(), |(name, _)| name.clone());
        if !topics.entry(name.clone()).or_default().insert(index) {
            return false;
        }
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_deref_mut) else { return false };
        let subscriptions = client.subscriptions.get_or_insert_with(|| {
            self.pubsub.subscribers += 1;
            Box::default()
        });
        subscriptions.topics[kind as usize].insert(name)
    }

    /// Ends a subscription. `false` if there was none.
    pub(crate) fn unsubscribe(&mut self, index: ClientIndex, kind: TopicKind, name: &[u8]) -> bool {
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_deref_mut) else { return false };
        let Some(subscriptions) = &mut client.subscriptions else { return false };
        if !subscriptions.topics[kind as usize].remove(name) {
            return false;
        }
        if subscriptions.is_empty() {
            client.subscriptions = None;
            self.pubsub.subscribers -= 1;
        }
        self.leave(index, kind, name);
        true
    }

    /// Ends all subscriptions of a client.
    pub(crate) fn unsubscribe_all(&mut self, index: ClientIndex) {
        let Some(client) = self.clients.get_mut(index).and_then(Option::as_deref_mut) else { return };
        let Some(subscriptions) = client.subscriptions.take() else { return };
        self.pubsub.subscribers -= 1;
        for kind in KINDS {
            for name in subscriptions.names(kind) {
                self.leave(index, kind, name);
            }
        }
    }

    /// The topic's side of the end of a subscription.
    fn leave(&mut self, index: ClientIndex, kind: TopicKind, name: &[u8]) {
        let topics = &mut self.pubsub.topics[kind as usize];
        if let Some(subscribers) = topics.get_mut(name) {
            subscribers.remove(&index);
            if subscribers.is_empty() {
                topics.remove(name);
            }
        }
    }

    /// Sends a message to a channel's subscribers and to those of patterns that it fits. It leaves when the log is
    /// durable up to `gate`. Answers how many it goes to; who fits twice counts twice.
    pub(crate) fn publish(&mut self, channel: &[u8], payload: &[u8], gate: u64) -> u64 {
        if self.pubsub.is_empty() {
            return 0;
        }
        // Pushing changes no subscription, so that the topics can stand aside meanwhile.
        let pubsub = std::mem::take(&mut self.pubsub);
        let [channels, patterns, _] = &pubsub.topics;
        let mut receivers = 0;
        if let Some(subscribers) = channels.get(channel) {
            receivers += self.push_to_all(subscribers, &[b"message", channel, payload], gate);
        }
        for (pattern, subscribers) in patterns {
            if glob::matches(pattern, channel, Case::Sensitive) {
                receivers += self.push_to_all(subscribers, &[b"pmessage", pattern, channel, payload], gate);
            }
        }
        self.pubsub = pubsub;
        receivers
    }

    /// Sends a message to the subscribers of a shard channel; see [`Engine::publish`].
    pub(crate) fn publish_to_shard(&mut self, channel: &[u8], payload: &[u8], gate: u64) -> u64 {
        let pubsub = std::mem::take(&mut self.pubsub);
        let subscribers = pubsub.topics[TopicKind::Shard as usize].get(channel);
        let receivers = subscribers.map_or(0, |all| self.push_to_all(all, &[b"smessage", channel, payload], gate));
        self.pubsub = pubsub;
        receivers
    }

    fn push_to_all(&mut self, subscribers: &BTreeSet<ClientIndex>, parts: &[&[u8]], gate: u64) -> u64 {
        let mut message = Message::new(parts);
        for &index in subscribers {
            if let Some(protocol) = self.client(index).map(|client| client.protocol) {
                self.push(index, message.bytes(protocol), gate);
            }
        }
        subscribers.len() as u64
    }

    /// Puts an encoded message into a client's output. Who is about to be closed gets nothing more.
    pub(super) fn push(&mut self, index: ClientIndex, bytes: &[u8], gate: u64) {
        if self.own_pushes.running == Some(index) {
            self.own_pushes.bytes.extend_from_slice(bytes);
            self.own_pushes.gate = self.own_pushes.gate.max(gate);
            return;
        }
        let Some(client) = self.client_mut(index) else { return };
        if client.killed || client.closing {
            return;
        }
        let mut out = self.take_output(index);
        out.extend_from_slice(bytes);
        self.finish_reply(index, out, gate);
    }

    /// The command of `index` has its reply: what was pushed to that client meanwhile goes behind it. Answers the
    /// position that these pushes wait for.
    #[inline]
    pub(super) fn take_own_pushes(&mut self, index: ClientIndex, out: &mut Vec<u8>) -> u64 {
        if self.own_pushes.running != Some(index) {
            return 0;
        }
        self.own_pushes.running = None;
        out.append(&mut self.own_pushes.bytes);
        std::mem::take(&mut self.own_pushes.gate)
    }
}
