//! Routines of any shape that copies can have.

use crate::dice::Dice;
use headcount_model::{BlockId, Edge, EdgeKind, FlowGraph, Node, ProbeCosts};

/// A graph as the copies of routines have it: at most one edge from outside to each block, at most
/// one from each block to the outside, and a call ends its block.
pub struct Routine {
    pub graph: FlowGraph,
    /// How many instructions each block has.
    pub lengths: Vec<usize>,
}

pub fn random_routine(dice: &mut Dice) -> Routine {
    let blocks = 1 + dice.below(12);
    let node = |number: usize| Node::Block(BlockId(number as u32));
    let mut edges = Vec::new();
    let mut arrives = vec![false; blocks];
    for block in 0..blocks {
        let from = node(block);
        let mut out = |to, kind| edges.push(Edge { from, to, kind });
        let anywhere = node(dice.below(blocks));
        // What lies behind the last block is another routine.
        let (next, way_on) = match block + 1 < blocks {
            true => (node(block + 1), EdgeKind::Fall),
            false => (Node::Outside, EdgeKind::Leave),
        };
        match dice.below(7) {
            0 => out(Node::Outside, EdgeKind::Leave),
            1 => {
                out(Node::Outside, EdgeKind::Lost);
                if let Some(arrives) = arrives.get_mut(block + 1) {
                    *arrives = true;
                }
            }
            2 => out(next, way_on),
            3 => out(anywhere, EdgeKind::Jump),
            // A branch to another routine.
            4 if next != Node::Outside => {
                out(Node::Outside, EdgeKind::Taken);
                out(next, EdgeKind::Fall);
            }
            _ => {
                out(anywhere, EdgeKind::Taken);
                out(next, way_on);
            }
        }
    }
    for (block, arrives) in arrives.iter().enumerate() {
        let kind = match block {
            0 => EdgeKind::Entry,
            _ => EdgeKind::Arrival,
        };
        if block == 0 || *arrives || dice.one_in(5) {
            let (from, to) = (Node::Outside, node(block));
            edges.push(Edge { from, to, kind });
        }
    }
    let graph = FlowGraph {
        blocks: blocks as u32,
        edges,
    };
    let lengths = (0..blocks).map(|_| 1 + dice.below(4)).collect();
    Routine { graph, lengths }
}

/// No probe can stand on the way out, nor in some of the blocks.
pub fn costs(dice: &mut Dice, graph: &FlowGraph) -> ProbeCosts {
    let odds = 1 + dice.below(4);
    let mut price = || Some(1 + dice.below(40) as u32);
    let edges = graph
        .edges
        .iter()
        .map(|edge| price().filter(|_| edge.to != Node::Outside))
        .collect();
    let blocks = (0..graph.blocks)
        .map(|_| Some(10).filter(|_| !dice.one_in(odds)))
        .collect();
    ProbeCosts { blocks, edges }
}
