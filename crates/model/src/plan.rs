//! Which places carry a counter, what the counters said, and what follows from it.

use crate::{BlockId, EdgeId};

/// A place that can carry a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Anywhere in a block: counts how often the block ran.
    Block(BlockId),
    /// On the way between two blocks.
    Edge(EdgeId),
}

/// What one execution of a probe costs at each place, in tenths of an in-line increment.
/// `None`: no probe can stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeCosts {
    /// One cost a block.
    pub blocks: Vec<Option<u32>>,
    /// One cost an edge.
    pub edges: Vec<Option<u32>>,
}

/// Which places carry a counter; counter `i` stands at `counters[i]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The places, in the order of their counters.
    pub counters: Vec<Place>,
}

/// What the probes of a plan do besides, so that one number a thread counts all events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPlan {
    /// What each probe adds to the number, in the plan's order.
    pub increments: Vec<i32>,
    /// By how much the true number of events is ahead where each block begins.
    pub leads: Vec<i32>,
}

/// What the counters of one plan said, in the plan's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings(pub Vec<u64>);

/// One count for every block and every edge of one flow graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphCounts {
    /// How often each block's first instruction executed.
    pub blocks: Vec<u64>,
    /// How often each edge was taken.
    pub edges: Vec<u64>,
}
