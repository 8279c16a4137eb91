//! Whose lane is this, and which modules have a slot in it?
//!
//! Part of the table: its layout is shared by all modules of a process.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use super::kernel;
use super::registration::MODULES;

const WORDS: usize = MODULES / 64;

/// One thread's counters, of all modules.
#[repr(C)]
pub struct Lane {
    owner: AtomicU64,
    /// Thread pointer of the owner.
    fs_base: AtomicU64,
    /// The generation that `current` is about.
    generation: AtomicU32,
    /// Set when the owner is counted nowhere.
    lost: AtomicU32,
    /// Modules whose range in this lane is ours (perhaps left from before a fork).
    mapped: [AtomicU64; WORDS],
    /// Modules whose range in this lane holds a slot of this process.
    current: [AtomicU64; WORDS],
}

/// Who owns a lane: a generation (20 bits), a process and a thread (22 bits each, which is as
/// large as Linux makes them: `PID_MAX_LIMIT`). Zero is nobody.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Owner(u64);

impl Owner {
    pub fn new(generation: u32, process: u32, thread: u32) -> Owner {
        let number = |id: u32| u64::from(id & 0x3f_ffff);
        Owner(u64::from(generation) << 44 | number(process) << 22 | number(thread))
    }

    /// Puts us where `other` is, if it is; says who else is there.
    pub fn put_into(self, word: &AtomicU64, other: u64) -> Result<u64, u64> {
        word.compare_exchange(other, self.0, Acquire, Relaxed)
    }

    /// Whether this word names a thread that is not, or no longer, one of this process.
    pub fn is_dead(word: u64, process: u32) -> bool {
        !kernel::is_alive(process, (word & 0x3f_ffff) as u32)
    }

    /// Whether this is a living thread that shares our memory.
    pub fn is_alive(self, generation: u32) -> bool {
        let (process, thread) = self.ids();
        self.0 != 0 && self.is_of(generation) && kernel::is_alive(process, thread)
    }

    fn is_of(self, generation: u32) -> bool {
        self.0 >> 44 == u64::from(generation & 0xf_ffff)
    }

    pub fn process(self) -> u32 {
        self.ids().0
    }

    fn ids(self) -> (u32, u32) {
        let id = |word: u64| (word & 0x3f_ffff) as u32;
        (id(self.0 >> 22), id(self.0))
    }
}

/// The thread we run in.
#[derive(Clone, Copy)]
pub struct Thread {
    pub process: u32,
    pub thread: u32,
    pub fs_base: u64,
    pub gs_base: u64,
}

impl Thread {
    pub fn current() -> kernel::Result<Thread> {
        Ok(Thread {
            process: kernel::process(),
            thread: kernel::thread(),
            fs_base: kernel::fs_base()?,
            gs_base: kernel::gs_base()?,
        })
    }
}

impl Lane {
    /// Changes hands, if it still is in the hands it was in.
    pub fn take(&self, from: Owner, to: Owner, generation: u32) -> bool {
        if self
            .owner
            .compare_exchange(from.0, to.0, AcqRel, Relaxed)
            .is_err()
        {
            return false;
        }
        self.lost.store(0, Relaxed);
        self.renew(generation);
        true
    }

    /// What an earlier generation had here does not count.
    fn renew(&self, generation: u32) {
        if self.generation.swap(generation, Relaxed) != generation {
            self.current.iter().for_each(|word| word.store(0, Relaxed));
        }
    }

    pub fn held_by(&self) -> Owner {
        Owner(self.owner.load(Acquire))
    }

    /// Whether the owner's thread pointer is the caller's.
    pub fn is_at(&self, me: &Thread) -> bool {
        self.fs_base.load(Relaxed) == me.fs_base
    }

    pub fn set_thread_pointer(&self, me: &Thread) {
        self.fs_base.store(me.fs_base, Relaxed);
    }

    /// Nobody's from here on; what is mapped stays.
    pub fn release(&self) {
        self.fs_base.store(0, Relaxed);
        self.owner.store(0, Release);
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Relaxed) != 0
    }

    pub fn set_lost(&self) {
        self.lost.store(1, Relaxed);
    }

    /// After a fork: makes a lane that the caller had in the parent's generation its own again.
    pub fn inherit(&self, parents: u32, to: Owner, generation: u32, me: &Thread) -> bool {
        let was_ours = self.held_by().0 != 0 && self.held_by().is_of(parents) && self.is_at(me);
        if was_ours {
            self.owner.store(to.0, Release);
            self.generation.store(generation, Relaxed);
        }
        was_ours
    }

    /// The thread that the lane belongs to, as seen by one that uses it in the meantime.
    pub fn lender(&self, me: &Thread) -> Thread {
        let (process, thread) = self.held_by().ids();
        Thread {
            process,
            thread,
            ..*me
        }
    }

    pub fn is_of(&self, generation: u32) -> bool {
        self.generation.load(Relaxed) == generation
    }

    pub fn is_mapped(&self, module: usize) -> bool {
        is_in(&self.mapped, module)
    }

    pub fn is_current(&self, module: usize) -> bool {
        is_in(&self.current, module)
    }

    /// Says what was true before.
    pub fn set_mapped(&self, module: usize, yes: bool) -> bool {
        put_in(&self.mapped, module, yes)
    }

    pub fn set_current(&self, module: usize, yes: bool) -> bool {
        put_in(&self.current, module, yes)
    }

    /// The modules with a slot here.
    pub fn current_modules(&self) -> impl Iterator<Item = usize> {
        (0..MODULES).filter(|module| self.is_current(*module))
    }
}

fn is_in(set: &[AtomicU64; WORDS], module: usize) -> bool {
    set.get(module / 64)
        .is_some_and(|word| word.load(Relaxed) & bit(module) != 0)
}

fn put_in(set: &[AtomicU64; WORDS], module: usize, yes: bool) -> bool {
    set.get(module / 64).is_some_and(|word| {
        let before = match yes {
            true => word.fetch_or(bit(module), Relaxed),
            false => word.fetch_and(!bit(module), Relaxed),
        };
        before & bit(module) != 0
    })
}

fn bit(module: usize) -> u64 {
    1 << (module % 64)
}
