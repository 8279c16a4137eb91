//! The table of what does each instruction.

use super::version::Version;
use crate::program::Program;

/// The table has one item for each value of a byte.
const ITEMS: usize = 256;

/// The table of what does each instruction, and where it is.
pub(super) fn opcode_table(program: &Program<'_>, version: &Version) -> Option<(u64, Vec<u64>)> {
    let unused: Vec<usize> = (0..ITEMS)
        .filter(|it| version.is_unused(*it as u8))
        .collect();
    let (one, another) = (*unused.first()?, *unused.last()?);
    let mut found = None;
    for (start, bytes) in program.data() {
        for first in 0..(bytes.len() / 8).saturating_sub(ITEMS - 1) {
            let word = |index: usize| program.word_in(start, bytes, first + index);
            // All that is not in use has the same code: two such items tell most other words apart.
            if word(one) == 0 || word(one) != word(another) {
                continue;
            }
            let table: Vec<u64> = (0..ITEMS).map(word).collect();
            if !is_opcode_table(program, version, &table, word(one)) {
                continue;
            }
            // A second one would be another interpreter's.
            if found.is_some() {
                return None;
            }
            found = Some((start + 8 * first as u64, table));
        }
    }
    found
}

fn is_opcode_table(program: &Program<'_>, version: &Version, table: &[u64], unused: u64) -> bool {
    let is_right = |(number, code): (u8, u64)| match code == unused {
        true => !version.is_used(number) && !version.facts.again.contains(&number),
        false => !version.is_unused(number) && program.is_code(code),
    };
    program.is_code(unused) && (0..=u8::MAX).zip(table.iter().copied()).all(is_right)
}
