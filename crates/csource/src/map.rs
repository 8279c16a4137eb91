//! The map: what the counters of a text mean.
//!
//! A string of LEB128 numbers and length-prefixed texts; it is the same for programs that keep
//! it in a section of their file and for those that write it beside their counts.

use headcount_model::packed::{Packed, Packer};
use headcount_model::{BlockKind, FileId, FlowGraph, Plan, Refusal, SourcePlace};

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
    let mut out = Packer::default();
    out.text(&map.name);
    out.texts(&map.files);
    out.refusals(&map.refusals);
    out.number(map.functions.len());
    for function in &map.functions {
        encode_function(&mut out, function);
    }
    out.0
}

fn encode_function(out: &mut Packer, function: &FunctionMap) {
    out.text(&function.name);
    out.number(usize::from(function.every_block));
    out.number(function.blocks.len());
    for block in &function.blocks {
        match block.place {
            None => out.number(0),
            Some(place) => {
                out.number(usize::from(place.kind.code()) + 1);
                out.number(place.file.index());
                out.number(place.line as usize);
                out.number(place.column as usize);
            }
        }
        out.number(block.statements.len());
        for (file, line) in &block.statements {
            out.number(file.index());
            out.number(*line as usize);
        }
    }
    out.edges(&function.graph);
    out.plan(&function.plan);
}

/// The bytes as a map; `None` if they are none.
pub fn decode(bytes: &[u8]) -> Option<TextMap> {
    let mut bytes = Packed(bytes);
    let name = bytes.text()?;
    let files = bytes.many(Packed::text)?;
    let refusals = bytes.refusals()?;
    let functions = bytes.many(|it| decode_function(it, files.len()))?;
    bytes.0.is_empty().then_some(TextMap {
        name,
        files,
        functions,
        refusals,
    })
}

fn decode_function(bytes: &mut Packed<'_>, files: usize) -> Option<FunctionMap> {
    let name = bytes.text()?;
    let every_block = bytes.number()? != 0;
    let blocks = bytes.many(|it| decode_block(it, files))?;
    let graph = bytes.graph(blocks.len())?;
    let plan = bytes.plan(&graph)?;
    Some(FunctionMap {
        name,
        blocks,
        graph,
        plan,
        every_block,
    })
}

fn decode_block(bytes: &mut Packed<'_>, files: usize) -> Option<BlockMap> {
    let place = match bytes.number()? {
        0 => None,
        code => Some(SourcePlace {
            kind: BlockKind::from_code(u8::try_from(code - 1).ok()?)?,
            file: file(bytes, files)?,
            line: bytes.number()?,
            column: bytes.number()?,
        }),
    };
    let statements = bytes.many(|it| Some((file(it, files)?, it.number()?)))?;
    Some(BlockMap { place, statements })
}

fn file(bytes: &mut Packed<'_>, files: usize) -> Option<FileId> {
    let file = bytes.number()?;
    ((file as usize) < files).then_some(FileId(file))
}
