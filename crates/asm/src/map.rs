//! The map: what a module's counters mean, in the section `.headcount` that is never loaded.
//!
//! Each function adds a record, so that the linker, which keeps one copy of a comdat function,
//! keeps the record that goes with it. A record is
//!
//! ```text
//! u32  MAGIC
//! u32  length of the record, MAGIC included
//! u8   kind: UNIT, OBJECT, TEXT, MEMORY_UNIT or CODE
//! ```
//!
//! For a text, which was counted before it was compiled, follow the address of its counters (u64),
//! how many there are (u32), and bytes that say what they mean, in the words of `csource`. That the
//! compiler made code of a function of a text is told by the address of a counter (u64), behind
//! seven bytes that are 0: so one directive writes all of it. For a unit, what only assembler and linker know, as plain numbers,
//!
//! ```text
//! u64  address of the unit's counters      u32  how many
//! u32  number of parts                     u64  address of each
//! u32  number of spans                     u32, u32  start (from its part) and length of each
//! ```
//!
//! then the rest, as for objects, as a string of LEB128 numbers and length-prefixed texts. An object
//! names its functions once more: by that it is known which the linker removed.

use headcount_model::packed::{Packed, Packer};
use headcount_model::{FlowGraph, LinkAddr, Plan, Refusal};

/// Begins a record.
pub const MAGIC: u32 = u32::from_le_bytes(*b"HCm1");
/// Kind of a record about one unit.
pub const UNIT: u8 = 1;
/// Kind of a record about a whole object file.
pub const OBJECT: u8 = 2;
/// Kind of a record about a source text that was counted before it was compiled.
pub const TEXT: u8 = 3;
/// The same as [`UNIT`] for a unit whose counters are ordinary memory, which nobody keeps.
pub const MEMORY_UNIT: u8 = 4;
/// Kind of a record that says that code was made of a function of a text.
pub const CODE: u8 = 5;
/// How long such a record is.
pub const CODE_LENGTH: u32 = 24;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// About a function (or several that jump into each other).
    Unit(UnitMap),
    /// About an object file.
    Object(ObjectMap),
    /// About a source text.
    Text(TextRecord),
    /// Code was made of the function of a source text that has this counter. The linker may have
    /// removed it.
    Code(LinkAddr),
}

/// A source text, and where its counters are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextRecord {
    /// Where its counters are.
    pub counters: LinkAddr,
    /// How many.
    pub count: u32,
    /// What they mean.
    pub map: Vec<u8>,
}

/// What is known of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitMap {
    /// Where its counters are.
    pub counters: LinkAddr,
    /// Are they ordinary memory?
    pub in_memory: bool,
    /// Its pieces.
    pub parts: Vec<PartMap>,
    /// The source files its rows name.
    pub files: Vec<String>,
    /// Its blocks.
    pub blocks: Vec<BlockMap>,
    /// Its graph.
    pub graph: FlowGraph,
    /// Where the counters stand.
    pub plan: Plan,
}

/// A piece of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartMap {
    /// Its symbol.
    pub name: String,
    /// Where it begins; 0 if the linker threw it away.
    pub address: LinkAddr,
    /// Whether it is the seldom used part of another.
    pub cold: bool,
    /// File and line where its source begins.
    pub source: Option<(u32, u32)>,
}

/// A block of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMap {
    /// Index of its part.
    pub part: u32,
    /// Its code.
    pub spans: Vec<SpanMap>,
}

/// A contiguous piece of the program's own code, of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanMap {
    /// Where it begins.
    pub address: LinkAddr,
    /// How many bytes.
    pub length: u32,
    /// The rows of the line table that stand at its beginning; the last holds for its code.
    pub rows: Vec<RowMap>,
}

/// A row of the line table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowMap {
    /// Index into the unit's files.
    pub file: u32,
    /// The line.
    pub line: u32,
    /// Whether a statement begins here.
    pub is_stmt: bool,
}

/// What is known of an object file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMap {
    /// What it was made from.
    pub name: String,
    /// What in it is not counted.
    pub refusals: Vec<Refusal>,
    /// The source files that its functions are in.
    pub files: Vec<String>,
    /// The functions that are counted in it. A function that the linker removes takes its record
    /// along; its name stays here.
    pub functions: Vec<NamedFunction>,
}

