//! Rows of the commands about keys of any type, and WAIT.

use super::CommandId;
use super::spec::{
    Categories, CommandSpec, Flags, KeyFlags, KeySpec, command, integer, key, one_of, pattern, string, unix_time, word,
};

pub(super) static COMMANDS: [CommandSpec; 24] = [
    command("copy", CommandId::Copy, -3, "6.2.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::DENYOOM])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS]), KeySpec::at(2, &[KeyFlags::OW, KeyFlags::UPDATE])])
        .docs("generic", "Copies the value of a key to another key.", "O(N), N being the parts of the value")
        .arguments(&[
            key("source", 0),
            key("destination", 1),
            integer("destination-db").token("DB").optional(),
            word("replace", "REPLACE").optional(),
        ]),
    command("del", CommandId::Del, -2, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE])
        .keys(&[KeySpec::at(1, &[KeyFlags::RM, KeyFlags::DELETE]).range(-1, 1, 0)])
        .docs("generic", "Deletes keys.", "O(N), N being the keys")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .arguments(&[key("key", 0).multiple()]),
    command("exists", CommandId::Exists, -2, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO]).range(-1, 1, 0)])
        .docs("generic", "Counts how many of the named keys exist.", "O(N), N being the keys")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .arguments(&[key("key", 0).multiple()]),
    command("expire", CommandId::Expire, -3, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("generic", "Lets a key expire after some seconds.", "O(1)")
        .arguments(&[
            key("key", 0),
            integer("seconds"),
            one_of("condition", &[word("nx", "NX"), word("xx", "XX"), word("gt", "GT"), word("lt", "LT")])
                .since("7.0.0")
                .optional(),
        ]),
    command("expireat", CommandId::ExpireAt, -3, "1.2.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("generic", "Lets a key expire at a time given in seconds.", "O(1)")
        .arguments(&[
            key("key", 0),
            unix_time("unix-time-seconds"),
            one_of("condition", &[word("nx", "NX"), word("xx", "XX"), word("gt", "GT"), word("lt", "LT")])
                .since("7.0.0")
                .optional(),
        ]),
    command("expiretime", CommandId::ExpireTime, 2, "7.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("generic", "Tells when a key expires, in seconds since 1970.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("keys", CommandId::Keys, 2, "1.0.0")
        .categories(&[Categories::KEYSPACE, Categories::DANGEROUS])
        .flags(&[Flags::READONLY])
        .docs("generic", "Lists the keys whose names match a pattern.", "O(N), N being the keys of the database")
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .arguments(&[pattern("pattern")]),
    command("move", CommandId::Move, 3, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE])])
        .docs("generic", "Moves a key to another database.", "O(1)")
        .arguments(&[key("key", 0), integer("db")]),
    command("object", CommandId::Container, -2, "2.2.3")
        .docs("generic", "Container of the commands that look at how a value is kept.", "Depends on subcommand")
        .subcommands(&[
            command("object|encoding", CommandId::ObjectEncoding, 3, "2.2.3")
                .categories(&[Categories::KEYSPACE])
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO])])
                .docs("generic", "Names the way in which a value is kept.", "O(1)")
                .tips(&["nondeterministic_output"])
                .arguments(&[key("key", 0)]),
            command("object|refcount", CommandId::ObjectRefCount, 3, "2.2.3")
                .categories(&[Categories::KEYSPACE])
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO])])
                .docs("generic", "Tells how many references a value has.", "O(1)")
                .tips(&["nondeterministic_output"])
                .arguments(&[key("key", 0)]),
            command("object|idletime", CommandId::ObjectIdleTime, 3, "2.2.3")
                .categories(&[Categories::KEYSPACE])
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO])])
                .docs("generic", "Tells for how many seconds a key was not used.", "O(1)")
                .tips(&["nondeterministic_output"])
                .arguments(&[key("key", 0)]),
            command("object|freq", CommandId::ObjectFreq, 3, "4.0.0")
                .categories(&[Categories::KEYSPACE])
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO])])
                .docs("generic", "Tells how often a key is used, on a logarithmic scale.", "O(1)")
                .tips(&["nondeterministic_output"])
                .arguments(&[key("key", 0)]),
            command("object|help", CommandId::ObjectHelp, 2, "6.2.0")
                .categories(&[Categories::KEYSPACE])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("generic", "Shows the subcommands.", "O(1)"),
        ]),
    command("persist", CommandId::Persist, 2, "2.2.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("generic", "Takes the expiry off a key.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("pexpire", CommandId::PExpire, -3, "2.6.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("generic", "Lets a key expire after some milliseconds.", "O(1)")
        .arguments(&[
            key("key", 0),
            integer("milliseconds"),
            one_of("condition", &[word("nx", "NX"), word("xx", "XX"), word("gt", "GT"), word("lt", "LT")])
                .since("7.0.0")
                .optional(),
        ]),
    command("pexpireat", CommandId::PExpireAt, -3, "2.6.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("generic", "Lets a key expire at a time given in milliseconds.", "O(1)")
        .arguments(&[
            key("key", 0),
            unix_time("unix-time-milliseconds"),
            one_of("condition", &[word("nx", "NX"), word("xx", "XX"), word("gt", "GT"), word("lt", "LT")])
                .since("7.0.0")
                .optional(),
        ]),
    command("pexpiretime", CommandId::PExpireTime, 2, "7.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("generic", "Tells when a key expires, in milliseconds since 1970.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("pttl", CommandId::PTtl, 2, "2.6.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("generic", "Tells in how many milliseconds a key expires.", "O(1)")
        .tips(&["nondeterministic_output"])
        .arguments(&[key("key", 0)]),
    command("randomkey", CommandId::RandomKey, 1, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY])
        .docs("generic", "Names some key of the database.", "O(1)")
        .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"]),
    command("rename", CommandId::Rename, 3, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE])
        .keys(&[
            KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]),
            KeySpec::at(2, &[KeyFlags::OW, KeyFlags::UPDATE]),
        ])
        .docs("generic", "Gives a key another name, replacing what had that name.", "O(1)")
        .arguments(&[key("key", 0), key("newkey", 1)]),
    command("renamenx", CommandId::RenameNx, 3, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[
            KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]),
            KeySpec::at(2, &[KeyFlags::OW, KeyFlags::INSERT]),
        ])
        .docs("generic", "Gives a key another name, unless that name is taken.", "O(1)")
        .arguments(&[key("key", 0), key("newkey", 1)]),
    command("scan", CommandId::Scan, -2, "2.8.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY])
        .docs(
            "generic",
            "Lists the keys of the database bit by bit.",
            "O(1) a call; O(N) in all, N being the keys of the database",
        )
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"])
        .arguments(&[
            integer("cursor"),
            pattern("pattern").token("MATCH").optional(),
            integer("count").token("COUNT").optional(),
            string("type").token("TYPE").since("6.0.0").optional(),
        ]),
    command("touch", CommandId::Touch, -2, "3.2.1")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO]).range(-1, 1, 0)])
        .docs(
            "generic",
            "Counts how many of the named keys exist, and counts as a use of them.",
            "O(N), N being the keys",
        )
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .arguments(&[key("key", 0).multiple()]),
    command("ttl", CommandId::Ttl, 2, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("generic", "Tells in how many seconds a key expires.", "O(1)")
        .tips(&["nondeterministic_output"])
        .arguments(&[key("key", 0)]),
    command("type", CommandId::Type, 2, "1.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO])])
        .docs("generic", "Names the type of the value of a key.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("unlink", CommandId::Unlink, -2, "4.0.0")
        .categories(&[Categories::KEYSPACE])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RM, KeyFlags::DELETE]).range(-1, 1, 0)])
        .docs("generic", "Deletes keys and frees their memory little by little.", "O(1) for each key")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .arguments(&[key("key", 0).multiple()]),
    command("wait", CommandId::Wait, 3, "3.0.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::BLOCKING])
        .docs("generic", "Waits until earlier writes of the connection have reached a number of replicas.", "O(1)")
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .arguments(&[integer("numreplicas"), integer("timeout")]),
    command("waitaof", CommandId::WaitAof, 4, "7.2.0")
        .categories(&[Categories::CONNECTION])
        .flags(&[Flags::BLOCKING])
        .docs("generic", "Waits until earlier writes of the connection are durable, here and on replicas.", "O(1)")
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .arguments(&[integer("numlocal"), integer("numreplicas"), integer("timeout")]),
];
