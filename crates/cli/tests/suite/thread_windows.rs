//! Every thread has counters of its own, whatever its program may still do when the thread begins;
//! and nothing is left of them when headcount lets go.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::workshop::started::Started;
use crate::workshop::{self, HEADCOUNT, Workshop, is_root};

/// `mix` keeps values in registers and flags over the borders of blocks, so that whoever shares the
/// scratch word of its probes computes something else. Each thread calls it a thousand times.
const THREADS: &str = r#"
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

unsigned long mix(unsigned long value, unsigned long rounds);
__asm__(".text\n.globl mix\n.type mix,@function\n"
        "mix: mov %rdi, %rax\n"
        "1: imul $1000003, %rax, %rax\n add %rsi, %rax\n js 2f\n lea 5(%rax), %rax\n"
        "2: jo 3f\n lea 7(%rax), %rax\n"
        "3: add $1, %rax\n dec %rsi\n jnz 1b\n ret\n"
        ".size mix, .-mix\n");

static unsigned long results[128];
static pthread_barrier_t all_run;

static void *work(void *number) {
    unsigned long value = 1;
    pthread_barrier_wait(&all_run);
    for (int i = 0; i < 1000; i++)
        value = mix(value, 300);
    results[(long)number] = value;
    return NULL;
}

static int drop_privileges(void) { return setgid(65534) || setuid(65534); }

static int filter_calls(void) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, allow};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int limit_memory(void) {
    struct rlimit limit = {400 << 20, 400 << 20};
    if (setrlimit(RLIMIT_AS, &limit))
        return 1;
    void *half = malloc(200 << 20);
    free(half);
    return half == NULL;
}

static int close_files(void) {
    struct rlimit limit = {3, 3};
    return setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int count, char **words) {
    int threads = atoi(words[1]);
    int failed = 0;
    if (!strcmp(words[2], "drops"))
        failed = drop_privileges();
    else if (!strcmp(words[2], "filters"))
        failed = filter_calls();
    else if (!strcmp(words[2], "limits"))
        failed = limit_memory();
    else if (!strcmp(words[2], "closes"))
        failed = close_files();
    if (failed) {
        perror(words[2]);
        return 1;
    }
    pthread_t all[128];
    pthread_barrier_init(&all_run, NULL, threads);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&all[i], NULL, work, (void *)i))
            return 2;
    int wrong = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i], NULL);
        wrong += results[i] != results[0];
    }
    int status = 0;
    if (fork() == 0)
        _exit(mix(1, 300) == 0);
    wait(&status);
    printf("%d wrong, child %d\n", wrong, status);
    return 3;
}
"#;

fn threads() -> Workshop {
    let shop = Workshop::new();
    shop.write("threads.c", THREADS);
    shop.must(&["gcc", "-O1", "-pthread", "threads.c", "-o", "threads"]);
    shop
}

/// Runs so many threads, and answers how often they called `mix`.
fn calls_of_mix(shop: &Workshop, threads: &str, how: &str) -> u64 {
    let said = shop.headcount(&["run", "-q", "--", "./threads", threads, how]);
    let got = (said.stdout.as_str(), said.status);
    assert_eq!(got, ("0 wrong, child 0\n", Some(3)), "{said:?}");
    shop.functions()["mix"].calls
}

#[test]
fn threads_that_begin_after_privileges_were_dropped_count_for_themselves() {
    if is_root() {
        assert_eq!(calls_of_mix(&threads(), "40", "drops"), 40_001);
    }
}

#[test]
fn a_program_that_limits_its_own_memory_gets_all_of_it() {
    assert_eq!(calls_of_mix(&threads(), "12", "limits"), 12_001);
}

#[test]
fn a_program_without_a_descriptor_left_gets_windows_for_its_threads() {
    assert_eq!(calls_of_mix(&threads(), "20", "closes"), 20_001);
}

#[test]
fn threads_that_begin_behind_a_filter_of_system_calls_have_counters_that_were_mapped_ahead() {
    assert_eq!(calls_of_mix(&threads(), "50", "filters"), 50_001);
}

