//! What do other tools call the code at an address?

use std::collections::HashMap;

use headcount_model::{CodeSymbol, LinkAddr};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind, SymbolSection};

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
