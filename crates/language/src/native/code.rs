//! Code of the interpreter: where control may go in it, and where the address of the instruction that is done
//! is kept meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

use super::liveness::Effect;
use crate::program::Program;

/// So much code is looked at, at most: more than there is in ten such functions.
const MOST_INSTRUCTIONS: usize = 1 << 18;

/// Where control may go, and what is in the register for the instruction's address before and behind each
/// instruction there.
pub(crate) struct Reach {
    pub(crate) pc: HashMap<u64, (Pc, Pc)>,
    /// What reads the program's instructions.
    pub(crate) reads: BTreeMap<u64, Read>,
}

/// An instruction of the interpreter that reads from a place near the program's instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// How far behind that.
    pub(crate) offset: i64,
    /// The register that it goes by, and the distance from that.
    pub(crate) base: usize,
    pub(crate) distance: i64,
}

/// What a register or a word of the stack holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pc {
    /// So many bytes more than the address of the instruction whose code was entered.
    Entry(i64),
    /// More than that address.
    Past,
    /// Something else.
    Other,
    /// That address, or more.
    Again,
    /// That address, or anything else.
    Mixed,
}

impl Pc {
    pub(crate) fn join(self, other: Self) -> Self {
        use Pc::{Again, Entry, Mixed, Other, Past};
        let is_past = |it| matches!(it, Past | Entry(1..));
        match (self, other) {
            (one, other) if one == other => one,
            (Mixed, _) | (_, Mixed) => Mixed,
            (Entry(0) | Again, it) | (it, Entry(0) | Again) => {
                match is_past(it) || matches!(it, Entry(0) | Again) {
                    true => Again,
                    false => Mixed,
                }
            }
            (one, other) if is_past(one) && is_past(other) => Past,
            _ => Other,
        }
    }

    pub(crate) fn further(self, by: i64) -> Self {
        match self {
            Self::Entry(at) => Self::Entry(at.wrapping_add(by)),
            Self::Past if by > 0 => Self::Past,
            Self::Past | Self::Again if by != 0 => Self::Mixed,
            other => other,
        }
    }
}

/// A place that may hold it: a register by number, or a word of the stack by its distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    Register(usize),
    Stack(i64),
}

/// What is where; what is not mentioned is something else.
pub(crate) type State = HashMap<Holder, Pc>;

/// What an instruction of the interpreter does to what is where, and what may come after it.
pub(crate) struct Step {
    pub(crate) next: [Option<u64>; 2],
    /// A jump to where nobody says.
    pub(crate) leaves: bool,
    /// Control goes back to who called.
    pub(crate) returns: bool,
    /// A function is called, which may overwrite registers.
    pub(crate) calls: bool,
    pub(crate) effect: Effect,
    pub(crate) overwrites: Vec<Holder>,
    /// What is put where, and by how much it differs from what it was.
    pub(crate) moves: Option<(Holder, Holder, i64)>,
    /// What is read from memory: the register that it goes by, and the distance from that.
    pub(crate) reads: Option<(usize, i64)>,
    /// An address of the program's own that is put into a register.
    pub(crate) makes: Option<(Holder, u64)>,
    /// What is compared.
    pub(crate) compares: Option<[Holder; 2]>,
    /// Where control goes if what was compared just before is equal.
    pub(crate) if_equal: Option<u64>,
}

impl Step {
    pub(crate) fn apply(&self, state: &mut State) {
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

    /// Does it make this address?
    pub(crate) fn make(&self, address: Option<u64>, state: &mut State) {
        if let Some((holder, made)) = self.makes
            && address == Some(made)
        {
            state.insert(holder, Pc::Entry(0));
        }
    }

    pub(crate) fn next(&self) -> impl Iterator<Item = u64> + use<> {
        self.next.into_iter().flatten()
    }
}

/// Code of the interpreter.
pub(crate) struct CodeOf<'p, 'a> {
    pub(crate) program: &'p Program<'a>,
    pub(crate) steps: HashMap<u64, Option<Step>>,
    pub(crate) info: InstructionInfoFactory,
}

impl<'p, 'a> CodeOf<'p, 'a> {
    pub(crate) fn new(program: &'p Program<'a>) -> Self {
        Self {
            program,
            steps: HashMap::new(),
            info: InstructionInfoFactory::new(),
        }
    }

