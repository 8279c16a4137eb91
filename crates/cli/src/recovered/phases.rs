//! A run with marks: what it did between them, each as if it were a run of its own.
//!
//! Counters, visits and shifts of two moments are numbers of the same things, and recovery is linear:
//! the difference of two readings is the reading of what happened between them.

use anyhow::Result;
use headcount_monitor::journal::{self, Entry, Written};
use headcount_monitor::{Outcome, OwnFolder, live};

use super::{Recovered, recover_from};
use crate::selection::Selection;

/// The phase before the first mark.
const START: &str = "start";

/// The phases of a run; none if nobody marked it.
pub fn recover_phases(
    folder: &OwnFolder,
    outcome: Option<&Outcome>,
    selection: Option<&Selection>,
) -> Result<Vec<Recovered>> {
    let marks = live::marks(folder)?;
    if marks.is_empty() {
        return Ok(Vec::new());
    }
    let mut moments = Vec::new();
    let mut began = (START.to_owned(), None);
    for mark in marks {
        let next = (mark.name, Some(mark.so_far.moment.at));
        moments.push((std::mem::replace(&mut began, next), mark.so_far.written));
    }
    moments.push((began, journal::read(folder)?));
    let mut phases = Vec::new();
    for (number, ((name, started), written)) in moments.iter().enumerate() {
        let before = number.checked_sub(1).map(|it| &moments[it].1);
        let between = difference(written.clone(), before);
        let mut recovered = recover_from(between, folder, outcome, selection)?;
        let run = &mut recovered.run;
        if run.batch.is_empty() {
            run.batch.clone_from(&run.key);
        }
        run.key.push_str(&format!("#{number}"));
        run.phase.clone_from(name);
        run.started = started.unwrap_or(run.started);
        if written.entries.contains(&Entry::Calls) {
            run.notes.push(
                "What calls cost is known of whole runs only, and this one has phases.".to_owned(),
            );
        }
        phases.push(recovered);
    }
    Ok(phases)
}

/// What was counted between two moments.
fn difference(mut later: Written, earlier: Option<&Written>) -> Written {
    let Some(earlier) = earlier else {
        return later;
    };
    subtract(&mut later.windows, &earlier.windows);
    for (later, earlier) in later.counters.iter_mut().zip(&earlier.counters) {
        subtract(later, earlier);
    }
    later
        .entries
        .extend(earlier.entries.iter().filter_map(undone));
    later
}

fn subtract(later: &mut [u64], earlier: &[u64]) {
    for (later, earlier) in later.iter_mut().zip(earlier) {
        *later = later.wrapping_sub(*earlier);
    }
}

/// What takes an entry back that adds something to counts.
fn undone(entry: &Entry) -> Option<Entry> {
    let mut entry = entry.clone();
    match &mut entry {
        Entry::Visit { delta, .. } | Entry::Shift { delta, .. } => *delta = -*delta,
        _ => return None,
    }
    Some(entry)
}
