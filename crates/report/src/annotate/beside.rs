//! Source text with counts, to lie beside the original (zprof's `zcounts`).

use std::collections::BTreeMap;

use crate::source::LineCount;

/// Every line of a file behind its count, or behind nothing where there is no code. The text is as
/// it was: it goes to a file.
pub fn beside(lines: &[String], counts: &BTreeMap<u32, LineCount>) -> String {
    let mut out = String::new();
    for (number, line) in (1_u32..).zip(lines) {
        let count = counts.get(&number).and_then(|it| it.count.value());
        let count = count.map_or(String::new(), |count| count.to_string());
        out.push_str(&format!("{count:>12}  {line}"));
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}
