//! Where may control come back to, if all of this has been running for a while?
//!
//! Whoever comes to a program in the middle of its work has not seen what leads where, and frames on
//! its stacks lead back into functions that nobody may enter again. So everything is looked at.

use std::collections::{BTreeMap, BTreeSet};

use crate::functions::Part;
use crate::image::Image;
use crate::outline::{Facts, budget};
use crate::routine;
use crate::spans::Spans;

/// How often one part may tell of another, which tells of another, and so on.
const ROUNDS: usize = 32;

/// What is found where control has been followed through all code.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// Where control may come back to, by address: behind calls, and where exceptions land. Parts
    /// that cannot be counted are left out, and those that nothing leads to.
    pub return_points: Vec<u64>,
    /// Where control comes to parts of which only a guess tells, or to what is not reached from a
    /// part's start; by address.
    pub arrivals: Vec<u64>,
}

/// Follows control through all parts; makes those known that only calls and jumps tell of.
pub fn explore(facts: &Facts, spans: &mut Spans) -> Explored {
    let image = facts.image();
    let mut targets = BTreeSet::new();
    let mut return_points = Vec::new();
    // Those that are not reached from their start alone, with where control comes back to in them.
    let mut open: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for index in 0..spans.starts().len() {
        spans.forget();
        match routine::plainly_reached(facts, spans, &image, index) {
            Some((part, gs)) => {
                return_points.extend(returns(facts, &image, &part, &gs));
                targets.extend(routine::led_to(facts, spans, &image, &part));
            }
            None => {
                open.extend(spans.range(index).map(|it| (it.start, Vec::new())));
            }
        }
    }
    for _ in 0..ROUNDS {
        let unknown: Vec<u64> = targets.iter().copied().collect();
        let unknown = unknown.into_iter().filter(|at| spans.add(&image, *at));
        open.extend(unknown.map(|at| (at, Vec::new())));
        let before = targets.len();
        for (start, returns_of) in &mut open {
            spans.forget();
            let Some(index) = spans.index_at(*start) else {
                continue;
            };
            let range = spans.range(index).unwrap_or(*start..*start);
            let asked: Vec<u64> = targets.range(range).copied().collect();
            if let Some((part, gs)) = routine::reached_from(facts, spans, &image, index, &asked) {
                *returns_of = returns(facts, &image, &part, &gs);
                targets.extend(routine::led_to(facts, spans, &image, &part));
            }
        }
        if targets.len() == before {
            break;
        }
    }
    let mut arrivals = Vec::new();
    for (start, returns_of) in open {
        return_points.extend(returns_of);
        let range = spans.index_at(start).and_then(|it| spans.range(it));
        arrivals.extend(targets.range(range.unwrap_or(start..start)));
    }
    return_points.sort_unstable();
    return_points.dedup();
    Explored {
        return_points,
        arrivals,
    }
}

/// Where control may come back to in a part.
fn returns(facts: &Facts, image: &Image<'_>, part: &Part, gs: &[u64]) -> Vec<u64> {
    if routine::trouble(facts, image, part, gs).is_some() {
        return Vec::new();
    }
    let pairs = part.ops.windows(2);
    let mut found: Vec<u64> = pairs
        .filter_map(|pair| match pair {
            [call, next] if call.flow.is_call() && call.end() == next.at => Some(next.at),
            _ => None,
        })
        .collect();
    let pads = facts.pads(image, &part.range, &mut budget(image));
    found.extend(pads.into_iter().filter(|pad| part.has_op(*pad)));
    found
}
