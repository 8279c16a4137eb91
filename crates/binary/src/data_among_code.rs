//! Which bytes of these parts are data?
//!
//! Where control goes is followed as in `routine.rs`, but through all parts of a module at once, and
//! only those are changed that have bytes which no compiler makes.

use std::collections::BTreeSet;

use crate::functions::{Origin, Part};
use crate::image::Image;
use crate::indirect;
use crate::mentions::is_read;
use crate::reach::{Reach, Rest};
use crate::sweep::Flow;

/// How often one part may tell of another, which tells of another, and so on.
const ROUNDS: usize = 8;

/// Leaves data out of the instructions of parts. `written`: addresses that data holds or that have a
/// name. `fixed`: the module cannot be moved, so numbers in its code may be addresses.
pub fn leave_out(image: &Image<'_>, parts: &mut [Part], written: &[u64], fixed: bool) {
    let mixed: Vec<usize> = (0..parts.len())
        .filter(|it| is_mixed(image, &parts[*it]))
        .collect();
    if mixed.is_empty() {
        return;
    }
    let whole = parts.iter().enumerate();
    let whole = whole
        .filter(|(index, part)| mixed.binary_search(index).is_err() && part.origin != Origin::Rest);
    let mut targets: BTreeSet<u64> = written.iter().copied().collect();
    for (_, part) in whole {
        targets.extend(led_to(image, part, fixed));
    }
    let mut found: Vec<Option<Part>> = vec![None; mixed.len()];
    for _ in 0..ROUNDS {
        let before = targets.len();
        for (index, found) in mixed.iter().zip(&mut found) {
            *found = reached(image, &parts[*index], &targets, fixed);
            if let Some(part) = found {
                targets.extend(led_to(image, part, fixed));
            }
        }
        if targets.len() == before {
            break;
        }
    }
    for (index, found) in mixed.into_iter().zip(found) {
        if let Some(found) = found {
            parts[index] = found;
        }
    }
}

/// Does control not come to some of its bytes, and are they nothing that a compiler makes?
fn is_mixed(image: &Image<'_>, part: &Part) -> bool {
    if part.origin == Origin::Rest {
        return false;
    }
    let mut reach = Reach::new(image, part);
    let is_entered = reach.enter(part.range.start).is_ok();
    part.broken.is_some() || (is_entered && reach.rest().iter().any(|it| !it.is_code))
}

/// Where the instructions of a part lead, or may lead.
fn led_to(image: &Image<'_>, part: &Part, fixed: bool) -> Vec<u64> {
    let mut found = Vec::new();
    for (index, op) in part.ops.iter().enumerate() {
        let to = match op.flow {
            Flow::Jump(to) | Flow::Branch(to) | Flow::Call(to) => Some(to),
            Flow::Mentions(to) => Some(to).filter(|_| !is_read(image, &part.ops, index)),
            Flow::Number(to) => Some(to).filter(|_| fixed && !is_read(image, &part.ops, index)),
            _ => None,
        };
        found.extend(to.filter(|to| image.is_code(*to)));
    }
    found
}

/// The part with those instructions alone that control comes to; `None` if that makes no sense.
fn reached(image: &Image<'_>, part: &Part, targets: &BTreeSet<u64>, fixed: bool) -> Option<Part> {
    let mut reach = Reach::new(image, part);
    reach.enter(part.range.start).ok()?;
    for at in targets.range(part.range.clone()) {
        reach.enter_if_sound(*at);
    }
    let mut found = Part {
        broken: None,
        ..part.clone()
    };
    loop {
        found.ops = reach.ops();
        let rest = reach.rest();
        let steps: BTreeSet<u64> = rest.iter().flat_map(|it| &it.ops).map(|op| op.at).collect();
        let accept = |to: u64| {
            let is_step = || found.has_op(to) || steps.contains(&to);
            to > part.range.start && part.range.contains(&to) && is_step()
        };
        let jumps = indirect::of_part(image, &found, &accept);
        let jumped = jumps.targets.iter().flat_map(|(_, targets)| targets);
        let mut is_new = false;
        for to in jumped {
            is_new |= reach.enter(*to).is_ok_and(|new| !new.is_empty());
        }
        let own = led_to(image, &found, fixed);
        for to in own.into_iter().filter(|to| part.range.contains(to)) {
            is_new |= !reach.has(to) && reach.enter_if_sound(to);
        }
        if !is_new {
            let makes_sense = !jumps.some_reckoned || rest.iter().all(|it| it.is_code);
            return makes_sense.then(|| with_code(found, rest));
        }
    }
}

/// What looks like code stays.
fn with_code(mut part: Part, rest: Vec<Rest>) -> Part {
    for rest in rest.into_iter().filter(|it| it.is_code) {
        part.ops.extend(rest.ops);
    }
    part.ops.sort_unstable_by_key(|op| op.at);
    part
}
