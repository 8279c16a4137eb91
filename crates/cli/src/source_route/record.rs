//! What travels in an object file that was counted as C: its counters, their map, and the runtime,
//! all as one `asm` at the end of the text.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use headcount_asm::map::{MAGIC, TEXT};
use headcount_csource::map::{TextMap, encode};

use super::dialect::COUNTERS;

/// The end of a counted text. `SHF_GNU_RETAIN` keeps the map where a linker drops what nobody
/// refers to.
pub fn ending(map: &TextMap, text: &[u8]) -> String {
    // There is no module without counters.
    let counters = map.counters();
    let bytes = 8 * counters.max(1);
    let mut out = String::from(headcount_runtime::OPENING);
    let _ = writeln!(out, "\t.section\theadcount_counters,\"aw\",@nobits");
    let _ = writeln!(out, "\t.balign 8\n{COUNTERS}:\t.zero\t{bytes}");
    let _ = writeln!(out, "\t.section\t.headcount,\"R\",@progbits");
    let _ = writeln!(
        out,
        ".Lhc_map:\t.long\t{MAGIC}, .Lhc_end-.Lhc_map\n\t.byte\t{TEXT}"
    );
    let _ = writeln!(out, "\t.quad\t{COUNTERS}\n\t.long\t{counters}");
    for chunk in encode(map).chunks(64) {
        let numbers: Vec<String> = chunk.iter().map(u8::to_string).collect();
        let _ = writeln!(out, "\t.byte\t{}", numbers.join(","));
    }
    let _ = writeln!(out, ".Lhc_end:");
    let (first, second) = identity(map, text);
    let _ = writeln!(out, "\t.section\theadcount_ids,\"aR\",@progbits");
    let _ = writeln!(out, "\t.quad\t{first:#x}, {second:#x}");
    out.push_str(headcount_runtime::ASSEMBLY);
    out.push_str("\n\t.text\n");
    format!("\n__asm__({});\n", quoted(&out))
}

/// Sixteen bytes that name this text and its counters.
fn identity(map: &TextMap, text: &[u8]) -> (u64, u64) {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    encode(map).hash(&mut hasher);
    let first = hasher.finish();
    "second half".hash(&mut hasher);
    (first, hasher.finish())
}

/// A text as string literals of C, one a line.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for line in text.lines() {
        out.push('"');
        for letter in line.chars() {
            match letter {
                '"' | '\\' => {
                    out.push('\\');
                    out.push(letter);
                }
                '\t' => out.push_str("\\t"),
                _ => out.push(letter),
            }
        }
        out.push_str("\\n\"\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_survive_the_compiler() {
        assert_eq!(
            quoted("\ta \"b\\n\"\nc"),
            "\"\\ta \\\"b\\\\n\\\"\\n\"\n\"c\\n\"\n"
        );
    }
}
