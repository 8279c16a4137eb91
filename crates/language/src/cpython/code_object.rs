//! Code objects of CPython in memory.

use std::ops::Range;

use headcount_model::packed::{Packed, Packer};

use super::version::{Monitoring, Version};
use crate::Memory;

/// Where things are in a code object.
const TYPE: u64 = 8;
const UNITS: u64 = 0x10;
const CONSTANTS: u64 = 0x18;
const EXCEPTIONS: u64 = 0x28;
const FILE_NAME: u64 = 0x70;
const QUALIFIED_NAME: u64 = 0x80;
const LINES: u64 = 0x88;

/// No code object has more code, no text or table more bytes, and no tuple more elements.
const MOST_BYTES: u64 = 1 << 24;

/// No code object has more with all that are in it.
const MOST_DESCRIBED: usize = 1 << 28;

/// Code objects are not nested deeper.
const DEEPEST: u32 = 100;

/// What there is to know of a code object and of those in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CodeObject {
    /// It is of CPython 3.`minor`.
    pub minor: u8,
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
        to.0.push(self.minor);
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
            minor: from.u8()?,
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

/// An interpreter in a process.
#[derive(Clone, Copy)]
pub(super) struct Process<'m> {
    pub memory: &'m dyn Memory,
    pub version: &'static Version,
    /// Where the type of its code objects is.
    pub code_type: u64,
}

