//! Numbers that are known to lie between two, and sums that narrow them.

/// A number that is not less than one and not more than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

impl Bounds {
    pub(crate) fn exactly(number: u64) -> Self {
        Self {
            least: number,
            most: number,
        }
    }

    pub(crate) fn up_to(most: u64) -> Self {
        Self { least: 0, most }
    }

    pub(crate) fn at_least(least: u64) -> Self {
        Self {
            least,
            most: u64::MAX,
        }
    }

    pub(crate) fn is_exact(self) -> bool {
        self.least == self.most
    }

    /// What lies between both pairs, if anything does.
    pub(crate) fn and(self, other: Self) -> Option<Self> {
        let both = Self {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
        };
        (both.least <= both.most).then_some(both)
    }
}

/// Some of a system's numbers add up to another one.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    pub(crate) of: Vec<usize>,
    pub(crate) is: usize,
}

/// Numbers, and what is known of their sums.
#[derive(Debug, Default)]
pub(crate) struct System {
    pub(crate) numbers: Vec<Bounds>,
    sums: Vec<Sum>,
    /// Do some of the numbers not add up?
    pub(crate) is_contradictory: bool,
}

impl System {
    /// A number; where it is among all.
    pub(crate) fn number(&mut self, bounds: Bounds) -> usize {
        self.numbers.push(bounds);
        self.numbers.len() - 1
    }

    pub(crate) fn sum(&mut self, of: Vec<usize>, is: usize) {
        self.sums.push(Sum { of, is });
    }

    /// Narrows all numbers as far as the sums one by one say. What contradicts what was counted says nothing.
    pub(crate) fn narrow(&mut self) {
        const ROUNDS: usize = 64;
        for round in 0..ROUNDS {
            let mut has_changed = false;
            let count = self.sums.len();
            for index in 0..count {
                // One way or the other, news go far in a round.
                let index = match round % 2 {
                    0 => index,
                    _ => count - 1 - index,
                };
                let sum = std::mem::replace(
                    &mut self.sums[index],
                    Sum {
                        of: Vec::new(),
                        is: 0,
                    },
                );
                has_changed |= self.narrow_by(&sum);
                self.sums[index] = sum;
            }
            if !has_changed {
                return;
            }
        }
    }

    fn narrow_by(&mut self, sum: &Sum) -> bool {
        let total = |of: &dyn Fn(Bounds) -> u64| -> u128 {
            sum.of
                .iter()
                .map(|it| u128::from(of(self.numbers[*it])))
                .sum()
        };
        let (least, most) = (total(&|it| it.least), total(&|it| it.most));
        let narrow = |it: u128| u64::try_from(it).unwrap_or(u64::MAX);
        let whole = Bounds {
            least: narrow(least),
            most: narrow(most),
        };
        let Some(is) = self.numbers[sum.is].and(whole) else {
            self.is_contradictory = true;
            return false;
        };
        let mut has_changed = is != self.numbers[sum.is];
        self.numbers[sum.is] = is;
        for number in &sum.of {
            let known = self.numbers[*number];
            let others = (
                least - u128::from(known.least),
                most - u128::from(known.most),
            );
            let rest = Bounds {
                least: narrow(u128::from(is.least).saturating_sub(others.1)),
                most: narrow(u128::from(is.most).saturating_sub(others.0)),
            };
            match known.and(rest) {
                Some(narrower) if narrower != known => {
                    self.numbers[*number] = narrower;
                    has_changed = true;
                }
                Some(_) => {}
                None => self.is_contradictory = true,
            }
        }
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_narrow_what_they_are_of() {
        let mut system = System::default();
        let ten = system.number(Bounds::exactly(10));
        let three = system.number(Bounds::exactly(3));
        let a = system.number(Bounds::at_least(0));
        let b = system.number(Bounds::up_to(9));
        let c = system.number(Bounds::at_least(1));
        system.sum(vec![a, b], ten);
        system.sum(vec![b], three);
        system.sum(vec![a, three], c);
        system.narrow();
        assert_eq!(system.numbers[a], Bounds::exactly(7));
        assert_eq!(system.numbers[c], Bounds::exactly(10));
        assert!(!system.is_contradictory);
    }

    #[test]
    fn what_contradicts_says_nothing() {
        let mut system = System::default();
        let ten = system.number(Bounds::exactly(10));
        let few = system.number(Bounds::up_to(4));
        let more = system.number(Bounds::up_to(5));
        system.sum(vec![few, more], ten);
        system.narrow();
        assert_eq!(system.numbers[few], Bounds::up_to(4));
        assert!(system.is_contradictory);
    }
}
