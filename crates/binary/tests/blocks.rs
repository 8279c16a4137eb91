//! Functions and blocks are where objdump and nm say that they are.

mod workshop;

use std::collections::{BTreeMap, BTreeSet};

use headcount_binary::Binary;
use headcount_model::{EdgeKind, FunctionEdge};
use workshop::{Seen, Workshop, function, objdump, reached_by};

const SORT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int numbers[100];
static int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}
int weigh(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (i % 3 == 0) sum += i;
        else if (i % 5 == 0) sum -= i;
        else sum ^= i;
    }
    return sum;
}
int main(int argc, char **argv) {
    for (int i = 0; i < 100; i++) numbers[i] = rand() % 1000;
    qsort(numbers, 100, sizeof *numbers, compare);
    if (argc > 2) { puts("many"); exit(3); }
    printf("%d %d\n", numbers[0], weigh(argc + 20));
    return 0;
}
"#;

const SWITCH: &str = include_str!("programs/switch.c");

const GOTO: &str = include_str!("programs/goto.c");

fn is_end(text: &str) -> bool {
    let name = text
        .split_whitespace()
        .find(|word| !matches!(*word, "bnd" | "notrack" | "repz"));
    let name = name.unwrap_or_default();
    ["j", "call", "ret", "hlt", "ud2", "loop"]
        .iter()
        .any(|it| name.starts_with(it))
}

/// Every instruction is in one block, and blocks begin and end where they must.
fn agrees_with_objdump(workshop: &Workshop, name: &str) -> Binary {
    let binary = workshop.read(name);
    assert_eq!(binary.module.refusals, [], "{name}");
    let seen = objdump(workshop, name);
    let mut starts = BTreeSet::new();
    let mut inside = BTreeMap::new();
    for function in &binary.module.functions {
        assert!(function.blocks.is_sorted_by_key(|block| block.address));
        assert!(
            function
                .blocks
                .iter()
                .any(|block| block.address == function.address)
        );
        for block in &function.blocks {
            assert!(
                starts.insert(block.address.0),
                "{name}: {} twice",
                block.address
            );
            let mut at = block.address.0;
            for length in headcount_x86::count(&block.code[0]).unwrap() {
                assert!(inside.insert(at, block.address.0).is_none());
                at += u64::from(length);
            }
        }
    }
    assert!(binary.module.functions.is_sorted_by_key(|it| it.address));
    for pair in seen.windows(2) {
        let [one, next]: &[Seen; 2] = pair.try_into().unwrap();
        if !inside.contains_key(&one.at) {
            let filler = ["nop", "int3", "xchg", "data16", "cs nop"];
            let filler = filler.iter().any(|it| one.text.starts_with(it));
            assert!(filler, "{name}: {:#x} {} is in no block", one.at, one.text);
            continue;
        }
        if let Some(to) = one.target.filter(|to| inside.contains_key(to)) {
            assert!(
                starts.contains(&to),
                "{name}: {:#x} leads to {to:#x}",
                one.at
            );
        }
        if is_end(&one.text) && inside.contains_key(&next.at) {
            assert!(
                starts.contains(&next.at),
                "{name}: {:#x} ends a block",
                one.at
            );
        } else if let (Some(block), Some(behind)) = (inside.get(&one.at), inside.get(&next.at)) {
            // Inside of a block nothing but its first instruction begins one.
            assert_eq!(
                block == behind,
                !starts.contains(&next.at),
                "{:#x}",
                next.at
            );
        }
    }
    binary
}

#[test]
fn blocks_are_where_objdump_sees_jumps_lead() {
    let workshop = Workshop::new();
    workshop.write("sort.c", SORT);
    workshop.write("switch.c", SWITCH);
    workshop.write("goto.c", GOTO);
    let ways = [
        "gcc -O0 -o",
        "gcc -O2 -o",
        "gcc -O2 -no-pie -fno-pie -o",
        "gcc -O2 -fcf-protection -o",
        "gcc -Os -shared -fPIC -o",
        "gcc -O2 -static-pie -o",
        "clang -O0 -o",
        "clang -O2 -o",
        "clang -O2 -no-pie -fno-pic -o",
        "clang -O3 -shared -fPIC -o",
    ];
    for way in ways {
        for source in ["sort", "switch", "goto"] {
            if way.contains("static") {
                continue; // glibc's own code has functions that are refused.
            }
            workshop.run(&format!("{way} {source} {source}.c"));
            agrees_with_objdump(&workshop, source);
            workshop.run(&format!("strip -o {source}.stripped {source}"));
            let bare = workshop.read(&format!("{source}.stripped"));
            let whole = workshop.read(source);
            let starts = |binary: &Binary| -> BTreeSet<u64> {
                let functions = binary.module.functions.iter();
                functions
                    .flat_map(|it| &it.blocks)
                    .map(|it| it.address.0)
                    .collect()
            };
            // Symbols name functions, but all code is found without them.
            let lost: Vec<u64> = starts(&whole).difference(&starts(&bare)).copied().collect();
            let names: Vec<&str> = whole
                .module
                .functions
                .iter()
                .filter(|it| lost.contains(&it.address.0))
                .map(|it| it.name.as_str())
                .collect();
            assert!(
                names.len() <= 4 && lost.len() <= 6,
                "{way} {source}: {names:?} {lost:x?}"
            );
        }
    }
}

