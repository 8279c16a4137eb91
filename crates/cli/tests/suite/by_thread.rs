//! Counts of each thread and each process: exact, and together those of the run.

use std::collections::BTreeMap;

use crate::workshop::started::Started;
use crate::workshop::{HEADCOUNT, Workshop};

/// `spin` executes two instructions a round, and two more.
const SPIN: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
void spin(long rounds);
__asm__(".text\n.globl spin\n.type spin,@function\n"
        "spin: xor %eax, %eax\n1: dec %rdi\n jnz 1b\n ret\n.size spin, .-spin\n");
"#;

const GCC: [&str; 2] = ["-O1", "-pthread"];

fn shop(program: &str) -> Workshop {
    Workshop::with("it", &format!("{SPIN}{program}"), &GCC)
}

fn count(shop: &Workshop, words: &[&str]) {
    let said = shop.counted(&[&["--per-thread"], words].concat());
    assert_eq!((said.status, said.stderr.as_str()), (Some(0), ""));
}

/// The cells of these columns.
fn rows<const N: usize>(csv: &str, columns: [&str; N]) -> Vec<[String; N]> {
    let mut lines = csv.lines();
    let titles: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let places = columns.map(|column| titles.iter().position(|it| *it == column).unwrap());
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        places.map(|it| cells[it].to_owned())
    };
    lines.map(cells).collect()
}

/// Threads: process, number, name and instructions.
fn threads(shop: &Workshop) -> Vec<(String, String, String, u64)> {
    let csv = shop.report(&["--by", "thread", "--format", "csv"]);
    let rows = rows(&csv, ["process", "thread", "name", "executed"]).into_iter();
    rows.map(|[process, thread, name, executed]| (process, thread, name, executed.parse().unwrap()))
        .collect()
}

/// Processes by name: how many threads, and how many instructions.
fn processes(shop: &Workshop) -> Vec<(String, u64, u64)> {
    let csv = shop.report(&["--by", "process", "--format", "csv"]);
    let rows = rows(&csv, ["name", "threads", "executed"]).into_iter();
    rows.map(|[name, threads, executed]| {
        (name, threads.parse().unwrap(), executed.parse().unwrap())
    })
    .collect()
}

/// How often each instruction ran; those that did not are left out.
fn instructions(shop: &Workshop, more: &[&str]) -> BTreeMap<[String; 3], u64> {
    let words = ["--by", "instruction", "--format", "csv"];
    let csv = shop.report(&[&words, more].concat());
    let counts = rows(&csv, ["module", "function", "address", "count"]).into_iter();
    let counts = counts.filter_map(|[module, function, address, count]| {
        Some(([module, function, address], count.parse().ok()?))
    });
    counts.filter(|(_, count)| *count > 0).collect()
}

/// How often each system call was made.
fn system_calls(shop: &Workshop, more: &[&str]) -> BTreeMap<String, u64> {
    let words = ["--by", "syscall", "--format", "csv"];
    let csv = shop.report(&[&words, more].concat());
    let calls = rows(&csv, ["name", "count"]).into_iter();
    calls
        .map(|[name, count]| (name, count.parse().unwrap()))
        .collect()
}

fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (key, count) in more {
        *sums.entry(key).or_default() += count;
    }
}

/// Every instruction and every system call of the run is some thread's; and tables of threads say the
/// same.
fn must_add_up(shop: &Workshop) {
    let whole = instructions(shop, &[]);
    let (mut sum, mut calls) = (BTreeMap::new(), BTreeMap::new());
    let mut by_number: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (process, thread, _, executed) in threads(shop) {
        *by_number.entry((process, thread)).or_default() += executed;
    }
    for ((process, thread), executed) in &by_number {
        let one = ["--process", process, "--thread", thread];
        let of_one = instructions(shop, &one);
        assert_eq!(of_one.values().sum::<u64>(), *executed, "{thread}");
        add(&mut sum, of_one);
        add(&mut calls, system_calls(shop, &one));
    }
    let differs = whole
        .iter()
        .find(|(key, count)| sum.get(*key) != Some(count));
    assert_eq!(differs, None, "{:?}", differs.and_then(|it| sum.get(it.0)));
    assert_eq!(sum.len(), whole.len());
    assert_eq!(calls, system_calls(shop, &[]));
    let executed = processes(shop).iter().map(|it| it.2).sum::<u64>();
    assert_eq!(executed, whole.values().sum::<u64>());
}

