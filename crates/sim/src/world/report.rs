//! What lives came to, added up.

use std::fmt;

use super::tempo::{TEMPOS, Tempo};

/// Counts over lives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Lives.
    pub seeds: u64,
    /// Virtual time of servers, µs.
    pub simulated_us: u64,
    /// Of it, time in which nothing was under way: no turn, no job of a thread, nothing in the network.
    pub idle_us: u64,
    /// Commands carried out.
    pub commands: u64,
    /// Replies that came to peers.
    pub replies: u64,
    /// Of them, those of which it was checked what they had to wait for.
    pub judged: u64,
    /// Turns.
    pub turns: u64,
    /// The machine lost its power.
    pub crashes: u64,
    /// The process was killed.
    pub kills: u64,
    /// The process ended as asked.
    pub shutdowns: u64,
    /// Everything was read back while the process went on (DEBUG RELOAD).
    pub reloads: u64,
    /// Faults that a disk operation met.
    pub faults: u64,
    /// Commits that failed.
    pub failed_commits: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Snapshots that failed.
    pub failed_snapshots: u64,
    /// Starts that did not succeed because of a fault.
    pub failed_starts: u64,
    /// Starts by the letter of what was found.
    pub rows: [u64; 26],
    /// A number that stands for everything that happened.
    pub trace: u64,
}

impl Report {
    /// Adds another one.
    pub fn add(&mut self, other: &Report) {
        self.seeds += other.seeds;
        self.simulated_us += other.simulated_us;
        self.idle_us += other.idle_us;
        self.commands += other.commands;
        self.replies += other.replies;
        self.judged += other.judged;
        self.turns += other.turns;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.shutdowns += other.shutdowns;
        self.reloads += other.reloads;
        self.faults += other.faults;
        self.failed_commits += other.failed_commits;
        self.snapshots += other.snapshots;
        self.failed_snapshots += other.failed_snapshots;
        self.failed_starts += other.failed_starts;
        self.rows.iter_mut().zip(other.rows).for_each(|(sum, more)| *sum += more);
        // Lives end in any order where several are lived at a time.
        self.trace = self.trace.wrapping_add(other.trace);
    }

    /// Hours of simulated time.
    pub fn hours(&self) -> f64 {
        self.simulated_us as f64 / 3.6e9
    }
}

/// Reports by the tempo of the lives: hours of calm are not hours of storm.
#[derive(Clone, Debug, Default)]
pub struct Reports([Report; TEMPOS.len()]);

impl Reports {
    /// Adds a life.
    pub fn add(&mut self, tempo: Tempo, report: &Report) {
        self.0[tempo as usize].add(report);
    }

    /// Hours of simulated time of each tempo, in a line.
    pub fn hours(&self) -> String {
        let each = TEMPOS.iter().map(|tempo| format!("{tempo} {:.2}", self.0[*tempo as usize].hours()));
        each.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (tempo, report) in TEMPOS.iter().zip(&self.0).filter(|(_, report)| report.seeds > 0) {
            writeln!(f, "--- {tempo}\n{report}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} seeds, {:.3} node-hours simulated, {} commands, {} crashes, {} faults, {} snapshots",
            self.seeds,
            self.hours(),
            self.commands,
            self.crashes,
            self.faults,
            self.snapshots
        )?;
        let rows = self.rows.iter().enumerate().filter(|(_, count)| **count > 0);
        let rows: Vec<String> = rows.map(|(at, count)| format!("{count} {}", char::from(b'A' + at as u8))).collect();
        writeln!(f, "restarts by recovery row: {}; {} starts failed by a fault", rows.join(", "), self.failed_starts)?;
        writeln!(
            f,
            "{} kills, {} shutdowns, {} reloads, {} commits failed, {} snapshots failed, {} replies, {} of them judged, {} turns",
            self.kills,
            self.shutdowns,
            self.reloads,
            self.failed_commits,
            self.failed_snapshots,
            self.replies,
            self.judged,
            self.turns
        )?;
        let idle = self.idle_us as f64 * 100.0 / (self.simulated_us.max(1)) as f64;
        write!(f, "{idle:.1} % of the time nothing was under way; trace {:016x}", self.trace)
    }
}
