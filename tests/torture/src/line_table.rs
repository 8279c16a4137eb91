//! For which lines of source has this executable code of their own?
//!
//! Statements can come to nothing: `va_end` does, and so does an arm that the
//! compiler sees is never taken, even without optimisation. gcov counts those
//! all the same. `readelf` says for which lines a statement begins in the code;
//! it reads debug information with no help from us.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use headcount_ground::child;

/// Lines, by the name of their file without its folder.
pub type Lines = BTreeSet<(String, u32)>;

pub fn of(executable: &Path, folder: &Path) -> Result<Lines> {
    let mut readelf = Command::new("readelf");
    readelf.args(["--debug-dump=decodedline", "--wide"]);
    let listing = child::run_or_bail(readelf.arg(executable), folder, Duration::from_secs(60))?;
    Ok(parse(&String::from_utf8_lossy(&listing)))
}

/// Rows `NAME LINE ADDRESS [VIEW] x`; the `x` is on those that begin a statement.
fn parse(listing: &str) -> Lines {
    let rows = listing.lines().filter_map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [name, line, address, .., "x"] = words.as_slice() else {
            return None;
        };
        let line = line.parse().ok()?;
        address
            .starts_with("0x")
            .then(|| ((*name).to_owned(), line))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_begin_a_statement_are_found() {
        let listing = "Contents of the .debug_line section:\n\nCU: /x/a.c:\n\
            File name    Line number    Starting address    View    Stmt\n\
            a.c     6     0x1149     x\na.c     7     0x114d     1     x\n\
            a.c     8     0x1150\na.c     -     0x1193\n";
        let found = [("a.c".to_owned(), 6), ("a.c".to_owned(), 7)];
        assert_eq!(parse(listing), Lines::from(found));
    }
}
