//! `export --format parquet`: its rows are those of `report`, and the SQL of docs/fleet.md gets the
//! answers of `report` out of them.

use crate::workshop::{self, HEADCOUNT, Workshop};
use headcount_fleet::engine::{Engine, Rows};
use headcount_fleet::fleet::{Fleet, Machine};
use headcount_fleet::judge::Judge;
use headcount_fleet::page;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Events, as the page lists them.
const EVENTS: [&str; 21] = [
    "calls_made",
    "returns",
    "jumps",
    "branches",
    "taken",
    "backward",
    "indirect",
    "loads",
    "stores",
    "bytes_read",
    "bytes_written",
    "flops",
    "flops_16",
    "flops_32",
    "flops_64",
    "flops_80",
    "vector",
    "divisions",
    "atomics",
    "fences",
    "syscalls",
];

/// Everything in the files of a folder.
fn all_rows(folder: &Path) -> Rows {
    let view = page::view(Engine::DuckDb).unwrap();
    let all = "SELECT * EXCLUDE (started, ended), epoch_us(started) AS started FROM counts";
    let mut answers = Engine::DuckDb.ask(folder, view, &[all]).unwrap();
    answers.remove(0).rows
}

/// What a report calls a column of the table, for a unit.
fn in_report<'c>(unit: &str, column: &'c str) -> &'c str {
    match (unit, column) {
        ("function", "count") => "calls",
        ("call", "function") => "caller",
        ("edge", "address") => "from",
        ("edge", "to_address") => "to",
        (_, column) => column,
    }
}

/// The columns that reports of each unit have, by their names in the table.
fn compared(unit: &str) -> Vec<&'static str> {
    let own: &[&str] = match unit {
        "module" => &["module", "executed", "instructions", "never"],
        "file" => &[
            "file",
            "executed",
            "instructions",
            "never",
            "blocks_executed",
            "blocks",
            "blocks_never",
        ],
        "function" => &[
            "module",
            "function",
            "file",
            "line",
            "count",
            "executed",
            "instructions",
            "never",
            "linkage_name",
        ],
        "line" => &["file", "line", "count", "executed", "exactness"],
        "block" => &["module", "function", "address", "instructions", "count"],
        "instruction" => &["module", "function", "address", "count", "text"],
        "edge" => &[
            "module",
            "function",
            "address",
            "to_address",
            "kind",
            "count",
        ],
        _ => &["module", "function", "address", "callee", "count"],
    };
    let events = EVENTS.iter().chain(&["bounds"]);
    own.iter().chain(events).copied().collect()
}

/// A field of a report as the table has it.
fn as_in_table(column: &str, value: Option<&Value>) -> Value {
    let value = value.cloned().unwrap_or_default();
    let address = value.as_str().and_then(|it| it.strip_prefix("0x"));
    match (column, address) {
        ("address" | "to_address", Some(hex)) => {
            u64::from_str_radix(hex, 16).unwrap().cast_signed().into()
        }
        _ if value == "" || value == "??" => Value::Null,
        _ if value == 0 && matches!(column, "line" | "column") => Value::Null,
        _ => value,
    }
}

/// The fields of some columns, as text that can be sorted.
fn picked(columns: &[&str], field: impl Fn(&str) -> Value) -> String {
    let fields: Vec<String> = columns.iter().map(|it| field(it).to_string()).collect();
    fields.join(" ")
}

/// Every row of every run is in its report, for all units, with all events; and the other way round.
fn compare(shop: &Workshop, rows: &Rows, words: &[&str]) {
    let mut found: BTreeMap<(u64, String, String), Vec<String>> = BTreeMap::new();
    for row in rows {
        let unit = row["unit"].as_str().unwrap();
        if matches!(unit, "refused" | "note") {
            continue;
        }
        let columns = compared(unit);
        let module = row["module"].as_str().unwrap().to_owned();
        let key = (row["run"].as_u64().unwrap(), unit.to_owned(), module);
        let fields = picked(&columns, |it| row[it].clone());
        found.entry(key).or_default().push(fields);
    }
    assert!(found.len() >= 8, "{words:?}: {:?}", found.keys());
    for ((run, unit, module), mut found) in found {
        let run = run.to_string();
        let report = ["report", "--json", "--events", "all", "--by", &unit];
        let these = ["-i", "../headcount.db", "--runs", &run, "--module", &module];
        // In another folder, where names of files are not shortened.
        let mut command = shop.command(HEADCOUNT);
        command.current_dir(shop.path("fleet"));
        let said = workshop::said(command.args([&report[..], &these, words].concat()));
        assert_eq!(said.status, Some(0), "{said:?}");
        let told: Value = serde_json::from_str(&said.stdout).unwrap();
        let columns = compared(&unit);
        let row = |row: &Value| {
            picked(&columns, |it| {
                as_in_table(it, row.get(in_report(&unit, it)))
            })
        };
        let mut told: Vec<String> = told["rows"].as_array().unwrap().iter().map(row).collect();
        told.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, told, "{run} {unit} {module} {words:?}");
    }
}

