//! What ACL LOG shows: attempts that were refused, newest first. The same attempt again within a minute is counted in
//! the entry that is there. Kept in memory alone.

use std::collections::VecDeque;

/// How an attempt came to be refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A wrong name or password.
    Auth,
    /// The command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
}

impl Reason {
    /// As ACL LOG shows it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Auth => "auth",
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
        }
    }
}

/// Where a command came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A client sent it.
    TopLevel,
    /// It is, or was to be, part of a transaction.
    Transaction,
    /// A script sent it.
    Script,
}

impl Origin {
    /// As ACL LOG shows it.
    pub fn name(self) -> &'static str {
        match self {
            Origin::TopLevel => "toplevel",
            Origin::Transaction => "multi",
            Origin::Script => "lua",
        }
    }
}

/// One refused attempt, or several that were alike.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Rises by one with each.
    pub id: u64,
    /// How often.
    pub count: u64,
    /// What was missing.
    pub reason: Reason,
    /// Where it came from.
    pub origin: Origin,
    /// The command, key or channel.
    pub object: Vec<u8>,
    /// Who tried.
    pub username: Vec<u8>,
    /// The connection, as CLIENT LIST describes it, at the last attempt.
    pub client: Vec<u8>,
    /// Unix ms of the first attempt.
    pub created_ms: u64,
    /// Unix ms of the last attempt.
    pub updated_ms: u64,
}

/// The newest entries.
#[derive(Debug, Default)]
pub struct AclLog {
    entries: VecDeque<Entry>,
    next_id: u64,
}

/// Attempts further apart than this are two entries. Redis: `ACL_LOG_GROUPING_MAX_TIME_DELTA`.
const ALIKE_WITHIN_MS: u64 = 60_000;
/// Entries that are looked at for one that is alike: noting must stay short.
const LOOKED_AT: usize = 10;

impl AclLog {
    /// All entries, newest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Notes an attempt; keeps `max` entries at most. `id` and `count` of `entry` are given here.
    pub fn note(&mut self, mut entry: Entry, max: usize) {
        let alike = self.entries.iter().take(LOOKED_AT).position(|known| {
            entry.updated_ms.saturating_sub(known.updated_ms) <= ALIKE_WITHIN_MS
                && (known.reason, known.origin) == (entry.reason, entry.origin)
                && known.object == entry.object
                && known.username == entry.username
        });
        match alike.and_then(|place| self.entries.remove(place)) {
            Some(known) => {
                (entry.id, entry.count, entry.created_ms) = (known.id, known.count + 1, known.created_ms);
            }
            None => {
                (entry.id, entry.count) = (self.next_id, 1);
                self.next_id += 1;
            }
        }
        self.entries.push_front(entry);
        self.entries.truncate(max);
    }
}
