//! The copies of one module's routines, made as they are needed.
//!
//! What is made for one process serves all others that run the module: copies speak of places by
//! distance only, and counters by number.

mod arrivals;
mod calls;
mod islands;
mod loose_calls;
mod news;
mod texts;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::rc::Rc;

use headcount_binary::{Explored, Outline};
use headcount_model::{
    BlockId, Edge, EdgeKind, FlowGraph, LinkAddr, Node, Place, Plan, RoutineBlock,
};
use headcount_patch::{Copy, CounterNumber, Jump};

use crate::CodeRanges;
use crate::journal::{self, Entry, Journal, RoutineFlow};
use crate::prepared::{Asked, Kept, Made, Numbers, Prepared};
use crate::windows::Windows;
use islands::Island;
use news::Change;
pub use news::Progress;
pub use texts::Original;
use texts::Texts;

/// `int3`.
const TRAP: u8 = 0xcc;

/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// How many copies are made at a time.
const MOST_AT_ONCE: usize = 64;

/// Copies begin at multiples of this: so do the processor's lines.
const LINE: usize = 16;

/// A routine that has a copy.
#[derive(Debug)]
pub struct Unit {
    /// The copy.
    pub copy: Copy,
    /// Where it is in the region of the module's copies.
    pub offset: u64,
    /// Its number in the journal.
    pub number: usize,
    /// The copy that its routine had before.
    older: Option<usize>,
    /// Does it have jumps that may lead to places in it that nobody knows of?
    has_indirect_jumps: bool,
}

impl Unit {
    fn range(&self) -> Range<u64> {
        let start = self.copy.start.0;
        start..start + u64::from(self.copy.length)
    }
}

/// Where the copies of a module go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Link address of the module's first byte of code.
    pub base: u64,
    /// How far behind that the copies are (or in front of it, wrapping).
    pub distance: u64,
    /// How many bytes there are for them.
    pub size: u64,
}

impl Site {
    fn copies_start(&self) -> u64 {
        self.base.wrapping_add(self.distance)
    }
}

/// What was made of one module.
pub struct Workshop {
    /// The module's number in the journal.
    pub module: usize,
    pub site: Site,
    outline: Rc<RefCell<Outline>>,
    /// What of it is to be counted, if not all.
    wanted: Option<Rc<CodeRanges>>,
    /// Routines that make system calls. They run in copies, wanted or not: else every system call
    /// of the program would have to be watched.
    callers: BTreeSet<u64>,
    /// How many of the parts that it came to know have guards.
    guarded: usize,
    kept: Rc<RefCell<Kept>>,
    /// Its executable mappings, as far as a process has had them.
    texts: Texts,
    /// The copies made so far.
    code: Vec<u8>,
    pub units: Vec<Unit>,
    /// The latest unit of each routine, by its start.
    latest: BTreeMap<u64, usize>,
    /// Routines that will run as soon as the one does that is being made.
    ahead: Vec<u64>,
    /// Is nobody known to run what is being made? Then nothing is looked at that is not kept.
    is_guessing: bool,
    /// Where control enters routines besides where they say themselves.
    arrivals: BTreeMap<u64, BTreeSet<u64>>,
    /// The calls that are made from their own place, by what they call.
    calls_to: BTreeMap<u64, BTreeSet<u64>>,
    /// The jumps of copies to other routines, by where they lead: where in the copies their
    /// distances are.
    ways_to: BTreeMap<u64, Vec<usize>>,
    /// Jumps of routines among the bytes of others, by address.
    islands: BTreeMap<u64, Island>,
    /// Where such were, and what they served: a thread may still stand there.
    cleared: BTreeMap<u64, u64>,
    /// The islands whose short jumps need the first byte of the next routine, by that routine.
    squeezed: BTreeMap<u64, u64>,
    /// Routines that asked for room among their neighbours' bytes.
    has_asked: BTreeSet<u64>,
    /// Routines whose flags matter to whoever calls them.
    keep_flags: BTreeSet<u64>,
    /// Routines that cannot be counted.
    refused: BTreeSet<u64>,
    /// See `loose_calls.rs`: in routines that cannot be counted, and in no known part.
    loose_calls: BTreeSet<u64>,
    /// Those in no known part, loose or not.
    unknown_calls: BTreeSet<u64>,
    /// Of how many addresses in no known part code spoke when that was last looked at.
    spoken: usize,
    /// Instructions in them that need the register that copies count by: they have guards.
    gs_users: BTreeSet<u64>,
    /// Routines that signal handlers return through: they stay as they are, and we count them.
    restorers: BTreeMap<u64, Restorer>,
    /// Do they keep their guards, because handlers may return that began before we came?
    guards_restorers: bool,
    /// What was changed, in order; copies that were added are not among it.
    changes: Vec<Change>,
    /// Where calls may return to that were made before we came.
    return_points: Vec<u64>,
    /// How often control arrived where it was not expected, by address.
    strays: BTreeMap<u64, u64>,
    /// How often control came into a copy by a trap because nothing else fits, by address.
    traps: BTreeMap<u64, u64>,
    /// Code that may have run before it became known.
    pub late: Vec<LinkAddr>,
}

