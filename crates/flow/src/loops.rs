//! In which order does control visit the blocks, and which loops are they in?
//!
//! One depth-first walk finds both, as in Wei, Mao, Zou and Chen, "A New Algorithm for Identifying
//! Loops in Decompilation" (SAS 2007), which also copes with loops that have several entrances.
//! The walk keeps its own stack: a function may have a million blocks.

use headcount_model::{EdgeKind, FlowGraph, Node};

use crate::groups::{Groups, exists};

/// How far we follow a chain of nested loops: beyond it the guess gets worse, and the walk stays
/// linear. Frequencies reach their upper bound before (`frequency.rs`).
const DEEPEST_CHAIN: usize = 16;

/// What the walk found. Blocks that no edge from outside leads to are in none of it.
#[derive(Debug)]
pub struct Loops {
    /// The reachable blocks in reverse post-order: all but the edges back come from earlier blocks.
    pub order: Vec<usize>,
    /// The place of each block in `order`.
    rank: Vec<Option<usize>>,
    /// Whether an edge back leads to the block.
    heads: Vec<bool>,
    /// The head of the innermost loop around each block, its own loop not included.
    around: Vec<Option<usize>>,
    /// How many loops are around each block, its own included.
    depth: Vec<usize>,
}

impl Loops {
    pub fn find(graph: &FlowGraph, leaving: &Groups) -> Self {
        let mut walk = Walk::new(graph, leaving);
        for root in roots(graph) {
            walk.from(root);
        }
        walk.finish()
    }

    /// Whether a loop begins at this block.
    pub fn begins_at(&self, block: usize) -> bool {
        self.heads[block]
    }

    /// Whether an edge between these blocks closes a loop.
    pub fn goes_back(&self, from: usize, to: usize) -> bool {
        match (self.rank[from], self.rank[to]) {
            (Some(from), Some(to)) => to <= from,
            _ => false,
        }
    }

    /// The head of the outermost loop that control leaves on the way between two nodes.
    pub fn left_by(&self, from: usize, to: Option<usize>) -> Option<usize> {
        let mut inner = self.innermost(from)?;
        let mut other = to.and_then(|to| self.innermost(to));
        let mut left = None;
        for _ in 0..DEEPEST_CHAIN {
            let other_depth = other.map_or(0, |head| self.depth[head]);
            if other == Some(inner) {
                break;
            }
            if self.depth[inner] >= other_depth {
                left = Some(inner);
                match self.around[inner] {
                    Some(outer) => inner = outer,
                    None => break,
                }
            } else {
                other = other.and_then(|head| self.around[head]);
            }
        }
        left
    }

    fn innermost(&self, block: usize) -> Option<usize> {
        if self.heads[block] {
            Some(block)
        } else {
            self.around[block]
        }
    }
}

/// Where control comes in: by the front door first, then in the middle.
fn roots(graph: &FlowGraph) -> impl Iterator<Item = usize> {
    let from_outside = |arrival: bool| {
        graph.edges.iter().filter_map(move |edge| match edge.to {
            Node::Block(block)
                if edge.from == Node::Outside
                    && (edge.kind == EdgeKind::Arrival) == arrival
                    && exists(graph, edge.to) =>
            {
                Some(block.index())
            }
            _ => None,
        })
    };
    from_outside(false).chain(from_outside(true))
}

