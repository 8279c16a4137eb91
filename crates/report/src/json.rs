//! The report as JSON: one object, one row a line.
//!
//! Written by hand because the order of keys is the order of the CSV columns, and because what a
//! terminal would obey is escaped here too, where JSON would let it pass.

use crate::escape::commands_a_terminal;
use crate::report::{Refused, Report, RunSummary};
use crate::table::{Cell, Row, Written};
use crate::time::Totals;

/// Raised when a reader of an older form would misunderstand a newer one.
const VERSION: u32 = 1;

/// The whole report.
pub fn write(report: &Report) -> String {
    let table = &report.table;
    let mut out = format!("{{\"version\":{VERSION},\"by\":\"{}\"", table.unit.name());
    list(&mut out, "runs", &report.runs, run);
    if let Some(time) = &report.time {
        out.push_str(&totals(time));
    }
    let written = table.written();
    list(&mut out, "rows", &table.rows, |it, out| {
        row(&written, it, out)
    });
    list(&mut out, "refused", &report.refused, refused);
    list(&mut out, "notes", &report.notes, |note, out| {
        string(note, out)
    });
    out.push_str("\n}\n");
    out
}

fn totals(time: &Totals) -> String {
    format!(
        ",\n\"time\":{{\"runs\":{},\"samples\":{},\"nanoseconds\":{},\"on_processor\":{},\
         \"in_kernel\":{},\"waiting\":{},\"ready\":{},\"lost\":{},\"counted\":{}}}",
        time.runs,
        time.sampled.samples,
        time.sampled.nanoseconds,
        time.on_processor,
        time.in_kernel(),
        time.waiting,
        time.ready,
        time.lost,
        time.is_counted
    )
}

/// A list under its name, one item a line.
pub fn list<T>(out: &mut String, key: &str, items: &[T], write: impl Fn(&T, &mut String)) {
    out.push_str(&format!(",\n\"{key}\":["));
    for (place, item) in items.iter().enumerate() {
        out.push_str(if place > 0 { ",\n " } else { "\n " });
        write(item, out);
    }
    out.push(']');
}

/// A run.
pub fn run(run: &RunSummary, out: &mut String) {
    out.push_str("{\"command\":[");
    for (place, word) in run.command.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        string(word, out);
    }
    out.push_str("],\"status\":");
    match run.status {
        Some(status) => out.push_str(&status.to_string()),
        None => out.push_str("null"),
    }
    out.push('}');
}

fn row(written: &Written, row: &Row, out: &mut String) {
    let cells = written.columns.iter().zip(written.cells(row));
    for (place, (column, cell)) in cells.enumerate() {
        out.push(if place > 0 { ',' } else { '{' });
        out.push_str(&format!("\"{column}\":"));
        match cell {
            Cell::Text(text) => string(text, out),
            Cell::Number(number) => out.push_str(&number.to_string()),
            Cell::Count(count) => number(count.value(), out),
            Cell::Amount(amount) => number(amount.value(), out),
            Cell::Address(Some(address)) => out.push_str(&format!("\"{address}\"")),
            Cell::Address(None) => out.push_str("null"),
        }
    }
    if row.is_at_least() {
        out.push_str(",\"at_least\":true");
    }
    if let Some(name) = &row.linkage_name {
        out.push_str(",\"linkage_name\":");
        string(name, out);
    }
    out.push('}');
}

/// A number, as far as it is known.
fn number(value: Option<u64>, out: &mut String) {
    match value {
        Some(value) => out.push_str(&value.to_string()),
        None => out.push_str("null"),
    }
}

/// Something that is not counted.
pub fn refused(it: &Refused, out: &mut String) {
    let fields = [
        ("module", &it.module),
        ("subject", &it.refusal.subject),
        ("file", &it.refusal.file),
        ("reason", &it.refusal.reason),
    ];
    out.push('{');
    for (key, value) in fields {
        out.push_str(&format!("\"{key}\":"));
        string(value, out);
        out.push(',');
    }
    out.push_str(&format!("\"line\":{}}}", it.refusal.line));
}

/// A text.
pub fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // All of these lie in the basic plane: four digits are enough.
            _ if commands_a_terminal(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}
