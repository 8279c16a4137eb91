//! What a program asks for itself while it is counted: queries, marks and pauses from inside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::workshop::Workshop;
use headcount_oracle::first_steps;

const ASKING: &str = include_str!("asking.c");
const HEADER: &str = include_str!("../../../../include/headcount.h");

/// The instruction that asks, and one like it that nobody knows.
const ASKS: &str = "0x31716368";
const ASKS_NOBODY: &str = "0x31716367";

const ENGINES: [&str; 2] = ["detour", "breakpoint"];

/// With the header, in `heard`, and one whose requests reach nobody, in `silent`.
fn shop() -> Workshop {
    let shop = Workshop::new();
    for folder in ["heard", "silent", "other"] {
        fs::create_dir(shop.path(folder)).unwrap();
    }
    shop.write("heard/headcount.h", HEADER);
    shop.write("silent/headcount.h", HEADER.replace(ASKS, ASKS_NOBODY));
    shop
}

fn build(shop: &Workshop, compiler: &str, level: &str, source: &str, program: &str, headers: &str) {
    let first: Vec<&str> = compiler.split(' ').collect();
    // gcc does not see that a jump ends it.
    let strict = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-error=infinite-recursion",
    ];
    let rest = [
        "-g", level, "-pthread", "-I", headers, source, "-o", program,
    ];
    shop.must(&[&first, &strict[..], &rest].concat());
}

/// The numbers that a program printed behind a word.
fn told(output: &str, word: &str) -> Vec<i64> {
    let lines = output.lines().filter_map(|it| it.strip_prefix(word));
    lines.map(|it| it.trim().parse().unwrap()).collect()
}

fn count(shop: &Workshop, engine: &str, words: &[&str]) -> String {
    let run = ["run", "-q", "--modules", "main", "--engine", engine, "--"];
    let said = shop.headcount(&[&run, words].concat());
    assert_eq!(
        (said.status, said.stderr.as_str()),
        (Some(0), ""),
        "{words:?}"
    );
    said.stdout
}

/// Where a program has the instruction that asks.
fn asking_places(shop: &Workshop, program: &str) -> BTreeSet<u64> {
    let code = shop.must(&["objdump", "-d", "--no-show-raw-insn", program]);
    let places = code.lines().filter(|it| it.contains(ASKS));
    let address = |line: &str| u64::from_str_radix(line.trim().split(':').next().unwrap(), 16);
    places.map(|it| address(it).unwrap()).collect()
}

#[test]
fn nobody_answers_where_nobody_counts() {
    let shop = shop();
    shop.write("asking.c", ASKING);
    for compiler in [
        "gcc -std=gnu99",
        "gcc -std=gnu11 -masm=intel",
        "clang",
        "g++ -x c++",
        "clang++ -x c++",
    ] {
        for level in ["-O0", "-O2"] {
            build(&shop, compiler, level, "asking.c", "asking", "heard");
            let output = shop.must(&["asking", "all"]);
            assert!(told(&output, "child").len() > 20);
            let answers = told(&output, "parent");
            assert_eq!(answers, vec![-1; answers.len()], "{compiler} {level}");
        }
    }
}

#[test]
fn an_answer_is_exact_right_behind_every_instruction_that_asks() {
    let shop = shop();
    shop.write("asking.c", ASKING);
    for compiler in ["gcc", "clang"] {
        for level in ["-O0", "-O2", "-O3"] {
            build(&shop, compiler, level, "asking.c", "asking", "heard");
            let places = asking_places(&shop, "asking");
            let mut command = shop.command(shop.path("asking"));
            let command = command.arg("alone").stdout(Stdio::null());
            let steps = first_steps(command, 40_000).unwrap();
            let asks = (1..).zip(&steps).filter(|(_, at)| places.contains(at));
            let expected: Vec<i64> = asks.map(|(before, _)| before).collect();
            assert_eq!(expected.len(), 19);
            for engine in ENGINES {
                let answers = told(&count(&shop, engine, &["./asking", "alone"]), "parent");
                assert_eq!(answers, expected, "{compiler} {level} {engine}");
            }
        }
    }
}

