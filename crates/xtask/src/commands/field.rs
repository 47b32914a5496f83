//! `cargo xtask field`: the field cases against a server that is already running.

use std::io::{self, Write};
use std::time::Duration;

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::field::case_file;
use crate::field::play::{Options, Reload, Verdict, play};
use crate::field::script::{Case, load};
use crate::resp::Address;

const SYNTAX: Syntax = Syntax {
    help: "\
Play the field cases against a server and compare every reply.

usage: cargo xtask field HOST:PORT [options]
       cargo xtask field --socket PATH [options]

Each case empties the server (FLUSHALL): never point this at data you want to keep.
The last line is \"N passed, N failed, N skipped\".

  --socket PATH     the server's unix socket, instead of HOST:PORT
  --case N          only case N (repeatable; 2,5 for two)
  --kind KIND       only cases of this kind: lag, claim, blocking, ... (repeatable)
  --reload-cmd CMD  shell command that restarts the server keeping its state and returns,
                    for `~ reload` (without it: DEBUG RELOAD)
  --replica PORT    a replica of the server, [HOST:]PORT, for `~ sync` and connection R
  --timeout SECONDS how long a reply may take (5)
  --list            list the cases and stop
  --verbose         show each line played and each case passed
",
    options: &["--socket", "--case", "--kind", "--reload-cmd", "--replica", "--timeout"],
    flags: &["--list", "--verbose"],
    words: 1,
};

/// Runs the command.
///
/// # Errors
/// When the arguments or the case file make no sense.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    let cases = chosen(load(&case_file())?, &arguments);
    if cases.is_empty() {
        return Err(Stop::Usage("no case is chosen".into()));
    }
    if arguments.has("--list") {
        cases.iter().for_each(|case| println!("{case}: {}", case.symptom));
        println!("{} cases", cases.len());
        return Ok(true);
    }
    let server = match (arguments.words(), arguments.one("--socket")) {
        ([server], None) => Address::parse(server)?,
        ([], Some(path)) => Address::Unix(path.into()),
        _ => return Err(Stop::Usage("where is the server? give HOST:PORT or --socket PATH".into())),
    };
    let replica = match arguments.one("--replica").map(Address::parse).transpose()? {
        // A bare port means the host of the server.
        Some(Address::Tcp(_, port)) if arguments.one("--replica").is_some_and(|text| !text.contains(':')) => {
            Some(match &server {
                Address::Tcp(host, _) => Address::Tcp(host.clone(), port),
                Address::Unix(_) => Address::Tcp("127.0.0.1".into(), port),
            })
        }
        other => other,
    };
    let seconds: f64 = arguments.number("--timeout", 5.0, 0.001)?;
    let reload = arguments.one("--reload-cmd").map_or(Reload::Debug, |command| Reload::Shell(command.to_owned()));
    let verbose = arguments.has("--verbose");
    let mut options = Options { server, replica, reload, timeout: Duration::from_secs_f64(seconds), verbose };
    let tally = play_all(&cases, &mut options, &mut io::stdout())?;
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    Ok(tally.failed == 0)
}

/// How many cases ended how.
#[derive(Debug, Default, PartialEq)]
pub struct Tally {
    /// As wanted.
    pub passed: usize,
    /// Not as wanted.
    pub failed: usize,
    /// Not played.
    pub skipped: usize,
}

/// Plays the cases in order, each failure and skip written to `out`.
///
/// # Errors
/// When `out` cannot be written.
pub fn play_all(cases: &[Case], options: &mut Options<'_>, out: &mut dyn Write) -> Result<Tally, Stop> {
    let mut tally = Tally::default();
    for case in cases {
        let line = match play(case, options) {
            Verdict::Passed => {
                tally.passed += 1;
                options.verbose.then(|| format!("ok   {case}"))
            }
            Verdict::Failed(bad) => {
                tally.failed += 1;
                Some(format!("FAIL {case}\n{}", bad.join("\n")))
            }
            Verdict::Skipped(why) => {
                tally.skipped += 1;
                Some(format!("SKIP {case}: {why}"))
            }
        };
        if let Some(line) = line {
            writeln!(out, "{line}").map_err(|e| Stop::Usage(format!("cannot write: {e}")))?;
        }
    }
    Ok(tally)
}

fn chosen(cases: Vec<Case>, arguments: &Arguments) -> Vec<Case> {
    let numbers: Vec<&str> = arguments.all("--case").iter().flat_map(|list| list.split(',')).collect();
    let kinds = arguments.all("--kind");
    cases
        .into_iter()
        .filter(|case| numbers.is_empty() || numbers.iter().any(|number| case.is_number(number)))
        .filter(|case| kinds.is_empty() || kinds.iter().any(|kind| case.is_kind(kind)))
        .collect()
}