#[test]
fn functions_are_where_nm_says() {
    let workshop = Workshop::new();
    workshop.write("sort.c", SORT);
    for way in [
        "gcc -O2",
        "gcc -O2 -static",
        "clang -O1 -no-pie",
        "gcc -shared -fPIC",
    ] {
        workshop.run(&format!("{way} -o sort sort.c"));
        let binary = workshop.read("sort");
        let known: BTreeSet<u64> = binary
            .module
            .functions
            .iter()
            .map(|it| it.address.0)
            .collect();
        let refused: BTreeSet<&str> = binary
            .module
            .refusals
            .iter()
            .map(|it| it.subject.as_str())
            .collect();
        let text = workshop.run("readelf -sW sort");
        let mut checked = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, at, size, kind, _, _, section, name] = words[..] else {
                continue;
            };
            let name = name.split('@').next().unwrap();
            if kind == "FUNC" && section != "UND" && size != "0" && !name.contains(".cold") {
                let at = u64::from_str_radix(at, 16).unwrap();
                let aliases = text.lines().filter(|it| it.contains(words[1])).any(|it| {
                    it.split_whitespace()
                        .last()
                        .is_some_and(|it| refused.contains(it))
                });
                assert!(known.contains(&at) || aliases, "{way}: {name} at {at:#x}");
                checked += 1;
            }
        }
        assert!(checked >= 3, "{way}");
        assert_eq!(function(&binary, "main").name, "main");
        let percent = refused.len() * 100 / known.len();
        assert!(percent < 2, "{way}: {:?}", binary.module.refusals);
    }
}

#[test]
fn stubs_are_named_after_what_they_lead_to() {
    let workshop = Workshop::new();
    workshop.write("sort.c", SORT);
    for way in [
        "gcc -O1",
        "gcc -O1 -fcf-protection -Wl,-z,ibtplt",
        "clang -no-pie",
        "gcc -Wl,-z,now",
    ] {
        workshop.run(&format!("{way} -o sort sort.c"));
        let binary = workshop.read("sort");
        for name in ["puts@plt", "qsort@plt", "rand@plt"] {
            let stub = function(&binary, name);
            assert!(
                stub.edges.iter().any(|edge| edge.kind == EdgeKind::Leave),
                "{way}"
            );
        }
    }
}

#[test]
fn a_switch_leads_to_each_of_its_cases() {
    let workshop = Workshop::new();
    workshop.write("switch.c", SWITCH);
    for way in [
        "gcc -O2",
        "gcc -O2 -no-pie -fno-pie",
        "gcc -O0",
        "gcc -O2 -fcf-protection=branch",
        "clang -O1",
        "clang -O2 -no-pie -fno-pic",
        "clang -O0",
    ] {
        workshop.run(&format!("{way} -o switch switch.c"));
        let binary = workshop.read("switch");
        let pick = function(&binary, "pick");
        // The cases, and perhaps the default, whose blocks may be shared.
        let cases = reached_by(pick, EdgeKind::Jump).len();
        assert!((6..=10).contains(&cases), "{way}: {cases} {:?}", pick.edges);
        assert!(reached_by(pick, EdgeKind::Arrival).is_empty(), "{way}");
        let indirect = pick.edges.iter().filter(|edge| edge.kind == EdgeKind::Jump);
        let from: Vec<_> = indirect.map(|edge| edge.from).collect();
        assert!(
            from.iter()
                .any(|it| from.iter().filter(|other| other == &it).count() >= 6),
            "{way}"
        );
    }
}

