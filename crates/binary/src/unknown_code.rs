//! May control come to an instruction that is in no known part?
//!
//! What looks like one is most often in a table among the code.

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions};

use crate::image::Image;
use crate::sweep::{self, Flow};

/// Does control that comes to one of these addresses get to `at`, through code in a range? Where a
/// jump leads that nobody sees through, it may.
pub fn leads_to(
    image: &Image<'_>,
    from: impl Iterator<Item = u64>,
    range: &Range<u64>,
    at: u64,
) -> bool {
    let mut waiting: Vec<u64> = from.collect();
    let mut known = HashSet::new();
    while let Some(here) = waiting.pop() {
        if here == at {
            return true;
        }
        if !range.contains(&here) || !known.insert(here) {
            continue;
        }
        let Some((flow, next)) = step(image, here) else {
            continue;
        };
        if matches!(flow, Flow::IndirectJump(None)) {
            return true;
        }
        waiting.extend(flow.jump_target());
        waiting.extend(flow.goes_on().then_some(next));
    }
    false
}

/// What the instruction at an address does, and where the next one is.
fn step(image: &Image<'_>, at: u64) -> Option<(Flow, u64)> {
    let instruction = Decoder::with_ip(64, image.from(at)?, at, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then(|| (sweep::flow(&instruction), instruction.next_ip()))
}
