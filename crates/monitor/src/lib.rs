//! Other processes: start them or attach to them, follow them, count what they run, and give
//! everything back.
//!
//! After Bishop's execution monitor of 1987, with what he wished for: children are followed, a
//! running program can be attached to, and counting is cheap. There are two engines.
//!
//! **Detours** ([`Engine::Detour`]). Every routine runs in a copy that counts, near its module
//! (`headcount_patch`). Calls are made from where they always stood, so return addresses are what
//! they were, and so is all that looks at them. A routine is decoded and copied when it first runs
//! (`workshop`); until then a trap guards its start, and afterwards jumps lead into the copy.
//! Each thread has counters of its own, behind its `gs` (`windows`).
//!
//! **Breakpoints** ([`Engine::Breakpoint`]). Every block that is counted traps, and is counted
//! here. Breakpoints are never lifted: the instruction below one runs in a slot nearby
//! (`headcount_x86::out_of_line`), so that no thread slips past, and one trap is enough.
//!
//! Why counts are exact:
//!
//! - Copies count edges and blocks of a flow graph in which calls leave and returns arrive, so
//!   nothing depends on whether a call comes back: `exit`, `longjmp` and exceptions are edges too.
//! - What the graph does not show is a visit (with breakpoints, a shift): a thread that came to an
//!   instruction, or went away from it, by no edge. That is so when a process is attached to or
//!   let go, when a thread is born or dies, and when a signal handler begins or returns. What the
//!   probes on its way have counted too much or too little by then is put right.
//! - A thread that arrives where nobody expected it meets a trap, for all dead bytes of the
//!   original trap. It goes on in the copy, and that is a visit.
//! - With breakpoints, a block's counter is how often its first instruction was reached, and taken
//!   back if it turns out that the instruction did not run. Indirect jumps are watched: they may
//!   lead where no block was known to begin.
//! - System calls are watched, because they say what else must be known: where `sigreturn` goes,
//!   what is mapped, and what the program thinks of the signal that traps use (`sigtrap`).
//!
//! Counts are on file as soon as they are made (`journal`).

pub mod foreign_file;
pub mod journal;
pub mod live;

mod address_limit;
mod attach;
mod births;
mod calls;
mod catalog;
mod copied_modules;
mod copies;
mod countdown;
mod crossings;
mod debug_files;
mod detours;
mod event_use;
mod fate;
mod foreign_tracers;
mod hits;
mod image;
mod inherited;
mod inject;
mod interpreted;
mod interrupted_calls;
mod keeper;
mod kernel;
mod launch;
mod made_code;
mod memory;
mod module_file;
mod modules;
mod monitor;
mod own_folder;
mod passing;
mod prepared;
mod privileges;
mod proc;
mod requests;
mod runtimes;
mod signals;
mod sigtrap;
mod space;
mod system_calls;
mod tallies;
mod tally_hits;
pub mod thread_counts;
mod thread_windows;
mod trial;
mod used_before;
pub mod values;
mod wait;
mod window_mapping;
mod windows;
mod workshop;

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use headcount_model::{LinkAddr, LoadAddr, LoadBias, Module};

pub use catalog::{Analysed, analyse_bytes, analyse_counted};
pub use debug_files::find as find_debug_file;
pub use headcount_binary::FileBytes;
pub use headcount_patch::Originals;
pub use module_file::ModuleFile;
pub use own_folder::OwnFolder;

/// How a program is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Its routines run in copies that count.
    Detour,
    /// Every block traps.
    Breakpoint,
}

/// What to count, and how.
pub struct Settings<'a> {
    /// How.
    pub engine: Engine,
    /// For each block of a module, in the order of its functions: is it counted?
    pub choose: &'a dyn Fn(&Module) -> Vec<bool>,
    /// For copies: which code of a module, with this path, this key and these bytes, is to be counted?
    /// `None`: all of it.
    pub wanted: &'a dyn Fn(&str, &str, &FileBytes) -> Option<CodeRanges>,
    /// Why nothing of a module is chosen, as a sentence for the report, if that needs words.
    pub why_nothing: &'a dyn Fn(&Module) -> Option<String>,
    /// Is the module with this path counted? The flag says whether it is the program itself.
    pub wants: &'a dyn Fn(&str, bool) -> bool,
    /// May other modules than the program itself be wanted?
    pub libraries: bool,
    /// Look where indirect jumps lead. Needed unless only entries of functions are counted.
    pub watch_jumps: bool,
    /// Follow children.
    pub follow: bool,
    /// When the program has ended: count its children to their end, too.
    pub wait: bool,
    /// Stop counting a block when it was met so often.
    pub limit: Option<u64>,
    /// What all runs of the user's command have in common; empty if this is the only one.
    pub batch: &'a str,
    /// Also find out what every call costs.
    pub calls: bool,
    /// Also find out what every thread counted.
    pub by_thread: bool,
    /// Count by value.
    pub tallying: Option<Tallying<'a>>,
    /// Stop when a thread has come so far.
    pub until: Option<Until<'a>>,
    /// When attached: let go after this time.
    pub duration: Option<Duration>,
    /// What earlier runs prepared of the module with this fingerprint.
    pub recall: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// Is given what this run prepared, for later ones.
    pub remember: &'a dyn Fn(&str, &[u8]),
    /// The name of a function for people to read.
    pub name: &'a dyn Fn(&str) -> String,
    /// Is there hardly any memory left for us?
    pub is_short_of_memory: &'a dyn Fn() -> bool,
    /// Is told when a process that was attached to goes on, and is counted.
    pub begun: &'a dyn Fn(),
    /// Is told now and then how many traps were met.
    pub progress: &'a dyn Fn(u64),
    /// Is there an event with this name that the program may ask for?
    pub has_event: &'a dyn Fn(&str) -> bool,
    /// How many of them there have been, when the program asks.
    pub answer: &'a dyn Fn(Asked<'_>) -> Result<u64, NoAnswer>,
    /// Whoever looks at the program from outside meanwhile.
    pub onlooker: Option<&'a dyn Onlooker>,
}

