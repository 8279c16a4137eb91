//! One row for what is one function to the programmer: its parts and copies, its instances for several
//! types, and the same function in several programs.

use crate::Error;
use crate::count::Count;
use crate::fold::add_cells;
use crate::names::{is_part, origin};
use crate::source::UNKNOWN;
use crate::table::{Cell, Row, Table, Unit};
use std::collections::HashMap;
use std::sync::Arc;

/// What tells functions apart: their name, and their file or else their module.
type Key = (String, Arc<str>, Option<Arc<str>>);

/// Joins the rows of a table of functions. The first of several stays in its place, under the name
/// of the function that all of them were made of.
pub fn join(table: &mut Table, demangle: bool) -> Result<(), Error> {
    // What is said of one of them need not be true of all.
    if table.unit != Unit::Function || table.has_why {
        return Ok(());
    }
    let columns = table.columns();
    let mut places: HashMap<Key, usize> = HashMap::new();
    let mut joined: Vec<Row> = Vec::new();
    for row in std::mem::take(&mut table.rows) {
        let key = key(&row, demangle);
        match key.as_ref().and_then(|key| places.get(key)) {
            Some(place) => {
                let name = key.map(|it| it.0).unwrap_or_default();
                add(&columns, &mut joined[*place], row, name)?;
            }
            None => {
                places.extend(key.map(|key| (key, joined.len())));
                joined.push(row);
            }
        }
    }
    table.rows = joined;
    Ok(())
}

fn key(row: &Row, demangle: bool) -> Option<Key> {
    let [Cell::Text(module), _, Cell::Text(file), ..] = row.cells.as_slice() else {
        return None;
    };
    let linkage = row.linkage_name.as_deref().filter(|_| !row.of_source)?;
    let name = match demangle {
        true => crate::demangle(origin(linkage)).into_owned(),
        false => origin(linkage).to_owned(),
    };
    let of = if file.as_ref() == UNKNOWN {
        module
    } else {
        file
    };
    Some((name, of.clone(), row.library.clone()))
}

fn add(columns: &[&str], sum: &mut Row, mut more: Row, name: String) -> Result<(), Error> {
    // Who enters a part has entered the function before.
    for row in [&mut *sum, &mut more] {
        if row.linkage_name.as_deref().is_some_and(is_part) {
            row.cells[CALLS] = Cell::Count(Count::Exact(0));
        }
    }
    if let [Cell::Text(module), ..] = sum.cells.as_mut_slice()
        && more.cells[0] != Cell::Text(module.clone())
    {
        *module = SEVERAL.into();
    }
    sum.cells[1] = Cell::Text(name.as_str().into());
    sum.linkage_name = sum.linkage_name.as_deref().map(|it| origin(it).into());
    sum.counted |= more.counted;
    sum.ran |= more.ran;
    if let (Cell::Count(calls), Cell::Count(others)) = (&mut sum.cells[CALLS], &more.cells[CALLS]) {
        *calls = calls.plus(*others)?;
    }
    add_cells(columns, &mut sum.cells, more.cells)
}

/// The column `calls` of functions.
const CALLS: usize = 4;

/// In place of a module.
const SEVERAL: &str = "(several)";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(module: &str, name: &str, file: &str, calls: u64) -> Row {
        let text = |it: &str| Cell::Text(it.into());
        let count = |it| Cell::Count(Count::Exact(it));
        Row {
            cells: vec![
                text(module),
                text(name),
                text(file),
                Cell::Number(7),
                count(calls),
                count(calls * 3),
                Cell::Number(3),
                count(0),
            ],
            linkage_name: Some(name.into()),
            counted: true,
            ran: calls > 0,
            ..Row::default()
        }
    }

    #[test]
    fn what_is_one_function_has_one_row() {
        let mut table = Table::new(Unit::Function);
        table.rows = vec![
            row("a", "f.part.0", "f.c", 5),
            row("a", "alone.cold", "f.c", 1),
            row("a", "f", "f.c", 10),
            row("a", "f.constprop.0", "f.c", 2),
            row("b", "f", "f.c", 100),
            row("b", "f", "other.c", 1000),
            row("a", "s", UNKNOWN, 1),
            row("b", "s", UNKNOWN, 1),
        ];
        join(&mut table, true).unwrap();
        let shown = |row: &Row| match row.cells.as_slice() {
            [
                Cell::Text(module),
                Cell::Text(name),
                _,
                _,
                calls,
                executed,
                ..,
            ] => {
                let (calls, executed) = (calls.amount(), executed.amount());
                format!("{module} {name} {calls} {executed}")
            }
            _ => String::new(),
        };
        let shown: Vec<String> = table.rows.iter().map(shown).collect();
        let expected = [
            "(several) f 112 351",
            "a alone.cold 1 3",
            "b f 1000 3000",
            "a s 1 3",
            "b s 1 3",
        ];
        assert_eq!(shown, expected);
    }
}
