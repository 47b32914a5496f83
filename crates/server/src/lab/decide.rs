//! What a case comes to, as a table: the first row that fits decides. A function of the evidence alone, so that whoever has the same
//! evidence comes to the same decision.
//!
//! Of several decisions the one counts of which least is known: HOLD (nobody knows what was done), RERUN (the evidence is not whole,
//! and nothing is in doubt outside), REPAIR (all is known, and the handler is wrong), ACCEPT. A run that is not whole may have
//! more to repair than it shows, so RERUN comes before REPAIR.

use impel_core::state::decision::Decision;

/// What is known of the effects of a work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// There is none.
    None,
    /// There is one.
    One,
    /// There are several that say the same.
    Repeated,
    /// There are some that say different things, or one was altered.
    Conflict,
    /// There is one that no run of a handler accounts for.
    Unexplained,
}

/// What the evidence of a case shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Was anything asked for it?
    pub ran: bool,
    /// Is every reply there that it needs?
    pub whole: bool,
    /// Was the condition there of which it is the case: the owner, the idle time?
    pub reached: bool,
    /// Is the work to be done in it?
    pub wanted: bool,
    /// Its effects.
    pub effect: Effect,
    /// Is the entry pending at the end?
    pub pending: bool,
    /// Was it acknowledged by someone else than the lab?
    pub foreign_ack: bool,
    /// Did a handler end without an exit code?
    pub silent: bool,
    /// Did a handler say that the work is done when there was no effect?
    pub empty_word: bool,
    /// Where it is claimed again because the work was done: was it?
    pub effect_first: bool,
    /// Is what was observed what the manifest says?
    pub matches: bool,
}

/// A row.
pub struct Row {
    /// What is to be done.
    pub decision: Decision,
    /// Why, as it is written.
    pub reason: &'static str,
    /// The same in words.
    pub means: &'static str,
    /// Does it fit?
    fits: fn(&Facts) -> bool,
}

/// The table.
pub const ROWS: [Row; 15] = [
    Row {
        decision: Decision::Hold,
        reason: "conflicting-effect",
        means: "two effects of the work say different things, or one was altered or removed",
        fits: |facts| facts.effect == Effect::Conflict,
    },
    Row {
        decision: Decision::Hold,
        reason: "unexplained-effect",
        means: "an effect that no run of the handler accounts for",
        fits: |facts| facts.effect == Effect::Unexplained,
    },
    Row {
        decision: Decision::Hold,
        reason: "outcome-unknown",
        means: "the handler was ended, or ended by a signal, and there is no effect",
        fits: |facts| facts.silent && facts.effect == Effect::None,
    },
    Row {
        decision: Decision::Rerun,
        reason: "not-run",
        means: "the run ended before the case",
        fits: |facts| !facts.ran,
    },
    Row {
        decision: Decision::Rerun,
        reason: "evidence-missing",
        means: "a reply did not come, or is an error",
        fits: |facts| !facts.whole,
    },
    Row {
        decision: Decision::Rerun,
        reason: "condition-not-reached",
        means: "the entry was not idle for long enough, or another's, when it was to be claimed",
        fits: |facts| !facts.reached,
    },
    Row {
        decision: Decision::Repair,
        reason: "acked-without-evidence",
        means: "acknowledged, and there is no effect",
        fits: |facts| facts.wanted && !facts.pending && facts.effect == Effect::None,
    },
    Row {
        decision: Decision::Repair,
        reason: "done-without-evidence",
        means: "the handler said that the work is done, and there was no effect",
        fits: |facts| facts.wanted && facts.empty_word,
    },
    Row {
        decision: Decision::Repair,
        reason: "duplicate-effect",
        means: "the effect is there several times, each the same",
        fits: |facts| facts.effect == Effect::Repeated,
    },
    Row {
        decision: Decision::Repair,
        reason: "ack-missing",
        means: "the effect is there, and the entry still pending",
        fits: |facts| facts.wanted && facts.pending && facts.effect == Effect::One,
    },
    Row {
        decision: Decision::Rerun,
        reason: "not-done",
        means: "the handler said that it failed; the entry is pending, and there is no effect",
        fits: |facts| facts.wanted && facts.effect == Effect::None,
    },
    Row {
        decision: Decision::Repair,
        reason: "acked-elsewhere",
        means: "someone else acknowledged, so nobody can say whether the effect came first",
        fits: |facts| facts.wanted && facts.foreign_ack,
    },
    Row {
        decision: Decision::Rerun,
        reason: "effect-not-first",
        means: "the work was not done when the entry was claimed again",
        fits: |facts| facts.wanted && !facts.effect_first,
    },
    Row {
        decision: Decision::Hold,
        reason: "server-differs",
        means: "all is there, and the server did something else than it must: no recovery can rely on it",
        fits: |facts| !facts.matches,
    },
    Row {
        decision: Decision::Accept,
        reason: "as-expected",
        means: "both books are as the manifest says",
        fits: |_| true,
    },
];

