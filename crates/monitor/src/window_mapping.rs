//! How windows are mapped into a process, and made larger there.
//!
//! The first one needs a descriptor of the file (`passing`). Once a process has it, it can have
//! others without asking anybody: a mapping can be doubled, and be turned to another place of its
//! file. So a process that has given up its rights since, or its descriptors, gets them as well.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::passing::{Answer, Calls};
use crate::windows::STRIDE;

/// In pages, as `remap_file_pages` wants it.
const PAGE: u64 = 4096;

impl Calls<'_> {
    /// Maps so many bytes of a window. Where they are.
    pub fn map_window(
        &self,
        window: u32,
        bytes: u64,
        path: &Path,
        file: &File,
    ) -> io::Result<Answer> {
        let mapped = self.copies.windows.first();
        let at = match mapped {
            Some(mapped) => self.map_like(mapped.at, window, bytes)?,
            None => Err(io::Error::from(io::ErrorKind::Unsupported)),
        };
        let at = match at {
            Ok(at) => Ok(at),
            Err(_) => self.map_from_file(window, bytes, path, file)?,
        };
        if let Ok(at) = at {
            // Most of a window is never touched; the kernel would read megabytes of it ahead.
            let advice = libc::MADV_RANDOM as u64;
            drop(self.make(libc::SYS_madvise, [at, bytes, advice, 0, 0, 0])?);
        }
        Ok(at)
    }

    fn map_from_file(
        &self,
        window: u32,
        bytes: u64,
        path: &Path,
        file: &File,
    ) -> io::Result<Answer> {
        let descriptor = match self.open(path, file)? {
            Ok(descriptor) => descriptor,
            Err(error) => return Ok(Err(error)),
        };
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = libc::MAP_SHARED as u64;
        let offset = u64::from(window) * STRIDE;
        let arguments = [0, bytes, protection, flags, descriptor, offset];
        let at = self.make(libc::SYS_mmap, arguments)?;
        self.close(descriptor)?;
        Ok(at)
    }

    /// The same by way of a window that is mapped.
    fn map_like(&self, other: u64, window: u32, bytes: u64) -> io::Result<Answer> {
        let at = match self.move_window(other, 0, bytes)? {
            Ok(at) => at,
            Err(error) => return Ok(Err(error)),
        };
        let page = u64::from(window) * STRIDE / PAGE;
        let arguments = [at, bytes, 0, page, libc::MAP_NONBLOCK as u64, 0];
        match self.make(libc::SYS_remap_file_pages, arguments)? {
            Ok(_) => Ok(Ok(at)),
            Err(error) => {
                self.unmap(at, bytes)?;
                Ok(Err(error))
            }
        }
    }

    /// Makes a mapping larger, which may move it. If it is said to have no bytes, it stays, and
    /// there is a second one of the same place.
    pub fn move_window(&self, at: u64, bytes: u64, wanted: u64) -> io::Result<Answer> {
        let flags = libc::MREMAP_MAYMOVE as u64;
        self.make(libc::SYS_mremap, [at, bytes, wanted, flags, 0, 0])
    }

    /// Gives memory back.
    pub fn unmap(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.make(libc::SYS_munmap, [at, bytes, 0, 0, 0, 0])
            .map(drop)
    }
}
