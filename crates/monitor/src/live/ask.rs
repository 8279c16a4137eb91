//! The side of whoever asks.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libc::pid_t;

use crate::journal::{self, Entry, JOURNAL, ROUTINES, Unreadable, Written};
use crate::live::{Moment, Part, SOCKET, Snapshot, marks};
use crate::own_folder::OwnFolder;
use crate::{kernel, proc};

/// How long an answer may take. A thread that waits for a disk cannot be held before that is over.
const PATIENCE: Duration = Duration::from_secs(30); // `NotAnswered::Late` says so

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NotAnswered {
    /// It is not there.
    #[error("there is no process {0}")]
    NoProcess(pid_t),
    /// Nobody counts it.
    #[error("process {0} is not being counted; `headcount attach {0}` counts it from now on")]
    NotCounted(pid_t),
    /// Somebody else counts it.
    #[error("process {0} is being counted by another user, who alone can ask for its counts")]
    OtherUser(pid_t),
    /// Whoever counts it does not listen.
    #[error("process {0} cannot be asked for its counts: {1}: {2}")]
    NoSocket(pid_t, PathBuf, io::Error),
    /// It ended.
    #[error("process {0} ended, or headcount let go of it, before it could be asked")]
    Ended(pid_t),
    /// It does not stop.
    #[error("process {0} did not answer within 30 seconds: one of its threads cannot be stopped")]
    Late(pid_t),
    /// The answer is that there is none.
    #[error("process {0} cannot be asked for its counts: {1}")]
    Refused(pid_t, String),
    /// The answer cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// A run that goes on.
#[derive(Debug)]
pub struct Live {
    pid: pid_t,
    folder: OwnFolder,
}

/// What a run has counted so far.
#[derive(Debug)]
pub struct SoFar {
    /// As if it had been written when all threads had gone.
    pub written: Written,
    /// When that was.
    pub moment: Moment,
    /// What of it was counted while the program paused, if it ever did.
    pub paused: Option<Part>,
}

impl Live {
    /// Finds out who counts a process; or what a headcount with this number counts.
    pub fn find(pid: pid_t) -> Result<Self, NotAnswered> {
        let Some(process) = proc::process_of(pid) else {
            return Err(NotAnswered::NoProcess(pid));
        };
        let tracer = proc::tracer_of(process);
        let folder = match folder_of(tracer.unwrap_or(process)) {
            Ok(Some(folder)) => folder,
            Ok(None) => return Err(NotAnswered::NotCounted(pid)),
            Err(_) if tracer.is_some() => return Err(NotAnswered::OtherUser(pid)),
            Err(_) => return Err(NotAnswered::NotCounted(pid)),
        };
        match OwnFolder::open(&folder) {
            Ok(folder) => Ok(Self { pid, folder }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(NotAnswered::OtherUser(pid))
            }
            Err(_) => Err(NotAnswered::Ended(pid)),
        }
    }

    /// Where its files are.
    pub fn folder(&self) -> &OwnFolder {
        &self.folder
    }

    /// Does nobody count any more?
    pub fn is_over(&self) -> bool {
        !journal::is_being_written(&self.folder)
    }

    /// Asks what was counted so far.
    pub fn ask(&self) -> Result<SoFar, NotAnswered> {
        let answer = self.answer()?;
        Ok(answer.read(&self.folder)?)
    }

    /// Marks this moment of the run with a name, for its phases.
    pub fn mark(&self, name: &str) -> Result<Moment, NotAnswered> {
        let answer = self.answer()?;
        let moment = Snapshot::read(&answer.snapshot).map(|it| it.moment);
        let moment = moment.map_err(|error| NotAnswered::Refused(self.pid, error.to_string()))?;
        let kept = marks::keep(&self.folder.all(), name, &moment, &answer.snapshot);
        kept.map_err(|_| NotAnswered::Ended(self.pid))?;
        Ok(moment)
    }

    fn answer(&self) -> Result<Answer, NotAnswered> {
        let ended = |_| NotAnswered::Ended(self.pid);
        let socket = self.connect()?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(ended)?;
        let files = kernel::receive_descriptors(&socket).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => NotAnswered::Late(self.pid),
            _ => NotAnswered::Ended(self.pid),
        })?;
        let mut files = files.into_iter();
        match (files.next(), files.next()) {
            (Some(snapshot), Some(journal)) => Ok(Answer {
                snapshot,
                journal,
                routines: files.next(),
            }),
            _ => Err(self.why_not(socket)),
        }
    }

    fn connect(&self) -> Result<UnixStream, NotAnswered> {
        UnixStream::connect(self.folder.file(SOCKET)).map_err(|error| match self.is_over() {
            true => NotAnswered::Ended(self.pid),
            false => NotAnswered::NoSocket(self.pid, self.folder.path().join(SOCKET), error),
        })
    }

    /// What came in place of files.
    fn why_not(&self, mut socket: UnixStream) -> NotAnswered {
        let mut reason = String::new();
        match socket.read_to_string(&mut reason) {
            Ok(1..) => NotAnswered::Refused(self.pid, reason),
            _ => NotAnswered::Ended(self.pid),
        }
    }
}

