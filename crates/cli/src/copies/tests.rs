//! Programs made up by hand and at random, run step by step, where functions and routines cut the
//! code in ways of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use headcount_flow::{frequencies, place_counters};
use headcount_model::{
    Block, BlockId, Edge, EdgeKind, FlowGraph, Function, FunctionCounts, FunctionEdge, LinkAddr,
    Module, Node, Place, ProbeCosts, Readings, RoutineBlock, Shift, Span,
};

use headcount_profile::ModuleFacts;

use super::{Reading, counts};
use crate::readings::{self, ModuleReadings};

/// Repeatable random numbers (Steele, Lea and Flood's SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, limit: usize) -> bool {
        self.below(limit) == 0
    }
}

/// An instruction; targets are numbers of instructions.
#[derive(Clone, Debug)]
enum Op {
    Plain(usize),
    Branch(usize),
    Jump(usize),
    Call(usize),
    Table(Vec<usize>),
    Return,
}

impl Op {
    /// Something that has the right length; where it leads does not matter to a count.
    fn bytes(&self) -> &'static [u8] {
        const NOPS: [&[u8]; 4] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x40, 0],
            &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
        ];
        match self {
            Self::Plain(length) => NOPS[*length],
            Self::Branch(_) => &[0x0f, 0x84, 0, 0, 0, 0],
            Self::Jump(_) => &[0xe9, 0, 0, 0, 0],
            Self::Call(_) => &[0xe8, 0, 0, 0, 0],
            Self::Table(_) => &[0xff, 0xe0],
            Self::Return => &[0xc3],
        }
    }

    fn targets(&self) -> Vec<usize> {
        match self {
            Self::Branch(to) | Self::Jump(to) => vec![*to],
            Self::Table(targets) => targets.clone(),
            Self::Plain(_) | Self::Call(_) | Self::Return => vec![],
        }
    }
}

/// Instructions that lie together.
#[derive(Clone, Debug)]
struct Part {
    function: usize,
    ops: Range<usize>,
}

#[derive(Debug, Default)]
struct Program {
    ops: Vec<Op>,
    addresses: Vec<LinkAddr>,
    parts: Vec<Part>,
    /// The part of each instruction.
    part_of: Vec<usize>,
    /// First instruction of each function.
    entries: Vec<usize>,
    pads: BTreeSet<usize>,
}

impl Program {
    /// Functions of which each may have a second part, behind all others.
    fn random(dice: &mut Dice) -> Self {
        let mut program = Self::default();
        let functions = 1 + dice.below(4);
        let mut owners: Vec<usize> = (0..functions).collect();
        owners.extend((0..functions).filter(|_| dice.one_in(2)));
        let mut next = 0;
        for (number, function) in owners.into_iter().enumerate() {
            let ops = next..next + 1 + dice.below(14);
            next = ops.end;
            program.part_of.extend(ops.clone().map(|_| number));
            if number < functions {
                program.entries.push(ops.start);
            }
            program.parts.push(Part { function, ops });
        }
        for number in 0..next {
            let op = program.random_op(number, dice);
            program.ops.push(op);
            if dice.one_in(20) {
                program.pads.insert(number);
            }
        }
        for entry in &program.entries {
            program.pads.remove(entry);
        }
        program.lay_out();
        program
    }

    fn random_op(&self, number: usize, dice: &mut Dice) -> Op {
        let part = &self.parts[self.part_of[number]];
        let own: Vec<usize> = (0..self.part_of.len())
            .filter(|it| self.function_of(*it) == part.function)
            .collect();
        let target = |dice: &mut Dice| match dice.one_in(8) {
            true => self.entries[dice.below(self.entries.len())],
            false => own[dice.below(own.len())],
        };
        let is_last = number + 1 == part.ops.end;
        match dice.below(14) {
            0 => Op::Return,
            1 => Op::Jump(target(dice)),
            2 => {
                let targets: BTreeSet<usize> = (0..1 + dice.below(4))
                    .map(|_| own[dice.below(own.len())])
                    .collect();
                Op::Table(targets.into_iter().collect())
            }
            _ if is_last => Op::Return,
            3..=6 => Op::Branch(target(dice)),
            7 | 8 => Op::Call(self.entries[dice.below(self.entries.len())]),
            _ => Op::Plain(dice.below(4)),
        }
    }

    fn lay_out(&mut self) {
        let mut at = 0x1000;
        for (number, op) in self.ops.iter().enumerate() {
            let part = &self.parts[self.part_of[number]];
            if part.ops.start == number {
                at = (at + 0x1f) & !0xf;
            }
            self.addresses.push(LinkAddr(at));
            at += op.bytes().len() as u64;
        }
    }

    fn function_of(&self, op: usize) -> usize {
        self.parts[self.part_of[op]].function
    }

    /// Where control comes in from another part, or by a way that the part itself does not show.
    fn entrances(&self) -> BTreeSet<usize> {
        let mut found: BTreeSet<usize> = self.parts.iter().map(|part| part.ops.start).collect();
        found.extend(&self.pads);
        for (number, op) in self.ops.iter().enumerate() {
            match op {
                Op::Call(_) => found.extend([number + 1]),
                Op::Table(targets) => found.extend(targets),
                Op::Branch(to) | Op::Jump(to) if self.part_of[*to] != self.part_of[number] => {
                    found.extend([*to]);
                }
                _ => {}
            }
        }
        found
    }

