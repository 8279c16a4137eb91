//! Everything that was counted as one flat table: a row for each run, module and unit.
//!
//! The rows are those of `headcount report`, of one run and one module each, so that the tables of
//! many machines can be put together, and asked in SQL. `docs/fleet.md` explains the columns.

use crate::callees::{Callees, FindPointers, FindTransfers};
use crate::events::{self, FindEvents, WantedEvents};
use crate::names::functions;
use crate::only::Only;
use crate::own::Own;
use crate::report::{Decode, Request};
use crate::source::UNKNOWN;
use crate::table::{Cell, Row, Table, Unit, Written};
use crate::values::{Tallied, TalliedPlace, TalliedValue, tallied};
use crate::{Error, calls, rows, source};
use headcount_model::{Counted, Event, ValueCounts};
use std::collections::HashMap;
use std::sync::Arc;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or a text.
    Text,
    /// A number.
    Number,
    /// A moment, in microseconds since 1970.
    Time,
    /// Yes or no.
    Flag,
}

/// The columns that are no events, in order. What is not known, or makes no sense for a unit, is null.
const COLUMNS: [(&str, Kind); 37] = [
    // The run.
    ("run", Kind::Number),
    ("run_key", Kind::Text),
    ("started", Kind::Time),
    ("ended", Kind::Time),
    ("host", Kind::Text),
    ("cpu", Kind::Text),
    ("command", Kind::Text),
    ("status", Kind::Number),
    ("batch", Kind::Text),
    ("phase", Kind::Text),
    // What was counted, and whose it is.
    ("module", Kind::Text),
    ("build_id", Kind::Text),
    ("library", Kind::Text),
    ("unit", Kind::Text),
    ("function", Kind::Text),
    ("linkage_name", Kind::Text),
    ("file", Kind::Text),
    ("line", Kind::Number),
    ("column", Kind::Number),
    ("address", Kind::Number),
    ("to_address", Kind::Number),
    ("kind", Kind::Text),
    ("callee", Kind::Text),
    ("text", Kind::Text),
    // How often, and how much.
    ("count", Kind::Number),
    ("exactness", Kind::Text),
    ("executed", Kind::Number),
    ("instructions", Kind::Number),
    ("never", Kind::Number),
    ("blocks_executed", Kind::Number),
    ("blocks", Kind::Number),
    ("blocks_never", Kind::Number),
    ("statements_executed", Kind::Number),
    ("statements", Kind::Number),
    ("statements_never", Kind::Number),
    ("at_least", Kind::Flag),
    // Why it was not counted, or what makes counts uncertain.
    ("reason", Kind::Text),
];

/// The columns of what was counted by value.
const OF_VALUES: [(&str, Kind); 5] = [
    ("place", Kind::Text),
    ("expression", Kind::Text),
    ("value", Kind::Text),
    ("caller", Kind::Text),
    ("sum", Kind::Number),
];

/// All columns, in order. Those of events come after those that are none, and then what came later.
pub fn columns() -> impl Iterator<Item = (&'static str, Kind)> {
    let kind = |name| match name {
        events::BOUNDS => Kind::Text,
        _ => Kind::Number,
    };
    let events = events::columns(&flat_events()).collect::<Vec<_>>();
    let events = events.into_iter().map(move |name| (name, kind(name)));
    COLUMNS.into_iter().chain(events).chain(OF_VALUES)
}

/// Every event but instructions: those are in the column `executed`.
fn flat_events() -> Vec<Event> {
    let all = Event::ALL.into_iter();
    all.filter(|it| *it != Event::Instructions).collect()
}

/// A field of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// Not known, or nothing.
    #[default]
    Null,
    /// A name or a text.
    Text(Arc<str>),
    /// A number, or microseconds since 1970.
    Number(i64),
    /// Yes or no.
    Flag(bool),
}

impl Value {
    fn text(text: &str) -> Self {
        match text {
            "" => Self::Null,
            text => Self::Text(text.into()),
        }
    }

    fn number(number: u64) -> Result<Self, Error> {
        let number = i64::try_from(number).map_err(|_| Error::TooLargeForFormat)?;
        Ok(Self::Number(number))
    }

    fn count(count: Option<u64>) -> Result<Self, Error> {
        count.map_or(Ok(Self::Null), Self::number)
    }

    /// Nanoseconds since 1970; 0 if nobody knows.
    fn time(nanoseconds: u64) -> Self {
        match nanoseconds {
            0 => Self::Null,
            // Less than 2^63 when divided by so much.
            known => Self::Number((known / 1000).cast_signed()),
        }
    }
}

