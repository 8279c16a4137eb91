//! The registers that a keyed probe works in: such as nobody looks at any more, or some that are kept meanwhile.

use headcount_model::{Expression, KeyOf, KeyedProbe};
use headcount_x86::registers::Registers;
use iced_x86::Register;

use super::THIRD;
use super::numbers::{is_anywhere, registers};
use crate::event_counter;

/// What each register is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hands {
    /// Holds the key while it is looked up.
    pub key: Register,
    /// Where its slot is.
    pub slot: Register,
    /// What the key is told apart by besides, unless that is one number.
    pub by: Option<Register>,
    /// Are there words in which they are kept?
    are_kept: bool,
}

impl Hands {
    /// Registers that are kept meanwhile.
    pub fn kept(has_third: bool) -> Self {
        Self {
            key: Register::RAX,
            slot: Register::RCX,
            by: has_third.then_some(Register::RDX),
            are_kept: true,
        }
    }

    /// Registers that may be overwritten, for probes before one instruction; `None` if there are too few.
    pub fn free(probes: &[KeyedProbe], has_third: bool, free: Registers) -> Option<Self> {
        let mut free = match probes {
            [probe] => free | probe.free,
            _ => free,
        };
        for probe in probes {
            for number in numbers_of(probe)? {
                if !is_anywhere(number) {
                    return None;
                }
                free &= !registers(number);
            }
        }
        let free = (0..16_u32).filter(|it| free >> it & 1 == 1);
        let mut free = free.map(|it| Register::RAX + it);
        Some(Self {
            slot: free.next()?,
            key: match probes {
                [probe] => in_register(probe).or_else(|| free.next())?,
                _ => free.next()?,
            },
            by: if has_third { Some(free.next()?) } else { None },
            are_kept: false,
        })
    }

    /// The word in which a register's own value is kept meanwhile, if it is.
    pub fn kept_in(&self, number: u8) -> Option<u32> {
        match number {
            _ if !self.are_kept => None,
            0 => Some(0),
            1 => Some(event_counter::SCRATCH),
            2 if self.by.is_some() => Some(THIRD),
            _ => None,
        }
    }
}

/// The register that holds the key of a probe as it is, where nothing else is put there.
fn in_register(probe: &KeyedProbe) -> Option<Register> {
    let is_alone = probe.caller.is_none() && probe.amount.is_none() && probe.within.is_none();
    match probe.key {
        KeyOf::Number(Expression::Register(number)) if is_alone => {
            Some(Register::RAX + u32::from(number & 15))
        }
        _ => None,
    }
}

/// What a probe computes, if that is numbers only.
fn numbers_of(probe: &KeyedProbe) -> Option<impl Iterator<Item = &Expression>> {
    let key = match &probe.key {
        KeyOf::Number(key) => Some(key),
        KeyOf::Only(_) => None,
        // These need registers of their own.
        KeyOf::Text(..) | KeyOf::Target(_) => return None,
    };
    let besides = probe.amount.iter().chain(&probe.caller);
    Some(key.into_iter().chain(besides))
}
