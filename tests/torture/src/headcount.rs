//! How is the tool under test asked?
//!
//! Only as a user would ask it: by its command line and its CSV.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use headcount_ground::child::{self, Ended};

/// Where the `headcount` to be judged is.
pub struct Headcount {
    pub program: PathBuf,
}

/// What the tool says about one run of a program.
pub struct Said {
    /// Instructions executed, by function, in the order reported.
    pub executed: Vec<(String, u64)>,
    /// What it says it did not count.
    pub refused: Vec<String>,
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

    /// The counts of all runs since `folder` was made.
    pub fn report(&self, folder: &Path, limit: Duration) -> Result<Said> {
        let mut report = Command::new(&self.program);
        report.args(["report", "--by", "function", "--format", "csv"]);
        report
            .current_dir(folder)
            .env("HEADCOUNT_DIR", counter_files(folder));
        let ended = child::run(&mut report, folder, limit)?;
        if !ended.succeeded() {
            bail!(
                "{}: {}: {}",
                child::shown(&report),
                ended.end,
                ended.complaint()
            );
        }
        Ok(Said {
            executed: executed(&ended.stdout)?,
            refused: refused(&ended),
        })
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

fn refused(ended: &Ended) -> Vec<String> {
    let talk = String::from_utf8_lossy(&ended.stderr);
    let lines = talk.lines().filter(|line| line.contains("not counted"));
    lines
        .map(|line| line.trim_start_matches("headcount: ").to_owned())
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
}
