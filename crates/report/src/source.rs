//! Counts into rows, for the units of source text: line and file.

use crate::Error;
use crate::count::{Count, CountedBlock};
use crate::events::{EventSums, FunctionEvents, WantedEvents};
use crate::lines::all_lines;
use crate::names::{Named, functions};
use crate::only::Only;
use crate::own::Own;
use crate::report::Request;
use crate::rows::{Tally, time_cells};
use crate::table::{Cell, Row};
use crate::time::{Cost, Time};
use headcount_model::Counted;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// The file of instructions that belong to none that is known.
pub const UNKNOWN: &str = "??";

pub fn lines(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let all = all_lines(counted, request.demangle, &request.only)?;
    let mut events = line_events(counted, request)?;
    let of_source = only_counted_as_source(counted);
    let mut rows = Vec::new();
    for (file, lines) in all {
        let mut events = events.remove(file.as_ref()).unwrap_or_default();
        let library = library(counted, request, &file);
        for (line, it) in lines {
            rows.push(Row {
                cells: vec![
                    Cell::Text(file.clone()),
                    Cell::Number(line.into()),
                    Cell::Count(it.count),
                    Cell::Count(it.executed),
                    Cell::Text(it.exactness().into()),
                ],
                counted: it.counted,
                ran: it.may_have_run,
                of_source: of_source.contains(file.as_ref()),
                events: events.remove(&line).unwrap_or_default(),
                library: library.clone(),
                ..Row::default()
            });
        }
    }
    Ok(rows)
}

/// The files whose text was counted before it was compiled, and never as code.
fn only_counted_as_source(counted: &[Counted]) -> HashSet<&str> {
    let mut as_source = HashSet::new();
    let mut as_code = HashSet::new();
    for named in counted.iter().flat_map(|it| functions(it, false)) {
        let files = match named.is_of_source() {
            true => &mut as_source,
            false => &mut as_code,
        };
        let runs = named.function.blocks.iter().flat_map(|it| &it.lines);
        files.extend(runs.filter_map(|run| named.file(run.file)));
    }
    &as_source - &as_code
}

/// The wanted events of lines, by file.
fn line_events<'a>(
    counted: &'a [Counted],
    request: &Request<'_>,
) -> Result<HashMap<&'a str, HashMap<u32, EventSums>>, Error> {
    let mut files: HashMap<&str, HashMap<u32, EventSums>> = HashMap::new();
    if request.events.events().is_empty() {
        return Ok(files);
    }
    for named in counted
        .iter()
        .flat_map(|it| functions(it, request.demangle))
    {
        let events = FunctionEvents::new(&named, &request.events);
        for block in named.blocks() {
            let events = events.block(&block);
            for (run, range) in block.block.lines.iter().zip(block.line_ranges()) {
                let Some(file) = named.file(run.file).filter(|_| run.line != 0) else {
                    continue;
                };
                if request.only.wants_code(&named, Some(file)) {
                    let lines = files.entry(file).or_default();
                    lines.entry(run.line).or_default().join(events.of(range)?)?;
                }
            }
        }
    }
    Ok(files)
}

/// Puts the time beside lines, and adds those that were only seen.
pub fn add_time(time: &Time, request: &Request<'_>, rows: &mut Vec<Row>) {
    let mut counted = HashSet::new();
    for row in rows.iter_mut() {
        if let [Cell::Text(file), Cell::Number(line), ..] = row.cells.as_slice() {
            let line = u32::try_from(*line).unwrap_or(0);
            let cost = time.of_line(file, line);
            counted.insert((file.clone(), line));
            row.cells.extend(time_cells(cost));
        }
    }
    for ((file, line), cost) in &time.lines {
        let file: Arc<str> = file.as_str().into();
        let is_wanted = request.only.wants_sampled("", &[], &file);
        if counted.contains(&(file.clone(), *line)) || !is_wanted {
            continue;
        }
        let library = request.own.and_then(|own| own.library_of_file(&file));
        let mut cells = vec![
            Cell::Text(file),
            Cell::Number((*line).into()),
            Cell::Count(Count::Unknown),
            Cell::Count(Count::Unknown),
            Cell::Text(Count::Unknown.exactness().into()),
        ];
        cells.extend(time_cells(*cost));
        rows.push(Row {
            cells,
            ran: true,
            library,
            ..Row::default()
        });
    }
}

/// Instructions and blocks of one file.
#[derive(Default)]
pub struct FileTally {
    pub code: Tally,
    pub blocks: Tally,
    pub events: EventSums,
}

impl FileTally {
    /// Adds all of another.
    fn join(&mut self, other: Self) -> Result<(), Error> {
        self.code.join(other.code)?;
        self.blocks.join(other.blocks)?;
        self.events.join(other.events)
    }
}

/// The tallies of every file that is wanted, or of the wanted functions in it.
pub fn file_tallies<'c>(
    counted: impl IntoIterator<Item = &'c Counted>,
    demangle: bool,
    only: &Only,
    wanted_events: &WantedEvents<'_>,
) -> Result<BTreeMap<String, FileTally>, Error> {
    let mut files: BTreeMap<String, FileTally> = BTreeMap::new();
    for ((file, _), tally) in tallies(counted, demangle, only, wanted_events)? {
        files.entry(file).or_default().join(tally)?;
    }
    Ok(files)
}