/// A routine that signal handlers return through. Unwinders know it by its bytes.
#[derive(Clone, Copy, Debug)]
struct Restorer {
    /// Where its system call is, from its start on.
    call: u64,
    counter: CounterNumber,
}

impl Workshop {
    /// For a module of which no process has any text yet.
    pub fn new(
        module: usize,
        site: Site,
        outline: Rc<RefCell<Outline>>,
        kept: Rc<RefCell<Kept>>,
        wanted: Option<Rc<CodeRanges>>,
        in_the_middle: bool,
    ) -> Self {
        let mut explored = match in_the_middle || wanted.is_some() {
            true => outline.borrow_mut().explore(),
            false => Explored::default(),
        };
        if !in_the_middle {
            explored.return_points.clear();
        }
        let mut arrivals: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for at in outline.borrow().entries().iter().chain(&explored.arrivals) {
            let part = outline.borrow().part_at(LinkAddr(*at));
            let start = part.map_or(*at, |it| it.start);
            arrivals.entry(start).or_default().insert(*at);
        }
        let guarded = outline.borrow().added().len();
        Self {
            module,
            site,
            texts: Texts::default(),
            guarded,
            outline,
            wanted,
            callers: BTreeSet::new(),
            kept,
            code: Vec::new(),
            units: Vec::new(),
            latest: BTreeMap::new(),
            ahead: Vec::new(),
            is_guessing: false,
            arrivals,
            calls_to: BTreeMap::new(),
            ways_to: BTreeMap::new(),
            islands: BTreeMap::new(),
            cleared: BTreeMap::new(),
            squeezed: BTreeMap::new(),
            has_asked: BTreeSet::new(),
            keep_flags: BTreeSet::new(),
            refused: BTreeSet::new(),
            loose_calls: BTreeSet::new(),
            unknown_calls: BTreeSet::new(),
            spoken: 0,
            gs_users: BTreeSet::new(),
            restorers: BTreeMap::new(),
            guards_restorers: in_the_middle,
            changes: Vec::new(),
            return_points: explored.return_points,
            strays: BTreeMap::new(),
            traps: BTreeMap::new(),
            late: Vec::new(),
        }
    }

    /// Does it know the bytes of the text that begins at a link address?
    pub fn has_text(&self, start: u64) -> bool {
        self.texts.has(start)
    }

    /// Makes a text of the module known; every routine in it has a guard where control is known to
    /// enter it. In the middle of a program's work, calls may return to routines that have not been
    /// entered: they have guards there, too.
    pub fn add_text(&mut self, start: u64, original: Original) {
        let range = self.texts.add(start, original);
        self.look_for_callers(range.clone());
        let outline = Rc::clone(&self.outline);
        let starts = outline.borrow().known_starts().collect::<Vec<_>>();
        let arrivals = self.arrivals.values().flatten().copied();
        let guards = starts.into_iter().chain(arrivals);
        let guards = guards.chain(self.return_points.iter().copied());
        for at in guards.collect::<Vec<_>>() {
            if range.contains(&at) && self.is_wanted(at) {
                self.texts.set(at, TRAP);
            }
        }
        self.look_for_loose_calls(range);
    }

