//! What is in a routine, and what would probes cost where?

use headcount_model::{
    BlockId, Edge, EdgeId, EdgeKind, Entrance, FlowGraph, LinkAddr, Node, ProbeCosts, Routine,
};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

use crate::flags::{self, Adding, Flags};

/// Why a routine cannot be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotCopy {
    /// A block's lengths are not those of its instructions.
    NotCode(u64),
    /// The copy is too far away from what it speaks of.
    OutOfReach,
    /// The plan is not one of this routine.
    WrongPlan,
    /// Control arrives at a call that can be made from its own place only.
    StuckCall(u64),
}

impl std::fmt::Display for CannotCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotCode(at) => write!(f, "it has bytes that are no instructions at {at:#x}"),
            Self::OutOfReach => write!(f, "what it refers to is more than two gigabytes away"),
            Self::StuckCall(at) => write!(f, "the call at {at:#x} can be made from there only"),
            Self::WrongPlan => write!(f, "its plan belongs to another routine"),
        }
    }
}

/// What one execution of a probe costs, in tenths of an increment.
const INCREMENT: u32 = 10;
/// The same where the flags must be kept: five instructions.
const CAREFUL: u32 = 35;
/// A jump that would not be there without the probe.
const JUMP: u32 = 10;

/// A routine, decoded.
#[derive(Debug)]
pub struct Sketch {
    pub(crate) routine: Routine,
    pub(crate) blocks: Vec<Block>,
    graph: FlowGraph,
    /// The same edges, with those of calls leading to where they return.
    natural: FlowGraph,
    costs: ProbeCosts,
    hands_flags_to: Vec<LinkAddr>,
    written_flags: u32,
}

/// A block, decoded.
#[derive(Debug)]
pub(crate) struct Block {
    pub code: Vec<Instruction>,
    pub end: End,
    pub entrance: Option<EdgeId>,
    /// Before which instruction a probe of the block stands.
    pub site: usize,
    /// Must that probe keep the flags?
    pub site_is_careful: bool,
    /// Must a probe keep the flags that stands before the first instruction?
    pub start_is_careful: bool,
    /// Do flags from before its last instruction matter behind it?
    pub end_is_careful: bool,
    /// The flags that matter behind it.
    pub end_flags: u32,
}

/// How a block ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Behind its last instruction something else begins.
    Fall(Way),
    Branch {
        taken: Way,
        fall: Way,
    },
    Jump(Way),
    Call,
    /// It returns or goes where nobody can tell.
    Leave,
}

/// Where an edge leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub to: Target,
    pub edge: EdgeId,
}

/// The end of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Block(u32),
    /// A link address that is not the beginning of a block.
    Elsewhere(u64),
}

impl Sketch {
    /// Decodes a routine, for probes that add like this.
    pub fn of(routine: Routine, adding: Adding) -> Result<Self, CannotCopy> {
        let mut codes = Vec::with_capacity(routine.blocks.len());
        for block in &routine.blocks {
            codes.push(decode(&routine, block)?);
        }
        let mut builder = Builder {
            routine: &routine,
            edges: Vec::new(),
        };
        let mut blocks = Vec::with_capacity(codes.len());
        for (number, code) in (0..).zip(codes) {
            blocks.push(builder.block(number, code));
        }
        let edges = builder.edges;
        let flags = Flags::of(&blocks, routine.keeps_flags, adding);
        flags.choose_sites(&mut blocks);
        let hands_flags_to = flags.handed_to(&blocks);
        let graph = FlowGraph {
            blocks: blocks.len() as u32,
            edges,
        };
        let natural = natural(&routine, &blocks, &graph);
        let costs = costs(&blocks, &graph);
        Ok(Self {
            routine,
            blocks,
            graph,
            natural,
            costs,
            hands_flags_to,
            written_flags: flags.written(),
        })
    }

    /// Must what stands before an instruction of a block keep the flags?
    pub(crate) fn flags_matter(&self, block: usize, index: usize) -> bool {
        let block = &self.blocks[block];
        flags::matter_before(&block.code[index..], block.end_flags, self.written_flags)
    }

    /// Its flow graph. What calls do, and indirect jumps, happens outside.
    pub fn graph(&self) -> &FlowGraph {
        &self.graph
    }

    /// A graph with the same edges to guess frequencies from: here, calls return.
    pub fn natural_graph(&self) -> &FlowGraph {
        &self.natural
    }

    /// The routines that surely run once this one does: what it calls, or jumps to, before it
    /// branches.
    pub fn sure_to_run(&self) -> Vec<LinkAddr> {
        let mut found = Vec::new();
        let mut number = 0;
        // No block twice: it may go round in a circle.
        for _ in &self.blocks {
            let Some(block) = self.blocks.get(number as usize) else {
                break;
            };
            let way = match block.end {
                End::Fall(way) | End::Jump(way) => way.to,
                End::Call => {
                    let call = block.code.last().filter(|it| it.is_call_near());
                    found.extend(call.map(|it| LinkAddr(it.near_branch_target())));
                    Target::Block(number + 1)
                }
                End::Branch { .. } | End::Leave => break,
            };
            match way {
                Target::Block(next) => number = next,
                Target::Elsewhere(at) => {
                    found.push(LinkAddr(at));
                    break;
                }
            }
        }
        found
    }

