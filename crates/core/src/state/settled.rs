//! What trimming with ACKED knows of a stream from before, so that it does not look again at every entry that is pending.
//!
//! An entry is *free* when every group's position is at or past it and it is pending and held in none. Up to the ID `up_to` every
//! entry was looked at and is not free, but for those noted in `freed`, which were pending or held and became free since (or were
//! acknowledged by one of several groups: that is looked up when they are taken). So a call costs what it removes and what
//! it sees for the first time.
//!
//! This is a memory of work done, no part of the state: it is not in snapshots, and what clients see does not depend on
//! it, but that `~` goes on from there. It is kept right by [`note`], behind every record, and goes with its key.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::StreamId;
use crate::record::Record;
use crate::state::group::Group;
use crate::state::keyspace::{Slot, State, Value};
use crate::state::pending::Range;
use crate::state::stream::Stream;

/// Most IDs in `freed`; of more the greater half is looked for again.
const FREED_MAX: usize = 1 << 16;

/// Pending entries without an entry in the stream that are walked over before the list is searched again.
const STEPS_MAX: usize = 32;

/// An entry that may have become free is looked up in every group, which takes as long as looking at so many in order.
const LOOKS_PER_LOOKUP: usize = 8;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    up_to: StreamId,
    freed: BTreeSet<StreamId>,
}

/// What [`State::find_free`] came to.
#[derive(Debug)]
pub struct Found {
    /// Free entries, the oldest ones.
    pub free: Vec<StreamId>,
    /// There are no more than these, unless as many were found as were asked for.
    pub is_all: bool,
    /// How many entries were looked at for it.
    pub looks: usize,
}

impl Settled {
    /// Nothing is known from this ID on.
    fn back_to(&mut self, from: StreamId) {
        self.up_to = self.up_to.min(from.prev().unwrap_or(StreamId::MIN));
        self.freed.split_off(&from);
    }

    /// An entry was pending and is no more.
    fn note_freed(&mut self, id: StreamId) {
        if id <= self.up_to {
            self.freed.insert(id);
            if self.freed.len() > FREED_MAX
                && let Some(&middle) = self.freed.iter().nth(FREED_MAX / 2)
            {
                self.back_to(middle);
            }
        }
    }

    /// The oldest free entries up to `end`, at most `most`. Looks at no more than `looks` entries of which nothing is
    /// known, and at a part of that of those that may have become free.
    fn find_free(&mut self, stream: &Stream, end: StreamId, most: u64, looks: usize) -> Found {
        let mut found = Found { free: Vec::new(), is_all: true, looks: 0 };
        let free = &mut found.free;
        let Some(last) = stream.entries.last_id() else { return found };
        // Nothing beyond the position of the slowest group is free, and what is still to come is not known.
        let end = end.min(stream.slowest_position().unwrap_or(StreamId::MAX)).min(last);
        let mut lookups_left = (looks / LOOKS_PER_LOOKUP).max(1);
        while (free.len() as u64) < most
            && let Some(&id) = self.freed.first().filter(|&&id| id <= end)
        {
            if lookups_left == 0 {
                found.is_all = false;
                return found;
            }
            lookups_left -= 1;
            found.looks += LOOKS_PER_LOOKUP;
            self.freed.remove(&id);
            if stream.is_free(id) && stream.entries.contains(id) {
                free.push(id);
            }
        }
        if free.len() as u64 == most || self.up_to >= end {
            return found;
        }
        let mut holders = Holders { groups: &stream.groups, holder: None };
        let from = self.up_to.next().unwrap_or(StreamId::MAX);
        for (looked, entry) in stream.entries.range(from, end).enumerate() {
            if free.len() as u64 == most || looked == looks {
                found.is_all = looked < looks;
                return found;
            }
            found.looks += 1;
            self.up_to = entry.id;
            if !holders.has(entry.id) && !stream.is_held(entry.id) {
                free.push(entry.id);
            }
        }
        self.up_to = end;
        found
    }
}

