//! The profile: one SQLite file that holds programs, runs and counts.
//!
//! `schema.sql` is the documentation of the file; anyone can open it with `sqlite3`. Facts about
//! a build are stored once, each run adds only what it counted. Everything one call stores is
//! one transaction of SQLite's rollback journal, so a writer that is killed, a full disk or two
//! writers at once leave either all of a run or nothing, in one file.
//!
//! ```no_run
//! use headcount_profile::{Profile, RunSelection};
//!
//! let profile = Profile::open("headcount.db".as_ref())?;
//! let loaded = profile.load(&RunSelection::Last)?;
//! println!("{} modules", loaded.counted.len());
//! # Ok::<(), headcount_profile::Error>(())
//! ```
#![forbid(unsafe_code)]

mod counts;
mod error;
mod facts;
mod merge;
mod module_facts;
mod open;
mod packed;
mod plain;
mod read;
mod remove;
mod same_work;
mod samples;
mod shape;
mod sum;
mod system_calls;
#[cfg(test)]
mod tests;
mod write;

pub use error::{Error, Problem};
pub use merge::{Merged, merge};
pub use module_facts::{FunctionFacts, ModuleFacts};
pub use plain::{PlainTables, Value};
pub use read::{Executed, Loaded, RunInfo, RunSelection, Timed};
pub use remove::Removed;
pub use same_work::Work;
pub use write::{Added, ModuleCounted, SparseCounts};

/// Makes counts, and notes for the user, of what the counters of a module said. An error is a
/// sentence about readings that make no sense.
pub type Recover = fn(&ModuleFacts, &[u8]) -> Result<(SparseCounts, Vec<String>), String>;

/// An open profile.
pub struct Profile {
    db: rusqlite::Connection,
    path: std::path::PathBuf,
    recover: Recover,
}

type Result<T, E = Error> = std::result::Result<T, E>;
