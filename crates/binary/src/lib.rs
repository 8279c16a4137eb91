//! What is in this ELF file?
//!
//! Bytes in, facts out: the functions of an executable or shared library, their blocks and edges,
//! and the source lines of their instructions. Everything here is read from what the file says
//! and checked against its code; nothing is run. What cannot be known is refused by name.
//!
//! Symbols, the unwinder's tables, calls and, last, what remains say where functions are
//! (`functions.rs`). Each is decoded from its beginning to its end. Jumps, jump tables, landing
//! pads and addresses that are written down anywhere say where blocks begin. A block that begins
//! without need costs a little; one that is missed costs exactness, so doubts are decided in
//! favour of a block.
#![forbid(unsafe_code)]

mod blocks;
mod code;
mod debug_files;
mod debug_info;
mod error;
mod frames;
mod functions;
mod image;
mod indirect;
mod inlined;
mod inlined_copies;
mod jump_table;
mod landing_pads;
mod layout;
mod lines;
mod module;
mod names;
mod overlaps;
mod ownership;
mod plt;
mod references;
mod relocations;
mod sweep;
mod symbols;

pub use debug_files::Wanted;
pub use error::Error;
pub use inlined_copies::InlinedCopies;
pub use layout::{Layout, Segment, layout};
pub use module::{Binary, read};