impl Facts {
    /// What they come to.
    pub fn judge(&self) -> &'static Row {
        ROWS.iter().find(|row| (row.fits)(self)).unwrap_or(&ROWS[ROWS.len() - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case with work that went well.
    const GOOD: Facts = Facts {
        ran: true,
        whole: true,
        reached: true,
        wanted: true,
        effect: Effect::One,
        pending: false,
        foreign_ack: false,
        silent: false,
        empty_word: false,
        effect_first: true,
        matches: true,
    };

    /// A case without work that went well.
    const CLAIMED: Facts = Facts { wanted: false, effect: Effect::None, pending: true, ..GOOD };

    #[test]
    fn every_row_decides_what_it_is_for() {
        let none = Effect::None;
        let rows: [(Facts, &str); 22] = [
            (Facts { effect: Effect::Conflict, ..GOOD }, "HOLD conflicting-effect"),
            (Facts { effect: Effect::Conflict, whole: false, ran: false, ..GOOD }, "HOLD conflicting-effect"),
            (Facts { effect: Effect::Unexplained, ..CLAIMED }, "HOLD unexplained-effect"),
            (Facts { effect: Effect::Unexplained, ran: false, ..CLAIMED }, "HOLD unexplained-effect"),
            (Facts { silent: true, effect: none, pending: true, ..GOOD }, "HOLD outcome-unknown"),
            (Facts { silent: true, effect: none, whole: false, ..GOOD }, "HOLD outcome-unknown"),
            (Facts { ran: false, whole: false, effect: none, ..GOOD }, "RERUN not-run"),
            (Facts { whole: false, effect: none, ..GOOD }, "RERUN evidence-missing"),
            (Facts { whole: false, matches: false, ..CLAIMED }, "RERUN evidence-missing"),
            (Facts { reached: false, matches: false, ..CLAIMED }, "RERUN condition-not-reached"),
            (Facts { effect: none, empty_word: true, matches: false, ..GOOD }, "REPAIR acked-without-evidence"),
            (Facts { empty_word: true, matches: false, ..GOOD }, "REPAIR done-without-evidence"),
            (Facts { effect: Effect::Repeated, matches: false, ..GOOD }, "REPAIR duplicate-effect"),
            (Facts { pending: true, matches: false, ..GOOD }, "REPAIR ack-missing"),
            (Facts { pending: true, silent: true, matches: false, ..GOOD }, "REPAIR ack-missing"),
            (Facts { pending: true, effect: none, matches: false, ..GOOD }, "RERUN not-done"),
            (Facts { foreign_ack: true, matches: false, ..GOOD }, "REPAIR acked-elsewhere"),
            (Facts { effect_first: false, matches: false, ..GOOD }, "RERUN effect-not-first"),
            (Facts { matches: false, ..GOOD }, "HOLD server-differs"),
            (Facts { matches: false, ..CLAIMED }, "HOLD server-differs"),
            (GOOD, "ACCEPT as-expected"),
            (CLAIMED, "ACCEPT as-expected"),
        ];
        let told = |facts: &Facts| {
            let row = facts.judge();
            format!("{} {}", row.decision.name(), row.reason)
        };
        for (facts, expected) in &rows {
            assert_eq!(told(facts), *expected, "{facts:?}");
        }
        for row in &ROWS {
            let found = rows.iter().any(|(_, expected)| expected.ends_with(&format!(" {}", row.reason)));
            assert!(found, "no example of {}", row.reason);
        }
    }

    #[test]
    fn the_worst_is_that_of_which_least_is_known() {
        let worst = |decisions: &[Decision]| decisions.iter().copied().max();
        let all = [Decision::Accept, Decision::Repair, Decision::Rerun, Decision::Hold];
        for (at, &decision) in all.iter().enumerate() {
            assert_eq!(worst(&all[..=at]), Some(decision));
        }
    }

    #[test]
    fn the_guide_has_the_table() {
        let guide = include_str!("../../../../docs/guides/lab.md");
        let lines: Vec<String> =
            ROWS.iter().map(|row| format!("| {} | `{}` | {} |", row.decision.name(), row.reason, row.means)).collect();
        assert!(guide.contains(&lines.join("\n")), "\n{}", lines.join("\n"));
    }
}
