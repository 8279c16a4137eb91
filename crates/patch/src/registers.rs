//! Which registers does nobody look at any more? A probe may use them as they are.
//!
//! Only what can be seen is believed: whoever is called, or returned to, may look at every register, whatever an
//! ABI says. (Compilers know what their own functions leave alone, and people who write assembly know more.)
//! Registers that functions keep for their callers are left out: where an exception is thrown by a fault, they
//! are looked at by who catches it.

use headcount_x86::registers::{Registers as Set, bit, touched};
use iced_x86::{InstructionInfoFactory, Register};

use crate::sketch::{Block, End, Target, Way};

/// Which registers matter in a routine.
#[derive(Debug)]
pub(crate) struct Registers {
    /// Where each block begins.
    starts: Vec<Set>,
    /// Behind its last instruction.
    ends: Vec<Set>,
}

impl Registers {
    /// Those of a routine with these blocks.
    pub fn of(blocks: &[Block]) -> Self {
        let mut factory = InstructionInfoFactory::new();
        let inside: Vec<Inside> = blocks.iter().map(|it| inside(it, &mut factory)).collect();
        let mut all = Self {
            starts: vec![0; blocks.len()],
            ends: vec![0; blocks.len()],
        };
        loop {
            let mut has_changed = false;
            for (number, block) in blocks.iter().enumerate().rev() {
                let end = all.behind(block);
                let start = inside[number].before(end);
                has_changed |= (all.starts[number], all.ends[number]) != (start, end);
                (all.starts[number], all.ends[number]) = (start, end);
            }
            if !has_changed {
                return all;
            }
        }
    }

    /// Those that matter where a block leads.
    fn behind(&self, block: &Block) -> Set {
        let of = |way: Way| match way.to {
            Target::Block(block) => self.starts[block as usize],
            Target::Elsewhere(_) => Set::MAX,
        };
        match block.end {
            End::Fall(way) | End::Jump(way) => of(way),
            End::Branch { taken, fall } => of(taken) | of(fall),
            End::Call | End::Leave => Set::MAX,
        }
    }

    /// The registers that may be overwritten before an instruction of a block.
    pub fn free_before(&self, block: &Block, number: usize, index: usize) -> Set {
        let mut factory = InstructionInfoFactory::new();
        let code = block.code[index..].iter();
        let matter = code.rfold(self.ends[number], |behind, it| {
            let it = touched(it, &mut factory);
            behind & !it.overwritten | it.looked_at
        });
        !matter & not_kept()
    }
}

/// What all instructions of a block do together.
struct Inside {
    looked_at: Set,
    overwritten: Set,
}

impl Inside {
    fn before(&self, behind: Set) -> Set {
        behind & !self.overwritten | self.looked_at
    }
}

fn inside(block: &Block, factory: &mut InstructionInfoFactory) -> Inside {
    let nothing = Inside {
        looked_at: 0,
        overwritten: 0,
    };
    block.code.iter().rfold(nothing, |behind, it| {
        let it = touched(it, factory);
        Inside {
            looked_at: behind.looked_at & !it.overwritten | it.looked_at,
            overwritten: behind.overwritten | it.overwritten,
        }
    })
}

/// The registers that a function need not keep for its caller.
fn not_kept() -> Set {
    use Register::{R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI};
    let all = [RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11];
    all.into_iter().fold(0, |set, it| set | bit(it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Adding;
    use crate::sketch::Sketch;
    use headcount_model::{Entrance, LinkAddr, Routine, RoutineBlock};

    /// The free registers before the first instruction of each block of a routine.
    fn free(blocks: &[&[&[u8]]]) -> Vec<Set> {
        let mut routine = Routine {
            start: LinkAddr(0x1000),
            ..Routine::default()
        };
        for instructions in blocks {
            routine.blocks.push(RoutineBlock {
                offset: routine.bytes.len() as u32,
                lengths: instructions.iter().map(|it| it.len() as u8).collect(),
                entrance: Entrance::None,
                is_case: false,
            });
            routine.bytes.extend(instructions.concat());
        }
        let sketch = Sketch::of(routine, Adding::One).unwrap();
        let registers = Registers::of(&sketch.blocks);
        let blocks = sketch.blocks.iter().enumerate();
        let free = blocks.map(|(number, it)| registers.free_before(it, number, 0));
        free.collect()
    }

    fn set(of: &[Register]) -> Set {
        of.iter().fold(0, |set, it| set | bit(*it))
    }

    const MOV_EAX: &[u8] = &[0xb8, 1, 0, 0, 0];
    const MOV_R9D: &[u8] = &[0x41, 0xb9, 1, 0, 0, 0];
    const MOV_EBX: &[u8] = &[0xbb, 1, 0, 0, 0];
    const ADD_RDX_RAX: &[u8] = &[0x48, 0x01, 0xc2];
    const CALL: &[u8] = &[0xe8, 0, 0, 0, 0];
    const RET: &[u8] = &[0xc3];

    #[test]
    fn what_is_overwritten_first_is_free() {
        use Register::{R9, RAX};
        let straight = free(&[&[MOV_EAX, MOV_R9D, ADD_RDX_RAX, RET]]);
        assert_eq!(straight, [set(&[RAX, R9])]);
        assert_eq!(free(&[&[ADD_RDX_RAX, MOV_EAX, RET]]), [0]);
        // Not so one that is kept for the caller.
        assert_eq!(free(&[&[MOV_EBX, MOV_EAX, RET]]), [set(&[RAX])]);
        // And whoever is called may look at it.
        assert_eq!(free(&[&[CALL], &[MOV_EAX, RET]]), [0, set(&[RAX])]);
    }

    #[test]
    fn all_ways_count() {
        use Register::RAX;
        // jz over: one way overwrites it, the other looks at it.
        let jz = &[0x74, MOV_EAX.len() as u8][..];
        assert_eq!(
            free(&[&[jz], &[MOV_EAX], &[ADD_RDX_RAX, RET]]),
            [0, set(&[RAX]), 0]
        );
        // Both overwrite it.
        let jz = &[0x74, (MOV_EAX.len() + RET.len()) as u8][..];
        assert_eq!(
            free(&[&[jz], &[MOV_EAX, RET], &[MOV_EAX, RET]]),
            [set(&[RAX]); 3]
        );
        // jz to elsewhere.
        let jz = &[0x74, 0x70][..];
        assert_eq!(free(&[&[jz], &[MOV_EAX, RET]]), [0, set(&[RAX])]);
    }

    #[test]
    fn what_a_loop_needs_it_keeps() {
        use Register::{R9, RAX};
        // again: add rdx, rax; mov r9d, 1; jnz again; ret
        let back = 0_u8.wrapping_sub((ADD_RDX_RAX.len() + MOV_R9D.len() + 2) as u8);
        let jnz = &[0x75, back][..];
        let around = free(&[&[MOV_EAX], &[ADD_RDX_RAX, MOV_R9D, jnz], &[RET]]);
        assert_eq!(around, [set(&[RAX, R9]), set(&[R9]), 0]);
    }
}