#[test]
fn a_process_whose_thread_can_have_no_counters_is_let_go_of_before_that_runs() {
    let shop = threads();
    let calls = calls_of_mix(&shop, "100", "filters");
    assert!(calls < 100_001, "{calls}");
    let report = shop.headcount(&["report"]).stdout;
    let note = "./threads is counted no further";
    assert!(report.contains(note), "{report}");
}

/// Waits to be told, and then calls `tick` as often as it is told, in each of its threads, in a
/// child that ran before, and in one that is made then.
const SERVER: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long ticks;
static int begin[2];

__attribute__((noipa)) static void tick(void) { ticks++; }

static void *work(void *unused) {
    char byte;
    if (read(begin[0], &byte, 1) == 1)
        for (int i = 0; i < 1000; i++)
            tick();
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[12];
    char line[10];
    setvbuf(stdin, NULL, _IONBF, 0);
    if (pipe(begin))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        work(NULL);
        _exit(0);
    }
    for (int i = 0; i < 12; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    puts("started");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && line[0] == 'f') {
        // Children come and go.
        if (fork() == 0)
            _exit(0);
        wait(NULL);
        puts("forked");
        fflush(stdout);
    }
    if (fork() == 0) {
        tick();
        _exit(0);
    }
    for (int i = 0; i < 13; i++)
        if (write(begin[1], "x", 1) != 1)
            return 1;
    for (int i = 0; i < 12; i++)
        pthread_join(threads[i], NULL);
    while (wait(NULL) > 0)
        ;
    return 0;
}
"#;

/// The server, as this user.
fn server(shop: &Workshop, user: Option<u32>) -> Started {
    shop.write("server.c", SERVER);
    shop.must(&["gcc", "-O1", "-pthread", "server.c", "-o", "server"]);
    let mut command = shop.command(shop.path("server"));
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    Started::new(&mut command)
}

fn children(pid: &str) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().map(str::to_owned).collect()
}

fn maps(pid: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/maps")).unwrap()
}

/// Attaches; headcount counts when this comes back.
fn attach(shop: &Workshop, words: &[&str]) -> std::process::Child {
    use std::io::BufRead;
    let mut command = shop.command(HEADCOUNT);
    command.arg("attach").args(words);
    let mut child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let mut lines = std::io::BufReader::new(stderr).lines();
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("Ctrl-C lets go"), "{line}");
    std::thread::spawn(move || lines.count());
    child
}

fn let_go(mut headcount: std::process::Child) {
    workshop::started::send("INT", &headcount.id().to_string());
    assert!(headcount.wait().unwrap().success());
}

fn count_server(user: Option<u32>, words: &[&str]) -> u64 {
    let shop = Workshop::new();
    let mut server = server(&shop, user);
    let pid = server.child.id().to_string();
    let headcount = attach(&shop, &[words, &[&pid]].concat());
    server.tell("go\n");
    assert_eq!(server.rest().status, Some(0));
    let mut headcount = headcount;
    assert!(headcount.wait().unwrap().success());
    shop.functions()["tick"].calls
}

#[test]
fn root_counts_a_process_of_another_user() {
    if is_root() {
        assert_eq!(count_server(Some(65534), &[]), 12_001);
    }
}

#[test]
fn children_that_already_run_are_counted_if_they_are_wanted() {
    assert_eq!(count_server(None, &[]), 12_001);
    assert_eq!(count_server(None, &["--children"]), 13_001);
}

#[test]
fn letting_go_leaves_no_memory_behind_in_a_program_that_forks() {
    let shop = Workshop::new();
    let mut server = server(&shop, None);
    let pid = server.child.id().to_string();
    let child = children(&pid).remove(0);
    let before = [maps(&pid), maps(&child)];
    for round in 0..5 {
        let headcount = attach(&shop, &["--children", &pid]);
        for _ in 0..3 {
            server.tell("f\n");
            assert_eq!(server.line(), "forked");
        }
        let_go(headcount);
        assert_eq!([maps(&pid), maps(&child)], before, "round {round}");
    }
    server.tell("go\n");
    assert_eq!(server.rest().status, Some(0));
}

