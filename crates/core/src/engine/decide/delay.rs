//! DELAY and NOTBEFORE of XADD and XADDM: groups do not get the entry before a time.

use crate::command::args::Args;
use crate::command::parse::{self, is};
use crate::engine::fault::Fault;
use crate::engine::{Cx, Engine};
use crate::id::StreamId;
use crate::record::{At, Record};
use crate::state::keyspace::Value;

/// If DELAY or NOTBEFORE stands at `at`, reads it into `due_ms` (Unix ms); answers how many words it took.
pub(super) fn take(due_ms: &mut Option<u64>, args: Args<'_>, at: usize, now_ms: u64) -> Result<usize, Fault> {
    let (word, Some(value)) = (args.get(at), args.try_get(at + 1)) else { return Ok(0) };
    let number = || parse::integer(value).and_then(|n| u64::try_from(n).ok());
    let ms = if is(word, "DELAY") {
        let due_ms = number().and_then(|ms| now_ms.checked_add(ms)).filter(|&ms| ms <= i64::MAX as u64);
        due_ms.ok_or(Fault::XADD_DELAY)?
    } else if is(word, "NOTBEFORE") {
        number().ok_or(Fault::XADD_NOT_BEFORE)?
    } else {
        return Ok(0);
    };
    if due_ms.replace(ms).is_some() {
        return Err(Fault::XADD_DELAY_TWICE);
    }
    Ok(2)
}

/// Delays an entry that was just added, unless its time has come already.
pub(super) fn settle(cx: &mut Cx<'_>, key: &[u8], id: StreamId, due_ms: Option<u64>) {
    if let Some(due_ms) = due_ms.filter(|&due_ms| due_ms > cx.now_ms()) {
        let at = cx.at(key);
        cx.emit(&Record::Delay { at, id, due_ms });
    }
}

impl Engine {
    /// Notes that delayed entries of a stream are due, at most `limit`; answers how many.
    pub(in crate::engine) fn end_delays(&mut self, at: At<'_>, now_ms: u64, limit: usize) -> usize {
        let due = match self.state.db(at.db).get_any(at.key).map(|slot| &slot.value) {
            Some(Value::Stream(stream)) => stream.delays().and_then(|all| all.due(now_ms, limit)),
            _ => None,
        };
        let Some((count, (due_ms, id))) = due else { return 0 };
        self.emit(&Record::Due { at, due_ms, id });
        count
    }
}
