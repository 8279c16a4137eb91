//! C in; flow graphs, and counted C, out.
//!
//! After zprof (1997), with another way of reading: a tokenizer and a parser that know the shapes
//! of statements and of those operators that evaluate an operand on a condition, and nothing else
//! of the language. [`Source::parse`] reads a text and makes flow graphs of its functions;
//! [`insert()`] puts a probe at every place of the plans that `flow` made for them; [`map`] explains
//! the counters.
//!
//! What is put in never changes what the text means: constant expressions, initialisers of static
//! variables, operands that are not evaluated and the text of `asm` are left alone, and whatever
//! cannot be read is refused by name.
#![forbid(unsafe_code)]

mod columns;
mod conditionals;
mod declarations;
mod definitions;
mod directives;
mod environment;
mod expand;
mod expressions;
mod flow_graph;
mod flows;
mod insert;
mod lex;
mod macros;
pub mod map;
mod names;
mod outline;
mod parser;
mod source;
mod statement_starts;
mod statements;
mod tree;
mod words;

pub use definitions::Definitions;
pub use flow_graph::{Block, EdgeSite, Site, Unit};
pub use flows::source_functions;
pub use insert::{Dialect, Fault, Probe, UnitPlan, every_block, insert, untold};
pub use lex::Position;
pub use source::{Declarations, Options, Source, Unreadable};
pub use statement_starts::StatementStart;
