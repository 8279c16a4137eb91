//! What a report is a table of.

use crate::count::Count;
use crate::events::{self, Amount, EventSums};
use crate::outcomes::Outcome;
use headcount_model::{Event, LinkAddr};
use std::cmp::Ordering;
use std::sync::Arc;

/// What has one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// An executable or a shared library.
    Module,
    /// A source file.
    File,
    /// A function.
    Function,
    /// A line of a source file.
    Line,
    /// A block.
    Block,
    /// A block, where some are pieces of source text.
    SourceBlock,
    /// An instruction.
    Instruction,
    /// An edge between two blocks, or between a block and the world.
    Edge,
    /// A call instruction.
    Call,
    /// The same, or a jump to another function, with what it cost.
    CallCost,
    /// A line on which control has a choice.
    Branch,
    /// A thread.
    Thread,
    /// A process.
    Process,
    /// A place of the user's own code, with a routine of a library that ran on its behalf.
    Charge,
    /// The same, with what was executed and not the time.
    CallCharge,
    /// A number by which system calls are made.
    Syscall,
    /// A value that was found somewhere.
    Value,
    /// An operation of a program that an interpreter ran.
    Token,
    /// The same, with a routine of the interpreter that ran on its behalf.
    TokenCharge,
    /// A part of an interpreter's storage.
    Storage,
}

impl Unit {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::File => "file",
            Self::Function => "function",
            Self::Line => "line",
            Self::Block | Self::SourceBlock => "block",
            Self::Instruction => "instruction",
            Self::Edge => "edge",
            Self::Call | Self::CallCost => "call",
            Self::Branch => "branch",
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Charge | Self::CallCharge | Self::TokenCharge => "charge",
            Self::Syscall => "syscall",
            Self::Value => "value",
            Self::Token => "token",
            Self::Storage => "region",
        }
    }

    /// Its columns, in the order of the CSV file. Scripts rely on them.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Module => &["module", "executed", "instructions", "never"],
            Self::File => &[
                "file",
                "executed",
                "instructions",
                "never",
                "blocks_executed",
                "blocks",
                "blocks_never",
            ],
            Self::Function => &[
                "module",
                "function",
                "file",
                "line",
                "calls",
                "executed",
                "instructions",
                "never",
            ],
            Self::Line => &["file", "line", "count", "executed", "exactness"],
            Self::Block => &["module", "function", "address", "instructions", "count"],
            Self::SourceBlock => &[
                "module",
                "function",
                "address",
                "instructions",
                "count",
                "file",
                "line",
                "column",
                "kind",
            ],
            Self::Instruction => &["module", "function", "address", "count", "text"],
            Self::Edge => &["module", "function", "from", "to", "kind", "count"],
            Self::Call => &["module", "caller", "address", "callee", "count"],
            Self::CallCost => &[
                "module",
                "caller",
                "address",
                "callee",
                "count",
                "file",
                "line",
                "kind",
                "inclusive_estimate",
            ],
            Self::Branch => &[
                "file",
                "line",
                "count",
                "branches",
                "ways",
                "ways_gone",
                "taken",
                "not_taken",
            ],
            Self::Thread => &[
                "process",
                "thread",
                "name",
                "executed",
                "samples",
                "nanoseconds",
                "on_processor",
                "waiting",
                "ready",
            ],
            Self::Process => &["process", "name", "threads", "executed"],
            Self::Charge => &[
                "file",
                "line",
                "function",
                "routine",
                "module",
                "samples",
                "nanoseconds",
            ],
            Self::CallCharge => &["file", "line", "function", "routine", "module", "executed"],
            Self::Syscall => &["name", "number", "count"],
            Self::Value => &[
                "module",
                "function",
                "place",
                "expression",
                "value",
                "count",
                "caller",
                "sum",
                "address",
            ],
            Self::Token => &[
                "language",
                "file",
                "line",
                "column",
                "kind",
                "text",
                "count",
                "resumptions",
                "samples",
                "bytes",
            ],
            Self::TokenCharge => &[
                "language",
                "file",
                "line",
                "column",
                "kind",
                "text",
                "routine",
                "module",
                "samples",
                "nanoseconds",
            ],
            Self::Storage => &[
                "language",
                "region",
                "requests",
                "bytes",
                "bytes_of_no_token",
                "collections",
                "recovered",
                "expansions",
                "collecting_nanoseconds",
                "expanding_nanoseconds",
            ],
        }
    }

    /// Whether the hottest row comes first where the user does not say; if not, rows come in
    /// the order of the program.
    pub fn hottest_first(self) -> bool {
        matches!(
            self,
            Self::Module
                | Self::File
                | Self::Function
                | Self::Thread
                | Self::Process
                | Self::Charge
                | Self::CallCharge
                | Self::TokenCharge
                | Self::CallCost
                | Self::Syscall
        )
    }
}

