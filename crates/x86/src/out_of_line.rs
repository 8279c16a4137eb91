//! Running one instruction somewhere else.
//!
//! A breakpoint stands on an instruction's first byte and is never lifted: while it is away for
//! one thread, others would slip past. So the instruction is run out of line, in a *slot*: a copy
//! that does the same from another address, and then goes on where the original would have gone.
//! Nothing is emulated. A fault in the copy is the fault of the original, once the address is put
//! right; [`OutOfLine::interrupted`] says how.

use headcount_model::LoadAddr;
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, FlowControl, Instruction, MemoryOperand, Mnemonic,
    OpKind, Register,
};

#[cfg(test)]
mod tests;

/// No slot has more bytes.
pub const LONGEST_SLOT: usize = 48;

/// How a thread gets past a breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Past {
    /// The instruction does nothing but go on at this address.
    GoTo(LoadAddr),
    /// It runs in a slot.
    Slot(OutOfLine),
    /// It is a breakpoint of the program's own: the trap is the program's, too.
    OwnTrap,
}

/// An instruction that can be run in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfLine {
    /// The slot's bytes.
    pub code: Vec<u8>,
    /// What to do with a thread that stopped at an offset of the slot.
    stops: Vec<(u8, Interrupted)>,
}

/// What a stop inside of a slot means for the original code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// The instruction has not run.
    Before,
    /// It has pushed a return address that must be taken back, and has not run otherwise.
    BeforeWithPush,
    /// It has run; what comes next is at this address.
    After(LoadAddr),
}

/// Why an instruction cannot be run elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotMove {
    /// These bytes are no instruction.
    #[error("the bytes are no x86-64 instruction")]
    NotCode,
    /// The slot is too far away from what the instruction speaks of.
    #[error("what it refers to is more than two gigabytes away")]
    OutOfReach,
    /// A transaction, or something else that is tied to its place.
    #[error("it is tied to its place")]
    TiedToItsPlace,
}

impl OutOfLine {
    /// What a stop at this offset of the slot means; `None` if no instruction begins there.
    pub fn interrupted(&self, offset: u64) -> Option<Interrupted> {
        let stop = |(at, means): &(u8, Interrupted)| (u64::from(*at) == offset).then_some(*means);
        self.stops.iter().find_map(stop)
    }
}

/// How to get past a breakpoint at `at`, where `bytes` are the original code, with a slot at
/// `slot`.
pub fn past(bytes: &[u8], at: LoadAddr, slot: LoadAddr) -> Result<Past, CannotMove> {
    let mut decoder = Decoder::with_ip(64, bytes, at.0, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.is_invalid() {
        return Err(CannotMove::NotCode);
    }
    if matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Endbr64) {
        return Ok(Past::GoTo(LoadAddr(instruction.next_ip())));
    }
    if instruction.code() == Code::Int3 {
        return Ok(Past::OwnTrap);
    }
    let mut slot = Slot::new(slot);
    let next = LoadAddr(instruction.next_ip());
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => {
            return match instruction.is_jmp_short_or_near() {
                true => Ok(Past::GoTo(LoadAddr(instruction.near_branch_target()))),
                false => Err(CannotMove::TiedToItsPlace),
            };
        }
        FlowControl::ConditionalBranch => slot.branch(&instruction, bytes, next)?,
        FlowControl::Call if instruction.is_call_near() => {
            slot.push(next.0);
            slot.stop(Interrupted::After(LoadAddr(
                instruction.near_branch_target(),
            )));
            slot.jump(instruction.near_branch_target())?;
        }
        FlowControl::IndirectCall if instruction.is_call_near_indirect() => {
            slot.push(next.0);
            slot.stop(Interrupted::BeforeWithPush);
            slot.encode(&jump_of_call(&instruction)?)?;
        }
        // A far call pushes where it stands, and the code segment with it.
        FlowControl::IndirectCall | FlowControl::XbeginXabortXend => {
            return Err(CannotMove::TiedToItsPlace);
        }
        _ => {
            let offsets = decoder.get_constant_offsets(&instruction);
            slot.copy(&instruction, bytes, offsets.displacement_offset())?;
            slot.stop(Interrupted::After(next));
            slot.jump(next.0)?;
        }
    }
    Ok(Past::Slot(slot.finish()))
}

