//! What does the loader write into this module?

use headcount_model::packed::{Packed, Packer};
use object::LittleEndian;
use object::elf;
use object::read::elf::{ElfSymbol64, Rela, SectionHeader};
use object::{Object, ObjectSymbol, ObjectSymbolTable, SymbolIndex};

use crate::image::{Piece, word};
use crate::layout::{Elf, LITTLE};

/// Everything that the loader writes, by address.
#[derive(Debug, Default)]
pub struct Relocations {
    /// Where it writes an address of this module, and which.
    addresses: Vec<(u64, u64)>,
    /// Where it writes what a function of this module answers, and which function.
    chosen: Vec<(u64, u64)>,
    /// The slots that the linkage table's stubs jump through, in the order of their numbers.
    pub slots: Vec<u64>,
}

impl Relocations {
    pub fn of(elf: &Elf<'_>, pieces: &[Piece<'_>]) -> Self {
        let mut all = Self::default();
        for header in loaded(elf) {
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
        all.chosen.sort_unstable();
        all
    }

    fn add(&mut self, elf: &Elf<'_>, pieces: &[Piece<'_>], entry: &elf::Rela64<LittleEndian>) {
        let at = entry.r_offset(LITTLE);
        let addend = entry.r_addend(LITTLE).cast_unsigned();
        let symbol = entry.r_sym(LITTLE, false);
        match entry.r_type(LITTLE, false) {
            elf::R_X86_64_RELATIVE => self.addresses.push((at, addend)),
            elf::R_X86_64_IRELATIVE => {
                self.chosen.push((at, addend));
                self.slots.push(at);
            }
            kind if is_named(kind) => {
                let symbol = dynamic_symbol(elf, symbol);
                let own = symbol.filter(|it| kind == elf::R_X86_64_64 && it.is_definition());
                let own = own.map(|symbol| (at, symbol.address().wrapping_add(addend)));
                self.addresses.extend(own);
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

    /// Writes them down.
    pub fn pack(&self, to: &mut Packer) {
        for pairs in [&self.addresses, &self.chosen] {
            to.column(pairs.iter().map(|it| it.0));
            to.column(pairs.iter().map(|it| it.1));
        }
        to.column(self.slots.iter().copied());
    }

    /// What [`Relocations::pack`] wrote.
    pub fn unpack(from: &mut Packed<'_>) -> Option<Self> {
        let mut pairs = || {
            let (places, addresses) = (from.column()?, from.column()?);
            let is_whole = places.len() == addresses.len();
            is_whole.then(|| places.into_iter().zip(addresses).collect())
        };
        Some(Self {
            addresses: pairs()?,
            chosen: pairs()?,
            slots: from.column()?,
        })
    }

    /// The address of this module that the loader writes here.
    pub fn address_at(&self, at: u64) -> Option<u64> {
        find(&self.addresses, at).copied()
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

/// Where the loader writes the address of something that has a name, and the name; by address.
#[derive(Debug, Default)]
pub struct SlotNames<'a>(Vec<(u64, &'a str)>);

impl<'a> SlotNames<'a> {
    pub fn of(elf: &Elf<'a>) -> Self {
        Self::of_kinds(elf, is_named)
    }

    /// Those that only the loader ever writes to.
    pub fn of_linkage(elf: &Elf<'a>) -> Self {
        let is_meant = |kind| matches!(kind, elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT);
        Self::of_kinds(elf, is_meant)
    }

    fn of_kinds(elf: &Elf<'a>, is_meant: impl Fn(elf::RelocationType) -> bool) -> Self {
        let mut names = Vec::new();
        for entry in loaded(elf).filter_map(|header| header.rela(LITTLE, elf.data()).ok()?) {
            for entry in entry.0 {
                let kind = entry.r_type(LITTLE, false);
                let symbol = entry.r_sym(LITTLE, false);
                if is_meant(kind)
                    && let Some(symbol) = dynamic_symbol(elf, symbol)
                    && let Ok(name) = symbol.name()
                {
                    names.push((entry.r_offset(LITTLE), name));
                }
            }
        }
        names.sort_unstable();
        Self(names)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &'a str)> {
        self.0.iter().copied()
    }

    /// The name of what the loader writes here.
    pub fn at(&self, at: u64) -> Option<&'a str> {
        find(&self.0, at).copied()
    }
}

/// The sections that are loaded.
fn loaded<'a>(elf: &Elf<'a>) -> impl Iterator<Item = &'a elf::SectionHeader64<LittleEndian>> {
    let headers = elf.elf_section_table().iter();
    headers.filter(|header| header.sh_flags(LITTLE).contains(elf::SHF_ALLOC))
}

fn is_named(kind: elf::RelocationType) -> bool {
    matches!(
        kind,
        elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_64
    )
}

fn dynamic_symbol<'a, 'e>(
    elf: &'e Elf<'a>,
    index: u32,
) -> Option<ElfSymbol64<'a, 'e, LittleEndian>> {
    let table = elf.dynamic_symbol_table()?;
    table.symbol_by_index(SymbolIndex(index as usize)).ok()
}

fn find<T>(sorted: &[(u64, T)], at: u64) -> Option<&T> {
    let place = sorted.partition_point(|(address, _)| *address < at);
    let (address, found) = sorted.get(place)?;
    (*address == at).then_some(found)
}
