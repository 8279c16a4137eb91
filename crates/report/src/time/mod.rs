//! Where did the time go?
//!
//! Each sample is booked once on a function, the one that its innermost instruction was compiled into,
//! and once on a line, the innermost of that instruction. So the sums over functions and over lines are
//! both the number of samples.

mod charge_back;
mod estimate;
mod tables;
mod why;

pub use charge_back::{Charge, ITSELF, NOBODY, charge_back, frames};
pub use estimate::Estimate;
pub use tables::{add_waiting, add_why, call_charges, charges, threads};
pub use why::Why;

use crate::source::UNKNOWN;
use headcount_model::{
    ChargePlace, Counted, LinkAddr, RuntimeCosts, SampledModule, SampledThread, Samples, Site,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The name of code that is in no function that anybody knows.
pub const UNKNOWN_CODE: &str = "(unknown code)";

/// Samples, and what they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How many.
    pub samples: u64,
    /// Time on a processor, in the program itself.
    pub nanoseconds: u64,
}

impl Cost {
    fn of(samples: u64, interval: u64) -> Self {
        Self {
            samples,
            nanoseconds: samples.saturating_mul(interval),
        }
    }

    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.nanoseconds = self.nanoseconds.saturating_add(other.nanoseconds);
    }
}

/// What all threads did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// How many runs were timed.
    pub runs: u64,
    /// Samples, and the time in the program itself.
    pub sampled: Cost,
    /// Nanoseconds on a processor, in the program and in the kernel.
    pub on_processor: u64,
    /// Nanoseconds of waiting.
    pub waiting: u64,
    /// Nanoseconds of waiting for a processor.
    pub ready: u64,
    /// Records that the kernel had no room for, and samples that it held back.
    pub lost: u64,
    /// Whether a program was counted while it was timed.
    pub is_counted: bool,
    /// How many times the work that was timed was counted. None, if nobody knows: then nothing can be
    /// said of the time for each call.
    pub times_counted: Option<f64>,
}

impl Totals {
    /// How many of these visits there were in the time. None, if nobody knows.
    fn visits(&self, counted: u64) -> Option<f64> {
        self.times_counted.map(|times| counted as f64 / times)
    }

    /// The time for each of what was counted so often; none, if that cannot be told.
    pub fn each(&self, cost: Cost, counted: u64) -> Option<Estimate> {
        Estimate::new(cost, self.visits(counted)?)
    }

    /// Nanoseconds in the kernel.
    pub fn in_kernel(&self) -> u64 {
        self.on_processor.saturating_sub(self.sampled.nanoseconds)
    }

    fn add(&mut self, samples: &Samples) {
        let sum = |of: fn(&SampledThread) -> u64| {
            let parts = samples.threads.iter().map(of);
            parts.fold(0, u64::saturating_add)
        };
        self.runs += 1;
        self.sampled
            .add(Cost::of(samples.total(), samples.interval));
        self.on_processor = self.on_processor.saturating_add(sum(|it| it.on_processor));
        self.waiting = self.waiting.saturating_add(sum(|it| it.waiting));
        self.ready = self.ready.saturating_add(sum(|it| it.ready));
        self.lost = self.lost.saturating_add(samples.lost);
        self.is_counted |= samples.is_counted;
    }
}

/// A function that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedFunction {
    /// Its module and its place there, if it was counted.
    pub counted: Option<(usize, usize)>,
    /// The module that was counted, if it is in the same build of it.
    pub of: Option<usize>,
    /// The path of its module; empty for code in none.
    pub module: String,
    /// The linker's name.
    pub name: String,
    /// The file its source is in; empty if that is not known.
    pub file: String,
    /// The time in itself.
    pub own: Cost,
    /// The time in itself and in what it called.
    pub with_callees: Cost,
}

