//! The blocks and edges of one function.

use std::ops::Range;

use headcount_model::{Block, EdgeKind, FunctionEdge, LinkAddr, Span};

use crate::debug_info::DebugInfo;
use crate::functions::Part;
use crate::image::Image;
use crate::indirect::Indirect;
use crate::sweep::{Flow, Op};

/// What is known of the whole module.
pub struct Facts<'a> {
    pub image: &'a Image<'a>,
    pub indirect: &'a Indirect,
    /// Where blocks begin, besides behind jumps and calls.
    pub leaders: &'a [u64],
    /// Where control may arrive from anywhere.
    pub arrivals: &'a [u64],
    /// Whether a call comes back more often than it was made.
    pub returns_twice: &'a dyn Fn(Flow) -> bool,
    pub debug: &'a DebugInfo,
}

/// Blocks and edges of the function that these parts make up; the parts stand by address, and the
/// function is entered at `entry`.
pub fn blocks(facts: &Facts<'_>, parts: &[&Part], entry: u64) -> (Vec<Block>, Vec<FunctionEdge>) {
    let mut builder = Builder {
        facts,
        entry,
        blocks: Vec::new(),
        edges: Vec::new(),
    };
    for part in parts {
        builder.cut(&part.ops);
    }
    for index in 0..builder.blocks.len() {
        builder.connect(index);
    }
    let blocks = builder.blocks.iter().map(|block| builder.build(block));
    (blocks.collect(), builder.edges)
}

struct Builder<'a> {
    facts: &'a Facts<'a>,
    entry: u64,
    blocks: Vec<Piece<'a>>,
    edges: Vec<FunctionEdge>,
}

struct Piece<'a> {
    ops: &'a [Op],
    /// Whether the code before it is a call that comes back more than once.
    twice: bool,
    /// Whether another block of the same part lies right behind it.
    has_next: bool,
}

impl Piece<'_> {
    fn start(&self) -> u64 {
        self.ops.first().map_or(0, |op| op.at)
    }

    fn never_completes(&self) -> bool {
        self.ops.first().is_some_and(|op| op.flow == Flow::Trap)
    }
}

impl<'a> Builder<'a> {
    fn cut(&mut self, ops: &'a [Op]) {
        let (Some(first), Some(last)) = (ops.first(), ops.last()) else {
            return;
        };
        let mut leaders = between(self.facts.leaders, first.at..last.end())
            .iter()
            .peekable();
        let mut start = 0;
        let mut twice = false;
        for (index, pair) in ops.windows(2).enumerate() {
            let [before, op] = pair else {
                continue;
            };
            while leaders.next_if(|leader| **leader < op.at).is_some() {}
            let is_leader = leaders.peek() == Some(&&op.at);
            let is_apart = before.end() < op.at;
            if is_leader || is_apart || before.flow.ends_block() || op.flow == Flow::Trap {
                let next = (self.facts.returns_twice)(before.flow);
                self.push(ops, start..index + 1, twice, true);
                twice = next;
                start = index + 1;
            }
        }
        self.push(ops, start..ops.len(), twice, false);
    }

    fn push(&mut self, ops: &'a [Op], range: Range<usize>, twice: bool, has_next: bool) {
        self.blocks.push(Piece {
            ops: ops.get(range).unwrap_or_default(),
            twice,
            has_next,
        });
    }

    fn connect(&mut self, index: usize) {
        let Some(block) = self.blocks.get(index) else {
            return;
        };
        let start = block.start();
        let Some(last) = block.ops.last().copied() else {
            return;
        };
        let next = self.blocks.binary_search_by_key(&last.end(), Piece::start);
        let next = next.ok().filter(|_| block.has_next);
        let id = Some(index as u32);
        if block.never_completes() {
            return;
        }
        if start == self.entry {
            self.edge(None, id, EdgeKind::Entry);
        } else if block.twice || self.facts.arrivals.binary_search(&start).is_ok() {
            self.edge(None, id, EdgeKind::Arrival);
        }
        let first = self.edges.len();
        self.leave(id, last, next);
        self.drop_twins(first);
    }

    fn leave(&mut self, from: Option<u32>, last: Op, next: Option<usize>) {
        let fall = next.and_then(|next| self.reach(next));
        match last.flow {
            Flow::Nop | Flow::Next | Flow::Mentions(_) | Flow::Number(_) | Flow::Transaction => {
                self.to(from, fall, EdgeKind::Fall);
            }
            Flow::Call(_) | Flow::IndirectCall(_) => {
                self.edge(from, None, EdgeKind::Lost);
                if !(self.facts.returns_twice)(last.flow) {
                    self.to(from, fall, EdgeKind::Fall);
                }
            }
            Flow::Jump(to) => {
                let to = self.block_at(to);
                self.to(from, to, EdgeKind::Jump);
            }
            Flow::Branch(to) => {
                let to = self.block_at(to);
                self.to(from, to, EdgeKind::Taken);
                self.to(from, fall, EdgeKind::Fall);
            }
            Flow::IndirectJump(_) => match self.facts.indirect.targets.get(&last.at) {
                Some(targets) => {
                    for to in targets {
                        let to = self.block_at(*to);
                        self.to(from, to, EdgeKind::Jump);
                    }
                }
                None => self.edge(from, None, EdgeKind::Leave),
            },
            Flow::Return => self.edge(from, None, EdgeKind::Leave),
            Flow::Trap => {}
        }
    }

    /// Of the ways out of the function that begin in one block, one is enough: nobody can tell
    /// them apart.
    fn drop_twins(&mut self, first: usize) {
        let mut out = false;
        let edges = self.edges.split_off(first);
        let kept = edges
            .into_iter()
            .filter(|edge| edge.to.is_some() || !std::mem::replace(&mut out, true));
        self.edges.extend(kept);
    }

    fn to(&mut self, from: Option<u32>, to: Option<u32>, kind: EdgeKind) {
        let kind = if to.is_some() { kind } else { EdgeKind::Leave };
        self.edge(from, to, kind);
    }

    fn edge(&mut self, from: Option<u32>, to: Option<u32>, kind: EdgeKind) {
        self.edges.push(FunctionEdge { from, to, kind });
    }

    fn block_at(&self, at: u64) -> Option<u32> {
        let index = self.blocks.binary_search_by_key(&at, Piece::start).ok()?;
        self.reach(index)
    }

    /// The block as the end of an edge. Nothing that never completes is ever reached.
    fn reach(&self, index: usize) -> Option<u32> {
        let block = self.blocks.get(index)?;
        (!block.never_completes()).then_some(index as u32)
    }

    fn build(&self, block: &Piece<'_>) -> Block {
        let start = block.start();
        let end = block.ops.last().map_or(start, Op::end);
        let bytes = self.facts.image.get(&(start..end)).unwrap_or_default();
        Block {
            address: LinkAddr(start),
            code: vec![Span {
                address: LinkAddr(start),
                bytes: bytes.to_vec(),
            }],
            instructions: block.ops.len() as u32,
            lines: self.facts.debug.runs(block.ops),
            place: None,
            operation: None,
        }
    }
}

/// The items of a sorted list that lie in a range.
pub fn between(sorted: &[u64], range: Range<u64>) -> &[u64] {
    let start = sorted.partition_point(|at| *at < range.start);
    let end = sorted.partition_point(|at| *at < range.end);
    sorted.get(start..end).unwrap_or_default()
}
