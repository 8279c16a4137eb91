//! `report --by call`: who called whom, and how often, by both routes.

use crate::workshop;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

const SOURCE: &str = r#"
#include <stdlib.h>
__attribute__((noipa)) static int twice(int n) { return 2 * n; }
__attribute__((noipa)) static int apply(int (*f)(int), int n) { return f(n) + 1; }
int main(void) {
    int sum = 0;
    for (int i = 0; i < 7; i++)
        sum += twice(i);
    for (int i = 0; i < 5; i++)
        sum += apply(twice, i) + abs(i);
    if (sum < 0)
        abort();
    return 0;
}
"#;

fn run(folder: &TempDir, command: &str) -> String {
    let headcount = env!("CARGO_BIN_EXE_headcount");
    let output = Command::new("sh")
        .args(["-c", &command.replace("headcount", headcount)])
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", workshop::shared_cache())
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// How often callers called callees.
fn calls(folder: &TempDir) -> BTreeMap<(String, String), u64> {
    let csv = run(folder, "headcount report --by call --format csv");
    assert!(
        csv.starts_with("module,caller,address,callee,count\n"),
        "{csv}"
    );
    let mut calls = BTreeMap::new();
    for row in csv.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let count: u64 = fields[4].parse().expect("a count");
        *calls
            .entry((fields[1].to_owned(), fields[3].to_owned()))
            .or_default() += count;
    }
    calls
}

#[test]
fn call_sites_are_counted_by_both_routes() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("p.c"), SOURCE).expect("written");
    for build in [
        "gcc -O1 p.c -o p && headcount run -q -- ./p",
        "headcount cc -- gcc -O1 p.c -o p && ./p",
    ] {
        run(&folder, build);
        let calls = calls(&folder);
        let count = |caller: &str, callee: &str| {
            calls.get(&(caller.to_owned(), callee.to_owned())).copied()
        };
        assert_eq!(count("main", "twice"), Some(7), "{build}: {calls:?}");
        assert_eq!(count("main", "apply"), Some(5), "{build}: {calls:?}");
        assert_eq!(count("apply", "*"), Some(5), "{build}: {calls:?}");
    }
    let by_name = run(&folder, "headcount report --by call");
    assert!(by_name.contains("callee"), "{by_name}");
}

const CALLERS: &str = r#"
__attribute__((noipa)) static int dear(int n) { int s = 0; while (n-- > 0) s += n; return s; }
__attribute__((noipa)) static int often(int n) { return dear(n) + 1; }
__attribute__((noipa)) static int at_the_end(int n) { return dear(n + 1); }
int main(void) {
    int sum = 0;
    int (*volatile pointer)(int) = dear;
    for (int i = 0; i < 30; i++)
        sum += often(10);
    for (int i = 0; i < 9; i++)
        sum += at_the_end(10);
    sum += pointer(10);
    return sum == 0;
}
"#;

/// The program calls the library by way of the linker's stub, which is nobody's caller.
#[test]
fn callers_in_other_modules_are_told_and_not_their_stubs() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = "int add(int n) { return n + 1; }";
    fs::write(folder.path().join("add.c"), library).expect("written");
    let program = "int add(int); int main(void) { for (int i = 0; i < 7; i++) add(i); }";
    fs::write(folder.path().join("p.c"), program).expect("written");
    let build = "gcc -O1 -fpic -shared add.c -o libadd.so && gcc -O1 p.c -o p ./libadd.so";
    for binding in ["lazy", "now"] {
        run(
            &folder,
            &format!("{build} -Wl,-z,{binding} && headcount run -q -- ./p"),
        );
        let csv = run(&folder, "headcount report --callers add --format csv");
        let rows: Vec<Vec<&str>> = csv.lines().map(|it| it.split(',').collect()).collect();
        assert_eq!(rows.len(), 2, "{csv}");
        assert_eq!((rows[1][1], rows[1][4], rows[1][7]), ("main", "7", "call"));
    }
}

