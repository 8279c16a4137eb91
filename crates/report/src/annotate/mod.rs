//! Counts in the margin of source text, or of instructions.
//!
//! Listings carry colour as ANSI sequences; whoever prints them strips those where they do not
//! belong. Nothing else in a listing can be such a sequence: source text and names are escaped.

mod assembly;
mod beside;
mod columns;
mod excerpts;
mod find;
mod histogram;
mod listing;

pub use assembly::assembly;
pub use beside::beside;
pub use columns::{ColumnCount, column_counts, columns};
pub use excerpts::excerpts;
pub use find::{Chosen, choose, is_of_the_system, similar};
pub use histogram::{Scale, histogram};
pub use listing::{Excerpt, listing};

use crate::count::Count;
use anstyle::{AnsiColor, Style};

const QUIET: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();
const NEVER: Style = AnsiColor::Cyan.on_default().bold();
const WARM: Style = AnsiColor::Yellow.on_default();
const HOT: Style = AnsiColor::Red.on_default().bold();

/// The colour of a count beside the largest of its listing.
fn heat(count: Count, most: u64) -> Style {
    match count.value() {
        None => QUIET,
        Some(0) => NEVER,
        Some(count) if count >= most / 2 && most > 1 => HOT,
        Some(count) if count >= most / 10 && most > 1 => WARM,
        Some(_) => Style::new(),
    }
}

/// Counts in the margin of one listing.
struct Margin {
    most: u64,
    width: usize,
}

impl Margin {
    fn of(counts: impl Iterator<Item = Count>) -> Self {
        let mut margin = Self {
            most: 0,
            width: "count".len(),
        };
        for count in counts {
            margin.most = margin.most.max(count.value().unwrap_or(0));
            margin.width = margin.width.max(count.to_string().chars().count());
        }
        margin
    }

    /// A count, and a mark beside it where nothing ever ran; blank where there is no code.
    fn show(&self, count: Option<Count>) -> String {
        let width = self.width;
        let Some(count) = count else {
            return format!("{:width$}  ", "");
        };
        let style = heat(count, self.most);
        let mark = if count.is_never() { '!' } else { ' ' };
        format!("{style}{count:>width$} {mark}{style:#}")
    }
}