    /// Is there an indirect jump, and does the routine make addresses of its own code? Then it may
    /// reckon where to jump, and any instruction may be that.
    pub(crate) fn reckons_jumps(&self) -> bool {
        let routine = &self.routine;
        let start = routine.start.0;
        let inside = start + 1..start + routine.bytes.len() as u64;
        let makes_own_address = |it: &Instruction| {
            let is_near = it.is_ip_rel_memory_operand();
            let own = is_near && inside.contains(&it.ip_rel_memory_address());
            let immediate = |kind: OpKind| match kind {
                OpKind::Immediate32 => Some(u64::from(it.immediate32())),
                OpKind::Immediate32to64 => Some(it.immediate32to64() as u64),
                OpKind::Immediate64 => Some(it.immediate64()),
                _ => None,
            };
            let mut kinds = it.op_kinds();
            own || kinds.any(|kind| immediate(kind).is_some_and(|it| inside.contains(&it)))
        };
        self.has_indirect_jumps()
            && self
                .blocks
                .iter()
                .flat_map(|it| &it.code)
                .any(makes_own_address)
    }

    /// Is there an indirect jump that may lead to a place in here? Nobody can be sure to know all
    /// such places, be it that a table was found.
    pub fn has_indirect_jumps(&self) -> bool {
        let is_one = |last: &Instruction| {
            // Through a fixed slot, it is a call without return.
            last.flow_control() == FlowControl::IndirectBranch && !last.is_ip_rel_memory_operand()
        };
        let mut lasts = self.blocks.iter().filter_map(|it| it.code.last());
        self.routine.has_unknown_jumps || lasts.any(is_one)
    }

    /// For each block: does anything that we know of lead to it, and nothing else? Where no table
    /// tells functions apart, one may begin behind every block that does not go on.
    pub(crate) fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.blocks.len()];
        for edge in &self.graph.edges {
            if let Node::Block(block) = edge.to {
                reached[block.index()] = true;
            }
        }
        for (number, blocks) in self.blocks.windows(2).enumerate() {
            if self.routine.may_be_several && !falls_into(&blocks[0], number + 1) {
                reached[number + 1] = blocks[1].entrance.is_some();
            }
        }
        reached
    }

    /// The routines that flags pass through: their flags matter, too.
    pub fn hands_flags_to(&self) -> &[LinkAddr] {
        &self.hands_flags_to
    }

    /// What probes cost.
    pub fn costs(&self) -> &ProbeCosts {
        &self.costs
    }

    /// What was decoded.
    pub fn routine(&self) -> &Routine {
        &self.routine
    }
}

fn decode(
    routine: &Routine,
    block: &headcount_model::RoutineBlock,
) -> Result<Vec<Instruction>, CannotCopy> {
    let mut offset = block.offset as usize;
    let mut code = Vec::with_capacity(block.lengths.len());
    for length in &block.lengths {
        let at = routine.start.0.wrapping_add(offset as u64);
        let end = offset + usize::from(*length);
        let bytes = routine.bytes.get(offset..end);
        let bytes = bytes.ok_or(CannotCopy::NotCode(at))?;
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        if instruction.is_invalid() || instruction.len() != usize::from(*length) {
            return Err(CannotCopy::NotCode(at));
        }
        code.push(instruction);
        offset = end;
    }
    match code.is_empty() {
        true => Err(CannotCopy::NotCode(routine.start.0)),
        false => Ok(code),
    }
}

struct Builder<'a> {
    routine: &'a Routine,
    edges: Vec<Edge>,
}

