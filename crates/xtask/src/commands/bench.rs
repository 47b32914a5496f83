//! `cargo xtask bench peers`: our server, Redis and Valkey side by side.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::Answer;
use crate::arguments::{Arguments, Stop, Syntax};
use crate::bench::Measurement;
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
",
    options: &["--shape", "--rounds", "--requests", "--binary"],
    flags: &["--unix"],
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
    if arguments.words() != ["peers"] {
        return Err(Stop::Usage("what is to be measured? `bench peers`; --help tells more".into()));
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
    fn we_are_compared_with_the_best_peer_in_each_number() {
        let of = |rate: f64, cpu: f64| vec![Measurement { operations_per_second: rate, cpu_us: cpu }];
        let rows = [(OURS, of(300.0, 1.0)), ("redis", of(100.0, 2.0)), ("valkey", of(150.0, 4.0))];
        assert_eq!(ratios(&rows), Some((2.0, 0.5)));
        assert_eq!(ratios(&rows[..1]), None, "nobody to compare with");
    }
}
