//! `impel lab`: the eight cases of claimed work on a server; and `impel lab verify`, from the evidence alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use impel_core::state::decision::Decision;

use super::options::{Word, Words, read};
use super::verify::{Found, verify};
use super::{FAILED, print, understood};
use crate::audit::Trouble;
use crate::calendar::timestamp;
use crate::client::address;
use crate::clock;
use crate::lab::manifest::Terms;
use crate::lab::observe::Report;
use crate::lab::plan::IDLE_MAX_MS;
use crate::lab::{Options, bundle, run as run_lab};

const NAME: &str = "lab";

/// Longest prefix, in bytes.
const PREFIX_MAX_BYTES: usize = 200;

const HELP: &str = "\
Usage: impel lab --out DIR [options]
       impel lab verify DIR [--sum SHA256]

Is the work of a claimed entry done? Runs eight cases on a server, this one or any other of the protocol, under keys of its own, and
compares what the group shows with a book of effects that the server has no part in:
  C01 read and not acknowledged        C05 done, not acknowledged, claimed again
  C02 claimed before the idle time     C06 deleted while pending, then claimed
  C03 claimed, and nothing done (kept) C07 claimed, done, acknowledged
  C04 its first owner resumes          C08 both books reconciled
What must come is written and hashed before anything is asked. Prints a line for each case, the decision, and the sum of the evidence.

  --out DIR            keep all evidence in this new directory
  --prefix P           what the keys begin with (default: lab: and the time). If there are such keys, nothing is run
  --idle-ms MS         the idle time after which an entry may be claimed, 1 to 600000 (default 1000). A run takes two of them
  --handler CMD        does the work of C05 and C07, run by sh for each delivery, instead of the built-in handler
  --handler-timeout MS a handler that takes longer is ended (default 60000)
  --expect-version V   RERUN unless the server has this version
  --keep               leave the keys
  --json               one object of JSON a line

A handler gets what a command of impel work gets: the entry as a line of JSON on standard input, and IMPEL_STREAM, IMPEL_GROUP,
IMPEL_CONSUMER, IMPEL_ID, IMPEL_DELIVERY, IMPEL_WORK, IMPEL_FIELD_name. It shows its effect as a file in the directory IMPEL_EFFECTS,
named $IMPEL_WORK, or that and a point and anything; its content is what the effect is. Exit code 0 means done: the entry is
acknowledged. It must be that also if the work had been done before. Above 128, as shells say it of a signal, nobody knows.
CMD stands in the manifest: no password in it.

verify asks no server: it compares all sums, draws every conclusion again from the kept replies and effects, and names what differs.
--sum is the sum that the run printed: with it made-up replies are found as well.
";

const EXITS: &str = "
Exit codes: 0 ACCEPT: both books are as they must be; 3 REPAIR: all is known, and the handler is wrong; 4 RERUN: the evidence is not
whole; 5 HOLD: nobody can say what was done, or the server cannot be relied on. Of several HOLD counts before RERUN, REPAIR, ACCEPT.
2 nothing was run (the server, keys that are there, DIR), or the evidence cannot be kept; 64 the command line is wrong.
verify: 0 nothing was altered; 1 something was; 2 there is nothing to read.
";

struct Arguments {
    folder: PathBuf,
    terms: Terms,
    json: bool,
}

/// Runs it.
pub fn run(words: &[Vec<u8>]) -> ExitCode {
    if let Some((first, rest)) = words.split_first()
        && first == b"verify"
    {
        return verify(NAME, &format!("{HELP}{EXITS}"), rest, examine);
    }
    let help = &format!("{HELP}\n{}{EXITS}", address::HELP);
    let (arguments, words) = match understood(NAME, help, read(words, parse)) {
        Ok(understood) => understood,
        Err(code) => return code,
    };
    let Arguments { folder, mut terms, json } = arguments;
    terms.url = words.address.to_string();
    match experiment(&Options { address: words.address.clone(), timeout: words.timeout, folder, terms }, json) {
        Ok(decision) => ExitCode::from(exit_code(decision)),
        Err(trouble) => {
            eprintln!("impel lab: {trouble}");
            ExitCode::from(FAILED)
        }
    }
}

fn exit_code(decision: Decision) -> u8 {
    match decision {
        Decision::Accept => 0,
        Decision::Repair => 3,
        Decision::Rerun => 4,
        Decision::Open | Decision::Hold | Decision::Unknown => 5,
    }
}

