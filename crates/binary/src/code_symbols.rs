//! What do other tools call the code at an address?

use std::collections::HashMap;

use headcount_model::{CodeSymbol, LinkAddr};
use object::elf::STT_GNU_IFUNC;
use object::read::elf::ElfSymbol64;
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolFlags, SymbolKind, SymbolSection,
};

use crate::layout::{Elf, parse};
use crate::{Error, digest, layout::check_kind};

/// The symbols of code, by address.
pub fn code_symbols(bytes: &[u8]) -> Result<Vec<CodeSymbol>, Error> {
    check_kind(bytes)?;
    let elf = parse(bytes)?;
    let mut all: Vec<_> = elf.symbols().filter(|it| is_loaded(&elf, it)).collect();
    all.sort_by_key(|it| it.address());
    let mut locals: HashMap<&str, u32> = HashMap::new();
    let mut found = Vec::new();
    for symbol in all {
        let name = symbol.name().unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        let local = symbol.is_local().then(|| {
            let number = locals.entry(name).or_default();
            *number += 1;
            *number
        });
        if symbol.kind() == SymbolKind::Text {
            found.push(CodeSymbol {
                address: LinkAddr(symbol.address()),
                size: symbol.size(),
                name: name.to_owned(),
                local,
            });
        }
    }
    fill_sizes(&elf, &mut found);
    Ok(found)
}

/// Every name that functions have, of those that are exported, too. What the loader asks for an address
/// at start-up is not the function that it is called: see [`is_chosen_late`].
pub fn function_names(bytes: &[u8]) -> Result<Vec<(String, LinkAddr)>, Error> {
    check_kind(bytes)?;
    let elf = parse(bytes)?;
    let functions = functions(&elf).filter(|it| !is_resolver(it));
    let named = functions.filter_map(|it| Some((it.name().ok()?, LinkAddr(it.address()))));
    Ok(named.map(|(name, at)| (name.to_owned(), at)).collect())
}

/// Is this the name of a function that is chosen among several when the program starts (`IFUNC`)?
pub fn is_chosen_late(bytes: &[u8], name: &str) -> bool {
    parse(bytes).is_ok_and(|elf| {
        let mut resolvers = functions(&elf).filter(is_resolver);
        resolvers.any(|it| it.name().is_ok_and(|it| it == name))
    })
}

fn functions<'f>(elf: &'f Elf<'f>) -> impl Iterator<Item = ElfSymbol64<'f, 'f, LittleEndian>> {
    let all = elf.symbols().chain(elf.dynamic_symbols());
    all.filter(|it| it.kind() == SymbolKind::Text && is_loaded(elf, it))
}

fn is_resolver(symbol: &ElfSymbol64<'_, '_, LittleEndian>) -> bool {
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
        return false;
    };
    st_info.st_type() == STT_GNU_IFUNC
}

/// A symbol without a size (of hand-written assembly) reaches to the next, or to the end of its
/// section.
fn fill_sizes(elf: &Elf<'_>, symbols: &mut [CodeSymbol]) {
    let section_end = |at: u64| {
        let sections = elf.sections().filter(|it| it.address() != 0);
        let mut ranges = sections.map(|it| it.address()..it.address().saturating_add(it.size()));
        ranges.find(|it| it.contains(&at)).map_or(at, |it| it.end)
    };
    let starts: Vec<u64> = symbols.iter().map(|it| it.address.0).collect();
    for symbol in symbols.iter_mut().filter(|it| it.size == 0) {
        let at = symbol.address.0;
        let next = starts.get(starts.partition_point(|it| *it <= at));
        let end = section_end(at);
        symbol.size = next.map_or(end, |it| end.min(*it)) - at;
    }
}

/// Is it in a section that has an address?
fn is_loaded<'d>(elf: &Elf<'d>, symbol: &impl ObjectSymbol<'d>) -> bool {
    let SymbolSection::Section(section) = symbol.section() else {
        return false;
    };
    let section = elf.section_by_index(section);
    symbol.kind() != SymbolKind::Section && section.is_ok_and(|it| it.address() != 0)
}

/// Is this the file of which a module with this build id was made? (Its symbols may be gone.)
pub fn is_build(bytes: &[u8], build_id: &str) -> bool {
    let Ok(elf) = parse(bytes) else {
        return false;
    };
    let id = digest::of_file(&elf, bytes);
    let rest = build_id
        .strip_prefix("elf-")
        .and_then(|it| it.strip_prefix(&id));
    rest.is_some_and(|it| it.starts_with('-'))
}
