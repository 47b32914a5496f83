//! Rows of the commands about the settings of a stream and the messages that it remembers.

use super::CommandId;
use super::spec::{Categories, CommandSpec, Flags, KeyFlags, KeySpec, command, integer, key, string};

pub(super) static COMMANDS: [CommandSpec; 2] = [
    command("xcfgset", CommandId::XCfgSet, -2, "8.6.0")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("stream", "Changes the settings of a stream.", "O(1)")
        .arguments(&[
            key("key", 0),
            integer("duration").token("IDMP-DURATION").optional(),
            integer("maxsize").token("IDMP-MAXSIZE").optional(),
        ]),
    command("xidmprecord", CommandId::XIdmpRecord, 5, "8.6.2")
        .categories(&[Categories::STREAM])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs("stream", "Ties a message of a producer to an entry that is there.", "O(log N), N being the messages")
        .arguments(&[key("key", 0), string("producer-id"), string("idempotent-id"), string("id")]),
];
