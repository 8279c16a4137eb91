//! `headcount attach`: counts a program that already runs.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Attach;
use crate::monitored;
use crate::talk::say;

/// Runs the verb.
pub fn run(args: &Attach) -> Result<ExitCode> {
    let folder = monitored::new_folder()?;
    let begun = || {
        if !args.counting.quiet {
            say(format!(
                "counting process {}; Ctrl-C lets go of it",
                args.pid
            ));
        }
    };
    let counted = monitored::count(&args.counting, true, args.duration, &begun, |settings| {
        headcount_monitor::attach(args.pid, &folder, settings)
    });
    match counted {
        Ok(outcome) => monitored::store(&args.counting, &folder, &outcome)?,
        Err(error) => return Err(monitored::failed(&args.counting, &folder, error)),
    }
    Ok(ExitCode::SUCCESS)
}
