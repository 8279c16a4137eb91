//! Branches: where control had a choice, and how often it went which way.

use crate::count::{Count, edges};
use headcount_model::{Block, EdgeKind, Function, FunctionCounts, LineRun};
use std::collections::BTreeMap;

/// A block that control leaves in more than one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Index of the block in its function.
    pub block: u32,
    /// The ways, in the order of the function's edges.
    pub ways: Vec<Way>,
}

/// One way out of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Index of the block it leads to; `None` is outside of the function.
    pub to: Option<u32>,
    /// Why control goes there.
    pub kind: EdgeKind,
    /// How often it did.
    pub count: Count,
}

/// The branches of a function, by block. A call that may not come back is none: nothing in the
/// function decides that.
pub fn branches(function: &Function, counts: &FunctionCounts) -> Vec<Branch> {
    let mut ways: BTreeMap<u32, Vec<Way>> = BTreeMap::new();
    for (edge, count) in function.edges.iter().zip(edges(counts)) {
        let chosen = match edge.kind {
            EdgeKind::Fall | EdgeKind::Taken | EdgeKind::Jump | EdgeKind::Leave => edge.from,
            EdgeKind::Entry | EdgeKind::Arrival | EdgeKind::Lost => None,
        };
        if let Some(block) = chosen {
            ways.entry(block).or_default().push(Way {
                to: edge.to,
                kind: edge.kind,
                count,
            });
        }
    }
    let branch = |(block, ways)| Branch { block, ways };
    let all = ways.into_iter().filter(|(_, ways)| ways.len() > 1);
    all.map(branch).collect()
}

/// The line that a branch at the end of a block belongs to: that of the last instruction.
pub fn last_line(block: &Block) -> Option<&LineRun> {
    block.lines.last().filter(|run| run.line > 0)
}

impl Branch {
    /// How many of its ways were gone; `None` where a way was not counted.
    pub fn gone(&self) -> Option<usize> {
        let known = self.ways.iter().map(|way| way.count.value());
        let values = known.collect::<Option<Vec<u64>>>()?;
        Some(values.into_iter().filter(|value| *value > 0).count())
    }

    /// Of a branch with two ways, how often it jumped, and how often it was met.
    pub fn jumped(&self) -> Option<(u64, u64)> {
        let [a, b] = self.ways.as_slice() else {
            return None;
        };
        let (jump, fall) = match (a.kind, b.kind) {
            (EdgeKind::Fall, _) => (b, a),
            (_, EdgeKind::Fall) => (a, b),
            _ => return None,
        };
        let (Count::Exact(jump), Count::Exact(fall)) = (jump.count, fall.count) else {
            return None;
        };
        Some((jump, jump.checked_add(fall)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{FunctionEdge, LinkAddr};

    fn function(edges: &[(u32, Option<u32>, EdgeKind)]) -> Function {
        let edge = |&(from, to, kind): &(u32, Option<u32>, EdgeKind)| FunctionEdge {
            from: Some(from),
            to,
            kind,
        };
        Function {
            name: "f".into(),
            address: LinkAddr(0),
            source: None,
            blocks: Vec::new(),
            edges: edges.iter().map(edge).collect(),
            counters: 0,
            compiled: Default::default(),
        }
    }

    #[test]
    fn a_choice_is_a_branch_and_a_call_is_not() {
        let function = function(&[
            (0, Some(1), EdgeKind::Fall),
            (0, Some(2), EdgeKind::Taken),
            (1, Some(2), EdgeKind::Fall),
            (1, None, EdgeKind::Lost),
            (2, None, EdgeKind::Leave),
        ]);
        let counts = FunctionCounts::whole([], [3, 1, 3, 0, 4]);
        let all = branches(&function, &counts);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].block, 0);
        assert_eq!(all[0].jumped(), Some((1, 4)));
        assert_eq!(all[0].gone(), Some(2));
    }

    #[test]
    fn a_table_has_as_many_ways_as_targets_and_an_uncounted_way_is_not_zero() {
        let function = function(&[
            (0, Some(1), EdgeKind::Jump),
            (0, Some(2), EdgeKind::Jump),
            (0, Some(3), EdgeKind::Jump),
        ]);
        let mut counts = FunctionCounts::whole([], [3, 0, 1]);
        let of = |counts: &FunctionCounts| branches(&function, counts).remove(0);
        assert_eq!((of(&counts).gone(), of(&counts).jumped()), (Some(2), None));
        counts.edges[1] = None;
        assert_eq!(of(&counts).gone(), None);
    }
}
