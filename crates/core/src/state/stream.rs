//! A stream: its entries, counters and groups, and how far each group is behind.
//!
//! Two ways of counting lag live side by side. `exact` asks the blocks how many entries stand after the group's
//! position and always knows. `compat` follows Redis's counters, which sometimes cannot tell; its `entries-read` is
//! what clients see in both ways. The rules are those of Redis 8.2 and later.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, end_sections, put_bytes, put_id, put_section, put_uint};
use crate::state::delays::Delays;
use crate::state::entries::Entries;
use crate::state::group::Group;
use crate::state::idempotence::{Idempotence, IdempotenceSettings};
use crate::state::pending::Pel;
use crate::state::redrive::Redrive;
use crate::state::retention::Retention;

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The entries.
    pub entries: Entries,
    /// Greatest ID ever given out, or set. No deletion lowers it.
    pub last_id: StreamId,
    /// Greatest ID that was deleted one by one (not trimmed).
    pub max_deleted: StreamId,
    /// No entry beyond this ID was ever lost but from the front. At least `max_deleted`, which XSETID may lower.
    pub max_hole: StreamId,
    /// How many entries were ever added.
    pub entries_added: u64,
    /// Groups by name, in byte order.
    pub groups: BTreeMap<Box<[u8]>, Arc<Group>>,
    /// Messages that are recognized when they come again; `None` as long as nothing differs from a new stream's.
    pub idempotence: Option<Arc<Idempotence>>,
    /// How long entries are kept.
    pub retention: Retention,
    /// Its entries, dead letters, are on their way back.
    pub redrive: Option<Redrive>,
    /// Entries that groups do not get before a time; `None` as long as there was none.
    delays: Option<Arc<Delays>>,
}

/// Entries that wait in groups behind their keys of which one turn lets go.
pub const LET_GO_MAX: usize = 1000;

/// Tags of the optional parts of a stream in a snapshot.
mod section {
    pub const IDEMPOTENCE: u8 = 1;
    pub const RETENTION: u8 = 2;
    pub const DELAYS: u8 = 3;
    pub const MAX_HOLE: u8 = 4;
    pub const REDRIVE: u8 = 5;
}

/// A counter of entries after one more. It stays a number that replies and records can show.
pub fn one_more(count: u64) -> u64 {
    count.saturating_add(1).min(i64::MAX as u64)
}

impl Stream {
    /// Memory that the stream takes, in bytes, without the allocator's share.
    pub fn memory_bytes(&self) -> usize {
        let groups = self.groups.iter().map(|(name, group)| size_of::<Box<[u8]>>() + name.len() + group.memory_bytes());
        let idempotence = self.idempotence.as_ref().map_or(0, |all| all.memory_bytes());
        let delays = self.delays.as_ref().map_or(0, |all| all.memory_bytes());
        size_of::<Stream>() + self.entries.memory_bytes() + groups.sum::<usize>() + idempotence + delays
    }

    /// The messages it remembers, to be changed. Copies them first only while a snapshot still holds them.
    pub fn idempotence_mut(&mut self) -> &mut Idempotence {
        Arc::make_mut(self.idempotence.get_or_insert_default())
    }

    /// How long and how many messages it remembers.
    pub fn idempotence_settings(&self) -> IdempotenceSettings {
        self.idempotence.as_ref().map_or_else(Default::default, |all| all.settings())
    }

