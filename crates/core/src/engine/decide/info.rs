//! INFO. What the engine knows is written here; after it, in the sections `server`, `memory`, `persistence`, `stats`
//! and `cpu`, stand the lines of the process ([`crate::engine::facts::Host::info`]), which must not repeat these:
//! names of process, machine, port and uptime; resident memory and allocator; what saving and the log did;
//! rates; processor time.

use std::io::Write;

use super::connection::REDIS_VERSION;
use super::keys::database_count;
use crate::command::args::Args;
use crate::engine::Cx;
use crate::engine::acl::log::Reason;
use crate::engine::fault::Fault;
use crate::engine::pubsub::TopicKind;
use crate::resp::encode::Reply;

/// A section: its name in small letters and in its head, whether INFO alone and INFO ALL show it.
struct Section {
    name: &'static str,
    title: &'static str,
    by_default: bool,
    in_all: bool,
}

const fn section(name: &'static str, title: &'static str, by_default: bool, in_all: bool) -> Section {
    Section { name, title, by_default, in_all }
}

const SECTIONS: [Section; 14] = [
    section("server", "Server", true, true),
    section("clients", "Clients", true, true),
    section("memory", "Memory", true, true),
    section("persistence", "Persistence", true, true),
    section("stats", "Stats", true, true),
    section("replication", "Replication", true, true),
    section("cpu", "CPU", true, true),
    section("modules", "Modules", true, false),
    section("commandstats", "Commandstats", false, true),
    section("errorstats", "Errorstats", true, true),
    section("latencystats", "Latencystats", false, true),
    section("cluster", "Cluster", true, true),
    section("keyspace", "Keyspace", true, true),
    section("keysizes", "Keysizes", true, true),
];

/// INFO [section …]
pub fn info(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    cx.depends_on_all();
    let words = args.from(1);
    let asked = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let (everything, all) = (asked("everything"), asked("all"));
    let default = words.is_empty() || asked("default");
    let mut text = Vec::new();
    for section in &SECTIONS {
        let shown = everything || (all && section.in_all) || (default && section.by_default) || asked(section.name);
        if !shown {
            continue;
        }
        if !text.is_empty() {
            text.extend_from_slice(b"\r\n");
        }
        let mut lines = Lines { out: &mut text };
        lines.out.extend_from_slice(format!("# {}\r\n", section.title).as_bytes());
        match section.name {
            "server" => server(cx, &mut lines),
            "clients" => clients(cx, &mut lines),
            "memory" => memory(cx, &mut lines),
            "persistence" => persistence(cx, &mut lines),
            "stats" => stats(cx, &mut lines),
            "replication" => replication(cx, &mut lines),
            "commandstats" => command_stats(cx, &mut lines),
            "errorstats" => error_stats(cx, &mut lines),
            "cluster" => lines.put("cluster_enabled", 0),
            "keyspace" => keyspace(cx, &mut lines),
            "keysizes" => key_sizes(cx, &mut lines),
            _ => {}
        }
        if matches!(section.name, "server" | "memory" | "persistence" | "stats" | "cpu") {
            cx.facts.host.info(section.name, &mut text);
        }
    }
    reply.verbatim(&text);
    Ok(())
}

struct Lines<'a> {
    out: &'a mut Vec<u8>,
}

impl Lines<'_> {
    fn put(&mut self, name: &str, value: impl std::fmt::Display) {
        write!(self.out, "{name}:{value}\r\n").expect("a vector takes all that is written");
    }
}

fn server(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    lines.put("redis_version", REDIS_VERSION);
    lines.put("redis_git_sha1", "00000000");
    lines.put("redis_git_dirty", 0);
    lines.put("redis_mode", "standalone");
    lines.put("arch_bits", 64);
    lines.put("server_time_usec", cx.facts.now_us);
}

fn clients(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    let engine = cx.engine_ref();
    let (mut input_max, mut output_max, mut watching, mut watched) = (0, 0, 0, 0);
    for (_, client) in engine.clients() {
        input_max = input_max.max(client.input_len());
        output_max = output_max.max(client.output.len());
        watching += usize::from(!client.watches.is_empty());
        watched += client.watches.len();
    }
    lines.put("connected_clients", engine.client_count());
    lines.put("cluster_connections", 0);
    lines.put("maxclients", engine.settings.maxclients);
    lines.put("client_recent_max_input_buffer", input_max);
    lines.put("client_recent_max_output_buffer", output_max);
    lines.put("blocked_clients", engine.blocked_count());
    lines.put("tracking_clients", 0);
    lines.put("pubsub_clients", engine.pubsub.subscriber_count());
    lines.put("watching_clients", watching);
    lines.put("clients_in_timeout_table", engine.blocked.deadline_count());
    lines.put("total_watched_keys", watched);
    lines.put("total_blocking_keys", engine.blocking_key_count());
    lines.put("total_blocking_keys_on_nokey", 0);
}

/// A size for people, as Redis writes it.
pub fn human(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.2}{name}", bytes as f64 / unit as f64),
        None => format!("{bytes}B"),
    }
}

