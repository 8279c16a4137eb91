//! The file of an interpreter: its symbols, and what its memory holds before it runs.

use std::collections::{HashMap, HashSet};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationTarget};

/// Is this the name of a function that ends the process?
fn ends_process(name: &str) -> bool {
    const NAMES: [&str; 4] = ["__assert_fail", "__stack_chk_fail", "abort", "exit"];
    NAMES.contains(&name) || name.trim_start_matches('_').starts_with("Py_Fatal")
}

/// An ELF file that may be an interpreter.
pub(crate) struct Program<'a> {
    elf: ElfFile64<'a>,
    /// What the loader puts into words, but for how far the file is moved.
    relocated: HashMap<u64, u64>,
    /// The words and the addresses of functions that do not return.
    final_ones: HashSet<u64>,
    /// Where its code is.
    code: Vec<std::ops::Range<u64>>,
}

impl<'a> Program<'a> {
    /// `None`: it is no such file.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let elf = ElfFile64::parse(bytes).ok()?;
        let mut symbols: HashMap<usize, (u64, bool)> = HashMap::new();
        let mut final_ones = HashSet::new();
        for it in elf.dynamic_symbols() {
            let is_final = it.name().is_ok_and(ends_process);
            symbols.insert(it.index().0, (it.address(), is_final));
            if is_final && it.is_definition() {
                final_ones.insert(it.address());
            }
        }
        let mut relocated = HashMap::new();
        for (at, it) in elf.dynamic_relocations().into_iter().flatten() {
            let symbol = match it.target() {
                RelocationTarget::Symbol(number) => symbols.get(&number.0).copied(),
                _ => None,
            };
            let (base, is_final) = symbol.unwrap_or_default();
            if is_final {
                final_ones.insert(at);
            }
            relocated.insert(at, base.wrapping_add_signed(it.addend()));
        }
        let text = elf
            .sections()
            .filter(|it| it.kind() == object::SectionKind::Text);
        let code = text.map(|it| it.address()..it.address().saturating_add(it.size()));
        let code = code.collect();
        Some(Self {
            elf,
            relocated,
            final_ones,
            code,
        })
    }

    /// Is there a function that does not return, or a word that says where one is?
    pub(crate) fn is_final(&self, at: u64) -> bool {
        self.final_ones.contains(&at)
    }

    /// Is an address one of code?
    pub(crate) fn is_code(&self, at: u64) -> bool {
        self.code.iter().any(|it| it.contains(&at))
    }

    /// The word with this number of a section that begins at `start`.
    pub(crate) fn word_in(&self, start: u64, bytes: &[u8], number: usize) -> u64 {
        let known = self.relocated.get(&(start + number as u64 * 8));
        known.copied().unwrap_or_else(|| {
            let word = bytes.get(number * 8..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |it| u64::from_le_bytes(*it))
        })
    }

    /// Where a name that the file defines for others is.
    pub(crate) fn symbol(&self, name: &str) -> Option<u64> {
        let mut symbols = self.elf.dynamic_symbols();
        let found = symbols.find(|it| it.is_definition() && it.name() == Ok(name))?;
        Some(found.address())
    }

    /// The bytes from an address on, to the end of what the file has of them.
    pub(crate) fn bytes(&self, at: u64) -> Option<&'a [u8]> {
        self.elf.segments().find_map(|it| {
            let inside = at.checked_sub(it.address())?;
            it.data().ok()?.get(usize::try_from(inside).ok()?..)
        })
    }

    /// A word, as it will be when the file is loaded where it was linked.
    pub(crate) fn word(&self, at: u64) -> Option<u64> {
        if let Some(word) = self.relocated.get(&at) {
            return Some(*word);
        }
        let bytes = self.bytes(at)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// The parts that are not code, with their addresses.
    pub(crate) fn data(&self) -> impl Iterator<Item = (u64, &'a [u8])> + '_ {
        let sections = self.elf.sections();
        let data = sections.filter(|it| it.kind() != object::SectionKind::Text);
        data.filter_map(|it| Some((it.address(), it.data().ok()?)))
            .filter(|(at, bytes)| *at != 0 && !bytes.is_empty())
    }
}

/// Does a file define a name for others? Most do not, and need not be looked at further.
pub(crate) fn speaks_of(bytes: &[u8], name: &str) -> bool {
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(bytes) else {
        return false;
    };
    let names = elf.section_by_name(".dynstr");
    let names = names.and_then(|it| it.data().ok());
    names.is_some_and(|it| memchr::memmem::find(it, name.as_bytes()).is_some())
}
