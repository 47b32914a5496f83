//! Entries that were delivered often enough: they go to the dead-letter stream of their group, or on hold where it has
//! none. That is one step: the entry is in one of the two places at any moment.

use std::io::Write;

use super::{Name, emit, work_of};
use crate::command::args::OwnedArgs;
use crate::engine::Cx;
use crate::engine::decide::claim::stream_and_group;
use crate::engine::decide::xadd::Wanted;
use crate::id::StreamId;
use crate::limits::WORK_TEXT_MAX_BYTES;
use crate::record::{Ids, Record};
use crate::state::ledger::{Outcome, Row};
use crate::state::pending::Pending;

/// The reason of what was delivered as often as the policy allows. Behind it stands the last one that a FAIL gave, if any did.
const MAX_DELIVERIES: &[u8] = b"max-deliveries";

/// What became of an entry.
pub(in crate::engine::decide) enum Sent {
    /// It is in the dead-letter stream, under this ID.
    Away(StreamId),
    /// It is on hold: there is no such stream, or it takes no more.
    OnHold,
}

/// Sends a pending entry that is in the stream to where those go that are given up.
pub(in crate::engine::decide) fn letter(
    cx: &mut Cx<'_>,
    key: &[u8],
    name: &[u8],
    pending: &Pending,
    reason: &[u8],
) -> Sent {
    let now_ms = cx.now_ms();
    let Ok(both @ (stream, group)) = stream_and_group(cx, key, name) else { return Sent::OnHold };
    let consumer: Vec<u8> = group.owner_name(pending.consumer).unwrap_or_default().into();
    let work = Name::of(work_of(both, pending.id, None, now_ms));
    let row = Row {
        work: work.id(),
        consumer: &consumer,
        delivery: pending.deliveries,
        reason,
        ..Row::new(StreamId::MIN, Outcome::Dead, pending.id)
    };
    // Renamed, the stream may have come to bear the name of where its letters go. There they would be given out as work.
    let to = group.work_or_none().policy.dead_letter.clone().filter(|to| **to != *key);
    let letter = to.and_then(|to| {
        let fields = fields_of(stream.entries.get(pending.id)?.fields(), key, name, pending, &consumer, reason);
        Some((to, fields))
    });
    let Some((to, fields)) = letter else {
        cx.hold_work(key, name, pending, row);
        return Sent::OnHold;
    };
    let Ok(emission) = emit::prepare(cx, &to, Wanted::Auto, fields.args()) else {
        cx.hold_work(key, name, pending, row);
        return Sent::OnHold;
    };
    cx.note_work(key, name, row);
    emit::add(cx, &emission);
    let at = cx.at(key);
    cx.emit(&Record::Drop { at, group: name, ids: Ids::Slice(&[pending.id]) });
    Sent::Away(emission.id)
}

/// The fields of the entry, and behind them where it came from.
fn fields_of<'e>(
    fields: impl Iterator<Item = (&'e [u8], &'e [u8])>,
    key: &[u8],
    name: &[u8],
    pending: &Pending,
    consumer: &[u8],
    reason: &[u8],
) -> OwnedArgs {
    let mut all = OwnedArgs::default();
    for (field, value) in fields {
        all.push(field);
        all.push(value);
    }
    let (mut id, mut deliveries) = (Vec::new(), Vec::new());
    pending.id.write(&mut id);
    write!(deliveries, "{}", pending.deliveries).expect("a vector takes all that is written");
    let origin: [(&[u8], &[u8]); 6] = [
        (b"_stream", key),
        (b"_group", name),
        (b"_id", &id),
        (b"_deliveries", &deliveries),
        (b"_consumer", consumer),
        (b"_reason", reason),
    ];
    for (field, value) in origin {
        all.push(field);
        all.push(value);
    }
    all
}

fn max_deliveries(cx: &Cx<'_>, key: &[u8], name: &[u8], pending: &Pending) -> Vec<u8> {
    let mut reason = MAX_DELIVERIES.to_vec();
    let group = stream_and_group(cx, key, name).map(|(_, group)| group);
    if let Some(last) = group.ok().and_then(|group| group.work_or_none().ledger.failure(pending.id)) {
        reason.extend_from_slice(b": ");
        reason.extend_from_slice(last);
        reason.truncate(WORK_TEXT_MAX_BYTES);
    }
    reason
}

/// Sends away what a claim has met that was delivered often enough.
pub(in crate::engine::decide) fn letter_all(cx: &mut Cx<'_>, key: &[u8], name: &[u8], spent: &[Pending]) {
    for pending in spent {
        let reason = max_deliveries(cx, key, name, pending);
        letter(cx, key, name, pending, &reason);
    }
}

/// Takes from their owners what may not be handed out yet because of its backoff, until that is over.
pub(in crate::engine::decide) fn defer_all(cx: &mut Cx<'_>, key: &[u8], name: &[u8], early: &[(Pending, u64)]) {
    for (pending, due_ms) in early {
        cx.give_back_work(key, name, pending, *due_ms);
    }
}
