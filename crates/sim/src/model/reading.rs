//! XLEN, XRANGE, XREVRANGE, XREAD, and the words of XREADGROUP.

use super::Model;
use super::stream::Id;
use super::value::{Answer, Value};
use super::words::{self, SYNTAX, Words, error, integer, is};

pub fn xlen(model: &mut Model, words: &Words) -> Answer {
    Ok(Value::count(model.stream(&words[1])?.map_or(0, |stream| stream.entries.len())))
}

pub fn xrange(model: &mut Model, words: &Words) -> Answer {
    range(model, words, false)
}

pub fn xrevrange(model: &mut Model, words: &Words) -> Answer {
    range(model, words, true)
}

fn range(model: &mut Model, words: &Words, reverse: bool) -> Answer {
    let (first, second) = if reverse { (&words[3], &words[2]) } else { (&words[2], &words[3]) };
    let (start, end) = (words::start(first)?, words::end(second)?);
    let (mut count, mut at) = (None, 4);
    while at < words.len() {
        if !is(&words[at], "COUNT") || at + 1 == words.len() {
            return error(SYNTAX);
        }
        count = Some(integer(&words[at + 1])?);
        at += 2;
    }
    let Some(stream) = model.stream(&words[1])? else { return Ok(Value::Array(Vec::new())) };
    if count.is_some_and(|count| count <= 0) {
        return Ok(Value::NullArray);
    }
    let mut ids: Vec<Id> = stream.entries.keys().copied().filter(|id| start <= *id && *id <= end).collect();
    if reverse {
        ids.reverse();
    }
    ids.truncate(count.map_or(usize::MAX, |count| count as usize));
    Ok(Value::Array(ids.into_iter().map(|id| stream.entry(id)).collect()))
}

/// A read as it is written.
pub struct Read<'w> {
    /// Group and consumer.
    pub group: Option<(&'w [u8], &'w [u8])>,
    /// COUNT
    pub count: usize,
    max_count: usize,
    max_size: usize,
    /// CLAIM
    pub min_idle: Option<u64>,
    /// MKGROUP; true = after the last entry.
    pub make_group: Option<bool>,
    block: Option<u64>,
    /// NOACK
    pub no_ack: bool,
    /// Keys.
    pub keys: &'w Words,
    /// IDs.
    pub ids: &'w Words,
}

/// What a reply may still hold: MAXCOUNT, MAXSIZE.
pub struct Budget {
    /// Entries that may follow.
    pub entries: usize,
    max_size: usize,
    resp3: bool,
    /// Bytes so far.
    pub bytes: usize,
    taken: usize,
}

impl Budget {
    /// May one more entry follow? The first always may.
    pub fn has_room(&self) -> bool {
        self.entries > 0 && (self.taken == 0 || self.bytes < self.max_size)
    }

    /// A stream begins.
    pub fn begin(&mut self, key: &[u8]) {
        self.bytes += Value::bulk(key).encode(self.resp3).len() + if self.resp3 { 0 } else { "*2\r\n".len() };
    }

    /// An entry is in the reply.
    pub fn take(&mut self, entry: &Value) {
        self.bytes += entry.encode(self.resp3).len();
        self.entries -= 1;
        self.taken += 1;
    }

    /// A stream ends; its list has a head.
    pub fn end(&mut self, entries: usize) {
        self.bytes += format!("*{entries}\r\n").len();
    }
}

impl Read<'_> {
    /// The budget of the reply. The head of all of it is not counted.
    pub fn budget(&self, resp3: bool) -> Budget {
        Budget { entries: self.max_count, max_size: self.max_size, resp3, bytes: 0, taken: 0 }
    }
}

