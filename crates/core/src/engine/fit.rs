//! May a record be applied to a state that lacks something which came before it? For a log with a hole, when what is left
//! of it is put together again; a start never asks.
//!
//! A record is an effect with absolute values, so most stand by themselves. Those do not that presuppose what may have been
//! lost: a delivery goes on from the group's position, a part of a string needs the rest of it. What does not fit is left
//! out, so nothing becomes delivered or acknowledged that nobody was given: at worst a group gets entries again.
//!
//! Nothing here changes anything.

use std::collections::BTreeSet;

use crate::id::StreamId;
use crate::record::{At, Record};
use crate::state::group::Group;
use crate::state::keyspace::{State, Value};
use crate::state::stream::Stream;

/// Keys whose whole contents are known, as they were set behind the hole.
#[derive(Debug, Default)]
pub struct Known {
    all: bool,
    keys: BTreeSet<(usize, Box<[u8]>)>,
}

impl Known {
    fn has(&self, at: At<'_>) -> bool {
        self.all || self.keys.contains(&(at.db, at.key.into()))
    }

    fn add(&mut self, at: At<'_>) {
        if !self.all {
            self.keys.insert((at.db, at.key.into()));
        }
    }

    /// Takes note of a record that was applied.
    pub fn note(&mut self, record: &Record<'_>) {
        match record {
            Record::SetString { at, .. } | Record::Delete { at } | Record::StreamCreate { at } => self.add(*at),
            Record::Rename { at, to } => {
                let to = At { db: at.db, key: to };
                self.copied(*at, to);
                self.add(*at);
            }
            Record::Copy { at, to } => self.copied(*at, *to),
            Record::Move { at, db } => {
                self.copied(*at, At { db: *db, key: at.key });
                self.add(*at);
            }
            Record::Flush { db: None } => self.all = true,
            // What was known of the one is now true of the other.
            Record::SwapDb { .. } if !self.all => self.keys.clear(),
            _ => {}
        }
    }

    fn copied(&mut self, from: At<'_>, to: At<'_>) {
        if self.has(from) {
            self.add(to);
        } else {
            self.keys.remove(&(to.db, to.key.into()));
        }
    }
}

/// May the record be applied? If not, why not. `next` is the record behind it in the same commit.
pub fn fits(state: &State, record: &Record<'_>, next: Option<&Record<'_>>, known: &Known) -> Result<(), &'static str> {
    let is_there = |at: &At<'_>| state.db(at.db).get_any(at.key).is_some();
    let demand = |is_so: bool, otherwise: &'static str| if is_so { Ok(()) } else { Err(otherwise) };
    match record {
        Record::SetString { .. }
        | Record::Delete { .. }
        | Record::Flush { .. }
        | Record::SwapDb { .. }
        | Record::StreamCreate { .. } => Ok(()),
        Record::WriteString { at, .. } => demand(known.has(*at), "the rest of the string is not known"),
        Record::Expire { at, .. } | Record::Rename { at, .. } | Record::Copy { at, .. } | Record::Move { at, .. } => {
            demand(is_there(at), NO_KEY)
        }
        Record::Add { at, id, .. } if is_there(at) => {
            demand(*id > stream(state, at)?.last_id, "the stream is beyond this ID")
        }
        Record::Add { .. } => Ok(()),
        Record::SetStream { at, last_id, .. } => {
            let last = stream(state, at)?.entries.last_id();
            demand(last.is_none_or(|last| last <= *last_id), "the stream holds entries beyond this ID")
        }
        Record::DeleteEntries { at, .. }
        | Record::Trim { at, .. }
        | Record::TrimEntries { at, .. }
        | Record::IdempotenceSettings { at, .. }
        | Record::Remember { at, .. }
        | Record::Forget { at, .. }
        | Record::Duplicates { at, .. }
        | Record::RetentionSettings { at, .. }
        | Record::GroupCreate { at, .. }
        | Record::Redrive { at, .. }
        | Record::Due { at, .. } => stream(state, at).map(|_| ()),
        Record::Delay { at, id, .. } => demand(stream(state, at)?.entries.contains(*id), "there is no such entry"),
        Record::GroupPosition { at, group: name, .. }
        | Record::GroupDestroy { at, group: name }
        | Record::ConsumerCreate { at, group: name, .. }
        | Record::ConsumerDelete { at, group: name, .. }
        | Record::ConsumerSeen { at, group: name, .. }
        | Record::Claim { at, group: name, .. }
        | Record::Acknowledge { at, group: name, .. }
        | Record::GiveBack { at, group: name, .. }
        | Record::GroupOptions { at, group: name, .. }
        | Record::AcknowledgeRange { at, group: name, .. }
        | Record::Drop { at, group: name, .. }
        | Record::DropRange { at, group: name, .. }
        | Record::Give { at, group: name, .. }
        | Record::WorkPolicy { at, group: name, .. }
        | Record::WorkRow { at, group: name, .. }
        | Record::WorkForget { at, group: name, .. }
        | Record::ScanStart { at, group: name, .. } => group(state, at, name).map(|_| ()),
        Record::GiveBackAll { at, group: name, consumer, .. } => {
            demand(group(state, at, name)?.1.find(consumer).is_some(), "there is no such consumer")
        }
        Record::Deliver { at, group: name, after, .. } => {
            demand(group(state, at, name)?.1.last_delivered == *after, "the group stands at another position")
        }
        Record::Hold { at, group: name, position, holds, .. } => {
            let (stream, group) = group(state, at, name)?;
            let mut told: BTreeSet<StreamId> = holds.iter().map(|hold| hold.id).collect();
            if let Some(Record::Give { group, ids, .. }) = next
                && group == name
            {
                told.extend(ids.iter());
            }
            demand(passes_over_none(stream, group, *position, &told), "the group stands at another position")
        }
    }
}