const ALL_UNITS: &str = "module,file,function,line,block,instruction,edge,call";

#[test]
fn the_table_has_the_rows_of_the_reports_of_every_run() {
    let shop = Workshop::with_sources();
    std::fs::create_dir(shop.path("fleet")).unwrap();
    for level in ["-O0", "-O2"] {
        shop.must(&["gcc", "-g", level, "main.c", "helper.c", "-o", "main"]);
        shop.must_count_alone(&["./main"]);
    }
    shop.cc(&["gcc", "-g", "main.c", "helper.c", "-o", "itself"]);
    shop.must(&["./itself"]);
    let some: [&[&str]; 3] = [
        &[],
        &["--only", "helper.c", "--no-demangle"],
        &["--skip", "helper", "--own", "main"],
    ];
    for words in some {
        let export = ["export", "--format", "parquet", "--runs", "all", "-o"];
        let what = ["fleet/it.parquet", "--by", ALL_UNITS, "--events", "all"];
        let said = shop.headcount(&[&export[..], &what, words].concat());
        assert_eq!(
            (said.status, said.stdout.as_str()),
            (Some(0), ""),
            "{said:?}"
        );
        let rows = all_rows(&shop.path(""));
        compare(&shop, &rows, words);
        let names: Vec<&str> = rows[0].keys().map(String::as_str).collect();
        let mut expected = page::columns();
        expected.retain(|it| !matches!(*it, "started" | "ended"));
        expected.push("started");
        let mut names = names;
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "the page explains every column");
    }
}

