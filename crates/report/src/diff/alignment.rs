//! Which lines of a function changed, where the source may have changed too?
//!
//! Lines of one build have their numbers. Of two builds, lines are first moved with their function;
//! if that does not fit, those with equal counts are taken for the same, in order (the longest
//! common subsequence), and what is left between them changed.

use super::LineChange;
use super::matching::{Function, Sides};
use crate::glob::base_name;
use std::collections::{BTreeMap, BTreeSet};

/// Above so many pairs of lines, numbers decide alone.
const MOST_PAIRS: usize = 1 << 22;

/// The number of a line, and the instructions executed there.
pub type Line = (u32, u64);

/// A line on both sides, where it is there.
pub struct Paired {
    /// Its file on both sides; of one where it is not there, that of the other.
    pub files: [String; 2],
    pub lines: [Option<Line>; 2],
}

/// The lines that differ, the largest change first.
pub fn changes(paired: &[Paired]) -> Vec<LineChange> {
    let mut changes = Vec::new();
    for Paired { files, lines } in paired {
        let executed = lines.map(|it| it.map_or(0, |(_, executed)| executed));
        if executed[0] != executed[1] {
            changes.push(LineChange {
                file: files[1].clone(),
                numbers: lines.map(|it| it.map(|(number, _)| number)),
                executed,
                text: None,
            });
        }
    }
    changes.sort_by_key(|it| {
        let size = it.difference().unsigned_abs();
        (std::cmp::Reverse(size), it.file.clone(), it.numbers)
    });
    changes
}

/// All lines of a function, each with what it was.
pub fn paired(sides: Sides<'_, '_>, same_build: bool) -> Vec<Paired> {
    let files = sides.map(|side| side.map(by_file).unwrap_or_default());
    let names: BTreeSet<&str> = files.iter().flat_map(|it| it.keys().copied()).collect();
    let none = (String::new(), Vec::new());
    let mut paired = Vec::new();
    for name in names {
        let [old, new] = [0, 1].map(|side| files[side].get(name).unwrap_or(&none));
        let known = |file: &String, other: &String| match file.is_empty() {
            true => other.clone(),
            false => file.clone(),
        };
        let shift = match same_build {
            true => 0,
            false => shift(sides, name),
        };
        for (before, now) in pairs(&old.1, &new.1, shift, same_build) {
            paired.push(Paired {
                files: [known(&old.0, &new.0), known(&new.0, &old.0)],
                lines: [before, now],
            });
        }
    }
    paired
}

/// What stands for the function's own file, which may have another name in another build.
const OWN: &str = "";

/// The lines of each file, by its last name: folders of two builds differ.
fn by_file<'a>(function: &Function<'a>) -> BTreeMap<&'a str, (String, Vec<Line>)> {
    let mut files: BTreeMap<&str, (String, Vec<Line>)> = BTreeMap::new();
    for ((file, line), executed) in &function.lines {
        let (_, lines) = files
            .entry(if function.file() == Some(file) {
                OWN
            } else {
                base_name(file)
            })
            .or_insert_with(|| ((*file).to_owned(), Vec::new()));
        lines.push((*line, *executed));
    }
    files
}

/// How far the function moved in its own file.
fn shift(sides: Sides<'_, '_>, file: &str) -> i64 {
    let starts = sides.map(|side| Some(i64::from(side?.source?.1)));
    match (file, starts) {
        (OWN, [Some(old), Some(new)]) => new - old,
        _ => 0,
    }
}

type Pair = (Option<Line>, Option<Line>);

fn pairs(old: &[Line], new: &[Line], shift: i64, same_build: bool) -> Vec<Pair> {
    let moved = |it: &Line| i64::from(it.0) + shift;
    let fits = old.len() == new.len()
        && old
            .iter()
            .map(moved)
            .eq(new.iter().map(|it| i64::from(it.0)));
    match same_build || fits || old.len() * new.len() > MOST_PAIRS {
        true => by_number(old, new, shift),
        false => by_counts(old, new),
    }
}

fn by_number(old: &[Line], new: &[Line], shift: i64) -> Vec<Pair> {
    let mut all: BTreeMap<i64, Pair> = BTreeMap::new();
    for line in old {
        all.entry(i64::from(line.0) + shift).or_default().0 = Some(*line);
    }
    for line in new {
        all.entry(i64::from(line.0)).or_default().1 = Some(*line);
    }
    all.into_values().collect()
}

fn by_counts(old: &[Line], new: &[Line]) -> Vec<Pair> {
    // longest[i][j]: how many lines from i and j on can be taken for the same.
    let width = new.len() + 1;
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = match old[i].1 == new[j].1 {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let (mut pairs, mut gap) = (Vec::new(), (0, 0));
    while i < old.len() && j < new.len() {
        if old[i].1 == new[j].1 {
            changed(&mut pairs, &old[gap.0..i], &new[gap.1..j]);
            pairs.push((Some(old[i]), Some(new[j])));
            (i, j) = (i + 1, j + 1);
            gap = (i, j);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    changed(&mut pairs, &old[gap.0..], &new[gap.1..]);
    pairs
}

/// What stands between two lines that are the same changed from one into the other.
fn changed(pairs: &mut Vec<Pair>, old: &[Line], new: &[Line]) {
    for place in 0..old.len().max(new.len()) {
        pairs.push((old.get(place).copied(), new.get(place).copied()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &[Line], new: &[Line], shift: i64) -> Vec<String> {
        let number = |it: Option<Line>| it.map_or("-".into(), |it| it.0.to_string());
        pairs(old, new, shift, false)
            .into_iter()
            .filter(|(a, b)| a.map(|it| it.1) != b.map(|it| it.1))
            .map(|(a, b)| format!("{} {}", number(a), number(b)))
            .collect()
    }

    #[test]
    fn a_function_that_only_moved_did_not_change() {
        let old = [(10, 5), (11, 50), (12, 5)];
        assert!(shown(&old, &[(110, 5), (111, 50), (112, 5)], 100).is_empty());
        assert_eq!(
            shown(&old, &[(110, 5), (111, 51), (112, 5)], 100),
            ["11 111"]
        );
    }

    #[test]
    fn lines_below_an_inserted_one_did_not_change() {
        let old = [(10, 5), (11, 50), (12, 7), (13, 5)];
        let new = [(10, 5), (11, 50), (12, 33), (13, 7), (14, 5)];
        assert_eq!(shown(&old, &new, 0), ["- 12"]);
        assert_eq!(shown(&new, &old, 0), ["12 -"]);
        let new = [(10, 5), (11, 60), (12, 33), (13, 7), (14, 5)];
        assert_eq!(shown(&old, &new, 0), ["11 11", "- 12"]);
    }
}