/// How often `spin` was called by some threads, and the instructions that it executed.
fn spun(shop: &Workshop, more: &[&str]) -> (u64, u64) {
    let words = ["--only", "spin", "--format", "csv"];
    let csv = shop.report(&[&words, more].concat());
    let row = rows(&csv, ["calls", "executed"]).remove(0);
    (row[0].parse().unwrap(), row[1].parse().unwrap())
}

/// Threads one after the other, so that they share windows; and then some at once. A handler runs in one
/// of them.
const THREADS_C: &str = r#"
static pthread_barrier_t all_run;
static void handler(int signal) { spin(7); }
static void *work(void *number)
{
    long rounds = (long)number;
    char name[16];
    snprintf(name, sizeof name, "spins %ld", rounds);
    pthread_setname_np(pthread_self(), name);
    if (rounds >= 1000)
        pthread_barrier_wait(&all_run);
    for (int i = 0; i < 3; i++)
        spin(rounds);
    if (rounds == 2000)
        pthread_kill(pthread_self(), SIGUSR1);
    return 0;
}
int main(void)
{
    pthread_t threads[3];
    signal(SIGUSR1, handler);
    pthread_barrier_init(&all_run, 0, 3);
    for (long i = 1; i <= 3; i++) {
        pthread_create(threads, 0, work, (void *)(i * 100));
        pthread_join(threads[0], 0);
    }
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, (void *)((i + 1) * 1000));
    for (long i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    spin(5);
    return 0;
}
"#;

#[test]
fn every_thread_has_its_own_exact_counts() {
    let shop = shop(THREADS_C);
    count(&shop, &["--", "./it"]);
    for rounds in [100, 200, 300, 1000, 3000] {
        let name = format!("spins {rounds}");
        let expected = (3, 3 * (2 * rounds + 2));
        assert_eq!(spun(&shop, &["--thread", &name]), expected, "{name}");
    }
    // One of them ran the handler, too.
    let expected = (4, 3 * (2 * 2000 + 2) + 2 * 7 + 2);
    assert_eq!(spun(&shop, &["--thread", "spins 2000"]), expected);
    assert_eq!(spun(&shop, &["--thread", "it"]), (1, 12));
    // Several are a sum.
    let expected = (9, 3 * (2 * 600 + 6));
    assert_eq!(spun(&shop, &["--thread", "spins ?00"]), expected);
    assert_eq!(threads(&shop).len(), 7);
    assert_eq!(threads(&shop)[1].2, "spins 3000");
    assert_eq!(processes(&shop)[0].0, "it");
    assert_eq!(processes(&shop)[0].1, 7);
    must_add_up(&shop);
}

#[test]
fn a_run_is_the_same_whether_threads_are_told_apart_or_not() {
    let shop = shop(THREADS_C);
    let words = ["--modules", "main", "--", "./it"];
    count(&shop, &words);
    let by_thread = shop.report(&["--by", "instruction", "--format", "csv"]);
    shop.must_count(&words);
    let whole = shop.report(&["--by", "instruction", "--format", "csv"]);
    assert_eq!(by_thread, whole);
    // And so are the threads of another run.
    let both = ["--runs", "1", "--thread", "spins 200"];
    assert_eq!(spun(&shop, &both), (3, 3 * 402));
    let said = shop.headcount(&["report", "--by", "thread"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.stderr.contains("run --per-thread"), "{said:?}");
    let said = shop.headcount(&["report", "--runs", "all", "--by", "thread"]);
    assert!(
        said.stdout.contains("known of 1 of these 2 runs"),
        "{said:?}"
    );
}

#[test]
fn one_thread_is_the_whole_program() {
    let shop = shop("int main(void) { spin(10); return 0; }");
    count(&shop, &["--modules", "main", "--", "./it"]);
    let found = threads(&shop);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].0.as_str(), &found[0].2),
        (&*found[0].1, &"it".to_owned())
    );
    assert_eq!(spun(&shop, &["--thread", "it"]), (1, 22));
    assert_eq!(
        instructions(&shop, &["--thread", "it"]),
        instructions(&shop, &[])
    );
    must_add_up(&shop);
}

