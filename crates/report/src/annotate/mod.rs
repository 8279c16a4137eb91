//! Counts in the margin of source text, or of instructions.
//!
//! Listings carry colour as ANSI sequences; whoever prints them strips those where they do not
//! belong. Nothing else in a listing can be such a sequence: source text and names are escaped.

mod assembly;
mod beside;
mod columns;
mod excerpts;
mod find;
mod fold;
mod histogram;
mod hottest;
mod json;
mod listing;
mod times;
mod values;
mod width;

pub use assembly::assembly;
pub use beside::beside;
pub use columns::{ColumnCount, column_counts, columns};
pub use excerpts::excerpts;
pub use find::{Chosen, Fit, choose, fit, functions, own};
pub use fold::{Around, Fold};
pub use histogram::{Scale, histogram};
pub use hottest::hottest;
pub use json::{functions_as_json, lines_as_json};
pub use listing::{Excerpt, View, listing};
pub use times::{LineTime, line_times};
pub use values::{LineValues, line_values};

pub use crate::outcomes::{BranchLines, LineBranches, Outcome};

use crate::callees::{Callees, FindPointers, FindTransfers};
use crate::checks::Checks;
use crate::count::Count;
use crate::lines::LineCount;
use crate::outcomes;
use anstyle::{AnsiColor, Style};
use headcount_model::Counted;

/// The branches of every line of every file; with ways into failed checks, if somebody asks for them.
pub fn line_branches(
    counted: &[Counted],
    chosen: &Chosen,
    transfers: FindTransfers<'_>,
    pointers: FindPointers<'_>,
    with_checks: bool,
) -> BranchLines {
    let callees = Callees::new(counted, transfers, pointers);
    outcomes::line_branches(
        counted,
        |it| chosen.may_be_in(it),
        &Checks::new(&callees, with_checks),
    )
}

const QUIET: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();
const NEVER: Style = AnsiColor::Cyan.on_default().bold();
const WARM: Style = AnsiColor::Yellow.on_default();
const HOT: Style = AnsiColor::Red.on_default().bold();

/// The colour of a count beside the largest of its listing.
fn heat(count: Count, most: u64) -> Style {
    match count.value() {
        None => QUIET,
        Some(0) => Style::new(),
        Some(count) if count >= most / 2 && most > 1 => HOT,
        Some(count) if count >= most / 10 && most > 1 => WARM,
        Some(_) => Style::new(),
    }
}

/// Signs of heat, from little to most. They tell without colours, too.
const HEAT: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Counts in the margin of one listing.
struct Margin {
    most: u64,
    width: usize,
    /// Whether there is a sign of heat beside a count.
    has_heat: bool,
}

impl Margin {
    fn of(counts: impl Iterator<Item = Count>) -> Self {
        let mut margin = Self {
            most: 0,
            width: "count".len(),
            has_heat: true,
        };
        for count in counts {
            margin.most = margin.most.max(count.value().unwrap_or(0));
            margin.width = margin.width.max(count.to_string().chars().count());
        }
        margin
    }

    /// The count of a line; blank where there is no code.
    fn show_line(&self, line: Option<LineCount>) -> String {
        let width = self.width;
        match line {
            None => format!("{:width$}  ", ""),
            Some(line) if line.counted && !line.count.is_known() => {
                format!("{QUIET}{:>width$}  {QUIET:#}", line.shown())
            }
            Some(line) => self.show(line.count, !line.ran()),
        }
    }

    /// A count, and a mark beside it where nothing ever ran.
    fn show(&self, count: Count, never: bool) -> String {
        let width = self.width;
        let never = never && count.is_never();
        let style = if never { NEVER } else { heat(count, self.most) };
        let mark = match count.value() {
            _ if never => '!',
            Some(value) if self.has_heat => sign(value, self.most),
            _ => ' ',
        };
        format!("{style}{count:>width$} {mark}{style:#}")
    }
}

/// Each sign stands for twice as much as the one before it; the last one for the most. What ran
/// less than a two hundred and fiftieth of that is cold.
fn sign(count: u64, most: u64) -> char {
    let halvings = most
        .checked_div(count)
        .map_or(u32::MAX, |it| it.max(1).ilog2());
    let place = HEAT.len().checked_sub(1 + halvings as usize);
    match place {
        Some(place) if most > 1 => HEAT[place],
        _ => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_of_heat_stands_for_a_part_of_the_most() {
        let signs: String = [1000, 501, 500, 250, 100, 8, 4, 3]
            .map(|it| sign(it, 1000))
            .iter()
            .collect();
        assert_eq!(signs, "██▇▆▅▂▁ ");
        assert_eq!(sign(1, 1), ' ');
        assert_eq!(sign(u64::MAX, u64::MAX), '█');
    }
}
