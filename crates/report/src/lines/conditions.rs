//! The conditions of a function's source, and what its code tells of them.

use super::flow::{Class, Flow};
use super::loops::Loop;
use headcount_model::{Node, SourceFunction};
use std::collections::BTreeSet;

/// What became of the branches at one place: how often each was taken, and how often not.
pub type Outcomes = Vec<(u64, u64)>;

/// A condition: the blocks that evaluate it, and where control goes from there.
#[derive(Debug)]
pub struct Condition {
    /// The block in which it begins.
    pub head: u32,
    pub blocks: Vec<u32>,
    pub targets: [Target; 2],
    /// The target that stays in the loop that the other one leaves.
    pub stays: Option<usize>,
    /// The edges by which that loop is entered.
    pub entered: Vec<usize>,
}

/// Where control goes.
#[derive(Debug)]
pub struct Target {
    /// The block; none outside of the function.
    pub block: Option<u32>,
    /// What leads there, if it is one edge.
    edge: Option<usize>,
    /// Whether control comes to it only from the condition.
    pub is_private: bool,
}

impl Target {
    /// What is executed as often as the target is chosen.
    pub fn class(&self, flow: &Flow) -> Option<Class> {
        match (self.edge, self.block) {
            (Some(edge), _) => Some(flow.edge(edge)),
            (None, Some(block)) if self.is_private => Some(flow.block(block)),
            _ => None,
        }
    }
}

/// An edge, and the block at its other end.
type Way = (usize, Option<u32>);

/// The edges of a function by block.
struct Ways {
    out: Vec<Vec<Way>>,
    into: Vec<Vec<Way>>,
}

/// The conditions of a function that have two ways out.
pub fn conditions(function: &SourceFunction, loops: &[Loop]) -> Vec<Condition> {
    let ways = Ways::of(function);
    let mut is_inside = vec![false; function.blocks.len()];
    let mut found = Vec::new();
    for head in 0..function.blocks.len() as u32 {
        if is_inside[head as usize] || ways.out[head as usize].len() != 2 {
            continue;
        }
        let blocks = ways.evaluation(function, head);
        for block in &blocks {
            is_inside[*block as usize] = true;
        }
        found.extend(ways.condition(blocks, loops));
    }
    found
}

fn is_among(blocks: &[u32], way: &Way) -> bool {
    way.1.is_some_and(|it| blocks.contains(&it))
}

impl Ways {
    fn of(function: &SourceFunction) -> Self {
        let block = |node: Node| match node {
            Node::Block(block) => Some(block.0),
            Node::Outside => None,
        };
        let mut ways = Self {
            out: vec![Vec::new(); function.blocks.len()],
            into: vec![Vec::new(); function.blocks.len()],
        };
        for (number, edge) in function.graph.edges.iter().enumerate() {
            let (from, to) = (block(edge.from), block(edge.to));
            if let Some(from) = from {
                ways.out[from as usize].push((number, to));
            }
            if let Some(to) = to {
                ways.into[to as usize].push((number, from));
            }
        }
        ways
    }

    /// The blocks of one condition: its first, and those of further operands, in which no statement
    /// begins and to which control comes from nowhere else.
    fn evaluation(&self, function: &SourceFunction, head: u32) -> Vec<u32> {
        let mut blocks = vec![head];
        let mut at = 0;
        while let Some(block) = blocks.get(at).copied() {
            at += 1;
            for to in self.out[block as usize].iter().filter_map(|it| it.1) {
                let is_part = function.blocks[to as usize].lines.is_empty()
                    && !blocks.contains(&to)
                    && self.out[to as usize].len() == 2
                    && self.into[to as usize]
                        .iter()
                        .all(|it| is_among(&blocks, it));
                if is_part {
                    blocks.push(to);
                }
            }
        }
        blocks
    }