/// A child of its own, one in its parent's memory, and programs that others become: the second one in
/// a thread that is not the first.
const PROCESSES_C: &str = r#"
extern char **environ;
static void *become(void *word)
{
    char *words[] = {"./it", word, 0};
    execve("./it", words, environ);
    return 0;
}
int main(int argc, char **argv)
{
    if (argc > 1) {
        spin(atol(argv[1]));
        return 0;
    }
    if (fork() == 0) {
        spin(100);
        _exit(0);
    }
    wait(0);
    if (fork() == 0) {
        pthread_t other;
        spin(200);
        pthread_create(&other, 0, become, "3000");
        pthread_join(other, 0);
    }
    wait(0);
    char *words[] = {"./it", "4000", 0};
    if (vfork() == 0) {
        spin(7);
        execve("./it", words, environ);
        _exit(1);
    }
    wait(0);
    spin(50);
    return 0;
}
"#;

#[test]
fn every_process_has_its_own_exact_counts() {
    let shop = shop(PROCESSES_C);
    count(&shop, &["--modules", "main", "--", "./it"]);
    let csv = shop.report(&["--by", "process", "--format", "csv"]);
    let mut found = rows(&csv, ["process", "threads"]);
    found.sort_by_key(|[process, _]| process.parse::<u32>().unwrap());
    let spun: Vec<(&str, (u64, u64))> = found
        .iter()
        .map(|[process, threads]| (threads.as_str(), spun(&shop, &["--process", process])))
        .collect();
    // What the child in its memory did is its parent's, until it is another program.
    let expected = [
        ("1", (2, 102 + 16)),
        ("1", (1, 202)),
        ("2", (2, 402 + 6002)),
        ("1", (1, 8002)),
    ];
    assert_eq!(spun, expected);
    must_add_up(&shop);
}

#[test]
fn a_program_that_is_killed_has_the_counts_of_its_threads() {
    let shop = shop(
        r#"
static pthread_barrier_t all_run;
static void *work(void *number)
{
    pthread_setname_np(pthread_self(), number ? "one" : "other");
    spin(number ? 100 : 200);
    pthread_barrier_wait(&all_run);
    for (;;)
        pause();
}
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&all_run, 0, 3);
    pthread_create(&thread, 0, work, 0);
    pthread_create(&thread, 0, work, "");
    pthread_barrier_wait(&all_run);
    spin(3);
    raise(SIGKILL);
}
"#,
    );
    let words = ["--per-thread", "--modules", "main", "--", "./it"];
    let said = shop.counted(&words);
    assert_eq!(said.status, Some(137), "{said:?}");
    let mut spun: Vec<(u64, u64)> = threads(&shop)
        .iter()
        .map(|it| spun(&shop, &["--thread", &it.1]))
        .collect();
    spun.sort_unstable();
    assert_eq!(spun, [(1, 8), (1, 202), (1, 402)]);
    must_add_up(&shop);
}

#[test]
fn threads_are_not_told_apart_that_had_not_ended_when_headcount_was_killed() {
    let shop = shop(
        r#"
static void *work(void *number)
{
    spin(100);
    return 0;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    spin(50);
    puts("started");
    fflush(stdout);
    getchar();
    return 0;
}
"#,
    );
    let words = ["run", "-q", "--per-thread", "--", "./it"];
    let started = Started::new(shop.command(HEADCOUNT).args(words));
    started.signal("KILL");
    drop(started);
    let found = threads(&shop);
    assert_eq!(found.len(), 2, "{found:?}");
    let rest = found.iter().find(|it| it.2 == "(not told apart)").unwrap();
    assert_eq!((rest.0.as_str(), rest.1.as_str()), ("", ""));
    let executed = found.iter().map(|it| it.3).sum::<u64>();
    assert_eq!(executed, instructions(&shop, &[]).values().sum::<u64>());
    let ended = found.iter().find(|it| it.2 != "(not told apart)").unwrap();
    assert_eq!(spun(&shop, &["--thread", &ended.1]), (1, 202));
    let said = shop.headcount(&["report", "--by", "process"]);
    let note = "Threads that had not ended when headcount was stopped are not told apart";
    assert!(said.stdout.contains(note), "{said:?}");
}

