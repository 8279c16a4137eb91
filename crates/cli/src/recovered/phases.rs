//! A run with marks: what it did between them, each as if it were a run of its own.
//!
//! Counters, visits and shifts of two moments are numbers of the same things, and recovery is linear:
//! the difference of two readings is the reading of what happened between them. What the program did while
//! it had asked that nothing be counted is taken off, and becomes a phase of its own.

use anyhow::Result;
use headcount_model::PAUSED;
use headcount_monitor::journal::{self, Entry, Written};
use headcount_monitor::live::Part;
use headcount_monitor::{Outcome, OwnFolder, live};

use super::{ByValue, Recovered, recover_from};
use crate::selection::Selection;

/// The phase before the first mark.
const START: &str = "start";

/// What was counted by value is known of the whole run: a phase of its own has that, in which nothing
/// else was counted.
pub const VALUES: &str = "values";

/// The phases of a run; none if nobody marked it.
pub fn recover_phases(
    folder: &OwnFolder,
    outcome: Option<&Outcome>,
    selection: Option<&Selection>,
) -> Result<Vec<Recovered>> {
    let marks = live::marks(folder)?;
    let paused = live::paused(folder)?;
    if marks.is_empty() && paused.is_none() {
        return Ok(Vec::new());
    }
    let mut stretches = Vec::new();
    let mut began = (START.to_owned(), None);
    for mark in marks {
        let next = (mark.name, Some(mark.so_far.moment.at));
        stretches.push(Stretch {
            began: std::mem::replace(&mut began, next),
            written: mark.so_far.written,
            paused: mark.so_far.paused.unwrap_or_default(),
        });
    }
    let written = journal::read(folder)?;
    let in_pauses = paused.as_ref().map(|it| it.until(&written));
    stretches.push(Stretch {
        began,
        written,
        paused: in_pauses.clone().unwrap_or_default(),
    });
    let mut phases: Vec<(String, Option<u64>, Written)> = Vec::new();
    for (number, stretch) in stretches.iter().enumerate() {
        let before = number.checked_sub(1).map(|it| &stretches[it]);
        let (name, started) = stretch.began.clone();
        phases.push((name, started, stretch.without_pauses(before)));
    }
    if let (Some(part), Some(last)) = (in_pauses, stretches.last()) {
        phases.push((PAUSED.to_owned(), None, alone(&last.written, &part)));
    }
    let last = stretches.last().map(|it| &it.written);
    let by_value = last.map(|it| ByValue::read(&it.entries, folder));
    let by_value = by_value.transpose()?.unwrap_or_default();
    if let Some(last) = last.filter(|_| !by_value.is_empty()) {
        phases.push((VALUES.to_owned(), None, alone(last, &Part::default())));
    }
    let phases = phases.into_iter().enumerate();
    let phases = phases.map(|(number, (name, started, written))| {
        let has_calls = written.entries.contains(&Entry::Calls);
        let has_threads = folder.file(journal::THREADS).exists();
        let mut recovered = recover_from(written, folder, outcome, selection)?;
        if name == VALUES {
            recovered.add_by_value(by_value.clone(), selection);
        }
        let run = &mut recovered.run;
        if run.batch.is_empty() {
            run.batch.clone_from(&run.key);
        }
        run.key.push_str(&format!("#{number}"));
        run.phase = name;
        run.started = started.unwrap_or(run.started);
        if has_calls {
            run.notes.push(
                "What calls cost is known of whole runs only, and this one has phases.".to_owned(),
            );
        }
        if has_threads {
            run.notes.push(
                "What each thread counted is known of whole runs only, and this one has phases."
                    .to_owned(),
            );
        }
        Ok(recovered)
    });
    phases.collect()
}

/// A run up to the end of a phase.
struct Stretch {
    /// The phase's name, and when it began.
    began: (String, Option<u64>),
    /// What was counted until it ended.
    written: Written,
    /// What of it was counted in pauses.
    paused: Part,
}

impl Stretch {
    /// What was counted since the phase before ended, and not in pauses.
    fn without_pauses(&self, before: Option<&Self>) -> Written {
        let mut counted = difference(self.written.clone(), before.map(|it| &it.written));
        let mut paused = self.paused.clone();
        if let Some(before) = before {
            paused.add_part(&before.paused, -1);
        }
        subtract(&mut counted.windows, &paused.windows);
        for (counted, paused) in counted.counters.iter_mut().zip(&paused.counters) {
            subtract(counted, paused);
        }
        let moves: Vec<Entry> = paused.moves.entries().collect();
        counted.entries.extend(moves.iter().filter_map(undone));
        counted
    }
}

/// A part of a run, as if nothing else had been counted.
fn alone(all: &Written, part: &Part) -> Written {
    let mut written = all.clone();
    let is_move = |it: &Entry| matches!(it, Entry::Visit { .. } | Entry::Shift { .. });
    written.entries.retain(|it| !is_move(it));
    written.entries.extend(part.moves.entries());
    replace(&mut written.windows, &part.windows);
    let none = Vec::new();
    for (module, counters) in written.counters.iter_mut().enumerate() {
        replace(counters, part.counters.get(module).unwrap_or(&none));
    }
    written
}

/// What there are no other numbers for is nothing.
fn replace(numbers: &mut [u64], others: &[u64]) {
    let others = others.iter().copied().chain(std::iter::repeat(0));
    for (number, other) in numbers.iter_mut().zip(others) {
        *number = other;
    }
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
        Entry::Visit { delta, .. } | Entry::Shift { delta, .. } => *delta = delta.wrapping_neg(),
        _ => return None,
    }
    Some(entry)
}
