//! How often runs made system calls, by number.

use crate::read::all;
use crate::{Problem, Result};
use headcount_model::{SystemCallNumber, SystemCalls};
use rusqlite::Connection;

/// What stands for any number that no call has.
const OTHER: i64 = -1;

/// Stores how often a run made system calls.
pub(crate) fn write(db: &Connection, run: i64, calls: &SystemCalls) -> Result<(), Problem> {
    let mut insert = db.prepare_cached("INSERT INTO system_calls VALUES (?, ?, ?)")?;
    for (number, times) in calls.iter() {
        let number = match number {
            SystemCallNumber::Is(number) => i64::from(number),
            SystemCallNumber::Other => OTHER,
        };
        let too_large = |_| Problem::TooLarge("the number of system calls".into());
        insert.execute((run, number, i64::try_from(times).map_err(too_large)?))?;
    }
    Ok(())
}

/// Adds how often a run made system calls.
pub(crate) fn add(db: &Connection, run: i64, to: &mut SystemCalls) -> Result<(), Problem> {
    let query = "SELECT number, count FROM system_calls WHERE run = ?";
    let rows: Vec<(i64, i64)> = all(db, query, [run], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let damaged = || Problem::Damaged("its system calls make no sense".into());
    for (number, times) in rows {
        let number = match number {
            OTHER => SystemCallNumber::Other,
            number => SystemCallNumber::Is(u32::try_from(number).map_err(|_| damaged())?),
        };
        let times = u64::try_from(times).map_err(|_| damaged())?;
        let too_large = || Problem::TooLarge("the number of system calls".into());
        to.add(number, times).ok_or_else(too_large)?;
    }
    Ok(())
}