    /// Is the routine around an address to be counted?
    fn is_wanted(&self, at: u64) -> bool {
        let Some(wanted) = &self.wanted else {
            return true;
        };
        let part = self.outline.borrow().part_at(LinkAddr(at));
        let part = part.unwrap_or(at..at + 1);
        let behind = wanted.partition_point(|it| it.end <= part.start);
        let is_chosen = wanted.get(behind).is_some_and(|it| it.start < part.end);
        is_chosen || self.callers.contains(&part.start)
    }

    /// Is there a trap of ours at this address?
    pub fn has_trap(&self, at: LinkAddr) -> bool {
        self.texts.changed(at.0) == Some(TRAP)
    }

    /// The original byte at an address.
    pub fn original(&self, at: LinkAddr) -> Option<u8> {
        self.texts.original_from(at.0)?.first().copied()
    }

    /// The latest unit around an address of the text.
    pub fn unit_at(&self, at: LinkAddr) -> Option<usize> {
        let (_, unit) = self.latest.range(..=at.0).next_back()?;
        self.units[*unit].range().contains(&at.0).then_some(*unit)
    }

    /// The unit around an offset in the region of copies, and the offset in its copy.
    pub fn unit_in_copies(&self, offset: u64) -> Option<(usize, u32)> {
        let after = self.units.partition_point(|it| it.offset <= offset);
        let unit = after.checked_sub(1)?;
        let inside = offset - self.units[unit].offset;
        let length = self.units[unit].copy.code.len() as u64;
        (inside < length).then_some((unit, inside as u32))
    }

    /// Was it found that a routine cannot be counted, or is it not to be?
    pub fn is_refused(&self, at: LinkAddr) -> bool {
        let part = self.outline.borrow().part_at(at);
        let is_left_alone = |it: Range<u64>| {
            self.refused.contains(&it.start) || self.restorers.contains_key(&it.start)
        };
        part.is_some_and(is_left_alone) || !self.is_wanted(at.0)
    }

    /// Does the instruction at an address, which has a guard, need the register that copies count
    /// by?
    pub fn uses_gs(&self, at: LinkAddr) -> bool {
        self.gs_users.contains(&at.0)
    }

    /// The counter of the routine around an address that signal handlers return through.
    pub fn restorer(&self, at: LinkAddr) -> Option<CounterNumber> {
        let (start, restorer) = self.restorers.range(..=at.0).next_back()?;
        let length = restorer.call + SYSCALL.len() as u64;
        (at.0 - start < length).then_some(restorer.counter)
    }

    /// Where the routine around an address begins that is counted.
    pub fn start_of(&self, at: LinkAddr) -> Option<u64> {
        match self.unit_at(at) {
            Some(unit) => Some(self.units[unit].copy.start.0),
            None => {
                let (start, _) = self.restorers.range(..=at.0).next_back()?;
                self.restorer(at).map(|_| *start)
            }
        }
    }

    /// If such a routine begins at an address: how far behind it its system call is.
    pub fn restorer_call(&self, at: LinkAddr) -> Option<u64> {
        self.restorers.get(&at.0).map(|it| it.call)
    }

    /// Makes the copy of the routine around an address. `None`: it cannot be counted; then its
    /// guards are gone. If other threads run meanwhile, no routine that has a copy is made again
    /// unless that must be: one of them may be on its way through a detour.
    pub fn make(
        &mut self,
        at: LinkAddr,
        is_alone: bool,
        windows: &mut Windows,
        journal: &mut Journal,
    ) -> io::Result<Option<usize>> {
        let part = self.outline.borrow().part_at(at);
        let start = part.as_ref().map_or(at.0, |it| it.start);
        if !self.outline.borrow().is_known_start(LinkAddr(start)) {
            self.arrived_at(at);
        }
        let mut again = vec![start];
        // What one routine leads to may have to be made anew, and so on; but not without end.
        for _ in 0..MOST_AT_ONCE {
            let Some(start) = again.pop().or_else(|| self.next_ahead()) else {
                break;
            };
            again.extend(self.make_one(start, is_alone, windows, journal)?);
        }
        self.ahead.clear();
        Ok(self.latest.get(&start).copied())
    }

