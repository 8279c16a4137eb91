//! What do the symbol tables call this address?

use object::{Object, ObjectSymbol, SymbolKind};

use crate::image::Image;
use crate::layout::Elf;

/// A name for an address of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub at: u64,
    pub size: u64,
    pub name: String,
    /// 0 for global, 1 for weak, 2 for local ones.
    pub rank: u8,
}

/// The names of code, by address; of one address, the best first.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Of functions.
    pub functions: Vec<Symbol>,
    /// Of places that nobody calls functions: labels of hand-written assembly.
    pub labels: Vec<Symbol>,
}

impl Symbols {
    /// The symbols of a file, and of the file that its debug information was moved to.
    pub fn of<'f, 'd: 'f>(image: &Image<'_>, files: impl IntoIterator<Item = &'f Elf<'d>>) -> Self {
        let mut found = Self::default();
        for file in files {
            for symbol in file.symbols().chain(file.dynamic_symbols()) {
                found.add(image, &symbol);
            }
        }
        for names in [&mut found.functions, &mut found.labels] {
            names.sort_by(|one, other| order(one).cmp(&order(other)));
            names.dedup();
        }
        found
    }

    fn add<'d>(&mut self, image: &Image<'_>, symbol: &impl ObjectSymbol<'d>) {
        let at = symbol.address();
        let name = symbol.name().unwrap_or_default();
        if symbol.is_undefined() || name.is_empty() || !image.is_code(at) {
            return;
        }
        let list = match symbol.kind() {
            SymbolKind::Text => &mut self.functions,
            SymbolKind::Unknown | SymbolKind::Label => &mut self.labels,
            _ => return,
        };
        // A version is no part of the name: `memcpy@@GLIBC_2.14`.
        let bare = name.split('@').next().filter(|bare| !bare.is_empty());
        list.push(Symbol {
            at,
            size: symbol.size(),
            name: bare.unwrap_or(name).to_owned(),
            rank: match (symbol.is_weak(), symbol.is_local()) {
                (_, true) => 2,
                (true, _) => 1,
                _ => 0,
            },
        });
    }

    /// The functions at an address, best name first.
    pub fn functions_at(&self, at: u64) -> &[Symbol] {
        at_address(&self.functions, at)
    }

    /// The best name of an address.
    pub fn name(&self, at: u64) -> Option<&str> {
        let best = self.functions_at(at).first();
        let best = best.or_else(|| at_address(&self.labels, at).first());
        best.map(|symbol| symbol.name.as_str())
    }
}

fn at_address(sorted: &[Symbol], at: u64) -> &[Symbol] {
    let first = sorted.partition_point(|symbol| symbol.at < at);
    let end = sorted.partition_point(|symbol| symbol.at <= at);
    sorted.get(first..end).unwrap_or_default()
}

fn order(symbol: &Symbol) -> (u64, u8, std::cmp::Reverse<u64>, usize, &str) {
    let size = std::cmp::Reverse(symbol.size);
    (
        symbol.at,
        symbol.rank,
        size,
        symbol.name.len(),
        &symbol.name,
    )
}
