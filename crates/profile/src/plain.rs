//! Counts as plain tables, for people with `sqlite3`: what `headcount export --format sqlite` writes.
//!
//! A profile keeps what it knows of blocks and lines packed, so that it is small. Here everything
//! has a row. `plain.sql` is the documentation of the file.

use crate::{Problem, Result};
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};
use std::path::{Path, PathBuf};

const SCHEMA: &str = include_str!("plain.sql");
const INDEXES: &str = include_str!("plain_indexes.sql");

/// Raised when a query for an older form would be wrong for a newer one.
const VERSION: i64 = 3;

/// A database of plain tables that is being written.
pub struct PlainTables {
    db: Connection,
    path: PathBuf,
}

/// A field of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Not known, or nothing.
    Null,
    /// A count, or another number.
    Number(u64),
    /// A number that may use all 64 bits: what is above 2^63 is stored as the negative number with
    /// the same bits.
    Address(u64),
    /// A text.
    Text(&'a str),
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(SqlValue::Null),
            Self::Number(number) => number.to_sql()?,
            Self::Address(address) => address.cast_signed().into(),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

impl PlainTables {
    /// Begins a database in an empty file, which is nobody else's business until it is whole.
    pub fn create(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let begin = || -> Result<Connection, Problem> {
            let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)?;
            // If anything goes wrong the file is thrown away.
            db.pragma_update(None, "journal_mode", "OFF")?;
            db.pragma_update(None, "synchronous", "OFF")?;
            db.pragma_update(None, "user_version", VERSION)?;
            db.execute_batch("BEGIN")?;
            db.execute_batch(SCHEMA)?;
            Ok(db)
        };
        match begin() {
            Ok(db) => Ok(Self {
                db,
                path: path.to_owned(),
            }),
            Err(problem) => Err(problem.of(path)),
        }
    }

    /// Adds a row to a table: a value for each of its columns.
    pub fn add(&self, table: &'static str, values: &[Value<'_>]) -> Result<()> {
        let marks = vec!["?"; values.len()].join(", ");
        let add = || -> Result<(), Problem> {
            let sql = format!("INSERT INTO {table} VALUES ({marks})");
            let mut add = self.db.prepare_cached(&sql)?;
            add.execute(params_from_iter(values))?;
            Ok(())
        };
        add().map_err(|problem| problem.of(&self.path))
    }

    /// Makes the database whole.
    pub fn finish(self) -> Result<()> {
        let finish = || -> Result<(), Problem> {
            self.db.execute_batch(INDEXES)?;
            self.db.execute_batch("COMMIT")?;
            Ok(())
        };
        finish().map_err(|problem| problem.of(&self.path))
    }
}
