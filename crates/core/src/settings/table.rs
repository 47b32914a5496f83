//! The rows: every setting that has a meaning here, grouped as `--help` shows them.

use super::Settings;
use super::kind::{Kind, Origin, choose, memory, strict_integer};
use super::values::{AclPubSub, AppendFsync, EnableDebug, EventClasses, LogLevel, OutputLimit, SaveRule, StreamLag};

/// When a setting can change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// At any time, by CONFIG SET.
    Anytime,
    /// Only before the start.
    Start,
    /// Only before the start, since a client could do harm with it.
    Protected,
}

impl Change {
    /// What CONFIG SET says when it may not change the setting.
    pub(super) fn refusal(self) -> Option<&'static str> {
        match self {
            Change::Anytime => None,
            Change::Start => Some("can't set immutable config"),
            Change::Protected => Some("can't set protected config"),
        }
    }
}

/// Chapters of the help text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Sockets and clients.
    Network,
    /// Files and durability.
    Durability,
    /// Memory and data.
    Data,
    /// Streams.
    Streams,
    /// Logs and diagnosis.
    Operation,
}

impl Group {
    /// All, in order, with their titles.
    pub const TITLES: [(Group, &'static str); 5] = [
        (Group::Network, "Network and clients"),
        (Group::Durability, "Durability"),
        (Group::Data, "Data and memory"),
        (Group::Streams, "Streams"),
        (Group::Operation, "Operation"),
    ];
}

/// One setting.
pub struct Setting {
    /// Name, as in redis.conf where Redis has it.
    pub name: &'static str,
    /// Chapter.
    pub group: Group,
    /// Kind, range and field.
    pub kind: Kind,
    /// As one would write it.
    pub default: &'static str,
    /// When it can change.
    pub change: Change,
    /// One line.
    pub doc: &'static str,
}

const MIB: u64 = 1 << 20;
/// Sizes that Redis bounds by a signed number.
const SIGNED_MAX: u64 = i64::MAX as u64;

const fn row(
    name: &'static str,
    group: Group,
    kind: Kind,
    default: &'static str,
    change: Change,
    doc: &'static str,
) -> Setting {
    Setting { name, group, kind, default, change, doc }
}

/// A number in a field of any integer type; the range must fit it.
macro_rules! integer {
    ($field:ident, $min:expr, $max:expr) => {
        Kind::Integer { min: $min, max: $max, get: |s| s.$field as i64, set: |s, n| s.$field = n as _ }
    };
}

macro_rules! memory {
    ($field:ident, $min:expr, $max:expr) => {
        Kind::Memory { min: $min, max: $max, get: |s| s.$field, set: |s, n| s.$field = n }
    };
}

macro_rules! text {
    ($field:ident) => {
        Kind::Text { get: |s| &s.$field, set: |s, text| s.$field = text }
    };
}

/// Words for the values of an enum, in the same order.
macro_rules! choice {
    ($field:ident, $($word:literal => $value:path),*) => {
        Kind::Choice {
            words: &[$($word),*],
            get: |s| {
                const VALUES: &[(&str, usize)] = &[$(($word, $value as usize)),*];
                VALUES.iter().position(|(_, value)| *value == s.$field as usize).expect("every value has a word")
            },
            set: |s, index| s.$field = [$($value),*][index],
        }
    };
}

use Change::{Anytime, Protected, Start};
use Group::{Data, Durability, Network, Operation, Streams};

/// Every honoured setting.
pub static SETTINGS: &[Setting] = &[
    row("port", Network, integer!(port, 0, 65535), "6379", Start, "TCP port to listen on; 0 for none"),
    row(
        "bind",
        Network,
        Kind::Words { syntax: "<address> ...", get: |s| s.bind.join(" "), set: set_bind },
        // As the redis.conf that comes with Redis; without a file Redis listens everywhere.
        "127.0.0.1 -::1",
        Start,
        "Addresses to listen on; * for all, - before one that may be missing",
    ),
    row("unixsocket", Network, text!(unixsocket), "", Start, "Path of a Unix socket to listen on as well"),
    row(
        "unixsocketperm",
        Network,
        Kind::Octal { max: 0o777, get: |s| s.unixsocketperm, set: |s, n| s.unixsocketperm = n },
        "0",
        Start,
        "Permissions of the Unix socket; 0 leaves them as made",
    ),
    row(
        "tcp-backlog",
        Network,
        integer!(tcp_backlog, 0, i32::MAX as i64),
        "511",
        Start,
        "Connections that may wait to be accepted",
    ),
    row(
        "timeout",
        Network,
        integer!(timeout_seconds, 0, i32::MAX as i64),
        "0",
        Anytime,
        "Seconds after which an idle client is closed; 0 for never",
    ),
    row(
        "tcp-keepalive",
        Network,
        integer!(tcp_keepalive_seconds, 0, i32::MAX as i64),
        "300",
        Anytime,
        "Seconds between signs of life on idle connections; 0 for none",
    ),
    row(
        "maxclients",
        Network,
        integer!(maxclients, 1, u32::MAX as i64),
        "10000",
        Anytime,
        "Connections that are served at the same time",
    ),
    row(
        "requirepass",
        Network,
        Kind::Bytes { get: |s| &s.requirepass, set: |s, bytes| s.requirepass = bytes },
        "",
        Anytime,
        "Password that clients must give; empty for none",
    ),
    row(
        "acl-pubsub-default",
        Network,
        choice!(
            acl_pubsub_default,
            "allchannels" => AclPubSub::AllChannels, "resetchannels" => AclPubSub::ResetChannels
        ),
        "resetchannels",
        Anytime,
        "Channels that new users may use",
    ),
    row("acllog-max-len", Network, integer!(acllog_max_len, 0, i64::MAX), "128", Anytime, "Entries of ACL LOG"),
    row("aclfile", Network, text!(aclfile), "", Start, "File with users, one a line; none may be set elsewhere then"),
    row(
        "client-query-buffer-limit",
        Network,
        memory!(query_buffer_max_bytes, MIB, SIGNED_MAX),
        "1gb",
        Anytime,
        "Bytes of unfinished commands that a client may send",
    ),
    row(
        "client-output-buffer-limit",
        Network,
        Kind::Words {
            syntax: "<normal|replica|pubsub> <hard> <soft> <seconds> ...",
            get: show_output_limits,
            set: set_output_limits,
        },
        "normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60",
        Anytime,
        "Bytes of unread replies at which a client is closed, by class; 0 for no limit",
    ),
    row(
        "proto-max-bulk-len",
        Network,
        memory!(bulk_max_bytes, MIB, SIGNED_MAX),
        "512mb",
        Anytime,
        "Bytes of one argument",
    ),
    row("dir", Durability, text!(dir), "./impel-data", Protected, "Folder of the log and the snapshots"),
    row(
        "appendonly",
        Durability,
        Kind::YesNo { get: |s| s.appendonly, set: |s, yes| s.appendonly = yes },
        "yes",
        Start,
        "Keep a log of changes",
    ),
    row(
        "appendfsync",
        Durability,
        choice!(
            appendfsync,
            "everysec" => AppendFsync::EverySec, "always" => AppendFsync::Always, "no" => AppendFsync::No
        ),
        "always",
        Anytime,
        "When a change must be on disk: before its reply, within a second, or whenever",
    ),
    row(
        "save",
        Durability,
        Kind::Words { syntax: "<seconds> <changes> ...", get: show_save, set: set_save },
        "",
        Anytime,
        "Take a snapshot when so many seconds have passed and so much has changed; \"\" for never",
    ),
    row(
        "auto-aof-rewrite-percentage",
        Durability,
        integer!(auto_snapshot_percentage, 0, i32::MAX as i64),
        "100",
        Anytime,
        "Take a snapshot when the log behind the newest one has so much of its size; 0 for never",
    ),
    row(
        "auto-aof-rewrite-min-size",
        Durability,
        memory!(auto_snapshot_min_bytes, 0, i64::MAX as u64),
        "64mb",
        Anytime,
        "... but not before the log behind the newest snapshot has so many bytes",
    ),
    row(
        "log-segment-bytes",
        Durability,
        memory!(log_segment_bytes, MIB, 1 << 40),
        "64mb",
        Start,
        "Size of one file of the log",
    ),
    row(
        "log-retention",
        Durability,
        integer!(log_retention_seconds, 0, i32::MAX as i64),
        "0",
        Anytime,
        "Seconds for which snapshots and log are kept, so that the past can be restored",
    ),
    row(
        "databases",
        Data,
        integer!(databases, 1, crate::limits::DATABASES as i64),
        "16",
        Start,
        "Databases that SELECT can reach",
    ),
    row(
        "maxmemory",
        Data,
        memory!(maxmemory_bytes, 0, u64::MAX),
        "0",
        Anytime,
        "Bytes beyond which writes are refused; 0 for no limit",
    ),
    row(
        "maxmemory-policy",
        Data,
        Kind::Parsed { syntax: "noeviction", get: |_| POLICIES[NOEVICTION].into(), set: set_policy },
        "noeviction",
        Anytime,
        "What to do over maxmemory: refuse writes, never drop data",
    ),
    row(
        "notify-keyspace-events",
        Data,
        Kind::Parsed { syntax: "<letters>", get: |s| s.notify_keyspace_events.letters(), set: set_events },
        "",
        Anytime,
        "Classes of changes to tell subscribers of, by letter",
    ),
    row(
        "stream-node-max-entries",
        Streams,
        integer!(stream_node_max_entries, 0, i64::MAX),
        "100",
        Anytime,
        "Entries in one block of a stream; 0 for no bound",
    ),
    row(
        "stream-node-max-bytes",
        Streams,
        memory!(stream_node_max_bytes, 0, SIGNED_MAX),
        "4096",
        Anytime,
        "Bytes in one block of a stream; 0 for no bound",
    ),
    row(
        "stream-idmp-duration",
        Streams,
        integer!(stream_idmp_duration_seconds, 1, 86400),
        "100",
        Anytime,
        "Seconds for which a new stream remembers message IDs",
    ),
    row(
        "stream-idmp-maxsize",
        Streams,
        integer!(stream_idmp_maxsize, 1, 10000),
        "100",
        Anytime,
        "Message IDs of one producer that a new stream remembers",
    ),
    row(
        "stream-lag",
        Streams,
        choice!(stream_lag, "exact" => StreamLag::Exact, "compat" => StreamLag::Compat),
        "exact",
        Anytime,
        "Lag of a group where Redis cannot tell it: the number, or nil as there",
    ),
    row("pidfile", Operation, text!(pidfile), "", Start, "File to write the process ID to"),
    row(
        "loglevel",
        Operation,
        choice!(
            loglevel,
            "debug" => LogLevel::Debug, "verbose" => LogLevel::Verbose, "notice" => LogLevel::Notice,
            "warning" => LogLevel::Warning, "nothing" => LogLevel::Nothing
        ),
        "notice",
        Anytime,
        "How much is logged",
    ),
    row("logfile", Operation, text!(logfile), "", Start, "File to log to; empty for standard output"),
    row(
        "enable-debug-command",
        Operation,
        choice!(
            enable_debug_command,
            "no" => EnableDebug::No, "yes" => EnableDebug::Yes, "local" => EnableDebug::Local
        ),
        "no",
        Start,
        "Who may use DEBUG",
    ),
    row(
        "slowlog-log-slower-than",
        Operation,
        integer!(slowlog_log_slower_than_us, -1, i64::MAX),
        "10000",
        Anytime,
        "Microseconds from which a command is slow; -1 for never",
    ),
    row(
        "slowlog-max-len",
        Operation,
        integer!(slowlog_max_len, 0, i64::MAX),
        "128",
        Anytime,
        "Slow commands that are kept",
    ),
    row(
        "busy-reply-threshold",
        Operation,
        integer!(busy_reply_threshold_ms, 0, i64::MAX),
        "5000",
        Anytime,
        "Milliseconds a script may run, ten times as many once it has written; 0 for any",
    ),
    // Its name before Redis 7.
    row(
        "lua-time-limit",
        Operation,
        integer!(busy_reply_threshold_ms, 0, i64::MAX),
        "5000",
        Anytime,
        "Another name of busy-reply-threshold",
    ),
];

/// The policies that Redis knows, in the order of its error text.
const POLICIES: [&str; 8] = [
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];
const NOEVICTION: usize = 7;

/// Settings before the defaults of the table are set.
pub(super) fn blank() -> Settings {
    Settings {
        port: 0,
        bind: Vec::new(),
        unixsocket: String::new(),
        unixsocketperm: 0,
        tcp_backlog: 0,
        timeout_seconds: 0,
        tcp_keepalive_seconds: 0,
        maxclients: 0,
        requirepass: Vec::new(),
        users: Vec::new(),
        aclfile: String::new(),
        acllog_max_len: 0,
        acl_pubsub_default: AclPubSub::default(),
        query_buffer_max_bytes: 0,
        output_limits: [OutputLimit::default(); 3],
        bulk_max_bytes: 0,
        pidfile: String::new(),
        loglevel: LogLevel::default(),
        logfile: String::new(),
        databases: 0,
        maxmemory_bytes: 0,
        dir: String::new(),
        appendonly: false,
        appendfsync: AppendFsync::default(),
        save: Vec::new(),
        auto_snapshot_percentage: 0,
        auto_snapshot_min_bytes: 0,
        log_segment_bytes: 0,
        log_retention_seconds: 0,
        stream_node_max_entries: 0,
        stream_node_max_bytes: 0,
        stream_idmp_duration_seconds: 0,
        stream_idmp_maxsize: 0,
        stream_lag: StreamLag::default(),
        notify_keyspace_events: EventClasses::default(),
        enable_debug_command: EnableDebug::default(),
        slowlog_log_slower_than_us: 0,
        slowlog_max_len: 0,
        busy_reply_threshold_ms: 0,
        known: Default::default(),
    }
}

fn text_of(word: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(word).map_err(|_| "argument must be UTF-8 text".into())
}

fn set_bind(settings: &mut Settings, words: &[&[u8]], _: Origin) -> Result<(), String> {
    // What stands between spaces, also of a word that was quoted: so they are shown again, and no address has one.
    let words: Vec<&str> = words.iter().map(|word| text_of(word)).collect::<Result<_, _>>()?;
    settings.bind = words.iter().flat_map(|word| word.split_ascii_whitespace()).map(str::to_owned).collect();
    Ok(())
}

fn set_policy(_: &mut Settings, word: &[u8]) -> Result<(), String> {
    match choose(word, &POLICIES)? {
        NOEVICTION => Ok(()),
        _ => Err("only noeviction is supported: data is never dropped to make room".into()),
    }
}

fn set_events(settings: &mut Settings, letters: &[u8]) -> Result<(), String> {
    let classes = EventClasses::parse(letters).ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
    settings.notify_keyspace_events = classes;
    Ok(())
}

fn show_save(settings: &Settings) -> String {
    settings.save.iter().map(|rule| format!("{} {}", rule.seconds, rule.changes)).collect::<Vec<_>>().join(" ")
}

/// Nothing, or an empty text, is no rule. At the start several lines add up; CONFIG SET replaces.
fn set_save(settings: &mut Settings, words: &[&[u8]], origin: Origin) -> Result<(), String> {
    let invalid = || "Invalid save parameters".to_owned();
    let number = |word: &[u8], min: u32| {
        strict_integer(word).and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= min).ok_or_else(invalid)
    };
    let pairs = words.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(invalid());
    }
    let mut rules = pairs
        .map(|pair| Ok(SaveRule { seconds: number(pair[0], 1)?, changes: number(pair[1], 0)? }))
        .collect::<Result<Vec<_>, String>>()?;
    if origin == Origin::Start && !rules.is_empty() {
        settings.save.append(&mut rules);
    } else {
        settings.save = rules;
    }
    Ok(())
}

