//! What do the readings say about the places that carry no counter?
//!
//! Leaves inwards: a joint of the net with one unknown pipe tells that pipe's count, which may
//! leave one unknown pipe at the pipe's other end, and so on. Every pipe is settled once.

use std::fmt;

use headcount_model::{BlockId, EdgeId, EdgeKind, FlowGraph, GraphCounts, Place, Plan, Readings};

use crate::net::{Net, NoSuchBlock, OUTSIDE};

/// Why no counts follow from the readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// There are not as many readings as counters.
    WrongNumber {
        /// Counters of the plan.
        counters: usize,
        /// Readings given.
        readings: usize,
    },
    /// An edge has an end at a block that the graph does not have.
    NoSuchBlock {
        /// The edge.
        edge: EdgeId,
    },
    /// The plan has a counter at a place that the graph does not have.
    NoSuchPlace {
        /// The place.
        place: Place,
    },
    /// A visit began or ended in a block that the graph does not have.
    NoSuchVisit {
        /// The block.
        block: BlockId,
    },
    /// The plan has two counters at one place.
    CountedTwice {
        /// The place.
        place: Place,
    },
    /// The plan has too few counters to tell this place's count.
    Undetermined {
        /// One of the places left open.
        place: Place,
    },
    /// The count that follows is below zero: control came or went in a way the graph does not
    /// show.
    Negative {
        /// The place.
        place: Place,
        /// What follows from the readings.
        count: i128,
    },
    /// The count that follows does not fit 64 bits.
    TooLarge {
        /// The place.
        place: Place,
    },
    /// The plan counts more than it needs, and the readings do not agree with each other.
    Uneven {
        /// A block that was entered and left a different number of times.
        block: BlockId,
    },
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |place| match place {
            Place::Block(BlockId(number)) => format!("block {number}"),
            Place::Edge(EdgeId(number)) => format!("edge {number}"),
        };
        match *self {
            Self::WrongNumber { counters, readings } => {
                write!(f, "{readings} readings for {counters} counters")
            }
            Self::NoSuchBlock { edge } => {
                write!(f, "edge {} has an end at no block of its graph", edge.0)
            }
            Self::NoSuchPlace { place } => {
                write!(
                    f,
                    "a counter stands at {}, which does not exist",
                    name(place)
                )
            }
            Self::NoSuchVisit { block } => {
                write!(
                    f,
                    "a visit began or ended in block {}, which does not exist",
                    block.0
                )
            }
            Self::CountedTwice { place } => {
                write!(f, "two counters stand at {}", name(place))
            }
            Self::Undetermined { place } => {
                write!(f, "no counter tells how often {} ran", name(place))
            }
            Self::Negative { place, count } => {
                write!(f, "{} would have run {count} times", name(place))
            }
            Self::TooLarge { place } => {
                write!(f, "{} would have run more than 2^64 times", name(place))
            }
            Self::Uneven { block } => write!(
                f,
                "block {} was entered and left a different number of times",
                block.0
            ),
        }
    }
}

impl std::error::Error for Contradiction {}

impl From<NoSuchBlock> for Contradiction {
    fn from(NoSuchBlock { edge }: NoSuchBlock) -> Self {
        Self::NoSuchBlock { edge }
    }
}

/// The pipes that carry a plan's counters, in its order.
pub fn pipes_of(plan: &Plan, net: &Net) -> Result<Vec<usize>, Contradiction> {
    let mut is_counted = vec![false; net.pipes.len()];
    let mut pipes = Vec::with_capacity(plan.counters.len());
    for &place in &plan.counters {
        let Some(pipe) = net.pipe(place) else {
            return Err(Contradiction::NoSuchPlace { place });
        };
        if std::mem::replace(&mut is_counted[pipe], true) {
            return Err(Contradiction::CountedTwice { place });
        }
        pipes.push(pipe);
    }
    Ok(pipes)
}

/// Whether there is a reading for each counter.
pub fn same_number(counters: usize, readings: &Readings) -> Result<(), Contradiction> {
    match readings.0.len() {
        readings if readings == counters => Ok(()),
        readings => Err(Contradiction::WrongNumber { counters, readings }),
    }
}

