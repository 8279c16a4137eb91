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

use anyhow::Context;
use headcount_model::packed::{Packed, Packer};
use headcount_model::{LinkAddr, Readings};
use headcount_monitor::journal::{self, RoutineFlow};
use headcount_profile::{ModuleCounted, ModuleFacts, Profile, SparseCounts};

use crate::copies::{Reading, Stretch, stretches};
use crate::recovered::counted_by_copies;

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

    /// Was a function counted?
    pub fn is_counted(&self, function: usize) -> bool {
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
    fn unpack(bytes: &[u8]) -> Option<Self> {
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
    let mut profile = Profile::open(path)?.with_recovery(recover);
    // Whoever reads makes them once more, or hears what is wrong.
    let _ = profile.recover_readings();
    Ok(profile)
}

/// Makes counts of what a profile keeps, and sentences on what they lack.
pub fn recover(facts: &ModuleFacts, bytes: &[u8]) -> Result<(SparseCounts, Vec<String>), String> {
    let readings = ModuleReadings::unpack(bytes).context("its readings make no sense");
    let made = readings.and_then(|readings| {
        let refused = readings.refused.clone();
        let (mut counts, notes) = counted_by_copies(facts, readings)?;
        for range in &refused {
            counts.refuse(range);
        }
        Ok((counts.finish(), notes))
    });
    made.map_err(|error| error.to_string())
}

/// How many instructions each function that ran executed, by its number in the module.
pub fn executed(facts: &ModuleFacts, readings: &ModuleReadings) -> BTreeMap<usize, u64> {
    let code = Code::of(facts);
    let mut executed = BTreeMap::new();
    let is_refused = |at: u64| readings.refused.iter().any(|it| it.contains(&at));
    for reading in &readings.readings {
        for stretch in stretches(reading) {
            let Stretch { start, count, .. } = stretch;
            let Some(count) = count.filter(|count| *count > 0 && !is_refused(start.0)) else {
                continue;
            };
            for (function, range) in code.around(&stretch.range()) {
                if readings.is_counted(function) {
                    let sum = executed.entry(function).or_insert(0_u64);
                    let instructions = stretch.begin_in(range) as u64;
                    *sum = sum.saturating_add(count.saturating_mul(instructions));
                }
            }
        }
    }
    executed
}

/// Where functions have their code.
struct Code<'a> {
    /// In order.
    extents: Vec<(&'a Range<u64>, usize)>,
    /// How far those up to this one reach.
    reach: Vec<u64>,
}

impl<'a> Code<'a> {
    fn of(facts: &'a ModuleFacts) -> Self {
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

    /// Who has code in a range, and where.
    fn around(&self, range: &Range<u64>) -> impl Iterator<Item = (usize, &'a Range<u64>)> {
        let after = self.extents.partition_point(|it| it.0.start < range.end);
        let before = (0..after).rev();
        let near = before.take_while(|index| self.reach[*index] > range.start);
        let near = near.map(|index| (self.extents[index].1, self.extents[index].0));
        near.filter(|(_, extent)| extent.end > range.start)
    }
}