    /// Where blocks must begin, and some more.
    fn leaders(&self, dice: &mut Dice) -> BTreeSet<usize> {
        let mut leaders = self.entrances();
        for (number, op) in self.ops.iter().enumerate() {
            leaders.extend(op.targets());
            if !matches!(op, Op::Plain(_)) {
                leaders.insert(number + 1);
            }
            if dice.one_in(6) {
                leaders.insert(number);
            }
        }
        leaders.remove(&self.ops.len());
        leaders
    }

    /// The blocks of a part, as ranges of instructions.
    fn cut(&self, part: &Part, leaders: &BTreeSet<usize>) -> Vec<Range<usize>> {
        let starts: Vec<usize> = leaders.range(part.ops.clone()).copied().collect();
        let ends = starts[1..].iter().copied().chain([part.ops.end]);
        starts
            .iter()
            .copied()
            .zip(ends)
            .map(|(a, b)| a..b)
            .collect()
    }

    fn module(&self, leaders: &BTreeSet<usize>) -> Module {
        let functions = self.entries.iter().enumerate();
        let functions = functions.map(|(number, entry)| Function {
            name: format!("function_{number}"),
            address: self.addresses[*entry],
            source: None,
            blocks: self.blocks(&self.pieces(number, leaders)),
            edges: self.edges(&self.pieces(number, leaders)),
            counters: 0,
            compiled: Default::default(),
        });
        Module {
            functions: functions.collect(),
            ..Module::default()
        }
    }

    fn pieces(&self, function: usize, leaders: &BTreeSet<usize>) -> Vec<Range<usize>> {
        let parts = self.parts.iter().filter(|it| it.function == function);
        parts.flat_map(|part| self.cut(part, leaders)).collect()
    }

    fn blocks(&self, pieces: &[Range<usize>]) -> Vec<Block> {
        let block = |piece: &Range<usize>| {
            let address = self.addresses[piece.start];
            let bytes = self.ops[piece.clone()].iter().flat_map(Op::bytes).copied();
            Block {
                address,
                code: vec![Span {
                    address,
                    bytes: bytes.collect(),
                }],
                instructions: piece.len() as u32,
                lines: vec![],
                place: None,
                operation: None,
            }
        };
        pieces.iter().map(block).collect()
    }

    /// The edges as `binary` makes them.
    fn edges(&self, pieces: &[Range<usize>]) -> Vec<FunctionEdge> {
        let find = |op: usize| {
            let found = pieces.iter().position(|it| it.start == op);
            found.map(|it| it as u32)
        };
        let mut edges = Vec::new();
        for (number, piece) in (0..).zip(pieces) {
            let from = Some(number);
            let mut edge = |from, to, kind| edges.push(FunctionEdge { from, to, kind });
            let mut go = |op, kind| match find(op) {
                Some(to) => edge(from, Some(to), kind),
                None => edge(from, None, EdgeKind::Leave),
            };
            match &self.ops[piece.end - 1] {
                Op::Plain(_) => go(piece.end, EdgeKind::Fall),
                Op::Jump(to) => go(*to, EdgeKind::Jump),
                Op::Table(targets) => targets.iter().for_each(|to| go(*to, EdgeKind::Jump)),
                Op::Branch(to) => {
                    go(*to, EdgeKind::Taken);
                    go(piece.end, EdgeKind::Fall);
                }
                Op::Call(_) => {
                    go(piece.end, EdgeKind::Fall);
                    edge(from, None, EdgeKind::Lost);
                }
                Op::Return => edge(from, None, EdgeKind::Leave),
            }
            if self.entries.contains(&piece.start) {
                edge(None, from, EdgeKind::Entry);
            } else if self.pads.contains(&piece.start) {
                edge(None, from, EdgeKind::Arrival);
            }
        }
        edges
    }
}

/// A copy of a part, with the counters of everything in it.
#[derive(Debug, Default)]
struct Replica {
    blocks: Vec<Range<usize>>,
    graph: FlowGraph,
    /// How often control entered by each block, took each way, and ran each instruction.
    entered: BTreeMap<usize, u64>,
    taken: BTreeMap<(usize, usize, EdgeKind), u64>,
    ran: BTreeMap<usize, u64>,
    visits: Vec<(LinkAddr, i64)>,
}