#[test]
fn answers_are_of_all_threads_and_processes_and_the_same_in_every_run() {
    let shop = shop();
    shop.write("asking.c", ASKING);
    build(&shop, "gcc", "-O2", "asking.c", "asking", "heard");
    let outputs: Vec<String> = ["detour", "detour", "breakpoint"]
        .iter()
        .map(|engine| count(&shop, engine, &["./asking", "all"]))
        .collect();
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
    let parent = told(&outputs[0], "parent");
    let child = told(&outputs[0], "child");
    assert!(child.is_sorted() && parent.is_sorted());
    let before = parent.len() - 1;
    assert_eq!(child[..before], parent[..before]);
    // The last answer of the parent has in it what the child did.
    assert!(parent[before] > child[child.len() - 1]);
}

/// How often each instruction of a program ran, by address.
fn instructions(shop: &Workshop, more: &[&str]) -> BTreeMap<u64, u64> {
    let words = ["--by", "instruction", "--format", "csv"];
    let csv = shop.report(&[&words, more].concat());
    let mut rows = csv.lines().map(|it| it.split(',').collect::<Vec<_>>());
    let columns = rows.next().unwrap();
    let column = |name: &str| columns.iter().position(|it| *it == name).unwrap();
    let (address, count) = (column("address"), column("count"));
    let counts = rows.map(|row| {
        let address = u64::from_str_radix(row[address].trim_start_matches("0x"), 16);
        (address.unwrap(), row[count].parse().unwrap())
    });
    counts.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn asking_changes_no_count() {
    let shop = shop();
    shop.write("asking.c", ASKING);
    build(&shop, "gcc", "-O1", "asking.c", "asking", "heard");
    build(&shop, "gcc", "-O1", "asking.c", "other/asking", "silent");
    for engine in ENGINES {
        shop.forget();
        let output = count(&shop, engine, &["./asking", "all"]);
        let asking = instructions(&shop, &[]);
        let last = *told(&output, "parent").last().unwrap();
        assert!(0 < last && last < asking.values().sum::<u64>() as i64);
        shop.forget();
        let output = count(&shop, engine, &["./other/asking", "all"]);
        assert_eq!(told(&output, "parent").last(), Some(&-1));
        assert_eq!(asking, instructions(&shop, &[]), "{engine}");
    }
}

/// Asks for an event around a loop that is written out.
const EVENTS: &str = r#"
#include "headcount.h"
#include <stdio.h>
static long long cell;
__attribute__((noinline)) static long long during(const char *event)
{
    long long first, second;
    __asm__ volatile("mov $-1, %%rax\n nopl 0x31716368(%%rax,%%rax,1)\n mov %%rax, %%r8\n"
                     "mov $1000, %%ecx\n"
                     "1: mov %2, %%r9\n lock incq %2\n mfence\n dec %%ecx\n jnz 1b\n"
                     "mov $-1, %%rax\n nopl 0x31716368(%%rax,%%rax,1)\n mov %%r8, %1\n"
                     : "=&a"(second), "=r"(first), "+m"(cell)
                     : "D"(1L), "S"(event), "d"(-1L)
                     : "r8", "r9", "rcx", "memory");
    return second - first;
}
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        long long all = headcount_query(argv[i]);
        printf("%s %lld\n", argv[i], all < 0 ? all : during(argv[i]));
    }
    return 0;
}
"#;

#[test]
fn every_event_of_blocks_can_be_asked_for() {
    let shop = shop();
    shop.write("events.c", EVENTS);
    build(&shop, "gcc", "-O2", "events.c", "events", "heard");
    let expected = [
        ("instructions", 5004),
        ("loads", 2000),
        ("stores", 1000),
        ("bytes_read", 16000),
        ("bytes_written", 8000),
        ("branches", 1000),
        ("atomics", 1000),
        ("fences", 1000),
        ("calls", 0),
        ("divisions", 0),
        ("flops", 0),
        ("syscalls", 0),
        ("taken", -2),
        ("backward", -2),
        ("nonsense", -2),
        ("", -2),
    ];
    let names = expected.map(|it| it.0);
    for engine in ENGINES {
        let output = count(&shop, engine, &[&["./events"], &names[..]].concat());
        for (event, number) in expected {
            let line = format!("{event} {number}");
            assert!(
                output.lines().any(|it| it == line),
                "{engine}: {line}: {output}"
            );
        }
    }
    // With all its libraries, too.
    let output = shop.must_count(&["./events", "loads"]);
    assert_eq!(output, "loads 2000\n");
}

