//! The signal that breakpoints use, and what the program thinks of it.
//!
//! When a thread meets a breakpoint while it blocks or ignores SIGTRAP, the kernel unblocks it and
//! throws the program's handler away (`force_sig`). So it is never really blocked or ignored. We
//! remember what the program believes, and show it that where it looks.

use std::io;

use headcount_model::LoadAddr;

use crate::memory::Memory;
use crate::signals::bit;
use crate::wait::Stopped;

/// SIGTRAP in a signal set.
pub const TRAP: u64 = bit_of_trap();

const fn bit_of_trap() -> u64 {
    1 << (libc::SIGTRAP - 1)
}

/// Where the signal mask is in a `ucontext` (the kernel's layout of x86-64).
const MASK_IN_CONTEXT: u64 = 296;

/// Makes sure that a thread does not really block SIGTRAP. Did it?
pub fn unblock(stopped: &Stopped) -> io::Result<bool> {
    let blocked = stopped.blocked_signals()?;
    let is_blocked = blocked & bit(libc::SIGTRAP) != 0;
    if is_blocked {
        stopped.set_blocked_signals(blocked & !TRAP)?;
    }
    Ok(is_blocked)
}

/// Adds SIGTRAP to the signal set at an address of the program.
pub fn show_in_set(memory: &Memory, at: LoadAddr) -> io::Result<()> {
    let set = memory.read_word(at)?;
    memory.write(at, &(set | TRAP).to_le_bytes())
}

/// At the entry of a signal handler: adds SIGTRAP to the signals that will be blocked again when it
/// returns.
pub fn show_in_context(memory: &Memory, stopped: &Stopped) -> io::Result<()> {
    // The third argument of a handler points to the context, whether it asked for it or not.
    let context = stopped.registers()?.rdx;
    show_in_set(memory, LoadAddr(context.wrapping_add(MASK_IN_CONTEXT)))
}
