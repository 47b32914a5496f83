//! Rows of the commands about transactions.

use super::CommandId;
use super::spec::{Categories, CommandSpec, Flags, KeyFlags, KeySpec, command, key};

pub(super) static COMMANDS: [CommandSpec; 5] = [
    command("discard", CommandId::Discard, 1, "2.0.0")
        .categories(&[Categories::TRANSACTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY])
        .docs("transactions", "Drops the transaction that MULTI began.", "O(N), N being the queued commands"),
    command("exec", CommandId::Exec, 1, "1.2.0")
        .categories(&[Categories::TRANSACTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::SKIP_SLOWLOG])
        .docs("transactions", "Runs the transaction that MULTI began.", "Depends on the queued commands"),
    command("multi", CommandId::Multi, 1, "1.2.0")
        .categories(&[Categories::TRANSACTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY])
        .docs("transactions", "Begins a transaction: what follows is queued until EXEC.", "O(1)"),
    command("unwatch", CommandId::Unwatch, 1, "2.2.0")
        .categories(&[Categories::TRANSACTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY])
        .docs("transactions", "Forgets all watched keys.", "O(1)"),
    command("watch", CommandId::Watch, -2, "2.2.0")
        .categories(&[Categories::TRANSACTION])
        .flags(&[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY])
        .keys(&[KeySpec::at(1, &[KeyFlags::RO]).range(-1, 1, 0)])
        .docs("transactions", "Makes the next EXEC fail if one of the keys is changed before.", "O(1) for each key")
        .arguments(&[key("key", 0).multiple()]),
];
