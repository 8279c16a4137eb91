//! How often did each line run?
//!
//! A line's count is how often the source's statement on it was begun. Without optimisation, the
//! code says so itself. Optimisers copy, move, merge and drop code: then the count is what the flow
//! of the source makes certain ([`flow`]), or else a bound, or it is unknown. A line of optimised
//! code of which an instruction was executed is never shown as 0.

mod call_graph;
mod claims;
mod conditions;
mod entries;
mod evidence;
mod flow;
mod loop_words;
mod loops;
mod optimised;
mod solving;
mod tree;

use crate::Error;
use crate::count::Count;
use crate::inlined::InlinedRuns;
use crate::names::{Named, all_functions, is_counted, is_part};
use crate::only::Only;
use crate::rows;
use evidence::Evidence;
use headcount_model::{Counted, EdgeKind, FileId, LineRun, Module};
use optimised::Uncounted;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The counts of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCount {
    /// How often a statement of the line began, summed over functions and the copies inlined into
    /// them. If it is not known although the line was counted, nobody can tell from the code.
    pub count: Count,
    /// Instructions executed.
    pub executed: Count,
    /// Whether any of it was counted.
    pub counted: bool,
    /// Whether any of it ran, or may have.
    pub may_have_run: bool,
}

impl LineCount {
    /// Did any of it run, for all that is known?
    pub fn ran(&self) -> bool {
        let some = |it: Count| it.value().is_some_and(|value| value > 0);
        some(self.count) || some(self.executed) || self.counted && self.may_have_run
    }

    /// Its count for people: a `?` if the line was counted, but its code does not tell.
    pub fn shown(&self) -> String {
        match (self.count, self.counted) {
            (Count::Unknown, true) => "?".to_owned(),
            (count, _) => count.to_string(),
        }
    }

    /// The most that is surely true, for formats that know only numbers: what ran was begun once or
    /// more often.
    pub fn least(&self) -> Option<u64> {
        let has_run = self.executed.value().is_some_and(|it| it > 0);
        let known = self.count.value();
        known.or((self.counted && has_run).then_some(1))
    }

    /// What its count is worth: `exact`, `at_least` or `unknown`.
    pub fn exactness(&self) -> &'static str {
        self.count.exactness()
    }
}

/// The counts of every line of every file. Lines that were not counted are among them.
pub fn line_counts(counted: &[Counted]) -> Result<Lines, Error> {
    lines_in(counted, false, &Only::default())
}

/// The same, of these modules.
pub fn line_counts_in(
    counted: &[Counted],
    is_wanted: impl Fn(&Module) -> bool + Clone,
) -> Result<Lines, Error> {
    let wanted = counted.iter().filter(|it| is_wanted(&it.module));
    lines_in(wanted, false, &Only::default())
}

pub type Lines = BTreeMap<Arc<str>, BTreeMap<u32, LineCount>>;

/// The same, of the files that are wanted, or of the wanted functions in them.
pub fn all_lines(counted: &[Counted], demangle: bool, only: &Only) -> Result<Lines, Error> {
    let wanted = counted.iter().filter(|it| only.may_be_in(&it.module));
    lines_in(wanted, demangle, only)
}

