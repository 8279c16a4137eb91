//! A file of ours in the hands of another process, which may have no right to open it.
//!
//! A process that may open the file by its path does so. One that runs as another user, or in
//! another root, makes a pair of sockets instead. We take one of them, and send the descriptor.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use headcount_model::LoadAddr;
use libc::{c_int, pid_t};

use crate::copies::{Copies, DESK_ROOM};
use crate::inject;
use crate::kernel;
use crate::memory::Memory;
use crate::wait::Stopped;

/// System calls in the name of a process, made by one of its threads.
#[derive(Clone, Copy)]
pub struct Calls<'a> {
    pub pid: pid_t,
    pub stopped: &'a Stopped,
    pub memory: &'a Memory,
    pub copies: &'a Copies,
}

/// What the kernel answered the process. Around it there may be an error of ours.
pub type Answer = io::Result<u64>;

/// A page for what the kernel writes to a process.
const TRAY: u64 = 4096;
/// What is where on it: two descriptors, a message, its one stretch of bytes, its control message,
/// and the byte that is sent along.
const MESSAGE: u64 = 64;
const STRETCH: u64 = 256;
const CONTROL: u64 = 512;
const BYTE: u64 = 1024;
/// How long a control message with one descriptor is, and where in it that is.
const CONTROL_BYTES: u64 = 24;
const DESCRIPTOR: u64 = 16;

impl Calls<'_> {
    /// Makes one.
    pub fn make(&self, number: i64, arguments: [u64; 6]) -> io::Result<Answer> {
        let answer = self
            .copies
            .system_call(self.stopped, self.memory, number, arguments)?;
        Ok(inject::result(answer))
    }

    /// Closes a descriptor of the process.
    pub fn close(&self, descriptor: u64) -> io::Result<()> {
        let closed = self.make(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0])?;
        // There is nothing to be done about it.
        drop(closed);
        Ok(())
    }

    /// Opens a file of ours, for reading and writing. The descriptor in the process.
    pub fn open(&self, path: &Path, file: &File) -> io::Result<Answer> {
        match self.open_by_path(path, file)? {
            Ok(descriptor) => Ok(Ok(descriptor)),
            Err(_) => self.receive_on_tray(file),
        }
    }

    fn open_by_path(&self, path: &Path, file: &File) -> io::Result<Answer> {
        let refused = |error| Ok(Err(io::Error::from_raw_os_error(error)));
        let (Some(desk), path) = (self.copies.desk, path.as_os_str().as_bytes()) else {
            return refused(libc::ENOMEM);
        };
        if path.len() as u64 >= DESK_ROOM {
            return refused(libc::ENAMETOOLONG);
        }
        self.memory.write(desk, &[path, b"\0"].concat())?;
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let arguments = [libc::AT_FDCWD as u64, desk.0, flags as u64, 0, 0, 0];
        let descriptor = match self.make(libc::SYS_openat, arguments)? {
            Ok(descriptor) => descriptor,
            Err(error) => return Ok(Err(error)),
        };
        // With another root, the path may lead to another file.
        if self.is_same(descriptor, file) {
            return Ok(Ok(descriptor));
        }
        self.close(descriptor)?;
        refused(libc::ENOENT)
    }

    fn is_same(&self, descriptor: u64, file: &File) -> bool {
        let theirs = fs::metadata(format!("/proc/{}/fd/{descriptor}", self.stopped.tid()));
        match (theirs, file.metadata()) {
            (Ok(theirs), Ok(ours)) => (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()),
            _ => false,
        }
    }

    fn receive_on_tray(&self, file: &File) -> io::Result<Answer> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let arguments = [0, TRAY, protection, flags, u64::MAX, 0];
        let tray = match self.make(libc::SYS_mmap, arguments)? {
            Ok(tray) => tray,
            Err(error) => return Ok(Err(error)),
        };
        let received = self.receive(tray, file)?;
        drop(self.make(libc::SYS_munmap, [tray, TRAY, 0, 0, 0, 0])?);
        Ok(received)
    }

    fn receive(&self, tray: u64, file: &File) -> io::Result<Answer> {
        let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
        let arguments = [libc::AF_UNIX as u64, kind, 0, tray, 0, 0];
        if let Err(error) = self.make(libc::SYS_socketpair, arguments)? {
            return Ok(Err(error));
        }
        let pair = self.memory.read_word(LoadAddr(tray))?;
        let (ours, theirs) = (pair as u32, pair >> 32);
        let sent = kernel::take_descriptor(self.pid, ours as c_int)
            .and_then(|socket| kernel::send_descriptors(&socket, &[file]));
        let received = match sent {
            Ok(()) => self.receive_from(theirs, tray)?,
            Err(error) => Err(error),
        };
        self.close(ours.into())?;
        self.close(theirs)?;
        Ok(received)
    }

    fn receive_from(&self, socket: u64, tray: u64) -> io::Result<Answer> {
        // A `msghdr`: no address, one stretch of bytes, and room for a control message.
        let message = [0, 0, tray + STRETCH, 1, tray + CONTROL, CONTROL_BYTES, 0];
        let stretch = [tray + BYTE, 1];
        for (at, words) in [(MESSAGE, &message[..]), (STRETCH, &stretch[..])] {
            let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
            self.memory.write(LoadAddr(tray + at), &bytes)?;
        }
        let flags = (libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT) as u64;
        let arguments = [socket, tray + MESSAGE, flags, 0, 0, 0];
        if let Err(error) = self.make(libc::SYS_recvmsg, arguments)? {
            return Ok(Err(error));
        }
        // Where the process has no descriptor left, the message comes without.
        let length = self.memory.read_word(LoadAddr(tray + CONTROL))?;
        if length < DESCRIPTOR + 4 {
            return Ok(Err(io::Error::from_raw_os_error(libc::EMFILE)));
        }
        let found = self
            .memory
            .read_word(LoadAddr(tray + CONTROL + DESCRIPTOR))?;
        Ok(Ok(u64::from(found as u32)))
    }
}