const NO_KEY: &str = "there is no such key";

fn stream<'s>(state: &'s State, at: &At<'_>) -> Result<&'s Stream, &'static str> {
    match state.db(at.db).get_any(at.key).map(|slot| &slot.value) {
        Some(Value::Stream(stream)) => Ok(stream),
        Some(Value::String(_)) => Err("the key does not hold a stream"),
        None => Err(NO_KEY),
    }
}

fn group<'s>(state: &'s State, at: &At<'_>, name: &[u8]) -> Result<(&'s Stream, &'s Group), &'static str> {
    let stream = stream(state, at)?;
    Ok((stream, stream.group(name).ok_or("there is no such group")?))
}

/// Would a group that moves to `position` leave no entry behind that it neither has nor is told of?
fn passes_over_none(stream: &Stream, group: &Group, position: StreamId, told: &BTreeSet<StreamId>) -> bool {
    let Some(from) = group.last_delivered.next() else { return true };
    let is_known = |id: StreamId| told.contains(&id) || group.pel().contains(id) || group.held().contains(id);
    from > position || stream.entries.range(from, position).all(|entry| is_known(entry.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::args::OwnedArgs;
    use crate::engine::apply::{Context, apply};
    use crate::record::{Claimed, Claims, Fields, Ids};
    use crate::state::entries::NodeLimits;

    const S: At<'_> = At { db: 0, key: b"s" };

    fn id(ms: u64) -> StreamId {
        StreamId::new(ms, 0)
    }

    fn put(state: &mut State, record: &Record<'_>) {
        let context = Context { position: 0, node_limits: NodeLimits { max_entries: 100, max_bytes: 4096 } };
        apply(state, record, &context);
    }

    fn fields() -> OwnedArgs {
        let mut fields = OwnedArgs::default();
        [&b"f"[..], b"v"].iter().for_each(|part| fields.push(part));
        fields
    }

    /// Entries 1, 2, 3, 9 and a group at 2.
    fn state() -> State {
        let mut state = State::new(1);
        let fields = fields();
        for ms in [1, 2, 3, 9] {
            put(&mut state, &Record::Add { at: S, id: id(ms), fields: Fields::Args(fields.args()) });
        }
        put(&mut state, &Record::GroupCreate { at: S, group: b"g", position: id(2), entries_read: None });
        put(&mut state, &Record::SetString { at: At { db: 0, key: b"string" }, expire_ms: 0, value: b"v" });
        state
    }

    #[test]
    fn what_presupposes_what_is_not_there_does_not_fit() {
        let (state, fields, known) = (state(), fields(), Known::default());
        let may = |record: &Record<'_>| fits(&state, record, None, &known).is_ok();
        let add = |at, ms| Record::Add { at, id: id(ms), fields: Fields::Args(fields.args()) };
        assert!(may(&add(S, 10)) && may(&add(At { db: 1, key: b"s" }, 1)));
        assert!(!may(&add(S, 9)) && !may(&add(At { db: 0, key: b"string" }, 99)));
        let deliver = |group, after| Record::Deliver {
            at: S,
            group,
            consumer: b"c",
            after: id(after),
            last: id(9),
            entries_read: None,
            no_ack: false,
            now_ms: 1,
        };
        assert!(may(&deliver(b"g", 2)));
        assert!(!may(&deliver(b"g", 3)) && !may(&deliver(b"other", 2)));
        assert!(!may(&Record::SetStream { at: S, last_id: id(8), max_deleted: id(0), entries_added: 4 }));
        assert!(
            !may(&Record::Delay { at: S, id: id(4), due_ms: 99 })
                && may(&Record::Delay { at: S, id: id(9), due_ms: 99 })
        );
        assert!(!may(&Record::Expire { at: At { db: 2, key: b"s" }, expire_ms: 7 }));
        assert!(!may(&Record::GiveBackAll { at: S, group: b"g", consumer: b"c", first_order: 1 }));
    }

    #[test]
    fn a_group_moves_on_only_over_what_it_is_told_of() {
        let (state, known) = (state(), Known::default());
        let holds = [Claimed { id: id(3), deliveries: 0 }];
        let hold = |position| Record::Hold {
            at: S,
            group: b"g",
            position: id(position),
            entries_read: None,
            holds: Claims::Slice(&holds),
        };
        let ids = [id(9)];
        let give = Record::Give { at: S, group: b"g", consumer: b"c", no_ack: true, now_ms: 1, ids: Ids::Slice(&ids) };
        assert!(fits(&state, &hold(3), None, &known).is_ok());
        assert!(fits(&state, &hold(9), None, &known).is_err(), "entry 9 would be passed over");
        assert!(fits(&state, &hold(9), Some(&give), &known).is_ok());
    }

    #[test]
    fn a_part_of_a_string_fits_where_all_of_it_is_known() {
        let (a, b) = (At { db: 0, key: b"a" }, At { db: 0, key: b"b" });
        let (state, mut known) = (state(), Known::default());
        let may =
            |known: &Known, at| fits(&state, &Record::WriteString { at, offset: 1, bytes: b"x" }, None, known).is_ok();
        assert!(!may(&known, a));
        known.note(&Record::SetString { at: a, expire_ms: 0, value: b"v" });
        known.note(&Record::Rename { at: a, to: b"b" });
        assert!(may(&known, b) && may(&known, a), "what was renamed away is known to be gone");
        known.note(&Record::Copy { at: At { db: 3, key: b"unknown" }, to: b });
        assert!(!may(&known, b));
        known.note(&Record::Flush { db: None });
        assert!(may(&known, b));
    }
}