    pub(crate) fn decode(&self, at: u64) -> Option<Instruction> {
        let bytes = self.program.bytes(at)?;
        let bytes = &bytes[..bytes.len().min(15)];
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    pub(crate) fn learn(&mut self, at: u64) {
        if !self.steps.contains_key(&at) {
            let instruction = self.decode(at);
            let step = instruction.map(|it| self.step(&it));
            self.steps.insert(at, step);
        }
    }

    pub(crate) fn known(&self, at: u64) -> Option<&Step> {
        self.steps.get(&at)?.as_ref()
    }

    /// What an instruction does to what is where.
    pub(crate) fn step(&mut self, instruction: &Instruction) -> Step {
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
            returns: flow == FlowControl::Return,
            effect: Effect::of(
                instruction,
                flow == FlowControl::Call && self.calls_out(instruction),
                &mut self.info,
            ),
            calls: matches!(flow, FlowControl::Call | FlowControl::IndirectCall),
            overwrites,
            moves: moved(instruction),
            reads: read(instruction),
            makes: made(instruction),
            compares: compared(instruction),
            if_equal: match instruction.mnemonic() {
                Mnemonic::Je => Some(instruction.near_branch_target()),
                Mnemonic::Jne => behind,
                _ => None,
            },
        }
    }

    /// Where control may go from these pieces of code, until it leaves for that of another instruction.
    pub(crate) fn reach(&mut self, from: &BTreeSet<u64>, pc: Register) -> Result<Reach, String> {
        let leaders = self.leaders(from)?;
        let start = State::from([(Holder::Register(pc.number()), Pc::Entry(0))]);
        let todo = from.iter().map(|it| (*it, start.clone())).collect();
        let before = self.states(todo, &leaders, None);
        Ok(self.each(before, &leaders, pc))
    }

    /// What is where at the beginnings of runs, from what is where at some of them. Is `address` a number, then it is
    /// what is meant by [`Pc::Entry`], and some instructions make it.
    pub(crate) fn states(
        &self,
        mut todo: Vec<(u64, State)>,
        leaders: &HashSet<u64>,
        address: Option<u64>,
    ) -> HashMap<u64, State> {
        let mut before: HashMap<u64, State> = HashMap::new();
        while let Some((mut at, mut state)) = todo.pop() {
            if !arrive(&mut before, at, &mut state) {
                continue;
            }
            let mut compared = None;
            while let Some(step) = self.known(at) {
                step.apply(&mut state);
                step.make(address, &mut state);
                let mut next = step.next();
                match next.next() {
                    Some(only) if next.next().is_none() && !leaders.contains(&only) => at = only,
                    _ => {
                        todo.extend(step.next().map(|it| match step.if_equal == Some(it) {
                            true => (it, if_equal(&state, compared)),
                            false => (it, state.clone()),
                        }));
                        break;
                    }
                }
                compared = step.compares;
            }
        }
        before
    }