fn lines_in<'c>(
    counted: impl IntoIterator<Item = &'c Counted> + Clone,
    demangle: bool,
    only: &Only,
) -> Result<Lines, Error> {
    let mut sums: BTreeMap<Arc<str>, BTreeMap<u32, LineSums>> = BTreeMap::new();
    let mut files = FileNumbers::default();
    let names_lines = only.names_lines();
    for module in counted.clone() {
        let names: Vec<Arc<str>> = module
            .module
            .files
            .iter()
            .map(|it| it.as_str().into())
            .collect();
        let numbers: Vec<u32> = names.iter().map(|it| files.number(it)).collect();
        let mut evidence = Evidence::default();
        let mut uncounted = Uncounted::default();
        for named in all_functions(module, demangle) {
            let selected = is_counted(named.counts);
            // Asked once for each file: a function has many lines.
            let mut wanted: HashMap<FileId, bool> = HashMap::new();
            let mut is_wanted = |file: FileId| {
                let name = names.get(file.index());
                let wants = |name: &Arc<str>| only.wants_code(&named, Some(name));
                *wanted
                    .entry(file)
                    .or_insert_with(|| name.is_some_and(wants))
            };
            let is_optimised = named.function.compiled.is_optimised;
            for (place, copy) in lines_of(&named)? {
                let Some(name) = names.get(place.file.index()) else {
                    continue;
                };
                let is_line = || !names_lines || only.wants_line(&named, name, place.line);
                if is_wanted(place.file) && is_line() {
                    let lines = sums.entry(name.clone()).or_default();
                    let line = lines.entry(place.line).or_default();
                    if selected {
                        let heading = heading(&named, place.inline_copy, &numbers);
                        line.add(copy, heading, is_optimised)?;
                    }
                }
            }
            if selected && is_optimised {
                evidence::add(&named, &module.sources.packed, &mut evidence);
            }
            match selected {
                false => uncounted.whole.extend(named.function.source),
                true if named.counts.blocks.contains(&None) => {
                    uncounted.in_part.extend(named.function.source);
                }
                true => (),
            }
        }
        evidence::add_calls(module, &mut evidence);
        for (file, counts) in optimised::counts(&module.sources, &evidence, &uncounted) {
            let name = names.get(file.index());
            let Some(lines) = name.and_then(|it| sums.get_mut(it)) else {
                continue; // nobody wants it
            };
            for (line, count) in counts {
                let line = match names_lines {
                    true => lines.get_mut(&line),
                    false => Some(lines.entry(line).or_default()),
                };
                let Some(LineSums { sum: line, .. }) = line else {
                    continue; // nobody wants it
                };
                line.told = Some(line.told.map_or(Ok(count), |it| it.plus(count))?);
            }
        }
    }
    let begun = headings_of_what_ran(counted);
    let finish = |(name, lines): (Arc<str>, BTreeMap<u32, LineSums>)| {
        let lines = lines
            .into_iter()
            .map(|(line, sum)| Ok((line, sum.finish()?)));
        let mut lines: BTreeMap<u32, LineCount> = lines.collect::<Result<_, Error>>()?;
        for line in begun.get(name.as_ref()).into_iter().flatten() {
            // Whoever ran began somewhere, even if there is no code for that.
            let never = lines.get_mut(line).filter(|it| it.count.is_never());
            if let Some(it) = never {
                it.count = Count::AtLeast(1);
                it.may_have_run = true;
            }
        }
        Ok((name, lines))
    };
    sums.into_iter().map(finish).collect()
}

/// The lines where functions begin that were entered, or that ran where they were inlined, by file.
fn headings_of_what_ran<'c>(
    counted: impl IntoIterator<Item = &'c Counted> + Clone,
) -> HashMap<&'c str, Vec<u32>> {
    let runs = InlinedRuns::of(counted.clone());
    let mut headings: HashMap<&str, Vec<u32>> = HashMap::new();
    for named in counted.into_iter().flat_map(|it| all_functions(it, false)) {
        let is_entered = rows::calls(&named).value().is_some_and(|it| it > 0);
        let has_run = is_entered && !is_part(&named.function.name) || runs.has(&named);
        let source = named.function.source.filter(|_| has_run);
        let heading = source.and_then(|(file, line)| Some((named.file(file)?, line)));
        if let Some((file, line)) = heading {
            headings.entry(file).or_default().push(line);
        }
    }
    headings
}

/// A line in a function, or in one copy of another that was inlined there.
#[derive(PartialEq, Eq, Hash)]
struct Place {
    file: FileId,
    line: u32,
    inline_copy: u32,
}

/// How often a line was begun, says code that was not optimised.
#[derive(Clone, Copy, Default)]
struct Plain {
    /// How often statements of the line began: within one copy, the one that began most often.
    statement: Option<Count>,
    /// The same for instructions of any kind.
    any: Option<Count>,
}

/// Where a function is in the source: the number of its file, and a line.
type Heading = Option<(u32, u32)>;

/// Numbers of source files that hold for all modules: each has its own order of them.
#[derive(Default)]
struct FileNumbers {
    numbers: HashMap<Arc<str>, u32>,
}

impl FileNumbers {
    fn number(&mut self, file: &Arc<str>) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(file.clone()).or_insert(next)
    }
}

/// What all functions say about one line.
#[derive(Default)]
struct LineSums {
    sum: LineSum,
    /// What each function of the source says, all its instances together: a lambda stands on a line
    /// of another, and neither runs as often as both.
    plain: Vec<(Heading, Plain)>,
}

/// What one function, or one copy in it, says about one line; or all of them together.
#[derive(Clone, Copy, Default)]
struct LineSum {
    plain: Plain,
    executed: Count,
    counted: bool,
    /// Whether an optimised function has it.
    is_optimised: bool,
    /// What optimised functions tell.
    told: Option<Count>,
    /// Whether some of an optimised function was not counted, or reached a limit.
    partial: Option<Count>,
}

