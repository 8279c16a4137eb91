//! Programs without libc, and programs without an operating system.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::workshop::started::Started;
use crate::workshop::{self, Function, HEADCOUNT, Workshop};

/// Calls `twice` ten times, all by itself.
const ALONE: &str = r#"
static long ask(long number, long a, long b, long c)
{
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return answer;
}
int twice(int x)
{
    if (x < 5)
        return x * 2;
    return x + 5;
}
__attribute__((noipa)) int work(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += twice(i);
    return sum;
}
void _start(void)
{
    int sum = work(10);
    ask(1, 1, (long)"hello\n", 6);
    ask(231, sum == 80 ? 7 : 8, 0, 0);
}
"#;

fn calls(functions: &BTreeMap<String, Function>, name: &str) -> u64 {
    functions[name].calls
}

#[test]
fn objects_that_are_linked_without_libc_count_by_themselves() {
    for (level, route) in [("-O0", "assembly"), ("-O2", "assembly"), ("-O2", "source")] {
        let shop = Workshop::new();
        shop.write("alone.c", ALONE);
        let flags = [level, "-g", "-fno-inline", "-fno-stack-protector"];
        let cc = [
            HEADCOUNT, "cc", "--via", route, "--", "gcc", "-c", "alone.c",
        ];
        shop.must(&[&cc[..], &flags].concat());
        shop.must(&["ld", "alone.o", "-o", "alone"]);
        let said = shop.run(&["./alone"]);
        assert_eq!((said.stdout.as_str(), said.status), ("hello\n", Some(7)));
        let functions = shop.functions();
        assert_eq!(calls(&functions, "work"), 1, "{level} {route}");
        assert_eq!(calls(&functions, "twice"), 10, "{level} {route}");
        if level == "-O0" || route == "source" {
            let lines = shop.lines("alone.c");
            assert_eq!((lines[&11], lines[&12]), (5, 5), "{level} {route}");
        }
    }
}

#[test]
fn programs_without_start_files_count_by_themselves() {
    for kind in [
        &["-static"][..],
        &["-static-pie", "-fpie"],
        &["-pie", "-fpie"],
    ] {
        let shop = Workshop::new();
        shop.write("alone.c", ALONE);
        let words = ["gcc", "-g", "-O1", "-fno-inline", "-nostdlib", "alone.c"];
        shop.cc(&[&words[..], kind, &["-o", "alone"]].concat());
        let said = shop.run(&["./alone"]);
        assert_eq!((said.stdout.as_str(), said.status), ("hello\n", Some(7)));
        assert_eq!(calls(&shop.functions(), "twice"), 10, "{kind:?}");
    }
}

/// As a kernel does, it uses gs for its own purposes, and has several processors: threads here,
/// that it makes without any library. Writes its counters out if it is told to.
const BARE: &str = r#"
extern unsigned char __start_headcount_memory[], __stop_headcount_memory[];
static long ask(long number, long a, long b, long c)
{
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return answer;
}
static int done;
__attribute__((noipa)) int twice(int x)
{
    if (x % 4 == 0)
        return x * 2;
    return x + 5;
}
static void work(void)
{
    for (int i = 0; i < 100000; i++)
        twice(i);
    __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
}
static char stacks[3][65536] __attribute__((aligned(64)));
static void begin(void (*what)(void), char *stack)
{
    register void (*function)(void) __asm__("r12") = what;
    long answer;
    __asm__ volatile("syscall; test %%rax, %%rax; jnz 1f; call *%%r12; mov $60, %%eax; xor %%edi, %%edi; syscall; 1:"
                     : "=a"(answer) : "a"(56), "D"(0x10f00), "S"(stack), "d"(0), "r"(function)
                     : "rcx", "r11", "memory", "cc");
}
void _start(void)
{
    char letter;
    ask(158, 0x1001, 0x1000, 0);
    for (int i = 0; i < 3; i++)
        begin(work, stacks[i + 1]);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < 3) {
    }
    ask(1, 1, (long)"started\n", 8);
    ask(0, 0, (long)&letter, 1);
    ask(1, 2, (long)__start_headcount_memory, __stop_headcount_memory - __start_headcount_memory);
    ask(231, 0, 0, 0);
}
"#;

fn bare() -> Workshop {
    let shop = Workshop::new();
    build_bare(&shop, BARE);
    shop
}

fn build_bare(shop: &Workshop, text: &str) {
    shop.write("bare.c", text);
    let words = "gcc -g -O2 -ffreestanding -fno-stack-protector -nostdlib -static bare.c -o bare";
    shop.cc(&words.split(' ').collect::<Vec<_>>());
}

fn is_whole(functions: &BTreeMap<String, Function>) {
    assert_eq!(calls(functions, "twice"), 300_000);
    assert_eq!(calls(functions, "_start"), 1);
}

#[test]
fn a_program_without_an_operating_system_is_read_through_its_memory() {
    let shop = bare();
    let program = Started::new(&mut shop.command(shop.path("bare")));
    let pid = program.child.id().to_string();
    shop.must(&[HEADCOUNT, "collect", "--running", &pid]);
    is_whole(&shop.functions());

    // What a machine's dump looks like, with a page table and without one.
    for is_virtual in [true, false] {
        shop.write("machine", dump(&pid, is_virtual));
        let words = [
            "collect",
            "--core",
            "machine",
            "--program",
            "bare",
            "-o",
            "core.db",
        ];
        shop.must(&[&[HEADCOUNT][..], &words].concat());
        is_whole(&shop.functions_of(&["core.db"]));
        let again = shop.headcount(&words);
        assert_eq!(
            (again.stderr.as_str(), again.status),
            ("", Some(0)),
            "it is there already"
        );
        fs::remove_file(shop.path("core.db")).unwrap();
    }
}

