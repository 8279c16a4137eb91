//! What the counters in copies said about a module, as a profile keeps it until somebody asks for
//! counts: to make those takes longer than to run a short program.
//!
//! ```text
//! readings = functions, uncounted, refused   see `ModuleReadings`; lists have their length in front
//!            routine*                        to the end
//! routine  = start, flow, counters, visits   flow: as the monitor's journal has it
//! ```
//!
//! All numbers are LEB128. Those that may be negative are folded: 0, -1, 1, -2, … become 0, 1, 2, 3, ….

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result};
use headcount_model::packed::{Packed, Packer};
use headcount_model::{LinkAddr, Module, ModuleCounts, Readings};
use headcount_monitor::journal::{self, RoutineFlow};
use headcount_profile::{Executed, ModuleCounted, ModuleFacts, Profile, SparseCounts};

use crate::copies::{self, Reading, Stretch, stretches};
use crate::selection::Selection;

/// What counters said about a module.
#[derive(Debug, Default)]
pub struct ModuleReadings {
    /// The functions that have code in a routine that was copied, or refused, by their number in
    /// the module; in order. All others never ran, if they were counted.
    pub functions: Vec<usize>,
    /// Stretches of functions that were not counted, in order.
    pub uncounted: Vec<Range<usize>>,
    /// Code that was not counted.
    pub refused: Vec<Range<u64>>,
    /// What was.
    pub readings: Vec<Reading>,
}

impl ModuleReadings {
    /// From what all copies of a module's routines said, and the code that could not be copied.
    pub fn new(facts: &ModuleFacts, mut readings: Vec<Reading>, refused: Vec<Range<u64>>) -> Self {
        let uncounted = uncounted(facts, &readings);
        // What nobody came to might as well have no copy. If nobody came to any, that is to be told.
        if readings.iter().any(Reading::has_run) {
            readings.retain(Reading::has_run);
        }
        Self {
            functions: facts.functions_in(&touched(&readings, &refused)),
            uncounted,
            refused,
            readings,
        }
    }

    /// The counts of what the user chooses among all functions; and what to tell the user.
    pub fn chosen(
        mut self,
        facts: &ModuleFacts,
        selection: &Selection,
    ) -> Result<(SparseCounts, Vec<String>)> {
        self.functions = (0..facts.functions.len()).collect();
        self.counts(facts, |module| selection.choose(module))
    }

    /// The counts of blocks, of which some are chosen if `choose` says anything; and what to tell the
    /// user.
    fn counts(
        self,
        facts: &ModuleFacts,
        choose: impl FnOnce(&Module) -> Vec<bool>,
    ) -> Result<(SparseCounts, Vec<String>)> {
        let module = facts.part(self.functions.iter().copied())?;
        let functions = self.functions.iter().zip(&module.functions);
        let watched = functions.filter(|(number, _)| self.is_counted(**number));
        let mut watched: Vec<LinkAddr> = watched.map(|(_, it)| it.address).collect();
        watched.sort_unstable();
        let is_watched = |at: LinkAddr| watched.binary_search(&at).is_ok();
        let (mut counts, notes) = copies::counts(&module, &self.readings, &is_watched);
        if !self.refused.is_empty() {
            let blocks = module.functions.iter().flat_map(|it| &it.blocks);
            let copied = blocks.map(|it| !self.is_refused(it.address.0));
            leave_out(&mut counts, &copied.collect::<Vec<_>>());
        }
        leave_out(&mut counts, &choose(&module));
        let functions = self.functions.iter().copied().zip(counts.functions);
        let functions = functions.filter(|(number, _)| self.is_counted(*number));
        let counts = SparseCounts {
            build_id: counts.build_id,
            functions: functions.collect(),
            uncounted: self.uncounted.clone(),
        };
        Ok((counts, notes))
    }

    /// As a profile keeps it.
    pub fn kept(&self, build_id: &str) -> ModuleCounted {
        ModuleCounted::Readings {
            build_id: build_id.to_owned(),
            readings: self.pack(),
        }
    }

    /// Was any function counted, be it that it never ran?
    pub fn has_counts(&self) -> bool {
        self.functions.iter().any(|it| self.is_counted(*it))
    }

