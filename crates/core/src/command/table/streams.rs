//! Rows of the commands about streams.
//!
//! XREAD and XREADGROUP call their key spec incomplete, as Redis does from 8.10 on (8.2 does not): a group or a consumer
//! may be named STREAMS, so the first such word need not be the marker. `views::keys_of` finds the keys as the parser does.

use super::CommandId;
use super::spec::{
    Categories, CommandSpec, Flags, KeyFlags, KeySpec, block, command, integer, key, one_of, string, unix_time, word,
};

pub(super) static COMMANDS: [CommandSpec; 18] = [
    command("xack", CommandId::XAck, -4, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("stream", "Marks pending entries of a group as done.", "O(1) for each ID")
        .arguments(&[
            key("key", 0),
            string("group"),
            one_of(
                "ids",
                &[string("id").multiple(), block("range", &[string("first"), string("last")]).token("RANGE")],
            ),
        ]),
    command("xackdel", CommandId::XAckDel, -6, "8.2.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE, KeyFlags::DELETE])])
        .docs(
            "stream",
            "Marks pending entries as done and deletes them by a rule about the other groups.",
            "O(1) for each ID",
        )
        .arguments(&[
            key("key", 0),
            string("group"),
            one_of("condition", &[word("keepref", "KEEPREF"), word("delref", "DELREF"), word("acked", "ACKED")])
                .optional(),
            block("ids", &[integer("numids"), string("id").multiple()]).token("IDS"),
        ]),
    command("xadd", CommandId::XAdd, -5, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])
            .notes("Trimming can remove entries, hence more than an insertion")])
        .docs(
            "stream",
            "Adds an entry at the end of a stream, which is created if need be; can trim it too.",
            "O(1) to add; O(N) to trim, N being the entries removed",
        )
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key("key", 0),
            word("nomkstream", "NOMKSTREAM").since("6.2.0").optional(),
            one_of("condition", &[word("keepref", "KEEPREF"), word("delref", "DELREF"), word("acked", "ACKED")])
                .optional(),
            one_of(
                "idempotence",
                &[
                    block("idmp", &[string("producer-id"), string("idempotent-id")]).token("IDMP"),
                    string("producer-id").token("IDMPAUTO"),
                ],
            )
            .since("8.6.0")
            .optional(),
            one_of(
                "delay",
                &[integer("milliseconds").token("DELAY"), integer("unix-time-milliseconds").token("NOTBEFORE")],
            )
            .optional(),
            block(
                "trim",
                &[
                    one_of("strategy", &[word("maxlen", "MAXLEN"), word("minid", "MINID").since("6.2.0")]),
                    one_of("operator", &[word("equal", "="), word("approximately", "~")]).optional(),
                    string("threshold"),
                    integer("count").token("LIMIT").since("6.2.0").optional(),
                ],
            )
            .optional(),
            one_of("id-selector", &[word("auto-id", "*"), string("id")]),
            block("data", &[string("field"), string("value")]).multiple(),
        ]),
    command("xautoclaim", CommandId::XAutoClaim, -6, "6.2.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::DELETE])])
        .docs("stream", "Hands entries that have been pending for long to another consumer.", "O(1) for a small COUNT")
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key("key", 0),
            string("group"),
            string("consumer"),
            string("min-idle-time"),
            string("start"),
            integer("count").token("COUNT").optional(),
            word("justid", "JUSTID").optional(),
        ]),
    command("xclaim", CommandId::XClaim, -6, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs(
            "stream",
            "Hands the named pending entries to another consumer.",
            "O(log N) for each ID, N being the pending entries of the group",
        )
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key("key", 0),
            string("group"),
            string("consumer"),
            string("min-idle-time"),
            string("id").multiple(),
            integer("ms").token("IDLE").optional(),
            unix_time("unix-time-milliseconds").token("TIME").optional(),
            integer("count").token("RETRYCOUNT").optional(),
            word("force", "FORCE").optional(),
            word("justid", "JUSTID").optional(),
            string("lastid").token("LASTID").optional(),
        ]),
    command("xdel", CommandId::XDel, -3, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::DELETE])])
        .docs("stream", "Deletes entries from a stream.", "O(1) for each ID, however long the stream")
        .arguments(&[key("key", 0), string("id").multiple()]),
    command("xdelex", CommandId::XDelEx, -5, "8.2.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::DELETE])])
        .docs(
            "stream",
            "Deletes entries from a stream by a rule about the groups that still refer to them.",
            "O(1) for each ID, however long the stream",
        )
        .arguments(&[
            key("key", 0),
            one_of("condition", &[word("keepref", "KEEPREF"), word("delref", "DELREF"), word("acked", "ACKED")])
                .optional(),
            block("ids", &[integer("numids"), string("id").multiple()]).token("IDS"),
        ]),
    command("xgroup", CommandId::Container, -2, "5.0.0")
        .docs("stream", "Container of the commands that manage consumer groups.", "Depends on subcommand")
        .subcommands(&[
            command("xgroup|cfgset", CommandId::XGroupCfgSet, -6, "8.8.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::WRITE])
                .keys(&[KeySpec::at(2, &[KeyFlags::RW, KeyFlags::UPDATE])])
                .docs(
                    "stream",
                    "Sets bounds and order of a group.",
                    "O(1); a new KEYFIELD O(N), N being what is pending",
                )
                .arguments(&[
                    key("key", 0),
                    string("group"),
                    integer("max-pending").token("MAXPENDING").optional(),
                    integer("max-pending-per-consumer").token("MAXPENDING-CONSUMER").optional(),
                    string("field").token("KEYFIELD").optional(),
                ]),
            command("xgroup|create", CommandId::XGroupCreate, -5, "5.0.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::WRITE, Flags::DENYOOM])
                .keys(&[KeySpec::at(2, &[KeyFlags::RW, KeyFlags::INSERT])])
                .docs("stream", "Makes a consumer group.", "O(1)")
                .arguments(&[
                    key("key", 0),
                    string("group"),
                    one_of("id-selector", &[string("id"), word("new-id", "$")]),
                    word("mkstream", "MKSTREAM").optional(),
                    integer("entriesread").token("ENTRIESREAD").display("entries-read").optional(),
                    integer("max-pending").token("MAXPENDING").optional(),
                    integer("max-pending-per-consumer").token("MAXPENDING-CONSUMER").optional(),
                    string("field").token("KEYFIELD").optional(),
                ]),
            command("xgroup|createconsumer", CommandId::XGroupCreateConsumer, 5, "6.2.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::WRITE, Flags::DENYOOM])
                .keys(&[KeySpec::at(2, &[KeyFlags::RW, KeyFlags::INSERT])])
                .docs("stream", "Makes a consumer in a group.", "O(1)")
                .arguments(&[key("key", 0), string("group"), string("consumer")]),
            command("xgroup|delconsumer", CommandId::XGroupDelConsumer, 5, "5.0.0")
                .more(1)
                .categories(&[Categories::STREAM])
                .flags(&[Flags::WRITE])
                .keys(&[KeySpec::at(2, &[KeyFlags::RW, KeyFlags::DELETE])])
                .docs(
                    "stream",
                    "Removes a consumer from a group, with its pending entries, or after they were given back.",
                    "O(N), N being the pending entries of the consumer",
                )
                .arguments(&[
                    key("key", 0),
                    string("group"),
                    string("consumer"),
                    one_of("entries", &[word("ifempty", "IFEMPTY"), word("release", "RELEASE")]).optional(),
                ]),
            command("xgroup|destroy", CommandId::XGroupDestroy, 4, "5.0.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::WRITE])
                .keys(&[KeySpec::at(2, &[KeyFlags::RW, KeyFlags::DELETE])])
                .docs("stream", "Removes a consumer group.", "O(N), N being the pending entries of the group")
                .arguments(&[key("key", 0), string("group")]),
            command("xgroup|setid", CommandId::XGroupSetId, -5, "5.0.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::WRITE])
                .keys(&[KeySpec::at(2, &[KeyFlags::RW, KeyFlags::UPDATE])])
                .docs("stream", "Moves the position of a group: the ID that it delivered last.", "O(1)")
                .arguments(&[
                    key("key", 0),
                    string("group"),
                    one_of("id-selector", &[string("id"), word("new-id", "$")]),
                    integer("entriesread").token("ENTRIESREAD").display("entries-read").optional(),
                ]),
            command("xgroup|help", CommandId::XGroupHelp, 2, "5.0.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("stream", "Shows the subcommands.", "O(1)"),
        ]),
    command("xinfo", CommandId::Container, -2, "5.0.0")
        .docs("stream", "Container of the commands that look into streams.", "Depends on subcommand")
        .subcommands(&[
            command("xinfo|stream", CommandId::XInfoStream, -3, "5.0.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO, KeyFlags::ACCESS])])
                .docs(
                    "stream",
                    "Describes a stream; with FULL also its entries, groups and consumers.",
                    "O(1); FULL: O(N), N being what is shown",
                )
                .arguments(&[
                    key("key", 0),
                    block("full-block", &[word("full", "FULL"), integer("count").token("COUNT").optional()]).optional(),
                ]),
            command("xinfo|groups", CommandId::XInfoGroups, 3, "5.0.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO, KeyFlags::ACCESS])])
                .docs("stream", "Lists the consumer groups of a stream.", "O(N), N being the groups")
                .arguments(&[key("key", 0)]),
            command("xinfo|groupstats", CommandId::XInfoGroupStats, 3, "8.8.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO, KeyFlags::ACCESS])])
                .docs(
                    "stream",
                    "Tells how well the groups of a stream keep up.",
                    "O(N log M), N being the groups, M what is pending",
                )
                .tips(&["nondeterministic_output"])
                .arguments(&[key("key", 0)]),
            command("xinfo|consumers", CommandId::XInfoConsumers, 4, "5.0.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::READONLY])
                .keys(&[KeySpec::at(2, &[KeyFlags::RO, KeyFlags::ACCESS])])
                .docs("stream", "Lists the consumers of a group.", "O(N), N being the consumers")
                .tips(&["nondeterministic_output"])
                .arguments(&[key("key", 0), string("group")]),
            command("xinfo|help", CommandId::XInfoHelp, 2, "5.0.0")
                .categories(&[Categories::STREAM])
                .flags(&[Flags::LOADING, Flags::STALE])
                .docs("stream", "Shows the subcommands.", "O(1)"),
        ]),
    command("xlen", CommandId::XLen, 2, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO])])
        .docs("stream", "Counts the entries of a stream.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("xnack", CommandId::XNack, -7, "8.8.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs(
            "stream",
            "Gives pending entries back to their group, for others to claim at once or after a delay.",
            "O(log N) for each ID, N being the pending entries of the group",
        )
        .arguments(&[
            key("key", 0),
            string("group"),
            one_of("mode", &[word("silent", "SILENT"), word("fail", "FAIL"), word("fatal", "FATAL")]),
            block("ids", &[integer("numids"), string("id").multiple()]).token("IDS"),
            integer("count").token("RETRYCOUNT").optional(),
            word("force", "FORCE").optional(),
            integer("milliseconds").token("DELAY").optional(),
        ]),
    command("xpending", CommandId::XPending, -3, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::READONLY])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs(
            "stream",
            "Shows the pending entries of a group: a summary, or a range of them.",
            "O(N), N being what is shown; with IDLE, what is looked at",
        )
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key("key", 0),
            string("group"),
            block(
                "filters",
                &[
                    integer("min-idle-time").token("IDLE").since("6.2.0").optional(),
                    string("start"),
                    string("end"),
                    integer("count"),
                    string("consumer").optional(),
                ],
            )
            .optional(),
        ]),
    command("xrange", CommandId::XRange, -4, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::READONLY])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("stream", "Reads entries between two IDs, oldest first.", "O(N), N being the entries returned")
        .arguments(&[key("key", 0), string("start"), string("end"), integer("count").token("COUNT").optional()]),
    command("xread", CommandId::XRead, -4, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::READONLY, Flags::BLOCKING, Flags::MOVABLEKEYS])
        .keys(&[KeySpec::after("STREAMS", 1, &[KeyFlags::RO, KeyFlags::ACCESS, KeyFlags::INCOMPLETE]).range(-1, 1, 2)])
        .docs(
            "stream",
            "Reads entries behind given IDs from one or more streams, and can wait for new ones.",
            "O(N), N being the entries returned",
        )
        .arguments(&[
            integer("count").token("COUNT").optional(),
            integer("maxcount").token("MAXCOUNT").since("8.10.0").optional(),
            integer("maxsize").token("MAXSIZE").since("8.10.0").optional(),
            integer("milliseconds").token("BLOCK").optional(),
            block("streams", &[key("key", 0).multiple(), string("id").multiple()]).token("STREAMS"),
        ]),
    command("xreadgroup", CommandId::XReadGroup, -7, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::BLOCKING, Flags::MOVABLEKEYS])
        .keys(&[KeySpec::after("STREAMS", 4, &[KeyFlags::RO, KeyFlags::ACCESS, KeyFlags::INCOMPLETE]).range(-1, 1, 2)])
        .docs(
            "stream",
            "Reads entries for a consumer of a group, which become pending; can wait for new ones.",
            "O(N), N being the entries returned",
        )
        .arguments(&[
            block("group-block", &[string("group"), string("consumer")]).token("GROUP"),
            integer("count").token("COUNT").optional(),
            integer("maxcount").token("MAXCOUNT").since("8.10.0").optional(),
            integer("maxsize").token("MAXSIZE").since("8.10.0").optional(),
            integer("milliseconds").token("BLOCK").optional(),
            integer("min-idle-time").token("CLAIM").since("8.4.0").optional(),
            word("noack", "NOACK").optional(),
            block("make-group", &[word("mkgroup", "MKGROUP"), string("position").optional()]).optional(),
            block("streams", &[key("key", 0).multiple(), string("id").multiple()]).token("STREAMS"),
        ]),
    command("xrevrange", CommandId::XRevRange, -4, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::READONLY])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("stream", "Reads entries between two IDs, newest first.", "O(N), N being the entries returned")
        .arguments(&[key("key", 0), string("end"), string("start"), integer("count").token("COUNT").optional()]),
    command("xsetid", CommandId::XSetId, -3, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("stream", "Sets the last ID and the counters of a stream.", "O(1)")
        .arguments(&[
            key("key", 0),
            string("last-id"),
            integer("entries-added").token("ENTRIESADDED").since("7.0.0").optional(),
            string("max-deleted-id").token("MAXDELETEDID").since("7.0.0").optional(),
        ]),
    command("xtrim", CommandId::XTrim, -4, "5.0.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::DELETE])])
        .docs("stream", "Removes the oldest entries of a stream.", "O(N), N being the entries removed")
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key("key", 0),
            block(
                "trim",
                &[
                    one_of("strategy", &[word("maxlen", "MAXLEN"), word("minid", "MINID").since("6.2.0")]),
                    one_of("operator", &[word("equal", "="), word("approximately", "~")]).optional(),
                    string("threshold"),
                    integer("count").token("LIMIT").since("6.2.0").optional(),
                    one_of(
                        "condition",
                        &[word("keepref", "KEEPREF"), word("delref", "DELREF"), word("acked", "ACKED")],
                    )
                    .optional(),
                ],
            ),
        ]),
];
