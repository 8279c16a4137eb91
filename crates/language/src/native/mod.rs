//! Machine code of interpreters: where control may go in it, and what is in which register there.

pub(crate) mod code;
mod free_registers;
mod liveness;
pub(crate) mod path;
