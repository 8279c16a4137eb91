//! Counts into rows, for the units of code: module, function, block, instruction, edge.

use crate::count::{self, Count, CountedBlock};
use crate::events::{EventSums, FunctionEvents};
use crate::listed::Listed;
use crate::names::Named;
use crate::report::Request;
use crate::table::{Cell, Row, Unit};
use crate::time::{Cost, Time, UNKNOWN_CODE};
use crate::{Error, names::functions};
use headcount_model::{Counted, LinkAddr};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Executed, existing, and never executed instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub executed: Count,
    pub instructions: u64,
    pub never: Count,
    /// Whether any of them was counted.
    pub counted: bool,
    /// Whether any of them ran, or may have: it was not counted.
    pub ran: bool,
    /// Whether any of them are statements of source text.
    pub of_source: bool,
}

impl Tally {
    /// Adds `instructions` that ran `count` times each.
    pub fn add(&mut self, instructions: u64, count: Count) -> Result<(), Error> {
        let never = match count {
            Count::Unknown => Count::Unknown,
            _ if count.is_never() => Count::Exact(1),
            _ => Count::Exact(0),
        };
        self.join(Self {
            executed: count.times(instructions)?,
            instructions,
            never: never.times(instructions)?,
            counted: count.is_known(),
            ran: !count.is_never() && instructions > 0,
            of_source: false,
        })
    }

    /// Adds some instructions of a block.
    pub fn add_range(&mut self, block: &CountedBlock<'_>, range: Range<u32>) -> Result<(), Error> {
        self.of_source |= block.block.place.is_some();
        for (instructions, count) in block.stretches(range) {
            self.add(instructions, count)?;
        }
        Ok(())
    }

    /// Adds all of another.
    pub fn join(&mut self, other: Self) -> Result<(), Error> {
        self.executed = self.executed.plus(other.executed)?;
        self.instructions += other.instructions;
        self.never = self.never.plus(other.never)?;
        self.counted |= other.counted;
        self.ran |= other.ran;
        self.of_source |= other.of_source;
        Ok(())
    }

    /// Of one function.
    pub fn of(named: &Named<'_>) -> Result<Self, Error> {
        let mut tally = Self::default();
        for block in named.blocks() {
            tally.add_range(&block, 0..block.block.instructions)?;
        }
        Ok(tally)
    }

    /// Of everything of which anything was counted.
    pub fn of_all(counted: &[Counted]) -> Result<Self, Error> {
        let mut tally = Self::default();
        for module in counted {
            for named in functions(module, false) {
                tally.join(Self::of(&named)?)?;
            }
        }
        Ok(tally)
    }

    /// The cells `executed`, `instructions` and `never`.
    pub fn cells(self) -> [Cell; 3] {
        [
            Cell::Count(self.executed),
            Cell::Number(self.instructions),
            Cell::Count(self.never),
        ]
    }
}

/// What ran, all in all: code, and source text, which are not added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Instructions.
    pub code: Tally,
    /// Statements of source text that was counted before it was compiled.
    pub source: Tally,
}

