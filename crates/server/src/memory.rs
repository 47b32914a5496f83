//! How much memory is in use: an allocator that counts around another one. `maxmemory` and INFO read it.
//!
//! The counts are of bytes asked for, not of pages that the system gave. They are kept with relaxed atomics: a reader
//! may be behind by what other threads are doing at that moment.
//!
//! The one file of this crate with `unsafe` in it.

use std::alloc::{GlobalAlloc, Layout};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

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

/// How often it is looked whether freed memory is kept from the system.
const LOOK: Duration = Duration::from_secs(1);
/// So much may be kept: it is used again soon.
const KEPT_BYTES: u64 = 64 << 20;

/// Starts a thread that gives freed memory back to the system. mimalloc does that itself, but only when memory is asked for: a
/// server that falls silent after a peak would keep all of it (2.6 GB of RSS with 10 MB in use, measured). Giving it back
/// within each freeing would make large removals long.
///
/// # Errors
/// When there can be no such thread.
pub fn give_back_in_background() -> std::io::Result<()> {
    thread::Builder::new().name("impel-memory".into()).spawn(|| {
        loop {
            thread::sleep(LOOK);
            if resident_bytes() > 2 * used_bytes() + KEPT_BYTES {
                // SAFETY: it may be called by any thread at any time; what is in use stays where it is.
                unsafe { libmimalloc_sys::mi_collect(false) };
            }
        }
    })?;
    Ok(())
}

/// Bytes of the process that are in RAM; 0 where the system does not tell.
pub fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
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
