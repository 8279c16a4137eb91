//! Source text with the count of each line in the margin.

use super::fold::Fold;
use super::times::{LineTime, TimeColumns};
use super::values::{self, LineValues};
use super::width::{columns, pieces};
use super::{HEADING, Margin, NEVER, QUIET};
use crate::escape::{visible, visible_lines};
use crate::lines::LineCount;
use crate::number::thousands;
use crate::outcomes::LineBranches;
use anstyle::Style;
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

/// How to show a listing.
#[derive(Clone, Copy, Default)]
pub struct View<'a> {
    /// What to say of branches, by line.
    pub branches: Option<&'a BTreeMap<u32, LineBranches>>,
    /// What to fold away.
    pub fold: Option<Fold>,
    /// How many columns a row may have; longer lines go on in the next row.
    pub width: Option<usize>,
    /// What to say of time, by line.
    pub times: Option<&'a BTreeMap<u32, LineTime>>,
    /// What was counted by value, by line.
    pub values: Option<&'a LineValues<'a>>,
}

/// How far apart tab stops are.
const TAB: usize = 8;

/// The least room that text is given, however narrow the terminal.
const NARROWEST: usize = 16;

/// How much further to the right a line goes on in the next row.
const FURTHER: usize = 4;

/// The lines of one file, or some excerpts of it, each line with its count. A line without a
/// count holds no code; a `0` is marked, for its code never ran; of a `?` the code does not tell how
/// often it ran; a `-` was not counted.
pub fn listing(
    lines: &[String],
    counts: &BTreeMap<u32, LineCount>,
    excerpts: &[Excerpt],
    view: &View<'_>,
) -> String {
    let page = Page::new(lines, counts, view);
    page.show(excerpts, |_, text| text.to_owned(), |_| String::new())
}

/// A source file and the counts of its lines.
pub struct Page<'a> {
    lines: &'a [String],
    counts: &'a BTreeMap<u32, LineCount>,
    margin: Margin,
    number_width: usize,
    branches: Option<&'a BTreeMap<u32, LineBranches>>,
    fold: Option<Fold>,
    width: Option<usize>,
    times: Option<TimeColumns<'a>>,
    values: Option<&'a LineValues<'a>>,
}

/// A row of an excerpt.
pub enum Row {
    /// Number, counts, text.
    Line(u32, Option<LineCount>, String),
    /// So many lines are not shown.
    Folded(u32),
}

/// What stands before what is said of branches, behind the text.
const SAYS: &str = "  <- ";

impl<'a> Page<'a> {
    pub fn new(lines: &'a [String], counts: &'a BTreeMap<u32, LineCount>, view: &View<'a>) -> Self {
        Self {
            lines,
            counts,
            margin: Margin::of(counts.values().map(|it| it.count)),
            number_width: lines.len().to_string().len().max("line".len()),
            branches: view.branches.filter(|it| !it.is_empty()),
            fold: view.fold,
            width: view.width,
            times: view.times.and_then(TimeColumns::new),
            values: view.values,
        }
    }

    /// Without signs of heat in the margin: there are others.
    pub fn without_heat(mut self) -> Self {
        self.margin.has_heat = false;
        self
    }

    /// How many columns stand before the text of a line.
    pub fn before_text(&self) -> usize {
        let times = self.times.as_ref().map_or(0, TimeColumns::width);
        let margin = self.margin.width + "  ".len() + times;
        margin + " ".len() + self.number_width + " | ".len()
    }

    /// The rows of an excerpt.
    pub fn rows(&self, excerpt: &Excerpt) -> Vec<Row> {
        let first = with_heading(self.lines, *excerpt.lines.start());
        let last = (*excerpt.lines.end()).min(self.lines.len() as u32);
        let whole = vec![(first, last)];
        let shown = self.fold.map_or(whole, |it| it.stretches(self.counts));
        let mut rows = Vec::new();
        let mut next = first;
        for (begin, end) in shown {
            let (begin, end) = (begin.max(next), end.min(last));
            if begin > end {
                continue;
            }
            if begin > next {
                rows.push(Row::Folded(begin - next));
            }
            rows.extend((begin..=end).map(|number| self.line(number)));
            next = end + 1;
        }
        if next <= last {
            rows.push(Row::Folded(last - next + 1));
        }
        rows
    }

    fn line(&self, number: u32) -> Row {
        let count = self.counts.get(&number).copied();
        let text = self.lines.get(number as usize - 1);
        Row::Line(number, count, text.map_or(String::new(), |it| source(it)))
    }

