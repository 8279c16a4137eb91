//! Which functions ran where they were inlined, whether their own code did or not?

use crate::names::{Named, functions};
use headcount_model::Counted;
use std::collections::HashSet;

/// The lines of which a copy ran that was inlined into another function: file and line.
pub struct InlinedRuns<'a>(HashSet<(&'a str, u32)>);

impl<'a> InlinedRuns<'a> {
    pub fn of(counted: &'a [Counted]) -> Self {
        let mut lines = HashSet::new();
        for named in counted.iter().flat_map(|it| functions(it, false)) {
            for block in named.blocks() {
                for (run, range) in block.block.lines.iter().zip(block.line_ranges()) {
                    let is_copied = run.inline_copy > 0 && !range.is_empty();
                    let has_run = |at: u32| block.at(at).value().is_some_and(|it| it > 0);
                    if let (true, Some(file)) = (is_copied, named.file(run.file))
                        && has_run(range.start)
                    {
                        lines.insert((file, run.line));
                    }
                }
            }
        }
        Self(lines)
    }

    /// Whether a copy of this function ran.
    pub fn has(&self, named: &Named<'_>) -> bool {
        let Some((file, first)) = named.function.source else {
            return false;
        };
        let runs = named.function.blocks.iter().flat_map(|it| &it.lines);
        let own = runs.filter(|it| it.inline_copy == 0 && it.instructions > 0);
        // What is of another file, or from above, somebody else wrote, and a macro put it there.
        let mut own = own.filter(|it| it.file == file && it.line >= first);
        let file = named.file(file);
        own.any(|it| file.is_some_and(|file| self.0.contains(&(file, it.line))))
    }
}
