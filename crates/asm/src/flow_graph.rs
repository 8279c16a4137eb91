//! The functions of a file as flow graphs, and what a probe costs at each place of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use headcount_model::{BlockId, Edge, EdgeKind, FlowGraph, Node, ProbeCosts, Refusal};

use crate::instruction::{Control, Target};
use crate::liveness::{Liveness, Style};
use crate::source::{Op, Source, Spot, What};
use headcount_model::library as returns;

/// One function, or several pieces of code that jump into each other: counted as one graph.
#[derive(Debug)]
pub struct Unit {
    /// Parts of the source, in order; the first is the function itself.
    pub parts: Vec<usize>,
    /// Its blocks.
    pub blocks: Vec<BlockAt>,
    /// Its graph.
    pub graph: FlowGraph,
    /// Where a probe can stand on each edge.
    pub edge_sites: Vec<EdgeSite>,
    /// How a probe stands in each block.
    pub block_sites: Vec<BlockSite>,
    /// What each probe costs.
    pub costs: ProbeCosts,
    /// Blocks that are seldom reached, as far as the text tells.
    pub cold: Vec<bool>,
    /// What is live where the function is entered, and what it overwrites anyway: together they
    /// tell which register its entry may use.
    pub entry_scratch: BTreeMap<usize, Option<usize>>,
    /// Parts that code without counters calls or jumps to.
    pub strangers: BTreeSet<usize>,
}

impl Unit {
    /// A refusal of the unit as a whole.
    pub fn refusal(&self, source: &Source, reason: String) -> Refusal {
        let part = self.parts[0];
        refusal(source, part, source.parts[part].ops.first(), reason)
    }
}

/// A block: operations of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockAt {
    /// Index of the part.
    pub part: usize,
    /// Its operations.
    pub ops: Range<usize>,
}

/// Where the probe of a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSite {
    /// Before this operation of the part.
    pub before: usize,
    /// In this form.
    pub style: Style,
}

/// Where the probe of an edge stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeSite {
    /// Nowhere.
    None,
    /// Right behind the block's last operation, before the label of the next block.
    Behind(Style),
    /// Right before the block's last operation, a jump.
    Before(Style),
    /// On a detour of the branch that ends the block.
    Detour(Style),
}

/// An in-line increment, in tenths.
const INLINE: u32 = 10;
/// What a jump adds.
const JUMP: u32 = 8;

/// The flow graphs of a file, and what of it is not counted.
pub fn units(source: &Source) -> (Vec<Unit>, Vec<Refusal>) {
    let components = components(source);
    let mut refusals = source.refusals.clone();
    let mut refused = HashSet::new();
    for component in &components {
        let reason = component.iter().find_map(|part| {
            source.parts[*part]
                .refusal
                .clone()
                .or_else(|| stray_jump(source, *part))
        });
        let reason = reason.or_else(|| torn_apart(source, component));
        if let Some(reason) = reason {
            refused.extend(component);
            refusals.push(Refusal {
                subject: source.parts[component[0]].name.to_owned(),
                ..reason
            });
        }
    }
    let strangers = called_from(source, &refused);
    let arrivals = arrivals(source);
    let units = components
        .into_iter()
        .filter(|component| !refused.contains(&component[0]))
        .map(|mut component| {
            component.retain(|part| !source.parts[*part].ops.is_empty());
            component
        })
        .filter(|component| !component.is_empty())
        .map(|parts| Builder::new(source, parts, &arrivals).build())
        .map(|unit| Unit {
            strangers: unit
                .parts
                .iter()
                .copied()
                .filter(|part| strangers.contains(part))
                .collect(),
            ..unit
        })
        .collect::<Vec<_>>();
    for unit in &units {
        refusals.extend(tangles(source, unit));
    }
    (units, refusals)
}

/// A refusal of the function that the part belongs to, because of one of its operations.
fn refusal(source: &Source, part: usize, op: Option<&Op>, reason: String) -> Refusal {
    let (file, line) = source.place(op);
    Refusal {
        subject: source.parts[part].name.to_owned(),
        file,
        line,
        reason,
    }
}

