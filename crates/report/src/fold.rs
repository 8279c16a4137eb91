//! What of a table is read first: the user's own code that ran, hottest first, and a row for each
//! library.

use crate::Error;
use crate::count::Count;
use crate::number::thousands;
use crate::table::{Cell, Row, Table, Unit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many libraries have a row; others share one.
const MOST_LIBRARIES: usize = 5;

/// What is added up.
const SUMMED: [&str; 8] = [
    "executed",
    "instructions",
    "never",
    "blocks_executed",
    "blocks",
    "blocks_never",
    "samples",
    "nanoseconds",
];

/// Whether a table of such rows is long.
pub fn folds(unit: Unit) -> bool {
    !matches!(
        unit,
        Unit::Module
            | Unit::Thread
            | Unit::Process
            | Unit::Charge
            | Unit::CallCharge
            | Unit::TokenCharge
            | Unit::Storage
            | Unit::Syscall
            | Unit::Value
    )
}

/// Leaves the user's own rows that ran, or that never did, and adds up those of libraries.
pub fn fold(table: &mut Table, never: bool) -> Result<(), Error> {
    let rows = std::mem::take(&mut table.rows);
    let (own, others): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.library.is_none());
    let has_sums = matches!(table.unit, Unit::Function | Unit::File | Unit::Line);
    match has_sums && !never {
        true => table.libraries = libraries(table, others)?,
        false => table.in_libraries = others.iter().filter(|row| never || row.ran).count(),
    }
    let (ran, rest): (Vec<Row>, Vec<Row>) = own.into_iter().partition(|row| never || row.ran);
    table.rows = ran;
    table.never_ran = rest.len();
    Ok(())
}

/// The sum of several libraries, if there are any.
fn together(table: &Table, rest: Vec<(Arc<str>, Sum)>) -> Result<Option<(Arc<str>, Sum)>, Error> {
    if rest.len() < 2 {
        return Ok(rest.into_iter().next());
    }
    let name = format!("{} more libraries", thousands(rest.len() as u64));
    let mut all = Sum::default();
    for (_, sum) in rest {
        let rows = sum.rows;
        all.add(&table.columns(), sum.row())?;
        all.rows += rows - 1;
    }
    Ok(Some((name.into(), all)))
}

/// One row a library, the hottest first.
fn libraries(table: &Table, rows: Vec<Row>) -> Result<Vec<Row>, Error> {
    // What is source text is not added to what is code.
    let mut sums: BTreeMap<(Arc<str>, bool), Sum> = BTreeMap::new();
    let executed = table.column("executed").unwrap_or(0);
    // Lines of which nobody knows whether they ran are left out, if nothing of them was executed.
    let ran = |row: &Row| row.ran && row.cells[executed] != Cell::Count(Count::Exact(0));
    for row in rows.into_iter().filter(ran) {
        let name = row.library.clone().unwrap_or_default();
        let sum = sums.entry((name, row.of_source)).or_default();
        sum.add(&table.columns(), row)?;
    }
    let mut sums: Vec<(Arc<str>, Sum)> = sums
        .into_iter()
        .map(|((name, _), sum)| (name, sum))
        .collect();
    let heat = |sum: &Sum| {
        let cell = table.heat().and_then(|it| sum.cells.get(it));
        cell.map_or(0, Cell::amount)
    };
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(heat(sum)));
    let rest = sums.split_off(sums.len().min(MOST_LIBRARIES));
    let (of_source, of_code): (Vec<_>, Vec<_>) = rest.into_iter().partition(|it| it.1.of_source);
    sums.extend(together(table, of_code)?);
    sums.extend(together(table, of_source)?);
    let named = |(name, sum): (Arc<str>, Sum)| sum.named(table, &name);
    Ok(sums.into_iter().map(named).collect())
}

/// Rows that were added up.
#[derive(Clone, Default)]
struct Sum {
    cells: Vec<Cell>,
    rows: usize,
    of_source: bool,
}

impl Sum {
    fn add(&mut self, columns: &[&str], row: Row) -> Result<(), Error> {
        self.rows += 1;
        if self.cells.is_empty() {
            self.of_source = row.of_source;
            let cells = columns.iter().zip(row.cells);
            self.cells = cells.map(|(column, cell)| start(column, cell)).collect();
            return Ok(());
        }
        add_cells(columns, &mut self.cells, row.cells)
    }

