//! What an operation costs when the backlog grows: each operation of the cost rules is carried out at several sizes, and
//! of each is told how long a call takes and how long a second connection had to wait meanwhile.
//!
//! The backlog of size N: stream `s` of N entries, all handed out by group `g` to the consumers `a` and `b` in turn, ten at
//! a time, but for the last ten, which `rare` has. The operations run in the order of [`OPERATIONS`] on one server: those
//! at the end take the backlog apart. An operation that a server does not know has no figure there.

use std::thread;
use std::time::{Duration, Instant};

use super::crowd::{beside, write_command};
use super::load::send_many;
use super::numbers::Spread;
use crate::resp::{Address, Client, Value};
use crate::server::Server;

/// How long a reply may take: peers need seconds for what they do not bound.
const PATIENCE: Duration = Duration::from_secs(120);
/// Entries that a consumer is handed at a time.
const HANDED: u64 = 10;
/// How long the second connection goes on after a call that leaves work behind.
const AFTERWARDS: Duration = Duration::from_millis(300);
/// Between two PINGs of the second connection.
const PAUSE: Duration = Duration::from_micros(20);
/// PINGs from which the price of a round trip is taken.
const BASELINE: usize = 200;
/// A call that takes less is as good as free: differences below are noise.
const FLOOR_US: f64 = 25.0;

/// One operation.
pub struct Operation {
    /// As the table names it.
    pub name: &'static str,
    /// The command of a round, for a backlog of that size.
    command: fn(u64, u64) -> String,
    /// How often it is called; the median counts. 1 = it takes something apart.
    rounds: u64,
}

const fn often(name: &'static str, command: fn(u64, u64) -> String) -> Operation {
    Operation { name, command, rounds: 15 }
}

const fn once(name: &'static str, command: fn(u64, u64) -> String) -> Operation {
    Operation { name, command, rounds: 1 }
}

/// An hour: nothing here is idle for so long.
const NEVER_IDLE: &str = "3600000";

/// Every operation, in the order in which they run.
pub const OPERATIONS: &[Operation] = &[
    often("XREADGROUP CLAIM, none idle", |_, _| {
        format!("XREADGROUP GROUP g c COUNT 10 CLAIM {NEVER_IDLE} STREAMS s >")
    }),
    often("XREADGROUP CLAIM, 10 idle", |_, _| "XREADGROUP GROUP g c COUNT 10 CLAIM 1 STREAMS s >".into()),
    often("XAUTOCLAIM, none idle", |_, _| format!("XAUTOCLAIM s g c {NEVER_IDLE} 0-0 COUNT 10")),
    often("XAUTOCLAIM, 10 idle", |_, _| "XAUTOCLAIM s g c 1 0-0 COUNT 10".into()),
    often("XCLAIM, one", |n, _| format!("XCLAIM s g c 0 {}-1", n / 2)),
    often("XPENDING", |_, _| "XPENDING s g".into()),
    often("XPENDING IDLE, none", |_, _| format!("XPENDING s g IDLE {NEVER_IDLE} - + 10")),
    often("XPENDING of a consumer", |_, _| "XPENDING s g - + 10 rare".into()),
    often("XREADGROUP, own pending", |_, _| "XREADGROUP GROUP g rare STREAMS s 0".into()),
    often("XINFO GROUPS", |_, _| "XINFO GROUPS s".into()),
    often("XINFO CONSUMERS", |_, _| "XINFO CONSUMERS s g".into()),
    often("XACK, one", |n, round| format!("XACK s g {}-1", n / 2 + round)),
    often("XDEL, one", |n, round| format!("XDEL s {}-1", n / 3 + round)),
    often("XADD MAXLEN ~ ACKED", |n, _| format!("XADD s MAXLEN ~ {} ACKED * f v", n / 2)),
    often("XTRIM MAXLEN = ACKED", |n, _| format!("XTRIM s MAXLEN = {} ACKED", n / 2)),
    often("XTRIM MAXLEN =, one", |n, round| format!("XTRIM s MAXLEN = {}", n - 100 - round)),
    once("XGROUP DELCONSUMER", |_, _| "XGROUP DELCONSUMER s g b".into()),
    once("XGROUP DELCONSUMER RELEASE", |_, _| "XGROUP DELCONSUMER s g a RELEASE".into()),
    once("XTRIM MAXLEN = DELREF, a third", |n, _| format!("XTRIM s MAXLEN = {} DELREF", n * 2 / 3)),
    once("XTRIM MAXLEN =, a third", |n, _| format!("XTRIM s MAXLEN = {}", n / 3)),
    once("XGROUP DESTROY", |_, _| "XGROUP DESTROY s g".into()),
    once("DEL, the stream", |_, _| "DEL s".into()),
    once("FLUSHALL, as many keys", |_, _| "FLUSHALL".into()),
];

/// What an operation took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// A call, less a round trip, in microseconds.
    pub call_us: f64,
    /// The longest that another connection waited for the answer to PING meanwhile, in microseconds.
    pub stall_us: f64,
}

