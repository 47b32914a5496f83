//! The commands of an owner, and how each is written. What one does to the model is in `effect`.
//!
//! Every command carries explicit ids, so that its effect is the same whenever it is carried out.

use super::model::{Id, Limit, References, id_text};

/// One command. `key` is always a whole key; stream and string keys never mix.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// XADD
    Add { key: String, id: Id, fields: Vec<String>, trim: Option<(Limit, References)> },
    /// XTRIM
    Trim { key: String, limit: Limit, references: References },
    /// XDEL
    Delete { key: String, ids: Vec<Id> },
    /// XDELEX
    DeleteWith { key: String, references: References, ids: Vec<Id> },
    /// XACKDEL
    AckDelete { key: String, group: String, references: References, ids: Vec<Id> },
    /// XSETID
    SetId { key: String, last: Id, added: Option<u64>, max_deleted: Option<Id> },
    /// XREADGROUP with `>`
    Read { key: String, group: String, consumer: String, count: usize, no_ack: bool },
    /// XREADGROUP with an id
    History { key: String, group: String, consumer: String, count: usize, after: Id },
    /// XACK
    Ack { key: String, group: String, ids: Vec<Id> },
    /// XCLAIM
    Claim { key: String, group: String, consumer: String, idle: bool, ids: Vec<Id>, options: ClaimOptions },
    /// XAUTOCLAIM
    AutoClaim { key: String, group: String, consumer: String, idle: bool, start: Id, count: usize, just_id: bool },
    /// XGROUP CREATE … MKSTREAM
    GroupCreate { key: String, group: String, position: Option<Id>, entries_read: Option<u64> },
    /// XGROUP SETID
    GroupSetId { key: String, group: String, position: Option<Id>, entries_read: Option<u64> },
    /// XGROUP DESTROY
    GroupDestroy { key: String, group: String },
    /// XGROUP CREATECONSUMER
    ConsumerCreate { key: String, group: String, consumer: String },
    /// XGROUP DELCONSUMER
    ConsumerDelete { key: String, group: String, consumer: String },
    /// SET
    Set { key: String, value: String },
    /// INCR
    Increment { key: String },
    /// APPEND
    Append { key: String, value: String },
    /// DEL
    Remove { keys: Vec<String> },
    /// EXPIRE
    Expire { key: String, seconds: i64 },
    /// PERSIST
    Persist { key: String },
    /// RENAME
    Rename { from: String, to: String },
    /// COPY
    Copy { from: String, to: String, replace: bool },
    /// MULTI, these, EXEC
    Transaction(Vec<Command>),
}

/// What else XCLAIM is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimOptions {
    /// IDLE, in ms.
    pub idle_ms: Option<i64>,
    /// TIME, Unix time in ms, of the past.
    pub time_ms: Option<i64>,
    /// RETRYCOUNT
    pub retry_count: Option<i64>,
    /// FORCE
    pub force: bool,
    /// JUSTID
    pub just_id: bool,
    /// LASTID
    pub last_id: Option<Id>,
}

/// A min-idle-time that nothing reaches: more than any idle time the load gives.
const NEVER_IDLE_MS: &str = "1000000000000";

