//! Acknowledging and deleting: XACK, XACKDEL, XDEL, XDELEX.

use super::Model;
use super::adding::mode;
use super::stream::{Id, Mode};
use super::value::{Answer, Value};
use super::words::{self, SYNTAX, Words, error, is};

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

/// Acknowledges these, as far as they are pending; answers how many were.
fn acknowledge(model: &mut Model, name: &[u8], group: &[u8], ids: impl IntoIterator<Item = Id>) -> usize {
    let of = model.group_mut(name, group);
    let acked = ids.into_iter().filter(|id| of.pel.remove(id).is_some()).count();
    of.acked += acked as i64;
    if acked > 0 {
        model.freed(name, group);
        if model.stream_mut(name).retire() {
            model.touch(name);
        }
    }
    acked
}

pub fn xack(model: &mut Model, words: &Words) -> Answer {
    let (name, group) = (&words[1], &words[2]);
    let Some(of) = model.stream(name)?.and_then(|stream| stream.groups.get(group)) else { return Ok(Value::Int(0)) };
    let ids = if is(&words[3], "RANGE") {
        if words.len() != 6 {
            return error("ERR RANGE takes two IDs: the first and the last to acknowledge");
        }
        let (first, last) = (words::start(&words[4])?, words::end(&words[5])?);
        of.pel.keys().copied().filter(|id| first <= *id && *id <= last).collect()
    } else {
        ids(&words[3..])?
    };
    Ok(Value::count(acknowledge(model, name, group, ids)))
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

/// DELREF: takes an ID off every pending list.
fn release(model: &mut Model, name: &[u8], id: Id) {
    for group in model.stream_mut(name).release(|of| of == id) {
        model.freed(name, &group);
    }
    if model.stream_mut(name).retire() {
        model.touch(name);
    }
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
    let mut results = Vec::new();
    for id in ids {
        let stream = model.stream_mut(name);
        if mode == Mode::Acked && !stream.is_free(id) {
            results.push(Value::Int(2));
            continue;
        }
        // Deleted first: RETAIN acked would trim what is released.
        let there = stream.delete(id);
        if there {
            model.touch(name);
        }
        if mode == Mode::Delete {
            release(model, name, id);
        }
        results.push(Value::Int(if there { 1 } else { -1 }));
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
    let mut results = Vec::new();
    for id in ids {
        let stream = model.stream_mut(name);
        if !stream.groups[group].pel.contains_key(&id) {
            results.push(Value::Int(-1));
            continue;
        }
        // Deleted first: RETAIN acked would trim what is acknowledged.
        let mut without = stream.clone();
        without.groups.get_mut(group).expect("it is there").pel.remove(&id);
        let kept = mode == Mode::Acked && !without.is_free(id);
        if !kept && stream.delete(id) {
            model.touch(name);
        }
        acknowledge(model, name, group, [id]);
        if mode == Mode::Delete {
            release(model, name, id);
        }
        results.push(Value::Int(if kept { 2 } else { 1 }));
    }
    Ok(Value::Array(results))
}