fn memory(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    let (used, max) = (cx.facts.used_memory, cx.settings().maxmemory_bytes);
    lines.put("used_memory", used);
    lines.put("used_memory_human", human(used));
    let scripts = cx.engine_ref().script_usage();
    lines.put("used_memory_lua", scripts.machine_bytes);
    lines.put("used_memory_vm_eval", scripts.machine_bytes);
    lines.put("used_memory_lua_human", human(scripts.machine_bytes as u64));
    lines.put("used_memory_scripts_eval", scripts.kept_bytes);
    lines.put("number_of_cached_scripts", scripts.count);
    lines.put("number_of_functions", 0);
    lines.put("number_of_libraries", 0);
    lines.put("used_memory_vm_functions", 0);
    lines.put("used_memory_vm_total", scripts.machine_bytes);
    lines.put("used_memory_vm_total_human", human(scripts.machine_bytes as u64));
    lines.put("used_memory_functions", 0);
    lines.put("used_memory_scripts", scripts.kept_bytes);
    lines.put("used_memory_scripts_human", human(scripts.kept_bytes as u64));
    lines.put("maxmemory", max);
    lines.put("maxmemory_human", human(max));
    lines.put("maxmemory_policy", "noeviction");
    lines.put("mem_clients_normal", client_bytes(cx));
    lines.put("mem_clients_slaves", 0);
    lines.put("mem_aof_buffer", cx.engine_ref().log.len());
    lines.put("mem_replication_backlog", 0);
    lines.put("active_defrag_running", 0);
    lines.put("lazyfree_pending_objects", u8::from(cx.state().has_garbage()));
}

/// Memory of all connections' buffers.
pub fn client_bytes(cx: &Cx<'_>) -> usize {
    cx.engine_ref().clients().map(|(_, client)| client.input.capacity() + client.output.capacity()).sum()
}

fn persistence(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    let saving = cx.facts.host.saving();
    lines.put("loading", 0);
    lines.put("async_loading", 0);
    lines.put("rdb_changes_since_last_save", saving.changes_since);
    lines.put("rdb_bgsave_in_progress", u8::from(saving.running));
    lines.put("rdb_last_save_time", saving.last_success_s);
    lines.put("rdb_last_bgsave_status", if saving.last_ok { "ok" } else { "err" });
    lines.put("aof_enabled", u8::from(cx.engine_ref().log.is_enabled()));
    lines.put("aof_rewrite_in_progress", 0);
    lines.put("aof_rewrite_scheduled", 0);
}

fn stats(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    let of = &cx.engine_ref().statistics;
    lines.put("total_connections_received", of.connections_received);
    lines.put("total_commands_processed", of.commands);
    lines.put("total_net_input_bytes", of.received_bytes);
    lines.put("total_net_output_bytes", of.sent_bytes);
    lines.put("rejected_connections", of.connections_rejected);
    lines.put("sync_full", 0);
    lines.put("sync_partial_ok", 0);
    lines.put("sync_partial_err", 0);
    lines.put("expired_keys", of.expired_keys);
    lines.put("evicted_keys", 0);
    lines.put("evicted_clients", 0);
    lines.put("keyspace_hits", of.keyspace_hits);
    lines.put("keyspace_misses", of.keyspace_misses);
    let pubsub = &cx.engine_ref().pubsub;
    lines.put("pubsub_channels", pubsub.topic_count(TopicKind::Channel));
    lines.put("pubsub_patterns", pubsub.topic_count(TopicKind::Pattern));
    lines.put("pubsubshard_channels", pubsub.topic_count(TopicKind::Shard));
    lines.put("total_error_replies", of.errors);
    let denied = &cx.engine_ref().acl.denied;
    for reason in [Reason::Auth, Reason::Command, Reason::Key, Reason::Channel] {
        let name = if reason == Reason::Command { "cmd" } else { reason.name() };
        lines.put(&format!("acl_access_denied_{name}"), denied[reason as usize]);
    }
    lines.put("total_blocked_clients", of.blocked_total);
    lines.put("blocked_reads_repeated", of.reads_repeated);
    lines.put("client_query_buffer_limit_disconnections", of.query_buffer_disconnections);
    lines.put("client_output_buffer_limit_disconnections", of.output_buffer_disconnections);
}

fn replication(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    let none = "0".repeat(40);
    lines.put("role", "master");
    lines.put("connected_slaves", 0);
    lines.put("master_failover_state", "no-failover");
    lines.put("master_replid", &none);
    lines.put("master_replid2", &none);
    lines.put("master_repl_offset", cx.engine_ref().log.position());
    lines.put("second_repl_offset", -1);
    lines.put("repl_backlog_active", 0);
    lines.put("repl_backlog_size", 0);
    lines.put("repl_backlog_first_byte_offset", 0);
    lines.put("repl_backlog_histlen", 0);
}

/// Commands that are fast are counted and not timed: asking the clock would cost as much as they do.
fn command_stats(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    for counts in cx.engine_ref().statistics.commands_called() {
        let per_call = counts.took_us as f64 / counts.calls.max(1) as f64;
        let (calls, took_us, rejected, failed) = (counts.calls, counts.took_us, counts.rejected, counts.failed);
        lines.put(
            &format!("cmdstat_{}", counts.name),
            format_args!(
                "calls={calls},usec={took_us},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

fn error_stats(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    for (code, count) in &cx.engine_ref().statistics.errors_by_code {
        lines.put(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn keyspace(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    for (number, db) in cx.state().databases().iter().enumerate().take(database_count(cx)) {
        if !db.is_empty() {
            let value = format!("keys={},expires={},avg_ttl=0,subexpiry=0", db.len(), db.expiring());
            lines.put(&format!("db{number}"), value);
        }
    }
}

/// Strings are as in Redis 8, which has no streams here.
fn key_sizes(cx: &Cx<'_>, lines: &mut Lines<'_>) {
    for (number, db) in cx.state().databases().iter().enumerate().take(database_count(cx)) {
        for (kind, bins) in db.sizes().lines() {
            lines.put(&format!("db{number}_distrib_{kind}"), bins);
        }
    }
}
