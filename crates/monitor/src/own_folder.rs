//! Folders of the user's own, where nobody else can put anything.
//!
//! Whoever owns the folder around one can rename it all the same, and put another in its place. So
//! it is held open, its files are reached by way of the descriptor, and its path is for people.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::foreign_file::{self, path_of};

/// A folder that is held open.
#[derive(Clone, Debug)]
pub struct OwnFolder {
    path: PathBuf,
    folder: Arc<File>,
}

impl OwnFolder {
    /// Makes a folder, and those around it; or takes the one that is there, if it is the user's own.
    pub fn make(path: &Path) -> io::Result<Self> {
        builder().recursive(true).create(path)?;
        Self::open(path)
    }

    /// The same for one to make others in. The folders around it must be there.
    pub fn make_around(path: &Path) -> io::Result<Self> {
        let made = builder().create(path);
        Self::open_around(path).map_err(|error| made.err().filter(is_trouble).unwrap_or(error))
    }

    /// Takes a folder that is there. Not by way of a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_if(path, path.to_owned(), is_private)
    }

    /// Takes a folder to make others in. Who else may write there does not matter for those, as long
    /// as nobody can remove them: it is the user's own, or one for all, such as `/tmp`.
    pub fn open_around(path: &Path) -> io::Result<Self> {
        let is_fine = |it: &Metadata| {
            foreign_file::is_own(it) || (it.uid() == 0 && it.mode() & libc::S_ISVTX != 0)
        };
        Self::open_if(path, path.to_owned(), is_fine)
    }

    /// Makes a folder in this one, which must not be there.
    pub fn make_inside(&self, name: &str) -> io::Result<Self> {
        let at = self.file(name);
        builder().create(&at)?;
        Self::open_if(&at, self.path.join(name), is_private)
    }

    fn open_if(at: &Path, path: PathBuf, is_fine: impl Fn(&Metadata) -> bool) -> io::Result<Self> {
        let denied = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why);
        if at.is_symlink() {
            return Err(denied("a link is there"));
        }
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut options = OpenOptions::new();
        let folder = options.read(true).custom_flags(flags).open(at)?;
        if !is_fine(&folder.metadata()?) {
            return Err(denied(
                "one is there that somebody else owns, or may write to",
            ));
        }
        let folder = Arc::new(folder);
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
        path_of(&self.folder)
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

/// Is a folder the user's own, and nobody else's to write to?
fn is_private(facts: &Metadata) -> bool {
    foreign_file::is_own(facts) && foreign_file::is_safe(facts)
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
