//! Signals reach the program as if we were not there.

use std::io;

use libc::c_int;

use crate::fate::Fate;
use crate::kernel::Pace;
use crate::monitor::Monitor;
use crate::proc;
use crate::sigtrap;
use crate::wait::Stopped;
use headcount_model::LoadAddr;

/// `si_code` after a single step.
const STEPPED: i32 = 2;

/// Signals that dump core unless something is done about them.
const DUMPS_CORE: [c_int; 10] = [
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGSYS,
];

/// The bit of a signal in a set.
pub fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

impl Monitor<'_> {
    /// A signal is about to be delivered to a thread.
    pub fn deliver(&mut self, stopped: Stopped, signal: c_int) -> io::Result<()> {
        let at = self.leave_slot(&stopped)?;
        if signal == libc::SIGTRAP && self.holds_trap(&stopped) {
            return self.go_on(stopped, 0);
        }
        let dispositions = proc::signals(stopped.tid()).unwrap_or_default();
        if dispositions.caught & bit(signal) != 0 {
            self.thread(&stopped).enters_handler = true;
            // The handler may never come back; `sigreturn` is where it does.
            self.departs(&stopped, at)?;
            return stopped.resume(Pace::Step, signal);
        }
        if dispositions.ignored & bit(signal) == 0 {
            self.may_die_of(&stopped, signal, at);
            self.show_clean_code(&stopped, signal)?;
        }
        self.go_on(stopped, signal)
    }

    /// A core dump shows the code as it is without us. (Where other threads still run, they are
    /// counted to the end instead.)
    fn show_clean_code(&mut self, stopped: &Stopped, signal: c_int) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let threads = self.threads.values().filter(|it| it.space == space);
        match self.spaces.get_mut(&space) {
            Some(space) if threads.count() == 1 && DUMPS_CORE.contains(&signal) => space.restore(),
            _ => Ok(()),
        }
    }

    /// Should a SIGTRAP of the program's own wait, or be ignored?
    fn holds_trap(&mut self, stopped: &Stopped) -> bool {
        let thread = self.thread(stopped);
        let pid = thread.pid;
        if thread.trap_blocked {
            thread.holds_trap = true;
            return true;
        }
        self.processes.get(&pid).is_some_and(|it| it.trap_ignored)
    }

    /// Remembers what a process may be about to die of.
    pub fn may_die_of(&mut self, stopped: &Stopped, signal: c_int, at: LoadAddr) {
        let pid = self.thread(stopped).pid;
        let place = self.place(stopped, at);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.fate = Some(Fate { signal, place });
        }
    }

    /// A thread stands before the first instruction of a signal handler.
    pub fn entered_handler(&mut self, stopped: Stopped) -> io::Result<()> {
        self.handler_begins(&stopped)?;
        self.go_on(stopped, 0)
    }

    /// The same, without letting it go on.
    pub fn handler_begins(&mut self, stopped: &Stopped) -> io::Result<()> {
        let thread = self.thread(stopped);
        thread.enters_handler = false;
        let (space, was_blocked) = (thread.space, thread.trap_blocked);
        if stopped.signal_info().is_some_and(|it| it.code == STEPPED) {
            // There was no handler after all, and one instruction was run instead.
            let at = LoadAddr(stopped.instruction_pointer()?);
            return self.arrives(stopped, at);
        }
        if was_blocked && let Some(space) = self.spaces.get(&space) {
            sigtrap::show_in_context(&space.memory, stopped)?;
        }
        let is_blocked = sigtrap::unblock(stopped)?;
        self.thread(stopped).trap_blocked |= is_blocked;
        Ok(())
    }
}
