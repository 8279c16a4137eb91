//! Print what a program has executed so far.

use std::process::ExitCode;

use anyhow::bail;
use headcount_monitor::live::{Live, Moment, NotAnswered};
use headcount_profile::{Profile, RunSelection};

use super::report::Wish;
use super::{collect, load_from, report};
use crate::args::{By, Query};
use crate::monitored;

pub fn run(args: &Query) -> anyhow::Result<ExitCode> {
    if matches!(args.table.by, By::Thread | By::Process) {
        bail!(
            "threads have rows where a whole run was counted with --per-thread, or where there are samples: \
             `headcount time --pid {}`",
            args.pid
        );
    }
    let (profile, moment) = ask(args.pid)?;
    let mut loaded = load_from(&profile, &RunSelection::All)?;
    loaded.notes.extend(moment.as_ref().map(told));
    report::show(loaded, &args.table, &Wish::default())
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
        // All of them waited for something.
        0 => {
            return "The program was running: none of its threads had to be held to read these counts."
                .to_owned();
        }
        1 => "its thread was".to_owned(),
        many => format!("its {many} threads were"),
    };
    let held = moment.held.as_micros();
    format!("The program was running: {threads} held for {held} microseconds to read these counts.")
}
