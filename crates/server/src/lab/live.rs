//! A run against a server: step by step what was planned, everything kept as it comes. It decides nothing.
//!
//! It never waits without a bound, goes on with what does not depend on a step that failed, ends when the connection does, and
//! removes its keys in any case.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use impel_core::state::decision::Decision;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::evidence::Recorder;
use super::manifest::Terms;
use super::observe::Report;
use super::plan::{self, Ask, GROUP, Handle, Step, When};
use super::{bundle, effects, handler};
use crate::audit::Trouble;
use crate::calendar::timestamp;
use crate::client::entry::Entry;
use crate::client::{Address, Connection, Failure, Reply};
use crate::clock;
use crate::worker::job::Job;

/// Pages of the look for keys at most.
const SCAN_PAGES_MAX: usize = 1_000_000;

/// How long a server that has failed may take to let its keys be removed.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Added to a fifth of the idle time, so that clocks may differ a little.
const WAIT_MORE: Duration = Duration::from_millis(20);

/// How often a signal is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the server is.
    pub address: Address,
    /// How long it may take for a reply.
    pub timeout: Duration,
    /// The folder that is to be made.
    pub folder: PathBuf,
    /// What the run is to be.
    pub terms: Terms,
}

/// What came of it.
pub struct Outcome {
    /// The conclusions.
    pub report: Report,
    /// The sum of the sums of the evidence.
    pub sum: String,
    /// Why keys may have been left behind, if they may.
    pub left: Option<String>,
}

struct Live<'a> {
    terms: &'a Terms,
    recorder: Recorder,
    connection: Connection,
    stop: Arc<AtomicBool>,
    /// Streams of which a step failed.
    broken: Vec<&'static str>,
    /// Replies by case and step.
    replies: Vec<(&'static str, String, Reply)>,
    /// Cases whose last handler said that the work is done.
    done: Vec<&'static str>,
    runs: usize,
}

fn now() -> String {
    timestamp(clock::wall_us() / 1000)
}

