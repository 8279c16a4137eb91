//! What counts of a program's instructions say about its source.

use std::collections::BTreeMap;

use crate::Language;
use crate::{cpython, icon, lua};

/// A place in a source file. Lines and columns begin at 1, columns are bytes, and 0 is "not known".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Where it begins.
    pub line: u32,
    /// See `line`.
    pub column: u32,
    /// Where it ends.
    pub end_line: u32,
    /// The first byte that is not of it.
    pub end_column: u32,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number.
    pub line: u32,
    /// How often it began, or began at least.
    pub count: u64,
    /// Is that how often?
    pub is_exact: bool,
}

/// An operation in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Where it is.
    pub at: Position,
    /// The instruction that does it; [`headcount_model::Operation::RESUMED`] is its going on.
    pub kind: String,
    /// How often it began, or began at least.
    pub count: u64,
    /// Is that how often?
    pub is_exact: bool,
    /// What its runtime did for it, if somebody knows how to measure that for its language.
    pub cost: Option<TokenCost>,
}

/// What a runtime did for an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCost {
    /// How often it went on.
    pub resumptions: Option<u64>,
    /// How many bytes of storage it took.
    pub bytes: Option<u64>,
    /// In how many samples it was found.
    pub samples: Option<u64>,
}

impl TokenCost {
    /// Adds that of the same operation elsewhere.
    pub fn add(&mut self, other: Self) {
        let sum = |one: &mut Option<u64>, other: Option<u64>| {
            *one = one.zip(other).map(|(one, other)| one.saturating_add(other));
        };
        sum(&mut self.resumptions, other.resumptions);
        sum(&mut self.bytes, other.bytes);
        sum(&mut self.samples, other.samples);
    }
}

/// What was counted of the instructions of a piece of program, by how far they are from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// How often each was executed.
    pub executed: BTreeMap<usize, u64>,
    /// By places in them: how often they went on, and how many bytes of storage they took. None, if that was not
    /// measured.
    pub runtime: Option<OfRuntime>,
    /// By places in them, and by what the runtime did then, as numbers of who asks: samples. None, if no clock ran.
    pub samples: Option<BTreeMap<(usize, u32), u64>>,
}

impl Measured {
    /// Adds what was counted of the same piece elsewhere, but for what its runtime did.
    pub(crate) fn add(&mut self, other: &Self) {
        for (offset, count) in &other.executed {
            let sum = self.executed.entry(*offset).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (place, samples) in other.samples.iter().flatten() {
            let sums = self.samples.get_or_insert_default();
            let sum = sums.entry(*place).or_default();
            *sum = sum.saturating_add(*samples);
        }
    }
}

/// What a runtime did for the instructions of a piece of program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfRuntime {
    /// How often they went on.
    pub resumptions: BTreeMap<usize, u64>,
    /// How many bytes they took, less those that they gave back.
    pub bytes: BTreeMap<usize, i64>,
}

/// A function, or whatever else the language compiles by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceUnit {
    /// Its file.
    pub file: String,
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub first_line: u32,
    /// How often it was entered, or was at least.
    pub calls: u64,
    /// Is that how often?
    pub are_calls_exact: bool,
    /// Its lines, in order.
    pub lines: Vec<Line>,
    /// Its operations, in order.
    pub tokens: Vec<Token>,
}

/// The source of what ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// By file, first line and name.
    pub units: Vec<SourceUnit>,
    /// Samples, by operation and by what the runtime did.
    pub charges: Vec<Charge>,
    /// Sentences about what is not as it should be.
    pub notes: Vec<String>,
}

/// What a runtime did for an operation when a clock found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The file that the operation is in; empty if no program has it.
    pub file: String,
    /// Where in it.
    pub line: u32,
    /// See `line`.
    pub column: u32,
    /// The kind of operation; empty if only its place is known.
    pub kind: String,
    /// What the runtime did.
    pub routine: u32,
    /// How many samples.
    pub samples: u64,
}

/// Files with source texts. Some languages' programs have to be read beside them.
pub trait Files {
    /// What is in a file, if it can be read.
    fn read(&self, path: &str) -> Option<Vec<u8>>;

    /// Where sources may be that are not beside their program, in order.
    fn folders(&self) -> &[String];
}

/// The source of pieces of program: their descriptions, and what was counted of their instructions. What was
/// compiled along with them and never ran is there as well.
pub fn sources<'d>(
    language: Language,
    pieces: impl IntoIterator<Item = (&'d [u8], &'d Measured)>,
    files: &dyn Files,
) -> Option<Sources> {
    let executed = |it: (&'d [u8], &'d Measured)| (it.0, &it.1.executed);
    let of = |units| Sources {
        units,
        ..Sources::default()
    };
    let mut sources = match language {
        Language::Python => cpython::sources(pieces)?,
        Language::Lua => of(lua::units(pieces.into_iter().map(executed))?),
        Language::Icon => icon::sources(pieces, files)?,
    };
    let units = &mut sources.units;
    units.sort_by_cached_key(|it| (it.file.clone(), it.first_line, it.name.clone()));
    Some(sources)
}

/// Shares out a number in proportion to others: what is left over goes to those whose parts were cut off most, so
/// that all of it is shared out. If there is nothing to go by, nobody gets any.
pub fn shared_out(number: u64, by: &[u64]) -> Vec<u64> {
    let all: u128 = by.iter().copied().map(u128::from).sum();
    if all == 0 {
        return vec![0; by.len()];
    }
    let part = |it: u64| u128::from(number) * u128::from(it);
    let mut shares: Vec<u64> = by.iter().map(|it| (part(*it) / all) as u64).collect();
    let given: u64 = shares.iter().sum();
    let mut order: Vec<usize> = (0..by.len()).collect();
    order.sort_by_key(|it| std::cmp::Reverse(part(by[*it]) % all));
    for it in order.into_iter().take((number - given) as usize) {
        shares[it] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_it_is_shared_out() {
        assert_eq!(shared_out(10, &[9, 1]), [9, 1]);
        assert_eq!(shared_out(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(shared_out(1, &[1, 3, 0]), [0, 1, 0]);
        assert_eq!(shared_out(7, &[0, 0]), [0, 0]);
        assert_eq!(
            shared_out(u64::MAX, &[u64::MAX, u64::MAX]),
            [1 << 63, (1 << 63) - 1]
        );
        for number in 0..50 {
            let shares = shared_out(number, &[3, 5, 7, 11, 0, 2]);
            assert_eq!(shares.iter().sum::<u64>(), number);
            assert_eq!(shares[4], 0);
        }
    }
}
