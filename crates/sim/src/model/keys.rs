//! What other commands do to keys that hold streams. Only well-formed commands come here.

use super::value::{Answer, Value};
use super::words::{Words, error, integer, is};
use super::{Content, Key, Model};

const NO_SUCH_KEY: &str = "ERR no such key";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

pub fn del(model: &mut Model, words: &Words) -> Answer {
    let before = model.keys.len();
    words[1..].iter().for_each(|name| model.remove(name));
    Ok(Value::count(before - model.keys.len()))
}

pub fn exists(model: &mut Model, words: &Words) -> Answer {
    Ok(Value::count(words[1..].iter().filter(|name| model.keys.contains_key(*name)).count()))
}

pub fn type_of(model: &mut Model, words: &Words) -> Answer {
    Ok(Value::Status(match model.keys.get(&words[1]).map(|key| &key.content) {
        Some(Content::Stream(_)) => "stream",
        Some(Content::Text(_)) => "string",
        None => "none",
    }))
}

fn put(model: &mut Model, name: &[u8], key: Key) {
    model.keys.insert(name.to_vec(), key);
    model.touch(name);
    model.signal(name);
}

pub fn rename(model: &mut Model, words: &Words) -> Answer {
    if !model.keys.contains_key(&words[1]) {
        return error(NO_SUCH_KEY);
    }
    if words[1] != words[2] {
        let key = model.keys.get(&words[1]).cloned().expect("just seen");
        model.remove(&words[1]);
        put(model, &words[2], key);
    }
    Ok(Value::Status("OK"))
}

pub fn renamenx(model: &mut Model, words: &Words) -> Answer {
    if !model.keys.contains_key(&words[1]) {
        return error(NO_SUCH_KEY);
    }
    if model.keys.contains_key(&words[2]) {
        return Ok(Value::Int(0));
    }
    rename(model, words)?;
    Ok(Value::Int(1))
}

pub fn copy(model: &mut Model, words: &Words) -> Answer {
    if words[1] == words[2] {
        return error("ERR source and destination objects are the same");
    }
    let Some(key) = model.keys.get(&words[1]).cloned() else { return Ok(Value::Int(0)) };
    let replace = words.get(3).is_some_and(|word| is(word, "REPLACE"));
    if model.keys.contains_key(&words[2]) && !replace {
        return Ok(Value::Int(0));
    }
    put(model, &words[2], key);
    Ok(Value::Int(1))
}

pub fn pexpire(model: &mut Model, words: &Words) -> Answer {
    expire_in(model, words, 1)
}

pub fn expire(model: &mut Model, words: &Words) -> Answer {
    expire_in(model, words, 1000)
}

fn expire_in(model: &mut Model, words: &Words, unit_ms: i64) -> Answer {
    let (ms, now) = (integer(&words[2])? * unit_ms, model.now);
    let Some(key) = model.keys.get_mut(&words[1]) else { return Ok(Value::Int(0)) };
    if ms <= 0 {
        model.remove(&words[1]);
    } else {
        key.expires = Some(now + ms as u64);
        model.touch(&words[1]);
    }
    Ok(Value::Int(1))
}

pub fn persist(model: &mut Model, words: &Words) -> Answer {
    let had = model.keys.get_mut(&words[1]).and_then(|key| key.expires.take());
    if had.is_some() {
        model.touch(&words[1]);
    }
    Ok(Value::Int(had.is_some().into()))
}

pub fn pttl(model: &mut Model, words: &Words) -> Answer {
    Ok(Value::Int(match model.keys.get(&words[1]).map(|key| key.expires) {
        None => -2,
        Some(None) => -1,
        Some(Some(end)) => (end - model.now) as i64,
    }))
}

pub fn set(model: &mut Model, words: &Words) -> Answer {
    put(model, &words[1], Key { content: Content::Text(words[2].clone()), expires: None });
    Ok(Value::Status("OK"))
}

/// The text under a key; a missing one is made of `first`.
fn text<'m>(model: &'m mut Model, name: &[u8], first: &str) -> Result<&'m mut Vec<u8>, Vec<u8>> {
    let new = || Key { content: Content::Text(first.as_bytes().to_vec()), expires: None };
    match &mut model.keys.entry(name.to_vec()).or_insert_with(new).content {
        Content::Text(text) => Ok(text),
        Content::Stream(_) => error(WRONG_TYPE),
    }
}

pub fn incr(model: &mut Model, words: &Words) -> Answer {
    let text = text(model, &words[1], "0")?;
    let Some(sum) = integer(text)?.checked_add(1) else { return error("ERR increment or decrement would overflow") };
    *text = sum.to_string().into_bytes();
    model.touch(&words[1]);
    model.signal(&words[1]);
    Ok(Value::Int(sum))
}

pub fn append(model: &mut Model, words: &Words) -> Answer {
    let text = text(model, &words[1], "")?;
    text.extend_from_slice(&words[2]);
    let length = text.len();
    model.touch(&words[1]);
    model.signal(&words[1]);
    Ok(Value::count(length))
}

pub fn get(model: &mut Model, words: &Words) -> Answer {
    match model.keys.get(&words[1]).map(|key| &key.content) {
        Some(Content::Text(text)) => Ok(Value::bulk(text)),
        Some(Content::Stream(_)) => error(WRONG_TYPE),
        None => Ok(Value::Null),
    }
}

pub fn flushall(model: &mut Model, _: &Words) -> Answer {
    let names: Vec<Vec<u8>> = model.keys.keys().cloned().collect();
    names.iter().for_each(|name| model.remove(name));
    Ok(Value::Status("OK"))
}
