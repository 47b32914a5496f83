//! How fast a life goes: storms in which everything happens within seconds, and lives with seconds, minutes or hours between
//! two steps, in which what time alone brings about (retention, leases, delays, idle times, the age of a ledger, rules of
//! snapshots) comes between commands as it does in practice.
//!
//! The words of commands name short spans of time. In a slow life most of them are stretched, so that spans and pauses are of
//! one size and meet in every order. A brisk life is what it would be without any of this.

use std::fmt;

use crate::model::words::is;
use crate::random::Random;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tempo {
    /// Milliseconds between two steps.
    Brisk,
    /// Seconds.
    Calm,
    /// Minutes.
    Slow,
    /// Hours, now and then days.
    Still,
}

/// Every one.
pub const TEMPOS: [Tempo; 4] = [Tempo::Brisk, Tempo::Calm, Tempo::Slow, Tempo::Still];

/// A long time even in a still life (ms): after it ledgers have grown old, and whatever was put off is due.
const AGES_MS: u64 = 9 * 24 * 3_600_000;

/// Greater spans are not meant as spans.
const SPAN_MAX: u64 = 1_000_000;

/// Options that a span of ms follows.
const OPTIONS: &[&str] =
    &["BLOCK", "CLAIM", "IDLE", "DELAY", "MAXAGE", "PX", "PAUSE", "LEASE", "RETRYIN", "CONSUMERTTL", "LEDGERAGE"];

impl Tempo {
    /// That of a seed: half of all lives are brisk.
    pub fn of(seed: u64) -> Tempo {
        match Random::new(seed ^ 0x7e3_9050).below(8) {
            0..4 => Tempo::Brisk,
            4..6 => Tempo::Calm,
            6 => Tempo::Slow,
            _ => Tempo::Still,
        }
    }

    /// The tempo of that name.
    pub fn named(name: &str) -> Option<Tempo> {
        TEMPOS.into_iter().find(|tempo| tempo.to_string().split(' ').next() == Some(name))
    }

    /// So many times longer than in a brisk life spans are.
    pub fn stretch(self) -> u64 {
        match self {
            Tempo::Brisk => 1,
            Tempo::Calm => 100,
            Tempo::Slow => 6000,
            Tempo::Still => 300_000,
        }
    }

    /// How long nothing is sent between two steps, in µs; `None`: as in a brisk life. Storms come in every life.
    pub fn pause_us(self, random: &mut Random) -> Option<u64> {
        if self == Tempo::Brisk || random.chance(50) {
            return None;
        }
        // Around 30 ms stretched, as the spans of commands are.
        let usual_ms = 60 * self.stretch();
        let ms = if random.chance(1) {
            AGES_MS.min(100 * usual_ms)
        } else {
            // A whole span now and then, so that what is due comes in the same ms.
            let spans = [1, 2, 5, 10, 20, 60].map(|span| span * self.stretch());
            if random.chance(20) { *random.pick(&spans) } else { 1 + random.below(usual_ms) }
        };
        Some(ms * 1000 - random.below(2))
    }

    /// How far the wall clock is set, in ms, where a brisk life sets it by `ms`.
    pub fn clock_ms(self, ms: i64, random: &mut Random) -> i64 {
        if self == Tempo::Brisk || random.chance(50) { ms } else { ms * self.stretch() as i64 / 20 }
    }

    /// Stretches the spans of time that a command names.
    pub fn apply(self, words: &mut [Vec<u8>], random: &mut Random) {
        // Not always; but a policy is looked after for as long as the group lives, whatever happens meanwhile.
        let is_policy = words.get(1).is_some_and(|word| is(word, "POLICY"));
        if self == Tempo::Brisk || words.is_empty() || (random.chance(25) && !is_policy) {
            return;
        }
        let stretch = self.stretch();
        let behind = if is(&words[0], "XCLAIM") || is(&words[0], "XAUTOCLAIM") {
            Some(4)
        } else if is(&words[0], "PEXPIRE") || is(&words[0], "PSETEX") {
            Some(2)
        } else {
            None
        };
        for at in 1..words.len() {
            let follows = OPTIONS.iter().any(|option| is(&words[at - 1], option));
            let base = at >= 2 && is(&words[at - 2], "BACKOFF") || is(&words[at - 1], "BACKOFF");
            if follows || base || behind == Some(at) {
                scale(&mut words[at], stretch);
            } else if is(&words[at - 1], "IDMP-DURATION") {
                scale(&mut words[at], (stretch / 1000).max(1));
            }
        }
    }
}

/// Makes a number greater, if it is one and small.
fn scale(word: &mut Vec<u8>, by: u64) {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(number) = number.filter(|number| *number <= SPAN_MAX) {
        *word = (number * by).to_string().into_bytes();
    }
}

impl fmt::Display for Tempo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tempo::Brisk => "brisk (ms)",
            Tempo::Calm => "calm (seconds)",
            Tempo::Slow => "slow (minutes)",
            Tempo::Still => "still (hours)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretched(tempo: Tempo, line: &str) -> String {
        let mut words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        // The first seed that lets it happen.
        let mut random = (0..).map(Random::new).find(|random| !random.clone().chance(25)).expect("there is one");
        tempo.apply(&mut words, &mut random);
        String::from_utf8(words.join(&b' ')).expect("text")
    }

    #[test]
    fn spans_are_stretched_and_nothing_else() {
        for (line, wanted) in [
            ("XADD a DELAY 5 5-1 f 5", "XADD a DELAY 500 5-1 f 5"),
            ("XCLAIM a g c 20 5-1 IDLE 7", "XCLAIM a g c 2000 5-1 IDLE 700"),
            ("XCFGSET a MAXAGE 3 MAXLEN 3", "XCFGSET a MAXAGE 300 MAXLEN 3"),
            ("XWORK POLICY a g BACKOFF 5 60 LEASE 10", "XWORK POLICY a g BACKOFF 500 6000 LEASE 1000"),
            ("XREADGROUP GROUP g c CLAIM -5 BLOCK x", "XREADGROUP GROUP g c CLAIM -5 BLOCK x"),
        ] {
            assert_eq!(stretched(Tempo::Calm, line), wanted);
            assert_eq!(stretched(Tempo::Brisk, line), line);
        }
    }

    #[test]
    fn half_of_all_lives_are_brisk() {
        let count = |tempo| (0..1000).filter(|seed| Tempo::of(*seed) == tempo).count();
        assert!((400..600).contains(&count(Tempo::Brisk)));
        assert!(TEMPOS.iter().all(|tempo| count(*tempo) > 80));
    }
}
