//! Print what a program has executed so far.

use std::process::ExitCode;

use headcount_monitor::live::{Live, Moment, NotAnswered};
use headcount_profile::{Profile, RunSelection};

use super::{collect, load_from, report};
use crate::args::{ProfileArgument, Query, Report, RunsArgument};
use crate::monitored;

pub fn run(args: &Query) -> anyhow::Result<ExitCode> {
    let (profile, moment) = ask(args.pid)?;
    let mut loaded = load_from(&profile, &RunSelection::All)?;
    loaded.notes.extend(moment.as_ref().map(told));
    report::show(loaded, &as_report(args))
}

/// What a process has counted so far, and at which moment, if that is known.
fn ask(pid: i32) -> anyhow::Result<(Profile, Option<Moment>)> {
    match Live::find(pid) {
        Ok(live) => {
            let (profile, moment) = monitored::so_far(&live)?;
            Ok((profile, Some(moment)))
        }
        // It may count itself.
        Err(NotAnswered::NotCounted(_)) => match collect::running(pid.unsigned_abs()) {
            Ok(profile) => Ok((profile, None)),
            Err(_) => Err(NotAnswered::NotCounted(pid).into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn told(moment: &Moment) -> String {
    let threads = match moment.threads {
        1 => "its thread was".to_owned(),
        many => format!("its {many} threads were"),
    };
    let held = moment.held.as_micros();
    format!("The program was running: {threads} held for {held} microseconds to read these counts.")
}

fn as_report(args: &Query) -> Report {
    Report {
        profile: ProfileArgument {
            file: None,
            input: None,
        },
        by: args.by,
        sort: args.sort.clone(),
        top: args.top,
        all: args.all,
        own: args.own.clone(),
        filter: args.filter.clone(),
        never: false,
        why: false,
        charge_back: false,
        events: args.events.clone(),
        runs: RunsArgument::all(),
        names: args.names,
        format: args.format,
        source: args.source.clone(),
        output: args.output.clone(),
    }
}
