//! A copy that has its place: what to write where, and what a thread in it has done.

use std::ops::Range;

use headcount_model::LinkAddr;

use crate::detours::{Kind, LONG, SHORT};
use crate::spots::{CounterNumber, Fix, Resume, Spot};
use crate::system_calls::SystemCall;
use crate::tables::Spots;
use crate::template::{Tallied, Template};

/// `jmp rel32`.
const JUMP: u8 = 0xe9;
/// `jmp rel8`.
const SHORT_JUMP: u8 = 0xeb;

/// A routine's copy, and what becomes of its original bytes.
#[derive(Debug)]
pub struct Copy {
    /// The routine's first byte.
    pub start: LinkAddr,
    /// How many bytes it has.
    pub length: u32,
    /// The bytes of the copy.
    pub code: Vec<u8>,
    /// The jumps into it that the original bytes make way for.
    pub jumps: Vec<Jump>,
    /// Where instructions of the original are made to trap, dead ones among them.
    net: Vec<u32>,
    /// The rest; its code is here.
    template: Template,
    first: CounterNumber,
}

/// Which instruction of the original each place of a copy stands for.
#[derive(Clone, Debug)]
pub struct Originals {
    start: LinkAddr,
    spots: Spots,
}

impl Originals {
    /// The instruction at an offset of the copy, and whether a return address of ours is on the stack
    /// there.
    pub fn at(&self, offset: u32) -> Option<(LinkAddr, bool)> {
        let spot = self.spots.get(self.start, offset)?;
        Some((spot.at, spot.undo.pops_return()))
    }
}

/// How control that arrives at an offset of the original gets into the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Where it arrives: the first byte there is to be written last.
    pub offset: u32,
    /// Where the jump to the copy is: here, or at an island that a short jump leads to. That may be
    /// in another routine, in front of this one or behind it.
    from: i64,
    distance: i32,
}

impl Jump {
    pub(crate) fn new(offset: u32, from: i64, distance: i32) -> Self {
        Self {
            offset,
            from,
            distance,
        }
    }

    /// The island that a short jump leads to, from the routine's start on.
    pub fn island(&self) -> Option<i64> {
        (self.from != i64::from(self.offset)).then_some(self.from)
    }

    /// The bytes of the jump into the copy.
    pub fn long(&self) -> [u8; LONG as usize] {
        let [a, b, c, d] = self.distance.to_le_bytes();
        [JUMP, a, b, c, d]
    }

    /// The bytes of the original that it changes: offset, and what is to be there.
    pub fn bytes(&self) -> impl Iterator<Item = (i64, u8)> {
        let long = (self.from..).zip(self.long());
        let short = self.island().map(|island| {
            let distance = (island - i64::from(self.offset + SHORT)) as u8;
            (i64::from(self.offset)..).zip([SHORT_JUMP, distance])
        });
        long.chain(short.into_iter().flatten())
    }
}

impl Copy {
    pub(crate) fn new(
        mut template: Template,
        code: Vec<u8>,
        jumps: Vec<Jump>,
        first: CounterNumber,
    ) -> Self {
        let mut net = std::mem::take(&mut template.net);
        let has_jump = |offset: u32| jumps.iter().any(|it| it.offset == offset);
        let without = template.short_of_room().filter(|it| !has_jump(*it));
        net.extend(without.flat_map(|it| it..it + SHORT));
        Self {
            start: template.start,
            length: template.length,
            code,
            jumps,
            net,
            template,
            first,
        }
    }

    /// The numbers of its counters.
    pub fn counters(&self) -> Range<CounterNumber> {
        self.first..self.first.saturating_add(self.template.counters)
    }

    /// Where instructions of the original are made to trap, dead ones among them.
    pub fn net(&self) -> &[u32] {
        &self.net
    }

    /// Where control arrives that gets into the copy by no single jump.
    pub fn short_entries(&self) -> impl Iterator<Item = u32> {
        let detours = self.template.detours.iter();
        detours.filter_map(|(offset, kind)| (*kind != Kind::Long).then_some(*offset))
    }

