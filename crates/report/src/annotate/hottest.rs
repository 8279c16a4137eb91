//! The hottest lines of all files, to be read before these.

use super::{HEADING, Margin};
use crate::count::Count;
use crate::escape::visible;
use crate::lines::LineCount;
use crate::shorten::{shorten_end, shorten_start};
use std::collections::BTreeMap;

/// A file whose lines may be among them: its name, its text, and its counts.
pub type Counts<'a> = (&'a str, &'a [String], &'a BTreeMap<u32, LineCount>);

/// No place takes more columns.
const WIDEST_PLACE: usize = 32;

/// So many lines of these files, the one with the most instructions first.
pub fn hottest(files: &[Counts<'_>], most: usize, width: usize) -> String {
    let lines = files.iter().flat_map(|(file, text, counts)| {
        let line = |(number, count): (&u32, &LineCount)| {
            let text = text.get(number.checked_sub(1)? as usize)?;
            let hot = heat(count).filter(|it| *it > 0)?;
            Some((hot, format!("{}:{number}", visible(file)), *count, text))
        };
        counts.iter().filter_map(line)
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_key(|(hot, ..)| std::cmp::Reverse(*hot));
    lines.truncate(most);
    let margin = Margin::of(lines.iter().map(|it| it.2.count));
    let executed = |count: &LineCount| match count.executed {
        Count::Unknown => String::new(),
        known => known.to_string(),
    };
    let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let instructions = widest(&mut lines.iter().map(|it| executed(&it.2).len()));
    let instructions = instructions.max("executed".len());
    let place = widest(&mut lines.iter().map(|it| it.1.chars().count()));
    let place = place.clamp("line".len(), WIDEST_PLACE);
    let before = instructions + margin.width + place + 4 * 2;
    let mut shown = format!(
        "{HEADING}Hottest lines{HEADING:#}\n\n{:>instructions$}  {:>counts$}    {:place$}  text\n",
        "executed",
        "count",
        "line",
        counts = margin.width,
    );
    for (_, line, count, text) in lines {
        let text = visible(text.trim());
        shown.push_str(&format!(
            "{:>instructions$}  {}  {:place$}  {}\n",
            executed(&count),
            margin.show_line(Some(count)),
            shorten_start(&line, place),
            shorten_end(&text, width.saturating_sub(before).max(8)),
        ));
    }
    shown
}

/// Statements of scripts have no instructions of their own.
fn heat(count: &LineCount) -> Option<u64> {
    count.executed.value().or(count.count.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: u64, executed: u64) -> LineCount {
        LineCount {
            count: Count::Exact(count),
            executed: Count::Exact(executed),
            counted: true,
            may_have_run: count > 0,
        }
    }

    #[test]
    fn the_hottest_come_first_from_whatever_file() {
        let text = ["first", "  second;", "third"].map(str::to_owned);
        let one = BTreeMap::from([(1, line(9, 9)), (2, line(5, 500))]);
        let other = BTreeMap::from([(1, line(0, 0)), (3, line(70, 70)), (4, line(1, 999))]);
        let files: [Counts<'_>; 2] = [("one.c", &text, &one), ("other.c", &text, &other)];
        let shown = hottest(&files, 2, 80);
        let rows: Vec<Vec<&str>> = shown
            .lines()
            .map(|it| it.split_whitespace().collect())
            .collect();
        assert_eq!(rows[2], ["executed", "count", "line", "text"]);
        assert_eq!(rows[3][..1], ["500"]);
        assert_eq!(rows[3][rows[3].len() - 2..], ["one.c:2", "second;"]);
        assert_eq!(rows[4][rows[4].len() - 2..], ["other.c:3", "third"]);
        assert_eq!(rows.len(), 5);
    }
}
