//! Measuring servers side by side: the same load on each in turn, round after round, so that whatever else the
//! machine does hits all of them alike.
//!
//! Of what is measured a server's own processor time for an operation is the number to trust on a small machine: it does
//! not depend on how fast the load generator is. Nothing here decides whether anything is fast enough for a test.

pub mod chart;
pub mod crowd;
pub mod growth;
pub mod load;
pub mod nats;
pub mod numbers;
pub mod report;
pub mod shapes;

use std::fs;
use std::time::Duration;

/// Which of two numbers is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times, bytes.
    Less,
    /// Throughput.
    More,
}

/// What is asked of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// Nothing: it is told for completeness.
    None,
    /// Of ours divided by the best peer's.
    Ratio {
        /// What must be reached.
        bar: f64,
        /// What would be very good.
        stretch: Option<f64>,
    },
    /// Of our own number, in the unit of the figure.
    Value {
        /// What must be reached.
        bar: f64,
        /// What would be very good.
        stretch: Option<f64>,
    },
}

/// One number that a shape measures.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// What it is, with its unit last.
    pub name: &'static str,
    /// Which direction is good.
    pub better: Better,
    /// What is asked of it.
    pub bar: Bar,
}

impl Figure {
    /// A figure of which less is better and nothing is asked.
    pub const fn less(name: &'static str) -> Self {
        Figure { name, better: Better::Less, bar: Bar::None }
    }

    /// A figure of which more is better and nothing is asked.
    pub const fn more(name: &'static str) -> Self {
        Figure { name, better: Better::More, bar: Bar::None }
    }

    /// The same with a ratio to the best peer that must be reached.
    pub const fn ratio(self, bar: f64, stretch: Option<f64>) -> Self {
        Figure { bar: Bar::Ratio { bar, stretch }, ..self }
    }

    /// The same with a value that must be reached.
    pub const fn value(self, bar: f64, stretch: Option<f64>) -> Self {
        Figure { bar: Bar::Value { bar, stretch }, ..self }
    }

    /// Whether `number` is at least as good as `wanted`.
    pub fn reaches(&self, number: f64, wanted: f64) -> bool {
        match self.better {
            Better::Less => number <= wanted,
            Better::More => number >= wanted,
        }
    }
}

/// The processor time that a process has used so far: user and system, all its threads, also those that ended.
///
/// # Errors
/// When there is no such process.
pub fn cpu_time(process_id: u32) -> Result<Duration, String> {
    let path = format!("/proc/{process_id}/stat");
    let stat = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let ticks = parse_ticks(&stat).ok_or_else(|| format!("{path} is not understood: {stat}"))?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// utime and stime: the 14th and 15th field. The second is a name in parentheses that may hold anything.
fn parse_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// The memory of a process that is in RAM, in bytes.
///
/// # Errors
/// When there is no such process.
pub fn resident_bytes(process_id: u32) -> Result<f64, String> {
    let path = format!("/proc/{process_id}/statm");
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let pages = text.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| format!("{path} is not understood: {text}"))?;
    Ok(pages as f64 * rustix::param::page_size() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20 0 1 0 99 0 0";
        assert_eq!(parse_ticks(stat), Some(42));
        assert_eq!(parse_ticks("7 (a) S 1"), None);
    }

    #[test]
    fn our_own_numbers_can_be_read() {
        let before = cpu_time(std::process::id()).expect("our own process");
        assert!(cpu_time(std::process::id()).expect("our own process") >= before);
        assert!(cpu_time(u32::MAX).is_err());
        assert!(resident_bytes(std::process::id()).expect("our own process") > 100_000.0);
        assert!(resident_bytes(u32::MAX).is_err());
    }

    #[test]
    fn figures_know_their_direction() {
        assert!(Figure::less("us").reaches(0.5, 0.5) && !Figure::less("us").reaches(0.6, 0.5));
        assert!(Figure::more("ops/s").reaches(1.5, 1.5) && !Figure::more("ops/s").reaches(1.4, 1.5));
    }
}
