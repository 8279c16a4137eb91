//! `export --format sqlite`: its rows are those of `report`, whatever was counted, and however.

use crate::workshop::{self, HELPER_C, MAIN_C, Workshop, c_programs, have, is_thorough, said};
use headcount_ground::workers;
use headcount_oracle::stated::Stated;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Each table of the report, and the query that has the same rows.
const TABLES: [(&str, &str); 8] = [
    (
        "module",
        "SELECT module, executed, instructions, never FROM modules",
    ),
    (
        "file",
        "SELECT file, executed, instructions, never, blocks_executed, blocks, blocks_never FROM files",
    ),
    (
        "function",
        "SELECT module, function, ifnull(file, '??'), line, calls, executed, instructions, never
         FROM functions",
    ),
    ("line", "SELECT file, line, count, executed FROM lines"),
    (
        "block",
        "SELECT module, function, printf('0x%x', address), instructions, count FROM blocks",
    ),
    (
        "source_block",
        "SELECT module, function, printf('0x%x', address), instructions, count, ifnull(file, '??'),
         line, column, kind FROM blocks",
    ),
    (
        "edge",
        "SELECT module, function, iif(from_address IS NULL, NULL, printf('0x%x', from_address)),
         iif(to_address IS NULL, NULL, printf('0x%x', to_address)), kind, count FROM edges",
    ),
    (
        "call",
        "SELECT module, caller, printf('0x%x', address), callee, count FROM calls",
    ),
];

/// Every row is in both, for what some words choose.
fn compare(shop: &Workshop, words: &[&str]) {
    let export = ["export", "--format", "sqlite", "-o", "it.sqlite"];
    let said = shop.headcount(&[&export, words].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = Connection::open_with_flags(shop.path("it.sqlite"), flags).unwrap();
    for (unit, query) in TABLES {
        let by = unit.trim_start_matches("source_");
        let csv = shop.report(&[&["--by", by, "--format", "csv"], words].concat());
        let columns = csv.lines().next().unwrap().split(',').count();
        let mut query = db.prepare(query).unwrap();
        if columns != query.column_count() {
            continue; // blocks of source text, and others, have two forms
        }
        let mut rows: Vec<String> = csv.lines().skip(1).map(str::to_owned).collect();
        let mut found: Vec<String> = query
            .query_map([], |row| {
                let fields = (0..columns).map(|it| row.get(it));
                let fields = fields.collect::<rusqlite::Result<Vec<Value>>>()?;
                let fields: Vec<String> = fields.iter().map(field).collect();
                Ok(fields.join(","))
            })
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        rows.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, rows, "{unit} {words:?}");
    }
}

