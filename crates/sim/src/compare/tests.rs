//! Many seeds, and the proof that a fault would be found.
//!
//! `IMPEL_SIM_SEEDS=N` plays N seeds instead of the fixed few, `IMPEL_SIM_FIRST=S` from seed S on.

use super::*;
use crate::model::Content;
use crate::model::value::Value;

const SEEDS: u64 = 200;
const STEPS: usize = 400;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn the_engine_says_what_the_model_says() {
    let first = from_environment("IMPEL_SIM_FIRST", 1);
    let (seeds, mut commands) = (from_environment("IMPEL_SIM_SEEDS", SEEDS), 0);
    for seed in first..first + seeds {
        match play_seed(seed, STEPS, &Setup::of(seed)) {
            Ok(compared) => commands += compared,
            Err(story) => panic!("{story}"),
        }
    }
    println!("{seeds} sequences, {commands} commands");
}

#[test]
fn a_lost_acknowledgement_is_found_and_told_shortly() {
    fn lose(words: &[Vec<u8>]) -> bool {
        words[0] == b"XACK"
    }
    let setup = Setup { lose, ..Setup::of(1) };
    let stories: Vec<String> = (1..5).filter_map(|seed| play_seed(seed, STEPS, &setup).err()).collect();
    assert!(stories.len() >= 3, "only {} of 4 seeds found it", stories.len());
    for story in stories {
        assert!(story.contains("XACK") && story.lines().count() < 15, "{story}");
    }
}

/// The sequences are worth something: every command meets what it works on.
#[test]
fn every_command_gets_somewhere() {
    use std::collections::BTreeMap;
    let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut states = [0; 4];
    for seed in 0..20 {
        let mut model = Model::new(START_MS, NODE_MAX, Lag::Compat);
        for step in Generator::new(seed, Profile::SIMULATED).steps(STEPS) {
            match step {
                Step::Command { client, words } => {
                    let mut name = String::from_utf8_lossy(&words[0]).to_ascii_uppercase();
                    if let ("XGROUP" | "XINFO", Some(word)) = (name.as_str(), words.get(1)) {
                        name = format!("{name} {}", String::from_utf8_lossy(word).to_ascii_uppercase());
                    }
                    let replies = model.command(client, &words);
                    let Some((_, value)) = replies.iter().find(|(whose, _)| *whose == client) else { continue };
                    let class = match value {
                        Value::Status("QUEUED") => continue,
                        Value::Error(_) => 0,
                        Value::Int(..=0) | Value::Null | Value::NullArray => 1,
                        Value::Array(items) if items.iter().all(|item| matches!(item, Value::Int(-1))) => 1,
                        _ => 2,
                    };
                    counts.entry(name).or_default()[class] += 1;
                }
                Step::Pass { ms, tick } => drop(model.pass(ms, tick)),
                Step::Restart => model.disconnect_all(),
                Step::SlowSnapshot | Step::Replay => {}
            }
            let groups = model.keys.values().filter_map(|key| match &key.content {
                Content::Stream(stream) => Some(stream.groups.values()),
                Content::Text(_) => None,
            });
            for group in groups.flatten() {
                let delayed = group.next_held().is_some();
                let all =
                    [delayed, group.held.len() > usize::from(delayed), group.released() > 0, group.deferred() > 0];
                states.iter_mut().zip(all).for_each(|(count, is)| *count += usize::from(is));
            }
        }
    }
    let table: Vec<String> = counts
        .iter()
        .map(|(name, [errors, nothing, something])| {
            format!("{name:<24} {errors:>5} errors {nothing:>5} nothing {something:>5} something")
        })
        .collect();
    println!("{}", table.join("\n"));
    println!("groups with delayed, waiting, released, deferred entries: {states:?}");
    assert!(states.iter().all(|count| *count > 300), "{states:?}");
    for name in [
        "XADD",
        "XREADGROUP",
        "XACK",
        "XDEL",
        "XDELEX",
        "XACKDEL",
        "XTRIM",
        "XCLAIM",
        "XAUTOCLAIM",
        "XPENDING",
        "XREAD",
        "XINFO GROUPS",
        "XINFO GROUPSTATS",
        "XNACK",
        "XADDM",
        "XCFGSET",
        "XGROUP CFGSET",
    ] {
        assert!(counts[name][2] > 30 && counts[name][0] > 0, "{name}: {:?}", counts[name]);
    }
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    let steps = |seed| Generator::new(seed, Profile::SIMULATED).steps(300);
    assert_eq!(steps(3), steps(3));
    assert_ne!(steps(3), steps(4));
}

