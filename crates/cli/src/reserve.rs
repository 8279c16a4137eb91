//! Memory for when there is none: enough to let go of a program in order.
//!
//! Rust ends a process that asks for memory in vain, and with us the program would end that we
//! count. So some is set aside in the beginning, and handed out when the system has no more. Who
//! counts asks now and then whether it has come to that, and then stops counting.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much is set aside. None of it is touched before it is needed.
const SIZE: usize = 32 << 20;

/// The system's memory, and then what was set aside.
pub struct Reserved;

static START: AtomicUsize = AtomicUsize::new(0);
/// How much of it was handed out. What is given back is not used again.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Sets memory aside, once. `false`: there is none.
pub fn set_aside() -> bool {
    if START.load(Ordering::Acquire) != 0 {
        return true;
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: asks for new memory, at no particular place.
    let place = unsafe { libc::mmap(ptr::null_mut(), SIZE, protection, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return false;
    }
    START.store(place.expose_provenance(), Ordering::Release);
    true
}

/// Has anything of it been handed out?
pub fn is_used() -> bool {
    USED.load(Ordering::Relaxed) != 0
}

fn is_reserved(place: *mut u8) -> bool {
    let start = START.load(Ordering::Relaxed);
    (start..start.saturating_add(SIZE)).contains(&place.addr()) && start != 0
}

/// Some of it, which has only zeros; null if there is none.
fn take(layout: Layout) -> *mut u8 {
    let start = START.load(Ordering::Acquire);
    let taken = USED.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
        let from = (start + used).checked_next_multiple_of(layout.align())? - start;
        let end = from.checked_add(layout.size())?;
        (start != 0 && end <= SIZE).then_some(end)
    });
    match taken {
        Ok(used) => {
            let place = (start + used).next_multiple_of(layout.align());
            ptr::with_exposed_provenance_mut(place)
        }
        Err(_) => ptr::null_mut(),
    }
}

// SAFETY: memory is the system's, or of a mapping that is never given back and of which no part is
// handed out twice; sizes and alignments are kept, and nothing here panics.
unsafe impl GlobalAlloc for Reserved {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same contract.
        match unsafe { System.alloc(layout) } {
            place if place.is_null() => take(layout),
            place => place,
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same contract.
        match unsafe { System.alloc_zeroed(layout) } {
            place if place.is_null() => take(layout),
            place => place,
        }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if !is_reserved(place) {
            // SAFETY: it is not ours, so the system handed it out; the caller keeps the rest.
            unsafe { System.dealloc(place, layout) };
        }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_reserved(place) {
            // SAFETY: as in `dealloc`.
            let moved = unsafe { System.realloc(place, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller says that this is a size that the alignment allows.
        let new = take(unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
        if !new.is_null() {
            // SAFETY: both places have as many bytes, and the new one is nobody else's.
            unsafe { ptr::copy_nonoverlapping(place, new, layout.size().min(size)) };
            // SAFETY: the caller gives the old one up.
            unsafe { self.dealloc(place, layout) };
        }
        new
    }
}
