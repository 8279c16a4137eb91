//! One row for what is one function to the programmer: its parts and copies, its instances for several
//! types, and the same function in several programs.

use crate::Error;
use crate::count::Count;
use crate::fold::add_cells;
use crate::names::{is_part, origin};
use crate::source::UNKNOWN;
use crate::table::{Cell, Row, Table, Unit};
use std::collections::HashMap;

/// Joins the rows of a table of functions. The first of several stays in its place, under the name
/// of the function that all of them were made of.
pub fn join(table: &mut Table, demangle: bool) -> Result<(), Error> {
    // What is said of one of them need not be true of all.
    if table.unit != Unit::Function || table.has_why {
        return Ok(());
    }
    let columns = table.columns();
    let within = join_by(
        &columns,
        std::mem::take(&mut table.rows),
        demangle,
        is_same_here,
    )?;
    table.rows = join_by(&columns, within, demangle, is_same_elsewhere)?;
    Ok(())
}

fn join_by(
    columns: &[&str],
    rows: Vec<Row>,
    demangle: bool,
    is_same: fn(&Row, &Row) -> bool,
) -> Result<Vec<Row>, Error> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    let mut joined: Vec<Row> = Vec::new();
    for row in rows {
        let Some(name) = name(&row, demangle) else {
            joined.push(row);
            continue;
        };
        let known = places.entry(name.clone()).or_default();
        match known.iter().find(|it| is_same(&joined[**it], &row)) {
            Some(place) => add(columns, &mut joined[*place], row, name)?,
            None => {
                known.push(joined.len());
                joined.push(row);
            }
        }
    }
    Ok(joined)
}

/// What a row's function was made of.
fn name(row: &Row, demangle: bool) -> Option<String> {
    let linkage = row.linkage_name.as_deref().filter(|_| !row.of_source)?;
    Some(match demangle {
        true => crate::demangle(origin(linkage)).into_owned(),
        false => origin(linkage).to_owned(),
    })
}

/// Are two functions of one name in a module one? Of many parts and copies, nobody says where their
/// source is.
fn is_same_here(one: &Row, other: &Row) -> bool {
    let is_made = |row: &Row| {
        let linkage = row.linkage_name.as_deref().unwrap_or_default();
        origin(linkage) != linkage && !has_file(row)
    };
    one.library == other.library
        && one.cells[MODULE] == other.cells[MODULE]
        && (one.cells[FILE] == other.cells[FILE] || is_made(one) || is_made(other))
}

/// Are two functions of one name in different modules one?
fn is_same_elsewhere(one: &Row, other: &Row) -> bool {
    one.library == other.library
        && has_file(one)
        && one.cells[FILE] == other.cells[FILE]
        && one.cells[LINE] == other.cells[LINE]
}

fn has_file(row: &Row) -> bool {
    row.cells[FILE] != Cell::Text(UNKNOWN.into())
}

fn add(columns: &[&str], sum: &mut Row, mut more: Row, name: String) -> Result<(), Error> {
    let is_part_row = |row: &Row| row.linkage_name.as_deref().is_some_and(is_part);
    // What a part cost is in what its function cost.
    let is_nested = is_part_row(sum) || is_part_row(&more);
    // Who enters a part has entered the function before.
    for row in [&mut *sum, &mut more] {
        if row.linkage_name.as_deref().is_some_and(is_part) {
            row.cells[CALLS] = Cell::Count(Count::Exact(0));
        }
    }
    if let [Cell::Text(module), ..] = sum.cells.as_mut_slice()
        && more.cells[MODULE] != Cell::Text(module.clone())
    {
        *module = SEVERAL.into();
    }
    sum.cells[FUNCTION] = Cell::Text(name.as_str().into());
    if !has_file(sum) {
        sum.cells[FILE] = more.cells[FILE].clone();
        sum.cells[LINE] = more.cells[LINE].clone();
    }
    sum.linkage_name = sum.linkage_name.as_deref().map(|it| origin(it).into());
    sum.counted |= more.counted;
    sum.ran |= more.ran;
    if let (Cell::Count(calls), Cell::Count(others)) = (&mut sum.cells[CALLS], &more.cells[CALLS]) {
        *calls = calls.plus(*others)?;
    }
    let inclusive = columns.iter().position(|it| *it == "inclusive");
    if let Some(place) = inclusive
        && let (Cell::Count(cost), Cell::Count(other)) = (&mut sum.cells[place], &more.cells[place])
    {
        *cost = match is_nested {
            true if other.value() > cost.value() => *other,
            true => *cost,
            false => cost.plus(*other)?,
        };
    }
    add_cells(columns, &mut sum.cells, more.cells)
}

// The columns of functions.
const MODULE: usize = 0;
const FUNCTION: usize = 1;
const FILE: usize = 2;
const LINE: usize = 3;
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
            row("a", "g.cold", UNKNOWN, 1),
            row("a", "g", "g.c", 4),
            Row {
                cells: vec![
                    Cell::Text("b".into()),
                    Cell::Text("g".into()),
                    Cell::Text("g.c".into()),
                    Cell::Number(99),
                ]
                .into_iter()
                .chain(row("b", "g", "g.c", 8).cells.into_iter().skip(4))
                .collect(),
                ..row("b", "g", "g.c", 8)
            },
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
            "a g 4 15",
            "b g 8 24",
        ];
        assert_eq!(shown, expected);
    }
}