/// The parts that code without counters calls, or jumps to.
fn called_from(source: &Source, refused: &HashSet<usize>) -> HashSet<usize> {
    let ops = refused.iter().flat_map(|part| &source.parts[*part].ops);
    let names = ops.flat_map(|op| match op.control {
        Control::Call(Target::Symbol { name, .. }) => vec![name],
        _ => local_targets(op),
    });
    names
        .filter_map(|name| source.labels.get(name))
        .map(|spot| spot.part)
        .collect()
}

/// Pieces that jump into each other, of which the linker may keep one and drop the other.
fn torn_apart(source: &Source, component: &[usize]) -> Option<Refusal> {
    let group = |part: &usize| source.sections[source.parts[*part].section].group;
    let odd = component
        .iter()
        .find(|part| group(part) != group(&component[0]))?;
    let reason = format!(
        "it jumps to or from {}, which may be of another object",
        source.parts[*odd].name
    );
    Some(refusal(
        source,
        component[0],
        source.parts[component[0]].ops.first(),
        reason,
    ))
}

/// Inline assembly with jumps of its own: control passes through it, but how often each of its
/// instructions ran stays unknown.
fn tangles(source: &Source, unit: &Unit) -> Vec<Refusal> {
    let mut found = Vec::new();
    for part in &unit.parts {
        for op in &source.parts[*part].ops {
            if let What::Asm { tangled: true, .. } = op.what {
                let reason =
                    "inline assembly with jumps or calls of its own: the instructions inside it";
                found.push(refusal(source, *part, Some(op), reason.to_owned()));
            }
        }
    }
    found
}

/// A jump to a place that is in this file, but not in code we can see.
fn stray_jump(source: &Source, part: usize) -> Option<Refusal> {
    source.parts[part].ops.iter().find_map(|op| {
        let names: Vec<&str> = match (&op.control, &op.what) {
            (_, What::Asm { targets, .. }) => targets.clone(),
            (
                Control::Jump(Target::Symbol { name, .. })
                | Control::Branch(Target::Symbol { name, .. })
                | Control::ShortBranch(Target::Symbol { name, .. }),
                _,
            ) => vec![name],
            _ => return None,
        };
        let stray = names.into_iter().find(|name| {
            let local = name.starts_with(".L") || crate::lex::is_numbered_reference(name);
            local && source.find(name, op.statements.start).is_none()
        })?;
        let reason = format!("it jumps to `{stray}`, which is not in sight");
        Some(refusal(source, part, Some(op), reason))
    })
}

/// Parts that jump into each other's middle, and cold parts with the function they belong to.
fn components(source: &Source) -> Vec<Vec<usize>> {
    let mut groups = Groups::new(source.parts.len());
    for (index, part) in source.parts.iter().enumerate() {
        if let Some((base, _)) = part.name.split_once(".cold")
            && let Some(spot) = source.labels.get(base)
        {
            groups.join(index, spot.part);
        }
        for op in &part.ops {
            for name in local_targets(op) {
                if let Some(spot) = source.find(name, op.statements.start)
                    && !is_entry(source, name, spot)
                {
                    groups.join(index, spot.part);
                }
            }
        }
    }
    let mut by_root: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for part in 0..source.parts.len() {
        by_root.entry(groups.root(part)).or_default().push(part);
    }
    let mut components: Vec<_> = by_root.into_values().collect();
    for component in &mut components {
        // The function first, its cold part after it.
        component.sort_by_key(|part| (is_cold_part(source, *part), *part));
    }
    components.sort();
    components
}

/// Whether a jump to `name` is a call without return, rather than a step inside a function.
fn is_entry(source: &Source, name: &str, spot: Spot) -> bool {
    spot.op == 0 && source.parts[spot.part].name == name && !is_cold_part(source, spot.part)
}

fn is_cold_part(source: &Source, part: usize) -> bool {
    source.parts[part].name.contains(".cold")
}

fn local_targets<'a>(op: &'a Op<'_>) -> Vec<&'a str> {
    match (&op.control, &op.what) {
        (_, What::Asm { targets, .. }) => targets.clone(),
        (
            Control::Jump(Target::Symbol { name, .. })
            | Control::Branch(Target::Symbol { name, .. })
            | Control::ShortBranch(Target::Symbol { name, .. }),
            _,
        ) => vec![name],
        _ => Vec::new(),
    }
}

