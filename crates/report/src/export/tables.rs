//! The rows of every table that `headcount report` can print, for a database.
//!
//! Rows come in the order of the program, one at a time, and name what they belong to by numbers
//! from 1: modules, functions and source files. The columns of each table are those of
//! `plain.sql` in `crates/profile`.

use crate::callees::Callees;
use crate::names::{Named, functions};
use crate::report::{Request, refused};
use crate::source::UNKNOWN;
use crate::table::{Cell, Row};
use crate::values::{TalliedPlace, TalliedValue, tallied};
use crate::{Error, RunSummary, calls, rows, source};
use headcount_model::{Counted, LinkAddr};
use std::collections::HashMap;
use std::sync::Arc;

/// Takes a row of a table.
pub type Put<'a, E> = &'a mut dyn FnMut(&'static str, &[Cell]) -> Result<(), E>;

/// Puts all rows of what is wanted; `notes` say what makes the counts uncertain.
pub fn tables<E: From<Error>>(
    counted: &[Counted],
    runs: &[RunSummary],
    notes: &[String],
    request: &Request<'_>,
    put: Put<'_, E>,
) -> Result<(), E> {
    let mut tables = Tables {
        put,
        functions: 0,
        sources: HashMap::new(),
    };
    for (number, run) in (1..).zip(runs) {
        tables.run(number, run)?;
    }
    let callees = request.callees(counted);
    for (index, module) in counted.iter().enumerate() {
        tables.module(index, module, &callees, request)?;
    }
    for row in source::whole_files(counted, request)? {
        tables.of_source("file_counts", &row)?;
    }
    for row in source::lines(counted, request)? {
        tables.of_source("line_counts", &row)?;
    }
    let found = tallied(counted, request)?;
    for tally in &found.tallies {
        for value in &tally.values {
            (tables.put)("value_counts", &value_cells(tally, value))?;
        }
    }
    for it in refused(counted) {
        let (refusal, line) = (&it.refusal, Cell::Number(it.refusal.line.into()));
        let [module, subject, file, reason] =
            [&it.module, &refusal.subject, &refusal.file, &refusal.reason].map(|it| text(it));
        (tables.put)("refusals", &[module, subject, file, line, reason])?;
    }
    let notes = notes.iter().chain(&found.doubts).chain(&found.notes);
    notes
        .into_iter()
        .try_for_each(|note| (tables.put)("notes", &[text(note)]))
}

struct Tables<'a, E> {
    put: Put<'a, E>,
    /// How many functions have a number.
    functions: u64,
    /// The numbers of source files.
    sources: HashMap<Arc<str>, u64>,
}

