//! Where do the indirect jumps of this module lead?

use std::collections::BTreeMap;
use std::ops::Range;

use iced_x86::Instruction;

use crate::functions::{Part, part_at};
use crate::image::Image;
use crate::jump_table::{Tables, Targets};
use crate::mentions::reckons_with_own_code;
use crate::sweep::{Flow, instructions};

/// What is known of the indirect jumps.
#[derive(Debug, Default)]
pub struct Indirect {
    /// The jumps that are resolved, with their targets.
    pub targets: BTreeMap<u64, Vec<u64>>,
    /// The tables that explain all jumps of the code which uses them, by address.
    pub tables: Vec<Range<u64>>,
}

/// What is known of the indirect jumps of one part.
#[derive(Debug, Default)]
pub struct PartJumps {
    /// The jumps that are resolved, with their targets.
    pub targets: Vec<(u64, Vec<u64>)>,
    /// The tables that hold the targets.
    pub tables: Vec<Range<u64>>,
    /// Whether no bound tells where some of these tables end.
    pub some_may_go_on: bool,
    /// Whether there are jumps that leave the function, as calls without return.
    pub some_leave: bool,
    /// Whether there are jumps that nothing is known of.
    pub some_unknown: bool,
    /// Whether some of these reckon where to jump, so that it may be anywhere in the function.
    pub some_reckoned: bool,
}

impl PartJumps {
    /// The tables, if they explain every indirect jump.
    pub fn understood(&self) -> &[Range<u64>] {
        match self.some_leave || self.some_unknown {
            true => &[],
            false => &self.tables,
        }
    }
}

/// Looks at every indirect jump. `loose` are the parts that may belong to any function.
pub fn indirect(image: &Image<'_>, parts: &[Part], loose: &[bool]) -> Indirect {
    let mut found = Indirect::default();
    for part in parts {
        let accept = |to: u64| {
            if part.range.contains(&to) {
                return to > part.range.start && part.has_op(to);
            }
            part_at(parts, to).is_some_and(|other| {
                loose.get(other) == Some(&true) && parts.get(other).is_some_and(|it| it.has_op(to))
            })
        };
        let jumps = of_part(image, part, &accept);
        found.tables.extend_from_slice(jumps.understood());
        found.targets.extend(jumps.targets);
    }
    found.tables.sort_by_key(|table| table.start);
    found
}

/// Looks at the indirect jumps of one part. `accept` tells whether one may lead to an address.
pub fn of_part(image: &Image<'_>, part: &Part, accept: &dyn Fn(u64) -> bool) -> PartJumps {
    let mut found = PartJumps::default();
    let jumps = part.ops.iter();
    let mut jumps = jumps
        .filter(|op| op.flow == Flow::IndirectJump(None))
        .peekable();
    if jumps.peek().is_none() || part.broken.is_some() {
        return found;
    }
    let code = code(image, part);
    let tables = Tables::new(image, &code, part.range.end, accept);
    for op in jumps {
        // The part may have more instructions than follow each other: some share their end.
        let jump = code.binary_search_by_key(&op.at, Instruction::ip);
        match jump.map_or(Targets::Unknown, |jump| tables.targets(jump)) {
            Targets::Known(listed) => {
                found.targets.push((op.at, listed.targets));
                found.tables.extend(listed.tables);
                found.some_may_go_on |= listed.may_go_on;
            }
            Targets::Elsewhere => found.some_leave = true,
            Targets::Pointer => found.some_unknown = true,
            Targets::Unknown => {
                found.some_unknown = true;
                found.some_reckoned = true;
            }
        }
    }
    found.some_reckoned |= found.some_unknown && reckons_with_own_code(image, part);
    found
}

/// The instructions of a part, without those that lie inside of another.
fn code(image: &Image<'_>, part: &Part) -> Vec<Instruction> {
    let mut code = Vec::with_capacity(part.ops.len());
    let mut ops = part.ops.iter().peekable();
    while let Some(first) = ops.next() {
        // Those that follow each other are decoded at once.
        let mut end = first.end();
        while let Some(op) = ops.next_if(|op| op.at <= end) {
            end = end.max(op.end());
        }
        let bytes = image.get(&(first.at..end)).unwrap_or_default();
        code.extend(instructions(bytes, first.at));
    }
    code
}

impl Indirect {
    /// Knows nothing but these tables.
    pub fn explained_by(tables: &[Range<u64>]) -> Self {
        let mut tables = tables.to_vec();
        tables.sort_by_key(|table| table.start);
        Self {
            tables,
            ..Self::default()
        }
    }

    /// Whether an address lies in a table whose every use is understood.
    pub fn explains(&self, at: u64) -> bool {
        let after = self.tables.partition_point(|table| table.start <= at);
        let before = self.tables.get(..after).unwrap_or_default();
        // Tables seldom overlap, but the longer of two that begin alike may stand first.
        before.iter().rev().take(4).any(|table| table.contains(&at))
    }
}
