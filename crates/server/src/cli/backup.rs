//! `impel backup DIR TO`: copies a data directory, also one in which a server works, into a folder of its own, and what is
//! new the next time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use super::{FAILED, check_outside, directories, expect_data, print, understood, usage};
use crate::backup::{self, Report};
use crate::disk::{Disk, RealDisk};

const NAME: &str = "backup";

const HELP: &str = "\
Usage: impel backup DIR TO [--retention SECONDS]

Copies the data directory DIR into the folder TO, while a server works in DIR or not. Called again with the same TO it
copies what is new since then. Everything that was durable when it was called is in the copy, and every byte of the copy
is verified. The server is not asked and need not run.

TO is a data directory: a server can be started on (a copy of) it, `impel check TO` examines it, and `impel restore TO NEW`
makes of it the state of any moment since the first snapshot in it. Nothing is ever removed from it, but

  --retention SECONDS  removes snapshots and log in TO that are not needed to restore any moment of the last so many
                       seconds before the newest snapshot

To go back to any moment without gaps, call it at least once in the time that the server keeps its own log: until the next
snapshot but one, or as long as its setting log-retention says.

Exit codes: 0 copied; 2 not, for the reason given; 64 the command line is wrong.
";

struct Arguments {
    from: PathBuf,
    to: PathBuf,
    keep_ms: Option<u64>,
}

/// `None`: help is wanted.
fn parse(words: &[Vec<u8>]) -> Result<Option<Arguments>, String> {
    let (mut paths, mut keep_ms) = (Vec::new(), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match &word[..] {
            b"--help" | b"-h" => return Ok(None),
            b"--retention" => {
                let seconds = words.next().and_then(|word| std::str::from_utf8(word).ok()?.parse::<u32>().ok());
                keep_ms = Some(u64::from(seconds.ok_or("--retention wants a number of seconds")?) * 1000);
            }
            [b'-', ..] => return Err(format!("there is no option {}", word.escape_ascii())),
            _ => paths.push(&word[..]),
        }
    }
    let [from, to] = directories(paths, ["DIR", "TO"])?;
    Ok(Some(Arguments { from, to, keep_ms }))
}

/// Runs it.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    let arguments = match understood(NAME, HELP, parse(words)) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let Arguments { from, to, keep_ms } = arguments;
    if let Err(what) = expect_data(&from).and_then(|()| check_outside(&from, &to)) {
        return usage(NAME, &what);
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    match backup::run(&disk, &from, &to, keep_ms) {
        Ok(report) => {
            print(&page(&report, &to));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("impel backup: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn page(report: &Report, to: &Path) -> String {
    use std::fmt::Write;
    let mut text = format!(
        "copied {} bytes: {} segments of the log that were new or had grown, {} snapshots\n",
        report.len_bytes, report.segments, report.snapshots
    );
    for note in report.notes.iter().chain(&report.recovery.notes) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "note: {note}");
    }
    if let Some((from, to)) = report.gap {
        let _ = writeln!(
            text,
            "note: the server had let go of log positions {from} to {to} before they were copied: moments in there cannot be restored \
             (see its setting log-retention)"
        );
    }
    let _ = writeln!(text, "{} now reaches log position {}", to.display(), report.recovery.end);
    text
}