/// Names of the classes as they are shown: Redis 8 still says slave.
const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

fn show_output_limits(settings: &Settings) -> String {
    let show = |(class, limit): (&str, &OutputLimit)| {
        format!("{class} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
    };
    CLASSES.into_iter().zip(&settings.output_limits).map(show).collect::<Vec<_>>().join(" ")
}

fn set_output_limits(settings: &mut Settings, words: &[&[u8]], _: Origin) -> Result<(), String> {
    let groups = words.chunks_exact(4);
    if !groups.remainder().is_empty() {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    let mut limits = settings.output_limits;
    for group in groups {
        let class = match group[0].to_ascii_lowercase().as_slice() {
            b"normal" => 0,
            b"slave" | b"replica" => 1,
            b"pubsub" => 2,
            _ => return Err("Invalid client class specified in buffer limit configuration.".into()),
        };
        let seconds = strict_integer(group[3]).and_then(|n| u32::try_from(n).ok());
        let (Ok(hard_bytes), Ok(soft_bytes), Some(soft_seconds)) = (memory(group[1]), memory(group[2]), seconds) else {
            return Err("Error in hard, soft or soft_seconds setting in buffer limit configuration.".into());
        };
        limits[class] = OutputLimit { hard_bytes, soft_bytes, soft_seconds };
    }
    settings.output_limits = limits;
    Ok(())
}