/// The samples of some runs, booked on functions and lines.
#[derive(Clone, Debug, Default)]
pub struct Time {
    /// The functions that were seen.
    pub functions: Vec<TimedFunction>,
    /// By build id and place in the module.
    counted: HashMap<String, HashMap<usize, usize>>,
    /// The instructions of counted functions, by build id and address.
    instructions: HashMap<String, HashMap<LinkAddr, Cost>>,
    /// The lines.
    pub lines: BTreeMap<(String, u32), Cost>,
    /// The lines of scripts, for which interpreters spent some of the same time.
    scripts: BTreeMap<(String, u32), Cost>,
    /// Everything together.
    pub totals: Totals,
}

impl Time {
    /// With what interpreters did for the lines of scripts.
    #[must_use]
    pub fn with_scripts(mut self, runtimes: &[RuntimeCosts]) -> Self {
        for (interval, charge) in runtimes
            .iter()
            .flat_map(|it| it.charges.iter().map(|charge| (it.interval, charge)))
        {
            if let ChargePlace::Operation { file, line, .. } = &charge.place {
                let cost = self.scripts.entry((file.clone(), *line)).or_default();
                cost.add(Cost::of(charge.samples, interval));
            }
        }
        self
    }

    /// The time of the lines of a file.
    pub fn lines_of(&self, file: &str) -> impl Iterator<Item = (u32, Cost)> {
        let here = || (file.to_owned(), 0)..=(file.to_owned(), u32::MAX);
        let all = self.lines.range(here()).chain(self.scripts.range(here()));
        all.map(|((_, line), cost)| (*line, *cost))
    }

    /// Books samples on what was counted, as far as it is the same build, and on other code. None, if
    /// there are none. What was timed was counted so many times, if anybody knows.
    pub fn new(
        counted: &[Counted],
        samples: &[&Samples],
        times_counted: Option<f64>,
    ) -> Option<Self> {
        let mut booking = Booking {
            time: Self::default(),
            numbers: HashMap::new(),
        };
        for samples in samples {
            booking.add(counted, samples);
        }
        let mut time = booking.time;
        time.totals.times_counted = times_counted;
        for (number, function) in time.functions.iter().enumerate() {
            if let Some((module, index)) = function.counted {
                let build_id = counted[module].module.build_id.clone();
                time.counted
                    .entry(build_id)
                    .or_default()
                    .insert(index, number);
            }
        }
        (!samples.is_empty()).then_some(time)
    }

    /// The time in a counted function.
    pub fn of_function(&self, build_id: &str, index: usize) -> Option<&TimedFunction> {
        let number = self.counted.get(build_id)?.get(&index)?;
        self.functions.get(*number)
    }

    /// The time at an instruction of a counted function.
    pub fn of_instruction(&self, build_id: &str, at: LinkAddr) -> Cost {
        let found = self.instructions.get(build_id).and_then(|it| it.get(&at));
        found.copied().unwrap_or_default()
    }

