//! What one run of a program counted.

use crate::Module;

/// One run: a program started once, with all its processes and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Names this run among all others, so that no run is stored twice.
    pub key: String,
    /// The command as it was started; empty if unknown.
    pub command: Vec<String>,
    /// Nanoseconds since 1970; 0 if unknown.
    pub started: u64,
    /// The same for its end.
    pub ended: u64,
    /// Exit status, or 128 + signal; `None` if nobody saw the end.
    pub status: Option<i32>,
    /// The machine's name for its processor.
    pub cpu: String,
    /// Its processes.
    pub processes: Vec<Process>,
    /// What makes counts of this run uncertain, in sentences for the report.
    pub notes: Vec<String>,
    /// The counts, one item a module.
    pub modules: Vec<ModuleCounts>,
}

/// A process of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number while it ran.
    pub pid: u32,
    /// The threads that counted something.
    pub threads: Vec<u32>,
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// One count a block.
    pub blocks: Vec<u64>,
    /// One count an edge.
    pub edges: Vec<u64>,
}

/// A module with the counts of one run, or the sum of several: what reports are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The facts.
    pub module: Module,
    /// The counts, in the module's order of functions.
    pub functions: Vec<FunctionCounts>,
}
