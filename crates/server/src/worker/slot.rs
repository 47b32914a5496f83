//! One entry from the question whether to do it to the answer what became of it.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::child::{self, End, TRY_AGAIN, Wanted};
use super::job::Job;
use super::link::Link;
use super::{Books, Options, Shared, ours};
use crate::audit::source::hex;
use crate::client::Reply;
use crate::client::entry::{Entry, fields_of_json};

/// What is kept of a line that is a part of the work, in bytes.
const RESULT_MAX: usize = 1 << 20;

/// What the server takes as a reason, in bytes.
const REASON_MAX: usize = 4096;

/// What the server takes as a work id, in bytes.
const WORK_MAX: usize = 4096;

/// Before an entry is looked at again of whose work another entry is being done.
const BUSY_MS: u64 = 1000;

/// Before a server that had no room is told again.
const FULL_PAUSE: Duration = Duration::from_millis(250);

/// Takes entries until there are no more.
pub(super) fn work(shared: &Arc<Shared>, queue: &Mutex<Receiver<Entry>>, ends: &Sender<()>) {
    let mut slot = Slot { shared, link: Link::new(&shared.options, Some(shared.clone())) };
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(entry) = next else { return };
        let handled = match shared.is_stopping() {
            true => slot.hand_back(&entry.id),
            false => slot.handle(&entry),
        };
        shared.running().remove(&entry.id);
        if let Err(what) = handled {
            shared.break_off(what);
        }
        // The one who listens may be gone: then all is over.
        let _ = ends.send(());
    }
}

