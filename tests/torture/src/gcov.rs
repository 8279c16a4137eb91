//! How often did each line run, says gcov?
//!
//! GCC's own counters, in a build of their own, without optimisation.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use headcount_ground::child;
use serde_json::Value;

/// Counts by source file and line.
pub type ByLine = BTreeMap<(PathBuf, u32), u64>;

/// How often each function was called, by its name and the line where it begins.
pub type ByFunction = BTreeMap<(String, u32), u64>;

/// What the build and the run in `folder` left behind.
pub fn lines(folder: &Path, limit: Duration) -> Result<ByLine> {
    let mut lines = ByLine::new();
    for said in said(folder, limit)? {
        add(&said, &mut lines)?;
    }
    Ok(lines)
}

/// The calls of functions, by the same.
pub fn functions(folder: &Path, limit: Duration) -> Result<ByFunction> {
    let mut functions = ByFunction::new();
    for said in said(folder, limit)? {
        let all: Value = serde_json::from_slice(&said)?;
        let files = all["files"].as_array().context("no files")?.iter();
        for it in files.flat_map(|file| file["functions"].as_array().into_iter().flatten()) {
            let name = it["name"].as_str().context("a function without a name")?;
            let line = it["start_line"].as_u64().context("no line")?;
            let count = it["execution_count"].as_u64().context("no count")?;
            // A function of a header is told once for each file that includes it.
            let key = (name.to_owned(), u32::try_from(line)?);
            *functions.entry(key).or_default() += count;
        }
    }
    Ok(functions)
}

/// gcov's own words on each object.
fn said(folder: &Path, limit: Duration) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "gcda")
        {
            let mut gcov = Command::new("gcov");
            gcov.args(["--json-format", "--stdout"]).arg(&path);
            all.push(child::run_or_bail(gcov.current_dir(folder), folder, limit)?);
        }
    }
    Ok(all)
}

/// A line of a function with several instances is told once for each.
fn add(said: &[u8], lines: &mut ByLine) -> Result<()> {
    let all: Value = serde_json::from_slice(said)?;
    for file in all["files"].as_array().context("no files")? {
        let name = file["file"].as_str().context("a file without a name")?;
        for line in file["lines"].as_array().context("no lines")? {
            let number = line["line_number"].as_u64().context("no number")?;
            let count = line["count"].as_u64().context("no count")?;
            let key = (PathBuf::from(name), u32::try_from(number)?);
            *lines.entry(key).or_default() += count;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_file_and_line() {
        let said = r#"{"files":[{"file":"/x/a.c","lines":[{"line_number":3,"count":7,"branches":[]},
            {"line_number":4,"count":0}]}]}"#;
        let mut lines = ByLine::new();
        add(said.as_bytes(), &mut lines).unwrap();
        let a = PathBuf::from("/x/a.c");
        assert_eq!(lines, ByLine::from([((a.clone(), 3), 7), ((a, 4), 0)]));
        assert!(add(b"{}", &mut lines).is_err());
    }
}
