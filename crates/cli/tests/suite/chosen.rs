//! What was chosen is counted, exactly that, and nothing else is touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::workshop::{HEADCOUNT, Workshop, c_programs, is_thorough};
use headcount_ground::workers;
use headcount_oracle::stated::Stated;

/// Prints the first bytes of functions of its own, and of one of libc's, after they have run.
const SHOWS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int chosen(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (i % 3 == 0)
            sum += i;
        else
            sum -= 1;
    }
    return sum;
}
int other(int n)
{
    return n < 3 ? n : n + 1;
}
static int order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}
static void show(const char *name, const void *at)
{
    printf("%s", name);
    for (int i = 0; i < 12; i++)
        printf(" %02x", ((const unsigned char *)at)[i]);
    printf("\n");
}
int main(void)
{
    int numbers[] = {3, 1, 2}, sum = 0;
    for (int i = 0; i < 10; i++)
        sum += chosen(i) + other(i);
    qsort(numbers, 3, sizeof *numbers, order);
    show("chosen", (const void *)chosen);
    show("other", (const void *)other);
    show("order", (const void *)order);
    show("qsort", (const void *)qsort);
    printf("%d\n", sum);
    return 0;
}
"#;

fn shows(flags: &[&str]) -> Workshop {
    let shop = Workshop::new();
    shop.write("shows.c", SHOWS);
    shop.must(&[&["gcc", "-g", "shows.c", "-o", "shows"], flags].concat());
    shop
}

fn bytes_of(said: &str) -> BTreeMap<String, String> {
    let lines = said.lines().filter_map(|line| line.split_once(' '));
    let lines = lines.map(|(name, bytes)| (name.to_owned(), bytes.to_owned()));
    lines.collect()
}

#[test]
fn functions_that_were_not_chosen_are_not_touched() {
    for only in ["chosen", "shows.c:8-9"] {
        let shop = shows(&["-O1", "-fno-inline"]);
        let native = bytes_of(&shop.must(&["./shows"]));
        let counted = shop.must(&[HEADCOUNT, "run", "-q", "--only", only, "--", "./shows"]);
        let counted = bytes_of(&counted);
        assert_ne!(counted["chosen"], native["chosen"], "it is counted: {only}");
        for name in ["other", "order", "qsort"] {
            assert_eq!(counted[name], native[name], "{name}, {only}");
        }
    }
}

#[test]
fn both_engines_count_exactly_the_lines_that_were_chosen() {
    for (turn, level) in ["-O0", "-O2"].into_iter().enumerate() {
        let shop = shows(&[level]);
        shop.must(&[HEADCOUNT, "run", "-q", "--modules", "main", "--", "./shows"]);
        let all = shop.counts("shows.c");
        let chosen = [
            ("shows.c:9", 9..=9),
            ("shows.c:8-11", 8..=11),
            ("shows.c:15-", 15..=99),
            ("shows.c:-18", 1..=18),
            ("shows!*shows.c:37-39", 37..=39),
        ];
        for (index, (only, lines)) in chosen.into_iter().enumerate() {
            // Each engine at one of the levels.
            let engine = ["detour", "breakpoint"][(turn + index) % 2];
            shop.forget();
            let run = [HEADCOUNT, "run", "-q", "--engine", engine, "--only", only];
            shop.must(&[&run[..], &["--", "./shows"]].concat());
            let found = shop.exact_counts("shows.c");
            let what = format!("{level} {engine} {only}");
            assert!(!found.is_empty(), "{what}");
            for (line, (count, is_exact)) in found.range(lines.clone()) {
                // Of optimised code, less may follow from less.
                match is_exact {
                    true => assert_eq!(Some(count), all.get(line), "{what}: {line}"),
                    false => assert!(Some(count) <= all.get(line), "{what}: {line}"),
                }
            }
            let is_missing = |line: &&u32| !found.contains_key(line);
            let missing = all.range(lines.clone()).map(|it| it.0).filter(is_missing);
            assert!(level == "-O2" || missing.count() == 0, "{what}");
        }
    }
}

#[test]
fn lines_of_functions_that_were_not_chosen_are_not_listed() {
    for (level, only, listed) in [
        ("-O1", "chosen", 4..=14),
        ("-O2", "shows.c:8-9", 6..=14),
        ("-O2", "chosen", 4..=14),
        ("-O3", "other", 15..=18),
    ] {
        let shop = shows(&[level, "-fno-inline"]);
        shop.must(&[HEADCOUNT, "run", "-q", "--only", only, "--", "./shows"]);
        let rows = shop.must(&[HEADCOUNT, "report", "--by", "line", "--format", "csv"]);
        let rows: Vec<&str> = rows.lines().skip(1).collect();
        assert!(!rows.is_empty(), "{level} {only}");
        for row in rows {
            let line = row.split(',').nth(1).and_then(|it| it.parse().ok());
            assert!(
                line.is_some_and(|it: u32| listed.contains(&it)),
                "{level} {only}: {row}"
            );
        }
    }
}

#[test]
fn programs_do_not_notice_that_one_of_their_functions_is_counted() {
    // Some of them: each is counted with all of libc beside it.
    let step = if is_thorough() { 1 } else { 8 };
    let programs: Vec<_> = c_programs().into_iter().step_by(step).collect();
    workers::share_out(&programs, 2, |source| with_main_alone(source), |_, _| ());
    assert!(programs.len() > 8, "only {} programs", programs.len());
}

fn with_main_alone(source: &Path) {
    let stated = Stated::parse(source, &fs::read_to_string(source).unwrap()).unwrap();
    let shop = Workshop::new();
    let mut build = vec![
        "gcc",
        "-g",
        "-O0",
        "-w",
        source.to_str().unwrap(),
        "-o",
        "it",
    ];
    build.extend(stated.flags.iter().map(String::as_str));
    shop.must(&build);
    let mut program = vec!["./it"];
    program.extend(stated.args.iter().map(String::as_str));
    let native = shop.run(&program);
    let run = "timeout -s KILL 60 headcount run -q --only main --";
    let run = run
        .split(' ')
        .map(|it| if it == "headcount" { HEADCOUNT } else { it });
    let counted = shop.run(&run.chain(program).collect::<Vec<_>>());
    assert_eq!(
        counted.status,
        Some(stated.status),
        "{source:?}: {counted:?}"
    );
    assert_eq!(counted.stdout, native.stdout, "{source:?}");
}
