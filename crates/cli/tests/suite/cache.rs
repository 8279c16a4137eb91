//! What `headcount run` keeps of the files it has read changes how long it takes, and nothing else.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Stdio;

use crate::workshop::{ANSWER, HEADCOUNT, Workshop, have};

fn program() -> Workshop {
    let shop = Workshop::with_sources().with_own_cache();
    shop.must(&["gcc", "-O1", "-g", "main.c", "helper.c", "-o", "prog"]);
    shop
}

/// Counts the program into this profile. Where things are in memory decides which way the C library
/// goes, so they are to be at the same place each time; where that cannot be had, it is left out.
fn run(profile: &str) -> Vec<&str> {
    match have("setarch") {
        true => vec![
            "setarch", "-R", HEADCOUNT, "run", "-q", "-o", profile, "./prog",
        ],
        false => vec![
            HEADCOUNT,
            "run",
            "-q",
            "--modules",
            "main",
            "-o",
            profile,
            "./prog",
        ],
    }
}

fn reports(shop: &Workshop, profile: &str) -> Vec<String> {
    let units = ["module", "function", "line", "edge"];
    let report = |unit: &&str| shop.must(&[HEADCOUNT, "report", profile, "--by", unit]);
    units.iter().map(report).collect()
}

fn kept(shop: &Workshop) -> Vec<PathBuf> {
    let folder = fs::read_dir(shop.path(".cache/headcount")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|it| it.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_report_is_the_same_with_and_without_a_cache() {
    let shop = program();
    assert_eq!(shop.must(&run("cold.db")), ANSWER);
    let files = kept(&shop);
    for kind in ["facts", "prepared"] {
        assert!(files.iter().any(|it| it.extension().unwrap() == kind));
    }
    for file in &files {
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    }
    let cold = reports(&shop, "cold.db");
    let whole: Vec<Vec<u8>> = files.iter().map(|it| fs::read(it).unwrap()).collect();

    assert_eq!(shop.must(&run("warm.db")), ANSWER);
    assert_eq!(reports(&shop, "warm.db"), cold);
    // In a profile that has the program already.
    assert_eq!(shop.must(&run("cold.db")), ANSWER);
    assert_eq!(reports(&shop, "cold.db"), cold);

    for file in &files {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    }
    assert_eq!(shop.must(&run("damaged.db")), ANSWER);
    assert_eq!(reports(&shop, "damaged.db"), cold);
    let again: Vec<Vec<u8>> = files.iter().map(|it| fs::read(it).unwrap()).collect();
    assert!(again == whole, "they were made anew");
}

#[test]
fn two_first_runs_at_once_do_not_disturb_each_other() {
    let shop = program();
    let profiles = ["a.db", "b.db"];
    let children = profiles.map(|profile| {
        let words = run(profile);
        let mut command = shop.command(words[0]);
        let command = command.args(&words[1..]).stdout(Stdio::piped());
        command.spawn().unwrap()
    });
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, ANSWER.as_bytes());
    }
    let first = reports(&shop, "a.db");
    assert_eq!(reports(&shop, "b.db"), first);
    let is_whole = |it: &PathBuf| {
        let kind = it.extension();
        kind.is_some_and(|it| it == "facts" || it == "prepared")
    };
    assert!(kept(&shop).iter().all(is_whole));
}

#[test]
fn a_program_that_was_rebuilt_is_read_again() {
    let shop = program();
    shop.must(&run("old.db"));
    shop.write(
        "helper.c",
        "int helper(int x) { return x % 3 == 0 ? 1 : 2; }",
    );
    shop.must(&["gcc", "-O0", "-g", "main.c", "helper.c", "-o", "prog"]);
    assert_eq!(shop.must(&run("new.db")), ANSWER);
    assert_eq!(shop.functions_of(&["new.db"])["helper"].calls, 100);
}

#[test]
fn a_folder_that_cannot_be_used_is_no_trouble() {
    let shop = program();
    shop.write(".cache", "a file where a folder should be");
    assert_eq!(shop.must(&run("none.db")), ANSWER);
    assert_eq!(shop.functions_of(&["none.db"])["helper"].calls, 100);
}

/// Counts the program, and says how many traps it met.
fn traps(shop: &Workshop) -> u64 {
    let said = shop.run(&[HEADCOUNT, "run", "-o", "traps.db", "./prog"]);
    assert_eq!(said.stdout, ANSWER, "{said:?}");
    let (before, _) = said.stderr.split_once(" trap").expect("it says how many");
    let number = before.rsplit(' ').next().unwrap().replace(',', "");
    number.parse().expect("a number")
}

#[test]
fn what_a_program_used_before_is_copied_before_it_runs() {
    let shop = program();
    let first = traps(&shop);
    let second = traps(&shop);
    assert!(second * 4 < first, "{first} traps, and then {second}");
}

#[test]
fn what_was_used_before_and_is_not_now_changes_no_report() {
    let source = "
        static int left(int n) { int s = 0; while (n--) s += n % 3 ? 1 : 2; return s; }
        static int right(int n) { return n > 1 ? right(n - 1) + right(n - 2) : n; }
        int main(int count, char **words) {
            return (count > 1 ? left(99) : right(9)) == 0;
        }";
    let shop = Workshop::new().with_own_cache();
    shop.build("prog", source, &["-O1"]);
    let forget = || fs::remove_dir_all(shop.path(".cache")).unwrap();
    let count = |profile: &str, more: &[&str]| {
        shop.must(&[&run(profile), more].concat());
    };
    count("right.db", &[]);
    forget();
    count("left.db", &["left"]);
    count("left.db", &["left"]);
    count("late.db", &[]);
    assert_eq!(reports(&shop, "late.db"), reports(&shop, "right.db"));
    let functions = shop.functions_of(&["late.db"]);
    assert_eq!(functions["main"].calls, 1);
    assert!(functions.get("left").is_none_or(|it| it.calls == 0));
}
