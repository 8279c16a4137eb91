//! Where CPython 3.11 fetches the instructions of a program.
//!
//! Its main function has a piece of code for each instruction, and a table of where these are. All of
//! them expect the address of the instruction in one register, and leave by a jump through the table. So the
//! address is in that register at every such jump; and a jump goes on to another instruction unless the
//! register is what it was when the piece was entered. Then the same instruction is done in another way:
//! it was specialised just now, or what it was specialised for is not there.

use std::collections::{BTreeSet, HashMap};

use headcount_model::{Expression, LinkAddr, Width};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess,
    OpKind, Register,
};

use super::opcodes::{self, FUSED, Fused};
use crate::Fetch;
use crate::program::Program;

/// Where a frame keeps the address of the instruction that it does.
const PREVIOUS_INSTRUCTION: i64 = 0x38;

/// The place in the table of what does instructions that are traced. Their jumps fetch nothing anew.
const TRACING: usize = 255;

/// From here on, up to the one before [`TRACING`], there are no instructions.
const FIRST_UNUSED: usize = 181;

/// So much code is looked at, at most: more than there is in ten such functions.
const MOST_INSTRUCTIONS: usize = 1 << 18;

/// Where instructions are fetched; or why that is not known.
pub(super) fn fetches(program: &Program<'_>) -> Result<Vec<Fetch>, String> {
    let table = opcode_table(program).ok_or("it has no table of its instructions' code")?;
    let abi = abi(program, &table).ok_or("its registers are not what they are elsewhere")?;
    let mut all = CodeOf::new(program);
    let handlers: BTreeSet<u64> = table[..TRACING].iter().copied().collect();
    let reach = all.reach(&handlers, abi)?;
    let mut fetches = Vec::new();
    for (at, pc) in all.jumps(&reach) {
        match pc {
            Pc::Entry(0) => {}
            Pc::Entry(_) | Pc::Other => fetches.push(Fetch {
                at: LinkAddr(at),
                address: Expression::Register(abi.pc.number() as u8),
            }),
            Pc::Mixed => {
                return Err(format!(
                    "the jump at {at:#x} goes on to the same instruction or to another one"
                ));
            }
        }
    }
    if fetches.len() < LEAST_FETCHES {
        return Err("it has fewer places that fetch instructions than any known one".to_owned());
    }
    fetches.extend(all.fused(&table, abi)?);
    fetches.sort_by_key(|it| it.at);
    Ok(fetches)
}

/// Even a compiler that joins what it can leaves more.
const LEAST_FETCHES: usize = 2;

/// Which registers hold what, whenever control comes to the code of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Abi {
    /// The address of the instruction.
    pc: Register,
    frame: Register,
}

/// The table of what does each instruction.
fn opcode_table(program: &Program<'_>) -> Option<Vec<u64>> {
    let mut found: Option<Vec<u64>> = None;
    for (start, bytes) in program.data() {
        let words = bytes.len() / 8;
        let mut run = 0_usize;
        let mut last = 0;
        for index in 0..words {
            let word = program.word_in(start, bytes, index);
            run = match word == last && word != 0 {
                true => run + 1,
                false => 1,
            };
            last = word;
            // The last of the unused ones, with another one behind.
            if run < TRACING - FIRST_UNUSED {
                continue;
            }
            let Some(first) = (index + 1).checked_sub(TRACING) else {
                continue;
            };
            let table = (first..=index + 1).map(|it| match it < words {
                true => program.word_in(start, bytes, it),
                false => 0,
            });
            let table: Vec<u64> = table.collect();
            if !is_opcode_table(program, &table) {
                continue;
            }
            // A second one would be another interpreter's.
            if found.is_some() {
                return None;
            }
            found = Some(table);
        }
    }
    found
}

fn is_opcode_table(program: &Program<'_>, table: &[u64]) -> bool {
    let unused = table[FIRST_UNUSED];
    let plain = opcodes::plain_ones();
    let known = plain.iter().zip(table).skip(1);
    let known = known.filter(|(plain, _)| **plain != 0).map(|it| *it.1);
    table[FIRST_UNUSED..TRACING].iter().all(|it| *it == unused)
        && table[TRACING] != unused
        && known.clone().all(|it| it != unused)
        && known.chain([unused]).all(|it| program.is_code(it))
}

