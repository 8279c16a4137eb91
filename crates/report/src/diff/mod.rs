//! Two sets of counts, function by function and line by line.
//!
//! Modules and functions are matched by their names, so that two builds can be compared although
//! every address has moved; lines are aligned where they moved with the source. Equal counts make no
//! difference at all; nor do counts that lie between those of several runs of the same command.

mod alignment;
mod limits;
mod line_counts;
mod markdown;
mod matching;
mod repetitions;
mod rows;
mod shown;
mod values;
pub mod variation;

pub use limits::{Amount, Limit, Regression, Scope, Subject};
pub use line_counts::{CountChange, csv as lines_csv, json as lines_json, text as lines_text};
pub use markdown::{annotations, markdown};
pub use repetitions::{Range, Repetition};
pub use shown::{csv, json, sentence, text};
pub use values::{Values, csv as values_csv, json as values_json, text as values_text};

use crate::only::Only;
use crate::{Error, RunSummary};
use headcount_model::Counted;
use std::collections::{BTreeMap, BTreeSet};

/// One of the two sides.
pub struct Side<'a> {
    /// The counts.
    pub counted: &'a [Counted],
    /// What is kept of other runs of the same command.
    pub repetitions: Vec<Repetition>,
    /// The runs that they were counted in.
    pub runs: Vec<RunSummary>,
    /// The processors of those.
    pub cpus: Vec<String>,
}

/// What differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The commands of both sides.
    pub commands: [String; 2],
    /// Instructions executed on both sides, in all functions that were counted. Of several runs, the
    /// two counts that are nearest to each other; equal, if the sides overlap.
    pub executed: [u64; 2],
    /// What several runs executed, if there are any.
    pub ranges: Option<[Range; 2]>,
    /// The functions that differ, the largest change first.
    pub changes: Vec<Change>,
    /// How many functions are the same.
    pub unchanged: usize,
    /// How many differ, but not more than the runs of one side do.
    pub varying: usize,
    /// The lines whose counts differ or may do so, if that was asked for, the largest change first.
    pub lines: Vec<CountChange>,
    /// What makes the comparison doubtful, in sentences.
    pub notes: Vec<String>,
}

/// A function that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The path of its module, on the new side if it is there.
    pub module: String,
    /// Its name, as the programmer wrote it.
    pub function: String,
    /// Where its source begins, on the new side if it is there.
    pub source: Option<(String, u32)>,
    /// Instructions executed; none where there is no such function. Of several runs, the two counts
    /// that are nearest to each other.
    pub executed: [Option<u64>; 2],
    /// What several runs executed, if there are any.
    pub ranges: Option<[Range; 2]>,
    /// How often it was called.
    pub calls: [Option<u64>; 2],
    /// The lines that account for it, the largest change first.
    pub lines: Vec<LineChange>,
}

/// A line that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// Its file.
    pub file: String,
    /// Its number on both sides, where it is there.
    pub numbers: [Option<u32>; 2],
    /// Instructions executed.
    pub executed: [u64; 2],
    /// What stands there on the new side, if that is known.
    pub text: Option<String>,
}

impl Change {
    /// How much more, or less, was executed.
    pub fn difference(&self) -> i128 {
        let [old, new] = self.executed.map(|it| i128::from(it.unwrap_or(0)));
        new - old
    }

    /// The same if the runs of both sides do not overlap.
    fn beyond(
        self,
        sides: matching::Sides<'_, '_>,
        runs: Option<&[Vec<Repetition>; 2]>,
    ) -> Option<Self> {
        let (Some(runs), Some(function)) = (runs, sides[1].or(sides[0])) else {
            return Some(self);
        };
        // A run that is shown may lack what others have.
        let of = |side: usize| Range::of_function(&runs[side], sides[side].unwrap_or(function));
        let ranges = [of(0), of(1)];
        let [old, new] = repetitions::nearest(ranges);
        let is_there = |side: usize| sides[side].is_some() || ranges[side].most > 0;
        (old != new).then(|| Self {
            executed: [is_there(0).then_some(old), is_there(1).then_some(new)],
            ranges: Some(ranges),
            ..self
        })
    }
}

impl LineChange {
    /// How much more, or less, was executed.
    pub fn difference(&self) -> i128 {
        i128::from(self.executed[1]) - i128::from(self.executed[0])
    }
}

/// What to say of a comparison of several runs.
const REPEATED: &str = "Each side has several runs. The two closest counts are shown, so every change is \
                        at least that large. Lines below functions are from the median run.";

impl Side<'_> {
    /// What is kept of each run.
    fn all(&self, only: &Only, by_line: bool) -> Result<Vec<Repetition>, Error> {
        let mut all = vec![Repetition::new(self.counted, only, by_line)?];
        all.extend(self.repetitions.iter().cloned());
        Ok(all)
    }
}

