//! Settings that Redis 8 knows and that mean nothing here, with the defaults that CONFIG GET answers; they are taken and
//! kept, so that a redis.conf works as it is. What would promise something that is not kept is refused instead.

use super::kind::{memory, strict_integer, yes_no};
use super::table::Change::{self, Anytime, Protected, Start};

/// How far the value of a known setting is looked at.
pub(super) enum Form {
    /// `yes` or `no`.
    YesNo,
    /// A number, a size or a percentage.
    Number,
    /// One word.
    Text,
    /// Any words.
    Words,
    /// Only the default; anything else is refused for this reason.
    Fixed(&'static str),
}

/// A setting of Redis without a meaning here.
pub(super) struct Known {
    pub(super) name: &'static str,
    /// Older names, which CONFIG GET shows as well.
    pub(super) aliases: &'static [&'static str],
    form: Form,
    pub(super) default: &'static str,
    pub(super) change: Change,
}

const fn row(
    name: &'static str,
    aliases: &'static [&'static str],
    form: Form,
    default: &'static str,
    change: Change,
) -> Known {
    Known { name, aliases, form, default, change }
}

impl Known {
    /// The value to keep, or why it is refused.
    pub(super) fn check(&self, words: &[&[u8]]) -> Result<String, String> {
        let joined = std::str::from_utf8(&words.join(&b' ')).map_err(|_| "argument must be UTF-8 text")?.to_owned();
        match self.form {
            // `replicaof no one` is what it is without being told.
            Form::Fixed(reason) => {
                let same = joined.eq_ignore_ascii_case(self.default) || joined.eq_ignore_ascii_case("no one");
                if same { Ok(self.default.to_owned()) } else { Err(reason.to_owned()) }
            }
            Form::Words => Ok(joined),
            _ if words.len() != 1 => Err("wrong number of arguments".into()),
            Form::YesNo => yes_no(words[0]).map(|yes| if yes { "yes" } else { "no" }.to_owned()),
            Form::Text => Ok(joined),
            Form::Number => {
                let percentage = words[0].strip_suffix(b"%").is_some_and(|number| strict_integer(number).is_some());
                if strict_integer(words[0]).is_some() || percentage {
                    return Ok(joined);
                }
                let size = memory(words[0]).map_err(|_| "argument couldn't be parsed into an integer")?;
                Ok(size.to_string())
            }
        }
    }
}

/// What Redis takes in a file though it does nothing there either.
pub(super) static OBSOLETE: &[&str] =
    &["io-threads-do-reads", "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"];

/// Why a directive that is no setting is refused; `None` for a name that Redis does not know.
pub(super) fn refusal(name: &[u8]) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_slice() {
        b"include" => Some("can only be read from the command line or a file"),
        b"loadmodule" => Some("modules are not supported"),
        b"rename-command" => Some("commands cannot be renamed"),
        b"sentinel" => Some("sentinel mode is not supported"),
        _ => None,
    }
}

