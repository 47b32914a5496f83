//! XADD of one 40-byte field, with redis-benchmark.

use super::super::Figure;
use super::super::load::{redis_benchmark, value};
use super::{Numbers, PLAIN, Run, Shape, all};

const RATE: Figure = Figure::more("XADD/s");
const CPU: Figure = Figure::less("cpu us/XADD");

/// The family.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "xadd-50x1",
        about: "XADD, 50 clients, no pipeline",
        figures: &[CPU.ratio(0.82, Some(0.76)), RATE],
        operations: 200_000,
        measure: |run| add(run, 50, 1),
        ..PLAIN
    },
    Shape {
        name: "xadd-50x16",
        about: "XADD, 50 clients, 16 commands under way on each",
        figures: &[CPU.ratio(0.55, Some(0.42)), RATE],
        operations: 1_000_000,
        measure: |run| add(run, 50, 16),
        ..PLAIN
    },
    Shape {
        name: "xadd-8x64",
        about: "XADD, 8 clients, 64 commands under way on each",
        figures: &[CPU.ratio(0.38, Some(0.25)), RATE],
        operations: 1_000_000,
        measure: |run| add(run, 8, 64),
        ..PLAIN
    },
];

fn add(run: &mut Run<'_>, clients: usize, pipeline: usize) -> Result<Numbers, String> {
    let operations = run.operations;
    let (cpu, rate) = run.cpu_us(operations, || {
        redis_benchmark(&run.address, clients, pipeline, operations, &["XADD", "s", "*", "f", &value()])
    })?;
    Ok(all([cpu, rate]))
}
