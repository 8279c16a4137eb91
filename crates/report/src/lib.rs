//! Finished counts in, bytes out.
//!
//! [`Report::new`] makes a table of counted modules: one row a module, file, function, line,
//! block, instruction or edge. [`text`], [`csv`] and [`json`] write it. [`annotate`] puts counts
//! beside source text or instructions; [`html`] makes one page of everything. [`export`] writes
//! formats of other tools. [`diff`] compares two sets of counts. Nothing here opens a file or prints:
//! whoever calls hands over what is needed, and gets a string.
#![forbid(unsafe_code)]

pub mod annotate;
mod branches;
mod call_graph;
mod callees;
mod callers;
mod calls;
mod checks;
mod count;
mod coverage;
mod covered;
pub mod csv;
mod demangle;
pub mod diff;
mod escape;
mod events;
mod exact_calls;
pub mod export;
mod fold;
mod gate;
mod glob;
pub mod html;
mod inlined;
mod inlined_calls;
mod joined;
pub mod json;
mod lines;
mod listed;
mod names;
mod number;
mod only;
mod outcomes;
mod own;
pub mod rates;
mod report;
mod rows;
mod runtimes;
mod shorten;
mod source;
pub mod stat;
mod syscalls;
mod system_call_names;
mod table;
mod targets;
pub mod text;
mod threads;
pub mod time;
mod tokens;
mod unknown_name;
mod values;

pub use branches::{Branch, Way, branches};
pub use callees::{FindPointers, FindTransfers, FunctionId};
pub use callers::{CallsOf, Direction};
pub use count::{Count, CountedBlock, blocks, edges};
pub use coverage::coverage_notes;
pub use covered::{Covered, CoveredFile, CoveredFunction, Part, covered};
pub use demangle::{demangle, is_end_of_path, without_parameters};
pub use escape::{visible, visible_lines};
pub use events::{Amount, EventSums, FindEvents, WantedEvents};
pub use exact_calls::ExactCalls;
pub use gate::{Gate, Percent};
pub use glob::Pattern;
pub use lines::{LineCount, line_counts, line_counts_in};
pub use names::is_counted;
pub use number::{plural, share, thousands, time_text};
pub use only::{Filter, Only, Written, line_range, split_module};
pub use own::{Own, OwnModules, is_of_the_system};
pub use report::{Decode, Refused, Report, Request, RunSummary, refused};
pub use shorten::brief;
pub use table::{Cell, Row, Table, Unit};
pub use unknown_name::{no_function_called, no_function_in, no_module_called, nothing_called};
pub use values::{Tallied, TalliedPlace, TalliedValue, tallied};

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A number is not representable.
    #[error("more than 18,446,744,073,709,551,615 instructions executed: too many to add up")]
    TooLarge,
    /// A number is more than a format can hold.
    #[error("a count is larger than 9,223,372,036,854,775,807, the largest that this format holds")]
    TooLargeForFormat,
    /// A file cannot be written, and why.
    #[error("{0}")]
    NotWritten(String),
    /// No function that was counted, or inlined, has the name that was asked for.
    #[error("{0}")]
    NoSuchFunction(String),
    /// `--sort` names no column.
    #[error("`{key}` is no column of this report; sort by {}", columns.join(", "))]
    NoSuchColumn {
        /// What was asked for.
        key: String,
        /// What there is.
        columns: Vec<&'static str>,
    },
    /// A format has no room for counts.
    #[error("this format holds samples; `headcount time` takes them")]
    NoCounts,
    /// A format has no room for time.
    #[error("this format cannot hold samples; folded, pprof and firefox can")]
    NoTime,
    /// A format is about one module.
    #[error("this format is about one module; --module names one of {}", modules.join(", "))]
    OneModule {
        /// What there is.
        modules: Vec<String>,
    },
    /// A format needs what a module does not have.
    #[error("{path}: {why}")]
    Unfit {
        /// The path of the module.
        path: String,
        /// What is missing, and the cure.
        why: String,
    },
}
