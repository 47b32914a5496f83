//! XCFGSET, XCFGGET and what they are about: how long entries are kept, and which messages are recognized when they come
//! again (IDMP, IDMPAUTO, XIDMPRECORD).

use std::collections::BTreeMap;

use super::Model;
use super::stream::{Id, Stream};
use super::value::{Answer, Value, named};
use super::words::{self, SYNTAX, Words, error, integer, is};

/// Bounds of a stream; 0 = none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retention {
    /// MAXLEN
    pub max_len: u64,
    /// MAXBYTES
    pub max_bytes: u64,
    /// MAXAGE, in ms.
    pub max_age: u64,
    /// RETAIN acked
    pub acked: bool,
    /// DISCARD new
    pub discard_new: bool,
    /// FORCE
    pub force: bool,
}

/// A message of a producer that became an entry.
#[derive(Clone, Debug)]
struct Message {
    iid: Vec<u8>,
    id: Id,
    /// Unix ms.
    recorded: u64,
}

/// Messages that are recognized, by producer in the order in which they were recorded.
#[derive(Clone, Debug)]
pub struct Messages {
    duration_s: u64,
    max: usize,
    added: usize,
    duplicates: usize,
    known: BTreeMap<Vec<u8>, Vec<Message>>,
}

impl Default for Messages {
    fn default() -> Self {
        Messages { duration_s: 100, max: 100, added: 0, duplicates: 0, known: BTreeMap::new() }
    }
}

impl Messages {
    /// The entry that a message became.
    pub fn find(&self, pid: &[u8], iid: &[u8], now: u64) -> Option<Id> {
        let lives = |message: &&Message| message.iid == iid && message.recorded + 1000 * self.duration_s > now;
        self.known.get(pid)?.iter().find(lives).map(|message| message.id)
    }

    /// Records a message; it counts when it was added now.
    pub fn remember(&mut self, pid: &[u8], iid: &[u8], id: Id, now: u64, counts: bool) {
        let all = self.known.entry(pid.to_vec()).or_default();
        all.retain(|message| message.recorded + 1000 * self.duration_s > now);
        all.push(Message { iid: iid.to_vec(), id, recorded: now });
        if all.len() > self.max {
            all.remove(0);
        }
        self.added += usize::from(counts);
    }

    /// Counts a duplicate.
    pub fn note_duplicate(&mut self) {
        self.duplicates += 1;
    }

    /// Forgets what is over its time.
    pub fn forget(&mut self, now: u64) {
        for all in self.known.values_mut() {
            all.retain(|message| message.recorded + 1000 * self.duration_s > now);
        }
        self.known.retain(|_, all| !all.is_empty());
    }

    /// The fields of XINFO STREAM.
    pub fn info(&self) -> Vec<(Value, Value)> {
        vec![
            named("idmp-duration", Value::Int(self.duration_s as i64)),
            named("idmp-maxsize", Value::count(self.max)),
            named("pids-tracked", Value::count(self.known.len())),
            named("iids-tracked", Value::count(self.known.values().map(Vec::len).sum())),
            named("iids-added", Value::count(self.added)),
            named("iids-duplicates", Value::count(self.duplicates)),
        ]
    }
}

/// The message ID of IDMPAUTO: any two lists of pairs that are the same but for their order have the same.
pub fn content_iid(fields: &Words) -> Vec<u8> {
    let mut pairs: Vec<&[Vec<u8>]> = fields.chunks(2).collect();
    pairs.sort();
    format!("by content {pairs:?}").into_bytes()
}

impl Stream {
    /// Bytes of all names and values.
    pub fn bytes(&self) -> u64 {
        self.entries.values().map(|entry| bytes_of(&entry.fields)).sum()
    }

    /// May so many entries of so many bytes be added?
    pub fn admit(&self, entries: usize, bytes: u64) -> Result<(), Vec<u8>> {
        let Retention { max_len, max_bytes, discard_new, .. } = self.retention;
        for (name, bound, after) in
            [("MAXLEN", max_len, (self.entries.len() + entries) as u64), ("MAXBYTES", max_bytes, self.bytes() + bytes)]
        {
            if discard_new && bound > 0 && after > bound {
                return error(&format!(
                    "ERR The stream is full: {name} {bound} is reached and it discards new entries"
                ));
            }
        }
        Ok(())
    }

    /// Removes what is beyond the bounds, oldest first; answers whether anything was.
    pub fn enforce(&mut self, now: u64) -> bool {
        let Retention { max_len, max_bytes, max_age, acked, discard_new, force } = self.retention;
        if acked && !force {
            return false;
        }
        let mut any = false;
        while let Some(first) = self.entries.keys().next().copied() {
            let too_many = max_len > 0 && self.entries.len() as u64 > max_len;
            let too_large = max_bytes > 0 && self.bytes() > max_bytes;
            let too_old = max_age > 0 && u128::from(first.0) + u128::from(max_age) <= u128::from(now);
            if !too_old && (discard_new || !(too_many || too_large)) {
                break;
            }
            self.remove(first);
            any = true;
        }
        any
    }

    /// When time alone does something to the stream or a group of it.
    pub fn next_due(&self) -> Option<u64> {
        let Retention { max_age, acked, force, .. } = self.retention;
        let ages = max_age > 0 && (force || !acked);
        let aged = self.entries.keys().next().filter(|_| ages).and_then(|first| first.0.checked_add(max_age));
        let oldest = self.messages.known.values().filter_map(|all| all.first());
        let forgotten = oldest.map(|message| message.recorded + 1000 * self.messages.duration_s).min();
        let deferred = self.groups.values().filter_map(|group| group.next_deferred()).min();
        let delayed = self.entries.values().map(|entry| entry.due).filter(|due| *due > 0).min();
        [aged, forgotten, deferred, delayed].into_iter().flatten().min()
    }
}

