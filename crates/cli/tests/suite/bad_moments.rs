//! Bad moments: whatever happens to headcount or to its program, and whenever, both end within
//! seconds, or the program goes on as it was; and the status is right.

use crate::workshop::started::{Started, must_be_gone, send};
use crate::workshop::{HEADCOUNT, Workshop, said};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Works until it is told to end; what its argument names it ignores.
const STAYS_C: &str = "\
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile sig_atomic_t ends;
static void end(int signal) { ends = 1; }
__attribute__((noipa)) unsigned long work(unsigned long x) { return x * 31 + 7; }
int main(int argc, char **argv)
{
    unsigned long one = 1, other = 1;
    signal(SIGUSR1, end);
    if (argc > 1) {
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
    }
    puts(\"started\");
    fflush(stdout);
    while (!ends) {
        for (int i = 0; i < 1000; i++) {
            one = work(one);
            other = other * 31 + 7;
        }
        usleep(1000);
    }
    puts(one == other ? \"right\" : \"wrong\");
    return one == other ? 40 : 41;
}
";

/// Nothing here takes longer.
const LONG: Duration = Duration::from_secs(60);

fn end_of(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begin.elapsed() < LONG, "it hangs");
        sleep(Duration::from_millis(2));
    }
}

fn start(shop: &Workshop, words: &[&str]) -> Child {
    let mut command = shop.command(HEADCOUNT);
    command.args(["run", "-q"]).args(words);
    let said = fs::File::create(shop.path("said")).unwrap();
    let command = command.stdout(Stdio::null()).stderr(said);
    command.spawn().unwrap()
}

/// The process that headcount started, if it has already.
fn program_of(headcount: &Child) -> Option<String> {
    let pid = headcount.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next().map(str::to_owned)
}

fn nothing_is_left(shop: &Workshop) {
    let said = fs::read_to_string(shop.path("said")).unwrap_or_default();
    let left = shop.counter_files();
    assert!(left.is_empty(), "{left:?}: {said}");
}

#[test]
fn a_program_that_is_killed_at_any_moment_was_killed() {
    let shop = Workshop::with("stays", STAYS_C, &[]);
    for engine in ["detour", "breakpoint"] {
        for moment in 0..80 {
            let mut child = start(&shop, &["--engine", engine, "-o", "it.db", "./stays"]);
            sleep(Duration::from_micros(moment * 700));
            let begin = Instant::now();
            let program = loop {
                if let Some(program) = program_of(&child) {
                    break program;
                }
                assert!(begin.elapsed() < LONG, "it does not begin");
            };
            send("KILL", &program);
            let status = end_of(&mut child);
            assert_eq!(status.code(), Some(128 + 9), "{engine}, moment {moment}");
            nothing_is_left(&shop);
        }
    }
    let said = shop.headcount(&["report", "it.db"]);
    assert_eq!(said.status, Some(0), "{said:?}");
}

/// Four threads make threads when it ends.
const MAKES_C: &str = "\
#include <pthread.h>
#include <unistd.h>
static void *nothing(void *none) { return 0; }
static void *make(void *none)
{
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (;;) {
        pthread_t other;
        pthread_create(&other, &detached, nothing, 0);
    }
}
int main(void)
{
    pthread_t other;
    for (int i = 0; i < 4; i++)
        pthread_create(&other, 0, make, 0);
    usleep(3000);
    _exit(7);
}
";

#[test]
fn a_program_ends_while_threads_are_being_made() {
    let shop = Workshop::with("makes", MAKES_C, &["-pthread"]);
    for engine in ["detour", "breakpoint"] {
        for _ in 0..20 {
            let words = ["--engine", engine, "--modules", "main", "./makes"];
            let mut child = start(&shop, &words);
            assert_eq!(end_of(&mut child).code(), Some(7), "{engine}");
        }
    }
}

#[test]
fn a_signal_ends_headcount_and_its_program_at_any_moment() {
    let shop = Workshop::with("stays", STAYS_C, &[]);
    for moment in 0..60 {
        let name = ["TERM", "INT", "HUP"][moment as usize % 3];
        let number = [15, 2, 1][moment as usize % 3];
        let mut child = start(&shop, &["-o", "it.db", "./stays"]);
        sleep(Duration::from_micros(moment * 900));
        let program = program_of(&child);
        send(name, &child.id().to_string());
        let status = end_of(&mut child);
        let is_right = status.code() == Some(128 + number) || status.signal() == Some(number);
        assert!(is_right, "{name}, moment {moment}: {status:?}");
        if let Some(program) = program {
            must_be_gone(&program);
        }
    }
}

