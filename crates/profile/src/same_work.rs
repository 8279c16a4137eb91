//! Are counts and samples about the same work?
//!
//! Only then is time divided by a count the time for each call.

use crate::error::Problem;
use crate::read::{RunInfo, Timed, each};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// What the counts and the samples of some runs have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// There are not both.
    #[default]
    Alone,
    /// They are of the same work, which was done so many times.
    Same {
        /// While it was counted.
        counted: u64,
        /// While it was sampled.
        sampled: u64,
    },
    /// Nobody knows that; why, in words.
    Unrelated(String),
}

/// All runs of one command line that belong together: a program that ran once, and its phases.
type Executions<'a> = BTreeMap<(&'a str, &'a [String]), Vec<&'a RunInfo>>;

/// Compares what was counted with what was sampled.
pub(crate) fn work(db: &Connection, counted: &[RunInfo], timed: &[Timed]) -> Result<Work, Problem> {
    if counted.is_empty() || timed.is_empty() {
        return Ok(Work::Alone);
    }
    let sampled: Vec<&RunInfo> = timed.iter().map(|it| &it.run).collect();
    let executions = by_execution(counted.iter());
    for ((batch, _), runs) in &executions {
        if let Some(why) = why_not_one(db, batch, runs)? {
            return Ok(Work::Unrelated(why));
        }
    }
    let of_samples = by_execution(sampled.iter().copied());
    let is_at_once = timed.iter().all(|it| it.samples.is_counted)
        && executions.keys().eq(of_samples.keys())
        && of_samples.values().all(|it| it.len() == 1);
    if is_at_once {
        return Ok(Work::Same {
            counted: 1,
            sampled: 1,
        });
    }
    let all = || counted.iter().chain(sampled.iter().copied());
    Ok(match why_no_whole_runs(all()) {
        Some(why) => Work::Unrelated(why),
        None => compare(&executions, &sampled),
    })
}

fn by_execution<'a>(runs: impl Iterator<Item = &'a RunInfo>) -> Executions<'a> {
    let mut found = Executions::new();
    for run in runs {
        let key = (run.batch.as_str(), run.command.as_slice());
        found.entry(key).or_default().push(run);
    }
    found
}

/// Why these runs are not what one program did from its beginning to its end.
fn why_not_one(db: &Connection, batch: &str, runs: &[&RunInfo]) -> Result<Option<String>, Problem> {
    let phases = runs.iter().filter(|it| !it.phase.is_empty()).count();
    Ok(match (phases, runs.len()) {
        (0, 1) => None,
        (0, _) => Some("it is not known whether its processes ran once or several times".into()),
        _ if phases < phases_of(db, batch, &runs[0].command)? => {
            Some("the counts are of a part of a run, and the samples are of all of it".into())
        }
        _ => None,
    })
}

fn phases_of(db: &Connection, batch: &str, command: &[String]) -> Result<usize, Problem> {
    let command = serde_json::Value::from(command.to_vec()).to_string();
    let query = "SELECT 1 FROM runs WHERE batch = ? AND command = ? AND phase <> ''";
    let mut phases = 0;
    each(db, query, [batch, &command], |_| {
        phases += 1;
        Ok(())
    })?;
    Ok(phases)
}

/// Why not all of these runs saw all that their command does.
fn why_no_whole_runs<'a>(mut runs: impl Iterator<Item = &'a RunInfo>) -> Option<String> {
    runs.find_map(|run| match run.status {
        _ if run.is_part => Some(format!(
            "run {} saw only a part of what its program did",
            run.id
        )),
        Some(status @ 129..) => Some(format!(
            "run {} was ended by signal {}, and another may have done more or less",
            run.id,
            status - 128
        )),
        _ => None,
    })
}

/// Whether the same commands ran, in the same proportion.
fn compare(executions: &Executions<'_>, sampled: &[&RunInfo]) -> Work {
    let mut numbers: BTreeMap<&[String], (u64, u64)> = BTreeMap::new();
    for (_, command) in executions.keys() {
        numbers.entry(command).or_default().0 += 1;
    }
    for run in sampled {
        numbers.entry(&run.command).or_default().1 += 1;
    }
    let counted: u64 = numbers.values().map(|it| it.0).sum();
    let of_samples: u64 = numbers.values().map(|it| it.1).sum();
    let is_like_all = |it: &(u64, u64)| it.0 * of_samples == it.1 * counted;
    let statuses: BTreeSet<i32> = executions
        .values()
        .flatten()
        .chain(sampled)
        .filter_map(|it| it.status)
        .collect();
    match numbers.values().all(is_like_all) {
        false => Work::Unrelated("the counts and the samples are of different commands".into()),
        true if numbers.len() == 1 && statuses.len() > 1 => {
            Work::Unrelated("not all runs ended with the same status".into())
        }
        true => Work::Same {
            counted,
            sampled: of_samples,
        },
    }
}
