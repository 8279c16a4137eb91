//! The columns of the text report: what stands in them, and how wide they are.

use super::part_of;
use crate::callers::INLINED;
use crate::calls::INDIRECT;
use crate::count::Count;
use crate::escape::visible;
use crate::glob::short_name;
use crate::number::{share, signed_thousands, thousands, time_text};
use crate::report::Report;
use crate::shorten::{shorten_end, shorten_middle, shorten_start};
use crate::table::{Cell, Row, Unit};
use crate::time::Cost;
use std::collections::HashMap;

/// Longest column of names that is still filled up with blanks; longer names stick out.
const WIDEST: usize = 40;

/// A column of the text report.
pub struct Column {
    title: &'static str,
    /// Numbers stand on the right, names on the left.
    right: bool,
    cells: Vec<String>,
}

/// The columns of the text report: numbers first, names last, where they may be long.
pub fn layout(report: &Report, rows: &[&Row], folder: &str) -> Vec<Column> {
    let unit = report.table.unit;
    let place = |name: &str| report.table.column(name).unwrap_or(0);
    let sums = report.table.rows.len()..;
    let number = |title: &'static str| Column {
        title,
        right: true,
        cells: rows
            .iter()
            .enumerate()
            .map(|(index, row)| match (title, &row.cells[place(title)]) {
                // It is not added up.
                (_, Cell::Count(Count::Unknown)) if sums.contains(&index) => String::new(),
                // It was counted, but its code does not tell.
                ("count", Cell::Count(Count::Unknown)) if is_told(row, unit) => "?".to_owned(),
                (_, cell) => show(cell),
            })
            .collect(),
    };
    let words = |title: &'static str| Column {
        right: false,
        ..number(title)
    };
    let of_row = |title: &'static str, right: bool, cell: &dyn Fn(&Row) -> String| Column {
        title,
        right,
        cells: rows.iter().map(|row| cell(row)).collect(),
    };
    // What is to be typed again.
    let plain = |title: &'static str| {
        let place = place(title);
        of_row(title, true, &|row| match row.cells[place] {
            Cell::Number(number) => number.to_string(),
            _ => String::new(),
        })
    };
    // What there is of source text is statements.
    let instructions = || {
        let place = place("instructions");
        let is_mixed = rows.iter().any(|row| row.of_source) && rows.iter().any(|it| !it.of_source);
        let title = match rows.iter().any(|row| row.of_source) && !is_mixed {
            true => "statements",
            false => "instructions",
        };
        of_row(title, true, &|row| match is_mixed && row.of_source {
            true => format!("{} statements", show(&row.cells[place])),
            false => show(&row.cells[place]),
        })
    };
    let part = || {
        let executed = place("executed");
        of_row("share", true, &|row| match row.cells[executed] {
            Cell::Count(executed) => {
                let whole = report.totals.of_kind(row.of_source);
                part_of(executed, whole.executed)
            }
            _ => String::new(),
        })
    };
    let file = || {
        let file = place("file");
        of_row("file", false, &|row| match &row.cells[file] {
            Cell::Text(file) => visible(below(folder, file)).into_owned(),
            _ => String::new(),
        })
    };
    let source = |title: &'static str| {
        let (file, line) = (place("file"), place("line"));
        of_row(
            title,
            false,
            &|row| match (&row.cells[file], &row.cells[line]) {
                (Cell::Text(file), Cell::Number(0)) => visible(below(folder, file)).into_owned(),
                (Cell::Text(file), Cell::Number(line)) => {
                    format!("{}:{line}", visible(below(folder, file)))
                }
                _ => String::new(),
            },
        )
    };
    let time = |column: &'static str, title: &'static str| {
        let place = place(column);
        of_row(title, true, &|row| match row.cells[place] {
            Cell::Number(nanoseconds) => time_text(nanoseconds),
            _ => String::new(),
        })
    };
    let time_share = || {
        let place = place("nanoseconds");
        let whole = report.time.unwrap_or_default().sampled.nanoseconds;
        of_row("time %", true, &|row| match row.cells[place] {
            Cell::Number(nanoseconds) => share(nanoseconds, whole),
            _ => String::new(),
        })
    };
    let inclusive = match report.table.has_inclusive {
        true => "inclusive",
        false => "incl. (est.)",
    };
    // Which functions it reached was not asked for.
    let callee = || {
        let callee = place("callee");
        of_row("callee", false, &|row| match &row.cells[callee] {
            Cell::Text(name) if name.as_ref() == INDIRECT => "(indirect)".to_owned(),
            cell => show(cell),
        })
    };
    let mut columns = match unit {
        Unit::Module => vec![
            number("executed"),
            part(),
            instructions(),
            number("never"),
            words("module"),
        ],
        Unit::File => vec![
            number("executed"),
            part(),
            instructions(),
            number("never"),
            number("blocks_executed"),
            number("blocks"),
            number("blocks_never"),
            file(),
        ],
        Unit::Function => vec![
            number("executed"),
            part(),
            number("calls"),
            instructions(),
            number("never"),
            source("source"),
            words("function"),
        ],
        Unit::Line => vec![
            number("count"),
            number("executed"),
            part(),
            source("line"),
            of_row("text", false, &|row| {
                visible(row.text.as_deref().unwrap_or("").trim()).into_owned()
            }),
        ],
        Unit::Block => vec![
            number("count"),
            instructions(),
            number("address"),
            words("function"),
        ],
        Unit::SourceBlock => vec![
            number("count"),
            source("source"),
            number("column"),
            words("kind"),
            words("function"),
        ],
        Unit::Instruction => vec![
            number("count"),
            number("address"),
            words("text"),
            words("function"),
        ],
        Unit::Call => vec![
            number("count"),
            of_row("source", false, &|row| match &row.place {
                Some((file, line)) => format!("{}:{line}", visible(below(folder, file))),
                None => show(&row.cells[place("address")]),
            }),
            words("caller"),
            callee(),
        ],
        Unit::CallCost => vec![
            number("count"),
            of_row(inclusive, true, &|row| {
                show(&row.cells[place("inclusive_estimate")])
            }),
            of_row(
                "share",
                true,
                &|row| match row.cells[place("inclusive_estimate")] {
                    Cell::Count(cost) => part_of(cost, report.totals.code.executed),
                    _ => String::new(),
                },
            ),
            of_row("source", false, &|row| match (&row.place, &row.cells[2]) {
                (Some((file, line)), _) => format!("{}:{line}", visible(below(folder, file))),
                (None, Cell::Address(None)) => String::new(),
                (None, address) => show(address),
            }),
            of_row("kind", false, &|row| match is_inlined(row) {
                true => INLINED.to_owned(),
                false => String::new(),
            }),
            words("caller"),
            callee(),
        ],
        Unit::Branch => vec![
            number("count"),
            of_row("branches", false, &|row| {
                let words = row.outcome.and_then(|it| it.words());
                words.unwrap_or_else(|| "all outcomes seen".to_owned())
            }),
            source("line"),
            of_row("text", false, &|row| {
                visible(row.text.as_deref().unwrap_or("").trim()).into_owned()
            }),
        ],
        Unit::Thread => {
            let has = |name: &str, is_known: fn(&Cell) -> bool| {
                let column = place(name);
                rows.iter().any(|row| is_known(&row.cells[column]))
            };
            let mut columns = Vec::new();
            if has(
                "executed",
                |it| matches!(it, Cell::Count(it) if it.is_known()),
            ) {
                columns.extend([number("executed"), part()]);
            }
            if has("nanoseconds", |it| matches!(it, Cell::Number(_))) {
                columns.extend([
                    time("nanoseconds", "time"),
                    time("on_processor", "on_processor"),
                    time("waiting", "waiting"),
                    time("ready", "ready"),
                ]);
            }
            columns.extend([plain("process"), plain("thread"), words("name")]);
            columns
        }
        Unit::Process => vec![
            number("executed"),
            part(),
            number("threads"),
            plain("process"),
            words("name"),
        ],
        Unit::Token => {
            let mut columns = vec![number("count")];
            for name in ["resumptions", "samples", "bytes"] {
                let cells = rows.iter().map(|row| &row.cells[place(name)]);
                let mut known = cells.filter(|it| !matches!(it, Cell::Text(_)));
                // Most languages have no generators.
                if known.any(|it| name != "resumptions" || it.amount() > 0) {
                    columns.push(number(name));
                }
            }
            columns.extend([
                source("source"),
                number("column"),
                words("kind"),
                of_row("text", false, &|row| show(&row.cells[place("text")])),
            ]);
            columns
        }
        Unit::TokenCharge => vec![
            number("samples"),
            time("nanoseconds", "time"),
            source("source"),
            of_row("column", true, &|row| match row.cells[place("column")] {
                Cell::Number(column @ 1..) => column.to_string(),
                _ => String::new(),
            }),
            words("kind"),
            of_row("text", false, &|row| show(&row.cells[place("text")])),
            words("routine"),
        ],
        Unit::Storage => vec![
            number("requests"),
            number("bytes"),
            number("collections"),
            number("recovered"),
            number("expansions"),
            time("collecting_nanoseconds", "collecting"),
            time("expanding_nanoseconds", "expanding"),
            words("language"),
            words("region"),
        ],
        Unit::Syscall => vec![number("count"), plain("number"), words("name")],
        Unit::Value => {
            let has = |name: &str| {
                let column = place(name);
                let is_there =
                    |row: &&Row| matches!(&row.cells[column], Cell::Text(it) if !it.is_empty());
                rows.iter().any(is_there)
            };
            let mut columns = vec![number("count")];
            if has("sum") {
                let sum = place("sum");
                columns.push(of_row("sum", true, &|row| {
                    let text = show(&row.cells[sum]);
                    text.parse().map_or(text, signed_thousands)
                }));
            }
            columns.extend([
                of_row("place", false, &|row| {
                    let text = |name: &str| match &row.cells[place(name)] {
                        Cell::Text(text) => visible(text).into_owned(),
                        _ => String::new(),
                    };
                    match text("expression").as_str() {
                        // An instruction, and not what the user called it.
                        "target" => visible(below(folder, &text("place"))).into_owned(),
                        "" => text("place"),
                        expression => format!("{}({expression})", text("place")),
                    }
                }),
                words("value"),
            ]);
            if has("caller") {
                columns.push(words("caller"));
            }
            if are_at_several_places(rows) {
                columns.push(number("address"));
                columns.push(words("function"));
            }
            columns
        }
        Unit::CallCharge => vec![
            number("executed"),
            part(),
            source("source"),
            words("function"),
            words("routine"),
        ],
        Unit::Charge => vec![
            time("nanoseconds", "time"),
            time_share(),
            source("source"),
            words("function"),
            words("routine"),
        ],
        Unit::Edge => vec![
            number("count"),
            words("kind"),
            number("from"),
            number("to"),
            words("function"),
        ],
    };
    let names = columns.iter().position(|it| !it.right);
    let titles = report.table.event_columns();
    let events = titles.into_iter().map(number);
    let at = names.unwrap_or(columns.len());
    columns.splice(at..at, events);
    if report.table.has_inclusive && unit != Unit::CallCost {
        let after = columns
            .iter()
            .position(|it| matches!(it.title, "share" | "count"));
        columns.insert(after.map_or(0, |it| it + 1), number("inclusive"));
    }
    if report.table.is_timed {
        columns = with_time(report, rows, columns);
    }
    // Sources may not be at hand.
    let may_go = |it: &Column| it.title == "text" || it.title == "kind" && unit == Unit::CallCost;
    columns.retain(|it| !may_go(it) || it.cells.iter().any(|it| !it.is_empty()));
    let names_module = unit.columns()[0] == "module" && unit != Unit::Module;
    // Where the rest is folded, most often all is in one program.
    let first = rows.first().map(|row| &row.cells[0]);
    let is_one = report.own.is_some()
        && report
            .table
            .rows
            .iter()
            .all(|row| Some(&row.cells[0]) == first);
    if report.modules.len() > 1 && names_module && !is_one {
        let module = of_row("module", false, &|row| match &row.cells[0] {
            Cell::Text(path) => visible(short_name(path, &report.modules)).into_owned(),
            _ => String::new(),
        });
        let is_function = |it: &Column| matches!(it.title, "function" | "caller");
        let before_function = columns.iter().position(is_function);
        columns.insert(before_function.unwrap_or(0), module);
    }
    columns
}

