//! What explains the counts when the module's own file is gone, or was built anew?
//!
//! A copy of that file, beside the counter files, made by the first process that a build counts in
//! and shared by all later ones. It is written under another name and moved into its place when it
//! is whole, so a process that is killed leaves no half of one.

use headcount_wire::{self as wire, FileHeader, PAGE};

use super::facts::Text;
use super::file;
use super::kernel::{self, File, Path};
use super::scratch::Scratch;

/// Counters need the disk more than we do: so many times the size of the copy must be free.
const MARGIN: u64 = 8;

/// Copies the file of the module into the folder, unless it is there. Where that cannot be, its
/// counts are read only as long as it stays what it is.
pub fn keep(folder: &File, header: &FileHeader) -> Option<()> {
    let mut names = Scratch::new(2 * PAGE)?;
    let (kept, draft) = names.bytes().split_at_mut_checked(PAGE)?;
    Text::new(kept)
        .hexadecimal(&header.fingerprint.to_be_bytes())
        .bytes(wire::MODULE_SUFFIX.as_bytes())
        .bytes(b"\0")
        .length()?;
    let kept = Path::new(kept)?;
    if kernel::is_there(folder, kept) {
        return Some(());
    }
    // A file that was replaced since it was mapped is not found: its path says that it is deleted.
    let flags = kernel::O_RDONLY | kernel::O_NONBLOCK | kernel::O_CLOEXEC;
    let module = kernel::open(Path::new(&header.path)?, flags).ok()?;
    let status = kernel::status(&module).ok()?;
    let room = kernel::free_bytes(folder).ok()? / MARGIN;
    if !status.is_regular || status.bytes > room || file::is_too_long(status.bytes) {
        return None;
    }
    file::file_name(header, wire::PARTIAL_SUFFIX, draft)?;
    let draft = Path::new(draft)?;
    let flags = kernel::O_RDWR | kernel::O_CREAT | kernel::O_EXCL | kernel::O_NOFOLLOW;
    let copy = kernel::open_at(Some(folder), draft, flags | kernel::O_CLOEXEC, 0o600).ok()?;
    let done = copy_all(&module, &copy, status.bytes)
        .and_then(|()| kernel::change_mode(&copy, 0o600))
        .and_then(|()| kernel::rename_at(folder, draft, kept));
    if done.is_err() {
        kernel::remove_at(folder, draft);
    }
    done.ok()
}

fn copy_all(from: &File, to: &File, bytes: u64) -> kernel::Result<()> {
    let mut done = 0;
    while done < bytes {
        match kernel::send(to, from, bytes - done)? {
            0 => return Err(kernel::EFAULT),
            sent => done += sent,
        }
    }
    Ok(())
}
