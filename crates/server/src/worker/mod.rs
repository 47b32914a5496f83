//! A worker for any language: takes entries of a group, runs a command for each, and says what became of it (`impel work`).
//!
//! One thread fetches and fills the slots that are free; each slot runs one command at a time; one thread renews the leases of
//! what runs. An entry is in at most one slot. Nothing is acknowledged but by a command that ended with 0, and nothing by a
//! worker that has lost the entry: the server is asked in the same step whose it is.
//!
//! Where the server has XWORK it is told all of it; another one gets XACK, and what failed is left to be claimed again.

pub(crate) mod child;
pub(crate) mod guard;
pub(crate) mod job;
mod link;
mod slot;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::client::entry::{Entry, of_read};
use crate::client::{Address, Failure, Reply};
use guard::Guard;
use link::Link;

/// Longest wait of one read, in milliseconds: signals are looked at in between.
const BLOCK_MS: u64 = 500;

/// How often what others left is looked for, in milliseconds.
const CLAIM_EVERY: Duration = Duration::from_millis(500);

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the server is.
    pub address: Address,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// The stream,
    pub stream: String,
    /// the group,
    pub group: String,
    /// and as whom. Nobody else may work under this name at the same time.
    pub consumer: String,
    /// Commands that run at the same time, from 1.
    pub concurrency: usize,
    /// After how many milliseconds an entry that nobody renews is abandoned. The group's own LEASE comes first.
    pub lease_ms: u64,
    /// For how many milliseconds an entry is left alone whose command asked for it.
    pub retry_in_ms: u64,
    /// How long commands may go on when the worker is to end, in milliseconds.
    pub grace_ms: u64,
    /// How long a command may take at all, in milliseconds.
    pub command_ms: Option<u64>,
    /// The field with the work id.
    pub work_field: Option<String>,
    /// Is the last line of a command's output the receipt?
    pub receipt: bool,
    /// Is its SHA-256 the digest?
    pub digest: bool,
    /// Where an entry with what it says is added, in the same step in which the work is completed.
    pub emit: Option<String>,
    /// Work as with a server that keeps no ledger?
    pub plain: bool,
    /// Make stream and group if they are not there?
    pub create: bool,
    /// End when there is nothing more to do?
    pub until_empty: bool,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

/// What became of entries.
#[derive(Default, Debug)]
pub struct Counts {
    /// The command ended with 0, and it is acknowledged.
    pub done: AtomicU64,
    /// The command failed, and the entry was given back.
    pub failed: AtomicU64,
    /// Not run: done before, on hold, another's.
    pub passed: AtomicU64,
    /// Taken by others, or contradicted, while the command ran.
    pub lost: AtomicU64,
    /// Given back without having run to an end.
    pub returned: AtomicU64,
}

/// Does the server keep a ledger?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Books {
    /// XWORK.
    Ledger,
    /// Any other server.
    Plain,
}

const RUN: u8 = 0;
const STOP: u8 = 1;
const NOW: u8 = 2;

/// What all threads share.
struct Shared {
    options: Options,
    books: Books,
    lease_ms: u64,
    /// The field that has the work id by the group's policy.
    policy_field: Option<String>,
    /// Ends the commands if this process is no more; nothing if there can be none.
    guard: Option<Guard>,
    /// `RUN`, `STOP` (nothing new is begun) or `NOW` (what runs is ended).
    state: AtomicU8,
    over: AtomicBool,
    /// IDs that are in a slot, or on the way to one, and whether another has them now.
    running: Mutex<HashMap<String, bool>>,
    counts: Counts,
    /// Why the worker cannot go on.
    broken: Mutex<Option<String>>,
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.state.load(Ordering::SeqCst) >= STOP
    }

    fn is_ending_now(&self) -> bool {
        self.state.load(Ordering::SeqCst) >= NOW
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, bool>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn break_off(&self, why: String) {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.state.fetch_max(STOP, Ordering::SeqCst);
    }

    fn note(&self, id: &str, what: &str) {
        eprintln!("impel work: {id}: {what}");
    }
}

