//! Commands about the server: time, saving, its end, waiting for durability, DEBUG, memory, the slow log, latency.

use super::client::timeout_ms;
use super::{info, strings};
use crate::check;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::facts::Request;
use crate::engine::fault::Fault;
use crate::resp::encode::Reply;
use crate::settings::EnableDebug;
use crate::state::keyspace::Slot;

/// TIME
pub fn time(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    const US: u64 = 1_000_000;
    reply.array(2);
    reply.bulk_int((cx.facts.now_us / US) as i64);
    reply.bulk_int((cx.facts.now_us % US) as i64);
    Ok(())
}

/// LASTSAVE
pub fn lastsave(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.count(cx.facts.host.saving().last_success_s);
    Ok(())
}

/// SAVE. The process ends the wait when the snapshot is finished.
pub fn save(cx: &mut Cx<'_>, args: Args<'_>) -> Result<(), Fault> {
    if cx.facts.host.saving().running {
        return Err(Fault::BGSAVE_RUNNING);
    }
    let client = cx.client().id;
    cx.request(Request::Save { client });
    cx.wait_without_keys(args, None);
    Ok(())
}

/// BGSAVE [SCHEDULE]
pub fn bgsave(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if args.len() > 2 || (args.len() == 2 && !is(args.get(1), "SCHEDULE")) {
        return Err(Fault::SYNTAX);
    }
    if cx.facts.host.saving().running {
        return Err(Fault::BGSAVE_RUNNING);
    }
    cx.request(Request::SaveInBackground);
    reply.simple("Background saving started");
    Ok(())
}

/// BGREWRITEAOF: here the log is cut where a snapshot begins, so that it is a snapshot as well.
pub fn bgrewriteaof(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let running = cx.facts.host.saving().running;
    cx.request(Request::SaveInBackground);
    reply.simple(if running {
        "Background append only file rewriting scheduled"
    } else {
        "Background append only file rewriting started"
    });
    Ok(())
}

/// SHUTDOWN [SAVE|NOSAVE] [NOW] [FORCE], SHUTDOWN ABORT. Answers nothing: the connection ends with the process. Where the process
/// cannot end, it ends the wait with an error.
pub fn shutdown(cx: &mut Cx<'_>, args: Args<'_>) -> Result<(), Fault> {
    let (mut save, mut abort) = (None, false);
    for word in args.from(1).iter() {
        if is(word, "SAVE") && save != Some(false) {
            save = Some(true);
        } else if is(word, "NOSAVE") && save != Some(true) {
            save = Some(false);
        } else if is(word, "ABORT") {
            abort = true;
        } else if !is(word, "NOW") && !is(word, "FORCE") {
            return Err(Fault::SYNTAX);
        }
    }
    if abort {
        // It stands alone. The end of the process is never put off here, so that there is nothing to call back.
        return Err(if args.len() == 2 { Fault::NO_SHUTDOWN } else { Fault::SYNTAX });
    }
    let client = cx.client().id;
    cx.request(Request::Shutdown { client, save });
    cx.wait_without_keys(args, None);
    Ok(())
}

/// WAIT replicas ms. There are no replicas: who asks for some waits in vain.
pub fn wait(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let replicas = parse::int(args.get(1))?;
    let timeout_ms = timeout_ms(args.get(2), cx.now_ms())?;
    if replicas > 0 && cx.may_block {
        let deadline_ms = cx.deadline(timeout_ms);
        cx.wait_without_keys(args, deadline_ms);
    } else {
        reply.int(0);
    }
    Ok(())
}

