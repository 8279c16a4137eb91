//! What calls cost: from the arrivals that a thread logs to costs of functions, calls and contexts.
//!
//! A thread logs where it arrives from other routines ([`Arrival`]), with the number of instructions
//! that it has executed so far. [`ThreadCalls`] follows it: it keeps the activations that are under
//! way and charges what was executed between two arrivals to the innermost one. [`CallSums`] adds up
//! what threads and processes executed.
//!
//! How activations begin and end is told by the stack pointer and the return address:
//!
//! - A call is an arrival at a routine's start whose return address is in the innermost activation.
//! - If stack pointer and return address are those of the innermost activation itself, it was left by
//!   a jump (a tail call): both end when the return address is reached.
//! - What arrives at a start with another return address was jumped to, or called by code that is not
//!   counted, or is a signal handler: it is a part of what the innermost activation cost.
//! - A return is an arrival at the return address of an activation, with the stack pointer from before
//!   the call. Whatever was called since has ended, too.
//! - Any other arrival in a routine is the innermost activation of that routine: an exception has
//!   landed, or `longjmp` has returned. Whatever was called from there has ended.
//! - Activations that ended in such a way may only be asleep, on a stack of their own (coroutines): if
//!   one of their calls returns later, they go on where they were.
#![forbid(unsafe_code)]

mod aside;
mod sums;
mod thread;

#[cfg(test)]
mod tests;

pub use sums::CallSums;
pub use thread::ThreadCalls;

/// A routine that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Routine {
    /// Number of its module.
    pub module: u32,
    /// Link address of its start.
    pub start: u64,
}

/// Where a routine is in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The routine.
    pub routine: Routine,
    /// What load addresses have more than link addresses.
    pub bias: u64,
}

/// The counted code of a process.
pub trait Code {
    /// The routine that a load address is in.
    fn routine(&self, at: u64) -> Option<Found>;
}

/// A thread arrived from another routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// How many instructions it had executed.
    pub events: u64,
    /// Its stack pointer.
    pub stack: u64,
    /// The return address, if it arrived at the start of a routine; else 0.
    pub back: u64,
    /// Where it arrived.
    pub at: u64,
}

/// How many bytes an arrival has in a log.
pub const ARRIVAL_BYTES: usize = 32;

impl Arrival {
    /// As it is in a log.
    pub fn read(bytes: &[u8; ARRIVAL_BYTES]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |number: usize| u64::from_le_bytes(words[number]);
        Self {
            events: word(0),
            stack: word(1),
            back: word(2),
            at: word(3),
        }
    }
}
