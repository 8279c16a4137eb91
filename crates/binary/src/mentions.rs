//! What does code do with an address that it makes?

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, Register};

use crate::image::Image;
use crate::sweep::Op;

/// How many instructions are looked at behind the one that makes the address.
const NEAR: usize = 16;

/// Does code read what is at the address that the instruction `ops[index]` makes? Then there is
/// data, as far as we can see.
pub fn is_read(image: &Image<'_>, ops: &[Op], index: usize) -> bool {
    let Some(made) = ops.get(index).and_then(|op| decode(image, op)) else {
        return false;
    };
    let register = made.op0_register().full_register();
    if !register.is_gpr64() {
        return false;
    }
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
            let writes = matches!(
                it.access(),
                iced_x86::OpAccess::Write | iced_x86::OpAccess::ReadWrite
            );
            writes && it.register().full_register() == register
        });
        if is_lost || !op.flow.goes_on() || op.flow.is_call() {
            return false;
        }
        end = op.end();
    }
    false
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
