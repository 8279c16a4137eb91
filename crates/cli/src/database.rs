//! Counts as a database of plain tables: the rows that `report` makes, into what `profile` writes.

use crate::{output, progress};
use headcount_model::Counted;
use headcount_profile::{PlainTables, Value};
use headcount_report::{Cell, Request, RunSummary, export};
use std::path::Path;

/// What goes into the database.
pub struct Material<'a> {
    pub counted: &'a [Counted],
    pub runs: &'a [RunSummary],
    pub notes: &'a [String],
    pub request: &'a Request<'a>,
}

/// Writes the database to the file the user named, or to standard output.
pub fn write(to: Option<&Path>, material: &Material<'_>) -> anyhow::Result<()> {
    output::spare_profile(to)?;
    output::write_made(to, |path| {
        progress::during("exporting", || fill(path, material)).map_err(|error| {
            // The file has another name until it is whole.
            match (error.downcast::<headcount_profile::Error>(), to) {
                (Ok(error), Some(to)) => error.problem.of(to).into(),
                (Ok(error), None) => error.into(),
                (Err(error), _) => error,
            }
        })
    })
}

fn fill(path: &Path, material: &Material<'_>) -> anyhow::Result<()> {
    let tables = PlainTables::create(path)?;
    let mut put = |table: &'static str, cells: &[Cell]| -> anyhow::Result<()> {
        let values: Vec<Value<'_>> = cells.iter().map(value).collect();
        Ok(tables.add(table, &values)?)
    };
    let Material {
        counted,
        runs,
        notes,
        request,
    } = material;
    export::tables(counted, runs, notes, request, &mut put)?;
    Ok(tables.finish()?)
}

fn value(cell: &Cell) -> Value<'_> {
    match cell {
        Cell::Text(text) => Value::Text(text),
        Cell::Number(number) => Value::Number(*number),
        Cell::Count(count) => count.value().map_or(Value::Null, Value::Number),
        Cell::Amount(amount) => amount.value().map_or(Value::Null, Value::Number),
        Cell::Address(address) => address.map_or(Value::Null, |it| Value::Address(it.0)),
    }
}
