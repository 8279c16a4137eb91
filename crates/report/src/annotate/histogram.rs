//! Source text with a bar beside each line: how often it ran, for the eye.

use super::fold::Fold;
use super::listing::{Excerpt, Page, Row, View};
use super::width::columns;
use crate::count::Count;
use crate::lines::LineCount;
use std::collections::BTreeMap;

/// How long the bars are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// One mark an execution; a bar that does not fit is cut, and ends in `>`.
    Full,
    /// The longest bar fills the width, the others are in proportion to it.
    Scaled,
}

/// The least room that text and bars are given, however narrow the terminal.
const NARROWEST: usize = 24;

/// What stands between text and bar.
const BETWEEN: &str = " | ";

/// The lines of one file, or some excerpts of it, each line with its count, its text (cut where
/// that is long) and its bar, `width` columns in all.
pub fn histogram(
    lines: &[String],
    counts: &BTreeMap<u32, LineCount>,
    excerpts: &[Excerpt],
    fold: Option<Fold>,
    scale: Scale,
    width: usize,
) -> String {
    let view = View {
        fold,
        ..View::default()
    };
    let page = Page::new(lines, counts, &view).without_heat();
    let (mut longest, mut most) = (0, 0);
    for row in excerpts.iter().flat_map(|it| page.rows(it)) {
        if let Row::Line(_, count, text) = row {
            longest = longest.max(columns(&text));
            most = most.max(count.and_then(|it| it.count.value()).unwrap_or(0));
        }
    }
    let room = width.saturating_sub(page.before_text() + BETWEEN.len());
    let room = room.max(NARROWEST);
    let text_width = longest.min(room / 2);
    let bar_width = room - text_width;
    let text_of = |count: Option<LineCount>, text: &str| {
        let bar = count.map_or(String::new(), |it| match scale {
            Scale::Full => full(it.count, bar_width),
            Scale::Scaled => scaled(it.count, most, bar_width),
        });
        let text = shortened(text, text_width);
        let blanks = text_width.saturating_sub(columns(&text));
        format!("{text}{:blanks$}{BETWEEN}{bar}", "")
    };
    page.show(excerpts, text_of, |_| String::new())
}

fn full(count: Count, width: usize) -> String {
    let value = count.value().unwrap_or(0);
    let marks = usize::try_from(value).unwrap_or(usize::MAX);
    let goes_on = matches!(count, Count::AtLeast(_)) || marks > width;
    match goes_on {
        true => format!("{}>", "*".repeat(marks.min(width - 1))),
        false => "*".repeat(marks),
    }
}

/// What ran at all has a mark, however few.
fn scaled(count: Count, most: u64, width: usize) -> String {
    let value = u128::from(count.value().unwrap_or(0));
    let most = u128::from(most.max(1));
    let rounded = (value * width as u128 + most / 2) / most;
    let least = usize::from(value > 0);
    "*".repeat((rounded as usize).clamp(least, width))
}

/// The beginning of a text that is too long, and dots.
fn shortened(text: &str, width: usize) -> String {
    const DOTS: &str = "...";
    if columns(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(DOTS.len());
    let mut kept = String::new();
    for c in text.chars() {
        if columns(&kept) + columns(c.encode_utf8(&mut [0; 4])) > room {
            break;
        }
        kept.push(c);
    }
    kept + &DOTS[..width.min(DOTS.len())]
}
