//! Counts as zprof wrote them: `filename:line: count`, one line a block.
//!
//! `sort -t: -k3 -nr` shows the hottest first, and editors jump from one to the next as they do
//! from error to error.

use headcount_model::Counted;

use crate::Error;
use crate::count::{Count, blocks};
use crate::escape::visible;
use crate::source::line_counts;

/// All blocks of source text, in the order of the program; and of code that was counted in other
/// ways, its lines.
pub fn zprof(counted: &[Counted]) -> Result<String, Error> {
    let mut out = String::new();
    let mut put = |file: &str, line: u32, count: Count| {
        if let Some(count) = count.value() {
            out.push_str(&format!("{}:{line}: {count}\n", visible(file)));
        }
    };
    for it in counted {
        let of_source =
            |it: &&headcount_model::Function| it.blocks.iter().any(|block| block.place.is_some());
        if !it.module.functions.iter().any(|it| of_source(&it)) {
            for (file, lines) in line_counts(std::slice::from_ref(it))? {
                for (line, count) in lines {
                    put(&file, line, count.count);
                }
            }
            continue;
        }
        for (function, counts) in it.module.functions.iter().zip(&it.functions) {
            for block in blocks(function, counts) {
                let Some(place) = block.block.place else {
                    continue;
                };
                let file = it.module.files.get(place.file.index());
                put(file.map_or("??", String::as_str), place.line, block.count());
            }
        }
    }
    Ok(out)
}
