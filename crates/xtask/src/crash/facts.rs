//! What a server, or the model, tells of its keys, taken apart into single facts that can be compared one by one.
//!
//! Both are asked the same questions and their replies go through the same code. Things that two commands tell are two
//! facts, so that a reply that contradicts another is found whichever is wrong. Left out is what depends on when it is
//! asked, or is told to be inexact after a crash (times at which consumers were seen, the number of duplicates).

use std::collections::BTreeMap;

use super::id::{Id, Span};
use super::owner::Abilities;
use super::view::{field, id, int, items};
use crate::resp::{Nil, Value};

/// Something that is told of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// It must be this.
    Text(String),
    /// It must lie in this span.
    Moment(Span),
}

/// Facts by what they are about, such as `key group last-delivered-id`.
pub type Facts = BTreeMap<String, Fact>;

/// Carries out a command that only looks; answers the reply and when it was made.
pub type Ask<'a> = dyn FnMut(&[&str]) -> Result<(Value, Span), String> + 'a;

const STREAM_FIELDS: &[&str] =
    &["length", "last-generated-id", "max-deleted-entry-id", "entries-added", "recorded-first-entry-id"];
const MESSAGE_FIELDS: &[&str] = &["idmp-duration", "idmp-maxsize", "pids-tracked", "iids-tracked", "iids-added"];
const GROUP_FIELDS: &[&str] = &["last-delivered-id", "entries-read", "pel-count"];
const STATS_FIELDS: &[&str] = &[
    "pending",
    "in-flight",
    "lag",
    "released",
    "delayed",
    "held",
    "acked-total",
    "redelivered-total",
    "max-pending",
    "max-pending-per-consumer",
    "key-field",
];

/// Reads all facts of these keys; of those that do not exist there are none.
///
/// # Errors
/// When there is no answer, one of another shape than expected, or something is there twice.
pub fn read_facts(ask: &mut Ask<'_>, names: &[String], abilities: Abilities) -> Result<Facts, String> {
    let mut reader = Reader { ask, abilities, facts: Facts::new() };
    for name in names {
        let kind = reader.ask(&["TYPE", name])?.text();
        match kind.as_str() {
            "none" => continue,
            "string" => {
                let text = reader.ask(&["GET", name])?;
                reader.tell(format!("{name} text"), text.text())?;
            }
            "stream" => reader.stream(name)?,
            other => return Err(format!("{name} is of type {other}")),
        }
        reader.tell(name.clone(), kind)?;
        let (left, when) = (reader.ask)(&["PTTL", name])?;
        let left_ms = int(&left)?;
        if left_ms >= 0 {
            reader.put(format!("{name} deadline"), Fact::Moment(when.shifted(left_ms)))?;
        }
    }
    Ok(reader.facts)
}

struct Reader<'a, 'b> {
    ask: &'a mut Ask<'b>,
    abilities: Abilities,
    facts: Facts,
}

impl Reader<'_, '_> {
    fn ask(&mut self, words: &[&str]) -> Result<Value, String> {
        (self.ask)(words).map(|(value, _)| value)
    }

    fn put(&mut self, what: String, fact: Fact) -> Result<(), String> {
        match self.facts.insert(what.clone(), fact) {
            None => Ok(()),
            Some(_) => Err(format!("{what} is there twice")),
        }
    }

    fn tell(&mut self, what: String, text: String) -> Result<(), String> {
        self.put(what, Fact::Text(text))
    }

    fn tell_fields(&mut self, of: &str, value: &Value, names: &[&str]) -> Result<(), String> {
        for name in names {
            self.tell(format!("{of} {name}"), scalar(field(value, name)?))?;
        }
        Ok(())
    }

