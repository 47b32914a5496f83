//! What operations cost over a backlog of a million pending entries, and how long others wait while it is taken apart.

use std::thread;
use std::time::{Duration, Instant};

use super::super::Figure;
use super::super::crowd::{beside, median, write_command};
use super::super::load::{send_many, value};
use super::{Numbers, PLAIN, Run, Shape, all};
use crate::resp::{Client, Value};

/// Entries of the backlog, unless told otherwise.
pub const ENTRIES: usize = 1_000_000;
/// Entries that a consumer is handed at a time.
const HANDED: usize = 100;

const ANSWER: f64 = 100.0;
const TURN: f64 = 1000.0;

/// The family.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "claims-1m",
        about: "over 1 M pending, less round trips; to find 100 a caller asks twice from 0-0, then goes by the cursor",
        figures: &[
            Figure::less("us, a call of XAUTOCLAIM, none idle").value(ANSWER, None),
            Figure::less("us, until XAUTOCLAIM has given 100 of the 1 % that is idle at the far end")
                .value(ANSWER, None),
            Figure::less("us, scanning all by the cursor of XAUTOCLAIM, none idle"),
            Figure::less("us, XREADGROUP CLAIM, none idle").value(ANSWER, None),
            Figure::less("us, XPENDING IDLE, no match").value(ANSWER, None),
        ],
        operations: ENTRIES,
        rounds_max: 3,
        measure: claims,
        ..PLAIN
    },
    Shape {
        name: "destroy-1m",
        about: "the longest PING of another connection while a backlog of 1 M pending is taken apart",
        figures: &[
            Figure::less("us, XGROUP DELCONSUMER with 200 k").value(TURN, None),
            Figure::less("us, XGROUP DESTROY with 1 M").value(TURN, None),
            Figure::less("us, XTRIM 1 M to 1,000 exact").value(TURN, None),
            Figure::less("us, DEL of the stream with 1 M").value(TURN, None),
            Figure::less("us, nothing at all"),
        ],
        operations: ENTRIES,
        rounds_max: 3,
        measure: destroy,
        ..PLAIN
    },
];

/// The id of an entry; numbers begin with 1.
pub fn id(number: usize) -> String {
    format!("{number}-1")
}

/// Fills stream `s` with so many entries, all handed out by group `g` to these consumers in turn.
pub fn fill(run: &Run<'_>, entries: usize, consumers: &[&str]) -> Result<(), String> {
    let value = value();
    let mut client = run.client()?;
    send_many(&mut client, entries, |n, out| write_command(&["XADD", "s", &id(n + 1), "f", &value], out))?;
    hand_out(&mut client, "g", entries, consumers)
}

fn hand_out(client: &mut Client, group: &str, entries: usize, consumers: &[&str]) -> Result<(), String> {
    send_many(client, 1, |_, out| write_command(&["XGROUP", "CREATE", "s", group, "0"], out))?;
    let handed = HANDED.to_string();
    send_many(client, entries.div_ceil(HANDED), |n, out| {
        let consumer = consumers[n % consumers.len()];
        write_command(&["XREADGROUP", "GROUP", group, consumer, "COUNT", &handed, "STREAMS", "s", ">"], out);
    })
}

/// More than any entry is idle here, in ms, but for those that are told to be [`LONG_IDLE_MS`] idle.
const IDLE_MS: &str = "1800000";
const LONG_IDLE_MS: &str = "3600000";
/// Calls of which the median counts.
const CALLS: usize = 15;
const ROUND_TRIPS: usize = 200;

fn claims(run: &mut Run<'_>) -> Result<Numbers, String> {
    let entries = run.operations;
    fill(run, entries, &["a", "b"])?;
    let mut client = run.client()?;
    let round_trip = repeated(ROUND_TRIPS, || timed(&mut client, &["PING"]))?;
    let none_idle = repeated(CALLS, || timed(&mut client, &autoclaim("0-0")))?;
    let scan = repeated(CALLS, || found(&mut client, (0, 0), round_trip))?;
    let pending = repeated(CALLS, || timed(&mut client, &["XPENDING", "s", "g", "IDLE", IDLE_MS, "-", "+", "10"]))?;
    let read = ["XREADGROUP", "GROUP", "g", "c", "COUNT", "100", "CLAIM", IDLE_MS, "STREAMS", "s", ">"];
    let claim = match client.call(&read).map_err(|e| e.to_string())? {
        reply if reply.is_error() => None,
        _ => Some(repeated(CALLS, || timed(&mut client, &read))?),
    };
    let (last, few) = (entries, entries / 100);
    send_many(&mut client, few, |n, out| {
        write_command(&["XCLAIM", "s", "g", "a", "0", &id(last - n), "IDLE", LONG_IDLE_MS, "JUSTID"], out);
    })?;
    // What a call is given is not idle for the next.
    let at_the_end = repeated(CALLS.min(few.div_ceil(100)), || found(&mut client, (few.min(100), 1), round_trip))?;
    let net = |took: f64| Some((took - round_trip).max(0.0));
    Ok(vec![net(none_idle), Some(at_the_end), Some(scan), claim.and_then(net), net(pending)])
}

