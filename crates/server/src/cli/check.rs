//! `impel check DIR`: examines a data directory, and with `--repair NEWDIR` makes a new one of what is whole in it.
//!
//! It writes nothing but NEWDIR, and that only where there was nothing.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{FAILED, check_target, directories, expect_data, path, print, understood, usage};
use crate::check::{self, Report, Verdict, json, page, repair};
use crate::disk::{DataDir, Holder, RealDisk};
use crate::offline;

const NAME: &str = "check";

/// Between two lines on how far it has come.
const PROGRESS: Duration = Duration::from_secs(1);

const HELP: &str = "\
Usage: impel check DIR [--json] [--repair NEWDIR]

Examines a data directory without a server and without changing anything: verifies every snapshot, every segment of
the log and every record, puts the state together as a start would and asks every invariant of it. Tells what is there,
what a start would do, and what is damaged: which bytes, which log positions, written between when and when.

  --json           the same as one JSON object
  --repair NEWDIR  writes into NEWDIR, a new or empty directory, everything in DIR that is whole, as one snapshot
                   that a server can be started with, and tells what is lost. DIR stays as it is

Exit codes: 0 whole; 1 damaged, and a start would go on; 2 a start would refuse, or DIR could not be read; 64 the command
line is wrong. With --repair: 0 everything is in NEWDIR; 1 something is lost; 2 nothing was made.

A directory in which a server works can be checked (up to the last whole commit), not repaired. While a check runs, no
server can be started in DIR.
";

#[derive(Default)]
struct Arguments {
    dir: PathBuf,
    json: bool,
    repair: Option<PathBuf>,
}

/// `None`: help is wanted.
fn parse(words: &[Vec<u8>]) -> Result<Option<Arguments>, String> {
    let mut dirs = Vec::new();
    let mut arguments = Arguments::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match &word[..] {
            b"--help" | b"-h" => return Ok(None),
            b"--json" => arguments.json = true,
            b"--repair" => match words.next() {
                Some(word) if word.is_empty() => return Err("an empty path was given for NEWDIR".into()),
                Some(word) => arguments.repair = Some(path(word)),
                None => return Err("--repair wants a directory".into()),
            },
            [b'-', ..] => return Err(format!("there is no option {}", word.escape_ascii())),
            _ => dirs.push(&word[..]),
        }
    }
    [arguments.dir] = directories(dirs, ["DIR"])?;
    Ok(Some(arguments))
}

/// Runs it.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    let arguments = match understood(NAME, HELP, parse(words)) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let dir = &arguments.dir;
    if let Err(what) = expect_data(dir) {
        return usage(NAME, &what);
    }
    if let Some(target) = &arguments.repair
        && let Err(what) = check_target(dir, target)
    {
        return usage(NAME, &what);
    }
    match work(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("impel check: {error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Tells on standard error how far it has come, if somebody looks at it.
struct Progress {
    is_seen: bool,
    next: Instant,
}

impl Progress {
    fn tell(&mut self, what: &str) {
        let now = Instant::now();
        if self.is_seen && now >= self.next {
            self.next = now + PROGRESS;
            let _ = writeln!(std::io::stderr(), "{what} ...");
        }
    }
}

fn work(arguments: &Arguments) -> Result<u8, Box<dyn std::error::Error>> {
    let mut progress = Progress { is_seen: std::io::stderr().is_terminal(), next: Instant::now() + PROGRESS };
    let tell = &mut |what: &str| progress.tell(what);
    let (dir, holder) = DataDir::look(Arc::new(RealDisk), &arguments.dir)?;
    let report = check::examine(&dir, holder, &arguments.dir.display().to_string(), tell)?;
    let Some(target) = &arguments.repair else {
        print(&if arguments.json { json::both(&json::report(&report), None) + "\n" } else { page::page(&report) });
        return Ok(report.verdict() as u8);
    };
    if holder == Holder::Server {
        return Err("a server works in this directory: stop it before anything is repaired".into());
    }
    let repaired = repair_into(&dir, target, &report, tell)?;
    let shown = target.display().to_string();
    if arguments.json {
        print(&(json::both(&json::report(&report), Some(&json::repaired(&repaired, &shown))) + "\n"));
    } else {
        print(&(page::page(&report) + &page::repaired(&repaired, &shown)));
    }
    Ok(u8::from(!repaired.is_complete()))
}

fn repair_into(
    dir: &Arc<DataDir>,
    target: &Path,
    report: &Report,
    tell: &mut dyn FnMut(&str),
) -> Result<repair::Repaired, Box<dyn std::error::Error>> {
    repair::refuse_what_is_foreign(report)?;
    let repaired = offline::make(target, |made| Ok(repair::repair(dir, made, report, tell)?))?;
    // Nothing is said to be repaired that a start would not take.
    let (made, holder) = DataDir::look(Arc::new(RealDisk), target)?;
    let again = check::examine(&made, holder, &target.display().to_string(), tell)?;
    if again.verdict() != Verdict::Whole || again.state.digest != repaired.digest {
        return Err(format!("what was made is not whole:\n{}", page::page(&again)).into());
    }
    Ok(repaired)
}
