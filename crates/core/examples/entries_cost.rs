//! What the entries of a stream cost: memory with a counting allocator, and time of each operation. Prints one figure a
//! line. `cargo run --release -p impel-core --example entries_cost`
//!
//! The times are of a warm process without competition; compare figures of one machine and one run.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use impel_core::id::StreamId;
use impel_core::state::codec::Reader;
use impel_core::state::entries::{Entries, NodeLimits};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; the counter is beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const COUNT: u64 = 1_000_000;
const LIMITS: NodeLimits = NodeLimits { max_entries: 100, max_bytes: 4096 };
const BASE_MS: u64 = 1_700_000_000_000;

/// Numbers without a pattern, the same in each run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

fn ns_each(name: &str, count: u64, work: impl FnOnce()) {
    #[allow(clippy::disallowed_methods, reason = "a measurement is what the clock is for")]
    let begin = Instant::now();
    work();
    println!("{name:44} {:10.1} ns", begin.elapsed().as_nanos() as f64 / count as f64);
}

/// IDs as a producer makes them that adds four entries a millisecond.
fn id(n: u64) -> StreamId {
    StreamId::new(BASE_MS + n / 4, n % 4)
}

fn three_fields(entries: &mut Entries, n: u64) {
    let fields = [(&b"name"[..], &b"worker-017"[..]), (b"payload", &[b'p'; 27]), (b"ts", b"1700000000123")];
    entries.push(id(n), fields.into_iter(), LIMITS);
}

fn main() {
    let value = [b'x'; 40];
    let field = [(&b"field"[..], &value[..])];
    let before = BYTES.load(Ordering::Relaxed);
    let mut entries = Entries::default();
    ns_each("push, 1 field of 40 bytes", COUNT, || {
        for n in 0..COUNT {
            entries.push(id(n), field.into_iter(), LIMITS);
        }
    });
    let bytes = BYTES.load(Ordering::Relaxed) - before;
    println!("{:44} {:10.2} bytes", "memory of an entry", bytes as f64 / COUNT as f64);
    println!("{:44} {:10}", "blocks", entries.node_count());

    let before = BYTES.load(Ordering::Relaxed);
    let small: Vec<Entries> = (0..10_000)
        .map(|n| {
            let mut entries = Entries::default();
            entries.push(id(n), field.into_iter(), LIMITS);
            entries
        })
        .collect();
    let bytes = BYTES.load(Ordering::Relaxed) - before;
    println!("{:44} {:10.2} bytes", "memory of a stream with one entry", bytes as f64 / small.len() as f64);
    drop(small);

    let mut state = 1;
    let ids: Vec<StreamId> = (0..COUNT).map(|_| id(random(&mut state) % COUNT)).collect();
    ns_each("get, random", COUNT, || {
        for &id in &ids {
            black_box(entries.get(id).is_some());
        }
    });
    ns_each("get, ascending", COUNT, || {
        for n in 0..COUNT {
            black_box(entries.get(id(n)).is_some());
        }
    });
    ns_each("range, ids only, per entry", COUNT, || {
        black_box(entries.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id.seq).sum::<u64>());
    });
    ns_each("count_after, random", COUNT, || {
        for &id in &ids {
            black_box(entries.count_after(id));
        }
    });
    ns_each("count_after, last 100", COUNT, || {
        for n in 0..COUNT {
            black_box(entries.count_after(id(COUNT - 1 - n % 100)));
        }
    });
    ns_each("nth, random", COUNT, || {
        for id in &ids {
            black_box(entries.nth((id.ms - BASE_MS) * 4));
        }
    });
    let mut out = Vec::with_capacity(1 << 20);
    ns_each("range + write COUNT 1000, 1 field, per entry", COUNT, || {
        for start in (0..COUNT).step_by(1000) {
            out.clear();
            for entry in entries.range(id(start), StreamId::MAX).take(1000) {
                entry.write(&mut out);
            }
            black_box(&out);
        }
    });
    ns_each("range_rev COUNT 1000 ids, per entry", COUNT, || {
        for start in (1000..=COUNT).step_by(1000) {
            black_box(entries.range_rev(StreamId::MIN, id(start - 1)).take(1000).last().is_some());
        }
    });
    ns_each("range COUNT 1, random", COUNT, || {
        for &id in &ids {
            black_box(entries.range(id, StreamId::MAX).next().is_some());
        }
    });
    ns_each("clone", 100, || {
        for _ in 0..100 {
            black_box(entries.clone());
        }
    });
    let mut bytes = Vec::with_capacity(64 << 20);
    ns_each("encode, per entry", COUNT, || entries.encode(&mut bytes));
    ns_each("decode, per entry", COUNT, || {
        black_box(Entries::decode(&mut Reader::new(&bytes)).is_ok());
    });

    let mut trimmed = entries.clone();
    let frozen = entries;
    let mut entries = Entries::decode(&mut Reader::new(&bytes)).expect("just encoded");
    let mut detached = Vec::new();
    ns_each("trim_before 1 M to 1000 (all)", 1, || {
        let bound = entries.nth(COUNT - 1000).expect("there are that many");
        detached = entries.trim_before(bound).1;
    });
    let spans = detached.len() as u64;
    ns_each("freeing a detached span", spans, || drop(detached));
    ns_each("trim_before with a living clone (all)", 1, || {
        let bound = trimmed.nth(COUNT - 1000).expect("there are that many");
        black_box(trimmed.trim_before(bound).0);
    });
    drop((trimmed, frozen));

    let mut entries = Entries::decode(&mut Reader::new(&bytes)).expect("just encoded");
    ns_each("remove, random", COUNT, || {
        for &id in &ids {
            black_box(entries.remove(id, LIMITS));
        }
    });
    let mut entries = Entries::decode(&mut Reader::new(&bytes)).expect("just encoded");
    ns_each("remove, from the front", COUNT, || {
        for n in 0..COUNT {
            black_box(entries.remove(id(n), LIMITS));
        }
    });
    ns_each("push + remove at once", COUNT, || {
        for n in COUNT..2 * COUNT {
            entries.push(id(n), field.into_iter(), LIMITS);
            entries.remove(id(n), LIMITS);
        }
    });

    let mut entries = Entries::default();
    ns_each("push, 3 fields of 50 bytes", COUNT, || {
        for n in 0..COUNT {
            three_fields(&mut entries, n);
        }
    });
    ns_each("range + write COUNT 1000, 3 fields, per entry", COUNT, || {
        for start in (0..COUNT).step_by(1000) {
            out.clear();
            for entry in entries.range(id(start), StreamId::MAX).take(1000) {
                entry.write(&mut out);
            }
            black_box(&out);
        }
    });
    ns_each("the same, always the last 1000", COUNT, || {
        for _ in (0..COUNT).step_by(1000) {
            out.clear();
            for entry in entries.range(id(COUNT - 1000), StreamId::MAX).take(1000) {
                entry.write(&mut out);
            }
            black_box(&out);
        }
    });
    ns_each("push + exact trim to 1 M", COUNT, || {
        for n in COUNT..2 * COUNT {
            three_fields(&mut entries, n);
            let bound = entries.nth(entries.len() - COUNT).expect("there are that many");
            black_box(entries.trim_before(bound).0);
        }
    });
}
