//! What do the symbol tables call this address? (Where they are silent, Go's own table may speak.)

use std::ops::Range;

use headcount_model::LinkAddr;
use object::{Object, ObjectSymbol, SymbolKind};

use crate::go_table::{GoFunction, GoTable};
use crate::image::Image;
use crate::layout::Elf;
use crate::ownership::is_cold;

/// A name for an address of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub at: u64,
    pub size: u64,
    pub name: String,
    /// 0 for global, 1 for weak, 2 for local ones.
    pub rank: u8,
    /// May code of other files name it?
    pub is_exported: bool,
}

impl Symbol {
    /// What others call it by comes first, and of that what was not made for the library's own use:
    /// `malloc` before `__libc_malloc`, and both before `__GI___libc_malloc`.
    pub fn use_of_others(&self) -> (bool, usize) {
        use_of_others(self.is_exported, &self.name)
    }
}

fn use_of_others(is_exported: bool, name: &str) -> (bool, usize) {
    let bare = name.trim_start_matches('_');
    // Mangled names begin with one.
    let is_mangled = name.starts_with("_Z") || name.starts_with("_R");
    match is_exported && !is_mangled {
        true => (false, name.len() - bare.len()),
        false => (!is_exported, 0),
    }
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
        each_of_code(image, files, &mut |kind, symbol| match kind {
            Kind::Function => found.functions.push(symbol.to_owned()),
            Kind::Label => found.labels.push(symbol.to_owned()),
            Kind::Object => {}
        });
        for names in [&mut found.functions, &mut found.labels] {
            names.sort_by(|one, other| order(one).cmp(&order(other)));
            names.dedup();
        }
        found
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

/// Where symbols say that code is: all that is needed of them to find parts.
#[derive(Debug, Default)]
pub struct Marks {
    /// Functions, with their sizes.
    pub functions: Vec<(u64, u64)>,
    /// Other places.
    pub labels: Vec<u64>,
    /// The functions that are no cold parts of others; by address.
    pub whole: Vec<u64>,
    /// Other places that another file may name; by address.
    pub shared: Vec<u64>,
    /// Data among code; by address.
    pub objects: Vec<Range<u64>>,
}

impl Marks {
    /// The marks of a file, and of the file that its debug information was moved to.
    pub fn of<'f, 'd: 'f>(image: &Image<'_>, files: impl IntoIterator<Item = &'f Elf<'d>>) -> Self {
        let mut found = Self::default();
        each_of_code(image, files, &mut |kind, symbol| match kind {
            Kind::Function => {
                found.functions.push((symbol.at, symbol.size));
                found
                    .whole
                    .extend((!is_cold(symbol.name)).then_some(symbol.at));
            }
            Kind::Label => {
                found.labels.push(symbol.at);
                found.shared.extend((symbol.rank < 2).then_some(symbol.at));
            }
            Kind::Object => {
                let end = symbol.at.saturating_add(symbol.size.max(1));
                found.objects.push(symbol.at..end);
            }
        });
        found.objects.sort_unstable_by_key(|it| it.start);
        found.whole.sort_unstable();
        found.whole.dedup();
        found.shared.sort_unstable();
        found.shared.dedup();
        found
    }
}

/// The function that an address is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Where it begins.
    pub at: u64,
    pub name: String,
}

/// The functions that addresses are in, which must be sorted. The innermost counts, and the best name.
pub fn names_at<'f, 'd: 'f>(
    image: &Image<'_>,
    files: impl IntoIterator<Item = &'f Elf<'d>>,
    addresses: &[LinkAddr],
) -> Vec<Option<Named>> {
    let mut best: Vec<Option<Symbol>> = vec![None; addresses.len()];
    each_of_code(image, files, &mut |kind, symbol| {
        if kind == Kind::Object {
            return;
        }
        let first = addresses.partition_point(|it| it.0 < symbol.at);
        // One without a size (of hand-written assembly) reaches to the next, or to the section's end.
        let end = match symbol.size {
            0 => image.piece(symbol.at).map_or(addresses.len(), |piece| {
                addresses.partition_point(|it| it.0 < piece.range().end)
            }),
            size => addresses.partition_point(|it| it.0 - symbol.at.min(it.0) < size),
        };
        for known in best.iter_mut().take(end).skip(first) {
            let is_better = known.as_ref().is_none_or(|known| {
                let order = |it: &Raw<'_>| {
                    let of_others = use_of_others(it.is_exported, it.name);
                    (std::cmp::Reverse(it.at), of_others, it.rank, it.name.len())
                };
                let known = known.borrow();
                (order(symbol), symbol.name) < (order(&known), known.name)
            });
            if is_better {
                *known = Some(symbol.to_owned());
            }
        }
    });
    let named = |it: Symbol| Named {
        at: it.at,
        name: it.name,
    };
    best.into_iter().map(|it| it.map(named)).collect()
}

