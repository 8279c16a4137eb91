//! `headcount attach`: a program that already runs is counted, and goes on as if nothing had been.

use crate::workshop;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Answers a number with as many rounds of work, done by eight threads; in between they idle. Every
/// round is checked by the program itself.
const SERVER: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t begin, end;
static long rounds;
static unsigned long expected;
static atomic_ulong wrong;

__attribute__((noipa)) static unsigned long work(unsigned long x) {
    unsigned long sum = 0;
    for (int i = 0; i < 20; i++) {
        switch (x % 5) {
        case 0: sum += x; break;
        case 1: sum ^= x << 3; break;
        case 2: sum -= i; break;
        case 3: sum *= 3; break;
        default: sum = ~sum; break;
        }
        x = x * 6364136223846793005UL + 1442695040888963407UL;
    }
    return sum;
}

static void *worker(void *unused) {
    for (;;) {
        pthread_barrier_wait(&begin);
        if (rounds < 0)
            return NULL;
        for (long i = 0; i < rounds; i++)
            if (work(12345) != expected)
                wrong++;
        pthread_barrier_wait(&end);
    }
}

int main(void) {
    pthread_t threads[8];
    expected = work(12345);
    pthread_barrier_init(&begin, NULL, 9);
    pthread_barrier_init(&end, NULL, 9);
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    char line[100];
    while (fgets(line, sizeof line, stdin)) {
        rounds = atol(line);
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        printf("%ld done, %lu wrong\n", rounds, (unsigned long)wrong);
        fflush(stdout);
    }
    rounds = -1;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    return wrong != 0;
}
"#;

/// Makes a child that stays in its parent's memory until it is told to go on.
const PARENT: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    char byte;
    int status = 1;
    read(0, &byte, 1);
    pid_t child = vfork();
    if (child == 0) {
        read(0, &byte, 1);
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    return status != 0;
}
"#;

/// Waits in a signal handler to be told how much to do; does it when the handler has returned.
const INTERRUPTED: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static long rounds;
static volatile unsigned long sink;

__attribute__((noipa)) static void work(void) { sink++; }

static void handler(int signal) {
    char line[100];
    rounds = fgets(line, sizeof line, stdin) ? atol(line) : -1;
}

int main(void) {
    signal(SIGUSR1, handler);
    for (;;) {
        raise(SIGUSR1);
        if (rounds < 0)
            return 0;
        for (long i = 0; i < rounds; i++)
            work();
        printf("%ld done, 0 wrong\n", rounds);
        fflush(stdout);
    }
}
"#;

/// The server, running.
struct Server {
    folder: TempDir,
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Server {
    fn start() -> Self {
        let mut server = Self::of("server", SERVER);
        server.ask(1);
        server
    }

    fn of(name: &str, source: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let program = build(folder.path(), name, source);
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Self {
            folder,
            child,
            questions,
            answers,
        }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn say(&mut self, rounds: u32) {
        let questions = self.questions.as_mut().expect("it listens");
        writeln!(questions, "{rounds}").expect("it listens");
    }

    fn hear(&mut self, rounds: u32) {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        assert_eq!(answer, format!("{rounds} done, 0 wrong\n"));
    }

    fn ask(&mut self, rounds: u32) {
        self.say(rounds);
        self.hear(rounds);
    }

    /// All bytes of its executable mappings of its own file, as they are in memory.
    fn text(&self) -> Vec<u8> {
        let pid = self.pid();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
        let memory = File::open(format!("/proc/{pid}/mem")).expect("memory");
        let line = maps
            .lines()
            .find(|line| line.contains(" r-xp ") && line.ends_with("/server"))
            .expect("it has code");
        let (start, rest) = line.split_once('-').expect("a range");
        let end = rest.split(' ').next().expect("a range");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("hex");
        let (start, end) = (number(start), number(end));
        let mut bytes = vec![0; (end - start) as usize];
        memory.read_exact_at(&mut bytes, start).expect("readable");
        bytes
    }

    fn mappings(&self) -> usize {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid())).expect("maps");
        maps.lines().count()
    }

    fn headcount(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headcount"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("XDG_CACHE_HOME", workshop::shared_cache());
        command
    }

    /// Attaches to it; all breakpoints are in when this comes back.
    fn attach(&self) -> Child {
        let mut attach = self.headcount(&["attach", &self.pid()]);
        let mut attach = attach.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut stderr = BufReader::new(attach.stderr.take().expect("a pipe"));
        stderr.read_line(&mut line).expect("it speaks");
        assert!(line.contains("Ctrl-C lets go"), "{line}");
        attach.stderr = Some(stderr.into_inner());
        attach
    }

    /// Ends it, and sees that all it did was right.
    fn end(mut self) {
        drop(self.questions.take());
        assert!(self.child.wait().expect("it ends").success());
    }

    fn calls_of_work(&self) -> u64 {
        let mut report = self.headcount(&["report", "--format", "csv"]);
        let output = report.output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        let row = text.lines().find(|row| row.contains(",work,"));
        let row = row.unwrap_or_else(|| panic!("{text}"));
        let calls = row.split(',').nth(4).expect("a column");
        calls.parse().expect("a number")
    }
}

