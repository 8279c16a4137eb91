//! What was counted by value, for the page.

use super::files::Files;
use super::{Page, value};
use crate::values::TalliedPlace;
use serde_json::{Value, json};

/// So many values of one thing are on the page, the commonest.
const MOST: usize = 2_000;

/// Each thing that was asked for: its name, how often anything was found, the count of the commonest, how
/// many rows are left out, what rows have besides (1: sums, 2: callers, 4: places), and rows: value, count,
/// sum, caller, place in words, place of the file or -1, line.
pub fn values(page: &Page<'_>, files: &Files) -> Value {
    let tallies = page.tallied.tallies.iter();
    tallies.map(|it| one(it, files)).collect()
}

fn one(tally: &TalliedPlace, files: &Files) -> Value {
    let rows = tally.values.iter().take(MOST).map(|it| {
        let line = it.line.as_ref();
        let file = line.and_then(|(file, _)| files.place(file));
        json!([
            value::name(&it.value),
            value::number(it.count),
            it.sum.to_string(),
            value::name(&it.caller),
            value::name(&it.place),
            file.map_or(Value::from(-1), Value::from),
            line.map_or(0, |it| it.1),
        ])
    });
    let has_callers = tally.values.iter().any(|it| !it.caller.is_empty());
    let has =
        u8::from(tally.has_amount) + 2 * u8::from(has_callers) + 4 * u8::from(tally.is_targets);
    json!([
        value::name(&tally.name()),
        value::number(tally.count()),
        value::number(tally.values.iter().map(|it| it.count).max().unwrap_or(0)),
        tally.values.len().saturating_sub(MOST),
        has,
        rows.collect::<Vec<_>>(),
    ])
}
