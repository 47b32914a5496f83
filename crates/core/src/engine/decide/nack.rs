//! XNACK: pending entries are given back, without being acknowledged. Nobody has them then, and anyone may claim them at
//! once, or after a delay.

use std::collections::BTreeMap;

use super::claim::stream_and_group;
use super::options::IdList;
use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::fault::Fault;
use crate::engine::{Cx, Engine};
use crate::id::StreamId;
use crate::record::{At, Claimed, Claims, Record};
use crate::resp::encode::Reply;
use crate::state::keyspace::Value;

/// The greatest delivery count: what FATAL sets.
const DELIVERIES_MAX: u64 = i64::MAX as u64;

/// What giving back makes of the delivery count.
#[derive(Clone, Copy)]
enum Mode {
    /// As if it had not been delivered the last time.
    Silent,
    /// It was tried and failed.
    Fail,
    /// It can never succeed.
    Fatal,
}

impl Mode {
    fn parse(word: &[u8]) -> Result<Mode, Fault> {
        if is(word, "SILENT") {
            Ok(Mode::Silent)
        } else if is(word, "FAIL") {
            Ok(Mode::Fail)
        } else if is(word, "FATAL") {
            Ok(Mode::Fatal)
        } else {
            Err(Fault::XNACK_MODE)
        }
    }

    fn apply(self, deliveries: u64) -> u64 {
        match self {
            Mode::Silent => deliveries.saturating_sub(1),
            Mode::Fail => deliveries,
            Mode::Fatal => DELIVERIES_MAX,
        }
    }
}

struct Options {
    ids: IdList,
    retry_count: Option<u64>,
    force: bool,
    /// DELAY as Unix ms of its end; 0 = at once.
    due_ms: Option<u64>,
}

fn options(cx: &Cx<'_>, args: Args<'_>, from: usize) -> Result<Options, Fault> {
    let mut options = Options { ids: IdList::new(), retry_count: None, force: false, due_ms: None };
    let mut block = None;
    let mut at = from;
    while at < args.len() {
        let (word, value) = (args.get(at), args.try_get(at + 1));
        match value {
            _ if is(word, "FORCE") => {
                options.force = true;
                at += 1;
            }
            Some(n) if is(word, "IDS") => {
                let n = parse::integer(n).filter(|&n| n > 0).ok_or(Fault::XNACK_NUMIDS)? as u64;
                let start = at + 2;
                if n > (args.len() - start) as u64 {
                    return Err(Fault::XNACK_MISMATCH);
                }
                at = start + n as usize;
                block = Some(args.slice(start, at));
            }
            Some(count) if is(word, "RETRYCOUNT") => {
                let count = parse::integer(count).and_then(|n| u64::try_from(n).ok());
                options.retry_count = Some(count.ok_or(Fault::XNACK_RETRYCOUNT)?);
                at += 2;
            }
            Some(ms) if is(word, "DELAY") => {
                let ms = parse::integer(ms).and_then(|n| u64::try_from(n).ok()).ok_or(Fault::XNACK_DELAY)?;
                let due_ms = cx.now_ms().checked_add(ms).filter(|&due_ms| due_ms < i64::MAX as u64);
                options.due_ms = Some(if ms == 0 { 0 } else { due_ms.ok_or(Fault::XNACK_DELAY)? });
                at += 2;
            }
            _ => return Err(Fault::concat(&[b"ERR Unrecognized XNACK option '", word, b"'"])),
        }
    }
    options.ids = super::options::ids(block.ok_or(Fault::SYNTAX)?)?;
    Ok(options)
}

/// XNACK key group SILENT|FAIL|FATAL IDS n id … [RETRYCOUNT n] [FORCE] [DELAY ms]
pub fn xnack(cx: &mut Cx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Fault> {
    let (key, name) = (args.get(1), args.get(2));
    stream_and_group(cx, key, name)?;
    let mode = Mode::parse(args.get(3))?;
    let options = options(cx, args, 4)?;
    let (stream, group) = stream_and_group(cx, key, name)?;
    let ordered = options.ids.windows(2).all(|pair| pair[0] < pair[1]);
    // An ID that is named again finds what its first mention has made of it.
    let mut seen: BTreeMap<StreamId, u64> = BTreeMap::new();
    let mut given_back = Vec::new();
    for &id in &options.ids {
        if group.work_hold(id).is_some() {
            continue;
        }
        let before = seen.get(&id).copied().or_else(|| group.pel().get(id).map(|pending| pending.deliveries));
        let after = match (before, options.retry_count) {
            (None, _) if !options.force || !stream.entries.contains(id) => continue,
            (_, Some(count)) => count,
            (before, None) => mode.apply(before.unwrap_or(0)),
        };
        if !ordered {
            seen.insert(id, after);
        }
        given_back.push(Claimed { id, deliveries: after });
    }
    reply.count(given_back.len() as u64);
    // A failed delivery waits as the group's policy says, unless the caller knows better.
    let policy = group.work().map(|work| work.policy.clone()).filter(|policy| policy.backoff_base_ms != 0);
    let policy = policy.filter(|_| matches!(mode, Mode::Fail) && options.due_ms.is_none());
    let now_ms = cx.now_ms();
    let due_ms = |claim: &Claimed| match &policy {
        Some(policy) => now_ms.saturating_add(policy.backoff_ms(claim.deliveries)),
        None => options.due_ms.unwrap_or(0),
    };
    for claims in given_back.chunk_by(|a, b| due_ms(a) == due_ms(b)) {
        let Ok((_, group)) = stream_and_group(cx, key, name) else { break };
        let (at, first_order, due_ms) = (cx.at(key), group.next_release(), due_ms(&claims[0]));
        cx.emit(&Record::GiveBack { at, group: name, first_order, due_ms, claims: Claims::Slice(claims) });
    }
    Ok(())
}

impl Engine {
    /// Releases deferred entries of a stream whose time has come, at most `limit`; answers how many.
    pub(in crate::engine) fn release_due(&mut self, at: At<'_>, now_ms: u64, limit: usize) -> usize {
        let mut due: Vec<(Box<[u8]>, u64, Vec<Claimed>)> = Vec::new();
        let mut left = limit;
        if let Some(Value::Stream(stream)) = self.state.db(at.db).get_any(at.key).map(|slot| &slot.value) {
            for (name, group) in &stream.groups {
                let ids = group.due(now_ms, left);
                let claims: Vec<Claimed> =
                    ids.filter_map(|id| Some(Claimed { id, deliveries: group.pel().get(id)?.deliveries })).collect();
                left -= claims.len();
                if !claims.is_empty() {
                    due.push((name.clone(), group.next_release(), claims));
                }
            }
        }
        for (group, first_order, claims) in due {
            let claims = Claims::Slice(&claims);
            self.emit(&Record::GiveBack { at, group: &group, first_order, due_ms: 0, claims });
        }
        self.state.refresh_timer(at);
        limit - left
    }
}
