//! Micro-benchmarks of what every command goes through: RESP in and out, blocks of entries, pending lists, and whole
//! commands in an engine without a network or a disk.
//!
//! `cargo bench -p impel-core --bench hot_path -- [FILTER]`. Compare figures of one machine and one run; a change's effect
//! is best seen with `--save-baseline before` and `--baseline before`. They decide nothing: no test depends on a time.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

use impel_core::engine::Engine;
use impel_core::engine::blocked::ClientIndex;
use impel_core::engine::facts::{Facts, Host, Saving};
use impel_core::id::StreamId;
use impel_core::resp::decode::{Caps, Decoder, Step};
use impel_core::resp::encode::bulk_id;
use impel_core::settings::Settings;
use impel_core::state::entries::{Entries, NodeLimits};
use impel_core::state::pending::{ConsumerRef, Pel, Pending};

const LIMITS: NodeLimits = NodeLimits { max_entries: 100, max_bytes: 4096 };
const BASE_MS: u64 = 1_700_000_000_000;
const VALUE: &[u8] = b"0123456789012345678901234567890123456789";
/// Entries of the structures that are read.
const ENTRIES: u64 = 100_000;
/// Commands of one batch from the network.
const PIPELINE: usize = 64;

fn id(number: u64) -> StreamId {
    StreamId::new(BASE_MS + number / 5, number % 5)
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn resp(c: &mut Criterion) {
    let mut group = c.benchmark_group("resp");
    let batch = command(&[b"XADD", b"stream", b"*", b"field", VALUE]).repeat(PIPELINE);
    group.throughput(Throughput::Elements(PIPELINE as u64));
    group.bench_function("decode XADD", |b| {
        let mut decoder = Decoder::default();
        let caps = Caps { bulk_max: 512 << 20, authenticated: true };
        b.iter(|| {
            let mut rest = &batch[..];
            while let Step::Command(length) = decoder.step(rest, caps) {
                black_box(decoder.args(rest).len());
                decoder.reset();
                rest = &rest[length..];
                if rest.is_empty() {
                    break;
                }
            }
        });
    });
    group.bench_function("encode an ID", |b| {
        let mut out = Vec::with_capacity(64 * PIPELINE);
        b.iter(|| {
            out.clear();
            (0..PIPELINE as u64).for_each(|number| bulk_id(&mut out, StreamId::new(BASE_MS, number * 7)));
            black_box(out.len())
        });
    });
    group.finish();
}

fn filled(entries: u64) -> Entries {
    let mut filled = Entries::default();
    for number in 0..entries {
        filled.push(id(number), [(b"field".as_slice(), VALUE)].into_iter(), LIMITS);
    }
    filled
}

fn entries(c: &mut Criterion) {
    let mut group = c.benchmark_group("entries");
    group.throughput(Throughput::Elements(1000));
    group.bench_function("append 1000", |b| {
        b.iter_batched(Entries::default, |_| black_box(filled(1000)), BatchSize::SmallInput);
    });
    let stream = filled(ENTRIES);
    group.bench_function("range of 1000 into a reply", |b| {
        let mut out = Vec::with_capacity(256 * 1024);
        b.iter(|| {
            out.clear();
            stream.range(id(ENTRIES / 2), StreamId::MAX).take(1000).for_each(|entry| entry.write(&mut out));
            black_box(out.len())
        });
    });
    group.finish();
}

/// 1000 places of the list in an order without a pattern, the same each time.
fn scattered() -> impl Iterator<Item = u64> {
    (0..1000).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ENTRIES)
}