impl Replica {
    fn new(program: &Program, part: &Part, leaders: &BTreeSet<usize>) -> Self {
        let blocks = program.cut(part, leaders);
        let find = |op: usize| {
            let found = blocks.iter().position(|it| it.start == op);
            found.map_or(Node::Outside, |it| Node::Block(BlockId(it as u32)))
        };
        let entrances = program.entrances();
        let mut edges = Vec::new();
        for block in &blocks {
            let here = find(block.start);
            let mut edge = |from, to, kind| edges.push(Edge { from, to, kind });
            if block.start == part.ops.start {
                edge(Node::Outside, here, EdgeKind::Entry);
            } else if entrances.contains(&block.start) {
                edge(Node::Outside, here, EdgeKind::Arrival);
            }
            match &program.ops[block.end - 1] {
                Op::Plain(_) => edge(here, find(block.end), EdgeKind::Fall),
                Op::Jump(to) => edge(here, find(*to), EdgeKind::Jump),
                Op::Branch(to) => {
                    edge(here, find(*to), EdgeKind::Taken);
                    edge(here, find(block.end), EdgeKind::Fall);
                }
                Op::Call(_) => edge(here, Node::Outside, EdgeKind::Lost),
                Op::Table(_) | Op::Return => edge(here, Node::Outside, EdgeKind::Leave),
            }
        }
        Self {
            graph: FlowGraph {
                blocks: blocks.len() as u32,
                edges,
            },
            blocks,
            ..Self::default()
        }
    }

    fn reading(self, program: &Program) -> Reading {
        let start = program.addresses[self.blocks[0].start];
        let blocks = self.blocks.iter().map(|block| RoutineBlock {
            offset: (program.addresses[block.start].0 - start.0) as u32,
            lengths: program.ops[block.clone()]
                .iter()
                .map(|op| op.bytes().len() as u8)
                .collect(),
            ..RoutineBlock::default()
        });
        let costs = ProbeCosts {
            blocks: vec![Some(10); self.blocks.len()],
            edges: self
                .graph
                .edges
                .iter()
                .map(|edge| Some(10).filter(|_| edge.to != Node::Outside))
                .collect(),
        };
        let plan = place_counters(&self.graph, &frequencies(&self.graph, &[]), &costs);
        let plan = plan.expect("solvable");
        let start_of = |block: BlockId| self.blocks[block.index()].start;
        let read = |place: &Place| -> u64 {
            let count = match place {
                Place::Block(block) => self.ran.get(&start_of(*block)),
                Place::Edge(edge) => match self.graph.edges[edge.index()] {
                    Edge {
                        from: Node::Block(from),
                        to: Node::Block(to),
                        kind,
                    } => {
                        let last = self.blocks[from.index()].end - 1;
                        self.taken.get(&(last, start_of(to), kind))
                    }
                    Edge {
                        to: Node::Block(to),
                        ..
                    } => self.entered.get(&start_of(to)),
                    Edge { .. } => unreachable!("no probe stands on a way out"),
                },
            };
            count.copied().unwrap_or(0)
        };
        Reading {
            start,
            blocks: blocks.collect(),
            doubtful: Vec::new(),
            readings: Readings(plan.counters.iter().map(read).collect()),
            plan,
            graph: self.graph,
            visits: self.visits,
        }
    }
}

#[derive(Clone, Debug)]
enum Frame {
    /// A call at this instruction.
    Call(usize),
    /// A signal came before this instruction.
    Signal(usize),
}

#[derive(Clone, Debug)]
struct Thread {
    at: usize,
    version: usize,
    frames: Vec<Frame>,
}

/// What really happened, by instruction.
#[derive(Debug, Default)]
struct Truth {
    ran: BTreeMap<usize, u64>,
    taken: BTreeMap<(usize, usize, EdgeKind), u64>,
    called: BTreeMap<usize, u64>,
    returned: BTreeMap<usize, u64>,
    left: BTreeMap<usize, u64>,
    entered: BTreeMap<usize, u64>,
    arrived: BTreeMap<usize, u64>,
}

fn count_one<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_default() += 1;
}

const VERSIONS: usize = 2;

struct Walks<'a> {
    program: &'a Program,
    /// By part and version.
    copies: Vec<Vec<Replica>>,
    threads: Vec<Thread>,
    truth: Truth,
    dice: Dice,
}

impl<'a> Walks<'a> {
    fn run(program: &'a Program, mut dice: Dice) -> (Truth, Vec<Reading>) {
        let cuts: Vec<BTreeSet<usize>> =
            (0..VERSIONS).map(|_| program.leaders(&mut dice)).collect();
        let copies = program.parts.iter().map(|part| {
            let copies = cuts
                .iter()
                .map(|leaders| Replica::new(program, part, leaders));
            copies.collect()
        });
        let mut walks = Self {
            program,
            copies: copies.collect(),
            threads: vec![],
            truth: Truth::default(),
            dice,
        };
        for _ in 0..walks.dice.below(600) {
            walks.something_happens();
        }
        while let Some(thread) = walks.threads.pop() {
            walks.visit(&thread, -1);
        }
        let copies = walks.copies.into_iter().flatten();
        // What nobody came to was never copied.
        let copies = copies.filter(|it| !it.entered.is_empty() || !it.visits.is_empty());
        let readings = copies.map(|copy| copy.reading(program)).collect();
        (walks.truth, readings)
    }