fn build(folder: &Path, name: &str, source: &str) -> std::path::PathBuf {
    let file = folder.join(format!("{name}.c"));
    fs::write(&file, source).expect("written");
    let program = folder.join(name);
    let mut compile = Command::new("gcc");
    compile.args(["-g", "-O1", "-pthread", "-o"]);
    let status = compile.arg(&program).arg(&file).status();
    assert!(status.expect("gcc runs").success());
    program
}

/// Sends headcount a signal, and waits for it to end in order.
fn send(signal: &str, headcount: &mut Child) {
    let pid = headcount.id().to_string();
    let kill = Command::new("kill").args([signal, &pid]).status();
    assert!(kill.expect("kill runs").success());
    assert!(headcount.wait().expect("it ends").success());
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "it never happens"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_busy_server_is_attached_to_many_times_and_goes_on_unharmed() {
    let mut server = Server::start();
    let (text, mappings) = (server.text(), server.mappings());
    for _ in 0..if workshop::is_thorough() { 200 } else { 25 } {
        server.say(1500);
        let pid = server.pid();
        let mut attach = server.headcount(&["attach", "-q", "--for", "20ms", &pid]);
        let output = attach.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        server.hear(1500);
        assert!(server.text() == text, "its code has changed");
    }
    assert_eq!(
        server.mappings(),
        mappings,
        "it has memory that it did not ask for"
    );
    server.end();
}

#[test]
fn every_call_between_attaching_and_letting_go_is_counted() {
    let mut server = Server::start();
    for signal in ["-INT", "-TERM"] {
        let mut attach = server.attach();
        server.ask(250);
        send(signal, &mut attach);
        assert_eq!(server.calls_of_work(), 8 * 250);
        server.ask(10);
    }
    server.end();
}

#[test]
fn a_signal_handler_that_began_before_returns_and_is_counted() {
    let mut server = Server::of("interrupted", INTERRUPTED);
    server.ask(1);
    for _ in 0..3 {
        let mut attach = server.attach();
        server.ask(20);
        server.ask(5);
        send("-INT", &mut attach);
        assert_eq!(server.calls_of_work(), 25);
        server.ask(10);
    }
    server.end();
}

#[test]
fn a_program_goes_on_when_headcount_is_killed() {
    let mut server = Server::start();
    let (text, mappings) = (server.text(), server.mappings());
    for moment in 0..if workshop::is_thorough() { 40 } else { 15 } {
        let mut attach = server.headcount(&["attach", "-q", &server.pid()]);
        let mut attach = attach.stderr(Stdio::piped()).spawn().expect("it starts");
        server.say(1500);
        std::thread::sleep(Duration::from_millis(moment * 7 % 80));
        attach.kill().expect("it is there");
        let _ = attach.wait();
        server.hear(1500);
        // Whoever still writes there has not ended.
        let mut said = String::new();
        let mut stderr = attach.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut said).expect("text");
        assert_eq!(said, "");
        assert!(server.text() == text, "its code has changed");
        assert_eq!(server.mappings(), mappings);
    }
    let mut attach = server.attach();
    server.ask(250);
    attach.kill().expect("it is there");
    let mut stderr = attach.stderr.take().expect("a pipe");
    let _ = stderr.read_to_string(&mut String::new());
    let _ = attach.wait();
    assert_eq!(server.calls_of_work(), 8 * 250);
    server.ask(10);
    server.end();
}

#[test]
fn a_program_that_ends_while_attached_to_is_counted_to_its_end() {
    let mut server = Server::start();
    let mut attach = server.attach();
    server.ask(50);
    drop(server.questions.take());
    assert!(attach.wait().expect("it ends").success());
    assert_eq!(server.calls_of_work(), 8 * 50);
    server.end();
}

#[test]
fn what_cannot_be_attached_to_is_named() {
    let mut server = Server::start();
    let pid = server.pid();
    let refusal = |args: &[&str]| complaint(&server.headcount(args).output().expect("it runs"));
    let says = |text: String, wanted: &str| assert!(text.contains(wanted), "{text}");
    says(refusal(&["attach", "1"]), "first process of the system");
    says(
        refusal(&["attach", "2147483647"]),
        "there is no process 2147483647",
    );
    let thread = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let thread = thread
        .map(|it| {
            it.expect("a thread")
                .file_name()
                .into_string()
                .expect("a number")
        })
        .find(|it| *it != pid)
        .expect("it has threads");
    says(refusal(&["attach", &thread]), "a thread, not a process");
    let mut first = server.attach();
    says(refusal(&["attach", &pid]), "already traced by process");
    send("-INT", &mut first);
    server.ask(5);
    server.end();
}

