//! Run a program, once or several times, and say its totals and what varies.

use crate::args::{Stat as Args, StatFormat};
use crate::{monitored, output, readings};
use headcount_model::Process;
use headcount_profile::RunSelection;
use headcount_report::{RunSummary, stat::Stat};
use std::io::Write;
use std::process::ExitCode;

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut counting = args.counting.clone();
    // Without a name for the profile, the runs are forgotten.
    let folder = tempfile::tempdir()?;
    let path = counting.output.clone();
    let path = path.unwrap_or_else(|| folder.path().join("stat.db"));
    counting.output = Some(path.clone());
    counting.quiet = true;
    let mut stat = Stat::default();
    let mut failed = None;
    for _ in 0..args.repeat {
        let ran = monitored::run(&counting, &args.program, None, None)?;
        ran.stored?;
        let loaded = readings::open(&path)?.load(&RunSelection::Last)?;
        for run in &loaded.runs {
            let threads: usize = run
                .processes
                .iter()
                .map(|it: &Process| it.threads.len())
                .sum();
            let summary = RunSummary {
                command: run.command.clone(),
                status: run.status,
            };
            let numbers = [run.processes.len(), threads].map(|it| it as u64);
            stat.add(summary, &loaded.counted, numbers, &super::events)?;
        }
        let status = ran.outcome.status.unwrap_or(125);
        failed = failed.or((status != 0).then_some(status));
    }
    let shown = match args.format {
        StatFormat::Json => stat.json(),
        StatFormat::Text => stat.text(args.top),
    };
    match &args.report {
        Some(path) => output::write_exact(Some(path), &shown)?,
        // Standard output is the program's.
        None => std::io::stderr()
            .write_all(shown.as_bytes())
            .unwrap_or_default(),
    }
    Ok(ExitCode::from(
        u8::try_from(failed.unwrap_or(0)).unwrap_or(u8::MAX),
    ))
}
