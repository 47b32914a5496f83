//! What an operator has set about how long a stream keeps its entries, and what follows from it for a stream as it is.
//!
//! Nothing here changes anything: bounds are found by rank, by bytes and by age in time that does not grow with the
//! stream, and what goes is recorded as an effect (`Record::Trim`, `Record::TrimEntries`).

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_uint};
use crate::state::stream::Stream;

/// Bounds of a stream; 0 = no such bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retention {
    /// Most entries.
    pub max_len: u64,
    /// Most bytes of fields and values of all entries.
    pub max_bytes: u64,
    /// Most milliseconds between the time in an entry's ID and now.
    pub max_age_ms: u64,
    /// An entry goes as soon as every group is done with it.
    pub acked: bool,
    /// A full stream refuses entries, instead of removing its oldest.
    pub discard_new: bool,
    /// The bounds remove also what `acked` would keep.
    pub force: bool,
}

impl Retention {
    const ACKED: u8 = 1;
    const DISCARD_NEW: u8 = 2;
    const FORCE: u8 = 4;

    /// Is there a bound by which entries go?
    pub fn trims(&self) -> bool {
        (self.force || !self.acked) && (self.max_age_ms > 0 || (!self.discard_new && self.max_len | self.max_bytes > 0))
    }

    /// Do entries go by their age?
    pub fn ages(&self) -> bool {
        self.max_age_ms > 0 && (self.force || !self.acked)
    }

    /// Appends the settings; nothing if there are none.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if *self == Retention::default() {
            return;
        }
        put_uint(out, self.max_len);
        put_uint(out, self.max_bytes);
        put_uint(out, self.max_age_ms);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        out.push(
            flag(self.acked, Self::ACKED) | flag(self.discard_new, Self::DISCARD_NEW) | flag(self.force, Self::FORCE),
        );
    }

    /// Reads what [`Retention::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Retention, Corrupt> {
        const WHAT: &str = "retention of a stream";
        let (max_len, max_bytes, max_age_ms) = (reader.uint(WHAT)?, reader.uint(WHAT)?, reader.uint(WHAT)?);
        let flags = reader.byte(WHAT)?;
        if flags > Self::ACKED | Self::DISCARD_NEW | Self::FORCE {
            return Err(Corrupt { what: WHAT });
        }
        let has = |flag: u8| flags & flag != 0;
        Ok(Retention {
            max_len,
            max_bytes,
            max_age_ms,
            acked: has(Self::ACKED),
            discard_new: has(Self::DISCARD_NEW),
            force: has(Self::FORCE),
        })
    }
}

fn after(id: StreamId) -> StreamId {
    id.next().unwrap_or(StreamId::MAX)
}

impl Stream {
    /// Every group is done with all entries below this ID: its position is past them and none is pending or held. `0-0` if there
    /// is no group.
    pub fn done_below(&self) -> StreamId {
        let done = self.groups.values().map(|group| {
            let given = after(group.last_delivered);
            let kept = [group.pel().first(), group.held().first()].into_iter().flatten().min();
            kept.map_or(given, |kept| kept.min(given))
        });
        done.min().unwrap_or(StreamId::MIN)
    }

    /// The position of the slowest group; `None` if there is no group.
    pub fn slowest_position(&self) -> Option<StreamId> {
        self.groups.values().map(|group| group.last_delivered).min()
    }

    /// Entries up to this ID, it included, are beyond the bounds at `now_ms`; `None` if none is.
    pub fn last_beyond(&self, now_ms: u64) -> Option<StreamId> {
        let retention = &self.retention;
        if !retention.trims() {
            return None;
        }
        let entries = &self.entries;
        let first = entries.first_id()?;
        let mut last = StreamId::MIN;
        if !retention.discard_new {
            let surplus = if retention.max_len > 0 { entries.len().saturating_sub(retention.max_len) } else { 0 };
            if surplus > 0 {
                last = entries.nth(surplus - 1)?;
            }
            let excess =
                if retention.max_bytes > 0 { entries.payload_bytes().saturating_sub(retention.max_bytes) } else { 0 };
            if excess > 0 {
                last = last.max(entries.last_of_bytes(excess)?);
            }
        }
        if retention.ages() && now_ms >= retention.max_age_ms {
            last = last.max(StreamId::new(now_ms - retention.max_age_ms, u64::MAX));
        }
        (last >= first).then_some(last)
    }

    /// When entries are beyond the bounds by time alone (Unix ms); `None` if none ever will be. What is too long or too large
    /// is so at once: a part of what was to go was left for later turns.
    pub fn trims_at_ms(&self) -> Option<u64> {
        let retention = &self.retention;
        if !retention.trims() {
            return None;
        }
        let is_over = |most: u64, is: u64| most > 0 && is > most;
        let too_long = is_over(retention.max_len, self.entries.len());
        let too_large = is_over(retention.max_bytes, self.entries.payload_bytes());
        if !retention.discard_new && (too_long || too_large) {
            return Some(1);
        }
        match self.entries.first_id() {
            Some(first) if retention.ages() => first.ms.checked_add(retention.max_age_ms),
            _ => None,
        }
    }
}
