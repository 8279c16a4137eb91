//! Counts into rows, for the units of source text: line and file.

use crate::Error;
use crate::glob::Pattern;
use crate::names::{self, Named, functions};
use crate::report::Request;
use crate::rows::Tally;
use crate::table::{Cell, Row};
use headcount_model::{Block, Counted, FileId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The file of instructions that belong to none that is known.
pub const UNKNOWN: &str = "??";

/// The counts of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCount {
    /// How often a statement of the line began: the largest count of any block that begins one,
    /// summed over functions.
    pub count: u64,
    /// Instructions executed.
    pub executed: u64,
}

/// The counts of every line of every file.
pub fn line_counts(
    counted: &[Counted],
) -> Result<BTreeMap<Arc<str>, BTreeMap<u32, LineCount>>, Error> {
    all_lines(counted, false, &[])
}

type Lines = BTreeMap<Arc<str>, BTreeMap<u32, LineCount>>;

fn all_lines(counted: &[Counted], demangle: bool, only: &[Pattern]) -> Result<Lines, Error> {
    let mut sums: BTreeMap<Arc<str>, BTreeMap<u32, LineSum>> = BTreeMap::new();
    for module in counted {
        let names: Vec<Arc<str>> = module
            .module
            .files
            .iter()
            .map(|it| it.as_str().into())
            .collect();
        for named in functions(module, demangle) {
            for ((file, line), copy) in lines_of(&named)? {
                let Some(name) = names.get(file.index()) else {
                    continue;
                };
                if named.is_wanted(only) || names::file_is_wanted(name, only) {
                    let lines = sums.entry(name.clone()).or_default();
                    lines.entry(line).or_default().add(copy)?;
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

/// What one function says about one line.
#[derive(Clone, Copy, Default)]
struct LineCopy {
    /// The largest count of a block that begins a statement of the line.
    statement: Option<u64>,
    /// The largest count of any block that holds an instruction of it.
    any: u64,
    executed: u64,
}

fn lines_of(named: &Named<'_>) -> Result<HashMap<(FileId, u32), LineCopy>, Error> {
    let mut lines: HashMap<(FileId, u32), LineCopy> = HashMap::new();
    for (block, count) in named.blocks() {
        for run in block.lines.iter().filter(|run| run.line > 0) {
            let line = lines.entry((run.file, run.line)).or_default();
            line.any = line.any.max(count);
            if run.is_stmt {
                line.statement = Some(line.statement.map_or(count, |most| most.max(count)));
            }
            line.executed = count
                .checked_mul(run.instructions.into())
                .and_then(|more| line.executed.checked_add(more))
                .ok_or(Error::TooLarge)?;
        }
    }
    Ok(lines)
}

/// What all functions together say about one line.
#[derive(Clone, Copy, Default)]
struct LineSum {
    statements: Option<u64>,
    any: u64,
    executed: u64,
}

impl LineSum {
    fn add(&mut self, copy: LineCopy) -> Result<(), Error> {
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or(Error::TooLarge);
        if let Some(count) = copy.statement {
            self.statements = Some(sum(self.statements.unwrap_or(0), count)?);
        }
        self.any = sum(self.any, copy.any)?;
        self.executed = sum(self.executed, copy.executed)?;
        Ok(())
    }

    fn finish(self) -> LineCount {
        LineCount {
            count: self.statements.unwrap_or(self.any),
            executed: self.executed,
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
                    Cell::Number(it.count),
                    Cell::Number(it.executed),
                ],
                linkage_name: None,
                ran: it.count > 0 || it.executed > 0,
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
    only: &[Pattern],
) -> Result<BTreeMap<String, FileTally>, Error> {
    let mut files: BTreeMap<String, FileTally> = BTreeMap::new();
    for module in counted {
        for named in functions(module, demangle) {
            let whole = named.is_wanted(only);
            let wanted = |file: &str| whole || names::file_is_wanted(file, only);
            for (block, count) in named.blocks() {
                let pieces = pieces(&named, block);
                for (file, instructions) in &pieces {
                    if wanted(file) {
                        let tally = files.entry((*file).to_owned()).or_default();
                        tally.code.add(*instructions, count)?;
                    }
                }
                let first = pieces.first().map_or(UNKNOWN, |(file, _)| file);
                if wanted(first) {
                    let tally = files.entry(first.to_owned()).or_default();
                    // A block has "one" of what is counted, itself.
                    tally.blocks.add(1, count)?;
                }
            }
        }
    }
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
            ran: tally.code.executed > 0 || tally.blocks.executed > 0,
        }
    };
    Ok(files.into_iter().map(row).collect())
}

/// The instructions of a block by file, in order. Those without a line stand at the front and
/// belong to the file of the function.
fn pieces<'a>(named: &Named<'a>, block: &'a Block) -> Vec<(&'a str, u64)> {
    let in_lines: u64 = block
        .lines
        .iter()
        .map(|run| u64::from(run.instructions))
        .sum();
    let own = named.own_file().unwrap_or(UNKNOWN);
    let mut pieces = Vec::new();
    match u64::from(block.instructions).saturating_sub(in_lines) {
        0 => (),
        without => pieces.push((own, without)),
    }
    for run in &block.lines {
        let file = named.file(run.file).unwrap_or(own);
        pieces.push((file, run.instructions.into()));
    }
    pieces
}
