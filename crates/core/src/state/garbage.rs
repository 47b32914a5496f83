//! What was removed and waits to be freed. Dropping a stream of millions of entries, or a database of millions of keys, at
//! once would hold up everyone; here it is taken apart and freed a piece at a time between turns. Never holds anything that
//! can still be seen.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::state::entries::{Entries, Span};
use crate::state::group::Group;
use crate::state::idempotence::Forgotten;
use crate::state::keyspace::{Cleared, Value};
use crate::state::pending::Pel;
use crate::state::stream::Stream;

/// Pieces to free. A piece is small (about a span of blocks or a node of a pending list).
#[derive(Default)]
pub struct Garbage {
    entries: VecDeque<Entries>,
    spans: Vec<Arc<Span>>,
    pels: VecDeque<Pel>,
    forgotten: Vec<Forgotten>,
    groups: Vec<Group>,
    /// All groups of a stream.
    group_maps: Vec<BTreeMap<Box<[u8]>, Arc<Group>>>,
    strings: Vec<Vec<u8>>,
    databases: Vec<Cleared>,
}

impl std::fmt::Debug for Garbage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Garbage").field("empty", &self.is_empty()).finish_non_exhaustive()
    }
}

/// What has fewer parts than this is freed where it is removed.
const SMALL: u64 = 1000;

/// Strings of fewer bytes are freed where they are removed.
const SMALL_STRING_BYTES: usize = 1 << 20;

/// Groups taken out of a stream that was removed, and keys out of a database, at a time.
const GROUPS_PER_PIECE: usize = 16;
const KEYS_PER_PIECE: usize = 100;

impl Garbage {
    /// Takes a removed value.
    pub fn value(&mut self, value: Value) {
        match value {
            Value::Stream(stream) => self.stream(*stream),
            Value::String(bytes) => {
                if let Some(bytes) = Arc::into_inner(bytes)
                    && bytes.capacity() >= SMALL_STRING_BYTES
                {
                    self.strings.push(bytes);
                }
            }
        }
    }

    /// Takes a removed stream apart. Groups that a snapshot still holds are freed by it.
    fn stream(&mut self, mut stream: Stream) {
        self.pel(stream.take_delays());
        self.entries(stream.entries);
        if let Some(mut all) = stream.idempotence.and_then(Arc::into_inner) {
            self.forgotten(all.take());
        }
        if stream.groups.len() > GROUPS_PER_PIECE {
            self.group_maps.push(stream.groups);
        } else {
            stream.groups.into_values().filter_map(Arc::into_inner).for_each(|group| self.group(group));
        }
    }

    /// Takes a removed group.
    pub fn group(&mut self, mut group: Group) {
        group.take_lists().into_iter().for_each(|list| self.pel(list));
        let rows = group.work().map_or(0, |work| work.ledger.len());
        if (group.consumer_count() as u64).max(group.held().known()).max(rows) >= SMALL {
            self.groups.push(group);
        }
    }

    /// Takes removed entries.
    pub fn entries(&mut self, entries: Entries) {
        if entries.len() >= SMALL {
            self.entries.push_back(entries);
        }
    }

    /// Takes spans of blocks that were trimmed off.
    pub fn trimmed(&mut self, spans: Vec<Arc<Span>>) {
        self.spans.extend(spans);
    }

    /// Takes a removed pending list.
    pub fn pel(&mut self, pel: Pel) {
        if pel.len() >= SMALL || pel.is_passing() {
            self.pels.push_back(pel);
        }
    }

    /// Takes messages that a stream has forgotten as a whole.
    pub fn forgotten(&mut self, forgotten: Forgotten) {
        if !forgotten.is_empty() {
            self.forgotten.push(forgotten);
        }
    }

    /// Takes all that was in a database.
    pub fn database(&mut self, cleared: Cleared) {
        self.databases.push(cleared);
    }

    /// Nothing left?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
            && self.spans.is_empty()
            && self.pels.is_empty()
            && self.forgotten.is_empty()
            && self.groups.is_empty()
            && self.group_maps.is_empty()
            && self.strings.is_empty()
            && self.databases.is_empty()
    }

    /// Frees one piece; answers whether there may be more.
    pub fn free_one(&mut self) -> bool {
        if self.spans.pop().is_some() {
        } else if let Some(pel) = self.pels.front_mut() {
            if pel.pop_node().is_none() {
                self.pels.pop_front();
            }
        } else if let Some(entries) = self.entries.front_mut() {
            if entries.pop_span().is_none() {
                self.entries.pop_front();
            }
        } else if let Some(forgotten) = self.forgotten.last_mut() {
            if !forgotten.free_one() {
                self.forgotten.pop();
            }
        } else if let Some(group) = self.groups.last_mut() {
            if !group.free_some() {
                self.groups.pop();
            }
        } else if let Some(map) = self.group_maps.last_mut() {
            let some: Vec<Arc<Group>> =
                std::iter::from_fn(|| map.pop_first()).map(|(_, group)| group).take(GROUPS_PER_PIECE).collect();
            if map.is_empty() {
                self.group_maps.pop();
            }
            some.into_iter().filter_map(Arc::into_inner).for_each(|group| self.group(group));
        } else if let Some(bytes) = self.strings.last_mut() {
            // Pages go back from the end; what is cut off is never looked at.
            let kept = bytes.len().saturating_sub(SMALL_STRING_BYTES);
            bytes.truncate(kept);
            bytes.shrink_to_fit();
            if kept == 0 {
                self.strings.pop();
            }
        } else if let Some(database) = self.databases.last_mut() {
            let some: Vec<Value> = database.take_values(KEYS_PER_PIECE).collect();
            if database.is_empty() {
                self.databases.pop();
            }
            some.into_iter().for_each(|value| self.value(value));
        }
        !self.is_empty()
    }
}
