//! The map: what the counters of a text mean.
//!
//! A string of LEB128 numbers and length-prefixed texts; it is the same for programs that keep
//! it in a section of their file and for those that write it beside their counts.

use headcount_model::{
    BlockId, BlockKind, Edge, EdgeId, EdgeKind, FileId, FlowGraph, Node, Place, Plan, Refusal,
    SourcePlace,
};

use crate::flow_graph::Unit;
use crate::insert::UnitPlan;
use crate::source::Source;

/// What is known of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextMap {
    /// Its file.
    pub name: String,
    /// The files that places speak of.
    pub files: Vec<String>,
    /// Its functions.
    pub functions: Vec<FunctionMap>,
    /// What is not counted.
    pub refusals: Vec<Refusal>,
}

/// What is known of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionMap {
    /// Its name.
    pub name: String,
    /// Its blocks, in the order of its graph.
    pub blocks: Vec<BlockMap>,
    /// Its graph.
    pub graph: FlowGraph,
    /// Where its counters stand.
    pub plan: Plan,
    /// Whether each block has its own.
    pub every_block: bool,
}

/// What is known of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMap {
    /// Where it is, unless only the arithmetic needs it.
    pub place: Option<SourcePlace>,
    /// File and line of its statements.
    pub statements: Vec<(FileId, u32)>,
}

impl TextMap {
    /// The map of a text.
    pub fn new(source: &Source, plans: &[UnitPlan], name: &str, refusals: &[Refusal]) -> Self {
        let functions = source.units.iter().zip(plans);
        Self {
            name: name.to_owned(),
            files: source.files().to_vec(),
            functions: functions
                .map(|(unit, plan)| function(source, unit, plan))
                .collect(),
            refusals: source.refusals.iter().chain(refusals).cloned().collect(),
        }
    }

    /// How many counters there are.
    pub fn counters(&self) -> usize {
        self.functions.iter().map(|it| it.plan.counters.len()).sum()
    }
}

fn function(source: &Source, unit: &Unit, plan: &UnitPlan) -> FunctionMap {
    let place = |kind: BlockKind, token: u32| {
        let at = source.position(token);
        SourcePlace {
            file: FileId(at.file),
            line: at.line,
            column: at.column,
            kind,
        }
    };
    let row = |token: &u32| {
        let at = source.position(*token);
        (FileId(at.file), at.line)
    };
    let blocks = unit.blocks.iter().map(|block| BlockMap {
        place: block.kind.map(|kind| place(kind, block.token)),
        statements: block.statements.iter().map(row).collect(),
    });
    FunctionMap {
        name: unit.name.clone(),
        blocks: blocks.collect(),
        graph: unit.graph.clone(),
        plan: plan.plan.clone(),
        every_block: plan.every_block,
    }
}

/// The map as bytes.
pub fn encode(map: &TextMap) -> Vec<u8> {
    let mut out = Writer::default();
    out.text(&map.name);
    out.number(map.files.len());
    map.files.iter().for_each(|file| out.text(file));
    out.number(map.refusals.len());
    for refusal in &map.refusals {
        out.text(&refusal.subject);
        out.text(&refusal.file);
        out.number(refusal.line as usize);
        out.text(&refusal.reason);
    }
    out.number(map.functions.len());
    for function in &map.functions {
        out.function(function);
    }
    out.0
}

/// The bytes as a map; `None` if they are none.
pub fn decode(bytes: &[u8]) -> Option<TextMap> {
    let mut bytes = Bytes(bytes);
    let map = TextMap {
        name: bytes.text()?,
        files: bytes.many(Bytes::text)?,
        refusals: bytes.many(|it| {
            Some(Refusal {
                subject: it.text()?,
                file: it.text()?,
                line: it.number()?,
                reason: it.text()?,
            })
        })?,
        functions: Vec::new(),
    };
    let files = map.files.len();
    let functions = bytes.many(|it| it.function(files))?;
    bytes.0.is_empty().then_some(TextMap { functions, ..map })
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

    fn function(&mut self, function: &FunctionMap) {
        self.text(&function.name);
        self.number(usize::from(function.every_block));
        self.number(function.blocks.len());
        for block in &function.blocks {
            match block.place {
                None => self.number(0),
                Some(place) => {
                    self.number(usize::from(place.kind.code()) + 1);
                    self.number(place.file.index());
                    self.number(place.line as usize);
                    self.number(place.column as usize);
                }
            }
            self.number(block.statements.len());
            for (file, line) in &block.statements {
                self.number(file.index());
                self.number(*line as usize);
            }
        }
        self.number(function.graph.edges.len());
        for edge in &function.graph.edges {
            self.node(edge.from);
            self.node(edge.to);
            self.number(usize::from(edge.kind.code()));
        }
        self.number(function.plan.counters.len());
        for place in &function.plan.counters {
            self.number(match place {
                Place::Block(block) => block.index() << 1,
                Place::Edge(edge) => edge.index() << 1 | 1,
            });
        }
    }
}

/// Bytes still to be read. Every method answers `None` if they do not suffice.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn number(&mut self) -> Option<u32> {
        let mut value = 0_u64;
        for shift in (0..).step_by(7).take(5) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
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
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(taken.to_vec()).ok()
    }

    fn many<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn file(&mut self, files: usize) -> Option<FileId> {
        let file = self.number()?;
        ((file as usize) < files).then_some(FileId(file))
    }

    fn function(&mut self, files: usize) -> Option<FunctionMap> {
        let name = self.text()?;
        let every_block = self.number()? != 0;
        let blocks = self.many(|it| it.block(files))?;
        let graph = FlowGraph {
            blocks: blocks.len() as u32,
            edges: self.many(|it| it.edge(blocks.len()))?,
        };
        let plan = Plan {
            counters: self.many(|it| it.place(&graph))?,
        };
        Some(FunctionMap {
            name,
            blocks,
            graph,
            plan,
            every_block,
        })
    }

    fn block(&mut self, files: usize) -> Option<BlockMap> {
        let place = match self.number()? {
            0 => None,
            code => Some(SourcePlace {
                kind: BlockKind::from_code(u8::try_from(code - 1).ok()?)?,
                file: self.file(files)?,
                line: self.number()?,
                column: self.number()?,
            }),
        };
        let statements = self.many(|it| Some((it.file(files)?, it.number()?)))?;
        Some(BlockMap { place, statements })
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

    fn place(&mut self, graph: &FlowGraph) -> Option<Place> {
        let packed = self.number()?;
        let index = packed >> 1;
        match packed & 1 {
            0 => (index < graph.blocks).then_some(Place::Block(BlockId(index))),
            _ => ((index as usize) < graph.edges.len()).then_some(Place::Edge(EdgeId(index))),
        }
    }
}