/// WAITAOF local replicas ms: until what was written is durable. The process ends the wait when it is.
pub fn waitaof(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let local = parse::int(args.get(1))?;
    if !(0..=1).contains(&local) {
        return Err(Fault::LOCAL_RANGE);
    }
    let replicas = parse::int(args.get(2))?;
    if replicas < 0 {
        return Err(Fault::REPLICAS_RANGE);
    }
    let timeout_ms = timeout_ms(args.get(3), cx.now_ms())?;
    let log = &cx.engine_ref().log;
    let (enabled, position) = (log.is_enabled(), log.position());
    if local > 0 && !enabled {
        return Err(Fault::WAITAOF_WITHOUT_LOG);
    }
    if (local == 0 && replicas == 0) || !cx.may_block {
        reply.array(2);
        reply.int(cx.engine_ref().is_synced().into());
        reply.int(0);
        return Ok(());
    }
    let deadline_ms = cx.deadline(timeout_ms);
    if replicas > 0 {
        // Never enough of them; the end of the time tells what is durable here.
        cx.wait_without_keys(args, deadline_ms);
    } else {
        let client = cx.client().id;
        cx.request(Request::WaitDurable { client, position, deadline_ms: deadline_ms.unwrap_or(0) });
        cx.wait_without_keys(args, None);
    }
    Ok(())
}

/// DEBUG, for those whom `enable-debug-command` lets.
pub fn debug(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let allowed = match cx.settings().enable_debug_command {
        EnableDebug::No => false,
        EnableDebug::Yes => true,
        EnableDebug::Local => {
            let client = cx.client();
            client.unix || client.addr.starts_with("127.0.0.1:") || client.addr.starts_with("[::1]:")
        }
    };
    if !allowed {
        return Err(Fault::DEBUG_NOT_ALLOWED);
    }
    let (word, count) = (args.get(1), args.len());
    if is(word, "SLEEP") && count == 3 {
        // As in Redis, what is no number is 0.
        let seconds = parse::float(args.get(2)).filter(|seconds| *seconds > 0.0).unwrap_or(0.0);
        cx.request(Request::Sleep { us: (seconds * 1e6) as u64 });
        reply.ok();
    } else if is(word, "RELOAD") || (is(word, "LOADAOF") && count == 2) {
        if !cx.may_block {
            return Err(Fault::owned("ERR DEBUG RELOAD is not allowed inside a transaction"));
        }
        let client = cx.client().id;
        cx.request(Request::Reload { client });
        cx.wait_without_keys(args, None);
    } else if is(word, "DIGEST") && count == 2 {
        cx.depends_on_all();
        reply.simple(&check::digest(cx.state()).hex());
    } else if is(word, "DIGEST-VALUE") && count >= 2 {
        reply.array(count - 2);
        for key in args.from(2).iter() {
            reply.simple(&cx.slot(key).map(check::value_digest).unwrap_or_default().hex());
        }
    } else if is(word, "OBJECT") && count >= 3 {
        let slot = cx.slot(args.get(2)).ok_or(Fault::NO_SUCH_KEY)?;
        let mut bytes = Vec::new();
        slot.value.encode(&mut bytes);
        reply.simple(&format!(
            "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:0 lru_seconds_idle:0",
            strings::encoding(&slot.value),
            bytes.len()
        ));
    } else if (is(word, "SET-ACTIVE-EXPIRE") && count == 3)
        || is(word, "CHANGE-REPL-ID")
        || (is(word, "QUICKLIST-PACKED-THRESHOLD") && count == 3)
        || (is(word, "LOG") && count == 3)
    {
        reply.ok();
    } else if is(word, "ERROR") && count == 3 {
        reply.error(args.get(2));
    } else {
        return Err(Fault::subcommand_syntax(word, "DEBUG"));
    }
    Ok(())
}

/// ROLE
pub fn role(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.array(3);
    reply.bulk(b"master");
    reply.count(cx.engine_ref().log.position());
    reply.array(0);
    Ok(())
}

/// MEMORY USAGE key [SAMPLES n]. All parts are looked at, however many samples are asked for.
pub fn memory_usage(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    for at in (3..args.len()).step_by(2) {
        let (true, Some(samples)) = (is(args.get(at), "SAMPLES"), args.try_get(at + 1)) else {
            return Err(Fault::SYNTAX);
        };
        if parse::int(samples)? < 0 {
            return Err(Fault::SYNTAX);
        }
    }
    match cx.slot(args.get(2)) {
        Some(slot) => reply.count(key_bytes(args.get(2), slot) as u64),
        None => reply.null(),
    }
    Ok(())
}

