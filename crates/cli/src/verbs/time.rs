//! `headcount time`: samples a program that runs at its own speed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use headcount_monitor::{find_debug_file, give_back_to, is_elf};
use headcount_sampling::{Error, Settings};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::DEFAULT_PROFILE;
use crate::args::Time;
use crate::monitored::why_not_run;
use crate::talk::say;
use crate::timed::{self, Sampled};

/// Runs the verb. The exit status is the program's.
pub fn run(args: &Time) -> Result<ExitCode> {
    let signals = Signals::new()?;
    let settings = Settings {
        frequency: args.frequency,
        stack: args.stack_size / 8 * 8,
        wait: args.wait,
        duration: args.duration,
        read: &timed::read,
        debug_file: &find_debug_file,
        as_it_is: args.command.first().is_some_and(|it| is_elf(Path::new(it))),
        prepare: &|command| _ = give_back_to(command),
        signal: &|is_there| signals.take(is_there && args.pid.is_none()),
        begun: &|| begun(args),
    };
    // When a process has ended, nobody knows any more.
    let command = args
        .pid
        .map_or_else(|| timed::words(&args.command), command_of);
    let started = timed::now();
    let outcome = match args.pid {
        Some(pid) => headcount_sampling::attach(pid, &settings)?,
        None => headcount_sampling::run(&args.command, &settings).map_err(explained)?,
    };
    // Whoever was told when to end may have left the program to itself.
    let is_over = |it: Duration| u128::from(outcome.elapsed) >= it.as_nanos();
    let sampled = Sampled {
        command,
        batch: String::new(),
        is_part: args.pid.is_some()
            || outcome.status.is_none()
            || args.duration.is_some_and(is_over),
        started,
        ended: started.saturating_add(outcome.elapsed),
        status: outcome.status,
        samples: outcome.samples,
        unseen: outcome.unseen,
    };
    let profile = args.output.clone();
    let profile = profile.unwrap_or_else(|| PathBuf::from(DEFAULT_PROFILE));
    let stored = timed::store(&sampled, &profile, args.quiet);
    let status = match args.pid {
        Some(_) => {
            stored?;
            0
        }
        None => {
            // Whoever waits for the program is to see how it ended, whatever became of our books.
            if let Err(error) = stored {
                say(format!("{error:#}"));
            }
            sampled.status.unwrap_or(125)
        }
    };
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

fn explained(error: Error) -> Error {
    match error {
        Error::CannotRun(name, why) => {
            let why = why_not_run(&name, why);
            Error::CannotRun(name, why)
        }
        other => other,
    }
}

fn begun(args: &Time) {
    if let (Some(pid), false) = (args.pid, args.quiet) {
        say(format!("sampling process {pid}; Ctrl-C stops sampling"));
    }
}

/// Signals that come to headcount.
struct Signals {
    taken: Arc<AtomicUsize>,
}

impl Signals {
    fn new() -> Result<Self> {
        let taken = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
            let number = signal.unsigned_abs() as usize;
            signal_hook::flag::register_usize(signal, taken.clone(), number)
                .context("cannot handle signals")?;
        }
        Ok(Self { taken })
    }

    /// The last one. What a terminal sends reaches a program that headcount started by itself.
    fn take(&self, is_program_there: bool) -> Option<i32> {
        let signal = i32::try_from(self.taken.swap(0, Ordering::Relaxed)).ok()?;
        let is_for_both = is_program_there && matches!(signal, SIGINT | SIGQUIT);
        (signal != 0 && !is_for_both).then_some(signal)
    }
}

/// The words that a process was started with.
fn command_of(pid: i32) -> Vec<String> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    let words = words.split(|it| *it == 0).filter(|_| !words.is_empty());
    words
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .collect()
}
