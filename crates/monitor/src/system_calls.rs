//! System calls that the counts, or the signal of the breakpoints, depend on.

use std::io;

use headcount_model::LoadAddr;

use crate::kernel::{Phase, Registers};
use crate::monitor::Monitor;
use crate::sigtrap::{self, TRAP};
use crate::wait::Stopped;

const SIG_IGN: u64 = 1;
const ARCH_SET_GS: u64 = 0x1001;

/// A system call that a thread is in.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub number: i64,
    arguments: [u64; 4],
    /// Where the thread goes on after it.
    pub next: LoadAddr,
    /// The set of signals that `rt_sigprocmask` is given.
    set: Option<u64>,
    /// `rt_sigaction` is to make the program ignore SIGTRAP: it is told so, and no more.
    pretends: bool,
}

impl Call {
    fn of(registers: &Registers) -> Self {
        Self {
            number: registers.orig_rax as i64,
            arguments: [registers.rdi, registers.rsi, registers.rdx, registers.r10],
            next: LoadAddr(registers.rip),
            set: None,
            pretends: false,
        }
    }

    /// Is it about the signal of the breakpoints?
    fn sets_trap_action(&self) -> bool {
        self.number == libc::SYS_rt_sigaction && self.arguments[0] == libc::SIGTRAP as u64
    }

    /// Can it change what code there is?
    fn changes_code(&self) -> bool {
        let executable = self.arguments[2] & libc::PROT_EXEC as u64 != 0;
        match self.number {
            libc::SYS_mmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect => executable,
            libc::SYS_munmap | libc::SYS_mremap => true,
            _ => false,
        }
    }
}

impl Monitor<'_> {
    /// A system call begins or ends.
    pub fn system_call(&mut self, stopped: Stopped) -> io::Result<()> {
        match stopped.system_call_phase()? {
            Phase::Begin => self.call_begins(stopped),
            Phase::End => self.call_ends(stopped),
            Phase::Elsewhere => self.go_on(stopped, 0),
        }
    }

    fn call_begins(&mut self, stopped: Stopped) -> io::Result<()> {
        let mut registers = stopped.registers()?;
        let mut call = Call::of(&registers);
        if call.number == libc::SYS_arch_prctl && call.arguments[0] == ARCH_SET_GS {
            self.refuse_gs()?;
        }
        if call.number == libc::SYS_rt_sigreturn {
            self.handler_returns(&stopped, call.next)?;
        }
        let space = self.thread(&stopped).space;
        let memory = self.spaces.get(&space).map(|it| &it.memory);
        let word = |at: u64| memory.and_then(|it| it.read_word(LoadAddr(at)).ok());
        let second = call.arguments[1];
        if call.number == libc::SYS_rt_sigprocmask && second != 0 {
            call.set = word(second);
        }
        if call.sets_trap_action() && second != 0 && word(second) == Some(SIG_IGN) {
            call.pretends = true;
            registers.rsi = 0;
            stopped.set_registers(&registers)?;
        }
        self.thread(&stopped).call = Some(call);
        self.go_on(stopped, 0)
    }

    fn call_ends(&mut self, stopped: Stopped) -> io::Result<()> {
        let thread = self.thread(&stopped);
        thread.waits_for_child = false;
        if std::mem::take(&mut thread.is_reborn) {
            return self.begin_program(stopped);
        }
        let Some(call) = thread.call.take() else {
            return self.go_on(stopped, 0);
        };
        match call.number {
            libc::SYS_rt_sigprocmask => self.mask_was_set(stopped, &call),
            libc::SYS_rt_sigpending => self.pending_was_asked(stopped, &call),
            libc::SYS_rt_sigreturn => self.handler_returned(stopped, &call),
            libc::SYS_rt_sigaction if call.sets_trap_action() => {
                self.trap_action_was_set(stopped, &call)
            }
            _ if self.settings.libraries && call.changes_code() => {
                let stopped = self.look_at_modules(stopped)?;
                self.go_on(stopped, 0)
            }
            _ => self.go_on(stopped, 0),
        }
    }

    /// The program changed or asked which signals are blocked.
    fn mask_was_set(&mut self, stopped: Stopped, call: &Call) -> io::Result<()> {
        let [how, set_at, old_at, _] = call.arguments;
        let space = self.thread(&stopped).space;
        let was_blocked = self.thread(&stopped).trap_blocked;
        let worked = stopped.registers()?.rax == 0;
        if worked
            && was_blocked
            && old_at != 0
            && let Some(space) = self.spaces.get(&space)
        {
            sigtrap::show_in_set(&space.memory, LoadAddr(old_at))?;
        }
        let in_set = call.set.is_some_and(|set| set & TRAP != 0);
        sigtrap::unblock(&stopped)?;
        if worked && set_at != 0 {
            self.thread(&stopped).trap_blocked = match how as i32 {
                libc::SIG_BLOCK => was_blocked || in_set,
                libc::SIG_UNBLOCK => was_blocked && !in_set,
                _ => in_set,
            };
        }
        self.go_on_with_held_trap(stopped)
    }

    /// The program asked which signals wait for it. The kernel does not know of those we hold.
    fn pending_was_asked(&mut self, stopped: Stopped, call: &Call) -> io::Result<()> {
        let thread = self.thread(&stopped);
        let (space, is_held) = (thread.space, thread.holds_trap);
        let [set_at, size, ..] = call.arguments;
        if is_held
            && size == size_of::<u64>() as u64
            && stopped.registers()?.rax == 0
            && let Some(space) = self.spaces.get(&space)
        {
            sigtrap::show_in_set(&space.memory, LoadAddr(set_at))?;
        }
        self.go_on(stopped, 0)
    }

    /// A signal handler returned, to where its context says.
    fn handler_returned(&mut self, stopped: Stopped, call: &Call) -> io::Result<()> {
        self.departs(&stopped, call.next)?;
        let is_blocked = sigtrap::unblock(&stopped)?;
        self.thread(&stopped).trap_blocked = is_blocked;
        let at = LoadAddr(stopped.instruction_pointer()?);
        self.arrives(&stopped, at)?;
        self.go_on_with_held_trap(stopped)
    }

    fn go_on_with_held_trap(&mut self, stopped: Stopped) -> io::Result<()> {
        let thread = self.thread(&stopped);
        if thread.trap_blocked || !thread.holds_trap {
            return self.go_on(stopped, 0);
        }
        thread.holds_trap = false;
        self.go_on(stopped, libc::SIGTRAP)
    }

    fn trap_action_was_set(&mut self, stopped: Stopped, call: &Call) -> io::Result<()> {
        let [_, new_at, old_at, _] = call.arguments;
        let thread = self.thread(&stopped);
        let (space, pid) = (thread.space, thread.pid);
        let mut registers = stopped.registers()?;
        let worked = registers.rax == 0;
        let was_ignored = self.processes.get(&pid).is_some_and(|it| it.trap_ignored);
        if call.pretends {
            registers.rsi = new_at;
            stopped.set_registers(&registers)?;
        }
        if worked
            && was_ignored
            && old_at != 0
            && let Some(space) = self.spaces.get(&space)
        {
            space
                .memory
                .write(LoadAddr(old_at), &SIG_IGN.to_le_bytes())?;
        }
        if worked
            && new_at != 0
            && let Some(process) = self.processes.get_mut(&pid)
        {
            process.trap_ignored = call.pretends;
        }
        self.go_on(stopped, 0)
    }
}