    /// How often instructions ran, altogether; `None` if that is not known.
    pub fn sum_at(&self, these: &[LinkAddr]) -> Option<u64> {
        let mut sum = 0_u64;
        for reading in &self.readings {
            let ends = reading.blocks.iter().map(|it| u64::from(it.end()));
            let end = reading.start.0.saturating_add(ends.max().unwrap_or(0));
            let is_inside = |at: &&LinkAddr| (reading.start.0..end).contains(&at.0);
            let inside: Vec<&LinkAddr> = these.iter().filter(is_inside).collect();
            if inside.is_empty() {
                continue;
            }
            let made = stretches(reading);
            for at in inside {
                let around = made.iter().find(|it| it.range().contains(&at.0));
                sum = sum.saturating_add(around?.count?);
            }
        }
        Some(sum)
    }

    fn is_refused(&self, at: u64) -> bool {
        self.refused.iter().any(|it| it.contains(&at))
    }

    /// Was a function counted?
    fn is_counted(&self, function: usize) -> bool {
        let next = self.uncounted.partition_point(|it| it.end <= function);
        let stretch = self.uncounted.get(next);
        stretch.is_none_or(|it| !it.contains(&function))
    }

    /// As bytes.
    pub fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        to.many(&self.functions, |to, it| to.number(*it));
        to.many(&self.uncounted, |to, it| {
            to.number(it.start);
            to.number(it.end);
        });
        to.many(&self.refused, |to, it| {
            to.wide(it.start);
            to.wide(it.end);
        });
        for it in &self.readings {
            to.wide(it.start.0);
            let flow = RoutineFlow::pack(&it.blocks, &it.doubtful, &it.graph, &it.plan);
            to.bytes(&flow.0);
            to.many(&it.readings.0, |to, it| to.wide(*it));
            to.many(&it.visits, |to, (at, delta)| {
                to.wide(at.0);
                to.signed_wide(*delta);
            });
        }
        to.0
    }

    /// `None`: these are not bytes of ours.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let mut all = Self {
            functions: from.many(number)?,
            uncounted: from.many(|it| Some(number(it)?..number(it)?))?,
            refused: from.many(|it| Some(it.wide()?..it.wide()?))?,
            readings: Vec::new(),
        };
        while !from.0.is_empty() {
            all.readings.push(take_reading(&mut from)?);
        }
        let ascends = all.functions.is_sorted_by(|one, other| one < other);
        let is_ordered = all
            .uncounted
            .is_sorted_by(|one, other| one.end <= other.start)
            && all.uncounted.iter().all(|it| it.start <= it.end);
        (ascends && is_ordered).then_some(all)
    }
}

/// Stretches of functions that were not under watch. What was, and of which no routine was copied,
/// did not run.
fn uncounted(facts: &ModuleFacts, readings: &[Reading]) -> Vec<Range<usize>> {
    let mut made: Vec<u64> = readings.iter().map(|it| it.start.0).collect();
    made.sort_unstable();
    let has = |starts: &[u64], at: LinkAddr| starts.binary_search(&at.0).is_ok();
    let mut uncounted: Vec<Range<usize>> = Vec::new();
    for (number, function) in facts.functions.iter().enumerate() {
        let at = function.address;
        match uncounted.last_mut() {
            _ if has(&facts.watched, at) || has(&made, at) => {}
            Some(last) if last.end == number => last.end += 1,
            _ => uncounted.push(number..number + 1),
        }
    }
    uncounted
}

/// Where something was counted or refused: ranges of addresses, in order.
fn touched(readings: &[Reading], refused: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges = refused.to_vec();
    for reading in readings {
        let start = reading.start.0;
        let ends = reading.blocks.iter().map(|it| u64::from(it.end()));
        let end = ends.max().unwrap_or(0).max(1);
        ranges.push(start..start.saturating_add(end));
        let visits = reading.visits.iter();
        ranges.extend(visits.map(|(at, _)| at.0..at.0.saturating_add(1)));
    }
    headcount_model::join_ranges(ranges)
}

/// Forgets the counts of blocks that are not to be counted.
fn leave_out(counts: &mut ModuleCounts, chosen: &[bool]) {
    let mut chosen = chosen.iter();
    for function in &mut counts.functions {
        let mut is_whole = true;
        for block in &mut function.blocks {
            if chosen.next() == Some(&false) {
                *block = None;
                is_whole = false;
            }
        }
        if !is_whole {
            function.edges.fill(None);
        }
    }
}

fn number(from: &mut Packed<'_>) -> Option<usize> {
    Some(from.number()? as usize)
}

