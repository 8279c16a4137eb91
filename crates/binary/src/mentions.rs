//! What does code do with an address that it makes?

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    UsedRegister,
};

use crate::functions::Part;
use crate::image::Image;
use crate::sweep::{self, Flow, Op};

/// How many instructions are looked at behind the one that makes the address.
const NEAR: usize = 16;

/// Does code read what is at the address that the instruction `ops[index]` makes? Then there is
/// data, as far as we can see.
pub fn is_read(image: &Image<'_>, ops: &[Op], index: usize) -> bool {
    let Some(register) = ops.get(index).and_then(|op| made_in(image, op)) else {
        return false;
    };
    let mut facts = InstructionInfoFactory::new();
    let mut end = ops.get(index).map_or(0, Op::end);
    for op in ops.iter().skip(index + 1).take(NEAR) {
        let Some(instruction) = decode(image, op).filter(|_| op.at == end) else {
            return false;
        };
        if reads_through(&instruction, register) {
            return true;
        }
        let mut used = facts.info(&instruction).used_registers().iter();
        let is_lost = used.any(|it| {
            let writes = matches!(it.access(), OpAccess::Write | OpAccess::ReadWrite);
            writes && it.register().full_register() == register
        });
        if is_lost || !op.flow.goes_on() || op.flow.is_call() {
            return false;
        }
        end = op.end();
    }
    false
}

/// Does a part reckon with an address of its own code? Then it may jump to any place in itself. (One
/// that is only stored, or handed on, is where control comes back to.)
pub fn reckons_with_own_code(image: &Image<'_>, part: &Part) -> bool {
    let ops = part.ops.iter().enumerate();
    let mut own = ops.filter(|(_, op)| match op.flow {
        Flow::Mentions(to) | Flow::Number(to) => part.range.contains(&to),
        _ => false,
    });
    own.any(|(index, _)| is_reckoned_with(image, &part.ops, index))
}

/// Is the address that the instruction `ops[index]` makes added to something, as far as control goes
/// on from there?
fn is_reckoned_with(image: &Image<'_>, ops: &[Op], index: usize) -> bool {
    let Some(register) = ops.get(index).and_then(|op| made_in(image, op)) else {
        return false;
    };
    let mut facts = InstructionInfoFactory::new();
    let behind = ops.iter().skip(index + 1);
    for instruction in behind.map_while(|op| decode(image, op)) {
        let used = facts.info(&instruction).used_registers().iter();
        let used = used.filter(|it| it.register().full_register() == register);
        let used: Vec<OpAccess> = used.map(UsedRegister::access).collect();
        let adds = matches!(
            instruction.mnemonic(),
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::Lea
        );
        if adds && !used.is_empty() && used != [OpAccess::Write] {
            return true;
        }
        let is_lost = used.contains(&OpAccess::Write);
        if is_lost || !sweep::flow(&instruction).goes_on() {
            return false;
        }
    }
    false
}

/// The register that an instruction makes an address in.
fn made_in(image: &Image<'_>, op: &Op) -> Option<Register> {
    let register = decode(image, op)?.op0_register().full_register();
    register.is_gpr64().then_some(register)
}

fn reads_through(instruction: &Instruction, register: Register) -> bool {
    let touches = !matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
    touches && [instruction.memory_base(), instruction.memory_index()].contains(&register)
}

fn decode(image: &Image<'_>, op: &Op) -> Option<Instruction> {
    let bytes = image.get(&(op.at..op.end()))?;
    let instruction = Decoder::with_ip(64, bytes, op.at, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}