    fn stream(&mut self, key: &str) -> Result<(), String> {
        let entries = self.ask(&["XRANGE", key, "-", "+"])?;
        let mut before: Option<Id> = None;
        for entry in items(&entries)? {
            let [of, fields] = items(entry)? else { return Err(format!("{key}: the entry {}", entry.text())) };
            if before.replace(id(of)?) >= Some(id(of)?) {
                return Err(format!("{key}: {} is out of order", of.text()));
            }
            let fields: Vec<String> = items(fields)?.iter().map(Value::text).collect();
            self.tell(format!("{key} entry {}", of.text()), fields.join(" "))?;
        }
        let length = self.ask(&["XLEN", key])?;
        self.tell(format!("{key} XLEN"), scalar(&length))?;
        let full = self.ask(&["XINFO", "STREAM", key, "FULL", "COUNT", "0"])?;
        if *field(&full, "entries")? != entries {
            return Err(format!("{key}: XRANGE and XINFO FULL show different entries"));
        }
        self.tell_fields(key, &full, STREAM_FIELDS)?;
        if self.abilities.newer {
            self.tell_fields(key, &full, MESSAGE_FIELDS)?;
        }
        for group in items(field(&full, "groups")?)? {
            self.group(key, group)?;
        }
        for group in items(&self.ask(&["XINFO", "GROUPS", key])?)? {
            let of = format!("{key} {} XINFO GROUPS", field(group, "name")?.text());
            self.tell_fields(&of, group, &["consumers", "pending", "last-delivered-id", "entries-read"])?;
        }
        if self.abilities.ours { self.settings(key) } else { Ok(()) }
    }

    fn group(&mut self, key: &str, group: &Value) -> Result<(), String> {
        let name = field(group, "name")?.text();
        let of = format!("{key} {name}");
        self.tell(of.clone(), "group".to_owned())?;
        self.tell_fields(&of, group, GROUP_FIELDS)?;
        if self.abilities.newer {
            self.tell_fields(&of, group, &["nacked-count"])?;
        }
        for row in items(field(group, "pending")?)? {
            let [entry, owner, delivered, count] = items(row)? else { return Err(format!("{of}: {}", row.text())) };
            let what = format!("{of} pending {}", entry.text());
            self.put(format!("{what} delivered"), Fact::Moment(Span::exact(int(delivered)?)))?;
            self.tell(what, format!("{} {}", owner.text(), int(count)?))?;
        }
        for consumer in items(field(group, "consumers")?)? {
            let of = format!("{of} consumer {}", field(consumer, "name")?.text());
            self.tell_fields(&of, consumer, &["pel-count"])?;
            for row in items(field(consumer, "pending")?)? {
                let [entry, delivered, count] = items(row)? else { return Err(format!("{of}: {}", row.text())) };
                let what = format!("{of} pending {}", entry.text());
                self.put(format!("{what} delivered"), Fact::Moment(Span::exact(int(delivered)?)))?;
                self.tell(what, scalar(count))?;
            }
        }
        for row in items(&self.ask(&["XPENDING", key, &name, "-", "+", "10000000"])?)? {
            let [entry, owner, idle_ms, count] = items(row)? else { return Err(format!("{of}: {}", row.text())) };
            let who = if int(idle_ms)? < 0 { "nobody".to_owned() } else { owner.text() };
            self.tell(format!("{of} XPENDING {}", entry.text()), format!("{who} {}", int(count)?))?;
        }
        Ok(())
    }

    /// What only our own commands tell.
    fn settings(&mut self, key: &str) -> Result<(), String> {
        for pair in items(&self.ask(&["XCFGGET", key])?)?.chunks_exact(2) {
            self.tell(format!("{key} XCFGGET {}", pair[0].text()), scalar(&pair[1]))?;
        }
        let (groups, when) = (self.ask)(&["XINFO", "GROUPSTATS", key])?;
        for group in items(&groups)? {
            let of = format!("{key} {} GROUPSTATS", field(group, "name")?.text());
            self.tell_fields(&of, group, STATS_FIELDS)?;
            for (name, sign) in [("oldest-pending-ms", -1), ("next-release-ms", 1)] {
                let fact = match field(group, name)? {
                    Value::Nil(_) => Fact::Text("none".to_owned()),
                    ms => Fact::Moment(when.shifted(sign * int(ms)?)),
                };
                self.put(format!("{of} {name}"), fact)?;
            }
        }
        Ok(())
    }
}

fn scalar(value: &Value) -> String {
    if *value == Value::Nil(Nil::Bulk) { "none".to_owned() } else { value.text() }
}