const PHASES: &str = r#"
#include "headcount.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noinline)) void spin(long turns)
{
    __asm__ volatile("nop\n1: dec %0\n jnz 1b" : "+r"(turns));
}
int main(void)
{
    long long said[16];
    int n = 0;
    spin(1000);
    said[n++] = headcount_mark("second part");
    spin(20);
    said[n++] = headcount_pause();
    spin(70000);
    said[n++] = headcount_pause();
    spin(70000);
    said[n++] = headcount_mark("third");
    said[n++] = headcount_resume();
    spin(70000);
    said[n++] = headcount_resume();
    spin(300);
    said[n++] = headcount_resume();
    said[n++] = headcount_mark("");
    said[n++] = headcount_mark("start");
    said[n++] = headcount_mark("paused");
    said[n++] = headcount_mark("a\033[2Jb");
    said[n++] = headcount_mark((const char *)8);
    said[n++] = headcount_mark("\xff");
    /* A name right before memory that is not there. */
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    for (int i = 0; i < 4096; i++)
        page[i] = 'x';
    said[n++] = headcount_mark(page + 4090);
    said[n++] = headcount_mark(page);
    said[n++] = headcount_ask(99, "x");
    for (int i = 0; i < n; i++)
        printf("%lld ", said[i]);
    puts("");
    return 0;
}
"#;

/// How many instructions `spin` executed in the chosen part of the last run, but for two of each
/// call.
fn spun(shop: &Workshop, more: &[&str]) -> u64 {
    let words = ["--by", "function", "--only", "spin", "--format", "csv"];
    let csv = shop.report(&[&words, more].concat());
    let mut rows = csv.lines().map(|it| it.split(',').collect::<Vec<_>>());
    let columns = rows.next().unwrap();
    let column = |name: &str| columns.iter().position(|it| *it == name).unwrap();
    let row = rows.next().unwrap();
    let number = |name: &str| row[column(name)].parse::<u64>().unwrap();
    number("executed") - 2 * number("calls")
}

#[test]
fn marks_make_phases_and_pauses_are_left_out_of_reports() {
    let shop = shop();
    shop.write("phases.c", PHASES);
    build(&shop, "gcc", "-O2", "phases.c", "phases", "heard");
    for engine in ENGINES {
        shop.forget();
        let output = count(&shop, engine, &["./phases"]);
        let said = "0 0 0 0 0 0 -4 -3 -3 -3 -3 -3 -3 -3 -3 -5 ";
        assert_eq!(output.trim_end_matches('\n'), said, "{engine}");
        let phases = |name: &str| spun(&shop, &["--phase", name]);
        assert_eq!(phases("start"), 2000, "{engine}");
        assert_eq!(phases("second part"), 40);
        assert_eq!(phases("third"), 600);
        assert_eq!(phases("paused"), 3 * 140_000);
        assert_eq!(spun(&shop, &[]), 2640);
        assert_eq!(spun(&shop, &["--runs", "all"]), 2640);
        let text = shop.headcount(&["report"]).stdout;
        assert!(text.contains("paused by the program"), "{text}");
        let left_out = instructions(&shop, &["--phase", "paused"]);
        let left_out: u64 = left_out.values().sum();
        assert!(
            text.contains(&format!(" {left_out} instructions")),
            "{text}"
        );
        // Together it is all that ran.
        let mut both = instructions(&shop, &[]);
        for (at, count) in instructions(&shop, &["--phase", "paused"]) {
            *both.entry(at).or_default() += count;
        }
        build(&shop, "gcc", "-O2", "phases.c", "other/phases", "silent");
        shop.forget();
        count(&shop, engine, &["./other/phases"]);
        assert_eq!(both, instructions(&shop, &[]), "{engine}");
    }
}

#[test]
fn a_pause_that_never_ends_lasts_to_the_end() {
    let shop = shop();
    let ends = PHASES
        .split("    said[n++] = headcount_resume();")
        .next()
        .unwrap();
    shop.write("ends.c", format!("{ends}    return said[0] != 0;\n}}\n"));
    build(&shop, "gcc", "-O2", "ends.c", "ends", "heard");
    for engine in ENGINES {
        shop.forget();
        count(&shop, engine, &["./ends"]);
        assert_eq!(spun(&shop, &[]), 2040, "{engine}");
        assert_eq!(spun(&shop, &["--phase", "paused"]), 280_000);
    }
}

