//! One report: a table, and what it does not say.

use crate::callees::{Callees, FindPointers, FindTransfers};
use crate::callers::{self, CallsOf};
use crate::calls;
use crate::coverage;
use crate::events::{self, WantedEvents};
use crate::exact_calls::ExactCalls;
use crate::fold::{fold, folds};
use crate::html::SourceText;
use crate::inlined::InlinedRuns;
use crate::inlined_calls::FindInlinedNames;
use crate::joined;
use crate::number::thousands;
use crate::only::Only;
use crate::own::{Own, OwnModules};
use crate::rows::{self, Totals};
use crate::table::{Cell, Row, Table, Unit};
use crate::time::{Time, Totals as TimeTotals};
use crate::{Error, outcomes, runtimes, source, syscalls, threads, time, tokens, values};
use headcount_model::{
    Counted, LinkAddr, Module, Refusal, RuntimeCosts, Samples, Span, SystemCalls, ThreadCounts,
    ValueCounts,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Turns a piece of code into its instructions: address and text.
pub type Decode<'a> = &'a dyn Fn(&Span) -> Vec<(LinkAddr, String)>;

/// What the user asked for.
pub struct Request<'a> {
    /// What has a row.
    pub by: Unit,
    /// The column to sort by; without one, the unit's own order.
    pub sort: Option<String>,
    /// How many rows to show.
    pub top: Option<usize>,
    /// What to show.
    pub only: Only,
    /// Only what never ran.
    pub never: bool,
    /// What is the user's own, if the rest is to be folded.
    pub own: Option<&'a Own>,
    /// Whether what is one function to the programmer has one row.
    pub joins: bool,
    /// Whether names are shown as the programmer wrote them.
    pub demangle: bool,
    /// Knows the instructions.
    pub decode: Decode<'a>,
    /// Knows the calls and jumps among them.
    pub transfers: FindTransfers<'a>,
    /// Knows what pointers lead to.
    pub pointers: FindPointers<'a>,
    /// Looks up the names of the functions that were inlined in a module.
    pub inlined_names: FindInlinedNames<'a>,
    /// The functions whose callers, or callees, are wanted.
    pub calls_of: Option<&'a CallsOf>,
    /// Whether ways into failed checks are branches, too.
    pub with_checks: bool,
    /// Knows the sources, as far as what is asked for needs them.
    pub source: Option<SourceText<'a>>,
    /// Where the time went, if somebody looked.
    pub time: Option<&'a Time>,
    /// The samples that say so.
    pub samples: &'a [&'a Samples],
    /// What calls cost, if somebody asked.
    pub calls: Option<&'a ExactCalls<'a>>,
    /// How often system calls were made, by number.
    pub system_calls: Option<&'a SystemCalls>,
    /// What each thread counted, of the runs where that was asked for.
    pub threads: &'a [ThreadCounts],
    /// What was found by value.
    pub values: &'a [ValueCounts],
    /// What the runtime of interpreters cost.
    pub runtimes: &'a [RuntimeCosts],
    /// How many runs the counts are sums of, if none of these is there only in part; else 0.
    pub whole_runs: usize,
    /// Whether to say why that took so long.
    pub why: bool,
    /// What to tell of what code did.
    pub events: WantedEvents<'a>,
}

impl<'a> Request<'a> {
    /// Everything that has a row, with its name as it was written, and no more than the counts say.
    pub fn all(by: Unit, decode: Decode<'a>) -> Self {
        Self {
            by,
            sort: None,
            top: None,
            only: Only::default(),
            never: false,
            own: None,
            joins: false,
            demangle: true,
            decode,
            transfers: &|_| Default::default(),
            pointers: &|_| Default::default(),
            inlined_names: &|_| Ok(HashMap::new()),
            calls_of: None,
            with_checks: false,
            source: None,
            time: None,
            samples: &[],
            calls: None,
            system_calls: None,
            threads: &[],
            values: &[],
            runtimes: &[],
            whole_runs: 0,
            why: false,
            events: WantedEvents::default(),
        }
    }

    /// Knows the functions of all modules, and whom they call.
    pub fn callees(&self, counted: &'a [Counted]) -> Callees<'a> {
        let callees = Callees::new(counted, self.transfers, self.pointers);
        match self.calls {
            Some(_) => callees,
            None => callees.with_targets(self.values),
        }
    }
}

/// A run, as far as reports tell: nothing that differs between two equal runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The command; empty if unknown.
    pub command: Vec<String>,
    /// Exit status, or 128 + signal; `None` if nobody saw the end.
    pub status: Option<i32>,
}

/// Something that is not counted, and the module it is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// Path of the module.
    pub module: String,
    /// What, where and why.
    pub refusal: Refusal,
}

/// What a cost that nobody counted is worth.
const ESTIMATED: &str = "What calls cost with all that they lead to is estimated by each caller's share of \
                         the calls; `headcount run --calls` finds it out exactly.";

