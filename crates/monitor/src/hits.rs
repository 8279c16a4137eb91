//! A thread met a breakpoint.

use std::io;

use headcount_model::LoadAddr;
use headcount_x86::out_of_line::{Interrupted, Target};

use crate::journal::Entry;
use crate::kernel::Registers;
use crate::monitor::Monitor;
use crate::space::{Space, Way};
use crate::wait::Stopped;

/// `si_code` of a signal that comes from an `int3`.
pub const FROM_INT3: i32 = 128;

/// How often progress is told.
const TELL_EVERY: u64 = 1 << 14;

impl Monitor<'_> {
    /// A thread stopped for SIGTRAP: a breakpoint of ours, a step of ours, or the program's own
    /// business.
    pub fn trap(&mut self, stopped: Stopped) -> io::Result<()> {
        if self.thread(&stopped).enters_handler && self.entered_handler(&stopped)? {
            return self.go_on(stopped, 0);
        }
        if let Some(signal) = self.take_postponed(&stopped)? {
            return self.deliver_postponed(stopped, &signal);
        }
        match self.was_ours(&stopped)? || self.has_stepped(&stopped)? {
            true if self.has_come_so_far(&stopped)? => self.end_countdown(stopped),
            true => self.go_on(stopped, 0),
            false => self.deliver(stopped, libc::SIGTRAP),
        }
    }

    /// Did a thread that stopped for SIGTRAP meet a breakpoint of ours? Then it is past it now.
    pub fn was_ours(&mut self, stopped: &Stopped) -> io::Result<bool> {
        let at = LoadAddr(stopped.instruction_pointer()?.wrapping_sub(1));
        if let Some(handling) = self.handling.last_mut() {
            handling.trapped_at = Some(at);
        }
        let from_int3 = || stopped.signal_info().is_some_and(|it| it.code == FROM_INT3);
        if self.windows.is_some() {
            return Ok(from_int3() && self.met_trap(stopped, at)?);
        }
        let space = self.thread(stopped).space;
        let breakpoint = self.spaces.get(&space).and_then(|it| it.breakpoint(at));
        // Behind the first byte of a longer instruction nobody can be but by an `int3` of ours.
        let is_sure = breakpoint.is_some_and(|it| it.is_long);
        Ok((is_sure || from_int3()) && self.met(stopped, at)?)
    }

    /// Counts a breakpoint that was met, and moves the thread past it. `false`: it is none of ours.
    fn met(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<bool> {
        let space = self.thread(stopped).space;
        let Some(space) = self.spaces.get(&space) else {
            return Ok(false);
        };
        let Some(breakpoint) = space.breakpoint(at).copied() else {
            let had_one = space.had_breakpoint(at);
            if had_one {
                stopped.go_to(at.0)?;
            }
            return Ok(had_one);
        };
        self.hits += 1;
        if self.hits.is_multiple_of(TELL_EVERY) {
            (self.settings.progress)(self.hits);
        }
        if let Some((module, block)) = breakpoint.counts.filter(|_| self.counts(stopped.tid())) {
            self.count_visit(stopped, at, module, block)?;
        }
        self.tally_hit(stopped, at)?;
        match breakpoint.past {
            Way::GoTo(next) => stopped.go_to(next.0)?,
            Way::Watch(target, slot) => self.watched_jump(stopped, target, slot)?,
            Way::Ask(next) => self.met_request(stopped, at, next)?,
            Way::OwnTrap => return Ok(false),
        }
        Ok(true)
    }

    fn count_visit(
        &mut self,
        stopped: &Stopped,
        at: LoadAddr,
        module: u32,
        block: u32,
    ) -> io::Result<()> {
        self.thread(stopped).last = Some((module, block));
        let counters = &mut self.catalog.images[module as usize].counters;
        let Some(limit) = self.settings.limit else {
            counters.add_one(block);
            return Ok(());
        };
        if counters.get(block) < limit {
            counters.add_one(block);
        }
        if counters.get(block) >= limit {
            let space = self.thread(stopped).space;
            if let Some(space) = self.spaces.get_mut(&space) {
                space.remove(at)?;
            }
            self.journal.write(&Entry::AtLeast {
                module: module as usize,
                block,
            })?;
        }
        Ok(())
    }

    /// Looks where an indirect jump leads; it may be where no block was known to begin.
    fn watched_jump(
        &mut self,
        stopped: &Stopped,
        target: Target,
        slot: LoadAddr,
    ) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let registers = stopped.registers()?;
        let Some(next) = self
            .spaces
            .get(&space)
            .and_then(|it| jump_target(it, &registers, target))
        else {
            // It will fault, and the slot knows how.
            return stopped.go_to(slot.0);
        };
        self.arrives(stopped, next)?;
        stopped.go_to(next.0)
    }

    /// Moves a stopped thread out of a slot: as if it had never left the original code.
    pub fn leave_slot(&mut self, stopped: &Stopped) -> io::Result<LoadAddr> {
        let mut registers = stopped.registers()?;
        let at = LoadAddr(registers.rip);
        let space_number = self.thread(stopped).space;
        let Some(found) = self.spaces.get(&space_number).and_then(|it| it.in_slot(at)) else {
            return Ok(at);
        };
        let next = match found.state {
            Interrupted::After(next) => next,
            Interrupted::Before => found.instruction,
            Interrupted::BeforeWithPush => {
                registers.rsp = registers.rsp.wrapping_add(8);
                found.instruction
            }
        };
        if next == found.instruction && !matches!(found.state, Interrupted::After(_)) {
            self.take_visit_back(space_number, found.instruction);
            self.take_tally_back(stopped)?;
        }
        registers.rip = next.0;
        stopped.set_registers(&registers)?;
        Ok(next)
    }

    /// The instruction below a breakpoint did not run; when it does, it will be counted again.
    fn take_visit_back(&mut self, space: usize, at: LoadAddr) {
        let breakpoint = self.spaces.get(&space).and_then(|it| it.breakpoint(at));
        if let Some((module, block)) = breakpoint.and_then(|it| it.counts) {
            self.catalog.images[module as usize]
                .counters
                .take_one(block);
        }
    }
}

/// Where an indirect jump leads; `None` if that cannot be read.
fn jump_target(space: &Space, registers: &Registers, target: Target) -> Option<LoadAddr> {
    match target {
        Target::Register(number) => Some(LoadAddr(register(registers, number))),
        Target::Memory {
            base,
            index,
            scale,
            displacement,
        } => {
            let value = |number: Option<u8>| number.map_or(0, |it| register(registers, it));
            let address = value(base)
                .wrapping_add(value(index).wrapping_mul(scale.into()))
                .wrapping_add(displacement);
            space.memory.read_word(LoadAddr(address)).ok().map(LoadAddr)
        }
    }
}

/// A register by its number in the encoding of instructions.
pub fn register(registers: &Registers, number: u8) -> u64 {
    match number {
        0 => registers.rax,
        1 => registers.rcx,
        2 => registers.rdx,
        3 => registers.rbx,
        4 => registers.rsp,
        5 => registers.rbp,
        6 => registers.rsi,
        7 => registers.rdi,
        8 => registers.r8,
        9 => registers.r9,
        10 => registers.r10,
        11 => registers.r11,
        12 => registers.r12,
        13 => registers.r13,
        14 => registers.r14,
        _ => registers.r15,
    }
}
