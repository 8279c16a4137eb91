//! How threads get into copies and out of them, other than by themselves; and what that means for
//! the counts.

use std::io;

use headcount_model::{LinkAddr, LoadAddr};
use headcount_patch::{FIRST_CALL_CELL, Fix, Spot};

use crate::copies::{Installed, Where};
use crate::detours::Arrival;
use crate::inject;
use crate::journal::Entry;
use crate::monitor::Monitor;
use crate::wait::Stopped;
use crate::workshop::Unit;

/// The flags that `lahf` stores, in the lowest byte.
const BY_LAHF: u64 = 0xd5;

/// The overflow flag.
const OVERFLOW: u64 = 1 << 11;

/// Flags as they were when `lahf` and `seto al` stored them in a word.
fn with_flags(flags: u64, stored: u64) -> u64 {
    let others = flags & !(BY_LAHF | OVERFLOW);
    let overflow = if stored & 1 == 1 { OVERFLOW } else { 0 };
    others | stored >> 8 & BY_LAHF | overflow
}

/// How many instructions a routine has that signal handlers return through.
const RESTORER_INSTRUCTIONS: i64 = 2;

/// An address in the original code of a routine that has a copy.
struct InUnit<'a> {
    module: &'a Installed,
    unit: &'a Unit,
    /// Of the unit, in its workshop.
    number: usize,
    /// From the routine's start.
    offset: u32,
}