/// A function by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFunction {
    /// Its symbol.
    pub name: String,
    /// Whether other files may have functions of the same name that are not the same.
    pub is_local: bool,
    /// Where its source begins: an index into the object's files, and the line.
    pub source: Option<(u32, u32)>,
}

/// A section that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the .headcount section is broken at offset {at:#x}: {what}")]
pub struct Broken {
    /// Where in the section.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// Reads the section.
pub fn decode(section: &[u8]) -> Result<Vec<Record>, Broken> {
    let mut records = Vec::new();
    let mut at = 0;
    while at < section.len() {
        let fail = |what| Broken { at, what };
        let head = section.get(at..at + 9).ok_or(fail("a record is cut off"))?;
        let mut head = Packed(head);
        if head.u32() != Some(MAGIC) {
            return Err(fail("no record begins here"));
        }
        let length = head.u32().unwrap_or_default() as usize;
        let record = section
            .get(at..)
            .and_then(|rest| rest.get(9..length))
            .ok_or(fail("a record is cut off"))?;
        let mut bytes = Packed(record);
        records.push(match head.u8() {
            Some(kind @ (UNIT | MEMORY_UNIT)) => {
                let unit = unit(&mut bytes).ok_or(fail("a function's record makes no sense"))?;
                Record::Unit(UnitMap {
                    in_memory: kind == MEMORY_UNIT,
                    ..unit
                })
            }
            Some(OBJECT) => {
                Record::Object(object(&mut bytes).ok_or(fail("a file's record makes no sense"))?)
            }
            Some(TEXT) => {
                Record::Text(source_text(&mut bytes).ok_or(fail("a text's record makes no sense"))?)
            }
            Some(CODE) => {
                Record::Code(code(&mut bytes).ok_or(fail("a record of code is cut off"))?)
            }
            _ => return Err(fail("a record of an unknown kind")),
        });
        at += length;
    }
    Ok(records)
}

/// The part of a unit's record that the assembler has no hand in.
pub fn encode_unit(unit: &UnitMap) -> Vec<u8> {
    let mut out = Packer::default();
    out.number(unit.parts.len());
    for part in &unit.parts {
        out.text(&part.name);
        out.number(usize::from(part.cold));
        match part.source {
            Some((file, line)) => {
                out.number(file as usize + 1);
                out.number(line as usize);
            }
            None => out.number(0),
        }
    }
    out.texts(&unit.files);
    out.number(unit.blocks.len());
    for block in &unit.blocks {
        out.number(block.part as usize);
        out.number(block.spans.len());
        for span in &block.spans {
            out.number(span.rows.len());
            for row in &span.rows {
                out.number((row.file as usize) << 1 | usize::from(row.is_stmt));
                out.number(row.line as usize);
            }
        }
    }
    out.edges(&unit.graph);
    out.plan(&unit.plan);
    out.0
}

/// An object's record, without its head.
pub fn encode_object(object: &ObjectMap) -> Vec<u8> {
    let mut out = Packer::default();
    out.text(&object.name);
    out.refusals(&object.refusals);
    let mut last = "";
    out.many(&object.files, |out, path| {
        text_after(last, path, out);
        last = path;
    });
    let mut last = "";
    out.many(&object.functions, |out, function| {
        text_after(last, &function.name, out);
        last = &function.name;
        let (file, line) = match function.source {
            Some((file, line)) => (file as usize + 1, line as usize),
            None => (0, 0),
        };
        out.number(file << 1 | usize::from(function.is_local));
        out.number(line);
    });
    out.0
}

fn object(bytes: &mut Packed<'_>) -> Option<ObjectMap> {
    let (name, refusals) = (bytes.text()?, bytes.refusals()?);
    let mut last = String::new();
    let files = bytes.many(|bytes| {
        last = after(&last, bytes)?;
        Some(last.clone())
    })?;
    last.clear();
    let functions = bytes.many(|bytes| {
        last = after(&last, bytes)?;
        let (packed, line) = (bytes.number()?, bytes.number()?);
        let source = match packed >> 1 {
            0 => None,
            file if file as usize <= files.len() => Some((file - 1, line)),
            _ => return None,
        };
        Some(NamedFunction {
            name: last.clone(),
            is_local: packed & 1 != 0,
            source,
        })
    })?;
    Some(ObjectMap {
        name,
        refusals,
        files,
        functions,
    })
}

/// So much at most is taken from the text before, or few bytes could mean any amount of text.
const MOST_SHARED: usize = 127;

/// A text in a list. Neighbours have much in common, mangled names above all, so only what is not
/// as in the one before is written.
fn text_after(last: &str, text: &str, out: &mut Packer) {
    let pairs = last.bytes().zip(text.bytes()).take(MOST_SHARED);
    let equal = pairs.take_while(|(a, b)| a == b).count();
    let mut ends = (0..=equal).rev();
    let same = ends.find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    out.number(same);
    out.text(&text[same..]);
}

/// Reads what [`text_after`] writes.
fn after(last: &str, bytes: &mut Packed<'_>) -> Option<String> {
    let same = bytes.number()? as usize;
    let shared = last.get(..same).filter(|_| same <= MOST_SHARED)?;
    Some(shared.to_owned() + &bytes.text()?)
}

fn source_text(bytes: &mut Packed<'_>) -> Option<TextRecord> {
    Some(TextRecord {
        counters: LinkAddr(bytes.u64()?),
        count: bytes.u32()?,
        map: bytes.0.to_vec(),
    })
}

fn code(bytes: &mut Packed<'_>) -> Option<LinkAddr> {
    bytes.take(7)?;
    bytes.u64().map(LinkAddr)
}

fn unit(bytes: &mut Packed<'_>) -> Option<UnitMap> {
    let counters = LinkAddr(bytes.u64()?);
    let counter_count = bytes.u32()? as usize;
    let part_count = bytes.u32()? as usize;
    let mut addresses = Packed(bytes.take(part_count.checked_mul(8)?)?);
    let span_count = bytes.u32()? as usize;
    let mut places = Packed(bytes.take(span_count.checked_mul(8)?)?);
    let parts = bytes.many(|bytes| part(bytes, &mut addresses))?;
    let files = bytes.many(Packed::text)?;
    let blocks = bytes.many(|bytes| block(bytes, &mut places, &parts, files.len()))?;
    let graph = bytes.graph(blocks.len())?;
    let plan = bytes.plan(&graph)?;
    let whole = bytes.0.is_empty()
        && places.0.is_empty()
        && addresses.0.is_empty()
        && plan.counters.len() == counter_count;
    whole.then_some(UnitMap {
        in_memory: false,
        counters,
        parts,
        files,
        blocks,
        graph,
        plan,
    })
}

fn part(bytes: &mut Packed<'_>, addresses: &mut Packed<'_>) -> Option<PartMap> {
    let name = bytes.text()?;
    let cold = bytes.number()? != 0;
    let source = match bytes.number()? {
        0 => None,
        file => Some((file - 1, bytes.number()?)),
    };
    Some(PartMap {
        name,
        address: LinkAddr(addresses.u64()?),
        cold,
        source,
    })
}

fn block(
    bytes: &mut Packed<'_>,
    places: &mut Packed<'_>,
    parts: &[PartMap],
    files: usize,
) -> Option<BlockMap> {
    let part = bytes.number()?;
    let base = parts.get(part as usize)?.address;
    let spans = bytes.many(|bytes| {
        let address = base.checked_add(u64::from(places.u32()?))?;
        let length = places.u32()?;
        address.checked_add(u64::from(length))?;
        Some(SpanMap {
            address,
            length,
            rows: bytes.many(|bytes| row(bytes, files))?,
        })
    })?;
    Some(BlockMap { part, spans })
}

fn row(bytes: &mut Packed<'_>, files: usize) -> Option<RowMap> {
    let packed = bytes.number()?;
    let file = packed >> 1;
    ((file as usize) < files).then_some(RowMap {
        file,
        line: bytes.number()?,
        is_stmt: packed & 1 != 0,
    })
}
