//! List the runs in a profile, or remove some.

use crate::args::{Format, Runs};
use crate::{output, progress, talk};
use headcount_model::Process;
use headcount_profile::{Executed, Profile, Removed, RunInfo};
use headcount_report::{Count, RunSummary, csv, plural, text, thousands};
use std::process::ExitCode;

pub fn run(args: &Runs) -> anyhow::Result<ExitCode> {
    let named = args.profile.file.as_ref().or(args.profile.input.as_ref());
    let mut profile = super::open(named)?;
    if let Some(removed) = remove(args, &mut profile)? {
        talk::say(told(removed));
    }
    let rows = progress::during("reading the profile", || rows(&profile))?;
    let shown = match args.format.get() {
        Format::Text => as_text(&rows),
        Format::Csv => as_csv(&rows),
        Format::Json => as_json(&rows),
    };
    output::write_exact(args.output.as_deref(), &shown)?;
    Ok(ExitCode::SUCCESS)
}

fn remove(args: &Runs, profile: &mut Profile) -> anyhow::Result<Option<Removed>> {
    let remove = || match (&args.remove, args.keep) {
        (Some(runs), _) => profile.remove(runs).map(Some),
        (None, Some(commands)) => profile
            .remove_all_but_last(usize::try_from(commands).unwrap_or(usize::MAX))
            .map(Some),
        (None, None) => Ok(None),
    };
    Ok(progress::during("removing runs", remove)?)
}

fn told(removed: Removed) -> String {
    let Removed {
        runs,
        modules,
        bytes,
        kept_size,
    } = removed;
    let mut said = format!("removed {}", plural(runs as u64, "run"));
    if modules > 0 {
        let modules = plural(modules as u64, "module");
        said.push_str(&format!(" and {modules} that no other run has"));
    }
    let why = kept_size.map_or(String::new(), |why| format!(" ({why})"));
    match (runs, bytes) {
        (0, _) => "nothing to remove: there are no older runs".to_owned(),
        (_, 0) => said + &format!("; the file keeps its size{why}, and later runs reuse the space"),
        _ => said + &format!("; the file is {} bytes smaller", thousands(bytes)),
    }
}

/// A run, and how many instructions it executed.
fn rows(profile: &Profile) -> anyhow::Result<Vec<(RunInfo, Count)>> {
    let row = |run: RunInfo| {
        // Of a run that was only timed, nothing was counted.
        let executed = match (run.samples, run.modules.is_empty()) {
            (Some(_), true) => Count::Unknown,
            _ => count(profile.executed(run.id)?),
        };
        Ok((run, executed))
    };
    profile.runs()?.into_iter().map(row).collect()
}

fn count(executed: Executed) -> Count {
    match executed.at_least {
        true => Count::AtLeast(executed.instructions),
        false => Count::Exact(executed.instructions),
    }
}

fn as_text(rows: &[(RunInfo, Count)]) -> String {
    let mut out = format!(
        "{:>4}  {:<20}  {:>20}  command\n",
        "run", "started", "executed"
    );
    for (run, executed) in rows {
        let summary = RunSummary {
            command: run.command.clone(),
            status: run.status,
        };
        let started = match run.started {
            0 => "?".to_owned(),
            at => date(at),
        };
        let executed = match (run.samples, executed) {
            (Some(samples), Count::Unknown) => format!("{} samples", thousands(samples)),
            _ => executed.to_string(),
        };
        out.push_str(&format!(
            "{:>4}  {started:<20}  {executed:>20}  {}\n",
            run.id,
            text::command(&summary) + &phase(run)
        ));
    }
    if rows.is_empty() {
        out.push_str("  (no run)\n");
    }
    out
}

/// Which part of what the command did.
fn phase(run: &RunInfo) -> String {
    match run.phase.as_str() {
        "" => String::new(),
        name => format!(" (phase {})", headcount_report::visible(name)),
    }
}

fn as_csv(rows: &[(RunInfo, Count)]) -> String {
    let mut out = "run,started,ended,status,executed,command,samples,phase,host\n".to_owned();
    for (run, executed) in rows {
        let status = run.status.map(|it| it.to_string()).unwrap_or_default();
        let executed = executed.value().map(|it| it.to_string());
        let executed = executed.unwrap_or_default();
        let command = run.command.join(" ");
        let command = csv::harmless(&command).replace('"', "\"\"");
        let samples = run.samples.map(|it| it.to_string()).unwrap_or_default();
        let phase = csv::harmless(&run.phase).replace('"', "\"\"");
        let host = csv::harmless(&run.host).replace('"', "\"\"");
        out.push_str(&format!(
            "{},{},{},{status},{executed},\"{command}\",{samples},\"{phase}\",\"{host}\"\n",
            run.id,
            date(run.started),
            date(run.ended)
        ));
    }
    out
}

fn as_json(rows: &[(RunInfo, Count)]) -> String {
    let row = |(run, executed): &(RunInfo, Count)| {
        let mut object = serde_json::json!({
            "run": run.id,
            "started": date(run.started),
            "ended": date(run.ended),
            "status": run.status,
            "executed": executed.value(),
            "samples": run.samples,
            "phase": run.phase,
            "command": run.command,
            "cpu": run.cpu,
            "host": run.host,
            "modules": run.modules,
            "processes": run.processes.len(),
            "threads": run.processes.iter().map(|it| it.threads.len()).sum::<usize>(),
            "loaded": run.processes.iter().flat_map(loaded).collect::<Vec<_>>(),
            "notes": run.notes,
        });
        if matches!(executed, Count::AtLeast(_)) {
            object["at_least"] = true.into();
        }
        object
    };
    let rows: Vec<serde_json::Value> = rows.iter().map(row).collect();
    let all = serde_json::json!({ "version": 1, "runs": rows });
    format!("{all:#}\n")
}

/// Where a process had its modules.
fn loaded(process: &Process) -> impl Iterator<Item = serde_json::Value> {
    process.loaded.iter().map(|it| {
        serde_json::json!({
            "pid": process.pid,
            "build_id": it.build_id,
            "bias": format!("{:#x}", it.bias.0),
        })
    })
}

/// Nanoseconds since 1970 as a date of the Gregorian calendar, UTC, in the form of ISO 8601.
fn date(nanoseconds: u64) -> String {
    let seconds = nanoseconds / 1_000_000_000;
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!(
        "{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}Z",
        days + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_follow_the_calendar() {
        let at = |seconds: u64| date(seconds * 1_000_000_000);
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(1_735_689_600), "2025-01-01T00:00:00Z");
    }
}
