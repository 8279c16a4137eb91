//! How long does each program take, built in each way?
//!
//! All ways take turns, round after round, so that whatever else the machine
//! is doing falls on all of them alike. The time is processor time, user and
//! system, of all threads.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use headcount_ground::child;
use headcount_ground::program::{Language, Program};
use headcount_ground::real::Amount;

use crate::build;
use crate::variant::{self, Tools, Variant};

/// A program with what it is given in each amount.
pub struct Subject {
    pub name: String,
    pub language: Language,
    pub is_threaded: bool,
    pub measure: Program,
    pub brief: Program,
}

impl Subject {
    pub fn given(&self, amount: Amount) -> &Program {
        match amount {
            Amount::Brief => &self.brief,
            _ => &self.measure,
        }
    }
}

/// Every time that was taken.
#[derive(Default)]
pub struct Times {
    times: BTreeMap<(String, Variant), Vec<Duration>>,
    /// How often `headcount run` stopped the program, the last time.
    traps: BTreeMap<String, u64>,
}

impl Times {
    pub fn of(&self, subject: &Subject, variant: Variant) -> &[Duration] {
        self.times
            .get(&(subject.name.clone(), variant))
            .map_or(&[], Vec::as_slice)
    }

    pub fn median(&self, subject: &Subject, variant: Variant) -> Option<Duration> {
        median(self.of(subject, variant))
    }

    /// How many times as long as its baseline.
    pub fn slowdown(&self, subject: &Subject, variant: Variant) -> Option<f64> {
        let base = self.median(subject, variant.baseline()?)?;
        Some(self.median(subject, variant)?.as_secs_f64() / base.as_secs_f64())
    }

    /// How often `headcount run` stopped the program, if it said so.
    pub fn traps(&self, subject: &Subject) -> Option<u64> {
        self.traps.get(&subject.name).copied()
    }

    fn add(&mut self, subject: &Subject, variant: Variant, time: Duration) {
        self.times
            .entry((subject.name.clone(), variant))
            .or_default()
            .push(time);
    }
}

/// Runs everything `rounds` times. `tell` hears of every run.
pub fn measure(
    work: &Path,
    tools: &Tools,
    subjects: &[Subject],
    variants: &[Variant],
    rounds: usize,
    mut tell: impl FnMut(usize, &Subject, Variant),
) -> Result<Times> {
    let mut times = Times::default();
    let mut said = BTreeMap::new();
    for round in 0..rounds {
        for subject in subjects {
            for variant in turn(variants, subject.language, round, rounds) {
                tell(round, subject, variant);
                let Ran {
                    time,
                    output,
                    traps,
                } = run_once(work, tools, subject, variant)?;
                let first = said
                    .entry((&subject.name, variant.amount()))
                    .or_insert_with(|| output.clone());
                ensure!(
                    *first == output,
                    "{} says something else as {}",
                    subject.name,
                    variant.name()
                );
                times.add(subject, variant, time);
                let traps = traps.map(|traps| (subject.name.clone(), traps));
                times.traps.extend(traps);
            }
        }
    }
    Ok(times)
}

/// The ways that are run in one round. Each round starts with another one, so
/// that none is always the first to run after a pause.
fn turn(variants: &[Variant], language: Language, round: usize, rounds: usize) -> Vec<Variant> {
    let due = |variant: &Variant| variant.applies_to(language) && round < variant.rounds(rounds);
    let mut order: Vec<Variant> = variants.iter().copied().filter(due).collect();
    let first = round % order.len().max(1);
    order.rotate_left(first);
    order
}

/// What came of one run.
struct Ran {
    time: Duration,
    output: Vec<u8>,
    traps: Option<u64>,
}

fn run_once(work: &Path, tools: &Tools, subject: &Subject, variant: Variant) -> Result<Ran> {
    let program = subject.given(variant.amount());
    let folder = build::folder(work, variant, program);
    let mut command = variant.command(tools, program, &build::executable(&folder), &folder);
    let (output, said) = (folder.join("stdout"), folder.join("stderr"));
    command.stdin(Stdio::null()).stdout(File::create(&output)?);
    if variant.says() {
        command.stderr(File::create(&said)?);
    }
    let (status, time) = child::time(&mut command)?;
    ensure!(
        status.success(),
        "{} as {}: {status}",
        subject.name,
        variant.name()
    );
    clean(&folder)?;
    let said = match variant.says() {
        true => fs::read_to_string(said)?,
        false => String::new(),
    };
    Ok(Ran {
        time,
        output: fs::read(output)?,
        traps: traps(&said),
    })
}

/// How often the program was stopped, as `headcount run` says when it is done: `N breakpoints
/// met`, or `N traps`. `None`: it does not say.
pub fn traps(said: &str) -> Option<u64> {
    let mut lines = said.lines().filter_map(|it| it.strip_prefix("headcount: "));
    lines.find_map(|line| {
        let words = line.split_whitespace();
        let words: Vec<&str> = words.map(|it| it.trim_end_matches([';', ','])).collect();
        let mut pairs = words.windows(2);
        let counted = pairs.find(|pair| matches!(pair[1], "breakpoints" | "trap" | "traps"));
        counted?[0].replace(',', "").parse().ok()
    })
}

/// Every run starts from nothing: some tools add to the file of the run before.
fn clean(folder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder.join("headcount.counts"));
    let _ = fs::remove_file(variant::profile(folder));
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|end| end == "gcda" || end == "profraw")
        {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

pub fn median(times: &[Duration]) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort();
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2),
    }
}

pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (logarithms / ratios.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_between_the_two_middles() {
        let seconds = |all: &[u64]| {
            all.iter()
                .map(|s| Duration::from_secs(*s))
                .collect::<Vec<_>>()
        };
        assert_eq!(median(&seconds(&[9, 1, 4])), Some(Duration::from_secs(4)));
        assert_eq!(
            median(&seconds(&[4, 1, 9, 2])),
            Some(Duration::from_secs(3))
        );
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn every_round_starts_with_another_way_and_leaves_none_out() {
        let ways = [Variant::Native, Variant::Gcov, Variant::Callgrind];
        let (c, rust) = (Language::C, Language::Rust);
        assert_eq!(turn(&ways, c, 0, 9), ways);
        assert_eq!(turn(&ways, c, 1, 9), [Variant::Gcov, Variant::Native]);
        assert_eq!(
            turn(&ways, rust, 0, 9),
            [Variant::Native, Variant::Callgrind]
        );
    }

    #[test]
    fn headcounts_own_words_say_how_often_it_stopped_the_program() {
        let said = "headcount: 1,234 breakpoints met in 6 functions; 1 process, 1 thread\n";
        assert_eq!(traps(said), Some(1234));
        assert_eq!(traps("7 breakpoints, says the program\n"), None);
        assert_eq!(traps("headcount: 9 modules; 0 traps; 1 thread\n"), Some(0));
    }

    #[test]
    fn twice_and_half_cancel_in_a_geometric_mean() {
        assert!((geometric_mean(&[2.0, 0.5]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
