//! Starts a program that waits until clocks are set up for it.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::JoinHandle;

use crate::Error;

/// A process that will become the program.
pub struct Held {
    pub pid: i32,
    go_on: PipeWriter,
    /// Hears of the program when it has begun.
    spawning: JoinHandle<io::Result<Child>>,
    name: String,
}

/// Makes the process. It is not the program yet.
pub fn hold(command: &[OsString], prepare: &dyn Fn(&mut Command)) -> Result<Held, Error> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::NotFound("(no program)".to_owned()));
    };
    let pipe = || io::pipe().map_err(|error| Error::Io("cannot make a pipe", error));
    let (mut pid_reader, mut pid_writer) = pipe()?;
    let (mut wait, go_on) = pipe()?;
    let writing_end = go_on.as_raw_fd();
    let mut new = Command::new(program);
    new.args(arguments);
    prepare(&mut new);
    let before = move || {
        pid_writer.write_all(&std::process::id().to_ne_bytes())?;
        // If headcount ends, nobody else must keep this one waiting.
        // SAFETY: the child's own copy of a descriptor, of which nobody else knows.
        unsafe { libc::close(writing_end) };
        wait_for(&mut wait)
    };
    // SAFETY: `before` only reads, writes and closes.
    unsafe { new.pre_exec(before) };
    let spawning = std::thread::spawn(move || new.spawn());
    let name = program.to_string_lossy().into_owned();
    let mut pid = [0; 4];
    match pid_reader.read_exact(&mut pid) {
        Ok(()) => Ok(Held {
            pid: i32::from_ne_bytes(pid),
            go_on,
            spawning,
            name,
        }),
        // No process was made.
        Err(error) => match spawned(spawning) {
            Err(error) => Err(Error::CannotRun(name, error)),
            Ok(_) => Err(Error::CannotRun(name, error)),
        },
    }
}

fn wait_for(go_on: &mut PipeReader) -> io::Result<()> {
    go_on.read_exact(&mut [0])
}

fn spawned(spawning: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    let ended = || io::Error::other("the thread that started it ended");
    spawning.join().unwrap_or_else(|_| Err(ended()))
}

impl Held {
    /// Lets it become the program.
    pub fn release(mut self) -> Result<Child, Error> {
        let told = self.go_on.write_all(&[1]);
        drop(self.go_on);
        let child = told.and_then(|()| spawned(self.spawning));
        child.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound(self.name),
            _ => Error::CannotRun(self.name, error),
        })
    }
}
