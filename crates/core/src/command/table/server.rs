//! Rows of the commands about the server, its settings and its cluster.

use super::CommandId;
use super::spec::{
    Categories, CommandSpec, Flags, KeyFlags, KeySpec, block, command, integer, key, one_of, pattern, string, word,
};

pub(super) static COMMANDS: [CommandSpec; 23] = [
    command("asking", CommandId::Asking, 1, "3.0.0").categories(&[Categories::CONNECTION]).flags(&[Flags::FAST]).docs(
        "cluster",
        "Announces that the next command follows an ASK redirect.",
        "O(1)",
    ),
    command("bgrewriteaof", CommandId::BgRewriteAof, 1, "1.0.0")
        .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_ASYNC_LOADING])
        .docs("server", "Starts compacting the log in the background.", "O(1)"),
    command("bgsave", CommandId::BgSave, -1, "1.0.0")
        .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_ASYNC_LOADING])
        .docs("server", "Starts taking a snapshot in the background.", "O(1)")
        .arguments(&[word("schedule", "SCHEDULE").since("3.2.2").optional()]),
    command("cluster", CommandId::Container, -2, "3.0.0")
        .docs("cluster", "Container of the commands about the cluster.", "Depends on subcommand")
        .subcommands(&[
            command("cluster|info", CommandId::ClusterInfo, 2, "3.0.0")
                .flags(&[Flags::STALE])
                .docs("cluster", "Describes the state of the cluster.", "O(1)")
                .tips(&["nondeterministic_output"]),
            command("cluster|myid", CommandId::ClusterMyId, 2, "3.0.0").flags(&[Flags::STALE]).docs(
                "cluster",
                "Tells the ID of the node.",
                "O(1)",
            ),
            command("cluster|nodes", CommandId::ClusterNodes, 2, "3.0.0")
                .flags(&[Flags::STALE])
                .docs("cluster", "Lists the nodes of the cluster.", "O(N), N being the nodes")
                .tips(&["nondeterministic_output"]),
            command("cluster|slots", CommandId::ClusterSlots, 2, "3.0.0")
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("cluster", "Tells which nodes serve which slots.", "O(N), N being the nodes")
                .tips(&["nondeterministic_output"])
                .deprecated("7.0.0", "`CLUSTER SHARDS`"),
            command("cluster|shards", CommandId::ClusterShards, 2, "7.0.0")
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("cluster", "Tells which nodes form which shard and serve which slots.", "O(N), N being the nodes")
                .tips(&["nondeterministic_output"]),
            command("cluster|keyslot", CommandId::ClusterKeySlot, 3, "3.0.0")
                .flags(&[Flags::STALE])
                .docs("cluster", "Tells the slot of a key.", "O(N), N being the bytes of the key")
                .arguments(&[string("key")]),
            command("cluster|countkeysinslot", CommandId::ClusterCountKeysInSlot, 3, "3.0.0")
                .flags(&[Flags::STALE])
                .docs("cluster", "Counts the keys of a slot.", "O(1)")
                .arguments(&[integer("slot")]),
            command("cluster|getkeysinslot", CommandId::ClusterGetKeysInSlot, 4, "3.0.0")
                .flags(&[Flags::STALE])
                .docs("cluster", "Lists keys of a slot.", "O(N), N being the keys asked for")
                .tips(&["nondeterministic_output"])
                .arguments(&[integer("slot"), integer("count")]),
            command("cluster|help", CommandId::ClusterHelp, 2, "5.0.0").flags(&[Flags::LOADING, Flags::STALE]).docs(
                "cluster",
                "Shows the subcommands.",
                "O(1)",
            ),
        ]),
    command("command", CommandId::Command, -1, "2.8.13")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::LOADING, Flags::STALE])
        .docs(
            "server",
            "Describes all commands; container of the commands about commands.",
            "O(N), N being the commands",
        )
        .tips(&["nondeterministic_output_order"])
        .subcommands(&[
            command("command|count", CommandId::CommandCount, 2, "2.8.13")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("server", "Counts the commands.", "O(1)"),
            command("command|docs", CommandId::CommandDocs, -2, "7.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs(
                    "server",
                    "Explains commands: what they do, since when, and their syntax.",
                    "O(N), N being the commands described",
                )
                .tips(&["nondeterministic_output_order"])
                .arguments(&[string("command-name").optional().multiple()]),
            command("command|info", CommandId::CommandInfo, -2, "2.8.13")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("server", "Describes commands: arity, flags, keys.", "O(N), N being the commands described")
                .tips(&["nondeterministic_output_order"])
                .arguments(&[string("command-name").optional().multiple()]),
            command("command|getkeys", CommandId::CommandGetKeys, -3, "2.8.13")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("server", "Finds the keys in a command.", "O(N), N being the arguments")
                .arguments(&[string("command"), string("arg").optional().multiple()]),
            command("command|getkeysandflags", CommandId::CommandGetKeysAndFlags, -3, "7.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("server", "Finds the keys in a command and what happens to them.", "O(N), N being the arguments")
                .arguments(&[string("command"), string("arg").optional().multiple()]),
            command("command|list", CommandId::CommandList, -2, "7.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("server", "Lists the names of the commands.", "O(N), N being the commands")
                .tips(&["nondeterministic_output_order"])
                .arguments(&[one_of(
                    "filterby",
                    &[
                        string("module-name").token("MODULE"),
                        string("category").token("ACLCAT"),
                        pattern("pattern").token("PATTERN"),
                    ],
                )
                .token("FILTERBY")
                .optional()]),
            command("command|help", CommandId::CommandHelp, 2, "5.0.0")
                .categories(&[Categories::CONNECTION])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("server", "Shows the subcommands.", "O(1)"),
        ]),
    command("config", CommandId::Container, -2, "2.0.0")
        .docs("server", "Container of the commands about settings.", "Depends on subcommand")
        .subcommands(&[
            command("config|get", CommandId::ConfigGet, -3, "2.0.0")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Shows the settings whose names match.", "O(N), N being the settings shown")
                .arguments(&[string("parameter").multiple()]),
            command("config|set", CommandId::ConfigSet, -4, "2.0.0")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Changes settings, all or none.", "O(N), N being the settings changed")
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .arguments(&[block("data", &[string("parameter"), string("value")]).multiple()]),
            command("config|resetstat", CommandId::ConfigResetStat, 2, "2.0.0")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Sets the statistics of INFO back to zero.", "O(1)")
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
            command("config|rewrite", CommandId::ConfigRewrite, 2, "2.8.0")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Writes the settings in effect to the configuration file.", "O(1)")
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
            command("config|help", CommandId::ConfigHelp, 2, "5.0.0").flags(&[Flags::LOADING, Flags::STALE]).docs(
                "server",
                "Shows the subcommands.",
                "O(1)",
            ),
        ]),
    command("dbsize", CommandId::DbSize, 1, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY, Flags::FAST])
        .docs("server", "Counts the keys of the database.", "O(1)")
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    command("debug", CommandId::Debug, -2, "1.0.0")
        .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs("server", "Container of commands for tests.", "Depends on subcommand")
        .internal(),
    command("flushall", CommandId::FlushAll, -1, "1.0.0")
        .categories(&[Categories::KEYSPACE, Categories::DANGEROUS])
        .flags(&[Flags::WRITE])
        .docs("server", "Deletes the keys of all databases.", "O(N), N being the keys")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .arguments(&[one_of(
            "flush-type",
            &[word("async", "ASYNC").since("4.0.0"), word("sync", "SYNC").since("6.2.0")],
        )
        .optional()]),
    command("flushdb", CommandId::FlushDb, -1, "1.0.0")
        .categories(&[Categories::KEYSPACE, Categories::DANGEROUS])
        .flags(&[Flags::WRITE])
        .docs("server", "Deletes the keys of the database.", "O(N), N being the keys")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .arguments(&[one_of(
            "flush-type",
            &[word("async", "ASYNC").since("4.0.0"), word("sync", "SYNC").since("6.2.0")],
        )
        .optional()]),
    command("info", CommandId::Info, -1, "1.0.0")
        .categories(&[Categories::DANGEROUS])
        .flags(&[Flags::LOADING, Flags::STALE])
        .docs("server", "Reports on the state of the server.", "O(1)")
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .arguments(&[string("section").optional().multiple()]),
    command("lastsave", CommandId::LastSave, 1, "1.0.0")
        .categories(&[Categories::DANGEROUS, Categories::ADMIN])
        .flags(&[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs("server", "Tells when the last snapshot was finished.", "O(1)")
        .tips(&["nondeterministic_output"]),
    command("latency", CommandId::Container, -2, "2.8.13")
        .docs("server", "Container of the commands about delays.", "Depends on subcommand")
        .subcommands(&[
            command("latency|latest", CommandId::LatencyLatest, 2, "2.8.13")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Shows the latest delay of each event.", "O(1)")
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]),
            command("latency|history", CommandId::LatencyHistory, 3, "2.8.13")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Shows the delays of an event over time.", "O(1)")
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
                .arguments(&[string("event")]),
            command("latency|reset", CommandId::LatencyReset, -2, "2.8.13")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Forgets the delays of events.", "O(1)")
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum"])
                .arguments(&[string("event").optional().multiple()]),
            command("latency|doctor", CommandId::LatencyDoctor, 2, "2.8.13")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Explains the delays in words.", "O(1)")
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"]),
            command("latency|graph", CommandId::LatencyGraph, 3, "2.8.13")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Draws the delays of an event.", "O(1)")
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
                .arguments(&[string("event")]),
            command("latency|histogram", CommandId::LatencyHistogram, -2, "7.0.0")
                .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
                .docs("server", "Shows how long commands took, as a distribution.", "O(N), N being the commands shown")
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
                .arguments(&[string("command").optional().multiple()]),
            command("latency|help", CommandId::LatencyHelp, 2, "2.8.13").flags(&[Flags::LOADING, Flags::STALE]).docs(
                "server",
                "Shows the subcommands.",
                "O(1)",
            ),
        ]),
    command("memory", CommandId::Container, -2, "4.0.0")
        .docs("server", "Container of the commands about memory.", "Depends on subcommand")
        .subcommands(&[
            command("memory|usage", CommandId::MemoryUsage, -3, "4.0.0")
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO])])
                .docs("server", "Estimates the memory of a key.", "O(N), N being the samples")
                .arguments(&[key("key", 0), integer("count").token("SAMPLES").optional()]),
            command("memory|stats", CommandId::MemoryStats, 2, "4.0.0")
                .docs("server", "Shows what memory is used for.", "O(1)")
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
            command("memory|doctor", CommandId::MemoryDoctor, 2, "4.0.0")
                .docs("server", "Explains the use of memory in words.", "O(1)")
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
            command("memory|purge", CommandId::MemoryPurge, 2, "4.0.0")
                .docs("server", "Asks the allocator to give memory back.", "Depends on the memory in use")
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
            command("memory|help", CommandId::MemoryHelp, 2, "4.0.0").flags(&[Flags::LOADING, Flags::STALE]).docs(
                "server",
                "Shows the subcommands.",
                "O(1)",
            ),
        ]),
    command("readonly", CommandId::ReadOnly, 1, "3.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs("cluster", "Lets the connection read from a replica of a cluster.", "O(1)"),
    command("readwrite", CommandId::ReadWrite, 1, "3.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs("cluster", "Takes READONLY back.", "O(1)"),
    command("replicaof", CommandId::ReplicaOf, 3, "5.0.0")
        .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::STALE, Flags::NO_ASYNC_LOADING])
        .docs("server", "Makes the server follow another, or stop following.", "O(1)")
        .arguments(&[one_of(
            "args",
            &[
                block("host-port", &[string("host"), integer("port")]),
                block("no-one", &[word("no", "NO"), word("one", "ONE")]),
            ],
        )]),
    command("role", CommandId::Role, 1, "2.8.12")
        .categories(&[Categories::DANGEROUS, Categories::ADMIN])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs("server", "Tells the part that the server plays in replication.", "O(1)"),
    command("save", CommandId::Save, 1, "1.0.0")
        .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_ASYNC_LOADING, Flags::NO_MULTI])
        .docs("server", "Takes a snapshot and waits until it is finished.", "O(N), N being the keys"),
    command("shutdown", CommandId::Shutdown, -1, "1.0.0")
        .flags(&[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::NO_MULTI, Flags::ALLOW_BUSY])
        .docs(
            "server",
            "Ends the server, by default with everything on disk.",
            "O(N) with a snapshot, N being the keys; else O(1)",
        )
        .arguments(&[
            one_of("save-selector", &[word("nosave", "NOSAVE"), word("save", "SAVE")]).optional(),
            word("now", "NOW").since("7.0.0").optional(),
            word("force", "FORCE").since("7.0.0").optional(),
            word("abort", "ABORT").since("7.0.0").optional(),
        ]),
    command("slowlog", CommandId::Container, -2, "2.2.12")
        .docs("server", "Container of the commands about slow commands.", "Depends on subcommand")
        .subcommands(&[
            command("slowlog|get", CommandId::SlowLogGet, -2, "2.2.12")
                .flags(&[Flags::ADMIN, Flags::LOADING, Flags::STALE])
                .docs("server", "Shows slow commands.", "O(N), N being the commands shown")
                .tips(&["request_policy:all_nodes", "nondeterministic_output"])
                .arguments(&[integer("count").optional()]),
            command("slowlog|len", CommandId::SlowLogLen, 2, "2.2.12")
                .flags(&[Flags::ADMIN, Flags::LOADING, Flags::STALE])
                .docs("server", "Counts the slow commands that are kept.", "O(1)")
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]),
            command("slowlog|reset", CommandId::SlowLogReset, 2, "2.2.12")
                .flags(&[Flags::ADMIN, Flags::LOADING, Flags::STALE])
                .docs("server", "Forgets the slow commands.", "O(N), N being the commands kept")
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
            command("slowlog|help", CommandId::SlowLogHelp, 2, "6.2.0").flags(&[Flags::LOADING, Flags::STALE]).docs(
                "server",
                "Shows the subcommands.",
                "O(1)",
            ),
        ]),
    command("swapdb", CommandId::SwapDb, 3, "4.0.0")
        .categories(&[Categories::KEYSPACE, Categories::DANGEROUS])
        .flags(&[Flags::WRITE, Flags::FAST])
        .docs("server", "Exchanges two databases.", "O(N), N being the clients that watch or wait for their keys")
        .arguments(&[integer("index1"), integer("index2")]),
    command("time", CommandId::Time, 1, "2.6.0")
        .flags(&[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs("server", "Tells the time of the server.", "O(1)")
        .tips(&["nondeterministic_output"]),
];
