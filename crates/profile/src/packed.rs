//! What a run may have besides counts, packed and compressed: a table each, with a row for a run.

use crate::{Problem, Result};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use headcount_model::{CallCosts, RuntimeCosts, ThreadCounts, ValueCounts};
use rusqlite::{Connection, OptionalExtension};
use std::io::{Read, Write};

/// Something that is kept so.
pub(crate) trait Kept: Sized {
    /// Stores it.
    const INSERT: &'static str;
    /// Finds it.
    const SELECT: &'static str;
    /// What it is, in words.
    const WHAT: &'static str;

    fn pack(&self) -> Vec<u8>;
    fn unpack(bytes: &[u8]) -> Option<Self>;
}

macro_rules! kept {
    ($kind:ty, $table:literal, $what:literal) => {
        impl Kept for $kind {
            const INSERT: &'static str = concat!("INSERT INTO ", $table, " VALUES (?, ?)");
            const SELECT: &'static str = concat!("SELECT packed FROM ", $table, " WHERE run = ?");
            const WHAT: &'static str = $what;

            fn pack(&self) -> Vec<u8> {
                self.pack()
            }

            fn unpack(bytes: &[u8]) -> Option<Self> {
                Self::unpack(bytes)
            }
        }
    };
}

kept!(CallCosts, "calls", "what its calls cost");
kept!(ThreadCounts, "run_threads", "what its threads counted");
kept!(ValueCounts, "run_values", "what it counted by value");
kept!(
    RuntimeCosts,
    "run_runtimes",
    "what the runtime of its interpreters cost"
);

/// Stores what a run has.
pub(crate) fn write<T: Kept>(db: &Connection, run: i64, it: &T) -> Result<(), Problem> {
    let mut compressed = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = compressed.write_all(&it.pack());
    let bytes = written.and_then(|()| compressed.finish());
    let bytes = bytes.map_err(|_| Problem::TooLarge(T::WHAT.into()))?;
    db.prepare_cached(T::INSERT)?.execute((run, bytes))?;
    Ok(())
}

/// What a run has, if that was asked for.
pub(crate) fn read<T: Kept>(db: &Connection, run: i64) -> Result<Option<T>, Problem> {
    let mut query = db.prepare_cached(T::SELECT)?;
    let packed: Option<Vec<u8>> = query.query_row([run], |row| row.get(0)).optional()?;
    let Some(packed) = packed else {
        return Ok(None);
    };
    let damaged = || Problem::Damaged(format!("{} makes no sense", T::WHAT));
    let mut bytes = Vec::new();
    let read = ZlibDecoder::new(&*packed).read_to_end(&mut bytes);
    read.map_err(|_| damaged())?;
    T::unpack(&bytes).map(Some).ok_or_else(damaged)
}
