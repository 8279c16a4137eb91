//! Keyed probes where registers are free: there is nothing to keep meanwhile, and nothing to restore.

use headcount_model::{Binary, Expression, KeyOf, KeyedProbe, Width};
use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::{MIXER, TO_LOW_PLACES, Work};
use crate::sketch::CannotCopy;

impl Work<'_, '_> {
    /// Such a probe.
    pub(super) fn probe_in_free(
        &mut self,
        probe: &KeyedProbe,
        simple: Simple,
        [slot, key]: [Register; 2],
    ) -> Result<(), CannotCopy> {
        (self.slot, self.key) = (slot, key);
        let mut base = simple.register;
        if let Some(distance) = simple.word {
            self.load(key, MemoryOperand::with_base_displ(base, distance.into()))?;
            base = key;
        }
        match simple.by {
            0 => self.key = base,
            by => {
                let at = MemoryOperand::with_base_displ(base, by.into());
                self.put(Instruction::with2(Code::Lea_r64_m, key, at))?;
            }
        }
        self.look_up(probe, true)?;
        self.commit(probe)
    }

    /// Where in a table the key is looked for first.
    pub(super) fn place_in_free(&mut self, probe: &KeyedProbe) -> Result<(), CannotCopy> {
        let (slot, key) = (self.slot, self.key);
        self.put(Instruction::with3(
            Code::Imul_r64_rm64_imm32,
            slot,
            key,
            MIXER,
        ))?;
        self.put(Instruction::with2(Code::Shr_rm64_imm8, slot, TO_LOW_PLACES))?;
        self.in_table(probe)
    }
}

/// A key that is so far from what is in a register, or from a word that is so far from that.
#[derive(Clone, Copy)]
pub(super) struct Simple {
    register: Register,
    word: Option<i32>,
    by: i32,
}

impl Simple {
    /// Is there nothing to compute?
    fn is_in_register(self) -> bool {
        self.word.is_none() && self.by == 0
    }

    fn of(it: &Expression) -> Option<Self> {
        match it {
            Expression::Register(number) => Some(Self {
                register: Register::RAX + u32::from(number & 15),
                word: None,
                by: 0,
            }),
            Expression::Binary(Binary::Add, left, right) => {
                let Expression::Constant(by) = **right else {
                    return None;
                };
                let left = Self::of(left).filter(|it| it.by == 0)?;
                let by = i32::try_from(by).ok()?;
                Some(Self { by, ..left })
            }
            Expression::Load(width, address) if *width == Width::WHOLE => {
                let at = Self::of(address).filter(|it| it.word.is_none())?;
                Some(Self {
                    word: Some(at.by),
                    by: 0,
                    ..at
                })
            }
            _ => None,
        }
    }
}

/// The key of a probe that does nothing else, and the registers for its slot and its key.
pub(super) fn in_free(probe: &KeyedProbe) -> Option<(Simple, [Register; 2])> {
    let is_alone = probe.caller.is_none() && probe.within.is_none() && probe.amount.is_none();
    let key = match &probe.key {
        KeyOf::Number(key) if is_alone => Simple::of(key)?,
        _ => return None,
    };
    Some((key, free_registers(probe, key)?))
}

/// Registers that may be overwritten: one for the slot, and one for the key, unless that is in a register already.
fn free_registers(probe: &KeyedProbe, key: Simple) -> Option<[Register; 2]> {
    let free = (0..16_u32).filter(|it| probe.free >> it & 1 == 1);
    let mut free = free.map(|it| Register::RAX + it);
    let slot = free.next()?;
    match key.is_in_register() {
        true => Some([slot, key.register]),
        false => Some([slot, free.next()?]),
    }
}
