//! `headcount annotate` on terminals, in narrow ones, and for machines.

use crate::sample;

use crate::workshop::{HEADCOUNT, Said, Workshop, have, said};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn annotate(folder: &Path, words: &[&str]) -> Said {
    said(headcount(folder).arg("annotate").args(words))
}

fn headcount(folder: &Path) -> Command {
    let mut command = Command::new(HEADCOUNT);
    command.current_dir(folder).env_remove("COLUMNS");
    command
}

/// What a terminal of so many columns and 14 lines would show, with this for a pager.
fn on_terminal(folder: &Path, columns: u32, pager: &str, words: &str) -> String {
    let script = format!("stty cols {columns} rows 14; '{HEADCOUNT}' annotate {words}");
    let said = said(
        Command::new("script")
            .args(["-qec", &script, "/dev/null"])
            .current_dir(folder)
            .env("PAGER", pager)
            .env("TERM", "xterm")
            .env_remove("COLUMNS")
            .env_remove("NO_COLOR")
            .env_remove("HEADCOUNT_PAGER"),
    );
    assert_eq!(said.status, Some(0), "{said:?}");
    said.stdout.replace('\r', "")
}

#[test]
fn long_listings_go_through_the_pager_and_short_ones_do_not() {
    let folder = sample::folder();
    let long = on_terminal(folder.path(), 100, "sed s/^/paged:/", "max.c");
    assert!(long.lines().count() > 14);
    assert!(long.lines().all(|it| it.starts_with("paged:")), "{long}");
    assert!(
        long.contains("\u{1b}[31m"),
        "colours reach the pager: {long:?}"
    );
    let short = on_terminal(
        folder.path(),
        100,
        "sed s/^/paged:/",
        "--never --context 0 'main'",
    );
    assert!(!short.contains("paged:"), "{short}");
    for (pager, words) in [
        ("cat", "max.c"),
        ("", "max.c"),
        ("sed s/^/paged:/", "--no-pager max.c"),
    ] {
        let shown = on_terminal(folder.path(), 100, pager, words);
        assert!(
            !shown.contains("paged:") && shown.contains("max.c"),
            "{shown}"
        );
    }
    // A pager that is not there, or does not read, is no reason to fail.
    on_terminal(folder.path(), 100, "true", "max.c");
}

#[test]
fn no_row_is_wider_than_the_terminal() {
    let folder = sample::folder();
    for columns in [40, 60, 80] {
        let shown = on_terminal(folder.path(), columns, "cat", "max.c");
        let rows = shown.lines().skip_while(|it| !it.contains("count"));
        let rows = rows.take_while(|it| !it.is_empty());
        let plain = rows.map(|row| anstream::adapter::strip_str(row).to_string());
        let widths: Vec<usize> = plain.map(|row| row.chars().count()).collect();
        assert!(widths.len() > 17, "{shown}");
        let widest = widths.iter().max().unwrap();
        assert!(*widest <= columns as usize, "{columns}: {shown}");
    }
    // A file is as wide as it takes.
    let said = annotate(folder.path(), &["max.c"]);
    assert!(
        said.stdout.contains("for (int i = 1; i < n; i++)"),
        "{said:?}"
    );
    let said = annotate(folder.path(), &["--width", "40", "max.c"]);
    assert!(
        !said.stdout.contains("for (int i = 1; i < n; i++)"),
        "{said:?}"
    );
}

#[test]
fn what_never_ran_is_shown_in_its_place() {
    let folder = sample::folder();
    let said = annotate(folder.path(), &["--never", "--context", "1", "max.c"]);
    let rows: Vec<&str> = said.stdout.lines().skip(3).take(6).collect();
    assert_eq!(
        rows,
        [
            "count   line",
            "         ... : 14 lines",
            "    1 ▂   15 |         if (max(x, 100) < 0)  <- never",
            "    0 !   16 |                 abort();",
            "    1 ▂   17 | }",
            "",
        ]
    );
}

#[test]
fn machines_are_told_the_same() {
    let folder = sample::folder();
    let json = |words: &[&str]| -> Value {
        let said = annotate(folder.path(), &[words, &["--json"]].concat());
        assert_eq!((said.stderr.as_str(), said.status), ("", Some(0)));
        serde_json::from_str(&said.stdout).unwrap()
    };
    let all = json(&["max.c"]);
    assert_eq!(all["version"], 1);
    let lines = all["files"][0]["lines"].as_array().unwrap();
    let line = |number: u32| lines.iter().find(|it| it["line"] == number).unwrap();
    assert_eq!(
        (&line(7)["count"], &line(7)["executed"]),
        (&100.into(), &299.into())
    );
    assert_eq!(
        (&line(7)["taken"], &line(7)["not_taken"]),
        (&99.into(), &1.into())
    );
    assert_eq!(line(16)["count"], 0);
    assert_eq!(line(9)["text"], "\t\t\tj = i;");
    assert_eq!(lines.len(), 11);
    let all = json(&["--asm", "main"]);
    let main = &all["functions"][0];
    assert_eq!(
        (&main["function"], &main["calls"]),
        (&"main".into(), &1.into())
    );
    assert_eq!(main["instructions"].as_array().unwrap().len(), 5);
}

