//! How our own memory grows: in large steps, and for good.
//!
//! To count a short program takes some megabytes for some hundredths of a second. Asked for page by
//! page, they would cost a tenth of that time; and the C library would give memory back, and ask
//! for it again, whenever a large vector ends.

/// By how much memory grows at a time, most of it never touched.
const STEP: usize = 16 << 20;

/// What is larger than this is asked for by itself, and given back.
const LARGE: usize = 8 << 20;

/// The size of the kernel's large pages.
const LARGE_PAGE: usize = 2 << 20;

/// Asks the C library and the kernel for it. What they refuse costs time, nothing else.
pub fn grow_in_large_steps() {
    set(libc::M_TOP_PAD, STEP);
    set(libc::M_TRIM_THRESHOLD, 4 * STEP);
    set(libc::M_MMAP_THRESHOLD, LARGE);
    // The first step is taken now.
    if Vec::<u8>::new().try_reserve_exact(LARGE / 2).is_err() {
        return;
    }
    let end = end();
    let start = (end.saturating_sub(STEP)).next_multiple_of(LARGE_PAGE);
    prefer_large_pages(start, end.saturating_sub(start));
}

#[allow(unsafe_code)]
fn set(what: libc::c_int, bytes: usize) {
    // SAFETY: it takes two numbers, and no other thread is there yet.
    unsafe { libc::mallopt(what, bytes as libc::c_int) };
}

/// Where the heap ends.
#[allow(unsafe_code)]
fn end() -> usize {
    // SAFETY: to grow by nothing changes nothing.
    unsafe { libc::sbrk(0) }.addr()
}

#[allow(unsafe_code)]
fn prefer_large_pages(start: usize, length: usize) {
    let start = std::ptr::without_provenance_mut(start);
    // SAFETY: this advice changes no contents, and is refused for what is not mapped.
    unsafe { libc::madvise(start, length, libc::MADV_HUGEPAGE) };
}
