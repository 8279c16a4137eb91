//! Which differences are understood?
//!
//! A table of four columns: program, level, function, reason. Every line is
//! one difference that somebody has looked at. A line that no longer matches
//! anything is told, so that the table cannot rot, unless its reason begins
//! with "sometimes". A line `route: NAME` says which way of counting the lines
//! after it are about.

use std::cell::Cell;
use std::path::Path;

use anyhow::{Context, Result};

/// Stands for the whole run where the judge could not finish it.
pub const WHOLE_RUN: &str = "-";

pub struct Explained {
    rows: Vec<Row>,
}

struct Row {
    program: String,
    level: String,
    function: String,
    reason: String,
    used: Cell<bool>,
}

impl Explained {
    /// The rows about one route.
    pub fn read(table: &Path, route: &str) -> Result<Explained> {
        let text = std::fs::read_to_string(table).with_context(|| table.display().to_string())?;
        Explained::parse(&text, route).with_context(|| table.display().to_string())
    }

    fn parse(text: &str, route: &str) -> Result<Explained> {
        let mut rows = Vec::new();
        let mut about = "";
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix("route: ") {
                about = name.trim();
                continue;
            }
            let row = row(line)
                .with_context(|| format!("line {}: want PROGRAM LEVEL FUNCTION REASON", at + 1))?;
            if about == route {
                rows.push(row);
            }
        }
        Ok(Explained { rows })
    }

    /// The reason given for this difference. `*` as a level stands for all.
    pub fn reason(&self, program: &str, level: &str, function: &str) -> Option<&str> {
        let row = self.rows.iter().find(|row| {
            row.program == program
                && (row.level == "*" || row.level == level)
                && row.function == function
        })?;
        row.used.set(true);
        Some(&row.reason)
    }

    /// Rows about programs that were compared, in which nothing differed.
    pub fn stale<'a>(&'a self, compared: &'a [(&str, &str)]) -> impl Iterator<Item = String> + 'a {
        let was_compared = |row: &Row| {
            compared.iter().any(|(program, level)| {
                row.program == *program && (row.level == "*" || row.level == *level)
            })
        };
        let stale = self.rows.iter().filter(move |row| {
            !row.used.get() && !row.reason.starts_with("sometimes") && was_compared(row)
        });
        stale.map(|row| format!("{} {} {}", row.program, row.level, row.function))
    }
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let (program, level, function) = (words.next()?, words.next()?, words.next()?);
    let reason = words.collect::<Vec<_>>().join(" ");
    let used = Cell::new(false);
    (!reason.is_empty()).then_some(Row {
        program,
        level,
        function,
        reason,
        used,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_explains_its_function_only_and_unused_rows_are_told() {
        let table = "# comment\n\nroute: cc\npr1 O2 main a signal ends it\npr2 * f reads the clock\npr2 * g sometimes\n\
                     route: run\npr1 O0 main another matter\n";
        let table = Explained::parse(table, "cc").unwrap();
        assert_eq!(table.reason("pr1", "O2", "main"), Some("a signal ends it"));
        assert_eq!(table.reason("pr1", "O0", "main"), None);
        assert_eq!(table.reason("pr1", "O2", "f"), None);
        let stale: Vec<String> = table.stale(&[("pr1", "O2"), ("pr2", "O0")]).collect();
        assert_eq!(stale, ["pr2 * f"]);
        assert_eq!(table.stale(&[("pr1", "O2")]).count(), 0);
    }

    #[test]
    fn a_row_without_a_reason_is_refused() {
        assert!(Explained::parse("route: cc\npr1 O2 main\n", "cc").is_err());
    }
}