#[test]
fn two_signals_at_once_are_one() {
    // So does `timeout`: one for its child, and one for all of its group.
    let shop = Workshop::with("stays", STAYS_C, &[]);
    let mut command = shop.command("timeout");
    command.args(["1", HEADCOUNT, "run", "-q", "./stays"]);
    let said = said(&mut command);
    assert_eq!(said.status, Some(124), "{said:?}");
    assert_eq!(shop.calls("main"), Some(1));
    nothing_is_left(&shop);
}

#[test]
fn who_asks_again_gets_the_program_let_go_of() {
    for engine in ["detour", "breakpoint"] {
        let shop = Workshop::with("stays", STAYS_C, &[]);
        let words = ["--engine", engine, "./stays", "stubborn"];
        let mut started = Started::counting(&shop, &words);
        let program = started.counted();
        started.signal("TERM");
        sleep(Duration::from_millis(1200));
        assert!(
            started.child.try_wait().unwrap().is_none(),
            "the program lives"
        );
        started.signal("TERM");
        let status = end_of(&mut started.child);
        assert_eq!(status.code(), Some(128 + 15), "{engine}");
        let report = shop.report(&[]);
        assert!(
            report.contains("headcount was asked to end before the program did"),
            "{report}"
        );
        assert_eq!(shop.calls("main"), Some(1));
        // It goes on as if we had never been there.
        let status = fs::read_to_string(format!("/proc/{program}/status")).unwrap();
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
        send("USR1", &program);
        assert_eq!(started.line(), "right", "{engine}");
        nothing_is_left(&shop);
    }
}

#[test]
fn who_waits_for_others_can_be_ended() {
    let shop = Workshop::with("stays", STAYS_C, &[]);
    let words = [
        "--wait",
        "--",
        "sh",
        "-c",
        "./stays stubborn & sleep 1; exit 7",
    ];
    let mut started = Started::counting(&shop, &words);
    let shell = started.counted();
    let begin = Instant::now();
    while Path::new(&format!("/proc/{shell}")).exists() {
        assert!(begin.elapsed() < LONG);
        sleep(Duration::from_millis(10));
    }
    assert!(started.child.try_wait().unwrap().is_none(), "it waits");
    started.signal("INT");
    assert_eq!(end_of(&mut started.child).code(), Some(7));
    let report = shop.report(&[]);
    assert!(
        report.contains("Not ended when the program had: ./stays"),
        "{report}"
    );
    let (_, process) = report.split_once("./stays (process ").unwrap();
    send("USR1", process.split_once(')').unwrap().0);
    assert_eq!(started.line(), "right");
}

/// A small disk, which only root can make.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn new(at: &'a Path, kilobytes: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={kilobytes}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(at);
        let is_mounted = mount
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|it| it.success());
        if !is_mounted {
            eprintln!("skipped: only root can make a small disk");
        }
        is_mounted.then_some(Self(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn on_a_full_disk_the_program_runs_all_the_same() {
    let shop = Workshop::with("stays", STAYS_C, &[]);
    let disk = shop.path("disk");
    for engine in ["detour", "breakpoint"] {
        for kilobytes in [4, 8, 16, 40, 80, 160, 320, 640] {
            let Some(_disk) = SmallDisk::new(&disk, kilobytes) else {
                return;
            };
            let mut command = shop.command("timeout");
            command.env("HEADCOUNT_DIR", disk.join("counts"));
            command.args(["-k", "1", "60", HEADCOUNT, "run", "-q", "-o", "it.db"]);
            command.args(["--engine", engine]);
            let script = "./stays & sleep 0.3; kill -USR1 $!; wait $!";
            let said = said(command.args(["--", "sh", "-c", script]));
            assert_eq!(said.stdout, "started\nright\n", "{kilobytes} KB: {said:?}");
            assert_eq!(said.status, Some(40), "{kilobytes} KB: {said:?}");
        }
    }
}
