//! How control moves through the source of a function, as its text says.

use crate::FlowGraph;

/// A function as it is written. Its calls come back, but for those that never do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFunction {
    /// Its name.
    pub name: String,
    /// The line of its name.
    pub line: u32,
    /// The line of the brace that ends it.
    pub last_line: u32,
    /// Its blocks; the first is where it is entered.
    pub blocks: Vec<SourceBlock>,
    /// How control moves between them.
    pub graph: FlowGraph,
    /// What is evaluated in which block: where it begins (line and column), and the block. Sorted;
    /// each holds up to the next.
    pub places: Vec<((u32, u32), u32)>,
    /// Where macros are used that stand for more than a value. Code there may be anything. Sorted.
    pub vague: Vec<(u32, u32)>,
}

/// A block of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceBlock {
    /// The lines on which its statements begin.
    pub lines: Vec<u32>,
}

impl SourceFunction {
    /// The block that evaluates what stands at a line and a column.
    pub fn block_at(&self, line: u32, column: u32) -> Option<u32> {
        let after = self.places.partition_point(|(at, _)| *at <= (line, column));
        let place = after.checked_sub(1).and_then(|it| self.places.get(it))?;
        Some(place.1)
    }
}
