//! A ledger as bytes, for snapshots and digests: canonical, so equal ledgers are equal bytes. `docs/formats.md` draws them.

use std::sync::Arc;

use super::{Attempt, Conflicts, Ledger, Row, Rows, note_conflict};
use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_bytes, put_id, put_uint};

const WHAT: &str = "ledger of a consumer group";

impl Ledger {
    /// Appends the ledger; nothing if nothing was ever written to it.
    pub fn encode(&self, out: &mut Vec<u8>, is_pending: impl Fn(StreamId) -> bool) {
        if self.is_new() {
            return;
        }
        put_uint(out, self.rows.first());
        put_id(out, self.last_id);
        put_uint(out, self.len());
        self.rows.range(self.rows.first()).for_each(|(_, row)| row.encode(out));
        put_uint(out, self.conflicts.len() as u64);
        for (work, number) in &self.conflicts {
            put_bytes(out, work);
            put_uint(out, *number);
        }
        let attempts = || self.attempts.iter().filter(|&(&id, _)| is_pending(id));
        put_uint(out, attempts().count() as u64);
        for (&id, attempt) in attempts() {
            put_id(out, id);
            put_uint(out, attempt.began_ms);
            put_uint(out, attempt.delivery);
            put_bytes(out, &attempt.consumer);
            // No work has an empty name.
            put_bytes(out, attempt.work.as_deref().unwrap_or_default());
        }
        put_uint(out, self.holds.len() as u64);
        for (&id, reason) in &self.holds {
            put_id(out, id);
            put_bytes(out, reason);
        }
        let failures = || self.failures.iter().filter(|&(&id, _)| is_pending(id));
        // They came later: without them a ledger is as it always was.
        if failures().next().is_none() {
            return;
        }
        put_uint(out, failures().count() as u64);
        for (&id, reason) in failures() {
            put_id(out, id);
            put_bytes(out, reason);
        }
    }

    /// Reads what [`Ledger::encode`] wrote.
    pub fn decode(mut reader: Reader<'_>) -> Result<Ledger, Corrupt> {
        let corrupt = Err(Corrupt { what: WHAT });
        let mut ledger = Ledger { rows: Rows::from(reader.uint(WHAT)?), ..Ledger::default() };
        let last_id = reader.id(WHAT)?;
        for _ in 0..reader.count(WHAT)? {
            let row = Row::decode(&mut reader)?;
            if (row.id <= ledger.last_id && !ledger.is_empty()) || row.id > last_id {
                return corrupt;
            }
            ledger.last_id = row.id;
            let number = ledger.rows.push(&row);
            ledger.insert_in_index(number, &row);
            note_conflict(&mut ledger.conflicts, number, &row);
        }
        ledger.last_id = last_id;
        // They follow from the rows, and are written to be compared.
        let mut told = Conflicts::new();
        for _ in 0..reader.count(WHAT)? {
            let (work, number) = (reader.bytes(WHAT)?, reader.uint(WHAT)?);
            told.insert(work.into(), number);
        }
        if told != ledger.conflicts {
            return corrupt;
        }
        for _ in 0..reader.count(WHAT)? {
            let (id, began_ms, delivery) = (reader.id(WHAT)?, reader.uint(WHAT)?, reader.uint(WHAT)?);
            let (consumer, work) = (reader.bytes(WHAT)?.into(), reader.bytes(WHAT)?);
            let work = Some(work).filter(|work| !work.is_empty()).map(Arc::from);
            ledger.put_attempt(id, Attempt { began_ms, delivery, consumer, work });
        }
        for _ in 0..reader.count(WHAT)? {
            let (id, reason) = (reader.id(WHAT)?, reader.bytes(WHAT)?);
            ledger.holds.insert(id, reason.into());
        }
        let failures = if reader.is_empty() { None } else { Some(reader.count(WHAT)?) };
        if failures == Some(0) {
            return corrupt;
        }
        for _ in 0..failures.unwrap_or(0) {
            let (id, reason) = (reader.id(WHAT)?, reader.bytes(WHAT)?);
            ledger.failures.insert(id, reason.into());
        }
        if reader.is_empty() { Ok(ledger) } else { corrupt }
    }
}
