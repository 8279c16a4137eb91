//! Which function does an address of this executable belong to?
//!
//! `nm` is asked, and not callgrind, which does not see functions without a
//! size (those written in assembly) and cannot say that two names are one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use headcount_ground::child;

use crate::callgrind::ByAddress;

/// Executed instructions by function.
pub type ByFunction = BTreeMap<String, u64>;

#[derive(Debug, Default)]
pub struct Symbols {
    /// One name for each address: the first of all its names.
    starts: BTreeMap<u64, String>,
    /// Every other name, and the name it stands for.
    aliases: BTreeMap<String, String>,
}

impl Symbols {
    pub fn of(executable: &Path, folder: &Path) -> Result<Symbols> {
        Ok(Symbols::from_nm(&nm(executable, folder)?))
    }

    fn from_nm(listing: &str) -> Symbols {
        let mut names: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for (address, name) in code_symbols(listing) {
            names.entry(address).or_default().insert(name.to_owned());
        }
        let mut symbols = Symbols::default();
        for (address, names) in names {
            let mut names = names.into_iter();
            let Some(first) = names.next() else { continue };
            symbols
                .aliases
                .extend(names.map(|other| (other, first.clone())));
            symbols.starts.insert(address, first);
        }
        symbols
    }

    /// The one name under which a function's counts are added up: parts that the
    /// compiler moved away (`f.cold`, `f.cold.3`) are the function's own.
    pub fn canonical<'a>(&'a self, name: &'a str) -> &'a str {
        let whole = without_cold(name);
        self.aliases.get(whole).map_or(whole, String::as_str)
    }

    pub fn by_function(&self, counts: &ByAddress) -> ByFunction {
        let mut sums = ByFunction::new();
        for (address, count) in counts {
            let start = self.starts.range(..=address).next_back();
            let name = start.map_or("(no symbol)", |(_, name)| self.canonical(name));
            *sums.entry(name.to_owned()).or_default() += count;
        }
        sums
    }
}

fn without_cold(name: &str) -> &str {
    let whole = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let whole = whole.strip_suffix('.').unwrap_or(name);
    whole
        .strip_suffix(".cold")
        .or_else(|| name.strip_suffix(".cold"))
        .unwrap_or(name)
}

/// The functions that the toolchain adds to every executable by itself: start
/// files, and the archives it links in unasked. Nobody compiles those for us.
pub fn of_toolchain(compiler: &str, folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let files = [
        "crt1.o",
        "Scrt1.o",
        "crti.o",
        "crtn.o",
        "crtbegin.o",
        "crtbeginS.o",
        "crtend.o",
        "crtfastmath.o",
        "crtprec32.o",
        "crtprec64.o",
        "crtprec80.o",
        "libgcc.a",
        "libc_nonshared.a",
    ];
    for file in files {
        let mut ask = Command::new(compiler);
        ask.arg(format!("-print-file-name={file}"));
        let path = child::run_or_bail(&mut ask, folder, Duration::from_secs(20))?;
        let path = String::from_utf8(path).context("a path that is not text")?;
        // A file it does not have is answered with its bare name.
        if path.starts_with('/') {
            let listing = nm(Path::new(path.trim()), folder)?;
            names.extend(code_symbols(&listing).map(|(_, name)| name.to_owned()));
        }
    }
    Ok(names)
}

fn nm(file: &Path, folder: &Path) -> Result<String> {
    let mut nm = Command::new("nm");
    nm.arg("--defined-only").arg(file);
    let listing = child::run_or_bail(&mut nm, folder, Duration::from_secs(60))?;
    Ok(String::from_utf8_lossy(&listing).into_owned())
}

/// Lines `ADDRESS TYPE NAME` whose type is code: global, local, weak, indirect.
fn code_symbols(listing: &str) -> impl Iterator<Item = (u64, &str)> {
    listing.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = words.next()?;
        let name = words.next()?;
        matches!(kind, "T" | "t" | "W" | "w" | "i").then_some((address, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_parts_belong_to_their_function() {
        assert_eq!(without_cold("main.cold"), "main");
        assert_eq!(without_cold("main.cold.12"), "main");
        assert_eq!(without_cold("f.part.0.cold"), "f.part.0");
        assert_eq!(without_cold("f.part.0"), "f.part.0");
        assert_eq!(without_cold("f2"), "f2");
    }

    #[test]
    fn an_address_belongs_to_the_symbol_before_it_and_aliases_are_one() {
        let nm =
            "1000 t main.cold\n1010 T main\n1020 T b\n1020 W a\n2000 D data\n1030 t s\n1040 t s\n";
        let symbols = Symbols::from_nm(nm);
        let counts = ByAddress::from([
            (0x1004, 1),
            (0x1011, 2),
            (0x1020, 4),
            (0x1031, 8),
            (0x1047, 16),
        ]);
        let expected = [("a", 4), ("main", 3), ("s", 24)].map(|(name, sum)| (name.to_owned(), sum));
        assert_eq!(symbols.by_function(&counts), ByFunction::from(expected));
        assert_eq!(symbols.canonical("b"), "a");
    }
}
