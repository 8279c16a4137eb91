//! Which lines are worth showing, and which are folded away?

use crate::lines::LineCount;
use std::collections::BTreeMap;

/// Lines that are shown, with some around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Which lines.
    pub around: Around,
    /// How many lines before and after each of them are shown, too.
    pub context: u32,
}

/// Which lines matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// Those that ran.
    Ran,
    /// Those whose code never ran.
    Never,
}

impl Fold {
    /// The stretches of lines that are shown, in order: first and last.
    pub fn stretches(&self, counts: &BTreeMap<u32, LineCount>) -> Vec<(u32, u32)> {
        let mut stretches: Vec<(u32, u32)> = Vec::new();
        for (line, _) in counts.iter().filter(|(_, it)| self.matters(it)) {
            let first = line.saturating_sub(self.context).max(1);
            let last = line.saturating_add(self.context);
            match stretches.last_mut() {
                // To fold one line away would save none: the fold takes a row itself.
                Some((_, end)) if first <= end.saturating_add(2) => *end = last,
                _ => stretches.push((first, last)),
            }
        }
        stretches
    }

    fn matters(&self, it: &LineCount) -> bool {
        match self.around {
            Around::Ran => it.ran(),
            Around::Never => it.counted && it.count.is_never() && it.executed.is_never(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Count;

    fn stretches(around: Around, context: u32) -> Vec<(u32, u32)> {
        let line = |count: u64| LineCount {
            count: Count::Exact(count),
            executed: Count::Exact(count),
            counted: true,
            may_have_run: count > 0,
        };
        let counts = [(2, 1), (3, 5), (10, 1), (11, 0), (20, 0), (30, 7)];
        let counts = counts.map(|(number, count)| (number, line(count)));
        Fold { around, context }.stretches(&counts.into())
    }

    #[test]
    fn lines_that_matter_are_shown_with_those_around_them() {
        assert_eq!(stretches(Around::Ran, 0), [(2, 3), (10, 10), (30, 30)]);
        assert_eq!(stretches(Around::Ran, 2), [(1, 5), (8, 12), (28, 32)]);
        assert_eq!(stretches(Around::Ran, 3), [(1, 13), (27, 33)]);
        assert_eq!(stretches(Around::Never, 1), [(10, 12), (19, 21)]);
        assert_eq!(stretches(Around::Ran, u32::MAX).len(), 1);
    }
}
