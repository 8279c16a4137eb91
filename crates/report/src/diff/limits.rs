//! How much more is too much?

use super::Diff;
use crate::count::Count;
use crate::number::{MILLION, digits, millionths};

/// A limit that a user sets: `1%`, `10000`, `total=0.5%`, `function=5%`, `line=0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What must stay below it.
    pub scope: Scope,
    /// The limit.
    pub amount: Amount,
}

/// What a limit holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All instructions executed.
    Total,
    /// Those of every function. A function that is new counts to the total alone.
    Function,
    /// How often every line is begun. A line that is new does not count.
    Line,
}

/// How much more is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many millionths of a percent of what it was.
    Percent(u64),
    /// So many instructions; of lines, so many times.
    Instructions(u64),
}

impl Limit {
    /// Reads what a user typed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help = || {
            "say a limit such as `1%`, `0.5%`, `10000`, `total=1%`, `function=5%` or `line=0`"
                .to_owned()
        };
        let (scope, amount) = match text.split_once('=') {
            None => (Scope::Total, text),
            Some(("total", amount)) => (Scope::Total, amount),
            Some(("function", amount)) => (Scope::Function, amount),
            Some(("line", amount)) => (Scope::Line, amount),
            Some(_) => return Err(help()),
        };
        let amount = match amount.strip_suffix('%') {
            Some(percent) => Amount::Percent(millionths(percent).ok_or_else(help)?),
            None => Amount::Instructions(digits(amount).ok_or_else(help)?),
        };
        Ok(Self { scope, amount })
    }

    /// Is this more than is allowed? In whole numbers, so that there is no doubt about it.
    pub fn is_over(&self, [old, new]: [u64; 2]) -> bool {
        let Some(more) = new.checked_sub(old) else {
            return false;
        };
        match self.amount {
            Amount::Instructions(most) => more > most,
            Amount::Percent(percent) => {
                let more = u128::from(more) * 100 * u128::from(MILLION);
                more > u128::from(old) * u128::from(percent)
            }
        }
    }
}

/// What counts prove about a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// Whatever the exact counts are, the limit is exceeded; by these at least.
    Over([u64; 2]),
    /// Whatever they are, it is not.
    Within,
    /// That depends on what they are.
    Neither,
}

impl Limit {
    /// A bound of what is new may prove that it is too much, a bound of what was that it is not.
    fn proof(&self, sides: [Count; 2]) -> Proof {
        let [Some(old), Some(new)] = sides.map(Count::value) else {
            return Proof::Neither;
        };
        let [old_is_exact, new_is_exact] = sides.map(|it| matches!(it, Count::Exact(_)));
        match self.is_over([old, new]) {
            true if old_is_exact => Proof::Over([old, new]),
            false if new_is_exact => Proof::Within,
            _ => Proof::Neither,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.amount {
            Amount::Instructions(most) => write!(f, "{}", crate::thousands(most)),
            Amount::Percent(percent) => crate::number::percent(percent, f),
        }
    }
}

/// Something that is over a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regression {
    /// The limit.
    pub limit: Limit,
    /// What is over it.
    pub subject: Subject,
    /// Instructions executed; of a line, how often it was begun at least.
    pub amounts: [u64; 2],
}

/// What is over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All of it.
    Total,
    /// The function at this place in [`Diff::changes`].
    Function(usize),
    /// The line at this place in [`Diff::lines`].
    Line(usize),
}

impl Diff {
    /// What is over these limits, for certain.
    pub fn regressions(&self, limits: &[Limit]) -> Vec<Regression> {
        let mut found = Vec::new();
        for limit in limits {
            let mut over = |subject, amounts| {
                found.push(Regression {
                    limit: *limit,
                    subject,
                    amounts,
                });
            };
            match limit.scope {
                Scope::Total if limit.is_over(self.executed) => over(Subject::Total, self.executed),
                Scope::Total => {}
                Scope::Function => {
                    for (place, change) in self.changes.iter().enumerate() {
                        if let [Some(old), Some(new)] = change.executed
                            && limit.is_over([old, new])
                        {
                            over(Subject::Function(place), [old, new]);
                        }
                    }
                }
                Scope::Line => {
                    for (place, proof) in self.proofs(limit) {
                        if let Proof::Over(amounts) = proof {
                            over(Subject::Line(place), amounts);
                        }
                    }
                }
            }
        }
        found
    }

