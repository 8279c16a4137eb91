//! `headcount run`: runs a program and counts it.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Run;
use crate::monitored;

/// Runs the verb. The exit status is the program's.
pub fn run(args: &Run) -> Result<ExitCode> {
    let outcome = monitored::run(&args.counting, &args.program)?;
    let status = outcome.status.unwrap_or(0);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}
