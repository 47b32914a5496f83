//! How much there is in a state or a snapshot, for people.

use impel_core::state::keyspace::{State, Value};

/// How much there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Keys, also those whose time is over.
    pub keys: u64,
    /// Streams among them.
    pub streams: u64,
    /// Entries in them.
    pub entries: u64,
    /// Groups.
    pub groups: u64,
    /// Entries pending in groups.
    pub pending: u64,
}

impl Counts {
    pub(super) fn add(&mut self, value: &Value) {
        self.keys += 1;
        if let Value::Stream(stream) = value {
            self.streams += 1;
            self.entries += stream.entries.len();
            self.groups += stream.groups.len() as u64;
            self.pending += stream.groups.values().map(|group| group.pel().len()).sum::<u64>();
        }
    }

    pub(super) fn plus(mut self, other: Counts) -> Counts {
        self.keys += other.keys;
        self.streams += other.streams;
        self.entries += other.entries;
        self.groups += other.groups;
        self.pending += other.pending;
        self
    }
}

/// All databases together.
pub(super) fn total(databases: &[(usize, Counts)]) -> Counts {
    databases.iter().fold(Counts::default(), |sum, (_, counts)| sum.plus(*counts))
}

/// By database; those without keys are left out.
pub(super) fn counts(state: &State) -> Vec<(usize, Counts)> {
    let mut found = Vec::new();
    for (number, db) in state.databases().iter().enumerate().filter(|(_, db)| !db.is_empty()) {
        let mut counts = Counts::default();
        db.iter().for_each(|(_, slot)| counts.add(&slot.value));
        found.push((number, counts));
    }
    found
}
