//! The settings: one table ([`SETTINGS`]) that the command line, configuration files, CONFIG GET, CONFIG SET and `--help`
//! all work from, and the struct that the engine and the server read.
//!
//! Names are those of redis.conf where Redis has the setting. A name is *honoured* (a row of the table), *known* (Redis has
//! it, it means nothing here: kept, shown, and the caller logs a line), *fixed* (known, but a value that would mean
//! something is refused rather than passed over), or unknown: refused. Pure: files are read by the server.

mod help;
mod kind;
mod known;
mod table;
pub mod text;
mod values;

use std::collections::BTreeMap;
use std::fmt;

pub use help::help_text;
pub use kind::{Kind, Origin, SetWords};
pub use table::{Change, Group, SETTINGS, Setting};
pub use values::{
    AclPubSub, AppendFsync, ClientClass, EnableDebug, EventClasses, LogLevel, OutputLimit, SaveRule, StreamLag,
};

use crate::command::args::Args;
use crate::command::parse::is;
use crate::engine::acl;
use crate::glob::{self, Case};
use crate::resp::encode::Reply;

/// Every honoured setting. Meaning, range and default of each: its row in [`SETTINGS`].
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// `port`; 0 for no TCP.
    pub port: u16,
    /// `bind`: addresses; a `-` before one means that it may be missing; empty for none.
    pub bind: Vec<String>,
    /// `unixsocket`; empty for none.
    pub unixsocket: String,
    /// `unixsocketperm`; 0 leaves it to the system.
    pub unixsocketperm: u32,
    /// `tcp-backlog`
    pub tcp_backlog: u32,
    /// `timeout`: seconds after which an idle client is closed; 0 for never.
    pub timeout_seconds: u32,
    /// `tcp-keepalive`: seconds; 0 for none.
    pub tcp_keepalive_seconds: u32,
    /// `maxclients`
    pub maxclients: u32,
    /// `requirepass`; empty for none.
    pub requirepass: Vec<u8>,
    /// `user` lines: the words behind each, checked.
    pub users: Vec<Vec<Vec<u8>>>,
    /// `aclfile`; empty for none.
    pub aclfile: String,
    /// `acllog-max-len`
    pub acllog_max_len: u64,
    /// `acl-pubsub-default`
    pub acl_pubsub_default: AclPubSub,
    /// `client-query-buffer-limit`
    pub query_buffer_max_bytes: u64,
    /// `client-output-buffer-limit`, by [`ClientClass`].
    pub output_limits: [OutputLimit; 3],
    /// `proto-max-bulk-len`
    pub bulk_max_bytes: u64,
    /// `pidfile`; empty for none.
    pub pidfile: String,
    /// `loglevel`
    pub loglevel: LogLevel,
    /// `logfile`; empty for standard output.
    pub logfile: String,
    /// `databases`
    pub databases: u32,
    /// `maxmemory`: bytes; 0 for no limit.
    pub maxmemory_bytes: u64,
    /// `dir`
    pub dir: String,
    /// `appendonly`
    pub appendonly: bool,
    /// `appendfsync`
    pub appendfsync: AppendFsync,
    /// `save`
    pub save: Vec<SaveRule>,
    /// `auto-aof-rewrite-percentage`: of the newest snapshot's size; 0 for never.
    pub auto_snapshot_percentage: u32,
    /// `auto-aof-rewrite-min-size`
    pub auto_snapshot_min_bytes: u64,
    /// `log-segment-bytes`
    pub log_segment_bytes: u64,
    /// `log-retention`: seconds; 0 for no longer than a start needs it.
    pub log_retention_seconds: u32,
    /// `stream-node-max-entries`; 0 for no bound.
    pub stream_node_max_entries: u64,
    /// `stream-node-max-bytes`; 0 for no bound.
    pub stream_node_max_bytes: u64,
    /// `stream-idmp-duration`: seconds.
    pub stream_idmp_duration_seconds: u32,
    /// `stream-idmp-maxsize`: message IDs for each producer.
    pub stream_idmp_maxsize: u32,
    /// `stream-lag`
    pub stream_lag: StreamLag,
    /// `notify-keyspace-events`
    pub notify_keyspace_events: EventClasses,
    /// `enable-debug-command`
    pub enable_debug_command: EnableDebug,
    /// `slowlog-log-slower-than`: microseconds; negative for never.
    pub slowlog_log_slower_than_us: i64,
    /// `slowlog-max-len`
    pub slowlog_max_len: u64,
    /// `busy-reply-threshold`: milliseconds that a script may run; 0 for any time.
    pub busy_reply_threshold_ms: u64,
    /// Values given to settings that mean nothing here, to be shown again.
    known: BTreeMap<&'static str, String>,
}