    fn something_happens(&mut self) {
        if self.threads.is_empty() {
            return self.begin();
        }
        let number = self.dice.below(self.threads.len());
        let mut thread = self.threads.swap_remove(number);
        match self.dice.below(40) {
            0 => {
                self.begin();
                self.threads.push(thread);
            }
            1 => self.visit(&thread, -1),
            2 => {
                // A signal, and its handler.
                self.visit(&thread, -1);
                thread.frames.push(Frame::Signal(thread.at));
                self.call(thread);
            }
            3 => {
                // `fork`.
                let mut child = thread.clone();
                child.version = self.dice.below(VERSIONS);
                self.visit(&child, 1);
                self.threads.extend([thread, child]);
            }
            4 => {
                // A debugger, say, or a handler that changes where to go on.
                self.visit(&thread, -1);
                thread.at = self.dice.below(self.program.ops.len());
                thread.version = self.dice.below(VERSIONS);
                self.visit(&thread, 1);
                self.threads.push(thread);
            }
            5 if self.dice.one_in(3) => {
                self.attach();
                self.threads.push(thread);
            }
            _ => self.step(thread),
        }
    }

    fn begin(&mut self) {
        self.call(Thread {
            at: 0,
            version: 0,
            frames: vec![],
        });
    }

    /// Counting begins while a thread is somewhere, called from elsewhere.
    fn attach(&mut self) {
        let is_call = |it: &usize| matches!(self.program.ops[*it], Op::Call(_));
        let calls: Vec<usize> = (0..self.program.ops.len()).filter(is_call).collect();
        let depth = self.dice.below(3).min(calls.len());
        let frames = (0..depth).map(|_| Frame::Call(calls[self.dice.below(calls.len())]));
        let thread = Thread {
            frames: frames.collect(),
            at: self.dice.below(self.program.ops.len()),
            version: self.dice.below(VERSIONS),
        };
        self.visit(&thread, 1);
        self.threads.push(thread);
    }

    /// The thread calls any function.
    fn call(&mut self, thread: Thread) {
        let entry = self.dice.below(self.program.entries.len());
        let entry = self.program.entries[entry];
        count_one(&mut self.truth.entered, entry);
        self.enter(thread, entry);
    }

    /// The thread comes into a part from elsewhere.
    fn enter(&mut self, mut thread: Thread, at: usize) {
        thread.at = at;
        thread.version = self.dice.below(VERSIONS);
        count_one(&mut self.copy(&thread).entered, at);
        self.threads.push(thread);
    }

    fn copy(&mut self, thread: &Thread) -> &mut Replica {
        &mut self.copies[self.program.part_of[thread.at]][thread.version]
    }

    fn visit(&mut self, thread: &Thread, delta: i64) {
        let address = self.program.addresses[thread.at];
        self.copy(thread).visits.push((address, delta));
    }

    fn step(&mut self, mut thread: Thread) {
        let at = thread.at;
        count_one(&mut self.truth.ran, at);
        count_one(&mut self.copy(&thread).ran, at);
        match self.program.ops[at].clone() {
            Op::Plain(_) => self.go(thread, at + 1, EdgeKind::Fall),
            Op::Jump(to) => self.go(thread, to, EdgeKind::Jump),
            Op::Branch(_) if self.dice.one_in(2) => self.go(thread, at + 1, EdgeKind::Fall),
            Op::Branch(to) => self.go(thread, to, EdgeKind::Taken),
            Op::Table(targets) => {
                let to = targets[self.dice.below(targets.len())];
                count_one(&mut self.truth.taken, (at, to, EdgeKind::Jump));
                self.enter(thread, to);
            }
            Op::Call(to) => {
                count_one(&mut self.truth.called, at);
                thread.frames.push(Frame::Call(at));
                count_one(&mut self.truth.entered, to);
                self.enter(thread, to);
            }
            Op::Return => self.come_back(thread),
        }
    }

    fn go(&mut self, mut thread: Thread, to: usize, kind: EdgeKind) {
        let at = thread.at;
        let program = self.program;
        if program.function_of(at) == program.function_of(to) {
            count_one(&mut self.truth.taken, (at, to, kind));
        } else {
            count_one(&mut self.truth.left, at);
            count_one(&mut self.truth.entered, to);
        }
        if program.part_of[at] == program.part_of[to] {
            count_one(&mut self.copy(&thread).taken, (at, to, kind));
            thread.at = to;
            self.threads.push(thread);
        } else {
            self.enter(thread, to);
        }
    }

    fn come_back(&mut self, mut thread: Thread) {
        let at = thread.at;
        count_one(&mut self.truth.left, at);
        match thread.frames.pop() {
            None => {}
            Some(Frame::Signal(to)) => {
                thread.at = to;
                thread.version = self.dice.below(VERSIONS);
                self.visit(&thread, 1);
                self.threads.push(thread);
            }
            Some(Frame::Call(call)) => {
                let function = self.program.function_of(call);
                let pads = self.program.pads.iter().copied();
                let pad = pads
                    .into_iter()
                    .find(|it| self.program.function_of(*it) == function);
                if let Some(pad) = pad.filter(|_| self.dice.one_in(4)) {
                    count_one(&mut self.truth.arrived, pad);
                    return self.enter(thread, pad);
                }
                count_one(&mut self.truth.returned, call);
                self.enter(thread, call + 1);
            }
        }
    }
}

