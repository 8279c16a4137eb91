//! The proving ground: real programs, where their sources come from, and how
//! a child process is run so that it can neither hang us nor outlive us.
//!
//! Two packages stand on it: `headcount-torture` asks whether counts are
//! right, `headcount-bench` asks what they cost.

pub mod child;
pub mod program;
pub mod real;
pub mod registry;
pub mod workers;
