//! `headcount run`: runs a program and counts it.

use std::process::{Command, ExitCode};

use anyhow::Result;
use headcount_monitor::{Onlooker, Outcome, Reached};

use crate::args::{Counting, Run, Then};
use crate::monitored::{self, NothingChosen};
use crate::talk::say;
use crate::timed::{self, Sampled, WhileCounted};
use crate::uncounted::become_program;
use crate::until::{self, Countdown};
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
    let counting = &counting(args, started);
    let countdown = args.until.clone().map(|until| Countdown {
        until,
        then: args.then,
    });
    let ran = monitored::run(counting, &args.program, onlooker_of, countdown.as_ref())?;
    let sampled = onlooker
        .and_then(WhileCounted::finish)
        .map(|samples| Sampled {
            command: timed::words(command),
            batch: counting.batch.clone().unwrap_or_default(),
            is_part: ran.outcome.status.is_none(),
            started,
            ended: timed::now(),
            status: ran.outcome.status,
            samples,
            // Counting tells of them.
            unseen: Vec::new(),
        });
    if let Some(sampled) = sampled {
        let stored = timed::store(&sampled, &monitored::profile(counting), counting.quiet);
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
    let status = match (&countdown, &ran.outcome.reached) {
        (Some(countdown), Some(reached)) => then(args, countdown, reached, &ran.outcome)?,
        _ => ran.outcome.status.unwrap_or(125),
    };
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

/// What to count. What is counted and timed at once has a name by which counts and samples find each other.
fn counting(args: &Run, started: u64) -> Counting {
    let mut counting = args.counting.clone();
    if args.time && counting.batch.is_none() {
        counting.batch = Some(format!("run-{started}-{}", std::process::id()));
    }
    counting
}

/// Does what was to be done when a thread has come to its last event. The program's status.
fn then(args: &Run, countdown: &Countdown, reached: &Reached, outcome: &Outcome) -> Result<i32> {
    if countdown.then != Then::Report {
        return until::act(countdown.then, reached);
    }
    Command::new(std::env::current_exe()?)
        .arg("report")
        .arg(monitored::profile(&args.counting))
        .args(["--phase", "start"])
        .status()?;
    Ok(outcome.status.unwrap_or(125))
}
