//! The program `headcount`: the only crate that prints, reads the environment and ends the
//! process.
#![deny(unsafe_code)]

mod args;
mod assembler;
mod counters;
mod module;
mod output;
mod progress;
mod talk;
mod verbs;

use args::{Headcount, Verb};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use talk::say;

/// The program we were to become could not be run.
#[derive(Debug, thiserror::Error)]
#[error("cannot be run")]
pub struct CannotRun {
    /// 126 if it cannot be run, 127 if it was not found.
    pub status: u8,
}

/// The profile where the user names none.
pub fn default_profile() -> PathBuf {
    "headcount.db".into()
}

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let called_as = words.next().unwrap_or_default();
    if Path::new(&called_as)
        .file_name()
        .is_some_and(|name| name == "as")
    {
        return finish(assembler::run(words.collect()), 1);
    }
    let verb = Headcount::parse().verb;
    finish(run(&verb), failure_status(&verb))
}

fn run(verb: &Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Demo(it) => verbs::demo::run(it),
        Verb::Cc(it) => verbs::cc::run(&it.command).map(|never| match never {}),
        Verb::Collect(it) => verbs::collect::run(it).map(|()| ExitCode::SUCCESS),
        Verb::Report(it) => verbs::report::run(it),
        Verb::Annotate(it) => verbs::annotate::run(it),
        Verb::Explain(it) => verbs::explain::run(it),
        Verb::Runs(it) => verbs::runs::run(it),
        Verb::Merge(it) => verbs::merge::run(it),
        Verb::Doctor(it) => verbs::doctor::run(it),
        Verb::Man(it) => verbs::man::run(it),
        Verb::Completions(it) => verbs::completions::run(it),
    }
}

/// The status when we fail ourselves: whoever stands in front of another program must not be
/// mistaken for it, so that is 125, as with `timeout`.
fn failure_status(verb: &Verb) -> u8 {
    match verb {
        Verb::Cc(_) => 125,
        _ => 2,
    }
}

/// Ends the program: the one place where errors are printed.
fn finish(result: anyhow::Result<ExitCode>, failure: u8) -> ExitCode {
    match result {
        Ok(status) => status,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("{error:#}"));
            let cannot_run = error.downcast_ref::<CannotRun>();
            ExitCode::from(cannot_run.map_or(failure, |it| it.status))
        }
    }
}
