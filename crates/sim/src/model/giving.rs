//! XREADGROUP.

use super::Model;
use super::group::{Group, Held, Holder, Pending, once_more};
use super::reading::{self, Budget, Read};
use super::stream::{Id, Stream};
use super::value::{Answer, Value};
use super::waiting::Event;
use super::words::{self, Words, error, error_with};

pub fn xreadgroup(model: &mut Model, words: &Words) -> Answer {
    let read = reading::parse(model.now, words)?;
    let (group, _) = read.group.expect("asked by parse");
    // None is `>`.
    let mut wanted = Vec::new();
    let mut missing = Vec::new();
    for (key, id) in read.keys.iter().zip(read.ids) {
        if model.stream(key)?.is_none_or(|stream| !stream.groups.contains_key(group)) {
            missing.push(key);
            if read.make_group.is_none() {
                return error_with(&[
                    b"NOGROUP No such key '",
                    key,
                    b"' or consumer group '",
                    group,
                    b"' in XREADGROUP with GROUP option",
                ]);
            }
        }
        let meaningless = |id: &str| {
            error(&format!(
                "ERR The {id} ID is meaningless in the context of XREADGROUP: you want to read the history of this \
                 consumer by specifying a proper ID, or use the > ID to get new messages. The {id} ID would just \
                 return an empty result set."
            ))
        };
        wanted.push(match id.as_slice() {
            b">" => None,
            b"$" => return meaningless("$"),
            b"+" => return meaningless("+"),
            id => Some(words::id(id)?).filter(|id| *id < Id::MAX),
        });
    }
    for key in missing {
        let stream = model.make_stream(key);
        let position = if read.make_group == Some(true) { stream.last } else { Id::MIN };
        stream.groups.entry(group.to_vec()).or_insert(Group { position, ..Group::default() });
        if stream.retire() {
            model.touch(key);
        }
    }
    // One that waited was made when it asked.
    if !model.again {
        for key in read.keys {
            let (now, consumer) = (model.now, read.group.expect("asked by parse").1);
            let of = model.group_mut(key, group);
            if !of.consumers.contains_key(consumer) {
                of.seen(consumer, now, false);
            }
        }
    }
    let mut budget = read.budget(model.resp3());
    let mut found = Vec::new();
    for (key, after) in read.keys.iter().zip(wanted) {
        if !budget.has_room() {
            break;
        }
        let bytes = budget.bytes;
        budget.begin(key);
        let entries = match after {
            Some(after) => model.history(key, &read, after, &mut budget),
            None => model.give(key, &read, &mut budget),
        };
        if entries.is_empty() && after.is_none() {
            budget.bytes = bytes;
            continue;
        }
        budget.end(entries.len());
        found.push((Value::bulk(key), Value::Array(entries)));
    }
    Ok(if found.is_empty() { Value::NullArray } else { Value::Streams(found) })
}

/// An entry with how long ago and how often it was delivered.
fn with_history(stream: &Stream, id: Id, idle: i64, count: u64) -> Value {
    match stream.entry(id) {
        Value::Array(parts) => Value::Array([parts, vec![Value::Int(idle), Value::Int(count as i64)]].concat()),
        other => other,
    }
}

/// One stream of a read with `>`, on its way.
struct Giving<'r> {
    read: &'r Read<'r>,
    group: &'r [u8],
    consumer: &'r [u8],
    now: u64,
    /// How many more entries may come.
    want: usize,
    entries: Vec<Value>,
}

impl Giving<'_> {
    fn full(&self, budget: &Budget) -> bool {
        self.want == 0 || !budget.has_room()
    }

    /// Gives an entry for the first time.
    fn give(&mut self, stream: &mut Stream, id: Id, budget: &mut Budget) {
        let value = match self.read.min_idle {
            Some(_) => with_history(stream, id, 0, 0),
            None => stream.entry(id),
        };
        budget.take(&value);
        self.entries.push(value);
        self.want -= 1;
        if self.read.no_ack {
            stream.groups.get_mut(self.group).expect("looked at before").held.remove(&id);
        } else {
            stream.deliver(self.group, id, self.consumer, self.now);
        }
    }

    /// What was passed over, delayed, and is due: the earliest due first. One whose key is busy waits behind it from now on.
    fn give_due(&mut self, stream: &mut Stream, budget: &mut Budget) {
        let mut due: Vec<(u64, Id)> = Vec::new();
        for (id, held) in &stream.groups[self.group].held {
            match held {
                Held::Until(time) if *time <= self.now => due.push((*time, *id)),
                _ => {}
            }
        }
        due.sort_unstable();
        let mut behind = Vec::new();
        for (_, id) in due {
            if self.full(budget) {
                break;
            }
            let group = &stream.groups[self.group];
            if stream.key_of(group, id).is_some_and(|key| stream.is_busy(group, &key)) {
                behind.push(id);
            } else {
                self.give(stream, id, budget);
            }
        }
        for id in behind {
            stream.groups.get_mut(self.group).expect("looked at before").held.insert(id, Held::Behind);
        }
    }

    /// What waited behind its key and does so no more, in stream order.
    fn give_ready(&mut self, stream: &mut Stream, budget: &mut Budget) {
        while !self.full(budget)
            && let Some(id) = stream.ready(&stream.groups[self.group])
        {
            self.give(stream, id, budget);
        }
    }

    /// What is new, in stream order; what may not be given yet is passed over.
    fn give_new(&mut self, stream: &mut Stream, budget: &mut Budget) {
        let from = stream.groups[self.group].position;
        let new: Vec<Id> = stream.entries.keys().copied().filter(|id| *id > from).collect();
        for id in new {
            if self.full(budget) {
                break;
            }
            let group = &stream.groups[self.group];
            let read = stream.read_after(group.position, group.read, id);
            let due = stream.entries[&id].due;
            let busy = stream.key_of(group, id).is_some_and(|key| stream.is_busy(group, &key));
            let deferred = |of: &Pending| matches!(of.holder, Holder::Deferred(_));
            if group.pel.get(&id).is_some_and(deferred) {
                // Out of reach, and pending: it is passed over.
                let group = stream.groups.get_mut(self.group).expect("looked at before");
                (group.position, group.read) = (id, read);
                continue;
            }
            let held = match due > self.now {
                _ if group.pel.contains_key(&id) => None,
                true => Some(Held::Until(due)),
                false => busy.then_some(Held::Behind),
            };
            match held {
                None => self.give(stream, id, budget),
                Some(held) => {
                    stream.groups.get_mut(self.group).expect("looked at before").held.insert(id, held);
                }
            }
            let group = stream.groups.get_mut(self.group).expect("looked at before");
            (group.position, group.read) = (id, read);
        }
    }
}

