//! Why does it take long: because it runs often, or because each time is slow?

use super::{Cost, Estimate};

/// A processor that is not kept waiting executes more than one instruction in this many nanoseconds: six
/// cycles and more for each one are a cache miss, a division, a page fault or the like.
const SLOW: f64 = 2.0;

/// What takes so many nanoseconds each time, at a good pace, has much to do.
const LONG: f64 = 1000.0;

/// What the time of a function or a line is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Each visit is short and quick; there are many.
    Often,
    /// Each visit takes far longer than its instructions should.
    Slow,
    /// Each visit executes many instructions.
    Long,
}

impl Why {
    /// Judges by the time, the visits and the instructions that were executed, all of one run. None,
    /// if there are too few samples for that.
    pub fn new(cost: Cost, visits: f64, executed: f64) -> Option<Self> {
        let each = Estimate::new(cost, visits)?;
        let pace = Estimate::new(cost, executed)?;
        Some(match (pace.each, each.each) {
            // Only if that is sure: by two standard errors.
            (pace_each, _) if pace_each - 2.0 * pace.error > SLOW => Self::Slow,
            (_, LONG..) => Self::Long,
            _ => Self::Often,
        })
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Often => "often",
            Self::Slow => "slow",
            Self::Long => "long",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(samples: u64) -> Cost {
        Cost::of(samples, 1_000_000)
    }

    #[test]
    fn slow_and_often_are_told_apart() {
        // One second each: a thousand million quick visits, or ten million that wait for memory.
        let quick = Why::new(cost(1000), 1e9, 5e9);
        let waits = Why::new(cost(1000), 1e7, 2e7);
        let works = Why::new(cost(1000), 100.0, 4e9);
        assert_eq!(quick, Some(Why::Often));
        assert_eq!(waits, Some(Why::Slow));
        assert_eq!(works, Some(Why::Long));
    }

    #[test]
    fn nothing_is_said_of_a_few_samples() {
        assert_eq!(Why::new(cost(3), 1e7, 2e7), None);
        assert_eq!(Why::new(cost(1000), 0.0, 0.0), None);
    }

    #[test]
    fn what_may_be_quick_is_not_called_slow() {
        // 2.2 ns an instruction, but only to a tenth.
        assert_eq!(Why::new(cost(100), 4.5e7, 4.5e7), Some(Why::Often));
    }
}
