//! The table as comma-separated values (RFC 4180, lines end in a line feed).

use crate::escape::visible;
use crate::table::{Cell, Table};
use std::borrow::Cow;

/// The whole table. The first line names the columns; numbers are plain, addresses are in
/// hexadecimal with `0x`, and an end of an edge outside of the function is an empty field, as is a
/// count that is not known.
pub fn write(table: &Table) -> String {
    let written = table.written();
    let mut out = written.columns.join(",");
    out.push('\n');
    for row in &table.rows {
        for (place, cell) in written.cells(row).into_iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            match cell {
                Cell::Text(text) => field(text, &mut out),
                Cell::Number(number) => out.push_str(&number.to_string()),
                Cell::Count(count) => {
                    out.push_str(&count.value().map_or(String::new(), |it| it.to_string()));
                }
                Cell::Amount(amount) => {
                    out.push_str(&amount.value().map_or(String::new(), |it| it.to_string()));
                }
                Cell::Address(Some(address)) => out.push_str(&address.to_string()),
                Cell::Address(None) => (),
            }
        }
        out.push('\n');
    }
    out
}

/// A text, in quotes where it needs them.
pub fn field(text: &str, out: &mut String) {
    let text = harmless(text);
    // Some spreadsheets take others for separators.
    match text.contains(['"', ',', ';']) {
        false => out.push_str(&text),
        true => {
            out.push('"');
            out.push_str(&text.replace('"', "\"\""));
            out.push('"');
        }
    }
}

/// A text that neither a terminal nor a spreadsheet obeys. Names come from files that anyone may
/// have made, and spreadsheets take what begins like this for a formula; a quote in front says that
/// it is text (OWASP, "CSV injection"). What would end a line is written out. A negative number is one.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let shown = visible(text);
    match shown.starts_with(['=', '+', '-', '@']) && !is_negative_number(&shown) {
        false => shown,
        true => Cow::Owned(format!("'{shown}")),
    }
}

fn is_negative_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn no_text_is_a_formula_and_a_negative_number_stays_one() {
        assert_eq!(harmless("-17"), "-17");
        for text in ["-1+2", "-", "-x", "-1 ", "+1", "=1", "@f"] {
            assert_eq!(harmless(text), format!("'{text}"));
        }
    }
}
