//! Why does it take long: because it runs often, or because each time is slow?

use super::Estimate;

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
    /// Judges by the time for each visit and for each instruction that was executed.
    pub fn new(each: Estimate, pace: Estimate) -> Self {
        match (pace.each, each.each) {
            // Only if that is sure: by two standard errors.
            (pace_each, _) if pace_each - 2.0 * pace.error > SLOW => Self::Slow,
            (_, LONG..) => Self::Long,
            _ => Self::Often,
        }
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
    use crate::time::Cost;

    fn why(samples: u64, visits: f64, executed: f64) -> Why {
        let each = |times| Estimate::new(Cost::of(samples, 1_000_000), times).unwrap();
        Why::new(each(visits), each(executed))
    }

    #[test]
    fn slow_and_often_are_told_apart() {
        // One second each: a thousand million quick visits, or ten million that wait for memory.
        let quick = why(1000, 1e9, 5e9);
        let waits = why(1000, 1e7, 2e7);
        let works = why(1000, 100.0, 4e9);
        assert_eq!(quick, Why::Often);
        assert_eq!(waits, Why::Slow);
        assert_eq!(works, Why::Long);
    }

    #[test]
    fn what_may_be_quick_is_not_called_slow() {
        // 2.2 ns an instruction, but only to a tenth.
        assert_eq!(why(100, 4.5e7, 4.5e7), Why::Often);
    }
}
