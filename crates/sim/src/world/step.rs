//! What happens in a simulated life, as a list that can be played again: each step carries the seed of all chance in it, so
//! that leaving others out changes it as little as can be.

use impel::disk::fake::Survival;

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A peer sends a command, having opened a connection if it had none.
    Command {
        /// Number of the peer.
        peer: usize,
        /// The words.
        words: Vec<Vec<u8>>,
    },
    /// Time passes, and whatever is due in it happens.
    Pass {
        /// Microseconds.
        us: u64,
    },
    /// A peer is gone without a word.
    Vanish {
        /// Its number.
        peer: usize,
    },
    /// A peer sends no more, and waits for what it is owed.
    HalfClose {
        /// Its number.
        peer: usize,
    },
    /// A peer takes nothing for a while.
    Stall {
        /// Its number.
        peer: usize,
        /// Microseconds.
        us: u64,
    },
    /// A snapshot is asked for.
    Snapshot,
    /// The machine loses its power.
    Crash {
        /// What becomes of that which was not synced.
        survival: Survival,
    },
    /// The process is killed; the machine goes on.
    Kill,
    /// The process is asked to end.
    Shutdown {
        /// With a snapshot.
        save: bool,
    },
    /// An operation of the disk will meet a fault.
    Fault {
        /// So many operations later.
        after: u64,
        /// Which one.
        what: Trouble,
    },
    /// The wall clock is set.
    Clock {
        /// By so many ms.
        ms: i64,
    },
}

/// What an operation of the disk meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    /// The machine loses its power in the middle of it.
    Crash(Survival),
    /// The process is killed in the middle of it.
    Kill,
    /// It fails.
    Error,
    /// There is no room.
    Full,
    /// The next start cannot read something.
    Read,
}

/// A step and the seed of what chance decides in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The seed.
    pub salt: u64,
    /// The step.
    pub step: Step,
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.step {
            Step::Command { peer, words } => {
                write!(f, "c{peer}>")?;
                for word in words {
                    let plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"');
                    let text = word.escape_ascii();
                    if plain { write!(f, " {text}")? } else { write!(f, " \"{text}\"")? }
                }
                Ok(())
            }
            Step::Pass { us } => write!(f, "~ {us} µs pass"),
            step => write!(f, "~ {step:?}"),
        }
    }
}
