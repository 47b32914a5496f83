//! Rows of the commands about scripts.

use super::CommandId;
use super::spec::{
    Argument, Categories, CommandSpec, Flags, KeyFlags, KeySpec, command, integer, key, one_of, string, word,
};

const RUNS: &[Flags] =
    &[Flags::NOSCRIPT, Flags::STALE, Flags::SKIP_MONITOR, Flags::NO_MANDATORY_KEYS, Flags::MOVABLEKEYS];
const READS: &[Flags] = &[
    Flags::READONLY,
    Flags::NOSCRIPT,
    Flags::STALE,
    Flags::SKIP_MONITOR,
    Flags::NO_MANDATORY_KEYS,
    Flags::MOVABLEKEYS,
];
const CHANGED: &[KeyFlags] = &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE];
const READ: &[KeyFlags] = &[KeyFlags::RO, KeyFlags::ACCESS];
const UNKNOWN_USE: &str = "What a script does with its keys cannot be told beforehand.";

const fn with_script(script: Argument) -> [Argument; 4] {
    [script, integer("numkeys"), key("key", 0).optional().multiple(), string("arg").optional().multiple()]
}

static BY_TEXT: [Argument; 4] = with_script(string("script"));
static BY_SHA: [Argument; 4] = with_script(string("sha1"));

const fn running(name: &'static str, id: CommandId, since: &'static str) -> CommandSpec {
    command(name, id, -3, since).categories(&[Categories::SCRIPTING])
}

const fn managing(name: &'static str, id: CommandId, arity: i8, since: &'static str) -> CommandSpec {
    command(name, id, arity, since).categories(&[Categories::SCRIPTING])
}

pub(super) static COMMANDS: [CommandSpec; 5] = [
    running("eval", CommandId::Eval, "2.6.0")
        .flags(RUNS)
        .keys(&[KeySpec::at(2, CHANGED).counted().notes(UNKNOWN_USE)])
        .docs("scripting", "Runs a Lua script.", "Depends on the script")
        .arguments(&BY_TEXT),
    running("eval_ro", CommandId::EvalRo, "7.0.0")
        .flags(READS)
        .keys(&[KeySpec::at(2, READ).counted().notes(UNKNOWN_USE)])
        .docs("scripting", "Runs a Lua script that only reads.", "Depends on the script")
        .arguments(&BY_TEXT),
    running("evalsha", CommandId::EvalSha, "2.6.0")
        .flags(RUNS)
        .keys(&[KeySpec::at(2, CHANGED).counted()])
        .docs("scripting", "Runs a Lua script that the server has, by its SHA-1.", "Depends on the script")
        .arguments(&BY_SHA),
    running("evalsha_ro", CommandId::EvalShaRo, "7.0.0")
        .flags(READS)
        .keys(&[KeySpec::at(2, READ).counted()])
        .docs("scripting", "Runs a Lua script that only reads, by its SHA-1.", "Depends on the script")
        .arguments(&BY_SHA),
    command("script", CommandId::Container, -2, "2.6.0")
        .docs("scripting", "Container of the commands that manage scripts.", "Depends on subcommand")
        .subcommands(&[
            managing("script|exists", CommandId::ScriptExists, -3, "2.6.0")
                .flags(&[Flags::NOSCRIPT])
                .docs("scripting", "Tells which scripts the server has.", "O(log N) for each, N being the scripts")
                .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
                .arguments(&[string("sha1").multiple()]),
            managing("script|flush", CommandId::ScriptFlush, -2, "2.6.0")
                .flags(&[Flags::NOSCRIPT])
                .docs("scripting", "Forgets all scripts.", "O(N), N being the scripts")
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .arguments(&[one_of("flush-type", &[word("async", "ASYNC"), word("sync", "SYNC")])
                    .since("6.2.0")
                    .optional()]),
            managing("script|kill", CommandId::ScriptKill, 2, "2.6.0")
                .flags(&[Flags::NOSCRIPT, Flags::ALLOW_BUSY])
                .docs("scripting", "Stops the script that runs; here none ever does while a command is read.", "O(1)")
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
            managing("script|load", CommandId::ScriptLoad, 3, "2.6.0")
                .flags(&[Flags::NOSCRIPT, Flags::STALE])
                .docs("scripting", "Keeps a script to be run by its SHA-1.", "O(N), N being the bytes of the script")
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .arguments(&[string("script")]),
            managing("script|help", CommandId::ScriptHelp, 2, "5.0.0").flags(&[Flags::LOADING, Flags::STALE]).docs(
                "scripting",
                "Shows the subcommands.",
                "O(1)",
            ),
        ]),
];
