//! How much of some source files ran: functions as their author counts them, and lines.

use crate::Error;
use crate::count::Count;
use crate::inlined::InlinedRuns;
use crate::lines::{LineCount, all_lines};
use crate::names::{Named, functions};
use crate::only::Only;
use crate::rows::Tally;
use headcount_model::Counted;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What ran of some files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Instructions executed, in all code.
    pub executed: Count,
    /// The files, by name.
    pub files: BTreeMap<String, CoveredFile>,
}

/// What ran of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredFile {
    /// Functions by the line where they begin. All instances of a generic function, and all that a
    /// macro makes of one line, are one, as they are in the source.
    pub functions: BTreeMap<Beginning, CoveredFunction>,
    /// Lines with code, where it is known whether they ran.
    pub lines: Part,
}

/// A function, as its author wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredFunction {
    /// Its name; of several, the first.
    pub name: String,
    /// Whether it ran.
    pub ran: bool,
}

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// How many ran.
    pub ran: u64,
    /// How many there are.
    pub all: u64,
}

impl Part {
    /// Of lines, as far as it is known whether they ran.
    pub fn of_lines<'a>(lines: impl Iterator<Item = &'a LineCount>) -> Self {
        Self::of(lines.filter_map(LineCount::least).map(|it| it > 0))
    }

    /// Of things of which it is known whether they ran.
    fn of(ran: impl Iterator<Item = bool>) -> Self {
        ran.fold(Self::default(), |sum, ran| Self {
            ran: sum.ran + u64::from(ran),
            all: sum.all + 1,
        })
    }
}

impl std::iter::Sum for Part {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            ran: sum.ran + part.ran,
            all: sum.all + part.all,
        })
    }
}

/// `4 of 10 (40.0%)`.
impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [ran, all] = [self.ran, self.all].map(crate::thousands);
        match self.all {
            0 => f.pad("-"),
            _ => f.pad(&format!(
                "{ran} of {all} ({})",
                crate::share(self.ran, self.all)
            )),
        }
    }
}

impl CoveredFile {
    /// How many of its functions ran.
    pub fn functions_ran(&self) -> Part {
        Part::of(self.functions.values().map(|it| it.ran))
    }
}

impl Covered {
    /// How many of the functions ran.
    pub fn functions_ran(&self) -> Part {
        self.files.values().map(CoveredFile::functions_ran).sum()
    }

    /// How many of the lines ran.
    pub fn lines_ran(&self) -> Part {
        self.files.values().map(|it| it.lines).sum()
    }
}

/// Where a function begins. What a compiler made of one line is one function; where scripts have several in
/// a line, they have names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beginning {
    pub line: u32,
    name: Option<Arc<str>>,
}

impl Beginning {
    #[cfg(test)]
    pub fn of_line(line: u32) -> Self {
        Self { line, name: None }
    }

    pub fn of(named: &Named<'_>, line: u32) -> Self {
        let is_script = named.function.compiled.language.is_some();
        let name = is_script.then(|| named.name.clone());
        Self { line, name }
    }

    /// Has it run if its first line has? In a script, that may only have made it.
    pub fn runs_with_line(&self) -> bool {
        self.name.is_none()
    }
}

/// What ran of what is wanted in the files that `is_meant` says.
pub fn covered(
    counted: &[Counted],
    only: &Only,
    is_meant: &dyn Fn(&str) -> bool,
) -> Result<Covered, Error> {
    let mut covered = Covered::default();
    let inlined = InlinedRuns::of(counted);
    for module in counted {
        for named in functions(module, true) {
            let tally = Tally::of(&named)?;
            covered.executed = covered.executed.plus(tally.executed)?;
            let (Some(file), Some((_, line))) = (named.own_file(), named.function.source) else {
                continue;
            };
            if is_meant(file) && only.wants(&named) {
                let file = covered.files.entry(file.to_owned()).or_default();
                let function = file.functions.entry(Beginning::of(&named, line));
                let function = function.or_default();
                function.ran |= tally.ran || inlined.has(&named);
                let name = without_arguments(&named.name);
                if function.name.is_empty() || name < function.name {
                    function.name = name;
                }
            }
        }
    }
    for (name, counts) in all_lines(counted, true, only)? {
        let file = covered.files.get_mut(name.as_ref());
        for (begin, function) in file.into_iter().flat_map(|it| &mut it.functions) {
            let line = begin.runs_with_line().then_some(&begin.line);
            let begun = line
                .and_then(|it| counts.get(it))
                .and_then(LineCount::least);
            function.ran |= begun.is_some_and(|it| it > 0);
        }
        let lines = Part::of_lines(counts.values());
        if lines.all > 0 && is_meant(&name) {
            covered.files.entry(name.to_string()).or_default().lines = lines;
        }
    }
    Ok(covered)
}

/// `max::largest::<u8>` without its `::<u8>`: instances of one function have one name.
pub fn without_arguments(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, inside)) = rest.split_once("::<") {
        out.push_str(before);
        rest = &inside[end_of_arguments(inside)..];
    }
    out.push_str(rest);
    out
}

/// Behind the `>` that closes what is open in the beginning.
fn end_of_arguments(text: &str) -> usize {
    let mut depth = 1;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            // The arrow of a function type closes nothing.
            '>' if before != '-' => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return at + 1;
        }
        before = c;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_which_nothing_is_known_do_not_count() {
        let line = |count, executed| LineCount {
            count,
            executed: Count::Exact(executed),
            counted: true,
            may_have_run: true,
        };
        let lines = [
            line(Count::Exact(3), 9),
            line(Count::Exact(0), 0),
            line(Count::Unknown, 0),
            line(Count::Unknown, 5),
        ];
        let part = Part::of_lines(lines.iter());
        assert_eq!(part, Part { ran: 2, all: 3 });
    }

    #[test]
    fn instances_have_one_name() {
        for (name, bare) in [
            ("max::largest::<u8>", "max::largest"),
            (
                "max::map::<fn(u8) -> Vec<u8>>::{closure#0}",
                "max::map::{closure#0}",
            ),
            ("<a::B as c::D>::e", "<a::B as c::D>::e"),
            ("a::<b", "a"),
            ("main", "main"),
        ] {
            assert_eq!(without_arguments(name), bare);
        }
    }
}
