//! Ten thousand readers that wait on ten thousand streams.

use std::thread;
use std::time::{Duration, Instant};

use impel_sim::random::Random;

use super::super::crowd::percentile;
use super::super::{Figure, cpu_time};
use super::{Numbers, PATIENCE, PLAIN, Run, Shape, all};
use crate::resp::Client;

/// The family.
pub const SHAPES: &[Shape] = &[Shape {
    name: "blocked-readers",
    about: "10,000 readers blocked on as many streams: idle, and woken by XADD one at a time",
    figures: &[
        Figure::less("idle cpu %").value(0.0, None),
        Figure::less("us, XADD to reply, p50").ratio(0.8, None),
        Figure::less("us, XADD to reply, p99").ratio(0.8, None),
        Figure::less("cpu us/wake"),
    ],
    operations: 10_000,
    arguments: &["--save", "", "--appendonly", "no", "--maxclients", "15000"],
    fresh: true,
    rounds_max: 3,
    measure: blocked,
    ..PLAIN
}];

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(3);
/// Readers woken, at most: enough for a p99.
const WAKES: usize = 5000;

fn blocked(run: &mut Run<'_>) -> Result<Numbers, String> {
    let process_id = run.server.process_id();
    let connect = |n: usize| -> Result<Client, String> {
        let mut client = Client::connect(&run.address, PATIENCE).map_err(|e| e.to_string())?;
        wait(&mut client, n)?;
        Ok(client)
    };
    let mut readers = (0..run.operations).map(connect).collect::<Result<Vec<_>, _>>()?;
    let mut writer = run.client()?;
    // A reply to this comes after all of them were seen.
    writer.call(&["PING"]).map_err(|e| e.to_string())?;
    let before = cpu_time(process_id)?;
    thread::sleep(IDLE);
    let idle = (cpu_time(process_id)? - before).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    let (mut random, mut took) = (Random::new(3), Vec::new());
    let wakes = WAKES.min(run.operations);
    let (cpu, ()) = run.cpu_us(wakes, || {
        for _ in 0..wakes {
            let n = random.below(readers.len() as u64) as usize;
            let started = Instant::now();
            writer.send(&["XADD", &name(n), "*", "f", "v"]).map_err(|e| e.to_string())?;
            let reply = readers[n].receive().map_err(|e| e.to_string())?;
            took.push(started.elapsed().as_secs_f64() * 1e6);
            let added = writer.receive().map_err(|e| e.to_string())?;
            if reply.is_error() || added.is_error() {
                return Err(format!("{} {}", reply.text(), added.text()));
            }
            wait(&mut readers[n], n)?;
        }
        Ok(())
    })?;
    Ok(all([idle, percentile(&mut took, 0.5), percentile(&mut took, 0.99), cpu]))
}

fn name(number: usize) -> String {
    format!("stream:{number}")
}

fn wait(client: &mut Client, number: usize) -> Result<(), String> {
    client.send(&["XREAD", "BLOCK", "0", "STREAMS", &name(number), "$"]).map_err(|e| e.to_string())
}
