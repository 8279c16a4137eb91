//! The lines of optimised code: what is certain, what is a bound, and what is unknown?

use super::evidence::{FileEvidence, Kind, Place, Told};
use super::flow::{Claim, settle};
use crate::count::Count;
use headcount_model::SourceFunction;
use std::collections::{BTreeMap, HashMap};

/// The counts of the lines that code tells of, and of those that follow from the source. What is not
/// known is at least 0.
pub fn counts(evidence: &FileEvidence, functions: &[SourceFunction]) -> BTreeMap<u32, Count> {
    let mut lines = by_rows(evidence);
    for function in functions {
        for (line, count) in by_flow(evidence, function) {
            let is_known = lines.contains_key(&line);
            match count {
                Some(value) => _ = lines.insert(line, Count::Exact(value)),
                None if is_known => _ = lines.entry(line).and_modify(|it| *it = bound(*it)),
                None => _ = lines.insert(line, Count::AtLeast(0)),
            }
        }
    }
    lines
}

/// What rows say by themselves.
fn by_rows(evidence: &FileEvidence) -> BTreeMap<u32, Count> {
    let mut lines: BTreeMap<u32, Vec<(Place, Told)>> = BTreeMap::new();
    for (place, told) in &evidence.places {
        lines.entry(place.line).or_default().push((*place, *told));
    }
    let count = |places: Vec<(Place, Told)>| line_by_rows(&places, evidence.marks_statements);
    lines
        .into_iter()
        .map(|(line, places)| (line, count(places)))
        .collect()
}

/// How often a line ran, says what is on it.
fn line_by_rows(places: &[(Place, Told)], marks_statements: bool) -> Count {
    let value = |told: &Told| match marks_statements {
        true => told.sum,
        false => told.stretches,
    };
    let most = places.iter().map(|(_, told)| value(told)).max();
    let least = places.iter().map(|(_, told)| told.most).max();
    let is_sure = |told: &Told| told.pieces == 1 && !told.is_packed && !told.is_partial;
    let is_same = |told: &Told| Some(value(told)) == most && is_sure(told);
    // That something never ran takes two to say: it may have been merged into other code.
    let is_enough = places.len() > 1 || most > Some(0);
    let agree = is_enough && places.iter().all(|(_, told)| is_same(told));
    match (agree, most) {
        (true, Some(most)) => Count::Exact(most),
        _ => Count::AtLeast(least.unwrap_or(0)),
    }
}

fn bound(count: Count) -> Count {
    Count::AtLeast(count.value().unwrap_or(0))
}

/// What the flow of a function makes certain of its lines; nothing where it leaves them open.
fn by_flow(evidence: &FileEvidence, function: &SourceFunction) -> Vec<(u32, Option<u64>)> {
    let own = Place {
        line: function.line,
        column: 0,
        kind: Kind::Code,
    };
    let end = Place {
        line: function.last_line + 1,
        ..own
    };
    let places: Vec<(Place, Told)> = evidence
        .places
        .range(own..end)
        .map(|(place, told)| (*place, *told))
        .collect();
    let is_inside = |line: u32| (function.line..=function.last_line).contains(&line);
    let entered: Vec<_> = evidence
        .entered
        .iter()
        .filter(|it| is_inside(it.line))
        .collect();
    if entered.is_empty() && places.is_empty() {
        return Vec::new();
    }
    // A copy that was wholly merged into others tells nothing.
    let is_whole = entered.iter().all(|it| it.has_code);
    let mut claims = match is_whole {
        true => claims(function, &places, evidence.marks_statements),
        false => Vec::new(),
    };
    let calls: Option<u64> = entered.iter().map(|it| it.count).sum();
    if let Some(value) = calls.filter(|_| is_whole) {
        let has_copies = entered.iter().any(|it| it.is_copy);
        claims.push(Claim {
            block: 0,
            value,
            weight: 2 - u32::from(has_copies),
            doubt: u8::from(has_copies),
            stands_alone: !has_copies,
            needs_witness: false,
        });
    }
    let settled = settle(&function.graph, &claims);
    let mut lines: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    let on_lines = function.blocks.iter().zip(&settled);
    let starts = on_lines.flat_map(|(block, count)| block.lines.iter().map(|it| (*it, *count)));
    let other = places.iter().filter_map(|(place, _)| {
        let block = function.block_at(place.line, place.column)?;
        Some((place.line, settled[block as usize]))
    });
    for (line, count) in starts.chain(other) {
        let most = lines.entry(line).or_insert(count);
        // The most frequent of several; if one is open, so is the line.
        *most = most.zip(count).map(|(a, b)| a.max(b));
    }
    lines.into_iter().collect()
}

/// What places claim about blocks: those of a block that say the same say it together.
fn claims(
    function: &SourceFunction,
    places: &[(Place, Told)],
    marks_statements: bool,
) -> Vec<Claim> {
    let mut said: HashMap<u32, Vec<(u64, u8)>> = HashMap::new();
    // So often or more, surely.
    let mut floors: HashMap<u32, u64> = HashMap::new();
    for (place, told) in places {
        let is_vague = function
            .vague
            .binary_search(&(place.line, place.column))
            .is_ok();
        let block = function.block_at(place.line, place.column);
        let (Some(block), false) = (block, is_vague || told.is_packed || told.is_partial) else {
            continue;
        };
        let floor = floors.entry(block).or_default();
        *floor = told.most.max(*floor);
        // LLVM copies a place, or spreads it, within one stretch: nobody can tell which.
        if !marks_statements && told.pieces > told.spread {
            continue;
        }
        let doubt = match (told.pieces, told.spread) {
            (1, _) => 0,
            (pieces, spread) if pieces == spread => 1,
            _ => 2,
        };
        said.entry(block).or_default().push((told.sum, doubt));
    }
    let mut claims = Vec::new();
    for (block, said) in said {
        let all = said.len() as u32;
        let mut values: BTreeMap<u64, (u32, u8)> = BTreeMap::new();
        for (value, doubt) in said {
            let it = values.entry(value).or_insert((0, doubt));
            *it = (it.0 + 1, it.1.min(doubt));
        }
        // Of gcc's marks one may stand for what several lines share.
        if !marks_statements {
            values.retain(|value, _| *value >= floors[&block]);
        }
        let mut values: Vec<(u64, (u32, u8))> = values.into_iter().collect();
        values.sort_by_key(|(value, (weight, doubt))| {
            std::cmp::Reverse((*weight, std::cmp::Reverse(*doubt), *value))
        });
        let top = values.first().map_or(0, |it| it.1.0);
        for (value, (weight, doubt)) in values.into_iter().filter(|it| it.1.0 == top) {
            claims.push(Claim {
                block,
                value,
                weight,
                doubt,
                stands_alone: doubt == 0 && marks_statements,
                needs_witness: weight * 2 <= all,
            });
        }
    }
    claims.sort_by_key(|it| (it.block, it.value));
    claims
}