impl Truth {
    fn edge(&self, program: &Program, pieces: &[Range<usize>], edge: &FunctionEdge) -> u64 {
        let last = edge.from.map(|it| pieces[it as usize].end - 1);
        let first = edge.to.map(|it| pieces[it as usize].start);
        let get = |counts: &BTreeMap<usize, u64>, at| counts.get(&at).copied().unwrap_or(0);
        match (edge.kind, last, first) {
            (EdgeKind::Entry, _, Some(to)) => get(&self.entered, to),
            (EdgeKind::Arrival, _, Some(to)) => get(&self.arrived, to),
            (EdgeKind::Lost, Some(from), _) => {
                get(&self.called, from).saturating_sub(get(&self.returned, from))
            }
            (EdgeKind::Leave, Some(from), _) => get(&self.left, from),
            (kind, Some(from), Some(to)) => match program.ops[from] {
                Op::Call(_) => get(&self.returned, from),
                _ => self.taken.get(&(from, to, kind)).copied().unwrap_or(0),
            },
            _ => unreachable!("no such edge is made"),
        }
    }
}

/// How often each instruction of a block ran, by what the counts say.
fn spread(counts: &FunctionCounts, block: usize, instructions: usize) -> Option<Vec<u64>> {
    let count = counts.blocks[block]? as i64;
    let at = |index: usize| {
        let shifts = counts.shifts.iter();
        let shifts = shifts.filter(|it| it.block as usize == block && it.from as usize <= index);
        (count + shifts.map(|it| it.delta).sum::<i64>()) as u64
    };
    Some((0..instructions).map(at).collect())
}

#[test]
fn counts_agree_with_random_programs_counted_by_hand() {
    let (mut known, mut all, mut shifted) = (0, 0, 0);
    for seed in 0..3000 {
        let mut dice = Dice(seed);
        let program = Program::random(&mut dice);
        let cut = program.leaders(&mut dice);
        let module = program.module(&cut);
        let unwatched = dice.below(8);
        let (truth, readings) = Walks::run(&program, dice);
        let is_watched = |at| {
            program
                .entries
                .get(unwatched)
                .map(|it| program.addresses[*it])
                != Some(at)
        };
        let (found, notes) = counts(&module, &readings, &is_watched);
        assert!(notes.is_empty(), "seed {seed}: {notes:?}");
        for (number, function) in module.functions.iter().enumerate() {
            let counts = &found.functions[number];
            if number == unwatched {
                assert!(
                    counts
                        .blocks
                        .iter()
                        .chain(&counts.edges)
                        .all(Option::is_none)
                );
                continue;
            }
            shifted += counts.shifts.len();
            let pieces = program.pieces(number, &cut);
            for (block, piece) in pieces.iter().enumerate() {
                let ran = piece
                    .clone()
                    .map(|it| truth.ran.get(&it).copied().unwrap_or(0));
                assert_eq!(
                    spread(counts, block, piece.len()),
                    Some(ran.collect()),
                    "seed {seed}, function {number}, block {block}"
                );
            }
            for (edge, count) in function.edges.iter().zip(&counts.edges) {
                let expected = truth.edge(&program, &pieces, edge);
                let context = || format!("seed {seed}, function {number}, {edge:?}");
                all += 1;
                match count {
                    Some(count) => assert_eq!(*count, expected, "{}", context()),
                    None => assert!(may_stay_unknown(&program, &pieces, edge), "{}", context()),
                }
                known += usize::from(count.is_some());
            }
        }
    }
    assert!(shifted > 1000, "the test has lost its subject: {shifted}");
    assert!(known * 100 > all * 90, "{known} of {all} edges known");
}

/// What a profile keeps of a random program: all is watched but the function with this number.
fn kept(module: &Module, readings: Vec<Reading>, unwatched: usize) -> (ModuleReadings, Vec<u8>) {
    let uncounted = (unwatched < module.functions.len()).then_some(unwatched..unwatched + 1);
    let readings = ModuleReadings {
        functions: (0..module.functions.len()).collect(),
        uncounted: uncounted.into_iter().collect(),
        refused: Vec::new(),
        readings,
    };
    let bytes = readings.pack();
    (readings, bytes)
}

#[test]
fn what_a_profile_keeps_of_random_programs_says_the_same() {
    let mut all = 0;
    for seed in 0..1000 {
        let mut dice = Dice(seed);
        let program = Program::random(&mut dice);
        let cut = program.leaders(&mut dice);
        let module = program.module(&cut);
        let unwatched = dice.below(8);
        let (truth, made) = Walks::run(&program, dice);
        let facts = ModuleFacts::new(&module, Vec::new());
        let entry = program.entries.get(unwatched);
        let entry = entry.map(|it| program.addresses[*it]);
        let (expected, _) = counts(&module, &made, &|at| Some(at) != entry);
        let (readings, bytes) = kept(&module, made, unwatched);
        let (found, notes) = readings::recover(&facts, &bytes).unwrap();
        assert!(notes.is_empty(), "seed {seed}: {notes:?}");
        for (number, counts) in found.functions {
            assert_eq!(counts, expected.functions[number], "seed {seed}");
        }
        // And so does the summary that is made without them.
        let mut executed = BTreeMap::new();
        for (at, count) in truth.ran {
            let function = program.parts[program.part_of[at]].function;
            if function != unwatched {
                *executed.entry(function).or_insert(0) += count;
            }
        }
        all += executed.len();
        assert_eq!(
            readings::executed(&facts, &readings),
            executed,
            "seed {seed}"
        );
    }
    assert!(all > 500, "{all}");
}

