//! XWORK HOLD and RELEASE: entries that nobody is given until someone says so.

use super::{Name, text, unknown_option, work_of};
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::Cx;
use crate::engine::decide::claim::stream_and_group;
use crate::engine::decide::options::{self, IdList};
use crate::engine::fault::Fault;
use crate::id::StreamId;
use crate::resp::encode::Reply;
use crate::state::ledger::{Outcome, Row};

/// The reason of a hold that was given none.
const HELD: &[u8] = b"held";

/// `[REASON text] IDS n id …`
fn read<'a>(args: Args<'a>, name: &str, with_reason: bool) -> Result<(&'a [u8], IdList), Fault> {
    let (mut reason, mut at) = (HELD, 4);
    while at < args.len() {
        let (word, Some(value)) = (args.get(at), args.try_get(at + 1)) else {
            return Err(unknown_option(args.get(at), name));
        };
        if with_reason && is(word, "REASON") {
            reason = text("REASON", value, 1)?;
            at += 2;
        } else if is(word, "IDS") {
            let n = parse::integer(value).filter(|&n| n > 0).ok_or(Fault::IDS_NOT_POSITIVE)?;
            let words = args.from(at + 2);
            if n as usize != words.len() {
                return Err(Fault::IDS_MISMATCH);
            }
            let mut ids = options::ids(words)?;
            ids.sort_unstable();
            ids.dedup();
            return Ok((reason, ids));
        } else {
            return Err(unknown_option(word, name));
        }
    }
    Err(Fault::owned(format!("ERR XWORK {name} needs IDS n id …")))
}

/// XWORK HOLD key group [REASON text] IDS n id …
pub fn hold(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(2), args.get(3));
    stream_and_group(cx, key, name)?;
    let (reason, ids) = read(args, "HOLD", true)?;
    let now_ms = cx.now_ms();
    let mut changed = 0;
    for id in ids {
        let both @ (_, group) = stream_and_group(cx, key, name)?;
        let Some(pending) = group.pel().get(id).filter(|_| group.work_hold(id) != Some(reason)) else { continue };
        let work = Name::of(work_of(both, id, None, now_ms));
        let consumer: Vec<u8> = group.owner_name(pending.consumer).unwrap_or_default().into();
        let row = Row::new(StreamId::MIN, Outcome::Held, id);
        let row = Row { work: work.id(), consumer: &consumer, delivery: pending.deliveries, reason, ..row };
        cx.hold_work(key, name, &pending, row);
        changed += 1;
    }
    reply.int(changed);
    Ok(())
}

/// XWORK RELEASE key group IDS n id …
pub fn release(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(2), args.get(3));
    stream_and_group(cx, key, name)?;
    let (_, ids) = read(args, "RELEASE", false)?;
    let now_ms = cx.now_ms();
    let mut changed = 0;
    for id in ids {
        let both @ (_, group) = stream_and_group(cx, key, name)?;
        let work = group.work_or_none();
        let pending = group.pel().get(id).filter(|_| work.ledger.hold(id).is_some());
        let wid = Name::of(work_of(both, id, None, now_ms));
        // A contradiction may be about an entry that is pending no more.
        if pending.is_none() && !work.ledger.is_in_conflict(wid.id(), &work.policy, now_ms) {
            continue;
        }
        let delivery = pending.map_or(0, |pending| pending.deliveries);
        let row = Row { work: wid.id(), delivery, ..Row::new(StreamId::MIN, Outcome::Released, id) };
        cx.note_work(key, name, row);
        if let Some(pending) = &pending {
            cx.give_back_work(key, name, pending, 0);
        }
        changed += 1;
    }
    reply.int(changed);
    Ok(())
}