/// What is known of a run: the same in all its rows. What is not known is empty or 0.
#[derive(Clone, Debug, Default)]
pub struct FlatRun {
    /// Its number in its profile.
    pub number: i64,
    /// What names it in every profile.
    pub key: String,
    /// Nanoseconds since 1970.
    pub started: u64,
    /// The same for its end.
    pub ended: u64,
    /// The name of the machine.
    pub host: String,
    /// The machine's name for its processor.
    pub cpu: String,
    /// The command.
    pub command: Vec<String>,
    /// Exit status, or 128 + signal.
    pub status: Option<i32>,
    /// The same for all runs of one command.
    pub batch: String,
    /// The mark that it began with.
    pub phase: String,
}

/// What the rows of one run are made of.
pub struct FlatMaterial<'a> {
    /// The run.
    pub run: FlatRun,
    /// Its counts.
    pub counted: &'a [Counted],
    /// What makes them uncertain, in sentences.
    pub notes: &'a [String],
    /// What has a row.
    pub units: &'a [Unit],
    /// What to export.
    pub only: &'a Only,
    /// What is the user's own.
    pub own: &'a Own,
    /// Whether names are shown as the programmer wrote them.
    pub demangle: bool,
    /// What to tell of what code did.
    pub events: &'a [Event],
    /// Knows the events of instructions.
    pub find_events: FindEvents<'a>,
    /// What was found by value, if the run was asked for it.
    pub values: &'a [ValueCounts],
    /// Knows the instructions.
    pub decode: Decode<'a>,
    /// Knows the calls and jumps among them.
    pub transfers: FindTransfers<'a>,
    /// Knows what pointers lead to.
    pub pointers: FindPointers<'a>,
}

/// Takes a row: a value for each column.
pub type PutRow<'a> = &'a mut dyn FnMut(&[Value]) -> Result<(), Error>;

/// Puts all rows of one run.
pub fn rows(material: &FlatMaterial<'_>, put: PutRow<'_>) -> Result<(), Error> {
    let places: HashMap<&str, usize> = columns()
        .enumerate()
        .map(|(place, (name, _))| (name, place))
        .collect();
    let mut flat = Flat {
        row: vec![Value::Null; places.len()],
        places,
        put,
    };
    flat.begin(&material.run);
    let callees = Callees::new(material.counted, material.transfers, material.pointers);
    let callees = callees.with_targets(material.values);
    for index in 0..material.counted.len() {
        flat.module(index, &callees, material)?;
    }
    let found = material.tallied()?;
    for tally in &found.tallies {
        for value in &tally.values {
            flat.put(&value_cells(tally, value, material)?)?;
        }
    }
    let notes = material.notes.iter().chain(&found.doubts);
    for note in notes.chain(&found.notes) {
        flat.put(&[("unit", Value::text("note")), ("reason", Value::text(note))])?;
    }
    Ok(())
}

struct Flat<'a> {
    /// The place of each column.
    places: HashMap<&'static str, usize>,
    /// What all rows of the run have in common.
    row: Vec<Value>,
    put: PutRow<'a>,
}

impl Flat<'_> {
    fn begin(&mut self, run: &FlatRun) {
        let status = run
            .status
            .map_or(Value::Null, |it| Value::Number(it.into()));
        let cells = [
            ("run", Value::Number(run.number)),
            ("run_key", Value::text(&run.key)),
            ("started", Value::time(run.started)),
            ("ended", Value::time(run.ended)),
            ("host", Value::text(&run.host)),
            ("cpu", Value::text(&run.cpu)),
            ("command", Value::text(&run.command.join(" "))),
            ("status", status),
            ("batch", Value::text(&run.batch)),
            ("phase", Value::text(&run.phase)),
        ];
        for (name, value) in cells {
            self.row[self.places[name]] = value;
        }
    }

    /// Puts a row that has these cells, besides those of the run.
    fn put(&mut self, cells: &[(&str, Value)]) -> Result<(), Error> {
        let mut row = self.row.clone();
        for (name, value) in cells {
            if let Some(place) = self.places.get(name) {
                row[*place] = value.clone();
            }
        }
        (self.put)(&row)
    }

    fn module(
        &mut self,
        index: usize,
        callees: &Callees<'_>,
        material: &FlatMaterial<'_>,
    ) -> Result<(), Error> {
        let module = &material.counted[index];
        let names = [
            ("module", Value::text(&module.module.path)),
            ("build_id", Value::text(&module.module.build_id)),
        ];
        for unit in material.units {
            let request = material.request(*unit);
            for cells in unit_rows(index, module, callees, &request)? {
                self.put(&[&names[..], &cells].concat())?;
            }
        }
        let refusals = module.module.refusals.iter();
        for it in refusals.filter(|it| material.only.wants_refused(&module.module, it)) {
            let own = material.own;
            let name = match material.demangle {
                true => crate::demangle(&it.subject),
                false => it.subject.as_str().into(),
            };
            let names_of_it: [&str; 2] = [&name, &it.subject];
            let library = own.library_at(&module.module.path, &it.file, &names_of_it);
            let line = (it.line != 0).then_some(it.line.into());
            let cells = [
                ("unit", Value::text("refused")),
                ("library", library.map_or(Value::Null, Value::Text)),
                ("function", Value::text(&name)),
                ("linkage_name", Value::text(&it.subject)),
                ("file", Value::text(&it.file)),
                ("line", Value::count(line)?),
                ("reason", Value::text(&it.reason)),
            ];
            self.put(&[&names[..], &cells].concat())?;
        }
        Ok(())
    }
}

