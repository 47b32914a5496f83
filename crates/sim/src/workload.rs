//! Random sequences of commands that reach interesting states: few keys, groups, consumers and IDs, so that they collide
//! all the time; every option; and now and then words that make no sense.
//!
//! The generator carries a model along to choose IDs that mean something. What it gives out is plain words, which play
//! the same without it; the same seed gives the same words.

use crate::model::stream::Id;
use crate::model::{Lag, Model};
use crate::random::Random;

mod commands;
mod extended;

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A client sends a command.
    Command {
        /// Number of the client.
        client: usize,
        /// The words.
        words: Vec<Vec<u8>>,
    },
    /// Time passes.
    Pass {
        /// Milliseconds.
        ms: u64,
        /// Does the server notice by itself, or only when the next command comes?
        tick: bool,
    },
    /// A snapshot begins that takes a key with each of the steps that follow, and is checked at its end.
    SlowSnapshot,
    /// The server is replaced by one that was made from a snapshot. All connections are new.
    Restart,
    /// All records since the start make the same state again.
    Replay,
}

impl Step {
    /// The words of a command.
    pub fn words_mut(&mut self) -> Option<&mut Vec<Vec<u8>>> {
        match self {
            Step::Command { words, .. } => Some(words),
            _ => None,
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Command { client, words } => {
                write!(f, "c{client}>")?;
                for word in words {
                    let plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"');
                    let text = word.escape_ascii();
                    if plain { write!(f, " {text}")? } else { write!(f, " \"{text}\"")? }
                }
                Ok(())
            }
            Step::Pass { ms, tick: true } => write!(f, "~ {ms} ms pass"),
            Step::Pass { ms, tick: false } => write!(f, "~ {ms} ms pass unnoticed"),
            Step::SlowSnapshot => f.write_str("~ a slow snapshot begins"),
            Step::Restart => f.write_str("~ restart from a snapshot"),
            Step::Replay => f.write_str("~ replay of all records"),
        }
    }
}

/// What kind of sequence.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// How many clients.
    pub clients: usize,
    /// Time is what the steps say; else it goes on by itself, and idle times are either next to nothing or long.
    pub virtual_time: bool,
    /// Clients may wait.
    pub blocking: bool,
    /// Snapshots, restarts, replays.
    pub restarts: bool,
    /// What Redis 8.2 does not have.
    pub extended: bool,
}

impl Profile {
    /// For the engine beside the model.
    pub const SIMULATED: Profile =
        Profile { clients: 3, virtual_time: true, blocking: true, restarts: true, extended: true };
    /// For real servers: one client, no waiting.
    pub const REAL: Profile =
        Profile { clients: 1, virtual_time: false, blocking: false, restarts: false, extended: false };
}

/// Unix ms at which virtual time begins: a little beyond 2^40 (in 2004), below which there are no delays, and which idle
/// times that are made up reach back over.
pub const START_MS: u64 = (1 << 40) + 50;

/// `stream-node-max-entries` that all sequences assume: small, so that `~` has nodes to drop. The
/// engine joins sparse neighbours up to half of a node, which with three is never: how many nodes there are is known.
pub const NODE_MAX: usize = 3;

/// Sequences of a seed.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    profile: Profile,
    model: Model,
    in_multi: Vec<bool>,
    /// How often each command comes: where all of them come all the time, little builds up.
    weights: Vec<u64>,
    /// Nearly everything happens at one key.
    one_key: bool,
    /// Groups order by a field as a rule, and entries have it.
    ordered: bool,
}

impl Generator {
    /// A generator.
    pub fn new(seed: u64, profile: Profile) -> Self {
        let model = Model::new(START_MS, NODE_MAX, Lag::Compat);
        let mut random = Random::new(seed);
        let mut weights: Vec<u64> = commands::ROWS.iter().map(|row| row.0).collect();
        let (mut one_key, mut ordered) = (false, false);
        if profile.extended {
            weights.extend(extended::ROWS.iter().map(|row| row.0));
            // Entries and reads come always, and often; of the rest some are left out, and some come more often.
            weights[..commands::ALWAYS].iter_mut().for_each(|weight| *weight *= 2);
            for weight in &mut weights[commands::ALWAYS..] {
                *weight *= *random.pick(&[0, 1, 1, 3]);
            }
            (one_key, ordered) = (random.chance(50), random.chance(40));
        }
        let in_multi = vec![false; profile.clients];
        Generator { random, profile, model, in_multi, weights, one_key, ordered }
    }

