//! Signals reach the program as if we were not there.

use std::io;

use libc::c_int;

use crate::fate::Fate;
use crate::hits::FROM_INT3;
use crate::journal::Entry;
use crate::kernel::{Pace, WholeSignal};
use crate::monitor::{Monitor, Postponed};
use crate::proc;
use crate::sigtrap;
use crate::system_calls::Handler;
use crate::wait::Stopped;
use headcount_model::LoadAddr;

/// `si_code` after a single step.
pub const STEPPED: i32 = 2;

/// `pushf`.
const PUSHF: u8 = 0x9c;
/// The prefix with which it stores two bytes only.
const OPERAND_SIZE: u8 = 0x66;

/// The flag that makes a processor trap after each instruction.
const TRAP_FLAG: u16 = 1 << 8;

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
        self.ask_later(&stopped)?;
        if signal == libc::SIGTRAP && self.holds_trap(&stopped) {
            return self.go_on(stopped, 0);
        }
        let dispositions = proc::signals(stopped.tid())?;
        if dispositions.caught & bit(signal) != 0 {
            let whole = stopped.whole_signal()?;
            if !whole.is_fault() && self.stands_at_covered(&stopped)? {
                let stores_flags = self.is_before_pushf(&stopped)?;
                self.thread(&stopped).postponed = Some(Postponed {
                    signal: whole,
                    stores_flags,
                });
                return stopped.resume(Pace::Step, 0);
            }
            self.leaves_for_signal(&stopped)?;
            self.thread(&stopped).enters_handler = true;
            return stopped.resume(Pace::Step, signal);
        }
        if dispositions.ignored & bit(signal) == 0 {
            let at = self.stands_at(&stopped)?;
            self.may_die_of(&stopped, signal, at);
            if DUMPS_CORE.contains(&signal) {
                self.leaves_for_signal(&stopped)?;
                self.thread(&stopped).has_left = true;
                self.show_clean_code(&stopped)?;
            }
        }
        self.go_on(stopped, signal)
    }

    /// A thread has gone one instruction further since a signal came for it.
    pub fn deliver_postponed(&mut self, stopped: Stopped, signal: &WholeSignal) -> io::Result<()> {
        // If it met a trap instead, it stands somewhere else now; either will do.
        let _ = self.was_ours(&stopped)?;
        stopped.set_whole_signal(signal)?;
        self.deliver(stopped, signal.number())
    }

    /// Is what a thread runs next a `pushf`?
    pub fn is_before_pushf(&mut self, stopped: &Stopped) -> io::Result<bool> {
        let space = self.thread(stopped).space;
        let at = LoadAddr(stopped.instruction_pointer()?);
        let Some(space) = self.spaces.get(&space) else {
            return Ok(false);
        };
        let mut next = [0; 2];
        space.memory.read(at, &mut next)?;
        Ok(matches!(
            next,
            [PUSHF, _] | [OPERAND_SIZE | 0x40..=0x4f, PUSHF]
        ))
    }

    /// The signal that waited until a thread had gone one instruction further.
    pub fn take_postponed(&mut self, stopped: &Stopped) -> io::Result<Option<WholeSignal>> {
        let Some(postponed) = self.thread(stopped).postponed.take() else {
            return Ok(None);
        };
        let has_stepped = stopped.signal_info().map(|it| it.code) == Some(STEPPED);
        if postponed.stores_flags && has_stepped {
            self.hide_step(stopped)?;
        }
        Ok(Some(postponed.signal))
    }

    /// A thread has stored the flags while one of them was set for a step of ours. Were it to load
    /// them again, it would trap. (If the flag is its own, the kernel shows it to us; else not.)
    pub fn hide_step(&mut self, stopped: &Stopped) -> io::Result<()> {
        let registers = stopped.registers()?;
        let is_own = registers.eflags & u64::from(TRAP_FLAG) != 0;
        let space = self.thread(stopped).space;
        let Some(space) = self.spaces.get(&space).filter(|_| !is_own) else {
            return Ok(());
        };
        let at = LoadAddr(registers.rsp);
        let mut flags = [0; 2];
        space.memory.read(at, &mut flags)?;
        let flags = u16::from_le_bytes(flags) & !TRAP_FLAG;
        space.memory.write(at, &flags.to_le_bytes())
    }

    /// A signal takes a thread away from where it is. A handler may never come back; `sigreturn` is
    /// where it does.
    fn leaves_for_signal(&mut self, stopped: &Stopped) -> io::Result<()> {
        let before = stopped.instruction_pointer()?;
        let at = self.leaves(stopped)?;
        match before == at.0 {
            true => Ok(()),
            false => stopped.correct_signal_address(before, at.0),
        }
    }

    /// A core dump shows the code as it is without us. (Where other threads still run, they are
    /// counted to the end instead.)
    fn show_clean_code(&mut self, stopped: &Stopped) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let threads = self.threads.values().filter(|it| it.space == space);
        match threads.count() {
            1 => self.restore(space),
            _ => Ok(()),
        }
    }

    /// Puts every original byte of an address space back.
    pub fn restore(&mut self, space: usize) -> io::Result<()> {
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(());
        };
        for module in &space.copies.modules {
            for (at, bytes) in self.workshops[module.workshop].clean() {
                if module.has(module.load(at)) {
                    space.memory.write(module.load(at), bytes)?;
                }
            }
        }
        space.restore()
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
        let space = self.thread(stopped).space;
        let at = self.in_counted_file(space, at);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.fate = Some(Fate { signal, place, at });
        }
    }

    /// A thread was sent into a signal handler, and stands before its first instruction; unless
    /// another thread took the handler away in that moment. `false`: it met a trap instead.
    pub fn entered_handler(&mut self, stopped: &Stopped) -> io::Result<bool> {
        let thread = self.thread(stopped);
        thread.enters_handler = false;
        let (space, was_blocked) = (thread.space, thread.trap_blocked);
        match stopped.signal_info().map(|it| it.code) {
            Some(FROM_INT3) => return Ok(false),
            Some(STEPPED) => {
                let at = LoadAddr(stopped.instruction_pointer()?);
                self.journal.write(&Entry::Note(format!(
                    "A signal handler was taken away in the moment of its signal: the instruction \
                     that was run instead, before load address {at}, is not counted."
                )))?;
                self.arrives(stopped, at)?;
                return Ok(true);
            }
            _ => {}
        }
        if let Some(space) = self.spaces.get(&space) {
            if was_blocked {
                sigtrap::show_in_context(&space.memory, stopped)?;
            }
            let frame = stopped.registers()?.rsp;
            let returns_to = space.memory.read_word(LoadAddr(frame))?;
            if !self.in_the_middle {
                self.thread(stopped)
                    .handlers
                    .push(Handler { frame, returns_to });
            }
        }
        let is_blocked = sigtrap::unblock(stopped)?;
        self.thread(stopped).trap_blocked |= is_blocked;
        Ok(true)
    }
}
