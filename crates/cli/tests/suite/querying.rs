//! `headcount query`: what a program has executed so far, at any moment.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::workshop::started::Started;
use crate::workshop::{self, HEADCOUNT, Said, Workshop};
use headcount_oracle::first_steps;

/// Does the same again and again: loops, a switch, recursion, calls by pointer and from the C library,
/// a signal that it sends itself, a jump out of three frames, instructions that repeat.
const AGAIN: &str = r#"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static jmp_buf out;
static volatile int seen, state = 7;
static void handler(int signal) { for (int i = 0; i < 5; i++) seen += signal; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int twice(int x) { return 2 * x; }
static int half(int x) { return x < 0 ? -x / 2 : x / 2; }
static int (*volatile functions[])(int) = { twice, half };
__attribute__((noinline)) static int deep(int n) { if (n == 0) longjmp(out, 1); return deep(n - 1) + 1; }
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static int pick(int n)
{
    switch (n % 6) {
    case 0: return 3;
    case 1: return n * 5;
    case 2: return n ^ 77;
    case 3: return n / 3;
    case 4: return -n;
    default: return 1;
    }
}
__attribute__((noinline)) void work(void)
{
    int values[24];
    for (int i = 0; i < 24; i++)
        values[i] = pick(i * 31) + functions[i & 1](i);
    qsort(values, 24, sizeof values[0], compare);
    char text[64], copy[64];
    snprintf(text, sizeof text, "%d %d", values[0], fib(7));
    memcpy(copy, text, sizeof copy);
    if (!setjmp(out))
        deep(3);
    raise(SIGUSR1);
    state = (state & 7) | (strlen(copy) == 0);
}
int main(void)
{
    signal(SIGUSR1, handler);
    puts("started");
    fflush(stdout);
    for (;;)
        work();
}
"#;

/// Counts by link address.
type Counts = BTreeMap<u64, u64>;

/// What a program that repeats itself executes, one instruction after the other.
struct Course {
    /// Up to the first round.
    first: Vec<u64>,
    round: Vec<u64>,
}

impl Course {
    /// By stepping through three rounds and a bit.
    fn of(shop: &Workshop, program: &str) -> Self {
        let symbols = shop.must(&["nm", program]);
        let work = symbols.lines().find(|it| it.ends_with(" work")).unwrap();
        let work = u64::from_str_radix(work.split(' ').next().unwrap(), 16).unwrap();
        let mut command = shop.command(shop.path(program));
        let steps = first_steps(command.stdout(Stdio::null()), 14_000).unwrap();
        let mut begins = (0..steps.len()).filter(|it| steps[*it] == work);
        let mut begin = || begins.next().expect("there are rounds");
        let (one, two, three) = (begin(), begin(), begin());
        assert_eq!(steps[one..two], steps[two..three]);
        Self {
            first: steps[..one].to_vec(),
            round: steps[one..two].to_vec(),
        }
    }

    /// How often each instruction ran when so many had.
    fn after(&self, instructions: u64) -> Counts {
        let instructions = instructions as usize;
        let mut counts = Counts::new();
        let mut add = |steps: &[u64], times: usize| {
            for step in steps {
                *counts.entry(*step).or_default() += times as u64;
            }
        };
        let Some(rounds) = instructions.checked_sub(self.first.len()) else {
            add(&self.first[..instructions], 1);
            return counts;
        };
        add(&self.first, 1);
        add(&self.round, rounds / self.round.len());
        add(&self.round[..rounds % self.round.len()], 1);
        counts.retain(|_, count| *count > 0);
        counts
    }
}

fn query(shop: &Workshop, pid: &str, more: &[&str]) -> Said {
    shop.headcount(&[&["query", pid], more].concat())
}

/// The instructions of a module that ran so far, by link address.
fn instructions(shop: &Workshop, pid: &str, module: &str) -> Counts {
    let said = query(shop, pid, &["--by", "instruction", "--format", "csv"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    by_address(&said.stdout, module)
}

/// Those that ran, from a table.
fn by_address(csv: &str, module: &str) -> Counts {
    let mut rows = csv.lines().map(|it| it.split(',').collect());
    let columns: Vec<&str> = rows.next().unwrap();
    let column = |name: &str| columns.iter().position(|it| *it == name).unwrap();
    let (in_module, address, executed) = (column("module"), column("address"), column("count"));
    let of_module = rows.filter(|row: &Vec<&str>| row[in_module].ends_with(module));
    let counts = of_module.map(|row| {
        let address = u64::from_str_radix(row[address].trim_start_matches("0x"), 16);
        (address.unwrap(), row[executed].parse().unwrap())
    });
    counts.filter(|(_, count)| *count > 0).collect()
}

/// A number that differs from one moment to the next.
fn some_milliseconds(below: u64) -> Duration {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    Duration::from_micros(u64::from(now.subsec_nanos()) % (below * 1000))
}

fn counting(shop: &Workshop, words: &[&str]) -> Started {
    let run = ["run", "-q"];
    Started::new(shop.command(HEADCOUNT).args(run).args(words))
}

#[test]
fn a_query_is_exact_wherever_the_program_is() {
    let shop = Workshop::new();
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        shop.build("again", AGAIN, &[level]);
        let course = Course::of(&shop, "again");
        for (engine, moments) in [("detour", 10), ("breakpoint", 3)] {
            let words = ["--modules", "main", "--engine", engine, "--", "./again"];
            let counted = counting(&shop, &words);
            let pid = counted.counted();
            let mut before = 0;
            for _ in 0..moments {
                sleep(some_milliseconds(20));
                let counts = instructions(&shop, &pid, "again");
                let executed: u64 = counts.values().sum();
                let place = format!("{level} {engine} after {executed}");
                assert!(executed >= before, "{place}");
                assert_eq!(counts, course.after(executed), "{place}");
                before = executed;
            }
        }
    }
}

/// How often each instruction of the program ran in a phase of the last run.
fn of_phase(shop: &Workshop, more: &[&str]) -> Counts {
    let words = ["report", "--by", "instruction", "--format", "csv"];
    let said = shop.headcount(&[&words, more].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
    by_address(&said.stdout, "again")
}

#[test]
fn phases_are_exact_and_add_up_to_the_run() {
    let shop = Workshop::new();
    shop.build("again", AGAIN, &["-O2"]);
    let course = Course::of(&shop, "again");
    for engine in ["detour", "breakpoint"] {
        shop.forget();
        let words = ["--modules", "main", "--engine", engine, "--", "./again"];
        let counted = counting(&shop, &words);
        let pid = counted.counted();
        for name in ["warm", "it's \"steady\""] {
            sleep(some_milliseconds(30));
            let said = shop.headcount(&["mark", &pid, name]);
            assert_eq!(said.status, Some(0), "{said:?}");
        }
        sleep(some_milliseconds(30));
        workshop::started::send("KILL", &pid);
        assert_eq!(counted.rest().status, Some(137));
        let mut before = 0;
        let mut sum = Counts::new();
        for name in ["start", "warm", "it's \"steady\""] {
            let phase = of_phase(&shop, &["--phase", name]);
            let after = before + phase.values().sum::<u64>();
            let mut expected = course.after(after);
            for (at, count) in course.after(before) {
                *expected.entry(at).or_default() -= count;
            }
            expected.retain(|_, count| *count > 0);
            assert_eq!(phase, expected, "{engine} {name}");
            before = after;
            phase
                .iter()
                .for_each(|(at, count)| *sum.entry(*at).or_default() += count);
        }
        assert_eq!(of_phase(&shop, &[]), sum, "{engine}");
        let said = shop.headcount(&["report", "--phase", "cold"]);
        assert_eq!(said.status, Some(2));
        assert!(
            said.stderr.contains("it has start, warm, it's"),
            "{}",
            said.stderr
        );
    }
}

/// Threads that work, that wait, that come and go, and children.
const FAMILY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int over;
__attribute__((noinline)) static unsigned spin(unsigned n) { for (unsigned i = 0; i < 100; i++) n = n * 69069 + 1; return n; }
static void *works(void *arg) { unsigned n = 0; while (!over) n = spin(n); *(unsigned *)arg = n; return arg; }
static void *waits(void *arg) { char c; read(((int *)arg)[0], &c, 1); return arg; }
static void *short_lived(void *arg) { return arg; }
int main(void)
{
    pthread_t workers[3], waiter, another;
    unsigned results[3];
    int ends[2];
    pipe(ends);
    pthread_create(&waiter, 0, waits, ends);
    for (int i = 0; i < 3; i++) pthread_create(workers + i, 0, works, results + i);
    puts("started");
    fflush(stdout);
    fd_set in;
    for (;;) {
        struct timeval now = { 0, 1000 };
        FD_ZERO(&in);
        FD_SET(0, &in);
        if (select(1, &in, 0, 0, &now) > 0) break;
        pthread_create(&another, 0, short_lived, 0);
        pthread_join(another, 0);
        pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
        if (system("true")) return 1;
    }
    over = 1;
    write(ends[1], "", 1);
    for (int i = 0; i < 3; i++) pthread_join(workers[i], 0);
    pthread_join(waiter, 0);
    return 0;
}
"#;

#[test]
fn counts_of_threads_and_children_never_go_down_and_end_in_those_of_the_run() {
    let shop = Workshop::with("family", FAMILY, &["-O1", "-pthread"]);
    let mut counted = counting(&shop, &["--modules", "main", "--", "./family"]);
    let pid = counted.counted();
    let mut before = Counts::new();
    let has_grown = |before: &Counts, now: &Counts| {
        let grown = |(at, count): (&u64, &u64)| now.get(at).is_some_and(|it| it >= count);
        assert!(before.iter().all(grown), "{before:?}\n{now:?}");
    };
    for _ in 0..12 {
        sleep(some_milliseconds(30));
        let now = instructions(&shop, &pid, "family");
        has_grown(&before, &now);
        before = now;
    }
    counted.tell("end\n");
    let said = counted.rest();
    assert_eq!((said.status, said.stderr.as_str()), (Some(0), ""));
    let words = [
        "report",
        "--by",
        "instruction",
        "--only",
        "family!",
        "--format",
        "csv",
    ];
    let rows = shop.headcount(&words).stdout;
    let finally: u64 = rows
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(3).unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(finally >= before.values().sum());
}

/// Waits in system calls that fail if their thread is stopped meanwhile.
const WAITS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
static int times = 1; /* at most; the threads wait for a second in all */
static struct timespec time_out = { 1, 0 };
static int set, epoll, pair[2];
static int in_epoll(void)
{
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, 1000 / times);
}
static int in_semtimedop(void)
{
    struct sembuf take = { 0, -1, 0 };
    return semtimedop(set, &take, 1, &time_out);
}
static int in_sigtimedwait(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, 0, &time_out);
}
static int in_recv(void)
{
    char byte;
    return recv(pair[0], &byte, 1, 0);
}
static int (*const calls[])(void) = { in_epoll, in_semtimedop, in_sigtimedwait, in_recv };
static const char *results[4];
static void *thread(void *number)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    results[(long)number] = "in time";
    do {
        if (calls[(long)number]() < 0 && errno == EINTR) results[(long)number] = "interrupted";
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9 < 1);
    return 0;
}
int main(int count, char **words)
{
    pthread_t threads[4];
    if (count > 1) {
        times = atoi(words[1]);
        time_out = (struct timespec){ 0, 1000000000 / times };
    }
    struct timeval wait = { time_out.tv_sec, time_out.tv_nsec / 1000 };
    set = semget(IPC_PRIVATE, 1, 0600);
    epoll = epoll_create1(0);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    puts("started");
    fflush(stdout);
    for (long i = 0; i < 4; i++) pthread_create(threads + i, 0, thread, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    semctl(set, 0, IPC_RMID);
    for (int i = 0; i < 4; i++) puts(results[i]);
    return 0;
}
"#;

#[test]
fn a_program_does_not_notice_that_it_is_asked() {
    let shop = Workshop::with("waits", WAITS, &["-pthread"]);
    let counted = counting(&shop, &["--modules", "main", "--", "./waits"]);
    let pid = counted.counted();
    for _ in 0..4 {
        sleep(Duration::from_millis(100));
        assert_eq!(query(&shop, &pid, &[]).status, Some(0));
    }
    assert_eq!(counted.rest().stdout, "in time\n".repeat(4));
}

/// Many of these threads are on their way into the kernel when they are stopped.
#[test]
fn a_program_does_not_notice_that_it_is_asked_when_it_is_about_to_wait() {
    let shop = Workshop::with("waits", WAITS, &["-pthread"]);
    let counted = counting(&shop, &["--modules", "main", "--", "./waits", "5000"]);
    let pid = counted.counted();
    let mut asked = 0;
    while query(&shop, &pid, &[]).status == Some(0) {
        asked += 1;
    }
    assert!(asked > 4, "only asked {asked} times");
    assert_eq!(counted.rest().stdout, "in time\n".repeat(4));
}

#[test]
fn a_program_does_not_notice_that_it_is_attached_to() {
    let shop = Workshop::with("waits", WAITS, &["-pthread"]);
    for engine in ["detour", "breakpoint"] {
        let program = Started::new(&mut shop.command(shop.path("waits")));
        let pid = program.child.id().to_string();
        sleep(Duration::from_millis(100));
        let words = ["attach", "-q", "--modules", "main", "--for", "100ms"];
        let said = shop.headcount(&[&words[..], &["--engine", engine, &pid]].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
        assert_eq!(program.rest().stdout, "in time\n".repeat(4), "{engine}");
    }
}

#[test]
fn who_cannot_be_asked_is_named() {
    let shop = Workshop::with("waits", WAITS, &["-pthread"]);
    let refusal = |pid: &str| {
        let said = query(&shop, pid, &[]);
        assert_eq!((said.status, said.stdout.as_str()), (Some(2), ""));
        said.stderr
    };
    assert_eq!(
        refusal("999999999"),
        "headcount: there is no process 999999999\n"
    );
    let program = Started::new(&mut shop.command(shop.path("waits")));
    let pid = program.child.id().to_string();
    let cure = format!(
        "headcount: process {pid} is not being counted; `headcount attach {pid}` counts it from now \
         on\n"
    );
    assert_eq!(refusal(&pid), cure);
    // One who counts, but does not listen.
    let counted = counting(&shop, &["--modules", "main", "--", "./waits"]);
    let folder = fs::read_dir(shop.path("headcount.counts")).unwrap().next();
    let socket = folder.unwrap().unwrap().path().join("live");
    fs::rename(&socket, socket.with_extension("away")).unwrap();
    fs::write(&socket, "").unwrap();
    let said = refusal(&counted.counted());
    assert!(said.contains("cannot be asked for its counts"), "{said}");
}

#[test]
fn whoever_counts_may_be_named_in_place_of_the_program() {
    let shop = Workshop::with("waits", WAITS, &["-pthread"]);
    let counted = counting(&shop, &["--modules", "main", "--", "./waits"]);
    let headcount = counted.child.id().to_string();
    let said = query(&shop, &headcount, &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let module = report["rows"][0]["module"].as_str().unwrap();
    assert!(module.ends_with("/waits"), "{said:?}");
}

#[test]
fn a_program_that_was_built_to_count_can_be_asked() {
    let shop = Workshop::new();
    shop.write("again.c", AGAIN);
    shop.cc(&["gcc", "-g", "-w", "-o", "again", "again.c"]);
    let program = Started::new(&mut shop.command(shop.path("again")));
    let said = query(&shop, &program.child.id().to_string(), &["--only", "work"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains(" work\n"), "{}", said.stdout);
    assert!(said.stdout.contains("still running"), "{}", said.stdout);
}

/// Becomes itself again and again, until it has done so a hundred times.
const REBORN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    int left = count > 1 ? atoi(words[1]) : 100;
    if (left == 100) { puts("started"); fflush(stdout); }
    if (left == 0) return 7;
    char text[16];
    snprintf(text, sizeof text, "%d", left - 1);
    usleep(5000);
    execl("/proc/self/exe", words[0], text, (char *)0);
    return 1;
}
"#;

#[test]
fn many_may_ask_at_once_and_while_the_program_becomes_another() {
    let shop = Workshop::with("reborn", REBORN, &[]);
    let counted = counting(&shop, &["--modules", "main", "--", "./reborn"]);
    let headcount = counted.child.id().to_string();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut before = 0;
                for _ in 0..8 {
                    let said = query(&shop, &headcount, &["--by", "module", "--format", "csv"]);
                    if said.status != Some(0) {
                        assert!(is_over(&said), "{said:?}");
                        break;
                    }
                    let row = said.stdout.lines().nth(1).unwrap_or_default();
                    let executed = row.split(',').nth(1).map_or(0, |it| it.parse().unwrap());
                    assert!(executed >= before, "{said:?}");
                    before = executed;
                }
            });
        }
    });
    assert_eq!(counted.rest().status, Some(7));
    assert_eq!(shop.calls("main"), Some(101));
}