/// The files of a run at some moment.
#[derive(Debug)]
pub(super) struct Answer {
    pub snapshot: File,
    pub journal: File,
    pub routines: Option<File>,
}

impl Answer {
    /// What the run had counted at that moment.
    pub fn read(&self, folder: &OwnFolder) -> Result<SoFar, Unreadable> {
        let snapshot = Snapshot::read(&self.snapshot);
        let failed = |error| Unreadable::Io(folder.path().join(SOCKET), error);
        let snapshot = snapshot.map_err(failed)?;
        snapshot.so_far(folder.path(), &self.journal, self.routines.as_ref())
    }
}

impl Snapshot {
    /// What the run had counted at that moment, from the files of its journal.
    pub(super) fn so_far(
        &self,
        folder: &Path,
        journal: &File,
        routines: Option<&File>,
    ) -> Result<SoFar, Unreadable> {
        let path = |name: &str| folder.join(name);
        let Self {
            moment,
            windows,
            counters,
            paused,
        } = self.clone();
        let lines = beginning(journal, moment.journal, &path(JOURNAL))?;
        let mut entries = journal::parse(&path(JOURNAL), &lines)?;
        let routines = match routines {
            Some(file) => {
                let bytes = beginning(file, moment.routines, &path(ROUTINES))?;
                journal::parse_routines(&path(ROUTINES), &bytes)?
            }
            None => Vec::new(),
        };
        entries.extend(moment.owed.iter().cloned());
        // Of what was counted until this moment, nothing is missing.
        entries.push(Entry::End {
            ended: moment.at,
            status: None,
            routines: routines.len(),
            windows: 0,
        });
        let mut counters = counters.into_iter();
        let modules = entries.iter().filter_map(|entry| match entry {
            Entry::Module { .. } => Some(counters.next().unwrap_or_default()),
            Entry::File { .. } => Some(Vec::new()),
            _ => None,
        });
        let written = Written {
            counters: modules.collect(),
            entries,
            routines,
            windows,
        };
        Ok(SoFar {
            written,
            moment,
            paused,
        })
    }
}

/// The first bytes of a file that others go on writing to.
fn beginning(file: &File, length: u64, path: &Path) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = vec![0; length as usize];
    let read = file.read_exact_at(&mut bytes, 0);
    read.map_err(|error| Unreadable::Io(path.to_owned(), error))?;
    Ok(bytes)
}

/// The folder of the run that a process counts.
fn folder_of(headcount: pid_t) -> io::Result<Option<PathBuf>> {
    let files = proc::open_files(headcount)?;
    let mut folders = files.iter().filter_map(|file| {
        let is_journal = file.file_name().is_some_and(|it| it == JOURNAL);
        let folder = file.parent().filter(|_| is_journal)?;
        folder.join(SOCKET).exists().then(|| folder.to_owned())
    });
    Ok(folders.next())
}
