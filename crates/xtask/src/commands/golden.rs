//! `cargo xtask golden`: the golden cases against a server that is already running.

use std::io::{self, Write};
use std::time::Duration;

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::golden::case::{Case, File, Source, load};
use crate::golden::expect::Protocol;
use crate::golden::{folder, glob, run};
use crate::resp::Address;

const SYNTAX: Syntax = Syntax {
    help: "\
Play the golden cases against a server and compare every reply.

usage: cargo xtask golden HOST:PORT|SOCKET [options]

Each case empties the server (FLUSHALL): never point this at data you want to keep.
The last line is \"N passed, N failed\", one per case and protocol.

  --file PATTERN    only case files whose name matches (repeatable)
  --case PATTERN    only cases whose name matches (repeatable)
  --proto 2|3|both  protocols to play in (both)
  --source recorded|spec|all
                    recorded from a real server, written after documentation, or all (all)
  --skip WORD       leave out cases with this need or tag: lua, acl, quirk, ... (repeatable)
  --timeout SECONDS how long a reply may take (5)
  --list            list the cases and stop
  --verbose         name each case that passes
",
    options: &["--file", "--case", "--proto", "--source", "--skip", "--timeout"],
    flags: &["--list", "--verbose"],
    words: 1,
};

/// Which cases to play, and how.
#[derive(Debug)]
pub struct Choice {
    /// Patterns for file names; none means all.
    pub files: Vec<String>,
    /// Patterns for case names; none means all.
    pub cases: Vec<String>,
    /// Words that leave a case out.
    pub skip: Vec<String>,
    /// `None` is both.
    pub source: Option<Source>,
    /// In this order.
    pub protocols: Vec<Protocol>,
    /// How long a reply may take.
    pub timeout: Duration,
    /// Name what passes.
    pub verbose: bool,
}

impl Choice {
    fn from_arguments(arguments: &Arguments) -> Result<Self, Stop> {
        let seconds: f64 = arguments.number("--timeout", 5.0, 0.001)?;
        Ok(Choice {
            files: arguments.all("--file").to_vec(),
            cases: arguments.all("--case").to_vec(),
            skip: arguments.all("--skip").to_vec(),
            source: match arguments.one("--source") {
                None | Some("all") => None,
                Some("recorded") => Some(Source::Recorded),
                Some("spec") => Some(Source::Spec),
                Some(other) => return Err(Stop::Usage(format!("--source is recorded, spec or all, not {other}"))),
            },
            protocols: match arguments.one("--proto") {
                None | Some("both") => vec![Protocol::Two, Protocol::Three],
                Some("2") => vec![Protocol::Two],
                Some("3") => vec![Protocol::Three],
                Some(other) => return Err(Stop::Usage(format!("--proto is 2, 3 or both, not {other}"))),
            },
            timeout: Duration::from_secs_f64(seconds),
            verbose: arguments.has("--verbose"),
        })
    }

    fn takes(&self, file: &File, case: &Case) -> bool {
        self.source.is_none_or(|source| source == file.source)
            && (self.cases.is_empty() || self.cases.iter().any(|p| glob::fits(p, &case.name)))
            && !case.words.iter().any(|word| self.skip.contains(word))
    }
}

/// Runs the command.
///
/// # Errors
/// When the arguments or the case files make no sense.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    let choice = Choice::from_arguments(&arguments)?;
    if arguments.has("--list") {
        return list(&choice);
    }
    let [server] = arguments.words() else {
        return Err(Stop::Usage("where is the server? give HOST:PORT or the path of a unix socket".into()));
    };
    let (passed, failed) = play(&Address::parse(server)?, &choice, &mut io::stdout())?;
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn list(choice: &Choice) -> Answer {
    let files = load(&folder(), &choice.files)?;
    let mut count = 0;
    for (file, case) in files.iter().flat_map(|file| file.cases.iter().map(move |case| (file, case))) {
        if choice.takes(file, case) {
            let mark = case.mark.as_ref().map(|mark| format!(" [{mark}]")).unwrap_or_default();
            println!("{:<20} {:<38} {:>3} steps  {}{mark}", file.name, case.name, case.steps.len(), case.about);
            count += 1;
        }
    }
    println!("{count} cases");
    Ok(true)
}

/// Plays the chosen cases, each mismatch written to `out`; how many passed and failed, one per case and protocol.
///
/// # Errors
/// When the case files are not understood, or none is chosen.
pub fn play(address: &Address, choice: &Choice, out: &mut dyn Write) -> Result<(usize, usize), Stop> {
    let files = load(&folder(), &choice.files)?;
    let (mut passed, mut failed) = (0, 0);
    let mut say = |line: String| writeln!(out, "{line}").map_err(|e| Stop::Usage(format!("cannot write: {e}")));
    for (file, case) in files.iter().flat_map(|file| file.cases.iter().map(move |case| (file, case))) {
        if !choice.takes(file, case) {
            continue;
        }
        for protocol in choice.protocols.iter().filter(|p| case.protocols.contains(p)) {
            let name = format!("{} {} (RESP{})", file.name, case.name, protocol.number());
            let bad = run::play(address, case, *protocol, choice.timeout);
            if bad.is_empty() {
                passed += 1;
                if choice.verbose {
                    say(format!("ok   {name}"))?;
                }
                continue;
            }
            failed += 1;
            say(format!("FAIL {name}{}", case.mark.as_ref().map(|mark| format!(" [{mark}]")).unwrap_or_default()))?;
            for mismatch in bad {
                say(format!("  command: {}", mismatch.command))?;
                if let Some(mark) = mismatch.mark {
                    say(format!("     mark: {mark}"))?;
                }
                say(format!("     want: {}\n      got: {}", mismatch.want, mismatch.got))?;
            }
        }
    }
    if passed + failed == 0 {
        return Err(Stop::Usage("no case is chosen".into()));
    }
    Ok((passed, failed))
}