    /// The next `n` steps.
    pub fn steps(&mut self, n: usize) -> Vec<Step> {
        (0..n).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        if self.profile.virtual_time && self.random.chance(12) {
            let ms = if self.random.chance(1) { 1500 } else { *self.random.pick(&[1, 1, 2, 3, 5, 10, 20, 60]) };
            let tick = self.random.chance(80);
            self.model.pass(ms, tick);
            return Step::Pass { ms, tick };
        }
        if self.profile.restarts && self.random.chance(2) {
            return match self.random.below(4) {
                0 => Step::SlowSnapshot,
                1 => Step::Replay,
                _ => {
                    self.model.disconnect_all();
                    self.in_multi.fill(false);
                    Step::Restart
                }
            };
        }
        let first = if self.random.chance(60) { 0 } else { self.random.below(self.profile.clients as u64) as usize };
        let free = (first..self.profile.clients).chain(0..first).find(|client| !self.model.waits(*client));
        let Some(client) = free else {
            let ms = 30;
            self.model.pass(ms, true);
            return Step::Pass { ms, tick: true };
        };
        let words = self.command(client);
        self.model.command(client, &words);
        Step::Command { client, words }
    }

    /// A command of a client, as good for what `model` knows as the generator's own are for what it knows itself. Time and
    /// answers are the caller's.
    pub fn words_for(&mut self, client: usize, model: &mut Model) -> Vec<Vec<u8>> {
        std::mem::swap(&mut self.model, model);
        let words = self.command(client);
        std::mem::swap(&mut self.model, model);
        words
    }

    /// The next command of a client, whose replies nobody compares: answers what it is, and takes it as carried out at
    /// `now_ms`.
    pub fn next_words(&mut self, client: usize, now_ms: u64) -> Vec<Vec<u8>> {
        let passed_ms = now_ms.saturating_sub(self.model.now);
        self.model.pass(passed_ms, true);
        let words = self.command(client);
        if !self.model.waits(client) {
            self.model.command(client, &words);
        }
        if self.model.waits(client) {
            // Whether it waits is for the server to say.
            self.model.disconnect(client);
            self.in_multi[client] = false;
        }
        words
    }

    /// A connection is new: nothing is queued.
    pub fn reconnected(&mut self, client: usize) {
        self.in_multi[client] = false;
        self.model.disconnect(client);
    }

    fn command(&mut self, client: usize) -> Vec<Vec<u8>> {
        let end = self.in_multi[client] && self.random.chance(20);
        let mut text = if end {
            let word = if self.random.chance(90) { "EXEC" } else { "DISCARD" };
            vec![word.to_owned()]
        } else {
            let place = self.random.weighted(self.weights.iter().copied());
            let row = commands::ROWS.iter().chain(extended::ROWS).nth(place);
            (row.expect("each weight is that of a row").1)(self)
        };
        match text[0].as_str() {
            "MULTI" => self.in_multi[client] = true,
            "EXEC" | "DISCARD" => self.in_multi[client] = false,
            _ => {}
        }
        if text[0].starts_with('X') && self.random.chance(7) {
            self.spoil(&mut text);
        }
        if self.random.chance(3) {
            text[0].make_ascii_lowercase();
        }
        text.into_iter().map(String::into_bytes).collect()
    }

    /// Makes a command worse.
    fn spoil(&mut self, words: &mut Vec<String>) {
        const JUNK: &[&str] = &[
            "",
            "-1",
            "-2",
            "x",
            "~",
            "=",
            "*",
            ">",
            "$",
            "+",
            "-",
            "(",
            "(5",
            "1-2-3",
            "1-",
            "-1-1",
            "5-*",
            "0",
            "01",
            "1",
            "3",
            "1.5",
            "99999999999999999999",
            "9223372036854775807",
            "9223372036854775808",
            "MAXLEN",
            "MINID",
            "LIMIT",
            "STREAMS",
            "COUNT",
            "JUSTID",
            "FORCE",
            "IDS",
            "GROUP",
            "NOACK",
            "KEEPREF",
            "DELREF",
            "ACKED",
            "IDLE",
            "NOMKSTREAM",
            "MKSTREAM",
            "ENTRIESREAD",
            "RETRYCOUNT",
            "LASTID",
            "FULL",
            "TIME",
            "0-0",
            "a",
            "g1",
        ];
        let junk = if self.profile.extended && self.random.chance(40) { extended::JUNK } else { JUNK };
        let at = 1 + self.random.below(words.len() as u64) as usize;
        let inside = at < words.len();
        match self.random.below(5) {
            0 if inside => {
                words.remove(at);
            }
            1 if inside => words.insert(at, words[at].clone()),
            2 if inside => {
                let other = 1 + self.random.below(words.len() as u64 - 1) as usize;
                words.swap(at, other);
            }
            3 if inside => words[at] = (*self.random.pick(junk)).to_owned(),
            _ => words.insert(at, (*self.random.pick(junk)).to_owned()),
        }
    }

    // -------------------------------------------------------------------------------------------- pieces of commands

    fn pick(&mut self, from: &[&str]) -> String {
        (*self.random.pick(from)).to_owned()
    }

    fn key(&mut self) -> String {
        if self.one_key && self.random.chance(85) {
            return "a".to_owned();
        }
        self.pick(&["a", "a", "a", "a", "a", "b", "b", "b", "c", "t"])
    }

