//! Which thread counts in which lane, and which module's counters are mapped there?
//!
//! There is one gs register, but every counted module of a process (the program, its libraries,
//! plug-ins that no other module can see) carries a runtime of its own. They meet in a table at
//! an address that all of them know. The first one makes it; its memory is private, so a forked
//! child has a copy and goes on from there.
//!
//! A lane belongs to one thread at a time. What is mapped in a lane stays when its thread ends,
//! and the next owner goes on counting there: a count is the sum over all lanes.
//!
//! The layout of this file and of `module.rs` is shared by all modules of a process: the table's
//! magic is made of these files' text, so that runtimes that do not fit never meet.

use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering::*};

use headcount_wire::HEADER_BYTES;

use super::delta::{self, FAMILIES, FAMILY_LANES, LANES};
use super::facts::{self, key};
use super::module::Module;
use super::scratch::Scratch;
use super::{kernel, linker};

/// How many modules can be counted in one process at a time.
const MODULES: usize = 512;
const WORDS: usize = MODULES / 64;

/// Where the table may lie: far from where the kernel puts things by itself. (Valgrind gives out
/// the lower addresses only; ThreadSanitizer and MemorySanitizer leave the last two.)
const ADDRESSES: [u64; 6] = [
    0x3d00_0000_0000,
    0x2d00_0000_0000,
    0x1d00_0000_0000,
    0x0d00_0000_0000,
    0x7e90_0000_0000,
    0x0070_0000_0000,
];

#[repr(C, align(4096))]
pub struct Table {
    magic: AtomicU64,
    /// Raised in every forked child: what lanes of an earlier generation hold is the parent's.
    generation: AtomicU32,
    /// The process whose memory this is.
    process: AtomicU32,
    /// Whether the gs base can be set by instruction.
    by_instruction: AtomicU32,
    /// Whether the program has rights that its caller does not have.
    privileged: AtomicU32,
    /// Whether some module is at a low address, so that lanes must lie above it.
    low: AtomicU32,
    /// How many threads are counted nowhere.
    lost: AtomicU32,
    /// How many modules were ever entered.
    serial: AtomicU32,
    /// Where the search for a dead thread's lane goes on.
    hand: AtomicU32,
    /// Nothing is mapped above: the main stack may need the room.
    ceiling: AtomicU64,
    /// How many lanes of each family were ever handed out.
    used: [AtomicU32; FAMILIES],
    /// Length of `folder`, once it is known; [`FOLDER_BUSY`] while it is written.
    folder_length: AtomicU32,
    /// Folder of the counter files: decided once, so that a program may change its own.
    folder: [AtomicU8; 4096],
    modules: [Registration; MODULES],
    lanes: [Lane; LANES],
    detector: Detector,
    /// Where the headers of counter files are mapped, so that they take no place that the
    /// program's own memory, or a library loaded again, would have had.
    headers: [HeaderRoom; MODULES],
}

#[repr(C, align(4096))]
struct HeaderRoom([AtomicU8; HEADER_BYTES]);

const FOLDER_BUSY: u32 = u32::MAX;

/// A page of its own that reads as zero in a forked child, and only there: a child made by
/// `vfork` shares it with its parent.
#[repr(C, align(4096))]
struct Detector {
    word: AtomicU64,
}

/// A module that counts in this process.
#[repr(C)]
pub struct Registration {
    state: AtomicU32,
    module: AtomicPtr<Module>,
    /// What [`Module::serial`] is while the module is in memory.
    serial: AtomicU32,
    /// The range that is mapped in lanes: the slot's header, then the counters.
    pub start: AtomicU64,
    pub end: AtomicU64,
}

/// Values of [`Registration::state`].
mod state {
    pub const FREE: u32 = 0;
    pub const BUSY: u32 = 1;
    pub const OPEN: u32 = 2;
    /// Its last code has run, or will soon: the module may be gone from memory at any time.
    pub const CLOSED: u32 = 3;
}

