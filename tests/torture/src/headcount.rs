//! How is the tool under test asked?
//!
//! Only as a user would ask it: by its command line and its CSV.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use headcount_ground::child;
use serde_json::Value;

/// Where the `headcount` to be judged is.
pub struct Headcount {
    pub program: PathBuf,
}

/// What the tool says about one run of a program.
pub struct Said {
    /// Instructions executed, by function, in the order reported.
    pub executed: Vec<(String, u64)>,
    pub refused: Vec<Refusal>,
    /// What it says makes its counts uncertain.
    pub notes: Vec<String>,
}

/// Something the tool says it did not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A function, or a file.
    pub subject: String,
    pub reason: String,
}

impl Headcount {
    pub fn find(program: &Path) -> Result<Headcount> {
        let program = program.canonicalize().with_context(|| {
            format!(
                "{}: no such program; cargo build --release -p headcount",
                program.display()
            )
        })?;
        Ok(Headcount { program })
    }

    /// The compiler's command line, with counters.
    pub fn compiler(&self, compiler: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["cc", "--", compiler]);
        command
    }

    /// A command whose counter files go to `folder` and nowhere else.
    pub fn counted(&self, mut command: Command, folder: &Path) -> Command {
        command.env("HEADCOUNT_DIR", counter_files(folder));
        command
    }

    /// The counts of the run in `folder`. The counts are read from the CSV; what
    /// a CSV has no place for, from the JSON.
    pub fn report(&self, folder: &Path, limit: Duration) -> Result<Said> {
        let executed = executed(&self.report_as("csv", folder, limit)?)?;
        let rest: Value = serde_json::from_slice(&self.report_as("json", folder, limit)?)?;
        Ok(Said {
            executed,
            refused: refused(&rest),
            notes: notes(&rest),
        })
    }

    fn report_as(&self, format: &str, folder: &Path, limit: Duration) -> Result<Vec<u8>> {
        let mut report = Command::new(&self.program);
        report.args([
            "report",
            "--by",
            "function",
            "--no-demangle",
            "--format",
            format,
        ]);
        report
            .current_dir(folder)
            .env("HEADCOUNT_DIR", counter_files(folder));
        child::run_or_bail(&mut report, folder, limit)
    }
}

fn counter_files(folder: &Path) -> PathBuf {
    folder.join("headcount.counts")
}

fn executed(csv: &[u8]) -> Result<Vec<(String, u64)>> {
    let mut reader = csv::Reader::from_reader(csv);
    let headings = reader.headers()?.clone();
    let column = |name: &str| {
        let at = headings.iter().position(|heading| heading == name);
        at.with_context(|| format!("the report has no column {name}"))
    };
    let (function, executed) = (column("function")?, column("executed")?);
    reader
        .records()
        .map(|record| {
            let record = record?;
            let count = record[executed]
                .parse()
                .with_context(|| record[executed].to_owned())?;
            Ok((record[function].to_owned(), count))
        })
        .collect()
}

fn refused(report: &Value) -> Vec<Refusal> {
    let text =
        |refusal: &Value, field: &str| refusal[field].as_str().unwrap_or_default().to_owned();
    let all = report["refused"].as_array().into_iter().flatten();
    all.map(|it| Refusal {
        subject: text(it, "subject"),
        reason: text(it, "reason"),
    })
    .collect()
}

fn notes(report: &Value) -> Vec<String> {
    let all = report["notes"].as_array().into_iter().flatten();
    all.filter_map(|note| note.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name() {
        let csv = "module,function,file,line,calls,executed,instructions,never\n\
                   prog,main,a.c,3,1,42,50,8\nprog,\"f<a, b>\",,0,2,7,7,0\n";
        let expected = [("main".to_owned(), 42), ("f<a, b>".to_owned(), 7)];
        assert_eq!(executed(csv.as_bytes()).unwrap(), expected);
        assert!(executed(b"module,function\n").is_err());
    }

    #[test]
    fn refusals_and_notes_are_found() {
        let report = r#"{"rows":[],"refused":[{"module":"m","subject":"f","file":"a.s","reason":"odd","line":3}],
            "notes":["it was killed"]}"#;
        let report = serde_json::from_str(report).unwrap();
        let odd = Refusal {
            subject: "f".to_owned(),
            reason: "odd".to_owned(),
        };
        assert_eq!(refused(&report), [odd]);
        assert_eq!(notes(&report), ["it was killed"]);
    }
}