struct Groups(Vec<usize>);

impl Groups {
    fn new(size: usize) -> Self {
        Self((0..size).collect())
    }

    fn root(&mut self, mut item: usize) -> usize {
        while self.0[item] != item {
            self.0[item] = self.0[self.0[item]];
            item = self.0[item];
        }
        item
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
    }
}

/// Code labels that control may reach from anywhere: their address is taken, exceptions land
/// there, or they are called in the midst of a function (retpolines do that).
fn arrivals(source: &Source) -> BTreeSet<Spot> {
    let named = source
        .mentioned
        .iter()
        .chain(&source.pads)
        .map(|name| (*name, 0));
    let numbered = source.mentioned_numbers.iter().copied();
    let called = source
        .parts
        .iter()
        .flat_map(|part| &part.ops)
        .filter_map(|op| match op.control {
            Control::Call(Target::Symbol { name, .. }) => Some((name, op.statements.start)),
            _ => None,
        });
    named
        .chain(numbered)
        .chain(called)
        .filter_map(|(name, statement)| Some((name, source.find(name, statement)?)))
        .filter(|(name, spot)| !is_entry(source, name, *spot))
        .map(|(_, spot)| spot)
        .collect()
}

/// Whether a call of `target` surely comes back. Functions of the program itself never count as
/// sure, even where their code shows no way out: should one of them fault, its callers' counts
/// are still exact.
fn call_returns(source: &Source, target: Target<'_>) -> bool {
    let Target::Symbol { name, .. } = target else {
        return false;
    };
    !source.labels.contains_key(name) && returns::always_returns(name)
}

struct Builder<'s, 't> {
    source: &'s Source<'t>,
    arrivals: &'s BTreeSet<Spot>,
    parts: Vec<usize>,
    blocks: Vec<BlockAt>,
    /// The block that begins at a spot.
    at: BTreeMap<Spot, BlockId>,
    edges: Vec<Edge>,
    sites: Vec<Way>,
}

/// How control leaves a block along an edge, before it is known what is live there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    None,
    Behind,
    Before,
    Detour,
}

impl<'s, 't> Builder<'s, 't> {
    fn new(source: &'s Source<'t>, parts: Vec<usize>, arrivals: &'s BTreeSet<Spot>) -> Self {
        Self {
            source,
            arrivals,
            parts,
            blocks: Vec::new(),
            at: BTreeMap::new(),
            edges: Vec::new(),
            sites: Vec::new(),
        }
    }

    fn build(mut self) -> Unit {
        self.cut_blocks();
        for block in 0..self.blocks.len() as u32 {
            self.edges_into(BlockId(block));
            self.edges_out_of(BlockId(block));
        }
        let graph = FlowGraph {
            blocks: self.blocks.len() as u32,
            edges: std::mem::take(&mut self.edges),
        };
        self.weigh(graph)
    }

    fn cut_blocks(&mut self) {
        let mut leaders: BTreeSet<Spot> = BTreeSet::new();
        for part in self.parts.clone() {
            let ops = &self.source.parts[part].ops;
            leaders.insert(Spot { part, op: 0 });
            for (index, op) in ops.iter().enumerate() {
                for name in local_targets(op) {
                    leaders.extend(self.inside(name, op));
                }
                if matches!(op.control, Control::Trap) {
                    leaders.insert(Spot { part, op: index });
                }
                if self.ends_block(op) {
                    leaders.insert(Spot {
                        part,
                        op: index + 1,
                    });
                }
            }
            let range = Spot { part, op: 0 }..Spot {
                part: part + 1,
                op: 0,
            };
            leaders.extend(self.arrivals.range(range));
        }
        for part in self.parts.clone() {
            let end = self.source.parts[part].ops.len();
            let range = Spot { part, op: 0 }..Spot { part, op: end };
            let starts: Vec<usize> = leaders.range(range).map(|spot| spot.op).collect();
            for (position, start) in starts.iter().enumerate() {
                let stop = starts.get(position + 1).copied().unwrap_or(end);
                let id = BlockId(self.blocks.len() as u32);
                self.at.insert(Spot { part, op: *start }, id);
                self.blocks.push(BlockAt {
                    part,
                    ops: *start..stop,
                });
            }
        }
    }

