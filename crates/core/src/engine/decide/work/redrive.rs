//! XWORK REDRIVE: dead letters go back to the stream and the group they came from, at once or so many in a second.
//!
//! Only that group gets them. An entry that its stream still has is given to it again, before what is new and as if for
//! the first time. One that is gone from there is added anew; other groups that have come to the end pass over it in the
//! same step, and where one has not, the letter stays. It also stays where the group does not name this stream as its
//! DEADLETTER: what stands in a letter is what anyone could have written there. Where the group has the entry pending
//! already there is nothing to give: the letter goes, and whoever works on the entry or holds it is left alone.

use std::sync::Arc;

use super::{MS_MAX, number, status, unknown_option};
use crate::command::args::{Args, OwnedArgs};
use crate::command::parse::{self, is};
use crate::engine::blocked::Signal;
use crate::engine::decide::{retention, xadd::Wanted};
use crate::engine::events::EventClass;
use crate::engine::fault::Fault;
use crate::engine::{Cx, Engine};
use crate::id::StreamId;
use crate::limits::REDRIVE_PER_TURN;
use crate::record::{At, Claimed, Claims, Fields, Ids, Record};
use crate::resp::encode::Reply;
use crate::state::keyspace::Value;
use crate::state::ledger::{Outcome, Row};
use crate::state::redrive::Redrive;
use crate::state::stream::Stream;

/// Where a letter came from, in the order in which it says so behind the fields of the entry.
const ORIGIN: [&[u8]; 6] = [b"_stream", b"_group", b"_id", b"_deliveries", b"_consumer", b"_reason"];

/// What a part of a redrive came to.
#[derive(Clone, Copy, Default)]
struct Part {
    moved: u64,
    looked: u64,
    /// Where to go on; `None`: that was all.
    next: Option<StreamId>,
}

/// XWORK REDRIVE dlq [COUNT n] [PERSEC n]
pub fn redrive(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let key = args.get(2);
    let stream = cx.stream(key)?;
    let (mut count, mut per_s) = (u64::MAX, None);
    for at in (3..args.len()).step_by(2) {
        match (args.get(at), args.try_get(at + 1)) {
            (word, Some(value)) if is(word, "COUNT") => count = number("COUNT", value, 1, i64::MAX as u64)?,
            (word, Some(value)) if is(word, "PERSEC") => per_s = Some(number("PERSEC", value, 0, MS_MAX)?),
            (word, _) => return Err(unknown_option(word, "REDRIVE")),
        }
    }
    let (len, last) = stream.map_or((0, None), |stream| (stream.entries.len(), stream.entries.last_id()));
    let before = stream.and_then(|stream| stream.redrive);
    let (at, now_ms) = (cx.at(key), cx.now_ms());
    if let Some(per_s) = per_s {
        let left = count.min(len);
        let last = last.filter(|_| per_s != 0);
        let new = last.map(|last| Redrive { per_s, left, next: StreamId::MIN, last, since_ms: now_ms, gone: 0 });
        if new.is_some() || before.is_some() {
            cx.emit(&Record::Redrive { at, redrive: new });
        }
        status(reply, 2, if per_s == 0 { "STOPPED" } else { "STARTED" });
        reply.count(if per_s == 0 { before.map_or(0, |before| before.left) } else { left });
        return Ok(());
    }
    let mut progress = cx.progress.take().unwrap_or_else(|| {
        let mut progress = Box::<crate::session::Progress>::default();
        progress.last = last.unwrap_or(StreamId::MIN);
        progress
    });
    let looks = if cx.may_postpone() { REDRIVE_PER_TURN } else { u64::MAX };
    let want = count - progress.found as u64;
    let part = cx.engine().redrive_some(at, progress.next, progress.last, want, looks, now_ms);
    cx.depends_on_all();
    progress.found += part.moved as usize;
    progress.counts[0] += part.looked - part.moved;
    if let Some(next) = part.next.filter(|_| (progress.found as u64) < count) {
        progress.next = next;
        cx.postpone_with(args, progress);
        return Ok(());
    }
    status(reply, 3, "REDRIVEN");
    reply.count(progress.found as u64);
    reply.count(progress.counts[0]);
    Ok(())
}

/// A letter that can go back.
struct Letter {
    stream: Vec<u8>,
    group: Vec<u8>,
    /// The entry that it was made of.
    id: StreamId,
    fields: OwnedArgs,
}

impl Letter {
    fn read(stream: &Stream, id: StreamId) -> Option<Letter> {
        let entry = stream.entries.get(id)?;
        let fields: Vec<(&[u8], &[u8])> = entry.fields().collect();
        let (own, origin) = fields.split_at_checked(fields.len().checked_sub(ORIGIN.len())?)?;
        if !origin.iter().map(|(name, _)| *name).eq(ORIGIN) || own.is_empty() {
            return None;
        }
        let id = parse::id(origin[2].1).ok()?;
        let fields = OwnedArgs::new(own.iter().flat_map(|&(name, value)| [name, value]));
        Some(Letter { stream: origin[0].1.into(), group: origin[1].1.into(), id, fields })
    }
}

