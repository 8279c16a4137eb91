//! Numbers, texts, graphs and plans as bytes: what maps inside of programs are made of.
//!
//! Numbers are LEB128, texts have their length in front, and so has every list. What is read may be
//! anyone's: nothing that makes no sense gets through.

use crate::{BlockId, Edge, EdgeId, EdgeKind, FlowGraph, Node, Place, Plan, Refusal};

/// Bytes that are being written.
#[derive(Clone, Debug, Default)]
pub struct Packer(pub Vec<u8>);

impl Packer {
    /// A number.
    pub fn number(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number that may be negative: 0, -1, 1, -2, … become 0, 1, 2, 3, ….
    pub fn signed(&mut self, value: i32) {
        self.number(((value << 1) ^ (value >> 31)) as u32 as usize);
    }

    /// A number of up to 64 bits.
    pub fn wide(&mut self, value: u64) {
        self.number(value as usize);
    }

    /// A number of up to 64 bits that may be negative.
    pub fn signed_wide(&mut self, value: i64) {
        self.wide((value << 1 ^ value >> 63).cast_unsigned());
    }

    /// Bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// Several of something.
    pub fn many<'i, T>(&mut self, items: &'i [T], mut item: impl FnMut(&mut Self, &'i T)) {
        self.number(items.len());
        items.iter().for_each(|it| item(self, it));
    }

    /// Numbers of which none is less than the one before.
    pub fn ascending(&mut self, numbers: &[u32]) {
        let mut last = 0;
        self.many(numbers, |to, it| {
            to.number((it - last) as usize);
            last = *it;
        });
    }

    /// Large numbers, each of which is near the one before.
    pub fn column(&mut self, numbers: impl ExactSizeIterator<Item = u64>) {
        self.number(numbers.len());
        let mut last = 0_u64;
        for number in numbers {
            self.signed_wide(number.wrapping_sub(last).cast_signed());
            last = number;
        }
    }

    /// A text.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Several texts.
    pub fn texts(&mut self, texts: &[String]) {
        self.number(texts.len());
        texts.iter().for_each(|it| self.text(it));
    }

    /// What is not counted.
    pub fn refusals(&mut self, refusals: &[Refusal]) {
        self.number(refusals.len());
        for refusal in refusals {
            self.text(&refusal.subject);
            self.text(&refusal.file);
            self.number(refusal.line as usize);
            self.text(&refusal.reason);
        }
    }

    /// The edges of a graph; whoever reads them knows how many blocks it has.
    pub fn edges(&mut self, graph: &FlowGraph) {
        self.number(graph.edges.len());
        for edge in &graph.edges {
            self.node(edge.from);
            self.node(edge.to);
            self.number(usize::from(edge.kind.code()));
        }
    }

    fn node(&mut self, node: Node) {
        self.number(match node {
            Node::Outside => 0,
            Node::Block(block) => block.index() + 1,
        });
    }

    /// Where counters are.
    pub fn plan(&mut self, plan: &Plan) {
        self.number(plan.counters.len());
        for place in &plan.counters {
            self.number(match place {
                Place::Block(block) => block.index() << 1,
                Place::Edge(edge) => edge.index() << 1 | 1,
            });
        }
    }
}

/// Bytes still to be read. Every method answers `None` if they do not suffice.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a>(pub &'a [u8]);

impl<'a> Packed<'a> {
    /// So many bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// Four bytes, the least first.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Eight of them.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A number.
    pub fn number(&mut self) -> Option<u32> {
        u32::try_from(self.leb128(5)?).ok()
    }

    /// A number of up to 64 bits.
    pub fn wide(&mut self) -> Option<u64> {
        self.leb128(10)
    }

    /// A number of up to 64 bits that may be negative.
    pub fn signed_wide(&mut self) -> Option<i64> {
        let value = self.wide()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn leb128(&mut self, most: usize) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..).step_by(7).take(most) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return (value >> shift == bits).then_some(value);
            }
        }
        None
    }

    /// A number that may be negative.
    pub fn signed(&mut self) -> Option<i32> {
        let folded = self.number()?;
        Some((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }

    /// Bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    /// Numbers of which none is less than the one before.
    pub fn ascending(&mut self) -> Option<Vec<u32>> {
        let mut last = 0_u32;
        self.many(|it| {
            last = last.checked_add(it.number()?)?;
            Some(last)
        })
    }

    /// Large numbers, each of which is near the one before.
    pub fn column(&mut self) -> Option<Vec<u64>> {
        let mut last = 0_u64;
        self.many(|it| {
            last = last.wrapping_add_signed(it.signed_wide()?);
            Some(last)
        })
    }

    /// A number of items, each of which takes at least a byte: never more than there can be.
    fn count(&mut self) -> Option<usize> {
        let count = self.number()? as usize;
        (count <= self.0.len()).then_some(count)
    }

    /// A text.
    pub fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    /// Several of something.
    pub fn many<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }

    /// What is not counted.
    pub fn refusals(&mut self) -> Option<Vec<Refusal>> {
        self.many(|it| {
            Some(Refusal {
                subject: it.text()?,
                file: it.text()?,
                line: it.number()?,
                reason: it.text()?,
            })
        })
    }

    /// A graph with so many blocks.
    pub fn graph(&mut self, blocks: usize) -> Option<FlowGraph> {
        Some(FlowGraph {
            blocks: u32::try_from(blocks).ok()?,
            edges: self.many(|it| it.edge(blocks))?,
        })
    }

    fn edge(&mut self, blocks: usize) -> Option<Edge> {
        Some(Edge {
            from: self.node(blocks)?,
            to: self.node(blocks)?,
            kind: EdgeKind::from_code(u8::try_from(self.number()?).ok()?)?,
        })
    }

    fn node(&mut self, blocks: usize) -> Option<Node> {
        match self.number()? {
            0 => Some(Node::Outside),
            block if block as usize <= blocks => Some(Node::Block(BlockId(block - 1))),
            _ => None,
        }
    }

    /// Where the counters of a graph are.
    pub fn plan(&mut self, graph: &FlowGraph) -> Option<Plan> {
        let counters = self.many(|it| it.place(graph))?;
        Some(Plan { counters })
    }

    fn place(&mut self, graph: &FlowGraph) -> Option<Place> {
        let packed = self.number()?;
        let index = packed >> 1;
        match packed & 1 {
            0 => (index < graph.blocks).then_some(Place::Block(BlockId(index))),
            _ => ((index as usize) < graph.edges.len()).then_some(Place::Edge(EdgeId(index))),
        }
    }
}
