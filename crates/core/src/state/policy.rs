//! What a group is told to do with the work that its entries stand for: XWORK POLICY.
//!
//! A group without a policy behaves as this one's default says, and pays nothing for it.

use std::sync::Arc;

use crate::state::codec::{Corrupt, Reader, put_bytes, put_uint};

/// What an XACK without a completion comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing: Redis's XACK.
    #[default]
    Off,
    /// It is noted in the ledger.
    Record,
    /// It is refused.
    Require,
}

impl Evidence {
    /// As XWORK POLICY writes it.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Off => "off",
            Evidence::Record => "record",
            Evidence::Require => "require",
        }
    }
}

/// How long the ledger keeps its rows if nothing else was set: 7 days.
pub const LEDGER_AGE_MS: u64 = 7 * 24 * 3_600_000;

/// How many rows the ledger keeps if nothing else was set.
pub const LEDGER_LEN: u64 = 1_000_000;

/// The policy of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What an XACK without a completion comes to.
    pub evidence: Evidence,
    /// The field whose value is the work id; never empty.
    pub work_field: Option<Arc<[u8]>>,
    /// May an attempt of unknown outcome be made again?
    pub idempotent: bool,
    /// After so many ms without a delivery an entry counts as abandoned; 0 = never.
    pub lease_ms: u64,
    /// How often an entry is delivered at most; 0 = no bound.
    pub max_deliveries: u64,
    /// The stream that gets entries which were delivered too often; never empty.
    pub dead_letter: Option<Arc<[u8]>>,
    /// How long after its first delivery an entry is not given again (ms); doubles with each delivery. 0 = not at all.
    pub backoff_base_ms: u64,
    /// The most that becomes of it (ms).
    pub backoff_max_ms: u64,
    /// After so many ms a consumer that has nothing is removed; 0 = never.
    pub consumer_ttl_ms: u64,
    /// How long the ledger keeps its rows (ms).
    pub ledger_age_ms: u64,
    /// How many rows it keeps.
    pub ledger_len: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Policy::NEW
    }
}

impl Policy {
    /// Nothing was set.
    pub const NEW: Policy = Policy {
        evidence: Evidence::Off,
        work_field: None,
        idempotent: false,
        lease_ms: 0,
        max_deliveries: 0,
        dead_letter: None,
        backoff_base_ms: 0,
        backoff_max_ms: 0,
        consumer_ttl_ms: 0,
        ledger_age_ms: LEDGER_AGE_MS,
        ledger_len: LEDGER_LEN,
    };

    /// How long after delivery number `deliveries` the entry is not handed out again (ms).
    pub fn backoff_ms(&self, deliveries: u64) -> u64 {
        let doublings = u32::try_from(deliveries.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        self.backoff_base_ms.saturating_mul(factor).min(self.backoff_max_ms)
    }

    /// Was the entry delivered as often as may be?
    pub fn is_spent(&self, deliveries: u64) -> bool {
        self.max_deliveries != 0 && deliveries >= self.max_deliveries
    }

    /// Appends the policy; nothing when it is the default.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if *self == Policy::default() {
            return;
        }
        let evidence = match self.evidence {
            Evidence::Off => 0,
            Evidence::Record => 1,
            Evidence::Require => 2,
        };
        out.push(evidence | if self.idempotent { 4 } else { 0 });
        put_bytes(out, self.work_field.as_deref().unwrap_or_default());
        put_bytes(out, self.dead_letter.as_deref().unwrap_or_default());
        for number in [
            self.lease_ms,
            self.max_deliveries,
            self.backoff_base_ms,
            self.backoff_max_ms,
            self.consumer_ttl_ms,
            self.ledger_age_ms,
            self.ledger_len,
        ] {
            put_uint(out, number);
        }
    }

    /// Reads what [`Policy::encode`] wrote.
    pub fn decode(mut reader: Reader<'_>) -> Result<Policy, Corrupt> {
        const WHAT: &str = "policy of a consumer group";
        if reader.is_empty() {
            return Ok(Policy::default());
        }
        let flags = reader.byte(WHAT)?;
        let evidence = match flags & 3 {
            0 => Evidence::Off,
            1 => Evidence::Record,
            2 => Evidence::Require,
            _ => return Err(Corrupt { what: WHAT }),
        };
        let mut name = || reader.bytes(WHAT).map(|name| Some(name).filter(|name| !name.is_empty()).map(Arc::from));
        let (work_field, dead_letter) = (name()?, name()?);
        let mut number = || reader.uint(WHAT);
        let policy = Policy {
            evidence,
            work_field,
            idempotent: flags & 4 != 0,
            lease_ms: number()?,
            max_deliveries: number()?,
            dead_letter,
            backoff_base_ms: number()?,
            backoff_max_ms: number()?,
            consumer_ttl_ms: number()?,
            ledger_age_ms: number()?,
            ledger_len: number()?,
        };
        if flags > 7 || !reader.is_empty() || policy.ledger_len == 0 {
            return Err(Corrupt { what: WHAT });
        }
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_bound() {
        let policy = Policy { backoff_base_ms: 100, backoff_max_ms: 1000, ..Policy::default() };
        let waits: Vec<u64> = [0, 1, 2, 3, 4, 5, 64, 65, 200, u64::MAX].map(|n| policy.backoff_ms(n)).to_vec();
        assert_eq!(waits, [100, 100, 200, 400, 800, 1000, 1000, 1000, 1000, 1000]);
        assert_eq!(Policy::default().backoff_ms(70), 0);
    }

    #[test]
    fn bytes_come_back_and_the_default_takes_none() {
        let mut out = Vec::new();
        Policy::default().encode(&mut out);
        assert!(out.is_empty());
        let policy = Policy {
            evidence: Evidence::Require,
            work_field: Some(b"job".as_slice().into()),
            idempotent: true,
            lease_ms: 1,
            max_deliveries: 2,
            dead_letter: Some(b"dlq".as_slice().into()),
            backoff_base_ms: 3,
            backoff_max_ms: 4,
            consumer_ttl_ms: 5,
            ledger_age_ms: 6,
            ledger_len: 7,
        };
        policy.encode(&mut out);
        assert_eq!(Policy::decode(Reader::new(&out)), Ok(policy));
        for len in 1..out.len() {
            assert!(Policy::decode(Reader::new(&out[..len])).is_err(), "{len}");
        }
    }
}
