//! The one gate: all waiting for other processes goes through here.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

use libc::{c_int, pid_t};

use crate::kernel::{self, Pace, Phase, Registers, SignalInfo, WholeSignal};
use crate::proc;

/// A thread held still. Only now can it be looked at. It stays stopped until it is resumed.
#[must_use = "a stopped thread stays stopped until it is resumed"]
#[derive(Debug)]
pub struct Stopped {
    tid: pid_t,
}

/// What became of a thread.
#[derive(Debug)]
pub enum Event {
    /// It stopped.
    Stop(Stopped, Stop),
    /// It ended, or (for a process's first thread) the whole process did.
    Ended(pid_t, Ending),
}

/// How a thread or process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With an exit status.
    Exit(c_int),
    /// By a signal.
    Signal(c_int),
}

impl Event {
    /// Whose it is.
    pub fn tid(&self) -> pid_t {
        match self {
            Self::Stop(stopped, _) => stopped.tid,
            Self::Ended(tid, _) => *tid,
        }
    }
}

impl Ending {
    /// The status a shell would show.
    pub fn status(self) -> i32 {
        match self {
            Self::Exit(status) => status,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal is about to be delivered.
    Signal(c_int),
    /// A clock of ours stopped it.
    Clock,
    /// A system call begins or ends.
    SystemCall,
    /// It made a thread or a process.
    Birth,
    /// It runs another program.
    Exec,
    /// It is about to end; its registers are still there.
    Dying,
    /// We asked for it, or it is new.
    Interrupted,
    /// Job control stopped it.
    JobControl,
}

thread_local! {
    /// What was seen where nobody could deal with it: it is told again.
    static PUT_BACK: RefCell<VecDeque<Event>> = const { RefCell::new(VecDeque::new()) };
}

/// What has happened already to any thread that we trace; `None` if nothing has.
pub fn look() -> io::Result<Option<Event>> {
    if let Some(event) = PUT_BACK.with_borrow_mut(VecDeque::pop_front) {
        return Ok(Some(event));
    }
    Ok(kernel::look(-1)?.map(|(tid, status)| event(tid, status)))
}

/// What comes next is this event, again.
pub fn put_back(event: Event) {
    PUT_BACK.with_borrow_mut(|events| events.push_back(event));
}

/// Waits until something happens to any thread that we trace. `None`: there is none.
pub fn wait() -> io::Result<Option<Event>> {
    if let Some(event) = PUT_BACK.with_borrow_mut(VecDeque::pop_front) {
        return Ok(Some(event));
    }
    Ok(kernel::wait(-1)?.map(|(tid, status)| event(tid, status)))
}

/// Finds out which of these threads stand still without anybody having been told why, or having
/// remembered it. What there is to tell of them is told again.
pub fn recover(threads: impl Iterator<Item = pid_t>) -> io::Result<()> {
    while let Some((tid, status)) = kernel::look(-1)? {
        put_back(event(tid, status));
    }
    let is_known =
        |tid: pid_t| PUT_BACK.with_borrow(|events| events.iter().any(|event| event.tid() == tid));
    for tid in threads.filter(|tid| !is_known(*tid)) {
        if let Some(status) = kernel::stop_status(tid) {
            put_back(event(tid, status));
        }
    }
    Ok(())
}

/// Waits for any thread, whatever interrupts us.
pub fn wait_for_any() -> io::Result<Event> {
    loop {
        match wait() {
            Ok(Some(event)) => return Ok(event),
            Ok(None) => return Err(kernel::gone()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for one thread that was just let go on. It may have been killed; the first thread of a
/// process does not tell so before all others are gone, and those may be waiting for us.
pub fn wait_for_one(tid: pid_t) -> io::Result<Event> {
    const OFTEN: u32 = 200;
    for round in 0_u32.. {
        if let Some((tid, status)) = kernel::look(tid)? {
            return Ok(event(tid, status));
        }
        if round < OFTEN {
            kernel::give_way();
        } else if proc::has_ended(tid) {
            break;
        } else {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }
    Err(io::Error::from_raw_os_error(libc::ESRCH))
}

/// Waits until a child ends that we have let go of. Its exit status, or 128 + signal.
pub fn wait_for_end(pid: pid_t) -> io::Result<i32> {
    loop {
        match kernel::wait(pid) {
            Ok(Some((tid, status))) => {
                if let Event::Ended(_, ending) = event(tid, status) {
                    return Ok(ending.status());
                }
            }
            Ok(None) => return Err(kernel::gone()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn event(tid: pid_t, status: c_int) -> Event {
    if libc::WIFEXITED(status) {
        return Event::Ended(tid, Ending::Exit(libc::WEXITSTATUS(status)));
    }
    if libc::WIFSIGNALED(status) {
        return Event::Ended(tid, Ending::Signal(libc::WTERMSIG(status)));
    }
    let signal = libc::WSTOPSIG(status);
    let stop = match status >> 16 {
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            Stop::Birth
        }
        libc::PTRACE_EVENT_EXEC => Stop::Exec,
        libc::PTRACE_EVENT_EXIT => Stop::Dying,
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupted,
        libc::PTRACE_EVENT_STOP => Stop::JobControl,
        _ if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
        _ if signal == libc::SIGTRAP && kernel::is_of_clock(tid) => Stop::Clock,
        _ => Stop::Signal(signal),
    };
    Event::Stop(Stopped { tid }, stop)
}

impl Stopped {
    /// The same thread, for a system call in its name: at its end the thread stands as before.
    pub fn lent(&self) -> Self {
        Self { tid: self.tid }
    }

    /// Its number.
    pub fn tid(&self) -> pid_t {
        self.tid
    }

    /// Its registers.
    pub fn registers(&self) -> io::Result<Registers> {
        kernel::registers(self.tid)
    }

    /// Changes its registers.
    pub fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        kernel::set_registers(self.tid, registers)
    }

    /// The address of its next instruction.
    pub fn instruction_pointer(&self) -> io::Result<u64> {
        kernel::instruction_pointer(self.tid)
    }

    /// Makes it go on somewhere else.
    pub fn go_to(&self, address: u64) -> io::Result<()> {
        kernel::set_instruction_pointer(self.tid, address)
    }

    /// About the signal it stopped for.
    pub fn signal_info(&self) -> Option<SignalInfo> {
        kernel::signal_info(self.tid)
    }

    /// All that the signal it stopped for says of itself.
    pub fn whole_signal(&self) -> io::Result<WholeSignal> {
        kernel::whole_signal(self.tid)
    }

    /// Makes it believe that it stopped for this signal.
    pub fn set_whole_signal(&self, signal: &WholeSignal) -> io::Result<()> {
        kernel::set_whole_signal(self.tid, signal)
    }

    /// Changes the address that the signal it stopped for speaks of, if it is `from`.
    pub fn correct_signal_address(&self, from: u64, to: u64) -> io::Result<()> {
        kernel::correct_signal_address(self.tid, from, to)
    }

    /// Which signals it blocks; bit 0 is signal 1.
    pub fn blocked_signals(&self) -> io::Result<u64> {
        kernel::blocked_signals(self.tid)
    }

    /// Changes which signals it blocks.
    pub fn set_blocked_signals(&self, set: u64) -> io::Result<()> {
        kernel::set_blocked_signals(self.tid, set)
    }

    /// The number that came with its event.
    pub fn event_message(&self) -> io::Result<u64> {
        kernel::event_message(self.tid)
    }

    /// Where in a system call it is.
    pub fn system_call_phase(&self) -> io::Result<Phase> {
        kernel::system_call_phase(self.tid)
    }

    /// Lets it go on.
    pub fn resume(self, pace: Pace, signal: c_int) -> io::Result<()> {
        kernel::resume(self.tid, pace, signal)
    }

    /// Lets go of it for good.
    pub fn detach(self, signal: c_int) -> io::Result<()> {
        kernel::detach(self.tid, signal)
    }
}
