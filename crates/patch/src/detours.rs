//! How does control get from the original bytes into the copy?
//!
//! By a jump of five bytes where there is room for it. Where there is not, by a short jump to an
//! island: a long jump in dead bytes nearby, of the routine itself or of its neighbours. Where a
//! call is in the way, or its bytes would be an island, the call may be made from the copy instead.
//! A trap is the last resort.

use std::ops::Range;

use headcount_x86::out_of_line;
use iced_x86::{Instruction, Mnemonic};

use crate::sketch::{Block, CannotCopy, End, Sketch};

/// The bytes of a jump to anywhere near.
pub const LONG: u32 = 5;
/// The bytes of a jump to a place right here.
pub const SHORT: u32 = 2;

/// How control that arrives at an entered block gets into the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Long,
    /// By an island at this offset.
    Island(u32),
    /// By an island in the dead bytes of another routine, if one is found; else by a trap.
    Short,
    Trap,
}

/// What becomes of the original bytes.
#[derive(Debug, Default)]
pub struct Detours {
    /// Every entered block's offset, and how control gets on from there.
    pub kinds: Vec<(u32, Kind)>,
    /// Which blocks make their call from the copy.
    pub moved: Vec<bool>,
    /// Bytes of jumps, islands included, sorted.
    pub taken: Vec<Range<u32>>,
    /// Bytes in no block, sorted: they may be data, and stay as they are.
    pub gaps: Vec<Range<u32>>,
    /// Dead bytes that islands of other routines may be in.
    pub spare: Vec<Range<u32>>,
}

impl Detours {
    /// Is there a byte of a jump at this offset?
    pub fn takes(&self, offset: u32) -> bool {
        let after = self.taken.partition_point(|it| it.start <= offset);
        let before = after.checked_sub(1).map(|index| &self.taken[index]);
        before.is_some_and(|it| offset < it.end)
    }
}

/// Plans the detours of a routine.
pub fn plan(sketch: &Sketch) -> Result<Detours, CannotCopy> {
    let mut planner = Planner::new(sketch)?;
    let mut short = Vec::new();
    for (number, block) in sketch.blocks.iter().enumerate() {
        if block.entrance.is_none() {
            continue;
        }
        let at = planner.offset(number);
        match planner.room(at) >= LONG {
            true => planner.take(at, Kind::Long),
            false => short.push(at),
        }
    }
    for at in short {
        planner.place_short(at);
    }
    let spare = planner.spare();
    let mut found = planner.found;
    found.spare = spare;
    found.kinds.sort_unstable_by_key(|(at, _)| *at);
    found.taken.sort_unstable_by_key(|it| it.start);
    Ok(found)
}

struct Planner<'a> {
    sketch: &'a Sketch,
    found: Detours,
    /// Where detours may not reach: entered blocks, others that nobody can rule out, and what is no
    /// code.
    borders: Vec<u32>,
    /// The calls, by address: offset, end, block.
    calls: Vec<(u32, u32, usize)>,
    end: u32,
}

impl<'a> Planner<'a> {
    fn new(sketch: &'a Sketch) -> Result<Self, CannotCopy> {
        let routine = &sketch.routine;
        let mut moved = vec![false; sketch.blocks.len()];
        let mut calls = Vec::new();
        for (number, block) in sketch.blocks.iter().enumerate() {
            if !matches!(block.end, End::Call) {
                continue;
            }
            let facts = &routine.blocks[number];
            let last = facts.lengths.last().copied().unwrap_or(0);
            let (start, end) = (facts.end() - u32::from(last), facts.end());
            // Where control arrives at the very call, the call's bytes must make room; where another
            // routine's island is, they have done so.
            let mut islands = routine.islands.iter();
            moved[number] = block.code.len() == 1 && block.entrance.is_some()
                || islands.any(|it| *it < end && start < *it + LONG);
            if moved[number] && !is_movable(block) {
                return Err(CannotCopy::StuckCall(routine.start.0 + u64::from(start)));
            }
            calls.push((start, end, number));
        }
        Ok(Self {
            sketch,
            found: Detours {
                moved,
                gaps: gaps(sketch),
                taken: routine.islands.iter().map(|it| *it..*it + LONG).collect(),
                ..Detours::default()
            },
            borders: borders(sketch),
            calls,
            end: routine.bytes.len() as u32 + routine.filler,
        })
    }

