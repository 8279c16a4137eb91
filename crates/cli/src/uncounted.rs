//! Programs that cannot be counted are run all the same.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use headcount_monitor::{Error, give_back_to, limits_left};

/// Becomes the program, as whoever started us would have started it; comes back only if that
/// cannot be.
pub fn become_program(command: &[OsString]) -> Error {
    let mut program = Command::new(&command[0]);
    let error = give_back_to(program.args(&command[1..])).exec();
    let name = command[0].to_string_lossy().into_owned();
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound(name),
        _ => Error::CannotRun(name, error),
    }
}

/// What there is not enough of, and what to do about it; `None` if the error is about something
/// else.
pub fn shortage(error: &io::Error) -> Option<String> {
    let flags: &[&str] = match error.raw_os_error()? {
        libc::EMFILE => &["-n"],
        libc::EAGAIN => &["-u"],
        libc::ENOMEM => &["-v", "-d"],
        libc::EFBIG => &["-f"],
        libc::ENFILE | libc::ENOSPC | libc::EDQUOT => &[],
        _ => return None,
    };
    let left = limits_left();
    let limits = left.into_iter().filter(|(flag, ..)| flags.contains(flag));
    let limits: Vec<String> = limits
        .map(|(flag, what, limit)| {
            format!("the limit of {what} is {limit}; raise it with `ulimit -H {flag}`")
        })
        .collect();
    Some(match limits.is_empty() {
        true => error.to_string(),
        false => format!("{error}; {}", limits.join("; ")),
    })
}
