//! What ends the commands of a worker that was itself ended by `kill -9`: a process of its own, which is told of every command
//! that runs, and hears of the worker's end by the end of the pipe between them.
//!
//! It is told of process groups, so that what a command has started is ended with it. A worker that ends by itself has no
//! command left when the pipe ends. It never ends anything while the worker lives.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::child::KILL_AFTER;

/// The word behind `impel work` that starts one.
pub const WORD: &[u8] = b"--guard";

/// A guard that runs, seen from the worker.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    pipe: Mutex<Option<ChildStdin>>,
}

/// A command that the guard knows of, until this is dropped.
pub(crate) struct Watched<'a> {
    guard: &'a Guard,
    group: u32,
}

impl Guard {
    /// Starts one.
    pub fn start() -> io::Result<Guard> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["work", &String::from_utf8_lossy(WORD)])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = Mutex::new(child.stdin.take());
        Ok(Guard { child, pipe })
    }

    /// A process group is to be ended if the worker is no more.
    pub fn watch(&self, group: u32) -> Watched<'_> {
        self.tell('+', group);
        Watched { guard: self, group }
    }

    fn tell(&self, sign: char, group: u32) {
        if let Some(pipe) = &mut *self.pipe.lock().unwrap_or_else(PoisonError::into_inner) {
            // One that was ended by others is missed, and no reason to end the work.
            let _ = pipe.write_all(format!("{sign}{group}\n").as_bytes());
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.guard.tell('-', self.group);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        *self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = self.child.wait();
    }
}

/// Is the guard: waits for the end of the worker.
pub fn run() -> ExitCode {
    // What is sent to all processes of a service is not meant for it: it has to outlive the worker.
    let unheard = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        if signal_hook::flag::register(signal, unheard.clone()).is_err() {
            return ExitCode::FAILURE;
        }
    }
    let groups = groups_left(io::stdin().lock());
    let signal = |which| {
        groups.iter().for_each(|&group| {
            let _ = kill_process_group(group, which);
        })
    };
    signal(Signal::TERM);
    let since = Instant::now();
    while groups.iter().any(|&group| test_kill_process_group(group).is_ok()) {
        if since.elapsed() >= KILL_AFTER {
            signal(Signal::KILL);
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    ExitCode::SUCCESS
}

/// Reads to the end of what the worker says: the groups that it had then.
fn groups_left(mut told: impl BufRead) -> Vec<Pid> {
    let (mut groups, mut line) = (BTreeSet::<i32>::new(), String::new());
    // A word without an end may be a part of another number.
    while told.read_line(&mut line).is_ok() && line.ends_with('\n') {
        // Signals to 0 and 1, and to what is below, are for all of a kind.
        let group = |sign| line.trim_end().strip_prefix(sign)?.parse().ok().filter(|&group| group > 1);
        match (group('+'), group('-')) {
            (Some(begun), _) => groups.insert(begun),
            (_, Some(ended)) => groups.remove(&ended),
            _ => false,
        };
        line.clear();
    }
    groups.into_iter().filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_not_ended_is_left() {
        let left = |told: &str| groups_left(told.as_bytes()).into_iter().map(Pid::as_raw_pid).collect::<Vec<_>>();
        assert_eq!(left("+7\n+5\n+6\n-6\n"), [5, 7]);
        assert_eq!(left("+0\n+1\n+-5\nx\n-9\n+12"), [0; 0]);
    }
}