impl<E: From<Error>> Tables<'_, E> {
    fn run(&mut self, number: u64, run: &RunSummary) -> Result<(), E> {
        let status = run.status.and_then(|it| u64::try_from(it).ok());
        let status = status.map_or(Cell::Address(None), Cell::Number);
        let command = text(&run.command.join(" "));
        (self.put)("runs", &[Cell::Number(number), command, status])
    }

    fn module(
        &mut self,
        index: usize,
        module: &Counted,
        callees: &Callees<'_>,
        request: &Request<'_>,
    ) -> Result<(), E> {
        let number = index as u64 + 1;
        let Some(row) = rows::module_row(module, request, &|_| true)? else {
            return Ok(()); // nothing of it is wanted, or was counted
        };
        let [path, rest @ ..] = row.cells.as_slice() else {
            return Ok(());
        };
        let build_id = text(&module.module.build_id);
        let mut cells = vec![Cell::Number(number), path.clone(), build_id];
        cells.extend_from_slice(rest);
        cells.push(at_least(&row));
        (self.put)("modules", &cells)?;
        let all = functions(module, request.demangle);
        for named in all.iter().filter(|it| request.only.wants(it)) {
            self.functions += 1;
            self.function(number, named, request)?;
            self.parts(index, named, callees, request)?;
        }
        Ok(())
    }

    fn function(&mut self, module: u64, named: &Named<'_>, request: &Request<'_>) -> Result<(), E> {
        let mut row = Vec::new();
        rows::function(named, request, &mut row)?;
        for row in &row {
            let [_, name, file, rest @ ..] = row.cells.as_slice() else {
                continue;
            };
            let mut cells = vec![
                Cell::Number(self.functions),
                Cell::Number(module),
                name.clone(),
                text(&named.function.name),
                Cell::Address(Some(named.function.address)),
                self.source(file)?,
            ];
            cells.extend_from_slice(rest);
            cells.push(at_least(row));
            (self.put)("function_counts", &cells)?;
        }
        Ok(())
    }

    /// Blocks, edges and calls.
    fn parts(
        &mut self,
        module: usize,
        named: &Named<'_>,
        callees: &Callees<'_>,
        request: &Request<'_>,
    ) -> Result<(), E> {
        let (mut blocks, mut edges, mut sites) = (Vec::new(), Vec::new(), Vec::new());
        rows::source_blocks(named, request, &mut blocks)?;
        rows::edges(named, request, &mut edges)?;
        calls::of_function(module, named, callees, request, &mut sites)?;
        for row in &mut blocks {
            let file = self.source(&row.cells[FILE_OF_BLOCK])?;
            row.cells[FILE_OF_BLOCK] = file;
        }
        let all = [
            ("block_counts", blocks),
            ("edge_counts", edges),
            ("call_counts", sites),
        ];
        for (table, rows) in all {
            for row in rows.iter().filter(|it| it.counted) {
                // The names of module and function.
                let mut cells = vec![Cell::Number(self.functions)];
                cells.extend(row.cells.iter().skip(2).cloned());
                cells.push(at_least(row));
                (self.put)(table, &cells)?;
            }
        }
        Ok(())
    }

    /// A row that begins with the name of a source file.
    fn of_source(&mut self, table: &'static str, row: &Row) -> Result<(), E> {
        let [file, rest @ ..] = row.cells.as_slice() else {
            return Ok(());
        };
        if !row.counted {
            return Ok(());
        }
        let mut cells = vec![self.named_source(file)?];
        cells.extend_from_slice(rest);
        cells.push(at_least(row));
        (self.put)(table, &cells)
    }

    /// The number of a source file, if it is known.
    fn source(&mut self, file: &Cell) -> Result<Cell, E> {
        match file {
            Cell::Text(name) if name.as_ref() != UNKNOWN => self.named_source(file),
            _ => Ok(Cell::Address(None)),
        }
    }

    fn named_source(&mut self, file: &Cell) -> Result<Cell, E> {
        let Cell::Text(name) = file else {
            return Ok(Cell::Address(None));
        };
        if let Some(number) = self.sources.get(name) {
            return Ok(Cell::Number(*number));
        }
        let number = self.sources.len() as u64 + 1;
        self.sources.insert(name.clone(), number);
        (self.put)("sources", &[Cell::Number(number), file.clone()])?;
        Ok(Cell::Number(number))
    }
}

/// Of the amounts, which may be negative, all 64 bits are stored, as of addresses.
fn value_cells(tally: &TalliedPlace, it: &TalliedValue) -> [Cell; 11] {
    let sum = LinkAddr(it.sum.cast_unsigned());
    let (file, line) = match &it.line {
        Some((file, line)) => (Cell::Text(file.clone()), Cell::Number((*line).into())),
        None => (Cell::Address(None), Cell::Address(None)),
    };
    [
        Cell::Text(it.module.clone()),
        Cell::Text(it.function.clone()),
        text(&it.place),
        text(&tally.expression),
        text(&it.value),
        Cell::Number(it.count),
        text(&it.caller),
        Cell::Address(tally.has_amount.then_some(sum)),
        Cell::Address(it.address),
        file,
        line,
    ]
}

/// The place of `file` among the columns of blocks.
const FILE_OF_BLOCK: usize = 5;

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

fn at_least(row: &Row) -> Cell {
    Cell::Number(row.is_at_least().into())
}
