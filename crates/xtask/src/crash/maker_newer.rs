//! Makes the commands that came after Redis 8.2, and ours.
//!
//! Delays end long after the run, or before they began.

use impel_sim::model::stream::{Id, Stream};
use impel_sim::model::value::Value;

use super::command::{Command, list};
use super::maker::{Maker, NEVER_IDLE_MS, PLENTY, counted_ids};

/// A Unix time in ms that no run sees.
const FAR_MS: &str = "9000000000000";
/// How long messages are remembered: longer than any run.
const LONG_SECONDS: &str = "86400";

impl Maker<'_> {
    /// Makes one.
    pub fn newer(&mut self, group: &str, consumer: &str) -> Command {
        let key = self.key.clone();
        match self.random.below(100) {
            0..22 => self.give_back(group),
            22..38 => self.read_with_claim(group, consumer),
            38..48 => self.add_message(),
            48..52 => self.record_message(),
            _ if !self.abilities.ours => self.give_back(group),
            52..62 => {
                let delay = self.delay();
                self.add_with(delay)
            }
            62..72 => self.add_many(),
            72..77 => {
                let (one, other) = (self.some_id(), self.some_id());
                let (first, last) = (one.min(other).text(), one.max(other).text());
                let first = if self.random.chance(20) { format!("({first}") } else { first };
                Command::new(list(&["XACK", &key, group, "RANGE", &first, &last]))
            }
            77..83 => {
                let how = if self.random.chance(40) { "IFEMPTY" } else { "RELEASE" };
                Command::new(list(&["XGROUP", "DELCONSUMER", &key, group, consumer, how]))
            }
            83..89 => {
                let words = list(&["XGROUP", "CFGSET", &key, group]);
                Command::new([words, self.group_settings()].concat())
            }
            89..93 => {
                let mut words = list(&["XREADGROUP", "GROUP", group, consumer, "COUNT", "3", "MKGROUP"]);
                words.extend(list(self.random.pick(&[&[] as &[&str], &["0"], &["$"]])));
                words.extend(list(&["STREAMS", &key, ">"]));
                Command::new(words)
            }
            _ => self.retention(),
        }
    }

    /// XNACK.
    fn give_back(&mut self, group: &str) -> Command {
        let mode = self.random.pick(&["SILENT", "FAIL", "FATAL"]);
        let ids = self.some_ids();
        let mut command = counted_ids(list(&["XNACK", &self.key, group, mode]), &ids);
        let words = &mut command.parts[0];
        if self.random.chance(20) {
            words.extend(list(&["RETRYCOUNT", &self.random.below(20).to_string()]));
        }
        words.extend(self.random.chance(25).then(|| "FORCE".to_owned()));
        if self.abilities.ours && self.random.chance(20) {
            words.extend(list(&["DELAY", self.random.pick(&["0", NEVER_IDLE_MS])]));
        }
        command
    }

    /// XREADGROUP CLAIM: of what nobody has, in the order in which it was given back; or of everything, whose order only the
    /// server knows. The latter only where no bound chooses among it.
    fn read_with_claim(&mut self, group: &str, consumer: &str) -> Command {
        let known = self.stream.and_then(|stream| stream.groups.get(group.as_bytes()));
        let bounded = known.is_some_and(|known| known.max_pending + known.max_pending_consumer > 0);
        let everything = !bounded && !self.exact && self.random.chance(30);
        let (count, least) = if everything { (100_000, "0") } else { (self.random.between(1, 8), NEVER_IDLE_MS) };
        let count = count.to_string();
        let mut words = list(&["XREADGROUP", "GROUP", group, consumer, "COUNT", &count, "CLAIM", least]);
        words.extend(self.random.chance(12).then(|| "NOACK".to_owned()));
        words.extend(list(&["STREAMS", &self.key, ">"]));
        Command { any_order: everything, ..Command::new(words) }
    }

    /// XADD IDMP or IDMPAUTO; before it, if need be, the setting that makes a message outlive the run.
    fn add_message(&mut self) -> Command {
        let Some(stream) = self.stream.filter(|_| !self.exact) else { return self.add() };
        // A changed bound forgets all messages.
        if !remembers(stream) || self.random.chance(4) {
            let most = self.random.pick(&["5", "100"]);
            return Command::new(list(&["XCFGSET", &self.key, "IDMP-DURATION", LONG_SECONDS, "IDMP-MAXSIZE", most]));
        }
        let producer = self.random.pick(&["p1", "p2"]);
        let number = self.random.below(30).to_string();
        let words = if self.random.chance(75) {
            list(&["XADD", &self.key, "IDMP", producer, &number, "*", "f", &number])
        } else {
            list(&["XADD", &self.key, "IDMPAUTO", producer, "*", "f", &number, "k", "red"])
        };
        Command { server_id: Some(self.key.clone()), ..Command::new(words) }
    }

    fn record_message(&mut self) -> Command {
        if !self.stream.is_some_and(remembers) {
            return self.add();
        }
        let (producer, number) = (self.random.pick(&["p1", "p2"]), self.random.below(30).to_string());
        let id = self.some_id().text();
        Command::new(list(&["XIDMPRECORD", &self.key, producer, &number, &id]))
    }

    fn delay(&mut self) -> Vec<String> {
        list(match self.random.below(10) {
            0..5 => &["NOTBEFORE", FAR_MS],
            5..7 => &["NOTBEFORE", "1"],
            7..9 => &["DELAY", NEVER_IDLE_MS],
            _ => &["DELAY", "0"],
        })
    }

    /// XADDM
    fn add_many(&mut self) -> Command {
        let count = self.random.between(1, 4);
        let mut words = list(&["XADDM", &self.key]);
        if self.random.chance(15) {
            words.extend(self.delay());
        }
        if self.random.chance(15) {
            words.extend(list(&["MAXLEN", &self.random.between(20, PLENTY as u64).to_string()]));
        }
        words.extend(list(&["COUNT", &count.to_string()]));
        let mut id = self.next_id();
        for _ in 0..count {
            let fields = self.fields(id);
            words.extend(list(&[&id.text(), &(fields.len() / 2).to_string()]));
            words.extend(fields);
            id = Id(id.0 + self.random.below(2), id.1 + 1);
        }
        Command::new(words)
    }

    /// What is set for a group.
    pub fn group_settings(&mut self) -> Vec<String> {
        match self.random.below(4) {
            0 => list(&["MAXPENDING", self.random.pick(&["0", "0", "20", "60"])]),
            1 => list(&["MAXPENDING-CONSUMER", self.random.pick(&["0", "0", "5", "30"])]),
            2 => list(&["KEYFIELD", self.random.pick(&["", "k", "k", "f"])]),
            _ => list(&["MAXPENDING", "50", "MAXPENDING-CONSUMER", "20", "KEYFIELD", "k"]),
        }
    }

    /// XCFGSET about how long entries are kept.
    fn retention(&mut self) -> Command {
        let mut words = list(&["XCFGSET", &self.key]);
        words.extend(match self.random.below(8) {
            0 => list(&["MAXLEN", "0"]),
            1 => list(&["MAXLEN", self.random.pick(&["30", "100"])]),
            2 => list(&["MAXBYTES", self.random.pick(&["0", "3000"])]),
            3 => list(&["RETAIN", "all"]),
            4 => list(&["RETAIN", "acked"]),
            5 => list(&["DISCARD", "new"]),
            6 => list(&["DISCARD", "old"]),
            _ => list(&["RETAIN", "acked", "MAXLEN", "60", "FORCE"]),
        });
        Command::new(words)
    }
}

/// Whether messages of the stream outlive the run.
fn remembers(stream: &Stream) -> bool {
    let seconds = Value::Int(LONG_SECONDS.parse().expect("a number"));
    stream.messages.info().into_iter().any(|(name, value)| name == Value::bulk("idmp-duration") && value == seconds)
}
