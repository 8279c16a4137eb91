//! Which instructions are in these bytes, and where does each lead?

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

/// What the flow graph needs to know of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub at: u64,
    pub flow: Flow,
    pub length: u8,
}

impl Op {
    pub fn end(&self) -> u64 {
        self.at.saturating_add(u64::from(self.length))
    }
}

/// Where an instruction leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next one, and it does nothing.
    Nop,
    /// To the next one.
    Next,
    /// To the next one; it makes this address, which may be one of code.
    Mentions(u64),
    /// To the next one; there is this number in it, which may be an address in a module that cannot
    /// be moved.
    Number(u64),
    Jump(u64),
    Branch(u64),
    Call(u64),
    /// Through this slot, if the slot's address is fixed.
    IndirectCall(Option<u64>),
    IndirectJump(Option<u64>),
    Return,
    /// Nowhere: it never completes.
    Trap,
    /// Starts a transaction, which a probe would end.
    Transaction,
}

impl Flow {
    /// Whether the instruction behind this one begins a block.
    pub fn ends_block(self) -> bool {
        !matches!(
            self,
            Self::Nop | Self::Next | Self::Mentions(_) | Self::Number(_)
        )
    }

    /// Whether control may reach the instruction behind it from here.
    pub fn goes_on(self) -> bool {
        !matches!(
            self,
            Self::Jump(_) | Self::IndirectJump(_) | Self::Return | Self::Trap
        )
    }

    /// Whether control comes back to the instruction behind it.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call(_) | Self::IndirectCall(_))
    }

    /// Where it jumps, if that is written in it. A call is no jump.
    pub fn jump_target(self) -> Option<u64> {
        match self {
            Self::Jump(to) | Self::Branch(to) => Some(to),
            _ => None,
        }
    }
}

/// All instructions from `start` on, and where decoding failed, if it did.
pub fn sweep(bytes: &[u8], start: u64) -> (Vec<Op>, Option<u64>) {
    sweep_with(bytes, start, &mut |_| {})
}

/// The same; `look` sees each instruction.
pub fn sweep_with(
    bytes: &[u8],
    start: u64,
    look: &mut impl FnMut(&Instruction),
) -> (Vec<Op>, Option<u64>) {
    let mut ops = Vec::with_capacity(bytes.len() / 4);
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return (ops, Some(instruction.ip()));
        }
        look(&instruction);
        ops.push(Op {
            at: instruction.ip(),
            flow: flow(&instruction),
            length: instruction.len() as u8,
        });
    }
    (ops, None)
}

/// The instructions themselves, for those who must look closer.
pub fn instructions(bytes: &[u8], start: u64) -> Vec<Instruction> {
    let decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    decoder.into_iter().collect()
}

/// Whether an instruction reads or changes the gs register, or memory by it.
pub fn uses_gs(instruction: &Instruction) -> bool {
    // Some fill gaps with a prefix on what touches no memory.
    if instruction.segment_prefix() == Register::GS {
        return !matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Lea);
    }
    match instruction.mnemonic() {
        Mnemonic::Rdgsbase | Mnemonic::Wrgsbase | Mnemonic::Swapgs | Mnemonic::Lgs => true,
        Mnemonic::Mov | Mnemonic::Push | Mnemonic::Pop => {
            instruction.op0_register() == Register::GS || instruction.op1_register() == Register::GS
        }
        _ => false,
    }
}

/// Where an instruction leads.
pub fn flow(instruction: &Instruction) -> Flow {
    match instruction.flow_control() {
        FlowControl::Next => next(instruction),
        FlowControl::UnconditionalBranch => direct(instruction, Flow::Jump, Flow::IndirectJump),
        FlowControl::ConditionalBranch => direct(instruction, Flow::Branch, Flow::IndirectJump),
        // The kernel comes back to where it was called, or never.
        FlowControl::Call => match instruction.mnemonic() {
            Mnemonic::Call => direct(instruction, Flow::Call, Flow::IndirectCall),
            _ => Flow::Next,
        },
        FlowControl::IndirectCall => Flow::IndirectCall(slot(instruction)),
        FlowControl::IndirectBranch => Flow::IndirectJump(slot(instruction)),
        FlowControl::Return => Flow::Return,
        FlowControl::Exception => Flow::Trap,
        FlowControl::Interrupt => Flow::Next,
        FlowControl::XbeginXabortXend => match instruction.mnemonic() {
            Mnemonic::Xbegin => Flow::Transaction,
            _ => Flow::Next,
        },
    }
}

fn direct(instruction: &Instruction, near: fn(u64) -> Flow, far: fn(Option<u64>) -> Flow) -> Flow {
    match instruction.op0_kind() {
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
            near(instruction.near_branch_target())
        }
        _ => far(None),
    }
}

fn slot(instruction: &Instruction) -> Option<u64> {
    instruction
        .is_ip_rel_memory_operand()
        .then(|| instruction.ip_rel_memory_address())
}

fn next(instruction: &Instruction) -> Flow {
    match instruction.mnemonic() {
        Mnemonic::Nop => Flow::Nop,
        Mnemonic::Hlt => Flow::Trap,
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            Flow::Mentions(instruction.ip_rel_memory_address())
        }
        Mnemonic::Mov | Mnemonic::Push => immediate(instruction).map_or(Flow::Next, Flow::Number),
        _ if is_old_nop(instruction) => Flow::Nop,
        _ => Flow::Next,
    }
}

/// Ways to do nothing that are not called `nop`: older assemblers filled gaps with them.
fn is_old_nop(instruction: &Instruction) -> bool {
    let same = || {
        instruction.op_count() == 2
            && instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register
            && instruction.op0_register() == instruction.op1_register()
    };
    matches!(
        instruction.code(),
        Code::Xchg_rm16_r16 | Code::Xchg_rm64_r64
    ) && same()
}

/// A constant that is large enough for an address.
fn immediate(instruction: &Instruction) -> Option<u64> {
    (0..instruction.op_count())
        .filter(|index| {
            matches!(
                instruction.op_kind(*index),
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
            )
        })
        .map(|index| instruction.immediate(index))
        .find(|value| *value >= 0x1000)
}