/// One field of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A name or a text.
    Text(Arc<str>),
    /// A number that is a fact of the program.
    Number(u64),
    /// A number that was counted, as far as it is known.
    Count(Count),
    /// A number of events, as far as it is known.
    Amount(Amount),
    /// An address; `None` is outside of the function.
    Address(Option<LinkAddr>),
}

impl Cell {
    /// A number, or what is known of a count.
    pub fn amount(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Count(count) => count.value().unwrap_or(0),
            _ => 0,
        }
    }

    /// Numbers sort from large to small, everything else from small to large; what is not known
    /// comes last.
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => b.cmp(a),
            (Self::Count(a), Self::Count(b)) => b.value().cmp(&a.value()),
            (Self::Amount(a), Self::Amount(b)) => b.value().cmp(&a.value()),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Address(a), Self::Address(b)) => a.cmp(b),
            _ => self.is_nothing().cmp(&other.is_nothing()),
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::Address(None))
    }
}

/// One row: a cell for each column of the unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The fields.
    pub cells: Vec<Cell>,
    /// The linker's name, where the row is about a function.
    pub linkage_name: Option<Arc<str>>,
    /// Whether any of it was counted.
    pub counted: bool,
    /// Whether any of it ran, or may have: not all of it was counted.
    pub ran: bool,
    /// What it did, as far as the user wants to know.
    pub events: EventSums,
    /// Whether it is about source text that was counted: what are called its instructions are
    /// statements, and its address only tells it from others.
    pub of_source: bool,
    /// The library that it belongs to; none, if it is the user's own, or if nobody asked.
    pub library: Option<Arc<str>>,
    /// File and line of a call.
    pub place: Option<(Arc<str>, u32)>,
    /// The source text of a line.
    pub text: Option<String>,
    /// What its branches say.
    pub outcome: Option<Outcome>,
}

impl Row {
    /// Is one of its counts only a bound?
    pub fn is_at_least(&self) -> bool {
        let bound = |cell: &Cell| matches!(cell, Cell::Count(Count::AtLeast(_)));
        self.cells.iter().any(bound)
    }
}

/// Rows of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What has a row.
    pub unit: Unit,
    /// The rows, in the order to show them.
    pub rows: Vec<Row>,
    /// How many rows were left out, of `--top` or because the screen is full.
    pub left_out: usize,
    /// The sums of libraries, where their rows are left out.
    pub libraries: Vec<Row>,
    /// How many rows of libraries were left out that no sum tells of.
    pub in_libraries: usize,
    /// How many rows were left out because they never ran.
    pub never_ran: usize,
    /// Whether rows tell what was executed with all that was called from there.
    pub has_inclusive: bool,
    /// Whether rows tell of time, too.
    pub is_timed: bool,
    /// Whether they say why it is so much.
    pub has_why: bool,
    /// The events that rows tell of.
    pub events: Vec<Event>,
}

/// What rows have more, if they tell of time.
const TIME: [&str; 2] = ["samples", "nanoseconds"];

impl Table {
    /// Without rows.
    pub fn new(unit: Unit) -> Self {
        Self {
            unit,
            rows: Vec::new(),
            left_out: 0,
            libraries: Vec::new(),
            in_libraries: 0,
            never_ran: 0,
            has_inclusive: false,
            is_timed: false,
            has_why: false,
            events: Vec::new(),
        }
    }

