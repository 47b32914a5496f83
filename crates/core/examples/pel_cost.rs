//! What a pending entries list costs, in bytes an entry and nanoseconds an operation.
//!
//! `cargo run --release --example pel_cost -p impel-core -- [entries]` (default 1 000 000). Memory is counted by the
//! allocator of this program: what was asked for, and in brackets with what a typical allocator adds to each request
//! (8 bytes, rounded up to 16).

mod counting;

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use impel_core::id::StreamId;
use impel_core::state::codec::Reader;
use impel_core::state::pending::{ConsumerRef, Pel, Pending};

use counting::{ASKED_BYTES, Counting, TAKEN_BYTES};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Numbers that look random (SplitMix64).
fn mix(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn shuffle(ids: &mut [StreamId]) {
    for at in (1..ids.len()).rev() {
        ids.swap(at, (mix(at as u64) % (at as u64 + 1)) as usize);
    }
}

/// Prints how long `work` took for each of `operations`.
fn time<T>(name: &str, operations: usize, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let nanoseconds = start.elapsed().as_nanos() as f64 / operations.max(1) as f64;
    println!("  {name:<52} {nanoseconds:>12.1} ns");
    result
}

fn bytes(name: &str, before: (usize, usize), entries: u64) {
    let asked = (ASKED_BYTES.load(Relaxed) - before.0) as f64 / entries.max(1) as f64;
    let taken = (TAKEN_BYTES.load(Relaxed) - before.1) as f64 / entries.max(1) as f64;
    println!("  {name:<52} {asked:>12.2} bytes an entry ({taken:.2})");
}

const START_MS: u64 = 1_700_000_000_000;

fn measure(name: &str, entries: usize, id_of: impl Fn(u64) -> StreamId, consumers: u32) {
    println!("{name}, {entries} entries, {consumers} consumers");
    let ids: Vec<StreamId> = (0..entries as u64).map(id_of).collect();
    let mut shuffled = ids.clone();
    shuffle(&mut shuffled);
    let mut spare: Vec<Pending> = Vec::with_capacity(entries);
    let mut coded: Vec<u8> = Vec::with_capacity(entries * 8);

    let before = (ASKED_BYTES.load(Relaxed), TAKEN_BYTES.load(Relaxed));
    let mut pel = Pel::default();
    time("append, batches of 100, an entry", entries, || {
        for (batch, ids) in ids.chunks(100).enumerate() {
            let last = ids.last().map_or(0, |id| id.ms);
            pel.put_all(ids, ConsumerRef(mix(batch as u64) as u32 % consumers), last + 3, 1, |_| ());
        }
    });
    bytes("  filled", before, pel.len());
    time("append, one by one, an entry", entries, || {
        let mut single = Pel::default();
        for (n, &id) in ids.iter().enumerate() {
            let consumer = ConsumerRef(mix(n as u64 / 100) as u32 % consumers);
            single.put(Pending { id, consumer, delivered_ms: id.ms + 3, deliveries: 1 });
        }
        black_box(single.len());
    });
    time("get, random", entries, || {
        for id in &shuffled {
            black_box(pel.get(*id));
        }
    });
    time("read in order, an entry", entries, || {
        spare.extend(pel.range(StreamId::MIN));
    });
    spare.clear();
    time("idle_range without a match, a query", 1000, || {
        for _ in 0..1000 {
            black_box(pel.idle_range(StreamId::MIN, black_box(START_MS - 1), None).count());
        }
    });
    time("idle_range, 100 at random places, a query", 10_000, || {
        for id in &shuffled[..10_000.min(entries)] {
            black_box(pel.idle_range(*id, u64::MAX - 1, None).take(100).count());
        }
    });
    time("range_of, 100 of a consumer at random places, a query", 10_000, || {
        for (n, id) in shuffled[..10_000.min(entries)].iter().enumerate() {
            black_box(pel.range_of(ConsumerRef(n as u32 % consumers), *id).take(100).count());
        }
    });
    time("oldest_first(100), a query", 1000, || {
        for _ in 0..1000 {
            black_box(pel.oldest_first(u64::MAX, 100).len());
        }
    });
    time("oldest_time, a query", 1000, || {
        for _ in 0..1000 {
            black_box(pel.oldest_time());
        }
    });
    time("encode, an entry", entries, || pel.encode(&mut coded));
    println!("  {:<52} {:>12.2} bytes an entry", "  encoded", coded.len() as f64 / entries as f64);
    time("decode, an entry", entries, || black_box(Pel::decode(&mut Reader::new(&coded)).is_ok()));
    time("clone, the whole list", 100, || {
        for _ in 0..100 {
            black_box(pel.clone().len());
        }
    });

    let claimed_ms = START_MS + 3_600_000_000;
    let mut claimed = pel.clone();
    time("claim, random, all shared with a frozen copy", entries, || {
        for (n, &id) in shuffled.iter().enumerate() {
            let delivered_ms = claimed_ms + n as u64 / 1000;
            claimed.put(Pending { id, consumer: ConsumerRef(n as u32 % consumers), delivered_ms, deliveries: 2 });
        }
    });
    pel = claimed;
    time("claim, random", entries, || {
        for (n, &id) in shuffled.iter().enumerate() {
            let delivered_ms = claimed_ms + 60_000 + n as u64 / 1000;
            pel.put(Pending { id, consumer: ConsumerRef(n as u32 % consumers), delivered_ms, deliveries: 3 });
        }
    });
    bytes("  all claimed, in random order", before, pel.len());
    time("oldest_first(100) of these, a query", 1000, || {
        for _ in 0..1000 {
            black_box(pel.oldest_first(u64::MAX, 100).len());
        }
    });
    let mut rest = pel.clone();
    let had = rest.range_of(ConsumerRef(0), StreamId::MIN).count() as u64;
    time("remove_consumer (one of them), the whole call", 1, || rest.remove_consumer(ConsumerRef(0), had));
    println!("  {:<52} {had:>12} entries", "  removed");
    let mut slices = 0;
    time("reap, all of it", 1, || {
        while rest.is_passing() {
            rest.reap();
            slices += 1;
        }
    });
    println!("  {:<52} {slices:>12} slices", "  done in");
    drop(rest);

    let Ok(fresh) = Pel::decode(&mut Reader::new(&coded)) else { return };
    pel = fresh;
    let mut frozen = Some(pel.clone());
    time("remove, random, shared with a frozen copy (first 1%)", entries / 100, || {
        for id in &shuffled[..entries / 100] {
            black_box(pel.remove(*id));
        }
    });
    frozen.take();
    let half = entries / 2;
    time("remove, random, to half", half - entries / 100, || {
        for id in &shuffled[entries / 100..half] {
            black_box(pel.remove(*id));
        }
    });
    bytes("  half left", before, pel.len());
    let most = entries / 10 * 9;
    time("remove, random, to a tenth", most - half, || {
        for id in &shuffled[half..most] {
            black_box(pel.remove(*id));
        }
    });
    bytes("  a tenth left", before, pel.len());
    time("remove, random, to nothing", entries - most, || {
        for id in &shuffled[most..] {
            black_box(pel.remove(*id));
        }
    });
    let Ok(fresh) = Pel::decode(&mut Reader::new(&coded)) else { return };
    pel = fresh;
    time("remove, in order", entries, || {
        for id in &ids {
            black_box(pel.remove(*id));
        }
    });
    let Ok(fresh) = Pel::decode(&mut Reader::new(&coded)) else { return };
    pel = fresh;
    let mut longest = 0;
    time("pop_node and drop, an entry", entries, || {
        loop {
            let start = Instant::now();
            if pel.pop_node().is_none() {
                break;
            }
            longest = longest.max(start.elapsed().as_micros());
        }
    });
    println!("  {:<52} {longest:>12} µs", "  longest slice");
}

fn main() {
    let entries = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    measure("5 a millisecond", entries, |n| StreamId::new(START_MS + n / 5, n % 5), 20);
    measure("1 a millisecond", entries, |n| StreamId::new(START_MS + n, 0), 20);
    measure("1 every 37 ms", entries, |n| StreamId::new(START_MS + n * 37, 0), 20);
    measure("1 every 37 ms", entries, |n| StreamId::new(START_MS + n * 37, 0), 2000);
}
