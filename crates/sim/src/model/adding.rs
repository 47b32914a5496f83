//! Adding and removing entries: XADD, XTRIM, XSETID, XDEL, XDELEX, XACK, XACKDEL.

use super::Model;
use super::stream::{Id, Mode, Threshold, Trimming};
use super::value::{Answer, Value};
use super::words::{self, SYNTAX, Words, error, integer, is};

fn mode(word: &[u8]) -> Option<Mode> {
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

enum Wanted {
    Auto,
    AutoSequence(u64),
    This(Id),
}

pub fn xadd(model: &mut Model, words: &Words) -> Answer {
    let arity = || error("ERR wrong number of arguments for 'xadd' command");
    let (mut options, mut no_make, mut at) = (Options::default(), false, 2);
    while at < words.len() {
        if is(&words[at], "NOMKSTREAM") {
            no_make = true;
            at += 1;
        } else if options.mode.is_none() && mode(&words[at]).is_some() {
            options.mode = mode(&words[at]);
            at += 1;
        } else {
            match options.take(words, at)? {
                same if same == at => break,
                next => at = next,
            }
        }
    }
    let wanted = match words.get(at) {
        None => None,
        Some(word) if word == b"*" => Some(Wanted::Auto),
        Some(word) => Some(match word.strip_suffix(b"-*") {
            Some(ms) => Wanted::AutoSequence(words::ms_of(ms)?),
            None => Wanted::This(words::id(word)?),
        }),
    };
    let trimming = options.finish(model.node_max)?;
    let fields = words.get(at + 1..).unwrap_or_default();
    let Some(wanted) = wanted.filter(|_| !fields.is_empty() && fields.len().is_multiple_of(2)) else {
        return arity();
    };
    if matches!(wanted, Wanted::This(Id::MIN)) {
        return error("ERR The ID specified in XADD must be greater than 0-0");
    }
    let name = &words[1];
    let last = match model.stream(name)? {
        Some(stream) => stream.last,
        None if no_make => return Ok(Value::Null),
        None => Id::MIN,
    };
    if last == Id::MAX {
        return error("ERR The stream has exhausted the last possible ID, unable to add more items");
    }
    let id = match wanted {
        Wanted::This(id) => id,
        Wanted::Auto if model.now > last.0 => Id(model.now, 0),
        Wanted::Auto => last.next(),
        Wanted::AutoSequence(ms) if ms == last.0 && last.1 < u64::MAX => last.next(),
        Wanted::AutoSequence(ms) => Id(ms, 0),
    };
    if id <= last {
        return error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
    }
    let node_max = model.node_max;
    let stream = model.make_stream(name);
    stream.add(id, fields.to_vec(), node_max);
    if let Some(trimming) = trimming {
        stream.trim(&trimming);
    }
    model.touch(name);
    model.signal(name);
    Ok(id.value())
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
    let removed = model.stream_mut(name).trim(&trimming);
    if removed > 0 {
        model.touch(name);
    }
    Ok(Value::count(removed))
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

fn ids(words: &Words) -> Result<Vec<Id>, Vec<u8>> {
    words.iter().map(|word| words::id(word)).collect()
}

pub fn xdel(model: &mut Model, words: &Words) -> Answer {
    let name = &words[1];
    if model.stream(name)?.is_none() {
        return Ok(Value::Int(0));
    }
    let ids = ids(&words[2..])?;
    let stream = model.stream_mut(name);
    let deleted = ids.into_iter().filter(|id| stream.delete(*id)).count();
    if deleted > 0 {
        model.touch(name);
    }
    Ok(Value::count(deleted))
}

pub fn xack(model: &mut Model, words: &Words) -> Answer {
    let (name, group) = (&words[1], &words[2]);
    if model.stream(name)?.is_none_or(|stream| !stream.groups.contains_key(group)) {
        return Ok(Value::Int(0));
    }
    let ids = ids(&words[3..])?;
    let group = model.group_mut(name, group);
    Ok(Value::count(ids.into_iter().filter(|id| group.pel.remove(id).is_some()).count()))
}

/// `[KEEPREF|DELREF|ACKED] IDS n id …`, as the mode and the words of the IDs.
fn block(words: &Words, from: usize) -> Result<(Mode, &Words), Vec<u8>> {
    let (mut found, mut ids, mut at) = (None, None, from);
    while at < words.len() {
        if let Some(mode) = mode(&words[at]) {
            if found.is_some() {
                return error(SYNTAX);
            }
            found = Some(mode);
            at += 1;
        } else if is(&words[at], "IDS") && at + 1 < words.len() {
            let Some(n) = words::number(&words[at + 1]).filter(|n| *n > 0) else {
                return error("ERR Number of IDs must be a positive integer");
            };
            let rest = &words[at + 2..];
            if n > rest.len() as i64 {
                return error("ERR The `numids` parameter must match the number of arguments");
            }
            ids = Some(&rest[..n as usize]);
            at += 2 + n as usize;
        } else {
            return error(SYNTAX);
        }
    }
    let Some(ids) = ids else { return error(SYNTAX) };
    Ok((found.unwrap_or(Mode::Keep), ids))
}

fn all_missing(words: &Words) -> Answer {
    Ok(Value::Array(words.iter().map(|_| Value::Int(-1)).collect()))
}

pub fn xdelex(model: &mut Model, words: &Words) -> Answer {
    let name = &words[1];
    model.stream(name)?;
    let (mode, id_words) = block(words, 2)?;
    if model.stream(name)?.is_none() {
        return all_missing(id_words);
    }
    let ids = ids(id_words)?;
    let stream = model.stream_mut(name);
    let mut deleted_any = false;
    let mut results = Vec::new();
    for id in ids {
        if mode == Mode::Acked && !stream.is_free(id) {
            results.push(Value::Int(2));
            continue;
        }
        if mode == Mode::Delete {
            stream.release(id);
        }
        let deleted = stream.delete(id);
        deleted_any |= deleted;
        results.push(Value::Int(if deleted { 1 } else { -1 }));
    }
    if deleted_any {
        model.touch(name);
    }
    Ok(Value::Array(results))
}

pub fn xackdel(model: &mut Model, words: &Words) -> Answer {
    let (name, group) = (&words[1], &words[2]);
    model.stream(name)?;
    let (mode, id_words) = block(words, 3)?;
    if model.stream(name)?.is_none_or(|stream| !stream.groups.contains_key(group)) {
        return all_missing(id_words);
    }
    let ids = ids(id_words)?;
    let stream = model.stream_mut(name);
    let mut deleted_any = false;
    let mut results = Vec::new();
    for id in ids {
        let pel = &mut stream.groups.get_mut(group).expect("looked at before").pel;
        if pel.remove(&id).is_none() {
            results.push(Value::Int(-1));
            continue;
        }
        if mode == Mode::Delete {
            stream.release(id);
        }
        let kept = mode == Mode::Acked && !stream.is_free(id);
        if !kept {
            deleted_any |= stream.delete(id);
        }
        results.push(Value::Int(if kept { 2 } else { 1 }));
    }
    if deleted_any {
        model.touch(name);
    }
    Ok(Value::Array(results))
}
