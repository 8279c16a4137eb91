//! What was counted by value on each line.

use crate::escape::visible;
use crate::number::{signed_thousands, thousands};
use crate::shorten::shorten_end;
use crate::values::{Tallied, TalliedPlace, TalliedValue, by_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What was found on the lines of a file, by line and by what was asked for.
pub type LineValues<'a> = BTreeMap<u32, Vec<(&'a TalliedPlace, Vec<&'a TalliedValue>)>>;

/// So many values of one thing are told below a line.
const SHOWN: usize = 3;

/// So many columns of a value are.
const LONGEST: usize = 40;

/// What was found on the lines of a file.
pub fn line_values<'a>(tallied: &'a Tallied, file: &str) -> LineValues<'a> {
    let mut lines = LineValues::new();
    for tally in &tallied.tallies {
        for value in &tally.values {
            let Some((_, line)) = value.line.as_ref().filter(|it| it.0.as_ref() == file) else {
                continue;
            };
            let here: &mut Vec<(_, Vec<_>)> = lines.entry(*line).or_default();
            match here.last_mut() {
                Some((known, values)) if std::ptr::eq(*known, tally) => values.push(value),
                _ => here.push((tally, vec![value])),
            }
        }
    }
    lines
}

/// The commonest values of one thing: `malloc(arg1): 16×900, 32×90, 8×10, 2 more`.
pub fn words(tally: &TalliedPlace, values: &[&TalliedValue]) -> String {
    let all = by_value(values.iter().copied());
    let shown = all.iter().take(SHOWN);
    let mut words: Vec<String> = shown.map(|it| one(tally, *it)).collect();
    if all.len() > SHOWN {
        words.push(format!("{} more", thousands((all.len() - SHOWN) as u64)));
    }
    let name = match tally.is_targets {
        true => "to".to_owned(),
        false => format!("{}:", visible(&tally.name())),
    };
    format!("{name} {}", words.join(", "))
}

fn one(tally: &TalliedPlace, (value, count, sum): (&str, u64, i64)) -> String {
    let value = shorten_end(&visible(value), LONGEST);
    let count = thousands(count);
    let mut words = match value.is_empty() {
        true => format!("{count} times"),
        false => format!("{value}×{count}"),
    };
    if tally.has_amount {
        words.push_str(&format!(" (sum {})", signed_thousands(sum)));
    }
    words
}

/// All that was found on a line, for machines.
pub fn as_json(found: &[(&TalliedPlace, Vec<&TalliedValue>)]) -> Value {
    let values = found.iter().flat_map(|(tally, values)| {
        values.iter().map(|it| {
            let mut row = json!({
                "place": tally.place,
                "expression": tally.expression,
                "value": it.value,
                "count": it.count,
            });
            if !it.caller.is_empty() {
                row["caller"] = it.caller.as_str().into();
            }
            if tally.has_amount {
                row["sum"] = it.sum.into();
            }
            row
        })
    });
    values.collect()
}
