//! The memory of another process.
//!
//! Where the process is no more, its file is not there, or has no byte. That is told as everywhere
//! else, as `ESRCH`. Memory that a living process has not mapped is `EIO`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use headcount_model::LoadAddr;
use libc::pid_t;

use crate::kernel;

/// The memory that a process has now; after `exec` it has another.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    /// Of a process that we trace.
    pub fn of(pid: pid_t) -> io::Result<Self> {
        let path = format!("/proc/{pid}/mem");
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(gone_by_its_name)?;
        kernel::check_descriptor(&file)?;
        Ok(Self(file))
    }

    /// Fills `into`.
    pub fn read(&self, from: LoadAddr, into: &mut [u8]) -> io::Result<()> {
        let read = self.0.read_exact_at(into, from.0);
        read.map_err(gone_by_its_name)
    }

    /// A word.
    pub fn read_word(&self, from: LoadAddr) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(from, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes even where the process itself may not, such as into its code.
    pub fn write(&self, to: LoadAddr, bytes: &[u8]) -> io::Result<()> {
        let written = self.0.write_all_at(bytes, to.0);
        written.map_err(gone_by_its_name)
    }
}

fn gone_by_its_name(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero => {
            kernel::gone()
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_left_of_a_dead_process_is_told_from_memory_that_is_not_there() {
        let mut cat = Command::new("cat");
        let mut cat = cat.stdin(Stdio::piped()).spawn().expect("it starts");
        let pid = cat.id() as pid_t;
        let memory = Memory::of(pid).expect("it lives");
        let unmapped = memory.read_word(LoadAddr(0)).expect_err("nothing is there");
        assert_eq!(unmapped.raw_os_error(), Some(libc::EIO));
        cat.kill().expect("it is ours");
        cat.wait().expect("it has ended");
        let is_gone = |result: io::Result<()>| kernel::is_gone(&result.expect_err("it is dead"));
        assert!(is_gone(memory.read(LoadAddr(0), &mut [0])));
        assert!(is_gone(memory.write(LoadAddr(0), &[0])));
        assert!(is_gone(Memory::of(pid).map(drop)));
        assert!(is_gone(proc::mappings(pid).map(drop)));
    }

    #[test]
    fn pages_of_code_are_the_files_until_somebody_writes_there() {
        let mut cat = Command::new("cat");
        let mut cat = cat.stdin(Stdio::piped()).spawn().expect("it starts");
        let pid = cat.id() as pid_t;
        let memory = Memory::of(pid).expect("it lives");
        let code = loop {
            let mappings = proc::mappings(pid).expect("it lives");
            let mut code = mappings.into_iter().filter(|it| it.executable);
            if let Some(code) = code.find(|it| it.path.ends_with("/cat")) {
                break code.range;
            }
        };
        if let Some(own) = proc::own_pages(pid, &code) {
            assert_eq!(own, [] as [u64; 0]);
            let last = code.end - proc::PAGE;
            let word = memory.read_word(LoadAddr(last)).expect("it is mapped");
            memory
                .write(LoadAddr(last), &word.to_le_bytes())
                .expect("we may");
            assert_eq!(proc::own_pages(pid, &code), Some(vec![last]));
        }
        cat.kill().expect("it is ours");
        cat.wait().expect("it has ended");
    }

    #[test]
    fn a_process_that_nobody_waited_for_yet_is_gone_too() {
        let mut child = Command::new("true").spawn().expect("it starts");
        let pid = child.id() as pid_t;
        while !proc::is_zombie(pid) {
            std::thread::yield_now();
        }
        let error = proc::mappings(pid).expect_err("it has none");
        assert!(kernel::is_gone(&error));
        child.wait().expect("it has ended");
    }
}
