//! Lines are those that other readers of the same tables see.

mod workshop;

use std::collections::{BTreeMap, BTreeSet};

use headcount_binary::{Binary, Wanted, inline_chains};
use headcount_model::LinkAddr;
use workshop::{Workshop, function, lines_of};

const PROGRAM: &str = r#"#include <stdio.h>
static inline int square(int n) {
    int product = n * n;
    if (product > 50)
        product -= 7;
    return product;
}
__attribute__((noinline)) int both(int a, int b) {
    int one = square(a);
    int two = square(b + 1);
    return one ^ two;
}
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < argc * 3; i++)
        sum += both(i, argc);
    printf("%d\n", sum);
    return sum > 3;
}
"#;

/// The line of each address where a row begins, from objdump's reading of the table.
fn decoded(workshop: &Workshop, name: &str) -> BTreeMap<u64, u32> {
    let text = workshop.run(&format!("objdump --dwarf=decodedline {name}"));
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("prog.c")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, number, at, ..] = words[..] else {
            continue;
        };
        if let (Ok(number), Some(at)) = (number.parse(), at.strip_prefix("0x")) {
            // Of several rows at one address, the last holds.
            rows.insert(u64::from_str_radix(at, 16).unwrap(), number);
        }
    }
    rows
}

fn check(workshop: &Workshop, way: &str, binary: &Binary, rows: &BTreeMap<u64, u32>) {
    let refusals = &binary.module.refusals;
    assert!(refusals.is_empty(), "{way}: {refusals:?}");
    let lines = lines_of(binary);
    assert!(rows.len() > 10, "{way}: {rows:?}");
    for (at, line) in rows {
        let (file, mine) = lines
            .get(at)
            .unwrap_or_else(|| panic!("{way}: no line at {at:#x}"));
        assert_eq!(mine, line, "{way}: {at:#x}");
        let path = workshop.path("prog.c");
        assert_eq!(
            file,
            path.canonicalize().unwrap().to_str().unwrap(),
            "{way}"
        );
    }
    let (_, line) = function(binary, "both").source.unwrap();
    assert_eq!(line, 8, "{way}");
    let (_, line) = function(binary, "main").source.unwrap();
    assert_eq!(line, 13, "{way}");
    assert!(
        function(binary, "_start")
            .blocks
            .iter()
            .all(|it| it.lines.is_empty())
    );
}

#[test]
fn lines_are_those_that_objdump_sees() {
    let workshop = Workshop::new();
    workshop.write("prog.c", PROGRAM);
    for way in [
        "gcc -O2 -g",
        "gcc -O0 -g",
        "gcc -O2 -gdwarf-4",
        "gcc -O1 -gdwarf-3",
        "gcc -O2 -g -gz",
        "clang -O2 -g",
        "clang -O2 -gdwarf-4",
        "gcc -O2 -g -no-pie ./prog.c #",
        "clang -O1 -g -no-pie",
        "gcc -g -O2 -flto",
    ] {
        workshop.run(&format!("{} -o prog prog.c", way.replace('#', "-o prog #")));
        check(
            &workshop,
            way,
            &workshop.read("prog"),
            &decoded(&workshop, "prog"),
        );
    }
}

#[test]
fn debug_information_is_found_where_it_was_moved() {
    let workshop = Workshop::new();
    workshop.write("prog.c", PROGRAM);
    for id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        workshop.run(&format!("gcc -O2 -g {id} -o prog prog.c"));
        let rows = decoded(&workshop, "prog");
        workshop.run("objcopy --only-keep-debug prog prog.debug && strip prog");
        workshop.run("objcopy --add-gnu-debuglink=prog.debug prog");
        let mut asked = Vec::new();
        let binary = workshop.read_with("prog", &mut |wanted| match wanted {
            Wanted::BuildId(_) => {
                asked.push("id");
                Some(workshop.bytes("prog.debug"))
            }
            Wanted::DebugLink {
                name: "prog.debug", ..
            } => {
                asked.push("link");
                Some(workshop.bytes("prog.debug"))
            }
            _ => None,
        });
        assert_eq!(asked, [if id.contains("none") { "link" } else { "id" }]);
        assert_eq!(
            binary.module.build_id.starts_with("elf-file-"),
            id.contains("none")
        );
        check(&workshop, id, &binary, &rows);
        // Another program's debug information is worse than none.
        let other = workshop.read_with("prog", &mut |_| Some(std::fs::read("/bin/true").unwrap()));
        assert!(lines_of(&other).is_empty());
    }
}