#[test]
fn memory_of_another_build_is_not_taken_for_the_programs() {
    let shop = bare();
    let program = Started::new(&mut shop.command(shop.path("bare")));
    shop.write("machine", dump(&program.child.id().to_string(), true));
    build_bare(&shop, &BARE.replace("x + 5", "x + 6"));
    let words = ["collect", "--core", "machine", "--program", "bare"];
    let said = shop.headcount(&words);
    assert_eq!(said.status, Some(2), "{said:?}");
    let reason = "bare: is another build than the one in memory";
    assert!(said.stderr.contains(reason), "{said:?}");
    build_bare(&shop, BARE);
    shop.must(&[&[HEADCOUNT][..], &words].concat());
    is_whole(&shop.functions());
}

#[test]
fn what_the_runtime_keeps_and_what_is_in_memory_is_one_run() {
    let shop = Workshop::new();
    shop.write("part.c", "int part(int x) { return x * 2; }\n");
    let text = r#"
#include <unistd.h>
int part(int);
int main(void)
{
    char letter;
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += part(i);
    write(1, "started\n", 8);
    read(0, &letter, 1);
    return sum != 90;
}
"#;
    shop.write("whole.c", text);
    let library = "gcc -g -ffreestanding -fPIC -shared -nostdlib part.c -o libpart.so";
    shop.cc(&library.split(' ').collect::<Vec<_>>());
    let program = "gcc -g whole.c -o whole -L. -lpart -Wl,-rpath,$ORIGIN";
    shop.cc(&program.split(' ').collect::<Vec<_>>());
    let program = Started::new(&mut shop.command(shop.path("whole")));
    let pid = program.child.id().to_string();
    shop.must(&[HEADCOUNT, "collect", "--running", &pid]);
    let functions = shop.functions();
    assert_eq!(
        (calls(&functions, "main"), calls(&functions, "part")),
        (1, 10)
    );
    let runs = shop.must(&[HEADCOUNT, "runs"]);
    assert_eq!(runs.matches("whole").count(), 1, "{runs}");
}

/// An ELF core of what a process can read of its own memory.
fn dump(pid: &str, is_virtual: bool) -> Vec<u8> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let pieces: Vec<(u64, Vec<u8>)> = maps
        .lines()
        .filter(|line| line.contains(" r") && !line.contains("[v"))
        .map(|line| {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let mut bytes = vec![0; (number(end) - number(start)) as usize];
            memory.read_exact_at(&mut bytes, number(start)).unwrap();
            (number(start), bytes)
        })
        .collect();
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
    elf.resize(16, 0);
    let put = |elf: &mut Vec<u8>, bytes: &[u8]| elf.extend_from_slice(bytes);
    put(&mut elf, &[4, 0, 62, 0, 1, 0, 0, 0]); // ET_CORE, EM_X86_64
    for word in [0_u64, 64, 0] {
        put(&mut elf, &word.to_le_bytes());
    }
    put(
        &mut elf,
        &[
            0,
            0,
            0,
            0,
            64,
            0,
            56,
            0,
            pieces.len() as u8,
            0,
            64,
            0,
            0,
            0,
            0,
            0,
        ],
    );
    let mut offset = (64 + 56 * pieces.len()) as u64;
    for (start, bytes) in &pieces {
        put(&mut elf, &[1, 0, 0, 0, 6, 0, 0, 0]); // PT_LOAD
        let address = if is_virtual { *start } else { 0 };
        let size = bytes.len() as u64;
        for word in [offset, address, *start, size, size, 1] {
            put(&mut elf, &word.to_le_bytes());
        }
        offset += size;
    }
    pieces.iter().for_each(|(_, bytes)| put(&mut elf, bytes));
    elf
}

#[test]
fn a_program_without_an_operating_system_writes_its_counts_as_it_likes() {
    let shop = bare();
    shop.write("letter", "x");
    shop.must(&["sh", "-c", "./bare < letter 2> counters.bin"]);
    assert!(shop.counter_files().is_empty());
    let collect = [
        HEADCOUNT,
        "collect",
        "--raw",
        "counters.bin",
        "--program",
        "bare",
    ];
    shop.must(&collect);
    is_whole(&shop.functions());
    shop.must(&["truncate", "-s", "-8", "counters.bin"]);
    let cut = shop.run(&collect);
    assert_eq!(cut.status, Some(2));
    assert!(
        cut.stderr
            .contains("write out all from __start_headcount_memory"),
        "{cut:?}"
    );
}

#[test]
fn what_a_program_with_libc_counted_in_memory_is_named() {
    let shop = Workshop::with_sources();
    shop.cc(&["gcc", "-g", "-ffreestanding", "-c", "helper.c"]);
    shop.cc(&["gcc", "-g", "main.c", "helper.o", "-o", "prog"]);
    assert_eq!(shop.must(&["./prog"]), workshop::ANSWER);
    let functions = shop.functions();
    assert_eq!(calls(&functions, "main"), 1);
    let report = shop.must(&[HEADCOUNT, "report"]);
    assert!(
        report.contains("a function that was compiled with -ffreestanding"),
        "{report}"
    );
    assert!(
        !functions.contains_key("helper"),
        "nobody knows how often: {functions:?}"
    );
}
