//! Memory: bytes for a pending entry by how dense ids are, and for an entry of a stream. Each on a server that has done
//! nothing before, as memory that was used once tells little.

use super::super::crowd::write_command;
use super::super::load::{send_many, value};
use super::super::{Figure, resident_bytes};
use super::{Numbers, PLAIN, Run, Shape, all};

const PENDING: &[Figure] = &[
    Figure::less("bytes/pending, used_memory").value(40.0, Some(24.0)),
    Figure::less("bytes/pending, RSS").value(40.0, Some(24.0)),
];

const SIZE: Shape = Shape { figures: PENDING, operations: 1_000_000, fresh: true, rounds_max: 2, ..PLAIN };

/// The family.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "pending-5-per-ms",
        about: "bytes of a pending entry, ids 5 per ms",
        measure: |run| pending(run, |n| (n / 5, n % 5)),
        ..SIZE
    },
    Shape {
        name: "pending-1-per-ms",
        about: "bytes of a pending entry, ids 1 per ms",
        measure: |run| pending(run, |n| (n, 0)),
        ..SIZE
    },
    Shape {
        name: "pending-1-per-37-ms",
        about: "bytes of a pending entry, ids 1 per 37 ms",
        measure: |run| pending(run, |n| (n * 37, 0)),
        ..SIZE
    },
    Shape {
        name: "entry-size",
        about: "bytes of an entry of one 40-byte field",
        figures: &[
            Figure::less("bytes/entry, used_memory").value(50.0, Some(44.0)),
            Figure::less("bytes/entry, RSS").value(50.0, Some(44.0)),
        ],
        measure: |run| {
            let before = memory(run)?;
            add(run, |n| (n, 0), &value())?;
            Ok(per_entry(run, before, memory(run)?))
        },
        ..SIZE
    },
];

/// A Unix time in ms from which ids count.
const FIRST_MS: usize = 1_700_000_000_000;

fn add(run: &Run<'_>, id: impl Fn(usize) -> (usize, usize), value: &str) -> Result<(), String> {
    send_many(&mut run.client()?, run.operations, |n, out| {
        let (ms, sequence) = id(n);
        write_command(&["XADD", "s", &format!("{}-{sequence}", FIRST_MS + ms), "f", value], out);
    })
}

fn pending(run: &mut Run<'_>, id: impl Fn(usize) -> (usize, usize)) -> Result<Numbers, String> {
    add(run, id, "v")?;
    run.ask(&["XGROUP", "CREATE", "s", "g", "0"])?;
    let before = memory(run)?;
    send_many(&mut run.client()?, run.operations.div_ceil(100), |n, out| {
        let consumer = ["a", "b", "c", "d"][n % 4];
        write_command(&["XREADGROUP", "GROUP", "g", consumer, "COUNT", "100", "STREAMS", "s", ">"], out);
    })?;
    Ok(per_entry(run, before, memory(run)?))
}

fn memory(run: &Run<'_>) -> Result<[f64; 2], String> {
    Ok([run.info("used_memory")?, resident_bytes(run.server.process_id())?])
}

fn per_entry(run: &Run<'_>, before: [f64; 2], after: [f64; 2]) -> Numbers {
    all([0, 1].map(|kind| (after[kind] - before[kind]) / run.operations as f64))
}
