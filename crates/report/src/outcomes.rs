//! What do the branches of a line say about its condition?
//!
//! A jump is taken or not, which says nothing to who reads source text. But where the ways of a line
//! lead to two other lines, the first line behind it is what the condition guards: that was come to so
//! often, and passed so often. Of several branches on a line (`a && b`) what counts is where they lead
//! in the end. Elsewhere it can only be said how many of the ways were gone.

use crate::Error;
use crate::branches::{Branch, last_line};
use crate::callees::Callees;
use crate::checks::Checks;
use crate::count::Count;
use crate::lines::{LineCount, all_lines};
use crate::names::{Named, functions};
use crate::number::thousands;
use crate::report::Request;
use crate::table::{Cell, Row};
use headcount_model::{Block, Counted, Module};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Branches by file and line.
pub type BranchLines = BTreeMap<Arc<str>, BTreeMap<u32, LineBranches>>;

/// All branches of one line that were met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineBranches {
    /// How many there are.
    pub branches: usize,
    /// How many ways they have together.
    pub ways: usize,
    /// How many of those were gone.
    pub gone: usize,
    /// Whether some of it was optimised.
    pub is_optimised: bool,
    /// Whether some of the ways lead to another file, or to no line at all.
    pub leads_elsewhere: bool,
    /// How often control went to other lines of the file.
    pub to: BTreeMap<u32, u64>,
}

/// What is said of the condition of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What it guards was come to so often, and passed so often.
    Told {
        /// How often it held.
        taken: u64,
        /// How often it did not.
        not: u64,
    },
    /// So many of so many ways were gone.
    Seen {
        /// How many.
        gone: usize,
        /// Of how many.
        ways: usize,
    },
}

/// The branches of every line of every file of these modules. Those that nothing ever came to, or of which a way was
/// not counted, are left out: there is nothing to tell.
pub fn line_branches(
    counted: &[Counted],
    is_wanted: impl Fn(&Module) -> bool,
    checks: &Checks<'_>,
) -> BranchLines {
    let mut all: BranchLines = BTreeMap::new();
    let modules = counted.iter().enumerate();
    for (module, it) in modules.filter(|it| is_wanted(&it.1.module)) {
        for named in functions(it, false) {
            for branch in checks.branches(module, &named) {
                let block = named.function.blocks.get(branch.block as usize);
                let run = block.and_then(last_line);
                let file = run.and_then(|run| Some((named.file(run.file)?, run.line)));
                let gone = branch.gone().filter(|gone| *gone > 0);
                if let (Some((file, line)), Some(gone)) = (file, gone) {
                    let of_file = match all.get_mut(file) {
                        Some(of_file) => of_file,
                        None => all.entry(file.into()).or_default(),
                    };
                    let it = of_file.entry(line).or_default();
                    it.add(&named, &branch, gone, (file, line));
                }
            }
        }
    }
    all
}

/// A row for each line with branches that were met.
pub fn rows(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let callees = Callees::new(counted, request.transfers, request.pointers);
    let checks = Checks::new(&callees, request.with_checks);
    let counts = all_lines(counted, request.demangle, &request.only)?;
    let mut rows = Vec::new();
    for (file, lines) in line_branches(counted, |it| request.only.may_be_in(it), &checks) {
        let library = request.own.and_then(|own| own.library_of_file(&file));
        let text = request.source.and_then(|source| source(&file));
        for (line, it) in lines {
            let Some(count) = counts.get(&file).and_then(|it| it.get(&line)) else {
                continue; // nothing of it is wanted
            };
            let text = text.as_ref().and_then(|it| it.get(line as usize - 1));
            let outcome = it.outcome(line, text.map(String::as_str), Some(count));
            let told = match outcome {
                Outcome::Told { taken, not } => [taken, not].map(Count::Exact),
                Outcome::Seen { .. } => [Count::Unknown; 2],
            };
            let mut cells = vec![
                Cell::Text(file.clone()),
                Cell::Number(line.into()),
                Cell::Count(count.count),
                Cell::Number(it.branches as u64),
                Cell::Number(it.ways as u64),
                Cell::Number(it.gone as u64),
            ];
            cells.extend(told.map(Cell::Count));
            rows.push(Row {
                cells,
                counted: true,
                // What never ran of a branch is one of its outcomes.
                ran: !request.never || !outcome.is_partial(),
                library: library.clone(),
                text: text.cloned(),
                outcome: Some(outcome),
                ..Row::default()
            });
        }
    }
    Ok(rows)
}

impl LineBranches {
    fn add(&mut self, named: &Named<'_>, branch: &Branch, gone: usize, at: (&str, u32)) {
        self.branches += 1;
        self.ways += branch.ways.len();
        self.gone += gone;
        self.is_optimised |= named.function.compiled.is_optimised;
        let blocks = &named.function.blocks;
        for way in &branch.ways {
            let to = way
                .to
                .and_then(|to| first_line(named, blocks.get(to as usize)?));
            match to {
                Some(to) if to == at => (),
                Some((file, line)) if file == at.0 => {
                    let sum = self.to.entry(line).or_default();
                    *sum = sum.saturating_add(way.count.value().unwrap_or(0));
                }
                _ => self.leads_elsewhere = true,
            }
        }
    }

    /// What a line says of its condition, with its text and its counts, if they are at hand.
    pub fn outcome(&self, line: u32, text: Option<&str>, count: Option<&LineCount>) -> Outcome {
        self.told(line, text)
            .filter(|told| self.is_sure(*told, count))
            .unwrap_or(Outcome::Seen {
                gone: self.gone,
                ways: self.ways,
            })
    }

