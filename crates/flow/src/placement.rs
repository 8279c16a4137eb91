//! Where do counters cost least and still say everything?
//!
//! On the chords of a spanning tree of the net: the tree's own pipes follow from what flows into
//! and out of their joints. The tree that is worth most to leave alone is the maximum spanning
//! tree by frequency times cost, and Kruskal's way finds it.

use std::cmp::Ordering;
use std::fmt;

use headcount_model::{FlowGraph, Place, Plan, ProbeCosts};

use crate::Frequencies;
use crate::net::{Net, NoSuchBlock};

/// No choice of counters can tell the count of this place: it lies on a ring of places none of
/// which can carry a probe (or it is an edge of a block that the graph does not have).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsolvable {
    /// One place of the ring.
    pub place: Place,
}

impl fmt::Display for Unsolvable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, number) = match self.place {
            Place::Block(block) => ("block", block.0),
            Place::Edge(edge) => ("edge", edge.0),
        };
        write!(
            f,
            "no counter can tell how often {what} {number} ran: too few places around it can carry one"
        )
    }
}

impl std::error::Error for Unsolvable {}

impl From<NoSuchBlock> for Unsolvable {
    fn from(NoSuchBlock { edge }: NoSuchBlock) -> Self {
        Self {
            place: Place::Edge(edge),
        }
    }
}

/// Chooses the cheapest set of places from whose counts all others follow.
///
/// A place whose cost is missing can carry no probe; one whose frequency is missing never runs.
/// Counters are numbered blocks first, then edges, each in the order of the graph.
pub fn place_counters(
    graph: &FlowGraph,
    frequencies: &Frequencies,
    costs: &ProbeCosts,
) -> Result<Plan, Unsolvable> {
    let net = Net::new(graph)?;
    let prices = prices(graph, frequencies, costs);
    let mut dearest_first: Vec<usize> = (0..net.pipes.len()).collect();
    // The sort is stable and starts with the last place, so among equals edges fall into the tree
    // before blocks do: a probe in a block needs no jump.
    dearest_first.reverse();
    dearest_first.sort_by(|&one, &other| prices[other].compare(&prices[one]));

    let mut parts = Parts::new(net.joints);
    let mut chords = Vec::new();
    for pipe in dearest_first {
        if parts.join(net.pipes[pipe].from, net.pipes[pipe].to) {
            continue;
        }
        if prices[pipe] == Price::NoProbe {
            return Err(Unsolvable {
                place: net.place(pipe),
            });
        }
        chords.push(pipe);
    }
    chords.sort_unstable();
    Ok(Plan {
        counters: chords.into_iter().map(|pipe| net.place(pipe)).collect(),
    })
}

/// What a counter at a place costs one call of the function.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Price {
    Costs(f32),
    NoProbe,
}

impl Price {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Costs(one), Self::Costs(other)) => one.total_cmp(other),
            (Self::NoProbe, Self::NoProbe) => Ordering::Equal,
            (Self::NoProbe, _) => Ordering::Greater,
            (_, Self::NoProbe) => Ordering::Less,
        }
    }
}

/// The prices of all places, in the order of the net's pipes.
fn prices(graph: &FlowGraph, frequencies: &Frequencies, costs: &ProbeCosts) -> Vec<Price> {
    let price = |frequencies: &[f64], costs: &[Option<u32>], place: usize| {
        let often = frequencies.get(place).copied().unwrap_or(0.0);
        match costs.get(place) {
            // Single precision: what differs by rounding only is a tie.
            Some(&Some(cost)) => Price::Costs((often * f64::from(cost)) as f32),
            Some(None) | None => Price::NoProbe,
        }
    };
    let blocks =
        (0..graph.blocks as usize).map(|place| price(&frequencies.blocks, &costs.blocks, place));
    let edges = (0..graph.edges.len()).map(|place| price(&frequencies.edges, &costs.edges, place));
    blocks.chain(edges).collect()
}

/// Which joints the tree connects so far (Tarjan's disjoint sets).
struct Parts {
    parent: Vec<usize>,
    size: Vec<usize>,
}

impl Parts {
    fn new(joints: usize) -> Self {
        Self {
            parent: (0..joints).collect(),
            size: vec![1; joints],
        }
    }

    fn root(&mut self, mut joint: usize) -> usize {
        while self.parent[joint] != joint {
            self.parent[joint] = self.parent[self.parent[joint]];
            joint = self.parent[joint];
        }
        joint
    }

    /// Connects two joints; `false` if they already were.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        if one == other {
            return false;
        }
        let (small, large) = if self.size[one] < self.size[other] {
            (one, other)
        } else {
            (other, one)
        };
        self.parent[small] = large;
        self.size[large] += self.size[small];
        true
    }
}
