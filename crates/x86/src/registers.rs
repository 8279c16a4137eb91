//! What does an instruction do to the general registers?

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};

/// A set of general registers: the bit of each is that of its number in the encoding of instructions.
pub type Registers = u16;

/// Those that an instruction looks at, and those whose contents are gone behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Something in it may matter.
    pub looked_at: Registers,
    /// Whatever was in it does not matter any more, unless the instruction looks at it, too.
    pub overwritten: Registers,
}

/// The bits of a register and of what it is a part of; none if it is not a general one.
pub fn bit(register: Register) -> Registers {
    match register.is_gpr() {
        true => 1 << register.full_register().number(),
        false => 0,
    }
}

/// What an instruction does, and whoever it calls: nobody can say what is looked at there, nor where it returns
/// to.
pub fn touched(it: &Instruction, factory: &mut InstructionInfoFactory) -> Touched {
    let mut touched = by_itself(it, factory);
    let goes_on = matches!(
        it.flow_control(),
        FlowControl::Next
            | FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
    );
    if !goes_on {
        touched.looked_at = Registers::MAX;
    }
    touched
}

/// What an instruction does by itself, wherever it leads.
pub fn by_itself(it: &Instruction, factory: &mut InstructionInfoFactory) -> Touched {
    let (mut looked_at, mut overwritten) = (0, 0);
    for used in factory.info(it).used_registers() {
        let register = used.register();
        // A part of a register leaves the rest of it; but the lower half clears the upper one.
        let is_whole = register.is_gpr64() || register.is_gpr32();
        match used.access() {
            OpAccess::Write if is_whole => overwritten |= bit(register),
            OpAccess::None | OpAccess::NoMemAccess => {}
            _ => looked_at |= bit(register),
        }
    }
    Touched {
        looked_at,
        overwritten,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn of(bytes: &[u8]) -> Touched {
        let it = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        touched(&it, &mut InstructionInfoFactory::new())
    }

    fn set(numbers: &[u32]) -> Registers {
        numbers.iter().fold(0, |set, it| set | 1 << it)
    }

    #[test]
    fn parts_leave_the_rest() {
        // mov ecx, 1
        let it = of(&[0xb9, 1, 0, 0, 0]);
        assert_eq!((it.looked_at, it.overwritten), (0, set(&[1])));
        // mov cl, 1; mov cx, 1
        for it in [of(&[0xb1, 1]), of(&[0x66, 0xb9, 1, 0])] {
            assert_eq!(it.overwritten & !it.looked_at, 0);
        }
        // cmovz eax, edx
        let it = of(&[0x0f, 0x44, 0xc2]);
        assert_eq!(it.overwritten & !it.looked_at, 0);
        // lea r11, [rax + 8 * rcx]
        let it = of(&[0x4c, 0x8d, 0x1c, 0xc8]);
        assert_eq!((it.looked_at, it.overwritten), (set(&[0, 1]), set(&[11])));
    }

    #[test]
    fn whoever_is_called_may_look_at_all() {
        // syscall; call rax; int 0x80; ret; hlt; xbegin; ud2
        let all: [&[u8]; 7] = [
            &[0x0f, 0x05],
            &[0xff, 0xd0],
            &[0xcd, 0x80],
            &[0xc3],
            &[0xf4],
            &[0xc7, 0xf8, 0, 0, 0, 0],
            &[0x0f, 0x0b],
        ];
        for bytes in all {
            let it = of(bytes);
            // `hlt` stops every program of a user.
            assert!(
                it.looked_at == Registers::MAX || bytes == [0xf4],
                "{bytes:x?}"
            );
        }
        // jmp rax leads somewhere: what is looked at there is not for it to say.
        assert_eq!(of(&[0xff, 0xe0]).looked_at, set(&[0]));
    }
}
