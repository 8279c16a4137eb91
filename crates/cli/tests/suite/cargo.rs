//! `cargo headcount`, and headcount as cargo's runner.

use crate::workshop::{self, HEADCOUNT, Said, Workshop, have, said};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const LIB_RS: &str = "\
pub fn largest<T: PartialOrd + Copy>(among: &[T]) -> Option<T> {
    let mut best = *among.first()?;
    for it in among {
        if *it > best {
            best = *it;
        }
    }
    Some(best)
}

pub fn smallest(among: &[u8]) -> Option<u8> {
    among.iter().copied().min()
}

pub fn nobody_calls<T>(it: T) -> T {
    it
}

#[test]
fn of_bytes() {
    assert_eq!(largest(&[1_u8, 3, 2]), Some(3));
}
";

const IT_RS: &str = "\
#[test]
fn of_words() {
    assert_eq!(max::largest(&[\"a\", \"c\"]), Some(\"c\"));
    assert!(std::env::var(\"CARGO_MANIFEST_DIR\").unwrap().ends_with(\"a project\"));
    assert!(std::path::Path::new(\"Cargo.toml\").exists());
}

#[test]
#[ignore]
fn of_nothing() {
    assert_eq!(max::smallest(&[]), Some(0));
}
";

const MAIN_RS: &str = "\
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    println!(\"{:?}\", max::largest(&words));
    std::process::exit(7);
}
";

const BENCH_RS: &str = "\
fn main() {
    assert_eq!(max::smallest(&[3, 1, 2]), Some(1));
}
";

/// A package with a library, a program, a test and a benchmark, in a folder with a blank in its
/// name.
fn project() -> Workshop {
    let shop = Workshop::new();
    for folder in ["a project/src", "a project/tests", "a project/benches"] {
        fs::create_dir_all(shop.path(folder)).unwrap();
    }
    shop.write(
        "a project/Cargo.toml",
        "[package]\nname = \"max\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n\
         [[bench]]\nname = \"speed\"\nharness = false\n",
    );
    shop.write("a project/src/lib.rs", LIB_RS);
    shop.write("a project/src/main.rs", MAIN_RS);
    shop.write("a project/tests/it.rs", IT_RS);
    shop.write("a project/benches/speed.rs", BENCH_RS);
    shop
}

/// Cargo in the package, with headcount in the path and nothing of the cargo that runs this test.
fn cargo(shop: &Workshop) -> Command {
    let folder = Path::new(HEADCOUNT).parent().unwrap();
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut command = shop.command("cargo");
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_") && name != "CARGO_HOME" || name == "RUSTFLAGS" {
            command.env_remove(name);
        }
    }
    command
        .current_dir(shop.path("a project"))
        .env("PATH", path)
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("CARGO");
    command
}

fn cargo_says(shop: &Workshop, words: &[&str]) -> Said {
    said(cargo(shop).args(words))
}

/// The rows of the table: name, runs, and how many functions ran of how many.
fn table(said: &Said) -> Vec<(String, String, String)> {
    let lines = said.stderr.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("headcount: "));
    let rows = lines
        .skip_while(|line| !line.starts_with("program"))
        .skip(1);
    rows.take_while(|line| !line.starts_with("functions and"))
        .map(|line| {
            let cells: Vec<&str> = line.split("  ").filter(|it| !it.is_empty()).collect();
            let functions = cells[3].split('(').next().unwrap();
            (
                cells[0].to_owned(),
                cells[1].trim().to_owned(),
                functions.trim().to_owned(),
            )
        })
        .collect()
}

fn row(name: &str, runs: &str, functions: &str) -> (String, String, String) {
    (name.to_owned(), runs.to_owned(), functions.to_owned())
}

#[test]
fn tests_are_counted_as_they_are_built_already() {
    let shop = project();
    assert_eq!(cargo_says(&shop, &["test", "--no-run"]).status, Some(0));
    let built = |shop: &Workshop| -> Vec<_> {
        let folder = fs::read_dir(shop.path("a project/target/debug/deps")).unwrap();
        let files = folder.map(|it| it.unwrap());
        let mut files: Vec<_> = files
            .map(|it| (it.path(), it.metadata().unwrap().modified().unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = built(&shop);
    let said = cargo_says(&shop, &["headcount", "--json", "c.json", "test", "--tests"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains("test of_words ... ok"), "{said:?}");
    assert!(!said.stderr.contains("Compiling"), "{said:?}");
    assert_eq!(built(&shop), before, "something was built again");
    let rows = table(&said);
    let names: Vec<&str> = rows.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(
        names,
        ["max lib", "max bin max", "max test it", "all together"]
    );
    let json = fs::read_to_string(shop.path("a project/c.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let ran = |name: &str| {
        let all = json["functions"].as_array().unwrap().iter();
        let is_it = |it: &&Value| it["function"].as_str().unwrap().ends_with(name);
        all.clone()
            .find(is_it)
            .map(|it| it["ran"].as_bool().unwrap())
    };
    assert_eq!(ran("max::largest"), Some(true));
    assert_eq!(ran("max::of_bytes"), Some(true));
    assert_eq!(ran("max::smallest"), Some(false));
    assert_eq!(ran("of_words"), None, "that is a test, not what is tested");
    assert_eq!(json["runs"].as_array().unwrap().len(), 3);
    let without: Vec<&str> = json["no_code"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["function"].as_str().unwrap())
        .collect();
    assert_eq!(without, ["nobody_calls"]);
    let line = "never called, so that no program has code of them: nobody_calls (lib.rs:15)\n";
    assert!(said.stderr.contains(line), "{said:?}");
    // What it says is what it takes.
    let (_, more) = said.stderr.rsplit_once("more: headcount ").unwrap();
    let words: Vec<&str> = more.trim().split(' ').collect();
    let page = workshop::said(
        shop.command(HEADCOUNT)
            .args(&words)
            .current_dir(shop.path("a project")),
    );
    assert_eq!(page.status, Some(0), "{page:?}");
    // A gate fails the command, unless it has failed already.
    let gate = [
        "headcount",
        "--fail-under-functions",
        "100",
        "test",
        "--tests",
    ];
    let said = cargo_says(&shop, &gate);
    assert_eq!(said.status, Some(1), "{said:?}");
    assert!(said.stderr.contains("; at least 100% must"), "{said:?}");
}

#[test]
fn words_go_to_cargo_and_to_the_tests_and_the_status_is_theirs() {
    let shop = project();
    let said = cargo_says(
        &shop,
        &[
            "headcount",
            "-o",
            "t.db",
            "test",
            "--test",
            "it",
            "--",
            "--ignored",
        ],
    );
    assert_eq!(said.status, Some(101), "{said:?}");
    assert!(
        said.stdout.contains("test of_nothing ... FAILED"),
        "{said:?}"
    );
    let rows = table(&said);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0].0, "max test it (status 101)");
    assert!(
        said.stderr.contains("headcount html -i t.db --runs 1 -o"),
        "{said:?}"
    );
    let broken = "fn main() { nonsense }";
    shop.write("a project/src/main.rs", broken);
    let said = cargo_says(&shop, &["headcount", "test"]);
    assert_eq!(said.status, Some(101));
    assert!(
        said.stderr.contains("cannot find value `nonsense`"),
        "{said:?}"
    );
    let said = cargo_says(&shop, &["headcount", "doc"]);
    assert_eq!(said.status, Some(125));
    assert!(
        said.stderr.contains("counts `test`, `run`, `bench`"),
        "{said:?}"
    );
}

#[test]
fn programs_and_benchmarks_are_counted_too() {
    let shop = project();
    let said = cargo_says(&shop, &["headcount", "run", "-q", "--", "b", "--d", "c"]);
    assert_eq!(
        (said.stdout.as_str(), said.status),
        ("Some(\"c\")\n", Some(7))
    );
    assert_eq!(table(&said)[0].0, "max bin max (status 7)");
    let said = cargo_says(&shop, &["headcount", "bench", "--bench", "speed"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    // In an optimised program without debug information there is no source to speak of.
    assert_eq!(table(&said)[0], row("max bench speed", "1", "-"));
}

#[test]
fn cargo_takes_headcount_for_its_runner() {
    let shop = project();
    let runner = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";
    let said = said(
        cargo(&shop)
            .env(runner, "headcount run --modules main --")
            .args(["test", "--test", "it"]),
    );
    assert_eq!(said.status, Some(0), "{said:?}");
    let report = ["report", "--only", "*of_words*", "--format", "csv"];
    let report = workshop::said(
        shop.command(HEADCOUNT)
            .args(report)
            .current_dir(shop.path("a project")),
    );
    assert!(report.stdout.contains(",it::of_words,"), "{report:?}");
}

#[test]
fn nextest_runs_every_test_by_itself() {
    if !have("cargo-nextest") {
        return;
    }
    let shop = project();
    let said = cargo_says(&shop, &["headcount", "nextest", "run"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let rows = table(&said);
    // Two tests; asking which there are is no run.
    assert_eq!(rows.last().map(|it| it.1.as_str()), Some("2"), "{said:?}");
    assert!(rows.iter().any(|it| it.0 == "max test it"), "{rows:?}");
}