impl Builder<'_> {
    fn block(&mut self, number: u32, code: Vec<Instruction>) -> Block {
        let entrance = match self.routine.blocks[number as usize].entrance {
            Entrance::None => None,
            Entrance::Entry => Some(EdgeKind::Entry),
            Entrance::Arrival => Some(EdgeKind::Arrival),
        };
        let here = Node::Block(BlockId(number));
        let entrance = entrance.map(|kind| self.edge(Node::Outside, here, kind));
        let end = self.end(here, &code);
        Block {
            code,
            end,
            entrance,
            site: 0,
            site_is_careful: false,
            start_is_careful: false,
            end_is_careful: false,
            end_flags: 0,
        }
    }

    fn end(&mut self, from: Node, code: &[Instruction]) -> End {
        let Some(last) = code.last() else {
            return End::Leave;
        };
        let is_direct = matches!(
            last.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        match last.flow_control() {
            FlowControl::UnconditionalBranch if is_direct => {
                End::Jump(self.way(from, last.near_branch_target(), EdgeKind::Jump))
            }
            FlowControl::ConditionalBranch if is_direct => End::Branch {
                taken: self.way(from, last.near_branch_target(), EdgeKind::Taken),
                fall: self.way(from, last.next_ip(), EdgeKind::Fall),
            },
            _ if is_call(last) => {
                self.edge(from, Node::Outside, EdgeKind::Lost);
                End::Call
            }
            FlowControl::Return
            | FlowControl::IndirectBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch
            | FlowControl::Exception => {
                self.edge(from, Node::Outside, EdgeKind::Leave);
                End::Leave
            }
            _ => End::Fall(self.way(from, last.next_ip(), EdgeKind::Fall)),
        }
    }

    fn way(&mut self, from: Node, to: u64, kind: EdgeKind) -> Way {
        let offset = to.wrapping_sub(self.routine.start.0);
        let blocks = &self.routine.blocks;
        let found = blocks.binary_search_by_key(&offset, |it| u64::from(it.offset));
        match found {
            Ok(block) => {
                let block = block as u32;
                Way {
                    to: Target::Block(block),
                    edge: self.edge(from, Node::Block(BlockId(block)), kind),
                }
            }
            Err(_) => Way {
                to: Target::Elsewhere(to),
                edge: self.edge_out(from),
            },
        }
    }

    /// Nobody can tell two ways out of one block apart, so one edge stands for both.
    fn edge_out(&mut self, from: Node) -> EdgeId {
        match self.edges.last() {
            Some(last) if last.from == from && last.to == Node::Outside => {
                EdgeId(self.edges.len() as u32 - 1)
            }
            _ => self.edge(from, Node::Outside, EdgeKind::Leave),
        }
    }

    fn edge(&mut self, from: Node, to: Node, kind: EdgeKind) -> EdgeId {
        self.edges.push(Edge { from, to, kind });
        EdgeId(self.edges.len() as u32 - 1)
    }
}

/// Is it a call of the program's own code (and not of the kernel)?
pub(crate) fn is_call(instruction: &Instruction) -> bool {
    instruction.is_call_near()
        || instruction.is_call_far()
        || instruction.is_call_near_indirect()
        || instruction.is_call_far_indirect()
}

/// The graph in which calls return, and switches lead to their cases.
fn natural(routine: &Routine, blocks: &[Block], graph: &FlowGraph) -> FlowGraph {
    let mut natural = graph.clone();
    let mut switch = None;
    for (number, block) in (0..).zip(blocks) {
        if let Some(edge) = block.entrance
            && routine.blocks[number as usize].entrance == Entrance::Arrival
        {
            let before = blocks[..number as usize].last();
            let is_return = before.is_some_and(|it| matches!(it.end, End::Call));
            let edge = &mut natural.edges[edge.index()];
            if is_return {
                edge.from = Node::Block(BlockId(number - 1));
                edge.kind = EdgeKind::Fall;
            } else if let Some(switch) = switch {
                edge.from = Node::Block(BlockId(switch));
                edge.kind = EdgeKind::Jump;
            }
        }
        let is_switch = |last: &Instruction| last.flow_control() == FlowControl::IndirectBranch;
        if block.code.last().is_some_and(is_switch) {
            switch = Some(number);
        }
    }
    natural
}

fn costs(blocks: &[Block], graph: &FlowGraph) -> ProbeCosts {
    let of = |is_careful: bool| if is_careful { CAREFUL } else { INCREMENT };
    let mut costs = ProbeCosts {
        blocks: blocks
            .iter()
            .map(|it| Some(of(it.site_is_careful)))
            .collect(),
        edges: vec![None; graph.edges.len()],
    };
    for (number, block) in blocks.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| &blocks[before]);
        if let Some(edge) = block.entrance {
            let apart = before.is_some_and(|it| falls_into(it, number));
            let jump = if apart { JUMP } else { 0 };
            costs.edges[edge.index()] = Some(of(block.start_is_careful) + jump);
        }
        let mut set = |way: Way, extra: u32| {
            if let Target::Block(to) = way.to {
                let is_careful = blocks[to as usize].start_is_careful;
                costs.edges[way.edge.index()] = Some(of(is_careful) + extra);
            }
        };
        match block.end {
            End::Fall(way) | End::Jump(way) => set(way, 0),
            End::Branch { taken, fall } => {
                set(taken, JUMP);
                set(fall, 0);
            }
            End::Call | End::Leave => {}
        }
    }
    costs
}

/// Does control run from one block straight into another?
pub(crate) fn falls_into(block: &Block, number: usize) -> bool {
    match block.end {
        End::Fall(way) | End::Branch { fall: way, .. } => way.to == Target::Block(number as u32),
        _ => false,
    }
}
