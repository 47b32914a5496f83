//! What a group knows of the work of its entries: its policy and its ledger. A group that was never told of work has none
//! of it.

use super::Group;
use crate::id::StreamId;
use crate::state::codec::{Corrupt, Reader, put_bytes};
use crate::state::ledger::{Ledger, Row};
use crate::state::pending::ConsumerRef;
use crate::state::policy::Policy;

/// Policy and ledger of a group.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// What was set by XWORK POLICY.
    pub policy: Policy,
    /// What was said of the work.
    pub ledger: Ledger,
    /// With CONSUMERTTL: when consumers are looked through the next time (Unix ms). Not part of snapshots.
    pub consumers_look_ms: u64,
}

/// Policy and ledger of a group that was never told of work.
pub static NO_WORK: Work = Work { policy: Policy::NEW, ledger: Ledger::NEW, consumers_look_ms: 0 };

impl Work {
    /// When something happens to it by time alone (Unix ms).
    pub(super) fn next_due_ms(&self) -> Option<u64> {
        // 0 stands for no time at all in the index of timers.
        let look = Some(self.consumers_look_ms.max(1)).filter(|_| self.policy.consumer_ttl_ms != 0);
        look.into_iter().chain(self.ledger.next_due_ms(&self.policy)).min()
    }

    /// Appends policy and ledger; nothing if there is neither.
    pub(super) fn encode(&self, out: &mut Vec<u8>, group: &Group) {
        let (mut policy, mut ledger) = (Vec::new(), Vec::new());
        self.policy.encode(&mut policy);
        // Where no consumer is passing away, what is begun is pending.
        let all = !group.pel().is_passing();
        self.ledger.encode(&mut ledger, |id| all || group.pel().contains(id));
        if !(policy.is_empty() && ledger.is_empty()) {
            put_bytes(out, &policy);
            out.extend_from_slice(&ledger);
        }
    }

    /// Reads what [`Work::encode`] wrote.
    pub(super) fn decode(mut reader: Reader<'_>) -> Result<Work, Corrupt> {
        let policy = Policy::decode(Reader::new(reader.bytes("policy of a consumer group")?))?;
        let ledger = if reader.is_empty() { Ledger::default() } else { Ledger::decode(reader)? };
        Ok(Work { policy, ledger, consumers_look_ms: 0 })
    }
}

impl Group {
    /// Policy and ledger, if the group was ever told of work.
    #[inline]
    pub fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }

    /// Policy and ledger; those of [`NO_WORK`] if the group was never told of work.
    #[inline]
    pub fn work_or_none(&self) -> &Work {
        self.work.as_deref().unwrap_or(&NO_WORK)
    }

    /// After so many ms without a delivery an entry counts as abandoned; 0 = never.
    #[inline]
    pub fn lease_ms(&self) -> u64 {
        self.work.as_deref().map_or(0, |work| work.policy.lease_ms)
    }

    /// Why an entry is on hold, if it is.
    #[inline]
    pub fn work_hold(&self, id: StreamId) -> Option<&[u8]> {
        self.work.as_deref().and_then(|work| work.ledger.hold(id))
    }

    /// How many entries are on hold.
    pub fn work_holds(&self) -> u64 {
        self.work.as_deref().map_or(0, |work| work.ledger.holds())
    }

    /// The name of who has an entry; `None`: nobody has it.
    pub fn owner_name(&self, of: ConsumerRef) -> Option<&[u8]> {
        (of != ConsumerRef::NOBODY).then(|| &*self.consumer(of).name)
    }

    /// Policy and ledger, to be changed.
    pub fn work_mut(&mut self) -> &mut Work {
        self.work.get_or_insert_default()
    }

    /// Appends a row to the ledger and does what follows from it.
    pub fn append_row(&mut self, row: &Row<'_>) {
        let Group { pel, work, .. } = self;
        work.get_or_insert_default().ledger.append(row, || pel.contains(row.entry));
    }
}
