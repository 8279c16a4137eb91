//! Which function does an instruction belong to? The symbol table's own answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol, SymbolKind};

/// How many instructions each function executed. A cold part (`f.cold`, `f.cold.3`) is added to its
/// function. Code that no symbol with a size covers (the procedure linkage table, say) is left
/// out. Of several names for one function, the global one counts, then the first by alphabet.
pub fn by_function(
    counts: &BTreeMap<u64, u64>,
    elf_path: &Path,
) -> io::Result<BTreeMap<String, u64>> {
    let bytes = fs::read(elf_path)?;
    let elf: ElfFile64 = ElfFile64::parse(&*bytes).map_err(io::Error::other)?;
    // By address: where the function ends, how good the name is (less is better), and the name.
    let mut functions: BTreeMap<u64, (u64, u8, &str)> = BTreeMap::new();
    for symbol in elf.symbols() {
        let Ok(name) = symbol.name() else { continue };
        if symbol.kind() != SymbolKind::Text || symbol.size() == 0 || symbol.is_undefined() {
            continue;
        }
        let rank = match (symbol.is_local(), symbol.is_weak()) {
            (false, false) => 0,
            (false, true) => 1,
            (true, _) => 2,
        };
        let new = (symbol.address().saturating_add(symbol.size()), rank, name);
        let known = functions.entry(symbol.address()).or_insert(new);
        if (new.1, new.2) < (known.1, known.2) {
            *known = new;
        }
    }
    let mut executed = BTreeMap::new();
    for (&address, &count) in counts {
        if let Some((_, &(end, _, name))) = functions.range(..=address).next_back()
            && address < end
        {
            *executed.entry(without_cold(name).to_owned()).or_default() += count;
        }
    }
    Ok(executed)
}

fn without_cold(name: &str) -> &str {
    match name.rsplit_once(".cold") {
        Some((function, number))
            if number.is_empty()
                || number.strip_prefix('.').is_some_and(|digits| {
                    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
                }) =>
        {
            function
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::without_cold;

    #[test]
    fn cold_parts_belong_to_their_functions() {
        assert_eq!(without_cold("main.cold"), "main");
        assert_eq!(without_cold("main.cold.12"), "main");
        assert_eq!(without_cold("main.colder"), "main.colder");
        assert_eq!(without_cold("main.cold.x"), "main.cold.x");
        assert_eq!(without_cold("main"), "main");
    }
}