    fn told(&self, line: u32, text: Option<&str>) -> Option<Outcome> {
        let mut lines = self.to.iter().map(|(line, count)| (*line, *count));
        let (Some(one), Some(other), None) = (lines.next(), lines.next(), lines.next()) else {
            return None;
        };
        if self.leads_elsewhere || text.is_some_and(chooses_among_many) {
            return None;
        }
        let (taken, not) = match (one.0 > line, other.0 > line) {
            (true, true) => (one.1, other.1),
            // A loop goes on above its end; anything else leads on below.
            (false, true) => match ends_a_loop(text?) {
                true => (one.1, other.1),
                false => (other.1, one.1),
            },
            _ => return None,
        };
        Some(Outcome::Told { taken, not })
    }

    /// Compilers test conditions less often than they are written, or more often. Where a line was
    /// begun as often as its ways were gone, they did not.
    fn is_sure(&self, told: Outcome, count: Option<&LineCount>) -> bool {
        let Outcome::Told { taken, not } = told else {
            return true;
        };
        let begun = count.map(|it| it.count);
        !self.is_optimised || begun == taken.checked_add(not).map(Count::Exact)
    }
}

impl Outcome {
    /// In words; none, if there is nothing to tell.
    pub fn words(&self) -> Option<String> {
        match *self {
            Self::Told { not: 0, .. } => Some("always".to_owned()),
            Self::Told { taken: 0, .. } => Some("never".to_owned()),
            Self::Told { taken, not } => Some(format!(
                "taken {} / not {}",
                thousands(taken),
                thousands(not)
            )),
            Self::Seen { gone, ways } if gone < ways => {
                Some(format!("{gone} of {ways} outcomes seen"))
            }
            Self::Seen { .. } => None,
        }
    }

    /// Whether some outcome was never seen.
    pub fn is_partial(&self) -> bool {
        match *self {
            Self::Told { taken, not } => taken == 0 || not == 0,
            Self::Seen { gone, ways } => gone < ways,
        }
    }
}

/// The first line of a block, and its file.
fn first_line<'a>(named: &Named<'a>, block: &Block) -> Option<(&'a str, u32)> {
    let run = block.lines.iter().find(|run| run.line > 0)?;
    Some((named.file(run.file)?, run.line))
}

/// Whether a line is the end of a loop that has its condition there.
fn ends_a_loop(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('}') && words(text).any(|it| it == "while")
}

/// Whether a line has no condition, but a choice.
fn chooses_among_many(text: &str) -> bool {
    words(text).any(|it| matches!(it, "switch" | "match" | "select"))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branches(to: &[(u32, u64)], gone: usize, ways: usize) -> LineBranches {
        LineBranches {
            branches: 1,
            ways,
            gone,
            to: to.iter().copied().collect(),
            ..LineBranches::default()
        }
    }

    fn words_of(it: &LineBranches, text: &str) -> String {
        it.outcome(10, Some(text), None).words().unwrap_or_default()
    }

    #[test]
    fn what_stands_behind_a_condition_is_what_it_guards() {
        let both = branches(&[(11, 11), (13, 99_988)], 2, 2);
        assert_eq!(words_of(&both, "if (x)"), "taken 11 / not 99,988");
        let always = branches(&[(11, 7), (13, 0)], 1, 2);
        assert_eq!(words_of(&always, "if (x)"), "always");
        let never = branches(&[(11, 0), (13, 7)], 1, 2);
        assert_eq!(words_of(&never, "if (x)"), "never");
        // The last statement of a loop goes on above it, if it does not hold.
        let last = branches(&[(5, 90), (11, 10)], 2, 2);
        assert_eq!(words_of(&last, "if (x)"), "taken 10 / not 90");
        assert_eq!(words_of(&last, "} while (x);"), "taken 90 / not 10");
        // Who does not see the line cannot tell the two.
        assert_eq!(last.outcome(10, None, None).words(), None);
    }

    #[test]
    fn what_lines_do_not_tell_apart_is_only_counted() {
        let one_line = branches(&[(11, 5)], 1, 2);
        assert_eq!(words_of(&one_line, "if (x) y();"), "1 of 2 outcomes seen");
        let all = branches(&[], 2, 2);
        assert_eq!(words_of(&all, "return x ? y : z;"), "");
        let choice = branches(&[(11, 5), (12, 0)], 1, 2);
        assert_eq!(words_of(&choice, "switch (x) {"), "1 of 2 outcomes seen");
        let elsewhere = LineBranches {
            leads_elsewhere: true,
            ..branches(&[(11, 5), (12, 0)], 1, 3)
        };
        assert_eq!(words_of(&elsewhere, "if (x)"), "1 of 3 outcomes seen");
    }

    #[test]
    fn optimised_code_is_believed_where_its_lines_agree() {
        let it = LineBranches {
            is_optimised: true,
            ..branches(&[(11, 30), (13, 70)], 2, 2)
        };
        let begun = |count| LineCount {
            count,
            executed: Count::Exact(200),
            counted: true,
            may_have_run: true,
        };
        let told = |count| it.outcome(10, Some("if (x)"), Some(&begun(count)));
        assert_eq!(
            told(Count::Exact(100)),
            Outcome::Told { taken: 30, not: 70 }
        );
        for count in [Count::Exact(101), Count::AtLeast(100), Count::Unknown] {
            assert_eq!(told(count), Outcome::Seen { gone: 2, ways: 2 });
        }
    }
}