    /// Makes routines that are likely to run, as far as they are kept: nothing is found out about
    /// routines that may never run.
    pub fn make_ahead(
        &mut self,
        starts: &[u64],
        is_alone: bool,
        windows: &mut Windows,
        journal: &mut Journal,
    ) -> io::Result<()> {
        self.is_guessing = true;
        let made = journal.gather(|journal| {
            for start in starts {
                let is_known = self.outline.borrow().is_known_start(LinkAddr(*start));
                if is_known && self.is_untouched(*start) {
                    self.make(LinkAddr(*start), is_alone, windows, journal)?;
                }
            }
            Ok(())
        });
        self.is_guessing = false;
        made
    }

    /// Names everything that its routines depend on; `None` if nothing of them is to be kept.
    pub fn fingerprint(&self) -> Option<Rc<str>> {
        self.kept.borrow().fingerprint.clone()
    }

    /// Where routines begin that ran, by what all counters say.
    pub fn ran(&self, sums: &[u64]) -> impl Iterator<Item = u64> {
        let has_run = |unit: &&Unit| {
            let counters = unit.copy.counters();
            let counters = sums.get(counters.start as usize..counters.end as usize);
            counters.is_none_or(|it| it.iter().any(|it| *it != 0))
        };
        let units = self.units.iter().filter(has_run);
        units.map(|it| it.copy.start.0)
    }

    /// A routine that is about to run for the first time.
    fn next_ahead(&mut self) -> Option<u64> {
        while let Some(start) = self.ahead.pop() {
            if self.is_untouched(start) {
                return Some(start);
            }
        }
        None
    }

    /// Does a routine begin here that has not run yet?
    fn is_untouched(&self, start: u64) -> bool {
        let part = self.outline.borrow().part_at(LinkAddr(start));
        part.is_some_and(|it| it.start == start)
            && self.texts.contain(start)
            && !self.latest.contains_key(&start)
            && !self.is_refused(LinkAddr(start))
            && !self.is_restorer(start)
            && (!self.is_guessing || self.kept.borrow().has(&self.asked(start)))
    }

    /// What is to be known of a routine to copy it.
    fn asked(&self, start: u64) -> Asked {
        let end = self.outline.borrow().next_start(start);
        let islands = self.islands.range(start..end);
        Asked {
            start,
            arrivals: self.arrivals_of(start).map(LinkAddr).collect(),
            islands: islands.map(|it| LinkAddr(*it.0)).collect(),
            // Whoever is not looked at may read what any routine leaves in them.
            keeps_flags: self.wanted.is_some() || self.keep_flags.contains(&start),
        }
    }

    /// Makes one copy, or takes its guards away. Answers with routines that must be made again.
    fn make_one(
        &mut self,
        start: u64,
        is_alone: bool,
        windows: &mut Windows,
        journal: &mut Journal,
    ) -> io::Result<Vec<u64>> {
        if self.is_restorer(start) {
            return self.keep_restorer(start, windows, journal);
        }
        let outline = Rc::clone(&self.outline);
        let before = outline.borrow().part_at(LinkAddr(start));
        self.clear_arrivals(start);
        let asked = self.asked(start);
        let mut again = Vec::new();
        let made = match self.prepared(&asked) {
            Ok(it) => {
                // Whether it is copied or not: it will lead there.
                again = self.lead_to(&it.leads_to, &it.unknown_code, is_alone);
                match it.made {
                    Ok(made) => {
                        again.extend(self.hand_flags_to(&made.hands_flags_to));
                        let islands = match self.find_islands(&made.template) {
                            Ok(it) => it,
                            Err(neighbours) => {
                                again.push(start);
                                again.extend(neighbours);
                                return Ok(again);
                            }
                        };
                        self.copy(made, &islands, windows, journal)?
                    }
                    Err(reason) => Err(reason),
                }
            }
            Err(reason) => Err(reason),
        };
        match made {
            Ok(()) => {}
            // The copy that it has goes on, if nobody comes to where its detours are.
            Err(reason) if self.latest.contains_key(&start) => {
                self.keep_older(start, &reason, journal)?;
            }
            Err(reason) => self.refuse(start, reason, journal)?,
        }
        if let Some(before) = before {
            self.look_for_loose_calls(before);
        }
        self.look_at_unknown_calls();
        Ok(again)
    }

