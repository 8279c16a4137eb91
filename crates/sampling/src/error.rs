//! What can go wrong before there are samples.

use std::io;

/// Why nothing was sampled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("{0}: not found")]
    NotFound(String),
    /// It cannot be run.
    #[error("{0}: cannot run it: {1}")]
    CannotRun(String, io::Error),
    /// There is no such process.
    #[error("process {0}: there is none with this number")]
    NoProcess(i32),
    /// The kernel allows no samples.
    #[error(
        "the kernel does not allow samples of {subject} ({error}); {}",
        cure(*.paranoid)
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
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
}

/// The highest level at which users may sample their own programs.
const OWN_PROGRAMS: i32 = 2;

fn cure(paranoid: Option<i32>) -> String {
    match paranoid {
        Some(level) if level > OWN_PROGRAMS => format!(
            "kernel.perf_event_paranoid is {level}: `sudo sysctl kernel.perf_event_paranoid=2` lets \
             users sample their own programs"
        ),
        _ => "a container may forbid it (seccomp, the system call perf_event_open), and a program \
              of another user can be sampled by root alone"
            .to_owned(),
    }
}