/// A table, and what it does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The rows.
    pub table: Table,
    /// The runs that were added up.
    pub runs: Vec<RunSummary>,
    /// What all functions executed that are counted, whether they have a row or not.
    pub totals: Totals,
    /// What to say of the functions whose calls these are, in a line each.
    pub about: Vec<String>,
    /// The paths of the modules that took part.
    pub modules: Vec<String>,
    /// The part of it that is the user's own, where the rest is folded.
    pub own: Option<Totals>,
    /// What is not counted.
    pub refused: Vec<Refused>,
    /// How much is not counted of what is not shown.
    pub refused_elsewhere: usize,
    /// How many functions are not counted because nobody asked for them.
    pub not_selected: u64,
    /// What makes the counts uncertain, in sentences.
    pub notes: Vec<String>,
    /// Whether source text was counted, which has no such units.
    pub is_beyond_source: bool,
    /// Where the time went, all in all.
    pub time: Option<TimeTotals>,
}

impl Report {
    /// Makes the report of counted modules. `notes` are those of the runs.
    pub fn new(
        counted: &[Counted],
        runs: Vec<RunSummary>,
        notes: Vec<String>,
        request: &Request<'_>,
    ) -> Result<Self, Error> {
        let mut report = Self {
            table: Table {
                is_timed: request.time.is_some() && rows::have_time(request.by),
                has_inclusive: request.calls.is_some() && rows::have_inclusive(request.by),
                events: request.events.events().to_vec(),
                ..Table::new(unit(counted, request.by))
            },
            runs,
            totals: Totals::of(counted, |_| true)?,
            about: Vec::new(),
            modules: counted.iter().map(|it| it.module.path.clone()).collect(),
            own: request
                .own
                .map(|own| Totals::of(counted, |it| own.library(it).is_none()))
                .transpose()?,
            refused: refused(counted),
            refused_elsewhere: 0,
            not_selected: coverage::not_selected(counted),
            notes: without_repetition(notes),
            is_beyond_source: false,
            time: request.time.map(|it| it.totals),
        };
        report.fill(counted, request)?;
        let notes = coverage::coverage_notes(counted, request.demangle);
        report.notes.extend(notes);
        report.order(request)?;
        report.notes.extend(events::notes(
            report.table.rows.iter().map(|row| &row.events),
        ));
        Ok(report)
    }

    /// Names only what is not counted of what the table is about: of the user's own code, or of what
    /// is wanted. Of the rest, it keeps the number.
    pub fn narrow_refusals(&mut self, counted: &[Counted], request: &Request<'_>) {
        let is_shown = |module: &Module, refusal: &Refusal| match request.own {
            Some(own) => own.has_refused(module, refusal),
            None => request.only.wants_refused(module, refusal),
        };
        let all = self.refused.len();
        self.refused.retain(|it| {
            let mut modules = counted.iter().map(|it| &it.module);
            modules.any(|module| module.path == it.module && is_shown(module, &it.refusal))
        });
        self.refused_elsewhere = all - self.refused.len();
        let notes = self.notes.len();
        let modules = OwnModules::of(counted.iter().map(|it| it.module.path.as_str()));
        self.notes.retain(|note| !modules.is_told_of_library(note));
        self.refused_elsewhere += notes - self.notes.len();
    }

    /// Puts the source text beside the lines of the table.
    pub fn add_source(&mut self, source: SourceText<'_>) {
        if self.table.unit != Unit::Line {
            return;
        }
        let mut known: HashMap<Arc<str>, Option<Vec<String>>> = HashMap::new();
        for row in &mut self.table.rows {
            if let [Cell::Text(file), Cell::Number(line @ 1..), ..] = row.cells.as_slice() {
                let lines = known.entry(file.clone()).or_insert_with(|| source(file));
                let line = usize::try_from(line - 1).unwrap_or(usize::MAX);
                row.text = lines.as_ref().and_then(|it| it.get(line)).cloned();
            }
        }
    }

