//! The memory of another process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use headcount_model::LoadAddr;
use libc::pid_t;

/// The memory that a process has now; after `exec` it has another.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    /// Of a process that we trace.
    pub fn of(pid: pid_t) -> io::Result<Self> {
        let path = format!("/proc/{pid}/mem");
        Ok(Self(OpenOptions::new().read(true).write(true).open(path)?))
    }

    /// Fills `into`.
    pub fn read(&self, from: LoadAddr, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, from.0)
    }

    /// A word.
    pub fn read_word(&self, from: LoadAddr) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(from, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes even where the process itself may not, such as into its code.
    pub fn write(&self, to: LoadAddr, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, to.0)
    }
}
