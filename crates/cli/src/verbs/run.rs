//! `headcount run`: runs a program and counts it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::args::Run;
use crate::monitored;

/// Runs the verb. The exit status is the program's.
pub fn run(args: &Run) -> Result<ExitCode> {
    if args.no_lists && args.program.command.iter().any(|it| it == "--list") {
        return Err(uncounted(&args.program.command));
    }
    let folder = monitored::new_folder()?;
    let counted = monitored::count(
        &args.counting,
        !args.program.no_follow,
        None,
        &|| (),
        |settings| headcount_monitor::run(&args.program.command, &folder, settings),
    );
    let outcome = match counted {
        Ok(outcome) => outcome,
        Err(error) => return Err(monitored::failed(&args.counting, &folder, error)),
    };
    monitored::store(&args.counting, &folder, &outcome)?;
    let status = outcome.status.unwrap_or(0);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

/// Becomes the program; comes back only if that cannot be.
fn uncounted(command: &[OsString]) -> anyhow::Error {
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    anyhow::anyhow!("{}: cannot be run: {error}", command[0].display())
}
