//! Many clients in one thread: each sends its commands, then from each the replies are taken, so that the server always
//! finds all of them with work. A reply that is not as expected ends the run: its number would be worthless.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::numbers::Spread;
use crate::resp::{Address, Client, Value, encode_command};

/// How long a reply may take under load.
const PATIENCE: Duration = Duration::from_secs(120);

/// Connections that work together.
#[derive(Debug)]
pub struct Crowd {
    clients: Vec<Client>,
    bytes: Vec<u8>,
}

impl Crowd {
    /// So many connections.
    ///
    /// # Errors
    /// When the server does not take one.
    pub fn connect(address: &Address, clients: usize) -> Result<Self, String> {
        let connect = |_| Client::connect(address, PATIENCE).map_err(|e| e.to_string());
        Ok(Crowd { clients: (0..clients).map(connect).collect::<Result<_, _>>()?, bytes: Vec::new() })
    }

    /// Sends `total` commands, `pipeline` at once on each connection; `command` writes the one of a number as RESP,
    /// `right` judges its reply. Answers commands a second.
    ///
    /// # Errors
    /// The first reply that is not right.
    pub fn run(
        &mut self,
        total: usize,
        pipeline: usize,
        mut command: impl FnMut(usize, &mut Vec<u8>),
        mut right: impl FnMut(usize, &Value) -> bool,
    ) -> Result<f64, String> {
        let started = Instant::now();
        let mut done = 0;
        while done < total {
            let mut sent = done;
            let mut shares = Vec::with_capacity(self.clients.len());
            for client in &mut self.clients {
                let share = sent..total.min(sent + pipeline);
                self.bytes.clear();
                share.clone().for_each(|number| command(number, &mut self.bytes));
                if !share.is_empty() {
                    client.send_raw(&self.bytes).map_err(|e| e.to_string())?;
                }
                sent = share.end;
                shares.push(share);
            }
            for (client, share) in self.clients.iter_mut().zip(shares) {
                for number in share {
                    let reply = client.receive().map_err(|e| e.to_string())?;
                    if !right(number, &reply) {
                        return Err(format!("command {number}: {}", reply.text()));
                    }
                }
            }
            done = sent;
        }
        Ok(total as f64 / started.elapsed().as_secs_f64())
    }
}

/// Appends a command made of words.
pub fn write_command<A: AsRef<[u8]>>(words: &[A], out: &mut Vec<u8>) {
    out.extend_from_slice(&encode_command(words));
}

/// Sends one command after another on a connection of its own and answers how long each took, in microseconds.
///
/// # Errors
/// The first error reply.
pub fn latencies(client: &mut Client, mut command: impl FnMut(usize) -> Option<Vec<u8>>) -> Result<Vec<f64>, String> {
    let mut took = Vec::new();
    while let Some(bytes) = command(took.len()) {
        let started = Instant::now();
        client.send_raw(&bytes).map_err(|e| e.to_string())?;
        let reply = client.receive().map_err(|e| e.to_string())?;
        if reply.is_error() {
            return Err(reply.text());
        }
        took.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(took)
}

/// PINGs the server on a connection of its own while `work` runs, and answers how long each took, in microseconds.
///
/// # Errors
/// When the server goes away, or what `work` says.
pub fn beside<T>(
    address: &Address,
    pause: Duration,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<(T, Vec<f64>), String> {
    let mut second = Client::connect(address, PATIENCE).map_err(|e| e.to_string())?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let pings = scope.spawn(|| {
            latencies(&mut second, |_| {
                thread::sleep(pause);
                (!stop.load(Ordering::Relaxed)).then(|| encode_command(&["PING"]))
            })
        });
        let answer = work();
        stop.store(true, Ordering::Relaxed);
        let took = pings.join().map_err(|_| "the second connection panicked".to_owned())??;
        Ok((answer?, took))
    })
}

/// The value below which that share (0 to 1) of the numbers lies; 0 of none.
pub fn percentile(numbers: &mut [f64], share: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len().saturating_sub(1);
    numbers.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
}

/// The middle one; 0 of none.
pub fn median(numbers: &[f64]) -> f64 {
    Spread::of(numbers.iter().copied()).map_or(0.0, |spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let mut numbers: Vec<f64> = (0..=1000).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut numbers, 0.5), 500.0);
        assert_eq!(percentile(&mut numbers, 0.999), 999.0);
        assert_eq!(percentile(&mut numbers, 1.0), 1000.0);
        assert_eq!(percentile(&mut [], 0.5), 0.0);
    }
}
