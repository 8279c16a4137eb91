//! Numbers that a keyed probe computes, of registers and memory.

use headcount_model::{Binary, Expression, Unary, Width};
use headcount_x86::registers::Registers;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

use super::{Hands, MOST_TEMPORARIES, TEMPORARIES, Work, absolute, constant, word};
use crate::sketch::CannotCopy;

impl Work<'_, '_> {
    /// Computes a number, where keys are; the register of the slot changes, and `rdx` if there is a division. So
    /// many temporary words are in use.
    pub(super) fn evaluate(&mut self, it: &Expression, used: u32) -> Result<(), CannotCopy> {
        let Hands { key, slot, .. } = self.hands;
        match it {
            Expression::Constant(number) => self.number(key, number.cast_unsigned()),
            Expression::Register(number) => match self.hands.kept_in(*number) {
                Some(at) => self.load(key, word(at)),
                None if general(*number) == key => Ok(()),
                None => self.on(Code::Mov_r64_rm64, key, general(*number)),
            },
            Expression::Address(link) => {
                let behind = self.to.here().wrapping_add(7);
                self.step();
                let number = key.number() as u8;
                let rex = 0x48 | (number >> 3) << 2;
                let lea = [rex, 0x8d, (number & 7) << 3 | 5]; // lea key, [rip + distance]
                self.to.put_distance(&lea, *link, behind)
            }
            Expression::ThreadPointer => self.load(key, absolute(Register::FS, 0)),
            Expression::Load(width, address) => {
                let at = match self.operand(address) {
                    Some(at) => at,
                    None => {
                        self.evaluate(address, used)?;
                        MemoryOperand::with_base(key)
                    }
                };
                self.faults.push(self.to.code.len() as u32);
                let (code, into) = extending(*width, key);
                self.put(Instruction::with2(code, into, at))
            }
            Expression::Narrow(width, number) => {
                let from = match **number {
                    Expression::Register(it) if self.hands.kept_in(it).is_none() => general(it),
                    _ => {
                        self.evaluate(number, used)?;
                        key
                    }
                };
                let (code, into) = extending(*width, key);
                self.put(Instruction::with2(code, into, part(from, width.bytes)))
            }
            Expression::Unary(operation, number) => {
                self.evaluate(number, used)?;
                self.unary(*operation)
            }
            Expression::Binary(operation, left, right) => {
                if let Some(sum) = self.operand(it) {
                    return self.put(Instruction::with2(Code::Lea_r64_m, key, sum));
                }
                self.evaluate(left, used)?;
                if let Some(by) = by_number(*operation, key, right) {
                    return self.put(by);
                }
                let simple = match **right {
                    Expression::Register(number) => self
                        .hands
                        .kept_in(number)
                        .is_none()
                        .then(|| Instruction::with2(Code::Mov_r64_rm64, slot, general(number))),
                    Expression::Constant(number) => Some(constant(slot, number.cast_unsigned())),
                    _ => None,
                };
                match simple {
                    Some(right) => self.put(right)?,
                    None if used == MOST_TEMPORARIES => return Err(CannotCopy::OutOfReach),
                    None => {
                        let at = TEMPORARIES + 8 * used;
                        self.store(word(at), key)?;
                        self.evaluate(right, used + 1)?;
                        self.on(Code::Mov_r64_rm64, slot, key)?;
                        self.load(key, word(at))?;
                    }
                }
                self.binary(*operation)
            }
        }
    }

    /// So far from what is in a register, if that is all and the register is what it was.
    fn operand(&self, it: &Expression) -> Option<MemoryOperand> {
        let (number, by) = match it {
            Expression::Register(number) => (*number, 0),
            Expression::Binary(Binary::Add, left, right) => match (&**left, &**right) {
                (Expression::Register(number), Expression::Constant(by)) => (*number, *by),
                _ => return None,
            },
            _ => return None,
        };
        let by = i32::try_from(by).ok()?;
        let is_there = self.hands.kept_in(number).is_none();
        is_there.then(|| MemoryOperand::with_base_displ(general(number), by.into()))
    }

    fn unary(&mut self, operation: Unary) -> Result<(), CannotCopy> {
        let Hands { key, slot, .. } = self.hands;
        match operation {
            Unary::Negate => self.put(Instruction::with1(Code::Neg_rm64, key)),
            Unary::Complement => self.put(Instruction::with1(Code::Not_rm64, key)),
            Unary::Log2 => {
                self.number(slot, u64::MAX)?;
                self.on(Code::Bsr_r64_rm64, key, key)?;
                self.on(Code::Cmove_r64_rm64, key, slot)
            }
        }
    }

