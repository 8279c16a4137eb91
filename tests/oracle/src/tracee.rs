//! One traced thread at a time: wait for it, look at it, let it go on.
//!
//! Signals are plain numbers here: glibc cancels threads with real-time signals, which `nix` has no
//! names for.

use std::io;

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;

/// What a thread did when we looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// It ended, with this status: an exit code or 128 + signal.
    Ended(i32),
    /// It stopped before a signal is delivered, or because of one.
    Signal(i32),
    /// It runs a new program now.
    Exec,
    /// It made a thread or a process.
    Birth,
    /// It is about to end; its registers are still there.
    Dying,
}

/// Waits until something happens to a thread that was started or is traced by the calling thread.
/// `None`: there is no such thread any more.
pub fn wait() -> io::Result<Option<(Pid, News)>> {
    loop {
        let mut status = 0;
        // Other tests trace their own programs in other threads of this process.
        let flags = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: `status` is a valid place for an int, and waitpid keeps no pointer to it.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, flags) };
        if pid > 0 {
            return Ok(Some((Pid::from_raw(pid), news(status))));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ECHILD) => return Ok(None),
            Some(libc::EINTR) => {}
            _ => return Err(error),
        }
    }
}

fn news(status: i32) -> News {
    if libc::WIFEXITED(status) {
        return News::Ended(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return News::Ended(128 + libc::WTERMSIG(status));
    }
    match status >> 16 {
        libc::PTRACE_EVENT_EXEC => News::Exec,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            News::Birth
        }
        libc::PTRACE_EVENT_EXIT => News::Dying,
        _ => News::Signal(libc::WSTOPSIG(status)),
    }
}

/// Asks to be told of every thread and process to come, and that none of them outlives us.
pub fn follow_all(pid: Pid) -> io::Result<()> {
    use ptrace::Options;
    let options = Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEEXIT
        | Options::PTRACE_O_EXITKILL;
    Ok(ptrace::setoptions(pid, options)?)
}

/// The address of the instruction that comes next.
pub fn next_instruction(pid: Pid) -> io::Result<u64> {
    Ok(ptrace::getregs(pid)?.rip)
}

/// Makes the thread go on somewhere else.
pub fn move_to(pid: Pid, address: u64) -> io::Result<()> {
    let mut registers = ptrace::getregs(pid)?;
    registers.rip = address;
    Ok(ptrace::setregs(pid, registers)?)
}

/// Why the signal of this stop was sent (`si_code`); `None` if the stop is not for a signal.
pub fn signal_code(pid: Pid) -> Option<i32> {
    Some(ptrace::getsiginfo(pid).ok()?.si_code)
}

/// Who the thread was before it ran a new program.
pub fn former_self(pid: Pid) -> io::Result<Pid> {
    Ok(Pid::from_raw(ptrace::getevent(pid)? as libc::pid_t))
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One instruction.
    Step,
    /// Until something happens.
    Run,
}

/// Lets the thread go on, with a signal unless it is 0.
pub fn resume(pid: Pid, pace: Pace, signal: i32) -> io::Result<()> {
    let request = match pace {
        Pace::Step => libc::PTRACE_SINGLESTEP,
        Pace::Run => libc::PTRACE_CONT,
    };
    // SAFETY: these two requests take numbers, no pointers.
    let result = unsafe { libc::ptrace(request, pid.as_raw(), 0_usize, signal as usize) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // It was killed while stopped; `wait` will say so.
        Some(libc::ESRCH) => Ok(()),
        _ => Err(error),
    }
}
