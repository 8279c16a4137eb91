//! What the counters of single threads said, as a profile keeps it: numbers only. Which counters these
//! are is kept once for all threads of a run.
//!
//! ```text
//! counts  = call*, routine*                      lists have their length in front
//! call    = number, times                        system calls, in order
//! routine = number, (counter, count)*, (address, visits)*
//! ```
//!
//! Routines are numbered through all modules of the run. All numbers are LEB128, and those that ascend
//! are differences. Numbers wrap around: what is left when the threads of a run are taken off may be less
//! than nothing on the way.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use headcount_model::packed::{Packed, Packer};
use headcount_model::{LinkAddr, SystemCalls, ThreadModule};
use headcount_patch::CALL_NUMBERS;
use headcount_profile::ModuleCounted;

use crate::readings::ModuleReadings;

/// What the counters of a thread, or of several, said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadReadings {
    /// How often system calls were made, by number.
    calls: BTreeMap<u32, u64>,
    /// By the numbers of routines.
    routines: BTreeMap<u32, Numbers>,
}

/// What the counters of a routine said that are not 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Numbers {
    counters: BTreeMap<u32, u64>,
    visits: BTreeMap<u64, i64>,
}

impl ThreadReadings {
    /// A system call was made so often more.
    pub fn add_calls(&mut self, number: u32, times: u64) {
        add(&mut self.calls, number, times);
    }

    /// A counter of a routine says so much more.
    pub fn add_counter(&mut self, routine: u32, counter: u32, count: u64) {
        let routine = self.routines.entry(routine).or_default();
        add(&mut routine.counters, counter, count);
    }

    /// Threads came to an address of a routine so often more.
    pub fn add_visits(&mut self, routine: u32, at: u64, delta: i64) {
        let routine = self.routines.entry(routine).or_default();
        let sum = routine.visits.entry(at).or_default();
        *sum = sum.wrapping_add(delta);
        if *sum == 0 {
            routine.visits.remove(&at);
        }
    }

    /// Adds what others said (1), or takes it off (-1).
    pub fn add(&mut self, other: &Self, sign: i64) {
        let times = |count: u64| count.wrapping_mul(sign.cast_unsigned());
        for (number, count) in &other.calls {
            self.add_calls(*number, times(*count));
        }
        for (routine, numbers) in &other.routines {
            for (counter, count) in &numbers.counters {
                self.add_counter(*routine, *counter, times(*count));
            }
            for (at, delta) in &numbers.visits {
                self.add_visits(*routine, *at, delta.wrapping_mul(sign));
            }
        }
    }

    /// Do they say nothing?
    pub fn is_nothing(&self) -> bool {
        let says_nothing = |it: &Numbers| it.counters.is_empty() && it.visits.is_empty();
        self.calls.is_empty() && self.routines.values().all(says_nothing)
    }

    /// The routines of which they say something.
    pub fn routines(&self) -> impl Iterator<Item = u32> {
        self.routines.keys().copied()
    }

    /// How often system calls were made.
    pub fn system_calls(&self) -> SystemCalls {
        let cells = (0..=CALL_NUMBERS).map(|it| self.calls.get(&it).copied().unwrap_or(0));
        SystemCalls::of_cells(&cells.collect::<Vec<u64>>())
    }

    /// As a profile keeps it.
    pub fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        pack_counts(&mut to, &self.calls);
        to.number(self.routines.len());
        let mut last = 0;
        for (number, numbers) in &self.routines {
            to.number((number - last) as usize);
            last = *number;
            pack_counts(&mut to, &numbers.counters);
            to.number(numbers.visits.len());
            for (at, delta) in &numbers.visits {
                to.wide(*at);
                to.signed_wide(*delta);
            }
        }
        to.0
    }

    /// `None`: these are not bytes of ours.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let calls = unpack_counts(&mut from)?;
        let mut last = 0_u32;
        let routines = from.many(|it| {
            last = last.checked_add(it.number()?)?;
            let counters = unpack_counts(it)?;
            let visits = it.many(|it| Some((it.wide()?, it.signed_wide()?)))?;
            let visits = visits.into_iter().collect();
            Some((last, Numbers { counters, visits }))
        })?;
        from.0.is_empty().then_some(Self {
            calls,
            routines: routines.into_iter().collect(),
        })
    }
}

fn add(sums: &mut BTreeMap<u32, u64>, key: u32, count: u64) {
    let sum = sums.entry(key).or_default();
    *sum = sum.wrapping_add(count);
    if *sum == 0 {
        sums.remove(&key);
    }
}

