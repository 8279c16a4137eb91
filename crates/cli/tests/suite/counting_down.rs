//! `run --until` stops where a single step does, with the same registers.

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};

use crate::workshop::started::send;
use crate::workshop::{HEADCOUNT, Workshop};
use headcount_oracle::{Registers, at_fixed_addresses, registers_of, walk};

/// Loops, one of a single block; recursion, calls by pointer, jumps out of frames, signals, the C
/// library, instructions that repeat, flags that are alive across probes.
const BUSY: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static jmp_buf out;
static volatile int seen;
static void handler(int signal) { for (int i = 0; i < 5; i++) seen += signal; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) static int deep(int n) { if (n == 0) longjmp(out, 1); return deep(n - 1) + 1; }
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static unsigned sum(unsigned n)
{
    unsigned s = 0;
    while (n--) s += n ^ s >> 3;
    return s;
}
__attribute__((noinline)) static long wide(long n)
{
    long low = 1, high = 0;
    for (long i = 0; i < n; i++)
        __asm__ volatile("add %2, %0\n\tjc 1f\n\tnop\n1:\tadc $0, %1" : "+r"(low), "+r"(high) : "r"(i << 60));
    return high;
}
int main(void)
{
    int numbers[64];
    char text[300];
    signal(SIGUSR1, handler);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 64; i++) numbers[i] = (i * 37 + round) % 64;
        qsort(numbers, 64, sizeof *numbers, compare);
        memset(text, 'a' + round, sizeof text - 1);
        text[299] = 0;
        __asm__ volatile("lea %0, %%rdi; mov $200, %%ecx; mov $66, %%al; rep stosb" : "=m"(text) :: "rdi", "rcx", "rax", "memory");
        if (setjmp(out) == 0) deep(20);
        raise(SIGUSR1);
        seen += fib(12) + (int)strlen(text) + (int)sum(900) + (int)wide(300);
    }
    printf("%d %d\n", seen, numbers[7]);
    return 3;
}
"#;

