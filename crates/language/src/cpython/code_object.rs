//! Code objects of CPython 3.11 in memory.

use std::ops::Range;

use headcount_model::packed::{Packed, Packer};

use super::opcodes;
use crate::Memory;

/// Where things are in a code object.
const TYPE: u64 = 8;
const UNITS: u64 = 0x10;
const CONSTANTS: u64 = 0x18;
const EXCEPTIONS: u64 = 0x28;
const FIRST_LINE: u64 = 0x48;
const FILE_NAME: u64 = 0x70;
const QUALIFIED_NAME: u64 = 0x80;
const LINES: u64 = 0x88;
const CODE: u64 = 0xb8;

/// No code object has more code, no text or table more bytes, and no tuple more elements.
const MOST_BYTES: u64 = 1 << 24;

/// Code objects are not nested deeper.
const DEEPEST: u32 = 100;

/// What there is to know of a code object and of those in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CodeObject {
    pub file: String,
    pub name: String,
    pub first_line: u32,
    /// As it was compiled: nothing is specialised, and caches are empty.
    pub code: Vec<u8>,
    pub lines: Vec<u8>,
    pub exceptions: Vec<u8>,
    /// Those that were compiled with it: functions, classes, comprehensions.
    pub inner: Vec<CodeObject>,
}

impl CodeObject {
    fn pack(&self, to: &mut Packer) {
        to.text(&self.file);
        to.text(&self.name);
        to.number(self.first_line as usize);
        to.bytes(&self.code);
        to.bytes(&self.lines);
        to.bytes(&self.exceptions);
        to.many(&self.inner, |to, it| it.pack(to));
    }

    /// From a description.
    pub(crate) fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let all = Self::take(&mut from, 0)?;
        from.0.is_empty().then_some(all)
    }

    /// Without those in it, which are told of one by one.
    pub(crate) fn flattened(mut self, tell: &mut impl FnMut(Self)) -> Self {
        for it in std::mem::take(&mut self.inner) {
            let it = it.flattened(tell);
            tell(it);
        }
        self
    }

    fn take(from: &mut Packed<'_>, depth: u32) -> Option<Self> {
        if depth > DEEPEST {
            return None;
        }
        Some(Self {
            file: from.text()?,
            name: from.text()?,
            first_line: from.number()?,
            code: from.bytes()?.to_vec(),
            lines: from.bytes()?.to_vec(),
            exceptions: from.bytes()?.to_vec(),
            inner: from.many(|it| Self::take(it, depth + 1))?,
        })
    }
}

/// The code object that has an instruction at an address.
pub(super) fn around(memory: &dyn Memory, code_type: u64, at: u64) -> Option<u64> {
    const STEP: u64 = 4096;
    // Every object begins at a multiple of eight.
    let mut end = at & !7;
    while at - end < MOST_BYTES {
        // What is before may not be there.
        let start = (end.saturating_sub(1) & !(STEP - 1)).max(8);
        let mut bytes = vec![0; (end - start) as usize];
        memory.read(start, &mut bytes)?;
        for (index, word) in bytes.chunks_exact(8).enumerate().rev() {
            if word != code_type.to_le_bytes() {
                continue;
            }
            let object = start + index as u64 * 8 - TYPE;
            if extent(memory, object).is_some_and(|it| it.contains(&at)) {
                return Some(object);
            }
        }
        end = start;
    }
    None
}

/// Where a code object has its instructions.
pub(super) fn extent(memory: &dyn Memory, object: u64) -> Option<Range<u64>> {
    let units = word(memory, object.checked_add(UNITS)?)?;
    let start = object.checked_add(CODE)?;
    let bytes = units.checked_mul(2).filter(|it| *it <= MOST_BYTES)?;
    Some(start..start.checked_add(bytes)?)
}

pub(super) fn has_type(memory: &dyn Memory, object: u64, expected: u64) -> bool {
    word(memory, object.wrapping_add(TYPE)) == Some(expected)
}

/// What there is to know of a code object.
pub(super) fn describe(memory: &dyn Memory, code_type: u64, object: u64) -> Option<Vec<u8>> {
    let mut to = Packer::default();
    read(memory, code_type, object, 0)?.pack(&mut to);
    Some(to.0)
}

