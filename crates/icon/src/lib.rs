//! Icon programs, as the translator of Icon 9.4 sees them: by source token.
//!
//! [`translate`] makes of a source the same ucode as `icont -c`, byte for byte, and knows of each
//! instruction the token that it is of. [`Icode::read`] reads the program that sources were linked to,
//! and [`join`] says whose each of its instructions is.
#![forbid(unsafe_code)]

mod agree;
mod declarations;
mod error;
mod escape;
mod evaluation;
mod expressions;
mod files;
mod generate;
mod icode;
mod join;
mod lexer;
mod line;
mod literals;
mod loaded;
mod loops;
mod macros;
mod opcode;
mod operators;
mod preprocess;
mod starts;
mod structures;
mod text;
mod tokens;
mod translate;
mod tree;
mod ucode;
mod words;

#[cfg(test)]
mod tests;

pub use error::{Error, Fault};
pub use files::{FileId, Names};
pub use icode::{Executed, GlobalName, Icode, Linked, Place, Unreadable};
pub use join::{Joined, Refusal, join};
pub use opcode::Opcode;
pub use preprocess::Found;
pub use starts::{Count, Start, Sum};
pub use tokens::{Kind, Token};
pub use translate::{Translation, translate};
pub use tree::{Constant, Local, LocalKind};
pub use ucode::{Code, Instruction, Item, Operand};