    /// The spot of a jump's target, if the jump stays inside the unit.
    fn inside(&self, name: &str, op: &Op<'_>) -> Option<Spot> {
        let spot = self.source.find(name, op.statements.start)?;
        (self.parts.contains(&spot.part) && !is_entry(self.source, name, spot)).then_some(spot)
    }

    fn ends_block(&self, op: &Op<'_>) -> bool {
        if let What::Asm { targets, lost, .. } = &op.what {
            return *lost || !targets.is_empty();
        }
        match op.control {
            Control::Next => false,
            Control::Call(target) => !call_returns(self.source, target),
            _ => true,
        }
    }

    fn op(&self, part: usize, index: usize) -> &'s Op<'t> {
        &self.source.parts[part].ops[index]
    }

    fn edge(&mut self, from: Node, to: Node, kind: EdgeKind, way: Way) {
        let edge = Edge { from, to, kind };
        // Two ways that nobody can tell apart are one. They come from the same block, so they
        // stand together.
        let mut latest = self.edges.iter().zip(&self.sites).rev();
        let same = latest
            .by_ref()
            .take_while(|(other, _)| other.from == from)
            .any(|(other, site)| *site == Way::None && other.to == to);
        if same && way == Way::None && from != Node::Outside {
            return;
        }
        self.edges.push(edge);
        self.sites.push(way);
    }

    fn edges_into(&mut self, block: BlockId) {
        let BlockAt { part, ops } = self.blocks[block.index()].clone();
        let spot = Spot {
            part,
            op: ops.start,
        };
        let entry = ops.start == 0 && !is_cold_part(self.source, part);
        let twice = ops.start > 0 && self.returns_twice(self.op(part, ops.start - 1));
        if entry {
            self.edge(
                Node::Outside,
                Node::Block(block),
                EdgeKind::Entry,
                Way::None,
            );
        } else if twice || self.arrivals.contains(&spot) {
            self.edge(
                Node::Outside,
                Node::Block(block),
                EdgeKind::Arrival,
                Way::None,
            );
        }
    }

    fn returns_twice(&self, op: &Op<'_>) -> bool {
        matches!(op.control, Control::Call(Target::Symbol { name, .. }) if returns::returns_twice(name))
    }

    fn edges_out_of(&mut self, block: BlockId) {
        let BlockAt { part, ops } = self.blocks[block.index()].clone();
        let from = Node::Block(block);
        let next = self.next_node(part, ops.end);
        let op = self.op(part, ops.end - 1);
        if let What::Asm { targets, lost, .. } = &op.what {
            for name in targets {
                let to = self.node_of(name, op);
                self.edge(from, to, EdgeKind::Taken, Way::None);
            }
            if *lost {
                self.edge(from, Node::Outside, EdgeKind::Lost, Way::None);
            }
            return self.fall(from, next);
        }
        match &op.control {
            Control::Next if op.what == What::WhereAmI => {
                self.edge(from, next, EdgeKind::Fall, Way::None);
            }
            Control::Next => self.fall(from, next),
            Control::Call(_) if self.returns_twice(op) => {
                self.edge(from, Node::Outside, EdgeKind::Lost, Way::None);
            }
            Control::Call(target) if call_returns(self.source, *target) => {
                self.fall(from, next);
            }
            Control::Call(_) | Control::IndirectCall | Control::Kernel => {
                self.edge(from, Node::Outside, EdgeKind::Lost, Way::None);
                self.fall(from, next);
            }
            Control::Jump(target) => {
                let to = self.target_node(*target, op);
                self.edge_or_leave(from, to, EdgeKind::Jump, Way::Before);
            }
            Control::Branch(target) | Control::ShortBranch(target) => {
                let to = self.target_node(*target, op);
                self.edge_or_leave(from, to, EdgeKind::Taken, Way::Detour);
                self.fall(from, next);
            }
            Control::IndirectJump | Control::Return => {
                self.edge(from, Node::Outside, EdgeKind::Leave, Way::None);
            }
            // Its own count is that of visits which do not complete: none.
            Control::Trap => {}
        }
    }