/// What most pieces of code do first: they store the address of their instruction in the frame.
fn abi(program: &Program<'_>, table: &[u64]) -> Option<Abi> {
    let mut votes: HashMap<Abi, usize> = HashMap::new();
    for handler in &table[1..TRACING] {
        let bytes = program.bytes(*handler)?;
        let bytes = &bytes[..bytes.len().min(64)];
        let decoder = Decoder::with_ip(64, bytes, *handler, DecoderOptions::NONE);
        let first = decoder
            .into_iter()
            .take_while(|it| it.flow_control() == FlowControl::Next);
        let mut stores = first.filter(|it| {
            it.code() == Code::Mov_rm64_r64
                && it.op0_kind() == OpKind::Memory
                && it.memory_index() == Register::None
                && it.memory_displacement64() as i64 == PREVIOUS_INSTRUCTION
        });
        if let Some(store) = stores.next() {
            let abi = Abi {
                pc: store.op1_register(),
                frame: store.memory_base(),
            };
            *votes.entry(abi).or_default() += 1;
        }
    }
    let all: usize = votes.values().sum();
    let (abi, most) = votes.into_iter().max_by_key(|it| it.1)?;
    (most * 10 > all * 9).then_some(abi)
}

impl Abi {
    fn pc_in(self, state: &State) -> Pc {
        let pc = state.get(&Holder::Register(self.pc.number()));
        pc.copied().unwrap_or(Pc::Other)
    }
}

/// Where control may go, and what is where when it comes there.
struct Reach {
    before: HashMap<u64, State>,
    abi: Abi,
}

/// What a register or a word of the stack holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pc {
    /// So many bytes more than the address of the instruction whose code was entered.
    Entry(i64),
    /// Something else.
    Other,
    /// That address, or something else.
    Mixed,
}

impl Pc {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Entry(0) | Self::Mixed, _) | (_, Self::Entry(0) | Self::Mixed) => Self::Mixed,
            _ => Self::Other,
        }
    }
}

/// A place that may hold it: a register by number, or a word of the stack by its distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Register(usize),
    Stack(i64),
}

/// What is where; what is not mentioned is something else.
type State = HashMap<Holder, Pc>;

/// Decoded code of the interpreter.
struct CodeOf<'p, 'a> {
    program: &'p Program<'a>,
    decoded: HashMap<u64, Instruction>,
    info: InstructionInfoFactory,
}

impl<'p, 'a> CodeOf<'p, 'a> {
    fn new(program: &'p Program<'a>) -> Self {
        Self {
            program,
            decoded: HashMap::new(),
            info: InstructionInfoFactory::new(),
        }
    }

    fn decode(&mut self, at: u64) -> Option<Instruction> {
        if let Some(known) = self.decoded.get(&at) {
            return Some(*known);
        }
        let bytes = self.program.bytes(at)?;
        let bytes = &bytes[..bytes.len().min(15)];
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        self.decoded.insert(at, instruction);
        Some(instruction)
    }

    /// Where control may go from these pieces of code, until it leaves for that of another instruction.
    fn reach(&mut self, from: &BTreeSet<u64>, abi: Abi) -> Result<Reach, String> {
        let start = State::from([(Holder::Register(abi.pc.number()), Pc::Entry(0))]);
        let mut before: HashMap<u64, State> = HashMap::new();
        let mut todo: Vec<(u64, State)> = from.iter().map(|it| (*it, start.clone())).collect();
        while let Some((at, mut state)) = todo.pop() {
            if !arrive(&mut before, at, &mut state) {
                continue;
            }
            if before.len() > MOST_INSTRUCTIONS {
                return Err("its main function has no end".to_owned());
            }
            if let Some(instruction) = self.decode(at) {
                let next = self.next(&instruction);
                self.step(&instruction, &mut state);
                let states = next.into_iter().flatten();
                todo.extend(states.map(|it| (it, state.clone())));
            }
        }
        Ok(Reach { before, abi })
    }