    /// Dead bytes that islands of other routines may be in.
    pub fn spare(&self) -> &[Range<u32>] {
        &self.template.spare
    }

    /// Does control that arrives at an offset of the original get on by a jump?
    pub fn has_jump(&self, offset: u32) -> bool {
        self.jumps.iter().any(|it| it.offset == offset)
    }

    /// How often control enters by a trap: nothing else fits.
    pub fn traps(&self) -> usize {
        self.template.detours.len() - self.jumps.len()
    }

    /// How many calls are made from the copy.
    pub fn moved_calls(&self) -> u32 {
        self.template.moved_calls
    }

    /// What a thread has done that stands at this offset of the copy.
    pub fn spot(&self, offset: u32) -> Option<Spot> {
        let spot = self.template.spots.get(self.start, offset)?;
        let fix = self.fix(spot.fix);
        Some(Spot { fix, ..spot })
    }

    /// Which instruction of the original each place of the copy stands for, to be kept elsewhere.
    pub fn originals(&self) -> Originals {
        Originals {
            start: self.start,
            spots: self.template.spots.clone(),
        }
    }

    /// What a thread has done that stands at this offset of the original, at a call.
    pub fn call(&self, offset: u32) -> Option<Spot> {
        let calls = &self.template.calls;
        let found = calls.binary_search_by_key(&offset, |it| it.0);
        self.spot(calls[found.ok()?].1)
    }

    /// Is the call at this offset of the original made from its own place?
    pub fn makes_call(&self, offset: u32) -> bool {
        let calls = &self.template.calls;
        calls.binary_search_by_key(&offset, |it| it.0).is_ok()
    }

    /// The calls that are made from their own place: where they are, and the jump to them in the
    /// copy.
    pub fn calls(&self) -> impl Iterator<Item = (u32, u32)> {
        self.template.calls.iter().copied()
    }

    /// Where in the copy the distances are of jumps to other routines.
    pub fn ways_out(&self) -> &[u32] {
        &self.template.ways_out
    }

    /// Where in the copy the original instruction at this offset is.
    pub fn resume(&self, offset: u32) -> Option<Resume> {
        let resume = self.template.resumes.get(offset)?;
        let fix = self.fix(resume.fix);
        Some(Resume { fix, ..resume })
    }

    /// By how much the event counter of a thread at a spot is behind what it would say, had the
    /// thread gone away from the original instruction.
    pub fn events_owed(&self, spot: &Spot) -> i64 {
        let lead = match spot.is_inside {
            true => self.lead(spot.at),
            false => 0,
        };
        lead + self.events_of(spot.fix) - i64::from(spot.ahead)
    }

    /// What the event counter of a thread that goes on in the copy at an original instruction must
    /// be less than the true number.
    pub fn events_lent(&self, at: LinkAddr, resume: &Resume) -> i64 {
        self.lead(at) - self.events_of(resume.fix)
    }

    fn lead(&self, at: LinkAddr) -> i64 {
        let offset = at.0.wrapping_sub(self.start.0) as u32;
        let leads = &self.template.leads;
        let found = leads.binary_search_by_key(&offset, |it| it.0);
        found.map_or(0, |index| leads[index].1.into())
    }

    /// What a change of a counter means for the event counter.
    fn events_of(&self, fix: Fix) -> i64 {
        let increments = &self.template.increments;
        fix.change().map_or(0, |(counter, delta)| {
            let increment = increments.get(counter.wrapping_sub(self.first) as usize);
            delta * increment.copied().map_or(0, i64::from)
        })
    }

    /// Does the copy trap at this offset of it because the event counter has come to its end?
    pub fn ends_countdown(&self, offset: u32) -> bool {
        self.template.countdowns.binary_search(&offset).is_ok()
    }

