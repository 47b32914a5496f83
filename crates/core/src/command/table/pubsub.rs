//! Rows of the commands about channels.

use super::CommandId;
use super::spec::{CommandSpec, Flags, KeyFlags, KeySpec, command, pattern, string};

const SUBSCRIBING: &[Flags] = &[Flags::PUBSUB, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE];
const PUBLISHING: &[Flags] = &[Flags::PUBSUB, Flags::LOADING, Flags::STALE, Flags::FAST];
const ASKING: &[Flags] = &[Flags::PUBSUB, Flags::LOADING, Flags::STALE];

pub(super) static COMMANDS: [CommandSpec; 9] = [
    command("psubscribe", CommandId::PSubscribe, -2, "2.0.0")
        .flags(SUBSCRIBING)
        .docs("pubsub", "Subscribes to the channels that fit patterns.", "O(log N) for each, N being the patterns")
        .arguments(&[pattern("pattern").multiple()]),
    command("publish", CommandId::Publish, 3, "2.0.0")
        .flags(PUBLISHING)
        .docs("pubsub", "Sends a message to a channel.", "O(N+M), N being its subscribers and M all patterns")
        .arguments(&[string("channel"), string("message")]),
    command("pubsub", CommandId::Container, -2, "2.8.0")
        .docs("pubsub", "Container of the commands that tell about channels.", "Depends on subcommand")
        .subcommands(&[
            command("pubsub|channels", CommandId::PubSubChannels, -2, "2.8.0")
                .flags(ASKING)
                .docs("pubsub", "Lists the channels that have subscribers.", "O(N), N being the channels")
                .arguments(&[pattern("pattern").optional()]),
            command("pubsub|numpat", CommandId::PubSubNumPat, 2, "2.8.0").flags(ASKING).docs(
                "pubsub",
                "Counts the patterns that someone is subscribed to.",
                "O(1)",
            ),
            command("pubsub|numsub", CommandId::PubSubNumSub, -2, "2.8.0")
                .flags(ASKING)
                .docs("pubsub", "Counts the subscribers of channels.", "O(log N) for each, N being the channels")
                .arguments(&[string("channel").optional().multiple()]),
            command("pubsub|shardchannels", CommandId::PubSubShardChannels, -2, "7.0.0")
                .flags(ASKING)
                .docs("pubsub", "Lists the shard channels that have subscribers.", "O(N), N being the channels")
                .arguments(&[pattern("pattern").optional()]),
            command("pubsub|shardnumsub", CommandId::PubSubShardNumSub, -2, "7.0.0")
                .flags(ASKING)
                .docs("pubsub", "Counts the subscribers of shard channels.", "O(log N) for each, N being the channels")
                .arguments(&[string("shardchannel").optional().multiple()]),
            command("pubsub|help", CommandId::PubSubHelp, 2, "6.2.0").flags(&[Flags::LOADING, Flags::STALE]).docs(
                "pubsub",
                "Shows the subcommands.",
                "O(1)",
            ),
        ]),
    command("punsubscribe", CommandId::PUnsubscribe, -1, "2.0.0")
        .flags(SUBSCRIBING)
        .docs("pubsub", "Ends subscriptions to patterns.", "O(log N) for each, N being the patterns")
        .arguments(&[pattern("pattern").optional().multiple()]),
    command("spublish", CommandId::SPublish, 3, "7.0.0")
        .flags(PUBLISHING)
        .keys(&[KeySpec::at(1, &[KeyFlags::NOT_KEY])])
        .docs("pubsub", "Sends a message to a shard channel.", "O(N), N being its subscribers")
        .arguments(&[string("shardchannel"), string("message")]),
    command("ssubscribe", CommandId::SSubscribe, -2, "7.0.0")
        .flags(SUBSCRIBING)
        .keys(&[KeySpec::at(1, &[KeyFlags::NOT_KEY]).range(-1, 1, 0)])
        .docs("pubsub", "Subscribes to shard channels.", "O(log N) for each, N being the channels")
        .arguments(&[string("shardchannel").multiple()]),
    command("subscribe", CommandId::Subscribe, -2, "2.0.0")
        .flags(SUBSCRIBING)
        .docs("pubsub", "Subscribes to channels.", "O(log N) for each, N being the channels")
        .arguments(&[string("channel").multiple()]),
    command("sunsubscribe", CommandId::SUnsubscribe, -1, "7.0.0")
        .flags(SUBSCRIBING)
        .keys(&[KeySpec::at(1, &[KeyFlags::NOT_KEY]).range(-1, 1, 0)])
        .docs("pubsub", "Ends subscriptions to shard channels.", "O(log N) for each, N being the channels")
        .arguments(&[string("shardchannel").optional().multiple()]),
    command("unsubscribe", CommandId::Unsubscribe, -1, "2.0.0")
        .flags(SUBSCRIBING)
        .docs("pubsub", "Ends subscriptions to channels.", "O(log N) for each, N being the channels")
        .arguments(&[string("channel").optional().multiple()]),
];