/// Bytes of names and values of an entry.
pub fn bytes_of(fields: &Words) -> u64 {
    fields.iter().map(|word| word.len() as u64).sum()
}

fn ranged(word: &[u8], name: &str, max: i64, unit: &str) -> Result<i64, Vec<u8>> {
    match integer(word)? {
        n if (1..=max).contains(&n) => Ok(n),
        _ => error(&format!("ERR {name} must be between 1 and {max} {unit}")),
    }
}

fn choice(word: &[u8], no: &str, yes: &str) -> Result<bool, Vec<u8>> {
    if is(word, no) || is(word, yes) { Ok(is(word, yes)) } else { error(SYNTAX) }
}

/// The settings as they are to be: those of IDMP, and how long entries are kept.
fn changed(words: &Words, old: (u64, usize, Retention)) -> Result<(u64, usize, Retention), Vec<u8>> {
    let (mut duration_s, mut max, mut retention) = old;
    let (mut force, mut bounds, mut at) = (false, false, 2);
    while at < words.len() {
        let word = &words[at];
        if is(word, "FORCE") {
            force = true;
            at += 1;
            continue;
        }
        let Some(value) = words.get(at + 1) else { return error(SYNTAX) };
        let bound = |name: &str| match integer(value)? {
            n if n < 0 => error(&format!("ERR {name} must be 0 or more")),
            n => Ok(n as u64),
        };
        bounds |= !["IDMP-DURATION", "IDMP-MAXSIZE", "DISCARD"].iter().any(|name| is(word, name));
        if is(word, "IDMP-DURATION") {
            duration_s = ranged(value, "IDMP-DURATION", 86_400, "seconds")? as u64;
        } else if is(word, "IDMP-MAXSIZE") {
            max = ranged(value, "IDMP-MAXSIZE", 10_000, "entries")? as usize;
        } else if is(word, "DISCARD") {
            retention.discard_new = choice(value, "OLD", "NEW")?;
        } else if is(word, "MAXLEN") {
            retention.max_len = bound("MAXLEN")?;
        } else if is(word, "MAXBYTES") {
            retention.max_bytes = bound("MAXBYTES")?;
        } else if is(word, "MAXAGE") {
            retention.max_age = bound("MAXAGE")?;
        } else if is(word, "RETAIN") {
            retention.acked = choice(value, "ALL", "ACKED")?;
        } else {
            return error(SYNTAX);
        }
        at += 2;
    }
    if force && !bounds {
        return error("ERR syntax error, FORCE goes with MAXLEN, MAXBYTES, MAXAGE or RETAIN");
    }
    if bounds {
        retention.force = force;
    }
    Ok((duration_s, max, retention))
}

pub fn xcfgset(model: &mut Model, words: &Words) -> Answer {
    if words.len() == 2 {
        return error("ERR At least one parameter must be given to XCFGSET");
    }
    changed(words, (1, 1, Retention::default()))?;
    let (name, now) = (&words[1], model.now);
    let Some(stream) = model.stream(name)? else { return error("ERR no such key") };
    let old = (stream.messages.duration_s, stream.messages.max, stream.retention);
    let (duration_s, max, retention) = changed(words, old)?;
    let stream = model.stream_mut(name);
    if (duration_s, max) != (old.0, old.1) {
        (stream.messages.duration_s, stream.messages.max) = (duration_s, max);
        stream.messages.known.clear();
    }
    if retention != old.2 {
        stream.retention = retention;
        let retired = stream.retire();
        if stream.enforce(now) || retired {
            model.touch(name);
        }
    }
    Ok(Value::Status("OK"))
}

pub fn xcfgget(model: &mut Model, words: &Words) -> Answer {
    let Some(stream) = model.stream(&words[1])? else { return error("ERR no such key") };
    let Retention { max_len, max_bytes, max_age, acked, discard_new, force } = stream.retention;
    Ok(Value::Map(vec![
        named("idmp-duration", Value::Int(stream.messages.duration_s as i64)),
        named("idmp-maxsize", Value::count(stream.messages.max)),
        named("maxlen", Value::Int(max_len as i64)),
        named("maxbytes", Value::Int(max_bytes as i64)),
        named("maxage", Value::Int(max_age as i64)),
        named("bytes", Value::Int(stream.bytes() as i64)),
        named("retain", Value::bulk(if acked { "acked" } else { "all" })),
        named("discard", Value::bulk(if discard_new { "new" } else { "old" })),
        named("force", Value::bulk(if force { "yes" } else { "no" })),
    ]))
}

pub fn xidmprecord(model: &mut Model, words: &Words) -> Answer {
    let (name, pid, iid, now) = (&words[1], &words[2], &words[3], model.now);
    if pid.is_empty() {
        return error("ERR XIDMPRECORD requires a non-empty producer ID");
    }
    if iid.is_empty() {
        return error("ERR XIDMPRECORD requires a non-empty idempotent ID");
    }
    let id = words::id(&words[4])?;
    let Some(stream) = model.stream(name)? else { return error("ERR no such key") };
    if !stream.entries.contains_key(&id) {
        return error("ERR The stream has no entry with the ID given to XIDMPRECORD");
    }
    match stream.messages.find(pid, iid, now) {
        Some(known) if known != id => error("ERR The message given to XIDMPRECORD is tied to another entry"),
        Some(_) => Ok(Value::Status("OK")),
        None => {
            model.stream_mut(name).messages.remember(pid, iid, id, now, false);
            Ok(Value::Status("OK"))
        }
    }
}
