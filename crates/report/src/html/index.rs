//! What the page knows when it is opened.

use super::code::Pieces;
use super::files::Files;
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
        "functions": rows.collect::<Vec<_>>(),
        "refused": refusals(page),
        "notes": notes.iter().map(|it| value::name(it)).collect::<Vec<_>>(),
        "narrowed": !page.only.is_everything(),
        "assembly": page.assembly,
        "time": !page.samples.is_empty(),
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
        file.lines,
        file.ran,
        u8::from(file.has_text) + 2 * u8::from(file.is_of_a_library),
        file.never,
    ])
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
