//! Functions that no table tells of are found all the same, and data is not taken for them.

mod workshop;

use std::collections::BTreeSet;
use std::sync::Arc;

use headcount_binary::{Found, Outline};
use headcount_model::{Entrance, LinkAddr};
use workshop::{Workshop, objdump};

/// Functions that only a pointer, a call or an address in code leads to; tables of jumps, calls that
/// do not return, loops, tail calls.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>

typedef int (*function)(int);

__attribute__((noinline)) static void give_up(int code) { printf("%d\n", code); exit(code); }
__attribute__((noinline)) static int twice(int x) { return 2 * x + printf("."); }
__attribute__((noinline)) static int choose(int x) {
    switch (x) {
    case 0: return twice(x + 3);
    case 1: return printf("one");
    case 2: return twice(7);
    case 3: puts("three"); return 4;
    case 4: return x * 11;
    case 5: return twice(twice(x));
    default: give_up(x);
    }
    return 0;
}
__attribute__((noinline)) static int sum(const int *at, int n) {
    int all = 0;
    for (int i = 0; i < n; i++)
        if (at[i] != 3) all += at[i] * i;
    return all;
}
__attribute__((noinline)) static int never(int x) { return x ? twice(x) : choose(x); }
static int compare(const void *one, const void *other) { return *(int *)one - *(int *)other; }
static const function table[] = {twice, choose, never};
__attribute__((noinline)) static int through(int i, int x) { return table[i](x); }

int main(int argc, char **argv) {
    int some[] = {4, 3, 8, 1};
    qsort(some, 4, sizeof some[0], compare);
    return through(argc & 1, some[0]) + sum(some, 4) - 100;
}
"#;

const NO_TABLES: &str = "-fno-asynchronous-unwind-tables -fno-unwind-tables";

fn outline(workshop: &Workshop, name: &str) -> Outline {
    Outline::read(Arc::new(workshop.bytes(name)), &mut |_| None).unwrap()
}

/// Where functions begin, or may be entered once their callers ran.
fn entered(mut outline: Outline) -> BTreeSet<u64> {
    let told = outline.starts().iter().chain(outline.entries());
    let mut found: BTreeSet<u64> = told.copied().collect();
    loop {
        let before = found.len();
        for at in outline.starts().to_vec() {
            let range = outline.part_at(LinkAddr(at)).unwrap();
            let asked: Vec<LinkAddr> = found.range(range).map(|it| LinkAddr(*it)).collect();
            let Found {
                routine,
                leads_to,
                unknown_code,
                ..
            } = outline.routine(LinkAddr(at), &asked).unwrap();
            found.extend(leads_to.iter().map(|it| it.0));
            for at in unknown_code {
                outline.add_called(at);
            }
            let blocks = routine.unwrap().blocks.into_iter();
            let blocks = blocks.filter(|it| it.entrance != Entrance::None);
            found.extend(blocks.map(|it| at + u64::from(it.offset)));
        }
        found.extend(outline.starts());
        if found.len() == before {
            return found;
        }
    }
}

/// The functions that a file's symbols name.
fn named(workshop: &Workshop, name: &str) -> Vec<(u64, String)> {
    let text = workshop.run(&format!("nm {name}"));
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let at = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_function = matches!(words.next()?, "t" | "T");
        let name = words.next()?.to_owned();
        is_function.then_some((at, name))
    });
    lines.collect()
}

#[test]
fn every_function_of_a_stripped_program_is_found() {
    let workshop = Workshop::new();
    workshop.write("program.c", PROGRAM);
    for cc in ["gcc", "clang"] {
        for flags in [
            "-O0",
            "-O2",
            "-Os",
            "-O3",
            "-O2 -fno-pie -no-pie",
            "-O2 -fcf-protection",
            "-O1 -falign-functions=1",
        ] {
            let build = format!("{cc} {flags} {NO_TABLES} program.c");
            workshop.run(&format!("{build} -o named && strip -o bare named"));
            let found = entered(outline(&workshop, "bare"));
            let ours = named(&workshop, "named");
            assert!(ours.iter().any(|(_, name)| name == "main"));
            for (at, name) in &ours {
                // A label of the linker, where nothing is.
                let is_function = name != "_etext" && !name.starts_with("__");
                assert!(!is_function || found.contains(at), "{build}: {name}");
            }
            let code: BTreeSet<u64> = objdump(&workshop, "named").iter().map(|it| it.at).collect();
            assert!(found.is_subset(&code), "{build}");
        }
    }
}

#[test]
fn data_among_functions_is_left_alone() {
    let constants: Vec<String> = (1..=48_u64)
        .map(|n| format!(".long {:#x}", n.wrapping_pow(7) & 0xffff_ffff))
        .collect();
    let constants = constants.join("\n");
    let text = format!(
        ".globl _start\n_start: lea data(%rip), %rsi\n mov (%rsi), %eax\n ret\n .p2align 4\n\
         data: {constants}\n end_of_data: .p2align 4\nbehind: push %rbp\n pop %rbp\n ret\n"
    );
    let workshop = Workshop::new();
    workshop.write("data.s", &text);
    workshop.run("gcc -nostdlib -o named data.s && strip -o bare named");
    let names = named(&workshop, "named");
    let at = |name: &str| names.iter().find(|it| it.1 == name).unwrap().0;
    let data = at("data")..at("end_of_data");
    let outline = outline(&workshop, "bare");
    let starts = outline.starts();
    assert!(starts.contains(&at("_start")));
    assert!(!starts.iter().any(|it| data.contains(it)), "{starts:?}");
}
