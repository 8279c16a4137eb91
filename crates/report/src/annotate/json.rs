//! Listings for machines.

use super::listing::Excerpt;
use super::values::{self, LineValues};
use crate::Error;
use crate::lines::LineCount;
use crate::listed::Listed;
use crate::names::functions;
use crate::outcomes::{LineBranches, Outcome};
use crate::own::is_of_the_system;
use crate::report::Decode;
use crate::rows::{Tally, by_address, calls};
use headcount_model::Counted;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The lines of a file that the excerpts show and that hold code; with their text, where that is at
/// hand.
pub fn lines_as_json(
    file: &str,
    lines: Option<&[String]>,
    counts: &BTreeMap<u32, LineCount>,
    branches: Option<&BTreeMap<u32, LineBranches>>,
    values: &LineValues<'_>,
    excerpts: &[Excerpt],
) -> Value {
    let is_shown = |line: &u32| excerpts.iter().any(|it| it.lines.contains(line));
    let row = |(line, it): (&u32, &LineCount)| {
        let text = lines.and_then(|all| all.get((*line as usize).checked_sub(1)?));
        let mut row = json!({
            "line": line,
            "count": it.count.value(),
            "executed": it.executed.value(),
            "exactness": it.exactness(),
            "text": text,
        });
        if let Some(branches) = branches.and_then(|all| all.get(line)) {
            row["branches"] = branches.branches.into();
            row["ways"] = branches.ways.into();
            row["ways_gone"] = branches.gone.into();
            let outcome = branches.outcome(*line, text.map(String::as_str), Some(it));
            if let Outcome::Told { taken, not } = outcome {
                row["taken"] = taken.into();
                row["not_taken"] = not.into();
            }
        }
        if let Some(values) = values.get(line) {
            row["values"] = values::as_json(values);
        }
        row
    };
    let rows = counts.iter().filter(|(line, _)| is_shown(line));
    json!({
        "file": file,
        "system": is_of_the_system(file),
        "lines": rows.map(row).collect::<Vec<_>>(),
    })
}

/// The chosen functions of one module, instruction by instruction.
pub fn functions_as_json(
    counted: &Counted,
    chosen: &dyn Fn(usize) -> bool,
    demangle: bool,
    decode: Decode<'_>,
) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    for named in functions(counted, demangle) {
        if !chosen(named.index) {
            continue;
        }
        let mut instructions = Vec::new();
        let listed = Listed::new(&named, decode);
        for block in by_address(&named) {
            let code = listed.instructions(block.block);
            instructions.extend((0..).zip(code).map(|(number, (address, text))| {
                json!({
                    "address": address.to_string(),
                    "count": block.at(number).value(),
                    "text": text,
                })
            }));
        }
        all.push(json!({
            "module": &counted.module.path,
            "function": &*named.name,
            "file": named.own_file(),
            "line": named.function.source.map(|(_, line)| line),
            "calls": calls(&named).value(),
            "executed": Tally::of(&named)?.executed.value(),
            "instructions": instructions,
        }));
    }
    Ok(all)
}
