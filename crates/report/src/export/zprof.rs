//! Counts as zprof wrote them: `filename:line: count`, one line a block.
//!
//! `sort -t: -k3 -nr` shows the hottest first, and editors jump from one to the next as they do
//! from error to error.

use super::limit::Limit;
use super::{Exported, Material};
use crate::Error;
use crate::count::{Count, blocks};
use crate::coverage::is_of_source;
use crate::escape::visible;
use crate::lines::all_lines;
use crate::names::functions;

/// All blocks of source text, in the order of the program; and of code that was counted in other
/// ways, its lines.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let mut text = String::new();
    let mut put = |file: &str, line: u32, count: Count| {
        if let Some(count) = count.value() {
            text.push_str(&format!("{}:{line}: {}\n", visible(file), limit.cut(count)));
        }
    };
    for module in material.counted {
        if is_of_source(module) {
            for named in functions(module, material.demangle) {
                if !material.only.wants(&named) {
                    continue;
                }
                for block in blocks(named.function, named.counts) {
                    if let Some(place) = block.block.place {
                        let file = named.file(place.file).unwrap_or("??");
                        put(file, place.line, block.count());
                    }
                }
            }
            continue;
        }
        let lines = all_lines(
            std::slice::from_ref(module),
            material.demangle,
            material.only,
        )?;
        for (file, lines) in lines {
            for (line, count) in lines {
                put(&file, line, count.count);
            }
        }
    }
    Ok(Exported {
        bytes: text.into_bytes(),
        notes: Vec::new(),
    })
}