impl Diff {
    /// Compares what is wanted of both sides; on request, also how often lines were begun.
    pub fn new(old: &Side<'_>, new: &Side<'_>, only: &Only, by_line: bool) -> Result<Self, Error> {
        let mut diff = Self {
            commands: [old, new].map(commands),
            ..Self::default()
        };
        let is_repeated = !old.repetitions.is_empty() || !new.repetitions.is_empty();
        let runs = match is_repeated || by_line {
            true => Some([old.all(only, by_line)?, new.all(only, by_line)?]),
            false => None,
        };
        let repeated = runs.as_ref().filter(|_| is_repeated);
        let mut uncounted = 0;
        let mut lines = by_line.then(line_counts::Pairs::default);
        for (a, b) in matching::modules(old.counted, new.counted) {
            let [a, b] = [a, b].map(|it| matching::Functions::of(it, only));
            let (a, b) = (a?, b?);
            uncounted += a.uncounted.len().max(b.uncounted.len());
            diff.add(&a, &b, repeated, lines.as_mut())?;
        }
        if let Some(runs) = repeated {
            let total = runs.each_ref().map(|it| Range::of_all(it));
            (diff.executed, diff.ranges) = (repetitions::nearest(total), Some(total));
            diff.notes.push(REPEATED.to_owned());
        }
        if let (Some(pairs), Some([old, new])) = (lines, &runs) {
            diff.lines = pairs.changes([old, new]);
        }
        diff.changes.sort_by_cached_key(|it| {
            let size = it.difference().unsigned_abs();
            (
                std::cmp::Reverse(size),
                it.function.clone(),
                it.module.clone(),
            )
        });
        if uncounted > 0 {
            let what = match uncounted {
                1 => "1 function was".to_owned(),
                many => format!("{} functions were", crate::thousands(many as u64)),
            };
            diff.notes.push(format!(
                "{what} not counted on both sides, and not compared."
            ));
        }
        diff.notes
            .extend(variation::other_processor(&old.cpus, &new.cpus));
        Ok(diff)
    }

    fn add(
        &mut self,
        old: &matching::Functions<'_>,
        new: &matching::Functions<'_>,
        repeated: Option<&[Vec<Repetition>; 2]>,
        mut lines: Option<&mut line_counts::Pairs>,
    ) -> Result<(), Error> {
        let same_build = old.build_id == new.build_id;
        for (sum, side) in self.executed.iter_mut().zip([old, new]) {
            for function in side.by_name.values().flatten() {
                let more = sum.checked_add(function.executed);
                *sum = more.ok_or(Error::TooLarge)?;
            }
        }
        let names = old.by_name.keys().chain(new.by_name.keys());
        let names: BTreeSet<_> = names.collect();
        for name in names {
            let [old_ones, new_ones] = [old, new].map(|it| it.by_name.get(name));
            let [old_ones, new_ones] = [old_ones, new_ones].map(|it| it.map_or(&[][..], |it| it));
            for sides in matching::namesakes(old_ones, new_ones) {
                let paired = alignment::paired(sides, same_build);
                if let Some(lines) = &mut lines {
                    lines.add(&paired, same_build);
                }
                match self::change(sides, &paired) {
                    None => self.unchanged += 1,
                    Some(change) => match change.beyond(sides, repeated) {
                        None => self.varying += 1,
                        Some(change) => self.changes.push(change),
                    },
                }
            }
        }
        Ok(())
    }

    /// Adds what stands on the lines that will be shown, as far as there is a source of them.
    pub fn add_texts(&mut self, top: usize, source: &dyn Fn(&str) -> Option<Vec<String>>) {
        let mut sources = BTreeMap::new();
        let mut text = |file: &str, line: Option<u32>| {
            let known = sources.entry(file.to_owned());
            let lines = known.or_insert_with(|| source(file)).as_ref()?;
            let text = lines.get(line?.checked_sub(1)? as usize)?.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        for change in self.changes.iter_mut().take(top) {
            for line in change.lines.iter_mut().take(shown::MOST_LINES) {
                line.text = text(&line.file, line.numbers[1]);
            }
        }
        let shown = line_counts::shown(&self.lines);
        for line in self.lines[..shown].iter_mut().take(top) {
            line.text = text(&line.file, line.numbers[1]);
        }
    }

    /// Is there no difference at all?
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.executed[0] == self.executed[1]
    }

    /// How much more, or less, was executed.
    pub fn difference(&self) -> i128 {
        i128::from(self.executed[1]) - i128::from(self.executed[0])
    }
}

fn change(sides: matching::Sides<'_, '_>, paired: &[alignment::Paired]) -> Option<Change> {
    let shown = sides[1].or(sides[0])?;
    let lines = alignment::changes(paired);
    let executed = sides.map(|side| side.map(|it| it.executed));
    let calls = sides.map(|side| side.map(|it| it.calls));
    // A function that is there on one side only, and never ran, says nothing.
    let number = |it: Option<u64>| it.unwrap_or(0);
    let same = number(executed[0]) == number(executed[1]) && number(calls[0]) == number(calls[1]);
    let of_both = sides.iter().all(Option::is_some);
    if same && (lines.is_empty() || !of_both) {
        return None;
    }
    Some(Change {
        module: shown.module.to_owned(),
        function: shown.name.clone(),
        source: shown.source.map(|(file, line)| (file.to_owned(), line)),
        executed,
        ranges: None,
        calls,
        lines,
    })
}

fn commands(side: &Side<'_>) -> String {
    let commands: Vec<String> = side.runs.iter().map(crate::text::command).collect();
    let commands = match commands.as_slice() {
        [] => "?".to_owned(),
        [one] => one.clone(),
        [first, ..] => format!("{first} and {} more runs", commands.len() - 1),
    };
    match side.repetitions.len() {
        0 => commands,
        others => format!("{commands}, {} times", others + 1),
    }
}
