//! Starts a program that waits until clocks are set up for it.

use std::ffi::{CString, OsString};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
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

/// Makes the process. It is not the program yet. What the kernel does not know is handed to a shell,
/// but if it is to be run `as_it_is`.
pub fn hold(
    command: &[OsString],
    as_it_is: bool,
    prepare: &dyn Fn(&mut Command),
) -> Result<Held, Error> {
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
    let only_way = as_it_is.then(|| Words::new(command)).transpose();
    let only_way = only_way.map_err(|it| Error::CannotRun(program.to_string_lossy().into(), it))?;
    let before = move || {
        pid_writer.write_all(&std::process::id().to_ne_bytes())?;
        // If headcount ends, nobody else must keep this one waiting.
        // SAFETY: the child's own copy of a descriptor, of which nobody else knows.
        unsafe { libc::close(writing_end) };
        wait_for(&mut wait)?;
        only_way
            .as_ref()
            .map_or(Ok(()), |it| Err(it.become_program()))
    };
    // SAFETY: `before` only reads, writes, closes and becomes the program.
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

/// The words of a command, as the kernel takes them.
struct Words {
    words: Vec<CString>,
    /// Where these are, and a null.
    pointers: Vec<*const libc::c_char>,
}

// SAFETY: the pointers lead to what is in the same value, and nothing is written there.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    fn new(command: &[OsString]) -> io::Result<Self> {
        let word = |it: &OsString| CString::new(it.as_bytes()).map_err(io::Error::from);
        let words: Vec<CString> = command.iter().map(word).collect::<Result<_, _>>()?;
        let pointers = words.iter().map(|it| it.as_ptr());
        let pointers = pointers.chain([std::ptr::null()]).collect();
        Ok(Self { words, pointers })
    }

    /// Comes back only with the reason why it cannot.
    fn become_program(&self) -> io::Error {
        if let Some(program) = self.words.first() {
            // SAFETY: strings that end with a zero, and a list of such that ends with a null.
            unsafe { libc::execv(program.as_ptr(), self.pointers.as_ptr()) };
        }
        io::Error::last_os_error()
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