    /// What cannot be held against these limits because it is not exact, in sentences.
    pub fn undecided(&self, limits: &[Limit]) -> Vec<String> {
        let of_lines = limits.iter().filter(|it| it.scope == Scope::Line);
        let sentence = |limit: &Limit| {
            let proofs = self.proofs(limit);
            let open = proofs.filter(|(_, proof)| *proof == Proof::Neither);
            undecided(limit, open.count() as u64)
        };
        of_lines.filter_map(sentence).collect()
    }

    /// What the counts of the lines that are on both sides prove.
    fn proofs(&self, limit: &Limit) -> impl Iterator<Item = (usize, Proof)> {
        let lines = self.lines.iter().enumerate();
        lines.filter_map(|(place, line)| {
            let [Some(old), Some(new)] = line.counts else {
                return None;
            };
            Some((place, limit.proof([old, new])))
        })
    }
}

fn undecided(limit: &Limit, lines: u64) -> Option<String> {
    let lines = match lines {
        0 => return None,
        1 => "1 line has a count that is a bound or unknown".to_owned(),
        many => {
            let many = crate::thousands(many);
            format!("{many} lines have counts that are bounds or unknown")
        }
    };
    Some(format!(
        "{lines}, too vague to compare with the limit of {limit}; a build without optimisation has \
         exact counts."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_percents_or_numbers() {
        let limit = |text: &str| Limit::parse(text).map(|it| (it.scope, it.amount));
        assert_eq!(limit("1%"), Ok((Scope::Total, Amount::Percent(MILLION))));
        assert_eq!(
            limit("total=0"),
            Ok((Scope::Total, Amount::Instructions(0)))
        );
        assert_eq!(
            limit("function=0.25%"),
            Ok((Scope::Function, Amount::Percent(250_000)))
        );
        for bad in [
            "",
            "%",
            "-1%",
            "1e3",
            "x=1%",
            "1.2345678%",
            ".5%",
            "1.%",
            "+1",
        ] {
            assert!(limit(bad).is_err(), "{bad}");
        }
        for text in ["1%", "0.25%", "10,000"] {
            let limit = Limit::parse(&text.replace(',', ""));
            assert_eq!(limit.unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_bound_proves_what_it_proves_and_an_unknown_nothing() {
        use Count::{AtLeast, Exact, Unknown};
        let proof = |old, new| Limit::parse("line=10").unwrap().proof([old, new]);
        assert_eq!(proof(Exact(5), Exact(16)), Proof::Over([5, 16]));
        assert_eq!(proof(Exact(5), Exact(15)), Proof::Within);
        assert_eq!(proof(Exact(5), AtLeast(16)), Proof::Over([5, 16]));
        assert_eq!(proof(Exact(5), AtLeast(15)), Proof::Neither);
        assert_eq!(proof(AtLeast(5), Exact(15)), Proof::Within);
        assert_eq!(proof(AtLeast(5), Exact(16)), Proof::Neither);
        assert_eq!(proof(AtLeast(5), AtLeast(99)), Proof::Neither);
        assert_eq!(proof(Exact(5), Unknown), Proof::Neither);
        assert_eq!(proof(Unknown, Exact(5)), Proof::Neither);
    }

    #[test]
    fn a_limit_is_over_when_there_is_more() {
        let over = |limit: &str, sides| Limit::parse(limit).unwrap().is_over(sides);
        assert!(!over("1%", [1000, 1010]) && over("1%", [1000, 1011]));
        assert!(!over("10", [1000, 1010]) && over("10", [1000, 1011]));
        assert!(!over("0%", [1000, 1000]) && over("0%", [1000, 1001]));
        assert!(!over("0%", [1000, 10]));
        assert!(over("100000%", [0, 1]));
        assert!(!over("1%", [u64::MAX, u64::MAX]));
    }
}
