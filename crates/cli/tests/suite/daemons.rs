//! The program has ended, and others that it started go on.

use crate::workshop::{HEADCOUNT, Workshop, have, said};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Leaves a daemon behind that says in a file what it has done when there is a file `end`.
const DAEMON_C: &str = "\
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noipa)) unsigned long serve(unsigned long x) { return x * 31 + 7; }
static void stay(void)
{
    unsigned long one = 1, other = 1;
    int nothing = open(\"/dev/null\", O_RDWR);
    for (int i = 0; i < 3; i++)
        dup2(nothing, i);
    setsid();
    /* When the test has ended, its folder is gone, and so is the program. */
    while (access(\"end\", F_OK) != 0 && access(\"daemon\", F_OK) == 0) {
        one = serve(one);
        other = other * 31 + 7;
        usleep(1000);
    }
    FILE *text = fopen(\"said.new\", \"w\");
    fprintf(text, \"%s\\n\", one == other ? \"right\" : \"wrong\");
    FILE *maps = fopen(\"/proc/self/maps\", \"r\");
    char line[1000];
    while (fgets(line, sizeof line, maps))
        if (strstr(line, \"headcount\"))
            fprintf(text, \"%s\", line);
    FILE *status = fopen(\"/proc/self/status\", \"r\");
    while (fgets(line, sizeof line, status))
        if (strncmp(line, \"TracerPid:\\t0\", 12) != 0 && strncmp(line, \"TracerPid\", 9) == 0)
            fprintf(text, \"%s\", line);
    fclose(text);
    rename(\"said.new\", \"said\");
}
int main(int argc, char **argv)
{
    int many = atoi(argv[1]);
    int pipes[2];
    pipe(pipes);
    for (int i = 0; i < many; i++)
        if (fork() == 0) {
            write(pipes[1], \"x\", 1);
            close(pipes[0]);
            close(pipes[1]);
            stay();
            return 0;
        }
    for (int i = 0; i < many; i++) {
        char byte;
        read(pipes[0], &byte, 1);
    }
    puts(\"started\");
    return 3;
}
";

/// What the daemon says of itself in the end.
fn end_of_daemon(shop: &Workshop) -> String {
    fs::write(shop.path("end"), "").unwrap();
    let begin = Instant::now();
    loop {
        let said = fs::read_to_string(shop.path("said")).unwrap_or_default();
        if said.ends_with('\n') {
            return said;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "the daemon is gone"
        );
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_program_that_leaves_a_daemon_behind_ends_when_it_ends() {
    for engine in ["detour", "breakpoint"] {
        let shop = Workshop::with("daemon", DAEMON_C, &[]);
        let words = [
            "run",
            "--engine",
            engine,
            "--modules",
            "main",
            "./daemon",
            "1",
        ];
        let said = shop.headcount(&words);
        assert_eq!(
            (said.status, said.stdout.as_str()),
            (Some(3), "started\n"),
            "{said:?}"
        );
        let note = "Not ended when the program had: ./daemon (process ";
        assert!(said.stderr.contains(note), "{said:?}");
        assert_eq!(shop.calls("main"), Some(1));
        assert!(shop.report(&[]).contains(note));
        // It goes on as it would have, with nothing of ours in its memory.
        assert_eq!(end_of_daemon(&shop), "right\n", "{engine}");
    }
}

#[test]
fn who_wants_to_wait_counts_daemons_to_their_end() {
    let shop = Workshop::with("daemon", DAEMON_C, &[]);
    shop.write("end", "");
    let said = shop.counted(&["--wait", "--modules", "main", "./daemon", "3"]);
    assert_eq!(
        (said.status, said.stderr.as_str()),
        (Some(3), ""),
        "{said:?}"
    );
    assert_eq!(shop.calls("stay"), Some(3));
    assert!(end_of_daemon(&shop).starts_with("right\n"));
}

#[test]
fn of_many_that_stay_a_few_are_named() {
    let shop = Workshop::with("daemon", DAEMON_C, &[]);
    let said = shop.headcount(&["run", "--modules", "main", "./daemon", "8"]);
    assert_eq!(said.status, Some(3), "{said:?}");
    assert!(said.stderr.contains(", 3 more. What ran"), "{said:?}");
    assert!(end_of_daemon(&shop).starts_with("right\n"));
}

#[test]
fn children_that_the_program_waited_for_are_counted_every_time() {
    let shop = Workshop::new();
    shop.build(
        "one",
        "__attribute__((noipa)) int work(void) { return 0; } int main(void) { return work(); }",
        &[],
    );
    for _ in 0..20 {
        shop.forget();
        let script = "./one | ./one | ./one; ./one & wait; exit 4";
        let said = shop.counted(&["--modules", "one", "--", "sh", "-c", script]);
        assert_eq!(
            (said.status, said.stderr.as_str()),
            (Some(4), ""),
            "{said:?}"
        );
        assert_eq!(shop.calls("work"), Some(4));
    }
}

#[test]
fn an_agent_stays_when_its_starter_ends() {
    if !have("ssh-agent") {
        return;
    }
    let shop = Workshop::new();
    let script = format!(
        "eval $({HEADCOUNT} run -q ssh-agent -s) > /dev/null; ssh-add -l; ssh-agent -k > /dev/null"
    );
    let said = said(shop.command("timeout").args(["60", "sh", "-c", &script]));
    assert_eq!(said.stdout, "The agent has no identities.\n", "{said:?}");
}