#[test]
fn damaged_readings_are_recovered_or_refused() {
    let mut recovered = 0;
    for seed in 0..4000 {
        let mut dice = Dice(seed);
        let program = Program::random(&mut dice);
        let module = program.module(&program.leaders(&mut dice));
        let (_, made) = Walks::run(&program, Dice(dice.next()));
        let facts = ModuleFacts::new(&module, Vec::new());
        let (_, mut bytes) = kept(&module, made, dice.below(8));
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(bytes.len());
            match dice.below(8) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = 0,
                2 => bytes[at] = 0xff,
                3 => bytes.insert(at, 0x80),
                _ => bytes[at] ^= 1 << dice.below(8),
            }
        }
        recovered += usize::from(readings::recover(&facts, &bytes).is_ok());
    }
    assert!((100..3900).contains(&recovered), "{recovered}");
}

/// Not what the copies see themselves.
fn may_stay_unknown(program: &Program, pieces: &[Range<usize>], edge: &FunctionEdge) -> bool {
    let (Some(from), Some(to)) = (edge.from, edge.to) else {
        return true;
    };
    let last = pieces[from as usize].end - 1;
    let first = pieces[to as usize].start;
    let is_seen = matches!(
        program.ops[last],
        Op::Plain(_) | Op::Branch(_) | Op::Jump(_)
    );
    !is_seen || program.part_of[last] != program.part_of[first]
}

const OUTSIDE: u32 = u32::MAX;

fn node(block: u32) -> Node {
    match block {
        OUTSIDE => Node::Outside,
        block => Node::Block(BlockId(block)),
    }
}

/// A routine at 0x1000 with a counter in every block. Blocks: offset, and lengths of instructions.
fn reading(
    blocks: &[(u32, &[u8], u64)],
    edges: &[(u32, u32, EdgeKind)],
    visits: &[(u64, i64)],
) -> Reading {
    let edges = edges.iter().map(|&(from, to, kind)| Edge {
        from: node(from),
        to: node(to),
        kind,
    });
    let numbers = 0..blocks.len() as u32;
    Reading {
        start: LinkAddr(0x1000),
        blocks: blocks
            .iter()
            .map(|(offset, lengths, _)| RoutineBlock {
                offset: *offset,
                lengths: lengths.to_vec(),
                ..RoutineBlock::default()
            })
            .collect(),
        doubtful: Vec::new(),
        graph: FlowGraph {
            blocks: blocks.len() as u32,
            edges: edges.collect(),
        },
        plan: headcount_model::Plan {
            counters: numbers.map(|it| Place::Block(BlockId(it))).collect(),
        },
        readings: Readings(blocks.iter().map(|(_, _, count)| *count).collect()),
        visits: visits.iter().map(|(at, it)| (LinkAddr(*at), *it)).collect(),
    }
}

/// A function. Blocks: address and bytes.
fn function(
    name: &str,
    blocks: &[(u64, &[u8])],
    edges: &[(Option<u32>, Option<u32>, EdgeKind)],
) -> Function {
    let block = |(at, bytes): &(u64, &[u8])| Block {
        address: LinkAddr(*at),
        code: vec![Span {
            address: LinkAddr(*at),
            bytes: bytes.to_vec(),
        }],
        ..Block::default()
    };
    let edge = |&(from, to, kind): &_| FunctionEdge { from, to, kind };
    Function {
        name: name.to_owned(),
        address: LinkAddr(blocks[0].0),
        source: None,
        blocks: blocks.iter().map(block).collect(),
        edges: edges.iter().map(edge).collect(),
        counters: 0,
        compiled: Default::default(),
    }
}

fn count(functions: &[Function], readings: &[Reading]) -> (Vec<FunctionCounts>, Vec<String>) {
    let module = Module {
        functions: functions.to_vec(),
        ..Module::default()
    };
    let (counts, notes) = counts(&module, readings, &|_| true);
    (counts.functions, notes)
}

use EdgeKind::{Arrival, Entry, Fall, Leave, Lost, Taken};

/// `nop; nop; nop; ret`, seen as one block or as two.
#[test]
fn a_block_of_the_function_spans_two_of_the_routine() {
    let one = [function(
        "one",
        &[(0x1000, b"\x90\x90\x90\xc3")],
        &[(None, Some(0), Entry), (Some(0), None, Leave)],
    )];
    // Something jumped to the third instruction twice, and once a thread died before the last.
    let mut seen = reading(
        &[(0, &[1, 1], 5), (2, &[1, 1], 7)],
        &[
            (OUTSIDE, 0, Entry),
            (0, 1, Fall),
            (OUTSIDE, 1, Arrival),
            (1, OUTSIDE, Leave),
        ],
        &[(0x1003, -1)],
    );
    // The arrivals need a counter, too: five by falling, two by jumping.
    seen.plan
        .counters
        .push(Place::Edge(headcount_model::EdgeId(1)));
    seen.readings.0.push(5);
    let (counts, notes) = count(&one, &[seen]);
    let shift = |from, delta| Shift {
        block: 0,
        from,
        delta,
    };
    assert_eq!(notes, [""; 0]);
    assert_eq!(
        counts,
        [FunctionCounts {
            blocks: vec![Some(5)],
            edges: vec![Some(5), Some(6)],
            shifts: vec![shift(2, 2), shift(3, -1)],
            at_least: vec![],
        }]
    );
}