#[test]
fn a_profile_may_be_named_before_what_is_shown() {
    let folder = sample::folder();
    let expected = annotate(folder.path(), &["max.c"]).stdout;
    assert!(expected.contains("max.c"), "{expected}");
    fs::rename(
        folder.path().join("headcount.db"),
        folder.path().join("other.db"),
    )
    .unwrap();
    for words in [
        ["other.db", "max.c"].as_slice(),
        &["max.c", "-i", "other.db"],
    ] {
        let said = annotate(folder.path(), words);
        assert_eq!(said.stdout, expected, "{words:?}: {said:?}");
    }
    let said = annotate(folder.path(), &["max.c", "other.db"]);
    assert!(said.stderr.contains("no such profile"), "{said:?}");
}

/// Every verb that reads a profile.
#[test]
fn every_reading_verb_speaks_json() {
    let folder = sample::folder();
    for words in [
        &["report"][..],
        &["report", "--by", "line"],
        &["annotate"],
        &["explain", "main"],
        &["runs"],
        &["doctor"],
    ] {
        let said = said(headcount(folder.path()).args(words).arg("--json"));
        let json: Value = serde_json::from_str(&said.stdout).unwrap();
        assert!(json["version"].is_number(), "{words:?}: {said:?}");
    }
    let explained = said(headcount(folder.path()).args(["explain", "--json", "max"]));
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    let max = &explained["functions"][0];
    assert_eq!(max["function"], "max(int*, int)");
    assert!(max["blocks"].as_array().unwrap().len() > 3);
    let refused = said(headcount(folder.path()).args(["explain", "--json", "start*"]));
    assert_eq!(refused.status, Some(1), "{refused:?}");
}

/// A loop, a switch, calls of others, of itself and through a jump; jumps of all lengths.
const JUMPY: &str = "\
#include <stdio.h>
__attribute__((noinline)) static int chosen(int x)
{
    switch (x) {
    case 0: return 3;
    case 1: return 7;
    case 2: puts(\"two\"); return 9;
    case 3: return 1;
    case 4: return 77;
    default: return -1;
    }
}
__attribute__((noinline)) static int down(int n)
{
    return n < 2 ? 1 : down(n - 1) + down(n - 2);
}
__attribute__((noinline)) static int tail(int n)
{
    return chosen(n % 6);
}
int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 0; i < 40; i++) {
        if (i % 3 == 0)
            sum += tail(i);
        else if (i % 5 == 1)
            sum -= down(i % 7);
        else
            sum ^= 1;
        if (sum > 1000000)
            break;
    }
    printf(\"%d\\n\", sum);
    return argc > 9;
}
";

#[test]
fn jumps_and_calls_of_a_program_that_counts_itself_lead_to_listed_instructions() {
    for (compiler, level) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O1")] {
        if !have(compiler) {
            continue;
        }
        let shop = Workshop::new();
        shop.write("jumpy.c", JUMPY);
        shop.cc(&[compiler, "-g", level, "jumpy.c", "-o", "jumpy"]);
        shop.must(&["jumpy"]);
        let json = shop.must(&[HEADCOUNT, "annotate", "--asm", "--json"]);
        let json: Value = serde_json::from_str(&json).unwrap();
        let functions = json["functions"].as_array().unwrap();
        let code = || {
            functions
                .iter()
                .flat_map(|it| it["instructions"].as_array().unwrap())
        };
        let listed: BTreeSet<&str> = code().map(|it| it["address"].as_str().unwrap()).collect();
        let targets = code().filter_map(|it| target(it["text"].as_str().unwrap()));
        let targets: BTreeSet<&str> = targets.collect();
        let unlisted: Vec<&&str> = targets.difference(&listed).collect();
        // The linker's own stubs for `puts` and `printf`, which are not counted.
        let symbols = shop.must(&["objdump", "-d", "--no-show-raw-insn", "jumpy"]);
        let stub = |at: &str| {
            let name = symbols.lines().find(|line| {
                let address = line.split(' ').next().unwrap();
                line.ends_with(">:") && address.trim_start_matches('0') == &at[2..]
            });
            name.is_some_and(|it| it.contains("@plt"))
        };
        let wrong: Vec<_> = unlisted.iter().filter(|it| !stub(it)).collect();
        assert!(wrong.is_empty(), "{compiler} {level}: {wrong:?} {json:#}");
        assert!(targets.len() > 5, "{targets:?}");
        // The table has the same text.
        let csv = shop.report(&["--by", "instruction", "--format", "csv"]);
        for text in code().map(|it| it["text"].as_str().unwrap()) {
            assert!(
                target(text).is_none() || csv.contains(&format!(",{text}\n")),
                "{text}"
            );
        }
    }
}