/// The groups' pending lists, asked for IDs in ascending order. One list usually answers many times in a row.
struct Holders<'a> {
    groups: &'a BTreeMap<Box<[u8]>, std::sync::Arc<Group>>,
    /// The list that had the last ID that any had, and where it stands.
    holder: Option<(Range<'a>, StreamId)>,
}

impl Holders<'_> {
    fn has(&mut self, id: StreamId) -> bool {
        if let Some((range, at)) = &mut self.holder {
            for _ in 0..STEPS_MAX {
                if *at >= id {
                    break;
                }
                match range.next() {
                    Some(pending) => *at = pending.id,
                    None => break,
                }
            }
            if *at == id {
                return true;
            }
        }
        self.holder = self.groups.values().find_map(|group| {
            let mut range = group.pel().range(id);
            (range.next()?.id == id).then_some((range, id))
        });
        self.holder.is_some()
    }
}

impl State {
    /// The oldest free entries of a stream up to `end`, at most `most`; the caller removes them. Looks at no more than
    /// `looks` entries of which nothing is known from before. If that is not all there is to find, the next call goes on
    /// behind it.
    pub fn find_free(&mut self, db: usize, key: &[u8], end: StreamId, most: u64, looks: usize) -> Found {
        let mut settled = self.db_mut(db).settled.remove(key).unwrap_or_default();
        let Some(Slot { value: Value::Stream(stream), .. }) = self.db(db).get_any(key) else {
            return Found { free: Vec::new(), is_all: true, looks: 0 };
        };
        let found = settled.find_free(stream, end, most, looks);
        if settled.up_to > StreamId::MIN {
            self.db_mut(db).settled.insert(key.into(), settled);
        }
        found
    }
}

impl State {
    /// What [`State::find_free`] found is not removed now: it is found again.
    pub fn put_back_free(&mut self, db: usize, key: &[u8], free: &[StreamId]) {
        if let Some(settled) = self.db_mut(db).settled.get_mut(key) {
            free.iter().for_each(|&id| settled.note_freed(id));
        }
    }
}

/// A record was applied.
#[inline]
pub fn note(state: &mut State, record: &Record<'_>) {
    let (at, from) = match record {
        Record::Acknowledge { at, ids, .. } | Record::Drop { at, ids, .. } => {
            if let Some(settled) = state.db_mut(at.db).settled.get_mut(at.key) {
                ids.iter().for_each(|id| settled.note_freed(id));
            }
            return;
        }
        Record::WorkRow { at, row, acknowledges: true, .. } => {
            if let Some(settled) = state.db_mut(at.db).settled.get_mut(at.key) {
                settled.note_freed(row.entry);
            }
            return;
        }
        // What was held and is handed out without becoming pending. What is new stands behind the group's position.
        Record::Give { at, no_ack: true, ids, .. } => {
            if let Some(settled) = state.db_mut(at.db).settled.get_mut(at.key) {
                ids.iter().for_each(|id| settled.note_freed(id));
            }
            return;
        }
        Record::AcknowledgeRange { at, from, .. } | Record::DropRange { at, from, .. } => (at, Some(*from)),
        // What it passes from there on without making it pending becomes free unseen.
        Record::GroupPosition { at, position, .. } | Record::GroupCreate { at, position, .. } => (at, position.next()),
        // It may free anything; XSETID may let new entries stand where it was looked before.
        Record::GroupDestroy { at, .. } | Record::ConsumerDelete { at, .. } | Record::SetStream { at, .. } => {
            (at, Some(StreamId::MIN))
        }
        _ => return,
    };
    let settled = &mut state.db_mut(at.db).settled;
    if let (Some(known), Some(from)) = (settled.get_mut(at.key), from) {
        known.back_to(from);
        if known.up_to == StreamId::MIN {
            settled.remove(at.key);
        }
    }
}
