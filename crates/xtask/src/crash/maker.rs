//! Makes the commands of an owner: such as make sense after what the model holds, and now and then some that do not.
//!
//! Nothing made here may have an effect that depends on when it is carried out, but for the times that it leaves behind.

use impel_sim::model::stream::{Id, Stream};

use super::command::{Command, list};
use super::owner::Abilities;
use super::random::Random;
use super::view::now_ms;

/// The groups of a stream.
pub const GROUPS: &[&str] = &["g1", "g2"];
/// The consumers of a group.
pub const CONSUMERS: &[&str] = &["anna", "bert", "cleo", "dora"];
/// Beyond this many entries, or pending ones, the load makes room.
pub const PLENTY: usize = 150;
/// A min-idle-time that nothing reaches: more than any idle time the load gives.
pub const NEVER_IDLE_MS: &str = "1000000000000";

/// Makes one command for one stream.
pub struct Maker<'a> {
    /// Where chance comes from.
    pub random: &'a mut Random,
    /// What the server is able to do.
    pub abilities: Abilities,
    /// The stream's key.
    pub key: String,
    /// What the model holds under it.
    pub stream: Option<&'a Stream>,
    /// Nothing may be left to the server, as in a transaction.
    pub exact: bool,
}

impl Maker<'_> {
    /// Makes one.
    pub fn make(mut self) -> Command {
        let group = self.random.pick(GROUPS);
        let consumer = self.random.pick(CONSUMERS);
        let key = self.key.clone();
        let known = self.stream.and_then(|stream| stream.groups.get(group.as_bytes()));
        let pending = known.map_or(0, |known| known.pel.len());
        let entries = self.stream.map_or(0, |stream| stream.entries.len());
        if known.is_none() && self.random.chance(40) {
            return self.create_group(group);
        }
        if entries > PLENTY && self.random.chance(30) {
            return self.trim(list(&["XTRIM", &key]), list(&["MAXLEN", &(PLENTY / 2).to_string()]), &[]);
        }
        if pending > PLENTY && self.random.chance(30) {
            let ids = known.into_iter().flat_map(|known| known.pel.keys().copied().take(PLENTY / 2)).collect();
            return with_ids(list(&["XACK", &key, group]), ids);
        }
        if self.abilities.newer && self.random.chance(35) {
            return self.newer(group, consumer);
        }
        if !self.abilities.strict && known.is_some_and(|known| !known.consumers.contains_key(consumer.as_bytes())) {
            // A command that makes a consumer and delivers nothing would be lost: first one that says so.
            return Command::new(list(&["XGROUP", "CREATECONSUMER", &key, group, consumer]));
        }
        match self.random.below(1000) {
            0..240 => self.add(),
            240..260 => {
                let limit = if self.random.chance(50) {
                    list(&["MAXLEN", &self.random.below(PLENTY as u64).to_string()])
                } else {
                    list(&["MINID", &self.some_id().text()])
                };
                self.trim(list(&["XTRIM", &key]), limit, &[])
            }
            260..300 => with_ids(list(&["XDEL", &key]), self.some_ids()),
            300..330 if self.abilities.references => {
                let (references, ids) = (self.references(), self.unique_ids());
                // Redis tells its log nothing of references dropped where no entry is deleted.
                let there = |id: &Id| self.stream.is_some_and(|stream| stream.entries.contains_key(id));
                if !self.abilities.strict && !ids.iter().any(there) {
                    return with_ids(list(&["XDEL", &key]), ids);
                }
                counted_ids([list(&["XDELEX", &key]), references].concat(), &ids)
            }
            330..370 if self.abilities.references => {
                let (references, ids) = (self.references(), self.unique_ids());
                counted_ids([list(&["XACKDEL", &key, group]), references].concat(), &ids)
            }
            370..560 => {
                let count = self.random.between(1, 8).to_string();
                let mut words = list(&["XREADGROUP", "GROUP", group, consumer, "COUNT", &count]);
                words.extend(self.random.chance(12).then(|| "NOACK".to_owned()));
                words.extend(list(&["STREAMS", &key, ">"]));
                Command::new(words)
            }
            560..640 if self.abilities.strict => {
                let after = if self.random.chance(60) { Id::MIN } else { self.some_id() };
                let (count, after) = (self.random.between(1, 6).to_string(), after.text());
                Command::new(list(&["XREADGROUP", "GROUP", group, consumer, "COUNT", &count, "STREAMS", &key, &after]))
            }
            640..760 => with_ids(list(&["XACK", &key, group]), self.some_ids()),
            760..840 => self.claim(group, consumer),
            840..890 => {
                let start = if self.random.chance(50) { Id::MIN } else { self.some_id() };
                // So many that the call sees all: where one stopped that saw nothing is not kept by everything.
                let count = self.random.between(1, 6) + pending as u64 / 10;
                let (start, count, least) = (start.text(), count.to_string(), self.least_idle());
                let mut words = list(&["XAUTOCLAIM", &key, group, consumer, least, &start, "COUNT", &count]);
                words.extend(self.random.chance(30).then(|| "JUSTID".to_owned()));
                Command::new(words)
            }
            890..915 => {
                let words = list(&["XGROUP", "SETID", &key, group, &self.position(20)]);
                Command::new([words, self.entries_read()].concat())
            }
            915..940 => Command::new(list(&["XGROUP", "CREATECONSUMER", &key, group, consumer])),
            940..960 => Command::new(list(&["XGROUP", "DELCONSUMER", &key, group, consumer])),
            960..970 => Command::new(list(&["XGROUP", "DESTROY", &key, group])),
            970..985 => self.set_id(),
            _ => self.add(),
        }
    }

    fn create_group(&mut self, group: &str) -> Command {
        let position = self.position(40);
        let words = list(&["XGROUP", "CREATE", &self.key, group, &position, "MKSTREAM"]);
        let settings = if self.abilities.ours && self.random.chance(40) { self.group_settings() } else { Vec::new() };
        Command::new([words, self.entries_read(), settings].concat())
    }

    fn set_id(&mut self) -> Command {
        let (Id(ms, seq), added) = self.stream.map_or((Id::MIN, 0), |stream| (stream.last, stream.added));
        let last = Id(ms + self.random.below(3), seq + self.random.below(3));
        let mut words = list(&["XSETID", &self.key, &last.text()]);
        if self.random.chance(50) {
            words.extend(list(&["ENTRIESADDED", &(added + self.random.below(5) as i64).to_string()]));
        }
        if self.random.chance(30) {
            words.extend(list(&["MAXDELETEDID", &self.some_id().text()]));
        }
        Command::new(words)
    }

    fn claim(&mut self, group: &str, consumer: &str) -> Command {
        let least = self.least_idle();
        let mut words = list(&["XCLAIM", &self.key, group, consumer, least]);
        words.extend(self.some_ids().iter().map(|id| id.text()));
        match self.random.below(10) {
            0 | 1 => words.extend(list(&["IDLE", &self.random.below(1_000_000).to_string()])),
            2 => {
                let time_ms = now_ms() - 1000 - self.random.below(1_000_000) as i64;
                words.extend(list(&["TIME", &time_ms.to_string()]));
            }
            _ => {}
        }
        if self.random.chance(20) {
            words.extend(list(&["RETRYCOUNT", &self.random.below(20).to_string()]));
        }
        words.extend(self.random.chance(25).then(|| "FORCE".to_owned()));
        words.extend(self.random.chance(30).then(|| "JUSTID".to_owned()));
        if self.random.chance(8) {
            words.extend(list(&["LASTID", &self.some_id().text()]));
        }
        Command::new(words)
    }

    /// XADD with an explicit id.
    pub fn add(&mut self) -> Command {
        let trim = if self.random.chance(25) { self.trim_of_add() } else { Vec::new() };
        self.add_with(trim)
    }

    /// XADD with these options.
    pub fn add_with(&mut self, options: Vec<String>) -> Command {
        let id = self.next_id();
        let words = [list(&["XADD", &self.key]), options, vec![id.text()], self.fields(id)];
        Command::new(words.concat())
    }

    /// Behind the stream's last; now and then one that is refused.
    pub fn next_id(&mut self) -> Id {
        let Id(ms, seq) = self.stream.map_or(Id::MIN, |stream| stream.last);
        match self.random.below(20) {
            0 => Id(ms, seq),
            1..8 => Id(ms.max(1), seq + 1),
            _ => Id(ms + self.random.between(1, 5), self.random.below(3)),
        }
    }

    /// Fields of an entry.
    pub fn fields(&mut self, id: Id) -> Vec<String> {
        let mut fields = list(&["f", &id.text()]);
        if self.abilities.ours && self.random.chance(40) {
            fields.extend(list(&["k", self.random.pick(&["red", "green", "blue"])]));
        }
        for _ in 0..self.random.below(3) {
            fields.push(format!("field{}", self.random.below(5)));
            fields.push("v".repeat(self.random.below(40) as usize));
        }
        fields
    }

    fn trim_of_add(&mut self) -> Vec<String> {
        let low = if self.random.chance(5) { 0 } else { 20 };
        let limit = list(&["MAXLEN", &self.random.between(low, PLENTY as u64).to_string()]);
        [self.trim_references(), limit].concat()
    }

    fn trim(&mut self, before: Vec<String>, limit: Vec<String>, after: &[String]) -> Command {
        Command::new([before, limit, self.trim_references(), after.to_vec()].concat())
    }

    /// Keeping is the default, and not known to every server.
    fn references(&mut self) -> Vec<String> {
        match self.random.below(4) {
            0 if self.abilities.references => list(&["DELREF"]),
            1 if self.abilities.references && self.abilities.strict => list(&["ACKED"]),
            _ => Vec::new(),
        }
    }

    fn trim_references(&mut self) -> Vec<String> {
        let references = self.references();
        // Redis passes over the references of entries that are deleted already.
        let lost = self.stream.is_some_and(|stream| {
            let mut pending = stream.groups.values().flat_map(|group| group.pel.keys());
            pending.any(|id| !stream.entries.contains_key(id))
        });
        if lost && !self.abilities.strict { Vec::new() } else { references }
    }

    fn entries_read(&mut self) -> Vec<String> {
        // A count too high grows beyond entries-added, and what Redis replays is capped.
        if !(self.random.chance(40) && self.abilities.strict) {
            return Vec::new();
        }
        let added = self.stream.map_or(0, |stream| stream.added) as u64;
        list(&["ENTRIESREAD", &self.random.below(added + 3).to_string()])
    }

    /// An id of the stream, of a pending list, or near them.
    pub fn some_id(&mut self) -> Id {
        let last = self.stream.map_or(Id::MIN, |stream| stream.last);
        let known: Vec<Id> = self.stream.map_or_else(Vec::new, |stream| {
            let pending = stream.groups.values().flat_map(|group| group.pel.keys());
            stream.entries.keys().chain(pending).copied().collect()
        });
        match self.random.below(12) {
            0 => Id(last.0 + self.random.below(2), last.1),
            1 => Id(self.random.below(last.0 + 1), 0),
            _ if known.is_empty() => Id(1, 0),
            _ => self.random.pick(&known),
        }
    }

    /// Some of them.
    pub fn some_ids(&mut self) -> Vec<Id> {
        (0..self.random.between(1, 5)).map(|_| self.some_id()).collect()
    }

    fn unique_ids(&mut self) -> Vec<Id> {
        let mut ids = self.some_ids();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn position(&mut self, last_percent: u64) -> String {
        if self.random.chance(last_percent) {
            return "$".to_owned();
        }
        if self.random.chance(30) { Id::MIN.text() } else { self.some_id().text() }
    }

    fn least_idle(&mut self) -> &'static str {
        if self.random.chance(80) { "0" } else { NEVER_IDLE_MS }
    }
}

/// These words and ids.
pub fn with_ids(mut words: Vec<String>, ids: Vec<Id>) -> Command {
    words.extend(ids.iter().map(|id| id.text()));
    Command::new(words)
}

/// These words, and ids with their number before them.
pub fn counted_ids(words: Vec<String>, ids: &[Id]) -> Command {
    with_ids([words, list(&["IDS", &ids.len().to_string()])].concat(), ids.to_vec())
}
