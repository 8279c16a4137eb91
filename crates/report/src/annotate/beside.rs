//! Source text with counts, to lie beside the original (zprof's `zcounts`).

use std::collections::BTreeMap;

use crate::count::Count;
use crate::lines::LineCount;

/// Every line of a file behind its count, or behind nothing where there is no code. The text is as
/// it was: it goes to a file.
pub fn beside(lines: &[String], counts: &BTreeMap<u32, LineCount>) -> String {
    let mut out = String::new();
    for (number, line) in (1_u32..).zip(lines) {
        let count = counts.get(&number).map_or(String::new(), written);
        out.push_str(&format!("{count:>12}  {line}"));
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// A plain number, `>=` before one that is only a bound, or a `?`.
fn written(line: &LineCount) -> String {
    match line.count {
        Count::Exact(count) => count.to_string(),
        Count::AtLeast(count) => format!(">={count}"),
        Count::Unknown if line.counted => "?".to_owned(),
        Count::Unknown => String::new(),
    }
}
