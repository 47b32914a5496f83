//! Random sequences of commands played to two servers, reply by reply.
//!
//! What cannot be equal is made comparable (times, generated IDs, opaque fields) in `normal`; what is meant to differ
//! stands in `known` with its reason. Everything else that differs is a finding, told with a short script.

pub mod known;
mod normal;

use std::io::Write;
use std::time::{Duration, Instant};

use impel_sim::shrink::shrink;
use impel_sim::workload::{Generator, NODE_MAX, Profile, Step};

use crate::resp::{Client, ClientError, Value};
use crate::server::Server;

/// Commands of a sequence.
const STEPS: usize = 250;

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Sequences in which every reply was the same.
    pub equal: usize,
    /// Sequences that met a difference from the table, by its place there.
    pub known: Vec<usize>,
    /// Sequences with a difference that nobody meant.
    pub different: usize,
    /// Commands played.
    pub commands: usize,
}

/// Ends after so many findings: there is enough to do.
const FINDINGS_MAX: usize = 10;

/// A difference.
struct Difference {
    step: usize,
    ours: Value,
    theirs: Value,
}

/// Plays sequences from `seed` on for so long. Differences are told in `out`.
///
/// # Errors
/// When a server is gone.
pub fn play(ours: &Server, theirs: &Server, seed: u64, time: Duration, out: &mut dyn Write) -> Result<Outcome, String> {
    let connect = |server: &Server| server.client().map_err(|e| server.complaint(&e.to_string()));
    let (mut our_client, mut their_client) = (connect(ours)?, connect(theirs)?);
    let mut outcome = Outcome { known: vec![0; known::KNOWN.len()], ..Outcome::default() };
    let deadline = Instant::now() + time;
    for seed in seed.. {
        if Instant::now() > deadline || outcome.different == FINDINGS_MAX {
            break;
        }
        let resp3 = seed % 2 == 1;
        let steps = Generator::new(seed, Profile::REAL).steps(STEPS);
        let mut compare = |steps: &[Step]| -> Result<Option<Difference>, String> {
            let our_replies =
                replies(&mut our_client, steps, resp3).map_err(|e| ours.complaint(&format!("seed {seed}: {e}")))?;
            let their_replies =
                replies(&mut their_client, steps, resp3).map_err(|e| theirs.complaint(&e.to_string()))?;
            let pairs = our_replies.into_iter().zip(their_replies).enumerate();
            Ok(pairs.map(|(step, (ours, theirs))| Difference { step, ours, theirs }).find(|d| d.ours != d.theirs))
        };
        outcome.commands += steps.len();
        let Some(first) = compare(&steps)? else {
            outcome.equal += 1;
            continue;
        };
        let mut gone = None;
        let short = shrink(&steps[..=first.step], Step::words_mut, |steps| match compare(steps) {
            Ok(difference) => difference.is_some(),
            Err(error) => {
                gone = Some(error);
                false
            }
        });
        if let Some(error) = gone {
            return Err(error);
        }
        if let Some(place) = known::find(&short) {
            outcome.known[place] += 1;
            continue;
        }
        outcome.different += 1;
        let script: Vec<String> = short.iter().map(Step::to_string).collect();
        let last = compare(&short)?.unwrap_or(first);
        let told = writeln!(
            out,
            "seed {seed}, RESP{}:\n  {}\n  ours:   {}\n  theirs: {}\n",
            if resp3 { 3 } else { 2 },
            script.join("\n  "),
            last.ours.text(),
            last.theirs.text()
        );
        told.map_err(|e| format!("cannot write: {e}"))?;
    }
    Ok(outcome)
}

/// Spoiled words can make a read that waits, perhaps for ever.
fn may_wait(words: &[Vec<u8>]) -> bool {
    words.windows(2).any(|pair| {
        let ms = std::str::from_utf8(&pair[1]).ok().and_then(|text| text.parse::<i64>().ok());
        pair[0].eq_ignore_ascii_case(b"BLOCK") && ms.is_some_and(|ms| (0..i64::MAX / 2).contains(&ms))
    })
}

/// Plays steps to an emptied server in one go; the replies in comparable form.
fn replies(client: &mut Client, steps: &[Step], resp3: bool) -> Result<Vec<Value>, ClientError> {
    let node_max = NODE_MAX.to_string();
    let protocol = if resp3 { "3" } else { "2" };
    let before: [&[&str]; 4] =
        [&["RESET"], &["HELLO", protocol], &["FLUSHALL"], &["CONFIG", "SET", "stream-node-max-entries", &node_max]];
    let commands: Vec<&Vec<Vec<u8>>> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Command { words, .. } => Some(words),
            _ => None,
        })
        .filter(|words| !may_wait(words))
        .collect();
    let mut bytes = Vec::new();
    before.iter().for_each(|words| bytes.extend(crate::resp::encode_command(words)));
    commands.iter().for_each(|words| bytes.extend(crate::resp::encode_command(words)));
    client.send_raw(&bytes)?;
    for _ in before {
        client.receive()?;
    }
    let mut normal = normal::Normal::default();
    commands.into_iter().map(|words| Ok(normal.reply(words, client.receive()?))).collect()
}
