//! Numbers that a keyed probe computes, of registers and memory.

use headcount_model::{Binary, Expression, Unary, Width};
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

use super::{MOST_TEMPORARIES, TEMPORARIES, Work, absolute, constant, word};
use crate::sketch::CannotCopy;

impl Work<'_, '_> {
    /// Computes a number, in `rax`; `rcx` and `rdx` change. So many temporary words are in use.
    pub(super) fn evaluate(&mut self, it: &Expression, used: u32) -> Result<(), CannotCopy> {
        use Register::{RAX, RCX};
        match it {
            Expression::Constant(number) => self.number(RAX, number.cast_unsigned()),
            Expression::Register(number) => match self.saved(*number) {
                Some(at) => self.load(RAX, word(at)),
                None => self.on(Code::Mov_r64_rm64, RAX, general(*number)),
            },
            Expression::Address(link) => {
                let behind = self.to.here().wrapping_add(7);
                self.step();
                self.to.put_distance(&[0x48, 0x8d, 0x05], *link, behind) // lea rax, [rip + distance]
            }
            Expression::ThreadPointer => self.load(RAX, absolute(Register::FS, 0)),
            Expression::Load(width, address) => {
                self.evaluate(address, used)?;
                self.faults.push(self.to.code.len() as u32);
                self.put(extended(*width, None))
            }
            Expression::Narrow(width, number) => {
                self.evaluate(number, used)?;
                self.put(extended(*width, Some(())))
            }
            Expression::Unary(operation, number) => {
                self.evaluate(number, used)?;
                self.unary(*operation)
            }
            Expression::Binary(operation, left, right) => {
                self.evaluate(left, used)?;
                let simple = match **right {
                    Expression::Register(number) => self
                        .saved(number)
                        .is_none()
                        .then(|| Instruction::with2(Code::Mov_r64_rm64, RCX, general(number))),
                    Expression::Constant(number) => Some(constant(RCX, number.cast_unsigned())),
                    _ => None,
                };
                match simple {
                    Some(right) => self.put(right)?,
                    None if used == MOST_TEMPORARIES => return Err(CannotCopy::OutOfReach),
                    None => {
                        let at = TEMPORARIES + 8 * used;
                        self.store(word(at), RAX)?;
                        self.evaluate(right, used + 1)?;
                        self.on(Code::Mov_r64_rm64, RCX, RAX)?;
                        self.load(RAX, word(at))?;
                    }
                }
                self.binary(*operation)
            }
        }
    }

    fn unary(&mut self, operation: Unary) -> Result<(), CannotCopy> {
        use Register::{RAX, RCX};
        match operation {
            Unary::Negate => self.put(Instruction::with1(Code::Neg_rm64, RAX)),
            Unary::Complement => self.put(Instruction::with1(Code::Not_rm64, RAX)),
            Unary::Log2 => {
                self.number(RCX, u64::MAX)?;
                self.on(Code::Bsr_r64_rm64, RAX, RAX)?;
                self.on(Code::Cmove_r64_rm64, RAX, RCX)
            }
        }
    }

    /// What two numbers in `rax` and `rcx` make.
    fn binary(&mut self, operation: Binary) -> Result<(), CannotCopy> {
        use Register::{CL, RAX, RCX, RDX};
        let on_both = match operation {
            Binary::Add => Code::Add_r64_rm64,
            Binary::Subtract => Code::Sub_r64_rm64,
            Binary::Multiply => Code::Imul_r64_rm64,
            Binary::And => Code::And_r64_rm64,
            Binary::Or => Code::Or_r64_rm64,
            Binary::Xor => Code::Xor_r64_rm64,
            Binary::ShiftLeft => return self.on(Code::Shl_rm64_CL, RAX, CL),
            Binary::ShiftRight => return self.on(Code::Shr_rm64_CL, RAX, CL),
            Binary::Divide | Binary::Remainder => {
                self.put(Ok(Instruction::with(Code::Cqo)))?;
                self.faults.push(self.to.code.len() as u32);
                self.put(Instruction::with1(Code::Idiv_rm64, RCX))?;
                return match operation {
                    Binary::Divide => Ok(()),
                    _ => self.on(Code::Mov_r64_rm64, RAX, RDX),
                };
            }
            Binary::Equal => return self.compare(Code::Sete_rm8),
            Binary::NotEqual => return self.compare(Code::Setne_rm8),
            Binary::Less => return self.compare(Code::Setl_rm8),
            Binary::LessOrEqual => return self.compare(Code::Setle_rm8),
        };
        self.on(on_both, RAX, RCX)
    }

    fn compare(&mut self, set: Code) -> Result<(), CannotCopy> {
        self.on(Code::Cmp_r64_rm64, Register::RAX, Register::RCX)?;
        self.put(Instruction::with1(set, Register::AL))?;
        self.on(Code::Movzx_r32_rm8, Register::EAX, Register::AL)
    }
}

/// Can a number be computed without `rdx` and without a fault?
pub(super) fn is_simple(it: &Expression) -> bool {
    match it {
        Expression::Constant(_)
        | Expression::Register(_)
        | Expression::Address(_)
        | Expression::ThreadPointer => true,
        Expression::Load(..) => false,
        Expression::Narrow(_, number) | Expression::Unary(_, number) => is_simple(number),
        Expression::Binary(Binary::Divide | Binary::Remainder, ..) => false,
        Expression::Binary(_, left, right) => is_simple(left) && is_simple(right),
    }
}

/// A number at `rax`, or in it, with all of its bytes.
fn extended(width: Width, in_register: Option<()>) -> Result<Instruction, IcedError> {
    use Register::{AL, AX, EAX, RAX};
    let (code, to, from) = match (width.bytes, width.is_signed) {
        (1, false) => (Code::Movzx_r32_rm8, EAX, AL),
        (1, true) => (Code::Movsx_r64_rm8, RAX, AL),
        (2, false) => (Code::Movzx_r32_rm16, EAX, AX),
        (2, true) => (Code::Movsx_r64_rm16, RAX, AX),
        (4, false) => (Code::Mov_r32_rm32, EAX, EAX),
        (4, true) => (Code::Movsxd_r64_rm32, RAX, EAX),
        _ => (Code::Mov_r64_rm64, RAX, RAX),
    };
    match in_register {
        Some(()) => Instruction::with2(code, to, from),
        None => Instruction::with2(code, to, MemoryOperand::with_base(RAX)),
    }
}

fn general(number: u8) -> Register {
    Register::RAX + u32::from(number & 15)
}
