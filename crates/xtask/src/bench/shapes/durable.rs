//! With everything on disk before it is answered: throughput and what others wait, log bytes, restart, and what a
//! snapshot does to those who write meanwhile.

use std::time::{Duration, Instant};

use super::super::crowd::{Crowd, beside, latencies, median, percentile, write_command};
use super::super::load::{
    CYCLE_CLIENTS as CLIENTS, CYCLE_ENTRIES as COUNT, entry_ids, fill, redis_benchmark, send_many, value,
};
use super::super::{Bar, Better, Figure, nats};
use super::{Numbers, PLAIN, Run, Shape, all, backlog};
use crate::resp::{Client, Value, encode_command};

const SYNCED: &[&str] = &["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
/// For what only needs to be in the log. No peer rewrites its log meanwhile: what is measured is the log alone.
const LOGGED: &[&str] =
    &["--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"];

const PING: Figure = Figure::less("us, PING meanwhile, p50").ratio(0.1, None);
const RATE: Figure =
    Figure { name: "entries/s", better: Better::More, bar: Bar::Ratio { bar: 1.5, stretch: Some(2.0) } };

/// The family.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "durable-xadd-50x16",
        about: "XADD on disk before its reply, 50 clients with 16 under way",
        figures: &[RATE, PING, Figure::less("cpu us/XADD")],
        operations: 400_000,
        arguments: SYNCED,
        measure: |run| add(run, 50, 16),
        ..PLAIN
    },
    Shape {
        name: "durable-xadd-500x1",
        about: "XADD on disk before its reply, 500 clients, no pipeline",
        figures: &[RATE, PING, Figure::less("cpu us/XADD")],
        operations: 200_000,
        arguments: SYNCED,
        measure: |run| add(run, 500, 1),
        ..PLAIN
    },
    Shape {
        name: "durable-cycle",
        about: "on disk before each reply: 100 XADD, read of 100, XACK of 100 on each of 8 clients",
        figures: &[RATE, PING, Figure::less("cpu us/entry")],
        operations: 200_000,
        arguments: SYNCED,
        measure: cycle,
        on_nats: Some(|binary, operations| {
            let (rate, cpu) = nats::cycle(binary, operations)?;
            Ok(vec![Some(rate), None, Some(cpu)])
        }),
        ..PLAIN
    },
    Shape {
        name: "log-bytes",
        about: "what a read of 100 entries through a group adds to the log",
        figures: &[Figure::less("bytes/entry").value(4.0, None)],
        operations: 100_000,
        arguments: LOGGED,
        rounds_max: 1,
        measure: |run| {
            let client = &mut run.client()?;
            fill(client, run.operations)?;
            run.ask(&["XGROUP", "CREATE", "s", "g", "0"])?;
            let before = run.info("aof_current_size")?;
            send_many(client, run.operations / 100, |_, out| {
                write_command(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "100", "STREAMS", "s", ">"], out);
            })?;
            Ok(all([(run.info("aof_current_size")? - before) / run.operations as f64]))
        },
        ..PLAIN
    },
    Shape {
        name: "restart-log",
        about: "from start to the first answer, 1 M entries and 1 M pending, from the log alone",
        figures: &[Figure::less("ms").ratio(0.3, None)],
        operations: backlog::ENTRIES,
        arguments: LOGGED,
        fresh: true,
        rounds_max: 3,
        measure: |run| restart(run, None),
        ..PLAIN
    },
    Shape {
        name: "restart-snapshot",
        about: "from start to the first answer, 1 M entries and 1 M pending, from a snapshot",
        figures: &[Figure::less("ms").ratio(0.3, None)],
        operations: backlog::ENTRIES,
        fresh: true,
        rounds_max: 3,
        measure: |run| restart(run, Some("SAVE")),
        ..PLAIN
    },
    Shape {
        name: "snapshot-beside",
        about: "XADD of one client while a snapshot of 1 M entries and 1 M pending is written",
        figures: &[
            Figure::less("times the quiet p99.9").value(2.0, None),
            Figure::less("us, p99.9 meanwhile"),
            Figure::less("us, p99.9 quiet"),
            Figure::less("ms, the snapshot"),
        ],
        operations: backlog::ENTRIES,
        rounds_max: 3,
        measure: snapshot,
        ..PLAIN
    },
];

/// Between two PINGs beside a load.
const PAUSE: Duration = Duration::from_millis(1);

