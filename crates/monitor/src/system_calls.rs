//! System calls that the counts, or the signal of our traps, depend on.
//!
//! Where all code runs in copies, they trap by their number before such a call, and only then is
//! the call watched. Where other code may make one, every system call is.

use std::io;

use headcount_model::LoadAddr;
use libc::{c_int, c_uint, pid_t};

use crate::address_limit::LimitCall;
use crate::attach::Held;
use crate::foreign_tracers::{Foreign, Way};
use crate::inject;
use crate::kernel::{Pace, Phase, Registers};
use crate::monitor::{Monitor, Thread};
use crate::sigtrap::{self, TRAP};
use crate::space::Space;
use crate::wait::{Stop, Stopped};

const SIG_IGN: u64 = 1;
const ARCH_SET_GS: u64 = 0x1001;

/// How long a `syscall` instruction is.
const SYSCALL_BYTES: u64 = 2;

/// Calls that may have to be watched; what they are told decides.
const WATCHED: [i64; 21] = [
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_pkey_mprotect,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_arch_prctl,
    libc::SYS_clone,
    libc::SYS_vfork,
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_prctl,
    libc::SYS_seccomp,
    libc::SYS_prlimit64,
    libc::SYS_setrlimit,
    libc::SYS_getrlimit,
];

/// For each number: does a copy trap before the call? (All that follow do not.)
pub fn table() -> [u8; 512] {
    let mut table = [0; 512];
    for number in WATCHED {
        table[number as usize] = 1;
    }
    table
}

/// A signal handler that has not returned: where its frame is, and the return address there.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    pub frame: u64,
    pub returns_to: u64,
}

/// A system call that a thread is in.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub number: i64,
    pub arguments: [u64; 4],
    /// Where the thread goes on after it.
    pub next: LoadAddr,
    /// The set of signals that `rt_sigprocmask` is given.
    set: Option<u64>,
    /// `rt_sigaction` is to make the program ignore SIGTRAP: it is told so, and no more.
    pretends: bool,
    /// What it answers, if it was done without the kernel.
    answer: Option<i64>,
    /// It was skipped, and is to be made again when what must come before it is done.
    is_put_off: bool,
}

impl Call {
    fn of(registers: &Registers) -> Self {
        Self {
            number: registers.orig_rax as i64,
            arguments: [registers.rdi, registers.rsi, registers.rdx, registers.r10],
            next: LoadAddr(registers.rip),
            set: None,
            pretends: false,
            answer: None,
            is_put_off: false,
        }
    }

    /// Is it about the signal of our traps?
    fn sets_trap_action(&self) -> bool {
        self.number == libc::SYS_rt_sigaction && self.arguments[0] == libc::SIGTRAP as u64
    }

    /// Can it change what code of a process there is?
    fn changes_code(&self, space: &Space) -> bool {
        let [at, length, third, fourth] = self.arguments;
        let is_executable = third & libc::PROT_EXEC as u64 != 0;
        let touches = || {
            let end = at.saturating_add(length);
            space.code().any(|it| it.start < end && at < it.end)
        };
        match self.number {
            libc::SYS_mmap => is_executable || fourth & libc::MAP_FIXED as u64 != 0 && touches(),
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => is_executable || touches(),
            libc::SYS_munmap => touches(),
            libc::SYS_mremap => fourth & libc::MREMAP_FIXED as u64 != 0 || touches(),
            _ => false,
        }
    }

