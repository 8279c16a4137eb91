//! Time as rows of tables: threads, charges, and why it is so much.

use super::{Cost, Time, Why, charge_back};
use crate::count::Count;
use crate::demangle;
use crate::report::Request;
use crate::rows::time_cells;
use crate::source::UNKNOWN;
use crate::table::{Cell, Row, Table, Unit};
use headcount_model::{Counted, Samples};

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

/// A row of something that was seen, and therefore ran.
fn row(cells: Vec<Cell>) -> Row {
    Row {
        cells,
        counted: true,
        ran: true,
        ..Row::default()
    }
}

/// One row a thread.
pub fn threads(samples: &Samples) -> impl Iterator<Item = Row> {
    samples.threads.iter().map(|it| {
        let seen = it.samples.iter().map(|(_, count)| count);
        let seen = seen.fold(0_u64, |sum, it| sum.saturating_add(*it));
        let mut cells = vec![
            Cell::Number(it.pid.into()),
            Cell::Number(it.tid.into()),
            text(&it.name),
            Cell::Count(Count::Unknown),
        ];
        cells.extend(time_cells(Cost::of(seen, samples.interval)));
        cells.extend([it.on_processor, it.waiting, it.ready].map(Cell::Number));
        row(cells)
    })
}

/// One row a place of the user's own code and routine.
pub fn charges(request: &Request<'_>) -> Vec<Row> {
    charged(request, request.samples, |cost| time_cells(cost).to_vec())
}

/// The same by what was executed.
pub fn call_charges(counted: &[Counted], request: &Request<'_>) -> Vec<Row> {
    let stacks = request
        .calls
        .map(|it| it.stacks(counted, request.transfers));
    let stacks = stacks.unwrap_or_default();
    let stacks: Vec<&Samples> = stacks.iter().collect();
    charged(request, &stacks, |cost| {
        vec![Cell::Count(Count::Exact(cost.samples))]
    })
}

fn charged(
    request: &Request<'_>,
    samples: &[&Samples],
    cost_cells: impl Fn(Cost) -> Vec<Cell>,
) -> Vec<Row> {
    let shown = |name: &str| match request.demangle {
        true => demangle(name).into_owned(),
        false => name.to_owned(),
    };
    let charges = charge_back(samples, request.own);
    let row = |(it, cost): (super::Charge, Cost)| {
        let mut cells = vec![
            text(&it.file),
            Cell::Number(it.line.into()),
            text(&shown(&it.function)),
            text(&shown(&it.routine)),
            text(&it.module),
        ];
        cells.extend(cost_cells(cost));
        row(cells)
    };
    charges.into_iter().map(row).collect()
}

/// What stands for the time off the processor in a table that says why.
const WAITING: &str = "(waiting)";

/// Adds a row for the time in which threads waited. No sample tells of it: the kernel's records do.
pub fn add_waiting(table: &mut Table, time: &Time) {
    let cell = |column: &&str| match *column {
        "function" => text(WAITING),
        "file" if table.unit == Unit::Line => text(WAITING),
        "file" => text(UNKNOWN),
        "module" | "exactness" => text(""),
        "line" | "samples" => Cell::Number(0),
        "nanoseconds" => Cell::Number(time.totals.waiting),
        "instructions" => Cell::Number(0),
        "why" => text("waits"),
        _ => Cell::Count(Count::Unknown),
    };
    if time.totals.waiting > 0 {
        let cells = table.columns().iter().map(cell).collect();
        table.rows.push(row(cells));
    }
}

/// Says of functions or lines why they took so long. Those without samples are left out.
pub fn add_why(table: &mut Table, time: &Time) {
    let columns = table.columns();
    let place = |name: &str| columns.iter().position(|it| *it == name).unwrap_or(0);
    let visits = match table.unit {
        Unit::Function => place("calls"),
        _ => place("count"),
    };
    let [executed, samples, nanoseconds] = ["executed", "samples", "nanoseconds"].map(place);
    table.has_why = true;
    table.rows.retain_mut(|row| {
        let number = |place: usize| match row.cells.get(place) {
            Some(Cell::Number(number)) => *number,
            Some(Cell::Count(count)) => count.value().unwrap_or(0),
            _ => 0,
        };
        let cost = Cost {
            samples: number(samples),
            nanoseconds: number(nanoseconds),
        };
        let each = time.totals.each(cost, number(visits));
        let pace = time.totals.each(cost, number(executed));
        let why = each.zip(pace).map(|(each, pace)| Why::new(each, pace));
        row.cells.push(text(why.map_or("", Why::name)));
        cost.samples > 0
    });
}
