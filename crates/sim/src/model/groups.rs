//! XGROUP.

use super::Model;
use super::group::{Consumer, Group};
use super::stream::{Id, Stream};
use super::value::{Answer, Value};
use super::waiting::Event;
use super::words::{self, Words, error, error_with, integer, is};

pub fn misused<T>(words: &Words) -> Result<T, Vec<u8>> {
    error_with(&[
        b"ERR unknown subcommand or wrong number of arguments for '",
        &words[1],
        b"'. Try ",
        &words[0].to_ascii_uppercase(),
        b" HELP.",
    ])
}

pub fn no_group<T>(words: &Words) -> Result<T, Vec<u8>> {
    error_with(&[b"NOGROUP No such consumer group '", &words[3], b"' for key name '", &words[2], b"'"])
}

fn stream_of<'m>(model: &'m Model, words: &Words) -> Result<&'m Stream, Vec<u8>> {
    let missing = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
                   MKSTREAM option to create an empty stream automatically.";
    model.stream(&words[2])?.map_or_else(|| error(missing), Ok)
}

/// What CREATE and CFGSET set for a group.
#[derive(Clone, PartialEq, Default)]
struct Settings {
    max_pending: usize,
    max_pending_consumer: usize,
    key_field: Option<Vec<u8>>,
}