#[test]
fn labels_whose_address_was_taken_are_reached() {
    let workshop = Workshop::new();
    workshop.write("goto.c", GOTO);
    for way in [
        "gcc -O2",
        "gcc -O0 -no-pie",
        "clang -O2",
        "clang -O1 -no-pie",
        "gcc -O2 -fno-gcse",
    ] {
        workshop.run(&format!("{way} -o goto goto.c"));
        let binary = workshop.read("goto");
        let run = function(&binary, "run");
        let mut reached = reached_by(run, EdgeKind::Jump);
        reached.extend(reached_by(run, EdgeKind::Arrival));
        assert!(reached.len() >= 4, "{way}: {:?}", run.edges);
    }
}

#[test]
fn the_cold_part_of_a_function_belongs_to_it() {
    let workshop = Workshop::new();
    workshop.write(
        "cold.c",
        "#include <stdio.h>\n#include <stdlib.h>\n\
         __attribute__((cold, noinline)) void grumble(int n) { printf(\"%d\\n\", n); }\n\
         __attribute__((noinline)) int work(int n) {\n\
         if (__builtin_expect(n > 100, 0)) { grumble(n); grumble(n + 1); n /= 2; }\n\
         return n * 3; }\n\
         int main(int argc, char **argv) { return work(argc); }\n",
    );
    workshop.run("gcc -O2 -freorder-blocks-and-partition -o cold cold.c");
    let symbols = workshop.run("nm cold");
    let cold = symbols.lines().find(|line| line.ends_with("work.cold"));
    let at = cold.expect("gcc splits it").split(' ').next().unwrap();
    let at = u64::from_str_radix(at, 16).unwrap();
    workshop.run("strip -o bare cold");
    for name in ["cold", "bare"] {
        let binary = workshop.read(name);
        let mut owners = binary.module.functions.iter();
        let owner = owners
            .find(|it| it.blocks.iter().any(|block| block.address.0 == at))
            .unwrap();
        assert_ne!(owner.address.0, at, "{name}");
        assert!(
            owner.edges.iter().any(|edge| edge.kind == EdgeKind::Taken),
            "{name}"
        );
        assert!(
            !reached_by(owner, EdgeKind::Arrival).contains(&at),
            "{name}: {:?}",
            owner.edges
        );
    }
}

#[test]
fn exceptions_arrive_at_their_landing_pads() {
    let workshop = Workshop::new();
    workshop.write(
        "throw.cc",
        "#include <stdio.h>\nstruct Loud { ~Loud() { puts(\"gone\"); } };\n\
         __attribute__((noinline)) void risk(int n) { if (n > 1) throw n; }\n\
         __attribute__((noinline)) int careful(int n) {\n  Loud loud;\n\
         try { risk(n); } catch (int caught) {\n    return caught * 2;\n  }\n  return 1;\n}\n\
         int main(int argc, char **argv) { return careful(argc); }\n",
    );
    for way in ["g++ -O0 -g", "g++ -O2 -g", "clang++ -O2 -g -no-pie"] {
        workshop.run(&format!("{way} -o throw throw.cc"));
        let binary = workshop.read("throw");
        let careful = function(&binary, "_Z7carefuli");
        assert!(!reached_by(careful, EdgeKind::Arrival).is_empty(), "{way}");
        let calls = careful
            .edges
            .iter()
            .filter(|edge| edge.kind == EdgeKind::Lost);
        assert!(calls.count() >= 2, "{way}");
        let (file, line) = careful.source.unwrap();
        assert_eq!(line, 4, "{way}");
        assert!(
            binary.module.files[file.index()].ends_with("/throw.cc"),
            "{way}"
        );
    }
}

#[test]
fn setjmp_comes_back_as_an_arrival() {
    let workshop = Workshop::new();
    workshop.write(
        "jump.c",
        "#include <setjmp.h>\njmp_buf there;\n\
         int main(int argc, char **argv) { if (setjmp(there)) return 7; longjmp(there, argc); }\n",
    );
    for way in ["gcc -O1", "gcc -O1 -fno-plt", "gcc -static"] {
        workshop.run(&format!("{way} -o jump jump.c"));
        let binary = workshop.read("jump");
        assert_eq!(
            reached_by(function(&binary, "main"), EdgeKind::Arrival).len(),
            1,
            "{way}"
        );
    }
}