/// One thread's counters, of all modules.
#[repr(C)]
pub struct Lane {
    owner: AtomicU64,
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
    fn is_alive(self, generation: u32) -> bool {
        let (process, thread) = self.ids();
        self.0 != 0
            && self.0 >> 44 == u64::from(generation & 0xf_ffff)
            && kernel::is_alive(process, thread)
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
            fs_base: kernel::fs_base(),
            gs_base: kernel::gs_base()?,
        })
    }
}

/// What the table knows of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has no lane yet. (Its gs base, if any, is what it inherited from its creator.)
    New,
    /// It counts in this lane.
    Owns(usize),
    /// It uses another process's memory and thread pointer while that thread waits (`vfork`).
    Borrows(Option<usize>),
    /// No place was found for it: it is counted nowhere.
    Lost,
    /// The program uses gs for itself.
    Foreign,
}

impl Table {
    /// The table of this process; made if there is none.
    pub fn find_or_make() -> Option<&'static Table> {
        ADDRESSES.iter().find_map(|address| {
            let bytes = size_of::<Table>() as u64;
            // SAFETY: zeros are a valid table (atomics only), the address is aligned to a page,
            // and what is mapped there is never unmapped. Only used once mapped: see below.
            let table = || unsafe { &*(*address as *const Table) };
            match kernel::map_if_free(*address, bytes, kernel::MAP_NORESERVE) {
                Ok(()) => {
                    table().begin();
                    Some(table())
                }
                Err(kernel::EEXIST) => is_table(*address).then(table),
                Err(_) => None,
            }
        })
    }

    fn begin(&self) {
        let mut scratch = Scratch::new(4096);
        let auxv = scratch.as_mut().map_or(&mut [][..], Scratch::bytes);
        let length = match linker::auxiliary(key::RANDOM) {
            None => kernel::read_file(b"/proc/self/auxv\0", auxv).unwrap_or(0),
            Some(_) => 0,
        };
        let value = |key| {
            let said = facts::auxiliary(auxv.get(..length).unwrap_or_default(), key);
            linker::auxiliary(key).or(said)
        };
        let hwcap2 = value(key::HWCAP2).unwrap_or(0);
        let by_instruction = hwcap2 & facts::FSGSBASE != 0;
        self.by_instruction
            .store(u32::from(by_instruction), Relaxed);
        let privileged = value(key::SECURE).unwrap_or(0) != 0 || kernel::is_privileged();
        self.privileged.store(u32::from(privileged), Relaxed);
        self.ceiling.store(ceiling(value(key::RANDOM)), Relaxed);
        self.process.store(kernel::process(), Relaxed);
        let detector = self.detector();
        // Without it (Linux before 4.14) the word stays what it is, and processes are told
        // apart by their numbers.
        let wiped = kernel::wipe_on_fork(detector, size_of::<Detector>() as u64).is_ok();
        self.detector
            .word
            .store(if wiped { DETECTS } else { BLIND }, Relaxed);
        self.magic.store(crate::LAYOUT, Release);
    }

    // ---- processes

    pub fn generation(&self) -> u32 {
        self.generation.load(Relaxed)
    }

    /// Where the word is that says whether we are in a forked child: not if it is 1.
    pub fn detector(&self) -> u64 {
        &raw const self.detector.word as u64
    }

    /// Whether we are in a forked child that nobody has told the table about.
    pub fn is_inherited(&self) -> bool {
        match self.detector.word.load(Relaxed) {
            0 => true,
            BLIND => self.process.load(Relaxed) != kernel::process(),
            _ => false,
        }
    }

    /// Makes the table the child's own: every lane becomes a leftover of the parent's, but for
    /// the one that the forking thread had, which is returned. Says whether it was lost.
    pub fn inherit(&self, me: &Thread) -> Option<(usize, &Lane, bool)> {
        let parents = self.generation.fetch_add(1, Relaxed);
        self.process.store(me.process, Relaxed);
        let some_were_lost = self.lost.swap(0, Relaxed) != 0;
        if self.detector.word.load(Relaxed) == 0 {
            self.detector.word.store(DETECTS, Relaxed);
        }
        let (number, lane) = match delta::lane(me.gs_base) {
            Some(number) => self.used_lane(number)?,
            None if some_were_lost => self
                .used_lanes()
                .find(|(_, lane)| lane.lost.load(Relaxed) != 0 && lane.is_held(parents, me))?,
            None => return None,
        };
        if !lane.is_held(parents, me) {
            return None;
        }
        lane.owner.store(self.owner(me).0, Release);
        lane.generation.store(self.generation(), Relaxed);
        Some((number, lane, lane.lost.load(Relaxed) != 0))
    }

    // ---- threads

    pub fn standing(&self, me: &Thread) -> Standing {
        let owner = self.owner(me);
        if me.gs_base == 0 {
            return self.standing_without_lane(me, owner);
        }
        let Some((number, lane)) = delta::lane(me.gs_base).and_then(|n| self.used_lane(n)) else {
            return Standing::Foreign;
        };
        if lane.fs_base.load(Relaxed) != me.fs_base {
            return Standing::New;
        }
        let held_by = Owner(lane.owner.load(Acquire));
        if held_by == owner {
            Standing::Owns(number)
        } else if held_by.is_alive(self.generation()) {
            Standing::Borrows(Some(number))
        } else if lane.take(held_by, owner, self.generation()) {
            // Its owner died, and this thread got both its gs base (by way of a third one) and
            // its thread pointer.
            Standing::Owns(number)
        } else {
            Standing::New
        }
    }

    fn standing_without_lane(&self, me: &Thread, owner: Owner) -> Standing {
        let borrowed = self.process.load(Relaxed) != me.process;
        if !borrowed && self.lost.load(Relaxed) == 0 {
            return Standing::New;
        }
        let is_mine = |lane: &Lane| {
            let held_by = Owner(lane.owner.load(Acquire));
            lane.fs_base.load(Relaxed) == me.fs_base
                && match held_by == owner {
                    true => lane.lost.load(Relaxed) != 0,
                    false => borrowed && held_by.is_alive(self.generation()),
                }
        };
        match self.used_lanes().find(|(_, lane)| is_mine(lane)) {
            Some((_, lane)) if Owner(lane.owner.load(Relaxed)) == owner => Standing::Lost,
            Some(_) => Standing::Borrows(None),
            None => Standing::New,
        }
    }

    fn owner(&self, me: &Thread) -> Owner {
        Owner::new(self.generation(), me.process, me.thread)
    }

    /// Makes the thread count in this lane from now on.
    pub fn enter_lane(&self, number: usize, me: &Thread) -> kernel::Result<()> {
        if let Some(lane) = self.lane(number) {
            lane.fs_base.store(me.fs_base, Relaxed);
        }
        self.set_gs_base(delta::delta(number))
    }

    /// Has the thread count where the linker put the counters: harmless, but not exact.
    pub fn leave_lanes(&self) {
        _ = self.set_gs_base(0);
    }

    fn set_gs_base(&self, base: u64) -> kernel::Result<()> {
        let by_instruction = self.by_instruction.load(Relaxed) != 0;
        // SAFETY: `begin` asked the kernel whether the instruction is allowed. Callers come here
        // when all modules the thread has entered are mapped at this distance (`settle`), or
        // with 0, where every module's counters are.
        unsafe { kernel::set_gs_base(base, by_instruction) }
    }

    // ---- lanes

    pub fn lane(&self, number: usize) -> Option<&Lane> {
        self.lanes.get(number)
    }

    fn used_lane(&self, number: usize) -> Option<(usize, &Lane)> {
        let used = self.used.get(number / FAMILY_LANES)?.load(Relaxed) as usize;
        let lane = self.lane(number)?;
        (number % FAMILY_LANES < used).then_some((number, lane))
    }

    /// All lanes that were ever handed out.
    pub fn used_lanes(&self) -> impl Iterator<Item = (usize, &Lane)> {
        self.used.iter().enumerate().flat_map(|(family, used)| {
            let first = family * FAMILY_LANES;
            let used = used.load(Relaxed) as usize;
            (first..first + used.min(FAMILY_LANES)).filter_map(|n| Some((n, self.lane(n)?)))
        })
    }

    /// Looks at the next lane in turn, and takes it if nobody living owns it.
    pub fn take_next_if_dead(&self, me: &Thread) -> Option<usize> {
        let used = |family: usize| {
            let used = self.used.get(family).map_or(0, |used| used.load(Relaxed));
            used.min(FAMILY_LANES as u32)
        };
        let all: u32 = (0..FAMILIES).map(used).sum();
        let mut turn = self.hand.fetch_add(1, Relaxed).checked_rem(all)?;
        for family in 0..FAMILIES {
            if turn < used(family) {
                let number = family * FAMILY_LANES + turn as usize;
                return self.take_if_dead(number, me).then_some(number);
            }
            turn -= used(family);
        }
        None
    }

    fn take_if_dead(&self, number: usize, me: &Thread) -> bool {
        let Some(lane) = self.lane(number) else {
            return false;
        };
        let held_by = Owner(lane.owner.load(Acquire));
        !held_by.is_alive(self.generation())
            && lane.take(held_by, self.owner(me), self.generation())
    }

    /// Hands out a lane that nobody ever had.
    pub fn take_fresh(&self, family: usize, me: &Thread) -> Option<usize> {
        let used = self.used.get(family)?;
        let next = used.fetch_add(1, Relaxed) as usize;
        if next >= FAMILY_LANES {
            used.fetch_sub(1, Relaxed);
            return None;
        }
        let number = family * FAMILY_LANES + next;
        // It shows as used and free for a moment, so somebody looking for a dead thread's lane
        // may be faster.
        self.take_if_dead(number, me).then_some(number)
    }

    /// The lane a family would hand out next.
    pub fn next_fresh(&self, family: usize) -> usize {
        let used = self
            .used
            .get(family)
            .map_or(0, |used| used.load(Relaxed) as usize);
        family * FAMILY_LANES + used.min(FAMILY_LANES - 1)
    }

    /// Gives a lane back; what is mapped there stays.
    pub fn release(&self, number: usize) {
        if let Some(lane) = self.lane(number) {
            lane.fs_base.store(0, Relaxed);
            lane.owner.store(0, Release);
        }
    }

    /// Remembers that the owner of this lane is counted nowhere.
    pub fn lose(&self, number: usize, me: &Thread) {
        if let Some(lane) = self.lane(number) {
            lane.fs_base.store(me.fs_base, Relaxed);
            lane.lost.store(1, Relaxed);
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Which families to try, best first.
    pub fn families(&self) -> impl Iterator<Item = usize> {
        let by_instruction = self.by_instruction.load(Relaxed) != 0;
        let up = self.low.load(Relaxed) != 0 || !by_instruction;
        let first = if up { delta::POSITIVE } else { 0 };
        let last = if by_instruction {
            FAMILIES
        } else {
            FAMILIES - delta::POSITIVE
        };
        (0..last).map(move |turn| (first + turn) % FAMILIES)
    }

    pub fn ceiling(&self) -> u64 {
        self.ceiling.load(Relaxed)
    }

    // ---- modules

    pub fn registration(&self, module: usize) -> Option<&Registration> {
        self.modules.get(module)
    }

    /// Enters a module whose counters, header page included, are at `start..end`. It is not
    /// seen by others before it is opened.
    pub fn register(&self, module: &'static Module, start: u64, end: u64) -> Option<usize> {
        for (number, registration) in self.modules.iter().enumerate() {
            if registration.is_gone() {
                self.forget(number, registration);
            }
        }
        self.low.fetch_or(u32::from(start < delta::LOW), Relaxed);
        self.modules.iter().position(|registration| {
            let taken = registration.change(state::FREE, state::BUSY);
            if taken {
                let serial = self.serial.fetch_add(1, Relaxed).wrapping_add(FIRST_SERIAL);
                module.serial.store(serial, Relaxed);
                registration.serial.store(serial, Relaxed);
                registration
                    .module
                    .store((module as *const Module).cast_mut(), Relaxed);
                registration.start.store(start, Relaxed);
                registration.end.store(end, Relaxed);
            }
            taken
        })
    }

    /// The pages where a module's header is to be mapped.
    pub fn header_room(&self, module: usize) -> Option<u64> {
        self.headers.get(module).map(|room| &raw const *room as u64)
    }

    /// Unmaps what a module that is gone left in all lanes.
    fn forget(&self, module: usize, registration: &Registration) {
        if !registration.change(state::CLOSED, state::BUSY) {
            return;
        }
        let start = registration.start.load(Relaxed);
        let bytes = registration.end.load(Relaxed).wrapping_sub(start);
        for (number, lane) in self.used_lanes() {
            lane.set_current(module, false);
            if lane.set_mapped(module, false) {
                // SAFETY: `mapped` says that the range is ours; its module, the only one whose
                // probes write there, is gone.
                unsafe { kernel::unmap(start.wrapping_add(delta::delta(number)), bytes) };
            }
        }
        registration.state.store(state::FREE, Release);
    }

    // ---- the folder

    /// Whether no file may be written, because our environment is a stranger's.
    pub fn is_privileged(&self) -> bool {
        self.privileged.load(Relaxed) != 0
    }

    /// The folder of the counter files, if a module decided on one.
    pub fn folder(&self, into: &mut [u8]) -> Option<usize> {
        let length = self.folder_length.load(Acquire);
        if length == 0 || length == FOLDER_BUSY {
            return None;
        }
        for (to, from) in into
            .iter_mut()
            .zip(self.folder.iter().take(length as usize))
        {
            *to = from.load(Relaxed);
        }
        (length as usize <= into.len()).then_some(length as usize)
    }

    /// Decides on the folder, if nobody has.
    pub fn decide_folder(&self, path: &[u8]) {
        if path.len() <= self.folder.len()
            && self
                .folder_length
                .compare_exchange(0, FOLDER_BUSY, Relaxed, Relaxed)
                .is_ok()
        {
            for (to, from) in self.folder.iter().zip(path) {
                to.store(*from, Relaxed);
            }
            self.folder_length.store(path.len() as u32, Release);
        }
    }
}

/// Whether what lies at an address is a table of ours. The kernel looks at it for us: it may not
/// be readable. Another module may be about to begin it, in another thread, and needs a moment.
fn is_table(address: u64) -> bool {
    for _ in 0..1000 {
        if kernel::holds(address, crate::LAYOUT as u32) {
            return true;
        }
        if !kernel::holds(address, 0) {
            return false;
        }
        kernel::give_way();
    }
    false
}

/// Serials are told from what else may be in memory.
const FIRST_SERIAL: u32 = 0x5eed_0001;

/// Values of [`Detector::word`] other than zero.
const DETECTS: u64 = 1;
const BLIND: u64 = 2;

/// Where the room of the main stack ends, seen from below. `top` is an address in it.
fn ceiling(top: Option<u64>) -> u64 {
    const USER_SPACE: u64 = 0x7fff_ffff_f000;
    const MARGIN: u64 = 16 << 20;
    const MOST: u64 = 16 << 30;
    // Where nothing is known: the kernel puts the stack within 16 GiB of the end.
    let top = top.unwrap_or(USER_SPACE - MOST);
    top.saturating_sub(kernel::limit(kernel::RLIMIT_STACK).min(MOST))
        .saturating_sub(MARGIN)
}

impl Registration {
    fn change(&self, from: u32, to: u32) -> bool {
        self.state
            .compare_exchange(from, to, AcqRel, Relaxed)
            .is_ok()
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

    fn is_in_memory(&self) -> bool {
        let module = self.module.load(Relaxed);
        let serial = module.wrapping_byte_add(offset_of!(Module, serial)) as u64;
        kernel::holds(serial, self.serial.load(Relaxed))
    }
}

impl Lane {
    /// Changes hands, if it still is in the hands it was in.
    fn take(&self, from: Owner, to: Owner, generation: u32) -> bool {
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

    /// Whether the thread with this thread pointer held it in this generation.
    fn is_held(&self, generation: u32, me: &Thread) -> bool {
        let owner = self.owner.load(Relaxed);
        owner != 0
            && owner >> 44 == u64::from(generation & 0xf_ffff)
            && self.fs_base.load(Relaxed) == me.fs_base
    }

    /// The thread that the lane belongs to, as seen by one that uses it in the meantime.
    pub fn lender(&self, me: &Thread) -> Thread {
        let (process, thread) = Owner(self.owner.load(Relaxed)).ids();
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
