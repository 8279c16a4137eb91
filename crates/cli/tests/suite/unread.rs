//! A run stores what its counters said; the first report makes counts of it.

use crate::workshop::Workshop;
use std::fs;

const SOURCE: &str = "
#include <stdio.h>
#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int sum(const int *from, int n) { int s = 0; while (n--) s += from[n] * n; return s; }
int main(int argc, char **argv) {
    int numbers[100];
    for (int i = 0; i < 100; i++) numbers[i] = i * 7919 % 101;
    qsort(numbers, 100, sizeof *numbers, compare);
    if (argc > 1) abort();
    printf(\"%d\\n\", sum(numbers, 100));
    return 0;
}
";

/// The number in front of a word.
fn number_before(text: &str, word: &str) -> u64 {
    let (before, _) = text.split_once(word).expect(text);
    let digits = before.trim_end().rsplit(' ').next().unwrap_or_default();
    digits.replace(',', "").parse().expect(text)
}

/// Executed instructions of all functions that ran, and how many these are.
fn totals(shop: &Workshop) -> (u64, u64) {
    let csv = shop.report(&["--by", "function", "--format", "csv"]);
    let column = |row: &str, number: usize| {
        let cell = row.rsplit(',').nth(number);
        cell.and_then(|it| it.parse::<u64>().ok())
    };
    let header = csv.lines().next().expect("a header");
    let place = header.rsplit(',').position(|it| it == "executed");
    let executed = csv.lines().skip(1);
    let executed = executed.filter_map(|row| column(row, place.expect("executed")));
    let ran: Vec<u64> = executed.filter(|it| *it > 0).collect();
    (ran.iter().sum(), ran.len() as u64)
}

#[test]
fn the_summary_after_a_run_says_what_the_report_says() {
    for (flags, arguments) in [(&["-O0"], &[][..]), (&["-O2"], &[]), (&["-O2"], &["abort"])] {
        let shop = Workshop::with("sorts", SOURCE, flags);
        let run = [&["run", "--", "./sorts"], arguments].concat();
        let said = shop.headcount(&run);
        let summary = said.stderr.lines().find(|it| it.contains("most executed"));
        assert!(summary.is_some(), "{said:?}");
        let executed = number_before(&said.stderr, "instructions in");
        let functions = number_before(&said.stderr, "functions;");
        assert_eq!((executed, functions), totals(&shop), "{said:?}");
    }
}

#[test]
fn a_run_is_read_when_its_program_and_the_cache_are_gone() {
    let shop = Workshop::with("sorts", SOURCE, &["-O1"]).with_own_cache();
    shop.must_count(&["--", "./sorts"]);
    fs::remove_file(shop.path("sorts")).unwrap();
    fs::remove_dir_all(shop.path(".cache")).unwrap();
    let first = shop.report(&["--by", "line", "--format", "csv"]);
    let row = first.lines().find(|it| it.contains("sorts.c,8,"));
    assert!(row.is_some_and(|it| it.contains(",101,")), "{first}");
    assert_eq!(shop.report(&["--by", "line", "--format", "csv"]), first);
}

#[test]
fn runs_that_nobody_has_read_are_merged() {
    let shop = Workshop::with("sorts", SOURCE, &["-O1"]);
    for profile in ["one.db", "two.db"] {
        shop.must_count(&["-o", profile, "--", "./sorts"]);
    }
    let merge = ["merge", "-o", "headcount.db", "one.db", "two.db"];
    assert_eq!(shop.headcount(&merge).status, Some(0));
    let calls = |runs: &[&str]| {
        let only = ["--by", "function", "--only", "main", "--format", "csv"];
        let csv = shop.report(&[&only, runs].concat());
        let row = csv.lines().nth(1).expect("main ran").to_owned();
        row.split(',').nth(4).map(str::to_owned)
    };
    assert_eq!(calls(&["--runs", "all"]).as_deref(), Some("2"));
}