struct Slot<'a> {
    shared: &'a Shared,
    link: Link,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Slot<'_> {
    /// The value of the field that has the work id, if there is one; an error where no command can be told it.
    fn work_of<'e>(&self, entry: &'e Entry) -> Result<Option<&'e str>, String> {
        let Some(field) = self.shared.options.work_field.as_ref().or(self.shared.policy_field.as_ref()) else {
            return Ok(None);
        };
        let Some(value) = entry.get(field.as_bytes()).filter(|value| !value.is_empty()) else { return Ok(None) };
        match std::str::from_utf8(value) {
            Ok(work) if work.len() <= WORK_MAX && !work.contains('\0') => Ok(Some(work)),
            _ => Err(format!("the work id in {field} is not text of at most {WORK_MAX} bytes")),
        }
    }

    /// The work as the server is told of it: if that is for us to say.
    fn said_work<'e>(&self, work: Option<&'e str>) -> impl Iterator<Item = &'e str> {
        let work = work.filter(|_| self.shared.options.work_field.is_some());
        work.into_iter().flat_map(|work| ["WORK", work])
    }

    fn handle(&mut self, entry: &Entry) -> Result<(), String> {
        let shared = self.shared;
        if entry.fields.is_none() {
            count(&shared.counts.passed);
            shared.note(&entry.id, "pending, and the stream has it no more; left as it is");
            return Ok(());
        }
        // What is wrong with one entry must not keep a worker from the others.
        let work = match self.work_of(entry) {
            Ok(work) => work,
            Err(reason) => return self.failed(entry, None, &reason, true),
        };
        let Some(delivery) = self.begin(entry, work)? else { return Ok(()) };
        let begun = Instant::now();
        let Options { stream, group, consumer, command_ms, receipt, digest, emit, .. } = &shared.options;
        let job = Job { stream, group, consumer, delivery, work, entry };
        let mut command = Command::new(&shared.options.command[0]);
        command.args(&shared.options.command[1..]);
        job.set_environment(&mut command);
        let why_stop = || {
            if shared.running().get(&entry.id).copied().unwrap_or(false) {
                return Some("another has it now".to_owned());
            }
            if shared.is_ending_now() {
                return Some("the worker was ended".to_owned());
            }
            let limit = command_ms.map(Duration::from_millis)?;
            (begun.elapsed() >= limit).then(|| format!("not done within {} ms", limit.as_millis()))
        };
        let is_result = *digest || emit.is_some();
        let line_max = if is_result { Some(RESULT_MAX) } else { receipt.then_some(child::LINE_MAX) };
        let wanted = Wanted { line_max, is_result, guard: shared.guard.as_ref() };
        let end = child::run(command, job.input(), wanted, why_stop);
        match end {
            End::Done { line } => self.done(entry, work, delivery, line.as_deref()),
            End::Failed { reason, code } => self.failed(entry, Some(delivery), &reason, code == Some(TRY_AGAIN)),
            End::Stopped(_) if shared.running().get(&entry.id).copied().unwrap_or(false) => {
                count(&shared.counts.lost);
                shared.note(&entry.id, "another has it now; its command was ended");
                Ok(())
            }
            End::Stopped(reason) => self.failed(entry, Some(delivery), &reason, false),
            End::Unstartable(what) => {
                let name = self.shared.options.command[0].to_string_lossy().into_owned();
                self.failed(entry, Some(delivery), &format!("{name} cannot be run: {what}"), false)?;
                Err(format!("{name} cannot be run: {what}"))
            }
        }
    }

    /// Asks whether to do it: the delivery number if so. What is not to be done is counted.
    fn begin(&mut self, entry: &Entry, work: Option<&str>) -> Result<Option<u64>, String> {
        let Options { stream, group, consumer, .. } = &self.shared.options;
        let id = entry.id.as_str();
        if self.shared.books == Books::Plain {
            let rows = self.link.ask(&["XPENDING", stream, group, id, id, "1", consumer])?;
            let delivery = rows.items().first().and_then(|row| row.items().get(3)).and_then(Reply::int);
            let delivery = delivery.and_then(|n| u64::try_from(n).ok());
            if delivery.is_none() {
                count(&self.shared.counts.passed);
            }
            return Ok(delivery);
        }
        let mut words = vec!["XWORK", "BEGIN", stream, group, consumer, id];
        words.extend(self.said_work(work));
        let reply = self.link.ask(&words)?;
        match reply.error() {
            // Of the group and the stream it would be another word.
            Some(text) if text.starts_with("ERR ") => {
                self.failed(entry, None, &text, true)?;
                return Ok(None);
            }
            Some(text) => return Err(text),
            None => {}
        }
        let of = |at: usize| reply.items().get(at).map(Reply::text).unwrap_or_default();
        match &of(0)[..] {
            "PROCEED" => return Ok(Some(reply.items().get(1).and_then(Reply::int).map_or(0, |n| n.max(0) as u64))),
            "DONE" => {
                // XACK would leave nothing that says of which work the entry was.
                let mut words = vec!["XWORK", "DONE", stream, group, consumer, id];
                words.extend(self.said_work(work));
                if let Some(text) = self.link.ask(&words)?.error() {
                    return Err(text);
                }
            }
            "BUSY" => {
                ours(&mut self.link, self.shared, "back", BUSY_MS, std::slice::from_ref(&entry.id))?;
            }
            "HELD" => self.shared.note(id, &format!("on hold: {}", of(1))),
            _ => {}
        }
        count(&self.shared.counts.passed);
        Ok(None)
    }

    fn done(&mut self, entry: &Entry, work: Option<&str>, delivery: u64, line: Option<&[u8]>) -> Result<(), String> {
        let shared = self.shared;
        let counts = &shared.counts;
        let id = entry.id.as_str();
        if self.shared.books == Books::Plain {
            let lost = ours(&mut self.link, self.shared, "ack", 0, std::slice::from_ref(&entry.id))?;
            if lost.is_empty() {
                count(&counts.done);
            } else {
                count(&counts.lost);
                self.shared.note(id, "done, and not acknowledged: another has it now");
            }
            return Ok(());
        }
        let Options { stream, group, consumer, receipt, digest, emit, .. } = &shared.options;
        let fields = match (emit, line.map(String::from_utf8_lossy)) {
            (None, _) => Vec::new(),
            (Some(_), line) => match fields_of_json(line.as_deref().unwrap_or_default()) {
                Ok(fields) => fields,
                Err(what) => {
                    let reason = format!("the last line of output, which is to be emitted: {what}");
                    return self.failed(entry, Some(delivery), &reason, false);
                }
            },
        };
        let number = delivery.to_string();
        let shown = |line: &[u8]| String::from_utf8_lossy(&line[..line.len().min(child::LINE_MAX)]).into_owned();
        let receipt = line.filter(|_| *receipt).map(shown);
        let digest = line.filter(|_| *digest).map(|line| hex(Sha256::digest(line)));
        let mut words = vec!["XWORK", "DONE", stream, group, consumer, id, "DELIVERY", &number];
        words.extend(self.said_work(work));
        words.extend(digest.as_deref().into_iter().flat_map(|digest| ["DIGEST", digest]));
        words.extend(receipt.as_deref().into_iter().flat_map(|receipt| ["RECEIPT", receipt]));
        if let Some(to) = emit {
            words.extend(["EMIT", to, "*"]);
            words.extend(fields.iter().map(String::as_str));
        }
        let reply = self.tell(id, &words)?;
        match &reply.items().first().map(Reply::text).unwrap_or_default()[..] {
            "COMPLETED" | "DUPLICATE" => count(&counts.done),
            other => {
                count(&counts.lost);
                self.shared.note(id, &format!("done, and the server says {other}"));
            }
        }
        Ok(())
    }

    /// Says that work is done. Its effect is there: while the server has no room it is said again. Where the entry is ours
    /// no more the server says that first.
    fn tell(&mut self, id: &str, words: &[&str]) -> Result<Reply, String> {
        let mut has_told = false;
        loop {
            let reply = self.link.ask(words)?;
            let Some(text) = reply.error() else { return Ok(reply) };
            let may_pass = text.starts_with("OOM ") || text.starts_with("BUSY ") || text.contains("stream is full");
            if !may_pass || self.shared.is_ending_now() {
                return Err(text);
            }
            if !has_told {
                has_told = true;
                self.shared.note(id, &format!("done, and the server says {text}; trying again"));
            }
            std::thread::sleep(FULL_PAUSE);
        }
    }

    fn failed(&mut self, entry: &Entry, delivery: Option<u64>, reason: &str, later: bool) -> Result<(), String> {
        let shared = self.shared;
        count(&shared.counts.failed);
        shared.note(&entry.id, reason);
        let retry_in_ms = shared.options.retry_in_ms;
        if shared.books == Books::Plain {
            // It counts as abandoned that much later.
            let idle_ms = shared.lease_ms.saturating_sub(retry_in_ms);
            ours(&mut self.link, shared, "idle", idle_ms, std::slice::from_ref(&entry.id))?;
            return Ok(());
        }
        let Options { stream, group, consumer, .. } = &shared.options;
        let (number, retry_in) = (delivery.map(|number| number.to_string()), retry_in_ms.to_string());
        let end = (0..=reason.len().min(REASON_MAX)).rev().find(|&at| reason.is_char_boundary(at)).unwrap_or(0);
        let reason = &reason[..end];
        let mut words = vec!["XWORK", "FAIL", stream, group, consumer, entry.id.as_str(), "REASON", reason];
        words.extend(number.as_deref().into_iter().flat_map(|number| ["DELIVERY", number]));
        if later {
            words.extend(["RETRYIN", &retry_in]);
        }
        match self.link.ask(&words)?.error() {
            Some(text) => Err(text),
            None => Ok(()),
        }
    }

    /// Gives back what was not begun.
    fn hand_back(&mut self, id: &str) -> Result<(), String> {
        let shared = self.shared;
        count(&shared.counts.returned);
        if shared.books == Books::Plain {
            ours(&mut self.link, shared, "idle", shared.lease_ms, &[id.to_owned()])?;
            return Ok(());
        }
        ours(&mut self.link, shared, "back", 0, &[id.to_owned()]).map(drop)
    }
}
