//! What does the module we are in know about itself?
//!
//! One `Module` lies in each counted program or library. Other modules' runtimes reach it through
//! the table (`table.rs`): the first one to notice a fork gives the child new counters in all of
//! them.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

use headcount_wire::{self as wire, FileHeader, SlotHeader, failure, slot_state};

use super::lane::Owner;
use super::table::Table;
use super::{file, kernel, linker};

/// Room for the path of a counter file.
pub const PATH_ROOM: usize = 4096 + 256;

#[repr(C)]
pub struct Module {
    /// Held by the thread that is finding out all of the following.
    lock: AtomicU64,
    known: AtomicU32,
    /// Number in the table.
    number: AtomicU32,
    /// Known to the table, to see whether this module is still here.
    pub serial: AtomicU32,
    table: AtomicPtr<Table>,
    /// Mapped from the counter file, and shared with forked children; or in memory.
    pub header: AtomicPtr<FileHeader>,
    /// Address of the first counter.
    pub start: AtomicU64,
    pub counters: AtomicU64,
    pub fingerprint: AtomicU64,
    /// Of the counter file, to know it again. Both zero: there is none.
    pub device: AtomicU64,
    pub inode: AtomicU64,
    /// Whether what was counted in place, before there was a lane, has been moved into one.
    pub moved: AtomicU32,
    /// [`slot_state`] for new slots: not zero once the module is finished.
    finished: AtomicU32,
    pub registered_for_fork: AtomicU32,
    /// Path of the counter file, ending in NUL.
    path: UnsafeCell<[u8; PATH_ROOM]>,
}

// SAFETY: `path` is written under `lock` before `known` is set, and only read after.
unsafe impl Sync for Module {}

/// What a slot's `pid` and `tid` are, taken as one word.
pub const fn counts_here(process: u32, thread: u32) -> u64 {
    process as u64 | (thread as u64) << 32
}

const _: () = assert!(offset_of!(SlotHeader, tid) == offset_of!(SlotHeader, pid) + 4);
const _: () = assert!(offset_of!(SlotHeader, pid) % 8 == 0);

const NO_NUMBER: u32 = u32::MAX;

static THIS: Module = Module {
    lock: AtomicU64::new(0),
    known: AtomicU32::new(0),
    number: AtomicU32::new(0),
    serial: AtomicU32::new(0),
    table: AtomicPtr::new(core::ptr::null_mut()),
    header: AtomicPtr::new(core::ptr::null_mut()),
    start: AtomicU64::new(0),
    counters: AtomicU64::new(0),
    fingerprint: AtomicU64::new(0),
    device: AtomicU64::new(0),
    inode: AtomicU64::new(0),
    moved: AtomicU32::new(0),
    finished: AtomicU32::new(0),
    registered_for_fork: AtomicU32::new(0),
    path: UnsafeCell::new([0; PATH_ROOM]),
};

/// The module this code was linked into.
pub fn this() -> &'static Module {
    &THIS
}

impl Module {
    /// The table and our number in it, if this module has come to know itself.
    pub fn place(&self) -> Option<(&'static Table, Option<usize>)> {
        if self.known.load(Acquire) == 0 {
            return None;
        }
        // SAFETY: a table is never unmapped.
        let table = unsafe { self.table.load(Relaxed).as_ref() }?;
        let number = self.number.load(Relaxed);
        Some((table, (number != NO_NUMBER).then_some(number as usize)))
    }

    /// Finds out everything a module must know, once.
    pub fn get_to_know(&'static self) {
        if self.known.load(Acquire) != 0 {
            return;
        }
        self.lock();
        if self.known.load(Acquire) == 0 {
            self.describe();
            self.known.store(1, Release);
        }
        self.lock.store(0, Release);
    }

    /// The lock names its holder: in a forked child, a holder that stayed with the parent is
    /// seen to be dead, and what it was doing is begun anew.
    fn lock(&self) {
        let (process, thread) = (kernel::process(), kernel::thread());
        let me = Owner::new(0, process, thread);
        let mut holder = 0;
        while let Err(other) = me.put_into(&self.lock, holder) {
            holder = match other == 0 || Owner::is_dead(other, process) {
                true => other,
                false => 0,
            };
            kernel::give_way();
        }
    }

