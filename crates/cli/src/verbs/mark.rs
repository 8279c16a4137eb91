//! Mark a moment of a run that goes on.

use std::process::ExitCode;

use headcount_monitor::live::Live;

use crate::args::Mark;
use crate::talk::say;

pub fn run(args: &Mark) -> anyhow::Result<ExitCode> {
    let moment = Live::find(args.pid)?.mark(&args.name)?;
    let held = moment.held.as_micros();
    say(format!(
        "phase `{}` begins; threads were held for {held} microseconds",
        args.name
    ));
    Ok(ExitCode::SUCCESS)
}
