//! Rows of XWORK: what applications say of the work of entries. Ours; their `since` is a version of Impel.

use super::CommandId;
use super::spec::{
    Argument, Categories, CommandSpec, Flags, KeyFlags, KeySpec, block, command, integer, key, one_of, string, word,
};

const ID: Argument = string("id");
const GROUP: Argument = string("group");
const CONSUMER: Argument = string("consumer");
const DELIVERY: Argument = integer("delivery").token("DELIVERY").optional();
const IDS: Argument = block("ids", &[integer("numids"), ID.multiple()]).token("IDS");

const UPDATES: KeySpec = KeySpec::at(2, &[KeyFlags::RW, KeyFlags::UPDATE]);
const READS: KeySpec = KeySpec::at(2, &[KeyFlags::RO, KeyFlags::ACCESS]);

pub(super) static COMMANDS: [CommandSpec; 1] = [command("xwork", CommandId::Container, -2, "0.1.0")
    .docs("stream", "Container of the commands about the work that entries stand for.", "Depends on subcommand")
    .subcommands(&[
        command("xwork|audit", CommandId::XWorkAudit, -4, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::READONLY])
            .keys(&[READS])
            .docs(
                "stream",
                "Tells what is to be done about each entry that a group was given.",
                "O(N), N being the entries looked at",
            )
            .tips(&["nondeterministic_output"])
            .arguments(&[
                key("key", 0),
                GROUP,
                block("range", &[string("start"), string("end")]).optional(),
                integer("count").token("COUNT").optional(),
                word("summary", "SUMMARY").optional(),
            ]),
        command("xwork|begin", CommandId::XWorkBegin, -6, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::WRITE, Flags::FAST])
            .keys(&[UPDATES])
            .docs("stream", "Asks whether to do the work of an entry, and notes that it begins.", "O(log N)")
            .arguments(&[key("key", 0), GROUP, CONSUMER, ID, string("work-id").token("WORK").optional(), DELIVERY]),
        command("xwork|done", CommandId::XWorkDone, -6, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::WRITE, Flags::FAST, Flags::MOVABLEKEYS])
            .keys(&[UPDATES, KeySpec::after("EMIT", 6, &[KeyFlags::RW, KeyFlags::UPDATE, KeyFlags::INCOMPLETE])])
            .docs(
                "stream",
                "Notes that the work of an entry is done, acknowledges it, and can add what follows to another stream.",
                "O(log N)",
            )
            .arguments(&[
                key("key", 0),
                GROUP,
                CONSUMER,
                ID,
                string("work-id").token("WORK").optional(),
                string("digest").token("DIGEST").optional(),
                string("receipt").token("RECEIPT").optional(),
                DELIVERY,
                block(
                    "emit",
                    &[
                        key("emit-key", 1),
                        one_of("id-selector", &[word("auto-id", "*"), string("emit-id")]),
                        block("data", &[string("field"), string("value")]).multiple(),
                    ],
                )
                .token("EMIT")
                .optional(),
            ]),
        command("xwork|fail", CommandId::XWorkFail, -6, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::WRITE, Flags::FAST])
            .keys(&[UPDATES])
            .docs("stream", "Gives an entry back because its work has failed.", "O(log N)")
            .arguments(&[
                key("key", 0),
                GROUP,
                CONSUMER,
                ID,
                string("reason").token("REASON").optional(),
                DELIVERY,
                one_of("next", &[integer("milliseconds").token("RETRYIN"), word("dead", "DEAD")]).optional(),
            ]),
        command("xwork|get", CommandId::XWorkGet, 5, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::READONLY, Flags::FAST])
            .keys(&[READS])
            .docs("stream", "Shows the completion of a work id.", "O(log N)")
            .arguments(&[key("key", 0), GROUP, string("work-id")]),
        command("xwork|hold", CommandId::XWorkHold, -7, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::WRITE, Flags::FAST])
            .keys(&[UPDATES])
            .docs("stream", "Keeps pending entries from being handed out.", "O(log N) for each ID")
            .arguments(&[key("key", 0), GROUP, string("reason").token("REASON").optional(), IDS]),
        command("xwork|log", CommandId::XWorkLog, -6, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::READONLY])
            .keys(&[READS])
            .docs("stream", "Shows what was said of the work of a group.", "O(N), N being the rows looked at")
            .arguments(&[
                key("key", 0),
                GROUP,
                string("start"),
                string("end"),
                integer("count").token("COUNT").optional(),
                string("work-id").token("WORK").optional(),
                string("id").token("ENTRY").optional(),
                string("outcome").token("OUTCOME").optional(),
            ]),
        command("xwork|policy", CommandId::XWorkPolicy, -4, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::WRITE, Flags::MOVABLEKEYS])
            .keys(&[UPDATES, KeySpec::after("DEADLETTER", 4, &[KeyFlags::RW, KeyFlags::UPDATE, KeyFlags::INCOMPLETE])])
            .docs("stream", "Sets or shows what a group does with its work.", "O(1)")
            .arguments(&[
                key("key", 0),
                GROUP,
                one_of("evidence", &[word("off", "OFF"), word("record", "RECORD"), word("require", "REQUIRE")])
                    .token("EVIDENCE")
                    .optional(),
                string("field").token("WORKFIELD").optional(),
                one_of("idempotent", &[word("yes", "YES"), word("no", "NO")]).token("IDEMPOTENT").optional(),
                integer("lease").token("LEASE").optional(),
                integer("max-deliveries").token("MAXDELIVERIES").optional(),
                key("dead-letter", 1).token("DEADLETTER").optional(),
                block("backoff", &[integer("base"), integer("max")]).token("BACKOFF").optional(),
                integer("consumer-ttl").token("CONSUMERTTL").optional(),
                integer("ledger-age").token("LEDGERAGE").optional(),
                integer("ledger-length").token("LEDGERLEN").optional(),
            ]),
        command("xwork|redrive", CommandId::XWorkRedrive, -3, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::WRITE])
            .keys(&[KeySpec::at(2, &[KeyFlags::RW, KeyFlags::DELETE])])
            .docs(
                "stream",
                "Moves dead letters back to the stream and the group they came from.",
                "O(N), N being the entries moved",
            )
            .arguments(&[
                key("key", 0),
                integer("count").token("COUNT").optional(),
                integer("per-second").token("PERSEC").optional(),
            ]),
        command("xwork|release", CommandId::XWorkRelease, -7, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::WRITE, Flags::FAST])
            .keys(&[UPDATES])
            .docs("stream", "Ends the hold of entries.", "O(log N) for each ID")
            .arguments(&[key("key", 0), GROUP, IDS]),
        command("xwork|help", CommandId::XWorkHelp, 2, "0.1.0")
            .categories(&[Categories::STREAM])
            .flags(&[Flags::LOADING, Flags::STALE])
            .docs("stream", "Shows the subcommands.", "O(1)"),
    ])];
