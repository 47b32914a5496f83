//! What is set for a group, and what is counted over its life. Both take no place in snapshots while they are as at first.

use std::sync::Arc;

use crate::state::codec::{Corrupt, Reader, put_bytes, put_uint};

/// What XGROUP CREATE and CFGSET set. A part that is not used takes no place in snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupOptions {
    /// Most entries that consumers may have pending together; 0 = no bound.
    pub max_pending: u64,
    /// Most entries that one consumer may have pending; 0 = no bound.
    pub max_pending_per_consumer: u64,
    /// The field by whose value entries are kept in order; never empty.
    pub key_field: Option<Arc<[u8]>>,
}

impl GroupOptions {
    /// Does the group bound what is in flight?
    #[inline]
    pub fn limits(&self) -> bool {
        self.max_pending != 0 || self.max_pending_per_consumer != 0
    }

    /// Appends the options; nothing when none is set.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if *self != GroupOptions::default() {
            put_uint(out, self.max_pending);
            put_uint(out, self.max_pending_per_consumer);
            if let Some(field) = &self.key_field {
                put_bytes(out, field);
            }
        }
    }

    /// Reads what [`GroupOptions::encode`] wrote.
    pub fn decode(mut reader: Reader<'_>) -> Result<GroupOptions, Corrupt> {
        let what = "options of a consumer group";
        if reader.is_empty() {
            return Ok(GroupOptions::default());
        }
        let (max_pending, max_pending_per_consumer) = (reader.uint(what)?, reader.uint(what)?);
        let key_field = if reader.is_empty() { None } else { Some(reader.bytes(what)?.into()) };
        let options = GroupOptions { max_pending, max_pending_per_consumer, key_field };
        let is_fine = options.key_field.as_deref().is_none_or(|field| !field.is_empty());
        if reader.is_empty() && is_fine { Ok(options) } else { Err(Corrupt { what }) }
    }
}

/// Counts over the life of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Entries acknowledged.
    pub acked: u64,
    /// Deliveries of entries that had been delivered before.
    pub redelivered: u64,
}

impl Totals {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        if *self != Totals::default() {
            put_uint(out, self.acked);
            put_uint(out, self.redelivered);
        }
    }

    pub(super) fn decode(mut reader: Reader<'_>) -> Result<Totals, Corrupt> {
        let what = "totals of a consumer group";
        let totals = Totals { acked: reader.uint(what)?, redelivered: reader.uint(what)? };
        let is_fine = totals.acked.max(totals.redelivered) <= i64::MAX as u64;
        if reader.is_empty() && is_fine { Ok(totals) } else { Err(Corrupt { what }) }
    }
}