    fn offset(&self, number: usize) -> u32 {
        self.sketch.routine.blocks[number].offset
    }

    /// The first call from `at` on that is made from its own place.
    fn call_from(&self, at: u32) -> Option<(u32, u32, usize)> {
        let first = self.calls.partition_point(|(start, ..)| *start < at);
        let mut calls = self.calls[first..].iter();
        calls
            .find(|(.., number)| !self.found.moved[*number])
            .copied()
    }

    /// How many bytes a detour may have here.
    fn room(&self, at: u32) -> u32 {
        let next = self.borders.partition_point(|border| *border <= at);
        let border = self.borders.get(next).copied().unwrap_or(self.end);
        let call = self.call_from(at).map_or(self.end, |(start, ..)| start);
        let others = self.sketch.routine.islands.iter().copied();
        let other = others.filter(|it| *it >= at).min().unwrap_or(self.end);
        border.min(call).min(other).min(self.end).saturating_sub(at)
    }

    fn place_short(&mut self, at: u32) {
        let kind = self
            .island(at)
            .map(Kind::Island)
            .or_else(|| self.room_of_call(at, self.call_behind(at)))
            .or_else(|| self.room_of_call(at, self.call_before(at)));
        let last_resort = match self.room(at) >= SHORT {
            true => Kind::Short,
            false => Kind::Trap,
        };
        self.take(at, kind.unwrap_or(last_resort));
    }

    /// The block of the call that is in the way of a long jump.
    fn call_behind(&self, at: u32) -> Option<usize> {
        let (start, _, block) = self.call_from(at)?;
        (start < at + LONG).then_some(block)
    }

    /// The block of the call that returns here.
    fn call_before(&self, at: u32) -> Option<usize> {
        let found = self.calls.binary_search_by_key(&at, |(_, end, _)| *end);
        found.ok().map(|index| self.calls[index].2)
    }

    /// What there is room for if a call is made from the copy. If there is, it will be.
    fn room_of_call(&mut self, at: u32, call: Option<usize>) -> Option<Kind> {
        let call = call.filter(|it| !self.found.moved[*it])?;
        if !is_movable(&self.sketch.blocks[call]) {
            return None;
        }
        self.found.moved[call] = true;
        let kind = match self.room(at) >= LONG {
            true => Some(Kind::Long),
            false => self.island(at).map(Kind::Island),
        };
        self.found.moved[call] = kind.is_some();
        kind
    }

    /// Dead bytes for a long jump, so near that a short one gets there.
    fn island(&self, at: u32) -> Option<u32> {
        if self.room(at) < SHORT {
            return None;
        }
        let from = at + SHORT;
        let reach = from.saturating_sub(128)..=from + 127;
        let overlaps = |place: u32| {
            let island = place..place + LONG;
            let touches = |it: &Range<u32>| it.start < island.end && island.start < it.end;
            let own = at..at + SHORT;
            let calls = self.calls.iter().filter(|it| !self.found.moved[it.2]);
            let border = self.borders.partition_point(|it| *it < island.start);
            let hits_border = self.borders.get(border).is_some_and(|it| *it < island.end);
            hits_border
                || touches(&own)
                || self.found.gaps.iter().any(touches)
                || self.found.taken.iter().any(touches)
                || calls
                    .clone()
                    .any(|(start, end, _)| touches(&(*start..*end)))
        };
        let last = (*reach.end()).min(self.end.checked_sub(LONG)?);
        // Nearest first, as far as that is easy: behind, then in front.
        let behind = from..=last;
        let before = (*reach.start()..from).rev();
        behind
            .chain(before)
            .filter(|place| *place <= last)
            .find(|place| !overlaps(*place))
    }

