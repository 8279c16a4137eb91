//! Is this file a profile of ours, and may we use it?

use crate::{Problem, Profile, Recover, Result};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SCHEMA: &str = include_str!("schema.sql");

/// Raised whenever `schema.sql`, `facts.rs`, `counts.rs` or `samples.rs` changes its meaning.
const VERSION: i64 = 14;

/// How every file of SQLite begins, and how many bytes there are up to the end of the mark.
const SQLITE: &[u8] = b"SQLite format 3\0";
const HEAD: usize = 72;

/// Marks the file as ours in SQLite's header ("HdCt"); `file` shows it.
const APPLICATION_ID: i32 = 0x4864_4374;

/// A run with millions of blocks takes seconds to store; another writer waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

impl Profile {
    /// Opens a profile that is there.
    pub fn open(path: &Path) -> Result<Self> {
        let tried = connect(path, OpenFlags::empty()).and_then(|db| {
            check(&db)?;
            Ok(db)
        });
        Self::finish(path, tried, Problem::NotFound)
    }

    /// Is there a profile, of whatever version, in whatever condition?
    pub fn is_at(path: &Path) -> bool {
        let mut head = [0; HEAD];
        let is_file = path.metadata().is_ok_and(|it| it.is_file());
        let read = File::open(path).and_then(|mut it| it.read_exact(&mut head));
        if !is_file || read.is_err() {
            return false;
        }
        let (_, id) = head.split_at(HEAD - 4);
        head.starts_with(SQLITE) && id == APPLICATION_ID.to_be_bytes()
    }

    /// Opens a profile, and makes it first if nothing is there (or an empty file, which is what
    /// a writer that was killed in its first moment leaves behind).
    ///
    /// A new file may be read by whoever the user's umask lets read it: profiles are made to be
    /// passed on.
    pub fn create_or_open(path: &Path) -> Result<Self> {
        let tried = connect(path, OpenFlags::SQLITE_OPEN_CREATE).and_then(|mut db| {
            create_if_empty(&mut db)?;
            check(&db)?;
            Ok(db)
        });
        let unmade = Problem::CannotOpen("no file can be made there".into());
        Self::finish(path, tried, unmade)
    }

    /// A new profile that is nowhere but in memory.
    pub fn in_memory() -> Result<Self> {
        let path = Path::new("(in memory)");
        let made = Connection::open_in_memory().map_err(Problem::from);
        let made = made.and_then(|mut db| {
            create_if_empty(&mut db)?;
            Ok(db)
        });
        Self::finish(path, made, Problem::NotFound)
    }

    /// The same, where counts are made of readings when they are asked for.
    #[must_use]
    pub fn with_recovery(self, recover: Recover) -> Self {
        Self { recover, ..self }
    }

    /// `missing` is the problem if no file is there.
    fn finish(path: &Path, tried: Result<Connection, Problem>, missing: Problem) -> Result<Self> {
        match tried {
            Ok(db) => Ok(Self {
                db,
                path: path.to_owned(),
                recover: |_, _| Err("its counters were not read".to_owned()),
            }),
            Err(Problem::CannotOpen(_)) if matches!(path.try_exists(), Ok(false)) => {
                let no_folder = path.parent().is_some_and(|folder| {
                    !folder.as_os_str().is_empty() && matches!(folder.try_exists(), Ok(false))
                });
                Err(match no_folder {
                    true => Problem::CannotOpen("its folder does not exist".into()),
                    false => missing,
                }
                .of(path))
            }
            // SQLite does not say why; opening the file without it does.
            Err(Problem::CannotOpen(words)) => {
                let why = File::open(path).err();
                Err(Problem::CannotOpen(why.map_or(words, |it| it.to_string())).of(path))
            }
            Err(problem) => Err(problem.of(path)),
        }
    }
}

fn connect(path: &Path, create: OpenFlags) -> Result<Connection, Problem> {
    // Without SQLITE_OPEN_URI, and never a bare name: a file called `file:x?mode=ro` or
    // `:memory:` is a file, not an instruction.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
    let plain: PathBuf = match path.is_absolute() {
        true => path.to_owned(),
        false => Path::new(".").join(path),
    };
    // To open a pipe or a device may take for ever.
    let is_file = plain.metadata().map_or(true, |it| it.is_file());
    if !is_file || is_something_else(&plain) {
        return Err(Problem::NotAProfile);
    }
    if create == OpenFlags::SQLITE_OPEN_CREATE
        && let Some(target) = link_to_none(&plain)
    {
        return Err(Problem::LinkToNone(target));
    }
    // From here on a link that somebody puts there is not followed.
    let plain = without_links(&plain).unwrap_or(plain);
    if let Some(foreign) = foreign_companion(&plain) {
        return Err(Problem::ForeignJournal(foreign));
    }
    let db = Connection::open_with_flags(plain, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)?;
    db.busy_timeout(PATIENCE)?;
    // The file may come from anyone: nothing in it is to run code or to read out of bounds.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    // What is stored together belongs together; to look it up for every count takes long.
    db.pragma_update(None, "foreign_keys", false)?;
    // Room for a large module, so that storing it writes every page once (kibibytes).
    db.pragma_update(None, "cache_size", -65536)?;
    Ok(db)
}

