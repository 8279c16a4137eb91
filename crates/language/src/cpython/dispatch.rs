//! Where CPython 3.11 fetches the instructions of a program.
//!
//! Its main function has a piece of code for each instruction, and a table of where these are. All of
//! them expect the address of the instruction in one register, and leave by a jump through the table. So the
//! address is in that register at every such jump; and a jump goes on to another instruction unless the
//! register is what it was when the piece was entered. Then the same instruction is done in another way:
//! it was specialised just now, or what it was specialised for is not there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use headcount_model::LinkAddr;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register, UsedRegister,
};

use super::liveness::{self, Effect, Node, Registers};
use super::opcodes::{self, FUSED, Fused, Second};
use crate::program::Program;
use crate::{Address, Fetch};

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
    let (table_at, table) =
        opcode_table(program).ok_or("it has no table of its instructions' code")?;
    let abi = abi(program, &table).ok_or("its registers are not what they are elsewhere")?;
    let mut all = CodeOf::new(program);
    let handlers: BTreeSet<u64> = table[..TRACING].iter().copied().collect();
    let reach = all.reach(&handlers, abi)?;
    let mut ways = Vec::new();
    for (at, pc) in all.jumps(&reach) {
        match pc {
            Pc::Entry(0) => {}
            Pc::Entry(_) | Pc::Other => ways.push((at, abi.behind_pc(0))),
            Pc::Mixed => {
                return Err(format!(
                    "the jump at {at:#x} goes on to the same instruction or to another one"
                ));
            }
        }
    }
    if ways.len() < LEAST_FETCHES {
        return Err("it has fewer places that fetch instructions than any known one".to_owned());
    }
    ways.extend(all.fused(&table, abi)?);
    ways.sort_by_key(|it| it.0);
    let free = all.free(table_at, &table)?;
    let fetch = |(at, address)| Fetch {
        at: LinkAddr(at),
        address,
        free: free.get(&at).copied().unwrap_or(0),
    };
    Ok(ways.into_iter().map(fetch).collect())
}

/// So many instructions before a jump are looked at for where it goes.
const FARTHEST_BACK: usize = 64;

/// Even a compiler that joins what it can leaves more.
const LEAST_FETCHES: usize = 2;

/// Which registers hold what, whenever control comes to the code of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Abi {
    /// The address of the instruction.
    pc: Register,
    frame: Register,
}

/// The table of what does each instruction, and where it is.
fn opcode_table(program: &Program<'_>) -> Option<(u64, Vec<u64>)> {
    let mut found = None;
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
            found = Some((start + 8 * first as u64, table));
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
    /// So many bytes behind the instruction whose code is entered.
    fn behind_pc(self, by: i64) -> Address {
        Address::Register(self.pc.number() as u8, by)
    }

    /// So many bytes behind the instruction that the frame says is being done.
    fn behind_previous(self, by: i64) -> Address {
        Address::Word(self.frame.number() as u8, PREVIOUS_INSTRUCTION, by)
    }

    fn pc_in(self, state: &State) -> Pc {
        let pc = state.get(&Holder::Register(self.pc.number()));
        pc.copied().unwrap_or(Pc::Other)
    }
}

/// Where control may go, and what is in the register for the instruction's address before and behind each
/// instruction there.
struct Reach {
    pc: HashMap<u64, (Pc, Pc)>,
    /// What reads the program's instructions.
    reads: BTreeMap<u64, Read>,
}

