//! `cargo xtask bench peers`: our server, Redis and Valkey side by side. `cargo xtask bench growth`: what operations cost
//! when the backlog grows.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::bench::chart;
use crate::bench::growth::{self, Figure, OPERATIONS};
use crate::bench::report::{OURS, Row, table, to_json};
use crate::bench::shapes::{OnNats, Run, Shape, shapes};
use crate::parts::{Context, cargo, run_or_explain};
use crate::resp::Address;
use crate::server::Server;
use crate::target_folder;

const SYNTAX: Syntax = Syntax {
    help: "\
Measure our server (release build), Redis 8.2.3, Valkey and, where the work is the same, NATS side by
side.

usage: cargo xtask bench peers [options]

Rounds are interleaved (A B C A B C). Printed are medians with half the spread, the ratio of ours to
the best peer, and whether that reaches the bar. The load generator shares the machine, so trust the
server's processor time more than the throughput. JSON and a chart are written to target/bench.

  --shape NAME      only this shape (repeatable); --list names them
  --rounds N        rounds (5)
  --requests N      operations a round, instead of each shape's own number
  --binary PATH     our server's binary, instead of building it
  --peer NAME=PATH  one more peer (repeatable): a program that takes redis-server's options
  --unix            over unix sockets instead of TCP on the loopback
  --list            list the shapes and stop

usage: cargo xtask bench growth [options]

For each operation and size of the backlog: microseconds of a call, less a round trip, and behind it
the longest PING of a second connection meanwhile.

  --sizes LIST      entries, like 10k,100k,1m,5m (10k,100k,1m)
  --peers           also Redis 8.2.3 and Valkey, at sizes up to 1m
  --binary PATH     our server's binary, instead of building it
",
    options: &["--shape", "--rounds", "--requests", "--binary", "--sizes", "--peer"],
    flags: &["--unix", "--peers", "--list"],
    words: 1,
};

/// A fat build takes minutes.
const BUILD_PATIENCE: Duration = Duration::from_secs(30 * 60);
/// What `bench growth` starts servers with: nothing is kept on disk.
const ARGUMENTS: &[&str] = &["--save", "", "--appendonly", "no"];

/// Runs the command.
///
/// # Errors
/// When the arguments make no sense, a server does not start, or a reply is wrong.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    match arguments.words() {
        [word] if word == "peers" => peers(&arguments),
        [word] if word == "growth" => growth(&arguments),
        _ => Err(Stop::Usage("what is to be measured? `bench peers` or `bench growth`; --help tells more".into())),
    }
}