    /// All excerpts, each line as `text_of` wants it, with the rows `below` it.
    pub fn show(
        &self,
        excerpts: &[Excerpt],
        text_of: impl Fn(Option<LineCount>, &str) -> String,
        below: impl Fn(u32) -> String,
    ) -> String {
        let mut out = String::new();
        for excerpt in excerpts {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&format!(
                "{HEADING}{}{HEADING:#}\n\n",
                visible_lines(&excerpt.heading)
            ));
            out.push_str(&self.titles());
            for row in self.rows(excerpt) {
                match row {
                    Row::Line(number, count, text) => {
                        self.show_line(number, count, &text_of(count, &text), &mut out);
                        out.push_str(&below(number));
                    }
                    Row::Folded(lines) => out.push_str(&self.folded(lines)),
                }
            }
        }
        out
    }

    fn titles(&self) -> String {
        let (width, number_width) = (self.margin.width, self.number_width);
        let times = self
            .times
            .as_ref()
            .map_or(String::new(), TimeColumns::titles);
        format!(
            "{QUIET}{:>width$}  {times} {:>number_width$}{QUIET:#}\n",
            "count", "line"
        )
    }

    /// One line, in as many rows as it takes.
    fn show_line(&self, number: u32, count: Option<LineCount>, text: &str, out: &mut String) {
        let number_width = self.number_width;
        let margin = self.margin.show_line(count);
        let times = self
            .times
            .as_ref()
            .map_or(String::new(), |it| it.show(number));
        let room = self.width.map(|it| it.saturating_sub(self.before_text()));
        let room = room.map_or(usize::MAX, |room| room.max(NARROWEST));
        let indent = (text.len() - text.trim_start().len() + FURTHER).min(room / 2);
        let mut rows = pieces(text, room, room - indent);
        let says = self.outcome(number, count);
        // What is said of branches goes on in the next row, too, if it must.
        let last =
            rows.last().map_or(0, |it| columns(it)) + if rows.len() > 1 { indent } else { 0 };
        if says
            .as_ref()
            .is_some_and(|(_, it)| last + columns(it) > room)
        {
            rows.push("");
        }
        for (place, piece) in rows.iter().enumerate() {
            let mut row = match place {
                0 => format!("{margin}{times} {QUIET}{number:>number_width$} |{QUIET:#} {piece}"),
                _ => {
                    let before = self.before_text() - "| ".len();
                    format!("{:before$}{QUIET}|{QUIET:#} {:indent$}{piece}", "", "")
                }
            };
            row.truncate(row.trim_end().len());
            if let (true, Some((style, words))) = (place + 1 == rows.len(), &says) {
                row.push_str(&format!("{style}{words}{style:#}"));
            }
            out.push_str(&row);
            out.push('\n');
        }
        self.show_values(number, indent, room, out);
    }

    /// What was counted by value on a line, in rows of their own below it.
    fn show_values(&self, number: u32, indent: usize, room: usize, out: &mut String) {
        let before = self.before_text() - "| ".len();
        let found = self.values.and_then(|it| it.get(&number));
        for (tally, values) in found.into_iter().flatten() {
            let words = format!("<- {}", values::words(tally, values));
            let further = (indent + FURTHER).min(room / 2);
            for (place, piece) in pieces(&words, room - indent, room - further)
                .into_iter()
                .enumerate()
            {
                let indent = if place == 0 { indent } else { further };
                let piece = piece.trim_end();
                out.push_str(&format!(
                    "{QUIET}{:before$}| {:indent$}{piece}{QUIET:#}\n",
                    "", ""
                ));
            }
        }
    }

    /// What is said of the branches of a line. Outcomes that were never seen are for the eye, too.
    fn outcome(&self, number: u32, count: Option<LineCount>) -> Option<(Style, String)> {
        let branches = self.branches?.get(&number)?;
        let text = self.lines.get(number as usize - 1).map(String::as_str);
        let outcome = branches.outcome(number, text, count.as_ref());
        let style = if outcome.is_partial() { NEVER } else { QUIET };
        Some((style, format!("{SAYS}{}", outcome.words()?)))
    }

    /// What stands in place of lines that are not shown.
    fn folded(&self, lines: u32) -> String {
        let before = self.before_text() - " | ".len();
        let lines = match lines {
            1 => "1 line".to_owned(),
            many => format!("{} lines", thousands(many.into())),
        };
        format!("{QUIET}{:>before$} : {lines}{QUIET:#}\n", "...")
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
        column += columns(&piece);
        out.push_str(&piece);
    }
    out
}
