//! The bytes both sides agree on: what a counter file looks like.
//!
//! A counter file belongs to one module (an executable or a shared library) of one process and
//! of the children it forks. It is written through shared mappings, so it is whole from the
//! first count on, whatever becomes of the process:
//!
//! ```text
//! 0                       FileHeader, padded to HEADER_BYTES
//! HEADER_BYTES            slot 0: SlotHeader, padded to SLOT_HEADER_BYTES, then its counters
//! HEADER_BYTES + stride   slot 1
//! ...
//! ```
//!
//! A slot belongs to one thread at a time; the sum over all slots is the reading. A slot whose
//! `magic` is not there (yet), or that lies behind `length`, holds nothing. All numbers
//! are little-endian. Where no file could be made, the same header and slots live in anonymous
//! memory, each on its own page boundary, and are found in a core dump by their magics; slots with
//! another process's `pid` are copies that came with a fork, and count there, not here.
#![no_std]
#![forbid(unsafe_code)]

/// Raised whenever anything below, or the map in the `.headcount` section, changes.
pub const VERSION: u32 = 3;

/// First bytes of a [`FileHeader`].
pub const FILE_MAGIC: u64 = u64::from_le_bytes(*b"HdCtFile");
/// First bytes of a [`SlotHeader`].
pub const SLOT_MAGIC: u64 = u64::from_le_bytes(*b"HdCtSlot");

/// Size of a page: counters are mapped in these.
pub const PAGE: usize = 4096;
/// Room for the header of a file.
pub const HEADER_BYTES: usize = 4 * PAGE;
/// Room for the header of a slot; the counters follow at once.
pub const SLOT_HEADER_BYTES: usize = PAGE;
/// Longest path of a module that is kept whole.
pub const PATH_BYTES: usize = 4096;
/// How much of the command line is kept.
pub const COMMAND_BYTES: usize = 8192;

/// Default folder of counter files, below the current one.
pub const DEFAULT_FOLDER: &str = "headcount.counts";
/// Names another folder.
pub const FOLDER_VARIABLE: &str = "HEADCOUNT_DIR";
/// How every counter file's name ends.
pub const FILE_SUFFIX: &str = ".counts";
/// A counter file says nothing without the file of its module, so a copy of that is kept beside
/// it, once for each build: sixteen hexadecimal digits, the [`fingerprint`], and this.
pub const MODULE_SUFFIX: &str = ".module";
/// What a copy is called while it is written: like the counter file of who writes it, with this in
/// the place of [`FILE_SUFFIX`].
pub const PARTIAL_SUFFIX: &str = ".partial";

/// The section, mapped nowhere, that explains the counters of a module.
pub const MAP_SECTION: &str = ".headcount";
/// The section that holds a module's counters. (A C identifier, so that the linker makes
/// `__start_` and `__stop_` symbols for it.)
pub const COUNTERS_SECTION: &str = "headcount_counters";
/// The section of counters that nobody keeps: ordinary memory of programs that run without an
/// operating system. (A C identifier, too: such a program can write its counters out by itself.)
pub const MEMORY_SECTION: &str = "headcount_memory";
/// The section with one 16-byte identity an object: the module's fingerprint is made of them.
pub const IDS_SECTION: &str = "headcount_ids";

/// Begins a counter file.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FileHeader {
    /// [`FILE_MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// [`failure`] codes: what could not be kept, for the report to say.
    pub failures: u32,
    /// [`fingerprint`] of the module.
    pub fingerprint: u64,
    /// How many counters a slot has.
    pub counters: u64,
    /// Bytes from one slot to the next.
    pub stride: u64,
    /// How long the file was made, at least: one that is shorter was cut off.
    pub length: u64,
    /// Slots handed out so far.
    pub slots: u32,
    /// Process that made the file.
    pub pid: u32,
    /// When that process started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
    /// When the file was made, in nanoseconds since 1970.
    pub created: u64,
    /// Random: names this file for ever.
    pub id: [u8; 16],
    /// Bytes used of `path`.
    pub path_len: u32,
    /// Bytes used of `command`.
    pub command_len: u32,
    /// Path of the module.
    pub path: [u8; PATH_BYTES],
    /// The command line, arguments separated by NUL.
    pub command: [u8; COMMAND_BYTES],
}

/// Begins a slot.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SlotHeader {
    /// [`SLOT_MAGIC`], written last.
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// [`slot_state`] of the process that owns the slot.
    pub state: u32,
    /// [`fingerprint`] of the module.
    pub fingerprint: u64,
    /// How many counters follow.
    pub counters: u64,
    /// Process that counts here (the last one, where processes took turns: in a program that
    /// forks without end, a child takes over the slot of a process that is dead).
    pub pid: u32,
    /// Thread that counts here (the last one, where threads took turns).
    pub tid: u32,
    /// When that process started, as in [`FileHeader::start_ticks`].
    pub start_ticks: u64,
    /// [`FileHeader::id`] of the file, to find the parts of one run in a core dump.
    pub id: [u8; 16],
    /// The pid namespace that `pid` and `tid` are numbers of (its inode; 0 if not known).
    pub namespace: u64,
}

/// Values of [`SlotHeader::state`].
pub mod slot_state {
    /// The process was running, or died without passing through `exit`.
    pub const RUNNING: u32 = 1;
    /// The process called `exit` or returned from `main`, or closed the module (a plug-in).
    pub const EXITED: u32 = 2;
}

/// Bits of [`FileHeader::failures`].
pub mod failure {
    /// A thread's counts could be kept in memory only.
    pub const THREAD_IN_MEMORY: u32 = 1;
    /// A thread could not be counted at all: no place for its counters.
    pub const THREAD_LOST: u32 = 2;
    /// The program uses the gs register itself, so its threads cannot be told apart.
    pub const GS_IN_USE: u32 = 4;
    /// No counter file could be made: everything is in memory.
    pub const NO_FILE: u32 = 8;
}

/// Bytes from one slot to the next, for a module with this many counters.
#[inline]
pub const fn stride(counters: u64) -> u64 {
    let bytes = counters * 8;
    let page = PAGE as u64;
    SLOT_HEADER_BYTES as u64 + bytes.div_ceil(page) * page
}

/// Names a build by the identities of its objects, in link order, and its number of counters
/// (64-bit FNV-1a; both sides compute it, neither trusts it against malice).
#[inline]
pub fn fingerprint(ids: &[u8], counters: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |byte: u8| {
        hash ^= u64::from(byte);
        hash = hash.wrapping_mul(0x0100_0000_01b3);
    };
    ids.iter().for_each(|byte| eat(*byte));
    counters.to_le_bytes().iter().for_each(|byte| eat(*byte));
    hash
}

const _: () = assert!(size_of::<FileHeader>() <= HEADER_BYTES);
const _: () = assert!(size_of::<SlotHeader>() <= SLOT_HEADER_BYTES);