/// What the registers are after so many instructions, by single steps.
fn stepped(shop: &Workshop, program: &str, stops: &[u64]) -> Vec<Registers> {
    let mut command = shop.command(shop.path(program));
    at_fixed_addresses(command.stdout(Stdio::null()));
    let mut found = Vec::new();
    walk(&mut command, |executed, registers| {
        // An instruction that repeats itself stops more than once.
        if stops.get(found.len()) == Some(&executed) {
            found.push(*registers);
        }
        match found.len() < stops.len() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
    .unwrap();
    assert_eq!(found.len(), stops.len(), "{program} ends too early");
    found
}

/// A program that was stopped by `--until`.
struct Standing {
    headcount: Child,
    pid: i32,
}

impl Standing {
    fn new(shop: &Workshop, until: &str, program: &str) -> Self {
        let mut command: Command = shop.command(HEADCOUNT);
        at_fixed_addresses(&mut command);
        let path = shop.path(program);
        let run = ["run", "-q", "--until", until, "--"];
        let mut headcount = command
            .args(run)
            .arg(path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(headcount.stderr.take().unwrap());
        let mut said = Vec::new();
        let found = stderr.lines().map(Result::unwrap).find_map(|line| {
            let pid = line.strip_prefix("headcount: process ");
            let pid = pid.and_then(|it| it.split(' ').next()?.parse().ok());
            said.push(line);
            pid
        });
        let pid = found.unwrap_or_else(|| panic!("{until}: {said:?}"));
        Self { headcount, pid }
    }

    fn registers(&self) -> Registers {
        registers_of(self.pid).unwrap()
    }

    /// Lets it go on. Its status.
    fn end(mut self) -> Option<i32> {
        send("CONT", &self.pid.to_string());
        self.headcount.wait().unwrap().code()
    }
}

/// Stops a program at each of these, and holds its registers against those of single steps. How they
/// are compared is said by name and value.
fn check(shop: &Workshop, stops: &[u64], seen: impl Fn((&'static str, u64)) -> Option<u64>) {
    let (once, twice) = (stepped(shop, "busy", stops), stepped(shop, "busy", stops));
    for (index, stop) in stops.iter().enumerate() {
        let standing = Standing::new(shop, &format!("instructions={stop}"), "busy");
        let found = standing.registers();
        assert_eq!(standing.end(), Some(3));
        let mut same = 0;
        for ((found, once), twice) in found.iter().zip(&once[index]).zip(&twice[index]) {
            // What the kernel draws by lot differs from run to run.
            if once == twice {
                assert_eq!(seen(*found), seen(*once), "{} {stop}", once.0);
                same += usize::from(seen(*once).is_some());
            }
        }
        assert!(same >= 2, "{stop}: {same}");
    }
}

#[test]
fn a_program_stops_at_the_instruction_where_single_steps_do() {
    let shop = Workshop::new();
    let stops: [(&str, &[u64]); 2] = [("-O0", &[1, 65_536, 101_170]), ("-O2", &[65_537, 93_131])];
    for (level, stops) in stops {
        let options = [level, "-fno-stack-protector", "-static", "-no-pie"];
        shop.build("busy", BUSY, &options);
        // Flags that nobody reads any more may be anything, and the kernel leaves in two registers
        // where it was called from.
        let is_kept = |name: &str| !["flags", "rcx", "r11"].contains(&name);
        check(&shop, stops, |(name, value)| is_kept(name).then_some(value));
    }
}

#[test]
fn a_program_with_libraries_stops_there_too() {
    let shop = Workshop::new();
    shop.build("busy", BUSY, &["-O1"]);
    let stops = [500, 163_131];
    // Where libraries are depends on what else is mapped.
    check(&shop, &stops, |(name, value)| match name {
        "rip" => Some(value & 0xfff),
        "rsp" => Some(value),
        _ => None,
    });
}

/// Where a function begins.
fn address_of(shop: &Workshop, program: &str, function: &str) -> u64 {
    let symbols = shop.must(&["nm", program]);
    let line = symbols
        .lines()
        .find(|it| it.ends_with(&format!(" {function}")));
    let address = line.unwrap().split(' ').next().unwrap();
    u64::from_str_radix(address, 16).unwrap()
}

#[test]
fn a_program_stops_at_the_call_that_is_meant() {
    let shop = Workshop::new();
    shop.build(
        "busy",
        BUSY,
        &["-O1", "-fno-stack-protector", "-static", "-no-pie"],
    );
    for (function, times) in [("fib", 700), ("compare", 333), ("deep", 50)] {
        let entry = address_of(&shop, "busy", function);
        let mut command = shop.command(shop.path("busy"));
        at_fixed_addresses(command.stdout(Stdio::null()));
        let (mut calls, mut expected) = (0, None);
        walk(&mut command, |_, registers| {
            calls += u64::from(registers[0].1 == entry);
            if calls < times {
                return ControlFlow::Continue(());
            }
            expected = Some(*registers);
            ControlFlow::Break(())
        })
        .unwrap();
        let standing = Standing::new(&shop, &format!("calls({function})={times}"), "busy");
        let found = standing.registers();
        assert_eq!(standing.end(), Some(3));
        let expected = expected.expect("it is called so often");
        // Those that are nobody's by then may be anything.
        let kept = [
            "rip", "rsp", "rdi", "rbx", "rbp", "r12", "r13", "r14", "r15",
        ];
        let of = |all: &Registers| {
            all.iter()
                .filter(|it| kept.contains(&it.0))
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&found), of(&expected), "{function} {times}");
    }
}

/// The instructions that ran before the mark, by all modules.
fn executed(shop: &Workshop) -> u64 {
    let said = shop.headcount(&[
        "report", "--phase", "start", "--by", "module", "--format", "csv",
    ]);
    let mut rows = said
        .stdout
        .lines()
        .map(|it| it.split(',').collect::<Vec<_>>());
    let columns = rows.next().unwrap();
    let column = columns.iter().position(|it| *it == "executed").unwrap();
    rows.map(|row| row[column].parse::<u64>().unwrap()).sum()
}

#[test]
fn a_program_that_goes_on_has_executed_as_many_by_then() {
    let shop = Workshop::new();
    shop.build("busy", BUSY, &["-O2", "-static"]);
    for times in [3, 123_456] {
        shop.forget();
        let until = format!("instructions={times}");
        let words = [
            "run", "-q", "--until", &until, "--then", "report", "--", "./busy",
        ];
        let said = shop.headcount(&words);
        assert_eq!(said.status, Some(3), "{said:?}");
        assert!(said.stdout.contains("executed"), "{said:?}");
        assert_eq!(executed(&shop), times);
    }
}

/// Each thread does the same.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void step(void) { __asm__ volatile(""); }
static void *work(void *data) { for (long i = 0; i < 1000; i++) step(); return data; }
int main(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
"#;

#[test]
fn each_thread_counts_its_own() {
    let shop = Workshop::new();
    shop.build("threads", THREADS, &["-O1", "-pthread"]);
    let run = |until: &str| {
        let said = shop.headcount(&[
            "run",
            "-q",
            "--until",
            until,
            "--then",
            "core",
            "--",
            "./threads",
        ]);
        assert_eq!(
            (said.status, said.stdout.lines().last()),
            (Some(0), Some("done")),
            "{said:?}"
        );
        said.stderr
    };
    assert!(run("calls(step)=1000").contains("has come to 1,000 calls of step"));
    assert!(run("calls(step)=1001").contains("no thread came to 1,001 calls of step"));
    assert!(run("calls(nosuch)=1").contains("no thread came to 1 call of nosuch"));
}

#[test]
fn what_cannot_be_counted_down_is_said() {
    let shop = Workshop::new();
    for (until, why) in [
        ("instructions", "say instructions=N or calls(FUNCTION)=N"),
        ("loads=5", "loads cannot be counted down"),
        ("instructions=0", "0 is no number of events from 1 on"),
        ("instructions=many", "many is no number"),
        ("calls()=3", "calls() cannot be counted down"),
    ] {
        let said = shop.headcount(&["run", "--until", until, "--", "true"]);
        assert_eq!(said.status, Some(125), "{said:?}");
        assert!(said.stderr.contains(why), "{said:?}");
    }
    let words = [
        "run",
        "--engine",
        "breakpoint",
        "--until",
        "instructions=5",
        "--",
        "true",
    ];
    let said = shop.headcount(&words);
    assert!(said.stderr.contains("only copies count down"), "{said:?}");
}