#[test]
fn code_that_cannot_be_followed_is_refused_by_name() {
    let workshop = Workshop::new();
    workshop.write(
        "odd.s",
        ".text\n.globl main\n.type main,@function\nmain: .cfi_startproc\nxor %eax,%eax\nret\n\
         .cfi_endproc\n.size main,.-main\n\
         .type torn,@function\ntorn: je 1f+1\n1: lock incl (%rdi)\nret\n.size torn,.-torn\n\
         .type junk,@function\njunk: nop\n.byte 0x06,0x06\nret\n.size junk,.-junk\n\
         .type elide,@function\nelide: xbegin 1f\n1: ret\n.size elide,.-elide\n\
         .type guess,@function\nguess: shl $4,%rdi\nlea 1f(%rip),%rax\nadd %rdi,%rax\njmp *%rax\n\
         1: nop\nret\n.size guess,.-guess\n\
         .section .note.GNU-stack,\"\"\n",
    );
    workshop.run("gcc -o odd odd.s");
    let binary = workshop.read("odd");
    let refused: BTreeSet<&str> = binary
        .module
        .refusals
        .iter()
        .map(|it| it.subject.as_str())
        .collect();
    assert_eq!(refused, BTreeSet::from(["junk", "elide"]));
    assert!(
        binary
            .module
            .functions
            .iter()
            .all(|it| !refused.contains(it.name.as_str()))
    );
    assert_eq!(function(&binary, "main").blocks.len(), 1);
}

#[test]
fn a_jump_over_a_prefix_leads_to_an_instruction_of_its_own() {
    let workshop = Workshop::new();
    workshop.write(
        "torn.s",
        ".text\n.globl main\n.type main,@function\nmain: je 1f+1\n1: lock incl (%rdi)\nret\n\
         .size main,.-main\n.section .note.GNU-stack,\"\"\n",
    );
    workshop.run("gcc -o torn torn.s");
    let binary = workshop.read("torn");
    let main = function(&binary, "main");
    let first = main.address.0;
    let blocks: Vec<(u64, u32)> = main
        .blocks
        .iter()
        .map(|it| (it.address.0 - first, it.instructions))
        .collect();
    // je (2 bytes), lock incl (3), incl (2), ret
    assert_eq!(blocks, [(0, 1), (2, 1), (3, 1), (5, 1)]);
    let leads = |from: u32, to: u32| {
        let same = |it: &FunctionEdge| it.from == Some(from) && it.to == Some(to);
        main.edges.iter().any(same)
    };
    assert!(leads(0, 1) && leads(0, 2) && leads(1, 3) && leads(2, 3));
    assert!(!leads(1, 2));
}

#[test]
fn rust_programs_are_read_too() {
    let workshop = Workshop::new();
    workshop.write(
        "main.rs",
        "#[inline(never)] fn pick(n: usize) -> String { match n { 0 => \"none\".into(), 1 => \
         format!(\"{n}\"), 2 => \"two\".repeat(n), 3 => panic!(\"three\"), _ => String::new() } }\n\
         fn main() { println!(\"{}\", pick(std::env::args().count())); }\n",
    );
    workshop.run("rustc -g -O -o main main.rs");
    let binary = workshop.read("main");
    let pick = binary
        .module
        .functions
        .iter()
        .find(|it| it.name.contains("4main4pick"))
        .unwrap();
    assert_eq!(pick.source.map(|(_, line)| line), Some(1));
    // A panic while printing must still drop the string.
    let mut all = binary.module.functions.iter();
    let main = all.find(|it| it.name.contains("4main4main")).unwrap();
    assert!(!reached_by(main, EdgeKind::Arrival).is_empty());
    assert!(
        binary.module.refusals.len() < 3,
        "{:?}",
        binary.module.refusals
    );
}

/// The instruction behind the `lock` is one more than the code has in a row.
#[test]
fn a_switch_behind_a_jump_over_a_prefix_is_understood() {
    let workshop = Workshop::new();
    let source = SWITCH.replace(
        "    switch (n) {",
        r#"    __asm__ volatile("cmpl $0, %0; je 1f; .byte 0xf0; 1: incl %0" : "+m"(sink));
    switch (n) {"#,
    );
    workshop.write("locked.c", &source);
    workshop.run("gcc -O2 -o locked locked.c");
    workshop.write("switch.c", SWITCH);
    workshop.run("gcc -O2 -o switch switch.c");
    let arrows = |name: &str| {
        let binary = workshop.read(name);
        let pick = function(&binary, "pick");
        let jumps = pick.edges.iter().filter(|it| it.kind == EdgeKind::Jump);
        jumps.filter_map(|it| Some((it.from, it.to?))).count()
    };
    assert!(arrows("switch") >= 7);
    assert_eq!(arrows("locked"), arrows("switch"));
}