#[test]
fn callers_and_callees_are_told_with_jumps_and_pointers() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("p.c"), CALLERS).expect("written");
    run(
        &folder,
        "gcc -g -O2 p.c -o p && headcount run -q --modules main -- ./p",
    );
    let rows = |what: &str| -> BTreeMap<String, Vec<String>> {
        let csv = run(&folder, &format!("headcount report {what} --format csv"));
        let columns = "module,caller,address,callee,count,file,line,kind,inclusive_estimate\n";
        assert!(csv.starts_with(columns), "{csv}");
        let rows = csv.lines().skip(1);
        let rows = rows.map(|it| it.split(',').rev().map(str::to_owned).collect::<Vec<_>>());
        // From behind: what stands for the outside has a comma in it.
        rows.map(|it| (it[1].clone() + " by " + &it[2], it))
            .collect()
    };
    let callers = rows("--callers dear");
    let told: Vec<(&str, &str)> = callers
        .iter()
        .map(|(key, it)| (key.as_str(), it[4].as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("call by 3", "30"),
            ("jump by 4", "9"),
            ("unseen by 0", "1")
        ],
        "{callers:?}"
    );
    // Each loop has as many steps: what they cost is shared by calls.
    let total: u64 = callers
        .values()
        .map(|it| it[0].parse::<u64>().unwrap())
        .sum();
    let text = run(&folder, "headcount report --callers dear");
    assert!(text.contains("dear: 40 calls;"), "{text}");
    let function = run(&folder, "headcount report --only dear --format csv");
    let executed = function.lines().nth(1).unwrap().split(',').nth(5).unwrap();
    assert_eq!(total.to_string(), executed, "{callers:?}");
    let callees = rows("--callees main");
    assert!(
        callees.values().any(|it| it[4] == "30" && it[5] == "often"),
        "{callees:?}"
    );
    assert!(
        callees.values().any(|it| it[4] == "1" && it[5] == "*"),
        "{callees:?}"
    );
}

const INLINED: &str = r#"
volatile int sink;
static inline __attribute__((always_inline)) int step(int n) { while (n-- > 0) sink += n; return sink; }
static inline __attribute__((always_inline)) int twice(int n) {
    int sum = step(n);
    {
        int more = step(n + 1);
        sum += more;
    }
    return sum;
}
__attribute__((noipa)) static int other(int n) { return step(n) + 1; }
int main(void) {
    int sum = 0;
    for (int i = 0; i < 30; i++)
        sum += twice(10);
    for (int i = 0; i < 9; i++)
        sum += other(10);
    return sum == 0;
}
"#;

/// A function has callers even if no code of its own is left.
#[test]
fn callers_are_told_where_they_were_inlined() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("p.c"), INLINED).expect("written");
    for compiler in ["gcc -O0", "gcc -O2", "clang -O0", "clang -O1"] {
        run(
            &folder,
            &format!("{compiler} -g p.c -o p && headcount run -q --modules main -- ./p"),
        );
        let told = |name: &str| -> Vec<(String, u64, u64)> {
            let csv = run(
                &folder,
                &format!("headcount report --callers {name} --format csv"),
            );
            let rows = csv.lines().skip(1).map(|it| it.split(',').collect());
            let mut rows: Vec<_> = rows
                .map(|it: Vec<&str>| {
                    assert_eq!((it[3], it[7]), (name, "inlined"), "{csv}");
                    let number = |at: usize| it[at].parse().expect("a number");
                    (format!("{} {}", it[1], it[6]), number(4), number(8))
                })
                .collect();
            rows.sort();
            rows
        };
        // What an optimiser left tells how often at least.
        let is_optimised = !compiler.ends_with("-O0");
        let must_be = |name: &str, expected: &[(&str, u64)]| {
            let found = told(name);
            let callers: Vec<&str> = found.iter().map(|it| it.0.as_str()).collect();
            let all: Vec<&str> = expected.iter().map(|it| it.0).collect();
            assert_eq!(callers, all, "{compiler}");
            for (found, (caller, count)) in found.iter().zip(expected) {
                let fits = found.1 == *count || is_optimised && (1..=*count).contains(&found.1);
                assert!(fits, "{compiler}: {} by {caller}, and not {count}", found.1);
            }
        };
        must_be("twice", &[("main 16", 30)]);
        must_be("step", &[("other 12", 9), ("twice 5", 30), ("twice 7", 30)]);
        // What was inlined into it is a part of it.
        let costs: u64 = told("step")[1..].iter().map(|it| it.2).sum();
        let whole = told("twice")[0].2;
        assert!(
            costs <= whole && costs * 10 > whole * 9,
            "{costs} of {whole}"
        );
    }
    let text = run(&folder, "headcount report --callers step");
    assert!(text.contains(" inlined  twice"), "{text}");
    assert!(text.contains("step: 3 inlined copies ran;"), "{text}");
    // The names are in the file of the program.
    fs::remove_file(folder.path().join("p")).expect("removed");
    let text = run(&folder, "headcount report --callers main");
    let note = "are not shown: the file is not there any more";
    assert!(text.contains(note), "{text}");
}