    /// What two numbers make, which are where keys and slots are.
    fn binary(&mut self, operation: Binary) -> Result<(), CannotCopy> {
        use Register::{CL, RCX, RDX};
        let Hands { key, slot, .. } = self.hands;
        let on_both = match operation {
            Binary::Add => Code::Add_r64_rm64,
            Binary::Subtract => Code::Sub_r64_rm64,
            Binary::Multiply => Code::Imul_r64_rm64,
            Binary::And => Code::And_r64_rm64,
            Binary::Or => Code::Or_r64_rm64,
            Binary::Xor => Code::Xor_r64_rm64,
            Binary::ShiftLeft => return self.on(Code::Shl_rm64_CL, key, CL),
            Binary::ShiftRight => return self.on(Code::Shr_rm64_CL, key, CL),
            Binary::Divide | Binary::Remainder => {
                self.put(Ok(Instruction::with(Code::Cqo)))?;
                self.faults.push(self.to.code.len() as u32);
                self.put(Instruction::with1(Code::Idiv_rm64, RCX))?;
                return match operation {
                    Binary::Divide => Ok(()),
                    _ => self.on(Code::Mov_r64_rm64, key, RDX),
                };
            }
            Binary::Equal => return self.compare(Code::Sete_rm8),
            Binary::NotEqual => return self.compare(Code::Setne_rm8),
            Binary::Less => return self.compare(Code::Setl_rm8),
            Binary::LessOrEqual => return self.compare(Code::Setle_rm8),
        };
        self.on(on_both, key, slot)
    }

    fn compare(&mut self, set: Code) -> Result<(), CannotCopy> {
        let Hands { key, slot, .. } = self.hands;
        self.on(Code::Cmp_r64_rm64, key, slot)?;
        self.put(Instruction::with1(set, part(key, 1)))?;
        self.on(Code::Movzx_r32_rm8, key.full_register32(), part(key, 1))
    }
}

/// The same with a number that is part of the instruction, if there is such an instruction.
fn by_number(
    operation: Binary,
    to: Register,
    right: &Expression,
) -> Option<Result<Instruction, IcedError>> {
    let Expression::Constant(number) = *right else {
        return None;
    };
    let number = i32::try_from(number).ok()?;
    let code = match operation {
        Binary::Add => Code::Add_rm64_imm32,
        Binary::Subtract => Code::Sub_rm64_imm32,
        Binary::And => Code::And_rm64_imm32,
        Binary::Or => Code::Or_rm64_imm32,
        Binary::Xor => Code::Xor_rm64_imm32,
        Binary::ShiftLeft => return Some(shift(Code::Shl_rm64_imm8, to, number)),
        Binary::ShiftRight => return Some(shift(Code::Shr_rm64_imm8, to, number)),
        _ => return None,
    };
    Some(Instruction::with2(code, to, number))
}

fn shift(code: Code, to: Register, by: i32) -> Result<Instruction, IcedError> {
    Instruction::with2(code, to, by & 63)
}

/// Can a number be computed with one register more, whichever that is, and without a fault? `is_sure`: memory can
/// be read.
pub(super) fn is_simple(it: &Expression, is_sure: bool) -> bool {
    use Expression::{
        Address, Binary as Two, Constant, Load, Narrow, Register, ThreadPointer, Unary,
    };
    match it {
        Constant(_) | Register(_) | Address(_) | ThreadPointer => true,
        Load(_, address) => is_sure && is_simple(address, is_sure),
        Narrow(_, number) | Unary(_, number) => is_simple(number, is_sure),
        Two(Binary::Divide | Binary::Remainder, ..) => false,
        Two(_, left, right) => is_simple(left, is_sure) && is_simple(right, is_sure),
    }
}

/// Is it computed in whatever registers there are, and not in those that shifts and divisions need?
pub(super) fn is_anywhere(it: &Expression) -> bool {
    use Expression::{
        Address, Binary as Two, Constant, Load, Narrow, Register, ThreadPointer, Unary,
    };
    match it {
        Constant(_) | Register(_) | Address(_) | ThreadPointer => true,
        Load(_, number) | Narrow(_, number) | Unary(_, number) => is_anywhere(number),
        Two(Binary::Divide | Binary::Remainder, ..) => false,
        Two(Binary::ShiftLeft | Binary::ShiftRight, left, right) => {
            is_anywhere(left) && matches!(**right, Constant(by) if i32::try_from(by).is_ok())
        }
        Two(_, left, right) => is_anywhere(left) && is_anywhere(right),
    }
}

/// The registers that it is computed from.
pub(super) fn registers(it: &Expression) -> Registers {
    use Expression::{Address, Binary, Constant, Load, Narrow, Register, ThreadPointer, Unary};
    match it {
        Constant(_) | Address(_) | ThreadPointer => 0,
        Register(number) => 1 << (number & 15),
        Load(_, number) | Narrow(_, number) | Unary(_, number) => registers(number),
        Binary(_, left, right) => registers(left) | registers(right),
    }
}

/// What extends so many bytes to a whole register, and the part of that which it names.
fn extending(width: Width, to: Register) -> (Code, Register) {
    let half = to.full_register32();
    match (width.bytes, width.is_signed) {
        (1, false) => (Code::Movzx_r32_rm8, half),
        (1, true) => (Code::Movsx_r64_rm8, to),
        (2, false) => (Code::Movzx_r32_rm16, half),
        (2, true) => (Code::Movsx_r64_rm16, to),
        (4, false) => (Code::Mov_r32_rm32, half),
        (4, true) => (Code::Movsxd_r64_rm32, to),
        _ => (Code::Mov_r64_rm64, to),
    }
}

/// So many lower bytes of a register.
fn part(of: Register, bytes: u8) -> Register {
    let number = of.number() as u32;
    match bytes {
        // Those with a prefix come behind `ah` and its like.
        1 if number >= 4 => Register::SPL + (number - 4),
        1 => Register::AL + number,
        2 => Register::AX + number,
        4 => of.full_register32(),
        _ => of,
    }
}

fn general(number: u8) -> Register {
    Register::RAX + u32::from(number & 15)
}
