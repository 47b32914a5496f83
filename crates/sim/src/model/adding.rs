//! Adding and trimming: XADD, XADDM, XTRIM, XSETID.

use super::Model;
use super::retention::{bytes_of, content_iid};
use super::stream::{Id, Mode, Threshold, Trimming};
use super::value::{Answer, Value};
use super::words::{self, SYNTAX, Words, error, integer, is};

pub fn mode(word: &[u8]) -> Option<Mode> {
    [("KEEPREF", Mode::Keep), ("DELREF", Mode::Delete), ("ACKED", Mode::Acked)]
        .into_iter()
        .find_map(|(name, mode)| is(word, name).then_some(mode))
}

const LIMIT_EXACT: &str = "ERR syntax error, LIMIT cannot be used without the special ~ option";

/// Trimming options on their way.
#[derive(Default)]
struct Options {
    threshold: Option<Threshold>,
    approximate: bool,
    limit: Option<i64>,
    mode: Option<Mode>,
}

impl Options {
    /// Takes the trimming option at a place; answers the place after it, the same if there is none.
    fn take(&mut self, words: &Words, at: usize) -> Result<usize, Vec<u8>> {
        let follow = words.len() - at - 1;
        let length = is(&words[at], "MAXLEN");
        if (length || is(&words[at], "MINID")) && follow >= 1 {
            if self.threshold.is_some() {
                return error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
            }
            let marked = follow >= 2 && (words[at + 1] == b"~" || words[at + 1] == b"=");
            self.approximate = marked && words[at + 1] == b"~";
            let value = &words[at + 1 + usize::from(marked)];
            self.threshold = Some(if length {
                let n = integer(value)?;
                if n < 0 {
                    return error("ERR The MAXLEN argument must be >= 0.");
                }
                Threshold::Length(n as usize)
            } else {
                Threshold::Id(words::id(value)?)
            });
            return Ok(at + 2 + usize::from(marked));
        }
        if is(&words[at], "LIMIT") && follow >= 1 {
            let limit = integer(&words[at + 1])?;
            if limit < 0 {
                return error("ERR The LIMIT argument must be >= 0.");
            }
            self.limit = Some(limit);
            return Ok(at + 2);
        }
        Ok(at)
    }

    fn finish(&self, node_max: usize) -> Result<Option<Trimming>, Vec<u8>> {
        let Some(threshold) = self.threshold else {
            return match self.limit {
                Some(0) => error(LIMIT_EXACT),
                Some(_) => error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"),
                None => Ok(None),
            };
        };
        let limit = match (self.approximate, self.limit) {
            (false, Some(_)) => return error(LIMIT_EXACT),
            (false, None) => None,
            (true, Some(0)) => Some(usize::MAX),
            (true, Some(n)) => Some(n as usize),
            (true, None) => Some(100 * node_max),
        };
        Ok(Some(Trimming { threshold, limit, mode: self.mode.unwrap_or(Mode::Keep) }))
    }
}

#[derive(Clone, Copy)]
enum Wanted {
    Auto,
    AutoSequence(u64),
    This(Id),
}

impl Wanted {
    fn parse(word: &[u8]) -> Result<Wanted, Vec<u8>> {
        if word == b"*" {
            return Ok(Wanted::Auto);
        }
        Ok(match word.strip_suffix(b"-*") {
            Some(ms) => Wanted::AutoSequence(words::ms_of(ms)?),
            None => Wanted::This(words::id(word)?),
        })
    }

    fn after(self, last: Id, now: u64) -> Result<Id, Vec<u8>> {
        if last == Id::MAX {
            return error("ERR The stream has exhausted the last possible ID, unable to add more items");
        }
        let id = match self {
            Wanted::This(id) => id,
            Wanted::Auto if now > last.0 => Id(now, 0),
            Wanted::Auto => last.next(),
            Wanted::AutoSequence(ms) if ms == last.0 && last.1 < u64::MAX => last.next(),
            Wanted::AutoSequence(ms) => Id(ms, 0),
        };
        if id <= last {
            return error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
        }
        Ok(id)
    }
}

/// Takes DELAY or NOTBEFORE; answers the place after it, the same if there is none.
fn delay(due: &mut Option<u64>, words: &Words, at: usize, now: u64) -> Result<usize, Vec<u8>> {
    let Some(value) = words.get(at + 1) else { return Ok(at) };
    let ms = words::number(value).filter(|ms| *ms >= 0).map(|ms| ms as u64);
    let time = if is(&words[at], "DELAY") {
        let Some(time) = ms.map(|ms| now + ms).filter(|time| *time <= i64::MAX as u64) else {
            return error("ERR DELAY must be a number of milliseconds, 0 or more");
        };
        time
    } else if is(&words[at], "NOTBEFORE") {
        let Some(time) = ms else { return error("ERR NOTBEFORE must be a Unix time in milliseconds, 0 or more") };
        time
    } else {
        return Ok(at);
    };
    if due.is_some() {
        return error("ERR syntax error, DELAY or NOTBEFORE can be given once");
    }
    *due = Some(time);
    Ok(at + 2)
}