    /// A routine that has a copy was to be made again, and cannot be. Where control may arrive since
    /// then it meets a trap, and goes on in the copy: that is as good, and slow. What is not in the
    /// copy is not counted.
    fn keep_older(&self, start: u64, reason: &str, journal: &mut Journal) -> io::Result<()> {
        let copy = self.latest.get(&start).map(|unit| &self.units[*unit].copy);
        let is_gap = |at: &u64| copy.is_some_and(|it| it.is_gap((*at - start) as u32));
        for at in self.arrivals_of(start).filter(is_gap) {
            journal.write(&Entry::Note(format!(
                "What ran from link address {at:#x} on is not counted: {reason}."
            )))?;
        }
        let offsets = self.arrivals_of(start).map(|at| (at - start) as u32);
        let unit = self.latest.get(&start).copied();
        let is_lost = |offset: u32| {
            let is_covered = unit.is_some_and(|it| self.is_covered(it, offset));
            is_covered && copy.is_some_and(|it| it.landing(offset).is_none())
        };
        match offsets.into_iter().any(is_lost) {
            false => Ok(()),
            true => Err(io::Error::other(format!(
                "control goes to where a function was changed (link address {start:#x}), and it \
                 cannot be changed again: {reason}; run it with --engine breakpoint"
            ))),
        }
    }

    fn is_restorer(&self, start: u64) -> bool {
        let part = self.outline.borrow().part_at(LinkAddr(start));
        let bytes = part.and_then(|part| self.texts.original(&part));
        bytes.is_some_and(headcount_binary::is_sigreturn)
    }

    /// Leaves a routine as it is that signal handlers return through: the monitor sees them.
    fn keep_restorer(
        &mut self,
        start: u64,
        windows: &mut Windows,
        journal: &mut Journal,
    ) -> io::Result<Vec<u64>> {
        if let Some(counter) = windows.reserve(1)? {
            // The number of the system call goes into a register, in one of two ways.
            let call = match self.original(LinkAddr(start)) {
                Some(0x48) => 7,
                _ => 5,
            };
            self.add_to_journal(start, counter, restorer_flow(call), journal)?;
            let call = call.into();
            self.restorers.insert(start, Restorer { call, counter });
        }
        if !self.guards_restorers {
            self.unguard(start);
        }
        Ok(Vec::new())
    }

    fn unguard(&mut self, at: u64) {
        if self.texts.contain(at) {
            self.texts.restore(&(at..at + 1));
            self.changes.push(Change::Text(at..at + 1, None));
        }
    }

    fn arrivals_of(&self, start: u64) -> impl Iterator<Item = u64> {
        let known = self.arrivals.get(&start);
        known.into_iter().flatten().copied()
    }

    /// A routine leads to the middle of others: they are entered there, too.
    fn lead_to(&mut self, leads_to: &[LinkAddr], unknown: &[LinkAddr], is_alone: bool) -> Vec<u64> {
        let mut again = Vec::new();
        for at in unknown {
            self.outline.borrow_mut().add_called(*at);
        }
        self.guard_added();
        for at in leads_to {
            let Some(part) = self.outline.borrow().part_at(*at) else {
                continue;
            };
            if !self.arrivals.entry(part.start).or_default().insert(at.0) {
                continue;
            }
            match self.latest.get(&part.start) {
                None if self.refused.contains(&part.start) || !self.is_wanted(at.0) => {}
                None => {
                    self.guard(at.0);
                    self.look_for_loose_calls(part);
                }
                Some(unit) => {
                    let copy = &self.units[*unit].copy;
                    let offset = (at.0 - part.start) as u32;
                    let is_new = copy.landing(offset).is_none();
                    // Where the copy has no instruction, nobody was known to come.
                    let is_needed = copy.resume(offset).is_none() || self.is_covered(*unit, offset);
                    if is_new && (is_alone || is_needed) {
                        again.push(part.start);
                    }
                }
            }
        }
        again
    }

