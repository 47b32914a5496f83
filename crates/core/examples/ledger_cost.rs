//! What a work ledger costs, in bytes a row and nanoseconds an operation.
//!
//! `cargo run --release --example ledger_cost -p impel-core -- [rows]` (default 1 000 000). Memory is counted by the allocator
//! of this program: what was asked for, and in brackets with what a typical allocator adds to each request (8 bytes,
//! rounded up to 16).

mod counting;

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use impel_core::id::StreamId;
use impel_core::state::ledger::{Ledger, Outcome, Row, WorkId};
use impel_core::state::policy::Policy;

use counting::{ASKED_BYTES, Counting, TAKEN_BYTES};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const START_MS: u64 = 1_700_000_000_000;

/// Prints how long `work` took for each of `operations`.
fn time<T>(name: &str, operations: u64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    let nanoseconds = start.elapsed().as_nanos() as f64 / operations.max(1) as f64;
    println!("  {name:<52} {nanoseconds:>12.1} ns");
    result
}

/// `texts` bytes of each row are the application's.
fn measure(name: &str, rows: u64, texts: usize, row_of: impl Fn(u64, &mut dyn FnMut(Row<'_>))) {
    println!("{name}, {rows} rows");
    let policy = Policy { ledger_len: rows.max(1), ..Policy::default() };
    let before = (ASKED_BYTES.load(Relaxed), TAKEN_BYTES.load(Relaxed));
    let mut ledger = Ledger::default();
    time("append, a row", rows, || {
        for number in 0..rows {
            row_of(number, &mut |row| {
                ledger.append(&Row { id: ledger.next_id(START_MS + number / 3), ..row }, || false)
            });
        }
    });
    let bytes = |now: usize, before: usize| (now - before) as f64 / rows.max(1) as f64 - texts as f64;
    let (asked, taken) = (bytes(ASKED_BYTES.load(Relaxed), before.0), bytes(TAKEN_BYTES.load(Relaxed), before.1));
    println!("  {:<52} {asked:>12.2} bytes a row ({taken:.2}), beside {texts} of the application", "kept");
    let now_ms = START_MS + rows / 3;
    time("find a completion, a query", rows, || {
        for number in (0..rows).map(|number| number.wrapping_mul(7919) % rows) {
            row_of(number, &mut |row| assert!(ledger.completion(row.work, &policy, now_ms).is_some()));
        }
    });
    time("clone, while a snapshot shares it", 1, || black_box(ledger.clone()).len());
    let mut bytes = Vec::new();
    time("encode, a row", rows, || ledger.encode(&mut bytes, |_| true));
    time("forget, a row", rows, || ledger.forget(rows));
    let left = TAKEN_BYTES.load(Relaxed) - before.1 - bytes.capacity();
    println!("  {:<52} {left:>12} bytes", "left");
}

fn main() {
    let rows = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let entry = |number: u64| StreamId::new(START_MS + number / 5, number % 5);
    measure("completions of the entries' own work", rows, 0, |number, take| {
        let row = Row::new(StreamId::MIN, Outcome::Completed, entry(number));
        take(Row { consumer: b"worker-7", delivery: 1, ..row });
    });
    measure("completions of named work with digest and receipt", rows, 12 + 16 + 20, |number, take| {
        let (name, digest) = (format!("job-{number:08}"), format!("{number:016x}"));
        let row = Row::new(StreamId::MIN, Outcome::Completed, entry(number));
        take(Row {
            work: WorkId::Named(name.as_bytes()),
            consumer: b"worker-7",
            delivery: 1,
            digest: digest.as_bytes(),
            receipt: b"receipt-0123456789ab",
            ..row
        });
    });
}
