//! RETAIN acked: an entry goes as soon as every group is done with it, that is, every group's position is at or past it
//! and it is pending or held in none. Without groups nothing goes.
//!
//! Whatever can make an entry free is a record, and this runs right behind it. An acknowledgement or a delivery without
//! one, and an addition (behind positions that lie in the future), name their entries: each is looked up in every
//! group, and what is free behind no kept entry is one `Trim`. A command that deletes what it acknowledges deletes
//! first: that is more than trimming, as XINFO and events show. What may free any number of entries (a range is
//! acknowledged, a group is destroyed or moved, a consumer removed, the setting made) is followed by a *sweep*: the
//! part of the stream between the front that is done and the slowest position is walked in slices, the first at once
//! and the rest one a turn. Sweeps are not stored: applying such a record notes one, also at a restart, and so does
//! restoring a stream with this setting.

use std::ops::Bound::{Excluded, Unbounded};

use smallvec::SmallVec;

use super::Engine;
use crate::id::StreamId;
use crate::record::{At, Ids, Record};
use crate::state::keyspace::Value;
use crate::state::stream::Stream;

/// Entries that one slice of a sweep looks at.
const SLICE: usize = 500;

type Found = SmallVec<[StreamId; 8]>;

impl Engine {
    /// The stream under a key if it retains by acknowledgement and has groups.
    fn retiring(&self, at: At<'_>) -> Option<&Stream> {
        match &self.state.db(at.db).get_any(at.key)?.value {
            Value::Stream(stream) if stream.retention.acked && !stream.groups.is_empty() => Some(stream),
            _ => None,
        }
    }

    /// Removes what a record has made free. Call after it was applied.
    #[inline]
    pub(super) fn retire(&mut self, record: &Record<'_>) {
        if !self.state.retires {
            return;
        }
        match record {
            // Added behind every group's position, it is done with from the beginning.
            Record::Add { at, id, .. } => {
                let Some(stream) = self.retiring(*at) else { return };
                if stream.is_free(*id) {
                    self.remove_free(*at, [*id].into_iter().collect());
                }
            }
            Record::Acknowledge { at, ids, .. }
            | Record::Drop { at, ids, .. }
            | Record::Give { at, ids, no_ack: true, .. } => {
                let Some(stream) = self.retiring(*at) else { return };
                let free: Found = ids.iter().filter(|&id| stream.is_free(id) && stream.entries.contains(id)).collect();
                self.remove_free(*at, free);
            }
            Record::WorkRow { at, row, acknowledges: true, .. } => {
                let Some(stream) = self.retiring(*at) else { return };
                if stream.is_free(row.entry) && stream.entries.contains(row.entry) {
                    self.remove_free(*at, [row.entry].into_iter().collect());
                }
            }
            Record::Deliver { at, after, last, no_ack: true, .. } => {
                let Some(stream) = self.retiring(*at) else { return };
                let from = after.next().unwrap_or(StreamId::MAX);
                let given = stream.entries.range(from, *last).map(|entry| entry.id);
                let free: Found = given.filter(|&id| stream.is_free(id)).collect();
                self.remove_free(*at, free);
            }
            Record::AcknowledgeRange { at, .. }
            | Record::DropRange { at, .. }
            | Record::RetentionSettings { at, .. }
            | Record::GroupCreate { at, .. }
            | Record::GroupPosition { at, .. }
            | Record::GroupDestroy { at, .. }
            | Record::ConsumerDelete { at, .. } => {
                self.sweep(at.db, at.key);
            }
            _ => {}
        }
    }

    /// Removes these entries, which are free, and whatever else stands before all that is not.
    fn remove_free(&mut self, at: At<'_>, mut free: Found) {
        if free.is_empty() {
            return;
        }
        let Some(stream) = self.retiring(at) else { return };
        let done = stream.done_below();
        let front = stream.first_id() < done;
        free.retain(|id| *id >= done);
        if front {
            self.emit(&Record::Trim { at, before: done });
        }
        if !free.is_empty() {
            free.sort_unstable();
            free.dedup();
            self.emit(&Record::TrimEntries { at, ids: Ids::Slice(&free) });
        }
        self.note_trim(at);
    }

    /// Does one slice of the sweep of a key, if one is noted.
    fn sweep(&mut self, db: usize, key: &[u8]) {
        let Some(&(from, to)) = self.state.sweeps.get(&(db, key.into())) else { return };
        let at = At { db, key };
        let Some(stream) = self.retiring(at) else {
            self.state.set_sweep(db, key, None);
            return;
        };
        let done = stream.done_below();
        let front = stream.entries.first_id().is_some_and(|first| first < done);
        let end = stream.slowest_position().unwrap_or(StreamId::MIN).min(to);
        let (mut free, mut looked, mut next) = (Found::new(), 0, None);
        if from.max(done) <= end {
            for entry in stream.entries.range(from.max(done), end).take(SLICE) {
                looked += 1;
                next = entry.id.next();
                if stream.is_free(entry.id) {
                    free.push(entry.id);
                }
            }
        }
        let rest = next.filter(|_| looked == SLICE).map(|next| (next, to));
        self.state.set_sweep(db, key, rest);
        if front {
            self.emit(&Record::Trim { at, before: done });
        }
        if !free.is_empty() {
            self.emit(&Record::TrimEntries { at, ids: Ids::Slice(&free) });
        }
        if front || !free.is_empty() {
            self.note_trim(at);
        }
    }

    /// Goes on with one sweep. Call once a turn.
    pub(super) fn sweep_some(&mut self) {
        // In turn: no stream waits until all before it are done.
        let all = &self.state.sweeps;
        let behind = self.swept.take().and_then(|last| all.range((Excluded(last), Unbounded)).next());
        let next = behind.or(all.first_key_value()).map(|(place, _)| place.clone());
        if let Some((db, key)) = &next {
            self.sweep(*db, key);
        }
        self.swept = next;
    }
}
