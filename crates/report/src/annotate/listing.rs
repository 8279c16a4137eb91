//! Source text with the count of each line in the margin.

use super::{HEADING, Margin, QUIET};
use crate::count::Count;
use crate::escape::{visible, visible_lines};
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
/// count holds no code; a `0` is marked, for its code never ran; a `-` was not counted.
pub fn listing(
    lines: &[String],
    counts: &BTreeMap<u32, LineCount>,
    excerpts: &[Excerpt],
) -> String {
    Page::new(lines, counts).show(excerpts, |_, text| text.to_owned())
}

/// A source file and the counts of its lines.
pub struct Page<'a> {
    lines: &'a [String],
    counts: &'a BTreeMap<u32, LineCount>,
    margin: Margin,
    number_width: usize,
}

impl<'a> Page<'a> {
    pub fn new(lines: &'a [String], counts: &'a BTreeMap<u32, LineCount>) -> Self {
        Self {
            lines,
            counts,
            margin: Margin::of(counts.values().map(|it| it.count)),
            number_width: lines.len().to_string().len().max("line".len()),
        }
    }

    /// How many columns stand before the text of a line.
    pub fn before_text(&self) -> usize {
        self.margin.width + "  ".len() + " ".len() + self.number_width + " | ".len()
    }

    /// The lines of an excerpt: number, count, text.
    pub fn lines(&self, excerpt: &Excerpt) -> impl Iterator<Item = (u32, Option<Count>, String)> {
        let first = with_heading(self.lines, *excerpt.lines.start());
        let shown = first..=*excerpt.lines.end();
        let all = (1_u32..).zip(self.lines);
        let wanted = all.filter(move |(number, _)| shown.contains(number));
        wanted.map(|(number, line)| {
            let count = self.counts.get(&number).map(|it| it.count);
            (number, count, source(line))
        })
    }

    /// One line, as listings show it.
    pub fn row(&self, number: u32, count: Option<Count>, text: &str) -> String {
        let number_width = self.number_width;
        let margin = self.margin.show(count);
        let row = format!("{margin} {QUIET}{number:>number_width$} |{QUIET:#} {text}");
        format!("{}\n", row.trim_end())
    }

    /// All excerpts, each line as `text_of` wants it.
    pub fn show(
        &self,
        excerpts: &[Excerpt],
        text_of: impl Fn(Option<Count>, &str) -> String,
    ) -> String {
        let (width, number_width) = (self.margin.width, self.number_width);
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
            for (number, count, text) in self.lines(excerpt) {
                out.push_str(&self.row(number, count, &text_of(count, &text)));
            }
        }
        out
    }
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

/// How many columns a piece of source takes when it is shown.
pub fn expanded_width(piece: &str) -> usize {
    source(piece).chars().count()
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
