//! How long commands take: for the slow log, for `usec` of INFO commandstats, and for a connection's share of a turn.
//!
//! Reading the clock costs 20 to 50 ns, twice for each command, where a pipelined XADD takes 300 ns. So commands that are
//! flagged fast are measured one by one only at first, and then in samples that count for many calls. Being fast is a
//! promise about the usual call, though: an XACK RANGE of a million, a bound that removes half a stream, the first write
//! after a snapshot take long all the same. None of these is missed: the system's own tick is asked behind every command
//! (a few ns), and only when it has moved on, which it does several times while a command takes [`LONG_US`], is the clock
//! read. Such a command is told as up to one tick longer than it was, never as shorter.
//!
//! `usec` of a command is the sum of all long calls and of the samples, each of which stands for those that were not
//! measured: exact for rare commands, an estimate for frequent ones. Who sets `slowlog-log-slower-than` below `LONG_US` wants to
//! know it exactly: then every command is measured.

use super::Engine;
use super::facts::Facts;
use crate::command::table::{CommandSpec, Flags};

/// Calls of a fast command that are all measured, before only samples are.
const MEASURED_AT_FIRST: u64 = 64;

/// Then one of so many is. A prime, so that no pattern in what clients send keeps step with it.
const CALLS_PER_SAMPLE: u64 = 61;

/// What takes so long is measured always: no system ticks less often.
const LONG_US: u64 = 10_000;

/// When time was last looked at.
#[derive(Debug, Default)]
pub(super) struct Timing {
    /// Of the clock.
    read_us: u64,
    /// The tick.
    ticked_us: u64,
}

/// A command that is being measured: since when, and for how many calls it stands.
pub(super) struct Measured {
    begun_us: u64,
    calls: u64,
}

impl Engine {
    /// What was done until now has nothing to do with the commands that follow.
    #[inline]
    pub(super) fn begin_batch(&mut self, facts: &Facts<'_>) {
        self.timing.ticked_us = facts.host.ticked_us();
    }

    /// A command begins. `None`: it is not measured unless it takes long.
    #[inline]
    pub(super) fn begin_measuring(&mut self, spec: &'static CommandSpec, facts: &Facts<'_>) -> Option<Measured> {
        let mut calls = 1;
        if spec.flags.has(Flags::FAST) && !(0..LONG_US as i64).contains(&self.settings.slowlog_log_slower_than_us) {
            let before = self.statistics.of(spec).calls;
            if before >= MEASURED_AT_FIRST {
                if !before.is_multiple_of(CALLS_PER_SAMPLE) {
                    return None;
                }
                calls = CALLS_PER_SAMPLE;
            }
        }
        let begun_us = (facts.elapsed_us)();
        self.timing.read_us = begun_us;
        Some(Measured { begun_us, calls })
    }

    /// A command is over. Answers how long it took (µs), if that is known.
    #[inline]
    pub(super) fn end_measuring(
        &mut self,
        measured: Option<Measured>,
        spec: &'static CommandSpec,
        facts: &Facts<'_>,
    ) -> Option<u64> {
        let Some(Measured { begun_us, calls }) = measured else {
            let ticked_us = facts.host.ticked_us();
            return if ticked_us == self.timing.ticked_us { None } else { self.end_at_tick(ticked_us, spec, facts) };
        };
        let now_us = (facts.elapsed_us)();
        self.timing.read_us = now_us;
        let took_us = now_us.saturating_sub(begun_us);
        // A long one stands for itself alone, since no other long one is left out.
        let calls = if took_us >= LONG_US { 1 } else { calls };
        self.statistics.of(spec).took_us += took_us * calls;
        Some(took_us)
    }

    /// The system has ticked while a command ran that was not measured: did that take long?
    #[cold]
    fn end_at_tick(&mut self, ticked_us: u64, spec: &'static CommandSpec, facts: &Facts<'_>) -> Option<u64> {
        let now_us = (facts.elapsed_us)();
        let took_us = now_us.saturating_sub(self.timing.read_us.max(self.timing.ticked_us));
        self.timing = Timing { read_us: now_us, ticked_us };
        if took_us < LONG_US {
            return None;
        }
        self.statistics.of(spec).took_us += took_us;
        Some(took_us)
    }
}