/// The columns of a table that tells of time: that comes first, and what says how much code there is
/// makes room for it.
fn with_time(report: &Report, rows: &[&Row], columns: Vec<Column>) -> Vec<Column> {
    let number = |row: &Row, name: &str| {
        let cell = report.table.column(name).and_then(|it| row.cells.get(it));
        match cell {
            Some(Cell::Number(number)) => Some(*number),
            Some(Cell::Count(Count::Exact(number))) => Some(*number),
            _ => None,
        }
    };
    let cost = |row: &Row| Cost {
        samples: number(row, "samples").unwrap_or(0),
        nanoseconds: number(row, "nanoseconds").unwrap_or(0),
    };
    let (visits, title) = match report.table.unit {
        Unit::Function => ("calls", "each call"),
        _ => ("count", "each time"),
    };
    let whole = report.time.unwrap_or_default();
    let each = |row: &Row| {
        let cost = cost(row);
        let visits = number(row, visits).unwrap_or(0);
        match (whole.each(cost, visits), cost.samples) {
            (Some(each), _) => each.to_string(),
            (None, 1..) if visits > 0 => "too few samples".to_owned(),
            _ => String::new(),
        }
    };
    let column = |title: &'static str, cell: &dyn Fn(&Row) -> String| Column {
        title,
        right: true,
        cells: rows.iter().map(|row| cell(row)).collect(),
    };
    let nanoseconds = whole.sampled.nanoseconds;
    let mut timed = vec![
        column("time", &|row| match cost(row).nanoseconds {
            // No sample is no time of nothing.
            0 => String::new(),
            some => time_text(some),
        }),
        column("time %", &|row| match cost(row) {
            // Waiting is no part of the time on a processor.
            Cost {
                samples: 0,
                nanoseconds: 1..,
            }
            | Cost { nanoseconds: 0, .. } => String::new(),
            cost => share(cost.nanoseconds, nanoseconds),
        }),
    ];
    // Of time and counts of different work, nobody knows.
    let has_each = whole.times_counted.is_some()
        && matches!(
            report.table.unit,
            Unit::Function | Unit::Line | Unit::Instruction
        );
    timed.extend(has_each.then(|| column(title, &each)));
    let why = report.table.column("why");
    let why = why.map(|place| Column {
        title: "why",
        right: false,
        cells: rows.iter().map(|row| show(&row.cells[place])).collect(),
    });
    // How many instructions were executed in a nanosecond.
    let pace = |row: &Row| match whole.each(cost(row), number(row, "executed").unwrap_or(0)) {
        Some(each) => format!("{:.2}", 1.0 / each.each),
        None => String::new(),
    };
    let pace = (why.is_some() && has_each).then(|| column("per ns", &pace));
    timed.extend(why.into_iter().chain(pace));
    timed.extend(
        columns
            .into_iter()
            .filter(|it| !matches!(it.title, "instructions" | "statements" | "never")),
    );
    timed
}