fn parse(words: &mut Words<'_>) -> Result<Option<Arguments>, String> {
    let now_us = clock::wall_us();
    let mut folder = None;
    let mut json = false;
    let mut terms = Terms {
        tool: concat!("impel ", env!("CARGO_PKG_VERSION")).into(),
        url: String::new(),
        prefix: format!("lab:{now_us}-{}:", std::process::id()),
        idle_ms: 1000,
        handler_ms: 60_000,
        handler: None,
        version: None,
        keep: false,
        made: timestamp(now_us / 1000),
    };
    while let Some(word) = words.next()? {
        let name = match word {
            Word::Option(name) => name,
            Word::Plain(word) => return Err(format!("{} is one word too many", word.escape_ascii())),
        };
        let given = |value: String| if value.is_empty() { Err(format!("{name} wants a value")) } else { Ok(value) };
        match &name[..] {
            "--help" | "-h" => return Ok(None),
            "--out" => folder = Some(PathBuf::from(given(words.value(&name)?)?)),
            "--prefix" => {
                terms.prefix = words.value(&name)?;
                if !(1..=PREFIX_MAX_BYTES).contains(&terms.prefix.len()) {
                    return Err(format!("--prefix is 1 to {PREFIX_MAX_BYTES} bytes"));
                }
            }
            "--idle-ms" => {
                let idle_ms = words.number(&name)?;
                if !(1..=IDLE_MAX_MS).contains(&idle_ms) {
                    return Err(format!("--idle-ms is 1 to {IDLE_MAX_MS}"));
                }
                terms.idle_ms = idle_ms;
            }
            "--handler" => terms.handler = Some(given(words.value(&name)?)?),
            "--handler-timeout" => {
                terms.handler_ms =
                    Some(words.number(&name)?).filter(|&ms| ms > 0).ok_or("--handler-timeout is 1 or more")?;
            }
            "--expect-version" => terms.version = Some(given(words.value(&name)?)?),
            "--keep" => terms.keep = true,
            "--json" => json = true,
            _ => return Err(format!("there is no option {name}")),
        }
    }
    if terms.handler.as_ref().is_some_and(|line| line.contains('\0')) {
        return Err("--handler is no command".into());
    }
    Ok(Some(Arguments { folder: folder.ok_or("--out is wanted")?, terms, json }))
}

/// Runs the cases: the decision.
fn experiment(options: &Options, json: bool) -> Result<Decision, Trouble> {
    let mut manifest = String::new();
    let outcome = run_lab(options, &mut |sum| {
        sum.clone_into(&mut manifest);
        if !json {
            print(&format!("manifest {sum}\n"));
        }
    })?;
    let report = &outcome.report;
    if json {
        for one in &report.cases {
            print(&format!("{}\n", one.json()));
        }
        let mut result = report.json();
        result["manifest"] = serde_json::Value::from(manifest);
        result["sum"] = serde_json::Value::from(outcome.sum.as_str());
        print(&format!("{result}\n"));
    } else {
        print(&page(report));
        print(&format!("evidence in {}, sum {}\n", options.folder.display(), outcome.sum));
    }
    if let Some(left) = &outcome.left {
        eprintln!("impel lab: {left}");
    }
    Ok(outcome.decision())
}

fn page(report: &Report) -> String {
    let mut text = match &report.server {
        Some(server) => format!("server   {server}\n\n"),
        None => "\n".into(),
    };
    for one in &report.cases {
        let ledger = match (&one.ledger["decision"], &one.ledger["reason"]) {
            (serde_json::Value::String(decision), serde_json::Value::String(reason)) => {
                format!("   (server's ledger: {decision} {reason})")
            }
            _ => String::new(),
        };
        text +=
            &format!("{} {:<6} {}: {}\n", one.case.name, one.row.decision.name(), one.row.reason, one.case.condition);
        text += &format!("           {} | {}{ledger}\n", one.state, one.work);
        if (&one.state[..], &one.work[..]) != (one.case.state, one.case.work) {
            text += &format!("  expected {} | {}\n", one.case.state, one.case.work);
        }
        if let Some(missing) = &one.missing {
            text += &format!("  missing  {missing}\n");
        }
    }
    text += "\n";
    for check in &report.checks {
        text += &format!("{:<16} {:<6} {}\n", check.name, check.decision.name(), check.reason);
    }
    text + &format!("{:<16} {}\n", "the run", report.decision.name())
}

/// Draws all conclusions of a bundle again.
fn examine(folder: &Path) -> Result<Found, Trouble> {
    let verified = bundle::verify(folder)?;
    let content = verified.decision.map_or("no decision", Decision::name).to_owned();
    Ok(Found { differences: verified.differences, content, sum: verified.sum })
}