fn pending(c: &mut Criterion) {
    let mut group = c.benchmark_group("pending");
    let ids: Vec<StreamId> = (0..ENTRIES).map(id).collect();
    let deliver = || {
        let mut list = Pel::default();
        for (at, ids) in ids.chunks(100).enumerate() {
            list.put_all(ids, ConsumerRef((at % 4) as u32), BASE_MS + at as u64, 1, |_| ());
        }
        list
    };
    group.throughput(Throughput::Elements(ENTRIES));
    group.bench_function("insert what reads of 100 deliver", |b| b.iter_with_large_drop(deliver));
    let list = deliver();
    group.throughput(Throughput::Elements(1000));
    group.bench_function("acknowledge 1000 at random", |b| {
        b.iter_batched_ref(
            deliver,
            |list| scattered().map(|number| list.remove(id(number))).filter(Option::is_some).count(),
            BatchSize::LargeInput,
        );
    });
    group.bench_function("claim 1000 at random", |b| {
        b.iter_batched_ref(
            deliver,
            |list| {
                for number in scattered() {
                    let claimed =
                        Pending { id: id(number), consumer: ConsumerRef(9), delivered_ms: BASE_MS * 2, deliveries: 2 };
                    black_box(list.put(claimed));
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.throughput(Throughput::Elements(100));
    group.bench_function("find the 100 oldest", |b| b.iter(|| black_box(list.oldest_first(BASE_MS * 2, 100))));
    group.finish();
}

/// A process that tells nothing.
struct Nothing;

impl Host for Nothing {
    fn info(&self, _section: &str, _out: &mut Vec<u8>) {}

    fn saving(&self) -> Saving {
        Saving::default()
    }

    fn random(&self, _bytes: &mut [u8]) {}

    fn read_acl_file(&self, _path: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".into())
    }

    fn write_acl_file(&self, _path: &str, _bytes: &[u8]) -> Result<(), String> {
        Err("there are no files here".into())
    }
}

/// An engine with one connection.
struct World {
    engine: Engine,
    client: ClientIndex,
}

impl World {
    fn new() -> Self {
        let mut engine = Engine::new(Settings::default(), 1);
        let client = engine.open("127.0.0.1:1".into(), "127.0.0.1:2".into(), BASE_MS);
        World { engine, client }
    }

    /// Feeds it commands until all are carried out; bytes of the replies.
    fn run(&mut self, bytes: &[u8]) -> usize {
        let facts =
            Facts { now_ms: BASE_MS, now_us: BASE_MS * 1000, used_memory: 0, elapsed_us: &|| 0, host: &Nothing };
        let mut replied = 0;
        self.engine.feed(self.client, bytes, &facts);
        loop {
            let output = &mut self.engine.client_mut(self.client).expect("it stays open").output;
            let sent = output.ready(u64::MAX).len();
            replied += sent;
            self.engine.on_sent(self.client, sent);
            if !self.engine.has_later() {
                let mut flushed = Vec::new();
                self.engine.take_flush(&mut flushed);
                return replied;
            }
            self.engine.go_on_later(&facts);
        }
    }
}

fn commands(c: &mut Criterion) {
    let mut group = c.benchmark_group("commands");
    group.throughput(Throughput::Elements(PIPELINE as u64));
    let add = command(&[b"XADD", b"stream", b"*", b"field", VALUE]).repeat(PIPELINE);
    group.bench_function("XADD, 64 under way", |b| {
        let mut world = World::new();
        let trim = command(&[b"XTRIM", b"stream", b"MAXLEN", b"~", b"1000000"]);
        let mut rounds = 0_u64;
        b.iter(|| {
            rounds += 1;
            // Or a long measurement would fill the memory.
            if rounds.is_multiple_of(20_000) {
                world.run(&trim);
            }
            black_box(world.run(&add))
        });
    });
    let loops: Vec<u8> = [
        command(&[b"XADD", b"stream", b"*", b"field", VALUE]).repeat(PIPELINE),
        command(&[b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"64", b"STREAMS", b"stream", b">"]),
        command(&[b"XACK", b"stream", b"g", b"RANGE", b"-", b"+"]),
        command(&[b"XTRIM", b"stream", b"MAXLEN", b"0"]),
    ]
    .concat();
    group.bench_function("add, read 64, acknowledge, trim", |b| {
        let mut world = World::new();
        world.run(&command(&[b"XGROUP", b"CREATE", b"stream", b"g", b"0", b"MKSTREAM"]));
        b.iter(|| black_box(world.run(&loops)));
    });
    group.finish();
}

/// Acknowledging one by one, and what a ledger adds to it: XWORK DONE is to cost no more than one and a half XACK.
fn work(c: &mut Criterion) {
    const COMMANDS: u64 = 1000;
    let mut group = c.benchmark_group("work");
    group.throughput(Throughput::Elements(COMMANDS));
    let delivered = |policy: &[&[u8]]| {
        let mut world = World::new();
        world.run(&command(&[b"XGROUP", b"CREATE", b"stream", b"g", b"0", b"MKSTREAM"]));
        if !policy.is_empty() {
            world.run(&command(&[&[b"XWORK".as_slice(), b"POLICY", b"stream", b"g"], policy].concat()));
        }
        for number in 1..=COMMANDS {
            world.run(&command(&[b"XADD", b"stream", format!("{number}-0").as_bytes(), b"field", VALUE]));
        }
        // Its long reply also leaves the connection a buffer for those that are measured.
        world.run(&command(&[b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", b"stream", b">"]));
        world
    };
    let each = |words: &dyn Fn(&[u8]) -> Vec<u8>| -> Vec<u8> {
        (1..=COMMANDS).flat_map(|number| words(format!("{number}-0").as_bytes())).collect()
    };
    let ack = each(&|id| command(&[b"XACK", b"stream", b"g", id]));
    let done = each(&|id| command(&[b"XWORK", b"DONE", b"stream", b"g", b"c", id]));
    let begin = each(&|id| command(&[b"XWORK", b"BEGIN", b"stream", b"g", b"c", id]));
    type Case<'a> = (&'a str, &'a [&'a [u8]], &'a [u8]);
    let rows: [Case<'_>; 4] = [
        ("XACK", &[], &ack),
        ("XACK, EVIDENCE record", &[b"EVIDENCE", b"record"], &ack),
        ("XWORK DONE", &[], &done),
        ("XWORK BEGIN", &[], &begin),
    ];
    for (name, policy, bytes) in rows {
        group.bench_function(name, |b| {
            b.iter_batched_ref(|| delivered(policy), |world| black_box(world.run(bytes)), BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, resp, entries, pending, commands, work);
criterion_main!(benches);