#[test]
fn the_table_says_whose_run_it_was_and_what_was_not_counted() {
    let shop = Workshop::with_sources();
    std::fs::create_dir(shop.path("fleet")).unwrap();
    shop.must(&["gcc", "-g", "main.c", "helper.c", "-o", "main"]);
    shop.must_count(&["./main", "a b"]);
    let parts: [(&str, &[&str]); 2] = [
        ("fleet/functions.parquet", &["--by", "function"]),
        ("fleet/lines.parquet", &["--by", "line", "--module", "main"]),
    ];
    for (file, words) in parts {
        let export = ["export", "--format", "parquet", "-o", file];
        let said = shop.headcount(&[&export[..], words].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
    }
    let rows = all_rows(&shop.path(""));
    let runs: Value = serde_json::from_str(&shop.headcount(&["runs", "--json"]).stdout).unwrap();
    let run = &runs["runs"][0];
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let told = run["started"].as_str().unwrap();
    let mut date = Command::new("date");
    let date = workshop::said(date.args(["-u", "-d", told, "+%s"]));
    for row in &rows {
        assert_eq!(row["host"], host.trim_end());
        assert_eq!(row["cpu"], run["cpu"]);
        assert_eq!((&row["run"], &row["status"]), (&run["run"], &run["status"]));
        assert_eq!(row["command"], "./main a b");
        let started = row["started"].as_i64().unwrap();
        assert_eq!((started / 1_000_000).to_string(), date.stdout.trim_end());
    }
    let of = |unit: &str, name: &str| -> Vec<Map<String, Value>> {
        let is_it = |row: &&Map<String, Value>| row["unit"] == unit && row["function"] == name;
        rows.iter().filter(is_it).cloned().collect()
    };
    let [helper] = of("function", "helper").try_into().unwrap();
    assert_eq!(
        (&helper["count"], &helper["exactness"]),
        (&100.into(), &"exact".into())
    );
    assert_eq!(
        (&helper["library"], &helper["phase"]),
        (&Value::Null, &Value::Null)
    );
    // Line 3 of helper.c is in one function of one module.
    let lines = of("line", "helper");
    let third = lines.iter().find(|row| row["line"] == 3).unwrap();
    assert_eq!(third["count"], 100);
    assert!(
        third["file"].as_str().unwrap().starts_with('/'),
        "{third:?}"
    );
    let of_libc = rows.iter().filter(|row| row["library"] == "libc.so.6");
    assert!(of_libc.count() > 100);
    let report: Value =
        serde_json::from_str(&shop.headcount(&["report", "--json"]).stdout).unwrap();
    let refused = rows.iter().filter(|row| row["unit"] == "refused").count();
    assert_eq!(refused, report["refused"].as_array().unwrap().len());
    let notes = rows.iter().filter(|row| row["unit"] == "note");
    let notes: Vec<&str> = notes.map(|row| row["reason"].as_str().unwrap()).collect();
    let told = report["notes"].as_array().unwrap().iter();
    assert!(
        told.map(|it| it.as_str().unwrap())
            .all(|it| notes.contains(&it))
    );
}

#[test]
fn lines_that_never_ran_are_found_where_source_text_was_counted() {
    let shop = Workshop::new();
    std::fs::create_dir(shop.path("fleet")).unwrap();
    let text = "int main(int argc, char **argv)\n{\n    if (argc > 1)\n        return 1;\n    return 0;\n}\n";
    shop.write("it.c", text);
    shop.via_source(&[], &["gcc", "it.c", "-o", "it"]);
    shop.must(&["./it"]);
    let export = ["export", "--format", "parquet", "-o", "fleet/it.parquet"];
    let said = shop.headcount(&[&export[..], &["--by", ALL_UNITS]].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
    let ask = |title: &str| {
        let questions = page::questions().unwrap();
        let question = questions.iter().find(|it| it.title == title).unwrap();
        let view = page::view(Engine::DuckDb).unwrap();
        let answers = Engine::DuckDb.ask(&shop.path(""), view, &[question.sql]);
        answers.unwrap().remove(0).rows
    };
    let never = ask("lines that never ran");
    let lines: Vec<u64> = never
        .iter()
        .map(|it| it["line"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [4], "{never:?}");
    let [coverage] = ask("coverage of the fleet").try_into().unwrap();
    let (all, ran) = (&coverage["lines"], &coverage["lines_ran"]);
    assert_eq!(all.as_u64().unwrap() - 1, ran.as_u64().unwrap());
    for row in all_rows(&shop.path("")) {
        assert_eq!(row["address"], Value::Null, "{row:?}");
        assert_eq!(row["executed"], Value::Null, "{row:?}");
    }
}

#[test]
fn the_same_profile_makes_the_same_file_on_standard_output_too() {
    let shop = Workshop::with_sources();
    shop.must(&["gcc", "-g", "main.c", "helper.c", "-o", "main"]);
    shop.must_count_alone(&["./main"]);
    let export = ["export", "--format", "parquet", "--events", "all"];
    for name in ["one", "two"] {
        let said = shop.headcount(&[&export[..], &["-o", name]].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
    }
    let one = std::fs::read(shop.path("one")).unwrap();
    assert!(one.starts_with(b"PAR1") && one.ends_with(b"PAR1"));
    assert_eq!(one, std::fs::read(shop.path("two")).unwrap());
    let output = shop.command(HEADCOUNT).args(export).output().unwrap();
    assert_eq!(output.stdout, one);
}

#[test]
fn what_the_format_cannot_is_said() {
    let shop = Workshop::with_sources();
    shop.must(&["gcc", "-g", "main.c", "helper.c", "-o", "main"]);
    shop.must_count_alone(&["./main"]);
    let parquet = ["export", "--format", "parquet", "-o"];
    for (words, complaint) in [
        (&["headcount.db"][..], "is a profile, which would be lost"),
        (
            &["it", "--max-count", "5"],
            "cannot be combined with --format parquet",
        ),
        (
            &["it", "--time"],
            "cannot be combined with --format parquet",
        ),
        (&["no/it"], "no/it: cannot be written"),
        (&["it", "--runs", "7"], "has no run 7"),
    ] {
        let said = shop.headcount(&[&parquet[..], words].concat());
        assert_eq!(said.status, Some(2), "{words:?}: {said:?}");
        assert!(said.stderr.contains(complaint), "{words:?}: {said:?}");
    }
    let said = shop.headcount(&["export", "--format", "lcov", "--by", "line"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("only with --format parquet"),
        "{said:?}"
    );
    let said = shop.headcount(&[&parquet[..], &["it", "--only", "nosuch"]].concat());
    assert_eq!(said.status, Some(2), "{said:?}");
    assert_eq!(
        said.stderr.matches("is called nosuch").count(),
        1,
        "{said:?}"
    );
}

#[test]
fn duckdb_gives_the_answers_of_reports_to_all_questions_of_the_page() {
    let shop = Workshop::new();
    let mut fleet = Fleet::new(&shop.path(""), HEADCOUNT.as_ref()).unwrap();
    fleet.build(1).unwrap();
    let (app, other) = (["./app", "60"], ["./app", "30"]);
    let machines: [(u32, &str, u32, &str, &[&str]); 6] = [
        (1, "a", 20, "main", &app),
        (1, "b", 3, "main", &other),
        (1, "a", 2, "main", &app),
        (1, "a", 2, "all", &["/usr/bin/cksum", "app.c"]),
        (2, "c", 1, "main", &app),
        (2, "d", 0, "main", &other),
    ];
    for (release, host, days, modules, command) in machines {
        if host == "c" {
            fleet.build(release).unwrap();
        }
        let machine = Machine {
            host,
            release,
            days,
            modules,
        };
        fleet.count(&machine, command).unwrap();
    }
    fleet.gather().unwrap();
    let mut date = Command::new("date");
    let week = workshop::said(date.args(["-u", "-d", "7 days ago", "+%Y-%m-%dT%H:%M:%SZ"]));
    let judge = Judge::new(&fleet, week.stdout.trim_end()).unwrap();
    let questions = page::questions().unwrap();
    assert!(questions.len() >= 7);
    let all: Vec<&str> = questions.iter().map(|it| it.sql).collect();
    let view = page::view(Engine::DuckDb).unwrap();
    let answers = Engine::DuckDb.ask(&shop.path(""), view, &all).unwrap();
    for (question, answer) in questions.iter().zip(&answers) {
        judge
            .check(question.title, &[&answer.rows])
            .unwrap_or_else(|error| panic!("{error:#}"));
    }
}