impl Command {
    /// The words on the wire. Those of a transaction are its commands, see [`Command::parts`].
    pub fn words(&self) -> Vec<String> {
        match self {
            Command::Add { key, id, fields, trim } => {
                let mut words = list(&["XADD", key]);
                if let Some((limit, references)) = trim {
                    words.extend(references_word(*references));
                    words.extend(limit_words(*limit));
                }
                words.push(id_text(*id));
                words.extend_from_slice(fields);
                words
            }
            Command::Trim { key, limit, references } => {
                let mut words = list(&["XTRIM", key]);
                words.extend(limit_words(*limit));
                words.extend(references_word(*references));
                words
            }
            Command::Delete { key, ids } => with_ids(list(&["XDEL", key]), ids),
            Command::DeleteWith { key, references, ids } => {
                let mut words = list(&["XDELEX", key]);
                words.extend(references_word(*references));
                words.extend(["IDS".to_owned(), ids.len().to_string()]);
                with_ids(words, ids)
            }
            Command::AckDelete { key, group, references, ids } => {
                let mut words = list(&["XACKDEL", key, group]);
                words.extend(references_word(*references));
                words.extend(["IDS".to_owned(), ids.len().to_string()]);
                with_ids(words, ids)
            }
            Command::SetId { key, last, added, max_deleted } => {
                let mut words = list(&["XSETID", key, &id_text(*last)]);
                words.extend(added.iter().flat_map(|n| list(&["ENTRIESADDED", &n.to_string()])));
                words.extend(max_deleted.iter().flat_map(|id| list(&["MAXDELETEDID", &id_text(*id)])));
                words
            }
            Command::Read { key, group, consumer, count, no_ack } => {
                let mut words = list(&["XREADGROUP", "GROUP", group, consumer, "COUNT", &count.to_string()]);
                words.extend(no_ack.then(|| "NOACK".to_owned()));
                words.extend(list(&["STREAMS", key, ">"]));
                words
            }
            Command::History { key, group, consumer, count, after } => {
                let (count, after) = (count.to_string(), id_text(*after));
                list(&["XREADGROUP", "GROUP", group, consumer, "COUNT", &count, "STREAMS", key, &after])
            }
            Command::Ack { key, group, ids } => with_ids(list(&["XACK", key, group]), ids),
            Command::Claim { key, group, consumer, idle, ids, options } => {
                let least = if *idle { "0" } else { NEVER_IDLE_MS };
                let mut words = with_ids(list(&["XCLAIM", key, group, consumer, least]), ids);
                words.extend(options.idle_ms.iter().flat_map(|n| list(&["IDLE", &n.to_string()])));
                words.extend(options.time_ms.iter().flat_map(|n| list(&["TIME", &n.to_string()])));
                words.extend(options.retry_count.iter().flat_map(|n| list(&["RETRYCOUNT", &n.to_string()])));
                words.extend(options.force.then(|| "FORCE".to_owned()));
                words.extend(options.just_id.then(|| "JUSTID".to_owned()));
                words.extend(options.last_id.iter().flat_map(|id| list(&["LASTID", &id_text(*id)])));
                words
            }
            Command::AutoClaim { key, group, consumer, idle, start, count, just_id } => {
                let least = if *idle { "0" } else { NEVER_IDLE_MS };
                let (start, count) = (id_text(*start), count.to_string());
                let mut words = list(&["XAUTOCLAIM", key, group, consumer, least, &start, "COUNT", &count]);
                words.extend(just_id.then(|| "JUSTID".to_owned()));
                words
            }
            Command::GroupCreate { key, group, position, entries_read } => {
                let mut words = list(&["XGROUP", "CREATE", key, group, &position_word(*position), "MKSTREAM"]);
                words.extend(entries_read.iter().flat_map(|n| list(&["ENTRIESREAD", &n.to_string()])));
                words
            }
            Command::GroupSetId { key, group, position, entries_read } => {
                let mut words = list(&["XGROUP", "SETID", key, group, &position_word(*position)]);
                words.extend(entries_read.iter().flat_map(|n| list(&["ENTRIESREAD", &n.to_string()])));
                words
            }
            Command::GroupDestroy { key, group } => list(&["XGROUP", "DESTROY", key, group]),
            Command::ConsumerCreate { key, group, consumer } => {
                list(&["XGROUP", "CREATECONSUMER", key, group, consumer])
            }
            Command::ConsumerDelete { key, group, consumer } => list(&["XGROUP", "DELCONSUMER", key, group, consumer]),
            Command::Set { key, value } => list(&["SET", key, value]),
            Command::Increment { key } => list(&["INCR", key]),
            Command::Append { key, value } => list(&["APPEND", key, value]),
            Command::Remove { keys } => [list(&["DEL"]), keys.clone()].concat(),
            Command::Expire { key, seconds } => list(&["EXPIRE", key, &seconds.to_string()]),
            Command::Persist { key } => list(&["PERSIST", key]),
            Command::Rename { from, to } => list(&["RENAME", from, to]),
            Command::Copy { from, to, replace } => {
                let mut words = list(&["COPY", from, to]);
                words.extend(replace.then(|| "REPLACE".to_owned()));
                words
            }
            Command::Transaction(_) => list(&["EXEC"]),
        }
    }

    /// What is sent one by one: a transaction is more than one command.
    pub fn parts(&self) -> Vec<Vec<String>> {
        match self {
            Command::Transaction(commands) => {
                let queued = commands.iter().map(Command::words);
                std::iter::once(list(&["MULTI"])).chain(queued).chain([list(&["EXEC"])]).collect()
            }
            single => vec![single.words()],
        }
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<String> = self.parts().iter().map(|words| words.join(" ")).collect();
        f.write_str(&parts.join("; "))
    }
}

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn with_ids(mut words: Vec<String>, ids: &[Id]) -> Vec<String> {
    words.extend(ids.iter().map(|id| id_text(*id)));
    words
}

/// KEEPREF is the default, and not known to every server.
fn references_word(references: References) -> Option<String> {
    match references {
        References::Keep => None,
        References::Delete | References::DeleteBelow => Some("DELREF".to_owned()),
        References::Acked => Some("ACKED".to_owned()),
    }
}

fn limit_words(limit: Limit) -> [String; 2] {
    match limit {
        Limit::MaxLen(length) => ["MAXLEN".to_owned(), length.to_string()],
        Limit::MinId(id) => ["MINID".to_owned(), id_text(id)],
    }
}

fn position_word(position: Option<Id>) -> String {
    position.map_or_else(|| "$".to_owned(), id_text)
}