    /// A key with groups, where there is one, as a rule.
    fn key_with_groups(&mut self) -> String {
        let key = self.key();
        let has = |model: &Model, key: &str| matches!(model.stream(key.as_bytes()), Ok(Some(stream)) if !stream.groups.is_empty());
        if has(&self.model, &key) || self.random.chance(6) {
            return key;
        }
        ["a", "b", "c"].into_iter().find(|key| has(&self.model, key)).map_or(key, str::to_owned)
    }

    /// A group of that key, as a rule.
    fn group(&mut self, key: &str) -> String {
        if let Ok(Some(stream)) = self.model.stream(key.as_bytes())
            && !stream.groups.is_empty()
            && self.random.chance(94)
        {
            let names: Vec<Vec<u8>> = stream.groups.keys().cloned().collect();
            return String::from_utf8_lossy(self.random.pick::<Vec<u8>>(&names)).into_owned();
        }
        self.new_group()
    }

    fn new_group(&mut self) -> String {
        if self.random.chance(3) { self.pick(&["g3", ""]) } else { self.pick(&["g1", "g1", "g2"]) }
    }

    fn consumer(&mut self) -> String {
        if self.random.chance(2) { self.pick(&["c4", ""]) } else { self.pick(&["c1", "c1", "c2", "c3"]) }
    }

    /// An ID that means something to the stream, as a rule.
    fn id(&mut self, key: &str) -> String {
        let mut known: Vec<Id> = Vec::new();
        let kind = self.random.below(100);
        if let Ok(Some(stream)) = self.model.stream(key.as_bytes()) {
            match kind {
                0..45 => known.extend(stream.entries.keys()),
                45..70 => known.extend(stream.groups.values().flat_map(|group| group.pel.keys())),
                70..80 => {
                    known.extend([stream.last, stream.max_deleted, stream.first(), stream.last.next()]);
                    known.extend(stream.groups.values().map(|group| group.position));
                }
                _ => {}
            }
        }
        if !known.is_empty() {
            let Id(ms, seq) = *self.random.pick(&known);
            return if seq == 0 && self.random.chance(20) { ms.to_string() } else { format!("{ms}-{seq}") };
        }
        match kind {
            98 => self.pick(&["0-0", "18446744073709551615-18446744073709551615", "0", "00007-01"]),
            99 if self.random.chance(30) => self.pick(&["1-", "x", "", "$", "5-x"]),
            _ if self.profile.virtual_time && self.random.chance(50) => {
                format!("{}-{}", self.model.now - 10 + self.random.below(20), self.random.below(3))
            }
            _ => format!("{}-{}", self.random.below(12), self.random.below(3)),
        }
    }

    /// IDs that are pending in the group, as a rule.
    fn pending_ids(&mut self, key: &str, group: &str, most: u64) -> Vec<String> {
        let mut ids = self.ids(key, most);
        if let Ok(Some(stream)) = self.model.stream(key.as_bytes())
            && let Some(group) = stream.groups.get(group.as_bytes()).filter(|group| !group.pel.is_empty())
            && self.profile.extended
        {
            let pending: Vec<Id> = group.pel.keys().copied().collect();
            for id in &mut ids {
                if self.random.chance(60) {
                    *id = self.random.pick(&pending).text();
                }
            }
        }
        ids
    }

    fn ids(&mut self, key: &str, most: u64) -> Vec<String> {
        (0..1 + self.random.below(most)).map(|_| self.id(key)).collect()
    }

    /// An end of a range.
    fn bound(&mut self, key: &str, usual: &str) -> String {
        match self.random.below(10) {
            0..5 => usual.to_owned(),
            5 => format!("({}", self.id(key)),
            6 => self.pick(&["-", "+", "0", "5"]),
            _ => self.id(key),
        }
    }

    fn count(&mut self) -> String {
        self.pick(&["1", "1", "2", "2", "3", "5", "10", "100", "0", "-1"])
    }

    /// A time to compare idle times with, in ms.
    fn min_idle(&mut self) -> String {
        if self.profile.virtual_time {
            self.pick(&["0", "0", "0", "1", "2", "5", "20", "-5", "1000000"])
        } else {
            self.pick(&["0", "0", "0", "100000", "-5", "1000000000"])
        }
    }

    fn idle(&mut self) -> String {
        if self.profile.virtual_time {
            self.pick(&["0", "1", "5", "30", "60", "-3", "100000"])
        } else {
            self.pick(&["0", "200000", "200000", "-3"])
        }
    }

    fn unix_ms(&mut self) -> String {
        if self.profile.virtual_time {
            let back = *self.random.pick(&[10, 100, self.model.now]);
            (self.model.now - back + self.random.below(back + 20)).to_string()
        } else {
            self.pick(&["0", "1", "1000000", "9000000000000", "-1"])
        }
    }
}
