//! Rows of the commands about the settings of a stream and the messages that it remembers, and of adding in batches.
//! XADDM and XCFGGET are ours; their `since` is a version of Impel.

use super::CommandId;
use super::spec::{
    Categories, CommandSpec, Flags, KeyFlags, KeySpec, block, command, integer, key, one_of, string, word,
};

pub(super) static COMMANDS: [CommandSpec; 4] = [
    command("xaddm", CommandId::XAddM, -8, "0.1.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::DENYOOM])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs(
            "stream",
            "Adds several entries at the end of a stream, all or none.",
            "O(N), N being the entries added and trimmed",
        )
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key("key", 0),
            word("nomkstream", "NOMKSTREAM").optional(),
            one_of("condition", &[word("keepref", "KEEPREF"), word("delref", "DELREF"), word("acked", "ACKED")])
                .optional(),
            one_of(
                "delay",
                &[integer("milliseconds").token("DELAY"), integer("unix-time-milliseconds").token("NOTBEFORE")],
            )
            .optional(),
            block(
                "trim",
                &[
                    one_of("strategy", &[word("maxlen", "MAXLEN"), word("minid", "MINID")]),
                    one_of("operator", &[word("equal", "="), word("approximately", "~")]).optional(),
                    string("threshold"),
                    integer("limit").token("LIMIT").optional(),
                ],
            )
            .optional(),
            integer("count").token("COUNT"),
            block(
                "entry",
                &[
                    one_of("id-selector", &[word("auto-id", "*"), string("id")]),
                    integer("numfields"),
                    block("data", &[string("field"), string("value")]).multiple(),
                ],
            )
            .multiple(),
        ]),
    command("xcfgget", CommandId::XCfgGet, 2, "0.1.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("stream", "Shows the settings of a stream.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("xcfgset", CommandId::XCfgSet, -2, "8.6.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("stream", "Changes the settings of a stream.", "O(1); O(N), N being the entries that go")
        .arguments(&[
            key("key", 0),
            integer("duration").token("IDMP-DURATION").optional(),
            integer("maxsize").token("IDMP-MAXSIZE").optional(),
            integer("maxlen").token("MAXLEN").optional(),
            integer("maxbytes").token("MAXBYTES").optional(),
            integer("maxage").token("MAXAGE").optional(),
            one_of("retain", &[word("all", "ALL"), word("acked", "ACKED")]).token("RETAIN").optional(),
            one_of("discard", &[word("old", "OLD"), word("new", "NEW")]).token("DISCARD").optional(),
            word("force", "FORCE").optional(),
        ]),
    command("xidmprecord", CommandId::XIdmpRecord, 5, "8.6.2")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("stream", "Ties a message of a producer to an entry that is there.", "O(log N), N being the messages")
        .arguments(&[key("key", 0), string("producer-id"), string("idempotent-id"), string("id")]),
];
