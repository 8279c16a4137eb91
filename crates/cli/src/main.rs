//! The program `headcount`: the only crate that prints, reads the environment and ends the
//! process.
#![deny(unsafe_code)]

mod args;
mod asked;
mod assembler;
mod cache;
mod copied;
mod copies;
mod counters;
mod database;
mod disclosure;
mod flat_table;
#[cfg(target_env = "gnu")]
mod heap;
#[cfg(test)]
mod hostile;
mod kept_modules;
mod live_table;
mod machine;
mod module;
mod module_files;
mod monitored;
mod ordinary_memory;
mod output;
mod program_memory;
mod progress;
mod readings;
mod recovered;
mod reserve;
mod response_files;
mod selection;
mod source_flows;
mod source_module;
mod source_route;
mod sources;
mod started_with;
mod talk;
mod tallied;
mod tally;
mod text_counts;
mod thread_readings;
mod threads_alone;
mod timed;
mod uncounted;
mod until;
mod verbs;

use args::{Headcount, Verb};
use clap::Parser;
use std::process::ExitCode;
use std::sync::Arc;

#[global_allocator]
static MEMORY: reserve::Reserved = reserve::Reserved;

fn main() -> ExitCode {
    headcount_monitor::with_room(work).unwrap_or_else(work)
}

fn work() -> ExitCode {
    if assembler::is_called() {
        return finish(assembler::run(std::env::args_os().skip(1).collect()), 1);
    }
    let verb = Headcount::try_parse().unwrap_or_else(usage).verb;
    outlive_limits();
    #[cfg(target_env = "gnu")]
    heap::grow_in_large_steps();
    finish(run(&verb), failure_status(&verb))
}

/// Words that make no sense, or a wish for help. Where we stand in front of another program, our
/// own failure is 125.
fn usage(error: clap::Error) -> Headcount {
    let _ = error.print();
    let in_front = ["cargo", "cc", "run", "attach", "stat", "time"];
    let verb = std::env::args_os().nth(1);
    let in_front = verb.is_some_and(|verb| in_front.iter().any(|it| verb == *it));
    std::process::exit(match error.exit_code() {
        0 => 0,
        _ if in_front => 125,
        other => other,
    })
}

/// Past a limit on the size of files (`ulimit -f`), the kernel would end us without a word. With a
/// handler for its signal, whatever it be, writing fails instead, and can be reported. (Programs
/// that we start do not inherit it.)
fn outlive_limits() {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// The only place where errors are printed.
fn finish(result: anyhow::Result<ExitCode>, failure: u8) -> ExitCode {
    match result {
        Ok(status) => status,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            talk::say(format!("{error:#}"));
            ExitCode::from(verbs::cannot_run(&error).unwrap_or(failure))
        }
    }
}

fn run(verb: &Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Demo(it) => verbs::demo::run(it),
        Verb::Run(it) => verbs::run::run(it),
        Verb::Icon(it) => verbs::icon::run(it),
        Verb::Time(it) => verbs::time::run(it),
        Verb::Stat(it) => verbs::stat::run(it),
        Verb::Attach(it) => verbs::attach::run(it),
        Verb::Query(it) => verbs::query::run(it),
        Verb::Watch(it) => verbs::watch::run(it),
        Verb::Mark(it) => verbs::mark::run(it),
        Verb::Cargo(it) => verbs::cargo::run(it),
        Verb::Cc(it) => verbs::cc::run(it),
        Verb::Csource(it) => verbs::csource::run(it),
        Verb::Collect(it) => verbs::collect::run(it),
        Verb::Report(it) => verbs::report::run(it),
        Verb::Annotate(it) => verbs::annotate::run(it),
        Verb::Html(it) => verbs::html::run(it),
        Verb::Explain(it) => verbs::explain::run(it),
        Verb::Diff(it) => verbs::diff::run(it),
        Verb::Export(it) => verbs::export::run(it),
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
        Verb::Cargo(_)
        | Verb::Cc(_)
        | Verb::Run(_)
        | Verb::Icon(_)
        | Verb::Attach(_)
        | Verb::Stat(_)
        | Verb::Time(_) => 125,
        _ => 2,
    }
}