impl Default for Settings {
    /// As the server starts without any option.
    fn default() -> Settings {
        let mut settings = table::blank();
        for setting in SETTINGS {
            setting
                .kind
                .set(&mut settings, &[setting.default.as_bytes()], Origin::Start)
                .expect("the defaults of the table are valid");
        }
        settings
    }
}

/// What became of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// It has its meaning; the name as the table writes it.
    Honoured(&'static str),
    /// Redis has this setting; it means nothing here. The caller should log that.
    Known(&'static str),
}

/// Why a value was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingError {
    /// There is no setting of that name.
    Unknown(String),
    /// The setting does not take that value.
    Invalid {
        /// The setting, as it was written.
        name: String,
        /// Why, in the words of Redis where Redis refuses it as well.
        reason: String,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::Unknown(name) => write!(f, "unknown setting '{name}'"),
            SettingError::Invalid { name, reason } => write!(f, "setting '{name}': {reason}"),
        }
    }
}

impl std::error::Error for SettingError {}

/// What a name stands for.
enum Found {
    Honoured(&'static Setting),
    Known(&'static known::Known),
    /// Redis took it once and now passes over it.
    Obsolete(&'static str),
}

fn find(name: &[u8]) -> Option<Found> {
    let is = |other: &str| other.as_bytes().eq_ignore_ascii_case(name);
    if let Some(setting) = SETTINGS.iter().find(|setting| is(setting.name)) {
        return Some(Found::Honoured(setting));
    }
    if let Some(known) = known::KNOWN.iter().find(|known| is(known.name) || known.aliases.iter().any(|a| is(a))) {
        return Some(Found::Known(known));
    }
    known::OBSOLETE.iter().find(|other| is(other)).map(|name| Found::Obsolete(name))
}

/// True when Redis or Impel has a setting of that name, so that a command line can tell options from values.
pub fn is_known(name: &[u8]) -> bool {
    find(name).is_some() || known::refusal(name).is_some() || is(name, "include") || is(name, "user")
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl Settings {
    /// `log-retention` in milliseconds.
    pub fn log_retention_ms(&self) -> u64 {
        u64::from(self.log_retention_seconds) * 1000
    }

    /// Takes one setting from the command line or a file: its name, in any case of letters, and the words behind it.
    /// Nothing has changed when this fails.
    pub fn apply<T: AsRef<[u8]>>(&mut self, name: &[u8], words: &[T]) -> Result<Applied, SettingError> {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        let invalid = |reason: String| SettingError::Invalid { name: shown(name), reason };
        if name.eq_ignore_ascii_case(b"user") {
            self.take_user(&words).map_err(invalid)?;
            return Ok(Applied::Honoured("user"));
        }
        match find(name) {
            Some(Found::Obsolete(name)) => Ok(Applied::Known(name)),
            Some(found) => self.take(&found, &words, Origin::Start).map_err(invalid),
            None => match known::refusal(name) {
                Some(reason) => Err(invalid(reason.into())),
                None => Err(SettingError::Unknown(shown(name))),
            },
        }
    }

    /// A `user` line. Each user has one.
    fn take_user(&mut self, words: &[&[u8]]) -> Result<(), String> {
        let user = acl::user_of_line(words, self.acl_pubsub_default.all_channels())?;
        if self.users.iter().any(|known| known[0][..] == *user.name) {
            return Err(format!("the user '{}' stands there twice", shown(&user.name)));
        }
        self.users.push(words.iter().map(|word| word.to_vec()).collect());
        Ok(())
    }

    fn take(&mut self, found: &Found, words: &[&[u8]], origin: Origin) -> Result<Applied, String> {
        match found {
            Found::Honoured(setting) => {
                setting.kind.set(self, words, origin)?;
                Ok(Applied::Honoured(setting.name))
            }
            Found::Known(known) => {
                let value = known.check(words)?;
                self.known.insert(known.name, value);
                Ok(Applied::Known(known.name))
            }
            Found::Obsolete(name) => Ok(Applied::Known(name)),
        }
    }

    /// The value of a setting as CONFIG GET shows it.
    pub fn value(&self, name: &str) -> Option<Vec<u8>> {
        match find(name.as_bytes())? {
            Found::Honoured(setting) => Some(setting.kind.get(self)),
            Found::Known(known) => Some(self.known_value(known).into()),
            Found::Obsolete(_) => None,
        }
    }

    fn known_value(&self, known: &known::Known) -> String {
        self.known.get(known.name).cloned().unwrap_or_else(|| known.default.to_owned())
    }

    /// CONFIG GET: `patterns` are names or globs. A name is answered as it was written.
    pub fn config_get(&self, patterns: Args, reply: &mut Reply) {
        let mut found: BTreeMap<&'static str, (Vec<u8>, Vec<u8>)> = BTreeMap::new();
        for pattern in patterns.iter() {
            let literal = glob::is_literal(pattern);
            let fits = |name: &str| match literal {
                true => name.as_bytes().eq_ignore_ascii_case(pattern),
                false => glob::matches(pattern, name.as_bytes(), Case::Insensitive),
            };
            let mut add = |name: &'static str, value: &dyn Fn() -> Vec<u8>| {
                if fits(name) {
                    let written = if literal { pattern } else { name.as_bytes() };
                    found.entry(name).or_insert_with(|| (written.to_vec(), value()));
                }
            };
            for setting in SETTINGS {
                add(setting.name, &|| setting.kind.get(self));
            }
            for known in known::KNOWN {
                for name in std::iter::once(&known.name).chain(known.aliases) {
                    add(name, &|| self.known_value(known).into());
                }
            }
        }
        reply.map(found.len());
        for (name, value) in found.values() {
            reply.bulk(name);
            reply.bulk(value);
        }
    }

    /// CONFIG SET: `pairs` are names and values. All are taken or none; what was taken is returned for the caller to act
    /// on, and the error is the whole text of the reply.
    pub fn config_set(&mut self, pairs: Args) -> Result<Vec<Applied>, Vec<u8>> {
        if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
            return Err(b"ERR syntax error".to_vec());
        }
        let failed = |name: &[u8], reason: &str| {
            let begin: &[u8] = b"ERR CONFIG SET failed (possibly related to argument '";
            [begin, name, b"') - ", reason.as_bytes()].concat()
        };
        // First all the names, then all the values: so does Redis, and it decides which error is told.
        let mut changes: Vec<(Found, &'static str, usize)> = Vec::with_capacity(pairs.len() / 2);
        for index in (0..pairs.len()).step_by(2) {
            let name = pairs.get(index);
            let (found, canonical, refused) = match find(name) {
                Some(Found::Honoured(setting)) => (Found::Honoured(setting), setting.name, setting.change.refusal()),
                Some(Found::Known(known)) => (Found::Known(known), known.name, known.change.refusal()),
                Some(Found::Obsolete(_)) | None => {
                    let begin: &[u8] = b"ERR Unknown option or number of arguments for CONFIG SET - '";
                    return Err([begin, name, b"'"].concat());
                }
            };
            if let Some(reason) = refused {
                return Err(failed(name, reason));
            }
            if changes.iter().any(|(_, other, _)| *other == canonical) {
                return Err(failed(name, "duplicate parameter"));
            }
            changes.push((found, canonical, index));
        }
        let mut changed = self.clone();
        let mut applied = Vec::with_capacity(changes.len());
        for (found, _, index) in &changes {
            let taken = changed.take(found, &[pairs.get(index + 1)], Origin::Runtime);
            applied.push(taken.map_err(|reason| failed(pairs.get(*index), &reason))?);
        }
        *self = changed;
        Ok(applied)
    }
}

#[cfg(test)]
mod tests;
