//! Tracefiles of lcov (`man geninfo`), with the records that every version reads.

use super::coverage::{Coverage, CoveredFile, CoveredFunction};
use super::limit::Limit;
use super::{Exported, Material};
use crate::covered::Beginning;
use crate::{Error, visible};
use std::collections::BTreeSet;
use std::fmt::Write;

/// One record a source file.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let coverage = Coverage::new(material)?;
    let mut out = String::new();
    for file in coverage.files.values() {
        record(&mut out, file, limit);
    }
    Ok(coverage.exported(out))
}

fn record(out: &mut String, file: &CoveredFile, limit: &Limit) {
    let mut put = |line: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{line}"); // a string has room
    };
    put(format_args!("TN:\nSF:{}", visible(&file.path)));
    let names = unique_names(file);
    for (begin, name) in file.functions.keys().zip(&names) {
        put(format_args!("FN:{},{name}", begin.line));
    }
    for (function, name) in file.functions.values().zip(&names) {
        put(format_args!("FNDA:{},{name}", limit.cut(function.calls())));
    }
    let called = file.functions.values().filter(|it| it.calls() > 0).count();
    put(format_args!("FNF:{}\nFNH:{called}", file.functions.len()));
    for (line, branches) in &file.branches {
        for (block, branch) in branches.iter().enumerate() {
            for (way, taken) in branch.iter().enumerate() {
                let taken = taken.map_or("-".into(), |it| limit.cut(it).to_string());
                put(format_args!("BRDA:{line},{block},{way},{taken}"));
            }
        }
    }
    let (ways, taken) = file.branch_ways();
    put(format_args!("BRF:{ways}\nBRH:{taken}"));
    for (line, count) in &file.lines {
        put(format_args!("DA:{line},{}", limit.cut(*count)));
    }
    put(format_args!(
        "LF:{}\nLH:{}\nend_of_record",
        file.lines.len(),
        file.lines_hit()
    ));
}

/// lcov knows the functions of a file by their names, and not all versions read on behind a comma:
/// arguments have semicolons between them, and where one name stands on several lines, all but the
/// first get the line as well.
fn unique_names(file: &CoveredFile) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let unique = |(begin, function): (&Beginning, &CoveredFunction)| {
        let name = visible(&function.name).replace(',', ";");
        match seen.insert(name.clone()) {
            true => name,
            false => format!("{name}@{}", begin.line),
        }
    };
    file.functions.iter().map(unique).collect()
}
