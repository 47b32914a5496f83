//! Acknowledging: in random order over a large backlog, and together with deleting.

use std::cell::RefCell;
use std::collections::VecDeque;

use impel_sim::random::Random;

use super::super::Figure;
use super::super::crowd::{Crowd, write_command};
use super::super::load::{entry_ids, value};
use super::backlog::{self, ENTRIES};
use super::{Numbers, PLAIN, Run, Shape, all};
use crate::resp::Value;

/// The family.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "xack-50x16",
        about: "XACK of one id, 50 clients with 16 under way, in random order over 1 M pending",
        figures: &[Figure::less("cpu us/XACK").ratio(0.30, Some(0.20)), Figure::more("XACK/s")],
        operations: 500_000,
        measure: acknowledge,
        ..PLAIN
    },
    Shape {
        name: "xackdel-loop",
        about: "XADD, XREADGROUP COUNT 1, XACKDEL: 16 of one, 16 of the next, on each of 10 clients; an operation is all three",
        figures: &[Figure::less("cpu us/loop").ratio(0.60, None), Figure::more("loops/s")],
        operations: 200_000,
        measure: |run| add_read_delete(run, 16),
        ..PLAIN
    },
    Shape {
        name: "xackdel-loop-x1",
        about: "the same without a pipeline: mostly what the system takes for three round trips",
        figures: &[Figure::less("cpu us/loop"), Figure::more("loops/s")],
        operations: 60_000,
        measure: |run| add_read_delete(run, 1),
        ..PLAIN
    },
];

/// Connections of the loop.
const CLIENTS: usize = 10;

fn acknowledge(run: &mut Run<'_>) -> Result<Numbers, String> {
    let entries = ENTRIES.max(run.operations);
    backlog::fill(run, entries, &["a", "b"])?;
    // The same shuffle on every server.
    let mut random = Random::new(7);
    let mut order: Vec<usize> = (1..=entries).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    let mut crowd = Crowd::connect(&run.address, 50)?;
    let (cpu, rate) = run.cpu_us(run.operations, || {
        crowd.run(
            run.operations,
            16,
            |n, out| write_command(&["XACK", "s", "g", &backlog::id(order[n])], out),
            |_, reply| *reply == Value::Int(1),
        )
    })?;
    Ok(all([cpu, rate]))
}

fn add_read_delete(run: &mut Run<'_>, pipeline: usize) -> Result<Numbers, String> {
    let batch = CLIENTS * pipeline;
    if !run.knows("XACKDEL")? {
        return Ok(vec![None, None]);
    }
    run.ask(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"])?;
    let mut crowd = Crowd::connect(&run.address, CLIENTS)?;
    let value = value();
    let read: RefCell<VecDeque<Vec<u8>>> = RefCell::default();
    let command = |n: usize, out: &mut Vec<u8>| match n / batch % 3 {
        0 => write_command(&["XADD", "s", "*", "f", &value], out),
        1 => write_command(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "s", ">"], out),
        _ => {
            let id = read.borrow_mut().pop_front().unwrap_or_default();
            write_command(&[b"XACKDEL".as_slice(), b"s", b"g", b"IDS", b"1", &id], out);
        }
    };
    let right = |n: usize, reply: &Value| match n / batch % 3 {
        0 => matches!(reply, Value::Bulk(_)),
        1 => {
            let ids = entry_ids(reply).unwrap_or_default();
            read.borrow_mut().extend(ids.iter().map(|id| id.to_vec()));
            ids.len() == 1
        }
        _ => *reply == Value::Array(vec![Value::Int(1)]),
    };
    let loops = run.operations.next_multiple_of(batch);
    let (cpu, rate) = run.cpu_us(loops, || crowd.run(loops * 3, pipeline, command, right))?;
    Ok(all([cpu, rate / 3.0]))
}