impl Settings {
    /// Takes the option at a place; answers whether there is one.
    fn take(&mut self, words: &Words, at: usize) -> Result<bool, Vec<u8>> {
        let Some(value) = words.get(at + 1) else { return Ok(false) };
        let bound = || match integer(value)? {
            n if n < 0 => error("ERR value for MAXPENDING must be 0 or more"),
            n => Ok(n as usize),
        };
        if is(&words[at], "MAXPENDING") {
            self.max_pending = bound()?;
        } else if is(&words[at], "MAXPENDING-CONSUMER") {
            self.max_pending_consumer = bound()?;
        } else if is(&words[at], "KEYFIELD") {
            self.key_field = Some(value.clone()).filter(|field| !field.is_empty());
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// Is MKSTREAM there, and what is ENTRIESREAD? And what is set for the group, if anything is named?
fn options(words: &Words, create: bool) -> Result<(bool, Option<i64>, Option<Settings>), Vec<u8>> {
    let (mut make, mut read, mut settings, mut named, mut at) = (false, None, Settings::default(), false, 5);
    while at < words.len() {
        if create && is(&words[at], "MKSTREAM") {
            make = true;
            at += 1;
        } else if is(&words[at], "ENTRIESREAD") && at + 1 < words.len() {
            let n = integer(&words[at + 1])?;
            if n < -1 {
                return error("ERR value for ENTRIESREAD must be positive or -1");
            }
            read = Some(n);
            at += 2;
        } else if create && settings.take(words, at)? {
            named = true;
            at += 2;
        } else {
            return misused(words);
        }
    }
    Ok((make, read.filter(|n| *n >= 0), Some(settings).filter(|_| named)))
}

pub fn create(model: &mut Model, words: &Words) -> Answer {
    let (make, read, settings) = options(words, true)?;
    if model.stream(&words[2])?.is_none() && !make {
        stream_of(model, words)?;
    }
    if words.len() > if settings.is_none() { 8 } else { 14 } {
        return misused(words);
    }
    let stream = model.stream(&words[2])?;
    let position = match words[4].as_slice() {
        b"$" => stream.map_or(Id::MIN, |stream| stream.last),
        id => words::id(id)?,
    };
    if stream.is_some_and(|stream| stream.groups.contains_key(&words[3])) {
        return error("BUSYGROUP Consumer Group name already exists");
    }
    let stream = model.make_stream(&words[2]);
    let read = read.map(|n| n.min(stream.added));
    let settings = settings.unwrap_or_default();
    let set = settings != Settings::default();
    let Settings { max_pending, max_pending_consumer, key_field } = settings;
    let group = Group { position, read, max_pending, max_pending_consumer, key_field, ..Group::default() };
    stream.groups.insert(words[3].clone(), group);
    retire(model, words);
    if set {
        // As CFGSET does: whoever found no room at the key looks again.
        model.signal_event(&words[2], Event::Room);
    }
    Ok(Value::Status("OK"))
}

/// Lets go of what every group is done with now.
fn retire(model: &mut Model, words: &Words) {
    if model.stream_mut(&words[2]).retire() {
        model.touch(&words[2]);
    }
}

pub fn cfgset(model: &mut Model, words: &Words) -> Answer {
    for at in (4..words.len()).step_by(2) {
        if !Settings::default().take(words, at)? {
            return misused(words);
        }
    }
    let Some(group) = stream_of(model, words)?.groups.get(&words[3]) else { return no_group(words) };
    let old = Settings {
        max_pending: group.max_pending,
        max_pending_consumer: group.max_pending_consumer,
        key_field: group.key_field.clone(),
    };
    let mut settings = old.clone();
    for at in (4..words.len()).step_by(2) {
        settings.take(words, at)?;
    }
    if settings == old {
        return Ok(Value::Status("OK"));
    }
    let stream = model.stream_mut(&words[2]);
    let mut group = stream.groups.remove(&words[3]).expect("just seen");
    (group.max_pending, group.max_pending_consumer) = (settings.max_pending, settings.max_pending_consumer);
    if group.key_field != settings.key_field {
        group.key_field = settings.key_field;
        for id in group.pel.keys().copied().collect::<Vec<_>>() {
            let key = stream.key_of(&group, id);
            group.pel.get_mut(&id).expect("just listed").key = key;
        }
    }
    stream.groups.insert(words[3].clone(), group);
    model.freed(&words[2], &words[3]);
    Ok(Value::Status("OK"))
}

pub fn setid(model: &mut Model, words: &Words) -> Answer {
    let (_, read, _) = options(words, false)?;
    let stream = stream_of(model, words)?;
    if !stream.groups.contains_key(&words[3]) {
        return no_group(words);
    }
    if words.len() > 7 {
        return misused(words);
    }
    let position = match words[4].as_slice() {
        b"$" => stream.last,
        b"-" => Id::MIN,
        b"+" => Id::MAX,
        id => words::id(id)?,
    };
    let read = read.map(|n| n.min(stream.added));
    let group = model.group_mut(&words[2], &words[3]);
    let goes_back = position < group.position;
    (group.position, group.read, group.moved) = (position, read, true);
    // What was passed over and stands behind the position again will be come upon again.
    group.held.retain(|id, _| *id <= position);
    if goes_back {
        model.note_set_back(&words[2], &words[3]);
    }
    retire(model, words);
    Ok(Value::Status("OK"))
}

pub fn destroy(model: &mut Model, words: &Words) -> Answer {
    stream_of(model, words)?;
    let there = model.stream_mut(&words[2]).groups.remove(&words[3]).is_some();
    if there {
        model.signal(&words[2]);
        retire(model, words);
    }
    Ok(Value::Int(there.into()))
}

pub fn create_consumer(model: &mut Model, words: &Words) -> Answer {
    let now = model.now;
    if !stream_of(model, words)?.groups.contains_key(&words[3]) {
        return no_group(words);
    }
    let group = model.group_mut(&words[2], &words[3]);
    if group.consumers.contains_key(&words[4]) {
        return Ok(Value::Int(0));
    }
    group.consumers.insert(words[4].clone(), Consumer { seen: now, active: None });
    Ok(Value::Int(1))
}

pub fn delete_consumer(model: &mut Model, words: &Words) -> Answer {
    let (if_empty, release) = match words.get(5) {
        None => (false, false),
        Some(word) if is(word, "IFEMPTY") => (true, false),
        Some(word) if is(word, "RELEASE") => (false, true),
        Some(_) => return error("ERR wrong number of arguments for 'xgroup|delconsumer' command"),
    };
    let (key, name, consumer) = (&words[2], &words[3], &words[4]);
    if !stream_of(model, words)?.groups.contains_key(name) {
        return no_group(words);
    }
    let stream = model.stream_mut(key);
    let own = stream.groups[name].pel.iter().filter(|(_, pending)| pending.is_of(consumer));
    let own: Vec<(Id, u64)> = own.map(|(id, pending)| (*id, pending.count)).collect();
    if if_empty && !own.is_empty() {
        return error("ERR the consumer has pending entries");
    }
    for (id, count) in &own {
        if release {
            stream.give_back(name, *id, count.saturating_sub(1), None);
        } else {
            stream.groups.get_mut(name).expect("asked before").pel.remove(id);
        }
    }
    let there = stream.groups.get_mut(name).expect("asked before").consumers.remove(consumer).is_some();
    if there {
        if release && !own.is_empty() {
            model.signal_event(key, Event::Claimable);
        }
        model.freed(key, name);
        retire(model, words);
    }
    Ok(Value::count(own.len()))
}