/// The jump that goes where a call would, after the return address has been pushed.
pub fn jump_of_call(call: &Instruction) -> Result<Instruction, CannotMove> {
    let jump = match call.op0_kind() {
        // It would go where the stack pointer was before the push.
        OpKind::Register if call.op0_register() == Register::RSP => {
            return Err(CannotMove::TiedToItsPlace);
        }
        OpKind::Register => Instruction::with1(Code::Jmp_rm64, call.op0_register()),
        OpKind::Memory => Instruction::with1(Code::Jmp_rm64, operand_after_push(call)),
        _ => return Err(CannotMove::TiedToItsPlace),
    };
    let mut jump = jump.map_err(|_| CannotMove::TiedToItsPlace)?;
    // Before a register, the prefix means `notrack`.
    jump.set_segment_prefix(call.segment_prefix());
    Ok(jump)
}

/// The operand of a call, where the return address has been pushed already.
fn operand_after_push(call: &Instruction) -> MemoryOperand {
    let (base, index) = (call.memory_base(), call.memory_index());
    let moved = match base {
        Register::RSP | Register::ESP => 8,
        _ => 0,
    };
    // Addresses are computed in 32 bits if the registers have no more.
    let narrow = base.is_gpr32() || index.is_gpr32();
    let displacement = call.memory_displacement64();
    let (displacement, bytes) = match narrow {
        true => (i64::from((displacement as i32).wrapping_add(moved)), 4),
        false => ((displacement as i64).wrapping_add(i64::from(moved)), 8),
    };
    MemoryOperand::new(
        base,
        index,
        call.memory_index_scale(),
        displacement,
        bytes,
        false,
        call.segment_prefix(),
    )
}

/// How many bytes the first instruction has.
pub fn length(bytes: &[u8]) -> Option<usize> {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then(|| instruction.len())
}

/// Where an indirect jump takes its target from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A register, by its number in the encoding (rax 0, rcx 1, rdx 2, rbx 3, rsp 4, ...).
    Register(u8),
    /// Memory at base + index * scale + displacement.
    Memory {
        /// Register number, if any.
        base: Option<u8>,
        /// Register number, if any.
        index: Option<u8>,
        /// 1, 2, 4 or 8.
        scale: u8,
        /// Or the address itself.
        displacement: u64,
    },
}

/// The target of an indirect jump (not call); `None` for any other instruction, and for far jumps
/// and those through a segment.
pub fn indirect_jump(bytes: &[u8], at: LoadAddr) -> Option<Target> {
    let instruction = Decoder::with_ip(64, bytes, at.0, DecoderOptions::NONE).decode();
    if !instruction.is_jmp_near_indirect() {
        return None;
    }
    let number = |register: Register| match register {
        Register::None | Register::RIP => None,
        register => Some(register.number() as u8),
    };
    match instruction.op0_kind() {
        OpKind::Register => number(instruction.op0_register()).map(Target::Register),
        OpKind::Memory if instruction.segment_prefix() == Register::None => Some(Target::Memory {
            base: number(instruction.memory_base()),
            index: number(instruction.memory_index()),
            scale: instruction.memory_index_scale() as u8,
            displacement: instruction.memory_displacement64(),
        }),
        _ => None,
    }
}

/// A slot in the making.
struct Slot {
    at: LoadAddr,
    code: Vec<u8>,
    stops: Vec<(u8, Interrupted)>,
    /// A number that the code pushes, and where the distance to it is to be filled in.
    pushed: Option<(u64, usize)>,
}

