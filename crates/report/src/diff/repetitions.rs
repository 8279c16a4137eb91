//! Several runs of the same command, which do not count the same: where the counts of both sides
//! overlap, there is no change.

use super::matching::{Function, Functions};
use crate::Error;
use crate::count::Count;
use crate::glob::base_name;
use crate::lines::{LineCount, Lines, all_lines};
use crate::only::Only;
use headcount_model::Counted;
use std::collections::{BTreeMap, BTreeSet};

/// What is kept of one of several runs.
#[derive(Clone)]
pub struct Repetition {
    executed: u64,
    functions: BTreeMap<Key, u64>,
    /// Functions of which not everything was counted, by module and name.
    uncounted: BTreeSet<(String, String)>,
    lines: Option<Lines>,
}

/// The last name of a module, a function, and the last name of its file: what names it in every run.
type Key = (String, String, Option<String>);

impl Repetition {
    /// Of what is wanted of one run; with its lines, if they are to be compared.
    pub fn new(run: &[Counted], only: &Only, by_line: bool) -> Result<Self, Error> {
        let mut it = Self {
            executed: 0,
            functions: BTreeMap::new(),
            uncounted: BTreeSet::new(),
            lines: by_line.then(|| all_lines(run, true, only)).transpose()?,
        };
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or(Error::TooLarge);
        for module in run {
            let all = Functions::of(Some(module), only)?;
            for function in all.by_name.values().flatten() {
                it.executed = sum(it.executed, function.executed)?;
                let executed = it.functions.entry(key(function)).or_default();
                *executed = sum(*executed, function.executed)?;
            }
            let module = base_name(&module.module.path);
            let uncounted = all.uncounted.into_iter();
            it.uncounted
                .extend(uncounted.map(|name| (module.to_owned(), name)));
        }
        Ok(it)
    }

    /// What a function executed; nothing, if it is not there; unknown, if it was not counted.
    fn executed(&self, key: &Key) -> Option<u64> {
        let (module, name, _) = key;
        match self.functions.get(key) {
            Some(executed) => Some(*executed),
            None if self.uncounted.contains(&(module.clone(), name.clone())) => None,
            None => Some(0),
        }
    }
}

fn key(function: &Function<'_>) -> Key {
    let file = function.file().map(|it| base_name(it).to_owned());
    let module = base_name(function.module).to_owned();
    (module, function.name.clone(), file)
}

/// The least and the most that any of several runs executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Range {
    fn of(counts: impl Iterator<Item = u64> + Clone) -> Self {
        Self {
            least: counts.clone().min().unwrap_or(0),
            most: counts.max().unwrap_or(0),
        }
    }

    /// What all functions of some runs executed.
    pub fn of_all(runs: &[Repetition]) -> Self {
        Self::of(runs.iter().map(|it| it.executed))
    }

    /// What a function executed in those that counted it.
    pub fn of_function(runs: &[Repetition], function: &Function<'_>) -> Self {
        let key = key(function);
        Self::of(runs.iter().filter_map(|it| it.executed(&key)))
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

/// The counts of a line that are nearest to each other, of several runs of both sides. Those of the
/// first run of each side where that is not known: where a count is no more than a bound.
pub fn nearest_lines(
    sides: [&[Repetition]; 2],
    places: [Option<&(String, u32)>; 2],
) -> [Option<LineCount>; 2] {
    let at = |side: usize| -> Vec<LineCount> {
        let Some((file, number)) = places[side] else {
            return Vec::new();
        };
        let lines = sides[side].iter().filter_map(|it| it.lines.as_ref());
        let found = lines.filter_map(|it| it.get(file.as_str())?.get(number));
        found.copied().collect()
    };
    let [old, new] = [at(0), at(1)];
    let first = [old.first().copied(), new.first().copied()];
    let is_exact = |lines: &[LineCount]| {
        let mut lines = lines.iter();
        lines.all(|it| matches!(it.count, Count::Exact(_)))
    };
    if old.is_empty() || new.is_empty() || !is_exact(&old) || !is_exact(&new) {
        return first;
    }
    let of = |lines: &[LineCount]| Range::of(lines.iter().filter_map(|it| it.count.value()));
    let [before, now] = nearest([of(&old), of(&new)]);
    let with = |lines: &[LineCount], count: u64| {
        let mut lines = lines.iter().copied();
        lines.find(|it| it.count == Count::Exact(count))
    };
    match before == now {
        true => [first[0], first[0]],
        false => [with(&old, before), with(&new, now)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Count::{AtLeast, Exact};

    #[test]
    fn only_what_lies_outside_is_a_change() {
        let range = |least, most| Range { least, most };
        assert_eq!(nearest([range(1, 5), range(7, 9)]), [5, 7]);
        assert_eq!(nearest([range(7, 9), range(1, 5)]), [7, 5]);
        assert_eq!(nearest([range(1, 5), range(5, 9)]), [5, 5]);
        assert_eq!(nearest([range(1, 9), range(2, 3)]), [2, 2]);
    }

    fn run(count: Count) -> Repetition {
        let line = LineCount {
            count,
            executed: count,
            counted: true,
            may_have_run: true,
        };
        let lines: Lines = [("a.c".into(), [(3, line)].into())].into();
        Repetition {
            executed: 0,
            functions: BTreeMap::new(),
            uncounted: BTreeSet::new(),
            lines: Some(lines),
        }
    }

    #[test]
    fn a_bound_is_no_end_of_a_range() {
        let place = ("a.c".to_owned(), 3);
        let nearest = |old: &[Count], new: &[Count]| {
            let [old, new] = [old, new].map(|it| it.iter().map(|it| run(*it)).collect::<Vec<_>>());
            nearest_lines([&old, &new], [Some(&place), Some(&place)]).map(|it| it.unwrap().count)
        };
        let exactly = nearest(&[Exact(5), Exact(7)], &[Exact(12), Exact(9)]);
        assert_eq!(exactly, [Exact(7), Exact(9)]);
        assert_eq!(nearest(&[Exact(5), Exact(9)], &[Exact(7)]), [Exact(5); 2]);
        let bound = nearest(&[AtLeast(3), Exact(5)], &[Exact(10)]);
        assert_eq!(bound, [AtLeast(3), Exact(10)]);
    }

    #[test]
    fn what_was_not_counted_is_not_nothing() {
        let key = ("m".to_owned(), "f".to_owned(), None);
        let mut one = run(Exact(1));
        assert_eq!(one.executed(&key), Some(0));
        one.uncounted.insert(("m".into(), "f".into()));
        assert_eq!(one.executed(&key), None);
        one.functions.insert(key.clone(), 7);
        assert_eq!(one.executed(&key), Some(7));
    }
}
