//! A spanning tree of a function's graph: control that comes to a block leaves it again, so the counts
//! of the edges outside of the tree, its *chords*, decide those of all edges.

use headcount_model::{FlowGraph, Node};

/// A graph, and a tree in it that grows from the outside on and reaches all of it.
pub struct Tree {
    /// Where each edge begins and ends; the outside is the last node.
    pub ends: Vec<(usize, usize)>,
    /// The edges of each node, loops of its own twice.
    around: Vec<Vec<usize>>,
    /// The edge by which the tree reached each node.
    parent: Vec<Option<usize>>,
    /// By edge: whether it is none of the tree's.
    is_chord: Vec<bool>,
    /// The nodes, each behind its parent.
    order: Vec<usize>,
}

impl Tree {
    pub fn of(graph: &FlowGraph) -> Self {
        let outside = graph.blocks as usize;
        let index = |node: Node| match node {
            Node::Outside => outside,
            Node::Block(block) => block.index(),
        };
        let edges = graph.edges.iter();
        let ends: Vec<(usize, usize)> = edges.map(|it| (index(it.from), index(it.to))).collect();
        let mut around = vec![Vec::new(); outside + 1];
        for (number, (from, to)) in ends.iter().enumerate() {
            around[*from].push(number);
            around[*to].push(number);
        }
        let mut tree = Self {
            around,
            parent: vec![None; outside + 1],
            is_chord: vec![true; ends.len()],
            order: Vec::new(),
            ends,
        };
        let mut reached = vec![false; outside + 1];
        for root in (0..=outside).rev() {
            tree.grow(root, &mut reached);
        }
        tree
    }

    /// Reaches all that is connected with a node, unless it is reached.
    fn grow(&mut self, root: usize, reached: &mut [bool]) {
        if std::mem::replace(&mut reached[root], true) {
            return;
        }
        let mut next = self.order.len();
        self.order.push(root);
        while let Some(node) = self.order.get(next).copied() {
            next += 1;
            for edge in &self.around[node] {
                let (from, to) = self.ends[*edge];
                let other = if from == node { to } else { from };
                if !std::mem::replace(&mut reached[other], true) {
                    self.parent[other] = Some(*edge);
                    self.is_chord[*edge] = false;
                    self.order.push(other);
                }
            }
        }
    }

    /// How many nodes there are, with the outside.
    pub fn nodes(&self) -> usize {
        self.around.len()
    }

    /// The values of all edges, from those of the chords, which `chord` makes one after the other.
    /// `add` adds a value to another, or takes it away.
    pub fn values<T: Clone + Default>(
        &self,
        mut chord: impl FnMut() -> T,
        add: impl Fn(&mut T, Sign, &T),
    ) -> Vec<T> {
        let mut value = |is_chord: &bool| match is_chord {
            true => chord(),
            false => T::default(),
        };
        let mut values: Vec<T> = self.is_chord.iter().map(&mut value).collect();
        // From the leaves inwards: the edge to the parent carries what the others leave over.
        for node in self.order.iter().rev() {
            let Some(up) = self.parent[*node] else {
                continue;
            };
            let leaves = self.ends[up].0 == *node;
            let mut over = T::default();
            for edge in self.around[*node].iter().filter(|it| **it != up) {
                let (from, to) = self.ends[*edge];
                if from != to {
                    let sign = match (to == *node) == leaves {
                        true => Sign::Plus,
                        false => Sign::Minus,
                    };
                    add(&mut over, sign, &values[*edge]);
                }
            }
            values[up] = over;
        }
        values
    }

    /// How many chords there are.
    pub fn chords(&self) -> usize {
        self.is_chord.iter().filter(|it| **it).count()
    }
}

/// Whether a value is added or taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Plus,
    Minus,
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{BlockId, Edge, EdgeKind};

    #[test]
    fn what_chords_carry_decides_what_all_edges_do() {
        // `0; while (1) 2; 3`, with a block that nothing leads to.
        let edge = |from, to| Edge {
            from,
            to,
            kind: EdgeKind::Fall,
        };
        let block = |it| Node::Block(BlockId(it));
        let graph = FlowGraph {
            blocks: 5,
            edges: vec![
                edge(Node::Outside, block(0)),
                edge(block(0), block(1)),
                edge(block(1), block(2)),
                edge(block(2), block(1)),
                edge(block(1), block(3)),
                edge(block(3), Node::Outside),
                edge(block(4), block(4)),
            ],
        };
        let tree = Tree::of(&graph);
        assert_eq!((tree.nodes(), tree.chords()), (6, 3));
        let mut drawn = [5_i64, 3, 7].into_iter();
        let values = tree.values(
            || drawn.next().unwrap(),
            |to, sign, by| match sign {
                Sign::Plus => *to += by,
                Sign::Minus => *to -= by,
            },
        );
        for node in 0..tree.nodes() {
            let sum = |it: &dyn Fn(&(usize, usize)) -> bool| -> i64 {
                let ends = tree.ends.iter().zip(&values);
                ends.filter(|(ends, _)| it(ends)).map(|it| it.1).sum()
            };
            assert_eq!(sum(&|it| it.0 == node), sum(&|it| it.1 == node));
        }
        assert!(drawn.next().is_none());
    }
}