/// Does the runtime that this file was made for read its code, and change it? Mono does that with
/// what it has compiled ahead of time: it looks at calls and at the numbers behind its stubs. Such
/// files have a symbol that tells.
pub fn is_read_by_its_runtime(elf: &Elf<'_>) -> bool {
    let mut names = elf.dynamic_symbols().filter_map(|it| it.name().ok());
    names.any(|name| {
        let of_a_module = name.strip_prefix("mono_aot_module_");
        name == "mono_aot_file_info" || of_a_module.is_some_and(|it| it.ends_with("_info"))
    })
}

/// What a symbol says is at an address of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Function,
    /// Code, at least.
    Label,
    /// Data.
    Object,
}

impl Kind {
    fn of(kind: SymbolKind, name: &str) -> Option<Self> {
        match kind {
            SymbolKind::Text => Some(Self::Function),
            SymbolKind::Unknown | SymbolKind::Label => Some(Self::Label),
            // GHC has tables in front of its code, so that both together are an object to it.
            SymbolKind::Data if name.ends_with("_info") => Some(Self::Function),
            SymbolKind::Data => Some(Self::Object),
            _ => None,
        }
    }
}

/// A symbol as it stands in the file.
struct Raw<'a> {
    at: u64,
    size: u64,
    name: &'a str,
    rank: u8,
    is_exported: bool,
}

impl Symbol {
    fn borrow(&self) -> Raw<'_> {
        Raw {
            at: self.at,
            size: self.size,
            name: &self.name,
            rank: self.rank,
            is_exported: self.is_exported,
        }
    }
}

impl Raw<'_> {
    fn to_owned(&self) -> Symbol {
        // A version is no part of the name: `memcpy@@GLIBC_2.14`.
        let bare = self.name.split('@').next().filter(|bare| !bare.is_empty());
        Symbol {
            at: self.at,
            size: self.size,
            name: bare.unwrap_or(self.name).to_owned(),
            rank: self.rank,
            is_exported: self.is_exported,
        }
    }
}

/// Shows every symbol whose address is one of code.
fn each_of_code<'f, 'd: 'f>(
    image: &Image<'_>,
    files: impl IntoIterator<Item = &'f Elf<'d>>,
    show: &mut dyn FnMut(Kind, &Raw<'_>),
) {
    let go_table = GoTable::of(image);
    let mut known = Vec::new();
    for file in files {
        let all = file.symbols().map(|it| (it, false));
        let exported = file.dynamic_symbols().map(|it| (it, true));
        for (symbol, is_dynamic) in all.chain(exported) {
            let at = symbol.address();
            if symbol.is_undefined() || !image.is_code(at) {
                continue;
            }
            let name = symbol.name().unwrap_or_default();
            let Some(kind) = Kind::of(symbol.kind(), name).filter(|_| !name.is_empty()) else {
                continue;
            };
            let rank = match (symbol.is_weak(), symbol.is_local()) {
                (_, true) => 2,
                (true, _) => 1,
                _ => 0,
            };
            let size = symbol.size();
            let raw = Raw {
                at,
                size,
                name,
                rank,
                is_exported: is_dynamic && rank < 2,
            };
            show(kind, &raw);
            if kind == Kind::Function && go_table.is_some() {
                known.push(at);
            }
        }
    }
    if let Some(table) = go_table {
        known.sort_unstable();
        table.each_besides(&known, &mut |GoFunction { at, size, name }| {
            let rank = 2;
            let raw = Raw {
                at,
                size,
                name,
                rank,
                is_exported: false,
            };
            show(Kind::Function, &raw);
        });
    }
}

fn at_address(sorted: &[Symbol], at: u64) -> &[Symbol] {
    let first = sorted.partition_point(|symbol| symbol.at < at);
    let end = sorted.partition_point(|symbol| symbol.at <= at);
    sorted.get(first..end).unwrap_or_default()
}

type Order<'s> = (
    u64,
    (bool, usize),
    u8,
    std::cmp::Reverse<u64>,
    usize,
    &'s str,
);

fn order(symbol: &Symbol) -> Order<'_> {
    let size = std::cmp::Reverse(symbol.size);
    (
        symbol.at,
        symbol.use_of_others(),
        symbol.rank,
        size,
        symbol.name.len(),
        &symbol.name,
    )
}