    fn fill(&mut self, counted: &[Counted], request: &Request<'_>) -> Result<(), Error> {
        let notes = &mut self.notes;
        self.table.rows = match self.table.unit {
            Unit::Module => rows::modules(counted, request)?,
            Unit::File => source::files(counted, request)?,
            Unit::Line => source::lines(counted, request)?,
            Unit::Function if request.never => never_ran(counted, request, notes)?,
            Unit::Function => rows::of_functions(counted, request, |named, rows| {
                rows::function(named, request, rows)
            })?,
            Unit::Block => rows::of_functions(counted, request, |named, rows| {
                rows::blocks(named, request, rows)
            })?,
            Unit::SourceBlock => rows::of_functions(counted, request, |named, rows| {
                rows::source_blocks(named, request, rows)
            })?,
            Unit::Edge => rows::of_functions(counted, request, |named, rows| {
                rows::edges(named, request, rows)
            })?,
            Unit::Call => calls::calls(counted, request)?,
            Unit::CallCost => {
                let found = callers::find(counted, request)?;
                self.about = found.about;
                notes.extend(found.notes);
                notes.extend(request.calls.is_none().then(|| ESTIMATED.to_owned()));
                found.rows
            }
            Unit::Branch => outcomes::rows(counted, request)?,
            Unit::Thread => threads::threads(request.threads, request.samples),
            Unit::Process => threads::processes(request.threads)?,
            Unit::Charge => time::charges(request),
            Unit::CallCharge => time::call_charges(counted, request),
            Unit::Syscall => {
                let calls = request.system_calls.cloned().unwrap_or_default();
                notes.extend(syscalls::note(&calls, counted, &request.events)?);
                syscalls::rows(&calls)
            }
            Unit::Value => {
                let found = values::rows(counted, request)?;
                notes.extend(found.notes);
                self.table.left_out = found.left_out;
                self.table.in_libraries = found.in_libraries;
                found.rows
            }
            Unit::Token => tokens::rows(counted, request)?,
            Unit::TokenCharge => runtimes::charges(counted, request)?,
            Unit::Storage => runtimes::storage(request),
            Unit::Instruction => rows::of_functions(counted, request, |named, rows| {
                rows::instructions(named, request, rows, notes)
            })?,
        };
        let (rows, runs) = (&mut self.table.rows, self.runs.len());
        self.notes
            .extend(coverage::without_lines(request.by, rows, &request.only));
        let left_out = coverage::leave_out_uncounted(request.by, rows, runs);
        self.notes.extend(left_out);
        let beyond = coverage::beyond_source(request.by, counted);
        self.is_beyond_source = beyond.is_some();
        self.notes.extend(beyond);
        self.add_time(request);
        events::add_cells(&mut self.table);
        Ok(())
    }

    fn add_time(&mut self, request: &Request<'_>) {
        if let Some(time) = request.time {
            match self.table.unit {
                Unit::Function => rows::uncounted_functions(time, request, &mut self.table.rows),
                Unit::Line => source::add_time(time, request, &mut self.table.rows),
                _ => (),
            }
            if request.why && matches!(self.table.unit, Unit::Function | Unit::Line) {
                time::add_why(&mut self.table, time);
                if request.only.is_everything() {
                    time::add_waiting(&mut self.table, time);
                }
            }
        }
    }

    fn order(&mut self, request: &Request<'_>) -> Result<(), Error> {
        let table = &mut self.table;
        // Before all else: what never ran in one program may have in another.
        if request.joins {
            joined::join(table, request.demangle)?;
        }
        if request.never {
            table.rows.retain(|row| !row.ran);
        }
        let is_part = request.own.is_some() || request.top.is_some();
        // Those of one place are together, and in order already.
        if table.unit == Unit::Value {
            return Ok(());
        }
        if table.unit.hottest_first() || table.has_why || is_part && !request.never {
            let name = table.column(table.unit.name());
            let name = name.filter(|_| table.unit.hottest_first());
            let executed = table.column("executed");
            // What never ran is as important as it is large.
            let size = table.column("instructions").filter(|_| request.never);
            for column in [name, executed, table.heat(), size].into_iter().flatten() {
                table.sort_by(column);
            }
        }
        if let Some(key) = &request.sort {
            let column = table.column(key).ok_or_else(|| Error::NoSuchColumn {
                key: key.clone(),
                columns: table.columns(),
            })?;
            table.sort_by(column);
        }
        if request.own.is_some() && folds(table.unit) {
            fold(table, request.never)?;
        }
        if let Some(most) = request.top {
            table.keep_top(most);
        }
        Ok(())
    }
}

/// The functions, but for those that ran only where they were inlined.
fn never_ran(
    counted: &[Counted],
    request: &Request<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Row>, Error> {
    let inlined = InlinedRuns::of(counted);
    let mut left_out = 0;
    let rows = rows::of_functions(counted, request, |named, rows| {
        let before = rows.len();
        rows::function(named, request, rows)?;
        if rows[before..].iter().any(|it| !it.ran) && inlined.has(named) {
            rows.truncate(before);
            left_out += 1;
        }
        Ok(())
    })?;
    match left_out {
        0 => (),
        1 => notes.push("1 function is left out that ran only where it was inlined.".into()),
        many => notes.push(format!(
            "{} functions are left out that ran only where they were inlined.",
            thousands(many)
        )),
    }
    Ok(rows)
}

/// Blocks of source text have more to tell.
fn unit(counted: &[Counted], by: Unit) -> Unit {
    match by == Unit::Block && counted.iter().any(coverage::is_of_source) {
        true => Unit::SourceBlock,
        false => by,
    }
}

/// What is not counted in any of the modules.
pub fn refused(counted: &[Counted]) -> Vec<Refused> {
    let mut all: Vec<Refused> = counted
        .iter()
        .flat_map(|it| {
            it.module.refusals.iter().map(|refusal| Refused {
                module: it.module.path.clone(),
                refusal: refusal.clone(),
            })
        })
        .collect();
    all.sort();
    all
}

fn without_repetition(notes: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for note in notes {
        if !kept.contains(&note) {
            kept.push(note);
        }
    }
    kept
}
