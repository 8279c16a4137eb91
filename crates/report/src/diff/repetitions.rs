//! Several runs of the same command, which do not count the same: what lies between the least and the
//! most of them is no change.

use super::matching::{Function, Functions};
use crate::Error;
use crate::lines::{LineCount, Lines};
use crate::only::Only;
use headcount_model::Counted;
use std::collections::BTreeMap;

/// The least and the most that any of several runs executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Range {
    fn of(count: u64) -> Self {
        Self {
            least: count,
            most: count,
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

/// What is certain of a change: the counts of both sides that are nearest to each other; the same
/// one twice where the sides overlap.
pub fn nearest([old, new]: [Range; 2]) -> [u64; 2] {
    if old.most < new.least {
        [old.most, new.least]
    } else if new.most < old.least {
        [old.least, new.most]
    } else {
        let common = old.least.max(new.least);
        [common, common]
    }
}

/// A module, a function, and its file.
type Key = (String, String, Option<String>);

/// What the functions of one side executed, over all its runs.
pub struct Ranges {
    /// All of them together.
    pub total: Range,
    functions: BTreeMap<Key, Range>,
}

impl Ranges {
    /// Of these runs of one build.
    pub fn of<'a>(runs: impl Iterator<Item = &'a [Counted]>, only: &Only) -> Result<Self, Error> {
        let each = runs.map(|it| Self::of_one(it, only));
        let all = each.reduce(|one, other| Ok(one?.with(other?)));
        all.unwrap_or_else(|| Self::of_one(&[], only))
    }

    fn of_one(run: &[Counted], only: &Only) -> Result<Self, Error> {
        let mut functions = BTreeMap::new();
        let mut total = 0u64;
        for module in run {
            let all = Functions::of(Some(module), only)?;
            for function in all.by_name.values().flatten() {
                let more = total.checked_add(function.executed);
                total = more.ok_or(Error::TooLarge)?;
                functions.insert(key(function), Range::of(function.executed));
            }
        }
        let total = Range::of(total);
        Ok(Self { total, functions })
    }

    /// A function that is not there in a run has executed nothing in it.
    fn with(self, mut other: Self) -> Self {
        let total = self.total.with(other.total);
        let mut functions = BTreeMap::new();
        for (key, range) in self.functions {
            let others = other.functions.remove(&key).unwrap_or(Range::of(0));
            functions.insert(key, range.with(others));
        }
        let new = other.functions.into_iter();
        functions.extend(new.map(|(key, range)| (key, range.with(Range::of(0)))));
        Self { total, functions }
    }

    /// What a function executed, if it is there in any run.
    pub fn get(&self, function: &Function<'_>) -> Option<Range> {
        self.functions.get(&key(function)).copied()
    }
}

fn key(function: &Function<'_>) -> Key {
    let file = function.file().map(str::to_owned);
    (function.module.to_owned(), function.name.clone(), file)
}

/// The lines of both sides that are nearest to each other, of several runs each; those of the first
/// run of a side where it has a line that no other run has, or a count that is no number.
pub fn nearest_lines(
    sides: [&[Lines]; 2],
    places: [Option<&(String, u32)>; 2],
) -> [Option<LineCount>; 2] {
    let at = |side: usize| -> Vec<LineCount> {
        let Some((file, number)) = places[side] else {
            return Vec::new();
        };
        let lines = sides[side].iter();
        let found = lines.filter_map(|it| it.get(file.as_str())?.get(number));
        found.copied().collect()
    };
    let [old, new] = [at(0), at(1)];
    let value = |it: &LineCount| it.count.value();
    let first = [old.first().copied(), new.first().copied()];
    let is_known = |lines: &[LineCount]| lines.iter().all(|it| value(it).is_some());
    if old.is_empty() || new.is_empty() || !is_known(&old) || !is_known(&new) {
        return first;
    }
    let least = |lines: &[LineCount]| lines.iter().copied().min_by_key(value);
    let most = |lines: &[LineCount]| lines.iter().copied().max_by_key(value);
    let is_below = |one: Option<LineCount>, other: Option<LineCount>| {
        one.as_ref().and_then(value) < other.as_ref().and_then(value)
    };
    if is_below(most(&old), least(&new)) {
        [most(&old), least(&new)]
    } else if is_below(most(&new), least(&old)) {
        [least(&old), most(&new)]
    } else {
        [first[0], first[0]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_outside_is_a_change() {
        let range = |least, most| Range { least, most };
        assert_eq!(nearest([range(1, 5), range(7, 9)]), [5, 7]);
        assert_eq!(nearest([range(7, 9), range(1, 5)]), [7, 5]);
        assert_eq!(nearest([range(1, 5), range(5, 9)]), [5, 5]);
        assert_eq!(nearest([range(1, 9), range(2, 3)]), [2, 2]);
    }
}