const TAKES_BITS: &str = "\
#include <stdio.h>
#include <parts/need.h>
static int used;
__attribute__((noinline)) int step(int n, int have)
{
    int bits = 0;
    NEED(n, leave);
    used++;
    NEED(n + 8, leave);
    used += 2;
leave:
    used += bits;
    return used;
}
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 60; i++)
        sum += step(i, i % 7);
    return printf(\"%d\\n\", sum) < 0;
}
";

#[test]
fn jumps_inside_of_macros_are_followed_where_code_was_optimised() {
    let shop = Workshop::new();
    shop.write("takes_bits.c", TAKES_BITS);
    std::fs::create_dir(shop.path("parts")).unwrap();
    shop.write(
        "parts/need.h",
        "#define NEED(n, out) do { while (bits < (n)) { \\\n\
         if (have == 0) goto out; have--; bits += 8; } } while (0)\n",
    );
    let words = [
        "gcc",
        "-g",
        "-O2",
        "-I.",
        "takes_bits.c",
        "-o",
        "takes_bits",
    ];
    shop.must(&words);
    shop.must(&[HEADCOUNT, "run", "-q", "--", "./takes_bits"]);
    let csv = shop.report(&["--by", "line", "--format", "csv"]);
    for (line, count) in [(7, 60), (8, 28), (9, 28), (10, 15), (12, 60), (13, 60)] {
        let row = |it: &&str| it.contains(&format!("takes_bits.c,{line},{count},"));
        let row = csv.lines().find(row);
        assert!(
            row.is_some_and(|it| it.ends_with(",exact")),
            "{line}: {csv}"
        );
    }
}

/// `twice` is inlined into `main`, and nobody calls what is left of it; nobody calls `idle` at all.
const INLINED_C: &str = "\
volatile int sink;
int twice(int x)
{
    return x * 2;
}
int idle(int x)
{
    return x - 1;
}
int main(void)
{
    for (int i = 0; i < 7; i++)
        sink = twice(sink);
    return 0;
}
";

#[test]
fn a_function_that_ran_only_where_it_was_inlined_is_not_among_what_never_ran() {
    let words = ["gcc", "-g", "-O2", "inlined.c", "-o", "prog"];
    let counting: [&[&str]; 2] = [&["./prog"], &[HEADCOUNT, "run", "-q", "./prog"]];
    for (number, how) in counting.into_iter().enumerate() {
        let shop = Workshop::new();
        shop.write("inlined.c", INLINED_C);
        match number {
            0 => shop.cc(&words),
            _ => _ = shop.must(&words),
        }
        shop.must(how);
        let never = ["--never", "--only", "inlined.c", "--format", "csv"];
        let rows = shop.report(&never);
        let rows: Vec<&str> = rows.lines().skip(1).collect();
        assert!(rows.len() == 1 && rows[0].contains(",idle,"), "{rows:?}");
        let told = shop.report(&never[..3]);
        let note = "1 function is left out that ran only where it was inlined.";
        assert!(told.contains(note), "{told}");
        for view in ["--no-pager", "--asm"] {
            let heading = |name: &str| {
                let shown = annotate(&shop.path(""), &[view, name]).stdout;
                shown.lines().nth(1).unwrap_or_default().to_owned()
            };
            assert_eq!(
                heading("twice"),
                "0 calls, 0 instructions executed; 2 of 2 never ran, but it ran where it was inlined"
            );
            assert_eq!(
                heading("idle"),
                "0 calls, 0 instructions executed; 2 of 2 never ran"
            );
        }
    }
}

/// Where a direct jump or call leads.
fn target(text: &str) -> Option<&str> {
    let (mnemonic, target) = text.split_once(' ')?;
    let is_branch = mnemonic.starts_with('j') || mnemonic.starts_with("call");
    (is_branch && target.starts_with("0x")).then_some(target)
}
