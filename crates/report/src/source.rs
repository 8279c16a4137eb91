//! Counts into rows, for the units of source text: line and file.

use crate::Error;
use crate::count::{Count, CountedBlock};
use crate::names::{Named, all_functions, functions, is_counted};
use crate::only::Only;
use crate::report::Request;
use crate::rows::Tally;
use crate::table::{Cell, Row};
use headcount_model::{Counted, FileId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// The file of instructions that belong to none that is known.
pub const UNKNOWN: &str = "??";

/// The counts of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCount {
    /// How often a statement of the line began: the largest count of any instruction that begins
    /// one, summed over functions and the copies inlined into them.
    pub count: Count,
    /// Instructions executed.
    pub executed: Count,
    /// Whether any of it was counted.
    pub counted: bool,
}

impl LineCount {
    /// Did any of it run, for all that is known?
    pub fn ran(&self) -> bool {
        let some = |it: Count| it.value().is_some_and(|value| value > 0);
        some(self.count) || some(self.executed)
    }
}

/// The counts of every line of every file. Lines that were not counted are among them.
pub fn line_counts(
    counted: &[Counted],
) -> Result<BTreeMap<Arc<str>, BTreeMap<u32, LineCount>>, Error> {
    all_lines(counted, false, &Only::default())
}

pub type Lines = BTreeMap<Arc<str>, BTreeMap<u32, LineCount>>;

/// The same, of the files that are wanted, or of the wanted functions in them.
pub fn all_lines(counted: &[Counted], demangle: bool, only: &Only) -> Result<Lines, Error> {
    let mut sums: BTreeMap<Arc<str>, BTreeMap<u32, LineSum>> = BTreeMap::new();
    for module in counted {
        let names: Vec<Arc<str>> = module
            .module
            .files
            .iter()
            .map(|it| it.as_str().into())
            .collect();
        for named in all_functions(module, demangle) {
            let selected = is_counted(named.counts);
            let whole = only.names_function(&named);
            for (place, copy) in lines_of(&named)? {
                let Some(name) = names.get(place.file.index()) else {
                    continue;
                };
                if whole || only.wants_file(named.module, name) {
                    let lines = sums.entry(name.clone()).or_default();
                    let line = lines.entry(place.line).or_default();
                    if selected {
                        line.add(copy)?;
                    }
                }
            }
        }
    }
    let finish = |(name, lines): (Arc<str>, BTreeMap<u32, LineSum>)| {
        let lines = lines.into_iter().map(|(line, sum)| (line, sum.finish()));
        (name, lines.collect())
    };
    Ok(sums.into_iter().map(finish).collect())
}

/// A line in a function, or in one copy of another that was inlined there.
#[derive(PartialEq, Eq, Hash)]
struct Place {
    file: FileId,
    line: u32,
    inline_copy: u32,
}

/// What one function, or one copy in it, says about one line; or all of them together.
#[derive(Clone, Copy, Default)]
struct LineSum {
    /// How often statements of the line began: within one copy, the one that began most often.
    statement: Option<Count>,
    /// The same for instructions of any kind.
    any: Option<Count>,
    executed: Count,
    counted: bool,
}

fn lines_of(named: &Named<'_>) -> Result<HashMap<Place, LineSum>, Error> {
    let mut lines: HashMap<Place, LineSum> = HashMap::new();
    for block in named.blocks() {
        for (run, range) in block.block.lines.iter().zip(block.line_ranges()) {
            if run.line == 0 {
                continue;
            }
            let place = Place {
                file: run.file,
                line: run.line,
                inline_copy: run.inline_copy,
            };
            let line = lines.entry(place).or_default();
            let count = block.at(range.start);
            let most = |known: Option<Count>| Some(known.map_or(count, |it| it.max(count)));
            line.any = most(line.any);
            if run.is_stmt {
                line.statement = most(line.statement);
            }
            line.counted |= count.is_known();
            line.executed = line.executed.plus(block.executed(range)?)?;
        }
    }
    Ok(lines)
}