fn read(memory: &dyn Memory, code_type: u64, object: u64, depth: u32) -> Option<CodeObject> {
    if depth > DEEPEST {
        return None;
    }
    let mut header = [0; CODE as usize];
    memory.read(object, &mut header)?;
    let field = |at: u64| {
        let bytes = header[at as usize..].first_chunk();
        bytes.map_or(0, |it| u64::from_le_bytes(*it))
    };
    let extent = extent(memory, object)?;
    let mut code = vec![0; (extent.end - extent.start) as usize];
    memory.read(extent.start, &mut code)?;
    let mut inner = Vec::new();
    for constant in tuple(memory, field(CONSTANTS))? {
        if has_type(memory, constant, code_type) {
            inner.push(read(memory, code_type, constant, depth + 1)?);
        }
    }
    Some(CodeObject {
        file: text(memory, field(FILE_NAME))?,
        name: text(memory, field(QUALIFIED_NAME))?,
        first_line: field(FIRST_LINE) as u32,
        code: as_compiled(code),
        lines: bytes(memory, field(LINES))?,
        exceptions: bytes(memory, field(EXCEPTIONS))?,
        inner,
    })
}

/// Code without what was learnt while it ran.
fn as_compiled(mut code: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at + 1 < code.len() {
        let opcode = opcodes::plain(code[at]);
        // A jump backwards counts how often it was taken by being another instruction.
        code[at] = opcode;
        let behind = at + 2;
        at = behind + 2 * opcodes::caches(opcode);
        let end = at.min(code.len());
        code[behind.min(end)..end].fill(0);
    }
    code
}

fn word(memory: &dyn Memory, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}

fn sized(memory: &dyn Memory, object: u64, most: u64) -> Option<u64> {
    word(memory, object.checked_add(0x10)?).filter(|it| *it <= most)
}

fn tuple(memory: &dyn Memory, object: u64) -> Option<Vec<u64>> {
    let elements = sized(memory, object, MOST_BYTES / 8)?;
    let mut bytes = vec![0; elements as usize * 8];
    memory.read(object + 0x18, &mut bytes)?;
    let words = bytes.chunks_exact(8);
    Some(
        words
            .map(|it| u64::from_le_bytes(it.try_into().unwrap_or_default()))
            .collect(),
    )
}

fn bytes(memory: &dyn Memory, object: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; sized(memory, object, MOST_BYTES)? as usize];
    memory.read(object + 0x20, &mut bytes)?;
    Some(bytes)
}

/// A string: one, two or four bytes a character, in front of which is how many.
fn text(memory: &dyn Memory, object: u64) -> Option<String> {
    let length = sized(memory, object, MOST_BYTES / 4)? as usize;
    let state = word(memory, object + 0x20)?;
    let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    if !is_compact {
        return None;
    }
    let start = object + if is_ascii { 0x30 } else { 0x48 };
    let width = match kind {
        1 | 2 | 4 => kind as usize,
        _ => return None,
    };
    let mut bytes = vec![0; length * width];
    memory.read(start, &mut bytes)?;
    let characters = bytes.chunks_exact(width).map(|it| {
        let mut number = [0; 4];
        number[..width].copy_from_slice(it);
        // A file's name may have bytes that are no text.
        char::from_u32(u32::from_le_bytes(number)).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    Some(characters.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_is_forgotten() {
        // BINARY_OP_ADD_INT with its cache, LOAD_FAST__LOAD_FAST, RETURN_VALUE.
        let learnt = vec![5, 0, 9, 9, 46, 1, 124, 2, 83, 0];
        let compiled = [122, 0, 0, 0, 124, 1, 124, 2, 83, 0];
        assert_eq!(as_compiled(learnt), compiled);
    }

    #[test]
    fn descriptions_are_read_as_they_were_written() {
        let leaf = CodeObject {
            name: "f".into(),
            code: vec![1, 2],
            ..CodeObject::default()
        };
        let all = CodeObject {
            file: "größe.py".into(),
            first_line: 7,
            inner: vec![leaf.clone(), leaf],
            ..CodeObject::default()
        };
        let mut to = Packer::default();
        all.pack(&mut to);
        assert_eq!(CodeObject::unpack(&to.0), Some(all));
        assert_eq!(CodeObject::unpack(&to.0[1..]), None);
    }
}