#[test]
fn split_units_are_read_from_their_files() {
    let workshop = Workshop::new();
    workshop.write("prog.c", PROGRAM);
    for way in [
        "gcc -O2 -g -gsplit-dwarf",
        "gcc -O2 -gdwarf-4 -gsplit-dwarf",
        "clang -O2 -g -gsplit-dwarf",
    ] {
        workshop.run(&format!("{way} -c prog.c && {way} -o prog prog.o"));
        let mut names = BTreeSet::new();
        let binary = workshop.read_with("prog", &mut |wanted| match wanted {
            Wanted::SplitUnit { name, comp_dir, .. } => {
                names.insert(name.to_owned());
                std::fs::read(std::path::Path::new(comp_dir).join(name)).ok()
            }
            _ => None,
        });
        assert_eq!(names.len(), 1, "{way}");
        check(&workshop, way, &binary, &decoded(&workshop, "prog"));
        assert!(copies(&binary).len() >= 2, "{way}");
    }
}

#[test]
fn split_units_are_read_from_one_package() {
    let workshop = Workshop::new();
    workshop.write("prog.c", PROGRAM);
    for (way, pack) in [
        ("gcc -O2 -gdwarf-4 -gsplit-dwarf", "dwp -e prog -o prog.dwp"),
        (
            "clang -O2 -gdwarf-5 -gsplit-dwarf",
            "llvm-dwp prog.dwo -o prog.dwp",
        ),
    ] {
        workshop.run(&format!("{way} -c prog.c && {way} -o prog prog.o"));
        workshop.run(pack);
        let binary = workshop.read_with("prog", &mut |wanted| match wanted {
            Wanted::Package => Some(workshop.bytes("prog.dwp")),
            _ => None,
        });
        check(&workshop, way, &binary, &decoded(&workshop, "prog"));
        assert!(copies(&binary).len() >= 2, "{way}");
    }
}

/// Which inlined copies have line 3.
fn copies(binary: &Binary) -> BTreeSet<u32> {
    let both = function(binary, "both");
    let runs = both.blocks.iter().flat_map(|block| &block.lines);
    runs.filter(|run| run.line == 3)
        .map(|run| run.inline_copy)
        .collect()
}

#[test]
fn inlined_copies_are_told_apart() {
    let workshop = Workshop::new();
    workshop.write("prog.c", PROGRAM);
    for way in ["gcc -O2 -g", "clang -O2 -g", "clang -O2 -gdwarf-4"] {
        workshop.run(&format!("{way} -o prog prog.c"));
        let binary = workshop.read("prog");
        assert_eq!(copies(&binary), BTreeSet::from([1, 2]), "{way}");
        let own = function(&binary, "both")
            .blocks
            .iter()
            .flat_map(|block| &block.lines);
        assert!(
            own.filter(|run| run.line == 8)
                .all(|run| run.inline_copy == 0),
            "{way}"
        );
    }
}

#[test]
fn a_broken_line_table_costs_only_the_lines() {
    let workshop = Workshop::new();
    workshop.write("prog.c", PROGRAM);
    workshop.run("gcc -O2 -g -o prog prog.c && objcopy -O binary --only-section=.debug_line --set-section-flags .debug_line=alloc prog table");
    let mut table = workshop.bytes("table");
    let end = table.len();
    table[end / 2..].fill(0x00);
    std::fs::write(workshop.path("table"), table).unwrap();
    workshop.run("objcopy --update-section .debug_line=table prog broken");
    let whole = workshop.read("prog");
    let broken = workshop.read("broken");
    assert_eq!(whole.module.functions.len(), broken.module.functions.len());
    let reason = &broken.module.refusals.first().expect("a refusal").reason;
    assert!(
        reason.contains("its line table is broken at 0x0"),
        "{reason}"
    );
}