    /// How a child is to be, if it makes one.
    fn child_flags(&self, space: &Space) -> u64 {
        match self.number {
            libc::SYS_vfork => libc::CLONE_VFORK as u64,
            libc::SYS_clone => self.arguments[0],
            libc::SYS_clone3 => {
                let flags = space.memory.read_word(LoadAddr(self.arguments[0]));
                flags.unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Does it make the memory of its process unreadable for others?
    pub fn hides(&self) -> bool {
        let [option, value, ..] = self.arguments;
        self.number == libc::SYS_prctl && option == libc::PR_SET_DUMPABLE as u64 && value != 1
    }

    /// Does it take the register for the program that copies count by?
    pub fn takes_gs(&self) -> bool {
        self.number == libc::SYS_arch_prctl && self.arguments[0] == ARCH_SET_GS
    }

    /// Who is to be traced by somebody else, or where we could not trace?
    pub fn foreign_tracing(&self, space: &Space) -> Option<Foreign> {
        let is_untraced = self.child_flags(space) & libc::CLONE_UNTRACED as u64 != 0;
        if self.number != libc::SYS_ptrace {
            return is_untraced.then_some(Foreign::Child);
        }
        match self.arguments[0] as c_uint {
            libc::PTRACE_TRACEME => Some(Foreign::Itself),
            libc::PTRACE_ATTACH | libc::PTRACE_SEIZE => {
                Some(Foreign::Other(self.arguments[1] as pid_t))
            }
            _ => None,
        }
    }

    /// Does it forbid the process system calls?
    fn filters_calls(&self) -> bool {
        match self.number {
            libc::SYS_seccomp => true,
            libc::SYS_prctl => self.arguments[0] == libc::PR_SET_SECCOMP as u64,
            _ => false,
        }
    }

    /// Is there anything about it that we must know?
    fn matters(&self, thread: &Thread, space: &Space) -> bool {
        let [_, second, ..] = self.arguments;
        let blocks_trap = || {
            let set = space.memory.read_word(LoadAddr(second));
            second != 0 && set.is_ok_and(|set| set & TRAP != 0)
        };
        match self.number {
            libc::SYS_rt_sigreturn | libc::SYS_execve | libc::SYS_execveat => true,
            libc::SYS_rt_sigaction => self.sets_trap_action(),
            libc::SYS_rt_sigprocmask => thread.trap_blocked || blocks_trap(),
            libc::SYS_rt_sigpending => thread.holds_trap,
            libc::SYS_arch_prctl => self.takes_gs(),
            libc::SYS_clone | libc::SYS_clone3 | libc::SYS_vfork => {
                let notable = (libc::CLONE_VFORK | libc::CLONE_UNTRACED) as u64;
                self.child_flags(space) & notable != 0
            }
            libc::SYS_ptrace => self.foreign_tracing(space).is_some(),
            libc::SYS_prctl => self.hides(),
            libc::SYS_seccomp => false,
            libc::SYS_prlimit64 | libc::SYS_setrlimit | libc::SYS_getrlimit => {
                LimitCall::of(self, thread.pid).is_some()
            }
            _ => self.changes_code(space),
        }
    }
}

impl Monitor<'_> {
    /// Lets a thread go on as programs do; or lets go of its process, if that was given up.
    pub fn go_on(&mut self, stopped: Stopped, signal: c_int) -> io::Result<()> {
        let space = self.threads.get(&stopped.tid()).map(|it| it.space);
        if let Some(space) = space.filter(|it| self.is_given_up(*it)) {
            let stop = match signal {
                0 => Stop::Interrupted,
                signal => Stop::Signal(signal),
            };
            let held = Held::from([(stopped.tid(), (stopped, stop))]);
            return self.let_go_of_space(space, held);
        }
        let thread = self.threads.get(&stopped.tid());
        if signal == 0 && thread.is_some_and(|it| it.asks.is_some()) {
            self.park(stopped);
            return Ok(());
        }
        let watch = self.must_watch(stopped.tid());
        let pace = match self.stepping_pace(&stopped, watch)? {
            Some(pace) => pace,
            None if watch => Pace::ToSystemCall,
            None => Pace::Free,
        };
        stopped.resume(pace, signal)
    }

    /// Is an address space to be let go of before one of its threads goes on?
    pub fn is_given_up(&self, space: usize) -> bool {
        let space = self.spaces.get(&space);
        space.is_some_and(|it| it.copies.is_given_up)
    }

    /// Must the next system call of a thread be seen, whichever it is?
    fn must_watch(&self, tid: pid_t) -> bool {
        let Some(thread) = self.threads.get(&tid) else {
            return true;
        };
        let is_sure = |space: &Space| {
            let modules = &mut space.copies.modules.iter();
            !space.copies.has_other_code && modules.all(|it| self.workshops[it.workshop].is_tight())
        };
        thread.is_watched
            || thread.is_reborn
            || thread.call.is_some()
            || !thread.handlers.is_empty()
            || self.windows.is_none()
            || !self.spaces.get(&thread.space).is_some_and(is_sure)
    }

    /// A thread in a copy is about to make a system call that may matter.
    pub fn may_watch_call(&mut self, stopped: &Stopped) -> io::Result<()> {
        let mut registers = stopped.registers()?;
        // The kernel looks at no more of it.
        registers.orig_rax = registers.rax as u32 as u64;
        let call = Call::of(&registers);
        if call.filters_calls() {
            self.map_ahead(stopped)?;
        }
        let thread = &self.threads[&stopped.tid()];
        let space = self.spaces.get(&thread.space);
        if space.is_none_or(|space| call.matters(thread, space)) {
            self.thread(stopped).is_watched = true;
        }
        Ok(())
    }

    /// A signal handler returns through a routine that is guarded: that does no more than to put
    /// the number of a system call into a register. The call is so many bytes behind `at`.
    pub fn handler_comes_back(
        &mut self,
        stopped: &Stopped,
        at: LoadAddr,
        call: u64,
    ) -> io::Result<bool> {
        let mut registers = stopped.registers()?;
        registers.rax = libc::SYS_rt_sigreturn as u64;
        registers.rip = at.0 + call;
        stopped.set_registers(&registers)?;
        self.thread(stopped).is_watched = true;
        Ok(true)
    }

    /// Forgets handlers that will not return: something else is where their frames were.
    fn forget_dead_handlers(&mut self, stopped: &Stopped) {
        let Some(thread) = self.threads.get_mut(&stopped.tid()) else {
            return;
        };
        let memory = self.spaces.get(&thread.space).map(|it| &it.memory);
        let word = |at: u64| memory.and_then(|it| it.read_word(LoadAddr(at)).ok());
        let handlers = &mut thread.handlers;
        handlers.retain(|it| word(it.frame) == Some(it.returns_to));
    }

    /// A system call begins or ends.
    pub fn system_call(&mut self, stopped: Stopped) -> io::Result<()> {
        self.watched_calls += 1;
        match stopped.system_call_phase()? {
            Phase::Begin => self.call_begins(stopped),
            Phase::End => self.call_ends(stopped),
            Phase::Elsewhere => self.go_on(stopped, 0),
        }
    }

    fn call_begins(&mut self, stopped: Stopped) -> io::Result<()> {
        let mut registers = stopped.registers()?;
        let mut call = Call::of(&registers);
        if call.number == libc::SYS_rt_sigreturn {
            self.handler_returns(&stopped, call.next)?;
            let frame = registers.rsp.wrapping_sub(8);
            self.thread(&stopped)
                .handlers
                .retain(|it| it.frame != frame);
        }
        if matches!(call.number, libc::SYS_execve | libc::SYS_execveat) {
            self.read_before_exec(&stopped)?;
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
        // Where we may not touch the limits of a process, the kernel does as it is told.
        if let Some(limit) = LimitCall::of(&call, self.thread(&stopped).pid)
            && let Ok(answer) = self.do_limit_call(&stopped, limit)
        {
            call.answer = Some(answer);
            registers.orig_rax = u64::MAX;
            stopped.set_registers(&registers)?;
        }
        let is_unready = call.filters_calls() && self.may_map_ahead(space);
        if is_unready || self.makes_way(&stopped, &call)? == Way::Later {
            call.is_put_off = true;
            registers.orig_rax = u64::MAX;
            stopped.set_registers(&registers)?;
        }
        self.thread(&stopped).call = Some(call);
        self.go_on(stopped, 0)
    }

    fn call_ends(&mut self, stopped: Stopped) -> io::Result<()> {
        if std::mem::take(&mut self.thread(&stopped).waits_for_child) {
            self.find_window_again(&stopped)?;
        }
        let thread = self.thread(&stopped);
        if std::mem::take(&mut thread.is_reborn) {
            return self.begin_program(stopped);
        }
        let Some(call) = thread.call.take() else {
            return self.go_on(stopped, 0);
        };
        if call.is_put_off {
            self.go_back_to(&stopped, &call)?;
            return match call.filters_calls() {
                true => {
                    self.map_ahead(&stopped)?;
                    self.go_on(stopped, 0)
                }
                false => self.make_way(stopped),
            };
        }
        if let Some(answer) = call.answer {
            let mut registers = stopped.registers()?;
            registers.rax = answer as u64;
            stopped.set_registers(&registers)?;
        }
        let thread = self.thread(&stopped);
        thread.is_watched = inject::to_be_restarted(&stopped.registers()?);
        self.forget_dead_handlers(&stopped);
        let space = self.thread(&stopped).space;
        let space = self.spaces.get(&space);
        match call.number {
            libc::SYS_rt_sigprocmask => self.mask_was_set(stopped, &call),
            libc::SYS_rt_sigpending => self.pending_was_asked(stopped, &call),
            libc::SYS_rt_sigreturn => self.handler_returned(stopped, &call),
            libc::SYS_rt_sigaction if call.sets_trap_action() => {
                self.trap_action_was_set(stopped, &call)
            }
            _ if self.settings.libraries && space.is_some_and(|it| call.changes_code(it)) => {
                let stopped = self.look_at_modules(stopped)?;
                self.go_on(stopped, 0)
            }
            _ => self.go_on(stopped, 0),
        }
    }

    /// A system call was skipped: the thread is to make it again.
    fn go_back_to(&self, stopped: &Stopped, call: &Call) -> io::Result<()> {
        let mut registers = stopped.registers()?;
        registers.rip = call.next.0.wrapping_sub(SYSCALL_BYTES);
        registers.rax = call.number as u64;
        registers.orig_rax = u64::MAX;
        stopped.set_registers(&registers)
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