/// Threads that came into a block, or went out of it, by no edge of its graph: a signal, a fault,
/// death, `fork`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The block.
    pub block: BlockId,
    /// Where in it.
    pub at: VisitPoint,
    /// How many came (positive) or went (negative).
    pub delta: i64,
}

/// What a thread that came or went was about to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitPoint {
    /// The first instruction of the block: who goes took an edge to it, yet does not count as
    /// having run it.
    Entrance,
    /// A later one: who goes counts as having run the block, and takes no edge out of it.
    Inside,
}

/// The counts of all blocks and edges, from the readings of a plan's counters.
///
/// A call may come back more often than it was made: after `fork`, every function that was active
/// goes on twice. Its edge [`EdgeKind::Lost`] is then below zero, which contradicts nothing, and
/// is reported as zero; all other counts are exact.
pub fn recover(
    graph: &FlowGraph,
    plan: &Plan,
    readings: &Readings,
) -> Result<GraphCounts, Contradiction> {
    recover_with_visits(graph, plan, readings, &[])
}

/// Like [`recover`], where control also came and went by no edge. With all such visits at hand,
/// the counts are as exact as without any.
pub fn recover_with_visits(
    graph: &FlowGraph,
    plan: &Plan,
    readings: &Readings,
    visits: &[Visit],
) -> Result<GraphCounts, Contradiction> {
    let solved = Solved::new(graph, plan, readings, visits)?;
    solved.check(graph)?;
    solved.counts(graph)
}

/// Like [`recover`], for a program that was stopped at any point: where it was then, control went
/// in and did not come out. A count below zero becomes zero.
///
/// Also returns the places where the readings contradict themselves: those with a count below
/// zero and the blocks entered and left a different number of times. Every other count may be off
/// by the number of visits that were open, too.
pub fn recover_lenient(
    graph: &FlowGraph,
    plan: &Plan,
    readings: &Readings,
) -> Result<(GraphCounts, Vec<Place>), Contradiction> {
    let solved = Solved::new(graph, plan, readings, &[])?;
    Ok((solved.counts(graph)?, solved.odd_places(graph)))
}

/// Every count as the arithmetic gives it, be it below zero.
struct Solved {
    net: Net,
    counts: Vec<i128>,
    /// In ascending order.
    uneven: Vec<BlockId>,
}

impl Solved {
    fn new(
        graph: &FlowGraph,
        plan: &Plan,
        readings: &Readings,
        visits: &[Visit],
    ) -> Result<Self, Contradiction> {
        let net = Net::new(graph)?;
        let mut puzzle = Puzzle::new(&net);
        puzzle.admit(visits)?;
        puzzle.read(plan, readings)?;
        puzzle.solve();
        let (counts, uneven) = puzzle.finish()?;
        Ok(Self {
            net,
            counts,
            uneven,
        })
    }

    fn check(&self, graph: &FlowGraph) -> Result<(), Contradiction> {
        if let Some(pipe) = (0..self.counts.len()).find(|&pipe| self.is_too_low(graph, pipe)) {
            return Err(Contradiction::Negative {
                place: self.net.place(pipe),
                count: self.counts[pipe],
            });
        }
        match self.uneven.first() {
            Some(&block) => Err(Contradiction::Uneven { block }),
            None => Ok(()),
        }
    }

    /// Whether a count is below zero where that makes no sense.
    fn is_too_low(&self, graph: &FlowGraph, pipe: usize) -> bool {
        let may_come_back_twice = || match self.net.place(pipe) {
            Place::Edge(edge) => graph.edges[edge.index()].kind == EdgeKind::Lost,
            Place::Block(_) => false,
        };
        self.counts[pipe] < 0 && !may_come_back_twice()
    }

    /// The places that `check` would complain about.
    fn odd_places(&self, graph: &FlowGraph) -> Vec<Place> {
        let is_uneven = |place| match place {
            Place::Block(block) => self.uneven.binary_search(&block).is_ok(),
            Place::Edge(_) => false,
        };
        (0..self.counts.len())
            .map(|pipe| (pipe, self.net.place(pipe)))
            .filter(|&(pipe, place)| self.is_too_low(graph, pipe) || is_uneven(place))
            .map(|(_, place)| place)
            .collect()
    }

