//! Functions of Lua 5.4 in memory, as they were compiled.

use std::ops::Range;

use super::lines::lines;
use super::opcodes::{COUNT, Word};
use crate::Memory;

/// Where things are in a state, in a closure, ...
const TOP: u64 = 0x10;
const CLOSURE: u8 = 0x46;
const VALUE_BYTES: u64 = 0x10;
const VALUE_TYPE: u64 = 8;
const PROTO: u64 = 0x18;

/// ... in what is known of a function, ...
const PROTO_BYTES: usize = 0x80;
const PARAMETERS: usize = 0x0a;
const UPVALUE_COUNT: usize = 0x10;
const CONSTANT_COUNT: usize = 0x14;
const CODE_LENGTH: usize = 0x18;
const LINE_COUNT: usize = 0x1c;
const INNER_COUNT: usize = 0x20;
const LOCAL_COUNT: usize = 0x24;
const WHOLE_LINE_COUNT: usize = 0x28;
const FIRST_LINE: usize = 0x2c;
const CONSTANTS: usize = 0x38;
const CODE: usize = 0x40;
const INNER: usize = 0x48;
const UPVALUES: usize = 0x50;
const LINES: usize = 0x58;
const WHOLE_LINES: usize = 0x60;
const LOCALS: usize = 0x68;
const SOURCE: usize = 0x70;

/// ... and in a string.
const SHORT: u8 = 0x44;
const LONG: u8 = 0x54;
const SHORT_LENGTH: u64 = 0x0b;
const LONG_LENGTH: u64 = 0x10;
const TEXT: u64 = 0x18;

/// No function has more of anything, and no name or source more bytes.
const MOST: u32 = 1 << 24;

/// Functions are not nested deeper.
const DEEPEST: u32 = 250;

/// What is known of a function, and of those in it.
#[derive(Debug, Default)]
pub(super) struct Proto {
    /// What it was compiled from, if that is known.
    pub(super) source: Option<String>,
    pub(super) first_line: u32,
    pub(super) parameters: u8,
    /// Where its instructions are.
    pub(super) extent: Range<u64>,
    pub(super) code: Vec<Word>,
    /// The line of each instruction, if that is known.
    pub(super) lines: Vec<u32>,
    pub(super) upvalues: Vec<Option<String>>,
    /// Local variables, in the order in which they come into being.
    pub(super) locals: Vec<Local>,
    constants: u64,
    constant_count: u32,
    pub(super) inner: Vec<Proto>,
}

/// A local variable: of which instructions on, up to which one, there is such a one.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) begins: usize,
    pub(super) ends: usize,
}

/// The function that was put on top of a state's stack last.
pub(super) fn on_top(memory: &dyn Memory, state: u64) -> Option<Proto> {
    let top = word(memory, state.checked_add(TOP)?)?;
    let value = top.checked_sub(VALUE_BYTES)?;
    let [kind] = bytes(memory, value + VALUE_TYPE)?;
    if kind != CLOSURE {
        return None;
    }
    let closure = word(memory, value)?;
    Proto::read(memory, word(memory, closure.checked_add(PROTO)?)?, 0)
}

impl Proto {
    fn read(memory: &dyn Memory, at: u64, depth: u32) -> Option<Self> {
        if depth > DEEPEST {
            return None;
        }
        let header = Header(bytes(memory, at)?);
        let count = |at: usize| header.number(at).filter(|it| *it <= MOST);
        let code = words(memory, header.word(CODE), count(CODE_LENGTH)?)?;
        let code: Vec<Word> = code.into_iter().map(Word).collect();
        if code.iter().any(|it| usize::from(it.opcode()) >= COUNT) {
            return None;
        }
        let first_line = header.number(FIRST_LINE)?;
        let steps = many(memory, header.word(LINES), count(LINE_COUNT)?)?;
        let whole = words(
            memory,
            header.word(WHOLE_LINES),
            count(WHOLE_LINE_COUNT)?.checked_mul(2)?,
        )?;
        let inner = addresses(memory, header.word(INNER), count(INNER_COUNT)?)?;
        let inner = inner
            .into_iter()
            .map(|it| Self::read(memory, it, depth + 1));
        let start = header.word(CODE);
        Some(Self {
            source: match header.word(SOURCE) {
                0 => None,
                at => Some(text(memory, at)?),
            },
            first_line,
            parameters: header.0[PARAMETERS],
            extent: start..start.checked_add(4 * code.len() as u64)?,
            lines: lines(&steps, &whole, first_line),
            upvalues: upvalues(memory, header.word(UPVALUES), count(UPVALUE_COUNT)?)?,
            locals: locals(memory, header.word(LOCALS), count(LOCAL_COUNT)?)?,
            constants: header.word(CONSTANTS),
            constant_count: count(CONSTANT_COUNT)?,
            inner: inner.collect::<Option<_>>()?,
            code,
        })
    }

