//! What the calls of a run cost, compressed: contexts resemble each other.

use crate::{Problem, Result};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use headcount_model::CallCosts;
use rusqlite::{Connection, OptionalExtension};
use std::io::{Read, Write};

/// Stores what calls cost.
pub(crate) fn write(db: &Connection, run: i64, costs: &CallCosts) -> Result<(), Problem> {
    let mut compressed = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = compressed.write_all(&costs.pack());
    let bytes = written.and_then(|()| compressed.finish());
    let too_large = |_| Problem::TooLarge("what calls cost".into());
    db.prepare_cached("INSERT INTO calls VALUES (?, ?)")?
        .execute((run, bytes.map_err(too_large)?))?;
    Ok(())
}

/// What the calls of a run cost, if that was asked for.
pub(crate) fn read(db: &Connection, run: i64) -> Result<Option<CallCosts>, Problem> {
    let mut query = db.prepare_cached("SELECT packed FROM calls WHERE run = ?")?;
    let packed: Option<Vec<u8>> = query.query_row([run], |row| row.get(0)).optional()?;
    let Some(packed) = packed else {
        return Ok(None);
    };
    let damaged = || Problem::Damaged("what its calls cost makes no sense".into());
    let mut bytes = Vec::new();
    let read = ZlibDecoder::new(&*packed).read_to_end(&mut bytes);
    read.map_err(|_| damaged())?;
    CallCosts::unpack(&bytes).map(Some).ok_or_else(damaged)
}
