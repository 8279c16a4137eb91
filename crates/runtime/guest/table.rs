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
//! The layout of this file and of `lane.rs`, `registration.rs` and `module.rs` is shared by all
//! modules of a process: the table's magic is made of these files' text, so that runtimes that do
//! not fit never meet.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::*};

use headcount_wire::HEADER_BYTES;

use super::delta::{self, FAMILIES, FAMILY_LANES, LANES};
use super::facts::{self, key};
use super::lane::{Lane, Owner, Thread};
use super::module::Module;
use super::registration::{MODULES, Registration};
use super::scratch::Scratch;
use super::{kernel, linker};

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
        let inherits = |lane: &Lane| lane.inherit(parents, self.owner(me), self.generation(), me);
        let (number, lane) = match delta::lane(me.gs_base) {
            Some(number) => self.used_lane(number).filter(|(_, lane)| inherits(lane))?,
            None if some_were_lost => {
                let mut lanes = self.used_lanes();
                lanes.find(|(_, lane)| lane.is_lost() && inherits(lane))?
            }
            None => return None,
        };
        Some((number, lane, lane.is_lost()))
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
        let held_by = lane.held_by();
        if !lane.is_at(me) {
            Standing::New
        } else if held_by == owner {
            Standing::Owns(number)
        } else if held_by.is_alive(self.generation()) {
            match held_by.process() != me.process {
                true => Standing::Borrows(Some(number)),
                false => Standing::New,
            }
        } else if lane.take(held_by, owner, self.generation()) {
            // Its owner died, and this thread got both its gs base (by way of a third one) and
            // its thread pointer.
            Standing::Owns(number)
        } else {
            Standing::New
        }
    }

    fn standing_without_lane(&self, me: &Thread, owner: Owner) -> Standing {
        let borrows = self.process.load(Relaxed) != me.process;
        if !borrows && self.lost.load(Relaxed) == 0 {
            return Standing::New;
        }
        for (_, lane) in self.used_lanes().filter(|(_, lane)| lane.is_at(me)) {
            let held_by = lane.held_by();
            if held_by == owner && lane.is_lost() {
                return Standing::Lost;
            }
            if held_by != owner && borrows && held_by.is_alive(self.generation()) {
                return Standing::Borrows(None);
            }
        }
        Standing::New
    }

    fn owner(&self, me: &Thread) -> Owner {
        Owner::new(self.generation(), me.process, me.thread)
    }

    /// Makes the thread count in this lane from now on.
    pub fn enter_lane(&self, number: usize, me: &Thread) -> kernel::Result<()> {
        if let Some(lane) = self.lane(number) {
            lane.set_thread_pointer(me);
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
        let held_by = lane.held_by();
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

    /// Remembers that the owner of this lane is counted nowhere.
    pub fn lose(&self, number: usize, me: &Thread) {
        if let Some(lane) = self.lane(number) {
            lane.set_thread_pointer(me);
            lane.set_lost();
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
            if registration.begin_to_forget() {
                self.unmap(number, registration);
                registration.end_forgotten();
            }
        }
        self.low.fetch_or(u32::from(start < delta::LOW), Relaxed);
        self.modules
            .iter()
            .position(|free| free.enter(module, start, end, &self.serial))
    }

    /// The pages where a module's header is to be mapped.
    pub fn header_room(&self, module: usize) -> Option<u64> {
        self.headers.get(module).map(|room| &raw const *room as u64)
    }

    /// Unmaps what a module that is gone left in all lanes.
    fn unmap(&self, module: usize, registration: &Registration) {
        let (start, end) = registration.range();
        for (number, lane) in self.used_lanes() {
            lane.set_current(module, false);
            if lane.set_mapped(module, false) {
                let address = start.wrapping_add(delta::delta(number));
                // SAFETY: `mapped` says that the range is ours; its module, the only one whose
                // probes write there, is gone.
                unsafe { kernel::unmap(address, end.wrapping_sub(start)) };
            }
        }
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
