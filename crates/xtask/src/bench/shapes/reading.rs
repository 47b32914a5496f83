//! Reading: through a group, by range, many streams, and the state of many groups.

use super::super::Figure;
use super::super::crowd::{Crowd, write_command};
use super::super::load::{entry_ids, fill, read_and_acknowledge, redis_benchmark, send_many};
use super::{Numbers, PLAIN, Run, Shape, all};

/// The family.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "readgroup-10",
        about: "XREADGROUP COUNT 10, 10 clients, entries of one 40-byte field",
        figures: &[Figure::less("cpu us/call").ratio(0.40, Some(0.25)), Figure::more("calls/s")],
        operations: 40_000,
        measure: |run| read(run, 10, 10, false),
        ..PLAIN
    },
    Shape {
        name: "readgroup-100",
        about: "XREADGROUP COUNT 100, 4 clients, entries of 3 fields with 50 bytes of values",
        figures: &[Figure::less("cpu us/call").ratio(0.20, Some(0.12)), Figure::more("calls/s")],
        operations: 8_000,
        measure: |run| read(run, 4, 100, true),
        ..PLAIN
    },
    Shape {
        name: "readgroup-ack-10",
        about: "XREADGROUP COUNT 10 and XACK of what was read, 8 consumers; an operation is an entry",
        figures: &[Figure::less("cpu us/entry"), Figure::more("entries/s")],
        operations: 500_000,
        measure: |run| read_and_settle(run, 10),
        ..PLAIN
    },
    Shape {
        name: "readgroup-ack-100",
        about: "XREADGROUP COUNT 100 and XACK of what was read, 8 consumers; an operation is an entry",
        figures: &[Figure::less("cpu us/entry"), Figure::more("entries/s")],
        operations: 1_000_000,
        measure: |run| read_and_settle(run, 100),
        ..PLAIN
    },
    Shape {
        name: "xrange-1000",
        about: "XRANGE of 1,000 entries, 8 clients",
        figures: &[Figure::less("cpu us/call").ratio(0.35, Some(0.20)), Figure::more("calls/s")],
        operations: 10_000,
        measure: |run| {
            fill(&mut run.client()?, 10_000)?;
            benchmark(run, 8, &["XRANGE", "s", "-", "+", "COUNT", "1000"])
        },
        ..PLAIN
    },
    Shape {
        name: "xread-1000-streams",
        about: "one XREAD that names 1,000 streams, of which one has something new",
        figures: &[Figure::less("cpu us/call").ratio(0.2, None), Figure::more("calls/s")],
        operations: 20_000,
        measure: read_many_streams,
        ..PLAIN
    },
    Shape {
        name: "xinfo-groups-5000",
        about: "XINFO GROUPS over 5,000 groups",
        figures: &[Figure::less("cpu us/call").ratio(0.5, None), Figure::more("calls/s")],
        operations: 500,
        measure: |run| {
            let mut client = run.client()?;
            fill(&mut client, 1000)?;
            send_many(&mut client, 5000, |n, out| {
                write_command(&["XGROUP", "CREATE", "s", &format!("group-{n}"), "0"], out)
            })?;
            benchmark(run, 4, &["XINFO", "GROUPS", "s"])
        },
        ..PLAIN
    },
];

fn benchmark(run: &Run<'_>, clients: usize, command: &[&str]) -> Result<Numbers, String> {
    let (cpu, rate) =
        run.cpu_us(run.operations, || redis_benchmark(&run.address, clients, 1, run.operations, command))?;
    Ok(all([cpu, rate]))
}

fn read(run: &mut Run<'_>, clients: usize, count: usize, wide: bool) -> Result<Numbers, String> {
    let mut client = run.client()?;
    let entries = run.operations * count;
    if wide {
        let fields = ["job", "0123456789abcdef", "payload", "0123456789abcdefghijklmnop", "kind", "resize-x"];
        let words: Vec<&str> = ["XADD", "s", "*"].into_iter().chain(fields).collect();
        send_many(&mut client, entries, |_, out| write_command(&words, out))?;
    } else {
        fill(&mut client, entries)?;
    }
    run.ask(&["XGROUP", "CREATE", "s", "g", "0"])?;
    let mut crowd = Crowd::connect(&run.address, clients)?;
    let count_word = count.to_string();
    let (cpu, rate) = run.cpu_us(run.operations, || {
        crowd.run(
            run.operations,
            1,
            |n, out| {
                let consumer = format!("c{}", n % clients);
                write_command(&["XREADGROUP", "GROUP", "g", &consumer, "COUNT", &count_word, "STREAMS", "s", ">"], out);
            },
            |_, reply| entry_ids(reply).is_some_and(|ids| ids.len() == count),
        )
    })?;
    Ok(all([cpu, rate]))
}

fn read_and_settle(run: &mut Run<'_>, count: usize) -> Result<Numbers, String> {
    fill(&mut run.client()?, run.operations)?;
    run.ask(&["XGROUP", "CREATE", "s", "g", "0"])?;
    let (cpu, rate) = run.cpu_us(run.operations, || read_and_acknowledge(&run.address, 8, count, run.operations))?;
    Ok(all([cpu, rate]))
}

fn read_many_streams(run: &mut Run<'_>) -> Result<Numbers, String> {
    let names: Vec<String> = (0..1000).map(|n| format!("stream:{n}")).collect();
    send_many(&mut run.client()?, names.len(), |n, out| write_command(&["XADD", &names[n], "1-1", "f", "v"], out))?;
    let mut words = vec!["XREAD", "STREAMS"];
    words.extend(names.iter().map(String::as_str));
    words.extend((0..names.len()).map(|n| if n == 500 { "0-0" } else { "1-1" }));
    benchmark(run, 8, &words)
}