    fn row(self) -> Row {
        Row {
            cells: self.cells,
            counted: true,
            ran: true,
            of_source: self.of_source,
            ..Row::default()
        }
    }

    /// The row of a library, which is named where functions, files and lines are.
    fn named(self, table: &Table, library: &str) -> Row {
        let unit = table.unit.name();
        let plural = if self.rows == 1 { "" } else { "s" };
        let rows = thousands(self.rows as u64);
        let name = format!("{library} ({rows} {unit}{plural})");
        let column = match table.unit {
            Unit::Function => "function",
            _ => "file",
        };
        let column = table.column(column);
        let mut row = self.row();
        if let Some(cell) = column.and_then(|it| row.cells.get_mut(it)) {
            *cell = Cell::Text(name.into());
        }
        row
    }
}

/// Adds the cells of a row to others, where they can be added up.
pub fn add_cells(columns: &[&str], sums: &mut [Cell], more: Vec<Cell>) -> Result<(), Error> {
    for ((column, sum), cell) in columns.iter().zip(sums).zip(more) {
        match (SUMMED.contains(column), sum, cell) {
            (true, Cell::Number(sum), Cell::Number(more)) => *sum = sum.saturating_add(more),
            (true, Cell::Count(sum), Cell::Count(more)) => *sum = sum.plus(more)?,
            (_, Cell::Amount(sum), Cell::Amount(more)) => *sum = sum.plus(more)?,
            _ => (),
        }
    }
    Ok(())
}

/// A sum of one: what is not added up says nothing.
fn start(column: &str, cell: Cell) -> Cell {
    match cell {
        cell if SUMMED.contains(&column) => cell,
        Cell::Amount(amount) => Cell::Amount(amount),
        Cell::Text(_) => Cell::Text("".into()),
        Cell::Number(_) => Cell::Number(0),
        Cell::Count(_) => Cell::Count(Count::Unknown),
        Cell::Address(_) => Cell::Address(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(function: &str, executed: u64, library: Option<&str>) -> Row {
        let text = |it: &str| Cell::Text(it.into());
        let count = |it| Cell::Count(Count::Exact(it));
        Row {
            cells: vec![
                text("prog"),
                text(function),
                text("a.c"),
                Cell::Number(7),
                count(executed),
                count(executed * 3),
                Cell::Number(3),
                count(if executed == 0 { 3 } else { 0 }),
            ],
            counted: true,
            ran: executed > 0,
            library: library.map(Into::into),
            ..Row::default()
        }
    }

    fn table(rows: Vec<Row>) -> Table {
        Table {
            rows,
            ..Table::new(Unit::Function)
        }
    }

    fn names(rows: &[Row]) -> Vec<String> {
        let name = |row: &Row| match &row.cells[1] {
            Cell::Text(name) => name.to_string(),
            _ => String::new(),
        };
        rows.iter().map(name).collect()
    }

    #[test]
    fn libraries_are_added_up_and_nothing_is_lost() {
        let mut rows = vec![row("main", 1, None), row("unused", 0, None)];
        for library in 0..9 {
            let name = format!("lib{library}");
            rows.push(row("f", 10 * library, Some(&name)));
            rows.push(row("g", 10, Some(&name)));
        }
        let executed = |rows: &[Row]| rows.iter().map(|it| it.cells[5].amount()).sum::<u64>();
        let all = executed(&rows);
        let mut table = table(rows);
        fold(&mut table, false).unwrap();
        assert_eq!(names(&table.rows), ["main"]);
        assert_eq!(table.never_ran, 1);
        let libraries = names(&table.libraries);
        assert_eq!(libraries[0], "lib8 (2 functions)");
        assert_eq!(libraries[5], "4 more libraries (7 functions)");
        assert_eq!(libraries.len(), MOST_LIBRARIES + 1);
        assert_eq!(executed(&table.rows) + executed(&table.libraries), all);
    }

    #[test]
    fn what_never_ran_is_the_users_own() {
        let rows = vec![row("unused", 0, None), row("unused too", 0, Some("libc"))];
        let mut table = table(rows);
        fold(&mut table, true).unwrap();
        assert_eq!(names(&table.rows), ["unused"]);
        assert_eq!((table.in_libraries, table.libraries.len()), (1, 0));
    }
}