#[test]
fn a_block_of_the_routine_spans_two_of_the_function() {
    let two = [function(
        "two",
        &[(0x1000, b"\x90\x90"), (0x1002, b"\x90\xc3")],
        &[
            (None, Some(0), Entry),
            (Some(0), Some(1), Fall),
            (Some(1), None, Leave),
        ],
    )];
    // Two threads died: one before the third instruction, one before the last.
    let edges = [(OUTSIDE, 0, Entry), (0, OUTSIDE, Leave)];
    let seen = reading(
        &[(0, &[1, 1, 1, 1], 5)],
        &edges,
        &[(0x1002, -1), (0x1003, -1)],
    );
    let (counts, _) = count(&two, std::slice::from_ref(&seen));
    assert_eq!(counts[0].blocks, [Some(5), Some(4)]);
    assert_eq!(counts[0].edges, [Some(5), Some(5), Some(3)]);
    let shift = Shift {
        block: 1,
        from: 1,
        delta: -1,
    };
    assert_eq!(counts[0].shifts, [shift]);
    // Two copies count together.
    let (twice, _) = count(&two, &[seen.clone(), seen]);
    assert_eq!(twice[0].blocks, [Some(10), Some(8)]);
    assert_eq!(twice[0].edges, [Some(10), Some(10), Some(6)]);
}

/// Two blocks that no routine has: nothing leads to the one, a jump may lead to the other.
#[test]
fn what_may_have_run_uncounted_is_not_taken_for_what_never_ran() {
    let facts = [function(
        "three",
        &[(0x1000, b"\xc3"), (0x1001, b"\xc3"), (0x1002, b"\xc3")],
        &[(None, Some(0), Entry), (Some(0), None, Leave)],
    )];
    let edges = [(OUTSIDE, 0, Entry), (0, OUTSIDE, Leave)];
    let mut seen = reading(&[(0, &[1], 5)], &edges, &[]);
    seen.doubtful.push(2..3);
    let (counts, _) = count(&facts, &[seen]);
    assert_eq!(counts[0].blocks, [Some(5), Some(0), None]);
}

/// `je 1f; lock; 1: cmpxchg %ecx, (%rsi); ret`
#[test]
fn an_instruction_and_the_same_without_its_prefix_count_apart() {
    let edges = [(0, 1, Fall), (0, 2, Taken), (1, 3, Fall), (2, 3, Fall)];
    let mut of_routine = vec![(OUTSIDE, 0, Entry), (3, OUTSIDE, Leave)];
    let mut of_function = vec![(None, Some(0), Entry), (Some(3), None, Leave)];
    of_routine.extend(edges);
    of_function.extend(edges.map(|(from, to, kind)| (Some(from), Some(to), kind)));
    let facts = [function(
        "exchange",
        &[
            (0x1000, b"\x74\x01"),
            (0x1002, b"\xf0\x0f\xb1\x0e"),
            (0x1003, b"\x0f\xb1\x0e"),
            (0x1006, b"\xc3"),
        ],
        &of_function,
    )];
    let blocks: [(u32, &[u8], u64); 4] = [(0, &[2], 9), (2, &[4], 2), (3, &[3], 7), (6, &[1], 9)];
    let (counts, notes) = count(&facts, &[reading(&blocks, &of_routine, &[])]);
    assert_eq!(notes, [""; 0]);
    assert_eq!(
        counts,
        [FunctionCounts::whole([9, 2, 7, 9], [9, 9, 2, 7, 2, 7])]
    );
}

/// `call; ret`: what the copies see of it is that control went away and came.
fn caller() -> Function {
    function(
        "_ZN6callerEv",
        &[(0x1000, b"\xe8\0\0\0\0"), (0x1005, b"\xc3")],
        &[
            (None, Some(0), Entry),
            (Some(0), Some(1), Fall),
            (Some(0), None, Lost),
            (Some(1), None, Leave),
        ],
    )
}

fn calls(made: u64, came_back: u64, visits: &[(u64, i64)]) -> Reading {
    reading(
        &[(0, &[5], made), (5, &[1], came_back)],
        &[
            (OUTSIDE, 0, Entry),
            (0, OUTSIDE, Lost),
            (OUTSIDE, 1, Arrival),
            (1, OUTSIDE, Leave),
        ],
        visits,
    )
}

