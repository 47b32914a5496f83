//! `cargo xtask bench peers`: our server, Redis and Valkey side by side. `cargo xtask bench growth`: what operations cost
//! when the backlog grows.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::bench::Measurement;
use crate::bench::growth::{self, Figure, OPERATIONS};
use crate::bench::numbers::Spread;
use crate::bench::shapes::{SHAPES, Shape};
use crate::parts::{Context, cargo, run_or_explain};
use crate::resp::Address;
use crate::server::Server;
use crate::target_folder;

const SYNTAX: Syntax = Syntax {
    help: "\
Measure our server (release build), Redis 8.2.3 and Valkey side by side, nothing kept on disk.

usage: cargo xtask bench peers [options]

Rounds are interleaved (A B C A B C). Printed are medians with half the spread, and the ratio of
ours to the best peer: above 1 is better for throughput, below 1 for processor time. The load
generator shares the machine, so trust the server's processor time more than the throughput.

  --shape NAME      only this shape (repeatable): xadd-50x1, xadd-50x16, xadd-8x64,
                    readgroup-ack-10, readgroup-ack-100, xrange-1000
  --rounds N        rounds (5)
  --requests N      operations a round, instead of each shape's own number
  --binary PATH     our server's binary, instead of building it
  --unix            over unix sockets instead of TCP on the loopback

usage: cargo xtask bench growth [options]

For each operation and size of the backlog: microseconds of a call, less a round trip, and behind it
the longest PING of a second connection meanwhile.

  --sizes LIST      entries, like 10k,100k,1m,5m (10k,100k,1m)
  --peers           also Redis 8.2.3 and Valkey, at sizes up to 1m
  --binary PATH     our server's binary, instead of building it
",
    options: &["--shape", "--rounds", "--requests", "--binary", "--sizes"],
    flags: &["--unix", "--peers"],
    words: 1,
};

/// Our own server's name in tables; the others are its peers.
const OURS: &str = "impel";
/// Every server keeps nothing on disk: this measures engines.
const ARGUMENTS: &[&str] = &["--save", "", "--appendonly", "no"];
/// A fat build takes minutes.
const BUILD_PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Runs the command.
///
/// # Errors
/// When the arguments make no sense, a server does not start, or a reply is wrong.
pub fn run(words: &[String]) -> Answer {
    let arguments = Arguments::parse(words, &SYNTAX)?;
    match arguments.words() {
        [word] if word == "peers" => {}
        [word] if word == "growth" => return growth(&arguments),
        _ => {
            return Err(Stop::Usage(
                "what is to be measured? `bench peers` or `bench growth`; --help tells more".into(),
            ));
        }
    }
    let names = arguments.all("--shape");
    if let Some(unknown) = names.iter().find(|name| !SHAPES.iter().any(|shape| shape.name == name.as_str())) {
        return Err(Stop::Usage(format!("there is no shape {unknown}; --help lists them")));
    }
    let rounds: usize = arguments.number("--rounds", 5, 1)?;
    let context = Context::new(None);
    context.redis_tools()?;
    let binaries =
        [(OURS, our_binary(arguments.one("--binary"))?), ("redis", context.redis()?), ("valkey", context.valkey()?)];
    let mut results = Vec::new();
    for shape in SHAPES.iter().filter(|shape| names.is_empty() || names.iter().any(|name| name == shape.name)) {
        let operations = arguments.number("--requests", shape.operations, 1)?;
        let measured = measure(shape, &binaries, rounds, operations, arguments.has("--unix"))?;
        print_table(shape, operations, &measured);
        results.push(to_json(shape, operations, &measured));
    }
    let path = write_results(&json!({"rounds": rounds, "unix": arguments.has("--unix"), "shapes": results}))?;
    println!("written to {}", path.display());
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

/// What was measured of one server.
type Row<'a> = (&'a str, Vec<Measurement>);

