//! The five files of Coutant and Griswold (1979): tokens, and what was counted of each; and where a clock found the
//! program and the runtime.

use crate::Error;
use crate::report::Request;
use crate::table::{Cell, Row};
use crate::tokens::{self, TokenPlace};
use headcount_model::{Counted, Language, RuntimeCosts};
use std::collections::HashMap;
use std::fmt::Write;

/// A file: what its name ends with, and what is in it.
pub struct IconFile {
    /// Behind the name that they have in common.
    pub suffix: &'static str,
    /// Lines.
    pub text: String,
}

/// The files. A line of the first one has a token's number, line, column and file; those of the next three have a
/// number for each token, in the same order; and those of the last one a token and an address for each sample. Token 0
/// is none, or the collector.
pub fn icon_files(
    counted: &[Counted],
    costs: &[RuntimeCosts],
    request: &Request<'_>,
) -> Result<Vec<IconFile>, Error> {
    let mut rows = tokens::rows(counted, request)?;
    let is_icon = |row: &Row| row.cells[0] == Cell::Text(Language::Icon.name().into());
    rows.retain(is_icon);
    let mut numbers: HashMap<TokenPlace, usize> = HashMap::new();
    let [mut list, mut counts, mut samples, mut bytes] = [const { String::new() }; 4];
    // Nothing can fail that is written to memory.
    for (row, number) in rows.iter().zip(1..) {
        let (Some(place), [.., count, _, sampled, took]) =
            (TokenPlace::of_row(row), &row.cells[..])
        else {
            continue;
        };
        let TokenPlace {
            file, line, column, ..
        } = &place;
        let _ = writeln!(list, "{number} {line} {column} {file}");
        for (to, cell) in [
            (&mut counts, count),
            (&mut samples, sampled),
            (&mut bytes, took),
        ] {
            let _ = writeln!(to, "{}", cell.amount());
        }
        numbers.insert(place, number);
    }
    let mut found = String::new();
    let charges = costs.iter().flat_map(|it| &it.charges);
    for charge in charges.filter(|it| it.language == Language::Icon) {
        let place = TokenPlace::of_charge(&charge.place);
        let token = place.and_then(|it| numbers.get(&it)).unwrap_or(&0);
        let at = charge.at.map_or(0, |it| it.at.0);
        for _ in 0..charge.samples {
            let _ = writeln!(found, "{token} {at:#x}");
        }
    }
    let file = |suffix, text| IconFile { suffix, text };
    Ok(vec![
        file("tokens", list),
        file("counts", counts),
        file("samples", samples),
        file("allocation", bytes),
        file("pcs", found),
    ])
}
