//! What reports show first: the user's own code that ran, and a sum for each library.

mod workshop;

use std::collections::BTreeMap;
use workshop::Workshop;

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
    let all = rows(&shop, &[])
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