    /// The jumps among what was reached that lead to the code of other instructions, and what is in the
    /// register for the instruction's address there.
    fn jumps(&mut self, reach: &Reach) -> Vec<(u64, Pc)> {
        let mut jumps = Vec::new();
        for (at, state) in &reach.before {
            let instruction = self.decode(*at);
            let leaves = |it: Instruction| it.flow_control() == FlowControl::IndirectBranch;
            if instruction.is_some_and(leaves) {
                jumps.push((*at, reach.abi.pc_in(state)));
            }
        }
        jumps.sort_by_key(|it| it.0);
        jumps
    }

    /// What may come after an instruction.
    fn next(&mut self, instruction: &Instruction) -> [Option<u64>; 2] {
        let behind = Some(instruction.next_ip());
        match instruction.flow_control() {
            FlowControl::Call if self.is_final(instruction) => [None, None],
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => [behind, None],
            FlowControl::ConditionalBranch => [behind, Some(instruction.near_branch_target())],
            FlowControl::UnconditionalBranch => [Some(instruction.near_branch_target()), None],
            _ => [None, None],
        }
    }

    /// Does a call not come back? Behind it, there may be anything.
    fn is_final(&mut self, call: &Instruction) -> bool {
        let target = call.near_branch_target();
        if self.program.is_final(target) {
            return true;
        }
        // By way of the procedure linkage table.
        let first = self.decode(target);
        let stub = match first.map(|it| it.code()) {
            Some(Code::Endbr64) => first.and_then(|it| self.decode(it.next_ip())),
            _ => first,
        };
        stub.is_some_and(|it| {
            it.code() == Code::Jmp_rm64
                && it.is_ip_rel_memory_operand()
                && self.program.is_final(it.ip_rel_memory_address())
        })
    }

    /// What an instruction does to what is where.
    fn step(&mut self, instruction: &Instruction, state: &mut State) {
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => return forget_clobbered(state),
            _ => return,
        }
        let moved = moved(instruction, state);
        let info = self.info.info(instruction);
        for used in info.used_registers() {
            let is_written = matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            let register = used.register();
            if is_written && register.is_gpr() {
                state.remove(&Holder::Register(register.full_register().number()));
            }
        }
        if instruction.op0_kind() == OpKind::Memory
            && let Some(slot) = slot(instruction)
        {
            state.remove(&Holder::Stack(slot));
        }
        if let Some((holder, pc)) = moved {
            state.insert(holder, pc);
        }
    }

    /// What specialised instructions do besides, where they are left.
    fn fused(&mut self, table: &[u64], abi: Abi) -> Result<Vec<Fetch>, String> {
        let code_of = |it: &Fused| table[usize::from(it.opcode)];
        let own: BTreeSet<u64> = FUSED.iter().map(code_of).collect();
        let others = table[..TRACING].iter().filter(|it| !own.contains(it));
        let others = self.reach(&others.copied().collect(), abi)?;
        let mut ways: HashMap<u64, i64> = HashMap::new();
        for fused in FUSED {
            let reach = self.reach(&BTreeSet::from([code_of(fused)]), abi)?;
            let found = self.ways_on(fused, &reach, &others);
            let is_other = |it: &u64| *ways.entry(*it).or_insert(fused.behind) != fused.behind;
            if found.as_ref().is_none_or(|it| it.iter().any(is_other)) {
                return Err(format!(
                    "it is not known where instruction {}, a {}, is left",
                    fused.opcode,
                    opcodes::name(fused.opcode)
                ));
            }
        }
        let fetch = |(at, behind)| {
            let previous = Expression::offset(abi.frame.number() as u8, PREVIOUS_INSTRUCTION);
            let previous = Expression::load(Width::WHOLE, previous);
            Fetch {
                at: LinkAddr(at),
                address: Expression::sum(previous, Expression::Constant(behind)),
            }
        };
        Ok(ways.into_iter().map(fetch).collect())
    }

    /// Instructions that are only run by a specialised one that has done what it does: the last ones
    /// before it leaves, or goes on in code that others have as well.
    fn ways_on(&mut self, fused: &Fused, reach: &Reach, others: &Reach) -> Option<Vec<u64>> {
        let is_done = |it: Pc| it == Pc::Entry(fused.next) || fused.may_jump && it == Pc::Other;
        let (mut ahead, mut jumped) = (false, !fused.may_jump);
        let mut ways = Vec::new();
        for (at, state) in &reach.before {
            if others.before.contains_key(at) {
                continue;
            }
            let mut behind = state.clone();
            let instruction = self.decode(*at)?;
            self.step(&instruction, &mut behind);
            let pc = reach.abi.pc_in(&behind);
            let next = self.next(&instruction);
            let leaves = instruction.flow_control() == FlowControl::IndirectBranch;
            let mut shared = next.into_iter().flatten();
            if !leaves && !shared.any(|it| others.before.contains_key(&it)) {
                continue;
            }
            // What fails, or was specialised for something else, has done nothing.
            if !is_done(pc) {
                if leaves && pc != Pc::Entry(0) {
                    return None;
                }
                continue;
            }
            if next.into_iter().flatten().count() > 1 {
                return None;
            }
            ahead |= pc == Pc::Entry(fused.next);
            jumped |= pc == Pc::Other;
            ways.push(*at);
        }
        // Both of its ways may meet before it leaves.
        ((ahead || fused.may_jump) && jumped).then_some(ways)
    }
}

