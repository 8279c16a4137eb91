//! How much of some source files ran: functions as their author counts them, and lines.

use crate::Error;
use crate::count::Count;
use crate::inlined::InlinedRuns;
use crate::lines::line_counts;
use crate::names::functions;
use crate::rows::Tally;
use headcount_model::Counted;
use std::collections::BTreeMap;

/// What ran of some files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Instructions executed, in all code.
    pub executed: Count,
    /// Functions by the file and line where they begin. All instances of a generic function, and
    /// all that a macro makes of one line, are one, as they are in the source.
    pub functions: BTreeMap<(String, u32), CoveredFunction>,
    /// How many lines hold counted code.
    pub lines: usize,
    /// How many of those ran.
    pub lines_ran: usize,
}

/// A function, as its author wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveredFunction {
    /// Its name; of several, the first.
    pub name: String,
    /// Whether it ran.
    pub ran: bool,
}

impl Covered {
    /// How many of the functions ran.
    pub fn functions_ran(&self) -> usize {
        self.functions.values().filter(|it| it.ran).count()
    }
}

/// What ran of the files that `is_meant` says.
pub fn covered(counted: &[Counted], is_meant: &dyn Fn(&str) -> bool) -> Result<Covered, Error> {
    let mut covered = Covered::default();
    let inlined = InlinedRuns::of(counted);
    for module in counted {
        for named in functions(module, true) {
            let tally = Tally::of(&named)?;
            covered.executed = covered.executed.plus(tally.executed)?;
            let (Some(file), Some((_, line))) = (named.own_file(), named.function.source) else {
                continue;
            };
            if is_meant(file) {
                let function = covered
                    .functions
                    .entry((file.to_owned(), line))
                    .or_default();
                function.ran |= tally.ran || inlined.has(&named);
                let name = without_arguments(&named.name);
                if function.name.is_empty() || name < function.name {
                    function.name = name;
                }
            }
        }
    }
    for (_, lines) in line_counts(counted)?
        .iter()
        .filter(|(file, _)| is_meant(file))
    {
        let counted = lines.values().filter(|it| it.counted);
        covered.lines += counted.clone().count();
        covered.lines_ran += counted.filter(|it| it.ran()).count();
    }
    Ok(covered)
}

/// `max::largest::<u8>` without its `::<u8>`: instances of one function have one name.
fn without_arguments(name: &str) -> String {
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