/// Are there values that were found at several instructions of one place, such as a line?
fn are_at_several_places(rows: &[&Row]) -> bool {
    const ADDRESS: usize = 8;
    let mut places: HashMap<(String, String), String> = HashMap::new();
    rows.iter().any(|row| {
        let words = |column: usize| show(&row.cells[column]);
        let here = format!("{} {}", words(0), words(ADDRESS));
        let of_targets = words(3) == "target";
        let known = places.entry((words(2), words(3))).or_insert(here.clone());
        *known != here && !of_targets
    })
}

/// A path without the folder it is in.
fn below<'a>(folder: &str, path: &'a str) -> &'a str {
    path.strip_prefix(folder).unwrap_or(path)
}

/// Whether all that a row is about was counted, so that it is the code that does not tell.
fn is_told(row: &Row, unit: Unit) -> bool {
    let executed = row.cells.get(3);
    match unit {
        Unit::Line => matches!(executed, Some(Cell::Count(it)) if it.is_known()),
        Unit::CallCost => is_inlined(row),
        _ => false,
    }
}

/// Whether a call was replaced by what it calls.
fn is_inlined(row: &Row) -> bool {
    row.cells.get(7) == Some(&Cell::Text(INLINED.into()))
}

fn show(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => visible(text).into_owned(),
        Cell::Number(number) => thousands(*number),
        Cell::Count(count) => count.to_string(),
        Cell::Amount(amount) => amount.to_string(),
        Cell::Address(Some(address)) => address.to_string(),
        Cell::Address(None) => "outside".into(),
    }
}

