//! The program `headcount`: the only crate that prints, reads the environment and ends the
//! process.
#![deny(unsafe_code)]

mod args;
mod output;
mod progress;
mod talk;
mod verbs;

use args::{Headcount, Verb};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let verb = Headcount::parse().verb;
    let failure = failure_status(&verb);
    match run(&verb) {
        Ok(status) => status,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            talk::say(format!("{error:#}"));
            ExitCode::from(failure)
        }
    }
}

fn run(verb: &Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Demo(it) => verbs::demo::run(it),
        Verb::Cc(it) => verbs::cc::run(it),
        Verb::Collect(it) => verbs::collect::run(it),
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
