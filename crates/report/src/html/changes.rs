//! What changed since another run, for the page.

use super::files::Files;
use super::functions::Functions;
use super::value;
use crate::diff::{Change, Diff, LineChange};
use crate::names::origin;
use serde_json::{Value, json};
use std::collections::HashMap;

/// How many lines of a function are shown.
const MOST_LINES: usize = 20;

/// The totals, the commands, and the functions that differ: place in the index or -1, name, then what
/// it executed and how often it was called on both sides, its largest lines (place of the file or -1,
/// name, number on both sides or 0, executed on both sides), and how many lines differ.
pub fn changes(diff: &Diff, functions: &Functions<'_>, files: &Files) -> Value {
    let mut places: HashMap<(&str, String, Option<&str>), usize> = HashMap::new();
    for (place, it) in functions.list.iter().enumerate() {
        let (module, linkage) = (&it.named.module.path, &it.named.function.name);
        let name = crate::demangle(origin(linkage)).into_owned();
        for file in [it.named.own_file(), None] {
            let known = places.entry((module, name.clone(), file)).or_insert(place);
            // The function itself comes before its parts and copies.
            if origin(linkage) == linkage && file.is_some() {
                *known = place;
            }
        }
    }
    let number = |it: Option<u64>| it.map_or(Value::Null, value::number);
    let line = |it: &LineChange| {
        json!([
            files.place(&it.file).map_or(Value::from(-1), Value::from),
            value::name(&it.file),
            it.numbers.map(Option::unwrap_or_default),
            it.executed.map(value::number),
        ])
    };
    let row = |it: &Change| {
        let file = it.source.as_ref().map(|(file, _)| file.as_str());
        let place = places.get(&(it.module.as_str(), it.function.clone(), file));
        json!([
            place.map_or(Value::from(-1), |it| Value::from(*it)),
            value::name(&it.function),
            it.executed.map(number),
            it.calls.map(number),
            it.lines
                .iter()
                .take(MOST_LINES)
                .map(line)
                .collect::<Vec<_>>(),
            it.lines.len(),
        ])
    };
    let name = |it: &String| value::name(it);
    json!({
        "commands": diff.commands.iter().map(name).collect::<Vec<_>>(),
        "executed": diff.executed.map(value::number),
        "functions": diff.changes.iter().map(row).collect::<Vec<_>>(),
        "unchanged": diff.unchanged,
        "notes": diff.notes.iter().map(name).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_not_shown_are_numbered() {
        let line = LineChange {
            file: "a.c".to_owned(),
            numbers: [Some(1); 2],
            executed: [1, 2],
            text: None,
        };
        let diff = Diff {
            changes: vec![Change {
                lines: vec![line; MOST_LINES + 3],
                ..Change::default()
            }],
            ..Diff::default()
        };
        let told = changes(&diff, &Functions::default(), &Files::default());
        let function = &told["functions"][0];
        assert_eq!(function[4].as_array().map(Vec::len), Some(MOST_LINES));
        assert_eq!(function[5], MOST_LINES + 3);
    }
}