/// Others make room until the last column has so much.
const NARROWEST: usize = 24;

/// The narrowest that a column of places, names or texts is made.
const NARROW_PLACE: usize = 14;

/// The columns that make room where there is little, the first of these first.
const MAKE_ROOM: [&str; 10] = [
    "blocks_never",
    "blocks",
    "blocks_executed",
    "instructions",
    "statements",
    "never",
    "per ns",
    "time %",
    "share",
    "executed",
];

/// The same where a table says why: all that says so stays.
const MAKE_ROOM_FOR_WHY: [&str; 5] = ["share", "executed", "source", "calls", "count"];

impl Column {
    /// The width that it is filled up to.
    fn width(&self) -> usize {
        let most = self.whole_width();
        if self.right { most } else { most.min(WIDEST) }
    }

    /// The width of all that is in it.
    fn whole_width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(self.title.len())
    }

    /// Shortens what is in it.
    fn narrow(&mut self, width: usize) {
        for cell in &mut self.cells {
            *cell = match self.title {
                "text" => shorten_end(cell, width),
                // A place, and not the sum of a library.
                "source" | "line" if cell.contains(':') => shorten_start(cell, width),
                _ => shorten_middle(cell, width),
            };
        }
    }
}

/// How wide these columns are, with what is between them and the next.
fn sum(columns: &[Column]) -> usize {
    columns.iter().map(|it| it.whole_width() + "  ".len()).sum()
}