/// Reads the words of XREAD or XREADGROUP.
pub fn parse<'w>(now: u64, words: &'w Words) -> Result<Read<'w>, Vec<u8>> {
    let for_group = is(&words[0], "XREADGROUP");
    let mut read = Read {
        group: None,
        count: usize::MAX,
        max_count: usize::MAX,
        max_size: usize::MAX,
        min_idle: None,
        make_group: None,
        block: None,
        no_ack: false,
        keys: &[],
        ids: &[],
    };
    let positive = |at: usize, name: &str| match words::number(&words[at]) {
        Some(n) if n > 0 => Ok(n as usize),
        _ => error(&format!("ERR {name} must be a positive integer")),
    };
    let mut at = 1;
    while at < words.len() {
        let follow = words.len() - at - 1;
        if is(&words[at], "COUNT") && follow >= 1 {
            let n = integer(&words[at + 1])?;
            read.count = if n > 0 { n as usize } else { usize::MAX };
            at += 2;
        } else if is(&words[at], "MAXCOUNT") && follow >= 1 {
            read.max_count = positive(at + 1, "MAXCOUNT")?;
            at += 2;
        } else if is(&words[at], "MAXSIZE") && follow >= 1 {
            read.max_size = positive(at + 1, "MAXSIZE")?;
            at += 2;
        } else if for_group && is(&words[at], "CLAIM") && follow >= 1 {
            read.min_idle = match words::number(&words[at + 1]) {
                None => return error("ERR min-idle-time is not an integer"),
                Some(ms) if ms < 0 => return error("ERR min-idle-time must be a positive integer"),
                Some(ms) => Some(ms as u64),
            };
            at += 2;
        } else if for_group && is(&words[at], "MKGROUP") {
            let place = words.get(at + 1).filter(|word| *word == b"0" || *word == b"$");
            read.make_group = Some(place.is_some_and(|word| word == b"$"));
            at += 1 + usize::from(place.is_some());
        } else if is(&words[at], "BLOCK") && follow >= 1 {
            let Some(ms) = words::number(&words[at + 1]) else {
                return error("ERR timeout is not an integer or out of range");
            };
            if ms < 0 {
                return error("ERR timeout is negative");
            }
            if ms > i64::MAX - 1 - now as i64 {
                return error("ERR timeout is out of range");
            }
            read.block = Some(ms as u64);
            at += 2;
        } else if is(&words[at], "STREAMS") && follow >= 1 {
            let rest = &words[at + 1..];
            if !rest.len().is_multiple_of(2) {
                return error(if for_group {
                    "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
                } else {
                    "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified."
                });
            }
            (read.keys, read.ids) = rest.split_at(rest.len() / 2);
            break;
        } else if is(&words[at], "GROUP") && follow >= 2 {
            if !for_group {
                return error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
            }
            read.group = Some((&words[at + 1], &words[at + 2]));
            at += 3;
        } else if is(&words[at], "NOACK") {
            if !for_group {
                return error("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");
            }
            read.no_ack = true;
            at += 1;
        } else {
            return error(SYNTAX);
        }
    }
    if read.keys.is_empty() {
        return error(SYNTAX);
    }
    if for_group && read.group.is_none() {
        return error("ERR Missing GROUP option for XREADGROUP");
    }
    if read.count != usize::MAX && read.max_count < read.count {
        return error("ERR MAXCOUNT must not be smaller than COUNT");
    }
    Ok(read)
}

/// May this command wait? Only asked of commands that answered that there is nothing.
pub fn blocks(words: &Words) -> bool {
    (is(&words[0], "XREAD") || is(&words[0], "XREADGROUP")) && parse(0, words).is_ok_and(|read| read.block.is_some())
}

/// The keys of a read that was good.
pub fn keys_of(words: &Words) -> Vec<Vec<u8>> {
    parse(0, words).map(|read| read.keys.to_vec()).unwrap_or_default()
}

/// How long a read that was good wants to wait, in ms.
pub fn timeout_of(words: &Words) -> u64 {
    parse(0, words).ok().and_then(|read| read.block).unwrap_or(0)
}

/// Does a read that was good take only what needs no room?
pub fn needs_no_room(words: &Words) -> bool {
    parse(0, words).is_ok_and(|read| read.no_ack && read.min_idle.is_none())
}

/// Does what a read gets anew not become pending?
pub fn is_without_acknowledgement(words: &Words) -> bool {
    parse(0, words).is_ok_and(|read| read.no_ack)
}

/// Group, consumer and CLAIM of a read that was good, if it is one of a group.
pub fn group_of(words: &Words) -> Option<(Vec<u8>, Vec<u8>, Option<u64>)> {
    let read = parse(0, words).ok()?;
    let (group, consumer) = read.group?;
    Some((group.to_vec(), consumer.to_vec(), read.min_idle))
}

impl Model {
    /// The command with `$` as the ID it stands for now.
    pub(super) fn resolve_dollars(&self, words: &Words) -> Vec<Vec<u8>> {
        let mut resolved = words.to_vec();
        if let Ok(read) = parse(0, words) {
            let first = words.len() - read.ids.len();
            for (place, (key, id)) in read.keys.iter().zip(read.ids).enumerate() {
                if id == b"$" {
                    let last = self.stream(key).ok().flatten().map_or(Id::MIN, |stream| stream.last);
                    resolved[first + place] = last.text().into_bytes();
                }
            }
        }
        resolved
    }
}

pub fn xread(model: &mut Model, words: &Words) -> Answer {
    let read = parse(model.now, words)?;
    let mut wanted = Vec::new();
    for (key, id) in read.keys.iter().zip(read.ids) {
        let stream = model.stream(key)?;
        wanted.push(match id.as_slice() {
            b"$" => Some(stream.map_or(Id::MIN, |stream| stream.last)),
            b"+" => None,
            b">" => {
                return error(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
                );
            }
            id => Some(words::id(id)?),
        });
    }
    let mut budget = read.budget(model.resp3());
    let mut found = Vec::new();
    for (key, after) in read.keys.iter().zip(wanted) {
        let Some(stream) = model.stream(key)? else { continue };
        let all = stream.entries.keys().copied();
        let ids: Vec<Id> = match after {
            Some(after) => all.filter(|id| *id > after).take(read.count).collect(),
            None => all.last().into_iter().collect(),
        };
        if ids.is_empty() || !budget.has_room() {
            continue;
        }
        budget.begin(key);
        let mut entries = Vec::new();
        for id in ids {
            if !budget.has_room() {
                break;
            }
            entries.push(stream.entry(id));
            budget.take(&stream.entry(id));
        }
        budget.end(entries.len());
        found.push((Value::bulk(key), Value::Array(entries)));
    }
    Ok(if found.is_empty() { Value::NullArray } else { Value::Streams(found) })
}