impl LineSum {
    fn add(&mut self, copy: Self) -> Result<(), Error> {
        let sum = |a: Option<Count>, b: Option<Count>| match (a, b) {
            (Some(a), Some(b)) => a.plus(b).map(Some),
            _ => Ok(a.or(b)),
        };
        self.statement = sum(self.statement, copy.statement)?;
        self.any = sum(self.any, copy.any)?;
        self.executed = self.executed.plus(copy.executed)?;
        self.counted |= copy.counted;
        Ok(())
    }

    fn finish(self) -> LineCount {
        // A line of which no function was selected.
        let Some(any) = self.any else {
            return LineCount {
                count: Count::Unknown,
                executed: Count::Unknown,
                counted: false,
            };
        };
        LineCount {
            count: self.statement.unwrap_or(any),
            executed: self.executed,
            counted: self.counted,
        }
    }
}

pub fn lines(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let all = all_lines(counted, request.demangle, &request.only)?;
    let mut rows = Vec::new();
    for (file, lines) in all {
        for (line, it) in lines {
            rows.push(Row {
                cells: vec![
                    Cell::Text(file.clone()),
                    Cell::Number(line.into()),
                    Cell::Count(it.count),
                    Cell::Count(it.executed),
                ],
                linkage_name: None,
                counted: it.counted,
                ran: !(it.count.is_never() && it.executed.is_never()),
            });
        }
    }
    Ok(rows)
}

/// Instructions and blocks of one file.
#[derive(Default)]
pub struct FileTally {
    pub code: Tally,
    pub blocks: Tally,
}

/// The tallies of every file that is wanted, or of the wanted functions in it.
pub fn file_tallies(
    counted: &[Counted],
    demangle: bool,
    only: &Only,
) -> Result<BTreeMap<String, FileTally>, Error> {
    let mut files: BTreeMap<String, FileTally> = BTreeMap::new();
    for module in counted {
        for named in functions(module, demangle) {
            let whole = only.names_function(&named);
            let wanted = |file: &str| whole || only.wants_file(named.module, file);
            for block in named.blocks() {
                let pieces = pieces(&named, &block);
                let first = pieces.first().map_or(UNKNOWN, |(file, _)| file);
                for (file, range) in pieces {
                    if wanted(file) {
                        let tally = files.entry(file.to_owned()).or_default();
                        tally.code.add_range(&block, range)?;
                    }
                }
                if wanted(first) {
                    let tally = files.entry(first.to_owned()).or_default();
                    // A block has "one" of what is counted, itself.
                    tally.blocks.add(1, block.count())?;
                }
            }
        }
    }
    files.retain(|_, it| it.code.counted || it.blocks.counted);
    Ok(files)
}

pub fn files(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let files = file_tallies(counted, request.demangle, &request.only)?;
    let row = |(file, tally): (String, FileTally)| {
        let mut cells = vec![Cell::Text(file.as_str().into())];
        cells.extend(tally.code.cells());
        cells.extend(tally.blocks.cells());
        Row {
            cells,
            linkage_name: None,
            counted: true,
            ran: tally.code.ran || tally.blocks.ran,
        }
    };
    Ok(files.into_iter().map(row).collect())
}

/// The instructions of a block by file, in order. Those without a line stand at the front and
/// belong to the file of the function.
fn pieces<'a>(named: &Named<'a>, block: &CountedBlock<'a>) -> Vec<(&'a str, Range<u32>)> {
    let own = named.own_file().unwrap_or(UNKNOWN);
    let ranges = block.line_ranges();
    let front = ranges
        .first()
        .map_or(block.block.instructions, |it| it.start);
    let mut pieces = Vec::new();
    if front > 0 {
        pieces.push((own, 0..front));
    }
    let files = block.block.lines.iter().map(|run| named.file(run.file));
    pieces.extend(files.map(|file| file.unwrap_or(own)).zip(ranges));
    pieces
}
