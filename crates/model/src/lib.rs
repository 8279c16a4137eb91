//! The words of headcount, and nothing else: what every other crate trades in.
//!
//! A route discovers units and makes [`FlowGraph`]s of them; `flow` answers with a [`Plan`] and
//! later turns [`Readings`] into [`GraphCounts`]; `profile` keeps [`Module`]s and [`Run`]s;
//! `report` turns them into text.
#![forbid(unsafe_code)]

mod address;
mod call_costs;
mod event;
mod expression;
mod graph;
mod keyed_probe;
mod language;
pub mod library;
pub mod packed;
mod plan;
mod program;
mod refusal;
mod routine;
mod run;
mod runtime_costs;
mod samples;
mod source_flow;
mod source_path;
mod source_place;
mod system_calls;
mod thread_counts;
mod transfer;
mod value_counts;

pub use address::{LinkAddr, LoadAddr, LoadBias, NOWHERE, join_ranges};
pub use call_costs::{CallContext, CallCosts, CallEdge, CalledFunction};
pub use event::{Bounds, Event, Events, InstructionEvents, Varies};
pub use expression::{Binary, Expression, Unary, Width};
pub use graph::{BlockId, Edge, EdgeId, EdgeKind, FlowGraph, Node};
pub use keyed_probe::{
    DIRECT_BESIDES, DIRECT_SLOTS, Direct, KeyKind, KeyOf, KeyedProbe, KeyedProbes, MOST_ASKED,
    MOST_PLACES, MOST_TALLIES,
};
pub use language::Language;
pub use plan::{EventPlan, GraphCounts, Place, Plan, ProbeCosts, Readings};
pub use program::{
    Block, CodeSymbol, Compiled, FileId, Function, FunctionEdge, InlineFrame, InlinedCall, LineRun,
    Module, Span,
};
pub use refusal::Refusal;
pub use routine::{Entrance, Routine, RoutineBlock};
pub use run::{Counted, FunctionCounts, ModuleCounts, PAUSED, Placement, Process, Run, Shift};
pub use runtime_costs::{
    ChargePlace, OfProgram, RegionUse, RuntimeCharge, RuntimeCosts, StorageEvent, StorageRegion,
};
pub use samples::{Frame, SampledModule, SampledThread, Samples, Site, Stack};
pub use source_flow::{DirectCall, SourceBlock, SourceCall, SourceFlows, SourceFunction};
pub use source_path::source_path;
pub use source_place::{BlockKind, Operation, SourcePlace};
pub use system_calls::{SystemCallNumber, SystemCalls};
pub use thread_counts::{CountedThread, ThreadCounts, ThreadModule};
pub use transfer::{Pointer, Target, Transfer, TransferKind, Transfers};
pub use value_counts::{Caller, CodePoint, Key, Tally, TallyRow, ValueCounts};
