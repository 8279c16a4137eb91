//! Traps of ours that a thread meets: routines are copied when they first run, and threads go on in
//! the copies.

use std::io;
use std::time::Duration;

use headcount_model::{LinkAddr, LoadAddr};
use headcount_patch::Copy;

use crate::attach::{Held, go_on_all};
use crate::copies::{Installed, Where};
use crate::journal::Entry;
use crate::kernel;
use crate::monitor::Monitor;
use crate::wait::Stopped;
use crate::{CostlyStops, WhyStopped};

/// How a thread comes to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// By the program's own code, which met a trap there.
    ByItself,
    /// By the kernel, at the end of a signal handler, say; or it was there when we came.
    Sent,
}

/// The first byte of a trap, and the only one.
const INT3: u8 = 0xcc;

/// How often control arrives somewhere before it is foreseen there.
const OFTEN: u64 = 8;

/// What a stop of a thread takes, more or less.
const STOP: Duration = Duration::from_micros(10);

/// Of the time of a run, this part may go into stops before we tell.
const BEARABLE: u32 = 10;

impl Monitor<'_> {
    /// Did a thread that stopped for SIGTRAP meet a trap of ours in a module that has copies? Then
    /// it goes on in a copy now.
    pub fn met_trap(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<bool> {
        let space = self.thread(stopped).space;
        let index = match self.find(space, at) {
            Some(Where::Text(index)) => index,
            Some(Where::Copies(index, offset)) => {
                return self.met_trap_in_copy(stopped, space, index, offset);
            }
            None => return Ok(false),
        };
        let Some((workshop, link)) = self
            .module(space, index)
            .map(|it| (it.workshop, it.link(at)))
        else {
            return Ok(false);
        };
        if !self.workshops[workshop].has_trap(link) {
            let is_ours = self.has_our_trap(space, at);
            if is_ours {
                self.update(stopped, space, index)?;
                stopped.go_to(at.0)?;
            }
            return Ok(is_ours);
        }
        if self.workshops[workshop].uses_gs(link) {
            self.refuse_gs()?;
        }
        self.hits += 1;
        if let Some(call) = self.workshops[workshop].restorer_call(link) {
            return self.handler_comes_back(stopped, at, call);
        }
        stopped.go_to(at.0)?;
        self.go_into_copy(stopped, space, index, at, Arrival::ByItself)?;
        Ok(true)
    }

    /// A thread met a trap in a copy: its event counter has come to its end, or it is about to make a
    /// system call by a number that was to trap.
    fn met_trap_in_copy(
        &mut self,
        stopped: &Stopped,
        space: usize,
        index: usize,
        offset: u64,
    ) -> io::Result<bool> {
        if self.ends_countdown(space, index, offset) {
            self.hits += 1;
            match self.calls {
                Some(_) => self.met_full_log(stopped)?,
                None => self.met_countdown(stopped)?,
            }
            return Ok(true);
        }
        if self.has_full_table(space, index, offset) {
            self.hits += 1;
            self.met_full_table(stopped)?;
            return Ok(true);
        }
        if self.has_new_text(space, index, offset) {
            self.hits += 1;
            self.met_new_text(stopped)?;
            return Ok(true);
        }
        if self.has_notice(space, index, offset) {
            self.hits += 1;
            self.met_notice(stopped)?;
            return Ok(true);
        }
        if let Some(behind) = self.behind_request(space, index, offset) {
            self.hits += 1;
            let trap = LoadAddr(stopped.instruction_pointer()?.wrapping_sub(1));
            self.met_request(stopped, trap, LoadAddr(trap.0 + behind))?;
            return Ok(true);
        }
        let is_ours = self.traps_before_call(space, index, offset);
        if is_ours {
            self.hits += 1;
            self.may_watch_call(stopped)?;
        }
        Ok(is_ours)
    }

    /// Is there a trap of this kind at an offset of a module's copies?
    pub fn is_trap(
        &self,
        space: usize,
        index: usize,
        offset: u64,
        is_so: fn(&Copy, u32) -> bool,
    ) -> bool {
        self.module(space, index).is_some_and(|module| {
            let workshop = &self.workshops[module.workshop];
            let unit = workshop.unit_in_copies(offset);
            unit.is_some_and(|(unit, offset)| is_so(&workshop.units[unit].copy, offset))
        })
    }

    fn ends_countdown(&self, space: usize, index: usize, offset: u64) -> bool {
        self.is_trap(space, index, offset, Copy::ends_countdown)
    }

    /// If the program asks for something where a copy traps: how far behind the trap it goes on.
    fn behind_request(&self, space: usize, index: usize, offset: u64) -> Option<u64> {
        let module = self.module(space, index)?;
        let workshop = &self.workshops[module.workshop];
        let (unit, offset) = workshop.unit_in_copies(offset)?;
        let behind = workshop.units[unit].copy.behind_request(offset)?;
        Some(u64::from(behind - offset))
    }

    fn traps_before_call(&self, space: usize, index: usize, offset: u64) -> bool {
        self.is_trap(space, index, offset, Copy::traps_before_call)
    }

    /// Has a module with copies a trap of ours at an address, or may it have had one a moment ago?
    pub fn has_our_trap(&self, space: usize, at: LoadAddr) -> bool {
        match self.find(space, at) {
            Some(Where::Text(index)) => self.module(space, index).is_some_and(|module| {
                let (workshop, link) = (&self.workshops[module.workshop], module.link(at));
                workshop.has_trap(link) || workshop.original(link) != Some(INT3)
            }),
            Some(Where::Copies(index, offset)) => {
                self.traps_before_call(space, index, offset)
                    || self.behind_request(space, index, offset).is_some()
                    || self.has_full_table(space, index, offset)
                    || self.has_new_text(space, index, offset)
                    || self.has_notice(space, index, offset)
                    || self.ends_countdown(space, index, offset)
            }
            None => false,
        }
    }

    /// Makes a thread go on in a copy that stands at an address of a module's text.
    pub fn go_into_copy(
        &mut self,
        stopped: &Stopped,
        space: usize,
        index: usize,
        at: LoadAddr,
        how: Arrival,
    ) -> io::Result<()> {
        let Some((workshop, link)) = self
            .module(space, index)
            .map(|it| (it.workshop, it.link(at)))
        else {
            return Ok(());
        };
        if let Some(served) = self.workshops[workshop].served_by(link) {
            let at = LoadAddr(at.0.wrapping_add(served.0).wrapping_sub(link.0));
            stopped.go_to(at.0)?;
            return self.go_into_copy(stopped, space, index, at, how);
        }
        let Some((unit, _)) = self.made(stopped, space, index, at)? else {
            return Ok(());
        };
        let unit = &self.workshops[workshop].units[unit];
        let offset = (link.0 - unit.copy.start.0) as u32;
        let start = unit.offset;
        if let Some(landing) = unit.copy.landing(offset) {
            let has_jump = unit.copy.has_jump(offset);
            if how == Arrival::ByItself && !has_jump {
                self.workshops[workshop].trapped(link);
            }
            let region = self.module(space, index).map_or(0, |it| it.region.start);
            return stopped.go_to(region + start + u64::from(landing));
        }
        let number = unit.number;
        let resume = unit.copy.resume(offset);
        let resume = resume.map(|it| (it, unit.copy.events_lent(link, &it)));
        let Some((resume, lent)) = resume else {
            if let Some(windows) = &mut self.windows
                && self.workshops[workshop].arrived_at(link)
            {
                self.workshops[workshop].make(link, false, windows, &mut self.journal)?;
                return self.go_into_copy(stopped, space, index, at, how);
            }
            return self.journal.write(&Entry::Note(format!(
                "A thread ran code in the middle of an instruction (link address {link}); what it \
                 ran there is not counted."
            )));
        };
        if how == Arrival::ByItself {
            let times = self.workshops[workshop].stray(link);
            if times >= OFTEN
                && times.is_power_of_two()
                && self.foresee(stopped, space, index, at)?
            {
                // Now there is a landing.
                return self.go_into_copy(stopped, space, index, at, how);
            }
        }
        self.fix(stopped, space, resume.fix, 1)?;
        self.log_place(stopped, at)?;
        self.add_events(stopped, space, -lent)?;
        self.visit(stopped, number, link, 1)?;
        let region = self.module(space, index).map_or(0, |it| it.region.start);
        stopped.go_to(region + start + u64::from(resume.offset))
    }

    /// Control arrives at an address again and again: copies its routine again, with a detour there.
    /// Its other threads stand still meanwhile. If one of them is where bytes may change, that is for
    /// another time: `false`.
    fn foresee(
        &mut self,
        stopped: &Stopped,
        space: usize,
        index: usize,
        at: LoadAddr,
    ) -> io::Result<bool> {
        let Some((number, link)) = self
            .module(space, index)
            .map(|it| (it.workshop, it.link(at)))
        else {
            return Ok(false);
        };
        let can_be = self.workshops[number].can_foresee(link);
        if !can_be || self.lets_go || self.is_held(space) {
            return Ok(false);
        }
        let is_alone = self.is_alone(space);
        let held = match is_alone {
            true => Held::new(),
            false => self.hold_others(stopped, space)?,
        };
        let made = self.make_again(stopped, &held, (space, index), link, is_alone);
        go_on_all(held);
        made
    }

    fn make_again(
        &mut self,
        stopped: &Stopped,
        held: &Held,
        (space, index): (usize, usize),
        link: LinkAddr,
        is_alone: bool,
    ) -> io::Result<bool> {
        // While others were waited for, it may have been killed.
        let thread = self.threads.get(&stopped.tid());
        if !thread.is_some_and(|it| it.space == space && !it.is_dying) {
            return Err(kernel::gone());
        }
        let Some(module) = self.module(space, index) else {
            return Ok(false);
        };
        let (number, at) = (module.workshop, module.load(link.0));
        let workshop = &self.workshops[number];
        let unit = workshop.unit_at(link);
        for (other, _) in held.values() {
            let next = LoadAddr(other.instruction_pointer()?);
            // It may have met a trap, and be behind it.
            for place in [next, LoadAddr(next.0.wrapping_sub(1))] {
                let is_inside = module.has(place) && workshop.unit_at(module.link(place)) == unit;
                if is_inside && next != at && next.0 != at.0 + 1 {
                    return Ok(false);
                }
            }
        }
        if let Some(windows) = &mut self.windows
            && self.workshops[number].foresee(link)
        {
            self.workshops[number].make(link, is_alone, windows, &mut self.journal)?;
        }
        self.update(stopped, space, index)
    }

    /// The unit around an address of a module's text, made if need be, and the module's bias.
    /// `None`: it cannot be counted.
    pub fn made(
        &mut self,
        stopped: &Stopped,
        space: usize,
        index: usize,
        at: LoadAddr,
    ) -> io::Result<Option<(usize, u64)>> {
        let Some(module) = self.module(space, index) else {
            return Ok(None);
        };
        let (number, link, bias) = (module.workshop, module.link(at), module.bias.0);
        let is_alone = self.is_alone(space);
        let workshop = &mut self.workshops[number];
        let unit = match (workshop.unit_at(link), &mut self.windows) {
            (Some(unit), _) => Some(unit),
            (None, Some(windows)) if !workshop.is_refused(link) => {
                let made = workshop.make(link, is_alone, windows, &mut self.journal)?;
                self.note_use(space, number, made);
                made
            }
            _ => None,
        };
        let is_there = self.update(stopped, space, index)?;
        Ok(unit.filter(|_| is_there).map(|unit| (unit, bias)))
    }

    /// Remembers that a program uses a routine.
    fn note_use(&mut self, space: usize, workshop: usize, made: Option<usize>) {
        let workshop = &self.workshops[workshop];
        let program = self.spaces.get(&space).map(|it| &it.copies.program);
        if let (Some(Some(program)), Some(fingerprint), Some(made)) =
            (program, workshop.fingerprint(), made)
        {
            let start = workshop.units[made].copy.start.0;
            self.used_before.met(program, &fingerprint, start);
        }
    }

    /// Does an address space have one thread only?
    pub fn is_alone(&self, space: usize) -> bool {
        let threads = self.threads.values();
        threads.filter(|it| it.space == space).take(2).count() == 1
    }

    /// Writes into a process what was made since it was last written to. `false`: it cannot have
    /// that, and is given up.
    pub fn update(&mut self, stopped: &Stopped, space: usize, index: usize) -> io::Result<bool> {
        if !self.make_room(stopped, space)? {
            return Ok(false);
        }
        let is_alone = self.is_alone(space);
        if let Some(number) = self.module(space, index).map(|it| it.workshop) {
            self.tell_of_copies(number);
        }
        let Some(space) = self.spaces.get_mut(&space) else {
            return Ok(false);
        };
        let Some(module) = space.copies.modules.get_mut(index) else {
            return Ok(false);
        };
        let (writes, progress) = self.workshops[module.workshop].news(module.progress, is_alone);
        for (at, bytes) in writes {
            // Of another process, more may be mapped.
            if module.has(module.load(at)) {
                space.memory.write(module.load(at), &bytes)?;
            }
        }
        module.progress = progress;
        Ok(true)
    }

    /// Where an address is, if that is any of our business.
    pub fn find(&self, space: usize, at: LoadAddr) -> Option<Where> {
        self.spaces.get(&space)?.copies.find(at)
    }

    /// A module of an address space that has copies.
    pub fn module(&self, space: usize, index: usize) -> Option<&Installed> {
        self.spaces.get(&space)?.copies.modules.get(index)
    }

    /// Tells where control arrived against expectation, or may have been before we knew.
    pub fn tell_strays(&mut self) -> io::Result<()> {
        for workshop in &self.workshops {
            if let Some(at) = workshop.late.first() {
                self.journal.write(&Entry::Note(format!(
                    "Code became known only after its address was used (link address {at}): what \
                     it ran before that is not counted."
                )))?;
            }
        }
        if self.in_the_middle {
            return Ok(());
        }
        for workshop in &self.workshops {
            if let Some(often) = workshop.strays() {
                self.journal.write(&Entry::Stray {
                    module: workshop.module,
                    at: often.at.0,
                    places: often.places,
                    times: often.times,
                })?;
            }
        }
        Ok(())
    }

    /// What took more of the time than it should: traps where nothing else fits, and system calls
    /// that all had to be watched.
    pub fn costly_stops(&self) -> Vec<CostlyStops> {
        let bearable = self.began.elapsed() / BEARABLE;
        let is_costly = |stops: u64| {
            let stops = u32::try_from(stops).unwrap_or(u32::MAX);
            STOP.saturating_mul(stops) > bearable
        };
        let traps = self.workshops.iter().filter_map(|it| {
            let often = it.traps()?;
            Some(CostlyStops {
                why: WhyStopped::NoRoom(often.places),
                module: it.module,
                at: often.at,
                times: often.times,
            })
        });
        let loose = self.workshops.iter().filter_map(|it| {
            Some(CostlyStops {
                why: WhyStopped::MayCall,
                module: it.module,
                at: it.loose_call()?,
                times: self.watched_calls,
            })
        });
        let all = traps.chain(loose.take(1));
        all.filter(|it| is_costly(it.times)).collect()
    }
}