/// Asks for entries of ours that are still ours, in one step with what is done to them: `renew` them, `ack`nowledge them,
/// let them be `idle` for so long, or give them `back`, to be had again after so long. Answers those that are not.
const OURS: &str = "\
local lost = {}
for i = 5, #ARGV do
  local row = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2])
  if #row == 0 then
    lost[#lost + 1] = ARGV[i]
  elseif ARGV[3] == 'ack' then
    redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
  elseif ARGV[3] == 'back' then
    redis.call('XNACK', KEYS[1], ARGV[1], 'SILENT', 'IDS', 1, ARGV[i], 'DELAY', ARGV[4])
  else
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[4], 'JUSTID')
  end
end
return lost";

fn ours(link: &mut Link, shared: &Shared, what: &str, ms: u64, ids: &[String]) -> Result<Vec<String>, String> {
    let Options { stream, group, consumer, .. } = &shared.options;
    let ms = ms.to_string();
    let words = ["EVAL", OURS, "1", stream, group, consumer, what, &ms];
    let words: Vec<&str> = words.into_iter().chain(ids.iter().map(String::as_str)).collect();
    let reply = link.ask(&words)?;
    match reply.error() {
        Some(text) => Err(text),
        None => Ok(reply.items().iter().map(Reply::text).collect()),
    }
}

/// Works until a signal comes or, if that is wanted, nothing is left. Answers what became of the entries.
pub fn run(options: Options) -> Result<Counts, String> {
    let mut first = Link::new(&options, None);
    let books = prepare(&mut first, &options)?;
    let (lease_ms, policy_field) = policy_of(&mut first, &options, books)?;
    let concurrency = options.concurrency;
    let shared = Arc::new(Shared {
        options,
        books,
        lease_ms,
        policy_field,
        guard: guarded(),
        state: AtomicU8::new(RUN),
        over: AtomicBool::new(false),
        running: Mutex::default(),
        counts: Counts::default(),
        broken: Mutex::default(),
    });
    watch_signals(&shared)?;
    let (jobs, queue) = mpsc::sync_channel::<Entry>(concurrency);
    let (ends, ended) = mpsc::channel();
    let queue = Arc::new(Mutex::new(queue));
    let slots: Vec<_> = (0..concurrency)
        .map(|_| {
            let (shared, queue, ends) = (shared.clone(), queue.clone(), ends.clone());
            thread::spawn(move || slot::work(&shared, &queue, &ends))
        })
        .collect();
    drop(ends);
    let renewer = {
        let shared = shared.clone();
        thread::spawn(move || renew(&shared))
    };
    Fetching {
        shared: &shared,
        link: Link::new(&shared.options, Some(shared.clone())),
        jobs,
        ended,
        free: concurrency,
    }
    .run();
    for slot in slots {
        let _ = slot.join();
    }
    shared.over.store(true, Ordering::SeqCst);
    let _ = renewer.join();
    match shared.broken.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(why) => Err(why),
        None => Ok(shared.counts.taken()),
    }
}

impl Counts {
    fn taken(&self) -> Counts {
        let Counts { done, failed, passed, lost, returned } = self;
        let [done, failed, passed, lost, returned] =
            [done, failed, passed, lost, returned].map(|counter| AtomicU64::new(counter.load(Ordering::Relaxed)));
        Counts { done, failed, passed, lost, returned }
    }
}

fn guarded() -> Option<Guard> {
    let guard = Guard::start();
    if let Err(error) = &guard {
        eprintln!("impel work: kill -9 would leave commands running, as there can be no guard: {error}");
    }
    guard.ok()
}

