//! What follows from what is known of how often parts of a function ran?
//!
//! Control that comes to a block of the source leaves it again, so the counts of blocks and edges
//! depend on each other: each time an `if` is reached, control goes on to one of its arms or to what
//! follows it. Here every block and edge has bounds, and a bound of one narrows those of others. Parts
//! that are always executed equally often (by the graph alone) share one *class*.

use super::tree::{Sign, Tree};
use headcount_model::FlowGraph;
use std::collections::HashMap;

/// So often or more, and so often or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub low: u64,
    pub high: u64,
}

impl Bounds {
    pub const OPEN: Self = Self {
        low: 0,
        high: u64::MAX,
    };

    pub fn exactly(value: u64) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    pub fn at_least(low: u64) -> Self {
        Self {
            low,
            high: u64::MAX,
        }
    }

    /// The only value left.
    pub fn exact(self) -> Option<u64> {
        (self.low == self.high).then_some(self.low)
    }

    pub fn holds(self, value: u64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Parts of a graph that are executed equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u32);

/// Bounds of all parts of a graph.
pub struct Flow {
    blocks: Vec<Class>,
    edges: Vec<Class>,
    bounds: Vec<Bounds>,
    sums: Vec<Sum>,
    /// The sums that each class is in.
    sums_of: Vec<Vec<u32>>,
    /// What bounds were before the last change, to take it back.
    trail: Vec<(Class, Bounds)>,
}

/// A whole and its parts.
struct Sum {
    whole: Class,
    parts: Vec<Class>,
}

/// So often may one sum be looked at for one new fact: bounds that contradict each other may creep
/// up around a loop for ever.
const MOST_VISITS: u32 = 50;

impl Flow {
    pub fn new(graph: &FlowGraph) -> Self {
        let tree = Tree::of(graph);
        let weights = weights(&tree);
        let mut classes = Classes::default();
        let edges: Vec<Class> = weights.iter().map(|it| classes.of(*it)).collect();
        let mut into = vec![(0_u64, Vec::new()); tree.nodes()];
        let mut out = vec![Vec::new(); tree.nodes()];
        for ((from, to), (weight, class)) in tree.ends.iter().zip(weights.iter().zip(&edges)) {
            into[*to].0 = into[*to].0.wrapping_add(*weight);
            into[*to].1.push(*class);
            out[*from].push(*class);
        }
        let mut sums = Vec::new();
        let mut blocks = Vec::new();
        for ((weight, into), out) in into.into_iter().zip(out) {
            let whole = classes.of(weight);
            blocks.push(whole);
            sums.push(Sum { whole, parts: into });
            sums.push(Sum { whole, parts: out });
        }
        // A block that nothing leads to is not entered; one that nothing leaves was left somehow.
        sums.retain(|it| !it.parts.is_empty() && it.parts != [it.whole]);
        let mut sums_of = vec![Vec::new(); classes.number as usize];
        for (number, sum) in (0..).zip(&sums) {
            for class in sum.parts.iter().chain([&sum.whole]) {
                let known: &mut Vec<u32> = &mut sums_of[class.0 as usize];
                if known.last() != Some(&number) {
                    known.push(number);
                }
            }
        }
        let mut bounds = vec![Bounds::OPEN; classes.number as usize];
        if let Some(never) = classes.known.get(&0) {
            bounds[never.0 as usize] = Bounds::exactly(0);
        }
        let mut flow = Self {
            blocks,
            edges,
            bounds,
            sums,
            sums_of,
            trail: Vec::new(),
        };
        let all = (0..flow.sums.len() as u32).collect();
        flow.narrow(all);
        flow.trail.clear();
        flow
    }

    pub fn block(&self, block: u32) -> Class {
        self.blocks[block as usize]
    }

    pub fn edge(&self, edge: usize) -> Class {
        self.edges[edge]
    }

    pub fn bounds(&self, class: Class) -> Bounds {
        self.bounds[class.0 as usize]
    }

    /// Takes a new fact, unless it contradicts what is known. Says whether it was taken.
    pub fn require(&mut self, class: Class, bounds: Bounds) -> bool {
        self.require_all(&[(class, bounds)])
    }

    /// Takes several, or none.
    pub fn require_all(&mut self, facts: &[(Class, Bounds)]) -> bool {
        self.trail.clear();
        let mut waiting = Vec::new();
        for (class, bounds) in facts {
            if !self.tighten(*class, *bounds, &mut waiting) {
                self.take_back();
                return false;
            }
        }
        let agrees = self.narrow(waiting);
        if !agrees {
            self.take_back();
        }
        agrees
    }

    fn take_back(&mut self) {
        while let Some((class, bounds)) = self.trail.pop() {
            self.bounds[class.0 as usize] = bounds;
        }
    }

    /// Narrows one class; false if nothing is left.
    fn tighten(&mut self, class: Class, by: Bounds, waiting: &mut Vec<u32>) -> bool {
        let known = self.bounds(class);
        let narrower = Bounds {
            low: known.low.max(by.low),
            high: known.high.min(by.high),
        };
        if narrower.low > narrower.high {
            return false;
        }
        if narrower != known {
            self.trail.push((class, known));
            self.bounds[class.0 as usize] = narrower;
            waiting.extend(&self.sums_of[class.0 as usize]);
        }
        true
    }

    /// Follows all consequences; false if there is a contradiction.
    fn narrow(&mut self, mut waiting: Vec<u32>) -> bool {
        let mut visits: HashMap<u32, u32> = HashMap::new();
        let mut at = 0;
        while let Some(number) = waiting.get(at).copied() {
            at += 1;
            let visited = visits.entry(number).or_default();
            *visited += 1;
            if *visited > MOST_VISITS || !self.narrow_sum(number, &mut waiting) {
                return false;
            }
        }
        true
    }

