//! What does the loader write into this module?

use object::elf;
use object::read::elf::{Rela, SectionHeader};
use object::{Object, ObjectSymbol, ObjectSymbolTable, SymbolIndex};

use crate::image::{Piece, word};
use crate::layout::{Elf, LITTLE};

/// Everything that the loader writes, by address.
#[derive(Debug, Default)]
pub struct Relocations {
    /// Where it writes an address of this module, and which.
    addresses: Vec<(u64, u64)>,
    /// Where it writes the address of something that has a name, and the name.
    names: Vec<(u64, String)>,
    /// Where it writes what a function of this module answers, and which function.
    chosen: Vec<(u64, u64)>,
    /// The slots that the linkage table's stubs jump through, in the order of their numbers.
    pub slots: Vec<u64>,
}

impl Relocations {
    pub fn of(elf: &Elf<'_>, pieces: &[Piece<'_>]) -> Self {
        let mut all = Self::default();
        for section in elf.sections() {
            let header = section.elf_section_header();
            if !header.sh_flags(LITTLE).contains(elf::SHF_ALLOC) {
                continue;
            }
            if let Ok(Some((entries, _))) = header.rela(LITTLE, elf.data()) {
                for entry in entries {
                    all.add(elf, pieces, entry);
                }
            }
            if let Ok(Some(packed)) = header.relr(LITTLE, elf.data()) {
                // A packed entry is one bit; what it says stands in the file itself.
                let found = packed.filter_map(|at| Some((at, word(pieces, at)?)));
                all.addresses.extend(found);
            }
        }
        all.addresses.sort_unstable();
        all.names.sort_unstable();
        all.chosen.sort_unstable();
        all
    }

    fn add(
        &mut self,
        elf: &Elf<'_>,
        pieces: &[Piece<'_>],
        entry: &elf::Rela64<object::LittleEndian>,
    ) {
        let at = entry.r_offset(LITTLE);
        let addend = entry.r_addend(LITTLE).cast_unsigned();
        let symbol = entry.r_sym(LITTLE, false);
        match entry.r_type(LITTLE, false) {
            elf::R_X86_64_RELATIVE => self.addresses.push((at, addend)),
            elf::R_X86_64_IRELATIVE => {
                self.chosen.push((at, addend));
                self.slots.push(at);
            }
            kind @ (elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_64) => {
                let symbol = elf
                    .dynamic_symbol_table()
                    .and_then(|table| table.symbol_by_index(SymbolIndex(symbol as usize)).ok());
                if let Some(symbol) = symbol {
                    if let Ok(name) = symbol.name() {
                        self.names.push((at, name.to_owned()));
                    }
                    if kind == elf::R_X86_64_64 && symbol.is_definition() {
                        let address = symbol.address().wrapping_add(addend);
                        self.addresses.push((at, address));
                    }
                }
                if kind == elf::R_X86_64_JUMP_SLOT {
                    self.slots.push(at);
                    // Until it is bound, the slot leads back into its stub.
                    self.addresses
                        .extend(word(pieces, at).map(|back| (at, back)));
                }
            }
            _ => {}
        }
    }

    /// The address of this module that the loader writes here.
    pub fn address_at(&self, at: u64) -> Option<u64> {
        find(&self.addresses, at).copied()
    }

    /// The name of what the loader writes here.
    pub fn name_at(&self, at: u64) -> Option<&str> {
        find(&self.names, at).map(String::as_str)
    }

    /// The function of this module that is asked what to write here.
    pub fn resolver_at(&self, at: u64) -> Option<u64> {
        find(&self.chosen, at).copied()
    }

    /// Where addresses of this module are written, and which.
    pub fn addresses(&self) -> impl Iterator<Item = (u64, u64)> {
        self.addresses.iter().copied()
    }

    /// The functions that are asked.
    pub fn resolvers(&self) -> impl Iterator<Item = u64> {
        self.chosen.iter().map(|(_, resolver)| *resolver)
    }
}

fn find<T>(sorted: &[(u64, T)], at: u64) -> Option<&T> {
    let place = sorted.partition_point(|(address, _)| *address < at);
    let (address, found) = sorted.get(place)?;
    (*address == at).then_some(found)
}
