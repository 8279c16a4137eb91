//! Lines of a program whose source is not there: by the table that the program has of them.

use std::collections::BTreeMap;

use headcount_icon::{Icode, Linked};

use crate::{Line, SourceUnit};

/// A procedure. Each of its lines has the count of the first instruction that the table gives to it.
pub(super) fn unit(icode: &Icode, linked: &Linked, of: &dyn Fn(u64) -> u64) -> SourceUnit {
    let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
    for place in icode.places(linked.entry, linked.end) {
        let mut code = linked.instructions.iter();
        if let Some(first) = code.find(|it| it.offset >= place.offset) {
            lines.entry(place.line).or_insert_with(|| of(first.offset));
        }
    }
    let line = |(line, count): (&u32, &u64)| Line {
        line: *line,
        count: *count,
        is_exact: true,
    };
    SourceUnit {
        file: String::from_utf8_lossy(&linked.file).into_owned(),
        name: String::from_utf8_lossy(&linked.name).into_owned(),
        first_line: lines.keys().next().copied().unwrap_or(1),
        calls: of(linked.entry),
        are_calls_exact: true,
        lines: lines.iter().map(line).collect(),
        tokens: Vec::new(),
    }
}
