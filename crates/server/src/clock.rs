//! The only place that reads time: the wall clock for everything that shows or is stored, a clock that only rises for
//! how long something took.
//!
//! Invariant: the time of [`Clock::read`] never goes back, not behind what it said before and not behind the newest
//! time that the state holds. When the wall clock is set back, our time goes on at half speed until the two meet: ids
//! keep rising, and waits and expiries still end.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Unix time in µs, as the system has it. May go back.
pub fn wall_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Measures how long something takes.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    begun: Instant,
    /// The system's own time of that, in µs.
    begun_us: u64,
}

/// The system's clock that [`Instant`] reads, in µs, now or as of the system's last tick.
fn system_us(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}

impl Stopwatch {
    /// Begins to measure.
    pub fn start() -> Self {
        Stopwatch { begun: Instant::now(), begun_us: system_us(ClockId::Monotonic) }
    }

    /// Microseconds since it was begun.
    pub fn elapsed_us(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    /// The same as of the system's last tick, which costs next to nothing.
    pub fn ticked_us(&self) -> u64 {
        system_us(ClockId::MonotonicCoarse).saturating_sub(self.begun_us)
    }
}

/// The time of a partition.
#[derive(Debug)]
pub struct Clock {
    stopwatch: Stopwatch,
    pace: Pace,
}

/// How the time of a partition goes on, whatever the wall clock does. Reads nothing itself.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    read_at_us: u64,
    now_us: u64,
}

impl Pace {
    /// Starts at a time of the wall clock, or at `floor_ms` if that is later, when nothing has elapsed yet.
    pub fn new(wall_us: u64, floor_ms: u64) -> Self {
        Pace { read_at_us: 0, now_us: wall_us.max(floor_ms.saturating_mul(1000)) }
    }

    /// The time, in Unix µs, when the wall clock says `wall_us` and `elapsed_us` have passed since the start.
    pub fn advance(&mut self, wall_us: u64, elapsed_us: u64) -> u64 {
        let passed_us = elapsed_us.saturating_sub(self.read_at_us);
        // What half a microsecond leaves over counts the next time.
        let half_us = passed_us / 2;
        if wall_us >= self.now_us + half_us {
            self.now_us = wall_us;
            self.read_at_us = elapsed_us;
        } else {
            self.now_us += half_us;
            self.read_at_us = elapsed_us - passed_us % 2;
        }
        self.now_us
    }

    /// What it said last.
    pub fn last_us(&self) -> u64 {
        self.now_us
    }
}

impl Clock {
    /// A clock that starts at the system's time, or at `floor_ms` if that is later.
    pub fn new(floor_ms: u64) -> Self {
        Clock { stopwatch: Stopwatch::start(), pace: Pace::new(wall_us(), floor_ms) }
    }

    /// What [`Facts::elapsed_us`](impel_core::engine::facts::Facts::elapsed_us) is made of.
    pub fn stopwatch(&self) -> Stopwatch {
        self.stopwatch
    }

    /// The time now, in Unix µs. Once a turn.
    pub fn read(&mut self) -> u64 {
        self.pace.advance(wall_us(), self.stopwatch.elapsed_us())
    }

    /// The time of the last [`Clock::read`], in Unix µs.
    pub fn last_us(&self) -> u64 {
        self.pace.last_us()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_set_back_makes_time_slower_and_never_turns_it_back() {
        let mut clock = Pace::new(1_000_000, 0);
        assert_eq!(clock.advance(1_000_100, 100), 1_000_100);
        // Back by half a second: 100 µs pass, 50 of them for us.
        assert_eq!(clock.advance(500_200, 200), 1_000_150);
        // Odd microseconds are not lost, however often it is read.
        for elapsed_us in 201..=400 {
            clock.advance(500_000 + elapsed_us, elapsed_us);
        }
        assert_eq!(clock.last_us(), 1_000_250);
        // They meet again, and go on together.
        assert_eq!(clock.advance(1_500_000, 1_000_000), 1_500_050);
        assert_eq!(clock.advance(1_600_000, 1_100_000), 1_600_000);
        assert_eq!(clock.advance(1_600_010, 1_100_010), 1_600_010);
    }

    #[test]
    fn time_starts_where_the_state_ended() {
        let ahead_ms = wall_us() / 1000 + 3_600_000;
        let mut clock = Clock::new(ahead_ms);
        assert!(clock.read() >= ahead_ms * 1000);
        assert!(clock.read() < (ahead_ms + 60_000) * 1000);
    }
}