fn take_reading(from: &mut Packed<'_>) -> Option<Reading> {
    let start = LinkAddr(from.wide()?);
    let flow = RoutineFlow(from.bytes()?.to_vec());
    let journal::Counted {
        blocks,
        doubtful,
        graph,
        plan,
    } = flow.unpack()?;
    let readings: Vec<u64> = from.many(Packed::wide)?;
    let visits = from.many(|it| Some((LinkAddr(it.wide()?), it.signed_wide()?)))?;
    (readings.len() == plan.counters.len()).then_some(Reading {
        start,
        blocks,
        doubtful,
        graph,
        plan,
        readings: Readings(readings),
        visits,
    })
}

/// Opens a profile to read from it: counts are made of readings, and stay there if it may be
/// written.
pub fn open(path: &std::path::Path) -> Result<Profile, headcount_profile::Error> {
    Profile::open(path).map(with_counts)
}

/// The same for a profile that is open.
pub fn with_counts(profile: Profile) -> Profile {
    let mut profile = profile.with_recovery(recover);
    // Whoever reads makes them once more, or hears what is wrong.
    let _ = profile.recover_readings();
    profile
}

/// Makes counts of what a profile keeps, and sentences on what they lack.
pub fn recover(facts: &ModuleFacts, bytes: &[u8]) -> Result<(SparseCounts, Vec<String>), String> {
    let readings = ModuleReadings::unpack(bytes).context("its readings make no sense");
    let made = readings.and_then(|readings| readings.counts(facts, |_| Vec::new()));
    made.map_err(|error| error.to_string())
}

/// How many instructions each function that ran executed, by its number in the module.
pub fn executed(facts: &ModuleFacts, readings: &ModuleReadings) -> BTreeMap<usize, u64> {
    let mut executed = BTreeMap::new();
    each_executed(facts, readings, |function, stretch, range, count| {
        let sum = executed.entry(function).or_insert(0_u64);
        let instructions = stretch.begin_in(range) as u64;
        *sum = sum.saturating_add(count.saturating_mul(instructions));
    });
    executed
}

/// Tells of all stretches that ran: the function and which range of it they have instructions in, and
/// how often each of these ran.
pub fn each_executed(
    facts: &ModuleFacts,
    readings: &ModuleReadings,
    mut tell: impl FnMut(usize, &Stretch<'_>, &Range<u64>, u64),
) {
    let code = Code::of(facts);
    for reading in &readings.readings {
        code.each_executed(readings, reading, &mut tell);
    }
}

/// Where functions have their code.
pub struct Code<'a> {
    /// In order.
    extents: Vec<(&'a Range<u64>, usize)>,
    /// How far those up to this one reach.
    reach: Vec<u64>,
}

impl<'a> Code<'a> {
    /// The functions of a module.
    pub fn of(facts: &'a ModuleFacts) -> Self {
        let mut extents: Vec<_> = facts.extents().collect();
        extents.sort_by_key(|(range, _)| range.start);
        let reach = extents.iter().scan(0, |reach, (range, _)| {
            *reach = range.end.max(*reach);
            Some(*reach)
        });
        Self {
            reach: reach.collect(),
            extents,
        }
    }

    /// How many instructions a routine executed.
    pub fn executed(&self, readings: &ModuleReadings, reading: &Reading) -> Executed {
        let made = stretches(reading);
        let is_contradictory = made.is_empty() || made.iter().any(|it| it.count.is_none());
        let mut instructions = 0_u64;
        self.each_executed(readings, reading, &mut |_, stretch, range, count| {
            let executed = count.saturating_mul(stretch.begin_in(range) as u64);
            instructions = instructions.saturating_add(executed);
        });
        Executed {
            instructions,
            at_least: is_contradictory,
        }
    }

    fn each_executed(
        &self,
        readings: &ModuleReadings,
        reading: &Reading,
        tell: &mut impl FnMut(usize, &Stretch<'_>, &Range<u64>, u64),
    ) {
        for stretch in stretches(reading) {
            let Stretch { start, count, .. } = stretch;
            let Some(count) = count.filter(|count| *count > 0 && !readings.is_refused(start.0))
            else {
                continue;
            };
            for (function, range) in self.around(&stretch.range()) {
                if readings.is_counted(function) {
                    tell(function, &stretch, range, count);
                }
            }
        }
    }

    /// Who has code in a range, and where.
    fn around(&self, range: &Range<u64>) -> impl Iterator<Item = (usize, &'a Range<u64>)> {
        let after = self.extents.partition_point(|it| it.0.start < range.end);
        let before = (0..after).rev();
        let near = before.take_while(|index| self.reach[*index] > range.start);
        let near = near.map(|index| (self.extents[index].1, self.extents[index].0));
        near.filter(|(_, extent)| extent.end > range.start)
    }
}
