//! The map: what a module's counters mean, in the section `.headcount` that is never loaded.
//!
//! Each function adds a record, so that the linker, which keeps one copy of a comdat function,
//! keeps the record that goes with it. A record is
//!
//! ```text
//! u32  MAGIC
//! u32  length of the record, MAGIC included
//! u8   kind: UNIT, OBJECT or TEXT
//! ```
//!
//! For a text, which was counted before it was compiled, follow the address of its counters (u64),
//! how many there are (u32), and bytes that say what they mean, in the words of `csource`. For a unit, what only assembler and linker know, as plain numbers,
//!
//! ```text
//! u64  address of the unit's counters      u32  how many
//! u32  number of parts                     u64  address of each
//! u32  number of spans                     u32, u32  start (from its part) and length of each
//! ```
//!
//! then, for both kinds, the rest as a string of LEB128 numbers and length-prefixed texts.

use headcount_model::{
    BlockId, Edge, EdgeId, EdgeKind, FlowGraph, LinkAddr, Node, Place, Plan, Refusal,
};

/// Begins a record.
pub const MAGIC: u32 = u32::from_le_bytes(*b"HCm1");
/// Kind of a record about one unit.
pub const UNIT: u8 = 1;
/// Kind of a record about a whole object file.
pub const OBJECT: u8 = 2;
/// Kind of a record about a source text that was counted before it was compiled.
pub const TEXT: u8 = 3;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// About a function (or several that jump into each other).
    Unit(UnitMap),
    /// About an object file.
    Object(ObjectMap),
    /// About a source text.
    Text(TextRecord),
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
        let mut head = Bytes(head);
        if head.u32() != Some(MAGIC) {
            return Err(fail("no record begins here"));
        }
        let length = head.u32().unwrap_or_default() as usize;
        let record = section
            .get(at..)
            .and_then(|rest| rest.get(9..length))
            .ok_or(fail("a record is cut off"))?;
        let mut bytes = Bytes(record);
        records.push(match head.u8() {
            Some(UNIT) => Record::Unit(
                bytes
                    .unit()
                    .ok_or(fail("a function's record makes no sense"))?,
            ),
            Some(OBJECT) => Record::Object(
                bytes
                    .object()
                    .ok_or(fail("a file's record makes no sense"))?,
            ),
            Some(TEXT) => Record::Text(
                bytes
                    .source_text()
                    .ok_or(fail("a text's record makes no sense"))?,
            ),
            _ => return Err(fail("a record of an unknown kind")),
        });
        at += length;
    }
    Ok(records)
}

/// The part of a unit's record that the assembler has no hand in.
pub fn encode_unit(unit: &UnitMap) -> Vec<u8> {
    let mut out = Writer::default();
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
    out.number(unit.files.len());
    unit.files.iter().for_each(|file| out.text(file));
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
    out.number(unit.graph.edges.len());
    for edge in &unit.graph.edges {
        out.node(edge.from);
        out.node(edge.to);
        out.number(usize::from(edge.kind.code()));
    }
    out.number(unit.plan.counters.len());
    for place in &unit.plan.counters {
        out.number(match place {
            Place::Block(block) => block.index() << 1,
            Place::Edge(edge) => edge.index() << 1 | 1,
        });
    }
    out.0
}

/// An object's record, without its head.
pub fn encode_object(object: &ObjectMap) -> Vec<u8> {
    let mut out = Writer::default();
    out.text(&object.name);
    out.number(object.refusals.len());
    for refusal in &object.refusals {
        out.text(&refusal.subject);
        out.text(&refusal.file);
        out.number(refusal.line as usize);
        out.text(&refusal.reason);
    }
    out.0
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn node(&mut self, node: Node) {
        self.number(match node {
            Node::Outside => 0,
            Node::Block(block) => block.index() + 1,
        });
    }
}

