//! The work of an entry: the user's command, or the built-in one, which does it once and knows it when it comes again.
//!
//! What it does to the world is a matter of the folder of effects alone; what it says is its exit code. Neither is taken for the
//! other.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::worker::child::{self, End, Wanted};
use crate::worker::job::Job;

/// A shell adds this to the number of the signal that ended what it ran.
const SIGNAL: i32 = 128;

/// What a handler says when it has ended: its exit code, if it has one, and why.
pub(super) type Word = (Option<i32>, Option<String>);

/// Runs the user's command.
pub(super) fn command(line: &str, job: &Job<'_>, effects: &Path, limit: Duration, stop: &AtomicBool) -> Word {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    job.set_environment(&mut command);
    command.env("IMPEL_EFFECTS", effects);
    // Standard output is for what the lab says.
    command.stdout(io::stderr());
    let begun = Instant::now();
    let why_stop = || {
        if stop.load(Ordering::SeqCst) {
            return Some("the run was ended".to_owned());
        }
        (begun.elapsed() >= limit).then(|| format!("not done within {} ms", limit.as_millis()))
    };
    match child::run(command, job.input(), Wanted::default(), why_stop) {
        End::Done { .. } => (Some(0), None),
        End::Failed { reason, code } => (code.filter(|&code| code <= SIGNAL), Some(reason)),
        End::Stopped(reason) => (None, Some(reason)),
        End::Unstartable(what) => (Some(127), Some(format!("sh cannot be run: {what}"))),
    }
}

/// Does the work itself: one effect, made in one step, and never another.
pub(super) fn built_in(job: &Job<'_>, effects: &Path) -> Word {
    let work = job.work.unwrap_or(&job.entry.id);
    let content = format!("work {work}\nentry {}\n", job.entry.id);
    let path = effects.join(work);
    let made =
        File::create_new(&path).and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()));
    match made {
        Ok(()) => (Some(0), None),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::read_to_string(&path) {
            Ok(there) if there == content => (Some(0), Some("done before".into())),
            _ => (Some(1), Some("another effect of the same work is there".into())),
        },
        Err(error) => (Some(1), Some(error.to_string())),
    }
}
