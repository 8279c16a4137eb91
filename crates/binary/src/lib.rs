//! What is in this ELF file?
//!
//! Bytes in, facts out: the functions of an executable or shared library, their blocks and edges,
//! and the source lines of their instructions. Everything here is read from what the file says
//! and checked against its code; nothing is run. What cannot be known is refused by name.
//!
//! Symbols, Go's own table, the unwinder's tables, calls and, last, what remains say where functions
//! are (`functions.rs`). Each is decoded from its beginning to its end. Jumps, jump tables, landing
//! pads and addresses that are written down anywhere say where blocks begin. A block that begins
//! without need costs a little; one that is missed costs exactness, so doubts are decided in
//! favour of a block.
//!
//! There are two ways in. [`read`] looks at everything and joins what belongs to one function, for
//! reports. An [`Outline`] only finds out where parts of code begin, and tells of each part when it
//! is asked: for whoever counts a large program and cannot wait.
#![forbid(unsafe_code)]

mod blocks;
mod code;
mod code_places;
mod code_symbols;
mod data_among_code;
mod debug_files;
mod debug_info;
mod digest;
mod divide;
mod error;
mod explore;
mod frames;
mod functions;
mod go_table;
mod image;
mod indirect;
mod inline_chains;
mod inlined;
mod inlined_copies;
mod jump_table;
mod landing_pads;
mod layout;
mod lines;
mod mentions;
mod module;
mod names;
mod outline;
mod overlaps;
mod ownership;
mod plt;
mod pointers;
mod reach;
mod references;
mod relocations;
mod routine;
mod spans;
mod sweep;
mod symbols;
mod unknown_code;
mod variables;

pub use code_places::{CodePlace, code_places, file_id};
pub use code_symbols::{code_symbols, function_names, is_build, is_chosen_late};
pub use debug_files::{FileBytes, Wanted};
pub use error::Error;
pub use explore::Explored;
pub use go_table::is_of_go;
pub use inline_chains::{inline_chains, inlined_names};
pub use inlined::InlinedNames;
pub use inlined_copies::InlinedCopies;
pub use layout::{Layout, Segment, layout};
pub use module::{Binary, read};
pub use outline::{Found, Outline};
pub use pointers::pointers;
pub use routine::is_sigreturn;
pub use variables::{Variable, Variables, return_address, with_variables};
