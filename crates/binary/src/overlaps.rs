//! Instructions that share their end with a longer one.
//!
//! The C library jumps over the `lock` in front of an instruction when a program has one thread
//! only: `je 1f; lock; 1: cmpxchg ...`. Both are instructions, and both are counted.

use crate::functions::{self, Origin, Part};
use crate::image::Image;
use crate::sweep::{Op, sweep};

/// Adds instructions that a jump reaches in the midst of another, where both end at the same place.
pub fn add(image: &Image<'_>, parts: &mut [Part]) {
    // What may be data proves nothing.
    let known = parts.iter().filter(|part| part.origin != Origin::Rest);
    let mut targets: Vec<u64> = known
        .flat_map(|part| &part.ops)
        .filter_map(|op| op.flow.jump_target())
        .collect();
    targets.sort_unstable();
    targets.dedup();
    for at in targets {
        if let Some(part) = functions::part_at(parts, at).and_then(|index| parts.get_mut(index)) {
            add_to(image, part, at);
        }
    }
}

/// Adds the instruction that a jump to `at` reaches in the midst of another of this part.
pub fn add_to(image: &Image<'_>, part: &mut Part, at: u64) {
    let place = part.ops.partition_point(|op| op.at < at);
    let around = place.checked_sub(1).and_then(|index| part.ops.get(index));
    let Some(around) = around.filter(|op| op.end() > at && !part.has_op(at)) else {
        return;
    };
    let bytes = image.get(&(at..around.end())).unwrap_or_default();
    let (ops, broken) = sweep(bytes, at);
    if let ([op], None) = (ops.as_slice(), broken) {
        part.ops.insert(place, *op);
    }
}

/// Where blocks begin because of them: at the shorter instruction, and behind both.
pub fn leaders<'a>(parts: impl IntoIterator<Item = &'a Part>) -> impl Iterator<Item = u64> {
    let pairs = parts.into_iter().flat_map(|part| part.ops.windows(2));
    pairs.flat_map(|pair| match pair {
        [longer, shorter] if overlap(longer, shorter) => vec![shorter.at, shorter.end()],
        _ => Vec::new(),
    })
}

fn overlap(longer: &Op, shorter: &Op) -> bool {
    shorter.at < longer.end()
}