/// The walk while it goes on.
struct Walk<'a> {
    graph: &'a FlowGraph,
    leaving: &'a Groups,
    seen: Vec<bool>,
    /// The distance from the root for blocks on the current path; 0 for all others.
    on_path: Vec<usize>,
    heads: Vec<bool>,
    around: Vec<Option<usize>>,
    post_order: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a FlowGraph, leaving: &'a Groups) -> Self {
        let blocks = graph.blocks as usize;
        Self {
            graph,
            leaving,
            seen: vec![false; blocks],
            on_path: vec![0; blocks],
            heads: vec![false; blocks],
            around: vec![None; blocks],
            post_order: Vec::new(),
        }
    }

    fn from(&mut self, root: usize) {
        if self.seen[root] {
            return;
        }
        // Blocks on the current path, each with how many of its edges were followed.
        let mut path = vec![(root, 0)];
        self.enter(root, 1);
        while let Some((block, followed)) = path.last_mut() {
            let block = *block;
            let Some(&edge) = self.leaving.of(block).get(*followed) else {
                self.on_path[block] = 0;
                self.post_order.push(block);
                path.pop();
                if let (Some(&(parent, _)), Some(head)) = (path.last(), self.around[block]) {
                    self.put_inside(parent, head);
                }
                continue;
            };
            *followed += 1;
            let Node::Block(next) = self.graph.edges[edge].to else {
                continue;
            };
            let next = next.index();
            if !self.seen[next] {
                path.push((next, 0));
                self.enter(next, path.len());
            } else if self.on_path[next] > 0 {
                self.heads[next] = true;
                self.put_inside(block, next);
            } else if let Some(head) = self.open_loop_around(next) {
                self.put_inside(block, head);
            }
        }
    }

    fn enter(&mut self, block: usize, distance: usize) {
        self.seen[block] = true;
        self.on_path[block] = distance;
    }

    /// The innermost loop around a finished block whose head is still on the path.
    fn open_loop_around(&self, block: usize) -> Option<usize> {
        let outwards = std::iter::successors(self.around[block], |&head| self.around[head]);
        outwards
            .take(DEEPEST_CHAIN)
            .find(|&head| self.on_path[head] > 0)
    }

    /// Notes that the loop of `head` contains `block`, and sorts it into the loops known so far:
    /// the head that is further along the path is the inner one.
    fn put_inside(&mut self, block: usize, head: usize) {
        let (mut inner, mut outer) = (block, head);
        for _ in 0..DEEPEST_CHAIN {
            if inner == outer {
                return;
            }
            match self.around[inner] {
                None => {
                    self.around[inner] = Some(outer);
                    return;
                }
                Some(known) if self.on_path[known] < self.on_path[outer] => {
                    self.around[inner] = Some(outer);
                    (inner, outer) = (outer, known);
                }
                Some(known) => inner = known,
            }
        }
    }

    fn finish(self) -> Loops {
        let mut order = self.post_order;
        order.reverse();
        let mut rank = vec![None; self.seen.len()];
        let mut depth = vec![0; self.seen.len()];
        for (place, &block) in order.iter().enumerate() {
            rank[block] = Some(place);
            // The head of a loop stands before its blocks, so its depth is known.
            let outer = self.around[block].map_or(0, |head| depth[head]);
            depth[block] = outer + usize::from(self.heads[block]);
        }
        Loops {
            order,
            rank,
            heads: self.heads,
            around: self.around,
            depth,
        }
    }
}

#[cfg(test)]
mod tests {
    use headcount_model::{BlockId, Edge};

    use super::*;

    fn loops(blocks: u32, edges: &[(u32, u32)]) -> Loops {
        let node = |block| Node::Block(BlockId(block));
        let mut graph = FlowGraph {
            blocks,
            edges: vec![Edge {
                from: Node::Outside,
                to: node(0),
                kind: EdgeKind::Entry,
            }],
        };
        graph.edges.extend(edges.iter().map(|&(from, to)| Edge {
            from: node(from),
            to: node(to),
            kind: EdgeKind::Jump,
        }));
        Loops::find(&graph, &Groups::leaving(&graph))
    }

    #[test]
    fn a_loop_in_a_loop_is_two_deep() {
        let found = loops(5, &[(0, 1), (1, 2), (2, 3), (3, 2), (3, 1), (1, 4)]);
        assert_eq!(found.depth, [0, 1, 2, 2, 0]);
        assert!(found.begins_at(1) && found.begins_at(2));
        assert_eq!(found.left_by(3, Some(1)), Some(2));
        assert_eq!(found.left_by(3, Some(4)), Some(1));
        assert_eq!(found.left_by(3, None), Some(1));
        assert_eq!(found.left_by(2, Some(3)), None);
    }

    #[test]
    fn a_block_that_jumps_to_itself_is_a_loop() {
        let found = loops(2, &[(0, 0), (0, 1)]);
        assert_eq!(found.depth, [1, 0]);
        assert_eq!(found.left_by(0, Some(1)), Some(0));
        assert_eq!(found.left_by(0, Some(0)), None);
    }

    #[test]
    fn a_loop_with_two_entrances_has_one_head() {
        let found = loops(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)]);
        assert_eq!(found.depth, [0, 1, 1, 0]);
        assert!(found.begins_at(1) && !found.begins_at(2));
    }

    #[test]
    fn blocks_nobody_reaches_are_in_no_order() {
        let found = loops(3, &[(1, 2), (2, 1)]);
        assert_eq!(found.order, [0]);
        assert!(!found.goes_back(2, 1));
    }
}
