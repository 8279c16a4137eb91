//! How often system calls were made, by number.

use std::collections::BTreeMap;

/// How often system calls were made, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemCalls(BTreeMap<SystemCallNumber, u64>);

/// Which system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemCallNumber {
    /// The one with this number.
    Is(u32),
    /// One whose number no call of x86-64 has: of another way to call the kernel, or of none.
    Other,
}

impl SystemCalls {
    /// Each cell says how often its number was used, and the last one, how often any other.
    pub fn of_cells(cells: &[u64]) -> Self {
        let mut calls = Self::default();
        if let Some((other, own)) = cells.split_last() {
            let numbers = (0..).map(SystemCallNumber::Is).zip(own);
            let all = numbers.chain([(SystemCallNumber::Other, other)]);
            let made = all.filter(|(_, times)| **times > 0);
            calls.0.extend(made.map(|(number, times)| (number, *times)));
        }
        calls
    }

    /// One was made so many times more. `None`: too often to be told.
    #[must_use]
    pub fn add(&mut self, number: SystemCallNumber, times: u64) -> Option<()> {
        if times > 0 {
            let sum = self.0.entry(number).or_default();
            *sum = sum.checked_add(times)?;
        }
        Some(())
    }

    /// All that were made, by number.
    pub fn iter(&self) -> impl Iterator<Item = (SystemCallNumber, u64)> {
        self.0.iter().map(|(number, times)| (*number, *times))
    }

    /// How many were made. `None`: too many to be told.
    pub fn total(&self) -> Option<u64> {
        let mut times = self.0.values().copied();
        times.try_fold(0, u64::checked_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SystemCallNumber::{Is, Other};

    #[test]
    fn what_was_never_made_has_no_number() {
        let mut calls = SystemCalls::of_cells(&[0, 3, 0, 5]);
        assert_eq!(calls.add(Is(1), 4), Some(()));
        assert_eq!(calls.add(Is(7), 0), Some(()));
        assert_eq!(calls.iter().collect::<Vec<_>>(), [(Is(1), 7), (Other, 5)]);
        assert_eq!(calls.total(), Some(12));
        assert_eq!(calls.add(Is(1), u64::MAX), None);
        assert_eq!(SystemCalls::of_cells(&[]), SystemCalls::default());
    }
}