    /// The counts as they are reported; those below zero as zero.
    fn counts(&self, graph: &FlowGraph) -> Result<GraphCounts, Contradiction> {
        let mut counts = Vec::with_capacity(self.counts.len());
        for (pipe, &count) in self.counts.iter().enumerate() {
            let place = self.net.place(pipe);
            let count =
                u64::try_from(count.max(0)).map_err(|_| Contradiction::TooLarge { place })?;
            counts.push(count);
        }
        let edges = counts.split_off(graph.blocks as usize);
        Ok(GraphCounts {
            blocks: counts,
            edges,
        })
    }
}

/// What is known at a joint.
#[derive(Clone, Copy, Default)]
struct Joint {
    /// Known flow in, less known flow out, visits included. No sum of u64s that fits in memory overflows it.
    surplus: i128,
    /// How many pipes with unknown flow end here.
    unknown: usize,
    /// All their numbers, xor-ed: when one is left, its number.
    mixed: usize,
}

/// The net while it is being solved.
struct Puzzle<'a> {
    net: &'a Net,
    counts: Vec<Option<i128>>,
    joints: Vec<Joint>,
}

impl<'a> Puzzle<'a> {
    fn new(net: &'a Net) -> Self {
        let mut joints = vec![Joint::default(); net.joints];
        for (number, pipe) in net.pipes.iter().enumerate() {
            // A pipe from a joint to itself changes nothing there and follows from nothing.
            if pipe.from != pipe.to {
                for end in [pipe.from, pipe.to] {
                    joints[end].unknown += 1;
                    joints[end].mixed ^= number;
                }
            }
        }
        Self {
            net,
            counts: vec![None; net.pipes.len()],
            joints,
        }
    }

    /// What came by no edge flows from the outside into the midst of its block.
    fn admit(&mut self, visits: &[Visit]) -> Result<(), Contradiction> {
        for &Visit { block, at, delta } in visits {
            let Some(pipe) = self.net.pipe(Place::Block(block)) else {
                return Err(Contradiction::NoSuchVisit { block });
            };
            let joint = match at {
                VisitPoint::Entrance => self.net.pipes[pipe].from,
                VisitPoint::Inside => self.net.pipes[pipe].to,
            };
            self.joints[joint].surplus += i128::from(delta);
            self.joints[OUTSIDE].surplus -= i128::from(delta);
        }
        Ok(())
    }

    fn read(&mut self, plan: &Plan, readings: &Readings) -> Result<(), Contradiction> {
        same_number(plan.counters.len(), readings)?;
        for (pipe, &reading) in pipes_of(plan, self.net)?.into_iter().zip(&readings.0) {
            self.settle(pipe, i128::from(reading));
        }
        Ok(())
    }

    fn solve(&mut self) {
        let mut leaves: Vec<usize> = (0..self.joints.len()).collect();
        while let Some(leaf) = leaves.pop() {
            let Joint {
                surplus,
                unknown: 1,
                mixed: number,
            } = self.joints[leaf]
            else {
                continue;
            };
            let pipe = self.net.pipes[number];
            let (count, other) = if pipe.from == leaf {
                (surplus, pipe.to)
            } else {
                (-surplus, pipe.from)
            };
            self.settle(number, count);
            leaves.push(other);
        }
    }

    fn settle(&mut self, number: usize, count: i128) {
        self.counts[number] = Some(count);
        let pipe = self.net.pipes[number];
        if pipe.from == pipe.to {
            return;
        }
        self.joints[pipe.from].surplus -= count;
        self.joints[pipe.to].surplus += count;
        for end in [pipe.from, pipe.to] {
            self.joints[end].unknown -= 1;
            self.joints[end].mixed ^= number;
        }
    }

    fn finish(self) -> Result<(Vec<i128>, Vec<BlockId>), Contradiction> {
        let mut counts = Vec::with_capacity(self.counts.len());
        for (pipe, count) in self.counts.into_iter().enumerate() {
            let place = self.net.place(pipe);
            counts.push(count.ok_or(Contradiction::Undetermined { place })?);
        }
        // If the outside is uneven, so is some block: the surpluses of all joints add up to zero.
        let mut uneven: Vec<BlockId> = (0..self.joints.len())
            .filter(|&joint| self.joints[joint].surplus != 0)
            .filter_map(Net::block)
            .collect();
        uneven.dedup();
        Ok((counts, uneven))
    }
}
