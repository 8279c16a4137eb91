//! What reading verbs tell of what was counted by value.

use crate::browser::{Browser, Screen};
use crate::exports::schema;
use crate::sample;
use crate::workshop::{Workshop, have};
use headcount_fleet::engine::Engine;
use headcount_fleet::page;
use headcount_model::{CodePoint, Key, LinkAddr, Run, Tally as TallyOfRun, TallyRow, ValueCounts};
use headcount_profile::Profile;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;

/// The fields of a table, without its titles; the columns are chosen by name.
fn rows(csv: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let mut lines = csv.lines();
    let titles: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |column: &&str| titles.iter().position(|it| it == column);
    let places: Vec<usize> = columns.iter().map(|it| place(it).expect(it)).collect();
    let fields = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        places.iter().map(|it| fields[*it].to_owned()).collect()
    };
    lines.map(fields).collect()
}

/// Builds a program and counts it with these options.
fn counted(source: &str, compile: &[&str], options: &[&str]) -> Workshop {
    let shop = Workshop::new();
    shop.write("it.c", source);
    shop.must(&[compile, &["it.c", "-o", "it"]].concat());
    shop.must_headcount(
        &[
            &["run", "-q", "--modules", "main"],
            options,
            &["--", "./it"],
        ]
        .concat(),
    );
    shop
}

const TARGETS_C: &str = include_str!("reading_values/targets.c");
const VALUES_C: &str = include_str!("reading_values/values.c");
const GCC: [&str; 4] = ["gcc", "-O1", "-g", "-foptimize-sibling-calls"];
const TAKE: [&str; 2] = ["--tally", "take(n)"];

/// Callee and count of the calls that a function makes, as they are in the report.
fn calls_of(shop: &Workshop, caller: &str, more: &[&str]) -> Vec<[String; 2]> {
    let words = ["--by", "call", "--only", "it.c", "--format", "csv"];
    let csv = shop.report(&[&words, more].concat());
    let all = rows(&csv, &["caller", "callee", "count"]).into_iter();
    let own = all.filter(|it| it[0] == caller);
    own.map(|it| [it[1].clone(), it[2].clone()]).collect()
}

fn pairs<const N: usize>(all: [(&str, u64); N]) -> Vec<[String; 2]> {
    all.map(|(name, count)| [name.to_owned(), count.to_string()])
        .to_vec()
}

#[test]
fn calls_through_pointers_have_a_row_for_every_callee() {
    let shop = counted(TARGETS_C, &GCC, &["--targets"]);
    let expected = pairs([("add", 900), ("twice", 90), ("half", 10)]);
    let mut found = calls_of(&shop, "apply", &[]);
    found.sort_by_key(|it| std::cmp::Reverse(it[1].parse::<u64>().unwrap()));
    assert_eq!(found, expected);
    // Jumps are among the callers of a function, and nothing is left for the outside.
    let callers = shop.report(&["--callers", "add", "--format", "csv"]);
    let callers = rows(&callers, &["caller", "count", "kind"]);
    let expected = [["apply", "900", "call"], ["hand_over", "4", "jump"]];
    assert_eq!(callers, expected);
    // A run that nobody asked tells only how often it called.
    shop.must_headcount(&["run", "-q", "--", "./it"]);
    assert_eq!(calls_of(&shop, "apply", &[]), pairs([("*", 1000)]));
    let mut both = calls_of(&shop, "apply", &["--runs", "all"]);
    both.sort();
    let expected = pairs([("*", 1000), ("add", 900), ("half", 10), ("twice", 90)]);
    assert_eq!(both, expected);
}

#[test]
fn runs_that_counted_other_things_are_no_reason_for_doubt() {
    let shop = counted(VALUES_C, &GCC, &TAKE);
    let told = |runs: &str| shop.report(&["--by", "value", "--runs", runs]);
    assert!(!told("1").contains("add up"), "{}", told("1"));
    shop.must_headcount(&["run", "-q", "--", "./it"]);
    let both = told("all");
    assert!(!both.contains("do not believe"), "{both}");
    assert!(
        both.contains("Not all of these runs counted the same"),
        "{both}"
    );
    shop.must_headcount(&[&["run", "-q"], &TAKE[..], &["--", "./it"]].concat());
    let same = told("1,3");
    assert!(
        same.contains("1,800  take(n)") && !same.contains("Not all"),
        "{same}"
    );
}

