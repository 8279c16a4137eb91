//! Keys that are few: each has a slot of its own, so that none is looked for.

use headcount_model::{DIRECT_BESIDES, Direct, KeyKind, KeyedProbe};
use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::{DIRECT_BYTES, Hands, SLOT_BYTES, SLOT_COUNT, Work, buckets_of, fixed, slot_field};
use crate::sketch::CannotCopy;

/// A slot is four times as large as what an operand in memory can be a multiple of.
const BY_OPERAND: u32 = 8;
const BY_SHIFT: u32 = (SLOT_BYTES / BY_OPERAND).trailing_zeros();

/// How far a slot is from the buckets, which are behind it.
fn distance(number: u32) -> i64 {
    i64::from(number * SLOT_BYTES) - i64::from(DIRECT_BYTES)
}

impl Work<'_, '_> {
    /// Where the slot of the key is.
    pub(super) fn slot_of(&mut self, probe: &KeyedProbe, direct: Direct) -> Result<(), CannotCopy> {
        let Hands { key, slot, .. } = self.hands;
        let least = i64::from(direct.least);
        let mut behind = Vec::new();
        if probe.within.is_some() {
            self.put(Instruction::with2(Code::Cmp_rm64_imm32, key, direct.least))?;
            let is_not_below = self.skip(0x7d); // jge
            self.slot_beside(probe, direct, KeyKind::Below)?;
            behind.push(self.skip(0xeb)); // jmp
            self.land(is_not_below);
            let end = least + i64::from(direct.keys);
            self.number(slot, end.cast_unsigned())?;
            self.on(Code::Cmp_r64_rm64, key, slot)?;
            let is_within = self.skip(0x7c); // jl
            self.slot_beside(probe, direct, KeyKind::Above)?;
            behind.push(self.skip(0xeb)); // jmp
            self.land(is_within);
        }
        let by = distance(direct.first.into()) - least * i64::from(SLOT_BYTES);
        let by = by / i64::from(SLOT_BYTES / BY_OPERAND);
        let none = Register::None;
        let part = MemoryOperand::new(none, key, BY_OPERAND, by, 8, false, none);
        self.put(Instruction::with2(Code::Lea_r64_m, slot, part))?;
        self.put(Instruction::with2(
            Code::Shl_rm64_imm8,
            slot,
            BY_SHIFT as i32,
        ))?;
        let field = |offset: u32| slot_field(slot, buckets_of(probe) + offset);
        self.put(Instruction::with2(
            Code::Cmp_rm64_imm8,
            field(SLOT_COUNT),
            0,
        ))?;
        let is_known = self.skip(0x75); // jne
        self.store(field(0), key)?;
        self.is_told_apart(probe, KeyKind::Number)?;
        self.land(is_known);
        behind.into_iter().for_each(|it| self.land(it));
        Ok(())
    }

    /// The slot of what is no number, or none that is counted.
    pub(super) fn slot_beside(
        &mut self,
        probe: &KeyedProbe,
        direct: Direct,
        kind: KeyKind,
    ) -> Result<(), CannotCopy> {
        let number = DIRECT_BESIDES.iter().position(|it| *it == kind);
        let number = number.ok_or(CannotCopy::WrongPlan)? as u32;
        let at = distance(u32::from(direct.first) + u32::from(direct.keys) + number);
        self.number(self.hands.slot, at.cast_unsigned())?;
        self.is_told_apart(probe, kind)
    }

    /// What is told apart in the slot besides the key.
    fn is_told_apart(&mut self, probe: &KeyedProbe, kind: KeyKind) -> Result<(), CannotCopy> {
        let by = slot_field(self.hands.slot, buckets_of(probe) + 8);
        let fixed = i32::from(fixed(probe, kind));
        self.put(Instruction::with2(Code::Mov_rm64_imm32, by, fixed))
    }
}
