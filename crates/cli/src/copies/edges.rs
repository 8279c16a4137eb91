//! What follows from the edges of a function that were seen, about those that were not?
//!
//! What goes into a block comes out of it, visits aside. Where one edge is unknown, it is the rest;
//! where nothing is left for several, each is zero. The facts may miss an edge, and then numbers
//! that follow from each other contradict each other: all of those are given up.

use headcount_model::{EdgeKind, FunctionEdge};

/// How often control went through a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    /// By edges, into it.
    pub came: i128,
    /// By edges, out of it.
    pub went: i128,
}

/// Fills in what follows. `through` has one item a block, `None` where it was not counted.
///
/// A call that came back more often than it was made (`fork`, or headcount came in between) was
/// lost less than zero times, which is reported as zero.
pub fn derive(edges: &[FunctionEdge], through: &[Option<Through>], counts: &mut [Option<u64>]) {
    if counts.iter().all(Option::is_some) {
        return;
    }
    let mut puzzle = Puzzle::new(edges, through, counts);
    puzzle.solve();
    puzzle.check();
    for (number, count) in counts.iter_mut().enumerate() {
        *count = count.or_else(|| puzzle.answer(number));
    }
}

/// Where edges meet: the entrance or the exit of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Joint {
    /// What the unknown edges add up to, if the block was counted.
    rest: Option<i128>,
    /// How many unknown edges there still are.
    unknown: usize,
    /// A call is lost here, maybe less than zero times.
    has_lost: bool,
    /// Its first unknown edge, in `Puzzle::met`.
    first: usize,
    /// The joint that speaks for all those whose edges follow from each other.
    parent: usize,
    /// Whether they contradict each other. True for the one that speaks for them.
    is_odd: bool,
}

struct Puzzle<'a> {
    edges: &'a [FunctionEdge],
    joints: Vec<Joint>,
    /// The edges that were unknown at first, joint by joint.
    met: Vec<usize>,
    found: Vec<Option<i128>>,
}

fn ends(edge: &FunctionEdge) -> impl Iterator<Item = usize> + use<> {
    let exit = edge.from.map(|block| 2 * block as usize + 1);
    let entrance = edge.to.map(|block| 2 * block as usize);
    exit.into_iter().chain(entrance)
}

impl<'a> Puzzle<'a> {
    fn new(edges: &'a [FunctionEdge], through: &[Option<Through>], counts: &[Option<u64>]) -> Self {
        let mut joints = vec![Joint::default(); 2 * through.len()];
        for (number, joint) in joints.iter_mut().enumerate() {
            joint.parent = number;
            let through = through[number / 2];
            joint.rest = through.map(|it| if number % 2 == 0 { it.came } else { it.went });
        }
        let mut puzzle = Self {
            edges,
            joints,
            met: Vec::new(),
            found: vec![None; edges.len()],
        };
        for (edge, count) in edges.iter().zip(counts) {
            for end in ends(edge) {
                let joint = &mut puzzle.joints[end];
                joint.has_lost |= edge.kind == EdgeKind::Lost;
                match count {
                    Some(count) => joint.rest = joint.rest.map(|it| it - i128::from(*count)),
                    None => joint.unknown += 1,
                }
            }
        }
        puzzle.list_unknown(counts);
        puzzle
    }

    fn list_unknown(&mut self, counts: &[Option<u64>]) {
        let mut first = 0;
        for joint in &mut self.joints {
            joint.first = first;
            first += joint.unknown;
        }
        self.met = vec![0; first];
        let mut next: Vec<usize> = self.joints.iter().map(|joint| joint.first).collect();
        for (number, edge) in self.edges.iter().enumerate() {
            if counts[number].is_some() {
                continue;
            }
            for end in ends(edge) {
                self.met[next[end]] = number;
                next[end] += 1;
            }
            let mut both = ends(edge);
            if let (Some(one), Some(other)) = (both.next(), both.next()) {
                let (one, other) = (self.speaker(one), self.speaker(other));
                self.joints[one].parent = other;
            }
        }
    }

    fn speaker(&mut self, mut joint: usize) -> usize {
        while self.joints[joint].parent != joint {
            let parent = self.joints[joint].parent;
            self.joints[joint].parent = self.joints[parent].parent;
            joint = parent;
        }
        joint
    }

    /// The edges that were unknown at first where a joint is.
    fn met_at(&self, joint: usize) -> std::ops::Range<usize> {
        let end = self.joints.get(joint + 1).map(|next| next.first);
        self.joints[joint].first..end.unwrap_or(self.met.len())
    }

    fn solve(&mut self) {
        let mut news: Vec<usize> = (0..self.joints.len()).rev().collect();
        while let Some(at) = news.pop() {
            let joint = self.joints[at];
            let Some(rest) = joint.rest else {
                continue;
            };
            let is_spent = rest == 0 && !joint.has_lost;
            if joint.unknown == 1 || (joint.unknown > 1 && is_spent) {
                for place in self.met_at(at) {
                    let edge = self.met[place];
                    if self.found[edge].is_none() {
                        self.settle(edge, rest);
                        news.extend(ends(&self.edges[edge]).filter(|end| *end != at));
                    }
                }
            }
        }
    }