impl Totals {
    /// Of all functions that `is_meant` says, of which anything was counted.
    pub fn of(counted: &[Counted], is_meant: impl Fn(&Named<'_>) -> bool) -> Result<Self, Error> {
        let mut totals = Self::default();
        for module in counted {
            for named in functions(module, false).iter().filter(|it| is_meant(it)) {
                let sum = match named.is_of_source() {
                    true => &mut totals.source,
                    false => &mut totals.code,
                };
                sum.join(Tally::of(named)?)?;
            }
        }
        Ok(totals)
    }

    /// Of one of both.
    pub fn of_kind(&self, of_source: bool) -> &Tally {
        if of_source { &self.source } else { &self.code }
    }
}

/// How often the function's entry executed.
pub fn calls(named: &Named<'_>) -> Count {
    let entry =
        |it: CountedBlock<'_>| (it.block.address == named.function.address).then(|| it.count());
    named.blocks().find_map(entry).unwrap_or_default()
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

/// A row for the code of each module, and one for what was counted of its source text.
pub fn modules(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    let mut places = Vec::new();
    for module in counted {
        places.push(rows.len());
        let is_of_source = |named: &Named<'_>| named.is_of_source();
        let has_source = functions(module, false).iter().any(is_of_source);
        match has_source {
            false => rows.extend(module_row(module, request, &|_| true)?),
            true => {
                rows.extend(module_row(module, request, &|it| !it.is_of_source())?);
                rows.extend(module_row(module, request, &is_of_source)?);
            }
        }
    }
    if let Some(time) = request.time {
        add_uncounted_to_modules(time, request, &places, &mut rows);
    }
    Ok(rows)
}

/// Books the time in functions that were not counted on the rows of their modules, which begin at these
/// places; other modules get a row.
fn add_uncounted_to_modules(
    time: &Time,
    request: &Request<'_>,
    places: &[usize],
    rows: &mut Vec<Row>,
) {
    let mut others: BTreeMap<&str, Cost> = BTreeMap::new();
    for it in time.uncounted().filter(|it| it.own.samples > 0) {
        let name = crate::demangle(&it.name);
        if !request
            .only
            .wants_sampled(&it.module, &[&name, &it.name], &it.file)
        {
            continue;
        }
        let place = it.of.and_then(|of| places.get(of));
        let row = place.and_then(|place| rows.get_mut(*place));
        match row.filter(|row| row.cells[0] == text(&it.module)) {
            Some(row) => add_time(row, it.own),
            None => others.entry(&it.module).or_default().add(it.own),
        }
    }
    for (module, cost) in others {
        let name = if module.is_empty() {
            UNKNOWN_CODE
        } else {
            module
        };
        let mut cells = vec![text(name)];
        cells.extend(std::iter::repeat_n(Cell::Count(Count::Unknown), 3));
        cells.extend(time_cells(cost));
        rows.push(Row {
            cells,
            ran: true,
            ..Row::default()
        });
    }
}

/// Adds to the time of a row, in which that comes last.
fn add_time(row: &mut Row, cost: Cost) {
    if let [.., Cell::Number(samples), Cell::Number(nanoseconds)] = row.cells.as_mut_slice() {
        *samples = samples.saturating_add(cost.samples);
        *nanoseconds = nanoseconds.saturating_add(cost.nanoseconds);
    }
}

/// One row for the functions of a module that `is_meant` says, if any is wanted.
pub fn module_row(
    module: &Counted,
    request: &Request<'_>,
    is_meant: &dyn Fn(&Named<'_>) -> bool,
) -> Result<Option<Row>, Error> {
    let whole = request.only.wants_module(&module.module);
    let mut tally = Tally::default();
    let mut events = EventSums::default();
    let mut cost = Cost::default();
    let mut functions = functions(module, request.demangle);
    functions.retain(is_meant);
    // Nothing is not zero: of a module without a counted function there is nothing to tell.
    let mut any = whole && (!functions.is_empty() || module.module.functions.is_empty());
    for named in functions {
        let is_part = whole && !request.only.skips(&named);
        if is_part || request.only.wants(&named) {
            tally.join(Tally::of(&named)?)?;
            let own = FunctionEvents::new(&named, &request.events);
            events.join(own.all(&named)?)?;
            let here = request
                .time
                .and_then(|it| it.of_function(&named.module.build_id, named.index));
            cost.add(here.map(|it| it.own).unwrap_or_default());
            any = true;
        }
    }
    let mut cells = vec![text(&module.module.path)];
    cells.extend(tally.cells());
    if request.time.is_some() {
        cells.extend(time_cells(cost));
    }
    Ok(any.then(|| Row {
        cells,
        counted: true,
        ran: tally.ran,
        of_source: tally.of_source,
        events,
        ..Row::default()
    }))
}

/// Rows of every wanted function, in the order of the program.
pub fn of_functions(
    counted: &[Counted],
    request: &Request<'_>,
    mut rows_of: impl FnMut(&Named<'_>, &mut Vec<Row>) -> Result<(), Error>,
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for module in counted {
        for named in functions(module, request.demangle) {
            if request.only.wants(&named) {
                let before = rows.len();
                rows_of(&named, &mut rows)?;
                name_library(&named, request, &mut rows[before..]);
            }
        }
    }
    Ok(rows)
}

/// Says of the rows of a function whose it is, if anybody asks.
pub fn name_library(named: &Named<'_>, request: &Request<'_>, rows: &mut [Row]) {
    if let Some(library) = request.own.and_then(|own| own.library(named)) {
        rows.iter_mut()
            .for_each(|row| row.library = Some(library.clone()));
    }
}

/// Whether rows of a unit tell what was executed with all that was called from there.
pub fn have_inclusive(unit: Unit) -> bool {
    matches!(unit, Unit::Function | Unit::Call | Unit::CallCost)
}

/// Whether the rows of a unit can tell of time.
pub fn have_time(unit: Unit) -> bool {
    matches!(
        unit,
        Unit::Module | Unit::File | Unit::Function | Unit::Line | Unit::Instruction
    )
}

/// The cells `samples` and `nanoseconds`.
pub fn time_cells(cost: Cost) -> [Cell; 2] {
    [Cell::Number(cost.samples), Cell::Number(cost.nanoseconds)]
}

/// Rows of functions that were seen but not counted.
pub fn uncounted_functions(time: &Time, request: &Request<'_>, rows: &mut Vec<Row>) {
    for it in time.uncounted().filter(|it| it.own.samples > 0) {
        let name = match request.demangle {
            true => crate::demangle(&it.name),
            false => it.name.as_str().into(),
        };
        let names = [name.as_ref(), it.name.as_str()];
        if !request.only.wants_sampled(&it.module, &names, &it.file) {
            continue;
        }
        let mut cells = vec![
            text(&it.module),
            text(&name),
            text(match it.file.as_str() {
                "" => crate::source::UNKNOWN,
                file => file,
            }),
            Cell::Number(0),
        ];
        cells.extend(std::iter::repeat_n(Cell::Count(Count::Unknown), 4));
        cells.extend(time_cells(it.own));
        rows.push(Row {
            cells,
            linkage_name: Some(it.name.as_str().into()),
            ran: true,
            library: request
                .own
                .and_then(|own| own.library_at(&it.module, &it.file, &[&name, &it.name])),
            ..Row::default()
        });
    }
}

pub fn function(
    named: &Named<'_>,
    request: &Request<'_>,
    rows: &mut Vec<Row>,
) -> Result<(), Error> {
    let tally = Tally::of(named)?;
    let calls = calls(named);
    let line = named.function.source.map_or(0, |(_, line)| line);
    let mut cells = vec![
        Cell::Text(named.module_path.clone()),
        Cell::Text(named.name.clone()),
        text(named.own_file().unwrap_or(crate::source::UNKNOWN)),
        Cell::Number(line.into()),
        Cell::Count(calls),
    ];
    cells.extend(tally.cells());
    if let Some(exact) = request.calls {
        cells.push(Cell::Count(Count::Exact(exact.of_function(named))));
    }
    if let Some(time) = request.time {
        let here = time.of_function(&named.module.build_id, named.index);
        cells.extend(time_cells(here.map(|it| it.own).unwrap_or_default()));
    }
    rows.push(Row {
        cells,
        linkage_name: Some(named.function.name.as_str().into()),
        counted: true,
        ran: tally.ran || !calls.is_never(),
        of_source: named.is_of_source(),
        events: FunctionEvents::new(named, &request.events).all(named)?,
        ..Row::default()
    });
    Ok(())
}

/// A row that begins with the names of module and function.
pub fn row(named: &Named<'_>, linkage_name: &Arc<str>, count: Count, rest: Vec<Cell>) -> Row {
    let mut cells = vec![
        Cell::Text(named.module_path.clone()),
        Cell::Text(named.name.clone()),
    ];
    cells.extend(rest);
    Row {
        cells,
        linkage_name: Some(linkage_name.clone()),
        counted: count.is_known(),
        ran: !count.is_never(),
        ..Row::default()
    }
}

pub fn blocks(named: &Named<'_>, request: &Request<'_>, rows: &mut Vec<Row>) -> Result<(), Error> {
    let linkage_name: Arc<str> = named.function.name.as_str().into();
    let events = FunctionEvents::new(named, &request.events);
    for it in by_address(named) {
        let rest = vec![
            Cell::Address(Some(it.block.address)),
            Cell::Number(it.block.instructions.into()),
            Cell::Count(it.count()),
        ];
        rows.push(Row {
            events: events.block(&it).of(0..it.block.instructions)?,
            ..row(named, &linkage_name, it.count(), rest)
        });
    }
    Ok(())
}

/// The same, with where each block is in its source text. Of a block of instructions that is the
/// line it begins with.
pub fn source_blocks(
    named: &Named<'_>,
    request: &Request<'_>,
    rows: &mut Vec<Row>,
) -> Result<(), Error> {
    let first = rows.len();
    blocks(named, request, rows)?;
    for (row, it) in rows[first..].iter_mut().zip(by_address(named)) {
        row.of_source = it.block.place.is_some();
        let line = it.block.lines.iter().find(|run| run.line != 0);
        let (file, line, column, kind) = match (it.block.place, line) {
            (Some(at), _) => (Some(at.file), at.line, at.column, at.kind.name()),
            (None, Some(run)) => (Some(run.file), run.line, 0, "code"),
            (None, None) => (None, 0, 0, "code"),
        };
        let file = file.and_then(|id| named.file(id));
        row.cells.extend([
            text(file.unwrap_or(crate::source::UNKNOWN)),
            Cell::Number(line.into()),
            Cell::Number(column.into()),
            text(kind),
        ]);
    }
    Ok(())
}

/// The blocks by address, with their counts.
pub fn by_address<'a>(named: &Named<'a>) -> Vec<CountedBlock<'a>> {
    let mut blocks: Vec<_> = named.blocks().collect();
    blocks.sort_by_key(|it| it.block.address);
    blocks
}

pub fn instructions(
    named: &Named<'_>,
    request: &Request<'_>,
    rows: &mut Vec<Row>,
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let linkage_name: Arc<str> = named.function.name.as_str().into();
    let listed = Listed::new(named, request.decode);
    let events = FunctionEvents::new(named, &request.events);
    for it in by_address(named) {
        let block = it.block;
        let events = events.block(&it);
        let mut found = 0;
        for (address, words) in listed.instructions(block) {
            let count = it.at(found);
            let mut rest = vec![
                Cell::Address(Some(address)),
                Cell::Count(count),
                text(&words),
            ];
            if let Some(time) = request.time {
                let here = time.of_instruction(&named.module.build_id, address);
                rest.extend(time_cells(here));
            }
            rows.push(Row {
                events: events.of(found..found + 1)?,
                ..row(named, &linkage_name, count, rest)
            });
            found += 1;
        }
        if found != block.instructions && block.place.is_none() {
            notes.push(missing_instructions(
                &named.name,
                block.address,
                block.instructions,
                found,
            ));
        }
    }
    Ok(())
}

fn missing_instructions(name: &str, at: LinkAddr, wanted: u32, found: u32) -> String {
    format!(
        "The block of {name} at {at} has {wanted} instructions, but its stored code shows {found}."
    )
}

pub fn edges(named: &Named<'_>, request: &Request<'_>, rows: &mut Vec<Row>) -> Result<(), Error> {
    let linkage_name: Arc<str> = named.function.name.as_str().into();
    let events = FunctionEvents::new(named, &request.events);
    let address = |end: Option<u32>| {
        let block = end.and_then(|index| named.function.blocks.get(index as usize));
        block.map(|block| block.address)
    };
    let mut edges: Vec<_> = named
        .function
        .edges
        .iter()
        .zip(count::edges(named.counts))
        .map(|(edge, count)| (address(edge.from), address(edge.to), edge, count))
        .collect();
    edges.sort_by_key(|(from, to, edge, _)| (*from, *to, edge.kind));
    for (from, to, edge, count) in edges {
        let rest = vec![
            Cell::Address(from),
            Cell::Address(to),
            text(edge.kind.name()),
            Cell::Count(count),
        ];
        rows.push(Row {
            events: events.edge(edge, count, named)?,
            ..row(named, &linkage_name, count, rest)
        });
    }
    Ok(())
}
