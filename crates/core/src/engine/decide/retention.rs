//! The bounds that an operator has set for a stream, as XADD meets them.

use super::trim;
use crate::engine::Cx;
use crate::engine::fault::Fault;
use crate::state::stream::{LET_GO_MAX, Stream};

/// May so many entries of so many bytes be added? A stream that discards new ones says no when it is full.
#[inline]
pub fn admit(stream: &Stream, entries: u64, bytes: u64) -> Result<(), Fault> {
    let retention = &stream.retention;
    if !retention.discard_new {
        return Ok(());
    }
    let over = |bound: u64, there: u64, more: u64| bound > 0 && there.saturating_add(more) > bound;
    let full = |name: &str, bound: u64| {
        Fault::owned(format!("ERR The stream is full: {name} {bound} is reached and it discards new entries"))
    };
    if over(retention.max_len, stream.entries.len(), entries) {
        return Err(full("MAXLEN", retention.max_len));
    }
    if over(retention.max_bytes, stream.entries.payload_bytes(), bytes) {
        return Err(full("MAXBYTES", retention.max_bytes));
    }
    Ok(())
}

/// Removes what is beyond the bounds of the stream under `key`: as much as one turn has time for, and the rest in the next.
pub fn enforce(cx: &mut Cx<'_>, key: &[u8]) {
    let now_ms = cx.now_ms();
    let most = if cx.may_postpone() { cx.steps(LET_GO_MAX) } else { LET_GO_MAX };
    let beyond = |stream: &Stream| stream.last_beyond(now_ms).map(|last| (stream.let_go_up_to(last, most), last));
    let Some((part, last)) = cx.stream(key).ok().flatten().and_then(beyond) else { return };
    trim::remove_front(cx, key, part);
    cx.note_trim(key);
    if part < last {
        cx.take_steps(most);
        cx.note_due(key);
    }
}