impl Engine {
    fn stream_of(&self, at: At<'_>) -> Option<&Stream> {
        match self.state.db(at.db).get_any(at.key).map(|slot| &slot.value) {
            Some(Value::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    /// Moves letters between two IDs back to where they came from: so many, having looked at no more than `looks`.
    fn redrive_some(&mut self, at: At<'_>, from: StreamId, last: StreamId, want: u64, looks: u64, now_ms: u64) -> Part {
        let mut part = Part { next: Some(from), ..Part::default() };
        while part.moved < want && part.looked < looks {
            let next = part.next.and_then(|from| {
                let stream = self.stream_of(at)?;
                Some(stream.entries.range(from, last).next()?.id)
            });
            let Some(id) = next else {
                part.next = None;
                break;
            };
            part.looked += 1;
            part.next = id.next();
            part.moved += u64::from(self.redrive_one(at, id, now_ms));
        }
        part
    }

    /// Moves one letter back; answers whether it could.
    fn redrive_one(&mut self, from: At<'_>, id: StreamId, now_ms: u64) -> bool {
        let Some(letter) = self.stream_of(from).and_then(|stream| Letter::read(stream, id)) else { return false };
        let at = At { db: from.db, key: &letter.stream };
        let lives = self.state.db(at.db).get(at.key, now_ms).is_some();
        let Some(stream) = self.stream_of(at).filter(|_| lives) else { return false };
        let Some(group) = stream.group(&letter.group) else { return false };
        let work = group.work_or_none();
        if work.policy.dead_letter.as_deref() != Some(from.key) {
            return false;
        }
        if group.pel().contains(letter.id) {
            self.take_out(from, id);
            return true;
        }
        let row = Row { reason: b"redrive", ..Row::new(work.ledger.next_id(now_ms), Outcome::Released, letter.id) };
        let settled = work.ledger.settlement(letter.id, &work.policy, now_ms);
        let wid = settled.map_or(row.work.text().into_owned(), |row| row.work.text().into_owned());
        let row = Row { work: crate::state::ledger::WorkId::parse(&wid), ..row };
        if stream.entries.contains(letter.id) {
            let (position, entries_read) = (group.last_delivered, group.entries_read);
            let is_done = group.is_done(letter.id);
            self.emit(&Record::WorkRow { at, group: &letter.group, row, acknowledges: false });
            if is_done {
                let holds = [Claimed { id: letter.id, deliveries: 0 }];
                let holds = Claims::Slice(&holds);
                self.emit(&Record::Hold { at, group: &letter.group, position, entries_read, holds });
                self.blocked.signal(at.db, at.key, Signal::Held);
            }
        } else if !self.add_for(at, &letter, now_ms) {
            return false;
        } else {
            self.emit(&Record::WorkRow { at, group: &letter.group, row, acknowledges: false });
        }
        self.take_out(from, id);
        true
    }

    /// Takes a letter out of its stream.
    fn take_out(&mut self, from: At<'_>, id: StreamId) {
        self.emit(&Record::DeleteEntries { at: from, ids: Ids::Slice(&[id]) });
        self.notify(EventClass::Stream, "xdel", from.db, from.key);
    }

    /// Adds the entry of a letter anew, for its group alone; answers whether it could.
    fn add_for(&mut self, at: At<'_>, letter: &Letter, now_ms: u64) -> bool {
        let Some(stream) = self.stream_of(at) else { return false };
        let fields = letter.fields.args();
        let at_end = stream.groups.iter().all(|(name, group)| {
            **name == *letter.group || stream.entries.last_id().is_none_or(|last| group.last_delivered >= last)
        });
        let id = Wanted::Auto.after(stream.last_id, now_ms);
        let (Ok(id), true, Ok(())) = (id, at_end, retention::admit(stream, 1, fields.total_bytes() as u64)) else {
            return false;
        };
        let others: Vec<(Box<[u8]>, Arc<_>)> = stream
            .groups
            .iter()
            .filter(|(name, _)| ***name != *letter.group)
            .map(|(n, g)| (n.clone(), g.clone()))
            .collect();
        let trims = stream.retention.trims();
        self.emit(&Record::Add { at, id, fields: Fields::Args(fields) });
        for (name, group) in others {
            let Some(stream) = self.stream_of(at) else { break };
            let (position, first) = (group.last_delivered, stream.first_id());
            let entries_read = stream.entries_read_after(position, group.entries_read, id, first);
            drop(group);
            self.emit(&Record::GroupPosition { at, group: &name, position: id, entries_read });
        }
        self.notify(EventClass::Stream, "xadd", at.db, at.key);
        if trims {
            self.state.note_due(at);
        }
        true
    }

    /// Goes on with the redrive of a stream, as far as its pace allows; answers how many letters were looked at.
    pub(in crate::engine) fn go_on_redriving(&mut self, at: At<'_>, now_ms: u64) -> usize {
        let Some(mut redrive) = self.stream_of(at).and_then(|stream| stream.redrive) else { return 0 };
        let allowed = redrive.allowed(now_ms);
        if allowed == 0 {
            return 0;
        }
        let part = self.redrive_some(at, redrive.next, redrive.last, allowed, REDRIVE_PER_TURN, now_ms);
        redrive.left -= part.moved;
        redrive.gone += part.moved;
        let next = part.next.filter(|_| redrive.left > 0);
        let redrive = next.map(|next| Redrive { next, ..redrive });
        self.emit(&Record::Redrive { at, redrive });
        part.looked as usize
    }
}
