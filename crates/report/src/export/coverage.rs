//! Lines, functions and branches of source files: what formats for coverage are made of.

use super::exclusions::Exclusions;
use super::{Exported, Material, several};
use crate::Error;
use crate::branches::{Branch as Known, last_line};
use crate::callees::Callees;
use crate::checks::Checks;
use crate::count::Count;
use crate::covered::{Beginning, without_arguments};
use crate::inlined::InlinedRuns;
use crate::lines::all_lines;
use crate::names::{Named, functions, is_part, origin};
use crate::rows;
use headcount_model::FileId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What is known of a source file.
#[derive(Debug, Default)]
pub struct CoveredFile {
    /// Where it is, if it was found, or its name.
    pub path: String,
    /// The counts of its lines.
    pub lines: BTreeMap<u32, u64>,
    /// Its functions, by where they begin, as they are for gates.
    pub functions: BTreeMap<Beginning, CoveredFunction>,
    /// The branches of each line.
    pub branches: BTreeMap<u32, Vec<Branch>>,
}

/// A function, as its author wrote it.
#[derive(Debug, Default)]
pub struct CoveredFunction {
    /// Its name; of several, the first.
    pub name: String,
    /// How often its own code was called.
    called: u64,
    /// Whether it ran without that: where it was inlined, or a part of it that was split off.
    ran_elsewhere: bool,
}

impl CoveredFunction {
    /// How often it was called, at least.
    pub fn calls(&self) -> u64 {
        self.called.max(self.ran_elsewhere.into())
    }
}

/// How often each way out of a block was taken.
type Taken = Vec<u64>;

/// The same as formats have it; nothing if its line never ran.
pub type Branch = Vec<Option<u64>>;

impl CoveredFile {
    /// How many ways there are, and how many of those were taken.
    pub fn branch_ways(&self) -> (usize, usize) {
        ways(self.branches.values().flatten())
    }

    /// How many lines ran.
    pub fn lines_hit(&self) -> usize {
        self.lines.values().filter(|count| **count > 0).count()
    }
}

/// How many ways these branches have, and how many of those were taken.
pub fn ways<'b>(branches: impl Iterator<Item = &'b Branch>) -> (usize, usize) {
    let (mut all, mut taken) = (0, 0);
    for branch in branches {
        all += branch.len();
        taken += branch.iter().flatten().filter(|it| **it > 0).count();
    }
    (all, taken)
}

/// The source files of a profile, by name.
pub struct Coverage {
    pub files: BTreeMap<Arc<str>, CoveredFile>,
    left_out: usize,
    uncounted_lines: usize,
    /// Lines that may have run or not, for all that their code tells.
    untold_lines: usize,
    uncounted_branches: usize,
    excluded_lines: usize,
    /// Lines that may have run more often than is said.
    bounds: usize,
}

impl Coverage {
    /// Of all files that are wanted. Where the user names none, that is every file that is the
    /// user's own, and whose source is here: tools that read the format want to show it.
    pub fn new(material: &Material<'_>) -> Result<Self, Error> {
        let mut coverage = Self {
            files: BTreeMap::new(),
            left_out: 0,
            uncounted_lines: 0,
            untold_lines: 0,
            uncounted_branches: 0,
            excluded_lines: 0,
            bounds: 0,
        };
        coverage.add_lines(material)?;
        coverage.add_functions(material)?;
        coverage.add_branches(material)?;
        coverage.exclude(material);
        Ok(coverage)
    }

    /// Text in a format, with what it does not say.
    pub fn exported(&self, text: String) -> Exported {
        let mut notes = Vec::new();
        if self.left_out > 0 {
            notes.push(format!(
                "{} left out: of a library, or its source is not here. --only '*' exports all.",
                several(self.left_out, "file")
            ));
        }
        let counts = [
            (self.uncounted_lines, "line", "not counted, and left out."),
            (
                self.untold_lines,
                "line",
                "left out: the optimised code does not tell whether control came there.",
            ),
            (
                self.uncounted_branches,
                "branch",
                "not counted, and left out.",
            ),
            (self.excluded_lines, "line", "excluded by LCOV_EXCL marks."),
            (
                self.bounds,
                "line",
                "given the least count that is certain: the exact one is not known.",
            ),
        ];
        for (number, what, why) in counts {
            if number > 0 {
                let what = several(number, what).replace("branchs", "branches");
                notes.push(format!("{what} {why}"));
            }
        }
        Exported {
            bytes: text.into_bytes(),
            notes,
        }
    }

    fn add_lines(&mut self, material: &Material<'_>) -> Result<(), Error> {
        for (name, lines) in all_lines(material.counted, material.demangle, material.only)? {
            let is_own = material.own.library_of_file(&name).is_none();
            let is_here = || is_own && (material.source)(&name).is_some();
            if material.only.names_nothing() && !is_here() {
                self.left_out += 1;
                continue;
            }
            let known = |(line, it): (&u32, &crate::LineCount)| Some((*line, it.least()?));
            let counts: BTreeMap<u32, u64> = lines.iter().filter_map(known).collect();
            let is_bound = |it: &&crate::LineCount| {
                it.least().is_some() && !matches!(it.count, Count::Exact(_))
            };
            let is_untold = |it: &&crate::LineCount| it.counted && it.least().is_none();
            self.bounds += lines.values().filter(is_bound).count();
            let untold = lines.values().filter(is_untold).count();
            self.untold_lines += untold;
            self.uncounted_lines += lines.len() - counts.len() - untold;
            if !counts.is_empty() {
                let path = (material.source)(&name).map(|it| it.path);
                let file = self.files.entry(name.clone()).or_default();
                file.path = path.unwrap_or_else(|| name.to_string());
                file.lines = counts;
            }
        }
        Ok(())
    }

