//! The table of what does each instruction.

use super::opcodes;
use crate::program::Program;

/// The place in the table of what does instructions that are traced. Their jumps fetch nothing anew.
pub(super) const TRACING: usize = 255;

/// From here on, up to the one before [`TRACING`], there are no instructions.
const FIRST_UNUSED: usize = 181;

/// The table of what does each instruction, and where it is.
pub(super) fn opcode_table(program: &Program<'_>) -> Option<(u64, Vec<u64>)> {
    let mut found = None;
    for (start, bytes) in program.data() {
        let words = bytes.len() / 8;
        let mut run = 0_usize;
        let mut last = 0;
        for index in 0..words {
            let word = program.word_in(start, bytes, index);
            run = match word == last && word != 0 {
                true => run + 1,
                false => 1,
            };
            last = word;
            // The last of the unused ones, with another one behind.
            if run < TRACING - FIRST_UNUSED {
                continue;
            }
            let Some(first) = (index + 1).checked_sub(TRACING) else {
                continue;
            };
            let table = (first..=index + 1).map(|it| match it < words {
                true => program.word_in(start, bytes, it),
                false => 0,
            });
            let table: Vec<u64> = table.collect();
            if !is_opcode_table(program, &table) {
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

fn is_opcode_table(program: &Program<'_>, table: &[u64]) -> bool {
    let unused = table[FIRST_UNUSED];
    let plain = opcodes::plain_ones();
    let known = plain.iter().zip(table).skip(1);
    let known = known.filter(|(plain, _)| **plain != 0).map(|it| *it.1);
    table[FIRST_UNUSED..TRACING].iter().all(|it| *it == unused)
        && table[TRACING] != unused
        && known.clone().all(|it| it != unused)
        && known.chain([unused]).all(|it| program.is_code(it))
}
