//! Which edges leave each block?

use headcount_model::{BlockId, FlowGraph, Node};

/// Edge numbers grouped by one of their ends, in the order of the graph. Edges that name a block
/// which is not there are in no group.
#[derive(Debug)]
pub struct Groups {
    starts: Vec<usize>,
    edges: Vec<usize>,
}

impl Groups {
    /// Groups the edges by the block they leave.
    pub fn leaving(graph: &FlowGraph) -> Self {
        Self::new(graph, |edge| (edge.from, edge.to))
    }

    /// Groups the edges by the block they reach.
    pub fn reaching(graph: &FlowGraph) -> Self {
        Self::new(graph, |edge| (edge.to, edge.from))
    }

    fn new(graph: &FlowGraph, ends: fn(&headcount_model::Edge) -> (Node, Node)) -> Self {
        let blocks = graph.blocks as usize;
        let group = |edge| match ends(edge) {
            (Node::Block(group), other) if group.index() < blocks && exists(graph, other) => {
                Some(group.index())
            }
            _ => None,
        };
        let mut starts = vec![0; blocks + 1];
        for block in graph.edges.iter().filter_map(group) {
            starts[block + 1] += 1;
        }
        for block in 0..blocks {
            starts[block + 1] += starts[block];
        }
        let mut next = starts.clone();
        let mut edges = vec![0; starts[blocks]];
        for (number, edge) in graph.edges.iter().enumerate() {
            if let Some(block) = group(edge) {
                edges[next[block]] = number;
                next[block] += 1;
            }
        }
        Self { starts, edges }
    }

    /// The edges of one block.
    pub fn of(&self, block: usize) -> &[usize] {
        &self.edges[self.starts[block]..self.starts[block + 1]]
    }
}

/// Whether the graph has this node.
pub fn exists(graph: &FlowGraph, node: Node) -> bool {
    match node {
        Node::Outside => true,
        Node::Block(BlockId(block)) => block < graph.blocks,
    }
}