    /// Guards the parts that became known meanwhile, be it by a workshop of another process.
    fn guard_added(&mut self) {
        let added: Vec<u64> = self.outline.borrow().added()[self.guarded..].to_vec();
        self.guarded += added.len();
        for at in added {
            let part = self.outline.borrow().part_at(LinkAddr(at));
            let part = part.unwrap_or(at..at + 1);
            self.look_for_callers(part.clone());
            if !self.is_wanted(at) {
                continue;
            }
            self.guard(at);
            let may_have_run = self.outline.borrow().spoken_of(&part);
            self.late.extend(may_have_run.map(LinkAddr));
            self.look_for_loose_calls(part);
        }
    }

    fn guard(&mut self, at: u64) {
        self.clear(at);
        self.texts.set(at, TRAP);
        self.changes.push(Change::Text(at..at + 1, None));
    }

    /// From now on the flags matter that these leave. Answers with those that must be made again.
    fn hand_flags_to(&mut self, routines: &[LinkAddr]) -> Vec<u64> {
        let mut again = Vec::new();
        for at in routines {
            let part = self.outline.borrow().part_at(*at);
            let start = part.map_or(at.0, |it| it.start);
            if self.keep_flags.insert(start) && self.latest.contains_key(&start) {
                again.push(start);
            }
        }
        again
    }

    /// What is known of the routine that is asked for, be it from another process or another run.
    fn prepared(&mut self, asked: &Asked) -> Result<Prepared, String> {
        let mut outline = self.outline.borrow_mut();
        let mut kept = self.kept.borrow_mut();
        if let Some(known) = kept.get(asked, &mut outline) {
            return Ok(known);
        }
        let prepared = Prepared::of(&mut outline, asked, &kept.events)?;
        kept.put(asked, &prepared);
        Ok(prepared)
    }

    fn copy(
        &mut self,
        made: Made,
        islands: &[(u32, LinkAddr)],
        windows: &mut Windows,
        journal: &mut Journal,
    ) -> io::Result<Result<(), String>> {
        let text = made.text.start..made.text.end + u64::from(made.filler);
        if self.texts.original(&text).is_none() {
            return Ok(Err("it is not where the file says".to_owned()));
        }
        let is_as_in_file = self.texts.are_in_file(&made.text)
            || self.texts.original(&made.text) == self.outline.borrow().text(&made.text);
        if !is_as_in_file {
            return Ok(Err("its bytes are not those of the file".to_owned()));
        }
        let known = self.kept.borrow().numbers(made.text.start, &made.flow);
        let counter = match known {
            Some(known) => Some(known.first_counter),
            None => windows.reserve(made.template.counters as usize)?,
        };
        let Some(counter) = counter else {
            return Ok(Err(
                "there are more counters than fit their windows".to_owned()
            ));
        };
        let offset = self.code.len().next_multiple_of(LINE) as u64;
        if offset + made.template.size() as u64 > self.site.size {
            return Ok(Err("there is no more room for copies".to_owned()));
        }
        let place = LinkAddr(self.site.copies_start().wrapping_add(offset));
        let copy = match made.template.copy_at(place, counter, islands) {
            Ok(copy) => copy,
            Err(reason) => return Ok(Err(reason.to_string())),
        };
        let number = match known {
            Some(known) => known.routine,
            None => self.add_to_journal(made.text.start, counter, made.flow, journal)?,
        };
        self.ahead.extend(made.sure.iter().map(|it| it.0));
        let unit = Unit {
            copy,
            offset,
            number,
            older: self.latest.get(&made.text.start).copied(),
            has_indirect_jumps: made.has_indirect_jumps,
        };
        self.add(text, unit);
        Ok(Ok(()))
    }