    /// A group by name.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name).map(Arc::as_ref)
    }

    /// A group by name, to be changed. Copies it first only while a snapshot still holds it.
    pub fn group_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        self.groups.get_mut(name).map(Arc::make_mut)
    }

    /// When something happens to this stream or a group of it by time alone (Unix ms).
    pub fn next_due_ms(&self) -> Option<u64> {
        let group = self.groups.values().filter_map(|group| group.next_timer_ms()).min();
        let message = self.idempotence.as_ref().and_then(|all| all.next_due()).map(|(due_ms, _)| due_ms);
        let delay = self.delays.as_ref().and_then(|all| all.next_due_ms());
        let redrive = self.redrive.map(|redrive| redrive.due_ms());
        [group, message, delay, redrive, self.trims_at_ms()].into_iter().flatten().min()
    }

    /// The entries that groups do not get before a time; `None` if there is none.
    #[inline]
    pub fn delays(&self) -> Option<&Delays> {
        self.delays.as_deref().filter(|all| !all.is_empty())
    }

    /// Groups do not get the entry before `due_ms`.
    pub fn delay(&mut self, id: StreamId, due_ms: u64) {
        if self.entries.contains(id) {
            Arc::make_mut(self.delays.get_or_insert_default()).put(id, due_ms);
        }
    }

    /// Delayed entries are due, in order of their times up to this one.
    pub fn end_delays(&mut self, last: (u64, StreamId)) {
        if let Some(delays) = &mut self.delays {
            Arc::make_mut(delays).end(last);
        }
    }

    /// An entry is gone: nothing waits for it any more.
    #[inline]
    pub fn let_go(&mut self, id: StreamId) {
        if self.delays().is_some() {
            Arc::make_mut(self.delays.get_or_insert_default()).remove(id);
        }
        for group in self.groups.values_mut() {
            if group.held().contains(id) {
                Arc::make_mut(group).let_go(id);
            }
        }
    }

    /// As [`Stream::let_go`] for all entries below an ID. What is left of them is to be freed.
    pub fn let_go_before(&mut self, bound: StreamId, mut free: impl FnMut(Pel)) {
        if self.delays().and_then(Delays::first_id).is_some_and(|first| first < bound) {
            free(Arc::make_mut(self.delays.get_or_insert_default()).remove_before(bound));
        }
        for group in self.groups.values_mut() {
            if group.held().first().is_some_and(|first| first < bound) {
                Arc::make_mut(group).let_go_before(bound).into_iter().for_each(&mut free);
            }
        }
    }

    /// Up to which ID, at most `last`, entries can be let go of without taking more than about `most` out of the lanes in
    /// which they wait: [`LET_GO_MAX`] is what one turn has time for. Those that are delayed go all at once.
    pub fn let_go_up_to(&self, last: StreamId, most: usize) -> StreamId {
        let entries = self.entries.count_in(StreamId::MIN, last);
        if entries <= 1 {
            return last;
        }
        let holders = self.groups.values().filter(|group| group.held().waiting() > 0).count();
        // However many hold something, every turn gets on.
        let most = (most / holders.max(1)).max(1);
        if entries <= most as u64 {
            return last;
        }
        let held = self.groups.values().filter_map(|group| group.held().nth_waiting(most));
        held.filter_map(StreamId::prev).fold(last, StreamId::min)
    }

    /// Does any group let entries wait behind their keys?
    pub fn has_waiting(&self) -> bool {
        self.groups.values().any(|group| group.held().waiting() > 0)
    }

    /// Takes the delays out, for freeing them bit by bit.
    pub fn take_delays(&mut self) -> Pel {
        self.delays.take().and_then(Arc::into_inner).map(|mut delays| delays.take()).unwrap_or_default()
    }

    /// ID of the first entry, `0-0` when there is none.
    pub fn first_id(&self) -> StreamId {
        self.entries.first_id().unwrap_or(StreamId::MIN)
    }

    /// May something at or after `id` have been deleted?
    fn tombstone_after(&self, id: StreamId) -> bool {
        match self.entries.first_id() {
            Some(first) => self.max_deleted > StreamId::MIN && self.max_deleted >= first && self.max_deleted >= id,
            None => false,
        }
    }

    /// How many entries were ever added up to `id`, if the counters tell.
    pub fn added_up_to(&self, id: StreamId) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let Some(first) = self.entries.first_id() else {
            return (id <= self.last_id).then_some(self.entries_added);
        };
        if id > StreamId::MIN && id < self.max_deleted {
            return None;
        }
        if id == self.last_id {
            return Some(self.entries_added);
        }
        if id > self.last_id || self.max_deleted >= first {
            return None;
        }
        // Signed in Redis: XSETID may have put the count below the length, which the caller shows as it is.
        let before = self.entries_added.wrapping_sub(self.entries.len());
        match id.cmp(&first) {
            std::cmp::Ordering::Less => Some(before),
            std::cmp::Ordering::Equal => Some(before.wrapping_add(1)),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// Entries that the group was not given, by Redis's counters; `None` when they cannot tell.
    pub fn lag_compat(&self, group: &Group) -> Option<i64> {
        self.after_position_compat(group).map(|lag| lag.wrapping_add(group.held().len() as i64))
    }

    fn after_position_compat(&self, group: &Group) -> Option<i64> {
        let Some(first) = self.entries.first_id() else { return Some(0) };
        if self.entries_added == 0 {
            return Some(0);
        }
        if group.last_delivered < first && self.max_deleted < first {
            return Some(self.entries.len() as i64);
        }
        if let Some(read) = group.entries_read
            && !self.tombstone_after(group.last_delivered)
        {
            return Some(self.entries_added.wrapping_sub(read) as i64);
        }
        self.added_up_to(group.last_delivered).map(|rank| self.entries_added.wrapping_sub(rank) as i64)
    }

    /// Entries that the group was not given, counted: those after its position, and those it passed over.
    pub fn lag_exact(&self, group: &Group) -> u64 {
        self.entries.count_after(group.last_delivered) + group.held().len()
    }

    /// `entries-read` after the entry `id` is delivered to a group that stood at `position` with `read`.
    #[inline]
    pub fn entries_read_after(
        &self,
        position: StreamId,
        read: Option<u64>,
        id: StreamId,
        first: StreamId,
    ) -> Option<u64> {
        match read {
            Some(read) if position >= first && !self.tombstone_after(position) => Some(one_more(read)),
            _ => self.added_up_to(id),
        }
    }

    /// Does any group hold the entry?
    pub fn is_held(&self, id: StreamId) -> bool {
        self.groups.values().any(|group| group.held().contains(id))
    }

    /// Is every group done with the entry?
    pub fn is_free(&self, id: StreamId) -> bool {
        self.groups.values().all(|group| group.is_done(id))
    }

    /// Is every group done with the entry once it is not pending in the group of that name any more?
    pub fn is_free_without(&self, name: &[u8], id: StreamId) -> bool {
        self.groups.iter().all(|(of, group)| if **of == *name { group.last_delivered >= id } else { group.is_done(id) })
    }

    /// Appends the stream in its canonical form: equal streams, equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_around(out, |out| self.entries.encode(out));
    }

    /// The same with whatever `entries` appends in the place of the entries.
    pub fn encode_around(&self, out: &mut Vec<u8>, entries: impl FnOnce(&mut Vec<u8>)) {
        put_id(out, self.last_id);
        put_id(out, self.max_deleted);
        put_uint(out, self.entries_added);
        entries(out);
        put_uint(out, self.groups.len() as u64);
        for (name, group) in &self.groups {
            put_bytes(out, name);
            group.encode(out);
        }
        put_section(out, section::IDEMPOTENCE, |out| {
            if let Some(all) = &self.idempotence {
                all.encode(out);
            }
        });
        put_section(out, section::RETENTION, |out| self.retention.encode(out));
        put_section(out, section::DELAYS, |out| {
            if let Some(all) = &self.delays {
                all.encode(out);
            }
        });
        put_section(out, section::MAX_HOLE, |out| {
            if self.max_hole > self.max_deleted {
                put_id(out, self.max_hole);
            }
        });
        put_section(out, section::REDRIVE, |out| {
            if let Some(redrive) = &self.redrive {
                redrive.encode(out);
            }
        });
        end_sections(out);
    }

    /// Reads what [`Stream::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Stream, Corrupt> {
        let what = "stream";
        let mut stream = Stream {
            last_id: reader.id(what)?,
            max_deleted: reader.id(what)?,
            entries_added: reader.uint(what)?,
            entries: Entries::decode(reader)?,
            ..Stream::default()
        };
        for _ in 0..reader.count(what)? {
            let name: Box<[u8]> = reader.bytes(what)?.into();
            let group = Arc::new(Group::decode(reader)?);
            if stream.groups.insert(name, group).is_some() {
                return Err(Corrupt { what: "consumer group named twice" });
            }
        }
        stream.max_hole = stream.max_deleted;
        let mut last_tag = 0;
        while let Some((tag, mut part)) = reader.section(what)? {
            if tag <= last_tag {
                return Err(Corrupt { what: "parts of a stream out of order" });
            }
            last_tag = tag;
            match tag {
                section::IDEMPOTENCE => stream.idempotence = Some(Arc::new(Idempotence::decode(&mut part)?)),
                section::RETENTION => stream.retention = Retention::decode(&mut part)?,
                section::DELAYS => stream.delays = Some(Arc::new(Delays::decode(&mut part)?)),
                section::MAX_HOLE => stream.max_hole = part.id(what)?,
                section::REDRIVE => stream.redrive = Some(Redrive::decode(&mut part)?),
                _ => return Err(Corrupt { what: "unknown part of a stream" }),
            }
            if !part.is_empty() {
                return Err(Corrupt { what: "more than a part of a stream holds" });
            }
        }
        stream.check_parts()?;
        Ok(stream)
    }

    /// Do the parts of a stream that was read fit together?
    fn check_parts(&self) -> Result<(), Corrupt> {
        let is_there = |id| self.entries.contains(id);
        let fits = self.entries.last_id().is_none_or(|last| last <= self.last_id)
            && self.max_hole >= self.max_deleted
            && self.groups.values().all(|group| group.held().iter().all(is_there))
            && self.delays().is_none_or(|all| all.range(StreamId::MIN).all(|(id, _)| is_there(id)));
        if fits { Ok(()) } else { Err(Corrupt { what: "parts of a stream that do not fit together" }) }
    }

    /// Every invariant.
    pub fn check(&self) -> Result<(), String> {
        self.entries.check()?;
        if self.max_hole < self.max_deleted {
            return Err(format!(
                "an entry up to {} was deleted, one up to {} was lost",
                self.max_deleted, self.max_hole
            ));
        }
        if let Some(last) = self.entries.last_id()
            && last > self.last_id
        {
            return Err(format!("entry {last} is beyond the last ID {}", self.last_id));
        }
        for (name, group) in &self.groups {
            group.check().map_err(|why| format!("group {}: {why}", name.escape_ascii()))?;
            if let Some(id) = group.held().iter().find(|&id| !self.entries.contains(id)) {
                return Err(format!("group {} holds {id}, which is gone", name.escape_ascii()));
            }
        }
        if let Some(all) = self.delays() {
            all.check()?;
            if let Some((id, _)) = all.range(StreamId::MIN).find(|&(id, _)| !self.entries.contains(id)) {
                return Err(format!("{id} is delayed, and gone"));
            }
        }
        if let Some(all) = &self.idempotence {
            all.check().map_err(|why| format!("remembered messages: {why}"))?;
        }
        Ok(())
    }
}