    fn take(&mut self, at: u32, kind: Kind) {
        match kind {
            Kind::Long => self.found.taken.push(at..at + LONG),
            Kind::Island(island) => {
                self.found.taken.push(at..at + SHORT);
                self.found.taken.push(island..island + LONG);
            }
            Kind::Short => self.found.taken.push(at..at + SHORT),
            Kind::Trap => {}
        }
        self.found.kinds.push((at, kind));
    }

    /// Dead bytes that nothing of the routine's own needs, where a long jump fits.
    fn spare(&self) -> Vec<Range<u32>> {
        let live = self.calls.iter().filter(|it| !self.found.moved[it.2]);
        let mut used: Vec<Range<u32>> = live.map(|(start, end, _)| *start..*end).collect();
        used.extend(self.found.taken.iter().chain(&self.found.gaps).cloned());
        used.extend(self.borders.iter().map(|it| *it..*it + 1));
        used.push(self.end..self.end);
        used.sort_unstable_by_key(|it| it.start);
        let mut free = 0;
        let mut spare = Vec::new();
        for used in used {
            if free + LONG <= used.start {
                spare.push(free..used.start);
            }
            free = free.max(used.end);
        }
        spare
    }
}

/// Bytes of a routine that are in none of its blocks.
fn gaps(sketch: &Sketch) -> Vec<Range<u32>> {
    let mut gaps = Vec::new();
    let mut end = 0;
    for block in &sketch.routine.blocks {
        gaps.extend((end < block.offset).then_some(end..block.offset));
        end = end.max(block.end());
    }
    let length = sketch.routine.bytes.len() as u32;
    gaps.extend((end < length).then_some(end..length));
    gaps
}

/// Where detours may not reach; see [`Planner`].
fn borders(sketch: &Sketch) -> Vec<u32> {
    let may_jump = sketch.has_indirect_jumps();
    let may_jump_anywhere = sketch.reckons_jumps();
    let start = sketch.routine.start.0;
    let mut borders = Vec::new();
    for (block, is_reached) in sketch.blocks.iter().zip(sketch.reached()) {
        let all = block.code.iter();
        let all = all.map(|it| {
            (
                it.ip().wrapping_sub(start) as u32,
                it.mnemonic() == Mnemonic::Nop,
            )
        });
        if !is_reached {
            // Where nothing leads that we know of, something leads that we do not know of, if it is
            // not for what only fills the place up to the next address that is even.
            let code = all.skip_while(|(_, is_filler)| *is_filler);
            borders.extend(code.map(|(at, _)| at));
        } else if may_jump_anywhere {
            borders.extend(all.map(|(at, _)| at));
        } else if may_jump || block.entrance.is_some() {
            borders.extend(all.take(1).map(|(at, _)| at));
        }
    }
    // Behind an `int3` another function may begin: compilers fill gaps with it.
    let is_int3 = |it: &Instruction| it.mnemonic() == Mnemonic::Int3;
    let mut is_behind = false;
    for instruction in sketch.blocks.iter().flat_map(|it| &it.code) {
        if is_behind && !is_int3(instruction) {
            borders.push(instruction.ip().wrapping_sub(start) as u32);
        }
        is_behind = is_int3(instruction);
    }
    borders.extend(gaps(sketch).iter().map(|it| it.start));
    borders.sort_unstable();
    borders.dedup();
    borders
}

/// Can the call that ends a block be made from elsewhere?
fn is_movable(block: &Block) -> bool {
    let call = block.code.last();
    call.is_some_and(|it| it.is_call_near() || out_of_line::jump_of_call(it).is_ok())
}
