//! Which flags and registers are needed later: where an increment harms nobody, and what it must
//! save where it would.
//!
//! The increment overwrites flags, never a register, unless flags are live; then it needs a
//! register that is not. Everything is taken to be live where control leaves the function: with
//! `-fipa-ra`, gcc's callers rely on what a callee happens not to touch. Only flags are dead at
//! the boundary of a function that a compiler made.

use headcount_model::{BlockId, FlowGraph, Node};

use crate::flow_graph::{BlockAt, BlockSite};
use crate::instruction::{Control, SCRATCH, Set, Target};
use crate::source::{Op, Part, Source, What};

/// The form of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One increment; flags are dead.
    Plain,
    /// Load, add by `lea`, store, through this register of [`SCRATCH`]; flags are kept.
    Scratch(usize),
    /// The same through a register that is saved on the stack.
    Stack,
}

impl Style {
    fn rank(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Scratch(_) => 1,
            Self::Stack => 2,
        }
    }

    /// The cheapest form where this is live.
    pub fn for_live(live: Set) -> Self {
        if !live.has(Set::FLAGS) {
            return Self::Plain;
        }
        (0..SCRATCH.len())
            .find(|number| !live.has(Set::register(*number)))
            .map_or(Self::Stack, Self::Scratch)
    }
}

/// What is live at the beginning of each block of a unit.
pub struct Liveness<'s, 't> {
    source: &'s Source<'t>,
    blocks: &'s [BlockAt],
    successors: Vec<Vec<Node>>,
    live: Vec<Set>,
}

fn successors(graph: &FlowGraph) -> Vec<Vec<Node>> {
    let mut successors = vec![Vec::new(); graph.blocks as usize];
    for edge in &graph.edges {
        if let Node::Block(from) = edge.from {
            successors[from.index()].push(edge.to);
        }
    }
    successors
}

fn predecessors(successors: &[Vec<Node>]) -> Vec<Vec<usize>> {
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (from, nodes) in successors.iter().enumerate() {
        for node in nodes {
            if let Node::Block(to) = node {
                predecessors[to.index()].push(from);
            }
        }
    }
    predecessors
}

fn at_boundary(part: &Part) -> Set {
    if part.by_hand {
        Set::ALL
    } else {
        Set::REGISTERS
    }
}

/// What is live before an operation, given what is live after it.
fn before(part: &Part, op: &Op, after: Set) -> Set {
    let (uses, kills) = match op.control {
        Control::Call(_) | Control::IndirectCall if !part.by_hand => (Set::REGISTERS, Set::FLAGS),
        Control::Call(_) | Control::IndirectCall | Control::Return => {
            (at_boundary(part), Set::default())
        }
        _ => (op.effect.uses, op.effect.kills),
    };
    after.without(kills).with(uses)
}

impl<'s, 't> Liveness<'s, 't> {
    /// Finds it out.
    pub fn of(source: &'s Source<'t>, blocks: &'s [BlockAt], graph: &FlowGraph) -> Self {
        let mut this = Self {
            source,
            blocks,
            successors: successors(graph),
            live: vec![Set::default(); blocks.len()],
        };
        let predecessors = predecessors(&this.successors);
        let mut waiting: Vec<usize> = (0..blocks.len()).collect();
        let mut is_waiting = vec![true; blocks.len()];
        while let Some(block) = waiting.pop() {
            is_waiting[block] = false;
            let (part, ops) = this.ops(block);
            let now = ops
                .iter()
                .rev()
                .fold(this.live_out(block), |now, op| before(part, op, now));
            if now == this.live[block] {
                continue;
            }
            this.live[block] = now;
            for previous in &predecessors[block] {
                if !std::mem::replace(&mut is_waiting[*previous], true) {
                    waiting.push(*previous);
                }
            }
        }
        this
    }

    /// What is live where a block begins.
    pub fn at(&self, block: BlockId) -> Set {
        self.live[block.index()]
    }

    fn ops(&self, block: usize) -> (&'s Part<'t>, &'s [Op<'t>]) {
        let at = &self.blocks[block];
        let part = &self.source.parts[at.part];
        (part, &part.ops[at.ops.clone()])
    }

    fn live_out(&self, block: usize) -> Set {
        let (part, _) = self.ops(block);
        self.successors[block]
            .iter()
            .fold(Set::default(), |all, node| {
                all.with(match node {
                    Node::Block(next) => self.live[next.index()],
                    Node::Outside => at_boundary(part),
                })
            })
    }

    /// The best place for a probe in a block: the first where flags are dead, or else where a
    /// register is.
    pub fn block_site(&self, block: usize) -> BlockSite {
        let (part, ops) = self.ops(block);
        let start = self.blocks[block].ops.start;
        // `endbr64` must stay the first thing a jump finds.
        let first = usize::from(ops.len() > 1 && ops[0].what == What::Endbr);
        let mut now = self.live_out(block);
        let mut best = BlockSite {
            before: start + first,
            style: Style::Stack,
        };
        for (index, op) in ops.iter().enumerate().skip(first).rev() {
            now = before(part, op, now);
            let style = Style::for_live(now);
            if style.rank() <= best.style.rank() {
                best = BlockSite {
                    before: start + index,
                    style,
                };
            }
        }
        best
    }

    /// A register that the code at the entry of a function may overwrite: it holds no argument,
    /// and whoever calls the function knows that the function overwrites it (it does so itself,
    /// or calls a function that may). `None`: save one.
    pub fn entry_scratch(&self, parts: &[usize], part: usize, entry: BlockId) -> Option<usize> {
        if self.source.parts[part].by_hand {
            return None;
        }
        let mut overwritten = Set::default();
        for op in parts.iter().flat_map(|part| &self.source.parts[*part].ops) {
            overwritten = overwritten.with(op.effect.kills);
            let unknown = match op.control {
                Control::IndirectCall => true,
                Control::Call(Target::Symbol { name, .. }) => {
                    !self.source.labels.contains_key(name)
                }
                _ => false,
            };
            if unknown {
                overwritten = Set::ALL;
            }
        }
        let live = self.at(entry);
        // r11 first: nothing is ever passed in it.
        let order = [8, 7, 0, 1, 2, 6, 5, 3, 4];
        order.into_iter().find(|number| {
            let register = Set::register(*number);
            overwritten.has(register) && !live.has(register)
        })
    }
}
