//! What came of all the checks together?

use std::collections::BTreeMap;
use std::fmt;

use crate::check::{Counts, Outcome};
use crate::compare::{Difference, Stretch};
use crate::explained::{Explained, WHOLE_RUN};
use crate::headcount::{Refusal, Said};

/// One program at one level, checked.
pub struct Checked {
    pub program: String,
    pub level: String,
    pub outcome: Outcome,
}

/// Sentences and numbers for the end of a run.
#[derive(Debug, Default)]
pub struct Tally {
    pub applicable: usize,
    pub passed: usize,
    /// Programs whose counts were compared with a judge's, by level.
    pub compared: BTreeMap<String, usize>,
    /// Of these, those in which nothing differs.
    pub equal: usize,
    /// Functions or instructions, and lines.
    pub equal_units: usize,
    pub equal_lines: usize,
    pub not_applicable: Vec<String>,
    pub too_long: Vec<String>,
    pub no_judge: Vec<String>,
    pub refused: Vec<String>,
    pub notes: Vec<String>,
    pub foreseen: Vec<String>,
    pub explained: Vec<String>,
    pub stale: Vec<String>,
    /// Programs of which something ran that was not counted, where that is not excused; and how
    /// many instructions that are.
    pub uncounted: Vec<String>,
    pub uncounted_instructions: usize,
    /// How often, says headcount, control arrived where it had not foreseen it.
    pub strays: u64,
    pub failures: Vec<String>,
}

impl Tally {
    pub fn of(all: &[Checked], explained: &Explained) -> Tally {
        let mut tally = Tally::default();
        for checked in all {
            tally.add(checked, explained);
        }
        let compared = all.iter().filter(|checked| {
            matches!(&checked.outcome, Outcome::Passed { counts, .. } if !matches!(counts, Counts::NotAsked))
        });
        let compared: Vec<(&str, &str)> = compared
            .map(|it| (it.program.as_str(), it.level.as_str()))
            .collect();
        tally.stale = explained.stale(&compared).collect();
        tally
    }

    fn add(&mut self, checked: &Checked, explained: &Explained) {
        let who = format!("{} {}", checked.program, checked.level);
        let (said, counts) = match &checked.outcome {
            Outcome::NotApplicable(reason) => {
                self.not_applicable.push(format!("{who}: {reason}"));
                return;
            }
            Outcome::TooLong(reason) => {
                self.too_long.push(format!("{who}: {reason}"));
                return;
            }
            Outcome::Unjudged(end) => {
                self.applicable += 1;
                self.add_unjudged(checked, end, explained);
                return;
            }
            Outcome::Failed(reason) => {
                self.applicable += 1;
                self.failures.push(format!("{who}: {reason}"));
                return;
            }
            Outcome::Passed { said, counts } => (said, counts),
        };
        self.applicable += 1;
        self.passed += 1;
        self.refused.extend(
            said.refused
                .iter()
                .map(|it| format!("{who} {}: {}", it.subject, it.reason)),
        );
        self.notes
            .extend(said.notes.iter().map(|note| format!("{who}: {note}")));
        let strays = said.notes.iter().filter_map(|note| strays(note));
        self.strays += strays.sum::<u64>();
        match counts {
            Counts::NotAsked => {}
            Counts::NoJudge(end) => self.add_unjudged(checked, end, explained),
            Counts::Compared(comparison) => {
                *self.compared.entry(checked.level.clone()).or_default() += 1;
                self.equal += usize::from(comparison.is_equal());
                self.equal_units += comparison.equal;
                self.equal_lines += comparison.equal_lines;
                let open = comparison
                    .differences
                    .iter()
                    .filter(|it| !is_refused(it, said));
                let foreseen = comparison.foreseen.iter();
                self.foreseen
                    .extend(foreseen.map(|it| format!("{who} {it}")));
                for difference in open {
                    self.add_difference(checked, difference, explained);
                }
                self.add_uncounted(&who, &comparison.uncounted);
            }
        }
    }

    fn add_uncounted(&mut self, who: &str, stretches: &[Stretch]) {
        if stretches.is_empty() {
            return;
        }
        let total: usize = stretches.iter().map(|it| it.instructions).sum();
        let places: Vec<String> = stretches
            .iter()
            .map(|it| format!("{} at {:#x}", it.instructions, it.start))
            .collect();
        self.uncounted_instructions += total;
        self.uncounted.push(format!(
            "{who}: {total} instructions, {}",
            places.join(", ")
        ));
    }

    fn add_unjudged(&mut self, checked: &Checked, end: &str, explained: &Explained) {
        let Checked { program, level, .. } = checked;
        let line = format!("{program} {level}: {end}");
        match explained.reason(program, level, WHOLE_RUN) {
            Some(reason) => self.no_judge.push(format!("{line}: {reason}")),
            None => self.failures.push(line),
        }
    }

