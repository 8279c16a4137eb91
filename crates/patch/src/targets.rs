//! Where an indirect call or jump leads.

use headcount_model::{Expression, Width};
use iced_x86::{FlowControl, Instruction, OpKind, Register};

/// The address that control goes to from an instruction whose target is computed. `None`: it is none,
/// or it has an operand that no compiler makes.
pub fn target_of(instruction: &Instruction) -> Option<Expression> {
    let is_indirect = matches!(
        instruction.flow_control(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall
    );
    if !is_indirect || instruction.is_call_far_indirect() || instruction.is_jmp_far_indirect() {
        return None;
    }
    match instruction.op0_kind() {
        OpKind::Register => Some(Expression::Register(number_of(instruction.op0_register())?)),
        OpKind::Memory => Some(Expression::load(Width::WHOLE, address_of(instruction)?)),
        _ => None,
    }
}

/// The address of an instruction's operand in memory.
fn address_of(instruction: &Instruction) -> Option<Expression> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(Expression::Address(instruction.ip_rel_memory_address()));
    }
    let mut sum = Expression::Constant(instruction.memory_displacement64().cast_signed());
    if instruction.segment_prefix() == Register::FS {
        sum = Expression::sum(sum, Expression::ThreadPointer);
    }
    let base = instruction.memory_base();
    if base != Register::None {
        sum = Expression::sum(sum, Expression::Register(number_of(base)?));
    }
    let index = instruction.memory_index();
    if index != Register::None {
        let scale = i64::from(instruction.memory_index_scale());
        let scaled = Expression::scaled(Expression::Register(number_of(index)?), scale);
        sum = Expression::sum(sum, scaled);
    }
    Some(sum)
}

/// The number of a register of eight bytes.
fn number_of(register: Register) -> Option<u8> {
    register.is_gpr64().then(|| register.number() as u8)
}