fn add(run: &mut Run<'_>, clients: usize, pipeline: usize) -> Result<Numbers, String> {
    let value = value();
    let command = ["XADD", "s", "*", "f", &value];
    let (cpu, (rate, pings)) = run.cpu_us(run.operations, || {
        beside(&run.address, PAUSE, || redis_benchmark(&run.address, clients, pipeline, run.operations, &command))
    })?;
    Ok(all([rate, median(&pings), cpu]))
}

fn cycle(run: &mut Run<'_>) -> Result<Numbers, String> {
    run.ask(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"])?;
    let (value, count) = (value(), COUNT.to_string());
    let mut crowd = Crowd::connect(&run.address, CLIENTS)?;
    let (cpu, (rate, pings)) = run.cpu_us(run.operations, || {
        beside(&run.address, PAUSE, || {
            let (started, mut done) = (Instant::now(), 0);
            while done < run.operations {
                let add = |_, out: &mut Vec<u8>| write_command(&["XADD", "s", "*", "f", &value], out);
                crowd.run(CLIENTS * COUNT, COUNT, add, |_, reply| matches!(reply, Value::Bulk(_)))?;
                let mut read = Vec::new();
                crowd.run(
                    CLIENTS,
                    1,
                    |n, out| {
                        let consumer = format!("c{n}");
                        write_command(
                            &["XREADGROUP", "GROUP", "g", &consumer, "COUNT", &count, "STREAMS", "s", ">"],
                            out,
                        );
                    },
                    |_, reply| {
                        let ids = entry_ids(reply).unwrap_or_default();
                        read.push(ids.iter().map(|id| id.to_vec()).collect::<Vec<_>>());
                        ids.len() == COUNT
                    },
                )?;
                let settle = |n: usize, out: &mut Vec<u8>| {
                    let words = [b"XACK".to_vec(), b"s".to_vec(), b"g".to_vec()];
                    write_command(&[&words[..], &read[n]].concat(), out);
                };
                crowd.run(CLIENTS, 1, settle, |_, reply| *reply == Value::Int(COUNT as i64))?;
                done += CLIENTS * COUNT;
            }
            Ok(done as f64 / started.elapsed().as_secs_f64())
        })
    })?;
    Ok(all([rate, median(&pings), cpu]))
}

fn restart(run: &mut Run<'_>, save: Option<&str>) -> Result<Numbers, String> {
    backlog::fill(run, run.operations, &["a", "b", "c"])?;
    if let Some(command) = save {
        run.ask(&[command])?;
    }
    // With everysec and SIGTERM the log is whole; a snapshot is whole by itself.
    run.server.terminate()?;
    let started = Instant::now();
    run.server.start_again()?;
    run.server.await_answer()?;
    let took = started.elapsed();
    let pending = run.ask(&["XPENDING", "s", "g"])?;
    let right = matches!(&pending, Value::Array(parts) if parts.first() == Some(&Value::Int(run.operations as i64)));
    if right { Ok(all([took.as_secs_f64() * 1e3])) } else { Err(format!("after the restart: {}", pending.text())) }
}

/// How long is written while nothing else happens.
const QUIET: Duration = Duration::from_secs(3);

fn snapshot(run: &mut Run<'_>) -> Result<Numbers, String> {
    backlog::fill(run, run.operations, &["a", "b", "c"])?;
    let mut client = run.client()?;
    let add = encode_command(&["XADD", "t", "*", "f", &value()]);
    let started = Instant::now();
    let mut quiet = latencies(&mut client, |_| (started.elapsed() < QUIET).then(|| add.clone()))?;
    run.ask(&["BGSAVE"])?;
    let started = Instant::now();
    let mut watcher = run.client()?;
    let mut under_way = || -> Result<bool, String> {
        let reply = watcher.call(&["INFO", "persistence"]).map_err(|e| e.to_string())?;
        Ok(reply.text().contains("rdb_bgsave_in_progress:1"))
    };
    let mut meanwhile = Vec::new();
    while under_way()? {
        meanwhile.extend(few(&mut client, &add)?);
    }
    let took = started.elapsed();
    let (quiet, meanwhile) = (percentile(&mut quiet, 0.999), percentile(&mut meanwhile, 0.999));
    Ok(all([meanwhile / quiet.max(1.0), meanwhile, quiet, took.as_secs_f64() * 1e3]))
}

/// Between two looks at whether the snapshot is still being written.
fn few(client: &mut Client, add: &[u8]) -> Result<Vec<f64>, String> {
    latencies(client, |done| (done < 100).then(|| add.to_vec()))
}
