//! Counts the memory of an example: what was asked for, and with what a typical allocator adds to each request (8 bytes, rounded
//! up to 16).

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// The allocator.
pub struct Counting;

/// Asked for and not given back.
pub static ASKED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The same with what is added.
pub static TAKEN_BYTES: AtomicUsize = AtomicUsize::new(0);

fn taken(asked_bytes: usize) -> usize {
    (asked_bytes + 8).next_multiple_of(16).max(32)
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED_BYTES.fetch_add(layout.size(), Relaxed);
        TAKEN_BYTES.fetch_add(taken(layout.size()), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ASKED_BYTES.fetch_sub(layout.size(), Relaxed);
        TAKEN_BYTES.fetch_sub(taken(layout.size()), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}
