//! System calls by number: against `strace`, programs that state how often they make them, and the
//! number of `syscall` instructions that were executed.

use crate::workshop::started::Started;
use crate::workshop::{HEADCOUNT, Said, Workshop, have};
use std::collections::{BTreeMap, BTreeSet};

const NUMBERS: &str = include_str!("system_calls/numbers.c");
const BUSY: &str = include_str!("system_calls/busy.c");

/// How often calls were made, by name.
type Calls = BTreeMap<String, u64>;

/// What threads do about locks and memory depends on who comes first; how often a handler of SIGCHLD
/// runs, and looks for children, on how many end at the same time. Names of temporary files are made of
/// chance, and so are the hashes of python, for which it needs more or less memory.
const CHANCE: [&str; 10] = [
    "futex",
    "getrandom",
    "madvise",
    "mmap",
    "mprotect",
    "munmap",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sched_yield",
    "wait4",
];

/// Somebody else's program: what it is about, what must be done before, its words, and whether
/// chance has a part in what it does.
struct Other(&'static str, &'static str, &'static [&'static str], bool);

#[rustfmt::skip]
const OTHERS: [Other; 13] = [
    Other("ls", "", &["ls", "-la", "/usr/lib"], false),
    Other("sort", "", &["sort", "--parallel=1", "-n", "numbers", "-o", "sorted"], false),
    Other("sort with threads", "", &["sort", "--parallel=4", "-S1M", "-n", "numbers", "-o", "sorted"], true),
    Other("gzip", "rm -f numbers.gz", &["gzip", "-k", "numbers"], false),
    Other("xz with threads", "rm -f numbers.xz", &["xz", "-kT2", "numbers"], true),
    Other("find", "", &["find", "/usr/share/doc/gcc-12-base", "/etc/apt", "-newer", "/etc/passwd"], false),
    Other("tar", "", &["tar", "-cf", "all.tar", "numbers", "script"], false),
    Other("python3", "", &["/usr/bin/python3", "-c", PYTHON], true),
    Other("perl", "", &["perl", "-e", PERL], false),
    Other("sqlite3", "rm -f a.db", &["sqlite3", "a.db", SQL], false),
    Other("sh", "", &["sh", "script"], true),
    Other("bash", "", &["bash", "script"], true),
    Other("make", "", &["make", "-sf", "rules"], true),
];

const PYTHON: &str = "import json, subprocess; subprocess.run(['true']); json.dumps([1] * 99999)";
const PERL: &str =
    "$SIG{USR1} = sub { print STDERR `echo hi` }; kill USR1, $$; fork || exit 3; wait";
const SQL: &str = "create table t(a); insert into t values (1), (2); begin; delete from t; commit;";
const SCRIPT: &str = "\
for i in 1 2 3; do echo $i | cat | wc -c; done
(exit 3)
x=$(ls /)
test -n \"$x\" && sleep 0.01
exec true
";
const RULES: &str = "all: a b\na b:\n\t@echo $@ > $@.out\n";

/// What `strace` saw. A call that it tells of in two parts is one. One that the kernel begins again,
/// because a signal came, it tells of twice, although the instruction was not completed the first time.
fn seen(log: &str) -> Calls {
    let mut calls = Calls::new();
    for line in log.lines() {
        let (_, what) = line.trim_start().split_once(' ').unwrap();
        if what.contains("= ? ERESTARTNOINTR") {
            if let Some(resumed) = what.trim_start().strip_prefix("<... ") {
                let name = resumed.split(' ').next().unwrap();
                *calls.get_mut(name).unwrap() -= 1;
            }
            continue;
        }
        let name = what.trim_start().split('(').next().unwrap();
        let is_name = |it: char| it == '_' || it.is_ascii_alphanumeric();
        if what.contains('(') && name.chars().all(is_name) {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
    }
    calls
}

/// What a report says, which must be as many as `syscall` instructions were executed.
fn calls_of(said: &Said) -> Calls {
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(!said.stderr.contains("system call"), "{said:?}");
    let mut rows = said.stdout.lines().map(|row| row.split(',').collect());
    assert_eq!(rows.next(), Some(vec!["name", "number", "count"]));
    let mut calls = Calls::new();
    for row in rows {
        *calls.entry(row[0].to_owned()).or_default() += row[2].parse::<u64>().unwrap();
    }
    calls
}

fn counted(shop: &Workshop, more: &[&str]) -> Calls {
    let words = ["report", "--by", "syscall", "--format", "csv"];
    calls_of(&shop.headcount(&[&words, more].concat()))
}

#[test]
fn numbers_are_those_that_strace_sees() {
    if !have("strace") {
        return;
    }
    let shop = Workshop::new();
    let numbers: Vec<String> = (0..99_999)
        .map(|it| (it * 7919 % 100_003).to_string())
        .collect();
    shop.write("numbers", numbers.join("\n"));
    shop.write("script", SCRIPT);
    shop.write("rules", RULES);
    for Other(name, before, words, has_chance) in OTHERS {
        if !have(words[0]) {
            continue;
        }
        let strace = ["strace", "-f", "-o", "log"];
        shop.must(&["sh", "-c", before]);
        let alone = shop.run(&[&strace, words].concat());
        shop.must(&["sh", "-c", before]);
        shop.forget();
        let said = shop.counted(&[&["--wait", "--"], words].concat());
        assert_eq!(said.status, alone.status, "{name}: {said:?}");
        let mut seen = seen(&std::fs::read_to_string(shop.path("log")).unwrap());
        // The first call is that of strace itself, which becomes the program by it.
        *seen.get_mut("execve").unwrap() -= 1;
        seen.retain(|_, times| *times > 0);
        let mut counted = counted(&shop, &[]);
        if has_chance {
            let is_sure = |name: &String, _: &mut u64| !CHANCE.contains(&name.as_str());
            seen.retain(is_sure);
            counted.retain(is_sure);
        }
        assert_eq!(counted, seen, "{name}");
        assert!(counted.len() > 8, "{name}: {counted:?}");
    }
}

/// What the program states, by name and number.
fn stated() -> BTreeSet<String> {
    let lines = NUMBERS.lines().filter_map(|it| it.strip_prefix("//= "));
    let row = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap();
        let (number, name, times) = (word(), word(), word());
        format!("{name},{number},{times}")
    };
    lines.map(row).collect()
}

