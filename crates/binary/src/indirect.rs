//! Where do the indirect jumps of this module lead?

use std::collections::BTreeMap;
use std::ops::Range;

use crate::functions::{Part, part_at};
use crate::image::Image;
use crate::jump_table::{Tables, Targets};
use crate::sweep::{Flow, instructions};

/// What is known of the indirect jumps.
#[derive(Debug, Default)]
pub struct Indirect {
    /// The jumps that are resolved, with their targets.
    pub targets: BTreeMap<u64, Vec<u64>>,
    /// The tables that explain all jumps of the code which uses them, by address.
    pub tables: Vec<Range<u64>>,
}

/// Looks at every indirect jump. `loose` are the parts that may belong to any function.
pub fn indirect(image: &Image<'_>, parts: &[Part], loose: &[bool]) -> Indirect {
    let mut found = Indirect::default();
    for part in parts {
        let jumps: Vec<usize> = (0..)
            .zip(&part.ops)
            .filter(|(_, op)| op.flow == Flow::IndirectJump(None))
            .map(|(index, _)| index)
            .collect();
        if jumps.is_empty() || part.broken.is_some() {
            continue;
        }
        let code = instructions(image.get(&part.range).unwrap_or_default(), part.range.start);
        let accept = |to: u64| {
            if part.range.contains(&to) {
                return to > part.range.start && part.has_op(to);
            }
            part_at(parts, to).is_some_and(|other| {
                loose.get(other) == Some(&true) && parts.get(other).is_some_and(|it| it.has_op(to))
            })
        };
        let tables = Tables::new(image, &code, part.range.end, &accept);
        let mut places = Vec::new();
        let mut all = true;
        for jump in jumps {
            let Some(op) = part.ops.get(jump) else {
                continue;
            };
            match tables.targets(jump) {
                Targets::Known(targets, tables) => {
                    found.targets.insert(op.at, targets);
                    places.extend(tables);
                }
                Targets::Unknown => all = false,
            }
        }
        if all {
            found.tables.extend(places);
        }
    }
    found.tables.sort_by_key(|table| table.start);
    found
}

impl Indirect {
    /// Whether an address lies in a table whose every use is understood.
    pub fn explains(&self, at: u64) -> bool {
        let after = self.tables.partition_point(|table| table.start <= at);
        let before = self.tables.get(..after).unwrap_or_default();
        // Tables seldom overlap, but the longer of two that begin alike may stand first.
        before.iter().rev().take(4).any(|table| table.contains(&at))
    }
}