#[test]
fn thousands_of_short_threads_are_told_apart() {
    let shop = shop(
        r#"
static void *work(void *rounds)
{
    spin((long)rounds);
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    for (long i = 1; i <= atol(argv[1]); i++) {
        pthread_create(&thread, 0, work, (void *)i);
        pthread_join(thread, 0);
    }
    return 0;
}
"#,
    );
    count(&shop, &["--modules", "main", "--", "./it", "2000"]);
    let found = threads(&shop);
    assert_eq!(found.len(), 2001);
    // What is the same in all of them is what `work` has besides.
    let mut executed: Vec<u64> = found.iter().map(|it| it.3).collect();
    executed.sort_unstable();
    let least = executed[0];
    let expected: Vec<u64> = (0..2000).map(|it| least + 2 * it).collect();
    assert_eq!(executed[..2000], expected);
    assert_eq!(spun(&shop, &[]), (2000, 2000 * 2001 + 2 * 2000));
    let whole = instructions(&shop, &[]).values().sum::<u64>();
    assert_eq!(executed.iter().sum::<u64>(), whole);
}

#[test]
fn threads_of_a_process_that_was_attached_to_are_told_apart() {
    let shop = shop(
        r#"
static void *work(void *rounds)
{
    char go[2];
    read(0, go, 1);
    spin((long)rounds);
    return 0;
}
int main(void)
{
    pthread_t one, other;
    pthread_create(&one, 0, work, (void *)100);
    pthread_create(&other, 0, work, (void *)100);
    puts("started");
    fflush(stdout);
    pthread_join(one, 0);
    pthread_join(other, 0);
    spin(3);
    return 0;
}
"#,
    );
    let mut program = Started::new(&mut shop.command("./it"));
    let pid = program.child.id().to_string();
    let mut attach = shop.command(HEADCOUNT);
    let mut attached = attach
        .args(["attach", "--per-thread", "--modules", "main", &pid])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = attached.stderr.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stderr));
    assert!(lines.any(|it| it.unwrap().contains("counting process")));
    program.tell("12");
    program.rest();
    assert!(lines.all(|it| it.is_ok()));
    assert!(attached.wait().unwrap().success());
    let mut spun: Vec<(u64, u64)> = threads(&shop)
        .iter()
        .map(|it| spun(&shop, &["--thread", &it.1]))
        .collect();
    spun.sort_unstable();
    assert_eq!(spun, [(1, 8), (1, 202), (1, 202)]);
    must_add_up(&shop);
}

#[test]
fn profiles_that_are_merged_keep_threads_apart() {
    let shop = shop(THREADS_C);
    count(&shop, &["--modules", "main", "--", "./it"]);
    shop.must(&[HEADCOUNT, "merge", "-o", "all.db", "headcount.db"]);
    let words = ["-i", "all.db", "--thread", "spins 300"];
    assert_eq!(spun(&shop, &words), (3, 3 * 602));
    let thread = ["--thread", "spins 300"];
    let words = ["annotate", "-i", "all.db", "it.c"];
    let said = shop.headcount(&[&words[..], &thread].concat());
    assert!(said.stdout.contains("Only what thread"), "{said:?}");
    let words = ["export", "-i", "all.db", "--format", "json"];
    let said = shop.headcount(&[&words[..], &thread].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let shop = shop("int main(void) { spin(10); return 0; }");
    let others: [&[&str]; 7] = [
        &["--engine", "breakpoint"],
        &["--limit", "3"],
        &["--calls"],
        &["--until", "instructions=5"],
        &["--targets"],
        &["--only", "main"],
        &["--unit", "function"],
    ];
    for other in others {
        let words = ["run", "--per-thread"];
        let said = shop.headcount(&[&words[..], other, &["--", "./it"]].concat());
        assert_eq!(said.status, Some(125), "{other:?} {said:?}");
        assert!(said.stderr.contains("--per-thread: "), "{other:?} {said:?}");
    }
    count(&shop, &["--", "./it"]);
    let said = shop.headcount(&["report", "--thread", "nobody", "--process", "it"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    let why = "there was no thread nobody of process it; threads were called it;";
    assert!(said.stderr.contains(why), "{said:?}");
    let said = shop.headcount(&["report", "--by", "thread", "--only", "main"]);
    assert!(said.stderr.contains("--thread NAME"), "{said:?}");
    // Names are their program's choice.
    let name = r#"
int main(void)
{
    pthread_setname_np(pthread_self(), "=a\033[31m\n");
    return 0;
}"#;
    shop.build("it", &format!("{SPIN}{name}"), &GCC);
    count(&shop, &["--", "./it"]);
    for words in [
        &["--by", "thread"][..],
        &["--by", "process"],
        &["--thread", "=a*"],
    ] {
        let text = shop.report(words);
        assert!(text.contains("=a") && !text.contains('\x1b'), "{text}");
    }
    assert!(threads(&shop)[0].2.starts_with("'=a"));
}
