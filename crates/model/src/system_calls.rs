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
            let numbers = (0..).map(SystemCallNumber::Is);
            numbers.zip(own).for_each(|(it, times)| calls.add(it, *times));
            calls.add(SystemCallNumber::Other, *other);
        }
        calls
    }

    /// One was made so many times more.
    pub fn add(&mut self, number: SystemCallNumber, times: u64) {
        if times > 0 {
            let sum = self.0.entry(number).or_default();
            *sum = sum.saturating_add(times);
        }
    }

    /// All that were made, by number.
    pub fn iter(&self) -> impl Iterator<Item = (SystemCallNumber, u64)> {
        self.0.iter().map(|(number, times)| (*number, *times))
    }

    /// How many were made.
    pub fn total(&self) -> u64 {
        self.0.values().copied().fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SystemCallNumber::{Is, Other};

    #[test]
    fn what_was_never_made_has_no_number() {
        let mut calls = SystemCalls::of_cells(&[0, 3, 0, 5]);
        calls.add(Is(1), 4);
        calls.add(Is(7), 0);
        assert_eq!(calls.iter().collect::<Vec<_>>(), [(Is(1), 7), (Other, 5)]);
        assert_eq!(calls.total(), 12);
        assert_eq!(SystemCalls::of_cells(&[]), SystemCalls::default());
    }
}