/// All of them, by name.
pub(super) static KNOWN: &[Known] = &[
    row("active-defrag-cycle-max", &[], Form::Number, "25", Anytime),
    row("active-defrag-cycle-min", &[], Form::Number, "1", Anytime),
    row("active-defrag-ignore-bytes", &[], Form::Number, "104857600", Anytime),
    row("active-defrag-max-scan-fields", &[], Form::Number, "1000", Anytime),
    row("active-defrag-threshold-lower", &[], Form::Number, "10", Anytime),
    row("active-defrag-threshold-upper", &[], Form::Number, "100", Anytime),
    row("active-expire-effort", &[], Form::Number, "1", Anytime),
    row("activedefrag", &[], Form::YesNo, "no", Anytime),
    row("activerehashing", &[], Form::YesNo, "yes", Anytime),
    row("always-show-logo", &[], Form::YesNo, "no", Start),
    row("aof-load-truncated", &[], Form::YesNo, "yes", Anytime),
    row("aof-rewrite-cpulist", &["aof_rewrite_cpulist"], Form::Text, "", Start),
    row("aof-rewrite-incremental-fsync", &[], Form::YesNo, "yes", Anytime),
    row("aof-timestamp-enabled", &[], Form::YesNo, "no", Anytime),
    row("aof-use-rdb-preamble", &[], Form::YesNo, "yes", Anytime),
    row("appenddirname", &[], Form::Text, "appendonlydir", Start),
    row("appendfilename", &[], Form::Text, "appendonly.aof", Start),
    row("bgsave-cpulist", &["bgsave_cpulist"], Form::Text, "", Start),
    row("bind-source-addr", &[], Form::Words, "", Anytime),
    row("bio-cpulist", &["bio_cpulist"], Form::Text, "", Start),
    row("cluster-allow-pubsubshard-when-down", &[], Form::YesNo, "yes", Anytime),
    row("cluster-allow-reads-when-down", &[], Form::YesNo, "no", Anytime),
    row("cluster-allow-replica-migration", &[], Form::YesNo, "yes", Anytime),
    row("cluster-announce-bus-port", &[], Form::Number, "0", Anytime),
    row("cluster-announce-hostname", &[], Form::Text, "", Anytime),
    row("cluster-announce-human-nodename", &[], Form::Text, "", Anytime),
    row("cluster-announce-ip", &[], Form::Text, "", Anytime),
    row("cluster-announce-port", &[], Form::Number, "0", Anytime),
    row("cluster-announce-tls-port", &[], Form::Number, "0", Anytime),
    row("cluster-compatibility-sample-ratio", &[], Form::Number, "0", Anytime),
    row("cluster-config-file", &[], Form::Text, "nodes.conf", Start),
    row("cluster-enabled", &[], Form::Fixed("cluster mode is not supported"), "no", Start),
    row("cluster-link-sendbuf-limit", &[], Form::Number, "0", Anytime),
    row("cluster-migration-barrier", &[], Form::Number, "1", Anytime),
    row("cluster-node-timeout", &[], Form::Number, "15000", Anytime),
    row("cluster-port", &[], Form::Number, "0", Start),
    row("cluster-preferred-endpoint-type", &[], Form::Text, "ip", Anytime),
    row("cluster-replica-no-failover", &["cluster-slave-no-failover"], Form::YesNo, "no", Anytime),
    row("cluster-replica-validity-factor", &["cluster-slave-validity-factor"], Form::Number, "10", Anytime),
    row("cluster-require-full-coverage", &[], Form::YesNo, "yes", Anytime),
    row("cluster-slot-stats-enabled", &[], Form::YesNo, "no", Anytime),
    row("crash-log-enabled", &[], Form::YesNo, "yes", Anytime),
    row("crash-memcheck-enabled", &[], Form::YesNo, "yes", Anytime),
    row("daemonize", &[], Form::Fixed("impel runs in the foreground; let a supervisor start it"), "no", Start),
    row("dbfilename", &[], Form::Text, "dump.rdb", Protected),
    row("disable-thp", &[], Form::YesNo, "yes", Start),
    row("dynamic-hz", &[], Form::YesNo, "yes", Anytime),
    row("enable-module-command", &[], Form::Fixed("modules are not supported"), "no", Start),
    row("enable-protected-configs", &[], Form::YesNo, "no", Start),
    row("hash-max-listpack-entries", &["hash-max-ziplist-entries"], Form::Number, "512", Anytime),
    row("hash-max-listpack-value", &["hash-max-ziplist-value"], Form::Number, "64", Anytime),
    row("hide-user-data-from-log", &[], Form::YesNo, "no", Anytime),
    row("hll-sparse-max-bytes", &[], Form::Number, "3000", Anytime),
    row("hz", &[], Form::Number, "10", Anytime),
    row("ignore-warnings", &[], Form::Text, "", Anytime),
    row("io-threads", &[], Form::Number, "1", Start),
    row("jemalloc-bg-thread", &[], Form::YesNo, "yes", Anytime),
    row("latency-monitor-threshold", &[], Form::Number, "0", Anytime),
    row("latency-tracking", &[], Form::YesNo, "yes", Anytime),
    row("latency-tracking-info-percentiles", &[], Form::Words, "50 99 99.9", Anytime),
    row("lazyfree-lazy-eviction", &[], Form::YesNo, "no", Anytime),
    row("lazyfree-lazy-expire", &[], Form::YesNo, "no", Anytime),
    row("lazyfree-lazy-server-del", &[], Form::YesNo, "no", Anytime),
    row("lazyfree-lazy-user-del", &[], Form::YesNo, "no", Anytime),
    row("lazyfree-lazy-user-flush", &[], Form::YesNo, "no", Anytime),
    row("lfu-decay-time", &[], Form::Number, "1", Anytime),
    row("lfu-log-factor", &[], Form::Number, "10", Anytime),
    row("list-compress-depth", &[], Form::Number, "0", Anytime),
    row("list-max-listpack-size", &["list-max-ziplist-size"], Form::Number, "-2", Anytime),
    row("locale-collate", &[], Form::Text, "", Anytime),
    row("masterauth", &[], Form::Text, "", Anytime),
    row("masteruser", &[], Form::Text, "", Anytime),
    row("max-new-connections-per-cycle", &[], Form::Number, "10", Anytime),
    row("max-new-tls-connections-per-cycle", &[], Form::Number, "1", Anytime),
    row("maxmemory-clients", &[], Form::Number, "0", Anytime),
    row("maxmemory-eviction-tenacity", &[], Form::Number, "10", Anytime),
    row("maxmemory-samples", &[], Form::Number, "5", Anytime),
    row("min-replicas-max-lag", &["min-slaves-max-lag"], Form::Number, "10", Anytime),
    row("min-replicas-to-write", &["min-slaves-to-write"], Form::Number, "0", Anytime),
    row("no-appendfsync-on-rewrite", &[], Form::YesNo, "no", Anytime),
    row("oom-score-adj", &[], Form::Text, "no", Anytime),
    row("oom-score-adj-values", &[], Form::Words, "0 200 800", Anytime),
    row("proc-title-template", &[], Form::Text, "{title} {listen-addr} {server-mode}", Anytime),
    row("propagation-error-behavior", &[], Form::Text, "ignore", Anytime),
    row("protected-mode", &[], Form::YesNo, "yes", Anytime),
    row("rdb-del-sync-files", &[], Form::YesNo, "no", Anytime),
    row("rdb-save-incremental-fsync", &[], Form::YesNo, "yes", Anytime),
    row("rdbchecksum", &[], Form::YesNo, "yes", Start),
    row("rdbcompression", &[], Form::YesNo, "yes", Anytime),
    row("repl-backlog-size", &[], Form::Number, "1048576", Anytime),
    row("repl-backlog-ttl", &[], Form::Number, "3600", Anytime),
    row("repl-disable-tcp-nodelay", &[], Form::YesNo, "no", Anytime),
    row("repl-diskless-load", &[], Form::Text, "disabled", Anytime),
    row("repl-diskless-sync", &[], Form::YesNo, "yes", Anytime),
    row("repl-diskless-sync-delay", &[], Form::Number, "5", Anytime),
    row("repl-diskless-sync-max-replicas", &[], Form::Number, "0", Anytime),
    row("repl-ping-replica-period", &["repl-ping-slave-period"], Form::Number, "10", Anytime),
    row("repl-timeout", &[], Form::Number, "60", Anytime),
    row("replica-announce-ip", &["slave-announce-ip"], Form::Text, "", Anytime),
    row("replica-announce-port", &["slave-announce-port"], Form::Number, "0", Anytime),
    row("replica-announced", &[], Form::YesNo, "yes", Anytime),
    row("replica-full-sync-buffer-limit", &[], Form::Number, "0", Anytime),
    row("replica-ignore-disk-write-errors", &[], Form::YesNo, "no", Anytime),
    row("replica-ignore-maxmemory", &["slave-ignore-maxmemory"], Form::YesNo, "yes", Anytime),
    row("replica-lazy-flush", &["slave-lazy-flush"], Form::YesNo, "no", Anytime),
    row("replica-priority", &["slave-priority"], Form::Number, "100", Anytime),
    row("replica-read-only", &["slave-read-only"], Form::YesNo, "yes", Anytime),
    row("replica-serve-stale-data", &["slave-serve-stale-data"], Form::YesNo, "yes", Anytime),
    row("replicaof", &["slaveof"], Form::Fixed("replication is not supported"), "", Start),
    row("sanitize-dump-payload", &[], Form::Text, "no", Anytime),
    row("server-cpulist", &["server_cpulist"], Form::Text, "", Start),
    row("set-max-intset-entries", &[], Form::Number, "512", Anytime),
    row("set-max-listpack-entries", &[], Form::Number, "128", Anytime),
    row("set-max-listpack-value", &[], Form::Number, "64", Anytime),
    row("set-proc-title", &[], Form::YesNo, "yes", Start),
    row("shutdown-on-sigint", &[], Form::Words, "default", Anytime),
    row("shutdown-on-sigterm", &[], Form::Words, "default", Anytime),
    row("shutdown-timeout", &[], Form::Number, "10", Anytime),
    row("socket-mark-id", &[], Form::Number, "0", Start),
    row("stop-writes-on-bgsave-error", &[], Form::YesNo, "yes", Anytime),
    row("supervised", &[], Form::Text, "no", Start),
    row("syslog-enabled", &[], Form::YesNo, "no", Start),
    row("syslog-facility", &[], Form::Text, "local0", Start),
    row("syslog-ident", &[], Form::Text, "redis", Start),
    row("tls-auth-clients", &[], Form::Text, "yes", Anytime),
    row("tls-ca-cert-dir", &[], Form::Text, "", Anytime),
    row("tls-ca-cert-file", &[], Form::Text, "", Anytime),
    row("tls-cert-file", &[], Form::Text, "", Anytime),
    row("tls-ciphers", &[], Form::Text, "", Anytime),
    row("tls-ciphersuites", &[], Form::Text, "", Anytime),
    row("tls-client-cert-file", &[], Form::Text, "", Anytime),
    row("tls-client-key-file", &[], Form::Text, "", Anytime),
    row("tls-client-key-file-pass", &[], Form::Text, "", Anytime),
    row("tls-cluster", &[], Form::YesNo, "no", Anytime),
    row("tls-dh-params-file", &[], Form::Text, "", Anytime),
    row("tls-key-file", &[], Form::Text, "", Anytime),
    row("tls-key-file-pass", &[], Form::Text, "", Anytime),
    row("tls-port", &[], Form::Fixed("TLS is not supported"), "0", Anytime),
    row("tls-prefer-server-ciphers", &[], Form::YesNo, "no", Anytime),
    row("tls-protocols", &[], Form::Text, "", Anytime),
    row("tls-replication", &[], Form::YesNo, "no", Anytime),
    row("tls-session-cache-size", &[], Form::Number, "20480", Anytime),
    row("tls-session-cache-timeout", &[], Form::Number, "300", Anytime),
    row("tls-session-caching", &[], Form::YesNo, "yes", Anytime),
    row("tracking-table-max-keys", &[], Form::Number, "1000000", Anytime),
    row("vset-force-single-threaded-execution", &[], Form::YesNo, "no", Anytime),
    row("zset-max-listpack-entries", &["zset-max-ziplist-entries"], Form::Number, "128", Anytime),
    row("zset-max-listpack-value", &["zset-max-ziplist-value"], Form::Number, "64", Anytime),
];