    /// A judge that was hardly asked has shown little: of so many programs, half
    /// must have been judged at each level.
    pub fn require_judged(&mut self, programs: usize, levels: &[String]) {
        for level in levels {
            let compared = self.compared.get(level).copied().unwrap_or(0);
            if compared < programs / 2 {
                let line = format!("{level}: only {compared} of {programs} programs were judged");
                self.failures.push(line);
            }
        }
    }

    /// The same for lines, which are compared at O0: five of each program.
    pub fn require_lines(&mut self) {
        let compared = self.compared.get("O0").copied().unwrap_or(0);
        if self.equal_lines < 5 * compared {
            let line = format!("O0: only {} lines were compared", self.equal_lines);
            self.failures.push(line);
        }
    }

    fn add_difference(
        &mut self,
        checked: &Checked,
        difference: &Difference,
        explained: &Explained,
    ) {
        let Checked { program, level, .. } = checked;
        match explained.reason(program, level, &difference.subject) {
            Some(reason) => self
                .explained
                .push(format!("{program} {level} {difference}: {reason}")),
            None => self
                .failures
                .push(format!("{program} {level} {difference}")),
        }
    }

    /// A run that checked nothing has shown nothing.
    pub fn is_good(&self) -> bool {
        self.failures.is_empty() && self.uncounted.is_empty() && self.passed > 0
    }
}

/// The number in the note about control that arrived where nobody had foreseen it.
fn strays(note: &str) -> Option<u64> {
    let (_, times) = note.split_once(" where nobody had foreseen it, ")?;
    let (number, _) = times.split_once(" times")?;
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// A unit that is listed as not counted may be missing, but may not be wrong.
fn is_refused(difference: &Difference, said: &Said) -> bool {
    let named =
        |it: &Refusal| it.subject == difference.subject || it.in_module() == difference.subject;
    // Where modules are told apart, one of them excuses nothing in another.
    let file = |it: &Refusal| it.subject.contains('/') && !difference.subject.contains('!');
    difference.headcount.is_none() && said.refused.iter().any(|it| named(it) || file(it))
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("not applicable", &self.not_applicable),
            ("skipped, it takes too long", &self.too_long),
            ("passes, but the judge cannot run it", &self.no_judge),
            ("not counted, says headcount", &self.refused),
            ("uncertain, says headcount", &self.notes),
            ("differs, as a rule foresees", &self.foreseen),
            ("differs, and is explained", &self.explained),
            ("explained, but no longer differs", &self.stale),
            ("FAILED, it ran uncounted", &self.uncounted),
            ("FAILED", &self.failures),
        ];
        for (title, lines) in lists {
            for line in lines {
                writeln!(f, "{title}: {line}")?;
            }
        }
        writeln!(
            f,
            "{} checks applicable, {} not",
            self.applicable,
            self.not_applicable.len()
        )?;
        writeln!(f, "{} pass when counted", self.passed)?;
        for (level, compared) in &self.compared {
            writeln!(f, "{compared} compared with a judge at {level}")?;
        }
        writeln!(
            f,
            "{} equal in all that was compared; {} functions, instructions or statements and \
             {} lines equal; \
             {} could not be judged, {} skipped",
            self.equal,
            self.equal_units,
            self.equal_lines,
            self.no_judge.len(),
            self.too_long.len(),
        )?;
        writeln!(
            f,
            "{} refusals, {} notes",
            self.refused.len(),
            self.notes.len()
        )?;
        writeln!(
            f,
            "{} differences explained, {} foreseen by rules",
            self.explained.len(),
            self.foreseen.len()
        )?;
        writeln!(
            f,
            "control arrived {} times where headcount had not foreseen it",
            self.strays
        )?;
        if !self.uncounted.is_empty() {
            writeln!(
                f,
                "{} instructions of {} programs ran uncounted, and that is a failure of each",
                self.uncounted_instructions,
                self.uncounted.len()
            )?;
        }
        writeln!(f, "{} failures", self.failures.len() + self.uncounted.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strays_are_read_from_the_note() {
        let note = "Control arrived in /p where nobody had foreseen it, 12,345 times at 2 places \
                    (most often in f, 0x10); that was counted all the same, but slowly.";
        assert_eq!(strays(note), Some(12345));
        assert_eq!(strays("It was killed 3 times."), None);
    }

    #[test]
    fn a_run_that_judged_little_is_not_good() {
        let levels = ["O0".to_owned(), "O2".to_owned()];
        let tally = |at_o0, at_o2, lines| {
            let compared = levels.iter().cloned().zip([at_o0, at_o2]);
            let mut tally = Tally {
                passed: 1,
                compared: compared.collect(),
                equal_lines: lines,
                ..Tally::default()
            };
            tally.require_judged(10, &levels);
            tally.require_lines();
            tally
        };
        assert!(tally(5, 5, 25).is_good());
        assert!(!tally(5, 4, 25).is_good());
        assert!(!tally(4, 5, 25).is_good());
        assert!(!tally(5, 5, 24).is_good());
    }
}
