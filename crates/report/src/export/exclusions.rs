//! What the source asks coverage tools to leave out: the markers of lcov.

use std::collections::BTreeSet;

/// Lines that are left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// All of them.
    pub lines: BTreeSet<u32>,
    /// Only their branches.
    pub branches: BTreeSet<u32>,
}

impl Exclusions {
    /// Reads `LCOV_EXCL_LINE`, `LCOV_EXCL_START` to `LCOV_EXCL_STOP` (both included, as lcov has
    /// it; to the end of the file if there is no stop), and the same with `BR` for branches.
    pub fn of(source: &[String]) -> Self {
        Self {
            lines: marked(source, "LCOV_EXCL_"),
            branches: marked(source, "LCOV_EXCL_BR_"),
        }
    }
}

fn marked(source: &[String], marker: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(source) {
        let words = marks(line, marker);
        let has = |word: &str| words.contains(&word);
        is_inside |= has("START");
        if is_inside || has("LINE") {
            found.insert(number);
        }
        is_inside &= !has("STOP");
    }
    found
}

/// The words that follow a marker in a line.
fn marks<'a>(line: &'a str, marker: &str) -> Vec<&'a str> {
    let mut words = Vec::new();
    for (at, _) in line.match_indices(marker) {
        let rest = &line[at + marker.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.push(&rest[..end.unwrap_or(rest.len())]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_where_lcov_finds_them() {
        let source = "\
a
abort(); // LCOV_EXCL_LINE: never
/* LCOV_EXCL_START */
b
/* LCOV_EXCL_STOP */ c
if (d) // LCOV_EXCL_BR_LINE
// LCOV_EXCL_BR_START
if (e)
// LCOV_EXCL_BR_STOP
f // LCOV_EXCL_LINES, LCOV_EXCL_STOP
g // LCOV_EXCL_START";
        let source: Vec<String> = source.lines().map(str::to_owned).collect();
        let found = Exclusions::of(&source);
        assert_eq!(found.lines, BTreeSet::from([2, 3, 4, 5, 11]));
        assert_eq!(found.branches, BTreeSet::from([6, 7, 8, 9]));
    }
}