/// Leaves out columns of which others say more, and makes names shorter, until lines have the wanted
/// width.
fn narrow(columns: &mut Vec<Column>, width: usize) {
    // What says how hot a row is stays: time, if there is any.
    let has = |title: &str| columns.iter().any(|it| it.title == title);
    let make_room = match (has("why"), has("time")) {
        (true, _) => &MAKE_ROOM_FOR_WHY[..],
        (false, true) => &MAKE_ROOM,
        (false, false) => &MAKE_ROOM[..MAKE_ROOM.len() - 2],
    };
    // A place says which of several functions of a name it is.
    let is_placed = |it: &Column| {
        it.title == "source" && it.cells.iter().all(|it| it.is_empty() || it.contains(':'))
    };
    let module = columns.iter().any(is_placed).then_some("module");
    for title in make_room.iter().copied().chain(module) {
        if sum(columns.split_last().map_or(&[], |it| it.1)) + NARROWEST <= width {
            break;
        }
        columns.retain(|it| it.title != title);
    }
    let Some((last, others)) = columns.split_last_mut() else {
        return;
    };
    // Half a number is none: what tells of branches comes last.
    let (words, numbers): (Vec<usize>, Vec<usize>) =
        (0..others.len()).partition(|it| others[*it].title != "branches");
    let places = words.into_iter().map(|it| (it, NARROWEST));
    for (place, rest) in places.chain(numbers.into_iter().map(|it| (it, NARROW_PLACE))) {
        let over = (sum(others) + rest).saturating_sub(width);
        let column = &mut others[place];
        if !column.right {
            let most = column.whole_width();
            column.narrow(most.saturating_sub(over).max(most.min(NARROW_PLACE)));
        }
    }
    last.narrow(width.saturating_sub(sum(others)).max(NARROW_PLACE));
}

/// Columns side by side, two blanks between; as narrow as wanted, if that can be.
pub fn aligned(mut columns: Vec<Column>, wanted: Option<usize>) -> String {
    if let Some(wanted) = wanted {
        narrow(&mut columns, wanted);
    }
    let widths: Vec<usize> = columns.iter().map(Column::width).collect();
    let columns = columns.as_slice();
    let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
    let mut out = line(columns, &widths, &titles);
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        let cells: Vec<&str> = columns.iter().map(|it| it.cells[row].as_str()).collect();
        out.push_str(&line(columns, &widths, &cells));
    }
    out
}

fn line(columns: &[Column], widths: &[usize], cells: &[&str]) -> String {
    let mut out = String::new();
    for ((column, width), cell) in columns.iter().zip(widths).zip(cells) {
        match column.right {
            true => out.push_str(&format!("{cell:>width$}  ")),
            false => out.push_str(&format!("{cell:<width$}  ")),
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