#[test]
fn phases_of_a_run_are_held_against_its_values_together() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let marked = VALUES_C.replace(
        "    sum += take(-1);",
        "    headcount_mark(\"late\");\n    sum += take(-1);",
    );
    let source = format!("#include <headcount.h>\n{marked}");
    let shop = counted(&source, &[&GCC[..], &[include]].concat(), &TAKE);
    let told = |more: &[&str]| shop.report(&[&["--by", "value"], more].concat());
    let whole = told(&[]);
    assert!(whole.contains("900  take(n)"), "{whole}");
    let alone = told(&["--phase", "values"]);
    assert!(alone.contains("900  take(n)"), "{alone}");
    assert!(alone.contains("Not all of these runs"), "{alone}");
    for doubt in ["do not believe", "were not counted"] {
        assert!(!whole.contains(doubt), "{whole}");
        assert!(!alone.contains(doubt), "{alone}");
    }
    assert!(!whole.contains("Not all of these runs"), "{whole}");
}

#[test]
fn callgrind_charges_whom_pointers_led_to() {
    let shop = counted(TARGETS_C, &GCC, &["--targets"]);
    let said = shop.headcount(&["export", "--format", "callgrind", "--only", "it.c"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(!said.stderr.contains("may lead anywhere"), "{said:?}");
    assert!(said.stdout.contains("calls=900 "), "{said:?}");
    shop.must_headcount(&["run", "-q", "--", "./it"]);
    let said = shop.headcount(&["export", "--format", "callgrind", "--only", "it.c"]);
    assert!(said.stderr.contains("may lead anywhere"), "{said:?}");
}

#[test]
fn bolt_learns_whom_to_call_directly() {
    let compile = [
        "gcc",
        "-O2",
        "-g",
        "-Wl,-q",
        "-fno-reorder-blocks-and-partition",
    ];
    let shop = counted(TARGETS_C, &compile, &["--targets"]);
    let said = shop.headcount(&["export", "--format", "bolt", "-o", "it.fdata"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let text = fs::read_to_string(shop.path("it.fdata")).unwrap();
    let calls = |callee: &str| {
        let of_apply = text.lines().filter(|it| it.starts_with("1 apply/1 "));
        let record = of_apply.filter(|it| it.contains(&format!(" 1 {callee}/1 0 0 ")));
        let counts = record.filter_map(|it| it.rsplit(' ').next()?.parse::<u64>().ok());
        counts.sum::<u64>()
    };
    assert_eq!(
        [calls("add"), calls("twice"), calls("half")],
        [900, 90, 10],
        "{text}"
    );
    let words = [
        "llvm-bolt-16",
        "it",
        "-o",
        "it.bolt",
        "-data=it.fdata",
        "-v=1",
    ];
    let promote = ["-indirect-call-promotion=calls"];
    let said = shop.run(&[&words[..], &promote].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
    let told = said.stdout + &said.stderr;
    let promoted = "ICP percentage of indirect callsites that are optimized = 100.0%";
    assert!(told.contains(promoted), "{told}");
    assert_eq!(shop.must(&["it.bolt"]), shop.must(&["it"]));
}

#[test]
fn clang_promotes_what_the_profile_says_was_called() {
    let compile = [
        "clang",
        "-O2",
        "-gline-tables-only",
        "-fdebug-info-for-profiling",
    ];
    let shop = counted(TARGETS_C, &compile, &["--targets"]);
    let said = shop.headcount(&["export", "--format", "llvm-sample", "-o", "it.prof"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let text = fs::read_to_string(shop.path("it.prof")).unwrap();
    assert!(text.contains(" add:900 half:10 twice:90\n"), "{text}");
    let learn = ["-fprofile-sample-use=it.prof", "-Rpass=pgo-icall-prom"];
    let words = [&compile[..], &learn, &["it.c", "-o", "better"]].concat();
    let said = shop.run(&words);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(
        said.stderr
            .contains("Promote indirect call to add with count 900"),
        "{said:?}"
    );
    assert_eq!(shop.must(&["better"]), shop.must(&["it"]));
}

#[test]
fn a_listing_tells_the_commonest_values_below_their_line() {
    let shop = counted(VALUES_C, &GCC, &TAKE);
    let said = shop.headcount(&["annotate", "it.c", "--width", "80"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let told = "<- take(n): 16×900, 32×90, 7×9, 2 more\n";
    assert!(said.stdout.contains(told), "{}", said.stdout);
    let said = shop.headcount(&["annotate", "it.c", "--width", "40"]);
    let rows = said.stdout.lines().filter(|it| it.contains(" | "));
    let widest = rows.map(|it| it.chars().count()).max();
    assert_eq!(widest, Some(40), "{}", said.stdout);
    let said = shop.headcount(&["annotate", "it.c", "--json"]);
    let json: Value = serde_json::from_str(&said.stdout).unwrap();
    let lines = json["files"][0]["lines"].as_array().unwrap();
    let tallied = lines.iter().filter_map(|it| it["values"].as_array());
    let tallied: Vec<&Value> = tallied.flatten().collect();
    let found = tallied
        .iter()
        .map(|it| [it["value"].clone(), it["count"].clone()]);
    let expected = [("16", 900), ("32", 90), ("7", 9), ("100", 2), ("-1", 1)];
    let expected = expected.map(|(value, count)| [json!(value), json!(count)]);
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn the_end_of_a_run_says_what_was_found() {
    let shop = Workshop::new();
    shop.write("it.c", VALUES_C);
    shop.must(&[&GCC[..], &["it.c", "-o", "it"]].concat());
    let more = ["--tally", "take by caller", "--tally", "sum n in take"];
    let words = [&["run"], &TAKE[..], &more, &["--targets", "--", "./it"]].concat();
    let said = shop.headcount(&words);
    assert_eq!(said.status, Some(0), "{said:?}");
    for told in [
        "headcount: take(n): counted 1,002 times, 5 different values, most often 16 (900 times)\n",
        "headcount: take: counted 1,002 times, 5 different callers, most often main it.c:15 (900 times)\n",
        "headcount: take(sum n): counted 1,002 times\n",
        "headcount: `headcount report --by value` shows all\n",
    ] {
        assert!(said.stderr.contains(told), "{told}: {}", said.stderr);
    }
    assert!(!said.stderr.contains("error"), "{said:?}");
    let quiet = shop.headcount(&["run", "-q", "--tally", "take(n)", "--", "./it"]);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn values_of_two_runs_are_compared() {
    let shop = counted(VALUES_C, &GCC, &TAKE);
    let more = ["--tally", "sum n in take"];
    shop.must_headcount(&[&["run", "-q"], &TAKE[..], &more, &["--", "./it", "10"]].concat());
    let words = ["diff", "--by", "value"];
    let said = shop.headcount(&[&words[..], &["--format", "csv"]].concat());
    assert_eq!(said.status, Some(0), "{said:?}");
    let columns = ["tally", "function", "value", "old", "new", "change"];
    let expected = [["take(n)", "take", "32", "90", "100", "10"]];
    assert_eq!(rows(&said.stdout, &columns), expected);
    let only_one = "take(sum n): counted by value only on the new side, and not compared.";
    assert!(said.stderr.contains(only_one), "{said:?}");
    let said = shop.headcount(&words);
    let row = "            +10    +11.11%               90              100  32\n";
    for told in [
        row,
        "take(n)\n",
        "The same on both sides: 4 values.",
        only_one,
    ] {
        assert!(said.stdout.contains(told), "{told}: {}", said.stdout);
    }
    let said = shop.headcount(&[&words[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(json["values"][0]["count"], json!({ "old": 90, "new": 100 }));
    assert_eq!(json["unchanged"], 4);
    let shop = counted(VALUES_C, &GCC, &[]);
    shop.must_headcount(&["run", "-q", "--", "./it"]);
    let said = shop.headcount(&words);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("nothing was counted by value"),
        "{said:?}"
    );
}

/// Value, count, caller, sum and line.
type InSqlite = (String, u64, String, Option<i64>, Option<u32>);

/// Every value in the plain tables.
fn in_sqlite(shop: &Workshop) -> Vec<InSqlite> {
    let said = shop.headcount(&["export", "--format", "sqlite", "-o", "it.sqlite"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let db = Connection::open(shop.path("it.sqlite")).unwrap();
    let all = "SELECT value, count, caller, sum, line FROM value_counts";
    let mut all = db.prepare(all).unwrap();
    let rows = all.query_map([], |row| {
        Ok((
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
        ))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn exports_hold_every_value() {
    let shop = counted(VALUES_C, &GCC, &["--tally", "sum 0 - n in take(n % 8)"]);
    // 16 and 32 leave nothing; 100 leaves 4, and -1 itself.
    let expected = [
        ("0", 990, -(900 * 16 + 90 * 32)),
        ("7", 9, -63),
        ("4", 2, -200),
        ("-1", 1, 1),
    ];
    let report = shop.report(&["--by", "value", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let said = shop.headcount(&["export", "--format", "json"]);
    let export: Value = serde_json::from_str(&said.stdout).unwrap();
    let said = shop.headcount(&["export", "--schema"]);
    schema::check(&serde_json::from_str(&said.stdout).unwrap(), &export);
    let sqlite = in_sqlite(&shop);
    for (place, (value, count, sum)) in expected.into_iter().enumerate() {
        let row = &report["rows"][place];
        assert_eq!(
            (&row["value"], &row["count"]),
            (&json!(value), &json!(count))
        );
        assert_eq!(row["sum"], json!(sum.to_string()));
        let row = &export["values"][place];
        assert_eq!(
            (&row["value"], &row["count"]),
            (&json!(value), &json!(count))
        );
        assert_eq!(
            (&row["sum"], &row["function"]),
            (&json!(sum), &json!("take"))
        );
        let row = (value.to_owned(), count, String::new(), Some(sum), Some(6));
        assert_eq!(sqlite[place], row);
    }
    assert_eq!(report["rows"].as_array().unwrap().len(), expected.len());
    assert_eq!(export["values"].as_array().unwrap().len(), expected.len());
    assert_eq!(sqlite.len(), expected.len());
}

#[test]
fn the_table_of_a_fleet_has_a_row_for_every_value() {
    let shop = counted(
        VALUES_C,
        &GCC,
        &["--tally", "sum 0 - n in take(n % 8) by caller"],
    );
    fs::create_dir(shop.path("fleet")).unwrap();
    let words = ["export", "--format", "parquet", "--by", "value"];
    shop.must_headcount(&[&words[..], &["-o", "fleet/it.parquet"]].concat());
    let view = page::view(Engine::DuckDb).unwrap();
    let question = "SELECT function, line, place, expression, value, sum(count) AS times, \
                    sum(sum) AS sum, count(DISTINCT caller) AS callers FROM counts \
                    WHERE unit = 'value' AND library IS NULL GROUP BY ALL ORDER BY times DESC";
    let answers = Engine::DuckDb.ask(&shop.path(""), view, &[question]);
    let rows = answers.unwrap().remove(0).rows;
    let expected = [
        ("0", 990, -17280, 2),
        ("7", 9, -63, 1),
        ("4", 2, -200, 1),
        ("-1", 1, 1, 1),
    ];
    for (row, (value, times, sum, callers)) in rows.iter().zip(expected) {
        assert_eq!(
            (&row["function"], &row["line"]),
            (&json!("take"), &json!(6))
        );
        assert_eq!(row["expression"], "n % 8: sum 0 - n");
        assert_eq!(
            (&row["place"], &row["value"]),
            (&json!("take"), &json!(value))
        );
        let numbers = ["times", "sum", "callers"].map(|it| row[it].to_string());
        assert_eq!(numbers, [times, sum, callers].map(|it: i64| it.to_string()));
    }
    assert_eq!(rows.len(), expected.len());
}

/// A text that somebody else chose, to do harm.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>'\"&\u{202e}\u{1b}[2J,\n";

/// A profile whose run found that text as an argument 7 times, in a function that was called once.
fn hostile() -> Workshop {
    let shop = Workshop::new();
    shop.write("max.c", sample::MAX_C);
    let folder = shop.path("");
    let module = sample::module(&folder);
    let place = CodePoint {
        build: 0,
        at: LinkAddr(module.functions[0].address.0),
    };
    let row = TallyRow {
        place: Some(place),
        key: Key::Text(0),
        caller: None,
        count: 7,
        amount: 0,
    };
    let tally = TallyOfRun {
        place: "max".into(),
        expression: "str(<b>)".into(),
        places: vec![place],
        rows: vec![row],
        ..TallyOfRun::default()
    };
    let run = Run {
        values: Some(ValueCounts {
            builds: vec![module.build_id.clone()],
            texts: vec![HOSTILE.as_bytes().to_vec()],
            tallies: vec![tally],
            unfinished: 0,
        }),
        ..sample::run("first", 7, 0)
    };
    let mut profile = Profile::create_or_open(&shop.path("headcount.db")).unwrap();
    profile.add(&[module], &run).unwrap();
    shop
}

#[test]
fn texts_that_others_chose_are_told_and_not_obeyed() {
    let shop = hostile();
    let doubt = "were counted 7 times, but it ran 1 times: do not believe them.";
    for words in [
        &["report", "--by", "value"][..],
        &["report", "--by", "value", "--json"],
        &["annotate", "max.c"],
        &["export", "--format", "json"],
    ] {
        let said = shop.headcount(words);
        assert_eq!(said.status, Some(0), "{said:?}");
        assert!(said.stdout.contains(doubt), "{words:?}: {}", said.stdout);
        let obeyed = |it: char| it == '\u{1b}' || it == '\u{202e}';
        assert!(!said.stdout.contains(obeyed), "{words:?}: {}", said.stdout);
    }
    if !have("chromium") {
        return;
    }
    let said = shop.headcount(&["html", "-o", "it.html"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let mut browser = Browser::start();
    let light = Screen {
        width: 1280,
        dark: false,
    };
    browser.open(&shop.path("it.html"), "#/values", &light);
    let text = browser.text("content.textContent");
    for told in ["</script><img src=x onerror=alert(1)>", "max(str(<b>))"] {
        assert!(text.contains(told), "{text}");
    }
    assert_eq!(
        browser.value("document.querySelectorAll('img, b').length"),
        0
    );
    browser.open(&shop.path("it.html"), "", &light);
    assert!(browser.text("content.textContent").contains(doubt));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn the_page_has_a_histogram_of_what_was_found() {
    if !have("chromium") {
        return;
    }
    let shop = counted(VALUES_C, &GCC, &[&TAKE[..], &["--targets"]].concat());
    let said = shop.headcount(&["html", "-o", "it.html"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let mut browser = Browser::start();
    for (width, dark) in [(1280, false), (1280, true), (400, false)] {
        browser.open(&shop.path("it.html"), "#/values", &Screen { width, dark });
        let wrong = browser.value(include_str!("browser/accessible.js"));
        assert_eq!(wrong, json!([]), "{width} {dark}");
    }
    let cells = "[...document.querySelector('tbody').rows].map((row) => [row.cells[0], row.cells[1]]\
                 .map((it) => it.textContent))";
    let expected = json!([
        ["16", "900"],
        ["32", "90"],
        ["7", "9"],
        ["100", "2"],
        ["-1", "1"]
    ]);
    assert_eq!(browser.value(cells), expected);
    let press = "[...document.querySelectorAll('th button')].find((it) => it.textContent === 'Value')\
                 .click() ?? 'pressed'";
    assert_eq!(browser.text(press), "pressed");
    let expected = json!([
        ["-1", "1"],
        ["7", "9"],
        ["16", "900"],
        ["32", "90"],
        ["100", "2"]
    ]);
    assert_eq!(browser.value(cells), expected);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn what_is_asked_for_twice_or_with_callers_too_is_no_reason_for_doubt() {
    let tallies = ["take(n)", "take(n) by caller", "take(n)"];
    let words: Vec<&str> = tallies.iter().flat_map(|it| ["--tally", it]).collect();
    let shop = counted(VALUES_C, &GCC, &words);
    let text = shop.report(&["--by", "value"]);
    assert!(!text.contains("do not believe"), "{text}");
    let csv = shop.report(&["--by", "value", "--format", "csv"]);
    let sum = |has_caller: bool| -> u64 {
        let rows = rows(&csv, &["count", "caller"]);
        let rows = rows.iter().filter(|it| it[1].is_empty() != has_caller);
        rows.map(|it| it[0].parse::<u64>().unwrap()).sum()
    };
    assert!(sum(true) > 0);
    assert_eq!(sum(true), sum(false));
    let calls = shop.report(&["--only", "take", "--format", "csv"]);
    let calls = rows(&calls, &["calls"]);
    assert_eq!(calls[0][0], sum(true).to_string());
}
