//! The lines of optimised code: what is certain, what is a bound, and what is unknown?

use super::call_graph::{At, CallGraph};
use super::entries::entry;
use super::evidence::{Evidence, FileEvidence, Place, Told};
use super::flow::Bounds;
use super::loop_words::as_compiled;
use super::solving::solve;
use crate::count::Count;
use headcount_model::{FileId, SourceFlows};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The functions of which not everything was counted, by where they begin.
#[derive(Default)]
pub struct Uncounted {
    /// Those of which nothing was: they have only what counted code tells of them.
    pub whole: Vec<(FileId, u32)>,
    pub in_part: Vec<(FileId, u32)>,
}

/// The counts of the lines that code tells of, and of those that follow from the source. What is not
/// known is at least 0.
pub fn counts(
    sources: &SourceFlows,
    evidence: &Evidence,
    uncounted: &Uncounted,
) -> HashMap<FileId, BTreeMap<u32, Count>> {
    let inlined = inlined(evidence);
    let by_rows = |(file, found): (&FileId, &FileEvidence)| (*file, by_rows(found, &inlined));
    let mut counts: HashMap<FileId, BTreeMap<u32, Count>> = evidence.iter().map(by_rows).collect();
    let sources = as_compiled(sources, evidence);
    let graph = CallGraph::new(&sources, evidence);
    let executed = graph.executed();
    let holders = |of: &[(FileId, u32)]| -> HashSet<At> {
        let holders = of.iter().map(|(file, line)| graph.holder(*file, *line));
        holders.flatten().collect()
    };
    let counted_in_part = holders(&uncounted.in_part);
    let uncounted = holders(&uncounted.whole);
    let mut solved_blocks: HashMap<At, Vec<Bounds>> = HashMap::new();
    for at in graph.callers_first() {
        let function = graph.function(at);
        let (Some(found), Some(known)) = (evidence.get(&at.0), counts.get_mut(&at.0)) else {
            continue;
        };
        // Where not all was counted, what was not may have been inlined.
        let mut told = found.places.range(Place::all_of(function));
        let is_counted = uncounted.is_empty() || !uncounted.contains(&at) && told.next().is_some();
        let is_followed = is_counted && !function.blocks.is_empty() && graph.is_used(at);
        let solved = is_followed.then(|| {
            let entry = entry(&graph, at, &solved_blocks);
            let executed = executed.get(&at).map_or(&[][..], Vec::as_slice);
            solve(found, function, entry, executed)
        });
        match solved.flatten() {
            Some(solved) => {
                let mut lines = solved.lines;
                if counted_in_part.contains(&at) {
                    // Lines without code that say nothing were not asked for.
                    let says_nothing = |it: &Bounds| it.low == 0 && it.exact().is_none();
                    lines.retain(|line, it| known.contains_key(line) || !says_nothing(it));
                }
                let lines = lines.into_iter();
                known.extend(lines.map(|(line, bounds)| (line, count(bounds))));
                solved_blocks.insert(at, solved.blocks);
            }
            // Rows alone are no promise.
            None => {
                let lines = known.range_mut(function.line..=function.last_line);
                lines.for_each(|(_, it)| *it = Count::AtLeast(it.value().unwrap_or(0)));
            }
        }
    }
    counts
}

fn count(bounds: Bounds) -> Count {
    match bounds.exact() {
        Some(value) => Count::Exact(value),
        None => Count::AtLeast(bounds.low),
    }
}

/// The functions of which there are copies in others.
fn inlined(evidence: &Evidence) -> HashSet<(FileId, u32)> {
    let entered = evidence
        .iter()
        .flat_map(|(file, found)| found.entered.iter().map(|it| (*file, it)));
    let copies = entered.filter(|(_, it)| it.call.is_some());
    copies.map(|(file, it)| (file, it.line)).collect()
}

/// What rows say by themselves.
fn by_rows(evidence: &FileEvidence, inlined: &HashSet<(FileId, u32)>) -> BTreeMap<u32, Count> {
    let mut lines: BTreeMap<u32, Vec<Told>> = BTreeMap::new();
    for (place, told) in &evidence.places {
        lines.entry(place.line).or_default().push(*told);
    }
    // Rows alone are a promise only where each entry of a function comes by, or nothing does; and a
    // copy of it may have kept none.
    let is_sure = |told: &Told| {
        let is_open = told.is_packed || told.is_partial || told.is_adrift;
        let is_alone = told.once_of.is_some_and(|it| !inlined.contains(&it));
        told.pieces == 1 && is_alone && !is_open
    };
    let count = |places: Vec<Told>| line_by_rows(&places, &is_sure);
    lines
        .into_iter()
        .map(|(line, places)| (line, count(places)))
        .collect()
}

/// How often a line ran, says what is on it.
fn line_by_rows(places: &[Told], is_sure: &dyn Fn(&Told) -> bool) -> Count {
    let least = places.iter().map(|it| it.sure).max().unwrap_or(0);
    let is_same = |told: &Told| told.sum == least && is_sure(told);
    // That something never ran takes two to say: it may have been merged into other code.
    let is_enough = places.len() > 1 || least > 0;
    match is_enough && places.iter().all(is_same) {
        true => Count::Exact(least),
        false => Count::AtLeast(least),
    }
}
