//! Measuring servers side by side: the same load on each in turn, round after round, so that whatever else the
//! machine does hits all of them alike.
//!
//! Two numbers matter: how much a server gets done, and how much of its own processor time one operation costs. The
//! second does not depend on how fast the load generator is, and is the one to trust on a small machine.

pub mod growth;
pub mod load;
pub mod numbers;
pub mod shapes;

use std::fs;
use std::time::Duration;

/// One run of one shape on one server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Operations a second, by the clock on the wall.
    pub operations_per_second: f64,
    /// Processor time of the server, user and system, all threads, for one operation, in microseconds.
    pub cpu_us: f64,
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
    fn our_own_time_does_not_run_backwards() {
        let before = cpu_time(std::process::id()).expect("our own process");
        assert!(cpu_time(std::process::id()).expect("our own process") >= before);
        assert!(cpu_time(u32::MAX).is_err());
    }
}
