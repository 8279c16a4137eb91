//! Where do two accounts of one program differ?

use std::collections::BTreeSet;
use std::fmt;

use crate::symbols::{ByFunction, Symbols};

/// One function with two numbers. `None`: that side does not know the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub function: String,
    pub headcount: Option<u64>,
    pub callgrind: Option<u64>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |count: Option<u64>| count.map_or("nothing".to_owned(), |n| n.to_string());
        let (ours, theirs) = (number(self.headcount), number(self.callgrind));
        write!(f, "{}: headcount {ours}, callgrind {theirs}", self.function)
    }
}

/// How the accounts of one program's run compare.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Functions that ran and have equal numbers.
    pub equal: usize,
    pub differences: Vec<Difference>,
}

/// `reported` is the tool's account, `seen` callgrind's of the uncounted build.
/// Functions of `toolchain` are only compared if the tool reports them.
pub fn compare(
    reported: &[(String, u64)],
    seen: &ByFunction,
    symbols: &Symbols,
    toolchain: &BTreeSet<String>,
) -> Comparison {
    let mut ours = ByFunction::new();
    for (name, executed) in reported {
        *ours.entry(symbols.canonical(name).to_owned()).or_default() += executed;
    }
    let names: BTreeSet<&String> = ours.keys().chain(seen.keys()).collect();
    let mut comparison = Comparison::default();
    for name in names {
        match (ours.get(name).copied(), seen.get(name).copied()) {
            (Some(0), None) => {}
            (None, Some(_)) if toolchain.contains(name) => {}
            (headcount, callgrind) if headcount == callgrind => comparison.equal += 1,
            (headcount, callgrind) => comparison.differences.push(Difference {
                function: name.clone(),
                headcount,
                callgrind,
            }),
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(pairs: &[(&str, u64)]) -> ByFunction {
        pairs
            .iter()
            .map(|(name, sum)| ((*name).to_owned(), *sum))
            .collect()
    }

    #[test]
    fn every_kind_of_difference_is_seen() {
        let reported = [
            ("same", 5),
            ("more", 6),
            ("never", 0),
            ("ghost", 1),
            ("main.cold", 2),
            ("main", 3),
        ];
        let reported = reported.map(|(name, sum)| (name.to_owned(), sum));
        let seen = sums(&[
            ("same", 5),
            ("more", 5),
            ("missed", 9),
            ("_start", 11),
            ("main", 5),
        ]);
        let toolchain = BTreeSet::from(["_start".to_owned()]);
        let found = compare(&reported, &seen, &Symbols::default(), &toolchain);
        assert_eq!(found.equal, 2);
        let lines: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "ghost: headcount 1, callgrind nothing",
                "missed: headcount nothing, callgrind 9",
                "more: headcount 6, callgrind 5",
            ]
        );
    }
}
