//! Parts that play golden and field cases.

use std::time::Duration;

use super::{Context, Outcome, Tally};
use crate::arguments::Stop;
use crate::commands::compat::{OURS, THEIRS, passed};
use crate::commands::field::play_all;
use crate::commands::golden::{Choice, play};
use crate::field::case_file;
use crate::field::play::{Options, Reload, Verdict, play as play_one};
use crate::field::script::{Case, load};
use crate::golden::case::Source;
use crate::golden::expect::Protocol;
use crate::resp::Address;
use crate::server::Server;

/// Needs of golden cases that the server does not serve yet. This is the only such list; it may only shrink.
pub const GOLDEN_NOT_SERVED_YET: &[&str] = &["list", "set", "dump", "cluster"];

/// Field cases that need what is not built yet, and what that is. One that passes must go from here.
pub const FIELD_NOT_SERVED_YET: &[(&str, &str)] =
    &[("038", "a replica"), ("086", "a replica"), ("088", "a replica"), ("089", "a replica")];

/// What Redis 8.2.3 is known to get wrong, or not to have, of the field cases.
const FIELD_FAILS_ON_REDIS: &[&str] = &["002", "005", "007", "074", "076", "077", "088", "091", "092", "094", "095"];

/// Keeps nothing: replies come as fast as the engine is.
const IN_MEMORY: &[&str] = &["--save", "", "--appendonly", "no"];
/// Keeps everything: no reply before its record is on disk.
const DURABLE: &[&str] = &["--save", "", "--appendonly", "yes", "--appendfsync", "always"];

/// How long a reply may take.
const TIMEOUT: Duration = Duration::from_secs(5);

pub fn golden_tcp(context: &Context) -> Outcome {
    let server = context.start_server(IN_MEMORY)?;
    golden(&server, &server.address(), GOLDEN_NOT_SERVED_YET, None)
}

pub fn golden_unix(context: &Context) -> Outcome {
    let server = context.start_server(DURABLE)?;
    golden(&server, &Address::Unix(server.socket()), GOLDEN_NOT_SERVED_YET, None)
}

/// Plays the cases of one source, or all: those of [`Source::Spec`] are newer than the Redis that we compare with.
fn golden(server: &Server, address: &Address, skip: &[&str], source: Option<Source>) -> Outcome {
    let choice = Choice {
        files: Vec::new(),
        cases: Vec::new(),
        skip: skip.iter().map(|word| (*word).to_owned()).collect(),
        source,
        protocols: vec![Protocol::Two, Protocol::Three],
        timeout: TIMEOUT,
        verbose: false,
    };
    let mut report = Vec::new();
    let (passed, failed) = play(address, &choice, &mut report).map_err(message)?;
    Ok(told(server, passed, failed, &report))
}

/// The tally, with what the server printed where something failed: that may say why.
fn told(server: &Server, passed: usize, failed: usize, report: &[u8]) -> Tally {
    let mut report = String::from_utf8_lossy(report).into_owned();
    if failed > 0 {
        report.push_str(&server.complaint(&format!("{failed} cases failed on it")));
    }
    Tally { passed, failed, report }
}

pub fn field(context: &Context) -> Outcome {
    let mut server = context.start_server(DURABLE)?;
    let all = load(&case_file())?;
    let waits = |case: &Case| FIELD_NOT_SERVED_YET.iter().find(|(number, _)| case.is_number(number));
    if let Some((number, _)) = FIELD_NOT_SERVED_YET.iter().find(|(n, _)| !all.iter().any(|case| case.is_number(n))) {
        return Err(format!("there is no field case {number}"));
    }
    let (waiting, cases): (Vec<Case>, Vec<Case>) = all.into_iter().partition(|case| waits(case).is_some());
    let address = server.address();
    let mut restart = || server.kill_and_restart();
    let mut options = Options {
        server: address,
        replica: None,
        reload: Reload::Call(&mut restart),
        timeout: TIMEOUT,
        verbose: false,
    };
    let mut report = Vec::new();
    let tally = play_all(&cases, &mut options, &mut report).map_err(message)?;
    let passing = waiting.iter().filter(|case| play_one(case, &mut options) == Verdict::Passed);
    let passing: Vec<String> = passing
        .map(|case| format!("FAIL {case}: passes now, so it must leave the table of what is not served\n"))
        .collect();
    report.extend(passing.concat().into_bytes());
    drop(options);
    Ok(told(&server, tally.passed, tally.failed + tally.skipped + passing.len(), &report))
}

/// The players themselves are tested on the server that the cases come from: all golden cases pass there, and of the
/// field cases exactly the known ones fail.
pub fn players(context: &Context) -> Outcome {
    let redis = context.redis()?;
    let arguments = [IN_MEMORY, &["--enable-debug-command", "yes"]].concat();
    let server = Server::start(&redis, &arguments)?;
    let mut tally = golden(&server, &server.address(), &[], Some(Source::Recorded))?;
    let primary = format!("127.0.0.1 {}", server.port());
    let replica = Server::start(&redis, &[&arguments[..], &["--replicaof", &primary]].concat())?;
    let mut options = Options {
        server: server.address(),
        replica: Some(replica.address()),
        reload: Reload::Debug,
        timeout: TIMEOUT,
        verbose: false,
    };
    for case in load(&case_file())? {
        let should_fail = FIELD_FAILS_ON_REDIS.contains(&case.number.as_str());
        match (play_one(&case, &mut options), should_fail) {
            (Verdict::Passed, false) | (Verdict::Failed(_), true) => tally.passed += 1,
            (verdict, _) => {
                tally.failed += 1;
                tally.report.push_str(&format!("FAIL {case}: {verdict:?}\n"));
            }
        }
    }
    Ok(tally)
}

/// How long random commands are played.
const COMPAT_TIME: Duration = Duration::from_secs(12);

/// Random commands to the server and to Redis. The sequences are the same each time.
pub fn compat(context: &Context) -> Outcome {
    let ours = context.start_server(OURS)?;
    let theirs = Server::start(&context.redis()?, THEIRS)?;
    let mut report = Vec::new();
    let outcome = crate::compat::play(&ours, &theirs, 1, COMPAT_TIME, &mut report)?;
    Ok(told(&ours, passed(&outcome), outcome.different, &report))
}

fn message(stop: Stop) -> String {
    match stop {
        Stop::Usage(message) => message,
        Stop::Help(text) => text.to_owned(),
    }
}
