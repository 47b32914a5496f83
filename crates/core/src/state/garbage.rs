//! What was removed and waits to be freed. Dropping a stream of millions of entries at once would hold up everyone;
//! here it is taken apart and freed a piece at a time between turns. Never holds anything that can still be seen.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::state::entries::{Entries, Span};
use crate::state::idempotence::Forgotten;
use crate::state::keyspace::Value;
use crate::state::pending::Pel;
use crate::state::stream::Stream;

/// Pieces to free. A piece is small (about a span of blocks or a node of a pending list).
#[derive(Default)]
pub struct Garbage {
    entries: VecDeque<Entries>,
    spans: Vec<Arc<Span>>,
    pels: VecDeque<Pel>,
    forgotten: Vec<Forgotten>,
    values: Vec<Value>,
}

impl std::fmt::Debug for Garbage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Garbage").field("empty", &self.is_empty()).finish_non_exhaustive()
    }
}

/// Streams of fewer entries than this are freed where they are removed.
const SMALL: u64 = 1000;

impl Garbage {
    /// Takes a removed value.
    pub fn value(&mut self, value: Value) {
        if let Value::Stream(stream) = value {
            self.stream(*stream);
        }
    }

    /// Takes a removed stream apart. Groups that a snapshot still holds are freed by it.
    fn stream(&mut self, stream: Stream) {
        self.entries(stream.entries);
        if let Some(mut all) = stream.idempotence.and_then(Arc::into_inner) {
            self.forgotten(all.take());
        }
        for group in stream.groups.into_values() {
            if let Some(mut group) = Arc::into_inner(group) {
                self.pel(group.take_pel());
            }
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
        if pel.len() >= SMALL {
            self.pels.push_back(pel);
        }
    }

    /// Takes messages that a stream has forgotten as a whole.
    pub fn forgotten(&mut self, forgotten: Forgotten) {
        if !forgotten.is_empty() {
            self.forgotten.push(forgotten);
        }
    }

    /// Takes values whose number is large: each is looked at when its turn comes.
    pub fn values(&mut self, values: impl Iterator<Item = Value>) {
        self.values.extend(values);
    }

    /// Nothing left?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
            && self.spans.is_empty()
            && self.pels.is_empty()
            && self.forgotten.is_empty()
            && self.values.is_empty()
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
        } else if let Some(value) = self.values.pop() {
            self.value(value);
            for value in self.values.split_off(self.values.len().saturating_sub(100)) {
                self.value(value);
            }
        }
        !self.is_empty()
    }
}
