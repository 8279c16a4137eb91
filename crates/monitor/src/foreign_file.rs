//! Files whose names others chose: a process maps them, or a debug link, a journal, a counter file
//! or a profile names them.
//!
//! Such a name may lead to a pipe that nobody writes to, to a device that has no end, or to a file
//! as large as the disk. So nothing but regular files is opened, without waiting for anybody, and
//! no more is read than fits into memory.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headcount_binary::FileBytes;
use libc::pid_t;

use crate::kernel;

/// How many bytes are read of a file. (A file that is mapped may be larger; but whoever cuts that off
/// ends us.)
pub const MOST_READ: u64 = 1 << 30;

/// Opens a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let place = options.read(true).custom_flags(libc::O_PATH).open(path)?;
    match open_place(&place) {
        // Some live without /proc.
        Err(error) if error.kind() == io::ErrorKind::NotFound => open_again(&place, path),
        opened => opened,
    }
}

/// Opens what is at a path, if it is still what it was.
fn open_again(place: &File, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.read(true).custom_flags(flags).open(path)?;
    let (before, now) = (place.metadata()?, file.metadata()?);
    match (before.dev(), before.ino()) == (now.dev(), now.ino()) {
        true => Ok(file),
        false => Err(io::Error::other("was replaced in this moment")),
    }
}

/// The same for a path as a process sees it, which may have another root. Links do not lead out of
/// there.
pub fn open_in_root_of(tid: pid_t, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_PATH);
    let root = options.open(format!("/proc/{tid}/root"))?;
    open_place(&kernel::place_below(&root, path)?)
}

/// Opening what is no file may change the world, and may take for ever. So it is looked at first.
fn open_place(place: &File) -> io::Result<File> {
    if !place.metadata()?.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(libc::O_NONBLOCK);
    options.open(path_of(place))
}

/// By which path this process reaches what it has opened.
pub fn path_of(opened: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

/// Reads all of a regular file, if it has no more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_open(open(path)?, most)
}

/// All bytes of a regular file.
pub fn bytes(path: &Path) -> io::Result<FileBytes> {
    let file = open(path)?;
    let facts = file.metadata()?;
    // The system's files are replaced, not changed; a large one of the user's own is mapped for want
    // of something better.
    let is_systems = facts.uid() == 0 && !is_own(&facts);
    match is_safe(&facts) && (is_systems || facts.len() > MOST_READ) {
        true => kernel::map_file(&file),
        false => read_whole(file),
    }
}

/// The same for a file that the user named, and that may be larger than memory.
pub fn mapped(path: &Path) -> io::Result<FileBytes> {
    kernel::map_file(&open(path)?)
}

/// The bytes of an open file, in memory.
pub fn read_whole(file: File) -> io::Result<FileBytes> {
    Ok(Arc::new(read_open(file, MOST_READ)?))
}

/// Reads all of an open file, likewise.
pub fn read_open(file: File, most: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::other(format!("has more than {} MiB", most >> 20));
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // It may have grown since.
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

/// Is it the user's own?
pub fn is_own(facts: &Metadata) -> bool {
    facts.uid() == kernel::user()
}

/// Can nobody but the user and root have written this? A group with the number of the user is by
/// convention the user's alone.
pub fn is_safe(facts: &Metadata) -> bool {
    let mut others = 0o022;
    if facts.gid() == facts.uid() {
        others &= !0o020;
    }
    (is_own(facts) || facts.uid() == 0) && facts.mode() & others == 0
}