/// An instruction of the interpreter that reads from a place near the program's instruction.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// How far behind that.
    offset: i64,
    /// The register that it goes by, and the distance from that.
    base: usize,
    distance: i64,
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

    fn further(self, by: i64) -> Self {
        match self {
            Self::Entry(at) => Self::Entry(at.wrapping_add(by)),
            other => other,
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

/// What an instruction of the interpreter does to what is where, and what may come after it.
struct Step {
    next: [Option<u64>; 2],
    /// A jump to where nobody says.
    leaves: bool,
    /// A function is called, which may overwrite registers.
    calls: bool,
    effect: Effect,
    overwrites: Vec<Holder>,
    /// What is put where, and by how much it differs from what it was.
    moves: Option<(Holder, Holder, i64)>,
    /// What is read from memory: the register that it goes by, and the distance from that.
    reads: Option<(usize, i64)>,
}

impl Step {
    fn apply(&self, state: &mut State) {
        let moved = self.moves.and_then(|(to, from, by)| {
            let pc = state.get(&from)?;
            Some((to, pc.further(by)))
        });
        if self.calls {
            state.retain(|holder, _| is_kept(*holder));
        }
        for holder in &self.overwrites {
            state.remove(holder);
        }
        state.extend(moved);
    }

    fn next(&self) -> impl Iterator<Item = u64> + use<> {
        self.next.into_iter().flatten()
    }
}

/// Code of the interpreter.
struct CodeOf<'p, 'a> {
    program: &'p Program<'a>,
    steps: HashMap<u64, Option<Step>>,
    info: InstructionInfoFactory,
}

impl<'p, 'a> CodeOf<'p, 'a> {
    fn new(program: &'p Program<'a>) -> Self {
        Self {
            program,
            steps: HashMap::new(),
            info: InstructionInfoFactory::new(),
        }
    }

    fn decode(&self, at: u64) -> Option<Instruction> {
        let bytes = self.program.bytes(at)?;
        let bytes = &bytes[..bytes.len().min(15)];
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn learn(&mut self, at: u64) {
        if !self.steps.contains_key(&at) {
            let instruction = self.decode(at);
            let step = instruction.map(|it| self.step(&it));
            self.steps.insert(at, step);
        }
    }

    fn known(&self, at: u64) -> Option<&Step> {
        self.steps.get(&at)?.as_ref()
    }

    /// What an instruction does to what is where.
    fn step(&mut self, instruction: &Instruction) -> Step {
        let flow = instruction.flow_control();
        let behind = Some(instruction.next_ip());
        let next = match flow {
            FlowControl::Call if self.is_final(instruction) => [None, None],
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => [behind, None],
            FlowControl::ConditionalBranch => [behind, Some(instruction.near_branch_target())],
            FlowControl::UnconditionalBranch => [Some(instruction.near_branch_target()), None],
            _ => [None, None],
        };
        let mut overwrites = Vec::new();
        if flow == FlowControl::Next {
            let info = self.info.info(instruction);
            for used in info.used_registers() {
                let register = used.register();
                if is_write(used.access()) && register.is_gpr() {
                    overwrites.push(Holder::Register(register.full_register().number()));
                }
            }
            if instruction.op0_kind() == OpKind::Memory {
                overwrites.extend(slot(instruction).map(Holder::Stack));
            }
        }
        Step {
            next,
            leaves: flow == FlowControl::IndirectBranch,
            effect: Effect::of(instruction, &mut self.info),
            calls: matches!(flow, FlowControl::Call | FlowControl::IndirectCall),
            overwrites,
            moves: moved(instruction),
            reads: read(instruction),
        }
    }

    /// Where control may go from these pieces of code, until it leaves for that of another instruction.
    fn reach(&mut self, from: &BTreeSet<u64>, abi: Abi) -> Result<Reach, String> {
        let leaders = self.leaders(from)?;
        let start = State::from([(Holder::Register(abi.pc.number()), Pc::Entry(0))]);
        let mut before: HashMap<u64, State> = HashMap::new();
        let mut todo: Vec<(u64, State)> = from.iter().map(|it| (*it, start.clone())).collect();
        while let Some((mut at, mut state)) = todo.pop() {
            if !arrive(&mut before, at, &mut state) {
                continue;
            }
            while let Some(step) = self.known(at) {
                step.apply(&mut state);
                let mut next = step.next();
                match next.next() {
                    Some(only) if next.next().is_none() && !leaders.contains(&only) => at = only,
                    _ => {
                        todo.extend(step.next().map(|it| (it, state.clone())));
                        break;
                    }
                }
            }
        }
        Ok(self.each(before, &leaders, abi))
    }

    /// Where runs of instructions begin that come one after the other.
    fn leaders(&mut self, from: &BTreeSet<u64>) -> Result<HashSet<u64>, String> {
        let mut leaders: HashSet<u64> = from.iter().copied().collect();
        let mut seen: HashSet<u64> = HashSet::new();
        let mut todo: Vec<u64> = from.iter().copied().collect();
        while let Some(at) = todo.pop() {
            if !seen.insert(at) {
                // Two ways lead there.
                leaders.insert(at);
                continue;
            }
            if seen.len() > MOST_INSTRUCTIONS {
                return Err("its main function has no end".to_owned());
            }
            self.learn(at);
            todo.extend(self.known(at).into_iter().flat_map(Step::next));
        }
        Ok(leaders)
    }

    /// From what is where at the beginnings of runs to the same at each instruction.
    fn each(&self, begins: HashMap<u64, State>, leaders: &HashSet<u64>, abi: Abi) -> Reach {
        let mut all = HashMap::new();
        let mut reads = BTreeMap::new();
        for (mut at, mut state) in begins {
            while let Some(step) = self.known(at) {
                let pc = abi.pc_in(&state);
                if let Some((base, distance)) = step.reads
                    && let Some(Pc::Entry(from)) = state.get(&Holder::Register(base))
                {
                    let offset = from.wrapping_add(distance);
                    let read = Read {
                        offset,
                        base,
                        distance,
                    };
                    reads.insert(at, read);
                }
                step.apply(&mut state);
                all.insert(at, (pc, abi.pc_in(&state)));
                let mut next = step.next();
                match next.next() {
                    Some(only) if next.next().is_none() && !leaders.contains(&only) => at = only,
                    _ => break,
                }
            }
        }
        Reach { pc: all, reads }
    }

    /// The jumps among what was reached that lead to the code of other instructions, and what is in the
    /// register for the instruction's address there.
    fn jumps(&self, reach: &Reach) -> Vec<(u64, Pc)> {
        let leaves = |at: u64| self.known(at).is_some_and(|it| it.leaves);
        let all = reach.pc.iter().filter(|(at, _)| leaves(**at));
        let mut jumps: Vec<(u64, Pc)> = all.map(|(at, (pc, _))| (*at, *pc)).collect();
        jumps.sort_by_key(|it| it.0);
        jumps
    }

    /// Does a call not come back? Behind it, there may be anything.
    fn is_final(&self, call: &Instruction) -> bool {
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

    /// Where specialised instructions begin with what they do besides.
    fn fused(&mut self, table: &[u64], abi: Abi) -> Result<Vec<(u64, Address)>, String> {
        let code_of = |it: &Fused| table[usize::from(it.opcode)];
        let own: BTreeSet<u64> = FUSED.iter().map(code_of).collect();
        let others = table[..TRACING].iter().filter(|it| !own.contains(it));
        let others = self.reach(&others.copied().collect(), abi)?;
        let mut ways: BTreeMap<u64, Address> = BTreeMap::new();
        for fused in FUSED {
            let begin = code_of(fused);
            let reach = self.reach(&BTreeSet::from([begin]), abi)?;
            let is_alone = table.iter().filter(|it| **it == begin).count() == 1;
            let found = match fused.second {
                Second::Always => Some(vec![(begin, abi.behind_pc(fused.behind))]),
                Second::Read => self.reads(begin, fused, &reach, &others),
                Second::Left { at, may_jump } => {
                    let ways = self.ways_on(at, may_jump, &reach, &others);
                    let key = |pc: Pc| match pc {
                        Pc::Entry(by) => abi.behind_pc(fused.behind - by),
                        Pc::Other | Pc::Mixed => abi.behind_previous(fused.behind),
                    };
                    ways.map(|it| {
                        it.into_iter()
                            .map(|at| (at, key(reach.pc[&at].0)))
                            .collect()
                    })
                }
            };
            let unknown = || {
                let name = opcodes::name(fused.opcode);
                format!(
                    "it is not known where instruction {}, a {name}, is left",
                    fused.opcode
                )
            };
            for (at, key) in found.filter(|_| is_alone).ok_or_else(unknown)? {
                // Whoever shares the end of another must have the same behind it.
                if *ways.entry(at).or_insert(key) != key {
                    return Err(unknown());
                }
            }
        }
        Ok(ways.into_iter().collect())
    }

    /// The registers that nobody looks at any more before the instructions that were reached.
    fn free(&mut self, table_at: u64, table: &[u64]) -> Result<HashMap<u64, Registers>, String> {
        // What is traced is another matter only as to what it fetches.
        self.leaders(&table.iter().copied().collect())?;
        let known = self.steps.iter();
        let known = known.filter_map(|(at, step)| Some((*at, step.as_ref()?)));
        let mut before: HashMap<u64, Vec<u64>> = HashMap::new();
        for (at, step) in known.clone() {
            for next in step.next() {
                before.entry(next).or_default().push(at);
            }
        }
        let node = |(at, step): (u64, &Step)| {
            let node = Node {
                effect: step.effect,
                next: step.next().collect(),
                is_dispatch: step.leaves && self.goes_through(table_at, at, &before),
            };
            (at, node)
        };
        let code: BTreeMap<u64, Node> = known.map(node).collect();
        let looked_at = liveness::looked_at(&code, table);
        let free = looked_at
            .into_iter()
            .map(|(at, it)| (at, liveness::others(it)));
        Ok(free.collect())
    }

    /// Does a jump go where a table says, wherever control comes from?
    fn goes_through(&self, table_at: u64, jump: u64, before: &HashMap<u64, Vec<u64>>) -> bool {
        let Some(instruction) = self.decode(jump) else {
            return false;
        };
        match instruction.op0_kind() {
            OpKind::Register => {
                self.comes_from(jump, instruction.op0_register(), before, &|at, it| {
                    it.code() == Code::Mov_r64_rm64 && self.reads_table(table_at, at, it, before)
                })
            }
            _ => self.reads_table(table_at, jump, &instruction, before),
        }
    }

    /// Is the operand in memory an item of the table?
    fn reads_table(
        &self,
        table_at: u64,
        at: u64,
        instruction: &Instruction,
        before: &HashMap<u64, Vec<u64>>,
    ) -> bool {
        let is_item =
            instruction.memory_index() != Register::None && instruction.memory_index_scale() == 8;
        let by = instruction.memory_displacement64();
        is_item
            && match instruction.memory_base() {
                Register::None => by == table_at,
                base => {
                    by == 0
                        && self.comes_from(at, base, before, &|_, it| {
                            it.code() == Code::Lea_r64_m
                                && it.is_ip_rel_memory_operand()
                                && it.ip_rel_memory_address() == table_at
                        })
                }
            }
    }

    /// Is what wrote a register last before an instruction such a one, wherever control comes from?
    fn comes_from(
        &self,
        at: u64,
        register: Register,
        before: &HashMap<u64, Vec<u64>>,
        is_it: &dyn Fn(u64, &Instruction) -> bool,
    ) -> bool {
        let mut info = InstructionInfoFactory::new();
        let mut seen = HashSet::from([at]);
        let mut todo = vec![at];
        while let Some(at) = todo.pop() {
            let Some(before) = before.get(&at) else {
                return false;
            };
            for at in before {
                let Some(it) = self.decode(*at) else {
                    return false;
                };
                let is_call = self.known(*at).is_none_or(|it| it.calls);
                let mut used = info.info(&it).used_registers().iter();
                let writes = |it: &UsedRegister| {
                    it.register().full_register() == register && is_write(it.access())
                };
                if !is_call && !used.any(writes) {
                    if seen.insert(*at) {
                        todo.push(*at);
                    }
                } else if is_call || !is_it(*at, &it) {
                    return false;
                }
            }
            if seen.len() > FARTHEST_BACK {
                return false;
            }
        }
        true
    }

    /// Where an instruction reads the argument of the one behind it, if it does that once, and not before it
    /// is known that the first one does not fail.
    fn reads(
        &self,
        begin: u64,
        fused: &Fused,
        reach: &Reach,
        others: &Reach,
    ) -> Option<Vec<(u64, Address)>> {
        let mut at_once = HashSet::new();
        let mut at = begin;
        while let Some(step) = self.known(at) {
            at_once.insert(at);
            match step.next {
                [Some(next), None] => at = next,
                _ => break,
            }
        }
        let is_of_second = |it: i64| (fused.behind..fused.behind + 2).contains(&it);
        let mut found = reach.reads.iter().filter(|(at, read)| {
            is_of_second(read.offset) && !others.pc.contains_key(at) && !at_once.contains(at)
        });
        let (at, read) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        let by = read.distance - (read.offset - fused.behind);
        let key = Address::Register(read.base as u8, by);
        Some(vec![(*at, key)])
    }

    /// Instructions that are only run by a specialised one that has done what it does: the last ones
    /// before it leaves, or goes on in code that others have as well.
    fn ways_on(
        &self,
        next: i64,
        may_jump: bool,
        reach: &Reach,
        others: &Reach,
    ) -> Option<Vec<u64>> {
        let is_done = |it: Pc| it == Pc::Entry(next) || may_jump && it == Pc::Other;
        let (mut ahead, mut jumped) = (may_jump, !may_jump);
        let mut ways = Vec::new();
        for (at, (pc, behind)) in &reach.pc {
            let step = self.known(*at)?;
            let mut shared = step.next().filter(|it| others.pc.contains_key(it));
            if others.pc.contains_key(at) || !step.leaves && shared.next().is_none() {
                continue;
            }
            let pc = if step.leaves { *pc } else { *behind };
            // What fails, or was specialised for something else, has done nothing.
            if !is_done(pc) {
                if step.leaves && pc != Pc::Entry(0) {
                    return None;
                }
                continue;
            }
            if step.next().count() > 1 {
                return None;
            }
            ahead |= pc == Pc::Entry(next);
            jumped |= pc == Pc::Other;
            ways.push(*at);
        }
        (ahead && jumped).then_some(ways)
    }
}

fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
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

/// Does a called function leave a place as it is?
fn is_kept(holder: Holder) -> bool {
    const KEPT: [Register; 6] = [
        Register::RBX,
        Register::RBP,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    match holder {
        Holder::Register(number) => KEPT.iter().any(|it| it.number() == number),
        Holder::Stack(_) => true,
    }
}

/// The word of the stack that an operand is.
fn slot(instruction: &Instruction) -> Option<i64> {
    let is_word =
        instruction.memory_base() == Register::RSP && instruction.memory_index() == Register::None;
    is_word.then_some(instruction.memory_displacement64() as i64)
}

/// What an instruction puts where, and how much it adds.
fn moved(instruction: &Instruction) -> Option<(Holder, Holder, i64)> {
    let register = |it: Register| Holder::Register(it.number());
    let to = instruction.op0_register();
    let is_register = instruction.op0_kind() == OpKind::Register;
    match instruction.code() {
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => {
            let from = match instruction.op1_kind() {
                OpKind::Register => register(instruction.op1_register()),
                _ => Holder::Stack(slot(instruction)?),
            };
            let to = match is_register {
                true => register(to),
                false => Holder::Stack(slot(instruction)?),
            };
            Some((to, from, 0))
        }
        Code::Lea_r64_m if instruction.memory_index() == Register::None => {
            let by = instruction.memory_displacement64() as i64;
            Some((register(to), register(instruction.memory_base()), by))
        }
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if is_register => {
            Some((register(to), register(to), instruction.immediate(1) as i64))
        }
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if is_register => {
            let by = (instruction.immediate(1) as i64).wrapping_neg();
            Some((register(to), register(to), by))
        }
        Code::Inc_rm64 if is_register => Some((register(to), register(to), 1)),
        _ => None,
    }
}

/// Where an instruction reads from, if that is near what a register says.
fn read(instruction: &Instruction) -> Option<(usize, i64)> {
    let base = instruction.memory_base();
    let reads = instruction.op1_kind() == OpKind::Memory && base.is_gpr64();
    let is_near = reads
        && instruction.memory_index() == Register::None
        && instruction.mnemonic() != Mnemonic::Lea;
    is_near.then(|| (base.number(), instruction.memory_displacement64() as i64))
}
