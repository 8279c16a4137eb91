//! The loops of a function's source.

use headcount_model::{FlowGraph, Node};

/// A loop: control comes back to its head from inside.
#[derive(Debug)]
pub struct Loop {
    pub head: u32,
    /// By block: whether it is in the loop.
    pub holds: Vec<bool>,
}

/// The loops of a graph that are entered only at their heads, inner ones first. (Jumps into the midst
/// of a loop make another kind, which nobody here asks for.)
pub fn loops(graph: &FlowGraph) -> Vec<Loop> {
    let ways = Ways::of(graph);
    let above = ways.dominators();
    let mut loops: Vec<Loop> = Vec::new();
    for from in &ways.order {
        for head in &ways.out[*from as usize] {
            if dominates(&above, *head, *from) {
                ways.add(*head, *from, &mut loops);
            }
        }
    }
    let size = |it: &Loop| it.holds.iter().filter(|it| **it).count();
    loops.sort_by_key(size);
    loops
}

/// Where control can go, block by block.
struct Ways {
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    /// Blocks that are reached, each before those that it leads to but for loops.
    order: Vec<u32>,
}

impl Ways {
    fn of(graph: &FlowGraph) -> Self {
        let mut out = vec![Vec::new(); graph.blocks as usize];
        let mut into = vec![Vec::new(); graph.blocks as usize];
        for edge in &graph.edges {
            if let (Node::Block(from), Node::Block(to)) = (edge.from, edge.to) {
                out[from.index()].push(to.0);
                into[to.index()].push(from.0);
            }
        }
        let mut order = Vec::new();
        let mut reached = vec![false; out.len()];
        let mut path: Vec<(u32, usize)> = Vec::new();
        if let Some(first) = reached.first_mut() {
            *first = true;
            path.push((0, 0));
        }
        while let Some((block, next)) = path.last_mut() {
            match out[*block as usize].get(*next) {
                Some(to) => {
                    *next += 1;
                    if !std::mem::replace(&mut reached[*to as usize], true) {
                        path.push((*to, 0));
                    }
                }
                None => {
                    order.push(*block);
                    path.pop();
                }
            }
        }
        order.reverse();
        Self { out, into, order }
    }

    /// The closest block that control must have come through to come to each, after Cooper, Harvey
    /// and Kennedy; its own for the first.
    fn dominators(&self) -> Vec<Option<u32>> {
        let mut place = vec![usize::MAX; self.out.len()];
        for (number, block) in self.order.iter().enumerate() {
            place[*block as usize] = number;
        }
        let mut above: Vec<Option<u32>> = vec![None; self.out.len()];
        if let Some(first) = above.first_mut() {
            *first = Some(0);
        }
        let mut is_new = true;
        while std::mem::take(&mut is_new) {
            for block in self.order.iter().skip(1) {
                let mut found: Option<u32> = None;
                for from in &self.into[*block as usize] {
                    if above[*from as usize].is_none() {
                        continue;
                    }
                    found = Some(match found {
                        None => *from,
                        Some(known) => common(&above, &place, known, *from),
                    });
                }
                if above[*block as usize] != found {
                    above[*block as usize] = found;
                    is_new = true;
                }
            }
        }
        above
    }

    /// Adds what leads to the end of a loop without passing its head.
    fn add(&self, head: u32, end: u32, loops: &mut Vec<Loop>) {
        let known = loops.iter().position(|it| it.head == head);
        let number = known.unwrap_or_else(|| {
            let mut holds = vec![false; self.out.len()];
            holds[head as usize] = true;
            loops.push(Loop { head, holds });
            loops.len() - 1
        });
        let holds = &mut loops[number].holds;
        let mut waiting = vec![end];
        while let Some(block) = waiting.pop() {
            if !std::mem::replace(&mut holds[block as usize], true) {
                waiting.extend(&self.into[block as usize]);
            }
        }
    }
}

fn common(above: &[Option<u32>], place: &[usize], mut one: u32, mut other: u32) -> u32 {
    while one != other {
        let later = match place[one as usize] > place[other as usize] {
            true => &mut one,
            false => &mut other,
        };
        *later = above[*later as usize].unwrap_or(0);
    }
    one
}

fn dominates(above: &[Option<u32>], block: u32, mut of: u32) -> bool {
    loop {
        if of == block {
            return true;
        }
        match above[of as usize] {
            Some(next) if next != of => of = next,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{BlockId, Edge, EdgeKind};

    fn held(blocks: u32, edges: &[(u32, u32)]) -> Vec<(u32, Vec<u32>)> {
        let edge = |(from, to): &(u32, u32)| Edge {
            from: Node::Block(BlockId(*from)),
            to: Node::Block(BlockId(*to)),
            kind: EdgeKind::Fall,
        };
        let graph = FlowGraph {
            blocks,
            edges: edges.iter().map(edge).collect(),
        };
        let held = |it: Loop| {
            let blocks = (0..).zip(it.holds).filter(|it| it.1).map(|it| it.0);
            (it.head, blocks.collect())
        };
        loops(&graph).into_iter().map(held).collect()
    }

    #[test]
    fn inner_loops_come_first() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 2), (2, 4), (4, 1), (1, 5)];
        let expected = vec![(2, vec![2, 3]), (1, vec![1, 2, 3, 4])];
        assert_eq!(held(6, &edges), expected);
    }

    #[test]
    fn a_jump_into_the_midst_makes_no_loop_that_anybody_asks_for() {
        assert!(held(3, &[(0, 1), (0, 2), (1, 2), (2, 1)]).is_empty());
        assert!(held(0, &[]).is_empty());
        assert_eq!(held(2, &[(0, 1), (1, 1)]), [(1, vec![1])]);
    }
}
