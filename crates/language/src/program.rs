//! The file of an interpreter: its symbols, and what its memory holds before it runs.

use std::collections::{HashMap, HashSet};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationTarget};

/// Is this the name of a function that does not return?
fn does_not_return(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "PyThread_exit_thread",
        "__assert_fail",
        "__chk_fail",
        "__fortify_fail",
        "__longjmp_chk",
        "__stack_chk_fail",
        "_exit",
        "_longjmp",
        "abort",
        "exit",
        "longjmp",
        "pthread_exit",
        "siglongjmp",
    ];
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
            let is_final = it.name().is_ok_and(does_not_return);
            symbols.insert(it.index().0, (it.address(), is_final));
            if is_final && it.is_definition() {
                final_ones.insert(it.address());
            }
        }
        let own = elf.symbols().filter(|it| it.is_definition());
        let own = own.filter(|it| it.name().is_ok_and(does_not_return));
        final_ones.extend(own.map(|it| it.address()));
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

    /// Where a name that the file defines is, for others or for itself.
    pub(crate) fn own_symbol(&self, name: &str) -> Option<u64> {
        self.symbol(name).or_else(|| {
            let mut symbols = self.elf.symbols();
            let found = symbols.find(|it| it.is_definition() && it.name() == Ok(name))?;
            Some(found.address())
        })
    }

    /// Where the function begins that has an instruction at an address.
    pub(crate) fn function_start(&self, at: u64) -> Option<u64> {
        self.unwound_from(at).or_else(|| {
            let symbols = self.elf.symbols().chain(self.elf.dynamic_symbols());
            let functions = symbols.filter(|it| it.kind() == object::SymbolKind::Text);
            functions
                .map(|it| it.address())
                .filter(|it| *it <= at)
                .max()
        })
    }

    /// The same by what unwinders look it up in: a table of where functions begin, by distances from the table.
    fn unwound_from(&self, at: u64) -> Option<u64> {
        const HEADER: usize = 12;
        /// Version, and how what follows is written: an address, a number, a table of pairs.
        const WRITTEN: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let section = self.elf.section_by_name(".eh_frame_hdr")?;
        let bytes = section.data().ok().filter(|it| it.starts_with(&WRITTEN))?;
        let (words, _) = bytes.get(HEADER..)?.as_chunks::<4>();
        let (pairs, _) = words.as_chunks::<2>();
        let start = |pair: &[[u8; 4]; 2]| {
            let distance = i32::from_le_bytes(pair[0]);
            section.address().wrapping_add_signed(distance.into())
        };
        let behind = pairs.partition_point(|it| start(it) <= at);
        pairs.get(behind.checked_sub(1)?).map(start)
    }

    /// The parts that are code, with their addresses.
    pub(crate) fn code(&self) -> impl Iterator<Item = (u64, &'a [u8])> + '_ {
        let parts = self.code.iter().filter_map(|it| {
            let bytes = self.bytes(it.start)?;
            let length = usize::try_from(it.end - it.start).ok()?;
            Some((it.start, &bytes[..bytes.len().min(length)]))
        });
        parts.filter(|(_, bytes)| !bytes.is_empty())
    }

    /// The bytes from an address on, to the end of what the file has of them.
    pub(crate) fn bytes(&self, at: u64) -> Option<&'a [u8]> {
        self.elf.segments().find_map(|it| {
            let inside = at.checked_sub(it.address())?;
            it.data().ok()?.get(usize::try_from(inside).ok()?..)
        })
    }

    /// Behind the last address that the file takes.
    pub(crate) fn end(&self) -> u64 {
        let ends = self
            .elf
            .segments()
            .map(|it| it.address().saturating_add(it.size()));
        ends.max().unwrap_or(0)
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
