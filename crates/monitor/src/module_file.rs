//! The file of a module as it was when it was mapped.
//!
//! What reports say of a module is made of its file when the run has ended. By then the file may
//! have been replaced, removed, cut off or written to: that is what builds do. So it is held:
//!
//! - Whoever has a file mapped, as we have, keeps it, whatever becomes of its name.
//! - Before a file is written to, the kernel tells us, and lets the writer wait until there is a
//!   copy (a lease; see fcntl(2)). The copy goes where our mapping is, and into the folder of the
//!   run, for `headcount collect`.
//! - Where leases are not to be had, a file that we may write to, and the program with us, is read
//!   into memory at once.
//!
//! All others belong to the system, which replaces files and does not change them. If one is
//! changed all the same, its key tells.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use headcount_binary::FileBytes;
use libc::pid_t;
use memmap2::Mmap;

use crate::foreign_file;
use crate::journal::{module_copy, private_file};
use crate::kernel;
use crate::own_folder::OwnFolder;

/// Which file it is, and whether it has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey(u64, u64, i64, u64);

impl FileKey {
    /// Of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&file.metadata()?))
    }
}

impl From<&Metadata> for FileKey {
    fn from(facts: &Metadata) -> Self {
        let changed = facts.mtime_nsec() ^ facts.mtime();
        Self(facts.dev(), facts.ino(), changed, facts.size())
    }
}

/// A module's file, held until the run is stored.
#[derive(Clone)]
pub struct ModuleFile {
    path: String,
    key: FileKey,
    is_safe: bool,
    bytes: FileBytes,
    /// Was it written to since, as far as we were told?
    is_changed: Arc<AtomicBool>,
}

impl ModuleFile {
    /// Where it was.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its bytes, as they were when it was mapped.
    pub fn bytes(&self) -> &FileBytes {
        &self.bytes
    }

    /// Can nobody but the user and root have written it?
    pub fn is_safe(&self) -> bool {
        self.is_safe
    }

    /// Does its path still lead to it, and is it what it was?
    pub fn is_in_place(&self) -> bool {
        let facts = std::fs::metadata(&self.path);
        facts.is_ok_and(|facts| FileKey::from(&facts) == self.key)
    }

    /// Puts a copy into the folder of its run, unless there is one.
    pub fn copy_to(&self, folder: &OwnFolder, number: usize) -> io::Result<()> {
        let copy = module_copy(&folder.all(), number);
        match copy.exists() {
            true => Ok(()),
            false => write_copy(&copy, (*self.bytes).as_ref()).map(drop),
        }
    }
}

impl std::fmt::Debug for ModuleFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModuleFile")
            .field("path", &self.path)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The files of all modules of a run, by the modules' numbers.
#[derive(Debug)]
pub struct ModuleFiles {
    folder: PathBuf,
    held: Vec<ModuleFile>,
    leases: Leases,
}

impl ModuleFiles {
    /// For a run with this folder.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            held: Vec::new(),
            leases: Leases::default(),
        }
    }

    /// Holds the file of what may become the next module.
    pub fn hold(&mut self, path: &str, file: File) -> io::Result<ModuleFile> {
        let path = path.to_owned();
        let facts = file.metadata()?;
        let key = FileKey::from(&facts);
        let is_safe = foreign_file::is_safe(&facts);
        let copy = module_copy(&self.folder, self.held.len());
        let is_changed = Arc::default();
        // What others can write to may be of any size, and would be copied when they do.
        let held = match is_safe {
            true => self.leases.take(file, copy, &is_changed)?,
            false => Err(file),
        };
        let bytes: FileBytes = match held {
            Ok(leased) => leased,
            Err(file) if !is_safe || kernel::may_write(&file) => foreign_file::read_whole(file)?,
            Err(file) => kernel::map_file(&file)?,
        };
        Ok(ModuleFile {
            path,
            key,
            is_safe,
            bytes,
            is_changed,
        })
    }

    /// Was the file of a module written to since? Its time may not tell, if that was at once.
    pub fn is_changed(&self, module: usize) -> bool {
        let file = self.held.get(module);
        file.is_some_and(|it| it.is_changed.load(Ordering::Acquire))
    }

    /// It has become the next module.
    pub fn add(&mut self, file: ModuleFile) {
        self.held.push(file);
    }

    /// All of them, by number.
    pub fn all(&self) -> &[ModuleFile] {
        &self.held
    }

    /// All of them.
    pub fn into_all(self) -> Vec<ModuleFile> {
        self.held
    }
}

