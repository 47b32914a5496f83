//! One run of the command: the entry on its standard input and in its environment, its output passed on, its last lines kept.
//!
//! It is a process group of its own, so that a Ctrl-C meant for the worker does not end it; when the worker ends it, all of
//! the group gets the signal, and the [`Guard`] knows of it for as long as it runs.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::guard::Guard;

/// Exit code by which a command asks to be tried again later (EX_TEMPFAIL of sysexits.h).
pub(super) const TRY_AGAIN: i32 = 75;

/// What is kept of a line that is read by people, in bytes.
pub(super) const LINE_MAX: usize = 1000;

/// Between SIGTERM and SIGKILL.
pub(super) const KILL_AFTER: Duration = Duration::from_secs(2);

/// How long output may still come when the command has ended: what it left running may hold the pipes for ever.
const OUTPUT_WAIT: Duration = Duration::from_millis(300);

/// The same where the output is a part of the work.
const RESULT_WAIT: Duration = Duration::from_secs(5);

/// How a run ended.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// With exit code 0, and this last line of output, where it is wanted and there is one.
    Done { line: Option<Vec<u8>> },
    /// With another code; without one if by a signal.
    Failed { reason: String, code: Option<i32> },
    /// Ended from outside, for this reason.
    Stopped(String),
    /// It could not be begun.
    Unstartable(String),
}

/// The last lines of an output.
#[derive(Default)]
struct Lines {
    /// What has come of the one that has no end yet,
    line: Vec<u8>,
    /// and the one before, that had something in it.
    last: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], line_max: usize) {
        for &byte in bytes {
            if byte == b'\n' {
                if !self.line.is_empty() {
                    self.last = std::mem::take(&mut self.line);
                }
            } else if self.line.len() < line_max {
                self.line.push(byte);
            }
        }
    }
}

/// An output that is passed on.
struct Followed {
    lines: Arc<Mutex<Lines>>,
    /// Ends with the output.
    end: Receiver<()>,
}

impl Followed {
    /// The last line. Whoever still has the pipe when the wait is over is not the command: what came until then counts.
    fn last_line(self, wait: Duration) -> Option<Vec<u8>> {
        let is_open = self.end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
        let Lines { line, last } = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        let found = if line.is_empty() || is_open && !last.is_empty() { last } else { line };
        Some(found).filter(|line| !line.is_empty())
    }
}

/// Passes on what is read, and keeps the last line.
fn follow(mut from: impl Read + Send + 'static, mut to: impl Write + Send + 'static, line_max: usize) -> Followed {
    let (sender, end) = mpsc::channel::<()>();
    let lines = Arc::new(Mutex::new(Lines::default()));
    let kept = lines.clone();
    thread::spawn(move || {
        let _open = sender;
        let mut buffer = [0; 8192];
        loop {
            match from.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(n) => {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..n], line_max);
                    let _ = to.write_all(&buffer[..n]).and_then(|()| to.flush());
                }
            }
        }
    });
    Followed { lines, end }
}

fn signal(child: &Child, which: Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may be gone already.
        let _ = kill_process_group(group, which);
    }
}

/// What is wanted of a run beside its exit code.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// So many bytes of the last line of its output.
    pub line_max: Option<usize>,
    /// Without that line the run is nothing worth.
    pub is_result: bool,
    /// Who ends it if we cannot.
    pub guard: Option<&'a Guard>,
}

/// Runs it. `why_stop` is asked all the time whether it is to be ended, and why.
pub(crate) fn run(
    mut command: Command,
    input: Vec<u8>,
    wanted: Wanted<'_>,
    why_stop: impl Fn() -> Option<String>,
) -> End {
    command.stdin(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    if wanted.line_max.is_some() {
        command.stdout(Stdio::piped());
    }
    if let Some(guard) = wanted.guard {
        guard.mark(&mut command);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return End::Unstartable(error.to_string()),
    };
    let _watched = wanted.guard.map(|guard| guard.watch(child.id()));
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read it must not hold us up.
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let stdout = child.stdout.take().map(|from| follow(from, io::stdout(), wanted.line_max.unwrap_or(0)));
    let stderr = child.stderr.take().map(|from| follow(from, io::stderr(), LINE_MAX));
    let mut stopped: Option<(String, Instant)> = None;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return End::Failed { reason: format!("cannot be waited for: {error}"), code: None },
        }
        match &stopped {
            None => {
                if let Some(why) = why_stop() {
                    signal(&child, Signal::TERM);
                    stopped = Some((why, Instant::now()));
                }
            }
            Some((_, since)) if since.elapsed() >= KILL_AFTER => signal(&child, Signal::KILL),
            Some(_) => {}
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let last = |output: Option<Followed>, wait: Duration| output.and_then(|output| output.last_line(wait));
    if status.success() {
        return End::Done { line: last(stdout, if wanted.is_result { RESULT_WAIT } else { OUTPUT_WAIT }) };
    }
    if let Some((why, _)) = stopped {
        return End::Stopped(why);
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(number)) => format!("signal {number}"),
        (None, None) => status.to_string(),
    };
    let reason = match last(stderr, OUTPUT_WAIT) {
        Some(line) => format!("{how}: {}", String::from_utf8_lossy(&line)),
        None => how,
    };
    End::Failed { reason, code: status.code() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const LINE: Wanted<'_> = Wanted { line_max: Some(7), is_result: true, guard: None };

    fn ran(script: &str) -> End {
        run(shell(script), b"input\n".to_vec(), LINE, || None)
    }

    #[test]
    fn how_a_command_ends() {
        assert_eq!(ran("cat; echo receipt; echo"), End::Done { line: Some(b"receipt".to_vec()) });
        assert_eq!(ran("echo receipts"), End::Done { line: Some(b"receipt".to_vec()) }, "no more than is wanted");
        assert_eq!(ran("exit 0"), End::Done { line: None });
        // What it leaves running has its output for long.
        let wanted = Wanted { is_result: false, ..LINE };
        let left = run(shell("echo mine; sleep 20 & exit 0"), Vec::new(), wanted, || None);
        assert_eq!(left, End::Done { line: Some(b"mine".to_vec()) });
        let failed = |reason: &str, code| End::Failed { reason: reason.into(), code };
        assert_eq!(ran("echo a >&2; echo why >&2; exit 3"), failed("exit code 3: why", Some(3)));
        assert_eq!(ran("exit 75"), failed("exit code 75", Some(TRY_AGAIN)));
        assert_eq!(ran("kill -9 $$"), failed("signal 9", None));
        assert!(matches!(run(Command::new("/no/such"), Vec::new(), LINE, || None), End::Unstartable(_)));
        let stop = || Some("enough".to_owned());
        assert_eq!(run(shell("sleep 60 & wait"), Vec::new(), LINE, stop), End::Stopped("enough".into()));
    }

    #[test]
    fn a_command_that_ends_well_although_it_was_to_be_stopped_is_done() {
        let folder = tempfile::TempDir::new().unwrap();
        // Not before it can hear the signal.
        let stop = || folder.path().join("ready").exists().then(|| "enough".to_owned());
        let mut command = shell("trap 'exit 0' TERM; touch ready; while :; do sleep 0.05; done");
        command.current_dir(folder.path());
        assert_eq!(run(command, Vec::new(), Wanted::default(), stop), End::Done { line: None });
    }
}