    /// Makes a routine known in the journal. Its number.
    fn add_to_journal(
        &self,
        start: u64,
        first_counter: CounterNumber,
        flow: RoutineFlow,
        journal: &mut Journal,
    ) -> io::Result<usize> {
        let routine = journal::Routine {
            module: self.module as u32,
            start,
            first_counter,
            flow,
        };
        let number = journal.add_routine(&routine)?;
        let numbers = Numbers {
            routine: number,
            first_counter,
        };
        self.kept.borrow_mut().number(start, routine.flow, numbers);
        Ok(number)
    }

    fn add(&mut self, text: Range<u64>, unit: Unit) {
        self.code.resize(unit.offset as usize, TRAP);
        let copy = &unit.copy;
        self.code.extend(&copy.code);
        let start = copy.start.0;
        self.unsqueeze(start);
        // An older copy may have changed other bytes.
        self.texts.restore(&text);
        for offset in copy.net() {
            self.texts.set(start + u64::from(*offset), TRAP);
        }
        for (offset, byte) in copy.jumps.iter().flat_map(Jump::bytes) {
            self.texts.set(start.wrapping_add_signed(offset), byte);
        }
        self.keep_islands(&text, copy);
        self.settle(copy, &text);
        self.redirect_calls(&unit);
        let number = self.units.len();
        self.latest.insert(start, number);
        self.units.push(unit);
        self.changes.push(Change::Text(text, Some(number)));
        self.link_calls(number);
    }

    /// Threads may still run in an older copy of the routine. Where it jumps to a call that is now
    /// made from the new copy, it is to jump there.
    fn redirect_calls(&mut self, new: &Unit) {
        let (new, new_offset, mut older) = (&new.copy, new.offset, new.older);
        while let Some(unit) = older.map(|it| &self.units[it]) {
            older = unit.older;
            for (original, jump) in unit.copy.calls() {
                let Some(resume) = new
                    .resume(original)
                    .filter(|_| new.call(original).is_none())
                else {
                    continue;
                };
                let place = (unit.offset + u64::from(jump)) as usize + 1;
                let target = new_offset + u64::from(resume.offset);
                let distance = (target as i64 - (place as i64 + 4)) as i32;
                self.code[place..place + 4].copy_from_slice(&distance.to_le_bytes());
                self.changes.push(Change::Copies(place..place + 4));
            }
        }
    }

    /// Takes the guards of a routine that cannot be counted away.
    fn refuse(&mut self, start: u64, reason: String, journal: &mut Journal) -> io::Result<()> {
        let part = self.outline.borrow().part_at(LinkAddr(start));
        let part = part.unwrap_or(start..start + 1);
        let arrivals: Vec<u64> = self.arrivals_of(start).chain([start]).collect();
        for at in arrivals {
            self.unguard(at);
        }
        let users = self.outline.borrow_mut().gs_users(LinkAddr(start));
        for at in users {
            self.guard(at);
            self.gs_users.insert(at);
        }
        if self.refused.insert(start) {
            journal.write(&Entry::Refused {
                module: self.module,
                start,
                length: part.end - part.start,
                reason,
            })?;
        }
        Ok(())
    }
}

/// One block of two instructions, of which the first has so many bytes.
fn restorer_flow(first: u8) -> RoutineFlow {
    let block = RoutineBlock {
        lengths: vec![first, SYSCALL.len() as u8],
        ..RoutineBlock::default()
    };
    let inside = Node::Block(BlockId(0));
    let edge = |from: Node, to: Node, kind: EdgeKind| Edge { from, to, kind };
    let graph = FlowGraph {
        blocks: 1,
        edges: vec![
            edge(Node::Outside, inside, EdgeKind::Entry),
            edge(inside, Node::Outside, EdgeKind::Leave),
        ],
    };
    let plan = Plan {
        counters: vec![Place::Block(BlockId(0))],
    };
    RoutineFlow::pack(&[block], &[], &graph, &plan)
}
