//! The dull twin: how often did each instruction run, found out by looking at every single one.
//!
//! It shares no code with headcount and has no idea of blocks, edges or counters. It is slow (some
//! 20 microseconds a step) and meant for small programs. Only the main executable is counted, in
//! all threads, and in all processes that run it.
//!
//! What it does not do: hide the trap flag from a program that looks at it with `pushf`, or stop a
//! program that stops itself with `SIGSTOP`. A program that blocks or ignores `SIGTRAP` gets it
//! unblocked and back to its default.

mod count;
mod functions;
mod image;
pub mod stated;
mod tracee;
mod walk;
mod workers;

pub use count::{Outcome, at_fixed_addresses, count, count_command, count_within, first_steps};
pub use functions::{by_function, other_names};
pub use walk::{Registers, registers_of, walk};
pub use workers::complaints;