    /// Apart from `get_to_know`, so that a thread's set-up needs little stack.
    #[cold]
    #[inline(never)]
    fn describe(&'static self) {
        let (start, counters) = linker::counters();
        self.start.store(start, Relaxed);
        self.counters.store(counters, Relaxed);
        self.fingerprint
            .store(wire::fingerprint(linker::ids(), counters), Relaxed);
        let table = Table::find_or_make();
        let range = start.wrapping_sub(wire::SLOT_HEADER_BYTES as u64);
        let number = table.and_then(|table| {
            self.table
                .store((table as *const Table).cast_mut(), Relaxed);
            table.register(self, range, range.wrapping_add(self.stride()))
        });
        linker::set_detector(table.map_or(0, Table::detector));
        let room = table
            .zip(number)
            .and_then(|(table, number)| table.header_room(number));
        self.header.store(file::create(self, table, room), Relaxed);
        match table
            .zip(number)
            .and_then(|(table, number)| table.registration(number))
        {
            Some(registration) => registration.open(),
            None => self.fail(failure::THREAD_LOST),
        }
        self.number
            .store(number.map_or(NO_NUMBER, |number| number as u32), Relaxed);
    }

    pub fn stride(&self) -> u64 {
        wire::stride(self.counters.load(Relaxed))
    }

    /// The path of the counter file, for the thread that holds the lock.
    ///
    /// # Safety
    /// The lock must be held, and `known` not be set.
    #[expect(clippy::mut_from_ref, reason = "the lock makes it unique")]
    pub unsafe fn path_to_write(&self) -> &mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.path.get() }
    }

    pub fn path(&self) -> &[u8] {
        // SAFETY: read by those who know the module only: it is not written any more.
        unsafe { &*self.path.get() }
    }

    pub fn has_file(&self) -> bool {
        self.inode.load(Relaxed) != 0
    }

    /// Records in the header what could not be kept.
    pub fn fail(&self, failure: u32) {
        let header = self.header.load(Relaxed);
        if !header.is_null() {
            // SAFETY: a header is mapped as long as the module lives, and aligned to a page.
            // Other processes may write to it too, hence the atomic.
            unsafe { AtomicU32::from_ptr(&raw mut (*header).failures) }.fetch_or(failure, Relaxed);
        }
    }

    /// How many slots were handed out so far; to hand out one more, add one.
    pub fn slots(&self) -> Option<&AtomicU32> {
        let header = self.header.load(Relaxed);
        if header.is_null() {
            return None;
        }
        // SAFETY: as in `fail`.
        Some(unsafe { AtomicU32::from_ptr(&raw mut (*header).slots) })
    }

    /// Remembers that the counter file has so many bytes.
    pub fn grow(&self, length: u64) {
        let header = self.header.load(Relaxed);
        if !header.is_null() {
            // SAFETY: as in `fail`.
            unsafe { AtomicU64::from_ptr(&raw mut (*header).length) }.fetch_max(length, Relaxed);
        }
    }

    /// Heads a new slot. The magic comes last: a slot without it holds nothing.
    ///
    /// # Safety
    /// The slot must be mapped, and belong to the calling thread.
    pub unsafe fn head_slot(&self, slot: *mut SlotHeader, process: u32, thread: u32) {
        let header = self.header.load(Relaxed);
        // SAFETY: the slot is the caller's; the header is mapped and these parts of it constant.
        unsafe {
            (*slot).version = wire::VERSION;
            (*slot).state = match self.finished.load(Relaxed) {
                0 => slot_state::RUNNING,
                _ => slot_state::EXITED,
            };
            (*slot).fingerprint = self.fingerprint.load(Relaxed);
            (*slot).counters = self.counters.load(Relaxed);
            AtomicU64::from_ptr((&raw mut (*slot).pid).cast())
                .store(counts_here(process, thread), Relaxed);
            (*slot).namespace = kernel::namespace();
            if !header.is_null() {
                (*slot).start_ticks = (*header).start_ticks;
                (*slot).id = (*header).id;
            }
            AtomicU64::from_ptr(&raw mut (*slot).magic).store(wire::SLOT_MAGIC, Release);
        }
    }

    pub fn finish(&self) {
        self.finished.store(1, Relaxed);
    }
}
