//! A program in the memory of the process that runs it.

use crate::icode::{Executed, Icode};
use crate::opcode::Opcode;

/// The bytes of the number of an instruction.
const NUMBER: usize = 4;

impl Icode {
    /// How many bytes of memory it takes.
    pub fn size(&self) -> usize {
        self.region.len()
    }

    /// Is this what a process has in memory? The tables of files and lines and the strings stay as they are;
    /// an instruction that has run may be another one that does the same with an address for an offset.
    pub fn is_in(&self, memory: &[u8]) -> bool {
        let code = self.procedures.iter().flat_map(|it| &it.instructions);
        memory.len() == self.region.len()
            && memory.get(self.tables..) == self.region.get(self.tables..)
            && code.into_iter().all(|it| self.is_there(it, memory))
    }

    fn is_there(&self, it: &Executed, memory: &[u8]) -> bool {
        let Ok(at) = usize::try_from(it.offset) else {
            return false;
        };
        let end = at + NUMBER + it.opcode.words() * size_of::<u64>();
        let (Some(now), Some(was)) = (memory.get(at..end), self.region.get(at..end)) else {
            return false;
        };
        let number = now.first_chunk().map(|it| u32::from_le_bytes(*it));
        now == was || number.is_some_and(|number| become_when_run(it.opcode).contains(&number))
    }
}

/// The numbers of the instructions that the runtime puts in an instruction's place.
fn become_when_run(opcode: Opcode) -> &'static [u32] {
    match opcode {
        Opcode::Cset => &[90],
        Opcode::Real => &[91],
        Opcode::Str => &[92],
        Opcode::Global => &[93],
        Opcode::Static => &[94],
        Opcode::Goto => &[95],
        Opcode::Mark => &[96],
        // It runs once, and is a `goto` from then on.
        Opcode::Init => &[58, 95],
        _ => &[],
    }
}
