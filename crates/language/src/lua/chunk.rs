//! What is kept of a piece of program: the functions that were compiled together.

use std::ops::Range;

use headcount_model::packed::{Packed, Packer};

use super::names::{names, source};
use super::opcodes::Word;
use super::proto::Proto;
use crate::Memory;

/// A function: all in a chunk are in the order in which they begin in memory's tables, each before those in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) first_line: u32,
    pub(super) code: Vec<u32>,
    /// The line of each instruction, if that is known.
    pub(super) lines: Vec<u32>,
}

/// The functions of a chunk, and where the instructions of each are.
pub(super) fn functions(memory: &dyn Memory, chunk: &Proto) -> Vec<(Range<u64>, Function)> {
    let mut found = Vec::new();
    let file = source(chunk.source.as_deref());
    add(memory, chunk, "main chunk".to_owned(), &file, &mut found);
    found
}

fn add(
    memory: &dyn Memory,
    it: &Proto,
    name: String,
    file: &str,
    found: &mut Vec<(Range<u64>, Function)>,
) {
    let function = Function {
        file: file.to_owned(),
        name,
        first_line: it.first_line.max(1),
        code: it.code.iter().map(|Word(word)| *word).collect(),
        lines: it.lines.clone(),
    };
    found.push((it.extent.clone(), function));
    for (inner, name) in it.inner.iter().zip(names(memory, it)) {
        let anonymous = || format!("function <{file}:{}>", inner.first_line);
        add(memory, inner, name.unwrap_or_else(anonymous), file, found);
    }
}

/// As bytes.
pub(super) fn pack<'f>(functions: impl IntoIterator<Item = &'f Function>) -> Vec<u8> {
    let functions: Vec<&Function> = functions.into_iter().collect();
    let mut to = Packer::default();
    to.text(functions.first().map_or("", |it| &it.file));
    to.many(&functions, |to, it| {
        to.text(&it.name);
        to.number(it.first_line as usize);
        to.many(&it.code, |to, word| to.0.extend(word.to_le_bytes()));
        let mut line = it.first_line;
        to.many(&it.lines, |to, it| {
            to.signed(it.wrapping_sub(line).cast_signed());
            line = *it;
        });
    });
    to.0
}

/// From such bytes.
pub(super) fn unpack(bytes: &[u8]) -> Option<Vec<Function>> {
    let mut from = Packed(bytes);
    let file = from.text()?;
    let functions = from.many(|from| {
        let name = from.text()?;
        let first_line = from.number()?;
        let code = from.many(Packed::u32)?;
        let mut line = first_line;
        let lines = from.many(|from| {
            line = line.wrapping_add_signed(from.signed()?);
            Some(line)
        })?;
        Some(Function {
            file: file.clone(),
            name,
            first_line,
            code,
            lines,
        })
    })?;
    from.0.is_empty().then_some(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_as_they_were_written() {
        let function = |name: &str, lines: &[u32]| Function {
            file: "größe.lua".into(),
            name: name.into(),
            first_line: 7,
            code: vec![1, u32::MAX, 3],
            lines: lines.to_vec(),
        };
        let all = [function("f", &[8, 9, 7]), function("g", &[])];
        let bytes = pack(&all);
        assert_eq!(unpack(&bytes).as_deref(), Some(&all[..]));
        for end in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..end]), None);
        }
    }
}