/// Is all there, and does the server keep a ledger?
fn prepare(link: &mut Link, options: &Options) -> Result<Books, String> {
    let Options { stream, group, .. } = options;
    if options.create {
        let made = link.ask_once(&["XGROUP", "CREATE", stream, group, "0", "MKSTREAM"])?;
        if let Some(text) = made.error().filter(|text| !text.starts_with("BUSYGROUP")) {
            return Err(text);
        }
    }
    let groups = link.ask_once(&["XINFO", "GROUPS", stream])?;
    if let Some(text) = groups.error() {
        return Err(format!("{stream}: {text} (--create makes stream and group)"));
    }
    let is_there = groups.items().iter().any(|one| one.get("name").map(Reply::text).as_deref() == Some(group));
    if !is_there {
        return Err(format!("{stream} has no group {group} (--create makes it)"));
    }
    if options.plain {
        return Ok(Books::Plain);
    }
    let policy = link.ask_once(&["XWORK", "POLICY", stream, group])?;
    match policy.error() {
        None => Ok(Books::Ledger),
        Some(text) if text.starts_with("ERR unknown command") && options.emit.is_some() => {
            Err("--emit wants a server with XWORK".into())
        }
        Some(text) if text.starts_with("ERR unknown command") => Ok(Books::Plain),
        Some(text) => Err(text),
    }
}

/// The lease, and the field that has the work id, as the group has them.
fn policy_of(link: &mut Link, options: &Options, books: Books) -> Result<(u64, Option<String>), String> {
    if books == Books::Plain {
        return Ok((options.lease_ms.max(1), None));
    }
    let policy = link.ask_once(&["XWORK", "POLICY", &options.stream, &options.group])?;
    let lease_ms = policy.get("lease").and_then(Reply::int).and_then(|ms| u64::try_from(ms).ok());
    let field = policy.get("workfield").map(Reply::text).filter(|field| !field.is_empty());
    Ok((lease_ms.filter(|&ms| ms > 0).unwrap_or(options.lease_ms).max(1), field))
}

fn watch_signals(shared: &Arc<Shared>) -> Result<(), String> {
    let came = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, came.clone()).map_err(|error| format!("signals: {error}"))?;
    }
    // Holds no strong reference: when the worker is over, this ends by itself.
    let shared = Arc::downgrade(shared);
    thread::spawn(move || {
        let mut since: Option<Instant> = None;
        while let Some(shared) = shared.upgrade() {
            if shared.over.load(Ordering::SeqCst) {
                return;
            }
            if came.swap(false, Ordering::SeqCst) {
                let state = if since.is_some() { NOW } else { STOP };
                shared.state.fetch_max(state, Ordering::SeqCst);
            }
            if shared.is_stopping() && since.is_none() {
                since = Some(Instant::now());
            }
            if since.is_some_and(|since| since.elapsed() >= Duration::from_millis(shared.options.grace_ms)) {
                shared.state.fetch_max(NOW, Ordering::SeqCst);
            }
            drop(shared);
            thread::sleep(Duration::from_millis(20));
        }
    });
    Ok(())
}

/// Renews what runs, each lease three times.
fn renew(shared: &Arc<Shared>) {
    let mut link = Link::new(&shared.options, Some(shared.clone()));
    let every = Duration::from_millis((shared.lease_ms / 3).max(1));
    let mut last = Instant::now();
    let mut has_told = false;
    while !shared.over.load(Ordering::SeqCst) {
        if last.elapsed() < every {
            thread::sleep(Duration::from_millis(10).min(every));
            continue;
        }
        last = Instant::now();
        let ids: Vec<String> = shared.running().iter().filter(|(_, lost)| !**lost).map(|(id, _)| id.clone()).collect();
        if ids.is_empty() {
            continue;
        }
        match ours(&mut link, shared, "renew", 0, &ids) {
            Ok(lost) => lost.iter().for_each(|id| {
                if let Some(is_lost) = shared.running().get_mut(id) {
                    *is_lost = true;
                }
            }),
            Err(what) if !has_told => {
                has_told = true;
                eprintln!("impel work: leases are not renewed: {what}");
            }
            Err(_) => {}
        }
    }
}

