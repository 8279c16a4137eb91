//! Assembler text in; flow graphs, and counted assembler text, out.
//!
//! This is Weinberger's `bb` for the compilers of today: [`Source::parse`] reads what gcc or
//! clang wrote, [`units`] makes flow graphs of it, and [`insert`] puts a probe at every place of
//! the plans that `flow` made for them, with a [`map`] that explains the counters.
#![forbid(unsafe_code)]

mod edits;
mod flow_graph;
mod insert;
mod instruction;
mod lex;
mod lines;
mod liveness;
pub mod map;
mod reader;
mod record;
mod source;
mod symbols;
mod unwind;

pub use flow_graph::{Unit, units};
pub use insert::{Counted, Keeper, insert, only_refusals};
pub use source::{Options, Source, Unreadable};
