//! A Go program without symbols has the functions that it had with them.

mod workshop;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use headcount_binary::{Binary, Outline};
use headcount_model::{Function, LinkAddr};
use workshop::Workshop;

/// What a program's symbols call its functions, and where each ends; by address.
type Symbols = BTreeMap<u64, (Vec<String>, u64)>;

/// As nm sees it: all that have a size.
fn symbols(workshop: &Workshop, program: &str) -> Symbols {
    let text = workshop.run(&format!("nm -S --defined-only {program}"));
    let mut found = Symbols::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        if let [at, size, "T" | "t", name] = fields[..] {
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            let symbol = found.entry(number(at)).or_default();
            symbol.0.push(in_table(name));
            symbol.1 = number(at) + number(size);
        }
    }
    found
}

fn address(workshop: &Workshop, program: &str, symbol: &str) -> u64 {
    let text = workshop.run(&format!("nm {program} | grep ' runtime[.]{symbol}$'"));
    u64::from_str_radix(text.split(' ').next().unwrap(), 16).unwrap()
}

/// The name that the table has where a symbol has this one: it says neither how arguments are
/// passed nor which types a function was made for.
fn in_table(symbol: &str) -> String {
    let name = symbol.strip_suffix(".abi0").unwrap_or(symbol);
    match (name.find('['), name.rfind(']')) {
        (Some(open), Some(close)) => format!("{}[...{}", &name[..open], &name[close..]),
        _ => name.to_owned(),
    }
}

fn end(function: &Function) -> u64 {
    let spans = function.blocks.iter().flat_map(|block| &block.code);
    let ends = spans.map(|span| span.address.0 + span.bytes.len() as u64);
    ends.max().unwrap()
}

fn by_address(binary: &Binary) -> BTreeMap<u64, &Function> {
    let functions = binary.module.functions.iter();
    functions.map(|it| (it.address.0, it)).collect()
}

/// Where the blocks of a function are, and how control gets from one to another.
fn shape(function: &Function) -> impl PartialEq {
    let blocks = function.blocks.iter();
    let blocks: Vec<_> = blocks.map(|it| (it.address, it.instructions)).collect();
    (blocks, function.edges.clone())
}

fn parts(workshop: &Workshop, program: &str) -> BTreeMap<u64, Range<u64>> {
    let outline = Outline::read(Arc::new(workshop.bytes(program)), &mut |_| None).unwrap();
    let starts = outline.starts().iter();
    let part = |start: &u64| (*start, outline.part_at(LinkAddr(*start)).unwrap());
    starts.map(part).collect()
}

/// A program without symbols has the functions that these symbols tell of, and they have the blocks
/// and edges that they have in the program with symbols.
fn knows(stripped: &Binary, symbols: &Symbols, whole: &Binary) {
    let (before, after) = (by_address(whole), by_address(stripped));
    for (start, (names, stop)) in symbols {
        let function = after.get(start).unwrap_or_else(|| panic!("no {names:?}"));
        assert!(
            names.contains(&function.name),
            "{}: {names:?}",
            function.name
        );
        assert_eq!(end(function), *stop, "{names:?}");
        assert!(shape(function) == shape(before[start]), "{names:?}");
    }
}

const GENERIC: &str = "\
package main

import \"fmt\"

type number interface{ ~int | ~float64 }

//go:noinline
func most[T number](all []T) T {
	found := all[0]
	for _, one := range all {
		if one > found {
			found = one
		}
	}
	return found
}

func main() {
	fmt.Println(most([]int{1, 3, 2}), most([]float64{1, 3, 2}))
}
";

#[test]
fn go_programs_have_the_functions_that_they_had_before_they_were_stripped() {
    let workshop = Workshop::new();
    if workshop.run("command -v go || true").is_empty() {
        eprintln!("skipped: no go here");
        return;
    }
    workshop.write("most.go", GENERIC);
    let ways = [
        "-buildmode=exe -ldflags='",
        "-buildmode=pie -ldflags='",
        // Linked by GNU ld, which gives the table no section of its own.
        "-buildmode=pie -ldflags='-linkmode=external ",
    ];
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go.cache");
    let build = format!(
        "GOCACHE={} GO111MODULE=off GOTOOLCHAIN=local go build",
        cache.display()
    );
    for way in ways {
        workshop.run(&format!("{build} -o whole {way}' most.go"));
        workshop.run(&format!("{build} -o stripped {way}-s -w' most.go"));
        let sections = workshop.run("readelf -SW stripped");
        assert!(!sections.contains(" .symtab"), "{sections}");

        // Around Go's code there may be C, which is known by other tables or not at all.
        let mut symbols = symbols(&workshop, "whole");
        let [from, to] = ["text", "etext"].map(|it| address(&workshop, "whole", it));
        symbols.retain(|start, _| (from..to).contains(start));
        assert!(symbols.len() > 1000, "{}", symbols.len());
        let generic = "main.most[...]".to_owned();
        let made = symbols.values().filter(|it| it.0.contains(&generic));
        assert_eq!(made.count(), 2);

        let stripped = workshop.read("stripped");
        knows(&stripped, &symbols, &workshop.read("whole"));
        let (before, after) = (parts(&workshop, "whole"), parts(&workshop, "stripped"));
        for start in symbols.keys() {
            assert_eq!(after[start], before[start], "{way}: {:?}", symbols[start]);
        }
    }
}

#[test]
fn tables_of_all_editions_are_read() {
    let workshop = Workshop::new();
    workshop.write("go_table.s", include_str!("programs/go_table.s"));
    let editions = [
        "EDITION=0xfb",
        "EDITION=0xfa",
        "EDITION=0xf0",
        "EDITION=0xf1",
        "EDITION=0xf1 --defsym NO_TEXT=1",
        "EDITION=0xfa --defsym MERGED=1",
        "EDITION=0xf1 --defsym MERGED=1",
    ];
    for edition in editions {
        workshop.run(&format!("as go_table.s --defsym {edition} -o table.o"));
        // `-z pack-relative-relocs` would do as well.
        for flags in ["", "-pie --no-dynamic-linker"] {
            workshop.run(&format!(
                "ld {flags} -o whole table.o && strip -o stripped whole"
            ));
            let stripped = workshop.read("stripped");
            let mut symbols = symbols(&workshop, "whole");
            assert_eq!(symbols.len(), 6);
            symbols.retain(|_, (names, _)| names != &["between"]);
            knows(&stripped, &symbols, &workshop.read("whole"));
        }
    }
}