    /// The column that says how hot a row is: time, if that is known.
    pub fn heat(&self) -> Option<usize> {
        let executed = self.column("executed");
        let time = self.column("nanoseconds");
        match executed.filter(|_| self.unit == Unit::Function) {
            Some(column) if time.is_none() && !self.knows(column) => self.column("calls"),
            _ => time
                .or(executed)
                .or(self.column("inclusive_estimate"))
                .or(self.column("count")),
        }
    }

    /// Its columns, in the order of the CSV file.
    pub fn columns(&self) -> Vec<&'static str> {
        let inclusive: &[_] = if self.has_inclusive {
            &["inclusive"]
        } else {
            &[]
        };
        let time: &[_] = if self.is_timed { &TIME } else { &[] };
        let why: &[_] = if self.has_why { &["why"] } else { &[] };
        let columns = self.unit.columns().iter().chain(inclusive);
        let columns = columns.chain(time).chain(why);
        columns
            .copied()
            .chain(events::columns(&self.events))
            .collect()
    }

    /// The same for other programs.
    pub fn written(&self) -> Written {
        let mut columns = self.columns();
        let has_source = self.rows.iter().any(|row| row.of_source);
        let of_source = if has_source { self.of_source() } else { &[] };
        let place = |name: &str| columns.iter().position(|it| *it == name);
        let moved = of_source
            .iter()
            .filter_map(|(column, name)| Some((place(column)?, name.is_some())))
            .collect();
        columns.extend(of_source.iter().filter_map(|(_, name)| *name));
        Written { columns, moved }
    }

    /// The columns that source text has under another name, if it has them at all.
    fn of_source(&self) -> &'static [(&'static str, Option<&'static str>)] {
        match self.unit {
            Unit::Module | Unit::File | Unit::Function => &[
                ("executed", Some("statements_executed")),
                ("instructions", Some("statements")),
                ("never", Some("statements_never")),
            ],
            Unit::Line => &[("executed", Some("statements_executed"))],
            Unit::SourceBlock => &[("address", None), ("instructions", Some("statements"))],
            _ => &[],
        }
    }

    /// The columns of its events; which of them are bounds is told by another, behind them.
    pub fn event_columns(&self) -> Vec<&'static str> {
        let columns = events::columns(&self.events);
        columns.take(self.events.len()).collect()
    }

    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|it| *it == name)
    }

    /// Orders rows by one column; rows that are equal there keep their order. The most comes
    /// first, but the number of a line says no more than an address: the first line comes first.
    pub fn sort_by(&mut self, column: usize) {
        let upwards = self.columns()[column] == "line";
        self.rows.sort_by(|a, b| {
            let order = a.cells[column].order(&b.cells[column]);
            if upwards { order.reverse() } else { order }
        });
    }

    /// Does every row know this column?
    pub fn knows(&self, column: usize) -> bool {
        let known = |row: &Row| match row.cells[column] {
            Cell::Count(count) => count.is_known(),
            _ => true,
        };
        self.rows.iter().all(known)
    }

    /// Keeps the first rows.
    pub fn keep_top(&mut self, most: usize) {
        self.left_out += self.rows.len().saturating_sub(most);
        self.rows.truncate(most);
    }
}

/// The columns of a table for other programs. What is a number of statements has columns of its own,
/// which come last: those who look for instructions must not find them.
pub struct Written {
    /// Their names.
    pub columns: Vec<&'static str>,
    /// Where numbers of statements stand in a row, and whether there is a column for them.
    moved: Vec<(usize, bool)>,
}

impl Written {
    /// The cells of a row.
    pub fn cells<'a>(&self, row: &'a Row) -> Vec<&'a Cell> {
        const NOTHING: &Cell = &Cell::Address(None);
        let mut cells: Vec<&Cell> = row.cells.iter().collect();
        for (place, has_column) in &self.moved {
            let moved = match row.of_source {
                true => std::mem::replace(&mut cells[*place], NOTHING),
                false => NOTHING,
            };
            cells.extend(has_column.then_some(moved));
        }
        cells
    }
}
