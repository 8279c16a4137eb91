//! What does this instruction do?
#![forbid(unsafe_code)]

mod decode;
mod events;
mod floating_point;
pub mod mnemonic;
pub mod out_of_line;
pub mod registers;

pub use decode::{
    Instruction, NotCode, count, decode, is_packed, length_at, targets, transfers, walk,
};
pub use events::events;
