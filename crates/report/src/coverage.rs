//! What the counts leave open, in sentences.

use crate::count::{Count, blocks};
use crate::names::is_counted;
use crate::number::thousands;
use crate::only::Only;
use crate::table::{Row, Unit};
use headcount_model::{Counted, Function, FunctionCounts};
use std::collections::{BTreeMap, BTreeSet};

/// How many names or numbers a sentence gives; of others it says how many they are.
const MOST: usize = 10;

/// What holds for every report on these modules: functions that were not selected, counts that
/// reached their limit, and modules of which there are several builds.
pub fn coverage_notes(counted: &[Counted], demangle: bool) -> Vec<String> {
    let mut notes = Vec::new();
    match not_selected(counted) {
        0 => (),
        1 => notes.push(
            "1 function was not counted: it was not selected, or nothing that was counted leads \
             there."
                .into(),
        ),
        many => notes.push(format!(
            "{} functions were not counted: they were not selected, or nothing that was counted \
             leads there.",
            thousands(many)
        )),
    }
    notes.extend(limits(counted, demangle));
    notes.extend(builds(counted));
    notes
}

/// Which modules were built anew between the runs: what looks alike is not the same.
fn builds(counted: &[Counted]) -> impl Iterator<Item = String> {
    let mut builds: BTreeMap<&str, usize> = BTreeMap::new();
    for it in counted {
        *builds.entry(&it.module.path).or_default() += 1;
    }
    builds
        .into_iter()
        .filter(|(_, number)| *number > 1)
        .map(|(path, number)| {
            format!("{path} was counted in {number} builds, which have rows of their own.")
        })
}

/// Was any of the module counted as source text?
pub fn is_of_source(counted: &Counted) -> bool {
    let mut blocks = counted.module.functions.iter().flat_map(|it| &it.blocks);
    blocks.any(|block| block.place.is_some())
}

/// What is counted as source text knows nothing of what the compiler makes of it.
pub fn beyond_source(by: Unit, counted: &[Counted]) -> Option<String> {
    let is_beyond = matches!(by, Unit::Edge | Unit::Call | Unit::Instruction);
    (is_beyond && counted.iter().any(is_of_source)).then(|| {
        let unit = by.name();
        format!("Source text was counted, which has no {unit}s: `--by block` has its counts.")
    })
}

/// Where what the user named was counted, but no line is known of it.
pub fn without_lines(by: Unit, rows: &[Row], only: &Only) -> Option<String> {
    let is_found = !only.names_nothing() && only.unmet().is_empty();
    (by == Unit::Line && rows.is_empty() && is_found).then(|| {
        "No line is known of what --only names: `--by function` has its counts, and a build with \
         -g has lines."
            .to_owned()
    })
}

/// How many functions there are of which nothing was counted.
pub fn not_selected(counted: &[Counted]) -> u64 {
    let all = counted.iter().flat_map(|it| &it.functions);
    all.filter(|it| !is_counted(it)).count() as u64
}

/// One sentence a limit: which functions reached it.
fn limits(counted: &[Counted], demangle: bool) -> Vec<String> {
    let mut reached: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for it in counted {
        for (function, counts) in it.module.functions.iter().zip(&it.functions) {
            for limit in limits_of(function, counts) {
                let name = match demangle {
                    true => crate::demangle(&function.name).into_owned(),
                    false => function.name.clone(),
                };
                reached.entry(limit).or_default().insert(name);
            }
        }
    }
    let more = reached.len().saturating_sub(MOST);
    let sentence = |(limit, names): (&u64, &BTreeSet<String>)| {
        format!("At least {}: {}.", thousands(*limit), some(names))
    };
    let mut notes: Vec<String> = reached.iter().take(MOST).map(sentence).collect();
    if more > 0 {
        notes.push(format!(
            "And {} more limits were reached.",
            thousands(more as u64)
        ));
    }
    notes
}

fn limits_of(function: &Function, counts: &FunctionCounts) -> BTreeSet<u64> {
    if counts.at_least.is_empty() {
        return BTreeSet::new();
    }
    let limit = |it: Count| match it {
        Count::AtLeast(limit) => Some(limit),
        _ => None,
    };
    let all = blocks(function, counts);
    all.filter_map(|block| limit(block.count())).collect()
}

fn some(names: &BTreeSet<String>) -> String {
    let first: Vec<&str> = names.iter().take(MOST).map(String::as_str).collect();
    match names.len().saturating_sub(MOST) {
        0 => first.join(", "),
        more => format!("{} and {} more", first.join(", "), thousands(more as u64)),
    }
}

/// Leaves out the rows of what was not counted; says how many those were.
pub fn leave_out_uncounted(unit: Unit, rows: &mut Vec<Row>, runs: usize) -> Option<String> {
    let all = rows.len();
    rows.retain(|row| row.counted);
    let uncounted = all - rows.len();
    if unit == Unit::Edge && all > 0 && rows.is_empty() {
        let run = if runs == 1 { "This run" } else { "These runs" };
        return Some(format!("{run} did not count edges."));
    }
    match uncounted {
        0 => None,
        1 => Some(format!("1 {} was not counted.", unit.name())),
        many => Some(format!(
            "{} {}s were not counted.",
            thousands(many as u64),
            unit.name()
        )),
    }
}
