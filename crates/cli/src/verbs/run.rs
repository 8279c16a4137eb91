//! `headcount run`: runs a program and counts it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::args::Run;
use crate::monitored;
use crate::talk::say;

/// Runs the verb. The exit status is the program's.
pub fn run(args: &Run) -> Result<ExitCode> {
    let command = &args.program.command;
    if args.no_lists && command.iter().any(|it| it == "--list") {
        return Err(uncounted(command));
    }
    let ran = monitored::run(&args.counting, &args.program)?;
    // Whoever waits for the program is to see how it ended, whatever became of our books.
    if let Err(error) = ran.stored {
        say(format!("{error:#}"));
    }
    let status = ran.outcome.status.unwrap_or(0);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

/// Becomes the program; comes back only if that cannot be.
fn uncounted(command: &[OsString]) -> anyhow::Error {
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    anyhow::anyhow!("{}: cannot be run: {error}", command[0].display())
}
