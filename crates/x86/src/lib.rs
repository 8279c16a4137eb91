//! What does this instruction do?
#![forbid(unsafe_code)]

mod decode;
pub mod mnemonic;

pub use decode::{Instruction, NotCode, count, decode};
