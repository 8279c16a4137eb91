//! Does this machine let us trace at all? The best answer is to try.

use std::io;

use headcount_model::LoadAddr;
use libc::pid_t;

use crate::kernel;
use crate::memory::Memory;

/// What was tried when it went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To make a child.
    Fork,
    /// To trace it.
    Trace,
    /// To ask what system call it is in (`PTRACE_GET_SYSCALL_INFO`, since Linux 5.3).
    SystemCall,
    /// To write into its memory, through `/proc/PID/mem`.
    Memory,
}

/// Traces a child that does nothing, as `run` traces a program, and lets it go.
pub fn trace_a_child() -> Result<(), (Step, io::Error)> {
    // It never comes to be that program: it is ended before.
    let held =
        kernel::fork_and_hold(&[c"true".to_owned()], false).map_err(|it| (Step::Fork, it))?;
    let result = trace(held.pid);
    held.end();
    result
}

fn trace(pid: pid_t) -> Result<(), (Step, io::Error)> {
    let tracing = |it| (Step::Trace, it);
    kernel::seize(pid, true).map_err(tracing)?;
    kernel::interrupt(pid).map_err(tracing)?;
    kernel::wait(pid).map_err(tracing)?;
    kernel::system_call_phase(pid).map_err(|it| (Step::SystemCall, it))?;
    let here = kernel::instruction_pointer(pid).map_err(tracing)?;
    rewrite(pid, LoadAddr(here)).map_err(|it| (Step::Memory, it))?;
    kernel::detach(pid, 0).map_err(tracing)
}

/// Writes a byte of the code where it was.
fn rewrite(pid: pid_t, at: LoadAddr) -> io::Result<()> {
    let memory = Memory::of(pid)?;
    let mut byte = [0];
    memory.read(at, &mut byte)?;
    memory.write(at, &byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_traced_and_nothing_is_left_of_it() {
        trace_a_child().expect("tests need a machine that lets us trace");
        let left = kernel::wait(-1).expect("nobody interrupts");
        assert_eq!(left, None);
    }
}