impl<'a> FlatMaterial<'a> {
    /// What was found by value, if that has rows.
    fn tallied(&self) -> Result<Tallied, Error> {
        if !self.units.contains(&Unit::Value) {
            return Ok(Tallied::default());
        }
        // Libraries are told by a column.
        let request = Request {
            own: None,
            values: self.values,
            // A phase is a part of its run.
            whole_runs: usize::from(self.run.phase.is_empty()),
            ..self.request(Unit::Value)
        };
        tallied(self.counted, &request)
    }

    fn request(&self, unit: Unit) -> Request<'a> {
        Request {
            only: self.only.clone(),
            own: Some(self.own),
            demangle: self.demangle,
            transfers: self.transfers,
            pointers: self.pointers,
            events: WantedEvents::new(unit, self.events, self.find_events),
            ..Request::all(unit, self.decode)
        }
    }
}

/// The cells of a row, by column.
type Cells = Vec<(&'static str, Value)>;

/// The rows of one module.
fn unit_rows(
    index: usize,
    module: &Counted,
    callees: &Callees<'_>,
    request: &Request<'_>,
) -> Result<Vec<Cells>, Error> {
    let one = std::slice::from_ref(module);
    let unit = match request.by {
        Unit::Block => Unit::SourceBlock,
        other => other,
    };
    // What a row has besides its cells.
    let mut more: Vec<Cells> = Vec::new();
    let rows = match unit {
        Unit::Module => {
            let library = request
                .own
                .and_then(|own| own.library_of_module(&module.module));
            let rows = rows::modules(one, request)?;
            let name = library.map(|it| ("library", Value::Text(it)));
            more.resize(rows.len(), name.into_iter().collect());
            rows
        }
        Unit::File => source::files(one, request)?,
        Unit::Line => source::lines(one, request)?,
        Unit::Call => rows::of_functions(one, request, |caller, rows| {
            calls::of_function(index, caller, callees, request, rows)
        })?,
        Unit::Function => rows::of_functions(one, request, |named, rows| {
            rows::function(named, request, rows)?;
            more.push(match named.is_of_source() {
                true => Vec::new(),
                false => vec![address(named.function.address.0)],
            });
            Ok(())
        })?,
        Unit::SourceBlock => rows::of_functions(one, request, |named, rows| {
            for block in rows::by_address(named) {
                let executed = block.executed(0..block.block.instructions)?;
                let column = match block.block.place {
                    Some(_) => "statements_executed",
                    None => "executed",
                };
                more.push(vec![(column, Value::count(executed.value())?)]);
            }
            rows::source_blocks(named, request, rows)
        })?,
        Unit::Edge => rows::of_functions(one, request, |named, rows| {
            rows::edges(named, request, rows)
        })?,
        Unit::Instruction => rows::of_functions(one, request, |named, rows| {
            // What is wrong with stored code, `headcount report` tells.
            rows::instructions(named, request, rows, &mut Vec::new())
        })?,
        // Of what nobody can ask for, there are no rows.
        Unit::Block
        | Unit::Branch
        | Unit::CallCost
        | Unit::Thread
        | Unit::Process
        | Unit::Charge
        | Unit::CallCharge
        | Unit::TokenCharge
        | Unit::Storage
        | Unit::Syscall
        | Unit::Token => Vec::new(),
        // These have rows of their own, of all modules together.
        Unit::Value => Vec::new(),
    };
    if unit == Unit::Line {
        let functions = functions_of_lines(module, request);
        more.extend(rows.iter().map(|row| function_of(row, &functions)));
    }
    more.resize(rows.len(), Vec::new());
    let mut table = Table {
        events: request.events.events().to_vec(),
        rows,
        ..Table::new(unit)
    };
    events::add_cells(&mut table);
    let written = table.written();
    let counted = table.rows.iter().zip(more).filter(|(row, _)| row.counted);
    let cells = counted.map(|(row, more)| Ok([cells(unit, &written, row)?, more].concat()));
    cells.collect()
}

/// The cells of a value.
fn value_cells(
    tally: &TalliedPlace,
    it: &TalliedValue,
    material: &FlatMaterial<'_>,
) -> Result<Cells, Error> {
    let mut modules = material.counted.iter().map(|it| &it.module);
    let build = modules.find(|module| *module.path == *it.module);
    let (file, line) = match &it.line {
        Some((file, line)) => (&**file, Value::Number((*line).into())),
        None => ("", Value::Null),
    };
    let library = material.own.library_at(&it.module, file, &[&it.function]);
    let mut cells = vec![
        ("unit", Value::text(Unit::Value.name())),
        ("at_least", Value::Flag(false)),
        ("module", Value::text(&it.module)),
        (
            "build_id",
            build.map_or(Value::Null, |it| Value::text(&it.build_id)),
        ),
        ("library", library.map_or(Value::Null, Value::Text)),
        ("function", Value::text(&it.function)),
        ("file", Value::text(file)),
        ("line", line),
        ("place", Value::text(&it.place)),
        ("expression", Value::text(&tally.expression)),
        ("value", Value::text(&it.value)),
        ("caller", Value::text(&it.caller)),
        ("count", Value::number(it.count)?),
        ("exactness", Value::text("exact")),
    ];
    cells.extend(it.address.map(|at| address(at.0)));
    if tally.has_amount {
        cells.push(("sum", Value::Number(it.sum)));
    }
    Ok(cells)
}

fn address(address: u64) -> (&'static str, Value) {
    ("address", Value::Number(address.cast_signed()))
}

/// What a row of a report says, under the names of the flat table.
fn cells(unit: Unit, written: &Written, row: &Row) -> Result<Cells, Error> {
    // The count that `exactness` is about.
    let main: &[&str] = match unit {
        Unit::Module | Unit::File => &["executed", "statements_executed"],
        _ => &["count"],
    };
    let mut cells = vec![
        ("unit", Value::text(unit.name())),
        ("at_least", Value::Flag(row.is_at_least())),
    ];
    if let Some(library) = &row.library {
        cells.push(("library", Value::Text(library.clone())));
    }
    if let Some(name) = &row.linkage_name {
        cells.push(("linkage_name", Value::Text(name.clone())));
    }
    if let Some((file, line)) = &row.place {
        cells.push(("file", Value::Text(file.clone())));
        cells.push(("line", Value::Number((*line).into())));
    }
    for (column, cell) in written.columns.iter().zip(written.cells(row)) {
        let name = match *column {
            "caller" => "function",
            "calls" => "count",
            "from" => "address",
            "to" => "to_address",
            other => other,
        };
        if let (Cell::Count(count), true) = (cell, main.contains(&name)) {
            cells.push(("exactness", Value::text(count.exactness())));
        }
        cells.push((name, value(name, cell)?));
        // An instruction is one, and executed as often as it is counted.
        if (unit, name) == (Unit::Instruction, "count") {
            cells.push(("executed", value(name, cell)?));
            cells.push(("instructions", Value::Number(1)));
        }
    }
    Ok(cells)
}

fn value(column: &str, cell: &Cell) -> Result<Value, Error> {
    match cell {
        Cell::Text(text) if column == "file" && text.as_ref() == UNKNOWN => Ok(Value::Null),
        Cell::Text(text) => Ok(Value::text(text)),
        Cell::Number(0) if matches!(column, "line" | "column") => Ok(Value::Null),
        Cell::Number(number) => Value::number(*number),
        Cell::Count(count) => Value::count(count.value()),
        Cell::Amount(amount) => Value::count(amount.value()),
        Cell::Address(known) => Ok(known.map_or(Value::Null, |it| address(it.0).1)),
    }
}

/// The functions whose code has each line, as far as that is one.
type LineFunctions<'a> = HashMap<(&'a str, u32), Option<Arc<str>>>;

fn functions_of_lines<'a>(module: &'a Counted, request: &Request<'_>) -> LineFunctions<'a> {
    let mut lines = LineFunctions::new();
    for named in functions(module, request.demangle) {
        for run in named.function.blocks.iter().flat_map(|it| &it.lines) {
            let Some(file) = named.file(run.file) else {
                continue;
            };
            let known = lines.entry((file, run.line));
            let known = known.or_insert_with(|| Some(named.name.clone()));
            if known.as_ref().is_some_and(|it| *it != named.name) {
                *known = None;
            }
        }
    }
    lines
}

fn function_of(row: &Row, functions: &LineFunctions<'_>) -> Cells {
    let [Cell::Text(file), Cell::Number(line), ..] = row.cells.as_slice() else {
        return Vec::new();
    };
    let line = u32::try_from(*line).unwrap_or(0);
    let function = functions.get(&(file.as_ref(), line)).cloned().flatten();
    let name = |it| ("function", Value::Text(it));
    function.map(name).into_iter().collect()
}
