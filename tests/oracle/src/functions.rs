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
    let functions = Functions::new(&bytes)?;
    let mut executed = BTreeMap::new();
    for (&address, &count) in counts {
        if let Some(name) = functions.at(address) {
            *executed.entry(name.to_owned()).or_default() += count;
        }
    }
    Ok(executed)
}

/// The other names of functions (C++ constructors have two), each with the one that
/// [`by_function`] uses.
pub fn other_names(elf_path: &Path) -> io::Result<BTreeMap<String, String>> {
    let bytes = fs::read(elf_path)?;
    let names = Functions::new(&bytes)?.other_names;
    let owned = |(other, name): (&str, &str)| (other.to_owned(), name.to_owned());
    Ok(names.into_iter().map(owned).collect())
}

/// The functions of an executable.
struct Functions<'a> {
    /// By address: where the function ends, how good the name is (less is better), and the name.
    by_address: BTreeMap<u64, (u64, u8, &'a str)>,
    /// The best name for each of the others.
    other_names: BTreeMap<&'a str, &'a str>,
}

impl<'a> Functions<'a> {
    fn new(bytes: &'a [u8]) -> io::Result<Self> {
        let elf: ElfFile64<'a> = ElfFile64::parse(bytes).map_err(io::Error::other)?;
        let mut by_address: BTreeMap<u64, (u64, u8, &'a str)> = BTreeMap::new();
        let mut all: Vec<(u64, &'a str)> = Vec::new();
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
            let known = by_address.entry(symbol.address()).or_insert(new);
            if (new.1, new.2) < (known.1, known.2) {
                *known = new;
            }
            all.push((symbol.address(), name));
        }
        let other_names = all
            .into_iter()
            .map(|(address, name)| (name, by_address[&address].2))
            .filter(|(name, best)| name != best)
            .collect();
        Ok(Self {
            by_address,
            other_names,
        })
    }

    fn at(&self, address: u64) -> Option<&'a str> {
        let (_, &(end, _, name)) = self.by_address.range(..=address).next_back()?;
        let name = without_cold(name);
        (address < end).then(|| self.other_names.get(name).copied().unwrap_or(name))
    }
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