    /// Where runs of instructions begin that come one after the other.
    pub(crate) fn leaders(&mut self, from: &BTreeSet<u64>) -> Result<HashSet<u64>, String> {
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
    pub(crate) fn each(
        &self,
        begins: HashMap<u64, State>,
        leaders: &HashSet<u64>,
        pc: Register,
    ) -> Reach {
        let mut all = HashMap::new();
        let mut reads = BTreeMap::new();
        for (mut at, mut state) in begins {
            while let Some(step) = self.known(at) {
                let before = pc_in(pc, &state);
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
                all.insert(at, (before, pc_in(pc, &state)));
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
    pub(crate) fn jumps(&self, reach: &Reach) -> Vec<(u64, Pc)> {
        let leaves = |at: u64| self.known(at).is_some_and(|it| it.leaves);
        let all = reach.pc.iter().filter(|(at, _)| leaves(**at));
        let mut jumps: Vec<(u64, Pc)> = all.map(|(at, (pc, _))| (*at, *pc)).collect();
        jumps.sort_by_key(|it| it.0);
        jumps
    }

    /// Does a call not come back? Behind it, there may be anything.
    pub(crate) fn is_final(&self, call: &Instruction) -> bool {
        let target = call.near_branch_target();
        let word = self.linked_by(target);
        self.program.is_final(target) || word.is_some_and(|it| self.program.is_final(it))
    }

    /// Does a call go by way of the procedure linkage table?
    fn calls_out(&self, call: &Instruction) -> bool {
        self.linked_by(call.near_branch_target()).is_some()
    }

    /// The word that says where an entry of the procedure linkage table leads.
    fn linked_by(&self, entry: u64) -> Option<u64> {
        let first = self.decode(entry)?;
        let stub = match first.code() {
            Code::Endbr64 => self.decode(first.next_ip())?,
            _ => first,
        };
        let is_stub = stub.code() == Code::Jmp_rm64 && stub.is_ip_rel_memory_operand();
        is_stub.then(|| stub.ip_rel_memory_address())
    }
}

pub(crate) fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// What is in the register for the instruction's address.
fn pc_in(pc: Register, state: &State) -> Pc {
    let found = state.get(&Holder::Register(pc.number()));
    found.copied().unwrap_or(Pc::Other)
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

/// The same state, if these places hold the same: then both hold what is known of one.
fn if_equal(state: &State, compared: Option<[Holder; 2]>) -> State {
    let mut state = state.clone();
    if let Some(places) = compared {
        let known = places.iter().find_map(|it| match state.get(it) {
            Some(Pc::Entry(by)) => Some(*by),
            _ => None,
        });
        if let Some(by) = known {
            state.extend(places.map(|it| (it, Pc::Entry(by))));
        }
    }
    state
}

/// Does a called function leave a place as it is?
fn is_kept(holder: Holder) -> bool {
    match holder {
        Holder::Register(number) => is_kept_by_calls(number),
        Holder::Stack(_) => true,
    }
}

/// Does a called function leave the register with this number as it is?
pub(crate) fn is_kept_by_calls(number: usize) -> bool {
    const KEPT: [Register; 6] = [
        Register::RBX,
        Register::RBP,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    KEPT.iter().any(|it| it.number() == number)
}

/// The word of the stack that an operand is.
pub(crate) fn slot(instruction: &Instruction) -> Option<i64> {
    let is_word =
        instruction.memory_base() == Register::RSP && instruction.memory_index() == Register::None;
    is_word.then_some(instruction.memory_displacement64() as i64)
}

/// The address that an instruction makes of its own.
fn made(instruction: &Instruction) -> Option<(Holder, u64)> {
    let is_made = instruction.code() == Code::Lea_r64_m && instruction.is_ip_rel_memory_operand();
    is_made.then(|| {
        let to = Holder::Register(instruction.op0_register().number());
        (to, instruction.ip_rel_memory_address())
    })
}

/// The places that an instruction compares, if it compares two words.
fn compared(instruction: &Instruction) -> Option<[Holder; 2]> {
    if !matches!(instruction.code(), Code::Cmp_r64_rm64 | Code::Cmp_rm64_r64) {
        return None;
    }
    let place = |kind: OpKind, register: Register| match kind {
        OpKind::Register => Some(Holder::Register(register.number())),
        _ => Some(Holder::Stack(slot(instruction)?)),
    };
    Some([
        place(instruction.op0_kind(), instruction.op0_register())?,
        place(instruction.op1_kind(), instruction.op1_register())?,
    ])
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
