//! A counted program gets from whoever started it what it would get without headcount.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use crate::workshop::{HEADCOUNT, Said, Workshop, have, said};

/// Writes down all that a process inherits, in a file that its first argument names.
const INHERITED_C: &str = include_str!("inherited/inherited.c");

/// How a program is started.
const WAYS: [(&str, &[&str]); 4] = [
    ("run", &["run", "-q"]),
    (
        "run, with breakpoints",
        &["run", "-q", "--engine", "breakpoint"],
    ),
    ("stat", &["stat", "--report", "/dev/null"]),
    ("a run that is not counted", &["run", "-q", "--no-lists"]),
];

/// Without what headcount may not change, but the kernel does: which file `exec` was given.
fn inherited(shop: &Workshop, prepare: &str, words: &[&str], more: &str) -> (Said, String) {
    let _ = fs::remove_file(shop.path("inherited.txt"));
    let script = format!("{prepare}; exec \"$@\"");
    let program = ["./inherited", "inherited.txt", more];
    let mut command = shop.command("bash");
    command
        .args(["-c", &script, "bash"])
        .args(words)
        .args(program);
    command.env_remove("SHLVL");
    let said = said(&mut command);
    let text = fs::read_to_string(shop.path("inherited.txt"));
    (said, text.unwrap_or_default())
}

fn must_be_the_same(shop: &Workshop, prepare: &str) {
    for (name, words) in WAYS {
        let more = match name.contains("not counted") {
            true => "--list",
            false => "",
        };
        let words: Vec<&str> = [&[HEADCOUNT], words, &["--"]].concat();
        let (alone, expected) = inherited(shop, prepare, &["/usr/bin/env"], more);
        assert_eq!(alone.status, Some(5), "{prepare}: {alone:?}");
        let (counted, found) = inherited(shop, prepare, &words, more);
        assert_eq!(counted.status, Some(5), "{name}: {prepare}: {counted:?}");
        let differs = |(one, other): &(&str, &str)| one != other;
        let lines = expected.lines().zip(found.lines());
        let different: Vec<(&str, &str)> = lines.filter(differs).collect();
        assert_eq!(different, [], "{name}: {prepare}");
        assert_eq!(
            expected.lines().count(),
            found.lines().count(),
            "{name}: {prepare}"
        );
    }
}

#[test]
fn a_program_inherits_what_it_would_without_us() {
    let shop = Workshop::with("inherited", INHERITED_C, &[]);
    must_be_the_same(&shop, ":");
    must_be_the_same(
        &shop,
        "umask 027; exec 7</etc/passwd 9>>log 11<>both; read -r line <&7",
    );
    must_be_the_same(
        &shop,
        "export A=1 B= A=2 'C=x y'; cd /tmp/../tmp; cd - > /dev/null",
    );
}

#[test]
fn ignored_signals_stay_ignored_and_others_default() {
    let shop = Workshop::with("inherited", INHERITED_C, &[]);
    must_be_the_same(&shop, "trap '' PIPE");
    must_be_the_same(&shop, "trap '' XFSZ XCPU USR1 USR2 CHLD ALRM");
    must_be_the_same(&shop, "trap '' TRAP INT QUIT TERM HUP");
}

#[test]
fn descriptors_that_were_closed_are_closed() {
    let shop = Workshop::with("inherited", INHERITED_C, &[]);
    for which in 1..8 {
        let closed = (0..3).filter(|it| which & (1 << it) != 0);
        let closed: Vec<String> = closed.map(|it| format!("{it}>&-")).collect();
        must_be_the_same(&shop, &format!("exec {}", closed.join(" ")));
    }
}

#[test]
fn limits_are_the_programs_own() {
    let shop = Workshop::with("inherited", INHERITED_C, &[]);
    for limit in [
        "-n 30",
        "-f 300",
        "-v 300000",
        "-d 100000",
        "-s 500",
        "-s unlimited",
        "-c 0",
        "-t 50",
        "-l 10",
        "-q 1000",
        "-i 100",
        "-u 5000",
    ] {
        must_be_the_same(&shop, &format!("ulimit -S {limit}"));
    }
}

#[test]
fn a_blocked_signal_that_waits_and_a_timer_are_handed_on() {
    if !have("perl") {
        return;
    }
    let shop = Workshop::with("inherited", INHERITED_C, &[]);
    // The shell that is started here does it in its own name, and becomes the program.
    let prepare = "exec perl -e 'use POSIX; my $s = POSIX::SigSet->new(SIGUSR1, SIGUSR2, SIGTRAP); \
                   sigprocmask(SIG_BLOCK, $s); kill USR1 => $$; alarm 100; exec @ARGV' \"$@\"";
    must_be_the_same(&shop, prepare);
}

#[test]
fn a_timer_ends_the_program_not_us() {
    if !have("perl") {
        return;
    }
    let shop = Workshop::new();
    let mut command = shop.command("perl");
    command.args([
        "-e",
        "alarm 1; exec @ARGV",
        HEADCOUNT,
        "run",
        "-q",
        "-o",
        "it.db",
    ]);
    let status = command.args(["sleep", "100"]).status().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(128 + 14), None));
    assert!(shop.path("it.db").exists());
}

#[test]
fn a_compiler_inherits_it_too() {
    let shop = Workshop::with("inherited", INHERITED_C, &[]);
    // Any program will do for a compiler if it is not asked to assemble.
    let words = [HEADCOUNT, "cc", "--"];
    for prepare in [
        "trap '' PIPE",
        "exec 0<&-",
        "exec 1>&- 2>&-",
        "ulimit -S -n 20",
    ] {
        let (_, expected) = inherited(&shop, prepare, &["/usr/bin/env"], "-E");
        let (said, found) = inherited(&shop, prepare, &words, "-E");
        assert_eq!(said.status, Some(5), "{prepare}: {said:?}");
        assert_eq!(found, expected, "{prepare}");
    }
}