/// A key's share of its table, with the free places that a table has, its name and its value.
fn key_bytes(key: &[u8], slot: &Slot) -> usize {
    let place = size_of::<Slot>() + size_of::<Box<[u8]>>() + 2 * size_of::<usize>();
    let expiry = if slot.expire_ms == 0 { 0 } else { size_of::<(u64, Box<[u8]>)>() + key.len() };
    place + key.len() + expiry + slot.value.memory_bytes()
}

/// MEMORY STATS
pub fn memory_stats(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (used, keys) = (cx.facts.used_memory, cx.state().key_count() as u64);
    let (clients, log) = (info::client_bytes(cx) as u64, cx.engine_ref().log.len() as u64);
    let data = used.saturating_sub(clients + log);
    let numbers = [
        ("total.allocated", used),
        ("clients.normal", clients),
        ("clients.slaves", 0),
        ("replication.backlog", 0),
        ("aof.buffer", log),
        ("overhead.total", used - data),
        ("keys.count", keys),
        ("keys.bytes-per-key", data / keys.max(1)),
        ("dataset.bytes", data),
    ];
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.count(number);
    }
    Ok(())
}

/// MEMORY DOCTOR
pub fn memory_doctor(reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.verbatim(b"There is no diagnosis of memory here. INFO memory and MEMORY STATS show what is in use.\n");
    Ok(())
}

/// SLOWLOG GET [n]
pub fn slowlog_get(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    const DEFAULT: usize = 10;
    let count = match args.try_get(2) {
        _ if args.len() > 3 => return Err(Fault::subcommand_syntax(args.get(1), "SLOWLOG")),
        None => DEFAULT,
        Some(text) => match parse::integer(text) {
            Some(-1) => usize::MAX,
            Some(n) if n >= 0 => n as usize,
            _ => return Err(Fault::SLOWLOG_COUNT),
        },
    };
    let commands = &cx.engine_ref().slow_log.commands;
    reply.array(count.min(commands.len()));
    for command in commands.iter().take(count) {
        reply.array(6);
        reply.count(command.id);
        reply.count(command.at_s);
        reply.count(command.took_us);
        reply.array(command.args.len());
        command.args.iter().for_each(|argument| reply.bulk(argument));
        reply.bulk(command.addr.as_bytes());
        reply.bulk(&command.name);
    }
    Ok(())
}

/// SLOWLOG LEN
pub fn slowlog_len(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.count(cx.engine_ref().slow_log.commands.len() as u64);
    Ok(())
}

/// SLOWLOG RESET
pub fn slowlog_reset(cx: &mut Cx<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    cx.engine().slow_log.commands.clear();
    reply.ok();
    Ok(())
}

/// LATENCY LATEST. No delays are kept: all of LATENCY answers that there were none.
pub fn latency_latest(reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.array(0);
    Ok(())
}

/// LATENCY HISTORY event
pub fn latency_history(reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.array(0);
    Ok(())
}

/// LATENCY RESET [event …]
pub fn latency_reset(reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.int(0);
    Ok(())
}

/// LATENCY DOCTOR
pub fn latency_doctor(reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.verbatim(b"No delays are recorded here. SLOWLOG GET shows commands that took long.\n");
    Ok(())
}

/// LATENCY GRAPH event
pub fn latency_graph(args: Args<'_>) -> Result<(), Fault> {
    Err(Fault::concat(&[b"ERR No samples available for event '", args.get(2), b"'"]))
}

/// LATENCY HISTOGRAM [command …]
pub fn latency_histogram(reply: &mut Reply<'_>) -> Result<(), Fault> {
    reply.map(0);
    Ok(())
}

/// REPLICAOF NO ONE; anything else cannot be done.
pub fn replicaof(args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    if is(args.get(1), "NO") && is(args.get(2), "ONE") {
        reply.ok();
        return Ok(());
    }
    match parse::integer(args.get(2)) {
        Some(0..=65535) => Err(Fault::NO_REPLICATION),
        _ => Err(Fault::owned("ERR Invalid master port")),
    }
}