fn pack_counts(to: &mut Packer, counts: &BTreeMap<u32, u64>) {
    to.number(counts.len());
    let mut last = 0;
    for (key, count) in counts {
        to.number((key - last) as usize);
        to.wide(*count);
        last = *key;
    }
}

fn unpack_counts(from: &mut Packed<'_>) -> Option<BTreeMap<u32, u64>> {
    let mut last = 0_u32;
    let counts = from.many(|it| {
        last = last.checked_add(it.number()?)?;
        Some((last, it.wide()?))
    })?;
    Some(counts.into_iter().collect())
}

/// The counters that a run has, all at 0 until they are filled.
pub struct ThreadCounters {
    modules: Vec<(String, ModuleReadings)>,
    /// The module of each routine, and its number there.
    routines: Vec<(usize, usize)>,
}

impl ThreadCounters {
    /// Of these modules.
    pub fn new(mut modules: Vec<(String, ModuleReadings)>) -> Self {
        let mut routines = Vec::new();
        for (module, (_, readings)) in modules.iter_mut().enumerate() {
            for (number, reading) in readings.readings.iter_mut().enumerate() {
                reading.readings.0.fill(0);
                reading.visits.clear();
                routines.push((module, number));
            }
        }
        Self { modules, routines }
    }

    /// As a profile keeps them.
    pub fn pack(&self) -> Vec<ThreadModule> {
        let modules = self.modules.iter();
        let modules = modules.map(|(build_id, readings)| ThreadModule {
            build_id: build_id.clone(),
            readings: readings.pack(),
        });
        modules.collect()
    }

    /// From a profile.
    pub fn unpack(modules: &[ThreadModule]) -> Result<Self> {
        let modules = modules.iter().map(|it| {
            let readings = ModuleReadings::unpack(&it.readings);
            let readings = readings.context("the counters of its threads make no sense")?;
            Ok((it.build_id.clone(), readings))
        });
        Ok(Self::new(modules.collect::<Result<_>>()?))
    }

    /// The module of a routine, and its number there.
    pub fn place(&self, routine: u32) -> Option<(usize, usize)> {
        self.routines.get(routine as usize).copied()
    }

    /// The modules, with the builds that they are of.
    pub fn modules(&self) -> &[(String, ModuleReadings)] {
        &self.modules
    }

    /// Makes them say what threads said.
    pub fn fill(&mut self, readings: &ThreadReadings) -> Result<()> {
        let stray = "a thread has counts of a routine that its run does not have";
        for (routine, numbers) in &readings.routines {
            let (module, number) = self.place(*routine).context(stray)?;
            let reading = &mut self.modules[module].1.readings[number];
            for (counter, count) in &numbers.counters {
                let cell = reading.readings.0.get_mut(*counter as usize);
                *cell.context(stray)? = *count;
            }
            let visits = numbers.visits.iter();
            reading.visits = visits.map(|(at, delta)| (LinkAddr(*at), *delta)).collect();
        }
        Ok(())
    }

    /// Makes those of these routines say nothing again.
    pub fn empty(&mut self, routines: impl Iterator<Item = u32>) {
        for (module, number) in routines.filter_map(|it| self.routines.get(it as usize)) {
            let reading = &mut self.modules[*module].1.readings[*number];
            reading.readings.0.fill(0);
            reading.visits.clear();
        }
    }

    /// What they say, as a run's own counters.
    pub fn counted(&self) -> Vec<ModuleCounted> {
        let modules = self.modules.iter();
        let counted = modules.map(|(build_id, readings)| readings.kept(build_id));
        counted.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_add_up_and_are_read_as_they_were_written() {
        let mut one = ThreadReadings::default();
        one.add_calls(3, 2);
        one.add_counter(5, 0, 7);
        one.add_counter(5, 9, u64::MAX);
        one.add_visits(8, 0x1000, -1);
        let mut both = one.clone();
        both.add(&one, 1);
        both.add_visits(8, 0x1000, 2);
        assert_eq!(both.routines[&5].counters[&0], 14);
        assert!(both.routines[&8].visits.is_empty());
        let packed = one.pack();
        assert_eq!(ThreadReadings::unpack(&packed), Some(one.clone()));
        for end in 0..packed.len() {
            assert_eq!(ThreadReadings::unpack(&packed[..end]), None);
        }
        assert!(!one.is_nothing());
        one.add(&one.clone(), -1);
        assert!(one.is_nothing());
    }
}
