//! Functions that were counted as source text: their map in, their facts and counts out.

use std::ops::Range;

use anyhow::{Context, Result};
use headcount_csource::map::{FunctionMap, TextMap};
use headcount_flow::Contradiction;
use headcount_model::{
    Block, BlockId, BlockKind, FileId, Function, FunctionCounts, GraphCounts, LineRun, LinkAddr,
    Module, NOWHERE, Node, Place, Readings, SourcePlace,
};

/// A text whose functions are in a module.
pub struct PlacedText {
    map: TextMap,
    /// Number of its first counter.
    first: usize,
    /// For each function, its place in the module; nothing if the linker removed it.
    functions: Vec<Option<usize>>,
}

impl PlacedText {
    /// Adds the functions of a text to a module, but for those that the linker removed, which the
    /// numbers of their counters in the text tell. `files` are those of the map, in the module.
    pub fn new(
        map: TextMap,
        first: usize,
        files: &[FileId],
        module: &mut Module,
        is_removed: impl Fn(Range<u64>) -> bool,
    ) -> Result<Self> {
        let file = |id: FileId| {
            files
                .get(id.index())
                .copied()
                .context("a file without a name")
        };
        let mut functions = Vec::with_capacity(map.functions.len());
        let mut counters = 0;
        for function in &map.functions {
            let begin = counters;
            counters += function.plan.counters.len() as u64;
            if is_removed(begin..counters) {
                functions.push(None);
                continue;
            }
            let address = next_address(module);
            functions.push(Some(module.functions.len()));
            module.functions.push(facts(function, address, &file)?);
        }
        module.refusals.extend(map.refusals.iter().cloned());
        Ok(Self {
            map,
            first,
            functions,
        })
    }

    /// The functions that the linker removed: name, file and line.
    pub fn removed(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        let all = self.map.functions.iter().zip(&self.functions);
        let removed = all.filter(|(_, place)| place.is_none());
        removed.map(|(function, _)| {
            let begin = function.blocks.iter().find_map(|it| it.place);
            let file = begin.and_then(|it| self.map.files.get(it.file.index()));
            let file = file.unwrap_or(&self.map.name);
            (
                function.name.as_str(),
                file.as_str(),
                begin.map_or(0, |it| it.line),
            )
        })
    }

    /// The functions of the module have changed places.
    pub fn move_functions(&mut self, new_place: &[usize]) {
        for function in self.functions.iter_mut().flatten() {
            *function = new_place[*function];
        }
    }

    /// Puts the counts into those of the module's functions.
    pub fn recover(
        &self,
        sums: &[u64],
        all: &mut [FunctionCounts],
        uncertain: &mut Vec<String>,
    ) -> Result<()> {
        let mut next = self.first;
        for (function, place) in self.map.functions.iter().zip(&self.functions) {
            let end = next + function.plan.counters.len();
            let readings = sums
                .get(next..end)
                .context("has fewer counters than its map says")?;
            next = end;
            let Some(place) = place else { continue };
            let (counts, is_cut_short) = counts(function, readings)?;
            if is_cut_short {
                uncertain.push(function.name.clone());
            }
            let shown = function.blocks.iter().zip(counts);
            let shown = shown.filter(|(block, _)| block.place.is_some());
            all[*place].blocks = shown.map(|(_, count)| count).collect();
        }
        Ok(())
    }
}

/// Behind all others that have none.
fn next_address(module: &Module) -> LinkAddr {
    let ends = module.functions.iter().rev().take(1).map(|it| {
        let blocks = it.blocks.len() as u64;
        it.address.0.saturating_add(blocks.max(1))
    });
    LinkAddr(ends.max().unwrap_or(0).max(NOWHERE))
}

fn facts(
    function: &FunctionMap,
    address: LinkAddr,
    file: &impl Fn(FileId) -> Result<FileId>,
) -> Result<Function> {
    let mut blocks = Vec::new();
    for block in &function.blocks {
        let Some(place) = block.place else { continue };
        let mut lines = Vec::new();
        // The heading of a function is where it begins, but no statement of it.
        let headings = u32::from(place.kind == BlockKind::Function);
        for (number, (id, line)) in (0..).zip(&block.statements) {
            lines.push(LineRun {
                file: file(*id)?,
                line: *line,
                column: 0,
                is_stmt: true,
                instructions: u32::from(number >= headings),
                inline_copy: 0,
            });
        }
        let here = LineRun {
            file: file(place.file)?,
            line: place.line,
            column: 0,
            is_stmt: false,
            instructions: 0,
            inline_copy: 0,
        };
        let is_shown = |it: &LineRun| (it.file, it.line) == (here.file, here.line);
        if is_label(place.kind) && !lines.iter().any(is_shown)
            || is_operand(place.kind) && lines.is_empty()
        {
            lines.insert(0, here);
        }
        blocks.push(Block {
            address: LinkAddr(address.0 + blocks.len() as u64),
            code: Vec::new(),
            instructions: lines.iter().map(|it: &LineRun| it.instructions).sum(),
            lines,
            place: Some(SourcePlace {
                file: file(place.file)?,
                ..place
            }),
            operation: None,
        });
    }
    let source = blocks.first().and_then(|it| it.place);
    Ok(Function {
        name: function.name.clone(),
        address,
        source: source.map(|it| (it.file, it.line)),
        blocks,
        edges: Vec::new(),
        counters: function.plan.counters.len() as u32,
        compiled: Default::default(),
    })
}

/// A label may have a line for itself.
fn is_label(kind: BlockKind) -> bool {
    matches!(
        kind,
        BlockKind::Label | BlockKind::Case | BlockKind::Default
    )
}

fn is_operand(kind: BlockKind) -> bool {
    matches!(
        kind,
        BlockKind::TrueOperand | BlockKind::FalseOperand | BlockKind::RightOperand
    )
}

/// How often each block ran; and whether the readings contradict each other.
fn counts(function: &FunctionMap, readings: &[u64]) -> Result<(Vec<Option<u64>>, bool)> {
    if function.every_block {
        return Ok((direct(function, readings), false));
    }
    let readings = Readings(readings.to_vec());
    let known = |it: GraphCounts| it.blocks.into_iter().map(Some).collect();
    match headcount_flow::recover(&function.graph, &function.plan, &readings) {
        Ok(counts) => Ok((known(counts), false)),
        // A thread that was stopped inside the function: its last visit is not whole.
        Err(Contradiction::Negative { .. }) => {
            let (counts, _) =
                headcount_flow::recover_lenient(&function.graph, &function.plan, &readings)?;
            Ok((known(counts), true))
        }
        Err(other) => Err(other).with_context(|| format!("function {}", function.name)),
    }
}

/// What counters in blocks, or on the ways to them, say by themselves.
fn direct(function: &FunctionMap, readings: &[u64]) -> Vec<Option<u64>> {
    let mut counts = vec![None; function.blocks.len()];
    for (place, reading) in function.plan.counters.iter().zip(readings) {
        let block = match place {
            Place::Block(block) => Some(*block),
            Place::Edge(edge) => match function.graph.edges[edge.index()].to {
                Node::Block(block) => Some(block),
                Node::Outside => None,
            },
        };
        if let Some(BlockId(block)) = block {
            let sum: &mut Option<u64> = &mut counts[block as usize];
            *sum = Some(sum.unwrap_or(0).saturating_add(*reading));
        }
    }
    counts
}
