//! How much of the code must have run?

use crate::covered::{Covered, CoveredFile, Part};
use crate::number::{millionths, share, thousands};

/// What must have run, in all or of every file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Of the lines.
    pub lines: Option<Percent>,
    /// Of the functions.
    pub functions: Option<Percent>,
    /// Whether that holds for every file.
    pub each_file: bool,
}

/// Millionths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(u64);

impl Percent {
    /// Reads what a user typed: `80`, `87.5` or `80%`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        let percent = millionths(number).filter(|it| *it <= 100_000_000);
        let help = || "say a percentage such as `80` or `87.5`".to_owned();
        percent.map(Self).ok_or_else(help)
    }

    /// Is a part less? In whole numbers, so that there is no doubt about it. Of nothing, nothing ran.
    fn is_above(self, part: Part) -> bool {
        let ran = u128::from(part.ran) * 100_000_000;
        part.all == 0 || ran < u128::from(part.all) * u128::from(self.0)
    }
}

impl std::fmt::Display for Percent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::number::percent(self.0, f)
    }
}

impl Gate {
    /// Does it ask for nothing?
    pub fn is_open(&self) -> bool {
        self.lines.is_none() && self.functions.is_none()
    }

    /// What has not run enough, in sentences.
    pub fn complaints(&self, covered: &Covered) -> Vec<String> {
        if !self.each_file {
            let (lines, functions) = (covered.lines_ran(), covered.functions_ran());
            return self.complain("", lines, functions);
        }
        // A file may have no function of its own, or no line.
        let of_file = |(name, file): (&String, &CoveredFile)| {
            let name = format!("{name}: ");
            let wanted = |part: Part, limit: Option<Percent>| limit.filter(|_| part.all > 0);
            let (lines, functions) = (file.lines, file.functions_ran());
            let gate = Self {
                lines: wanted(lines, self.lines),
                functions: wanted(functions, self.functions),
                ..*self
            };
            gate.complain(&name, lines, functions)
        };
        match covered.files.is_empty() {
            true => self.complain("", Part::default(), Part::default()),
            false => covered.files.iter().flat_map(of_file).collect(),
        }
    }

    fn complain(&self, name: &str, lines: Part, functions: Part) -> Vec<String> {
        let kinds = [
            ("lines", lines, self.lines),
            ("functions", functions, self.functions),
        ];
        let complaint = |(what, part, limit): (&str, Part, Option<Percent>)| {
            let limit = limit.filter(|it| it.is_above(part))?;
            Some(match part.all {
                0 => format!("{name}no {what} were counted; at least {limit} must run"),
                _ => {
                    let (ran, all) = (thousands(part.ran), thousands(part.all));
                    let share = share(part.ran, part.all);
                    format!("{name}{ran} of {all} {what} ran ({share}); at least {limit} must")
                }
            })
        };
        kinds.into_iter().filter_map(complaint).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::covered::{Beginning, CoveredFunction};

    fn file(lines: Part, functions: &[bool]) -> CoveredFile {
        let function = |(line, ran): (usize, &bool)| {
            let name = String::new();
            let begin = Beginning::of_line(line as u32);
            (begin, CoveredFunction { name, ran: *ran })
        };
        CoveredFile {
            functions: functions.iter().enumerate().map(function).collect(),
            lines,
        }
    }

    fn gate(lines: &str, each_file: bool) -> Gate {
        Gate {
            lines: Some(Percent::parse(lines).unwrap()),
            each_file,
            ..Gate::default()
        }
    }

    #[test]
    fn a_gate_holds_for_all_or_for_every_file() {
        let [good, bad] = [(9, 10), (1, 10)].map(|(ran, all)| Part { ran, all });
        let covered = Covered {
            files: [
                ("a.c", file(good, &[true])),
                ("b.c", file(bad, &[false, true])),
            ]
            .map(|(name, file)| (name.to_owned(), file))
            .into(),
            ..Covered::default()
        };
        assert_eq!(gate("50", false).complaints(&covered), [""; 0]);
        let all = "10 of 20 lines ran (50.0%); at least 50.000001% must";
        assert_eq!(gate("50.000001", false).complaints(&covered), [all]);
        let one = "b.c: 1 of 10 lines ran (10.0%); at least 50% must";
        assert_eq!(gate("50%", true).complaints(&covered), [one]);
        let functions = Gate {
            functions: Percent::parse("67").ok(),
            ..Gate::default()
        };
        let some = "2 of 3 functions ran (66.7%); at least 67% must";
        assert_eq!(functions.complaints(&covered), [some]);
    }

    #[test]
    fn nothing_is_not_enough() {
        for each_file in [false, true] {
            let said = gate("1", each_file).complaints(&Covered::default());
            assert_eq!(said, ["no lines were counted; at least 1% must run"]);
        }
    }

    #[test]
    fn percentages_are_whole_or_broken() {
        for text in ["0", "80", "87.5", "100"] {
            assert_eq!(
                Percent::parse(text).unwrap().to_string(),
                format!("{text}%")
            );
        }
        for text in ["", "%", "-1", "100.1", "a", "1e2", "8,5", ".5"] {
            assert!(Percent::parse(text).is_err(), "{text}");
        }
    }
}
