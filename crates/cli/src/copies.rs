//! What do the counters in the copies of routines say about the functions of a module?
//!
//! The two cut code into blocks in ways of their own: a function's block may begin in the midst of
//! a routine's, or span several, and a function may be made of several routines. About a single
//! instruction they cannot disagree, so all goes by way of instructions: how often each ran, and
//! how often control went from one to another (`steps.rs`). What the copies do not see, such as
//! which call came back, follows from that, or stays unknown (`edges.rs`).

mod edges;
mod steps;
#[cfg(test)]
mod tests;

use std::ops::Range;

use headcount_model::{
    Block, EdgeKind, FlowGraph, Function, FunctionCounts, LinkAddr, Module, ModuleCounts, Plan,
    Readings, RoutineBlock, Shift, Span,
};

use edges::Through;
use steps::{Found, Step, Steps};
pub use steps::{Stretch, stretches};

/// What the counters of a routine's copy said. A routine that was copied several times, with other
/// blocks each time, has several.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Where the routine begins.
    pub start: LinkAddr,
    /// Its blocks, as the copy has them: those of `graph`, in the same order.
    pub blocks: Vec<RoutineBlock>,
    /// What may have run in it and is not counted: it looks like data, and was left alone. From
    /// `start`.
    pub doubtful: Vec<Range<u32>>,
    /// How control moves between them.
    pub graph: FlowGraph,
    /// Where the counters are.
    pub plan: Plan,
    /// What they said.
    pub readings: Readings,
    /// Threads that came (positive) or went (negative) by no edge, and were then about to run the
    /// instruction at this address.
    pub visits: Vec<(LinkAddr, i64)>,
}

impl Reading {
    /// Did anything run?
    pub fn has_run(&self) -> bool {
        self.readings.0.iter().any(|it| *it != 0) || !self.visits.is_empty()
    }
}

/// The counts of every function of a module, and what to tell the user about them.
///
/// `is_watched` says whether a function that begins at an address was under watch. If it was, what
/// no routine was copied of did not run; if it was not, none of it was counted. Nor was what is
/// doubtful in a routine.
pub fn counts(
    module: &Module,
    readings: &[Reading],
    is_watched: &dyn Fn(LinkAddr) -> bool,
) -> (ModuleCounts, Vec<String>) {
    let (steps, refused) = Steps::new(readings);
    let functions = module.functions.iter();
    let functions = functions.map(|function| match is_watched(function.address) {
        true => count_function(function, &steps),
        false => uncounted(function),
    });
    let counts = ModuleCounts {
        build_id: module.build_id.clone(),
        functions: functions.collect(),
    };
    (counts, notes(module, &refused))
}

fn uncounted(function: &Function) -> FunctionCounts {
    FunctionCounts {
        blocks: vec![None; function.blocks.len()],
        edges: vec![None; function.edges.len()],
        ..FunctionCounts::default()
    }
}

fn count_function(function: &Function, steps: &Steps<'_>) -> FunctionCounts {
    let mut counts = FunctionCounts::default();
    let mut walks = Vec::with_capacity(function.blocks.len());
    for (number, block) in (0..).zip(&function.blocks) {
        let walk = walk(block, number, steps, &mut counts.shifts);
        counts.blocks.push(walk.map(|it| it.first));
        walks.push(walk);
    }
    counts.edges = count_edges(function, &walks, steps);
    counts
}

/// What was seen of a block of a function, from its first instruction to its last.
#[derive(Clone, Copy, Debug)]
struct Walk {
    /// How often the first instruction ran.
    first: u64,
    /// The last one.
    last: Step,
    /// Where the last one ends.
    end: LinkAddr,
}

/// Follows a block of a function through the routines. `None`: not all of it was counted.
fn walk(block: &Block, number: u32, steps: &Steps<'_>, shifts: &mut Vec<Shift>) -> Option<Walk> {
    let before = shifts.len();
    let walk = try_walk(block, number, steps, shifts);
    if walk.is_none() {
        shifts.truncate(before);
    }
    walk
}