/// Functions and lines of each address, the outermost first, as addr2line reads them.
fn by_addr2line(workshop: &Workshop, addresses: &[LinkAddr]) -> Vec<Vec<(String, u32)>> {
    let words: Vec<String> = addresses.iter().map(LinkAddr::to_string).collect();
    let text = workshop.run(&format!("addr2line -a -f -i -e prog {}", words.join(" ")));
    let mut all: Vec<Vec<(String, u32)>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap();
        let number = place.rsplit(':').next().unwrap();
        let number = number.split(' ').next().unwrap().parse().unwrap_or(0);
        all.last_mut().unwrap().insert(0, (line.to_owned(), number));
    }
    all
}

#[test]
fn chains_of_inlined_functions_are_those_of_addr2line() {
    for compiler in ["gcc", "clang"] {
        let workshop = Workshop::new();
        workshop.write("prog.c", PROGRAM);
        workshop.run(&format!("{compiler} -O2 -g -o prog prog.c"));
        let code = workshop.run("objdump -d --no-show-raw-insn prog");
        let own = code
            .split("\n\n")
            .filter(|it| it.contains("<both>:") || it.contains("<main>:"));
        let address = |line: &str| u64::from_str_radix(line.trim().split(':').next()?, 16).ok();
        let mut addresses: Vec<LinkAddr> = own
            .flat_map(str::lines)
            // What lies between functions belongs to none.
            .filter(|line| !line.contains("nop") && !line.contains("xchg   %ax,%ax"))
            .filter_map(address)
            .map(LinkAddr)
            .collect();
        addresses.sort_unstable();
        let found = inline_chains(&workshop.bytes("prog"), &addresses).unwrap();
        let expected = by_addr2line(&workshop, &addresses);
        let mut inlined = 0;
        for ((at, found), expected) in addresses.iter().zip(found).zip(expected) {
            inlined += usize::from(found.len() > 1);
            let shown: Vec<(String, u32)> = found
                .iter()
                .map(|it| (it.function.clone(), it.line))
                .collect();
            // An instruction of no line has no chain.
            let known = expected.last().is_some_and(|it| it.1 > 0);
            assert_eq!(
                shown,
                if known { expected } else { Vec::new() },
                "{compiler} {at}"
            );
            let starts = [("square", 2), ("both", 8), ("main", 13)];
            for frame in found {
                let start = starts.iter().find(|it| it.0 == frame.function);
                assert_eq!(start.map(|it| it.1), Some(frame.start), "{compiler} {at}");
            }
        }
        assert!(inlined > 5, "{compiler}");
    }
}

/// gcc may end the table of a function that does not return with a row for nothing.
#[test]
fn a_row_where_a_table_ends_does_not_hold_for_what_follows() {
    let workshop = Workshop::new();
    // With a view, the assembler writes the row even though no instruction follows.
    let asm = r#"asm volatile("ud2\n.loc 1 8 0 view .Lend");"#;
    let ends = format!("void ends(void) {{ {asm} __builtin_unreachable(); }}");
    workshop.write("prog.c", &ends);
    workshop.write("bare.c", "int bare(int a) { return a * 3; }");
    workshop.run("gcc -O2 -g -falign-functions=1 -c prog.c");
    workshop.run("gcc -O2 -falign-functions=1 -c bare.c");
    workshop.run("gcc -shared -nostdlib -o both.so prog.o bare.o");
    let binary = workshop.read("both.so");
    let bare = function(&binary, "bare");
    assert!(decoded(&workshop, "both.so").contains_key(&bare.address.0));
    assert!(bare.blocks.iter().all(|it| it.lines.is_empty()), "{bare:?}");
}
