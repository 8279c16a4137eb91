//! Other processes: start them or attach to them, follow them, put breakpoints in, count what they
//! meet, and give everything back.
//!
//! After Bishop's execution monitor of 1987, with what he wished for: children are followed, a
//! running program can be attached to, and a breakpoint costs one trap. Breakpoints are never
//! lifted: the instruction below one runs in a slot nearby (`headcount_x86::out_of_line`), so that
//! no thread slips past.
//!
//! Why counts are exact:
//!
//! - A block's counter is how often its first instruction was reached, and taken back if it turns
//!   out that the instruction did not run (a fault, a signal that came first, the end).
//! - A visit that begins or ends inside of a block is a shift: when a process is attached to or
//!   let go, a thread is born or dies, a signal handler begins or returns, an indirect jump leads
//!   where no block was known to begin.
//! - System calls are watched, because they say what else must be known: where `sigreturn` goes,
//!   what is mapped, and what the program thinks of the signal that breakpoints use (`sigtrap`).
//!
//! Counts are on file as soon as they are made (`journal`).

pub mod journal;

mod attach;
mod births;
mod catalog;
mod debug_files;
mod fate;
mod hits;
mod image;
mod inject;
mod kernel;
mod launch;
mod memory;
mod modules;
mod monitor;
mod proc;
mod requests;
mod signals;
mod sigtrap;
mod space;
mod system_calls;
mod trial;
mod wait;

use std::io;
use std::rc::Rc;
use std::time::Duration;

use headcount_model::Module;

pub use catalog::analyse_bytes;

/// What to count, and how.
pub struct Settings<'a> {
    /// For each block of a module, in the order of its functions: is it counted?
    pub choose: &'a dyn Fn(&Module) -> Vec<bool>,
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
    /// Stop counting a block when it was met so often.
    pub limit: Option<u64>,
    /// When attached: let go after this time.
    pub duration: Option<Duration>,
    /// The name of a function for people to read.
    pub name: &'a dyn Fn(&str) -> String,
    /// Is told when a process that was attached to goes on, with all breakpoints in it.
    pub begun: &'a dyn Fn(),
    /// Is told now and then how many breakpoints were met.
    pub progress: &'a dyn Fn(u64),
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The program's exit status, or 128 + signal; `None` if it goes on.
    pub status: Option<i32>,
    /// How many breakpoints were met.
    pub hits: u64,
    /// The modules that were counted, in the journal's order.
    pub modules: Vec<Rc<Module>>,
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
    /// Something that should work did not.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
}

pub use attach::attach;
pub use launch::run;
pub use trial::{Step, trace_a_child};
