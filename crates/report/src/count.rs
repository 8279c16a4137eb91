//! A number, as far as it is known.

use crate::Error;
use crate::number::thousands;
use headcount_model::{Block, Function, FunctionCounts, Shift};
use std::fmt;
use std::ops::Range;

/// How often something ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So often.
    Exact(u64),
    /// So often or more: counting stopped at a limit, or optimised code tells no more.
    AtLeast(u64),
    /// It was not counted, or not all of it was, or optimised code does not tell.
    Unknown,
}

impl Default for Count {
    fn default() -> Self {
        Self::Exact(0)
    }
}

impl Count {
    /// The number, if there is one.
    pub fn value(self) -> Option<u64> {
        match self {
            Self::Exact(value) | Self::AtLeast(value) => Some(value),
            Self::Unknown => None,
        }
    }

    /// The number, if it is not only a bound.
    pub fn exact(self) -> Option<u64> {
        match self {
            Self::Exact(value) => Some(value),
            Self::AtLeast(_) | Self::Unknown => None,
        }
    }

    /// Is there a number?
    pub fn is_known(self) -> bool {
        self != Self::Unknown
    }

    /// Is it known to be zero?
    pub fn is_never(self) -> bool {
        self == Self::Exact(0)
    }

    /// What it is worth: `exact`, `at_least` or `unknown`.
    pub fn exactness(self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::AtLeast(_) => "at_least",
            Self::Unknown => "unknown",
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Result<Self, Error> {
        self.join(other, |a, b| a.checked_add(b).ok_or(Error::TooLarge))
    }

    /// The larger of both.
    pub fn max(self, other: Self) -> Self {
        self.join(other, |a, b| Ok(a.max(b)))
            .unwrap_or(Self::Unknown)
    }

    /// So many of it. None of what is not known is nothing.
    pub fn times(self, number: u64) -> Result<Self, Error> {
        match number {
            0 => Ok(Self::Exact(0)),
            _ => self.join(Self::Exact(number), |a, b| {
                a.checked_mul(b).ok_or(Error::TooLarge)
            }),
        }
    }

    fn join(
        self,
        other: Self,
        join: impl Fn(u64, u64) -> Result<u64, Error>,
    ) -> Result<Self, Error> {
        let (Some(a), Some(b)) = (self.value(), other.value()) else {
            return Ok(Self::Unknown);
        };
        let joined = join(a, b)?;
        Ok(match (self, other) {
            (Self::Exact(_), Self::Exact(_)) => Self::Exact(joined),
            _ => Self::AtLeast(joined),
        })
    }
}

/// For people: `1,000`, `≥ 1,000`, or `-`.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(value) => f.pad(&thousands(*value)),
            Self::AtLeast(value) => f.pad(&format!("≥ {}", thousands(*value))),
            Self::Unknown => f.pad("-"),
        }
    }
}

/// A block with its counts.
#[derive(Clone, Copy)]
pub struct CountedBlock<'a> {
    /// What is in it.
    pub block: &'a Block,
    /// How often it ran, but for its shifts.
    visits: Count,
    shifts: &'a [Shift],
}

/// The blocks of a function with their counts, in the function's own order.
pub fn blocks<'a>(
    function: &'a Function,
    counts: &'a FunctionCounts,
) -> impl Iterator<Item = CountedBlock<'a>> {
    let all = (0_u32..).zip(&function.blocks).zip(&counts.blocks);
    all.map(|((number, block), visits)| {
        let limited = || counts.at_least.binary_search(&number).is_ok();
        let begin = counts.shifts.partition_point(|it| it.block < number);
        let end = counts.shifts.partition_point(|it| it.block <= number);
        CountedBlock {
            block,
            visits: match visits {
                None => Count::Unknown,
                Some(visits) if limited() => Count::AtLeast(*visits),
                Some(visits) => Count::Exact(*visits),
            },
            shifts: &counts.shifts[begin..end],
        }
    })
}

/// The edges' counts, in the function's own order.
pub fn edges(counts: &FunctionCounts) -> impl Iterator<Item = Count> {
    let known = |count: &Option<u64>| count.map_or(Count::Unknown, Count::Exact);
    counts.edges.iter().map(known)
}

