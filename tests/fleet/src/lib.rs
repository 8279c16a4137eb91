//! Are the answers that engines for large tables give about many machines' counts those of reports?
//!
//! The questions are the SQL of `docs/fleet.md`, as it stands there.

pub mod engine;
pub mod fleet;
pub mod judge;
pub mod page;