#[test]
fn a_stopped_program_is_left_stopped() {
    let mut server = Server::start();
    let pid = server.pid();
    let _ = Command::new("kill").args(["-STOP", &pid]).status();
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).expect("a state");
    wait_until(|| state().contains(") T "));
    let output = server
        .headcount(&["attach", &pid])
        .output()
        .expect("it runs");
    assert!(complaint(&output).contains("it is stopped"));
    assert!(state().contains(") T "), "{}", state());
    let _ = Command::new("kill").args(["-CONT", &pid]).status();
    server.ask(5);
    server.end();
}

#[test]
fn a_parent_that_waits_for_a_child_in_its_memory_is_let_go_of() {
    let mut parent = Server::of("parent", PARENT);
    let mut attach = parent.attach();
    let tell = |parent: &mut Server| {
        let questions = parent.questions.as_mut().expect("it listens");
        questions.write_all(b"x").expect("it listens");
    };
    tell(&mut parent);
    let pid = parent.pid();
    let children = format!("/proc/{pid}/task/{pid}/children");
    wait_until(|| !fs::read_to_string(&children).expect("a list").is_empty());
    let _ = Command::new("kill")
        .args(["-INT", &attach.id().to_string()])
        .status();
    wait_until(|| attach.try_wait().expect("ours").is_some());
    assert!(attach.wait().expect("it has ended").success());
    tell(&mut parent);
    parent.end();
}

#[test]
fn a_program_may_be_killed_at_any_moment_of_being_attached_to() {
    let step = if workshop::is_thorough() { 1 } else { 3 };
    for round in (0..40).step_by(step) {
        let mut server = Server::start();
        server.say(100_000);
        let pid = server.pid();
        let mut attach = server.headcount(&["attach", "-q", "--for", "15ms", &pid]);
        let attach = attach.stderr(Stdio::piped()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_micros(round * 1000));
        server.child.kill().expect("it is ours");
        let output = attach.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 125)), "{said}");
        assert!(!said.contains("panicked"), "{said}");
        server.child.wait().expect("it has ended");
    }
}

#[test]
fn the_time_to_count_for_begins_when_counting_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "volatile long sum; int main(void) { for (;;) sum++; }\n";
    let program = build(folder.path(), "spin", source);
    let mut child = Command::new(program).spawn().expect("it starts");
    let mut attach = Command::new(workshop::HEADCOUNT);
    attach.args(["attach", "--for", "300ms", &child.id().to_string()]);
    // Without a cache it takes a while to look at the files.
    attach.env("XDG_CACHE_HOME", folder.path().join("cache"));
    attach.current_dir(folder.path()).stderr(Stdio::piped());
    let mut attach = attach.spawn().expect("it starts");
    let mut said = BufReader::new(attach.stderr.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    let begun = Instant::now();
    assert!(line.contains("counting process"), "{line}");
    let status = attach.wait().expect("it ends");
    let counted_for = begun.elapsed();
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    assert!(status.success());
    // The line takes a moment to get here.
    assert!(counted_for > Duration::from_millis(290), "{counted_for:?}");
}

/// Has the kernel do something in a thread of the kernel's, over and over. Says `no` where it may
/// not.
const RING_C: &str = "\
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static char *ring;
static struct io_uring_params params;
static struct io_uring_sqe *entries;
static int fd;
__attribute__((noipa)) void ask(void)
{
    unsigned *tail = (unsigned *)(ring + params.sq_off.tail);
    unsigned mask = *(unsigned *)(ring + params.sq_off.ring_mask);
    unsigned at = *tail & mask;
    memset(&entries[at], 0, sizeof *entries);
    entries[at].opcode = IORING_OP_NOP;
    entries[at].flags = IOSQE_ASYNC;
    ((unsigned *)(ring + params.sq_off.array))[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0);
    unsigned *head = (unsigned *)(ring + params.cq_off.head);
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
}
int main(void)
{
    int rights = PROT_READ | PROT_WRITE;
    fd = syscall(SYS_io_uring_setup, 8, &params);
    if (fd < 0 || !(params.features & IORING_FEAT_SINGLE_MMAP)) {
        puts(\"no\");
        return 0;
    }
    ring = mmap(0, 1 << 16, rights, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    entries = mmap(0, 8 * sizeof *entries, rights, MAP_SHARED, fd, IORING_OFF_SQES);
    ask();
    puts(\"started\");
    fflush(stdout);
    for (;;) {
        ask();
        usleep(1000);
    }
}
";

#[test]
fn threads_that_only_work_for_the_kernel_are_none_of_the_programs() {
    let folder = tempfile::tempdir().unwrap();
    let ring = build(folder.path(), "ring", RING_C);
    let mut command = Command::new(ring);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    if line == "no\n" {
        child.wait().unwrap();
        eprintln!("skipped: there is no io_uring here");
        return;
    }
    let pid = child.id().to_string();
    let attach = |_| {
        let mut attach = Command::new(workshop::HEADCOUNT);
        attach.args(["attach", "--for", "50ms", "-o", "ring.db", &pid]);
        attach.current_dir(folder.path()).output().unwrap()
    };
    let outputs: Vec<Output> = (0..5).map(attach).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    for output in outputs {
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("1 process, 1 thread"), "{said}");
    }
}