/// Runs all cases. `tell` gets the sum of the manifest when it is frozen.
pub fn run(options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Outcome, Trouble> {
    let (mut recorder, sum) = Recorder::begin(&options.folder, &options.terms)?;
    tell(&sum);
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        // A second one ends the process as if this did not listen.
        signal_hook::flag::register_conditional_default(signal, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let connection = match begin(options, &mut recorder, &stop) {
        Ok(connection) => connection,
        Err(trouble) => {
            // Nothing was run, and there is nothing to keep.
            fs::remove_dir_all(&options.folder)?;
            return Err(trouble);
        }
    };
    let mut live = Live {
        terms: &options.terms,
        recorder,
        connection,
        stop,
        broken: Vec::new(),
        replies: Vec::new(),
        done: Vec::new(),
        runs: 0,
    };
    let went = live.all();
    let left = if options.terms.keep { None } else { live.clean(options) };
    went.map_err(|trouble| match &left {
        Some(left) => Trouble(format!("{trouble}; {left}")),
        None => trouble,
    })?;
    let effects = effects::look(&live.recorder.effects())?;
    live.recorder.journal(&effects::last_json(&effects, &now()))?;
    let (report, sum) = bundle::seal(&options.folder)?;
    Ok(Outcome { report, sum, left })
}

/// Is the server there, and no key with the prefix?
fn begin(options: &Options, recorder: &mut Recorder, stop: &AtomicBool) -> Result<Connection, Trouble> {
    let at = |what: &dyn std::fmt::Display| Trouble(format!("{}: {what}", options.address));
    let mut connection = Connection::open(&options.address, options.timeout).map_err(|failure| at(&failure))?;
    let mut ask = |ask: &Ask| match exchange(&mut connection, recorder, ask)? {
        Ok(Reply::Error(text)) => Err(at(&format!("{}: {}", ask.words[0], String::from_utf8_lossy(&text)))),
        Ok(reply) => Ok(reply),
        Err(failure) => Err(at(&failure)),
    };
    ask(&plan::info())?;
    let mut cursor = "0".to_owned();
    for page in 1..=SCAN_PAGES_MAX {
        let reply = ask(&plan::scan(&options.terms, page, &cursor))?;
        let [next, keys] = reply.items() else { return Err(at(&"SCAN: a strange reply")) };
        if let Some(key) = keys.items().first() {
            let prefix = &options.terms.prefix;
            return Err(at(&format!(
                "there are keys that begin with {prefix} ({}); choose another --prefix",
                key.text()
            )));
        }
        if stop.load(Ordering::SeqCst) {
            return Err(Trouble("ended by a signal, before anything was run".into()));
        }
        cursor = next.text();
        if cursor == "0" {
            return Ok(connection);
        }
    }
    Err(at(&"SCAN does not come to an end"))
}

/// Sends a command and keeps all of it. The inner error is that of the connection.
fn exchange(
    connection: &mut Connection,
    recorder: &mut Recorder,
    ask: &Ask,
) -> Result<Result<Reply, Failure>, Trouble> {
    recorder.request(ask)?;
    let (at, mut raw) = (now(), Vec::new());
    let reply = connection.ask_whole(&ask.words, &mut raw);
    let failure = reply.as_ref().err().map(ToString::to_string);
    recorder.reply(ask, &at, &raw, failure.as_deref())?;
    Ok(reply)
}

impl Live<'_> {
    /// Takes the steps until one fails for good. Only what cannot be kept is an error here.
    fn all(&mut self) -> Result<(), Trouble> {
        for step in plan::steps(self.terms) {
            if self.stop.load(Ordering::SeqCst) {
                eprintln!("impel lab: ended by a signal");
                return Ok(());
            }
            match step {
                Step::Ask(ask) if ask.when != When::AtTheEnd => {
                    if !self.ask(ask)? {
                        return Ok(());
                    }
                }
                Step::Ask(_) => {}
                Step::Wait => self.wait(),
                Step::Handle(handle) => self.handle(&handle)?,
            }
        }
        Ok(())
    }

    /// Answers whether the connection is still good.
    fn ask(&mut self, ask: Ask) -> Result<bool, Trouble> {
        let is_broken = ask.stream.is_some_and(|stream| self.broken.contains(&stream.name));
        if is_broken || ask.when == When::Done && !self.done.contains(&ask.case) {
            return Ok(true);
        }
        match exchange(&mut self.connection, &mut self.recorder, &ask)? {
            Ok(Reply::Error(text)) => {
                if !ask.is_optional {
                    eprintln!("impel lab: {} {}: {}", ask.case, ask.name, String::from_utf8_lossy(&text));
                    self.broken.extend(ask.stream.map(|stream| stream.name));
                }
                Ok(true)
            }
            Ok(reply) => {
                self.replies.push((ask.case, ask.name, reply));
                Ok(true)
            }
            Err(failure) => {
                eprintln!("impel lab: {} {}: {failure}", ask.case, ask.name);
                Ok(false)
            }
        }
    }

    fn reply(&self, case: &str, step: &str) -> &[Reply] {
        let found = self.replies.iter().find(|(of, name, _)| *of == case && name == step);
        found.map_or(&[][..], |(_, _, reply)| reply.items())
    }

    fn wait(&self) {
        let idle = Duration::from_millis(self.terms.idle_ms);
        let until = Instant::now() + idle + idle / 5 + WAIT_MORE;
        while !self.stop.load(Ordering::SeqCst) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Runs the handler, if the claim gave the entry.
    fn handle(&mut self, handle: &Handle) -> Result<(), Trouble> {
        let &Handle { case, stream, consumer, claim, pending } = handle;
        self.done.retain(|done| *done != case);
        let claimed = self.reply(case, claim).get(1).map_or(&[][..], Reply::items);
        let Some(entry) = claimed.iter().filter_map(Entry::read).find(|entry| entry.id == stream.entry) else {
            return Ok(());
        };
        let row = self.reply(case, pending).first().and_then(|row| row.items().get(3)).and_then(Reply::int);
        let delivery = row.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let folder = std::path::absolute(self.recorder.effects())?;
        let run = effects::Run {
            case: case.into(),
            work: stream.work.into(),
            entry: stream.entry.into(),
            consumer: consumer.into(),
            delivery,
            effects: effects::look(&folder)?,
            at: now(),
            end: None,
        };
        self.runs += 1;
        self.recorder.journal(&run.attempt_json(self.runs))?;
        let key = stream.key(&self.terms.prefix);
        let job = Job { stream: &key, group: GROUP, consumer, delivery, work: Some(stream.work), entry: &entry };
        let (code, said) = self.work(&job, &folder);
        let end = effects::End { code, said, effects: effects::look(&folder)?, at: now() };
        self.recorder.journal(&end.json(self.runs))?;
        if code == Some(0) {
            self.done.push(case);
        }
        Ok(())
    }

    fn work(&self, job: &Job<'_>, folder: &Path) -> handler::Word {
        match &self.terms.handler {
            Some(line) => handler::command(line, job, folder, Duration::from_millis(self.terms.handler_ms), &self.stop),
            None => handler::built_in(job, folder),
        }
    }

    /// Removes the keys; answers why some may be left.
    fn clean(&mut self, options: &Options) -> Option<String> {
        let left = |what: &dyn std::fmt::Display| {
            Some(format!("keys that begin with {} may be left on the server: {what}", options.terms.prefix))
        };
        let steps = plan::steps(self.terms);
        let mut asks = steps.iter().filter_map(|step| match step {
            Step::Ask(ask) if ask.when == When::AtTheEnd => Some(ask),
            _ => None,
        });
        // The connection may have failed, or a late reply be on it.
        match Connection::open(&options.address, options.timeout.min(CLEANUP_TIMEOUT)) {
            Ok(connection) => self.connection = connection,
            Err(failure) => return left(&failure),
        }
        asks.find_map(|ask| match exchange(&mut self.connection, &mut self.recorder, ask) {
            Ok(Ok(Reply::Error(text))) => left(&String::from_utf8_lossy(&text)),
            Ok(Ok(_)) => None,
            Ok(Err(failure)) => left(&failure),
            Err(trouble) => left(&trouble),
        })
    }
}

impl Outcome {
    /// The decision for the run.
    pub fn decision(&self) -> Decision {
        self.report.decision
    }
}