    /// The functions that were seen in themselves, those with most time first.
    pub fn hottest(&self) -> Vec<&TimedFunction> {
        let mut seen: Vec<&TimedFunction> = self.functions.iter().collect();
        seen.retain(|it| it.own.samples > 0);
        seen.sort_by(|a, b| {
            let key = |it: &TimedFunction| std::cmp::Reverse(it.own.samples);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        seen
    }

    /// The functions that were not counted.
    pub fn uncounted(&self) -> impl Iterator<Item = &TimedFunction> {
        self.functions.iter().filter(|it| it.counted.is_none())
    }

    /// The time in a line.
    pub fn of_line(&self, file: &str, line: u32) -> Cost {
        let found = self.lines.get(&(file.to_owned(), line));
        found.copied().unwrap_or_default()
    }
}

/// What tells a function from others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Counted(usize, usize),
    Other(Option<usize>, String, String),
}

struct Booking {
    time: Time,
    numbers: HashMap<Key, usize>,
}

impl Booking {
    fn add(&mut self, counted: &[Counted], samples: &Samples) {
        self.time.totals.add(samples);
        let owners = owners(counted, samples);
        let builds = builds(counted, samples);
        let sites = samples.sites.iter().zip(owners.iter().copied());
        let functions: Vec<usize> = sites
            .map(|(site, owner)| self.function(samples, site, owner, &builds))
            .collect();
        let mut by_stack: BTreeMap<u32, u64> = BTreeMap::new();
        for (stack, count) in samples.threads.iter().flat_map(|it| &it.samples) {
            let sum = by_stack.entry(*stack).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (number, count) in by_stack {
            let cost = Cost::of(count, samples.interval);
            let Some(stack) = samples.stacks.get(number as usize) else {
                continue;
            };
            let site = &samples.sites[stack.site as usize];
            self.time.functions[functions[stack.site as usize]]
                .own
                .add(cost);
            if let Some((module, _)) = owners[stack.site as usize] {
                let build_id = counted[module].module.build_id.clone();
                let here = self.time.instructions.entry(build_id).or_default();
                here.entry(site.address).or_default().add(cost);
            }
            let lines = &mut self.time.lines;
            lines.entry(line_of(site)).or_default().add(cost);
            let on_stack: HashSet<usize> = samples
                .path(number)
                .map(|it| functions[it.site as usize])
                .collect();
            for function in on_stack {
                self.time.functions[function].with_callees.add(cost);
            }
        }
    }

    /// The number of the function that a site belongs to.
    fn function(
        &mut self,
        samples: &Samples,
        site: &Site,
        owner: Option<(usize, usize)>,
        builds: &[Option<usize>],
    ) -> usize {
        let of = site.module.and_then(|it| *builds.get(it as usize)?);
        let module = site.module.and_then(|it| samples.modules.get(it as usize));
        let module = module.map_or("", |it| it.path.as_str());
        let outermost = site.frames.first().map(|it| it.function.as_str());
        let file = site.frames.first().map_or("", |it| it.file.as_str());
        let name = outermost
            .filter(|it| !it.is_empty())
            .unwrap_or(UNKNOWN_CODE);
        let key = match owner {
            Some((module, function)) => Key::Counted(module, function),
            None => Key::Other(of, module.to_owned(), name.to_owned()),
        };
        let functions = &mut self.time.functions;
        *self.numbers.entry(key).or_insert_with(|| {
            functions.push(TimedFunction {
                counted: owner,
                of,
                module: module.to_owned(),
                name: name.to_owned(),
                file: file.to_owned(),
                ..TimedFunction::default()
            });
            functions.len() - 1
        })
    }
}

/// The innermost line of a site.
fn line_of(site: &Site) -> (String, u32) {
    let known = site.frames.last().filter(|it| it.line > 0);
    known.map_or((UNKNOWN.to_owned(), 0), |it| (it.file.clone(), it.line))
}

/// Whether a file with code that ran is the build that was counted.
fn is_same_build(counted: &Counted, seen: &SampledModule) -> bool {
    let rest = counted.module.build_id.strip_prefix("elf-");
    let rest = rest.and_then(|rest| rest.strip_prefix(seen.file_id.as_str()));
    !seen.file_id.is_empty() && rest.is_some_and(|rest| rest.starts_with('-'))
}

/// For each file with code that ran, the counted module that it is the build of.
fn builds(counted: &[Counted], samples: &Samples) -> Vec<Option<usize>> {
    let build = |seen: &SampledModule| counted.iter().position(|it| is_same_build(it, seen));
    samples.modules.iter().map(build).collect()
}

/// For each site, the counted module and the function in there that it belongs to.
fn owners(counted: &[Counted], samples: &Samples) -> Vec<Option<(usize, usize)>> {
    let mut owners = vec![None; samples.sites.len()];
    for (number, module) in counted.iter().enumerate() {
        let same = samples.modules.iter().map(|it| is_same_build(module, it));
        let same: HashSet<u32> = (0..).zip(same).filter(|it| it.1).map(|it| it.0).collect();
        let sites = samples.sites.iter().enumerate();
        let is_here = |site: &Site| site.module.is_some_and(|it| same.contains(&it));
        let mut here: Vec<(u64, usize)> = sites
            .filter(|(_, site)| is_here(site))
            .map(|(place, site)| (site.address.0, place))
            .collect();
        here.sort_unstable();
        if here.is_empty() {
            continue;
        }
        for (index, function) in module.module.functions.iter().enumerate() {
            for span in function.blocks.iter().flat_map(|it| &it.code) {
                let begin = span.address.0;
                let end = begin.saturating_add(span.bytes.len() as u64);
                let first = here.partition_point(|it| it.0 < begin);
                let inside = here.iter().skip(first).take_while(|it| it.0 < end);
                for (_, place) in inside {
                    owners[*place] = Some((number, index));
                }
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{Block, Frame, Function, FunctionCounts, Module, Span, Stack};

    fn site(address: u64, function: &str, line: u32) -> Site {
        Site {
            module: Some(0),
            address: LinkAddr(address),
            function: None,
            frames: vec![Frame {
                function: function.to_owned(),
                file: "a.c".to_owned(),
                line,
            }],
        }
    }

    /// `main` calls `work`, which calls itself; somebody else's code runs, too.
    fn samples() -> Samples {
        let stack = |caller, site| Stack {
            caller,
            site,
            is_cut: false,
        };
        Samples {
            interval: 10,
            modules: vec![SampledModule {
                path: "/bin/a".to_owned(),
                file_id: "77".to_owned(),
            }],
            sites: vec![
                site(0x1000, "main", 3),
                site(0x2001, "work", 7),
                Site::default(),
            ],
            stacks: vec![
                stack(None, 0),
                stack(Some(0), 1),
                stack(Some(1), 1),
                stack(None, 2),
            ],
            threads: vec![
                SampledThread {
                    on_processor: 130,
                    samples: vec![(0, 1), (1, 2), (2, 4)],
                    ..SampledThread::default()
                },
                SampledThread {
                    samples: vec![(1, 1), (3, 5)],
                    ..SampledThread::default()
                },
            ],
            ..Samples::default()
        }
    }

    fn counted() -> Counted {
        let function = |name: &str, address: u64| Function {
            name: name.to_owned(),
            address: LinkAddr(address),
            source: None,
            blocks: vec![Block {
                address: LinkAddr(address),
                code: vec![Span {
                    address: LinkAddr(address),
                    bytes: vec![0x90; 4],
                }],
                instructions: 4,
                ..Block::default()
            }],
            edges: Vec::new(),
            counters: 1,
            compiled: Default::default(),
        };
        Counted {
            module: Module {
                path: "/bin/a".to_owned(),
                build_id: "elf-77-x".to_owned(),
                functions: vec![function("main", 0x1000), function("work", 0x2000)],
                ..Module::default()
            },
            functions: vec![FunctionCounts::whole([1], []); 2],
            sources: Default::default(),
        }
    }

    #[test]
    fn every_sample_is_booked_once() {
        let samples = samples();
        for counted in [vec![], vec![counted()]] {
            let time = Time::new(&counted, &[&samples], None).unwrap();
            let functions = time.functions.iter().map(|it| it.own.samples);
            assert_eq!(functions.sum::<u64>(), 13);
            assert_eq!(time.lines.values().map(|it| it.samples).sum::<u64>(), 13);
            assert_eq!(time.totals.sampled.samples, 13);
            assert_eq!(time.totals.in_kernel(), 0);
        }
    }

    #[test]
    fn recursion_counts_once_for_the_function() {
        let samples = samples();
        let time = Time::new(&[counted()], &[&samples], None).unwrap();
        let work = time.of_function("elf-77-x", 1).unwrap();
        assert_eq!((work.own.samples, work.with_callees.samples), (7, 7));
        let main = time.of_function("elf-77-x", 0).unwrap();
        assert_eq!((main.own.samples, main.with_callees.samples), (1, 8));
        assert_eq!(main.with_callees.nanoseconds, 80);
        let at_call = time.of_instruction("elf-77-x", LinkAddr(0x2001));
        assert_eq!(at_call.samples, 7);
        let others: Vec<&str> = time.uncounted().map(|it| it.name.as_str()).collect();
        assert_eq!(others, [UNKNOWN_CODE]);
    }

    #[test]
    fn another_build_is_not_joined() {
        let samples = samples();
        let mut other = counted();
        other.module.build_id = "elf-7-x".to_owned();
        let time = Time::new(&[other], &[&samples], None).unwrap();
        assert_eq!(time.uncounted().count(), 3);
    }
}
