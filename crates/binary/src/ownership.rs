//! Which pieces of code are one function?
//!
//! Compilers move the unlikely part of a function away: GCC calls it `f.cold`, BOLT has `f.warm`, too,
//! and in a stripped file it has no name at all. Such a part is reached by jumps from one function
//! only.

use crate::functions::{Origin, Part};
use crate::symbols::Symbols;

/// The parts that may belong to another: nobody names them as functions, nobody calls them.
/// `called` and `headers` are in order.
pub fn loose(parts: &[Part], symbols: &Symbols, called: &[u64], headers: &[u64]) -> Vec<bool> {
    parts
        .iter()
        .map(|part| {
            let at = part.range.start;
            if called.binary_search(&at).is_ok() || headers.binary_search(&at).is_ok() {
                return false;
            }
            match part.origin {
                Origin::Symbol => symbols.functions_at(at).iter().all(|it| is_cold(&it.name)),
                Origin::Frame => true,
                _ => false,
            }
        })
        .collect()
}

pub fn is_cold(name: &str) -> bool {
    name.split('.')
        .skip(1)
        .any(|it| it == "cold" || it == "warm")
}

/// The part that each part belongs to; a function's first part belongs to itself.
///
/// `ways` are the jumps between different parts, and the landing pads: (from, to).
pub fn owners(loose: &[bool], ways: &[(usize, usize)]) -> Vec<usize> {
    let mut sources: Vec<(usize, usize)> = ways.iter().map(|(from, to)| (*to, *from)).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut owners: Vec<usize> = (0..loose.len()).collect();
    // A part of a part of a function is rare; one of that does not occur.
    for _ in 0..3 {
        let mut changed = false;
        for group in sources.chunk_by(|one, other| one.0 == other.0) {
            let Some((part, _)) = group.first() else {
                continue;
            };
            if loose.get(*part) != Some(&true) || owners.get(*part) != Some(part) {
                continue;
            }
            let mut from: Vec<usize> = group
                .iter()
                .map(|(_, from)| root(&owners, *from))
                .filter(|from| from != part)
                .collect();
            from.dedup();
            from.sort_unstable();
            from.dedup();
            if let ([owner], Some(place)) = (from.as_slice(), owners.get_mut(*part)) {
                *place = *owner;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    (0..owners.len()).map(|part| root(&owners, part)).collect()
}

fn root(owners: &[usize], part: usize) -> usize {
    let mut at = part;
    // Two loose parts that only reach each other own each other.
    for _ in 0..8 {
        match owners.get(at) {
            Some(next) if *next != at => at = *next,
            _ => break,
        }
    }
    at
}