/// Bytes still to be read. Every method answers `None` if they do not suffice.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn number(&mut self) -> Option<u32> {
        let mut value = 0_u64;
        for shift in (0..).step_by(7).take(5) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    /// A number of items, each of which takes at least a byte: never more than there can be.
    fn count(&mut self) -> Option<usize> {
        let count = self.number()? as usize;
        (count <= self.0.len()).then_some(count)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.count()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn many<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn object(&mut self) -> Option<ObjectMap> {
        Some(ObjectMap {
            name: self.text()?,
            refusals: self.many(|bytes| {
                Some(Refusal {
                    subject: bytes.text()?,
                    file: bytes.text()?,
                    line: bytes.number()?,
                    reason: bytes.text()?,
                })
            })?,
        })
    }

    fn source_text(&mut self) -> Option<TextRecord> {
        Some(TextRecord {
            counters: LinkAddr(self.u64()?),
            count: self.u32()?,
            map: std::mem::take(&mut self.0).to_vec(),
        })
    }

    fn unit(&mut self) -> Option<UnitMap> {
        let counters = LinkAddr(self.u64()?);
        let counter_count = self.u32()? as usize;
        let part_count = self.u32()? as usize;
        let mut addresses = Bytes(self.take(part_count.checked_mul(8)?)?);
        let span_count = self.u32()? as usize;
        let mut places = Bytes(self.take(span_count.checked_mul(8)?)?);
        let parts = self.many(|bytes| bytes.part(&mut addresses))?;
        let files = self.many(Self::text)?;
        let blocks = self.many(|bytes| bytes.block(&mut places, &parts, files.len()))?;
        let graph = FlowGraph {
            blocks: blocks.len() as u32,
            edges: self.many(|bytes| bytes.edge(blocks.len()))?,
        };
        let plan = Plan {
            counters: self.many(|bytes| bytes.place(&graph))?,
        };
        let whole = self.0.is_empty()
            && places.0.is_empty()
            && addresses.0.is_empty()
            && plan.counters.len() == counter_count;
        whole.then_some(UnitMap {
            counters,
            parts,
            files,
            blocks,
            graph,
            plan,
        })
    }

    fn part(&mut self, addresses: &mut Bytes) -> Option<PartMap> {
        let name = self.text()?;
        let cold = self.number()? != 0;
        let source = match self.number()? {
            0 => None,
            file => Some((file - 1, self.number()?)),
        };
        Some(PartMap {
            name,
            address: LinkAddr(addresses.u64()?),
            cold,
            source,
        })
    }

    fn block(&mut self, places: &mut Bytes, parts: &[PartMap], files: usize) -> Option<BlockMap> {
        let part = self.number()?;
        let base = parts.get(part as usize)?.address;
        let spans = self.many(|bytes| {
            let address = base.checked_add(u64::from(places.u32()?))?;
            let length = places.u32()?;
            address.checked_add(u64::from(length))?;
            Some(SpanMap {
                address,
                length,
                rows: bytes.many(|bytes| bytes.row(files))?,
            })
        })?;
        Some(BlockMap { part, spans })
    }

    fn row(&mut self, files: usize) -> Option<RowMap> {
        let packed = self.number()?;
        let file = packed >> 1;
        ((file as usize) < files).then_some(RowMap {
            file,
            line: self.number()?,
            is_stmt: packed & 1 != 0,
        })
    }

    fn edge(&mut self, blocks: usize) -> Option<Edge> {
        Some(Edge {
            from: self.node(blocks)?,
            to: self.node(blocks)?,
            kind: EdgeKind::from_code(self.u8()?)?,
        })
    }

    fn node(&mut self, blocks: usize) -> Option<Node> {
        match self.number()? {
            0 => Some(Node::Outside),
            block if block as usize <= blocks => Some(Node::Block(BlockId(block - 1))),
            _ => None,
        }
    }

    fn place(&mut self, graph: &FlowGraph) -> Option<Place> {
        let packed = self.number()?;
        let index = packed >> 1;
        if packed & 1 == 0 {
            (index < graph.blocks).then_some(Place::Block(BlockId(index)))
        } else {
            ((index as usize) < graph.edges.len()).then_some(Place::Edge(EdgeId(index)))
        }
    }
}
