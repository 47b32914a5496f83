//! Rows of the commands about strings.

use super::CommandId;
use super::spec::{
    Categories, CommandSpec, Flags, KeyFlags, KeySpec, block, command, double, integer, key, one_of, string, unix_time,
    word,
};

pub(super) static COMMANDS: [CommandSpec; 21] = [
    command("append", CommandId::Append, 3, "2.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::INSERT])])
        .docs(
            "string",
            "Adds bytes at the end of a string, which is created if need be.",
            "O(N), N being the bytes added",
        )
        .arguments(&[key("key", 0), string("value")]),
    command("decr", CommandId::Decr, 2, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE])])
        .docs("string", "Subtracts one from an integer; a missing key counts as 0.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("decrby", CommandId::DecrBy, 3, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE])])
        .docs("string", "Subtracts a number from an integer; a missing key counts as 0.", "O(1)")
        .arguments(&[key("key", 0), integer("decrement")]),
    command("get", CommandId::Get, 2, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("string", "Reads a string.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("getdel", CommandId::GetDel, 2, "6.2.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE])])
        .docs("string", "Reads a string and deletes its key.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("getex", CommandId::GetEx, -2, "6.2.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::FAST])
        .keys(&[
            KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]).notes("Changes when the key expires")
        ])
        .docs("string", "Reads a string and sets or removes the expiry of its key.", "O(1)")
        .arguments(&[
            key("key", 0),
            one_of(
                "expiration",
                &[
                    integer("seconds").token("EX"),
                    integer("milliseconds").token("PX"),
                    unix_time("unix-time-seconds").token("EXAT"),
                    unix_time("unix-time-milliseconds").token("PXAT"),
                    word("persist", "PERSIST"),
                ],
            )
            .optional(),
        ]),
    command("getrange", CommandId::GetRange, 4, "2.4.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::READONLY])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("string", "Reads part of a string.", "O(N), N being the bytes returned")
        .arguments(&[key("key", 0), integer("start"), integer("end")]),
    command("getset", CommandId::GetSet, 3, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE])])
        .docs("string", "Sets a string and answers what it was before.", "O(1)")
        .deprecated("6.2.0", "`SET` with `GET`")
        .arguments(&[key("key", 0), string("value")]),
    command("incr", CommandId::Incr, 2, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE])])
        .docs("string", "Adds one to an integer; a missing key counts as 0.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("incrby", CommandId::IncrBy, 3, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE])])
        .docs("string", "Adds a number to an integer; a missing key counts as 0.", "O(1)")
        .arguments(&[key("key", 0), integer("increment")]),
    command("incrbyfloat", CommandId::IncrByFloat, 3, "2.6.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE])])
        .docs("string", "Adds a number with a fraction to a number; a missing key counts as 0.", "O(1)")
        .arguments(&[key("key", 0), double("increment")]),
    command("mget", CommandId::MGet, -2, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS]).range(-1, 1, 0)])
        .docs("string", "Reads the strings of several keys at once.", "O(N), N being the keys")
        .tips(&["request_policy:multi_shard"])
        .arguments(&[key("key", 0).multiple()]),
    command("mset", CommandId::MSet, -3, "1.0.1")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM])
        .keys(&[KeySpec::at(1, &[KeyFlags::OW, KeyFlags::UPDATE]).range(-1, 2, 0)])
        .docs("string", "Sets the strings of several keys at once.", "O(N), N being the keys")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .arguments(&[block("data", &[key("key", 0), string("value")]).multiple()]),
    command("msetnx", CommandId::MSetNx, -3, "1.0.1")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM])
        .keys(&[KeySpec::at(1, &[KeyFlags::OW, KeyFlags::INSERT]).range(-1, 2, 0)])
        .docs("string", "Sets the strings of several keys at once, if none of them exists.", "O(N), N being the keys")
        .arguments(&[block("data", &[key("key", 0), string("value")]).multiple()]),
    command("psetex", CommandId::PSetEx, 4, "2.6.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM])
        .keys(&[KeySpec::at(1, &[KeyFlags::OW, KeyFlags::UPDATE])])
        .docs("string", "Sets a string that expires after some milliseconds.", "O(1)")
        .deprecated("2.6.12", "`SET` with `PX`")
        .arguments(&[key("key", 0), integer("milliseconds"), string("value")]),
    command("set", CommandId::Set, -3, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE, KeyFlags::VARIABLE_FLAGS])
            .notes("Reads the old value only with GET")])
        .docs("string", "Sets a string, whatever the key held before.", "O(1)")
        .arguments(&[
            key("key", 0),
            string("value"),
            one_of("condition", &[word("nx", "NX"), word("xx", "XX")]).since("2.6.12").optional(),
            word("get", "GET").since("6.2.0").optional(),
            one_of(
                "expiration",
                &[
                    integer("seconds").token("EX").since("2.6.12"),
                    integer("milliseconds").token("PX").since("2.6.12"),
                    unix_time("unix-time-seconds").token("EXAT").since("6.2.0"),
                    unix_time("unix-time-milliseconds").token("PXAT").since("6.2.0"),
                    word("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ]),
    command("setex", CommandId::SetEx, 4, "2.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM])
        .keys(&[KeySpec::at(1, &[KeyFlags::OW, KeyFlags::UPDATE])])
        .docs("string", "Sets a string that expires after some seconds.", "O(1)")
        .deprecated("2.6.12", "`SET` with `EX`")
        .arguments(&[key("key", 0), integer("seconds"), string("value")]),
    command("setnx", CommandId::SetNx, 3, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::OW, KeyFlags::INSERT])])
        .docs("string", "Sets a string if the key does not exist.", "O(1)")
        .deprecated("2.6.12", "`SET` with `NX`")
        .arguments(&[key("key", 0), string("value")]),
    command("setrange", CommandId::SetRange, 4, "2.2.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::WRITE, Flags::DENYOOM])
        .keys(&[KeySpec::at(1, &[KeyFlags::RW, KeyFlags::UPDATE])])
        .docs(
            "string",
            "Overwrites part of a string, which is created or lengthened if need be.",
            "O(N), N being the bytes written",
        )
        .arguments(&[key("key", 0), integer("offset"), string("value")]),
    command("strlen", CommandId::StrLen, 2, "2.2.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::READONLY, Flags::FAST])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO])])
        .docs("string", "Measures a string in bytes.", "O(1)")
        .arguments(&[key("key", 0)]),
    command("substr", CommandId::Substr, 4, "1.0.0")
        .categories(&[Categories::STRING])
        .flags(&[Flags::READONLY])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO, KeyFlags::ACCESS])])
        .docs("string", "Reads part of a string.", "O(N), N being the bytes returned")
        .deprecated("2.0.0", "`GETRANGE`")
        .arguments(&[key("key", 0), integer("start"), integer("end")]),
];
