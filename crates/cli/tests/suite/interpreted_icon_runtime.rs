//! What Icon's runtime did for programs: as often as operations go on by hand, as many bytes as Icon itself counts, and
//! samples that add up.

use std::collections::BTreeMap;
use std::fs;

use crate::interpreted::counted;
use crate::interpreted_icon::{APPENDIX_C, FLOW, agrees, shop};
use crate::workshop::{HEADCOUNT, Workshop};

const GOES_ON: &str = include_str!("interpreted/icon/goes_on.icn");

/// Takes most of its storage at one place, and keeps the collector busy.
const COLLECTED: &str = "procedure main()
   local kept, l
   kept := []
   every put(kept, 1 to 20000)
   every 1 to 120000 do l := list(100)
   every 1 to 120000 do l := list(2)
   write(*kept)
end
";

pub type Row = BTreeMap<String, String>;

pub fn table(shop: &Workshop, words: &[&str]) -> Vec<Row> {
    let csv = shop.report(&[words, &["--format", "csv"]].concat());
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    reader.deserialize().map(|it| it.unwrap()).collect()
}

pub fn tokens(shop: &Workshop) -> Vec<Row> {
    table(shop, &["--by", "token", "--all"])
}

pub fn number(row: &Row, column: &str) -> u64 {
    let text = &row[column];
    text.parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

/// What is in a column of the token that begins at a line and has this text there first.
pub fn of_token(rows: &[Row], line: u32, text: &str, column: &str) -> u64 {
    let is_it = |it: &&Row| it["line"] == line.to_string() && it["text"] == text;
    let found = rows.iter().find(is_it);
    number(
        found.unwrap_or_else(|| panic!("{line} {text}: {rows:?}")),
        column,
    )
}

#[test]
fn operations_go_on_as_often_as_they_are_asked_for_another_result() {
    let Some(shop) = shop("goes_on", GOES_ON) else {
        return;
    };
    let said = counted(&shop, &["./goes_on"]);
    let rows = tokens(&shop);
    let resumed = |line, text| of_token(&rows, line, text, "resumptions");
    // Each result is followed by another, or by none.
    assert_eq!(resumed(4, "to"), 10);
    assert_eq!(resumed(20, "suspend"), 3);
    assert_eq!((resumed(6, "!"), of_token(&rows, 6, "!", "count")), (3, 1));
    let others: Vec<u64> = rows
        .iter()
        .filter(|it| it["line"] == "6" && it["text"] == "!")
        .map(|it| number(it, "resumptions"))
        .collect();
    assert_eq!(others, [3, 2]);
    // 7 is the first that is greater than 6.
    assert_eq!(resumed(8, "to"), 6);
    assert_eq!(resumed(9, "to"), 4);
    assert_eq!(of_token(&rows, 12, "||:=", "bytes"), 500);

    // Icon's own words: all that was allocated, and collections by region.
    let allocated = said
        .stdout
        .lines()
        .find_map(|it| it.strip_prefix("allocated "));
    let allocated: u64 = allocated.unwrap().parse().unwrap();
    let regions = table(&shop, &["--storage"]);
    let sum = |column: &str| -> u64 { regions.iter().map(|it| number(it, column)).sum() };
    assert_eq!(sum("bytes"), allocated, "{regions:?}");
    let known: u64 = rows.iter().map(|it| number(it, "bytes")).sum();
    assert_eq!(known + sum("bytes_of_no_token"), allocated, "{rows:?}");
    let said = said
        .stdout
        .lines()
        .filter_map(|it| it.strip_prefix("region "));
    let said: Vec<u64> = said.map(|it| it.parse().unwrap()).collect();
    let of = |name: &str| {
        let row = regions.iter().find(|it| it["region"] == name);
        row.map_or(0, |it| number(it, "collections"))
    };
    let found = [sum("collections"), of("static"), of("string"), of("block")];
    assert_eq!(said, found, "{regions:?}");
    assert!(of("block") > 0 && sum("recovered") > 1 << 20, "{regions:?}");
}

#[test]
fn samples_of_icon_are_charged_to_tokens_and_routines_and_add_up() {
    let Some(shop) = shop("collected", COLLECTED) else {
        return;
    };
    let said = shop.headcount(&["run", "-q", "--time", "--", "./collected"]);
    assert_eq!(
        (&said.stdout[..], said.status),
        ("20000\n", Some(0)),
        "{said:?}"
    );
    let rows = tokens(&shop);
    let charges = table(&shop, &["--charge-back", "--all"]);
    let all: u64 = charges.iter().map(|it| number(it, "samples")).sum();
    assert!(all > 20, "{charges:?}");
    let of = |file: &str| -> u64 {
        let rows = charges.iter().filter(|it| it["file"] == file);
        rows.map(|it| number(it, "samples")).sum()
    };
    let (collector, nothing) = (of("(collector)"), of("(no token)"));
    assert!(
        charges.iter().any(|it| it["routine"] == "collect"),
        "{charges:?}"
    );
    assert!(collector > 0, "{charges:?}");
    // The interpreter begins, and ends.
    assert!(10 * nothing < all, "{charges:?}");

    // Each token has its own samples, and its share of the collector's.
    let bytes: u64 = rows.iter().map(|it| number(it, "bytes")).sum();
    let mut shared = 0;
    for row in &rows {
        let is_it = |it: &&Row| {
            ["file", "line", "column"]
                .iter()
                .all(|name| it[*name] == row[*name])
        };
        let own = charges.iter().filter(is_it).map(|it| number(it, "samples"));
        let own: u64 = own.sum();
        let share = number(row, "samples") - own;
        let exact = collector as f64 * number(row, "bytes") as f64 / bytes as f64;
        assert!(
            (share as f64 - exact).abs() < 1.0,
            "{share} of {exact}: {row:?}"
        );
        shared += share;
    }
    assert_eq!(shared, collector);
    let known: u64 = rows.iter().map(|it| number(it, "samples")).sum();
    assert_eq!(known + nothing, all);
}

#[test]
fn icon_does_the_same_while_a_clock_stops_it() {
    let Some(shop) = shop("flow", FLOW) else {
        return;
    };
    let said = shop.headcount(&["run", "-q", "--time", "--", "./flow"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    // The counts are the same as well, in all threads of co-expressions.
    agrees(&shop, &said.stdout);
}

#[test]
fn the_five_files_of_1979_are_written() {
    let Some(shop) = shop("c", APPENDIX_C) else {
        return;
    };
    fs::write(shop.path("input"), "a line\n".repeat(31)).unwrap();
    counted(&shop, &["sh", "-c", "./c < input"]);
    let said = shop.headcount(&["export", "--format", "icon-files", "-o", "it"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let file = |suffix: &str| fs::read_to_string(shop.path(&format!("it.{suffix}"))).unwrap();
    let places: Vec<String> = file("tokens").lines().map(str::to_owned).collect();
    let places: Vec<&str> = places
        .iter()
        .map(|it| it.rsplit_once(' ').unwrap().0)
        .collect();
    let expected = [
        "1 2 4", "2 2 10", "3 2 15", "4 2 18", "5 2 22", "6 2 23", "7 2 31", "8 3 7", "9 3 12",
        "10 3 13",
    ];
    assert_eq!(places, expected);
    let counts = file("counts");
    let counts: Vec<&str> = counts.lines().collect();
    assert_eq!(
        counts,
        ["1", "32", "31", "32", "32", "32", "31", "31", "31", "31"]
    );
    let sum: u64 = file("allocation")
        .lines()
        .map(|it| it.parse::<u64>().unwrap())
        .sum();
    let regions = table(&shop, &["--storage"]);
    let taken: u64 = regions.iter().map(|it| number(it, "bytes")).sum();
    assert_eq!(sum, taken);
    // No clock ran.
    assert_eq!(file("samples"), "0\n".repeat(10));
    assert_eq!(file("pcs"), "");
    let said = shop.headcount(&["export", "--format", "icon-files"]);
    assert_eq!(said.status, Some(2));
    assert!(
        said.stderr
            .contains("give the common part of their names with -o"),
        "{said:?}"
    );
}

#[test]
fn an_icon_source_is_translated_and_run() {
    let text = "procedure main(words)
   every write(!words)
   write(read())
   stop(\"enough\")
end
";
    let Some(shop) = shop("it", text) else {
        return;
    };
    shop.write("input", "three\n");
    let line = format!("{HEADCOUNT} icon -q it.icn --one two < input");
    let said = shop.run(&["sh", "-c", &line]);
    assert_eq!(
        (&said.stdout[..], said.status),
        ("--one\ntwo\nthree\n", Some(1)),
        "{said:?}"
    );
    assert_eq!(of_token(&tokens(&shop), 2, "!", "resumptions"), 2);
    shop.write("broken.icn", "procedure main(\n");
    let said = shop.headcount(&["icon", "broken.icn"]);
    assert_eq!(said.status, Some(125));
    assert!(
        said.stderr.contains("broken.icn was not translated"),
        "{said:?}"
    );
}

#[test]
fn nothing_is_said_of_storage_where_none_was_measured() {
    let shop = Workshop::new();
    shop.must(&[HEADCOUNT, "run", "-q", "--", "true"]);
    for (words, why) in [
        (
            &["report", "--storage"][..],
            "no interpreter's storage was measured",
        ),
        (
            &["export", "--format", "icon-files", "-o", "it"],
            "no tokens of an Icon program were counted",
        ),
    ] {
        let said = shop.headcount(words);
        assert_eq!(said.status, Some(2), "{said:?}");
        assert!(said.stderr.contains(why), "{said:?}");
    }
}
