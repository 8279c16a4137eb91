//! Source text with a row under each line for every block that begins in it: `a ? b : c` and
//! `p && q` on one line, told apart.

use std::collections::BTreeMap;

use headcount_model::{BlockKind, Counted, FileId, Function, FunctionCounts};

use super::QUIET;
use super::listing::{Excerpt, Page, View, expanded_width};
use crate::count::{Count, blocks};
use crate::lines::LineCount;

/// A block of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnCount {
    /// The byte where it begins, from 1.
    pub column: u32,
    /// What it is.
    pub kind: &'static str,
    /// How often it ran.
    pub count: Count,
}

/// The blocks of source text in one file, by line, in the order of their columns. Where several
/// functions have the same (a header's, in several texts), they are added up.
pub fn column_counts(counted: &[Counted], file: &str) -> BTreeMap<u32, Vec<ColumnCount>> {
    let mut lines: BTreeMap<u32, Vec<ColumnCount>> = BTreeMap::new();
    for it in counted {
        let is_file = |id: FileId| it.module.files.get(id.index()).is_some_and(|it| it == file);
        for (function, counts) in it.module.functions.iter().zip(&it.functions) {
            for ((line, column, kind), count) in blocks_of(function, counts, is_file) {
                let line = lines.entry(line).or_default();
                let same = |it: &&mut ColumnCount| (it.column, it.kind) == (column, kind.name());
                match line.iter_mut().find(same) {
                    Some(known) => known.count = known.count.plus(count).unwrap_or(known.count),
                    None => line.push(ColumnCount {
                        column,
                        kind: kind.name(),
                        count,
                    }),
                }
            }
        }
    }
    for line in lines.values_mut() {
        line.sort_by_key(|it| it.column);
    }
    lines
}

/// Those of a function in some file, by line, column and kind. Of operations that begin at one place, one
/// inside the other, the highest count is meant.
fn blocks_of(
    function: &Function,
    counts: &FunctionCounts,
    is_file: impl Fn(FileId) -> bool,
) -> BTreeMap<(u32, u32, BlockKind), Count> {
    let mut found: BTreeMap<_, Count> = BTreeMap::new();
    for block in blocks(function, counts) {
        // Of some operations, only the line is known.
        let place = block.block.place.filter(|it| it.column > 0);
        let Some(at) = place.filter(|it| is_file(it.file)) else {
            continue;
        };
        let count = block.count();
        let known = found.entry((at.line, at.column, at.kind));
        known
            .and_modify(|known| {
                *known = match at.kind {
                    BlockKind::Operation => known.max(count),
                    _ => known.plus(count).unwrap_or(*known),
                };
            })
            .or_insert(count);
    }
    found
}

/// The lines of one file, or some excerpts of it, with the blocks of each line below it.
pub fn columns(
    lines: &[String],
    counts: &BTreeMap<u32, LineCount>,
    blocks: &BTreeMap<u32, Vec<ColumnCount>>,
    excerpts: &[Excerpt],
) -> String {
    let page = Page::new(lines, counts, &View::default());
    let below = |number: u32| {
        let line = lines.get(number as usize - 1);
        let blocks = blocks.get(&number).into_iter().flatten();
        blocks
            .map(|it| row(&page, line.map_or("", String::as_str), it))
            .collect()
    };
    page.show(excerpts, |_, text| text.to_owned(), below)
}

/// The row of a block, under its column.
fn row(page: &Page<'_>, line: &str, block: &ColumnCount) -> String {
    let before = line.get(..block.column as usize - 1).unwrap_or(line);
    let place = " ".repeat(page.before_text() + expanded_width(before));
    let ColumnCount { kind, count, .. } = block;
    format!("{QUIET}{place}^ {count} {kind}{QUIET:#}\n")
}
