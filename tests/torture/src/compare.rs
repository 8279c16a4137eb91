//! Where do two accounts of one program differ?

use std::collections::BTreeSet;
use std::fmt;

use crate::symbols::{ByFunction, Symbols};

/// One unit with two numbers. `None`: that side does not know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What an explanation names: a function, or `FILE:LINE`.
    pub subject: String,
    /// Where in it, if it is a part that differs.
    pub address: Option<u64>,
    pub headcount: Option<u64>,
    pub judge: Judge,
    pub judged: Option<u64>,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    Callgrind,
    SingleStep,
    Gcov,
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Judge::Callgrind => "callgrind",
            Judge::SingleStep => "single step",
            Judge::Gcov => "gcov",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |count: Option<u64>| count.map_or("nothing".to_owned(), |n| n.to_string());
        let (ours, theirs) = (number(self.headcount), number(self.judged));
        f.write_str(&self.subject)?;
        if let Some(address) = self.address {
            write!(f, " at {address:#x}")?;
        }
        write!(f, ": headcount {ours}, {} {theirs}", self.judge)
    }
}

/// How the accounts of one program's run compare.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Units that ran and have equal numbers: functions, or instructions.
    pub equal: usize,
    /// Lines that have equal numbers, where lines are compared.
    pub equal_lines: usize,
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
            (headcount, judged) if headcount == judged => comparison.equal += 1,
            (headcount, judged) => comparison.differences.push(Difference {
                subject: name.clone(),
                address: None,
                headcount,
                judge: Judge::Callgrind,
                judged,
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
