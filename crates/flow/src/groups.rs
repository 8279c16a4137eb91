//! Which edges leave each block, and which pipes meet at each joint?

use headcount_model::{BlockId, Edge, FlowGraph, Node};

/// Numbers of items by group; in each group, in ascending order.
#[derive(Debug)]
pub struct Groups {
    starts: Vec<usize>,
    items: Vec<usize>,
}

impl Groups {
    /// Groups the edges by the block they leave. Edges that name a block which is not there are in no
    /// group.
    pub fn leaving(graph: &FlowGraph) -> Self {
        Self::by_end(graph, |edge| (edge.from, edge.to))
    }

    /// Groups the edges by the block they reach, likewise.
    pub fn reaching(graph: &FlowGraph) -> Self {
        Self::by_end(graph, |edge| (edge.to, edge.from))
    }

    fn by_end(graph: &FlowGraph, ends: fn(&Edge) -> (Node, Node)) -> Self {
        let blocks = graph.blocks as usize;
        let group = |edge: &Edge| match ends(edge) {
            (Node::Block(group), other) if group.index() < blocks && exists(graph, other) => {
                Some(group.index())
            }
            _ => None,
        };
        Self::new(blocks, graph.edges.iter().map(group))
    }

    /// Takes the group of each item; `None` is in no group.
    pub fn new(groups: usize, of_items: impl Iterator<Item = Option<usize>> + Clone) -> Self {
        let mut starts = vec![0; groups + 1];
        for group in of_items.clone().flatten() {
            starts[group + 1] += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[groups]];
        for (item, group) in of_items.enumerate() {
            if let Some(group) = group {
                items[next[group]] = item;
                next[group] += 1;
            }
        }
        Self { starts, items }
    }

    /// The items of one group.
    pub fn of(&self, group: usize) -> &[usize] {
        &self.items[self.starts[group]..self.starts[group + 1]]
    }
}

/// Whether the graph has this node.
pub fn exists(graph: &FlowGraph, node: Node) -> bool {
    match node {
        Node::Outside => true,
        Node::Block(BlockId(block)) => block < graph.blocks,
    }
}