/// Takes IDMP or IDMPAUTO as the producer and, if it was given, the message; answers as `delay` does.
fn identity(found: &mut Option<(Vec<u8>, Option<Vec<u8>>)>, words: &Words, at: usize) -> Result<usize, Vec<u8>> {
    let follow = words.len() - at - 1;
    let (taken, next) = if is(&words[at], "IDMP") && follow >= 2 {
        if words[at + 1].is_empty() {
            return error("ERR IDMP requires a non-empty producer ID");
        }
        if words[at + 2].is_empty() {
            return error("ERR IDMP requires a non-empty idempotent ID");
        }
        ((words[at + 1].clone(), Some(words[at + 2].clone())), at + 3)
    } else if is(&words[at], "IDMPAUTO") && follow >= 1 {
        if words[at + 1].is_empty() {
            return error("ERR IDMPAUTO requires a non-empty producer ID");
        }
        ((words[at + 1].clone(), None), at + 2)
    } else {
        return Ok(at);
    };
    if found.is_some() {
        return error("ERR IDMP/IDMPAUTO specified multiple times");
    }
    *found = Some(taken);
    Ok(next)
}

/// What stands before the ID of XADD, or before COUNT of XADDM.
#[derive(Default)]
struct Before {
    trim: Options,
    no_make: bool,
    due: Option<u64>,
    identity: Option<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Before {
    /// Takes the option at a place; answers the place after it, the same if there is none.
    fn take(&mut self, words: &Words, at: usize, now: u64, with_identity: bool) -> Result<usize, Vec<u8>> {
        if is(&words[at], "NOMKSTREAM") {
            self.no_make = true;
            return Ok(at + 1);
        }
        if self.trim.mode.is_none() && mode(&words[at]).is_some() {
            self.trim.mode = mode(&words[at]);
            return Ok(at + 1);
        }
        let mut next = self.trim.take(words, at)?;
        if next == at && with_identity {
            next = identity(&mut self.identity, words, at)?;
        }
        if next == at {
            next = delay(&mut self.due, words, at, now)?;
        }
        Ok(next)
    }
}

pub fn xadd(model: &mut Model, words: &Words) -> Answer {
    let arity = || error("ERR wrong number of arguments for 'xadd' command");
    let (mut before, mut at, now) = (Before::default(), 2, model.now);
    while at < words.len() {
        match before.take(words, at, now, true)? {
            same if same == at => break,
            next => at = next,
        }
    }
    let wanted = words.get(at).map(|word| Wanted::parse(word)).transpose()?;
    let trimming = before.trim.finish(model.node_max)?;
    let fields = words.get(at + 1..).unwrap_or_default();
    let Some(wanted) = wanted else { return arity() };
    if before.identity.is_some() && !matches!(wanted, Wanted::Auto) {
        return error("ERR IDMP/IDMPAUTO can be used only with auto-generated IDs");
    }
    if fields.is_empty() || !fields.len().is_multiple_of(2) {
        return arity();
    }
    if matches!(wanted, Wanted::This(Id::MIN)) {
        return error("ERR The ID specified in XADD must be greater than 0-0");
    }
    let name = &words[1];
    let stream = model.stream(name)?;
    if stream.is_none() && before.no_make {
        return Ok(Value::Null);
    }
    let message = before.identity.map(|(pid, iid)| (pid, iid.unwrap_or_else(|| content_iid(fields))));
    if let (Some(stream), Some((pid, iid))) = (stream, &message)
        && let Some(id) = stream.messages.find(pid, iid, now)
    {
        model.stream_mut(name).messages.note_duplicate();
        return Ok(id.value());
    }
    let id = wanted.after(stream.map_or(Id::MIN, |stream| stream.last), now)?;
    if let Some(stream) = stream {
        stream.admit(1, bytes_of(fields))?;
    }
    add(model, name, vec![(id, fields.to_vec())], before.due, trimming);
    if let Some((pid, iid)) = message {
        model.stream_mut(name).messages.remember(&pid, &iid, id, now, true);
    }
    Ok(id.value())
}

/// Adds entries, and trims.
fn add(model: &mut Model, name: &[u8], entries: Vec<(Id, Vec<Vec<u8>>)>, due: Option<u64>, trimming: Option<Trimming>) {
    let (now, node_max) = (model.now, model.node_max);
    let stream = model.make_stream(name);
    for (id, fields) in entries {
        stream.add(id, fields, node_max);
        if let Some(due) = due.filter(|due| *due > now) {
            stream.entries.get_mut(&id).expect("just added").due = due;
        }
        stream.retire();
    }
    if let Some(trimming) = trimming {
        trim(model, name, &trimming);
    }
    model.stream_mut(name).enforce(now);
    model.touch(name);
    model.signal(name);
}

pub fn xaddm(model: &mut Model, words: &Words) -> Answer {
    fn arity<T>() -> Result<T, Vec<u8>> {
        error("ERR wrong number of arguments for 'xaddm' command")
    }
    let (mut before, mut at, now) = (Before::default(), 2, model.now);
    loop {
        let Some(word) = words.get(at) else { return arity() };
        if is(word, "COUNT") {
            break;
        }
        match before.take(words, at, now, false)? {
            same if same == at => return error(SYNTAX),
            next => at = next,
        }
    }
    let trimming = before.trim.finish(model.node_max)?;
    let positive = |at: usize, no: &str| match words.get(at) {
        None => arity(),
        Some(word) => match integer(word)? {
            n if n > 0 => Ok(n as usize),
            _ => error(no),
        },
    };
    let count = positive(at + 1, "ERR COUNT must be > 0")?;
    at += 2;
    let mut wanted: Vec<(Wanted, Vec<Vec<u8>>)> = Vec::new();
    for _ in 0..count {
        let Some(word) = words.get(at) else { return arity() };
        let id = Wanted::parse(word)?;
        let pairs = positive(at + 1, "ERR The number of fields must be > 0")?;
        let Some(fields) = words.get(at + 2..(at + 2).saturating_add(pairs.saturating_mul(2))) else { return arity() };
        if matches!(id, Wanted::This(Id::MIN)) {
            return error("ERR The ID specified in XADD must be greater than 0-0");
        }
        wanted.push((id, fields.to_vec()));
        at += 2 + 2 * pairs;
    }
    if at < words.len() {
        return arity();
    }
    let name = &words[1];
    let stream = model.stream(name)?;
    if stream.is_none() && before.no_make {
        return Ok(Value::Null);
    }
    let mut last = stream.map_or(Id::MIN, |stream| stream.last);
    let mut entries = Vec::new();
    for (wanted, fields) in wanted {
        last = wanted.after(last, now)?;
        entries.push((last, fields));
    }
    if let Some(stream) = stream {
        stream.admit(entries.len(), entries.iter().map(|(_, fields)| bytes_of(fields)).sum())?;
    }
    let ids = entries.iter().map(|(id, _)| id.value()).collect();
    add(model, name, entries, before.due, trimming);
    Ok(Value::Array(ids))
}

/// Trims a stream that is there; answers how many entries went.
fn trim(model: &mut Model, name: &[u8], trimming: &Trimming) -> usize {
    let (removed, losers) = model.stream_mut(name).trim(trimming);
    losers.iter().for_each(|group| model.freed(name, group));
    if model.stream_mut(name).retire() || removed > 0 {
        model.touch(name);
    }
    removed
}

pub fn xtrim(model: &mut Model, words: &Words) -> Answer {
    let (mut options, mut at) = (Options::default(), 2);
    while at < words.len() {
        if let Some(mode) = mode(&words[at]) {
            if options.mode.is_some() {
                return error(SYNTAX);
            }
            options.mode = Some(mode);
            at += 1;
            continue;
        }
        match options.take(words, at)? {
            same if same == at => return error(SYNTAX),
            next => at = next,
        }
    }
    if options.threshold.is_none() && options.limit.unwrap_or(0) == 0 {
        return error("ERR syntax error, XTRIM must be called with a trimming strategy");
    }
    let Some(trimming) = options.finish(model.node_max)? else { return error(SYNTAX) };
    let name = &words[1];
    if model.stream(name)?.is_none() {
        return Ok(Value::Int(0));
    }
    Ok(Value::count(trim(model, name, &trimming)))
}

pub fn xsetid(model: &mut Model, words: &Words) -> Answer {
    let last = words::id(&words[2])?;
    let (mut added, mut deleted, mut at) = (None, None, 3);
    while at < words.len() {
        let Some(value) = words.get(at + 1) else { return error(SYNTAX) };
        if is(&words[at], "ENTRIESADDED") {
            let n = integer(value)?;
            if n < 0 {
                return error("ERR entries_added must be positive");
            }
            added = Some(n);
        } else if is(&words[at], "MAXDELETEDID") {
            let id = words::id(value)?;
            if last < id {
                return error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
            }
            deleted = Some(id);
        } else {
            return error(SYNTAX);
        }
        at += 2;
    }
    let Some(stream) = model.stream(&words[1])? else { return error("ERR no such key") };
    if last < stream.max_deleted {
        return error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
    }
    if stream.entries.keys().next_back().is_some_and(|top| last < *top) {
        return error("ERR The ID specified in XSETID is smaller than the target stream top item");
    }
    if added.is_some_and(|added| added < stream.entries.len() as i64) {
        return error("ERR The entries_added specified in XSETID is smaller than the target stream length");
    }
    let stream = model.stream_mut(&words[1]);
    stream.last = last;
    stream.added = added.unwrap_or(stream.added);
    if let Some(deleted) = deleted.filter(|id| *id > Id::MIN) {
        stream.max_deleted = deleted;
    }
    Ok(Value::Status("OK"))
}
