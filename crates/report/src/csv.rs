//! The table as comma-separated values (RFC 4180, lines end in a line feed).

use crate::table::{Cell, Table};

/// The whole table. The first line names the columns; numbers are plain, addresses are in
/// hexadecimal with `0x`, and an end of an edge outside of the function is an empty field, as is a
/// count that is not known.
pub fn write(table: &Table) -> String {
    let mut out = table.unit.columns().join(",");
    out.push('\n');
    for row in &table.rows {
        for (place, cell) in row.cells.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            match cell {
                Cell::Text(text) => field(text, &mut out),
                Cell::Number(number) => out.push_str(&number.to_string()),
                Cell::Count(count) => {
                    out.push_str(&count.value().map_or(String::new(), |it| it.to_string()));
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
    match text.contains(['"', ',', '\n', '\r']) {
        false => out.push_str(text),
        true => {
            out.push('"');
            out.push_str(&text.replace('"', "\"\""));
            out.push('"');
        }
    }
}