    fn narrow_sum(&mut self, number: u32, waiting: &mut Vec<u32>) -> bool {
        let sum = &self.sums[number as usize];
        let (whole, parts) = (sum.whole, sum.parts.clone());
        let (mut low, mut high, mut open) = (0_u64, 0_u64, 0_u32);
        for part in &parts {
            let bounds = self.bounds(*part);
            low = low.saturating_add(bounds.low);
            match bounds.high {
                u64::MAX => open += 1,
                limit => high = high.saturating_add(limit),
            }
        }
        let most = if open > 0 { u64::MAX } else { high };
        if !self.tighten(whole, Bounds { low, high: most }, waiting) {
            return false;
        }
        let all = self.bounds(whole);
        for part in parts {
            let own = self.bounds(part);
            let others_low = low - own.low.min(low);
            let others_open = open - u32::from(own.high == u64::MAX);
            let others_high = match own.high {
                u64::MAX => high,
                own => high - own.min(high),
            };
            let by = Bounds {
                low: match others_open {
                    0 => all.low.saturating_sub(others_high),
                    _ => 0,
                },
                high: match all.high {
                    u64::MAX => u64::MAX,
                    most if others_low > most => return false,
                    most => most - others_low,
                },
            };
            if !self.tighten(part, by, waiting) {
                return false;
            }
        }
        true
    }
}

/// Classes by the weight of what is in them.
#[derive(Default)]
struct Classes {
    known: HashMap<u64, Class>,
    number: u32,
}

impl Classes {
    fn of(&mut self, weight: u64) -> Class {
        let number = &mut self.number;
        *self.known.entry(weight).or_insert_with(|| {
            *number += 1;
            Class(*number - 1)
        })
    }
}

/// A number for every edge. Chords get numbers as good as drawn by lot, and the rest what conservation
/// makes of these: parts that are always executed equally often have the same number, and others
/// another.
fn weights(tree: &Tree) -> Vec<u64> {
    let mut numbers = 1..;
    let drawn = || numbers.next().map_or(0, scattered);
    tree.values(drawn, |to, sign, by| match sign {
        Sign::Plus => *to = to.wrapping_add(*by),
        Sign::Minus => *to = to.wrapping_sub(*by),
    })
}

/// Bits that have nothing to do with each other (the finisher of SplitMix64).
fn scattered(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_model::{BlockId, Edge, EdgeKind, Node};

    /// Edges between blocks; -1 is outside.
    fn flow(blocks: u32, edges: &[(i32, i32)]) -> Flow {
        let node = |at: i32| match u32::try_from(at) {
            Ok(at) => Node::Block(BlockId(at)),
            Err(_) => Node::Outside,
        };
        let edge = |(from, to): &(i32, i32)| Edge {
            from: node(*from),
            to: node(*to),
            kind: EdgeKind::Fall,
        };
        Flow::new(&FlowGraph {
            blocks,
            edges: edges.iter().map(edge).collect(),
        })
    }

    /// `0; if (…) 1; else 2; 3`
    fn choice() -> Flow {
        flow(4, &[(-1, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, -1)])
    }

    #[test]
    fn what_is_executed_equally_often_is_one_class() {
        let flow = choice();
        assert_eq!(flow.block(0), flow.block(3));
        assert_ne!(flow.block(1), flow.block(2));
        assert_eq!(flow.edge(1), flow.block(1));
    }

    #[test]
    fn what_one_arm_leaves_over_the_other_had() {
        let mut flow = choice();
        assert!(flow.require(flow.block(3), Bounds::exactly(10)));
        assert!(flow.require(flow.block(1), Bounds::at_least(7)));
        assert_eq!(flow.bounds(flow.block(2)), Bounds { low: 0, high: 3 });
        assert!(flow.require(flow.block(2), Bounds::at_least(3)));
        assert_eq!(flow.bounds(flow.block(1)).exact(), Some(7));
    }

    #[test]
    fn what_contradicts_what_is_known_changes_nothing() {
        let mut flow = choice();
        flow.require(flow.block(0), Bounds::exactly(10));
        flow.require(flow.block(1), Bounds::exactly(7));
        let arms = [
            (flow.block(2), Bounds::exactly(3)),
            (flow.block(1), Bounds::exactly(8)),
        ];
        assert!(!flow.require_all(&arms));
        assert!(!flow.require(flow.block(2), Bounds::at_least(4)));
        assert_eq!(flow.bounds(flow.block(2)).exact(), Some(3));
    }

    #[test]
    fn bounds_that_creep_up_around_a_loop_are_a_contradiction() {
        // `0; do 1; while (…); 2`, left more seldom than it was entered.
        let mut flow = flow(3, &[(-1, 0), (0, 1), (1, 1), (1, 2), (2, -1), (1, -1)]);
        assert!(flow.require(flow.block(0), Bounds::exactly(5)));
        let exits = [
            (flow.edge(3), Bounds { low: 0, high: 2 }),
            (flow.edge(5), Bounds { low: 0, high: 2 }),
        ];
        assert!(!flow.require_all(&exits));
        assert_eq!(flow.bounds(flow.edge(3)).high, 5);
    }

    #[test]
    fn what_nothing_leads_to_was_not_executed() {
        let flow = flow(2, &[(-1, 0), (0, -1), (1, -1)]);
        assert_eq!(flow.bounds(flow.block(1)).exact(), Some(0));
    }
}
