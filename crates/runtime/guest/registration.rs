//! Is this module still there?
//!
//! Part of the table: its layout is shared by all modules of a process.

use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

use super::kernel;
use super::module::Module;

/// How many modules can be counted in one process at a time.
pub const MODULES: usize = 512;

/// Serials are told from what else may be in memory.
const FIRST_SERIAL: u32 = 0x5eed_0001;

/// A module that counts in this process.
#[repr(C)]
pub struct Registration {
    state: AtomicU32,
    module: AtomicPtr<Module>,
    /// What [`Module::serial`] is while the module is in memory.
    serial: AtomicU32,
    /// The range that is mapped in lanes: the slot's header, then the counters.
    start: AtomicU64,
    end: AtomicU64,
}

/// Values of [`Registration::state`].
mod state {
    pub const FREE: u32 = 0;
    pub const BUSY: u32 = 1;
    pub const OPEN: u32 = 2;
    /// Its last code has run, or will soon: the module may be gone from memory at any time.
    pub const CLOSED: u32 = 3;
}

impl Registration {
    fn change(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, AcqRel, Relaxed)
            .is_ok()
    }

    /// Enters a module whose counters, header page included, are at `start..end`; not if this
    /// place is taken. Others do not see it before it is opened.
    pub fn enter(&self, module: &'static Module, start: u64, end: u64, count: &AtomicU32) -> bool {
        if !self.change(state::FREE, state::BUSY) {
            return false;
        }
        let serial = count.fetch_add(1, Relaxed).wrapping_add(FIRST_SERIAL);
        module.serial.store(serial, Relaxed);
        self.serial.store(serial, Relaxed);
        let module = (module as *const Module).cast_mut();
        self.module.store(module, Relaxed);
        self.start.store(start, Relaxed);
        self.end.store(end, Relaxed);
        true
    }

    /// What is mapped in lanes, at their distance: start and end.
    pub fn range(&self) -> (u64, u64) {
        (self.start.load(Relaxed), self.end.load(Relaxed))
    }

    pub fn open(&self) {
        self.change(state::BUSY, state::OPEN);
    }

    /// The module, if it is in memory: it may be closed, and go on while the program ends.
    pub fn module(&self) -> Option<&'static Module> {
        let is_there = match self.state.load(Acquire) {
            state::OPEN => true,
            state::CLOSED => self.is_in_memory(),
            _ => false,
        };
        // SAFETY: looked at just now. (Who unloads a module that another thread still counts
        // in makes that thread crash anyway.)
        unsafe { self.module.load(Relaxed).as_ref() }.filter(|_| is_there)
    }

    pub fn close(&self) {
        self.change(state::OPEN, state::CLOSED);
    }

    /// Whether the module was closed and is no longer in memory. While the program ends, modules
    /// are closed but stay.
    pub fn is_gone(&self) -> bool {
        self.state.load(Acquire) == state::CLOSED && !self.is_in_memory()
    }

    /// Begins to forget a module that is gone; not if another thread does.
    pub fn begin_to_forget(&self) -> bool {
        self.is_gone() && self.change(state::CLOSED, state::BUSY)
    }

    pub fn end_forgotten(&self) {
        self.state.store(state::FREE, Release);
    }

    fn is_in_memory(&self) -> bool {
        let module = self.module.load(Relaxed);
        let serial = module.wrapping_byte_add(offset_of!(Module, serial)) as u64;
        kernel::holds(serial, self.serial.load(Relaxed))
    }
}