impl Slot {
    fn new(at: LoadAddr) -> Self {
        Self {
            at,
            code: Vec::with_capacity(24),
            stops: vec![(0, Interrupted::Before)],
            pushed: None,
        }
    }

    fn here(&self) -> u64 {
        self.at.0.wrapping_add(self.code.len() as u64)
    }

    /// A thread that stopped here has come so far.
    fn stop(&mut self, means: Interrupted) {
        self.stops.push((self.code.len() as u8, means));
    }

    /// The distance from the end of an instruction, `after` bytes from here, to an address.
    fn distance(&self, target: u64, after: u64) -> Result<[u8; 4], CannotMove> {
        let end = self.here().wrapping_add(after);
        let distance = target.wrapping_sub(end) as i64;
        let distance = i32::try_from(distance).map_err(|_| CannotMove::OutOfReach)?;
        Ok(distance.to_le_bytes())
    }

    fn jump(&mut self, target: u64) -> Result<(), CannotMove> {
        let distance = self.distance(target, 5)?;
        self.code.push(0xe9); // jmp rel32
        self.code.extend(distance);
        Ok(())
    }

    fn push(&mut self, number: u64) {
        self.code.extend([0xff, 0x35, 0, 0, 0, 0]); // push qword ptr [rip + ...]
        self.pushed = Some((number, 2));
    }

    /// A conditional jump, which knows only short distances if it is `loop` or `jrcxz`.
    fn branch(
        &mut self,
        branch: &Instruction,
        bytes: &[u8],
        next: LoadAddr,
    ) -> Result<(), CannotMove> {
        let target = branch.near_branch_target();
        if branch.is_jcc_short_or_near() {
            let distance = self.distance(target, 6)?;
            // The decoder numbers conditions as the machine does, but from 1.
            let condition = (branch.condition_code() as u8).wrapping_sub(1);
            self.code.extend([0x0f, 0x80 | condition]); // jcc rel32
            self.code.extend(distance);
            self.stop(Interrupted::After(next));
            return self.jump(next.0);
        }
        let before_distance = branch.len().checked_sub(1).ok_or(CannotMove::NotCode)?;
        let start = bytes.get(..before_distance).ok_or(CannotMove::NotCode)?;
        self.code.extend(start);
        self.code.push(5); // over the jump that follows
        self.stop(Interrupted::After(next));
        self.jump(next.0)?;
        self.stop(Interrupted::After(LoadAddr(target)));
        self.jump(target)
    }

    /// The instruction as it is, but for a distance from where it stands.
    fn copy(
        &mut self,
        instruction: &Instruction,
        bytes: &[u8],
        displacement: usize,
    ) -> Result<(), CannotMove> {
        let length = instruction.len();
        let mut code = bytes.get(..length).ok_or(CannotMove::NotCode)?.to_vec();
        if instruction.is_ip_rel_memory_operand() {
            let target = instruction.ip_rel_memory_address();
            let distance = self.distance(target, length as u64)?;
            let place = code.get_mut(displacement..displacement + 4);
            place.ok_or(CannotMove::NotCode)?.copy_from_slice(&distance);
        }
        self.code.extend(code);
        Ok(())
    }

    fn encode(&mut self, instruction: &Instruction) -> Result<(), CannotMove> {
        let mut encoder = Encoder::new(64);
        let encoded = encoder.encode(instruction, self.here());
        encoded.map_err(|_| CannotMove::OutOfReach)?;
        self.code.extend(encoder.take_buffer());
        Ok(())
    }

    fn finish(mut self) -> OutOfLine {
        if let Some((number, place)) = self.pushed {
            let distance = (self.code.len() - (place + 4)) as i32;
            self.code[place..place + 4].copy_from_slice(&distance.to_le_bytes());
            self.code.extend(number.to_le_bytes());
        }
        OutOfLine {
            code: self.code,
            stops: self.stops,
        }
    }
}