struct Fetching<'a> {
    shared: &'a Shared,
    link: Link,
    jobs: SyncSender<Entry>,
    /// A slot says that it is free again.
    ended: Receiver<()>,
    free: usize,
}

impl Fetching<'_> {
    fn run(mut self) {
        let mut history = Some("0".to_owned());
        let mut cursor = "0-0".to_owned();
        let mut claimed = None::<Instant>;
        let mut waiting: VecDeque<Entry> = VecDeque::new();
        // The first is no loss.
        let mut opened = 1;
        while !self.shared.is_stopping() {
            while self.ended.try_recv().is_ok() {
                self.free += 1;
            }
            if self.free == 0 {
                match self.ended.recv_timeout(Duration::from_millis(100)) {
                    Ok(()) => self.free += 1,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                continue;
            }
            let fetched = self.fetch(&mut history, &mut cursor, &mut claimed);
            match fetched {
                Ok(entries) => waiting.extend(entries),
                Err(what) => return self.shared.break_off(what),
            }
            if std::mem::replace(&mut opened, self.link.opened()) != self.link.opened() {
                // What was in the reply that got lost is ours, and nobody knows.
                history = Some("0".to_owned());
            }
            let is_idle = waiting.is_empty() && history.is_none() && cursor == "0-0" && claimed.is_some();
            while let Some(entry) = waiting.pop_front() {
                // What is in a slot already has come again because its lease could not be renewed in time.
                if self.shared.running().insert(entry.id.clone(), false).is_some() {
                    continue;
                }
                self.free = self.free.saturating_sub(1);
                if self.jobs.send(entry).is_err() {
                    return;
                }
            }
            if is_idle && self.shared.options.until_empty && self.shared.running().is_empty() {
                return;
            }
        }
    }

    /// First what this consumer has from an earlier life, then what others left, then what is new.
    fn fetch(
        &mut self,
        history: &mut Option<String>,
        cursor: &mut String,
        claimed: &mut Option<Instant>,
    ) -> Result<Vec<Entry>, String> {
        let Options { stream, group, consumer, until_empty, .. } = &self.shared.options;
        let count = self.free.to_string();
        if let Some(from) = history {
            let words = ["XREADGROUP", "GROUP", group, consumer, "COUNT", &count, "STREAMS", stream, from.as_str()];
            let entries = of_read(&self.ask(&words)?);
            *history = entries.last().map(|last| last.id.clone());
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        if cursor != "0-0" || claimed.is_none_or(|at| at.elapsed() >= CLAIM_EVERY) {
            *claimed = Some(Instant::now());
            let lease = self.shared.lease_ms.to_string();
            let words = ["XAUTOCLAIM", stream, group, consumer, &lease, cursor.as_str(), "COUNT", &count];
            let reply = self.ask(&words)?;
            let [next, entries, ..] = reply.items() else { return Err("a strange reply of XAUTOCLAIM".into()) };
            *cursor = next.text();
            let entries: Vec<Entry> = entries.items().iter().filter_map(Entry::read).collect();
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        let block = if *until_empty { "1".to_owned() } else { BLOCK_MS.to_string() };
        let words = ["XREADGROUP", "GROUP", group, consumer, "COUNT", &count, "BLOCK", &block, "STREAMS", stream, ">"];
        Ok(of_read(&self.ask(&words)?))
    }

    fn ask(&mut self, words: &[&str]) -> Result<Reply, String> {
        let reply = self.link.ask(words)?;
        match reply.error() {
            Some(text) => Err(text),
            None => Ok(reply),
        }
    }
}

/// Is another try of any use?
fn may_pass(failure: &Failure) -> bool {
    matches!(failure, Failure::Io(_))
}
