//! The loads: redis-benchmark for single commands, and our own for what takes two steps.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::crowd::write_command;
use crate::resp::{Address, Client, Value, encode_command};

/// How long a reply may take under load.
const PATIENCE: Duration = Duration::from_secs(30);
/// Commands sent at once where only their effect counts.
const BATCH: usize = 1000;

/// Clients of the cycle of adding, reading and acknowledging, on whatever server it runs.
pub const CYCLE_CLIENTS: usize = 8;
/// Entries that each of them adds, reads and acknowledges at a time.
pub const CYCLE_ENTRIES: usize = 100;

/// The 40-byte value that every entry carries.
pub fn value() -> String {
    "v".repeat(40)
}

/// Runs redis-benchmark with a command of ours; operations a second as it counts them.
///
/// # Errors
/// When it fails, or any reply was an error.
pub fn redis_benchmark(
    address: &Address,
    clients: usize,
    pipeline: usize,
    requests: usize,
    command: &[&str],
) -> Result<f64, String> {
    let mut benchmark = Command::new("redis-benchmark");
    match address {
        Address::Tcp(host, port) => benchmark.args(["-h", host, "-p", &port.to_string()]),
        Address::Unix(path) => benchmark.arg("-s").arg(path),
    };
    for (option, number) in [("-c", clients), ("-P", pipeline), ("-n", requests)] {
        benchmark.args([option, &number.to_string()]);
    }
    // -e makes it show error replies instead of counting them as work done.
    benchmark.args(["--csv", "-e"]).args(command).stdin(Stdio::null());
    let output = benchmark.output().map_err(|e| format!("redis-benchmark cannot be started: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = || format!("redis-benchmark: {text}{}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() || text.contains("Error from server") {
        return Err(complaint());
    }
    parse_csv(&text).ok_or_else(complaint)
}

/// The rate in the last line of redis-benchmark's CSV: the second field from the left after the command's text, which
/// is quoted and may hold anything.
fn parse_csv(text: &str) -> Option<f64> {
    let line = text.lines().rev().find(|line| line.starts_with('"'))?;
    line.split("\",\"").nth(1)?.parse().ok()
}

/// Sends so many commands on one connection, many at once; `command` writes the one of a number.
///
/// # Errors
/// The first error reply.
pub fn send_many(client: &mut Client, count: usize, command: impl Fn(usize, &mut Vec<u8>)) -> Result<(), String> {
    let (mut sent, mut bytes) = (0, Vec::new());
    while sent < count {
        let batch = sent..count.min(sent + BATCH);
        bytes.clear();
        batch.clone().for_each(|number| command(number, &mut bytes));
        client.send_raw(&bytes).map_err(|e| e.to_string())?;
        for number in batch.clone() {
            let reply = client.receive().map_err(|e| e.to_string())?;
            if reply.is_error() {
                return Err(format!("command {number}: {}", reply.text()));
            }
        }
        sent = batch.end;
    }
    Ok(())
}

/// Fills stream `s` with that many entries of one field.
///
/// # Errors
/// When the server refuses one.
pub fn fill(client: &mut Client, entries: usize) -> Result<(), String> {
    let value = value();
    send_many(client, entries, |_, out| write_command(&["XADD", "s", "*", "f", &value], out))
}

/// Reads the whole of stream `s` through group `g` with that many consumers, each acknowledging what it read before
/// it reads on; entries a second.
///
/// # Errors
/// When a reply is not as it should be, or entries were lost or came twice.
pub fn read_and_acknowledge(address: &Address, consumers: usize, count: usize, entries: usize) -> Result<f64, String> {
    // The clients start together: the slowest to connect must not count.
    let barrier = Barrier::new(consumers + 1);
    let (read, took) = thread::scope(|scope| {
        let workers: Vec<_> = (0..consumers)
            .map(|number| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let client = Client::connect(address, PATIENCE).map_err(|e| e.to_string());
                    barrier.wait();
                    consume(&mut client?, &format!("c{number}"), count)
                })
            })
            .collect();
        barrier.wait();
        let started = Instant::now();
        let counts: Vec<Result<usize, String>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a consumer panicked".into())))
            .collect();
        let took = started.elapsed();
        (counts.into_iter().sum::<Result<usize, String>>(), took)
    });
    let read = read?;
    if read != entries {
        return Err(format!("{entries} entries were to be read, and {read} were"));
    }
    Ok(read as f64 / took.as_secs_f64())
}

/// Until nothing is left: how many entries this consumer read.
fn consume(client: &mut Client, name: &str, count: usize) -> Result<usize, String> {
    let count = count.to_string();
    let read = encode_command(&["XREADGROUP", "GROUP", "g", name, "COUNT", &count, "STREAMS", "s", ">"]);
    let mut total = 0;
    loop {
        client.send_raw(&read).map_err(|e| e.to_string())?;
        let reply = client.receive().map_err(|e| e.to_string())?;
        if matches!(reply, Value::Nil(_)) {
            return Ok(total);
        }
        let ids = entry_ids(&reply).ok_or_else(|| format!("XREADGROUP: {}", reply.text()))?;
        let mut acknowledge: Vec<&[u8]> = vec![b"XACK", b"s", b"g"];
        acknowledge.extend(&ids);
        let acknowledged = client.call(&acknowledge).map_err(|e| e.to_string())?;
        if !matches!(acknowledged, Value::Int(n) if usize::try_from(n) == Ok(ids.len())) {
            return Err(format!("XACK of {} entries: {}", ids.len(), acknowledged.text()));
        }
        total += ids.len();
    }
}

/// The ids in the RESP2 reply of a read of one stream.
pub fn entry_ids<'a>(reply: &'a Value) -> Option<Vec<&'a [u8]>> {
    let Value::Array(streams) = reply else { return None };
    let [Value::Array(stream)] = streams.as_slice() else { return None };
    let [_, Value::Array(entries)] = stream.as_slice() else { return None };
    let id = |entry: &'a Value| match entry {
        Value::Array(parts) => match parts.first()? {
            Value::Bulk(id) => Some(id.as_slice()),
            _ => None,
        },
        _ => None,
    };
    entries.iter().map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::decode;

    #[test]
    fn rates_are_found_behind_any_command() {
        let csv = "\"test\",\"rps\",\"avg\"\n\"XADD s * f v, \"\"q\"\"\",\"12345.50\",\"0.1\"\n";
        assert_eq!(parse_csv(csv), Some(12345.5));
        assert_eq!(parse_csv("Could not connect"), None);
    }

    #[test]
    fn ids_of_a_read() {
        let bytes = b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
        let (reply, _) = decode(bytes).expect("RESP").expect("whole");
        assert_eq!(entry_ids(&reply), Some(vec![b"1-0".as_slice()]));
        assert_eq!(entry_ids(&Value::Int(1)), None);
    }
}