/// Notes that control comes to a place with such a state. `false`: that is nothing new.
fn arrive(before: &mut HashMap<u64, State>, at: u64, state: &mut State) -> bool {
    let Some(known) = before.get_mut(&at) else {
        before.insert(at, state.clone());
        return true;
    };
    let mut joined = State::new();
    for holder in known.keys().chain(state.keys()) {
        let of = |state: &State| state.get(holder).copied().unwrap_or(Pc::Other);
        let pc = of(known).join(of(state));
        if pc != Pc::Other {
            joined.insert(*holder, pc);
        }
    }
    let is_new = joined != *known;
    known.clone_from(&joined);
    *state = joined;
    is_new
}

/// What a called function may overwrite.
fn forget_clobbered(state: &mut State) {
    const KEPT: [Register; 6] = [
        Register::RBX,
        Register::RBP,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    state.retain(|holder, _| match holder {
        Holder::Register(number) => KEPT.iter().any(|it| it.number() == *number),
        Holder::Stack(_) => true,
    });
}

/// The word of the stack that an operand is.
fn slot(instruction: &Instruction) -> Option<i64> {
    let is_word = instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None;
    is_word.then_some(instruction.memory_displacement64() as i64)
}

/// What an instruction puts where, if that has to do with the address of an instruction.
fn moved(instruction: &Instruction, state: &State) -> Option<(Holder, Pc)> {
    let register = |it: Register| Holder::Register(it.number());
    let of = |holder: Holder| state.get(&holder).copied();
    let further = |pc: Pc, by: i64| match pc {
        Pc::Entry(at) => Pc::Entry(at.wrapping_add(by)),
        other => other,
    };
    let to = instruction.op0_register();
    match instruction.code() {
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => {
            let from = match instruction.op1_kind() {
                OpKind::Register => of(register(instruction.op1_register())),
                _ => of(Holder::Stack(slot(instruction)?)),
            };
            let to = match instruction.op0_kind() {
                OpKind::Register => register(to),
                _ => Holder::Stack(slot(instruction)?),
            };
            Some((to, from?))
        }
        Code::Lea_r64_m if instruction.memory_index() == Register::None => {
            let from = of(register(instruction.memory_base()))?;
            let by = instruction.memory_displacement64() as i64;
            Some((register(to), further(from, by)))
        }
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 | Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32
            if instruction.op0_kind() == OpKind::Register =>
        {
            let by = instruction.immediate(1) as i64;
            let is_less = matches!(
                instruction.code(),
                Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32
            );
            let by = if is_less { -by } else { by };
            Some((register(to), further(of(register(to))?, by)))
        }
        Code::Inc_rm64 if instruction.op0_kind() == OpKind::Register => {
            Some((register(to), further(of(register(to))?, 1)))
        }
        _ => None,
    }
}
