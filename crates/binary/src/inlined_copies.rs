//! For those who have lines already: which inlined copy is this code?

use headcount_model::{Block, Compiled, FileId, LinkAddr};

use crate::debug_info::{self, DebugInfo};
use crate::layout::Elf;

/// The inlined copies of a module.
#[derive(Debug, Default)]
pub struct InlinedCopies(DebugInfo);

impl InlinedCopies {
    /// Reads them from an ELF file; there are none in what is none.
    pub fn read(bytes: &[u8]) -> Self {
        match Elf::parse(bytes) {
            Ok(elf) => Self(debug_info::read(&elf, &|_| true, &mut |_| None)),
            Err(_) => Self::default(),
        }
    }

    /// Which copy, in the function around it, the code at an address belongs to; 0 if to none.
    pub fn at(&self, address: LinkAddr) -> u32 {
        self.0.inline_copy(address.0)
    }

    /// Which copy a line belongs to that begins and ends at an address: that of the code before it.
    pub fn before(&self, address: LinkAddr) -> u32 {
        self.0.inline_copy(address.0.saturating_sub(1))
    }

    /// The column of a line that begins at an address; 0 if nobody knows.
    pub fn column(&self, address: LinkAddr, line: u32) -> u32 {
        self.0.column(address.0, line)
    }

    /// What the compiler made of the function that begins at an address; `number` gives source
    /// files their numbers.
    pub fn compiled(&self, at: LinkAddr, mut number: impl FnMut(&str) -> FileId) -> Compiled {
        let known = self.0.subprogram(at.0).map(|it| it.compiled.clone());
        let mut compiled = known.unwrap_or_default();
        let mut here = |file: FileId| {
            let path = self.0.files.paths.get(file.index());
            number(path.map_or("??", String::as_str))
        };
        for call in &mut compiled.inlined {
            call.file = here(call.file);
            call.callee = call.callee.map(|(file, line)| (here(file), line));
        }
        compiled
    }

    /// Puts right what addresses alone cannot tell, in the blocks of one function.
    pub fn settle(blocks: &mut [Block], source: Option<(FileId, u32)>) {
        debug_info::settle(blocks, source);
    }
}