/// A program of so many functions that its counters do not fit what is mapped of windows at first.
fn many_functions(main: &str) -> String {
    use std::fmt::Write;
    const FUNCTIONS: usize = 6000;
    let mut text = String::from(
        "#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdio.h>\n\
         #include <sys/wait.h>\n#include <unistd.h>\n",
    );
    for number in 0..FUNCTIONS {
        writeln!(
            text,
            "__attribute__((noinline)) int f{number}(int x) {{ if (x & 1) x += {number}; if (x & 2) \
             x ^= 5; while (x & 4) x -= 3; return x > 9 ? x : -x; }}"
        )
        .unwrap();
    }
    let names: Vec<String> = (0..FUNCTIONS).map(|it| format!("f{it}")).collect();
    writeln!(text, "static int (*all[])(int) = {{{}}};", names.join(",")).unwrap();
    text.push_str(
        "static int some(int from, int to) { int sum = 0; for (int i = from; i < to; i++) sum += \
         all[i](i); return sum; }\n",
    );
    text + main
}

/// They run in threads, in children that share memory, and in children that do not.
const IN_THREADS_AND_CHILDREN: &str = r#"
static void *work(void *number) {
    long first = (long)number * 1000;
    for (int i = 0; i < 3; i++)
        some(0, first + 1000);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int status, sum = 0;
    pid_t child = vfork();
    if (child == 0) {
        some(3000, 4500);
        _exit(7);
    }
    waitpid(child, &status, 0);
    sum += some(3000, 4500);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    if (fork() == 0) {
        some(0, 6000);
        _exit(0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    wait(NULL);
    printf("%d %d\n", sum, WEXITSTATUS(status));
    return 0;
}
"#;

/// All run in every one of four processes at the same time, whose other threads are busy.
const IN_PROCESSES_WITH_THREADS: &str = r#"
static volatile int is_done;

static void *spin(void *none) {
    while (!is_done)
        some(0, 1);
    return none;
}

int main(void) {
    for (int child = 0; child < 4; child++) {
        if (fork() == 0) {
            pthread_t threads[3];
            for (int i = 0; i < 3; i++)
                pthread_create(&threads[i], NULL, spin, NULL);
            some(1, 6000);
            is_done = 1;
            for (int i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
"#;

#[test]
fn windows_grow_with_the_number_of_counters_under_threads_and_children() {
    let shop = Workshop::new();
    shop.write("many.c", many_functions(IN_THREADS_AND_CHILDREN));
    shop.must(&["gcc", "-O0", "-pthread", "many.c", "-o", "many"]);
    let native = shop.must(&["./many"]);
    let said = shop.headcount(&["run", "-q", "--", "./many"]);
    assert_eq!(
        (said.stdout.as_str(), said.status),
        (&*native, Some(0)),
        "{said:?}"
    );
    let functions = shop.functions();
    for (number, calls) in [
        (0, 10),
        (999, 10),
        (1000, 7),
        (2500, 4),
        (3000, 3),
        (4499, 3),
        (5999, 1),
    ] {
        assert_eq!(functions[&format!("f{number}")].calls, calls, "f{number}");
    }
}

#[test]
fn windows_grow_in_several_processes_at_once() {
    let shop = Workshop::new();
    shop.write("many.c", many_functions(IN_PROCESSES_WITH_THREADS));
    shop.must(&["gcc", "-O0", "-pthread", "many.c", "-o", "many"]);
    let run = ["timeout", "-s", "KILL", "60", HEADCOUNT, "run", "-q", "--"];
    shop.must(&[&run[..], &["./many"]].concat());
    let functions = shop.functions();
    for number in 1..6000 {
        assert_eq!(functions[&format!("f{number}")].calls, 4, "f{number}");
    }
}

#[test]
fn a_master_that_leaves_the_work_to_others_is_told_of() {
    let shop = Workshop::new();
    let mut server = server(&shop, None);
    let pid = server.child.id().to_string();
    let child = children(&pid).remove(0);
    let mut command = Command::new(HEADCOUNT);
    command.current_dir(shop.path(""));
    let said = workshop::said(command.args(["attach", "--for", "10ms", &pid]));
    assert!(said.stderr.contains(&child), "{said:?}");
    assert!(said.stderr.contains("--children"), "{said:?}");
    server.tell("go\n");
    assert_eq!(server.rest().status, Some(0));
}