    /// The string with this number among the constants.
    pub(super) fn constant(&self, memory: &dyn Memory, number: u32) -> Option<String> {
        if number >= self.constant_count {
            return None;
        }
        let value = self.constants + VALUE_BYTES * u64::from(number);
        let [kind] = bytes(memory, value + VALUE_TYPE)?;
        let is_text = kind == SHORT || kind == LONG;
        is_text
            .then(|| text(memory, word(memory, value)?))
            .flatten()
    }
}

/// The part of a function's description that does not vary in length.
struct Header([u8; PROTO_BYTES]);

impl Header {
    fn word(&self, at: usize) -> u64 {
        let bytes = self.0[at..].first_chunk();
        bytes.map_or(0, |it| u64::from_le_bytes(*it))
    }

    fn number(&self, at: usize) -> Option<u32> {
        self.0[at..].first_chunk().map(|it| u32::from_le_bytes(*it))
    }
}

fn bytes<const N: usize>(memory: &dyn Memory, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes)?;
    Some(bytes)
}

fn word(memory: &dyn Memory, at: u64) -> Option<u64> {
    bytes(memory, at).map(u64::from_le_bytes)
}

fn many(memory: &dyn Memory, at: u64, count: u32) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count as usize];
    match count {
        0 => {}
        _ => memory.read(at, &mut bytes)?,
    }
    Some(bytes)
}

fn words(memory: &dyn Memory, at: u64, count: u32) -> Option<Vec<u32>> {
    let bytes = many(memory, at, count.checked_mul(4)?)?;
    let (words, _) = bytes.as_chunks::<4>();
    Some(words.iter().map(|it| u32::from_le_bytes(*it)).collect())
}

fn addresses(memory: &dyn Memory, at: u64, count: u32) -> Option<Vec<u64>> {
    let bytes = many(memory, at, count.checked_mul(8)?)?;
    let (words, _) = bytes.as_chunks::<8>();
    Some(words.iter().map(|it| u64::from_le_bytes(*it)).collect())
}

fn upvalues(memory: &dyn Memory, at: u64, count: u32) -> Option<Vec<Option<String>>> {
    let pairs = addresses(memory, at, count.checked_mul(2)?)?;
    let names = pairs.chunks_exact(2).map(|it| match it[0] {
        0 => Some(None),
        name => Some(Some(text(memory, name)?)),
    });
    names.collect()
}

fn locals(memory: &dyn Memory, at: u64, count: u32) -> Option<Vec<Local>> {
    let pairs = addresses(memory, at, count.checked_mul(2)?)?;
    let local = |it: &[u64]| {
        Some(Local {
            name: text(memory, it[0])?,
            begins: (it[1] & u64::from(u32::MAX)) as usize,
            ends: (it[1] >> 32) as usize,
        })
    };
    pairs.chunks_exact(2).map(local).collect()
}

/// A string, as text.
fn text(memory: &dyn Memory, at: u64) -> Option<String> {
    let [kind] = bytes(memory, at.checked_add(VALUE_TYPE)?)?;
    let length = match kind & 0x3f | 0x40 {
        SHORT => u64::from(bytes::<1>(memory, at + SHORT_LENGTH)?[0]),
        LONG => word(memory, at + LONG_LENGTH)?,
        _ => return None,
    };
    let length = u32::try_from(length).ok().filter(|it| *it <= MOST)?;
    let bytes = many(memory, at + TEXT, length)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
