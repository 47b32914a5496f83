//! `impel restore DIR NEWDIR`: makes of a data directory or a backup the state at a moment of the past.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use super::{FAILED, check_target, directories, expect_data, print, understood, usage};
use crate::calendar::{self, timestamp};
use crate::disk::{DataDir, RealDisk};
use crate::offline;
use crate::restore::{self, Moment, Restored};

const NAME: &str = "restore";

const HELP: &str = "\
Usage: impel restore DIR NEWDIR [--at TIME | --position N]

Makes of DIR, a data directory or a folder that `impel backup` has filled, a new data directory NEWDIR with the state at a
moment of the past, which a server can be started with. DIR stays as it is.

  --at TIME     the state at this time: with every commit of that time or before. In UTC, as 2026-11-30T12:34:56.789Z or
                a beginning of it, or as seconds since 1970
  --position N  the state at this position of the log, as `impel check` and the server's log tell positions
  Without both: the newest state.

How far back it goes depends on what DIR has kept: see the server's setting log-retention, and `impel backup --help`.

Exit codes: 0 restored; 2 not, for the reason given, and nothing is left in NEWDIR that a server would take for data; 64 the
command line is wrong.
";

struct Arguments {
    from: PathBuf,
    to: PathBuf,
    moment: Moment,
}

/// `None`: help is wanted.
fn parse(words: &[Vec<u8>]) -> Result<Option<Arguments>, String> {
    let (mut paths, mut moments) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().and_then(|word| std::str::from_utf8(word).ok());
        match &word[..] {
            b"--help" | b"-h" => return Ok(None),
            b"--at" => {
                let at_ms = value().and_then(calendar::parse);
                moments.push(Moment::Time(
                    at_ms.ok_or("--at wants a time in UTC, as 2026-11-30T12:34:56Z or in seconds since 1970")?,
                ));
            }
            b"--position" => {
                let position = value().and_then(|text| text.parse().ok());
                moments.push(Moment::Position(position.ok_or("--position wants a number")?));
            }
            [b'-', ..] => return Err(format!("there is no option {}", word.escape_ascii())),
            _ => paths.push(&word[..]),
        }
    }
    if moments.len() > 1 {
        return Err("one moment at a time".into());
    }
    let [from, to] = directories(paths, ["DIR", "NEWDIR"])?;
    Ok(Some(Arguments { from, to, moment: moments.pop().unwrap_or(Moment::Newest) }))
}

/// Runs it.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    let arguments = match understood(NAME, HELP, parse(words)) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let Arguments { from, to, moment } = &arguments;
    if let Err(what) = expect_data(from).and_then(|()| check_target(from, to)) {
        return usage(NAME, &what);
    }
    match work(&arguments) {
        Ok(restored) => {
            print(&page(&restored, *moment));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("impel restore: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn work(arguments: &Arguments) -> Result<Restored, Box<dyn std::error::Error>> {
    let (dir, _) = DataDir::look(Arc::new(RealDisk), &arguments.from)?;
    let mut engine = offline::empty_engine();
    // Nothing is made before it is certain that there is something to be made.
    let restored = restore::read(&dir, arguments.moment, &mut engine)?;
    offline::make(&arguments.to, |target| Ok(offline::write(&mut engine, restored.position, target)?))?;
    Ok(restored)
}

fn page(restored: &Restored, moment: Moment) -> String {
    let from = match &restored.base {
        Some(info) => format!("the snapshot of {} (position {})", timestamp(info.now_ms), info.position),
        None => "the beginning of the log".into(),
    };
    let when =
        restored.now_ms.map_or("before anything was written".into(), |now_ms| format!("of {}", timestamp(now_ms)));
    let end = if restored.is_end && moment != Moment::Newest { ", which is the end of what is there" } else { "" };
    format!(
        "restored from {from} and {} commits of the log: the state at position {}, {when}{end}\n",
        restored.commits, restored.position
    )
}