fn peers(arguments: &Arguments) -> Answer {
    if arguments.has("--list") {
        shapes().for_each(|shape| println!("{:<22} {}", shape.name, shape.about));
        return Ok(true);
    }
    let names = arguments.all("--shape");
    if let Some(unknown) = names.iter().find(|name| !shapes().any(|shape| shape.name == name.as_str())) {
        return Err(Stop::Usage(format!("there is no shape {unknown}; --list names them")));
    }
    let rounds: usize = arguments.number("--rounds", 5, 1)?;
    let context = Context::new(None);
    context.redis_tools()?;
    let mut binaries = vec![
        (OURS.to_owned(), our_binary(arguments.one("--binary"))?),
        ("redis".to_owned(), context.redis()?),
        ("valkey".to_owned(), context.valkey()?),
    ];
    for peer in arguments.all("--peer") {
        let (name, path) =
            peer.split_once('=').ok_or_else(|| Stop::Usage(format!("--peer is NAME=PATH, not {peer:?}")))?;
        binaries.push((name.to_owned(), PathBuf::from(path)));
    }
    let mut measured = Vec::new();
    let mut results = Vec::new();
    for shape in shapes().filter(|shape| names.is_empty() || names.iter().any(|name| name == shape.name)) {
        let operations = arguments.number("--requests", shape.operations, 1)?;
        let rounds = rounds.min(shape.rounds_max);
        let nats = shape.on_nats.map(|on_nats| context.nats().map(|path| (on_nats, path))).transpose()?;
        let rows = measure(shape, &binaries, nats, rounds, operations, arguments.has("--unix"))?;
        print!("{}", table(shape, operations, &rows));
        results.push(to_json(shape, operations, &rows));
        measured.push((shape, rows));
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?.as_secs();
    let results = json!({"rounds": rounds, "unix": arguments.has("--unix"), "shapes": results});
    let text = serde_json::to_string_pretty(&results).map_err(|e| e.to_string())? + "\n";
    for (name, text) in
        [(format!("peers-{seconds}.json"), text), (format!("peers-{seconds}.svg"), chart::draw(&measured))]
    {
        println!("written to {}", keep(&name, &text)?.display());
    }
    Ok(true)
}

/// Peers that take seconds for one call are not asked for more than this.
const PEER_SIZE_MAX: u64 = 1_000_000;

fn growth(arguments: &Arguments) -> Answer {
    let sizes = parse_sizes(arguments.one("--sizes").unwrap_or("10k,100k,1m"))?;
    let mut binaries = vec![(OURS, our_binary(arguments.one("--binary"))?)];
    if arguments.has("--peers") {
        let context = Context::new(None);
        binaries.extend([("redis", context.redis()?), ("valkey", context.valkey()?)]);
    }
    for (name, binary) in &binaries {
        let sizes: Vec<u64> = sizes.iter().copied().filter(|&size| *name == OURS || size <= PEER_SIZE_MAX).collect();
        let mut columns = Vec::new();
        for &size in &sizes {
            eprintln!("{name}, {size} entries");
            let server = Server::start(binary, ARGUMENTS)?;
            columns.push(growth::measure(&server, size).map_err(|e| server.complaint(&e))?);
        }
        print_growth(name, &sizes, &columns);
    }
    Ok(true)
}

fn print_growth(name: &str, sizes: &[u64], columns: &[Vec<Option<Figure>>]) {
    println!("\n{name}: microseconds of a call / longest PING of another connection");
    let head: String = sizes.iter().map(|size| format!("{size:>20}")).collect();
    println!("  {:<32}{head}   a call grows", "");
    for (row, operation) in OPERATIONS.iter().enumerate() {
        let figures: Option<Vec<Figure>> = columns.iter().map(|column| column[row]).collect();
        let Some(figures) = figures else {
            println!("  {:<32}{:>20}", operation.name, "not known");
            continue;
        };
        let cells: String =
            figures.iter().map(|of| format!("{:>20}", format!("{:.0} / {:.0}", of.call_us, of.stall_us))).collect();
        let costs: Vec<f64> = figures.iter().map(|figure| figure.call_us).collect();
        println!("  {:<32}{cells}   {}", operation.name, growth::growth(sizes, &costs));
    }
}

/// `10k,1m` as numbers, which ascend.
fn parse_sizes(text: &str) -> Result<Vec<u64>, Stop> {
    let size = |word: &str| {
        let (digits, unit) = match word.to_ascii_lowercase() {
            word if word.ends_with('k') => (word[..word.len() - 1].to_owned(), 1000),
            word if word.ends_with('m') => (word[..word.len() - 1].to_owned(), 1_000_000),
            word => (word, 1),
        };
        digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|&n| n >= 1000)
    };
    let sizes: Option<Vec<u64>> = text.split(',').map(size).collect();
    let sizes = sizes.filter(|sizes| sizes.is_sorted_by(|a, b| a < b));
    sizes.ok_or_else(|| Stop::Usage(format!("--sizes are numbers from 1000 on that ascend, like 10k,1m; not {text:?}")))
}

fn our_binary(given: Option<&str>) -> Result<PathBuf, String> {
    if let Some(path) = given {
        return Ok(PathBuf::from(path));
    }
    run_or_explain("bench-build", cargo().args(["build", "--release", "-p", "impel"]), BUILD_PATIENCE)?;
    Ok(target_folder().join("release/impel"))
}

fn measure(
    shape: &Shape,
    binaries: &[(String, PathBuf)],
    nats: Option<(OnNats, PathBuf)>,
    rounds: usize,
    operations: usize,
    unix: bool,
) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> =
        binaries.iter().map(|(name, _)| Row { server: name.clone(), rounds: Vec::new() }).collect();
    let mut nats_rounds = Vec::new();
    let start = |path: &Path| Server::start(path, shape.arguments);
    // Servers of this shape alone, so that none carries over what another shape left in its memory.
    let mut kept = binaries.iter().map(|(_, path)| start(path)).collect::<Result<Vec<_>, _>>()?;
    for round in 1..=rounds {
        for ((row, server), (name, path)) in rows.iter_mut().zip(&mut kept).zip(binaries) {
            if shape.fresh && round > 1 {
                *server = start(path)?;
            }
            let address = if unix { Address::Unix(server.socket()) } else { server.address() };
            let numbers = Run { server, address, operations }.shape(shape).map_err(|e| format!("{name}: {e}"))?;
            let shown: Vec<String> =
                numbers.iter().map(|number| number.map_or("-".into(), |n| format!("{n:.3}"))).collect();
            eprintln!("{:<20} round {round}/{rounds} {name:<8} {}", shape.name, shown.join("  "));
            row.rounds.push(numbers);
        }
        if let Some((on_nats, path)) = &nats {
            let numbers = on_nats(path, operations).map_err(|e| format!("nats: {e}"))?;
            nats_rounds.push(numbers);
        }
    }
    if nats.is_some() {
        rows.push(Row { server: "nats".into(), rounds: nats_rounds });
    }
    Ok(rows)
}

/// Writes a file into the folder of results.
fn keep(name: &str, text: &str) -> Result<PathBuf, String> {
    let folder = target_folder().join("bench");
    let path = folder.join(name);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, text))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_sizes("1k,20000,3M"), Ok(vec![1000, 20_000, 3_000_000]));
        for text in ["", "1", "k", "2k,1k", "1k,", "1x"] {
            assert!(parse_sizes(text).is_err(), "{text}");
        }
    }
}
