//! The shapes of load under which servers are compared.

use super::load::{fill, read_and_acknowledge, redis_benchmark, value};
use super::{Measurement, cpu_time};
use crate::resp::{Address, Client};
use crate::server::Server;

/// What a shape does.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// XADD of one 40-byte field by that many clients with that many commands under way each.
    Add {
        /// Connections.
        clients: usize,
        /// Commands under way on each.
        pipeline: usize,
    },
    /// XREADGROUP and XACK of all that was read, by 8 consumers; an operation is an entry.
    ReadAndAcknowledge {
        /// Entries a read.
        count: usize,
    },
    /// XRANGE of 1000 entries by 8 clients; an operation is a call.
    Range,
}

/// One shape.
#[derive(Debug)]
pub struct Shape {
    /// For `--shape`.
    pub name: &'static str,
    /// What it does.
    pub work: Work,
    /// How many operations, unless told otherwise: some seconds' worth, so that the clock ticks of the processor
    /// time (10 ms) do not matter.
    pub operations: usize,
}

/// All shapes, in the order in which they run.
pub const SHAPES: &[Shape] = &[
    Shape { name: "xadd-50x1", work: Work::Add { clients: 50, pipeline: 1 }, operations: 200_000 },
    Shape { name: "xadd-50x16", work: Work::Add { clients: 50, pipeline: 16 }, operations: 1_000_000 },
    Shape { name: "xadd-8x64", work: Work::Add { clients: 8, pipeline: 64 }, operations: 1_000_000 },
    Shape { name: "readgroup-ack-10", work: Work::ReadAndAcknowledge { count: 10 }, operations: 500_000 },
    Shape { name: "readgroup-ack-100", work: Work::ReadAndAcknowledge { count: 100 }, operations: 1_000_000 },
    Shape { name: "xrange-1000", work: Work::Range, operations: 10_000 },
];

/// Connections of the shapes that do not name them.
const CLIENTS: usize = 8;

impl Shape {
    /// Runs it once on an emptied server.
    ///
    /// # Errors
    /// When anything is not as it should be: a wrong reply makes a number worthless.
    pub fn run(&self, server: &Server, address: &Address, operations: usize) -> Result<Measurement, String> {
        let mut client = server.client().map_err(|e| e.to_string())?;
        let mut ask = |words: &[&str]| match client.call(words) {
            Ok(reply) if !reply.is_error() => Ok(()),
            Ok(reply) => Err(format!("{}: {}", words.join(" "), reply.text())),
            Err(error) => Err(format!("{}: {error}", words.join(" "))),
        };
        ask(&["FLUSHALL"])?;
        ask(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"])?;
        self.prepare(&mut client, operations)?;
        let before = cpu_time(server.process_id())?;
        let operations_per_second = match self.work {
            Work::Add { clients, pipeline } => {
                redis_benchmark(address, clients, pipeline, operations, &["XADD", "s", "*", "f", &value()])?
            }
            Work::ReadAndAcknowledge { count } => read_and_acknowledge(address, CLIENTS, count, operations)?,
            Work::Range => {
                redis_benchmark(address, CLIENTS, 1, operations, &["XRANGE", "s", "-", "+", "COUNT", "1000"])?
            }
        };
        let cpu = cpu_time(server.process_id())?.saturating_sub(before);
        Ok(Measurement { operations_per_second, cpu_us: cpu.as_secs_f64() * 1e6 / operations as f64 })
    }

    fn prepare(&self, client: &mut Client, operations: usize) -> Result<(), String> {
        match self.work {
            Work::Add { .. } => Ok(()),
            Work::ReadAndAcknowledge { .. } => fill(client, operations),
            Work::Range => fill(client, 10_000),
        }
    }
}
