//! What can go wrong before there are samples.

use std::io;

/// Why nothing was sampled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("{0}: not found")]
    NotFound(String),
    /// It cannot be run.
    #[error("{}: {}", .0, why_not_run(.1))]
    CannotRun(String, io::Error),
    /// There is no such process.
    #[error("process {0}: no such process")]
    NoProcess(i32),
    /// The kernel allows no samples.
    #[error(
        "the kernel does not allow sampling {subject} ({}); {}",
        words(.error), cure(*.paranoid)
    )]
    NotAllowed {
        /// Of what.
        subject: String,
        /// What it said.
        error: io::Error,
        /// What `/proc/sys/kernel/perf_event_paranoid` says.
        paranoid: Option<i32>,
    },
    /// Something else is missing.
    #[error("{}: {}", .0, words(.1))]
    Io(&'static str, io::Error),
}

/// What the system says, or somebody who knows better.
fn why_not_run(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(_) => format!("cannot run it: {}", words(error)),
        None => error.to_string(),
    }
}

/// What the system says, without the number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_owned()
}

/// The highest level at which users may sample their own programs.
const OWN_PROGRAMS: i32 = 2;

fn cure(paranoid: Option<i32>) -> String {
    match paranoid {
        Some(level) if level > OWN_PROGRAMS => format!(
            "kernel.perf_event_paranoid is {level}: `sudo sysctl kernel.perf_event_paranoid=2` lets \
             users sample their own programs"
        ),
        _ => "a container may forbid perf_event_open (seccomp), and only root can sample another \
              user's processes"
            .to_owned(),
    }
}
