//! What the page knows when it is opened.

use super::code::Pieces;
use super::files::{Files, HOTTEST, HotLine};
use super::functions::Functions;
use super::{Page, value};
use crate::coverage::coverage_notes;
use crate::rows::Tally;
use crate::{Error, refused};
use serde_json::{Value, json};

/// Raised when the script of an older page could not read it; tests and tools look for it.
const VERSION: u32 = 1;

/// Runs, modules, files and functions, what was not counted, and notes.
pub fn index(
    page: &Page<'_>,
    functions: &Functions<'_>,
    files: &Files,
    code: &Pieces,
) -> Result<Value, Error> {
    let rows = functions.list.iter().enumerate().map(|(place, it)| {
        let file = it.named.own_file().and_then(|file| files.place(file));
        it.row(file, code.of(place))
    });
    let mut notes = page.notes.clone();
    notes.extend(coverage_notes(page.counted, page.demangle));
    // What is said of libraries alone stands behind the rest, and not on the first view.
    notes.sort_by_key(|it| page.own.is_of_library(it));
    let own_notes = notes.partition_point(|it| !page.own.is_of_library(it));
    let mut total = Tally::default();
    for it in &functions.list {
        total.join(it.tally)?;
    }
    Ok(json!({
        "version": VERSION,
        "runs": page.runs.iter().map(run).collect::<Vec<_>>(),
        "total": tally(&total),
        "modules": modules(page, functions)?,
        "files": files.list.iter().map(file).collect::<Vec<_>>(),
        "files_left_out": files.left_out,
        "hot_lines": hot_lines(files),
        "functions": rows.collect::<Vec<_>>(),
        "refused": refusals(page),
        "notes": notes.iter().map(|it| value::name(it)).collect::<Vec<_>>(),
        "own_notes": own_notes,
        "narrowed": !page.only.is_everything(),
        "assembly": page.assembly,
        "time": !page.samples.is_empty(),
        "events": page.events.names(),
        "shows_events": page.shows_events,
        "values": !page.tallied.tallies.is_empty(),
        "changes": page.changes.is_some(),
    }))
}

fn run(run: &super::RunFacts) -> Value {
    json!({
        "command": run.command.iter().map(|it| value::name(it)).collect::<Vec<_>>(),
        "status": run.status,
        "cpu": value::name(&run.cpu),
        "processes": run.processes,
        "threads": run.threads,
    })
}

/// Executed, existing, never executed instructions.
fn tally(tally: &Tally) -> [Value; 3] {
    [
        value::count(tally.executed),
        Value::from(tally.instructions),
        value::count(tally.never),
    ]
}

fn modules(page: &Page<'_>, functions: &Functions<'_>) -> Result<Vec<Value>, Error> {
    let mut tallies = vec![Tally::default(); page.counted.len()];
    for it in &functions.list {
        tallies[it.module].join(it.tally)?;
    }
    let module = |(counted, of): (&headcount_model::Counted, &Tally)| {
        json!({
            "path": value::name(&counted.module.path),
            "build_id": value::name(&counted.module.build_id),
            "tally": tally(of),
        })
    };
    Ok(page.counted.iter().zip(&tallies).map(module).collect())
}

fn file(file: &super::files::SourceFile) -> Value {
    json!([
        value::name(&file.name),
        value::count(file.tally.executed),
        file.tally.instructions,
        value::count(file.tally.never),
        file.lines.all,
        file.lines.ran,
        u8::from(file.has_text) + 2 * u8::from(file.is_of_a_library),
        file.never,
    ])
}

/// The hottest lines of all files: file, line, count, instructions executed, text.
fn hot_lines(files: &Files) -> Vec<Value> {
    let of_file = |(place, file)| {
        let file: &super::files::SourceFile = file;
        file.hot.iter().map(move |it| (place, it))
    };
    let mut all: Vec<(usize, &HotLine)> = files.list.iter().enumerate().flat_map(of_file).collect();
    all.sort_by_key(|(_, it)| std::cmp::Reverse(it.count.executed.value()));
    let row = |(place, it): &(usize, &HotLine)| {
        let (count, executed) = (value::of_line(&it.count), value::count(it.count.executed));
        json!([place, it.line, count, executed, it.text])
    };
    all.iter().take(HOTTEST).map(row).collect()
}

fn refusals(page: &Page<'_>) -> Vec<Value> {
    let row = |it: crate::Refused| {
        json!([
            value::name(&it.module),
            value::name(&crate::demangle(&it.refusal.subject)),
            value::name(&it.refusal.file),
            it.refusal.line,
            value::name(&it.refusal.reason),
        ])
    };
    refused(page.counted).into_iter().map(row).collect()
}