    fn settle(&mut self, edge: usize, count: i128) {
        self.found[edge] = Some(count);
        for end in ends(&self.edges[edge]) {
            let joint = &mut self.joints[end];
            joint.unknown -= 1;
            joint.rest = joint.rest.map(|rest| rest - count);
        }
        if count < 0 && self.edges[edge].kind != EdgeKind::Lost {
            self.give_up(edge);
        }
    }

    fn give_up(&mut self, edge: usize) {
        if let Some(end) = ends(&self.edges[edge]).next() {
            let speaker = self.speaker(end);
            self.joints[speaker].is_odd = true;
        }
    }

    fn check(&mut self) {
        for at in 0..self.joints.len() {
            let joint = self.joints[at];
            let is_odd = match (joint.rest, joint.unknown) {
                (None, _) => false,
                (Some(rest), 0) => rest != 0,
                (Some(rest), _) => rest < 0 && !joint.has_lost,
            };
            if is_odd && !self.met_at(at).is_empty() {
                let speaker = self.speaker(at);
                self.joints[speaker].is_odd = true;
            }
        }
    }

    fn answer(&mut self, edge: usize) -> Option<u64> {
        let count = self.found[edge]?;
        let end = ends(&self.edges[edge]).next()?;
        let speaker = self.speaker(end);
        match self.joints[speaker].is_odd {
            true => None,
            false => u64::try_from(count.max(0)).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EdgeKind::{Entry, Fall, Jump, Leave, Lost};

    /// From, to, kind, and count if known.
    type Way = (Option<u32>, Option<u32>, EdgeKind, Option<u64>);

    fn derived(edges: &[Way], blocks: &[Option<i128>]) -> Vec<Option<u64>> {
        let mut counts: Vec<Option<u64>> = edges.iter().map(|it| it.3).collect();
        let edges: Vec<FunctionEdge> = edges
            .iter()
            .map(|&(from, to, kind, _)| FunctionEdge { from, to, kind })
            .collect();
        let through = |count: &Option<i128>| {
            count.map(|count| Through {
                came: count,
                went: count,
            })
        };
        let through: Vec<Option<Through>> = blocks.iter().map(through).collect();
        derive(&edges, &through, &mut counts);
        counts
    }

    /// Block 0 jumps to 1, 2 or 3 by a table; so does block 4 to 3.
    const SWITCH: [Way; 9] = [
        (None, Some(0), Entry, None),
        (Some(0), Some(1), Jump, None),
        (Some(0), Some(2), Jump, None),
        (Some(0), Some(3), Jump, None),
        (Some(4), Some(3), Jump, None),
        (Some(4), Some(2), Jump, None),
        (Some(1), None, Leave, None),
        (Some(2), None, Leave, None),
        (Some(3), None, Leave, None),
    ];

    #[test]
    fn a_case_that_only_one_switch_has_is_known() {
        let counts = derived(&SWITCH, &[Some(9), Some(2), Some(5), Some(4), Some(2)]);
        let unknown = None;
        assert_eq!(counts[..2], [Some(9), Some(2)]);
        assert_eq!(counts[2..6], [unknown; 4]);
        assert_eq!(counts[6..], [Some(2), Some(5), Some(4)]);
    }

    #[test]
    fn where_nothing_is_left_all_are_zero() {
        let counts = derived(&SWITCH, &[Some(9), Some(2), Some(4), Some(3), Some(0)]);
        assert_eq!(counts[1..6], [2, 4, 3, 0, 0].map(Some));
    }

    #[test]
    fn what_was_not_counted_tells_nothing() {
        let counts = derived(&SWITCH, &[Some(9), None, Some(4), Some(3), Some(0)]);
        assert_eq!(counts[1..6], [2, 4, 3, 0, 0].map(Some));
        let counts = derived(&SWITCH, &[Some(9), None, Some(4), Some(3), None]);
        assert_eq!(counts[1..6], [None; 5]);
    }

    #[test]
    fn where_the_facts_miss_an_edge_only_what_hangs_together_is_given_up() {
        // Somebody else came to block 1.
        let counts = derived(&SWITCH, &[Some(9), Some(12), Some(4), Some(3), Some(0)]);
        assert_eq!(counts[0], Some(9));
        assert_eq!(counts[1..6], [None; 5]);
        assert_eq!(counts[6..], [12, 4, 3].map(Some));
    }

    #[test]
    fn a_call_that_comes_back_more_often_than_made_is_lost_zero_times() {
        let edges = [
            (Some(0), Some(1), Fall, None),
            (Some(0), None, Lost, None),
            (Some(1), None, Leave, None),
        ];
        assert_eq!(derived(&edges, &[Some(0), Some(2)]), [2, 0, 2].map(Some));
        assert_eq!(derived(&edges, &[Some(3), Some(2)]), [2, 1, 2].map(Some));
    }
}