impl Monitor<'_> {
    /// The unit around an address of a module's text, if it has one.
    fn unit_at(&self, space: usize, at: LoadAddr) -> Option<InUnit<'_>> {
        let Where::Text(index) = self.find(space, at)? else {
            return None;
        };
        let module = self.module(space, index)?;
        let workshop = &self.workshops[module.workshop];
        let link = module.link(at);
        let number = workshop.unit_at(link)?;
        let unit = &workshop.units[number];
        let offset = (link.0 - unit.copy.start.0) as u32;
        Some(InUnit {
            module,
            unit,
            number,
            offset,
        })
    }

    /// The spot of a thread at an address, if it is in a copy, or at a call that copies jump to;
    /// with the number of the routine, and where the original is.
    pub fn spot(&self, space: usize, at: LoadAddr) -> Option<(Spot, usize, LoadAddr)> {
        let (module, unit, spot) = self.unit_and_spot(space, at)?;
        Some((spot, unit.number, module.load(spot.at.0)))
    }

    pub(crate) fn unit_and_spot(
        &self,
        space: usize,
        at: LoadAddr,
    ) -> Option<(&Installed, &Unit, Spot)> {
        Some(match self.find(space, at)? {
            Where::Copies(index, offset) => {
                let module = self.module(space, index)?;
                let workshop = &self.workshops[module.workshop];
                let (unit, offset) = workshop.unit_in_copies(offset)?;
                let unit = &workshop.units[unit];
                (module, unit, unit.copy.spot(offset)?)
            }
            Where::Text(_) => {
                let InUnit {
                    module,
                    unit,
                    offset,
                    ..
                } = self.unit_at(space, at)?;
                (module, unit, unit.copy.call(offset)?)
            }
        })
    }

    /// By how much the event counter of a thread at an address is behind.
    pub fn events_owed(&self, space: usize, at: LoadAddr) -> i64 {
        if let Some((_, unit, spot)) = self.unit_and_spot(space, at) {
            return unit.copy.events_owed(&spot);
        }
        // What handlers return through is not copied, and counted as a whole.
        let Some(Where::Text(index)) = self.find(space, at) else {
            return 0;
        };
        let is_in_restorer = self.module(space, index).is_some_and(|module| {
            let (workshop, link) = (&self.workshops[module.workshop], module.link(at));
            workshop.restorer(link).is_some() && workshop.restorer_call(link).is_none()
        });
        i64::from(is_in_restorer)
    }

    /// Adds to the event counter of a thread that stands still.
    pub fn add_events(&mut self, stopped: &Stopped, space: usize, events: i64) -> io::Result<()> {
        let window = self.window_of(stopped, space);
        match (window, &self.windows) {
            (Some(window), Some(windows)) if events != 0 => windows.add_events(window, events),
            _ => Ok(()),
        }
    }

    /// Where a thread would be at an address, were it not in a copy.
    pub fn original_address(&self, space: usize, at: LoadAddr) -> LoadAddr {
        if let Some((_, _, original)) = self.spot(space, at) {
            return original;
        }
        let Some(Where::Text(index)) = self.find(space, at) else {
            return at;
        };
        let served = self.module(space, index).and_then(|module| {
            let served = self.workshops[module.workshop].served_by(module.link(at))?;
            Some(module.load(served.0))
        });
        served.unwrap_or(at)
    }

    /// Where a thread stands, seen without us.
    pub fn stands_at(&mut self, stopped: &Stopped) -> io::Result<LoadAddr> {
        let at = LoadAddr(stopped.instruction_pointer()?);
        let space = self.thread(stopped).space;
        match self.windows {
            Some(_) => Ok(self.original_address(space, at)),
            None => Ok(self.spaces.get(&space).map_or(at, |it| it.out_of_slot(at))),
        }
    }

    /// Does a thread stand where the original bytes are the midst of a jump of ours? Handlers of
    /// some languages make their thread go on there without telling the kernel. (They do not where
    /// a system call is made, which may take long.)
    pub fn stands_at_covered(&mut self, stopped: &Stopped) -> io::Result<bool> {
        let space = self.thread(stopped).space;
        let at = self.stands_at(stopped)?;
        let found = self.unit_at(space, at);
        Ok(found.is_some_and(|it| {
            let workshop = &self.workshops[it.module.workshop];
            workshop.is_covered(it.number, it.offset)
                && it.unit.copy.system_call(it.offset).is_none()
        }))
    }

    /// Which module that has copies an address is in, and its link address.
    pub fn in_counted_file(&self, space: usize, at: LoadAddr) -> Option<(usize, LinkAddr)> {
        let Where::Text(index) = self.find(space, at)? else {
            return None;
        };
        let module = self.module(space, index)?;
        Some((self.workshops[module.workshop].module, module.link(at)))
    }

    /// Moves a stopped thread to where it would be without copies. It goes away from there.
    pub fn leave_copy(&mut self, stopped: &Stopped) -> io::Result<LoadAddr> {
        let space = self.thread(stopped).space;
        let mut registers = stopped.registers()?;
        let at = LoadAddr(registers.rip);
        let original = self.original_address(space, at);
        let Some((spot, ..)) = self.spot(space, at) else {
            if original != at {
                stopped.go_to(original.0)?;
            }
            return Ok(original);
        };
        self.departs_from_copy(stopped, at)?;
        if spot.undo.restores_rax() {
            let window = self.window_of(stopped, space);
            if let (Some(window), Some(windows)) = (window, &self.windows) {
                registers.rax = windows.scratch(window)?;
                if spot.undo.restores_rcx() {
                    registers.rcx = windows.second_scratch(window)?;
                }
                if spot.undo.restores_rdx() {
                    let (third, flags) = windows.third_scratch(window)?;
                    registers.rdx = third;
                    if spot.undo.restores_flags() {
                        registers.eflags = with_flags(registers.eflags, flags);
                    }
                }
            }
        }
        if spot.undo.pops_return() {
            registers.rsp = registers.rsp.wrapping_add(8);
        }
        registers.rip = original.0;
        stopped.set_registers(&registers)?;
        Ok(original)
    }

    /// A thread will not go on at an address, if that is in a copy.
    pub fn departs_from_copy(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let Some((spot, number, _)) = self.spot(space, at) else {
            return Ok(());
        };
        self.fix(stopped, space, spot.fix, 1)?;
        self.fix_tallied(stopped, space, &self.tallied_at(space, at), -1)?;
        self.take_call_back(stopped, space, at)?;
        self.add_events(stopped, space, self.events_owed(space, at))?;
        match spot.is_inside {
            true => self.visit(stopped, number, spot.at, -1),
            false => Ok(()),
        }
    }

    /// A thread goes on at an address without having come there by itself. If that is in the
    /// original code, it is moved into the copy.
    pub fn arrives_in_copy(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let at = self.before_call(stopped, space, at)?;
        if let Some((spot, number, original)) = self.spot(space, at) {
            if spot.is_inside {
                self.log_place(stopped, original)?;
            }
            self.add_events(stopped, space, -self.events_owed(space, at))?;
            self.fix_tallied(stopped, space, &self.tallied_at(space, at), 1)?;
            return self.arrives_at_spot(stopped, space, &spot, number);
        }
        let Some(Where::Text(index)) = self.find(space, at) else {
            return Ok(());
        };
        let registers = stopped.registers()?;
        if inject::to_be_restarted(&registers)
            && let Some((unit, start)) = self.made(stopped, space, index, at)?
        {
            // The kernel will go back by the two bytes of the system call.
            let workshop = self.module(space, index).map_or(0, |it| it.workshop);
            let unit = &self.workshops[workshop].units[unit];
            let link = at.0.wrapping_sub(start);
            let offset = link.wrapping_sub(unit.copy.start.0 + 2) as u32;
            if let Some(call) = unit.copy.system_call(offset) {
                let region = self.module(space, index).map_or(0, |it| it.region.start);
                let there = region + unit.offset + u64::from(call.behind());
                stopped.go_to(there)?;
                self.forget_last_call(stopped, space)?;
                return self.arrives_in_copy(stopped, LoadAddr(there));
            }
        }
        self.go_into_copy(stopped, space, index, at, Arrival::Sent)
    }

    /// Does a thread at an address stand before a system call that was counted already?
    pub fn has_counted_call(&self, space: usize, at: LoadAddr) -> bool {
        self.counted_call(space, at).is_some()
    }

    /// By how much more a thread at an address that has counted a system call stands behind where the
    /// copy begins to look at it.
    fn counted_call(&self, space: usize, at: LoadAddr) -> Option<u64> {
        let Where::Copies(index, offset) = self.find(space, at)? else {
            return None;
        };
        let workshop = &self.workshops[self.module(space, index)?.workshop];
        let (unit, offset) = workshop.unit_in_copies(offset)?;
        let call = workshop.units[unit].copy.counted_call(offset)?;
        Some(u64::from(call.call() - call.copy))
    }

    /// A thread will not make the system call at an address that it has counted, if it stands there.
    fn take_call_back(&self, stopped: &Stopped, space: usize, at: LoadAddr) -> io::Result<()> {
        if !self.counts(stopped.tid()) || !self.has_counted_call(space, at) {
            return Ok(());
        }
        let (Some(window), Some(windows)) = (self.window_of(stopped, space), &self.windows) else {
            return Ok(());
        };
        match windows.last_call(window)? {
            Some(cell) => windows.add_to(window, cell, -1),
            None => Ok(()),
        }
    }

    /// Makes a thread that arrives at a system call count it, if that is in a copy. Where it stands
    /// then.
    fn before_call(&self, stopped: &Stopped, space: usize, at: LoadAddr) -> io::Result<LoadAddr> {
        let Some(look) = self.counted_call(space, at) else {
            return Ok(at);
        };
        let before = LoadAddr(at.0 - look);
        stopped.go_to(before.0)?;
        Ok(before)
    }

    /// The kernel will take a thread to a system call that is not counted.
    fn forget_last_call(&self, stopped: &Stopped, space: usize) -> io::Result<()> {
        match (self.window_of(stopped, space), &self.windows) {
            (Some(window), Some(windows)) => windows.forget_last_call(window),
            _ => Ok(()),
        }
    }

    fn arrives_at_spot(
        &mut self,
        stopped: &Stopped,
        space: usize,
        spot: &Spot,
        number: usize,
    ) -> io::Result<()> {
        self.fix(stopped, space, spot.fix, -1)?;
        match spot.is_inside {
            true => self.visit(stopped, number, spot.at, 1),
            false => Ok(()),
        }
    }

    /// A signal handler returns, by a system call before this address. If that is made from where
    /// it always was, this is how it is counted.
    pub fn handler_returns(&mut self, stopped: &Stopped, next: LoadAddr) -> io::Result<()> {
        let space = self.thread(stopped).space;
        let at = LoadAddr(next.0.wrapping_sub(1));
        let Some(Where::Text(index)) = self.find(space, at) else {
            return Ok(());
        };
        let restorer = self.module(space, index).and_then(|module| {
            let workshop = &self.workshops[module.workshop];
            workshop.restorer(module.link(at))
        });
        match restorer {
            Some(counter) => {
                self.log_restorer(stopped, at)?;
                if self.counts_instructions() {
                    self.add_events(stopped, space, RESTORER_INSTRUCTIONS)?;
                }
                let call = Fix::Add(FIRST_CALL_CELL + libc::SYS_rt_sigreturn as u32);
                self.fix(stopped, space, call, 1)?;
                self.fix(stopped, space, Fix::Add(counter), 1)
            }
            None => Ok(()),
        }
    }

    /// Makes a counter say what it would, did the thread stand at the original.
    pub fn fix(&mut self, stopped: &Stopped, space: usize, fix: Fix, sign: i64) -> io::Result<()> {
        if !self.counts(stopped.tid()) {
            return Ok(());
        }
        let window = self.window_of(stopped, space);
        match (fix.change(), window, &self.windows) {
            (Some((counter, delta)), Some(window), Some(windows)) => {
                windows.add_to(window, counter, sign * delta)
            }
            _ => Ok(()),
        }
    }

    /// A thread came to a routine, or went, in a way that its flow graph does not show.
    pub fn visit(
        &mut self,
        stopped: &Stopped,
        routine: usize,
        at: LinkAddr,
        delta: i64,
    ) -> io::Result<()> {
        if !self.counts(stopped.tid()) {
            return Ok(());
        }
        let at = at.0;
        let entry = Entry::Visit { routine, at, delta };
        self.book_visit(stopped.tid(), &entry);
        self.journal.write(&entry)
    }
}
