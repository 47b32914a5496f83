//! What is to be done about an entry, from both books of its group: the pending list and the ledger. A function of the
//! evidence alone: whoever has the same evidence comes to the same decision.

use crate::state::policy::Evidence;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Nothing: the work is done, once.
    Accept,
    /// The books are to be brought in line; the work is not to be done again.
    Repair,
    /// The work is to be done.
    Rerun,
    /// It is being done.
    Open,
    /// Someone must look at it.
    Hold,
    /// Nothing can be said.
    Unknown,
}

/// All decisions.
pub const DECISIONS: [Decision; 6] =
    [Decision::Accept, Decision::Repair, Decision::Rerun, Decision::Open, Decision::Hold, Decision::Unknown];

impl Decision {
    /// As XWORK AUDIT writes it.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Accept => "ACCEPT",
            Decision::Repair => "REPAIR",
            Decision::Rerun => "RERUN",
            Decision::Open => "OPEN",
            Decision::Hold => "HOLD",
            Decision::Unknown => "UNKNOWN",
        }
    }
}

/// Why. Each reason stands for one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// Acknowledged, and completed once.
    Complete,
    /// Acknowledged, and the ledger is not asked.
    NoLedger,
    /// Acknowledged, and nothing says that the work was done.
    AckedWithoutEvidence,
    /// Completed, and still pending.
    AckMissing,
    /// Nobody has begun.
    NotStarted,
    /// Begun, within the lease.
    InProgress,
    /// Begun, the lease is over, and it may be done again.
    RetrySafe,
    /// Begun, the lease is over, and it may not be done again.
    OutcomeUnknown,
    /// Not completed, and the entry is gone from the stream.
    PayloadLost,
    /// Two completions contradict each other.
    Conflict,
    /// It went to the dead-letter stream.
    DeadLetter,
    /// It is on hold, for a reason of its own.
    OnHold,
}

/// All reasons, in the order of their numbers.
pub const REASONS: [Reason; 12] = [
    Reason::Complete,
    Reason::NoLedger,
    Reason::AckedWithoutEvidence,
    Reason::AckMissing,
    Reason::NotStarted,
    Reason::InProgress,
    Reason::RetrySafe,
    Reason::OutcomeUnknown,
    Reason::PayloadLost,
    Reason::Conflict,
    Reason::DeadLetter,
    Reason::OnHold,
];

impl Reason {
    /// As XWORK AUDIT writes it.
    pub fn code(self) -> &'static str {
        match self {
            Reason::Complete => "complete",
            Reason::NoLedger => "no-ledger",
            Reason::AckedWithoutEvidence => "acked-without-evidence",
            Reason::AckMissing => "ack-missing",
            Reason::NotStarted => "not-started",
            Reason::InProgress => "in-progress",
            Reason::RetrySafe => "retry-safe",
            Reason::OutcomeUnknown => "outcome-unknown",
            Reason::PayloadLost => "payload-lost",
            Reason::Conflict => "conflict",
            Reason::DeadLetter => "dead-letter",
            Reason::OnHold => "on-hold",
        }
    }

    /// The decision that it stands for.
    pub fn decision(self) -> Decision {
        match self {
            Reason::Complete => Decision::Accept,
            Reason::NoLedger => Decision::Unknown,
            Reason::AckedWithoutEvidence | Reason::AckMissing => Decision::Repair,
            Reason::NotStarted | Reason::RetrySafe => Decision::Rerun,
            Reason::InProgress => Decision::Open,
            Reason::OutcomeUnknown | Reason::PayloadLost | Reason::Conflict | Reason::DeadLetter | Reason::OnHold => {
                Decision::Hold
            }
        }
    }
}

/// What is known of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nobody has begun.
    No,
    /// Someone has, and the lease lasts.
    WithinLease,
    /// Someone has, and the lease is over.
    LeaseOver,
}

/// What both books say of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Books {
    /// Is it pending?
    pub pending: bool,
    /// Is it in the stream?
    pub payload: bool,
    /// Is its work completed?
    pub completed: bool,
    /// Do completions of its work contradict each other?
    pub conflict: bool,
    /// Is it on hold?
    pub on_hold: bool,
    /// Did it go to the dead-letter stream?
    pub dead: bool,
    /// Has anyone begun?
    pub begun: Begun,
    /// EVIDENCE of the policy.
    pub evidence: Evidence,
    /// IDEMPOTENT of the policy.
    pub idempotent: bool,
}

