//! The flow graph as a net of pipes: every place where a counter could stand is one pipe.
//!
//! A block becomes a pipe from its entrance to its exit (Ball 1994, figure 2), so that blocks and
//! edges are the same kind of thing and compete for counters on equal terms. What flows into a
//! joint flows out of it.

use headcount_model::{BlockId, EdgeId, FlowGraph, Node, Place};

/// A place seen as a pipe between two joints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    pub from: usize,
    pub to: usize,
}

/// An edge has an end at a block that the graph does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchBlock {
    pub edge: EdgeId,
}

/// The joint that stands for the rest of the world.
pub const OUTSIDE: usize = 0;

/// Pipes are numbered blocks first, then edges; joint 0 is [`OUTSIDE`].
#[derive(Debug)]
pub struct Net {
    pub joints: usize,
    pub pipes: Vec<Pipe>,
    blocks: u32,
}

impl Net {
    pub fn new(graph: &FlowGraph) -> Result<Self, NoSuchBlock> {
        let mut pipes = Vec::with_capacity(graph.blocks as usize + graph.edges.len());
        for block in (0..graph.blocks).map(BlockId) {
            pipes.push(Pipe {
                from: entrance(block),
                to: exit(block),
            });
        }
        for (id, edge) in graph.edges() {
            let missing =
                |node| matches!(node, Node::Block(BlockId(block)) if block >= graph.blocks);
            if missing(edge.from) || missing(edge.to) {
                return Err(NoSuchBlock { edge: id });
            }
            pipes.push(Pipe {
                from: joint(edge.from, exit),
                to: joint(edge.to, entrance),
            });
        }
        Ok(Self {
            joints: 1 + 2 * graph.blocks as usize,
            pipes,
            blocks: graph.blocks,
        })
    }

    /// The pipes of blocks.
    pub fn blocks(&self) -> std::ops::Range<usize> {
        0..self.blocks as usize
    }

    /// The place that a pipe stands for.
    pub fn place(&self, pipe: usize) -> Place {
        let blocks = self.blocks as usize;
        if pipe < blocks {
            Place::Block(BlockId(pipe as u32))
        } else {
            Place::Edge(EdgeId((pipe - blocks) as u32))
        }
    }

    /// The pipe of a place, if the graph has that place.
    pub fn pipe(&self, place: Place) -> Option<usize> {
        let blocks = self.blocks as usize;
        let pipe = match place {
            Place::Block(block) if block.index() < blocks => block.index(),
            Place::Block(_) => return None,
            Place::Edge(edge) => blocks + edge.index(),
        };
        (pipe < self.pipes.len()).then_some(pipe)
    }

    /// The block at whose entrance or exit a joint is; `None` is the outside.
    pub fn block(joint: usize) -> Option<BlockId> {
        Some(BlockId((joint.checked_sub(1)? / 2) as u32))
    }
}

fn entrance(block: BlockId) -> usize {
    1 + 2 * block.index()
}

fn exit(block: BlockId) -> usize {
    2 + 2 * block.index()
}

fn joint(node: Node, side: fn(BlockId) -> usize) -> usize {
    match node {
        Node::Outside => OUTSIDE,
        Node::Block(block) => side(block),
    }
}
