//! The runtime that every counted object file carries: assembler text in a COMDAT group.
//!
//! The text is made from `guest/` when this crate is built (`build.rs`). Appended to the assembler
//! text of any object, it needs nothing at link time: the linker keeps one copy in each program
//! and library, and that copy sets itself up when the module is loaded.
//!
//! Counted code meets it at four names, all hidden:
//!
//! - section `headcount_counters`, where counters are. A probe is
//!   `incq %gs:COUNTER(%rip)`.
//! - `headcount.ready`, a thread-local byte. A function that may be the first counted one of a
//!   thread begins with: if it is zero, call `headcount.enter`.
//! - `headcount.enter` keeps all registers but the flags, and wants no particular alignment.
//! - `headcount.after_fork`, likewise, is called after any call that may make a child process
//!   behind libc's back (`_Fork`, `clone`, `syscall`; and `fork` in a program linked statically
//!   with musl).

#[cfg(any(test, clippy))]
pub const LAYOUT: u64 = 0;

// Here for `cargo test` and `cargo clippy` only: the guest itself is compiled by `build.rs`.
#[cfg(any(test, clippy))]
#[cfg_attr(test, expect(dead_code, reason = "tests reach the pure parts"))]
#[path = "../guest/mod.rs"]
mod guest;

#[cfg(test)]
#[expect(dead_code, reason = "its user is build.rs")]
#[path = "../build/group.rs"]
mod group;

/// Two lines to stand at the beginning of a file, before its first counter.
pub const OPENING: &str = include_str!(concat!(env!("OUT_DIR"), "/opening.s"));

/// The runtime, in the syntax of the GNU assembler (AT&T), to stand at the end of a file.
pub const ASSEMBLY: &str = include_str!(concat!(env!("OUT_DIR"), "/runtime.s"));