impl Books {
    /// The decision, by its reason.
    pub fn decide(&self) -> Reason {
        if self.on_hold {
            return Reason::OnHold;
        }
        if self.conflict {
            return Reason::Conflict;
        }
        match (self.pending, self.completed) {
            (false, true) => return Reason::Complete,
            (true, true) => return Reason::AckMissing,
            (false, false) if self.dead => return Reason::DeadLetter,
            (false, false) if self.evidence == Evidence::Off => return Reason::NoLedger,
            (false, false) => return Reason::AckedWithoutEvidence,
            (true, false) => {}
        }
        match (self.begun, self.payload) {
            // Whoever works on it has read it.
            (Begun::WithinLease, _) => Reason::InProgress,
            (_, false) => Reason::PayloadLost,
            (Begun::No, true) => Reason::NotStarted,
            (Begun::LeaseOver, true) if self.idempotent => Reason::RetrySafe,
            (Begun::LeaseOver, true) => Reason::OutcomeUnknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENDING: Books = Books {
        pending: true,
        payload: true,
        completed: false,
        conflict: false,
        on_hold: false,
        dead: false,
        begun: Begun::No,
        evidence: Evidence::Off,
        idempotent: false,
    };

    const ACKED: Books = Books { pending: false, ..PENDING };

    #[track_caller]
    fn decides(books: Books, decision: &str, reason: &str) {
        let found = books.decide();
        assert_eq!((found.decision().name(), found.code()), (decision, reason), "{books:?}");
    }

    #[test]
    fn acknowledged_and_completed_once() {
        for payload in [true, false] {
            for evidence in [Evidence::Off, Evidence::Record, Evidence::Require] {
                decides(Books { completed: true, payload, evidence, ..ACKED }, "ACCEPT", "complete");
            }
        }
    }

    #[test]
    fn acknowledged_without_a_ledger() {
        decides(ACKED, "UNKNOWN", "no-ledger");
        decides(Books { payload: false, ..ACKED }, "UNKNOWN", "no-ledger");
    }

    #[test]
    fn acknowledged_without_evidence() {
        for evidence in [Evidence::Record, Evidence::Require] {
            decides(Books { evidence, ..ACKED }, "REPAIR", "acked-without-evidence");
        }
    }

    #[test]
    fn completed_and_pending() {
        for payload in [true, false] {
            for begun in [Begun::No, Begun::WithinLease, Begun::LeaseOver] {
                decides(Books { completed: true, payload, begun, ..PENDING }, "REPAIR", "ack-missing");
            }
        }
    }

    #[test]
    fn not_begun() {
        decides(PENDING, "RERUN", "not-started");
        decides(Books { idempotent: true, ..PENDING }, "RERUN", "not-started");
    }

    #[test]
    fn begun_within_the_lease() {
        for payload in [true, false] {
            for idempotent in [true, false] {
                let begun = Begun::WithinLease;
                decides(Books { begun, payload, idempotent, ..PENDING }, "OPEN", "in-progress");
            }
        }
    }

    #[test]
    fn lease_over_and_may_be_done_again() {
        decides(Books { begun: Begun::LeaseOver, idempotent: true, ..PENDING }, "RERUN", "retry-safe");
    }

    #[test]
    fn lease_over_and_may_not_be_done_again() {
        decides(Books { begun: Begun::LeaseOver, ..PENDING }, "HOLD", "outcome-unknown");
    }

    #[test]
    fn payload_lost() {
        for begun in [Begun::No, Begun::LeaseOver] {
            for idempotent in [true, false] {
                decides(Books { payload: false, begun, idempotent, ..PENDING }, "HOLD", "payload-lost");
            }
        }
    }

    #[test]
    fn conflicting_digests() {
        for books in [PENDING, ACKED, Books { completed: true, ..ACKED }, Books { payload: false, ..PENDING }] {
            decides(Books { conflict: true, ..books }, "HOLD", "conflict");
        }
    }

    #[test]
    fn on_hold() {
        for books in [PENDING, Books { completed: true, ..PENDING }, Books { conflict: true, ..PENDING }] {
            decides(Books { on_hold: true, ..books }, "HOLD", "on-hold");
        }
    }

    #[test]
    fn dead() {
        decides(Books { dead: true, ..ACKED }, "HOLD", "dead-letter");
        decides(Books { dead: true, completed: true, ..ACKED }, "ACCEPT", "complete");
        decides(Books { dead: true, ..PENDING }, "RERUN", "not-started");
    }

    #[test]
    fn reasons_stand_in_order() {
        for (number, reason) in REASONS.iter().enumerate() {
            assert_eq!(*reason as usize, number);
        }
    }
}