    /// Which counts of keyed probes a thread at a spot has made for an instruction that it has not run:
    /// the tally, and whether its amount was added as well.
    pub fn tallied(&self, spot: &Spot) -> impl Iterator<Item = Tallied> {
        let offset = spot.at.0.wrapping_sub(self.start.0) as u32;
        let all = &self.template.tallied;
        let found = all.binary_search_by_key(&offset, |it| it.0);
        let probes = found.map_or(&[][..], |index| &all[index].1);
        let counts = (0_u8..).step_by(2);
        let made = spot.tallied;
        let begun = counts.zip(probes).filter(move |(before, _)| made > *before);
        begun.map(move |(before, (tally, has_amount))| (*tally, *has_amount && made > before + 1))
    }

    /// Does the copy trap at this offset of it because a table has no room for a key?
    pub fn is_full_table(&self, offset: u32) -> bool {
        self.template.full_tables.binary_search(&offset).is_ok()
    }

    /// Does the copy trap at this offset of it because a text comes into a table?
    pub fn is_new_text(&self, offset: u32) -> bool {
        self.template.new_texts.binary_search(&offset).is_ok()
    }

    /// Does it because headcount is to be told that a thread comes there?
    pub fn is_notice(&self, offset: u32) -> bool {
        self.template.notices.binary_search(&offset).is_ok()
    }

    /// Where a thread goes on that faults at this offset of the copy because of a keyed probe.
    pub fn behind_fault(&self, offset: u32) -> Option<u32> {
        let faults = &self.template.faults;
        let found = faults.binary_search_by_key(&offset, |it| it.0);
        found.ok().map(|index| faults[index].1)
    }

    fn fix(&self, fix: Fix) -> Fix {
        match fix {
            Fix::Nothing => Fix::Nothing,
            Fix::Add(counter) => Fix::Add(counter.wrapping_add(self.first)),
            Fix::Take(counter) => Fix::Take(counter.wrapping_add(self.first)),
        }
    }

    /// Where in the copy control arrives that enters the original at this offset.
    pub fn landing(&self, offset: u32) -> Option<u32> {
        self.template.landing(offset)
    }

    /// The system call at this offset of the original.
    pub fn system_call(&self, offset: u32) -> Option<SystemCall> {
        let calls = &self.template.system_calls;
        let found = calls.binary_search_by_key(&offset, |it| it.original);
        found.ok().map(|index| calls[index])
    }

    /// Does the copy trap at this offset of it, before a system call?
    pub fn traps_before_call(&self, offset: u32) -> bool {
        let calls = &self.template.system_calls;
        calls.binary_search_by_key(&offset, |it| it.trap()).is_ok()
    }

    /// Does the copy trap at this offset of it because the program asks for something? Where it goes on
    /// then.
    pub fn behind_request(&self, offset: u32) -> Option<u32> {
        let found = self.template.requests.binary_search(&offset);
        let behind = 1 + headcount_request::INSTRUCTION.len() as u32;
        found.ok().map(|_| offset + behind)
    }

    /// The system call that a thread at this offset of the copy has counted and not made yet.
    pub fn counted_call(&self, offset: u32) -> Option<SystemCall> {
        let calls = &self.template.system_calls;
        let found = calls.binary_search_by_key(&offset, |it| it.call());
        found.ok().map(|index| calls[index])
    }

    /// How many islands there are.
    pub fn islands(&self) -> usize {
        self.jumps.iter().filter_map(Jump::island).count()
    }

    /// The entered block whose island is at this offset of the original.
    pub fn island_of(&self, offset: u32) -> Option<u32> {
        let island = Some(i64::from(offset));
        let found = self.jumps.iter().find(|it| it.island() == island);
        found.map(|it| it.offset)
    }

    /// Are the bytes at this offset of the original not in the copy, because they may be data?
    pub fn is_gap(&self, offset: u32) -> bool {
        self.template.gaps.iter().any(|it| it.contains(&offset))
    }

    /// Would a thread that goes on at this offset of the original meet the midst of a jump?
    pub fn is_covered(&self, offset: u32) -> bool {
        let taken = &self.template.taken;
        let after = taken.partition_point(|it| it.start < offset);
        let before = after.checked_sub(1).map(|index| &taken[index]);
        before.is_some_and(|it| offset < it.end) || self.island_of(offset).is_some()
    }
}