/// What a program asks for about itself.
pub struct Asked<'a> {
    /// The name of an event.
    pub event: &'a str,
    /// What the run has counted at that moment.
    pub so_far: live::SoFar,
    /// The modules that are counted by breakpoints, in the journal's order.
    pub modules: &'a [Rc<Module>],
    /// The files of all modules, in the same order.
    pub files: &'a [ModuleFile],
}

/// Nobody can tell, for what was asked for is not counted, or something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAnswer;

/// How far a thread is to come before everything stops.
pub struct Until<'a> {
    /// What is counted down.
    pub event: UntilEvent<'a>,
    /// How many of them.
    pub times: u64,
    /// Is everything to go on then? Else it is let go of, and stays stopped.
    pub goes_on: bool,
}

/// What is counted down.
#[derive(Clone, Copy)]
pub enum UntilEvent<'a> {
    /// Instructions that are counted.
    Instructions,
    /// Entries of functions: where they begin in the module with this path, this key and these bytes.
    Calls(&'a dyn Fn(&str, &str, &FileBytes) -> Vec<LinkAddr>),
}

/// Looks at a program from outside while it is counted, and is told what is in its memory that is not
/// the program's own.
pub trait Onlooker {
    /// A process is about to become the program.
    fn begins(&self, pid: i32);
    /// A process has room for copies of a module's code: where, and how far its module was moved.
    /// What is made for it comes under the same number.
    fn has_room(&self, pid: i32, region: Range<u64>, bias: LoadBias, number: usize);
    /// A copy is at this offset in every such room, and has so many bytes.
    fn has_copy(&self, number: usize, offset: u64, length: u64, originals: Originals);
    /// A clock that stops a thread now and then, with SIGTRAP and this mark.
    fn clock_of(&self, tid: i32, mark: u64) -> Option<Clock>;
}

/// A clock that stops a thread again and again.
#[derive(Debug)]
pub struct Clock {
    /// As long as this is open.
    pub descriptor: OwnedFd,
    /// How many nanoseconds on a processor are between two stops.
    pub interval: u64,
}

/// Ranges of link addresses, in order; they do not overlap.
pub type CodeRanges = Vec<Range<u64>>;

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The program's exit status, or 128 + signal; if we were asked to end before it did, 128 and that
    /// signal; `None` if the program is not ours and goes on.
    pub status: Option<i32>,
    /// Why counting ended before the program did, if it had to. The program was let go of, and ran
    /// on by itself.
    pub trouble: Option<io::Error>,
    /// Where a thread has come so far as it was to.
    pub reached: Option<Reached>,
    /// How many traps of ours were met: breakpoints, or what leads into copies.
    pub hits: u64,
    /// What took a tenth of the time or more.
    pub costly: Vec<CostlyStops>,
    /// The modules that were counted by breakpoints, in the journal's order.
    pub modules: Vec<Rc<Module>>,
    /// The files of all modules, in the same order, as they were when they were mapped.
    pub files: Vec<ModuleFile>,
}

/// Where a thread stood when it had come so far as it was to.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The process that was started.
    pub main: i32,
    /// Its own process.
    pub pid: i32,
    /// All processes that were counted. If they do not go on, they stand still.
    pub processes: Vec<i32>,
    /// The thread.
    pub tid: i32,
    /// Its next instruction.
    pub at: LoadAddr,
    /// The same in a file, by its number in the journal.
    pub in_file: Option<(usize, LinkAddr)>,
    /// How many events there were.
    pub times: u64,
}

/// Stops of threads that took a good part of the time.
#[derive(Clone, Copy, Debug)]
pub struct CostlyStops {
    /// Why they had to be.
    pub why: WhyStopped,
    /// The module whose code is the reason, by its number in the journal.
    pub module: usize,
    /// Where that is, or most of it.
    pub at: LinkAddr,
    /// How often threads stopped.
    pub times: u64,
}

/// Why threads had to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyStopped {
    /// There is no room for a jump into the copy, at so many places.
    NoRoom(usize),
    /// Code that is not counted may make a system call, so that all calls are watched.
    MayCall,
}

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("{0}: not found")]
    NotFound(String),
    /// It cannot be run.
    #[error("{0}: {1}")]
    CannotRun(String, io::Error),
    /// The kernel does not let us trace.
    #[error("process {0} may not be traced: {1}. `headcount doctor` says what this machine allows")]
    NotAllowed(i32, io::Error),
    /// Somebody else does.
    #[error("process {0} is already traced by process {1}{2}; only one can")]
    AlreadyTraced(i32, i32, String),
    /// It is not there.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// Not that one.
    #[error("process {0} is {1}; that cannot be counted")]
    NotThatOne(i32, &'static str),
    /// Nothing of the program is counted.
    #[error("process {0}: {1}")]
    NothingToCount(i32, String),
    /// What was asked for makes no sense.
    #[error("{0}")]
    Asked(String),
    /// Something that should work did not.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
}

pub use attach::{attach, descendants};
pub use inherited::{give_back_to, limits_left, with_room};
pub use interpreted::Interpreted;
pub use keeper::leave_to_keeper;
pub use kernel::kill;
pub use launch::{is_elf, run};
pub use proc::code_files;
pub use tallies::{KeyedIn, TallyAsked, Tallying};
pub use trial::{Step, trace_a_child};
pub use wait::Ending;
pub use wait::wait_for_end;