/// Runs every operation at one size on a fresh server; `None` where the server knows no such operation.
///
/// # Errors
/// When the server goes away, or refuses what makes the backlog.
pub fn measure(server: &Server, size: u64) -> Result<Vec<Option<Figure>>, String> {
    let mut client = Client::connect(&server.address(), PATIENCE).map_err(|e| e.to_string())?;
    make_backlog(&mut client, size)?;
    let baseline_us = baseline(&mut client)?;
    let mut figures = Vec::new();
    for operation in OPERATIONS {
        if operation.name.starts_with("FLUSHALL") {
            batches(&mut client, size, |n| format!("SET key:{n} value"))?;
        }
        let figure = run(&mut client, &server.address(), operation, size)?;
        figures.push(figure.map(|figure| Figure { call_us: (figure.call_us - baseline_us).max(0.0), ..figure }));
    }
    Ok(figures)
}

/// Sends so many commands, many at once.
fn batches(client: &mut Client, count: u64, command: impl Fn(u64) -> String) -> Result<(), String> {
    send_many(client, count as usize, |number, out| write_command(&words(&command(number as u64)), out))
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

fn make_backlog(client: &mut Client, size: u64) -> Result<(), String> {
    batches(client, size, |n| format!("XADD s {}-1 field a-value-of-twenty-bytes", n + 1))?;
    let made = client.call(&["XGROUP", "CREATE", "s", "g", "0"]).map_err(|e| e.to_string())?;
    if made.is_error() {
        return Err(format!("XGROUP CREATE: {}", made.text()));
    }
    let reads = size / HANDED;
    batches(client, reads, |n| {
        let name = if n + 1 == reads { "rare" } else { ["a", "b"][(n % 2) as usize] };
        format!("XREADGROUP GROUP g {name} COUNT {HANDED} STREAMS s >")
    })
}

fn timed(client: &mut Client, words: &[&str]) -> Result<(f64, Value), String> {
    let started = Instant::now();
    let reply = client.call(words).map_err(|e| e.to_string())?;
    Ok((started.elapsed().as_secs_f64() * 1e6, reply))
}

fn baseline(client: &mut Client) -> Result<f64, String> {
    let mut took = Vec::new();
    for _ in 0..BASELINE {
        took.push(timed(client, &["PING"])?.0);
    }
    Ok(Spread::of(took).map_or(0.0, |spread| spread.median))
}

fn run(client: &mut Client, address: &Address, operation: &Operation, size: u64) -> Result<Option<Figure>, String> {
    let (call_us, took) = beside(address, PAUSE, || {
        let call_us = calls(client, operation, size);
        if operation.rounds == 1 {
            thread::sleep(AFTERWARDS);
        }
        call_us
    })?;
    let stall_us = took.into_iter().fold(0.0, f64::max);
    Ok(call_us.map(|call_us| Figure { call_us, stall_us }))
}

/// The median of the calls; `None` if the server knows no such thing.
fn calls(client: &mut Client, operation: &Operation, size: u64) -> Result<Option<f64>, String> {
    let mut took = Vec::new();
    for round in 0..operation.rounds {
        let (call_us, reply) = timed(client, &words(&(operation.command)(size, round)))?;
        if reply.is_error() {
            return Ok(None);
        }
        took.push(call_us);
    }
    Ok(Spread::of(took).map(|spread| spread.median))
}

/// How a cost grows from the first size to the last, in one word.
pub fn growth(sizes: &[u64], costs_us: &[f64]) -> &'static str {
    let (Some((&low, &high)), Some((&first, &last))) = (ends(sizes), ends(costs_us)) else { return "?" };
    if low == high {
        return "?";
    }
    let exponent = (last.max(FLOOR_US) / first.max(FLOOR_US)).ln() / (high as f64 / low as f64).ln();
    match exponent {
        e if e < 0.12 => "flat",
        e if e < 0.4 => "logarithmic",
        _ => "linear",
    }
}

fn ends<T>(all: &[T]) -> Option<(&T, &T)> {
    Some((all.first()?, all.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_has_a_name() {
        let sizes = [10_000, 100_000, 1_000_000];
        assert_eq!(growth(&sizes, &[1.0, 5.0, 20.0]), "flat", "all below what can be told");
        assert_eq!(growth(&sizes, &[100.0, 120.0, 130.0]), "flat");
        assert_eq!(growth(&sizes, &[30.0, 60.0, 90.0]), "logarithmic");
        assert_eq!(growth(&sizes, &[30.0, 300.0, 3000.0]), "linear");
        assert_eq!(growth(&sizes[..1], &[30.0]), "?");
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let mut names: Vec<&str> = OPERATIONS.iter().map(|operation| operation.name).collect();
        names.sort_unstable();
        assert_eq!(names.windows(2).find(|pair| pair[0] == pair[1]), None);
    }
}