fn repeated(calls: usize, mut call: impl FnMut() -> Result<f64, String>) -> Result<f64, String> {
    let started = Instant::now();
    let mut took = Vec::new();
    // A peer that takes seconds for one need not be asked as often.
    while took.len() < calls && (took.is_empty() || started.elapsed() < Duration::from_secs(3)) {
        took.push(call()?);
    }
    Ok(median(&took))
}

fn timed(client: &mut Client, words: &[&str]) -> Result<f64, String> {
    let started = Instant::now();
    let reply = client.call(words).map_err(|e| e.to_string())?;
    let took = started.elapsed().as_secs_f64() * 1e6;
    if reply.is_error() { Err(format!("{}: {}", words.join(" "), reply.text())) } else { Ok(took) }
}

fn autoclaim(cursor: &str) -> [&str; 8] {
    ["XAUTOCLAIM", "s", "g", "c", IDLE_MS, cursor, "COUNT", "100"]
}

/// Claims with XAUTOCLAIM until 100 entries were given or the cursor has come round, in microseconds less round trips. So
/// many calls are followed by another from the beginning, as of a worker that keeps no cursor.
fn found(client: &mut Client, (wanted, again): (usize, usize), round_trip: f64) -> Result<f64, String> {
    let (started, mut cursor, mut got, mut calls) = (Instant::now(), "0-0".to_owned(), 0, 0);
    loop {
        let reply = client.call(&autoclaim(&cursor)).map_err(|e| e.to_string())?;
        let Value::Array(parts) = &reply else { return Err(format!("XAUTOCLAIM: {}", reply.text())) };
        let [Value::Bulk(next), Value::Array(entries), ..] = &parts[..] else {
            return Err(format!("XAUTOCLAIM: {}", reply.text()));
        };
        got += entries.len();
        calls += 1;
        cursor = String::from_utf8_lossy(next).into_owned();
        if got >= 100 || (cursor == "0-0" && calls > again) {
            break;
        }
        if calls <= again {
            cursor = "0-0".to_owned();
        }
    }
    if got < wanted {
        return Err(format!("XAUTOCLAIM gave {got} entries where {wanted} are idle"));
    }
    Ok((started.elapsed().as_secs_f64() * 1e6 - round_trip * calls as f64).max(0.0))
}

fn destroy(run: &mut Run<'_>) -> Result<Numbers, String> {
    let entries = run.operations;
    fill(run, entries, &["a", "a", "a", "a", "b"])?;
    hand_out(&mut run.client()?, "h", entries, &["a"])?;
    let nothing = longest_ping(run, &["PING"])?;
    let consumer = longest_ping(run, &["XGROUP", "DELCONSUMER", "s", "g", "b"])?;
    let group = longest_ping(run, &["XGROUP", "DESTROY", "s", "h"])?;
    let trim = longest_ping(run, &["XTRIM", "s", "MAXLEN", "=", "1000"])?;
    run.ask(&["FLUSHALL"])?;
    fill(run, entries, &["a"])?;
    let stream = longest_ping(run, &["DEL", "s"])?;
    Ok(all([consumer, group, trim, stream, nothing]))
}

/// Destroying may go on behind the reply.
const AFTERWARDS: Duration = Duration::from_millis(500);

fn longest_ping(run: &Run<'_>, words: &[&str]) -> Result<f64, String> {
    let ((), took) = beside(&run.address, Duration::from_micros(20), || {
        run.ask(words)?;
        thread::sleep(AFTERWARDS);
        Ok(())
    })?;
    Ok(took.into_iter().fold(0.0, f64::max))
}
