//! `headcount run`: runs a program and counts it.

use std::process::ExitCode;

use anyhow::Result;
use headcount_monitor::Onlooker;

use crate::args::Run;
use crate::monitored::{self, NothingChosen};
use crate::talk::say;
use crate::timed::{self, Sampled, WhileCounted};
use crate::uncounted::become_program;
use crate::verbs::watch;

/// Runs the verb. The exit status is the program's.
pub fn run(args: &Run) -> Result<ExitCode> {
    let command = &args.program.command;
    if args.no_lists && command.iter().any(|it| it == "--list") {
        return Err(become_program(command).into());
    }
    if args.watch {
        return watch::run_watched();
    }
    let onlooker = args.time.then(WhileCounted::default);
    let onlooker_of = onlooker.as_ref().map(|it| it as &dyn Onlooker);
    let started = timed::now();
    let ran = monitored::run(&args.counting, &args.program, onlooker_of)?;
    let sampled = onlooker
        .and_then(WhileCounted::finish)
        .map(|samples| Sampled {
            command: timed::words(command),
            started,
            ended: timed::now(),
            status: ran.outcome.status,
            samples,
        });
    if let Some(sampled) = sampled {
        let stored = timed::store(
            &sampled,
            &monitored::profile(&args.counting),
            args.counting.quiet,
        );
        if let Err(error) = stored {
            say(format!("{error:#}"));
        }
    }
    // Whoever waits for the program is to see how it ended, whatever became of our books.
    if let Err(error) = ran.stored {
        // But what was asked for makes no sense.
        if error.is::<NothingChosen>() {
            return Err(error);
        }
        say(format!("{error:#}"));
    }
    let status = ran.outcome.status.unwrap_or(125);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}