#[test]
fn a_pause_survives_that_headcount_is_killed() {
    let shop = shop();
    let source = r#"
        #include "headcount.h"
        #include <signal.h>
        #include <unistd.h>
        __attribute__((noinline)) void spin(long turns)
        {
            __asm__ volatile("nop\n1: dec %0\n jnz 1b" : "+r"(turns));
        }
        int main(void)
        {
            spin(500);
            headcount_pause();
            spin(7000);
            headcount_resume();
            spin(100);
            headcount_pause();
            spin(9000);
            kill(getppid(), SIGKILL);
            for (;;)
                pause();
        }
    "#;
    shop.write("killer.c", source);
    build(&shop, "gcc", "-O2", "killer.c", "killer", "heard");
    let said = shop.headcount(&["run", "-q", "--modules", "main", "--", "./killer"]);
    assert_eq!(said.status, None, "{said:?}");
    assert_eq!(spun(&shop, &[]), 1200);
    assert_eq!(spun(&shop, &["--phase", "paused"]), 32_000);
}

const RUST: &str = r#"
use headcount_request::{Refused, mark, pause, query, resume};
#[inline(never)]
fn spin(turns: u64) -> u64 {
    (0..turns).fold(1, |it, turn| std::hint::black_box(it ^ turn))
}
fn main() {
    let first = query("instructions");
    let sum = spin(1000);
    let second = query("instructions");
    let Ok(Some(first)) = first else {
        println!("{first:?} {:?} {:?} {:?} {sum}", mark("x"), pause(), resume());
        return;
    };
    let again = query("instructions").unwrap().unwrap();
    assert!(second.unwrap().unwrap() - first > 1000);
    assert!(again > second.unwrap().unwrap());
    assert_eq!(query("nonsense"), Err(Refused::NoSuchEvent));
    assert_eq!(mark("start"), Err(Refused::BadName));
    assert_eq!(resume(), Err(Refused::NotPaused));
    assert_eq!((mark("é"), pause(), resume()), (Ok(true), Ok(true), Ok(true)));
    println!("well {sum}");
}
"#;

#[test]
fn rust_programs_ask_by_a_crate() {
    let shop = shop();
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../request/src/lib.rs");
    let library = library.to_str().unwrap();
    let name = ["--crate-name", "headcount_request", "--crate-type", "rlib"];
    shop.write("asks.rs", RUST);
    for level in ["opt-level=0", "opt-level=3"] {
        let edition = ["rustc", "--edition", "2024", "-C", level];
        shop.must(&[&edition[..], &name, &[library]].concat());
        let with = [
            "--extern",
            "headcount_request=libheadcount_request.rlib",
            "asks.rs",
        ];
        shop.must(&[&edition[..], &with].concat());
        let alone = shop.must(&["asks"]);
        assert!(
            alone.starts_with("Ok(None) Ok(false) Ok(false) Ok(false) "),
            "{alone}"
        );
        let expected = format!("well {}", alone.rsplit(' ').next().unwrap());
        for engine in ENGINES {
            assert_eq!(
                count(&shop, engine, &["./asks"]),
                expected,
                "{level} {engine}"
            );
        }
    }
}

#[test]
fn a_program_that_counts_itself_has_nobody_to_ask() {
    let shop = shop();
    shop.write("phases.c", PHASES);
    for compiler in ["gcc", "clang"] {
        let via: &[&str] = &[compiler, "-O2", "-I", "heard", "phases.c", "-o", "phases"];
        shop.cc(via);
        assert_eq!(shop.must(&["phases"]).trim_end(), vec!["-1"; 16].join(" "));
        assert_eq!(shop.functions()["main"].calls, 1, "{compiler}");
        shop.forget();
    }
}

#[test]
fn what_is_not_counted_has_no_number() {
    let shop = shop();
    shop.write("events.c", EVENTS);
    build(&shop, "gcc", "-O2", "events.c", "events", "heard");
    let words = [
        "--engine",
        "breakpoint",
        "--unit",
        "function",
        "--",
        "./events",
        "loads",
    ];
    assert_eq!(shop.counted(&words).stdout, "loads -6\n");
    // The child of a program that is not followed is not counted.
    let words = ["--no-follow", "--", "sh", "-c", "./events loads; true"];
    assert_eq!(shop.counted(&words).stdout, "loads -1\n");
}
