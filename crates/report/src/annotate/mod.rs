//! Counts in the margin of source text, or of instructions.
//!
//! Listings carry colour as ANSI sequences; whoever prints them strips those where they do not
//! belong. Nothing else in a listing can be such a sequence: source text and names are escaped.

mod assembly;
mod excerpts;
mod find;
mod listing;

pub use assembly::assembly;
pub use excerpts::excerpts;
pub use find::{Chosen, choose, is_of_the_system, similar};
pub use listing::{Excerpt, listing};

use crate::number::thousands;
use anstyle::{AnsiColor, Style};

const QUIET: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();
const NEVER: Style = AnsiColor::Cyan.on_default().bold();
const WARM: Style = AnsiColor::Yellow.on_default();
const HOT: Style = AnsiColor::Red.on_default().bold();

/// The colour of a count beside the largest of its listing.
fn heat(count: u64, most: u64) -> Style {
    match count {
        0 => NEVER,
        _ if count >= most / 2 && most > 1 => HOT,
        _ if count >= most / 10 && most > 1 => WARM,
        _ => Style::new(),
    }
}

/// A count in the margin, and a mark beside it where nothing ever ran.
fn margin(count: Option<u64>, most: u64, width: usize) -> String {
    match count {
        None => format!("{:width$}  ", ""),
        Some(count) => {
            let style = heat(count, most);
            let mark = if count == 0 { '!' } else { ' ' };
            format!("{style}{:>width$} {mark}{style:#}", thousands(count))
        }
    }
}