fn write_copy(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = private_file(path)?;
    let written = file.write_all(bytes);
    if let Err(error) = written {
        // A part of a file is none.
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(file)
}

/// How many files must be left that we may open for other purposes, at least.
const SPARE: usize = 64;

/// The files that nobody writes to without our being told before.
#[derive(Debug, Default)]
struct Leases {
    held: Arc<Mutex<Vec<Weak<Leased>>>>,
    /// The thread that is told, once there is one; none if it cannot be made.
    watcher: Option<Option<pid_t>>,
}

impl Leases {
    /// Takes a lease on a file; gives it back if there is none to be had.
    fn take(
        &mut self,
        file: File,
        copy: PathBuf,
        is_changed: &Arc<AtomicBool>,
    ) -> io::Result<Result<Arc<Leased>, File>> {
        // Whoever looks for a broken lease must find this one.
        let held = Arc::clone(&self.held);
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|it| it.strong_count() > 0);
        let may_hold = held.len() + SPARE < kernel::most_files() / 2;
        let Some(watcher) = self.watcher().filter(|_| may_hold) else {
            return Ok(Err(file));
        };
        if kernel::lease(&file, watcher).is_err() {
            return Ok(Err(file));
        }
        let leased = Arc::new(Leased {
            bytes: kernel::map_leased(&file)?,
            file,
            copy,
            is_changed: Arc::clone(is_changed),
        });
        held.push(Arc::downgrade(&leased));
        Ok(Ok(leased))
    }

    fn watcher(&mut self) -> Option<pid_t> {
        let held = &self.held;
        *self.watcher.get_or_insert_with(|| watch(Arc::clone(held)))
    }
}

/// Starts a thread that copies files before they are written to. Its number.
fn watch(held: Arc<Mutex<Vec<Weak<Leased>>>>) -> Option<pid_t> {
    let (tell, told) = std::sync::mpsc::channel();
    let work = move || {
        kernel::block_signals(&[libc::SIGIO]);
        let _ = tell.send(kernel::thread_number());
        loop {
            kernel::next_signal(&[libc::SIGIO], None);
            let held = held.lock().unwrap_or_else(PoisonError::into_inner);
            let held = held.iter().filter_map(Weak::upgrade);
            held.for_each(|it| it.give_up_if_asked());
        }
    };
    thread::Builder::new().spawn(work).ok()?;
    told.recv().ok()
}

/// A file with a lease, mapped.
#[derive(Debug)]
struct Leased {
    bytes: Mmap,
    file: File,
    /// Where its copy goes.
    copy: PathBuf,
    is_changed: Arc<AtomicBool>,
}

impl Leased {
    /// If somebody waits to write to the file: copies it, and lets them.
    fn give_up_if_asked(&self) {
        if !kernel::is_lease_wanted(&self.file) || self.is_changed.swap(true, Ordering::AcqRel) {
            return;
        }
        let copy = write_copy(&self.copy, &self.bytes).or_else(|_| self.copy_in_memory());
        // Without a copy there are zeros: they have another key, and the report says so.
        kernel::replace_mapping(&self.bytes, copy.as_ref().ok());
        kernel::end_lease(&self.file);
    }

    fn copy_in_memory(&self) -> io::Result<File> {
        let mut file = kernel::memory_file()?;
        file.write_all(&self.bytes)?;
        Ok(file)
    }
}

impl AsRef<[u8]> for Leased {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