fn measure<'a>(
    shape: &Shape,
    binaries: &[(&'a str, PathBuf)],
    rounds: usize,
    operations: usize,
    unix: bool,
) -> Result<Vec<Row<'a>>, String> {
    // Fresh servers for each shape, so that none carries over what another shape left in its memory.
    let start = |(name, path): &(&'a str, PathBuf)| -> Result<(Server, Row<'a>), String> {
        Ok((Server::start(Path::new(path), ARGUMENTS)?, (*name, Vec::new())))
    };
    let mut servers = binaries.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    for round in 1..=rounds {
        for (server, (name, measured)) in &mut servers {
            let address = if unix { Address::Unix(server.socket()) } else { server.address() };
            let result =
                shape.run(server, &address, operations).map_err(|e| format!("{} on {name}: {e}", shape.name))?;
            eprintln!(
                "{:<18} round {round}/{rounds} {name:<8} {:>12.0}/s {:>8.3} us",
                shape.name, result.operations_per_second, result.cpu_us
            );
            measured.push(result);
        }
    }
    Ok(servers.into_iter().map(|(_, row)| row).collect())
}

fn throughput(measured: &[Measurement]) -> Option<Spread> {
    Spread::of(measured.iter().map(|m| m.operations_per_second))
}

fn cpu(measured: &[Measurement]) -> Option<Spread> {
    Spread::of(measured.iter().map(|m| m.cpu_us))
}

/// Ours over the best peer's: of throughput the largest median, of processor time the smallest.
fn ratios(rows: &[Row<'_>]) -> Option<(f64, f64)> {
    let (ours, peers): (Vec<_>, Vec<_>) = rows.iter().partition(|(name, _)| *name == OURS);
    let (_, ours) = ours.first()?;
    let best_rate = peers.iter().filter_map(|(_, m)| Some(throughput(m)?.median)).max_by(f64::total_cmp)?;
    let best_cpu = peers.iter().filter_map(|(_, m)| Some(cpu(m)?.median)).min_by(f64::total_cmp)?;
    Some((throughput(ours)?.median / best_rate, cpu(ours)?.median / best_cpu))
}

fn print_table(shape: &Shape, operations: usize, rows: &[Row<'_>]) {
    println!("\n{}, {operations} operations a round", shape.name);
    println!("  {:<8} {:>14} {:>7}   {:>14} {:>7}", "server", "operations/s", "spread", "cpu us/op", "spread");
    for (name, measured) in rows {
        if let (Some(rate), Some(cpu)) = (throughput(measured), cpu(measured)) {
            println!(
                "  {name:<8} {:>14.0} {:>6.1}%   {:>14.3} {:>6.1}%",
                rate.median,
                rate.percent(),
                cpu.median,
                cpu.percent()
            );
        }
    }
    if let Some((rate, cpu)) = ratios(rows) {
        println!("  {OURS}/best peer: throughput {rate:.2}, cpu {cpu:.2}");
    }
}

fn to_json(shape: &Shape, operations: usize, rows: &[Row<'_>]) -> Json {
    let servers = rows.iter().map(|(name, measured)| {
        json!({
            "server": name,
            "operations_per_second": measured.iter().map(|m| m.operations_per_second).collect::<Vec<_>>(),
            "cpu_us": measured.iter().map(|m| m.cpu_us).collect::<Vec<_>>(),
        })
    });
    let ratios = ratios(rows).map(|(rate, cpu)| json!({"throughput": rate, "cpu": cpu}));
    json!({
        "shape": shape.name,
        "operations": operations,
        "servers": servers.collect::<Vec<_>>(),
        "ratio_to_best_peer": ratios,
    })
}

fn write_results(results: &Json) -> Result<PathBuf, String> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?.as_secs();
    let folder = target_folder().join("bench");
    let path = folder.join(format!("peers-{seconds}.json"));
    let text = serde_json::to_string_pretty(results).map_err(|e| e.to_string())?;
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, text + "\n"))
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

    #[test]
    fn we_are_compared_with_the_best_peer_in_each_number() {
        let of = |rate: f64, cpu: f64| vec![Measurement { operations_per_second: rate, cpu_us: cpu }];
        let rows = [(OURS, of(300.0, 1.0)), ("redis", of(100.0, 2.0)), ("valkey", of(150.0, 4.0))];
        assert_eq!(ratios(&rows), Some((2.0, 0.5)));
        assert_eq!(ratios(&rows[..1]), None, "nobody to compare with");
    }
}