impl Model {
    /// A consumer's own pending entries after an ID.
    fn history(&mut self, key: &[u8], read: &Read<'_>, after: Id, budget: &mut Budget) -> Vec<Value> {
        let (now, (name, consumer)) = (self.now, read.group.expect("asked by parse"));
        let stream = self.stream_mut(key);
        let own = stream.groups[name].pel.iter().filter(|(id, of)| of.is_of(consumer) && **id > after);
        let own: Vec<(Id, u64)> = own.map(|(id, of)| (*id, of.count)).take(read.count).collect();
        let mut entries = Vec::new();
        let mut any = false;
        for (id, count) in own {
            if !budget.has_room() {
                break;
            }
            budget.take(&stream.entry(id));
            entries.push(stream.entry(id));
            if stream.entries.contains_key(&id) {
                stream.claim(name, id, consumer, now, once_more(count));
                any = true;
            }
        }
        self.group_mut(key, name).seen(consumer, now, false);
        if any {
            self.signal_event(key, Event::Pending);
            self.signal_event(key, Event::Room);
        }
        entries
    }

    /// What `>` gives, and with CLAIM takes over, from one stream.
    fn give(&mut self, key: &[u8], read: &Read<'_>, budget: &mut Budget) -> Vec<Value> {
        let (now, (group, consumer)) = (self.now, read.group.expect("asked by parse"));
        let want = read.count.min(budget.entries);
        let mut giving = Giving { read, group, consumer, now, want, entries: Vec::new() };
        if let Some(min_idle) = read.min_idle {
            // What is taken off the list alone may have made room for more.
            while self.claim(key, &mut giving, min_idle, budget) && giving.entries.is_empty() {}
        }
        let claimed = giving.entries.len();
        if !read.no_ack {
            let (in_group, in_consumer) = self.group_mut(key, group).room(consumer);
            giving.want = giving.want.min(in_group).min(in_consumer);
        }
        let stream = self.stream_mut(key);
        giving.give_due(stream, budget);
        giving.give_ready(stream, budget);
        let mut retired = stream.retire();
        // What is pending beyond the position changes hands when it is given: its holder may have room then.
        let position = stream.groups[group].position;
        let is_beyond = |last: Option<&Id>| last.is_some_and(|last| *last > position);
        let takes_away = giving.want > 0
            && is_beyond(stream.entries.keys().next_back())
            && is_beyond(stream.groups[group].pel.keys().next_back());
        giving.give_new(stream, budget);
        retired |= stream.retire();
        let entries = giving.entries;
        let given = entries.len() - claimed;
        // Seen when it asks and when it is served, not each time it is woken in vain.
        if !self.again || !entries.is_empty() {
            let active = claimed > 0 || (given > 0 && !read.no_ack);
            self.group_mut(key, group).seen(consumer, now, active);
        }
        if given > 0 && !read.no_ack {
            self.signal_event(key, Event::Pending);
        }
        if takes_away && !read.no_ack {
            self.signal_event(key, Event::Room);
        }
        if retired {
            self.touch(key);
        }
        entries
    }

    /// CLAIM: takes over what is idle enough, as far as there is room. Answers whether something was taken off the list
    /// that the stream has lost.
    fn claim(&mut self, key: &[u8], giving: &mut Giving<'_>, min_idle: u64, budget: &mut Budget) -> bool {
        let (name, now) = (giving.group, giving.now);
        let (in_group, in_consumer) = self.group_mut(key, name).room(giving.consumer);
        let (mut taken, mut others, mut released, mut lost) = (0, 0, 0, Vec::new());
        for id in self.group_mut(key, name).claimable(now, min_idle) {
            if others == in_consumer || giving.full(budget) {
                break;
            }
            let stream = self.stream_mut(key);
            let pending = stream.groups[name].pel[&id].clone();
            let nobody = pending.idle(now) < 0;
            if nobody && released == in_group {
                continue;
            }
            if !stream.entries.contains_key(&id) {
                lost.push(id);
                continue;
            }
            released += usize::from(nobody);
            taken += 1;
            // What the consumer has already takes no room.
            others += usize::from(!pending.is_of(giving.consumer));
            giving.want -= 1;
            let value = with_history(stream, id, pending.idle(now), pending.count);
            budget.take(&value);
            giving.entries.push(value);
            stream.claim(name, id, giving.consumer, now, once_more(pending.count));
        }
        if taken > 0 {
            self.signal_event(key, Event::Pending);
            self.signal_event(key, Event::Room);
        }
        let any_lost = !lost.is_empty();
        for id in lost {
            self.group_mut(key, name).pel.remove(&id);
        }
        if any_lost {
            self.freed(key, name);
        }
        any_lost
    }
}