/// Whoever asks too late is told so.
fn is_over(said: &Said) -> bool {
    let words = ["ended", "there is no process", "is not being counted"];
    said.status == Some(2) && words.iter().any(|it| said.stderr.contains(it))
}

#[test]
fn nothing_is_lost_when_headcount_is_killed_while_it_answers() {
    let shop = Workshop::new();
    shop.build("again", AGAIN, &["-O1"]);
    let counted = counting(&shop, &["--modules", "main", "--", "./again"]);
    let headcount = counted.child.id().to_string();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let said = query(&shop, &headcount, &["--top", "1"]);
                    if said.status != Some(0) {
                        assert!(is_over(&said), "{said:?}");
                        return;
                    }
                }
            });
        }
        sleep(Duration::from_millis(50));
        counted.signal("KILL");
    });
    let executed = shop.functions()["work"].executed;
    assert!(executed > 0);
}

/// Threads that all run at once.
const MANY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int over;
static void *works(void *arg) { unsigned long n = 0; while (!over) n++; *(unsigned long *)arg = n; return 0; }
int main(void)
{
    pthread_t threads[64];
    unsigned long rounds[64];
    for (int i = 0; i < 64; i++) pthread_create(threads + i, 0, works, rounds + i);
    puts("started");
    fflush(stdout);
    getchar();
    over = 1;
    for (int i = 0; i < 64; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

#[test]
fn sixty_four_threads_are_asked_at_once() {
    let shop = Workshop::with("many", MANY, &["-O1", "-pthread"]);
    let mut counted = counting(&shop, &["--modules", "main", "--", "./many"]);
    let pid = counted.counted();
    for _ in 0..3 {
        let counts = instructions(&shop, &pid, "many");
        // Of the instructions of the loop, each thread has executed one at most once more than another.
        let mut loops: Vec<u64> = counts.values().copied().filter(|it| *it > 1000).collect();
        loops.sort_unstable();
        let (least, most) = (loops[0], loops[loops.len() - 1]);
        assert!(loops.len() >= 3 && most - least <= 64, "{counts:?}");
    }
    counted.tell("end\n");
    assert_eq!(counted.rest().status, Some(0));
}
