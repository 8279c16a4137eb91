//! How control moves through the source of a function, as its text says.

use crate::{FileId, FlowGraph};
use std::collections::{BTreeMap, BTreeSet};

/// What reports on lines know of the sources and the code of a module beside its facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFlows {
    /// The functions of its source files, as far as somebody looked.
    pub functions: BTreeMap<FileId, Vec<SourceFunction>>,
    /// Its calls of functions of its own.
    pub calls: Vec<DirectCall>,
    /// Its blocks that compute with several values at once: function and block.
    pub packed: BTreeSet<(u32, u32)>,
}

/// An instruction that calls a function of the same module, or jumps to it for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectCall {
    /// Index of the function it is in.
    pub function: u32,
    /// Index of the block.
    pub block: u32,
    /// Index of the instruction in the block.
    pub instruction: u32,
    /// Index of the function it calls.
    pub callee: u32,
}

/// A function as it is written. Its calls come back, but for those that never do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFunction {
    /// Its name.
    pub name: String,
    /// The line of its name.
    pub line: u32,
    /// The line of the brace that ends it.
    pub last_line: u32,
    /// Its blocks; the first is where it is entered. None, if it cannot be followed.
    pub blocks: Vec<SourceBlock>,
    /// How control moves between them.
    pub graph: FlowGraph,
    /// What is evaluated in which block: where it begins (line and column), and the block. Sorted;
    /// each holds up to the next.
    pub places: Vec<((u32, u32), u32)>,
    /// What it calls by name.
    pub calls: Vec<SourceCall>,
    /// Where macros are used that stand for more than a value. Code there may be anything. Sorted.
    pub vague: Vec<(u32, u32)>,
    /// Where loops begin: the words `while`, `for` and `do`. Sorted.
    pub loops: Vec<(u32, u32)>,
}

/// A call by name, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceCall {
    /// What is called.
    pub name: String,
    /// Where: line and column.
    pub place: (u32, u32),
    /// The block it is in, if that is known.
    pub block: Option<u32>,
}

/// A block of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceBlock {
    /// The lines on which its statements begin.
    pub lines: Vec<u32>,
}

impl SourceFunction {
    /// Whether code at a place may be of several blocks.
    pub fn is_vague(&self, place: (u32, u32)) -> bool {
        self.vague.binary_search(&place).is_ok()
    }

    /// The blocks that evaluate something on a line.
    pub fn blocks_on(&self, line: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.places.partition_point(|(at, _)| at.0 < line);
        let end = self.places.partition_point(|(at, _)| at.0 <= line);
        self.places[first..end].iter().map(|it| it.1)
    }

    /// The block that evaluates what stands at a line and a column. Where compilers do not tell the
    /// column, it is the only one of the line.
    pub fn block_at(&self, line: u32, column: u32) -> Option<u32> {
        if column == 0 {
            let mut blocks = self.blocks_on(line);
            let block = blocks.next();
            return block.filter(|first| blocks.all(|it| it == *first));
        }
        let after = self.places.partition_point(|(at, _)| *at <= (line, column));
        let place = after.checked_sub(1).and_then(|it| self.places.get(it))?;
        Some(place.1)
    }
}