/// As CSV has it.
fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Text(text) if text.contains([',', ';', '"']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn tables_have_the_rows_of_reports_for_every_program_and_route() {
    let programs: Vec<_> = c_programs().into_iter().enumerate().collect();
    workers::share_out(&programs, 2, |(at, it)| by_a_route(*at, it), |_, _| ());
}

/// The routes that a program has take turns, unless there is time for all.
fn by_a_route(turn: usize, source: &Path) {
    let text = fs::read_to_string(source).unwrap();
    let stated = Stated::parse(source, &text).unwrap();
    let has = |route: &str| stated.routes.is_empty() || stated.routes.iter().any(|it| it == route);
    let routes: [(&str, &[&str]); 3] = [
        ("asm", &["cc", "--", "gcc"]),
        ("csource", &["cc", "--via", "source", "--", "gcc"]),
        ("patch", &[]),
    ];
    let mut routes: Vec<_> = routes.iter().filter(|(route, _)| has(route)).collect();
    if !is_thorough() && !routes.is_empty() {
        routes = vec![routes[turn % routes.len()]];
    }
    for (route, words) in routes {
        let shop = Workshop::new();
        shop.write("it.c", &text);
        let mut build = shop.command(words.first().map_or("gcc", |_| workshop::HEADCOUNT));
        build
            .args(*words)
            .args(["-g", "-O1", "-w", "-pthread", "it.c", "-o", "it", "-lm"]);
        build.args(&stated.flags);
        let built = said(&mut build);
        assert_eq!(built.status, Some(0), "{route} {source:?}: {built:?}");
        let mut run = match *route {
            "patch" => shop.command(workshop::HEADCOUNT),
            _ => shop.command(shop.path("it")),
        };
        if *route == "patch" {
            run.args(["run", "-q", "--modules", "main", "./it"]);
        }
        said(run.args(&stated.args));
        compare(&shop, &[]);
    }
}

/// A program of two sources, counted with its libraries.
fn counted() -> Workshop {
    let shop = Workshop::with_sources();
    shop.must(&["gcc", "-g", "main.c", "helper.c", "-o", "main"]);
    shop.must_count(&["./main"]);
    shop
}

#[test]
fn tables_have_the_rows_of_reports_for_whatever_is_chosen() {
    let shop = counted();
    compare(&shop, &["--only", "libc!mem*", "--no-demangle"]);
    shop.forget();
    for _ in 0..2 {
        shop.must_count_alone(&["./main"]);
    }
    compare(&shop, &["--runs", "all", "--only", "main!"]);
    shop.forget();
    let some = ["--engine", "breakpoint", "--only", "helper", "--limit", "5"];
    shop.must_count(&[&some[..], &["./main"]].concat());
    compare(&shop, &[]);
    let db = Connection::open(shop.path("it.sqlite")).unwrap();
    let query = "SELECT calls, at_least FROM functions WHERE function = 'helper'";
    let limited: (i64, i64) = db
        .query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(limited, (5, 1));
}

#[test]
fn a_database_is_whole_or_not_there() {
    let shop = counted();
    let export = |to: &str| shop.headcount(&["export", "--format", "sqlite", "-o", to]);
    // A profile is never taken for an old export.
    let said = export("headcount.db");
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.stderr.contains("is a profile"), "{said:?}");
    // What was there stays until the new one is whole, and keeps its rights.
    shop.write("old", "old");
    fs::set_permissions(shop.path("old"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("old", shop.path("link")).unwrap();
    assert_eq!(export("link").status, Some(0));
    assert!(shop.path("link").is_symlink());
    assert_eq!(shop.path("old").metadata().unwrap().mode() & 0o777, 0o600);
    assert!(
        fs::read(shop.path("old"))
            .unwrap()
            .starts_with(b"SQLite format 3\0")
    );
    let whole = fs::read(shop.path("old")).unwrap();
    let limited = format!(
        "ulimit -f 64; exec {} export --format sqlite -o old",
        workshop::HEADCOUNT
    );
    let failed = said_by_shell(&shop, &limited);
    assert_ne!(failed, Some(0));
    assert!(fs::read(shop.path("old")).unwrap() == whole);
    let names = fs::read_dir(shop.path(".")).unwrap();
    let left: Vec<_> = names
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|it| it.starts_with(".headcount-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    // Equal counts make equal bytes, wherever they go.
    let pipe = shop
        .command(workshop::HEADCOUNT)
        .args(["export", "--format", "sqlite"])
        .output()
        .unwrap();
    assert!(pipe.stdout == whole);
}

fn said_by_shell(shop: &Workshop, line: &str) -> Option<i32> {
    said(shop.command("sh").args(["-c", line])).status
}

#[test]
fn the_queries_of_the_manual_are_answered_by_the_shell() {
    if !have("sqlite3") {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sqlite.md");
    let page = fs::read_to_string(page).unwrap();
    let shop = Workshop::new();
    shop.write(
        "max.c",
        [HELPER_C, MAIN_C].concat().replace("helper", "max"),
    );
    shop.must(&["gcc", "-g", "max.c", "-o", "max"]);
    shop.must_count(&["./max"]);
    shop.must(&[
        workshop::HEADCOUNT,
        "export",
        "--format",
        "sqlite",
        "-o",
        "counts.sqlite",
    ]);
    let queries: Vec<&str> = page.split("```sql\n").skip(1).collect();
    assert!(queries.len() > 4);
    for query in queries {
        let query = query.split("```").next().unwrap();
        shop.must(&["sqlite3", "-bail", "counts.sqlite", query]);
    }
    let answer = shop.must(&[
        "sqlite3",
        "counts.sqlite",
        "SELECT line, count FROM lines WHERE file LIKE '%max.c' AND count > 34;
         SELECT caller, count FROM calls WHERE callee = 'max';",
    ]);
    assert_eq!(
        answer,
        "2|100\n3|100\n5|66\n6|100\n12|101\n13|100\nmain|100\n"
    );
    // Every column of the manual is there.
    let rows = page.lines().filter_map(|it| it.strip_prefix("| `"));
    for row in rows {
        let (table, rest) = row.split_once('`').unwrap();
        let columns = rest.rsplit_once(" | ").unwrap().1.trim_end_matches(" |");
        let query = format!("SELECT {} FROM {table} LIMIT 1", columns.replace('`', ""));
        shop.must(&["sqlite3", "-bail", "counts.sqlite", &query]);
        let all = format!("SELECT count(*) FROM pragma_table_info('{table}')");
        let number = shop.must(&["sqlite3", "counts.sqlite", &all]);
        assert_eq!(
            number.trim(),
            columns.split(", ").count().to_string(),
            "{table}"
        );
    }
}