/// A file beside a profile that SQLite would obey although a stranger may have put it there: what a
/// killed writer left is played back. Those who may write to the profile may leave such files.
fn foreign_companion(path: &Path) -> Option<PathBuf> {
    let profile = path.metadata().ok();
    let mut companions = ["-journal", "-wal", "-shm"].into_iter().map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    });
    companions.find(|companion| {
        let Ok(it) = companion.symlink_metadata() else {
            return false;
        };
        // A process owns its own folder in /proc.
        let user = Path::new("/proc/self").metadata().map(|it| it.uid());
        let is_ours = it.uid() == 0
            || user.is_ok_and(|user| user == it.uid())
            || profile.as_ref().is_some_and(|profile| {
                profile.uid() == it.uid()
                    || (profile.mode() & 0o020 != 0 && profile.gid() == it.gid())
            });
        !it.is_file() || !is_ours
    })
}

/// Where a link leads, if a profile would be made there.
fn link_to_none(path: &Path) -> Option<PathBuf> {
    let target = path.read_link().ok()?;
    let is_there = path.metadata().is_ok_and(|it| it.len() > 0);
    (!is_there).then_some(target)
}

/// Where a file is, or would be.
fn without_links(path: &Path) -> Option<PathBuf> {
    let whole = path.canonicalize();
    whole.ok().or_else(|| {
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    })
}

/// SQLite takes some short or blank files for empty databases and would fill them. They are
/// someone's, so look for its mark first; unless a journal says that a writer was killed here,
/// perhaps before it wrote the mark.
fn is_something_else(path: &Path) -> bool {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    if Path::new(&journal).exists() {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut start));
    read.is_ok() && !start.is_empty() && start != SQLITE
}

fn create_if_empty(db: &mut Connection) -> Result<(), Problem> {
    if !is_empty(db)? {
        return Ok(());
    }
    // Facts come in pieces of some two thousand bytes, of which small pages waste much.
    db.pragma_update(None, "page_size", 8192)?;
    // Two first writers may both see an empty file; the second to get the lock looks again.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if is_empty(&transaction)? {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(transaction.commit()?)
}

fn is_empty(db: &Connection) -> Result<bool, Problem> {
    let things: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(things == 0 && application_id(db)? == 0 && user_version(db)? == 0)
}

fn check(db: &Connection) -> Result<(), Problem> {
    if is_empty(db)? {
        return Err(Problem::NoRuns);
    }
    if application_id(db)? != APPLICATION_ID {
        return Err(Problem::NotAProfile);
    }
    let found = user_version(db)?;
    if found != VERSION {
        return Err(Problem::OtherVersion {
            found,
            known: VERSION,
        });
    }
    check_tables(db)
}

/// Every table must be the one `schema.sql` makes, but for its comments. Tables that someone else
/// added do no harm.
fn check_tables(db: &Connection) -> Result<(), Problem> {
    let mut query = db.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table'")?;
    let found = query.query_map([], |row| Ok(without_comments(&row.get::<_, String>(0)?)))?;
    let found: BTreeSet<String> = found.collect::<rusqlite::Result<_>>()?;
    for definition in without_comments(SCHEMA).split_terminator(';') {
        let definition = definition.trim();
        if !found.contains(definition) {
            let name = definition.split_whitespace().nth(2).unwrap_or_default();
            return Err(Problem::Damaged(format!("its table `{name}` is not ours")));
        }
    }
    Ok(())
}

/// SQL with one space between words.
fn without_comments(sql: &str) -> String {
    let code = sql.lines().filter_map(|line| line.split("--").next());
    let words: Vec<&str> = code.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

fn application_id(db: &Connection) -> Result<i32, Problem> {
    Ok(db.pragma_query_value(None, "application_id", |row| row.get(0))?)
}

fn user_version(db: &Connection) -> Result<i64, Problem> {
    Ok(db.pragma_query_value(None, "user_version", |row| row.get(0))?)
}