#[test]
fn a_call_is_lost_as_often_as_it_does_not_come_back() {
    let edges = |counts: Vec<FunctionCounts>| counts[0].edges.clone();
    let (counts, _) = count(&[caller()], &[calls(5, 3, &[])]);
    assert_eq!(edges(counts), [Some(5), Some(3), Some(2), Some(3)]);
    // It forked.
    let (counts, _) = count(&[caller()], &[calls(1, 2, &[])]);
    assert_eq!(edges(counts), [Some(1), Some(2), Some(0), Some(2)]);
    // A thread came back, and died before it could return.
    let (counts, _) = count(&[caller()], &[calls(5, 2, &[(0x1005, -1)])]);
    assert_eq!(edges(counts), [Some(5), Some(3), Some(2), Some(2)]);
}

#[test]
fn what_was_watched_and_never_copied_never_ran() {
    let (counts, notes) = count(&[caller()], &[]);
    assert_eq!(counts, [FunctionCounts::whole([0; 2], [0; 4])]);
    assert_eq!(notes, [""; 0]);
    let module = Module {
        functions: vec![caller()],
        ..Module::default()
    };
    let (counts, _) = super::counts(&module, &[calls(5, 5, &[])], &|_| false);
    assert_eq!(counts.functions[0].blocks, [None; 2]);
    assert_eq!(counts.functions[0].edges, [None; 4]);
}

#[test]
fn a_routine_that_contradicts_itself_is_named_and_not_counted() {
    let mut facts = caller();
    let cold = function("", &[(0x2000, b"\xc3")], &[(Some(2), None, Leave)]);
    facts.blocks.extend(cold.blocks);
    facts.edges.extend(cold.edges);
    let mut cold = reading(
        &[(0, &[1], 4)],
        &[(OUTSIDE, 0, Arrival), (0, OUTSIDE, Leave)],
        &[],
    );
    cold.start = LinkAddr(0x2000);
    let facts = [facts];
    let refuse = |reading: Reading| {
        let (counts, notes) = count(&facts, &[reading, cold.clone()]);
        assert_eq!(counts[0].blocks, [None, None, Some(4)]);
        assert_eq!(counts[0].edges, [None, None, None, None, Some(4)]);
        assert_eq!(counts[0].shifts, []);
        notes.join("\n")
    };
    let mut uneven = calls(5, 3, &[]);
    uneven.readings.0.pop();
    assert_eq!(
        refuse(uneven),
        "caller(): its code at 0x1000 is not counted: 1 readings for 2 counters"
    );
    assert_eq!(
        refuse(calls(5, 3, &[(0x1003, 1)])),
        "caller(): its code at 0x1000 is not counted: \
         a thread was at 0x1003, where it has no instruction"
    );
    let mut empty = calls(5, 3, &[]);
    empty.blocks[1].lengths.clear();
    let (_, notes) = count(&facts, &[empty]);
    assert_eq!(
        notes,
        ["caller(): its code at 0x1000 is not counted: block 1 has no instructions"]
    );
    let two = [function("two", &[(0x1000, b"\x90\xc3")], &[])];
    let edges = [(OUTSIDE, 0, Entry), (0, OUTSIDE, Lost)];
    let (counts, notes) = count(
        &two,
        &[reading(&[(0, &[1, 1], 0)], &edges, &[(0x1001, -1)])],
    );
    assert_eq!(counts[0].blocks, [None]);
    assert_eq!(
        notes,
        ["two: its code at 0x1000 is not counted: \
          more threads went away at 0x1001 than came there"]
    );
}

/// Half of the blocks are cut in two by the routines, half of the routines' by the functions.
#[test]
fn many_blocks_are_soon_counted() {
    const MANY: u32 = 150_000;
    const EACH: u32 = 50;
    let mut functions = Vec::new();
    let mut readings = Vec::new();
    for first in (0..MANY).step_by(EACH as usize) {
        let start = u64::from(first) * 16;
        let code = b"\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x0f\x84";
        let blocks: Vec<(u64, &[u8])> = (0..EACH)
            .flat_map(|it| {
                let at = start + u64::from(it) * 16;
                [(at, &code[..6]), (at + 6, &code[6..14])]
            })
            .collect();
        let mut edges = vec![(None, Some(0), Entry), (Some(2 * EACH - 1), None, Leave)];
        edges.extend((1..2 * EACH).map(|it| (Some(it - 1), Some(it), Fall)));
        edges.extend((1..2 * EACH).map(|it| (Some(it), Some(it / 2), Taken)));
        functions.push(function("many", &blocks, &edges));
        let pieces: Vec<(u32, &[u8], u64)> =
            (0..EACH).map(|it| (it * 16, &[1_u8; 14][..], 3)).collect();
        let mut edges = vec![(OUTSIDE, 0, Entry), (EACH - 1, OUTSIDE, Leave)];
        edges.extend((1..EACH).map(|it| (it - 1, it, Fall)));
        let mut seen = reading(&pieces, &edges, &[]);
        seen.start = LinkAddr(start);
        readings.push(seen);
    }
    readings.reverse();
    let module = Module {
        functions,
        ..Module::default()
    };
    let begin = std::time::Instant::now();
    let (counts, notes) = counts(&module, &readings, &|_| true);
    println!("{:?}", begin.elapsed());
    assert_eq!(notes, [""; 0]);
    assert!(
        counts
            .functions
            .iter()
            .flat_map(|it| &it.blocks)
            .all(|it| *it == Some(3))
    );
}
