//! What one run of a program counted.

use crate::{
    CallCosts, LoadBias, Module, RuntimeCosts, SourceFlows, SystemCalls, ThreadCounts, ValueCounts,
};

/// The phase in which a program had asked that nothing be counted. It is left out of reports, unless it
/// is asked for.
pub const PAUSED: &str = "paused";

/// One run: a program started once, with all its processes and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Names this run among all others, so that no run is stored twice.
    pub key: String,
    /// The same for all runs of one command; empty if this is its only one.
    pub batch: String,
    /// The mark that it began with, if it is a part of what a program did; else empty.
    pub phase: String,
    /// The command as it was started; empty if unknown.
    pub command: Vec<String>,
    /// Nanoseconds since 1970; 0 if unknown.
    pub started: u64,
    /// The same for its end.
    pub ended: u64,
    /// Exit status, or 128 + signal; `None` if nobody saw the end.
    pub status: Option<i32>,
    /// Whether it saw only a part of what the program did: that ran already, or went on.
    pub is_part: bool,
    /// The machine's name for its processor.
    pub cpu: String,
    /// The name of the machine that took it into a profile; empty if unknown.
    pub host: String,
    /// Its processes.
    pub processes: Vec<Process>,
    /// What makes counts of this run uncertain, in sentences for the report.
    pub notes: Vec<String>,
    /// The counts, one item a module.
    pub modules: Vec<ModuleCounts>,
    /// What its calls cost, if that was asked for.
    pub calls: Option<CallCosts>,
    /// What was found by value, if that was asked for.
    pub values: Option<ValueCounts>,
    /// What each of its threads counted, if that was asked for.
    pub threads: Option<ThreadCounts>,
    /// What the runtime of interpreters cost, where that was measured.
    pub runtimes: Option<RuntimeCosts>,
    /// How often it made system calls, as far as somebody saw their numbers.
    pub system_calls: SystemCalls,
}

/// A process of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number while it ran.
    pub pid: u32,
    /// The threads that counted something.
    pub threads: Vec<u32>,
    /// Where it had its modules, as far as somebody saw it.
    pub loaded: Vec<Placement>,
}

/// A module in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// Which module: its [`Module::build_id`].
    pub build_id: String,
    /// How far it was moved.
    pub bias: LoadBias,
}

/// The counts of one module in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleCounts {
    /// Which module: its [`Module::build_id`].
    pub build_id: String,
    /// One item a function, in the module's order.
    pub functions: Vec<FunctionCounts>,
}

/// The counts of one function.
///
/// Instruction number `i` of block `b` ran `blocks[b]` times, plus every `delta` of its shifts
/// whose `from` is not above `i`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// How often each block ran; none where this run did not count it.
    pub blocks: Vec<Option<u64>>,
    /// How often each edge was taken; none where this run did not count it.
    pub edges: Vec<Option<u64>>,
    /// Visits that began or ended inside of a block, by block and instruction. Those of a block
    /// that was not counted mean nothing.
    pub shifts: Vec<Shift>,
    /// Blocks whose count reached its limit: they ran at least so often. Sorted.
    pub at_least: Vec<u32>,
}

impl FunctionCounts {
    /// Everything was counted, and every visit of a block was a whole one.
    pub fn whole(
        blocks: impl IntoIterator<Item = u64>,
        edges: impl IntoIterator<Item = u64>,
    ) -> Self {
        Self {
            blocks: blocks.into_iter().map(Some).collect(),
            edges: edges.into_iter().map(Some).collect(),
            ..Self::default()
        }
    }
}

/// Visits of a block that began (positive) or ended (negative) before its instruction number
/// `from`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shift {
    /// Index of the block in its function.
    pub block: u32,
    /// Index of the first instruction in the block that has the other count.
    pub from: u32,
    /// How many visits more, or fewer.
    pub delta: i64,
}

/// A module with the counts of one run, or the sum of several: what reports are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The facts.
    pub module: Module,
    /// The counts, in the module's order of functions.
    pub functions: Vec<FunctionCounts>,
    /// How control moves through its source files, as far as somebody looked.
    pub sources: SourceFlows,
}
