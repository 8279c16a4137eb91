//! Folders of the user's own, where nobody else can put anything.
//!
//! Whoever owns the folder around one can rename it all the same, and put another in its place. So
//! it is held open, its files are reached by way of the descriptor, and its path is for people.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::foreign_file;

/// A folder that is held open.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    folder: File,
}

impl OwnFolder {
    /// Makes a folder; or takes the one that is there, if it is the user's own.
    pub fn make(path: &Path) -> io::Result<Self> {
        let made = builder().create(path);
        Self::open(path).map_err(|error| made.err().filter(is_trouble).unwrap_or(error))
    }

    /// The same, with the folders around it.
    pub fn make_with_parents(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            builder().recursive(true).create(parent)?;
        }
        Self::make(path)
    }

    /// Takes a folder that is there. Not by way of a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_at(path, path.to_owned())
    }

    /// Makes a folder in this one, which must not be there.
    pub fn make_inside(&self, name: &str) -> io::Result<Self> {
        let at = self.file(name);
        builder().create(&at)?;
        Self::open_at(&at, self.path.join(name))
    }

    fn open_at(at: &Path, path: PathBuf) -> io::Result<Self> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut options = OpenOptions::new();
        let folder = options.read(true).custom_flags(flags).open(at)?;
        let facts = folder.metadata()?;
        if !foreign_file::is_own(&facts) || !foreign_file::is_safe(&facts) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "is not yours alone: somebody else owns it, or may write to it",
            ));
        }
        Ok(Self { path, folder })
    }

    /// Where it is, in words.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// By which path a file in it is reached, by this process only. (Which file that is does not
    /// depend on what others do to the folder's path.)
    pub fn file(&self, name: &str) -> PathBuf {
        self.all().join(name)
    }

    /// The same for the folder itself.
    pub fn all(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_fd().as_raw_fd()))
    }

    /// By which path others reach a file in it, if they may.
    pub fn path_for_others(&self, name: &str) -> io::Result<PathBuf> {
        Ok(fs::read_link(self.all())?.join(name))
    }

    /// Removes the folder with all that is in it; what is in its place by now, if it is another,
    /// only if it is empty.
    pub fn remove(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.all())? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        fs::remove_dir(&self.path)
    }
}

/// Is it more than that a folder is there already?
fn is_trouble(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::AlreadyExists
}

fn builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}