/// The same, where source text that was counted is told from code: it is `true` that comes with it.
fn tallies<'c>(
    counted: impl IntoIterator<Item = &'c Counted>,
    demangle: bool,
    only: &Only,
    wanted_events: &WantedEvents<'_>,
) -> Result<BTreeMap<(String, bool), FileTally>, Error> {
    let mut files: BTreeMap<(String, bool), FileTally> = BTreeMap::new();
    for module in counted {
        for named in functions(module, demangle) {
            let wanted = |file: &str| only.wants_code(&named, Some(file));
            let events = FunctionEvents::new(&named, wanted_events);
            let of_source = named.is_of_source();
            for block in named.blocks() {
                let events = events.block(&block);
                let pieces = pieces(&named, &block);
                let first = pieces.first().map_or(UNKNOWN, |(file, _)| file);
                for (file, range) in pieces {
                    if wanted(file) {
                        let tally = files.entry((file.to_owned(), of_source)).or_default();
                        tally.code.add_range(&block, range.clone())?;
                        tally.events.join(events.of(range)?)?;
                    }
                }
                if wanted(first) {
                    let tally = files.entry((first.to_owned(), of_source)).or_default();
                    // A block has "one" of what is counted, itself.
                    tally.blocks.add(1, block.count())?;
                }
            }
        }
    }
    files.retain(|_, it| it.code.counted || it.blocks.counted);
    Ok(files)
}

/// A row for the code of each file, and one for what was counted of its text.
pub fn files(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let files = tallies(counted, request.demangle, &request.only, &request.events)?;
    let row = |((file, of_source), tally): ((String, bool), FileTally)| Row {
        of_source,
        ..file_row(&file, tally, library(counted, request, &file))
    };
    let mut rows: Vec<Row> = files.into_iter().map(row).collect();
    if let Some(time) = request.time {
        add_time_of_files(time, counted, request, &mut rows)?;
    }
    Ok(rows)
}

/// Puts the time beside files: that of their lines, as the table of lines has it.
fn add_time_of_files(
    time: &Time,
    counted: &[Counted],
    request: &Request<'_>,
    rows: &mut Vec<Row>,
) -> Result<(), Error> {
    let lines = match request.only.is_everything() {
        true => BTreeMap::new(),
        false => all_lines(counted, request.demangle, &request.only)?,
    };
    let mut costs: BTreeMap<&str, Cost> = BTreeMap::new();
    for ((file, line), cost) in &time.lines {
        let has_row = || {
            lines
                .get(file.as_str())
                .is_some_and(|it| it.contains_key(line))
        };
        if request.only.wants_sampled("", &[], file) || has_row() {
            costs.entry(file).or_default().add(*cost);
        }
    }
    for row in rows.iter_mut() {
        // Of a file that was counted as source, too, the code took the time.
        let file = match row.cells.first() {
            Some(Cell::Text(file)) if !row.of_source => file.clone(),
            _ => "".into(),
        };
        let cost = costs.remove(file.as_ref()).unwrap_or_default();
        row.cells.extend(time_cells(cost));
    }
    rows.extend(costs.into_iter().map(|(file, cost)| {
        let mut cells = vec![Cell::Text(file.into())];
        cells.extend(std::iter::repeat_n(Cell::Count(Count::Unknown), 6));
        cells.extend(time_cells(cost));
        Row {
            cells,
            ran: true,
            library: library(counted, request, file),
            ..Row::default()
        }
    }));
    Ok(())
}

/// One row for each file.
pub fn whole_files(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let files = file_tallies(counted, request.demangle, &request.only, &request.events)?;
    let row = |(file, tally): (String, FileTally)| {
        file_row(&file, tally, library(counted, request, &file))
    };
    Ok(files.into_iter().map(row).collect())
}

/// Whose a file is, if anybody asks.
fn library(counted: &[Counted], request: &Request<'_>, file: &str) -> Option<Arc<str>> {
    let own = request.own?;
    match file == UNKNOWN && !has_own_without_source(counted, own) {
        true => Some("code without source".into()),
        false => own.library_of_file_in(counted, file),
    }
}

/// Did any function run that is the user's own, and in no file that is known?
fn has_own_without_source(counted: &[Counted], own: &Own) -> bool {
    let mut all = counted.iter().flat_map(|it| functions(it, true));
    all.any(|it| {
        let ran = it.counts.blocks.iter().flatten().any(|count| *count > 0);
        ran && it.own_file().is_none() && own.library(&it).is_none()
    })
}

fn file_row(file: &str, tally: FileTally, library: Option<Arc<str>>) -> Row {
    let mut cells = vec![Cell::Text(file.into())];
    cells.extend(tally.code.cells());
    cells.extend(tally.blocks.cells());
    Row {
        cells,
        counted: true,
        ran: tally.code.ran || tally.blocks.ran,
        events: tally.events,
        library,
        ..Row::default()
    }
}

/// The instructions of a block by file, in order. Those without a line stand at the front and
/// belong to the file of the function. A block is where its first instruction is; one without any
/// is where its first line is.
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
    if block.block.instructions > 0 {
        pieces.retain(|(_, range)| !range.is_empty());
    }
    pieces
}
