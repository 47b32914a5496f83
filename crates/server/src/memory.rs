//! How much memory is in use: an allocator that counts around another one. `maxmemory` and INFO read it.
//!
//! The counts are of bytes asked for, not of pages that the system gave. They are kept with relaxed atomics: a reader
//! may be behind by what other threads are doing at that moment.
//!
//! The one file of this crate with `unsafe` in it.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes in use; 0 if the process has no [`Counting`] allocator.
pub fn used_bytes() -> u64 {
    USED.load(Relaxed) as u64
}

/// The most there ever were in use.
pub fn peak_bytes() -> u64 {
    PEAK.load(Relaxed) as u64
}

/// `mi_option_purge_delay` of mimalloc's header; its Rust names leave it out.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Makes mimalloc give freed pages back to the system at once. By default it waits a second and looks only when memory is asked
/// for again: a server that falls silent after a peak would keep all of it (2.6 GB of RSS with 10 MB in use, measured). Call it
/// before there are other threads.
pub fn give_back_at_once() {
    // SAFETY: an option is a number in a table of the allocator; setting one needs no allocation, and nobody else is there to
    // read it meanwhile. A number beyond the table is ignored.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) };
}

/// Counts what `A` gives and takes back. Meant to be the global allocator of the binary; there is one count.
#[derive(Clone, Copy, Debug)]
pub struct Counting<A>(pub A);

fn grown(bytes: usize) {
    let used = USED.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    if used > PEAK.load(Relaxed) {
        PEAK.fetch_max(used, Relaxed);
    }
}

fn shrunk(bytes: usize) {
    USED.fetch_sub(bytes, Relaxed);
}

// SAFETY: every call goes on to the inner allocator with the caller's own arguments, and its answer is returned as it
// is; in between only two integers change. So whatever the inner allocator guarantees holds here as well.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is the same for the inner allocator.
        let pointer = unsafe { self.0.alloc(layout) };
        if !pointer.is_null() {
            grown(layout.size());
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let pointer = unsafe { self.0.alloc_zeroed(layout) };
        if !pointer.is_null() {
            grown(layout.size());
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the inner allocator, by `alloc`, `alloc_zeroed` or `realloc` above.
        unsafe { self.0.dealloc(pointer, layout) };
        shrunk(layout.size());
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`; the new size is the caller's.
        let new = unsafe { self.0.realloc(pointer, layout, new_size) };
        if !new.is_null() {
            if new_size >= layout.size() {
                grown(new_size - layout.size());
            } else {
                shrunk(layout.size() - new_size);
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    #[test]
    fn the_option_is_the_one_that_we_mean() {
        // SAFETY: reading a number of the table that `give_back_at_once` writes; other tests leave it alone.
        let delay_ms = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        // Only this one begins with a second: the number would name another if the table changed.
        assert_eq!(delay_ms(), 1000);
        give_back_at_once();
        assert_eq!(delay_ms(), 0);
    }

    #[test]
    fn what_is_taken_and_given_back_is_counted() {
        let allocator = Counting(System);
        let layout = Layout::from_size_align(1000, 8).unwrap();
        let larger = Layout::from_size_align(5000, 8).unwrap();
        let before = used_bytes();
        // SAFETY: the layouts have a size, every pointer is used with the layout it has at that moment, and given back once.
        unsafe {
            let pointer = allocator.alloc(layout);
            assert!(!pointer.is_null());
            pointer.write_bytes(7, 1000);
            assert_eq!(used_bytes() - before, 1000);
            let pointer = allocator.realloc(pointer, layout, 5000);
            assert_eq!((used_bytes() - before, *pointer.add(999)), (5000, 7));
            assert!(peak_bytes() >= before + 5000);
            allocator.dealloc(pointer, larger);
            assert_eq!(used_bytes(), before);
            let pointer = allocator.alloc_zeroed(layout);
            assert_eq!((used_bytes() - before, *pointer.add(500)), (1000, 0));
            let smaller = Layout::from_size_align(10, 8).unwrap();
            let pointer = allocator.realloc(pointer, layout, 10);
            assert_eq!(used_bytes() - before, 10);
            allocator.dealloc(pointer, smaller);
        }
        assert_eq!(used_bytes(), before);
    }
}
