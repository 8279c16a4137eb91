//! How much more is too much?

use super::Diff;

/// A limit that a user sets: `1%`, `10000`, `total=0.5%`, `function=5%`.
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
}

/// How much more is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many millionths of a percent of what it was.
    Percent(u64),
    /// So many instructions.
    Instructions(u64),
}

const MILLION: u64 = 1_000_000;

impl Limit {
    /// Reads what a user typed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help =
            || "say a limit such as `1%`, `0.5%`, `10000`, `total=1%` or `function=5%`".to_owned();
        let (scope, amount) = match text.split_once('=') {
            None => (Scope::Total, text),
            Some(("total", amount)) => (Scope::Total, amount),
            Some(("function", amount)) => (Scope::Function, amount),
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

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.amount {
            Amount::Instructions(most) => write!(f, "{}", crate::thousands(most)),
            Amount::Percent(percent) => {
                let rest = format!("{:06}", percent % MILLION);
                let rest = rest.trim_end_matches('0');
                let point = if rest.is_empty() { "" } else { "." };
                write!(f, "{}{point}{rest}%", percent / MILLION)
            }
        }
    }
}

fn digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// `1.25` as 1,250,000.
fn millionths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let part = (1..=6)
        .contains(&part.len())
        .then(|| format!("{part:0<6}"))?;
    let whole = digits(whole)?.checked_mul(MILLION)?;
    whole.checked_add(digits(&part)?)
}

/// Something that is over a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regression {
    /// The limit.
    pub limit: Limit,
    /// The place in [`Diff::changes`], if it is a function; else it is the total.
    pub change: Option<usize>,
    /// Instructions executed.
    pub executed: [u64; 2],
}

impl Diff {
    /// What is over these limits.
    pub fn regressions(&self, limits: &[Limit]) -> Vec<Regression> {
        let mut found = Vec::new();
        for limit in limits {
            let mut check = |change, executed| {
                if limit.is_over(executed) {
                    found.push(Regression {
                        limit: *limit,
                        change,
                        executed,
                    });
                }
            };
            match limit.scope {
                Scope::Total => check(None, self.executed),
                Scope::Function => {
                    for (place, change) in self.changes.iter().enumerate() {
                        if let [Some(old), Some(new)] = change.executed {
                            check(Some(place), [old, new]);
                        }
                    }
                }
            }
        }
        found
    }
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
