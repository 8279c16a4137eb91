//! Source text with the count of each line in the margin.

use super::{HEADING, QUIET, margin};
use crate::escape::{visible, visible_lines};
use crate::number::thousands;
use crate::source::LineCount;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// A piece of a source file under its own heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// What stands above it.
    pub heading: String,
    /// The lines; those beyond the end of the file are left out.
    pub lines: RangeInclusive<u32>,
}

/// How far apart tab stops are.
const TAB: usize = 8;

/// The lines of one file, or some excerpts of it, each line with its count. A line without a
/// count holds no code; a `0` is marked, for its code never ran.
pub fn listing(
    lines: &[String],
    counts: &BTreeMap<u32, LineCount>,
    excerpts: &[Excerpt],
) -> String {
    let most = counts.values().map(|it| it.count).max().unwrap_or(0);
    let width = thousands(most).len().max("count".len());
    let number_width = lines.len().to_string().len().max("line".len());
    let mut out = String::new();
    for excerpt in excerpts {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!(
            "{HEADING}{}{HEADING:#}\n\n",
            visible_lines(&excerpt.heading)
        ));
        out.push_str(&format!(
            "{QUIET}{:>width$}   {:>number_width$}{QUIET:#}\n",
            "count", "line"
        ));
        let first = with_heading(lines, *excerpt.lines.start());
        for (number, line) in (1_u32..).zip(lines) {
            if number < first || number > *excerpt.lines.end() {
                continue;
            }
            let margin = margin(counts.get(&number).map(|it| it.count), most, width);
            let row = format!(
                "{margin} {QUIET}{number:>number_width$} |{QUIET:#} {}",
                source(line)
            );
            out.push_str(row.trim_end());
            out.push('\n');
        }
    }
    out
}

/// Debug information often says that a function begins at its brace. Its heading, up to the blank
/// line above it, belongs to it too.
fn with_heading(lines: &[String], first: u32) -> u32 {
    const LONGEST: usize = 8;
    let is_brace = |line: &String| line.trim_start().starts_with(['{', ')']);
    let index = (first as usize).saturating_sub(1);
    if !lines.get(index).is_some_and(is_brace) {
        return first.max(1);
    }
    let above = lines[..index].iter().rev().take(LONGEST);
    let heading = above.take_while(|line| !line.trim().is_empty()).count();
    first - heading as u32
}

/// A source line: tabs expanded, nothing left that a terminal would obey.
pub fn source(line: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for (place, piece) in line.split('\t').enumerate() {
        if place > 0 {
            let blanks = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        }
        let piece = visible(piece);
        column += piece.chars().count();
        out.push_str(&piece);
    }
    out
}