    fn condition(&self, blocks: Vec<u32>, loops: &[Loop]) -> Option<Condition> {
        let head = blocks[0];
        let all = blocks.iter().flat_map(|it| &self.out[*it as usize]);
        let leaving: Vec<Way> = all.filter(|it| !is_among(&blocks, it)).copied().collect();
        let targets: BTreeSet<Option<u32>> = leaving.iter().map(|it| it.1).collect();
        let targets: Vec<Option<u32>> = targets.into_iter().collect();
        let targets = <[Option<u32>; 2]>::try_from(targets).ok()?;
        let targets = targets.map(|block| {
            let mut edges = leaving.iter().filter(|it| it.1 == block).map(|it| it.0);
            let edge = edges.next().filter(|_| edges.next().is_none());
            let mut into = block.map(|it| self.into[it as usize].iter());
            let is_private =
                |it: &mut std::slice::Iter<'_, Way>| it.all(|it| is_among(&blocks, it));
            Target {
                block,
                edge,
                is_private: into.as_mut().is_some_and(is_private),
            }
        });
        let holds =
            |it: &Loop, block: Option<u32>| block.is_some_and(|block| it.holds[block as usize]);
        let around = loops.iter().find(|it| holds(it, Some(head)));
        let stays = around.and_then(|around| {
            let stays = [0, 1].map(|it: usize| holds(around, targets[it].block));
            (stays[0] != stays[1]).then_some(usize::from(stays[1]))
        });
        let entered = around.map(|around| {
            let ways = self.into[around.head as usize].iter();
            let entering = ways.filter(|it| !holds(around, it.1));
            entering.map(|it| it.0).collect()
        });
        Some(Condition {
            head,
            blocks,
            targets,
            stays,
            entered: entered.unwrap_or_default(),
        })
    }
}

/// How often ways out of a condition may have been gone that was evaluated so often: by branches that
/// were executed each time, or each time that others went one way.
pub fn chained(places: &[&Outcomes], whole: u64) -> BTreeSet<u64> {
    let mut left = places.to_vec();
    let mut reached = BTreeSet::from([whole]);
    let mut values: BTreeSet<u64> = BTreeSet::new();
    loop {
        let is_next = |it: &&Outcomes| reached.contains(&total(it));
        let Some(at) = left.iter().position(is_next) else {
            return values;
        };
        let found = sums(left.remove(at));
        // Two ways may lead to the same.
        let both: Vec<u64> = values
            .iter()
            .flat_map(|it| found.iter().map(move |other| it.saturating_add(*other)))
            .collect();
        reached.extend(&found);
        values.extend(found);
        values.extend(both);
    }
}

/// How often all branches at a place were executed.
fn total(outcomes: &Outcomes) -> u64 {
    let all = outcomes.iter().map(|(a, b)| a.saturating_add(*b));
    all.fold(0, u64::saturating_add)
}

/// Of more copies of a branch than this nobody asks for all combinations.
const MOST_COPIES: usize = 6;

/// How often the first of two ways may have been gone: each copy of a branch may have them in either
/// order.
pub fn sums(outcomes: &Outcomes) -> Vec<u64> {
    if outcomes.len() > MOST_COPIES {
        let sum = |each: fn(&(u64, u64)) -> u64| {
            let all = outcomes.iter().map(each);
            all.fold(0, u64::saturating_add)
        };
        return vec![sum(|it| it.0), sum(|it| it.1)];
    }
    let mut sums = BTreeSet::from([0_u64]);
    for (a, b) in outcomes {
        let both = |sum: &u64| [sum.saturating_add(*a), sum.saturating_add(*b)];
        sums = sums.iter().flat_map(both).collect();
    }
    sums.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_branch_may_have_their_ways_in_either_order() {
        assert_eq!(sums(&vec![(3, 7)]), [3, 7]);
        assert_eq!(sums(&vec![(3, 7), (1, 2)]), [4, 5, 8, 9]);
        assert_eq!(sums(&vec![(1, 0); 9]), [9, 0]);
        assert_eq!(sums(&vec![(u64::MAX, 1), (1, 1)]), [2, u64::MAX]);
    }

    #[test]
    fn a_branch_counts_if_it_was_executed_each_time_or_each_time_that_another_went_one_way() {
        // `a && b`: ten times, of which `b` was asked seven times.
        let (a, b, other) = (vec![(3, 7)], vec![(2, 5)], vec![(1, 3)]);
        let found = chained(&[&b, &other, &a], 10);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [2, 3, 5, 7, 8, 9, 12]
        );
        assert!(chained(&[&b, &other], 10).is_empty());
    }
}