    fn add_functions(&mut self, material: &Material<'_>) -> Result<(), Error> {
        let inlined = InlinedRuns::of(material.counted);
        for (_, named) in wanted(material) {
            let Some((file, line @ 1..)) = named.function.source else {
                continue;
            };
            let covered = named.file(file).and_then(|it| self.files.get_mut(it));
            let (Some(covered), Some(calls)) = (covered, rows::calls(&named).value()) else {
                continue;
            };
            let begin = Beginning::of(&named, line);
            let begun = covered.lines.get(&line).filter(|_| begin.runs_with_line());
            let begun = begun.is_some_and(|it| *it > 0);
            let function = covered.functions.entry(begin).or_default();
            let name = written_name(&named, material.demangle);
            if function.name.is_empty() || name < function.name {
                function.name = name;
            }
            // Who enters a part has entered the function before, there or where it was inlined.
            let is_part = is_part(&named.function.name);
            function.ran_elsewhere |= inlined.has(&named) || is_part && calls > 0;
            let calls = if is_part { 0 } else { calls };
            function.called = function.called.checked_add(calls).ok_or(Error::TooLarge)?;
            // It may have left no code of its own there.
            function.ran_elsewhere |= begun;
        }
        Ok(())
    }

    /// The branches of a line, in each function and inlined copy. Copies whose branches have the
    /// same shape are summed; others, which were compiled in another way, stay apart.
    fn add_branches(&mut self, material: &Material<'_>) -> Result<(), Error> {
        let mut sums: BTreeMap<(Arc<str>, u32, Vec<usize>), Vec<Taken>> = BTreeMap::new();
        let callees = Callees::new(material.counted, material.transfers, material.pointers);
        let checks = Checks::new(&callees, material.with_checks);
        for (module, named) in wanted(material) {
            let (branches, uncounted) = branches_of(&named, &checks.branches(module, &named));
            self.uncounted_branches += uncounted;
            for (place, branches) in branches {
                let Some(file) = named.file(place.file) else {
                    continue;
                };
                let shape: Vec<usize> = branches.iter().map(Vec::len).collect();
                let sum = sums.entry((file.into(), place.line, shape)).or_default();
                add(sum, branches)?;
            }
        }
        for ((file, line, _), branches) in sums {
            if let Some(covered) = self.files.get_mut(&file)
                && let Some(count) = covered.lines.get(&line)
            {
                let way = |taken: u64| (*count > 0).then_some(taken);
                let branches = branches.into_iter();
                let branches = branches.map(|it| it.into_iter().map(way).collect());
                covered.branches.entry(line).or_default().extend(branches);
            }
        }
        Ok(())
    }

    /// Leaves out what the sources say.
    fn exclude(&mut self, material: &Material<'_>) {
        for (name, file) in &mut self.files {
            let Some(source) = (material.source)(name) else {
                continue;
            };
            let excluded = Exclusions::of(&source.lines);
            let before = file.lines.len();
            file.lines.retain(|line, _| !excluded.lines.contains(line));
            self.excluded_lines += before - file.lines.len();
            let is_in = |line: &u32| !excluded.lines.contains(line);
            file.functions.retain(|begin, _| is_in(&begin.line));
            file.branches
                .retain(|line, _| is_in(line) && !excluded.branches.contains(line));
        }
        self.files.retain(|_, file| !file.lines.is_empty());
    }
}

/// The name of the function that all parts, copies and instances were made of.
fn written_name(named: &Named<'_>, demangle: bool) -> String {
    let name = origin(&named.function.name);
    match demangle {
        true => without_arguments(&crate::demangle(name)),
        false => name.to_owned(),
    }
}

/// The functions that are wanted, or whose files are, each with the number of its module.
fn wanted<'a>(material: &Material<'a>) -> Vec<(usize, Named<'a>)> {
    let mut all = Vec::new();
    for (number, module) in material.counted.iter().enumerate() {
        let functions = functions(module, material.demangle).into_iter();
        let wanted = functions.filter(|it| material.only.wants(it));
        all.extend(wanted.map(|it| (number, it)));
    }
    all
}

/// A line in a function, or in one copy of another that was inlined there.
#[derive(PartialEq, Eq, Hash)]
struct Place {
    file: FileId,
    line: u32,
    inline_copy: u32,
}

/// How often branches went which way, by the line that decides, in the order of their addresses; and
/// how many there are of which not all is known.
fn branches_of(named: &Named<'_>, branches: &[Known]) -> (HashMap<Place, Vec<Taken>>, usize) {
    let mut found: HashMap<Place, Vec<Taken>> = HashMap::new();
    let mut uncounted = 0;
    for branch in branches {
        let block = named.function.blocks.get(branch.block as usize);
        let Some(run) = block.and_then(last_line) else {
            continue;
        };
        let mut ways = branch.ways.clone();
        ways.sort_by_key(|way| (way.kind, way.to));
        let counts: Option<Vec<u64>> = ways.iter().map(|way| way.count.value()).collect();
        let Some(counts) = counts else {
            uncounted += 1;
            continue;
        };
        let place = Place {
            file: run.file,
            line: run.line,
            inline_copy: run.inline_copy,
        };
        found.entry(place).or_default().push(counts);
    }
    (found, uncounted)
}

fn add(sums: &mut Vec<Taken>, more: Vec<Taken>) -> Result<(), Error> {
    if sums.is_empty() {
        *sums = more;
        return Ok(());
    }
    let ways = sums.iter_mut().flatten().zip(more.iter().flatten());
    for (sum, more) in ways {
        *sum = sum.checked_add(*more).ok_or(Error::TooLarge)?;
    }
    Ok(())
}