impl CountedBlock<'_> {
    /// How often it ran: how often its first instruction did.
    pub fn count(&self) -> Count {
        self.at(0)
    }

    /// How often its instruction with this number ran.
    pub fn at(&self, instruction: u32) -> Count {
        let before = self.shifts.iter().filter(|it| it.from <= instruction);
        let shift: i128 = before.map(|it| i128::from(it.delta)).sum();
        let shifted = |visits: u64| u64::try_from(i128::from(visits) + shift).ok();
        let value = self.visits.value().and_then(shifted);
        match (self.visits, value) {
            (Count::Exact(_), Some(value)) => Count::Exact(value),
            (Count::AtLeast(_), Some(value)) => Count::AtLeast(value),
            _ => Count::Unknown,
        }
    }

    /// The instructions of a range as stretches that ran equally often: how many, how often.
    pub fn stretches(&self, range: Range<u32>) -> Vec<(u64, Count)> {
        let mut begins: Vec<u32> = vec![range.start];
        let inner = self.shifts.iter().map(|it| it.from);
        begins.extend(inner.filter(|from| range.start < *from && *from < range.end));
        begins.dedup();
        let ends = begins.iter().skip(1).copied().chain([range.end]);
        let stretch = |(begin, end): (&u32, u32)| {
            let length = end.saturating_sub(*begin);
            (u64::from(length), self.at(*begin))
        };
        begins.iter().zip(ends).map(stretch).collect()
    }

    /// The instructions of a range, all together.
    pub fn executed(&self, range: Range<u32>) -> Result<Count, Error> {
        let mut sum = Count::default();
        for (instructions, count) in self.stretches(range) {
            sum = sum.plus(count.times(instructions)?)?;
        }
        Ok(sum)
    }

    /// Where each run of lines stands in the block. Instructions of no line are at the front.
    pub fn line_ranges(&self) -> Vec<Range<u32>> {
        let in_lines: u32 = self.block.lines.iter().map(|run| run.instructions).sum();
        let mut begin = self.block.instructions.saturating_sub(in_lines);
        let range = |run: &headcount_model::LineRun| {
            let range = begin..begin + run.instructions;
            begin = range.end;
            range
        };
        self.block.lines.iter().map(range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Count::{AtLeast, Exact, Unknown};

    #[test]
    fn what_is_not_known_makes_a_sum_unknown_and_a_limit_makes_it_a_bound() {
        assert_eq!(Exact(2).plus(Exact(3)), Ok(Exact(5)));
        assert_eq!(Exact(2).plus(AtLeast(3)), Ok(AtLeast(5)));
        assert_eq!(Unknown.plus(AtLeast(3)), Ok(Unknown));
        assert_eq!(Exact(u64::MAX).plus(Exact(1)), Err(Error::TooLarge));
        assert_eq!(Exact(9).max(AtLeast(3)), AtLeast(9));
        assert_eq!(Unknown.times(0), Ok(Exact(0)));
        assert_eq!(AtLeast(5).times(2), Ok(AtLeast(10)));
    }

    #[test]
    fn counts_are_padded_like_numbers() {
        let shown = [Exact(1000), AtLeast(1000), Unknown].map(|it| format!("{it:>8}"));
        assert_eq!(shown, ["   1,000", " ≥ 1,000", "       -"]);
    }

    fn shifted(visits: Count, shifts: &[Shift]) -> Vec<(u64, Count)> {
        let block = Block {
            instructions: 5,
            ..Block::default()
        };
        CountedBlock {
            block: &block,
            visits,
            shifts,
        }
        .stretches(0..5)
    }

    #[test]
    fn a_shift_holds_from_its_instruction_on() {
        let shift = |from, delta| Shift {
            block: 0,
            from,
            delta,
        };
        let shifts = [shift(2, 1), shift(4, -3)];
        assert_eq!(
            shifted(Exact(10), &shifts),
            [(2, Exact(10)), (2, Exact(11)), (1, Exact(8))]
        );
        assert_eq!(shifted(AtLeast(10), &shifts)[1], (2, AtLeast(11)));
        assert_eq!(shifted(Unknown, &[]), [(5, Unknown)]);
        // No file can say this; whoever does learns nothing.
        assert_eq!(shifted(Exact(1), &shifts)[2], (1, Unknown));
    }
}