#[test]
fn every_kind_of_number_is_counted() {
    for flags in [
        ["-O2", "-pthread"].as_slice(),
        &["-O0", "-pthread", "-static"],
    ] {
        let shop = Workshop::with("numbers", NUMBERS, flags);
        assert_eq!(shop.must_count(&["./numbers"]), "10\n");
        let once = counted(&shop, &[]);
        let csv = shop.report(&["--by", "syscall", "--format", "csv"]);
        let rows: BTreeSet<String> = csv.lines().map(str::to_owned).collect();
        for row in stated() {
            assert!(rows.contains(&row), "{row}: {csv}");
        }
        // The hottest comes first, and a sum is a sum.
        assert!(csv.starts_with("name,number,count\ngetppid,110,"), "{csv}");
        assert_eq!(shop.must_count(&["./numbers"]), "10\n");
        let sum = counted(&shop, &["--runs", "all"]);
        assert_eq!(sum["getppid"], 2 * once["getppid"]);
    }
}

#[test]
fn what_has_no_number_is_told() {
    let shop = Workshop::with("numbers", NUMBERS, &["-O2", "-pthread", "-static"]);
    let note = |more: &[&str]| -> String {
        let said = shop.counted(&[more, &["./numbers", "more"]].concat());
        assert_eq!(said.stdout, "10\n", "{said:?}");
        let text = shop.report(&["--by", "syscall"]);
        let mut lines = text.lines().map(str::trim);
        let found = lines.find(|it| it.contains("system call"));
        found.unwrap_or_default().to_owned()
    };
    let int_80 = "Of 11 system calls the number is not known: made by `int 0x80` or `sysenter`";
    assert!(note(&[]).starts_with(int_80), "{}", note(&[]));
    let none = note(&["--engine", "breakpoint"]);
    assert!(
        none.contains("in a run with `--engine breakpoint`"),
        "{none}"
    );
    let some = note(&["--only", "main"]);
    assert!(
        some.contains("fewer: made by functions that were not chosen"),
        "{some}"
    );
    for words in [
        ["--only", "main"].as_slice(),
        &["--never"],
        &["--events", "loads"],
    ] {
        let said = shop.headcount(&[&["report", "--by", "syscall"], words].concat());
        assert_eq!(said.status, Some(2), "{said:?}");
    }
}

#[test]
fn numbers_are_exact_at_any_moment() {
    let shop = Workshop::with("busy", BUSY, &["-O2", "-pthread"]);
    let run = ["run", "-q", "./busy"];
    let mut started = Started::new(shop.command(HEADCOUNT).args(run));
    let pid = started.child.id().to_string();
    let mut last = Calls::new();
    for moment in 0..40 {
        let query = ["query", &pid, "--by", "syscall", "--format", "csv"];
        let now = calls_of(&shop.headcount(&query));
        for (name, times) in &last {
            assert!(now.get(name) >= Some(times), "{name}: {last:?} {now:?}");
        }
        last = now;
        if moment == 20 {
            let said = shop.headcount(&["mark", &pid, "steady"]);
            assert_eq!(said.status, Some(0), "{said:?}");
        }
    }
    let program = started.counted();
    let program = program.split(' ').next().unwrap();
    shop.must(&["kill", "-KILL", program]);
    assert_eq!(started.child.wait().unwrap().code(), Some(128 + 9));
    drop(started);
    let whole = counted(&shop, &[]);
    for (name, times) in &last {
        assert!(whole.get(name) >= Some(times), "{name}: {last:?} {whole:?}");
    }
    // Each handler makes one call, and then returns, unless its thread is killed before.
    let unreturned = whole["getuid"].checked_sub(whole["rt_sigreturn"]);
    assert!(unreturned.is_some_and(|it| it <= 3), "{whole:?}");
    let mut sum = counted(&shop, &["--phase", "start"]);
    for (name, times) in counted(&shop, &["--phase", "steady"]) {
        *sum.entry(name).or_default() += times;
    }
    assert_eq!(sum, whole);
}

#[test]
fn a_program_that_is_let_go_of_was_counted_exactly() {
    let shop = Workshop::with("busy", BUSY, &["-O2", "-pthread"]);
    let busy = Started::new(&mut shop.command(shop.path("busy")));
    let pid = busy.child.id().to_string();
    for _ in 0..3 {
        shop.forget();
        let said = shop.headcount(&["attach", "-q", "--for", "300ms", &pid]);
        assert_eq!(said.status, Some(0), "{said:?}");
        assert!(counted(&shop, &[])["getppid"] > 0);
    }
}