    fn fall(&mut self, from: Node, next: Node) {
        self.edge_or_leave(from, next, EdgeKind::Fall, Way::Behind);
    }

    fn edge_or_leave(&mut self, from: Node, to: Node, kind: EdgeKind, way: Way) {
        match to {
            Node::Outside => self.edge(from, to, EdgeKind::Leave, Way::None),
            Node::Block(_) => self.edge(from, to, kind, way),
        }
    }

    fn target_node(&self, target: Target<'_>, op: &Op<'_>) -> Node {
        match target {
            Target::Symbol { name, .. } => self.node_of(name, op),
            Target::Odd(_) => Node::Outside,
        }
    }

    fn node_of(&self, name: &str, op: &Op<'_>) -> Node {
        self.inside(name, op)
            .map_or(Node::Outside, |spot| self.next_node(spot.part, spot.op))
    }

    /// The block at a spot; outside, if the part ends there or nothing can be executed there.
    fn next_node(&self, part: usize, op: usize) -> Node {
        match self.at.get(&Spot { part, op }) {
            Some(_) if matches!(self.op(part, op).control, Control::Trap) => Node::Outside,
            Some(block) => Node::Block(*block),
            None => Node::Outside,
        }
    }

    /// What is live decides the form of each probe, and so its cost.
    fn weigh(self, graph: FlowGraph) -> Unit {
        let live = Liveness::of(self.source, &self.blocks, &graph);
        let block_sites: Vec<_> = (0..self.blocks.len())
            .map(|block| live.block_site(block))
            .collect();
        let edge_sites: Vec<_> = graph
            .edges
            .iter()
            .zip(&self.sites)
            .map(|(edge, way)| {
                let style = match edge.to {
                    Node::Block(to) => Style::for_live(live.at(to)),
                    Node::Outside => return EdgeSite::None,
                };
                match way {
                    Way::None => EdgeSite::None,
                    Way::Behind => EdgeSite::Behind(style),
                    Way::Before => EdgeSite::Before(style),
                    Way::Detour => EdgeSite::Detour(style),
                }
            })
            .collect();
        let costs = ProbeCosts {
            blocks: block_sites
                .iter()
                .map(|site| Some(style_cost(site.style)))
                .collect(),
            edges: edge_sites.iter().map(|site| edge_cost(*site)).collect(),
        };
        let cold = self
            .blocks
            .iter()
            .map(|block| self.is_cold(block))
            .collect();
        let entry_scratch = self
            .parts
            .iter()
            .filter_map(|part| {
                let entry = self.at.get(&Spot { part: *part, op: 0 })?;
                let scratch = live.entry_scratch(&self.parts, *part, *entry);
                Some((*part, scratch))
            })
            .collect();
        Unit {
            parts: self.parts,
            blocks: self.blocks,
            graph,
            edge_sites,
            block_sites,
            costs,
            cold,
            entry_scratch,
            strangers: BTreeSet::new(),
        }
    }

    fn is_cold(&self, block: &BlockAt) -> bool {
        let part = &self.source.parts[block.part];
        let last = self.op(block.part, block.ops.end - 1);
        let dies = matches!(
            last.control,
            Control::Call(Target::Symbol { name, .. }) if returns::never_returns(name)
        );
        dies || matches!(last.control, Control::Trap)
            || is_cold_part(self.source, block.part)
            || self.source.sections[part.section].name.contains("unlikely")
    }
}

fn style_cost(style: Style) -> u32 {
    match style {
        Style::Plain => INLINE,
        Style::Scratch(_) => INLINE + 6,
        Style::Stack => INLINE + 30,
    }
}

fn edge_cost(site: EdgeSite) -> Option<u32> {
    match site {
        EdgeSite::None => None,
        EdgeSite::Behind(style) | EdgeSite::Before(style) => Some(style_cost(style)),
        EdgeSite::Detour(style) => Some(style_cost(style) + JUMP),
    }
}
