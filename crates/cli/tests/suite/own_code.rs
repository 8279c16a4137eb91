//! What reports show first: the user's own code that ran, and a sum for each library.

use crate::workshop::Workshop;
use std::collections::BTreeMap;

const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}
int unused(int n) {
    return n + 1;
}
int main(void) {
    static char text[1000][8];
    static char *words[1000];
    for (int i = 0; i < 1000; i++) {
        snprintf(text[i], sizeof text[i], "%d", i * 7919 % 1000);
        words[i] = text[i];
    }
    qsort(words, 1000, sizeof *words, compare);
    return puts(words[999]) < 0;
}
"#;

/// A counted program, with its libraries or without.
fn counted(modules: &str) -> Workshop {
    let shop = Workshop::with("words", SOURCE, &["-O0", "-g"]);
    let said = shop.headcount(&["run", "-q", "--modules", modules, "--", "./words"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    shop
}

/// The rows of a CSV report, by the names of their columns.
fn rows(shop: &Workshop, words: &[&str]) -> Vec<BTreeMap<String, String>> {
    let csv = shop.report(&[words, &["--format", "csv"]].concat());
    let mut lines = csv.lines().map(|it| it.split(',').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    let row = |cells| names.iter().cloned().zip(cells).collect();
    lines.map(row).collect()
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap_or(0)
}

#[test]
fn a_report_begins_with_your_own_code_and_adds_up_the_rest() {
    let shop = counted("all");
    let text = shop.report(&[]);
    assert!(text.lines().count() < 24, "{text}");
    let table: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|it| !it.trim_start().starts_with("executed"))
        .skip(1)
        .take_while(|it| !it.starts_with("  ("))
        .map(|it| it.split_whitespace().collect())
        .collect();
    let name = |row: &Vec<&str>| row[row.len() - 1].to_owned();
    assert_eq!(name(&table[0]), "compare", "{text}");
    assert_eq!(name(&table[1]), "main", "{text}");
    assert!(text.contains("libc.so.6 ("), "{text}");
    assert!(!text.contains("unused"), "{text}");
    // What has a row and what is added up is everything.
    let shown: u64 = table.iter().map(|row| number(row[0])).sum();
    let all: u64 = rows(&shop, &[])
        .iter()
        .map(|it| number(&it["executed"]))
        .sum();
    assert_eq!(shown, all, "{text}");
    assert!(text.contains("never ran: --never"), "{text}");
    assert!(text.contains("\nNot counted: nothing here; "), "{text}");
    // Everything is there for who asks.
    let whole = shop.report(&["--all"]);
    assert!(
        whole.contains(" unused") && whole.contains(" puts"),
        "{whole}"
    );
    let functions = rows(&shop, &[]);
    assert!(whole.lines().count() > functions.len(), "{whole}");
}

/// What every program has of the C library is not what anybody wrote, and what is never counted of
/// libraries is nothing to tell after each run.
#[test]
fn what_every_program_has_is_told_in_short() {
    let shop = Workshop::with("words", SOURCE, &["-O0", "-g"]);
    let said = shop.headcount(&["run", "--", "./words"]);
    assert!(said.stderr.contains("most executed: "), "{said:?}");
    assert!(!said.stderr.contains("[vdso]"), "{said:?}");
    let (_, number) = said.stderr.split_once("not counted: ").unwrap();
    let (number, _) = number.split_once(", all in libraries; ").unwrap();
    let text = shop.report(&[]);
    let told = format!("nothing here; {number} elsewhere");
    assert!(text.contains(&told), "{told}: {text}");
    assert!(!text.contains(" _start\n"), "{text}");
    assert!(text.contains("  start-up code ("), "{text}");
    assert!(shop.report(&["--all"]).contains(" _start\n"), "{text}");
}

/// What libraries and linkers have no source of is no file of the user's; a program without any is.
#[test]
fn code_without_a_source_is_own_only_where_the_program_is() {
    let shop = counted("all");
    let text = shop.report(&["--by", "file"]);
    assert!(!text.contains("??"), "{text}");
    assert!(text.contains("  code without source ("), "{text}");
    shop.must(&["gcc", "words.c", "-o", "words"]);
    let said = shop.headcount(&["run", "-q", "--", "./words"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let text = shop.report(&["--by", "file"]);
    assert!(text.contains("  ??\n"), "{text}");
}

/// A program that takes long to read has to be read by the first report: its totals need not wait.
#[test]
fn a_run_of_a_large_program_ends_with_its_totals() {
    let shop = Workshop::new().with_own_cache();
    let source = "char large[20 << 20] = {1};\nint main(void) {\n    int n = 0;\n    \
                  for (int i = 0; i < 1000; i++)\n        n += large[i];\n    return n != 1;\n}\n";
    shop.write("large.c", source);
    shop.must(&["gcc", "-g", "large.c", "-o", "large"]);
    let said = shop.headcount(&["run", "--", "./large"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(
        said.stderr.contains("the first report takes them"),
        "{said:?}"
    );
    let totals = said.stderr.lines().next().unwrap();
    assert!(
        totals.contains(" instructions; 1 process, 1 thread; "),
        "{said:?}"
    );
    let executed = totals.strip_prefix("headcount: ").unwrap();
    let (executed, _) = executed.split_once(' ').unwrap();
    let sum: u64 = rows(&shop, &["--by", "module"])
        .iter()
        .map(|it| number(&it["executed"]))
        .sum();
    assert_eq!(number(executed), sum, "{said:?}");
}

#[test]
fn the_user_says_what_is_own() {
    let shop = counted("main");
    let text = shop.report(&["--own", "comp*"]);
    assert!(text.contains("  compare\n"), "{text}");
    assert!(
        text.contains("  words (") && !text.contains("  main"),
        "{text}"
    );
}

/// A program of which all sources were fetched is the package that its `main` is in.
#[test]
fn an_installed_program_is_its_own_package() {
    let shop = Workshop::new();
    let [tool, dep] =
        ["tool-1.0", "dep-1.0"].map(|it| format!(".cargo/registry/src/index/{it}/src"));
    shop.must(&["mkdir", "-p", &tool, &dep]);
    let [main, dep] = [format!("{tool}/main.c"), format!("{dep}/dep.c")];
    shop.write(&dep, "int dep(int n) {\n    return n * 2;\n}\n");
    shop.write(
        &main,
        "int dep(int);\nint main(void) {\n    return dep(3) - 6;\n}\n",
    );
    shop.must(&["gcc", "-g", &main, &dep, "-o", "prog"]);
    let run = ["run", "-q", "--modules", "main", "--", "./prog"];
    assert_eq!(shop.headcount(&run).status, Some(0));
    let text = shop.report(&[]);
    assert!(text.contains("  main\n"), "{text}");
    assert!(text.contains("  dep-1.0 (1 function)\n"), "{text}");
    let annotated = shop.headcount(&["annotate"]).stdout;
    assert!(annotated.contains("return dep(3) - 6;"), "{annotated}");
    assert!(!annotated.contains("return n * 2;"), "{annotated}");
    let lcov = shop.headcount(&["export", "--format", "lcov"]).stdout;
    assert_eq!(lcov.matches("SF:").count(), 1, "{lcov}");
    // Without the main function, nothing is.
    let said = shop.headcount(&["annotate", "--own", "nothing"]);
    assert!(
        said.stderr.contains("only sources that are known"),
        "{said:?}"
    );
}

/// What a package manager fetched is not the user's own, although its source is here.
#[test]
fn dependencies_are_left_out_unless_they_are_named() {
    let shop = Workshop::new();
    let folder = ".cargo/registry/src/index/dep-1.0";
    shop.must(&["mkdir", "-p", folder]);
    let dependency = format!("{folder}/dep.c");
    shop.write(&dependency, "int dep(int n) {\n    return n * 2;\n}\n");
    shop.write(
        "main.c",
        "int dep(int);\nint main(void) {\n    return dep(3) - 6;\n}\n",
    );
    shop.must(&["gcc", "-g", "main.c", &dependency, "-o", "prog"]);
    let run = ["run", "-q", "--modules", "main", "--", "./prog"];
    assert_eq!(shop.headcount(&run).status, Some(0));
    assert!(shop.report(&[]).contains("  dep-1.0 (1 function)\n"));
    let shown = |words: &[&str]| shop.headcount(words).stdout;
    let is_there = |text: &str| text.contains("return n * 2;");
    assert!(!is_there(&shown(&["annotate"])));
    assert!(is_there(&shown(&["annotate", "dep.c"])));
    assert!(is_there(&shown(&["annotate", "--own", "prog!"])));
    let lcov = |words: &[&str]| shown(&[&["export", "--format", "lcov"], words].concat());
    let files = |text: &str| text.matches("SF:").count();
    assert_eq!(files(&lcov(&[])), 1, "{}", lcov(&[]));
    assert_eq!(files(&lcov(&["--own", "prog!"])), 2);
    assert_eq!(files(&lcov(&["--only", "dep.c"])), 1);
    // One set of filters, in all verbs.
    for unit in ["function", "line", "block", "file", "instruction"] {
        let csv = |words: &[&str]| {
            let report = ["report", "--format", "csv", "--by", unit];
            shown(&[&report, words].concat())
        };
        let has = |csv: &str| csv.contains("dep.c") || csv.contains(",dep,");
        assert!(has(&csv(&[])) && has(&csv(&["--module", "prog"])), "{unit}");
        for skip in ["dep", "dep.c", "dep-1.0/dep.c", "prog!dep"] {
            let rest = csv(&["--skip", skip]);
            assert!(!has(&rest), "{unit} --skip {skip}: {rest}");
            assert!(rest.contains("main"), "{unit} --skip {skip}: {rest}");
        }
        assert_eq!(csv(&["--module", "nosuch"]), "", "{unit}");
    }
    assert_eq!(files(&lcov(&["--own", "prog!", "--skip", "main.c"])), 1);
    assert!(!is_there(&shown(&["annotate", "prog", "--skip", "dep.c"])));
    assert!(is_there(&shown(&["annotate", "--only", "dep.c"])));
    let said = shop.headcount(&["report", "--module", "nosuch"]);
    assert!(said.stderr.contains("nosuch"), "{said:?}");
}

#[test]
fn lines_have_their_text_and_calls_their_place() {
    let shop = counted("main");
    let lines = shop.report(&["--by", "line"]);
    let compared = lines.lines().find(|it| it.contains("words.c:5 "));
    assert!(
        compared
            .is_some_and(|it| it.ends_with("return strcmp(*(char *const *)a, *(char *const *)b);")),
        "{lines}"
    );
    let calls = shop.report(&["--by", "call"]);
    let called = calls.lines().find(|it| it.ends_with("strcmp@plt"));
    assert!(
        called.is_some_and(|it| it.contains("words.c:5 ")),
        "{calls}"
    );
}

#[test]
fn the_top_is_what_is_hottest_in_every_unit() {
    let shop = counted("main");
    for (unit, column) in [
        ("file", "executed"),
        ("line", "executed"),
        ("block", "count"),
        ("edge", "count"),
        ("call", "count"),
        ("instruction", "count"),
    ] {
        let heat = |words: &[&str]| {
            let all = rows(&shop, words).into_iter();
            all.map(|it| number(&it[column])).collect::<Vec<u64>>()
        };
        let mut all = heat(&["--by", unit]);
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.truncate(3);
        assert_eq!(heat(&["--by", unit, "--top", "3"]), all, "{unit}");
    }
}

/// The sums of a key over an lcov file.
fn sum(lcov: &str, key: &str) -> u64 {
    let values = lcov.lines().filter_map(|line| line.strip_prefix(key));
    values.map(number).sum()
}

#[test]
fn a_gate_counts_lines_and_functions_as_lcov_does() {
    let shop = counted("all");
    let lcov = shop.headcount(&["export", "--format", "lcov"]).stdout;
    let [lines, ran, functions, called] = ["LF:", "LH:", "FNF:", "FNH:"].map(|key| sum(&lcov, key));
    assert!(ran < lines && called < functions, "{lcov}");
    let gate = |words: &[&str]| shop.headcount(&[&["report"], words].concat());

    let said = gate(&[
        "--fail-under-lines",
        "99.5",
        "--fail-under-functions",
        "99%",
    ]);
    assert_eq!(said.status, Some(1), "{said:?}");
    for (part, all, what, limit) in [
        (ran, lines, "lines", "99.5%"),
        (called, functions, "functions", "99%"),
    ] {
        let begins = format!("headcount: {part} of {all} {what} ran (");
        let ends = format!("%); at least {limit} must");
        let is_it = |line: &str| line.starts_with(&begins) && line.ends_with(&ends);
        assert!(said.stderr.lines().any(is_it), "{begins}{ends}: {said:?}");
    }
    let enough = (100 * ran / lines).to_string();
    assert_eq!(gate(&["--fail-under-lines", &enough]).status, Some(0));
    let said = gate(&["--fail-under-lines", "99", "--each-file"]);
    assert!(said.stderr.contains("words.c: "), "{said:?}");
    // What is named is what must have run.
    let named = ["--only", "compare", "--fail-under-lines", "100"];
    assert_eq!(gate(&named).status, Some(0));
    let said = gate(&["--only", "unused", "--fail-under-functions", "1"]);
    assert!(
        said.stderr.contains("0 of 1 functions ran (0.0%)"),
        "{said:?}"
    );
    let said = gate(&["--each-file"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("--each-file needs"), "{said:?}");
    let said = gate(&["--fail-under-lines", "much"]);
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("say a percentage"), "{said:?}");
}