fn try_walk(
    block: &Block,
    number: u32,
    steps: &Steps<'_>,
    shifts: &mut Vec<Shift>,
) -> Option<Walk> {
    let mut walk: Option<Walk> = None;
    let mut index = 0;
    for span in &block.code {
        let range = range(span);
        if steps.is_unknown(&range) {
            if steps.left_alone(span.address) {
                return None;
            }
            if block.code.len() == 1 {
                // Most code never runs; no need to take it apart.
                break;
            }
        }
        let mut at = span.address;
        while at < range.end {
            let Found { number: more, last } = match steps.from(at, range.end) {
                Some(found) => found,
                None => Found {
                    number: 1,
                    last: Step::never(at, headcount_x86::length_at(span, at)?),
                },
            };
            at = LinkAddr(last.address.0.saturating_add(u64::from(last.length)));
            let count = last.count?;
            if let Some(before) = walk.and_then(|walk| walk.last.count)
                && before != count
            {
                shifts.push(Shift {
                    block: number,
                    from: index,
                    delta: i64::try_from(i128::from(count) - i128::from(before)).ok()?,
                });
            }
            let first = walk.map_or(count, |walk| walk.first);
            let end = at;
            walk = Some(Walk { first, last, end });
            index += more;
        }
        if at != range.end {
            return None;
        }
    }
    Some(walk.unwrap_or(Walk {
        first: 0,
        last: Step::never(block.address, 0),
        end: block.address,
    }))
}

fn range(span: &Span) -> Range<LinkAddr> {
    let end = span.address.0.saturating_add(span.bytes.len() as u64);
    span.address..LinkAddr(end)
}

fn count_edges(function: &Function, walks: &[Option<Walk>], steps: &Steps<'_>) -> Vec<Option<u64>> {
    let mut calls = vec![false; walks.len()];
    for edge in &function.edges {
        if let (EdgeKind::Lost, Some(from)) = (edge.kind, edge.from) {
            calls[from as usize] = true;
        }
    }
    let seen = function.edges.iter().map(|edge| {
        let (from, to) = (edge.from? as usize, edge.to? as usize);
        let from = walks[from].filter(|_| !calls[from])?;
        steps.moves(&from.last, from.end, edge.kind, function.blocks[to].address)
    });
    let mut counts: Vec<Option<u64>> = seen.collect();
    let through: Vec<Option<Through>> = walks
        .iter()
        .zip(&function.blocks)
        .map(|(walk, block)| {
            let walk = walk.as_ref()?;
            Some(Through {
                came: i128::from(walk.first) - i128::from(steps.visits_at(block.address)),
                went: i128::from(walk.last.count?),
            })
        })
        .collect();
    edges::derive(&function.edges, &through, &mut counts);
    counts
}

/// Sentences about routines that were not counted.
fn notes(module: &Module, refused: &[(LinkAddr, String)]) -> Vec<String> {
    if refused.is_empty() {
        return Vec::new();
    }
    let mut owners: Vec<(Range<LinkAddr>, &str)> = Vec::new();
    for function in &module.functions {
        for span in function.blocks.iter().flat_map(|block| &block.code) {
            owners.push((range(span), &function.name));
        }
    }
    owners.sort_by_key(|(range, _)| range.start);
    let note = |(at, reason): &(LinkAddr, String)| {
        let next = owners.partition_point(|(range, _)| range.start <= *at);
        let owner = next.checked_sub(1).and_then(|index| owners.get(index));
        match owner.filter(|(range, _)| range.contains(at)) {
            Some((_, name)) => {
                let name = headcount_report::demangle(name);
                format!("{name}: its code at {at} is not counted: {reason}")
            }
            None => format!("the code at {at} is not counted: {reason}"),
        }
    };
    let mut notes: Vec<String> = refused.iter().map(note).collect();
    notes.sort();
    notes.dedup();
    notes
}