/// What is counted in functions as they are.
fn lines_of(named: &Named<'_>) -> Result<HashMap<Place, LineSum>, Error> {
    let mut lines: HashMap<Place, LineSum> = HashMap::new();
    let compiled = &named.function.compiled;
    let jumps = named
        .function
        .edges
        .iter()
        .filter(|it| it.kind == EdgeKind::Jump);
    let jumps: HashSet<u32> = jumps.filter_map(|it| it.from).collect();
    let mut before: Option<&LineRun> = None;
    for (number, block) in (0..).zip(named.blocks()) {
        for (run, range) in block.block.lines.iter().zip(block.line_ranges()) {
            let goes_on = before.replace(run).is_some_and(|it| is_same_place(it, run));
            if run.line == 0 {
                continue;
            }
            // The way on from the end of a statement is none.
            let is_last = range.end == block.block.instructions;
            let is_mere_jump = run.instructions == 1 && is_last && jumps.contains(&number);
            let place = Place {
                file: run.file,
                line: run.line,
                inline_copy: run.inline_copy,
            };
            let line = lines.entry(place).or_default();
            let count = block.at(range.start);
            let most = |known: Option<Count>| Some(known.map_or(count, |it| it.max(count)));
            line.plain.any = most(line.plain.any);
            // LLVM marks only where the line changes, in the order of addresses.
            let is_llvm = block.block.place.is_none() && compiled.marks_changes;
            let may_begin = run.instructions > 0 && !is_mere_jump && !goes_on;
            if run.is_stmt || is_llvm && may_begin {
                line.plain.statement = most(line.plain.statement);
            }
            line.counted |= count.is_known();
            line.executed = line.executed.plus(block.executed(range)?)?;
        }
    }
    Ok(lines)
}

/// Whether code is where the code before it is, in the order of addresses: then no row tells that it
/// begins anything.
fn is_same_place(before: &LineRun, run: &LineRun) -> bool {
    let place = |it: &LineRun| (it.file, it.line, it.column, it.inline_copy);
    place(before) == place(run)
}

/// Where the function is that a copy in this one is of, or this one itself.
fn heading(named: &Named<'_>, inline_copy: u32, files: &[u32]) -> Heading {
    let copy = inline_copy.checked_sub(1);
    let (file, line) = match copy {
        Some(copy) => named.function.compiled.inlined.get(copy as usize)?.callee,
        None => named.function.source,
    }?;
    Some((*files.get(file.index())?, line))
}

fn sum(a: Option<Count>, b: Option<Count>) -> Result<Option<Count>, Error> {
    match (a, b) {
        (Some(a), Some(b)) => a.plus(b).map(Some),
        _ => Ok(a.or(b)),
    }
}

impl LineSums {
    fn add(&mut self, copy: LineSum, of: Heading, is_optimised: bool) -> Result<(), Error> {
        let all = &mut self.sum;
        all.executed = all.executed.plus(copy.executed)?;
        all.counted |= copy.counted;
        let Plain { statement, any } = copy.plain;
        if is_optimised {
            let partial = any.filter(|it| !matches!(it, Count::Exact(_)));
            all.partial = sum(all.partial, partial)?;
            all.is_optimised = true;
            return Ok(());
        }
        match self.plain.iter_mut().find(|it| it.0 == of) {
            None => self.plain.push((of, copy.plain)),
            Some((_, known)) => {
                known.statement = sum(known.statement, statement)?;
                known.any = sum(known.any, any)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<LineCount, Error> {
        let most = |of: fn(&Plain) -> Option<Count>| {
            let all = self.plain.iter().filter_map(|it| of(&it.1));
            all.reduce(Count::max)
        };
        let plain = most(|it| it.statement).or(most(|it| it.any));
        self.sum.finish(plain)
    }
}

impl LineSum {
    fn finish(self, plain: Option<Count>) -> Result<LineCount, Error> {
        // A line that optimised code mentions, and tells nothing of.
        let told = self.told.or(self.is_optimised.then_some(Count::AtLeast(0)));
        let count = match (plain, told) {
            // A line of which no function was selected.
            (None, None) => {
                return Ok(LineCount {
                    count: Count::Unknown,
                    executed: Count::Unknown,
                    counted: false,
                    may_have_run: true,
                });
            }
            (Some(plain), None) => plain,
            (None, Some(told)) => told,
            (Some(plain), Some(told)) => plain.plus(told)?,
        };
        let count = self.partial.map_or(Ok(count), |it| match it {
            Count::Unknown => Ok(Count::Unknown),
            _ => count.plus(Count::AtLeast(0)),
        })?;
        let has_run = self.executed.value() != Some(0);
        // Of a line that has its code in blocks that were not counted, nothing is known.
        let is_seen = self.executed.is_known() && self.partial != Some(Count::Unknown);
        let is_known = is_seen || count.is_known();
        Ok(LineCount {
            count: match count {
                Count::AtLeast(0) => Count::Unknown,
                // A plain number is a promise.
                Count::Exact(0) if has_run && told.is_some() => Count::Unknown,
                known => known,
            },
            executed: self.executed,
            counted: self.counted || told.is_some() && is_known,
            may_have_run: !count.is_never() || has_run,
        })
    }
}
