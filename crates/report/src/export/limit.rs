//! Numbers that a reader can hold.

use crate::thousands;
use std::cell::Cell;

/// The largest count to write; remembers how many were larger.
pub struct Limit {
    most: Option<u64>,
    cut: Cell<u64>,
}

impl Limit {
    /// No limit, if there is none.
    pub fn new(most: Option<u64>) -> Self {
        Self {
            most,
            cut: Cell::new(0),
        }
    }

    /// The same limit, or the format's own where that is lower.
    pub fn at_most(&self, most: u64) -> Self {
        Self::new(Some(self.most.map_or(most, |it| it.min(most))))
    }

    /// The count, or the limit if it is above.
    pub fn cut(&self, count: u64) -> u64 {
        match self.most {
            Some(most) if count > most => {
                self.cut.set(self.cut.get() + 1);
                most
            }
            _ => count,
        }
    }

    /// Says that counts were cut, if any were.
    pub fn note(&self) -> Option<String> {
        let most = thousands(self.most?);
        match self.cut.get() {
            0 => None,
            1 => Some(format!(
                "1 count was larger than {most}, and is cut to that."
            )),
            many => Some(format!(
                "{} counts were larger than {most}, and are cut to that.",
                thousands(many)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_told() {
        let limit = Limit::new(Some(1000));
        assert_eq!([7, 1000].map(|it| limit.cut(it)), [7, 1000]);
        assert_eq!(limit.note(), None);
        assert_eq!([1001, u64::MAX].map(|it| limit.cut(it)), [1000, 1000]);
        let note = "2 counts were larger than 1,000, and are cut to that.";
        assert_eq!(limit.note().as_deref(), Some(note));
        assert_eq!(limit.at_most(10).cut(11), 10);
        assert_eq!(limit.at_most(2000).cut(1500), 1000);
        assert_eq!(Limit::new(None).cut(u64::MAX), u64::MAX);
    }
}
