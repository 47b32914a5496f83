//! A redrive under way: entries of a dead-letter stream go back to where they came from, so many in a second.

use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_id, put_uint};

/// How far it has come, and how fast it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redrive {
    /// Entries in a second, not 0.
    pub per_s: u64,
    /// How many are to go yet, not 0.
    pub left: u64,
    /// The next one stands at or behind this ID …
    pub next: StreamId,
    /// … and none behind this one: what comes back meanwhile is not for this redrive.
    pub last: StreamId,
    /// Since when (Unix ms) it goes at this pace …
    pub since_ms: u64,
    /// … and how many have gone since.
    pub gone: u64,
}

impl Redrive {
    /// When the next one goes (Unix ms).
    pub fn due_ms(&self) -> u64 {
        let after_ms = (u128::from(self.gone) * 1000).div_ceil(u128::from(self.per_s.max(1)));
        self.since_ms.saturating_add(u64::try_from(after_ms).unwrap_or(u64::MAX))
    }

    /// How many may go now. After a pause it does not make up for lost time.
    pub fn allowed(&mut self, now_ms: u64) -> u64 {
        let due_ms = self.due_ms();
        if due_ms > now_ms {
            return 0;
        }
        if now_ms - due_ms > 1000 {
            (self.since_ms, self.gone) = (now_ms, 0);
        }
        let passed = u128::from(now_ms - self.since_ms) * u128::from(self.per_s) / 1000 + 1;
        u64::try_from(passed).unwrap_or(u64::MAX).saturating_sub(self.gone).min(self.left)
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_uint(out, self.per_s);
        put_uint(out, self.left);
        put_id(out, self.next);
        put_id(out, self.last);
        put_uint(out, self.since_ms);
        put_uint(out, self.gone);
    }

    /// Reads what [`Redrive::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Redrive, Corrupt> {
        const WHAT: &str = "redrive of a stream";
        let redrive = Redrive {
            per_s: reader.uint(WHAT)?,
            left: reader.uint(WHAT)?,
            next: reader.id(WHAT)?,
            last: reader.id(WHAT)?,
            since_ms: reader.uint(WHAT)?,
            gone: reader.uint(WHAT)?,
        };
        if redrive.per_s == 0 || redrive.left == 0 { Err(Corrupt { what: WHAT }) } else { Ok(redrive) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_its_pace() {
        let start_ms = 1_000_000;
        let mut redrive = Redrive {
            per_s: 300,
            left: 100_000,
            next: StreamId::MIN,
            last: StreamId::MAX,
            since_ms: start_ms,
            gone: 0,
        };
        for now_ms in start_ms..start_ms + 10_000 {
            assert_eq!(redrive.allowed(now_ms) > 0, redrive.due_ms() <= now_ms);
            let n = redrive.allowed(now_ms);
            (redrive.gone, redrive.left) = (redrive.gone + n, redrive.left - n);
        }
        assert_eq!(100_000 - redrive.left, 3000);
        assert_eq!(redrive.allowed(start_ms + 60_000), 1, "after a pause");
    }
}
