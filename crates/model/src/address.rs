//! Where a byte is: in a module as the linker laid it out, or in one process. The two are never
//! mixed; a [`LoadBias`] is the only way from one to the other.

use std::fmt;
use std::ops::Range;

/// Where the linker said a byte lives, in one module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkAddr(pub u64);

impl LinkAddr {
    /// The address `bytes` further on, unless that leaves the address space.
    pub fn checked_add(self, bytes: u64) -> Option<Self> {
        self.0.checked_add(bytes).map(Self)
    }
}

/// Where a byte is in one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadAddr(pub u64);

impl LoadAddr {
    /// The address `bytes` further on, unless that leaves the address space.
    pub fn checked_add(self, bytes: u64) -> Option<Self> {
        self.0.checked_add(bytes).map(Self)
    }
}

/// How far one process moved one module: what its load addresses have more than its link
/// addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadBias(pub u64);

impl LoadBias {
    /// Where the byte is in the process, unless that leaves the address space.
    pub fn apply(self, address: LinkAddr) -> Option<LoadAddr> {
        address.0.checked_add(self.0).map(LoadAddr)
    }

    /// Where the linker put the byte, unless it lies in front of the module.
    pub fn undo(self, address: LoadAddr) -> Option<LinkAddr> {
        address.0.checked_sub(self.0).map(LinkAddr)
    }
}

impl fmt::Display for LinkAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for LoadAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The same addresses in as few ranges as it takes, in order.
pub fn join_ranges(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|it| it.start);
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    ranges
}

/// Addresses of things that have none begin here: nothing of a program is ever there.
pub const NOWHERE: u64 = 0xffff_8000_0000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bias_leads_there_and_back() {
        let bias = LoadBias(0x5555_0000_0000);
        let there = bias.apply(LinkAddr(0x1000));
        assert_eq!(there, Some(LoadAddr(0x5555_0000_1000)));
        assert_eq!(there.and_then(|it| bias.undo(it)), Some(LinkAddr(0x1000)));
        assert_eq!(bias.apply(LinkAddr(u64::MAX)), None);
        assert_eq!(bias.undo(LoadAddr(0x1000)), None);
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init)]
    fn ranges_that_touch_become_one() {
        assert_eq!(
            join_ranges(vec![4..6, 0..2, 2..3, 5..9, 4..5]),
            [0..3, 4..9]
        );
        assert_eq!(join_ranges(vec![1..9, 2..3, 8..10]), [1..10]);
        assert!(join_ranges(Vec::new()).is_empty());
    }
}
