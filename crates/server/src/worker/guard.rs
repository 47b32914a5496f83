//! What ends the commands of a worker that was itself ended by `kill -9`: a process of its own, which is told of every command
//! that runs, and hears of the worker's end by the end of the pipe between them.
//!
//! It finds them in two ways. It is told of their process groups. And every command has a mark in its environment, which it hands on to
//! what it starts: so one is found of whose group there was no time to tell, and so is what has left the group. Only what has done
//! both, or was begun by another user, gets away. A worker that ends by itself says so, and has no command left then. The guard
//! never ends anything while the worker lives.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::child::KILL_AFTER;

/// The word behind `impel work` that starts one.
pub const WORD: &[u8] = b"--guard";

/// The variable with the mark of a worker.
const MARK: &str = "IMPEL_WORKER";

/// Said by a worker that ends as it should.
const FAREWELL: &str = ".\n";

/// How long a command may take from its fork to its mark.
const LATE: Duration = Duration::from_millis(500);

/// A guard that runs, seen from the worker.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    pipe: Mutex<Option<ChildStdin>>,
    mark: String,
}

/// A command that the guard knows of, until this is dropped.
pub(crate) struct Watched<'a> {
    guard: &'a Guard,
    group: u32,
}

impl Guard {
    /// Starts one.
    pub fn start() -> io::Result<Guard> {
        let since_ns = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
        let mark = format!("{}-{since_ns}", std::process::id());
        let mut child = Command::new(std::env::current_exe()?)
            .args(["work", &String::from_utf8_lossy(WORD), &mark])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = Mutex::new(child.stdin.take());
        Ok(Guard { child, pipe, mark })
    }

    /// Marks a command that is to be started.
    pub fn mark(&self, command: &mut Command) {
        command.env(MARK, &self.mark);
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
        let pipe = self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut pipe) = pipe.take() {
            let _ = pipe.write_all(FAREWELL.as_bytes());
        }
        let _ = self.child.wait();
    }
}

/// Is the guard: waits for the end of the worker. The words are [`WORD`] and the mark.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    // What is sent to all processes of a service is not meant for it: it has to outlive the worker.
    let unheard = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        if signal_hook::flag::register(signal, unheard.clone()).is_err() {
            return ExitCode::FAILURE;
        }
    }
    let Some(groups) = groups_left(io::stdin().lock()) else { return ExitCode::SUCCESS };
    let mark = words.get(1).map_or(&b""[..], Vec::as_slice);
    let since = Instant::now();
    let mut warned = BTreeSet::new();
    let mut are_warned = false;
    while since.elapsed() < 2 * KILL_AFTER {
        let marked = marked(mark);
        let groups: Vec<Pid> = groups.iter().copied().filter(|&group| test_kill_process_group(group).is_ok()).collect();
        // One that was being started when the worker ended may come yet.
        if marked.is_empty() && groups.is_empty() && since.elapsed() >= LATE {
            break;
        }
        let is_over = since.elapsed() >= KILL_AFTER;
        let which = if is_over { Signal::KILL } else { Signal::TERM };
        for &group in groups.iter().filter(|_| is_over || !are_warned) {
            let _ = kill_process_group(group, which);
        }
        for &one in marked.iter().filter(|one| warned.insert(one.as_raw_pid()) || is_over) {
            let _ = kill_process(one, which);
        }
        are_warned = true;
        thread::sleep(Duration::from_millis(50));
    }
    ExitCode::SUCCESS
}

/// Processes that have the mark in the environment that they were started with.
fn marked(mark: &[u8]) -> Vec<Pid> {
    let wanted = [MARK.as_bytes(), b"=", mark].concat();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_marked = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted)
    };
    let pids = processes.filter_map(|one| one.file_name().to_str()?.parse().ok()).filter(is_marked);
    pids.filter_map(Pid::from_raw).collect()
}

/// Reads to the end of what the worker says: the groups that it had then; nothing if it ended as it should.
fn groups_left(mut told: impl BufRead) -> Option<Vec<Pid>> {
    let (mut groups, mut line) = (BTreeSet::<i32>::new(), String::new());
    // A word without an end may be a part of another number.
    while told.read_line(&mut line).is_ok() && line.ends_with('\n') {
        if line == FAREWELL {
            return None;
        }
        // Signals to 0 and 1, and to what is below, are for all of a kind.
        let group = |sign| line.trim_end().strip_prefix(sign)?.parse().ok().filter(|&group| group > 1);
        match (group('+'), group('-')) {
            (Some(begun), _) => groups.insert(begun),
            (_, Some(ended)) => groups.remove(&ended),
            _ => false,
        };
        line.clear();
    }
    Some(groups.into_iter().filter_map(Pid::from_raw).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_not_ended_is_left() {
        let left =
            |told: &str| groups_left(told.as_bytes()).unwrap().into_iter().map(Pid::as_raw_pid).collect::<Vec<_>>();
        assert_eq!(left("+7\n+5\n+6\n-6\n"), [5, 7]);
        assert_eq!(left("+0\n+1\n+-5\nx\n-9\n+12"), [0; 0]);
    }

    #[test]
    fn a_worker_that_ends_as_it_should_leaves_nothing() {
        assert_eq!(groups_left(&b"+7\n.\n"[..]), None);
    }

    #[test]
    fn what_has_the_mark_is_found() {
        let mark = format!("test-{}", std::process::id());
        let mut child = Command::new("sleep").arg("60").env(MARK, &mark).spawn().unwrap();
        let pid = child.id() as i32;
        let found = |mark: &str| marked(mark.as_bytes()).into_iter().map(Pid::as_raw_pid).collect::<Vec<_>>();
        // It is started before its environment can be read.
        let since = Instant::now();
        while found(&mark).is_empty() && since.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!((found(&mark), found(&mark[..mark.len() - 1])), (vec![pid], vec![]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found(&mark), [0; 0]);
    }
}