impl Process<'_> {
    /// The code object that has an instruction at an address.
    pub fn around(&self, at: u64) -> Option<u64> {
        const STEP: u64 = 4096;
        // Every object begins at a multiple of eight.
        let mut end = at & !7;
        while end > TYPE && at - end < MOST_BYTES {
            // What is before may not be there.
            let start = (end.saturating_sub(1) & !(STEP - 1)).max(8);
            let mut bytes = vec![0; (end - start) as usize];
            self.memory.read(start, &mut bytes)?;
            for (index, word) in bytes.chunks_exact(8).enumerate().rev() {
                if word != self.code_type.to_le_bytes() {
                    continue;
                }
                let object = start + index as u64 * 8 - TYPE;
                if self.extent(object).is_some_and(|it| it.contains(&at)) {
                    return Some(object);
                }
            }
            end = start;
        }
        None
    }

    /// Where a code object has its instructions.
    pub fn extent(&self, object: u64) -> Option<Range<u64>> {
        let units = word(self.memory, object.checked_add(UNITS)?)?;
        let start = object.checked_add(self.version.facts.layout.code)?;
        let bytes = units.checked_mul(2).filter(|it| *it <= MOST_BYTES)?;
        Some(start..start.checked_add(bytes)?)
    }

    pub fn is_code(&self, object: u64) -> bool {
        word(self.memory, object.wrapping_add(TYPE)) == Some(self.code_type)
    }

    /// What there is to know of a code object.
    pub fn describe(&self, object: u64) -> Option<Vec<u8>> {
        let mut to = Packer::default();
        let mut left = MOST_DESCRIBED;
        self.code_object(object, 0, &mut left)?.pack(&mut to);
        Some(to.0)
    }

    /// `left`: so many bytes may be described at most. Constants may lead to the same code again and again.
    fn code_object(&self, object: u64, depth: u32, left: &mut usize) -> Option<CodeObject> {
        if depth > DEEPEST {
            return None;
        }
        let (memory, layout) = (self.memory, &self.version.facts.layout);
        let mut header = vec![0; layout.code as usize];
        memory.read(object, &mut header)?;
        let field = |at: u64| {
            let bytes = header[at as usize..].first_chunk();
            bytes.map_or(0, |it| u64::from_le_bytes(*it))
        };
        let extent = self.extent(object)?;
        let mut code = vec![0; (extent.end - extent.start) as usize];
        memory.read(extent.start, &mut code)?;
        if let Some(monitoring) = &layout.monitoring {
            self.replace_traced(&mut code, monitoring, field(monitoring.at))?;
        }
        let mut inner = Vec::new();
        for constant in tuple(memory, field(CONSTANTS))? {
            if self.is_code(constant) {
                inner.push(self.code_object(constant, depth + 1, left)?);
            }
        }
        let (lines, exceptions) = (
            bytes(memory, field(LINES))?,
            bytes(memory, field(EXCEPTIONS))?,
        );
        let described = layout.code as usize + code.len() + lines.len() + exceptions.len();
        *left = left.checked_sub(described)?;
        Some(CodeObject {
            minor: self.version.facts.minor,
            file: self.text(field(FILE_NAME))?,
            name: self.text(field(QUALIFIED_NAME))?,
            first_line: field(layout.first_line) as u32,
            code: as_compiled(self.version, code),
            lines,
            exceptions,
            inner,
        })
    }

    /// Puts what is traced in the place of what stands for it.
    fn replace_traced(&self, code: &mut [u8], monitoring: &Monitoring, at: u64) -> Option<()> {
        if at == 0 {
            return Some(());
        }
        let units = code.len() / 2;
        let table = |field: u64, size: usize| {
            let at = word(self.memory, at.checked_add(field)?)?;
            if at == 0 {
                return Some(Vec::new());
            }
            let mut bytes = vec![0; size];
            self.memory.read(at, &mut bytes)?;
            Some(bytes)
        };
        // Newer ones begin with how many bytes there are for each code unit. No code begins with instructions that have
        // such numbers.
        let (before, each) = match *table(monitoring.lines, 1)?.first().unwrap_or(&0) {
            each @ 2..=5 => (1, usize::from(each)),
            _ => (0, 2),
        };
        let lines = table(monitoring.lines, before + units * each)?;
        let instructions = table(monitoring.instructions, units)?;
        let mut unit = 0;
        while unit < units {
            let opcode = &mut code[2 * unit];
            let name = |opcode: u8| self.version.opcode(opcode).name;
            if name(*opcode) == "INSTRUMENTED_LINE" {
                *opcode = *lines.get(before + unit * each)?;
            }
            if name(*opcode) == "INSTRUMENTED_INSTRUCTION" {
                *opcode = *instructions.get(unit)?;
            }
            unit += 1 + self.version.opcode(*opcode).caches;
        }
        Some(())
    }

    /// A string: one, two or four bytes a character, in front of which is how many.
    fn text(&self, object: u64) -> Option<String> {
        let length = sized(self.memory, object, MOST_BYTES / 4)? as usize;
        let state = word(self.memory, object + 0x20)?;
        let (kind, is_compact, is_ascii) =
            (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        if !is_compact {
            return None;
        }
        let places = &self.version.facts.layout.text;
        let start = object + if is_ascii { places.ascii } else { places.other };
        let width = match kind {
            1 | 2 | 4 => kind as usize,
            _ => return None,
        };
        let mut bytes = vec![0; length * width];
        self.memory.read(start, &mut bytes)?;
        let characters = bytes.chunks_exact(width).map(|it| {
            let mut number = [0; 4];
            number[..width].copy_from_slice(it);
            // A file's name may have bytes that are no text.
            char::from_u32(u32::from_le_bytes(number)).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
        Some(characters.collect())
    }
}

/// Code without what was learnt while it ran, and without what reports on it.
fn as_compiled(version: &Version, mut code: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at + 1 < code.len() {
        // A jump backwards counts how often it was taken by being another instruction.
        code[at] = version.opcode(code[at]).plain;
        let behind = at + 2;
        at = behind + 2 * version.opcode(code[at]).caches;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpython::version::with_minor;

    #[test]
    fn what_was_learnt_is_forgotten() {
        // BINARY_OP_ADD_INT with its cache, LOAD_FAST__LOAD_FAST, RETURN_VALUE.
        let learnt = vec![5, 0, 9, 9, 46, 1, 124, 2, 83, 0];
        let compiled = [122, 0, 0, 0, 124, 1, 124, 2, 83, 0];
        assert_eq!(as_compiled(with_minor(11).unwrap(), learnt), compiled);
        // INSTRUMENTED_RESUME, TO_BOOL_BOOL with its caches, RETURN_CONST.
        let learnt = vec![236, 0, 215, 0, 1, 2, 3, 4, 5, 6, 103, 1];
        let compiled = [149, 0, 40, 0, 0, 0, 0, 0, 0, 0, 103, 1];
        assert_eq!(as_compiled(with_minor(13).unwrap(), learnt), compiled);
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