/// Who hears of what, where lives have told engine and model apart.
#[test]
fn readers_that_wait_hear_of_the_same_in_both() {
    let made = "0 XADD s 1-0 f v, 0 XGROUP CREATE s g $ MAXPENDING-CONSUMER 1, ";
    let waits = "1 XREADGROUP GROUP g c CLAIM 60 BLOCK 0 STREAMS s >, ";
    let room = ", 0 XGROUP CFGSET s g MAXPENDING-CONSUMER 2";
    for (story, serves) in [
        // Room from before the position was set back is no news to those who had not lacked it, room from then on is.
        (format!("{made}{waits}0 MULTI, 0 XGROUP CFGSET s g MAXPENDING 5, 0 XGROUP SETID s g 0, 0 EXEC"), false),
        (format!("{made}{waits}0 MULTI, 0 XGROUP SETID s g 0, 0 XGROUP CFGSET s g MAXPENDING 5, 0 EXEC"), true),
        // Neither what is pending in another group nor time that passes takes that away from them.
        (
            format!(
                "{made}0 XGROUP CREATE s h 0, {waits}0 XGROUP SETID s g 0, 0 XREADGROUP GROUP h d STREAMS s >{room}"
            ),
            true,
        ),
        (
            format!(
                "{made}0 XGROUP SETID s g 0, 0 XREADGROUP GROUP g d STREAMS s >, {waits}0 XACK s g 1-0, 0 XGROUP SETID s g 0, \
                 PASS 100{room}"
            ),
            true,
        ),
        // A reader of several streams looks when anything happens at one of them; the same one twice is not several.
        (
            "0 XADD s 1-0 f v, 0 XGROUP CREATE s g $, 0 XGROUP CREATE t g $ MKSTREAM, 1 XREADGROUP GROUP g c BLOCK 0 STREAMS \
             s t > >, 0 XGROUP SETID s g 0, 0 XGROUP CREATECONSUMER t g d, 0 XGROUP DELCONSUMER t g d"
                .to_owned(),
            true,
        ),
        (
            "0 XADD s 1-0 f v, 0 XGROUP CREATE s g $, 1 XREADGROUP GROUP g c BLOCK 0 STREAMS s s > >, \
             0 XGROUP SETID s g 0, 0 XGROUP CREATECONSUMER s g d, 0 XGROUP DELCONSUMER s g d"
                .to_owned(),
            false,
        ),
        // What is added and gone at once has a reader look at its other keys.
        ("1 XREAD BLOCK 0 STREAMS s t $ $, 0 SET t v, 0 XADD s MAXLEN 0 1-0 f v".to_owned(), true),
        ("1 XREAD BLOCK 0 STREAMS s $, 0 XADD s MAXLEN 0 1-0 f v".to_owned(), false),
    ] {
        let step = |line: &str| {
            let (first, rest) = line.split_once(' ').unwrap();
            match first.parse() {
                Ok(client) => {
                    Step::Command { client, words: rest.split(' ').map(|word| word.as_bytes().to_vec()).collect() }
                }
                Err(_) => Step::Pass { ms: rest.parse().unwrap(), tick: true },
            }
        };
        let steps: Vec<Step> = story.split(", ").map(step).collect();
        play(&steps, &Setup::of(1)).unwrap_or_else(|failure| panic!("{story}: {failure:?}"));
        let mut model = Model::new(START_MS, NODE_MAX, Lag::Exact);
        for step in &steps {
            match step {
                Step::Command { client, words } => drop(model.command(*client, words)),
                Step::Pass { ms, tick } => drop(model.pass(*ms, *tick)),
                _ => {}
            }
        }
        assert_eq!(!model.waits(1), serves, "{story}");
    }
}

/// Room that a claim makes goes to the first in line, not to whoever stands behind the one that claims.
#[test]
fn room_that_a_reader_makes_for_others_goes_to_the_first_of_them() {
    let mut model = Model::new(START_MS, NODE_MAX, Lag::Exact);
    let mut say = |client, line: &str| {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        model.command(client, &words).into_iter().map(|(client, _)| client).collect::<Vec<_>>()
    };
    for (client, line) in [
        (0, "XADD s 1-0 f v"),
        (0, "XADD s 2-0 f v"),
        (0, "XADD s 3-0 f v"),
        (0, "XGROUP CREATE s g 0 MAXPENDING-CONSUMER 1"),
        (0, "XREADGROUP GROUP g full STREAMS s >"),
        (0, "XREADGROUP GROUP g claims STREAMS s >"),
        (0, "XCLAIM s g full 0 1-0 IDLE 100"),
        (1, "XREADGROUP GROUP g full BLOCK 0 STREAMS s >"),
        (2, "XREADGROUP GROUP g claims CLAIM 50 BLOCK 0 STREAMS s >"),
        (3, "XREADGROUP GROUP g full BLOCK 0 STREAMS s >"),
    ] {
        assert_eq!(say(client, line), if client == 0 { vec![0] } else { vec![] }, "{line}");
    }
    assert_eq!(say(0, "XACK s g 2-0"), [0, 2, 1]);
}
