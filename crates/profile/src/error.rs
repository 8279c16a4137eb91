//! What can go wrong with a profile, said so that the user knows the file and the cure.

use rusqlite::ErrorCode;
use std::path::PathBuf;

/// Something is wrong with one profile.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The profile.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a profile.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Nothing is there.
    #[error(
        "no such profile; count something first (`headcount run`, or `headcount cc` and then run \
         the program), or name a profile"
    )]
    NotFound,
    /// Some other file.
    #[error("not a headcount profile; name another file")]
    NotAProfile,
    /// Made by a later headcount, or by an earlier one whose format is forgotten.
    #[error(
        "its format is {found}, and this headcount knows format {known}: another version made it; \
         count again with -o and a new name, or use that version"
    )]
    OtherVersion {
        /// The format of the file.
        found: i64,
        /// The format this crate reads and writes.
        known: i64,
    },
    /// Truncated, overwritten, or put together by someone else.
    #[error(
        "the profile is damaged ({0}); begin a new one with -o, or `headcount merge` good ones"
    )]
    Damaged(String),
    /// Someone else is writing.
    #[error("another program is writing to it; try again when that has finished")]
    Busy,
    /// No room.
    #[error("no room on the disk; nothing was stored: make room and try again")]
    Full,
    /// The disk, or a limit on the size of files, stands in the way.
    #[error(
        "cannot be written or read ({0}); nothing was stored: is there room, and no limit on the \
         size of files (`ulimit -f`)?"
    )]
    Failing(String),
    /// May be read only.
    #[error("cannot be written; name another profile with -o")]
    ReadOnly,
    /// SQLite would play it back.
    #[error("{} lies beside it, and is somebody else's; remove it, or ask whose it is", .0.display())]
    ForeignJournal(PathBuf),
    /// The file or its folder cannot be reached.
    #[error("cannot be opened ({0}); is it a file in a folder that you may use?")]
    CannotOpen(String),
    /// A link, by which a file would be made elsewhere. Whoever may write in the folder may have
    /// put it there.
    #[error(
        "is a link to {}, where no profile is, and none is made through a link; name that file \
         itself, or remove the link", .0.display()
    )]
    LinkToNone(PathBuf),
    /// No run was ever stored.
    #[error("holds no run yet; run a counted program, then `headcount collect`")]
    NoRuns,
    /// The user asked for a run that is not there.
    #[error("has no run {wanted}; `headcount runs` lists the runs it has")]
    NoSuchRun {
        /// The run asked for.
        wanted: i64,
    },
    /// The user asked for a phase that is not there.
    #[error("has no phase called `{wanted}` in these runs{}", phases(.known))]
    NoSuchPhase {
        /// The phase asked for.
        wanted: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// A number does not fit into SQLite's 64-bit signed integers, or a sum not into 64 bits.
    #[error("{0} is too large to be stored exactly")]
    TooLarge(String),
    /// A build that is in the profile, with other functions or blocks.
    #[error(
        "{module} is in it already, with the same build id but other functions or blocks; begin a \
         new profile with -o"
    )]
    OtherBuild {
        /// Path of the module.
        module: String,
    },
    /// Counts that do not belong to the facts they name. A fault of the caller.
    #[error("counts do not fit the module with build id {build_id}: {what}")]
    Misfit {
        /// The module the counts name.
        build_id: String,
        /// In what they differ.
        what: String,
    },
    /// Anything else SQLite says.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
}

/// What could have been asked for.
fn phases(known: &[String]) -> String {
    match known.is_empty() {
        true => "; `headcount mark` makes phases of a run that goes on".to_owned(),
        false => format!("; it has {}", known.join(", ")),
    }
}

impl Problem {
    /// The problem, with the file that has it.
    pub fn of(self, path: impl Into<PathBuf>) -> Error {
        Error {
            path: path.into(),
            problem: self,
        }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
        };
        let code = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => failure.code,
            FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..) => return Self::Damaged(error.to_string()),
            _ => return Self::Sqlite(error),
        };
        match code {
            ErrorCode::NotADatabase => Self::NotAProfile,
            ErrorCode::DatabaseCorrupt => Self::Damaged(error.to_string()),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy,
            ErrorCode::DiskFull => Self::Full,
            ErrorCode::ReadOnly => Self::ReadOnly,
            ErrorCode::SystemIoFailure => Self::Failing(error.to_string()),
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                Self::CannotOpen(error.to_string())
            }
            _ => Self::Sqlite(error),
        }
    }
}
